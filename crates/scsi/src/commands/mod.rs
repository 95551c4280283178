//! Commands, by family. Each answers with data-in or with sense data.

pub(crate) mod alter;
pub(crate) mod capacity;
pub(crate) mod diagnostic;
pub(crate) mod inquiry;
pub(crate) mod lba_status;
pub(crate) mod log;
pub(crate) mod luns;
pub(crate) mod management;
pub(crate) mod mode;
pub(crate) mod opcodes;
pub(crate) mod reserve;
pub(crate) mod sanitize;
pub(crate) mod select;
pub(crate) mod transfer;
pub(crate) mod unmap;
pub(crate) mod write_same;
