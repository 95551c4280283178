//! The base of all other crates: units, buffers, checksums, PRNG streams.
//!
//! Nothing here knows of drives, protocols, threads or clocks.

pub mod buffer;
pub mod checksum;
pub mod message;
pub mod random;
pub mod size;
pub mod time;
pub mod units;

pub use buffer::{Buf, BufPool, Cuts, Payload, Slice, held_bytes};
pub use checksum::crc32c;
pub use message::not_there;
pub use random::Prng;
pub use time::Time;
pub use units::{
    BLOCK_BYTES, DriveOffset, GroupOffset, Lba, PageIndex, PhysPage, PoolOffset, SECTOR_BYTES,
    VolumeOffset,
};
pub use uuid::Uuid;
