//! A volume as protocols reach it: on this shard, or by way of another.
//!
//! Who serves a volume of another shard pays for the way there and back; the volume is
//! the same, with one order of its commands and one set of locks.

use super::{
    Alteration, Altered, AvailableSpace, CancelToken, IoError, Mapping, Provisioning, Volume,
    VolumeInfo, VolumeIo,
};
use crate::world::World;
use base::{Payload, Slice, Uuid, VolumeOffset};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;

impl<W: World> VolumeIo for Volume<W> {
    fn info(&self) -> VolumeInfo {
        Volume::info(self)
    }

    fn resized(&self, _: u64) {}

    fn converted(&self, _: Provisioning) {}

    fn read(&self, at: VolumeOffset, len: usize) -> LocalBoxFuture<'_, Result<Payload, IoError>> {
        Volume::read(self, at, len).boxed_local()
    }

    fn write(&self, at: VolumeOffset, data: Slice) -> LocalBoxFuture<'_, Result<(), IoError>> {
        Volume::write(self, at, data).boxed_local()
    }

    fn alter(
        &self,
        at: VolumeOffset,
        alteration: Alteration,
    ) -> LocalBoxFuture<'_, Result<Altered, IoError>> {
        Volume::alter(self, at, alteration).boxed_local()
    }

    fn memo(&self) -> Vec<u8> {
        Volume::memo(self)
    }

    fn keep_memo(&self, memo: Vec<u8>) -> LocalBoxFuture<'_, Result<(), IoError>> {
        Volume::keep_memo(self, memo).boxed_local()
    }

    fn flush(&self) -> LocalBoxFuture<'_, Result<(), IoError>> {
        Volume::flush(self).boxed_local()
    }

    fn clear(&self, at: VolumeOffset, len: u64) -> LocalBoxFuture<'_, Result<(), IoError>> {
        Volume::clear(self, at, len).boxed_local()
    }

    fn room(&self) -> LocalBoxFuture<'_, Result<AvailableSpace, IoError>> {
        let room = async move {
            match self.moved() {
                Some(there) => there.room().await,
                None => Ok(Volume::room(self)),
            }
        };
        room.boxed_local()
    }

    fn mapping(&self, at: VolumeOffset) -> LocalBoxFuture<'_, Result<Mapping, IoError>> {
        let mapping = async move {
            match self.moved() {
                Some(there) => there.mapping(at).await,
                None => Volume::mapping(self, at),
            }
        };
        mapping.boxed_local()
    }

    fn copy_beside(
        &self,
        source: Uuid,
        ends: (VolumeOffset, VolumeOffset),
        len: u64,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'_, Result<Option<u64>, IoError>> {
        let copy = async move {
            let Some(source) = self.beside(source) else {
                return Ok(None);
            };
            let watch = |done| cancel.reach(done);
            self.copy_from(&source, ends, len, watch).await.map(Some)
        };
        copy.boxed_local()
    }
}

/// A volume, wherever it is.
pub enum Disk<W: World> {
    /// A volume of a pool on this shard.
    Here(Volume<W>),
    /// A volume on another shard, reached by messages.
    There(Rc<dyn VolumeIo>),
}

impl<W: World> Clone for Disk<W> {
    fn clone(&self) -> Self {
        match self {
            Disk::Here(volume) => Disk::Here(volume.clone()),
            Disk::There(volume) => Disk::There(Rc::clone(volume)),
        }
    }
}

impl<W: World> From<Volume<W>> for Disk<W> {
    fn from(volume: Volume<W>) -> Self {
        Disk::Here(volume)
    }
}

impl<W: World> Disk<W> {
    /// The volume at a glance, wherever it is.
    pub fn info(&self) -> VolumeInfo {
        match self {
            Disk::Here(volume) => volume.info(),
            Disk::There(volume) => volume.info(),
        }
    }

    /// Size that initiators see, in bytes.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Disk::Here(volume) => volume.size_bytes(),
            Disk::There(volume) => volume.info().size_bytes,
        }
    }

    /// As [`Volume::read`].
    ///
    /// # Errors
    /// See there.
    pub async fn read(&self, at: VolumeOffset, len: usize) -> Result<Payload, IoError> {
        match self {
            Disk::Here(volume) => volume.read(at, len).await,
            Disk::There(volume) => volume.read(at, len).await,
        }
    }

    /// As [`Volume::write`].
    ///
    /// # Errors
    /// See there.
    pub async fn write(&self, at: VolumeOffset, data: Slice) -> Result<(), IoError> {
        match self {
            Disk::Here(volume) => volume.write(at, data).await,
            Disk::There(volume) => volume.write(at, data).await,
        }
    }

    /// As [`Volume::alter`].
    ///
    /// # Errors
    /// See there.
    pub async fn alter(
        &self,
        at: VolumeOffset,
        alteration: Alteration,
    ) -> Result<Altered, IoError> {
        match self {
            // Its future is large, and rare.
            Disk::Here(volume) => VolumeIo::alter(volume, at, alteration).await,
            Disk::There(volume) => volume.alter(at, alteration).await,
        }
    }

    /// The volume's memo, as [`VolumeIo::memo`] gives it.
    pub fn memo(&self) -> Vec<u8> {
        match self {
            Disk::Here(volume) => volume.memo(),
            Disk::There(volume) => volume.memo(),
        }
    }

    /// As [`Volume::keep_memo`].
    ///
    /// # Errors
    /// See there.
    pub async fn keep_memo(&self, memo: Vec<u8>) -> Result<(), IoError> {
        match self {
            Disk::Here(volume) => VolumeIo::keep_memo(volume, memo).await,
            Disk::There(volume) => volume.keep_memo(memo).await,
        }
    }

    /// As [`Volume::flush`].
    ///
    /// # Errors
    /// See there.
    pub async fn flush(&self) -> Result<(), IoError> {
        match self {
            Disk::Here(volume) => volume.flush().await,
            Disk::There(volume) => volume.flush().await,
        }
    }

    /// As [`Volume::clear`].
    ///
    /// # Errors
    /// See there.
    pub async fn clear(&self, at: VolumeOffset, len: u64) -> Result<(), IoError> {
        match self {
            Disk::Here(volume) => volume.clear(at, len).await,
            Disk::There(volume) => volume.clear(at, len).await,
        }
    }

    /// As [`Volume::mapping`].
    ///
    /// # Errors
    /// See there.
    pub async fn mapping(&self, at: VolumeOffset) -> Result<Mapping, IoError> {
        match self {
            Disk::Here(volume) => VolumeIo::mapping(volume, at).await,
            Disk::There(volume) => volume.mapping(at).await,
        }
    }

    /// As [`Volume::room`].
    ///
    /// # Errors
    /// It can't be reached.
    pub async fn room(&self) -> Result<AvailableSpace, IoError> {
        match self {
            Disk::Here(volume) => VolumeIo::room(volume).await,
            Disk::There(volume) => volume.room().await,
        }
    }

    /// As [`VolumeIo::copy_beside`].
    ///
    /// # Errors
    /// See there.
    pub async fn copy_beside(
        &self,
        source: Uuid,
        ends: (VolumeOffset, VolumeOffset),
        len: u64,
        cancel: &CancelToken,
    ) -> Result<Option<u64>, IoError> {
        let cancel = cancel.clone();
        match self {
            Disk::Here(volume) => VolumeIo::copy_beside(volume, source, ends, len, cancel).await,
            Disk::There(volume) => volume.copy_beside(source, ends, len, cancel).await,
        }
    }
}
