//! Volumes over all pools.

use super::{Array, ArrayError, ArrayErrorKind};
use crate::shard::ShardState;
use engine::{VolumeInfo, VolumeSpec};
use std::rc::Rc;
use std::sync::Arc;

/// A volume and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedVolume {
    /// The pool it is in.
    pub pool: String,
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

    /// Creates a volume in `pool`.
    ///
    /// # Errors
    /// No such pool, the name is taken anywhere in the array, or what the pool
    /// says.
    pub async fn create_volume(
        self: &Arc<Self>,
        pool: String,
        spec: VolumeSpec,
    ) -> Result<PlacedVolume, ArrayError> {
        self.change(|array| async move {
            let shard = array.home(&pool)?.clone();
            if let Ok(there) = array.volume(&spec.name).await {
                let context = format!(
                    "there is a volume {} already, in pool {}; choose another name",
                    spec.name, there.pool
                );
                return Err(ArrayError::new(ArrayErrorKind::Exists, context));
            }
            let name = pool.clone();
            let visit = move |state: Rc<ShardState>| async move {
                let Some(found) = state.pool(&name) else {
                    return Err(ArrayError::no_pool(&name));
                };
                Ok(found.create_volume(spec).await?.info())
            };
            let info = shard.call(visit).await??;
            Ok(PlacedVolume { pool, info })
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
            let shard = array.home(&there.pool)?.clone();
            let (pool, uuid) = (there.pool.clone(), there.info.uuid);
            let visit = move |state: Rc<ShardState>| async move {
                let Some(found) = state.pool(&pool) else {
                    return Err(ArrayError::no_pool(&pool));
                };
                found.resize_volume(&name, size_bytes).await?;
                state.volume_resized(uuid);
                found
                    .volume(&name)
                    .map(|v| v.info())
                    .ok_or_else(|| ArrayError::no_volume(&name))
            };
            let info = shard.call(visit).await??;
            Ok(PlacedVolume {
                pool: there.pool,
                info,
            })
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
            let shard = array.home(&there.pool)?.clone();
            let visit = move |state: Rc<ShardState>| async move {
                let Some(pool) = state.pool(&there.pool) else {
                    return Err(ArrayError::no_pool(&there.pool));
                };
                Ok(pool.delete_volume(&name).await?)
            };
            shard.call(visit).await?
        })
        .await
    }
}

fn volumes_on(state: &ShardState) -> Vec<PlacedVolume> {
    let mut all = Vec::new();
    for pool in state.pools() {
        let name = pool.info().name;
        let placed = |info| PlacedVolume {
            pool: name.clone(),
            info,
        };
        all.extend(pool.volumes().into_iter().map(placed));
    }
    all
}
