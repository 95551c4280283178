//! The vocabulary of a volume's I/O: the operations that protocols ask of a volume, wherever it
//! is, with their answers and errors.
//!
//! [`crate::volume`] serves them for a volume of this lane. Another shard's volume serves them by
//! messages.

mod alteration;
mod cancel_token;
mod error;

pub use crate::meta::Provisioning;
pub use alteration::{Alteration, Altered, WHOLE_BYTES_MAX};
pub use cancel_token::CancelToken;
pub use error::{IoError, IoErrorKind};

use base::{Payload, Slice, Uuid, VolumeOffset};
use futures_util::future::LocalBoxFuture;

/// What is asked for when a volume is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSpec {
    /// Unique in its pool, 1 to 64 bytes of letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// A multiple of [`base::SECTOR_BYTES`], not zero.
    pub size_bytes: u64,
    /// Whether space is promised at creation or taken by writes.
    pub provisioning: Provisioning,
}

/// What a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Name in the pool.
    pub name: String,
    /// Identity for life: NAA designator and serial number come from it.
    pub uuid: Uuid,
    /// Size that initiators see.
    pub size_bytes: u64,
    /// Whether its space is promised, or taken by writes.
    pub provisioning: Provisioning,
    /// Pages that are written as zeroes are not kept.
    pub detects_zeroes: bool,
    /// Nobody writes it: a snapshot.
    pub read_only: bool,
    /// Bytes of pages allocated to it.
    pub mapped_bytes: u64,
    /// Bytes of pages promised to it beyond those: of a thick volume, all others.
    pub promised_bytes: u64,
    /// Page of its pool: the grain in which space is taken and given back.
    pub page_bytes: u64,
    /// Bytes of one [`Alteration`], at most.
    pub whole_bytes_max: u64,
}

/// How a run of a volume is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Whether it has pages.
    pub is_mapped: bool,
    /// Bytes from where was asked on that are alike: all of them when it ends there, as
    /// many as were looked at otherwise.
    pub len_bytes: u64,
}

/// Space that is available to a volume, in its pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AvailableSpace {
    /// Pages that the volume has.
    pub mapped_bytes: u64,
    /// Pages that nobody has and nobody is promised, in all lanes as of their last look.
    pub available_bytes: u64,
    /// What is still available when the pool comes to its warning threshold.
    pub warn_bytes: u64,
}

/// A volume as others reach it, on this shard or on another.
pub trait VolumeIo {
    /// What it was when it was last asked.
    fn info(&self) -> VolumeInfo;

    /// It has another size from now on.
    fn resized(&self, size_bytes: u64);

    /// It takes space in another way from now on.
    fn converted(&self, provisioning: Provisioning);

    /// As [`Volume::read`](crate::volume::Volume::read).
    fn read(&self, at: VolumeOffset, len: usize) -> LocalBoxFuture<'_, Result<Payload, IoError>>;

    /// As [`Volume::write`](crate::volume::Volume::write).
    fn write(&self, at: VolumeOffset, data: Slice) -> LocalBoxFuture<'_, Result<(), IoError>>;

    /// As [`Volume::alter`](crate::volume::Volume::alter).
    fn alter(
        &self,
        at: VolumeOffset,
        alteration: Alteration,
    ) -> LocalBoxFuture<'_, Result<Altered, IoError>>;

    /// [`Volume::memo`](crate::volume::Volume::memo), as it was when it was last asked.
    fn memo(&self) -> Vec<u8>;

    /// As [`Volume::keep_memo`](crate::volume::Volume::keep_memo).
    fn keep_memo(&self, memo: Vec<u8>) -> LocalBoxFuture<'_, Result<(), IoError>>;

    /// As [`Volume::flush`](crate::volume::Volume::flush).
    fn flush(&self) -> LocalBoxFuture<'_, Result<(), IoError>>;

    /// As [`Volume::clear`](crate::volume::Volume::clear).
    fn clear(&self, at: VolumeOffset, len: u64) -> LocalBoxFuture<'_, Result<(), IoError>>;

    /// As [`Volume::room`](crate::volume::Volume::room).
    fn room(&self) -> LocalBoxFuture<'_, Result<AvailableSpace, IoError>>;

    /// As [`Volume::mapping`](crate::volume::Volume::mapping).
    fn mapping(&self, at: VolumeOffset) -> LocalBoxFuture<'_, Result<Mapping, IoError>>;

    /// As [`Volume::copy_from`](crate::volume::Volume::copy_from), of the volume with the identity `source`. `None`, with
    /// nothing done, when that is not in the same lane.
    fn copy_beside(
        &self,
        source: Uuid,
        ends: (VolumeOffset, VolumeOffset),
        len: u64,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'_, Result<Option<u64>, IoError>>;
}
