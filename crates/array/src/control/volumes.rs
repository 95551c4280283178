//! Volumes over all pools.

use super::{ArrayError, ArrayErrorKind, ControlPlane};
use crate::shard::ShardState;
use engine::volume::VolumeProperties;
use engine::{Lane, PoolInfo, VolumeInfo, VolumeSpec, World};
use site::{human, human_pair};
use std::rc::Rc;
use std::sync::Arc;

/// A volume and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedVolume {
    /// The pool it is in.
    pub pool: String,
    /// The pool's lane that it is in.
    pub lane: u16,
    /// Identity, size and space, as the lane says.
    pub info: VolumeInfo,
    /// What is said of it.
    pub properties: VolumeProperties,
}

impl PlacedVolume {
    /// Volumes of `pool`, with their place.
    pub(super) fn of<W: World>(
        pool: &Lane<W>,
        volumes: Vec<(VolumeInfo, VolumeProperties)>,
    ) -> impl Iterator<Item = PlacedVolume> + use<W> {
        let (pool, lane) = (pool.info().name, pool.lane());
        volumes
            .into_iter()
            .map(move |(info, properties)| PlacedVolume {
                pool: pool.clone(),
                lane,
                info,
                properties,
            })
    }
}

impl<W: World> ControlPlane<W> {
    /// All volumes, snapshots among them, by name.
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
        self.create_volume_as(pool, spec, beside, false).await
    }

    /// As [`ControlPlane::create_volume`], if `may_be_made` says so of the volumes that there are, and
    /// of those in the trash.
    ///
    /// # Errors
    /// See there, and what `may_be_made` says.
    pub async fn create_volume_if(
        self: &Arc<Self>,
        pool: String,
        spec: VolumeSpec,
        beside: Vec<String>,
        may_be_made: impl FnOnce(&[PlacedVolume], &[PlacedVolume]) -> Result<(), ArrayError>
        + Send
        + 'static,
    ) -> Result<PlacedVolume, ArrayError> {
        self.change(move |array| async move {
            may_be_made(&array.volumes().await?, &array.trash().await?)?;
            let of_it = (beside, false);
            array.make_in_turn(pool, spec, of_it, None).await
        })
        .await
    }

    /// As [`ControlPlane::create_volume`], of a volume that may detect zeroes.
    ///
    /// # Errors
    /// See there.
    pub async fn create_volume_as(
        self: &Arc<Self>,
        pool: String,
        spec: VolumeSpec,
        beside: Vec<String>,
        detects_zeroes: bool,
    ) -> Result<PlacedVolume, ArrayError> {
        self.make_volume(pool, spec, (beside, detects_zeroes), None)
            .await
    }

    /// As [`ControlPlane::create_volume`], for a job that keeps its name free.
    pub async fn create_volume_for(
        self: &Arc<Self>,
        pool: String,
        spec: VolumeSpec,
        job: Option<u64>,
    ) -> Result<PlacedVolume, ArrayError> {
        self.make_volume(pool, spec, (Vec::new(), false), job).await
    }

    /// The same in the lane of the volume `beside`, if it is in that pool.
    pub async fn create_volume_beside(
        self: &Arc<Self>,
        pool: String,
        spec: VolumeSpec,
        beside: String,
        job: u64,
    ) -> Result<PlacedVolume, ArrayError> {
        self.make_volume(pool, spec, (vec![beside], false), Some(job))
            .await
    }

    /// Complains when there is no such pool, or the name of a new volume is taken.
    pub async fn check_new(&self, pool: &str, name: &str) -> Result<(), ArrayError> {
        self.homes(pool)?;
        self.check_name_free(name).await
    }

    async fn make_volume(
        self: &Arc<Self>,
        pool: String,
        spec: VolumeSpec,
        (beside, detects_zeroes): (Vec<String>, bool),
        job: Option<u64>,
    ) -> Result<PlacedVolume, ArrayError> {
        let of_it = (beside, detects_zeroes);
        let make =
            move |array: Arc<Self>| async move { array.make_in_turn(pool, spec, of_it, job).await };
        self.change(make).await
    }

    /// The same, for a change whose turn it is.
    async fn make_in_turn(
        &self,
        pool: String,
        spec: VolumeSpec,
        (beside, detects_zeroes): (Vec<String>, bool),
        job: Option<u64>,
    ) -> Result<PlacedVolume, ArrayError> {
        self.check_name_free_for(&spec.name, job).await?;
        let volumes = self.volumes().await?;
        let mut others = volumes.iter().filter(|other| other.pool == pool);
        let lane = match others.find(|other| beside.contains(&other.info.name)) {
            Some(other) => other.lane,
            None => self.emptiest_lane(&pool).await?,
        };
        let visit = move |_, pool: Lane<W>| async move {
            Ok(pool.create_volume_as(spec, detects_zeroes).await?.info())
        };
        let info = self.with_lane(&pool, lane, visit).await?;
        let properties = VolumeProperties::default();
        Ok(PlacedVolume {
            pool,
            lane,
            info,
            properties,
        })
    }

    /// Grows the volume called `name` to `size_bytes` and tells its initiators. Shrinks it,
    /// too, when `by_force`: what is behind its new end is lost.
    ///
    /// # Errors
    /// No such volume, a smaller size without force, or what the pool says.
    pub async fn resize_volume(
        self: &Arc<Self>,
        name: String,
        size_bytes: u64,
        by_force: bool,
    ) -> Result<PlacedVolume, ArrayError> {
        self.change(move |array| async move {
            let there = array.volume(&name).await?;
            array.jobs.check_free(&name, None)?;
            let uuid = there.info.uuid;
            let visit = move |_, pool: Lane<W>| async move {
                let volume = pool.volume(&name);
                let present = volume.map_or(0, |volume| volume.size_bytes());
                if size_bytes >= present {
                    pool.resize_volume(&name, size_bytes).await?;
                } else if by_force {
                    pool.shrink_volume(&name, size_bytes).await?;
                } else {
                    return Err(would_lose(&pool, &name, (present, size_bytes))?);
                }
                let volume = pool.volume(&name);
                let info = volume.map(|volume| volume.info());
                info.ok_or_else(|| ArrayError::no_volume(&name))
            };
            let info = array.with_lane(&there.pool, there.lane, visit).await?;
            // Its target may be on any shard.
            for shard in &array.shards {
                let told = move |state: Rc<ShardState<W>>| async move {
                    state.volume_resized(uuid, size_bytes);
                };
                shard.call(told).await?;
            }
            Ok(PlacedVolume { info, ..there })
        })
        .await
    }

    /// What the volume called `name` has now, and how much of it is mapped behind `size_bytes`,
    /// where it is to end.
    ///
    /// # Errors
    /// No such volume, or a job is at work on it.
    pub async fn behind(&self, name: &str, size_bytes: u64) -> Result<(u64, u64), ArrayError> {
        let there = self.volume(name).await?;
        self.jobs.check_free(name, None)?;
        let (present, name) = (there.info.size_bytes, name.to_owned());
        let visit = move |_, pool: Lane<W>| async move {
            match size_bytes < present {
                true => Ok(pool.mapped_behind(&name, size_bytes)?),
                false => Ok(0),
            }
        };
        let mapped = self.with_lane(&there.pool, there.lane, visit).await?;
        Ok((present, mapped))
    }

    /// The lane of a pool that a new volume goes to.
    pub(super) async fn emptiest_lane(&self, pool: &str) -> Result<u16, ArrayError> {
        let lanes = self.pool_of(pool)?.lane_infos().await?;
        Ok(PoolInfo::emptiest_lane(lanes))
    }
}

/// That a volume does not shrink without force, and what it would lose.
fn would_lose<W: World>(
    pool: &Lane<W>,
    name: &str,
    (present, size_bytes): (u64, u64),
) -> Result<ArrayError, ArrayError> {
    let lost = pool.mapped_behind(name, size_bytes)?;
    let (behind, lost) = (human(present - size_bytes), human(lost));
    let (present, size) = human_pair(present, size_bytes);
    let context = format!(
        "volume {name} has {present}; shrinking it to {size} would lose {behind}, of which {lost} are mapped and may be data: say --force-shrink for that"
    );
    Ok(ArrayError::new(ArrayErrorKind::Invalid, context))
}

pub(super) fn volumes_on<W: World>(state: &ShardState<W>) -> Vec<PlacedVolume> {
    let pools = state.pools().into_iter();
    let placed = pools.flat_map(|pool| PlacedVolume::of(&pool, pool.volumes_with_properties()));
    placed.collect()
}
