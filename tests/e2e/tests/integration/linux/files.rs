//! File systems of a Linux host on its own disk of the array: made, filled, trimmed, grown
//! while they are mounted, and whole after the array was killed.

use super::site;
use e2e::array::Array;
use e2e::guest::{Cable, Guest, in_own_network};

/// A file system, on the LUN of this number.
struct FileSystem {
    lun: usize,
    volume: &'static str,
    make: &'static str,
    kind: &'static str,
    grow: &'static str,
    check: &'static str,
}

const EXT4: FileSystem = FileSystem {
    lun: 0,
    volume: "v",
    make: "mkfs.ext4 -q -F",
    kind: "ext4",
    grow: "resize2fs $d",
    check: "e2fsck -fn $d",
};

const XFS: FileSystem = FileSystem {
    lun: 1,
    volume: "w",
    make: "mkfs.xfs -q -f",
    kind: "xfs",
    grow: "xfs_growfs /mnt",
    check: "xfs_repair -n $d",
};

/// Size of a volume, and what it grows to.
const MIB: u64 = 320;
const GROWN_MIB: u64 = 400;

/// XFS gives the room of removed files back in the background, and trims only what it has
/// given back; so it may take some.
const TRIMS: u32 = 30;

/// Eight files of 8 MiB each, and their sums.
const FILL: &str = "for i in 1 2 3 4 5 6 7 8; do \
    dd if=/dev/urandom of=/mnt/f$i bs=64k count=128 2>/dev/null || exit 1; done; \
    cd /mnt && sha256sum f8 >sums && sync";

fn mapped_bytes(array: &Array, volume: &str, when: &str) -> u64 {
    let shown = array.json(&["volume", "show", volume]);
    let mapped = shown["mapped_bytes"].as_u64().unwrap();
    println!("volume {volume}, {when}: {mapped} bytes mapped");
    mapped
}

impl FileSystem {
    fn tell(&self, host: &mut Guest, line: &str) -> String {
        host.tell(&format!("d=$(disk {}); {line}", self.lun))
    }

    fn use_and_trim(&self, host: &mut Guest, array: &Array) {
        self.tell(host, &format!("{} $d", self.make));
        self.tell(host, &format!("mount -t {} $d /mnt", self.kind));
        let new = mapped_bytes(array, self.volume, "new");
        self.tell(host, FILL);
        let full = mapped_bytes(array, self.volume, "64 MiB written");
        assert!(full >= new + (64 << 20), "{new} bytes, then {full}");
        self.tell(host, "rm /mnt/f[1-7]");
        // What the file system keeps is not the array's to know; seven files are gone.
        let mut trimmed = full;
        for _ in 0..TRIMS {
            self.tell(host, "sync && fstrim -v /mnt");
            trimmed = mapped_bytes(array, self.volume, "56 MiB removed, trimmed");
            if trimmed + (52 << 20) <= full {
                return;
            }
        }
        panic!("{full} bytes, and still {trimmed} after {TRIMS} trims");
    }

    /// Grows while it is mounted and used.
    fn grow(&self, host: &mut Guest, array: &Array) {
        let size = format!("{GROWN_MIB} MiB");
        array
            .command(&["volume", "resize", self.volume, "--size", &size])
            .ok();
        self.tell(
            host,
            &format!(
                "wait_until 'iscsiadm -m session -R >/dev/null && \
                 [ $(blockdev --getsize64 '$d') = {} ]'",
                GROWN_MIB << 20
            ),
        );
        self.tell(host, self.grow);
        let room = self.tell(host, "df -m /mnt | tail -n 1");
        let mib: u64 = room.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(mib > MIB, "{room}");
    }

    /// Loses its array, and is whole when that is back.
    fn survive(&self, host: &mut Guest, array: &mut Array, grown: &str) {
        self.tell(
            host,
            "dd if=/dev/urandom of=/mnt/last bs=64k count=64 2>/dev/null",
        );
        self.tell(host, "cd /mnt && sha256sum f8 last >sums && sync");
        array.kill();
        // A start wants the site file to say the size that the volume has.
        std::fs::write(array.file("../site.toml"), grown).unwrap();
        array.start_again();
        self.tell(host, "wait_until 'sg_turs '$d");
        self.tell(host, "umount /mnt");
        self.tell(host, self.check);
        self.tell(host, &format!("mount -t {} $d /mnt", self.kind));
        self.tell(host, "cd /mnt && sha256sum -c sums");
        self.tell(host, "umount /mnt");
    }

    fn run(&self, name: &str) {
        in_own_network(name, || {
            let cable = Cable::lay(1, 2);
            let mut array = site::array(&[&cable], &[("v", MIB), ("w", MIB)]);
            let mut host = site::logged_in(&site::image(), 'a', &[&cable], 2);
            self.use_and_trim(&mut host, &array);
            self.grow(&mut host, &array);
            let grown = site::text(&[cable.array()], &[("v", GROWN_MIB), ("w", GROWN_MIB)]);
            self.survive(&mut host, &mut array, &grown);
        });
    }
}

#[test]
fn ext4_is_trimmed_grown_and_whole_after_a_kill() {
    EXT4.run("linux::files::ext4_is_trimmed_grown_and_whole_after_a_kill");
}

#[test]
fn xfs_is_trimmed_grown_and_whole_after_a_kill() {
    XFS.run("linux::files::xfs_is_trimmed_grown_and_whole_after_a_kill");
}
