//! A volume of another shard, as a target on this shard serves it.
//!
//! Each command goes to the volume's shard as a message, and its outcome comes back as
//! one; buffers change hands without a copy. A command that was sent runs to its end.

use super::{ShardGone, ShardHandle};
use base::{Payload, Slice, Uuid, VolumeOffset};
use engine::World;
use engine::volume::{Alteration, Altered, AvailableSpace, CancelToken, Mapping, VolumeIo};
use engine::{IoError, IoErrorKind, Provisioning, Volume, VolumeInfo};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::cell::RefCell;

/// A volume of another shard.
pub struct RemoteVolume<W: World> {
    home: ShardHandle<W>,
    pool: String,
    lane: u16,
    info: RefCell<VolumeInfo>,
    memo: RefCell<Vec<u8>>,
}

impl<W: World> RemoteVolume<W> {
    /// The volume that `info` tells of, in a lane of a pool that is at `home`.
    pub fn new(home: ShardHandle<W>, (pool, lane): (String, u16), info: VolumeInfo) -> Self {
        RemoteVolume {
            home,
            pool,
            lane,
            info: RefCell::new(info),
            memo: RefCell::default(),
        }
    }

    /// The same, with this memo.
    pub fn with_memo(self, memo: Vec<u8>) -> Self {
        self.memo.replace(memo);
        self
    }

    /// Does something to the volume, where it is.
    async fn visit<T, F, Fut>(&self, at: VolumeOffset, visit: F) -> Result<T, IoError>
    where
        T: Send + 'static,
        F: FnOnce(Volume<W>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, IoError>> + 'static,
    {
        let (pool, lane) = (self.pool.clone(), self.lane);
        let (name, uuid) = {
            let info = self.info.borrow();
            (info.name.clone(), info.uuid)
        };
        let gone = IoError {
            kind: IoErrorKind::Deleted,
            at,
            context: format!("volume '{name}' is deleted"),
        };
        let call = self.home.call(move |state| async move {
            // Its name may have changed.
            let volume = state
                .lane(&pool, lane)
                .and_then(|pool| pool.volume_of(uuid));
            match volume {
                Some(volume) => visit(volume).await,
                None => Err(gone),
            }
        });
        call.await.map_err(|ShardGone(shard)| IoError {
            kind: IoErrorKind::PoolFailed,
            at,
            context: format!("shard {shard} has stopped"),
        })?
    }
}

impl<W: World> VolumeIo for RemoteVolume<W> {
    fn info(&self) -> VolumeInfo {
        self.info.borrow().clone()
    }

    fn resized(&self, size_bytes: u64) {
        self.info.borrow_mut().size_bytes = size_bytes;
    }

    fn converted(&self, provisioning: Provisioning) {
        self.info.borrow_mut().provisioning = provisioning;
    }

    fn read(&self, at: VolumeOffset, len: usize) -> LocalBoxFuture<'_, Result<Payload, IoError>> {
        let read = async move {
            let visit = move |volume: Volume<W>| async move { volume.read(at, len).await };
            self.visit(at, visit).await
        };
        read.boxed_local()
    }

    fn write(&self, at: VolumeOffset, data: Slice) -> LocalBoxFuture<'_, Result<(), IoError>> {
        let visit = move |volume: Volume<W>| async move {
            let world = volume.world().clone();
            world.reached("write to a volume of another shard");
            if world.planted("write to another shard acknowledged early") {
                world.spawn(async move { drop(volume.write(at, data).await) });
                return Ok(());
            }
            volume.write(at, data).await
        };
        self.visit(at, visit).boxed_local()
    }

    fn alter(
        &self,
        at: VolumeOffset,
        alteration: Alteration,
    ) -> LocalBoxFuture<'_, Result<Altered, IoError>> {
        let visit = move |volume: Volume<W>| async move { volume.alter(at, alteration).await };
        self.visit(at, visit).boxed_local()
    }

    fn memo(&self) -> Vec<u8> {
        self.memo.borrow().clone()
    }

    fn keep_memo(&self, memo: Vec<u8>) -> LocalBoxFuture<'_, Result<(), IoError>> {
        let keep = async move {
            let kept = memo.clone();
            let visit = |volume: Volume<W>| async move { volume.keep_memo(memo).await };
            self.visit(VolumeOffset(0), visit).await?;
            self.memo.replace(kept);
            Ok(())
        };
        keep.boxed_local()
    }

    fn flush(&self) -> LocalBoxFuture<'_, Result<(), IoError>> {
        let visit = |volume: Volume<W>| async move { volume.flush().await };
        self.visit(VolumeOffset(0), visit).boxed_local()
    }

    fn clear(&self, at: VolumeOffset, len: u64) -> LocalBoxFuture<'_, Result<(), IoError>> {
        let visit = move |volume: Volume<W>| async move { volume.clear(at, len).await };
        self.visit(at, visit).boxed_local()
    }

    fn room(&self) -> LocalBoxFuture<'_, Result<AvailableSpace, IoError>> {
        let visit = |volume: Volume<W>| async move { VolumeIo::room(&volume).await };
        self.visit(VolumeOffset(0), visit).boxed_local()
    }

    fn mapping(&self, at: VolumeOffset) -> LocalBoxFuture<'_, Result<Mapping, IoError>> {
        let visit = move |volume: Volume<W>| async move {
            // Also when it has just moved.
            VolumeIo::mapping(&volume, at).await
        };
        self.visit(at, visit).boxed_local()
    }

    fn copy_beside(
        &self,
        source: Uuid,
        ends: (VolumeOffset, VolumeOffset),
        len: u64,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'_, Result<Option<u64>, IoError>> {
        let visit = move |volume: Volume<W>| async move {
            let world = volume.world().clone();
            world.reached("copy made on another shard");
            let len = match world.planted("copy on another shard ends early") {
                true => len / 2 / 512 * 512,
                false => len,
            };
            VolumeIo::copy_beside(&volume, source, ends, len, cancel).await
        };
        self.visit(ends.1, visit).boxed_local()
    }
}
