//! A virtual machine with its disk on the array.
//!
//! The guest is the distribution's own kernel under QEMU's TCG (so that it runs
//! where there is no KVM), with an initramfs made here out of the host's static
//! busybox, e2fsprogs and xfsprogs. It talks to the test over its serial console, in lines
//! that begin with `guest:`.

mod boot;
mod cpio;
mod initramfs;

pub use boot::{Disk, Guest};
pub use initramfs::Image;
pub(crate) use initramfs::target_directory;

/// What a guest is booted to do; see `init.sh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Make a file system, write files, print their checksums, sync, then go on
    /// writing until killed.
    Write,
    /// Make a file system and fill most of it with eight files.
    Fill,
    /// Remove all of these files but one, and trim the file system.
    Trim,
    /// Replay the journal, check the file system and every checksum.
    Check,
    /// Do as it is told over the console, see [`Guest::order`].
    Obey,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::Write => "write",
            Phase::Fill => "fill",
            Phase::Trim => "trim",
            Phase::Check => "check",
            Phase::Obey => "obey",
        }
    }
}
