//! Archives in the `newc` format that the kernel unpacks as its first file system
//! (Documentation/driver-api/early-userspace/buffer-format.rst). Written here, and
//! not by the `cpio` program, because it can then hold a device node without root.

/// An archive in the making.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a directory; its parents must be there already.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, 0o040_755, (0, 0), &[]);
    }

    /// Adds an executable file.
    pub fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, 0o100_755, (0, 0), content);
    }

    /// Adds a character device node.
    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, 0o020_600, (major, minor), &[]);
    }

    /// The whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("a file of less than 4 GiB");
        let name_size = u32::try_from(path.len() + 1).expect("a short name");
        let fields = [
            self.entries, // inode
            mode,
            0, // owner
            0, // group
            1, // links
            0, // modification time
            size,
            0, // device of the archive, major
            0, // device of the archive, minor
            device.0,
            device.1,
            name_size,
            0, // checksum, unused in newc
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_reader_lists_what_was_written() {
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.program("bin/x", b"content");
        archive.character_device("console", 5, 1);
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("archive");
        std::fs::write(&path, archive.finish()).unwrap();
        // busybox is what the guest is made of; it reads cpio too.
        let script = format!("busybox cpio -t < {}", path.display());
        let listed = crate::program::run("sh", &["-c", &script]).ok();
        assert_eq!(
            listed.lines().collect::<Vec<_>>(),
            ["bin", "bin/x", "console"]
        );
    }
}
