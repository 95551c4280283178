//! JSON of what drives were used for.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What drives were used for. One operation is one read or write of one drive: a block
/// that goes to two copies is two writes. Metadata and labels are in the drives' own
/// counts only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Io {
    /// Reads of volumes that were asked for.
    pub host_reads: Operations,
    /// Writes of volumes that were asked for.
    pub host_writes: Operations,
    /// Reads of data for a command.
    pub data_reads: Operations,
    /// Reads of old data and parity, because a stripe changed only in part.
    pub modify_reads: Operations,
    /// Writes of data in place.
    pub data_writes: Operations,
    /// Writes of parity in place.
    pub parity_writes: Operations,
    /// Reads to put together what a drive can't give, for a rebuild or a scrub.
    pub repair_reads: Operations,
    /// Writes over what was bad or missing.
    pub repair_writes: Operations,
    /// Writes of the data log, on every drive that carries it.
    pub log_writes: Operations,
    /// Writes of the intent log, on every drive that carries it.
    pub intent_writes: Operations,
    /// Writes of checksums of data to drives.
    pub sum_writes: Operations,
    /// Blocks of sums brought into RAM.
    pub sum_loads: u64,
    /// Stripes that were read in order to be changed in part.
    pub partial_stripes: u64,
    /// Stripes that were changed without reading anything.
    pub whole_stripes: u64,
    /// Bytes that went in place without passing the log.
    pub bypassed_bytes: u64,
}

/// Operations, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Operations {
    /// Number of operations since the pool was opened.
    pub count: u64,
    /// Bytes that these operations transferred.
    pub bytes: u64,
}
