//! Changes that depend on the present content, and writes that are never torn.

use base::Slice;

/// Bytes that can be written whole, at most.
pub const WHOLE_BYTES_MAX: usize = 256 << 10;

/// A change that depends on what is there.
#[derive(Clone, Debug)]
pub enum Alteration {
    /// Writes `new` when `expected` is there, which is as long.
    Exchange {
        /// What has to be there.
        expected: Slice,
        /// What comes there.
        new: Slice,
    },
    /// Sets the bits that are set here, too.
    Or(Slice),
    /// Writes this, all of it or nothing, also when the power goes.
    Whole(Slice),
}

impl Alteration {
    pub(crate) fn data(&self) -> &Slice {
        match self {
            Alteration::Exchange { new, .. } => new,
            Alteration::Or(data) | Alteration::Whole(data) => data,
        }
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Altered {
    /// It is done, and durable.
    Done,
    /// Nothing is written: what is there differs from what was expected.
    Differs {
        /// First byte that differs, counted from the first one compared.
        offset_bytes: u64,
    },
}
