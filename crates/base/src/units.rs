//! Newtypes for the quantities that must not be mixed up.
//!
//! Every offset is in bytes unless its name says otherwise. Arithmetic that can
//! overflow panics (the release profile keeps overflow checks on): an address
//! that wraps is a broken invariant, never data.

use std::fmt;

/// The engine's grain of storage: the unit that drives are read and written in.
pub const BLOCK_BYTES: usize = 4096;

/// The logical block that volumes show to initiators, and the grain at which a
/// drive may tear a write (see `docs/internals/format.md`, media assumptions).
pub const SECTOR_BYTES: usize = 512;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl std::ops::Add<u64> for $name {
            type Output = Self;
            fn add(self, by: u64) -> Self {
                Self(self.0 + by)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

quantity!(
    /// A logical block address of a LUN, in sectors of [`SECTOR_BYTES`].
    Lba
);
quantity!(
    /// A byte offset on one drive.
    DriveOffset
);
quantity!(
    /// A byte offset in the address space that a RAID group offers (data only,
    /// no parity, no copies).
    GroupOffset
);
quantity!(
    /// A byte offset in the address space of a pool: physical page times page
    /// size, plus the offset in the page.
    PoolOffset
);
quantity!(
    /// A byte offset in a volume.
    VolumeOffset
);
quantity!(
    /// The index of a logical page in a volume.
    PageIndex
);
quantity!(
    /// The index of a physical page in a pool.
    PhysPage
);
