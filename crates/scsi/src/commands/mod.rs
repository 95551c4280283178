//! Commands, by family. Each answers with data-in or with sense data.

pub(crate) mod capacity;
pub(crate) mod inquiry;
pub(crate) mod lba_status;
pub(crate) mod luns;
pub(crate) mod mode;
pub(crate) mod opcodes;
pub(crate) mod transfer;
pub(crate) mod unmap;
pub(crate) mod write_same;
