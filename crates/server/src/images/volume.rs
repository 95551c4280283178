//! A volume as jobs reach it: by messages to the shard that it is on.

use crate::array::{Array, ArrayError};
use crate::shard::{ShardGone, ShardHandle};
use base::{Payload, Slice, VolumeOffset};
use engine::volume::Mapping;
use engine::{IoError, Volume};
use world_real::RealWorld;

/// A volume, from any thread.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    home: ShardHandle,
    pool: String,
    lane: u16,
    name: String,
    uuid: base::Uuid,
    pub(super) size_bytes: u64,
    pub(super) page_bytes: u64,
    /// What offsets count from.
    base: u64,
}

impl Reached {
    /// The volume called `name`.
    ///
    /// # Errors
    /// There is none.
    pub(super) async fn find(array: &Array, name: &str) -> Result<Self, ArrayError> {
        let placed = array.volume(name).await?;
        let home = array.home_of(&placed)?;
        Ok(Reached {
            home,
            pool: placed.pool,
            lane: placed.lane,
            name: placed.info.name,
            uuid: placed.info.uuid,
            size_bytes: placed.info.size_bytes,
            page_bytes: placed.info.page_bytes,
            base: 0,
        })
    }

    /// A part of it, which begins at `base`.
    pub(super) fn from(self, base: u64) -> Self {
        Reached { base, ..self }
    }

    /// Whether both are in one lane.
    pub(super) fn is_beside(&self, other: &Reached) -> bool {
        (&self.pool, self.lane) == (&other.pool, other.lane)
    }

    /// Its identity.
    pub(super) fn uuid(&self) -> base::Uuid {
        self.uuid
    }

    async fn visit<T, F, Fut>(&self, visit: F) -> Result<T, String>
    where
        T: Send + 'static,
        F: FnOnce(Volume<RealWorld>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, IoError>> + 'static,
    {
        let (pool, lane, name) = (self.pool.clone(), self.lane, self.name.clone());
        let uuid = self.uuid;
        let call = self.home.call(move |state| async move {
            let volume = state.lane(&pool, lane).and_then(|pool| pool.volume(&name));
            match volume.filter(|volume| volume.info().uuid == uuid) {
                Some(volume) => visit(volume).await.map_err(|error| error.context),
                None => Err(format!("volume {name} is gone")),
            }
        });
        call.await
            .map_err(|ShardGone(shard)| format!("shard {shard} has stopped"))?
    }

    pub(super) async fn read(&self, at: u64, len: usize) -> Result<Payload, String> {
        let at = VolumeOffset(self.base + at);
        self.visit(move |volume| async move { volume.read(at, len).await })
            .await
    }

    pub(super) async fn write(&self, at: u64, data: Slice) -> Result<(), String> {
        let at = VolumeOffset(self.base + at);
        self.visit(move |volume| async move { volume.write(at, data).await })
            .await
    }

    pub(super) async fn mapping(&self, at: u64) -> Result<Mapping, String> {
        let at = VolumeOffset(self.base + at);
        self.visit(move |volume| async move { volume.mapping(at) })
            .await
    }

    /// Makes `len` bytes from its beginning on zeroes.
    pub(super) async fn clear(&self, len: u64) -> Result<(), String> {
        let at = VolumeOffset(self.base);
        self.visit(move |volume| async move { volume.clear(at, len).await })
            .await
    }

    /// Copies from another volume of its lane, as [`Volume::copy_from`] does.
    pub(super) async fn copy_from(
        &self,
        source: &Reached,
        (from, to): (u64, u64),
        len: u64,
        goes_on: impl FnMut(u64) -> bool + Send + 'static,
    ) -> Result<u64, String> {
        let ends = (VolumeOffset(from), VolumeOffset(to));
        let (pool, lane, theirs) = (self.pool.clone(), self.lane, source.uuid);
        let own = self.uuid;
        let call = self.home.call(move |state| async move {
            let pool = state.lane(&pool, lane);
            let of = |uuid| pool.as_ref().and_then(|pool| pool.volume_of(uuid));
            let (Some(target), Some(source)) = (of(own), of(theirs)) else {
                return Err("one of the volumes is gone".to_owned());
            };
            let copied = target.copy_from(&source, ends, len, goes_on).await;
            copied.map_err(|error| error.context)
        });
        call.await
            .map_err(|ShardGone(shard)| format!("shard {shard} has stopped"))?
    }
}
