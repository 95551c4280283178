//! Volumes over all pools.

use super::{Array, ArrayError, ArrayErrorKind};
use crate::shard::ShardState;
use engine::{Pool, VolumeInfo, VolumeSpec};
use std::rc::Rc;
use std::sync::Arc;
use world::real::RealWorld;

/// A volume and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedVolume {
    /// The pool it is in.
    pub pool: String,
    /// The pool's lane that it is in.
    pub lane: u16,
    /// What it is.
    pub info: VolumeInfo,
}

impl Array {
    /// All volumes, by name.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn volumes(&self) -> Result<Vec<PlacedVolume>, ArrayError> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(
                shard
                    .call(|state| async move { volumes_on(&state) })
                    .await?,
            );
        }
        all.sort_by(|a, b| a.info.name.cmp(&b.info.name));
        Ok(all)
    }

    /// The volume called `name`.
    ///
    /// # Errors
    /// There is none, or a shard has stopped.
    pub async fn volume(&self, name: &str) -> Result<PlacedVolume, ArrayError> {
        let all = self.volumes().await?;
        all.into_iter()
            .find(|volume| volume.info.name == name)
            .ok_or_else(|| ArrayError::no_volume(name))
    }

    /// Creates a volume in `pool`; of several lanes, in that of a volume of `beside`, where
    /// one is there already: a target is served without a detour then.
    ///
    /// # Errors
    /// No such pool, the name is taken anywhere in the array, or what the pool
    /// says.
    pub async fn create_volume(
        self: &Arc<Self>,
        pool: String,
        spec: VolumeSpec,
        beside: Vec<String>,
    ) -> Result<PlacedVolume, ArrayError> {
        self.change(|array| async move {
            let volumes = array.volumes().await?;
            if let Some(there) = volumes.iter().find(|known| known.info.name == spec.name) {
                let context = format!(
                    "there is a volume {} already, in pool {}; choose another name",
                    spec.name, there.pool
                );
                return Err(ArrayError::new(ArrayErrorKind::Exists, context));
            }
            let mut others = volumes.iter().filter(|other| other.pool == pool);
            let lane = match others.find(|other| beside.contains(&other.info.name)) {
                Some(other) => other.lane,
                None => array.emptiest_lane(&pool).await?,
            };
            let visit = move |_, pool: Pool<RealWorld>| async move {
                Ok(pool.create_volume(spec).await?.info())
            };
            let info = array.with_lane(&pool, lane, visit).await?;
            Ok(PlacedVolume { pool, lane, info })
        })
        .await
    }

    /// Grows the volume called `name` to `size_bytes` and tells its initiators.
    ///
    /// # Errors
    /// No such volume, a smaller size, or what the pool says.
    pub async fn resize_volume(
        self: &Arc<Self>,
        name: String,
        size_bytes: u64,
    ) -> Result<PlacedVolume, ArrayError> {
        self.change(move |array| async move {
            let there = array.volume(&name).await?;
            let uuid = there.info.uuid;
            let visit = move |_, pool: Pool<RealWorld>| async move {
                pool.resize_volume(&name, size_bytes).await?;
                let volume = pool.volume(&name);
                let info = volume.map(|volume| volume.info());
                info.ok_or_else(|| ArrayError::no_volume(&name))
            };
            let info = array.with_lane(&there.pool, there.lane, visit).await?;
            // Its target may be on any shard.
            for shard in &array.shards {
                let told = move |state: Rc<ShardState>| async move {
                    state.volume_resized(uuid, size_bytes);
                };
                shard.call(told).await?;
            }
            Ok(PlacedVolume { info, ..there })
        })
        .await
    }

    /// Deletes the volume called `name` with all its data.
    ///
    /// # Errors
    /// No such volume, it is behind a target, or what the pool says.
    pub async fn delete_volume(self: &Arc<Self>, name: String) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let there = array.volume(&name).await?;
            if let Some((target, lun)) = array.lun_of(&name) {
                let context = format!(
                    "volume {name} is LUN {lun} of target {target}; delete that export first"
                );
                return Err(ArrayError::new(ArrayErrorKind::Busy, context));
            }
            let visit =
                move |_, pool: Pool<RealWorld>| async move { Ok(pool.delete_volume(&name).await?) };
            array.with_lane(&there.pool, there.lane, visit).await
        })
        .await
    }

    /// The lane of a pool whose volumes are smallest together.
    async fn emptiest_lane(&self, pool: &str) -> Result<u16, ArrayError> {
        let lanes = self.homes(pool)?.len() as u16;
        let mut sizes = Vec::new();
        for lane in 0..lanes {
            let visit = |_, pool: Pool<RealWorld>| async move { Ok(pool.info().provisioned_bytes) };
            sizes.push((self.with_lane(pool, lane, visit).await?, lane));
        }
        Ok(sizes.into_iter().min().map_or(0, |(_, lane)| lane))
    }
}

fn volumes_on(state: &ShardState) -> Vec<PlacedVolume> {
    let mut all = Vec::new();
    for pool in state.pools() {
        let (name, lane) = (pool.info().name, pool.lane());
        let placed = |info| PlacedVolume {
            pool: name.clone(),
            lane,
            info,
        };
        all.extend(pool.volumes().into_iter().map(placed));
    }
    all
}
