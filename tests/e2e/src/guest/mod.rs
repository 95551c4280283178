//! A virtual machine with its disk on the array.
//!
//! The guest is the distribution's own kernel under QEMU's TCG (so that it runs
//! where there is no KVM), with an initramfs made here out of the host's static
//! busybox, e2fsprogs and xfsprogs. It talks to the test over its serial console, in lines
//! that begin with `guest:`.
//!
//! Another image makes a guest that is an initiator itself, with the distribution's
//! open-iscsi, multipath-tools and sg3-utils; it reaches the array over cables that can
//! be cut, in a network of its own.

mod boot;
mod cpio;
mod initiator_image;
mod initramfs;
mod network;

pub use boot::{Disk, Guest};
pub use initramfs::Image;
pub(crate) use initramfs::target_directory;
pub use network::{Cable, in_own_network};

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
