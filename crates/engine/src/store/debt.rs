//! The debt of a pool to its drives: what it has accepted and not put where it is to stay.

use super::index::Flow;
use super::{BLOCK, Store};
use crate::world::World;

/// What a pool owes its drives at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    /// Bytes of the log that are to go in place still, about.
    pub log_bytes: u64,
    /// From so many bytes on writes wait for stripes to go in place.
    pub log_bytes_max: u64,
    /// Bytes of checksum blocks that have changed, each counted once.
    pub sums_bytes: u64,
}

impl<W: World> Store<W> {
    /// Blocks of data that the log has taken since the opening, and where they are.
    pub fn flow(&self) -> Flow {
        let bypassed_bytes = self.counts.bypassed_bytes.get();
        Flow {
            bypassed_bytes,
            bypassing_bytes: self.counts.bypasses_begun_bytes.get() - bypassed_bytes,
            ..self.index.borrow().flow()
        }
    }

    /// What the pool owes its drives now.
    pub fn debt(&self) -> Debt {
        Debt {
            log_bytes: self.waiting_bytes(),
            log_bytes_max: self.free_bytes(),
            sums_bytes: self.integrity.stats().dirty * BLOCK,
        }
    }
}
