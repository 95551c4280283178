//! A volume as jobs reach it: by messages to the shard that it is on.

use super::copy::{Source, Target};
use crate::control::{ArrayError, ControlPlane};
use crate::shard::{ShardGone, ShardHandle};
use base::{Buf, Payload, Slice, Uuid, VolumeOffset};
use engine::volume::Mapping;
use engine::{IoError, Volume, World};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::ops::Range;

/// Writes on their way to a volume at once.
const WRITES_MAX: usize = 4;

/// A volume, from any thread.
#[derive(Debug)]
pub struct Reached<W: World> {
    home: ShardHandle<W>,
    pool: String,
    lane: u16,
    name: String,
    uuid: Uuid,
    size_bytes: u64,
    page_bytes: u64,
    /// What offsets count from.
    base: u64,
}

impl<W: World> Clone for Reached<W> {
    fn clone(&self) -> Self {
        Reached {
            home: self.home.clone(),
            pool: self.pool.clone(),
            name: self.name.clone(),
            ..*self
        }
    }
}

impl<W: World> Reached<W> {
    /// The volume called `name`.
    ///
    /// # Errors
    /// There is none.
    pub async fn find(array: &ControlPlane<W>, name: &str) -> Result<Self, ArrayError> {
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

    /// How large it is.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// A part of it, which begins at `base`.
    pub(super) fn from(self, base: u64) -> Self {
        Reached { base, ..self }
    }

    /// Whether both are in one lane.
    pub(super) fn is_beside(&self, other: &Reached<W>) -> bool {
        (&self.pool, self.lane) == (&other.pool, other.lane)
    }

    /// Which volume it is, whatever it is called.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    async fn visit<T, F, Fut>(&self, visit: F) -> Result<T, String>
    where
        T: Send + 'static,
        F: FnOnce(Volume<W>) -> Fut + Send + 'static,
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

    async fn read_at(&self, at: u64, len: usize) -> Result<Payload, String> {
        let at = VolumeOffset(self.base + at);
        self.visit(move |volume| async move { volume.read(at, len).await })
            .await
    }

    async fn write_at(&self, at: u64, data: Slice) -> Result<(), String> {
        let at = VolumeOffset(self.base + at);
        self.visit(move |volume| async move { volume.write(at, data).await })
            .await
    }

    async fn mapping(&self, at: u64) -> Result<Mapping, String> {
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
        source: &Reached<W>,
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

impl<W: World> Source for Reached<W> {
    async fn extent(&mut self, at: u64) -> Result<(bool, u64), String> {
        let mapping = self.mapping(at).await.map_err(unread)?;
        Ok((mapping.is_mapped, mapping.len_bytes))
    }

    async fn read(&mut self, at: u64, mut buf: Buf, part: Range<usize>) -> Result<Buf, String> {
        let payload = self.read_at(at, part.len()).await.map_err(unread)?;
        let mut from = part.start;
        for slice in &payload.parts {
            buf.put(from, slice);
            from += slice.len();
        }
        Ok(buf)
    }
}

fn unread(why: String) -> String {
    format!("reading the volume: {why}")
}

impl<W: World> Target for Reached<W> {
    fn grain_bytes(&self) -> usize {
        self.page_bytes as usize
    }

    fn depth(&self) -> usize {
        WRITES_MAX
    }

    fn write(&self, at: u64, data: Slice) -> BoxFuture<'static, Result<(), String>> {
        let volume = self.clone();
        async move { volume.write_at(at, data).await }.boxed()
    }
}
