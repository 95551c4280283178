//! The lanes of a pool, used as the server uses them.
//!
//! Each request goes to one lane. What goes to all is in [`crate::pool_changes`].
//!
//! Changes of a pool go over messages to shards, also of a pool that has one lane.

use crate::config::Config;
use crate::pool_changes::{Door, OnOffer, pool_over};
use crate::shards::in_one_task;
use array::control::{NotTaken, OneThread, PlacedVolume, SnapshotBarrier, by_name, renamed};
use array::pool::Pool;
use array::pool::opening::{NotOpened, Opening, find_labels};
use array::shard::ShardState;
use base::Uuid;
use engine::pool::{AttributesChange, Event, Holdings, Taking, VolumeChange};
use engine::raid::Protection;
use engine::volume::VolumeProperties;
use engine::{
    Lane, NamedDrive, PoolError, PoolErrorKind, PoolInfo, Volume, VolumeInfo, VolumeSpec,
};
use futures_util::future::join_all;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use world_sim::{Media, SimDrive, SimWorld};

/// A drive under a name; every lane has its own door to it.
pub type NamedMedia = (String, Rc<Media>);

/// Opens adversarial drives of `world` over these media, for one lane.
pub fn doors(world: &SimWorld, drives: &[NamedMedia]) -> Vec<NamedDrive<SimWorld>> {
    let door = |(name, media): &NamedMedia| NamedDrive {
        name: name.clone(),
        drive: SimDrive::adversarial(world, media),
    };
    drives.iter().map(door).collect()
}

/// An open pool, as its lanes.
pub struct Lanes {
    lanes: Vec<Lane<SimWorld>>,
    /// All of them.
    pub(crate) pool: Pool<SimWorld>,
    /// The drives that it was given, under the names that it knows them by.
    pub given: RefCell<Vec<NamedMedia>>,
    /// The names of drives that a change under way is about to take in.
    pub(crate) on_offer: OnOffer,
}

/// Of `drives` those that a server would open a pool from: they have a label of a lane.
pub(crate) async fn labelled(world: &SimWorld, drives: &[NamedMedia]) -> Vec<NamedMedia> {
    let doors = doors(world, drives);
    let opened: Vec<&SimDrive> = doors.iter().map(|door| &door.drive).collect();
    let labels = find_labels(world, &opened).await;
    let mut found = Vec::new();
    for (drive, label) in drives.iter().zip(labels) {
        match label {
            Ok(Some(_)) => found.push(drive.clone()),
            Ok(None) => {}
            Err(error) => world.note(|| format!("{}: {error}", drive.0)),
        }
    }
    found
}

/// Why a pool is not open.
pub struct NotOpen {
    /// What the lane says that is not.
    pub error: PoolError,
    /// Lanes that are open all the same.
    pub left_open: usize,
}

/// The shards of a pool while it is opened, one for each lane.
struct OpeningShards {
    /// Of the pool.
    name: String,
    states: Vec<Rc<ShardState<SimWorld>>>,
}

impl OpeningShards {
    fn of(world: &SimWorld, config: &Config) -> Self {
        let state = |index| ShardState::new(usize::from(index), world.clone());
        OpeningShards {
            name: config.pool.name.clone(),
            states: (0..config.lanes).map(state).collect(),
        }
    }

    /// The lanes that are there now.
    fn lanes(
        &self,
        world: &SimWorld,
        opened: Result<PoolInfo, NotOpened>,
        drives: &[NamedMedia],
    ) -> Result<Lanes, NotOpen> {
        let states = (0..).zip(&self.states);
        let open = states.filter_map(|(lane, state)| state.take_pool(&self.name, lane));
        let open: Vec<Lane<SimWorld>> = open.collect();
        let error = match opened {
            Ok(_) => return Ok(Lanes::of(world, open, drives)),
            Err(NotOpened::Lane(error)) => error,
            Err(NotOpened::Shard(gone)) => unreachable!("{gone}"),
        };
        let left_open = open.len();
        Err(NotOpen { error, left_open })
    }
}

impl Lanes {
    fn of(world: &SimWorld, lanes: Vec<Lane<SimWorld>>, drives: &[NamedMedia]) -> Lanes {
        Lanes {
            pool: pool_over(world, &lanes),
            lanes,
            given: RefCell::new(drives.to_vec()),
            on_offer: OnOffer::nothing(),
        }
    }

    /// Makes a pool, as a server does.
    ///
    /// # Errors
    /// What the first lane that fails says.
    pub async fn create(
        world: &SimWorld,
        config: &Config,
        drives: &[NamedMedia],
    ) -> Result<Lanes, NotOpen> {
        let mut doors = drives.iter().map(Door::from);
        let mut group = || doors.by_ref().take(config.drives_of_group).collect();
        let mut groups: Vec<(Protection, Vec<Door>)> = (0..config.groups)
            .map(|_| (config.protection(), group()))
            .collect();
        let spares: Vec<Door> = doors.by_ref().take(config.spares).collect();
        let mut spec = config.pool.clone();
        if let Some((level, drives, true)) = config.log_group {
            spec.log_group = Some(groups.len());
            groups.push((level.into(), doors.by_ref().take(drives).collect()));
        }
        let shards = OpeningShards::of(world, config);
        let created = in_one_task(&shards.states, async |handles| {
            let opening = Opening::new(shards.name.clone(), handles);
            opening.create(&spec, &groups, &spares).await
        });
        let created = created.await;
        shards.lanes(world, created, drives)
    }

    /// Opens a pool, as a server does: one of several lanes from those drives that have its labels.
    ///
    /// # Errors
    /// What the lane says that can't be opened; the others are closed again.
    pub async fn open(
        world: &SimWorld,
        config: &Config,
        drives: &[NamedMedia],
    ) -> Result<Lanes, NotOpen> {
        let found = match config.lanes {
            1 => drives.to_vec(),
            _ => labelled(world, drives).await,
        };
        let drives = match found.is_empty() {
            true => drives,
            false => &found,
        };
        let shards = OpeningShards::of(world, config);
        let doors: Vec<Door> = drives.iter().map(Door::from).collect();
        let opened = in_one_task(&shards.states, async |handles| {
            Opening::new(shards.name.clone(), handles)
                .open(&doors)
                .await
        });
        let opened = opened.await;
        shards.lanes(world, opened, drives)
    }

    /// Groups that some lanes have not: a drive that they lie on was gone when these were
    /// to be given them.
    pub fn groups_missing(&self) -> usize {
        let missing = self.lanes.iter().map(|pool| pool.groups_missing());
        missing.max().unwrap_or(0)
    }

    /// How often something was refused for want of room for maps.
    pub fn map_refusals(&self) -> u64 {
        self.lanes.iter().map(Lane::map_refusals).sum()
    }

    /// All lanes of the pool, the first lane first.
    pub fn all(&self) -> &[Lane<SimWorld>] {
        &self.lanes
    }

    /// The pool at a glance.
    pub fn info(&self) -> PoolInfo {
        match PoolInfo::of_lanes(self.lanes.iter().map(Lane::info)) {
            Some(info) => info,
            None => unreachable!("a pool has a lane"),
        }
    }

    /// Its volumes, by name.
    pub fn volumes(&self) -> Vec<VolumeInfo> {
        let mut all: Vec<VolumeInfo> = self.lanes.iter().flat_map(Lane::volumes).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The volume called `name`.
    pub fn volume(&self, name: &str) -> Option<Volume<SimWorld>> {
        self.lanes.iter().find_map(|pool| pool.volume(name))
    }

    /// The lane of the volume called `name`, or of any.
    fn lane_of(&self, name: &str) -> &Lane<SimWorld> {
        let has = |pool: &&Lane<SimWorld>| pool.volume(name).is_some();
        self.lanes.iter().find(has).unwrap_or(&self.lanes[0])
    }

    /// Makes a volume, in the lane that the array puts it.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn create_volume_as(
        &self,
        spec: VolumeSpec,
        detects_zeroes: bool,
    ) -> Result<Volume<SimWorld>, PoolError> {
        if self.volume(&spec.name).is_some() {
            return self.lane_of(&spec.name).create_volume(spec).await;
        }
        let lane = PoolInfo::emptiest_lane(self.lanes.iter().map(Lane::info));
        let lane = usize::from(lane);
        self.lanes[lane]
            .create_volume_as(spec, detects_zeroes)
            .await
    }

    /// Changes how a volume takes space.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn change_volume(&self, name: &str, change: VolumeChange) -> Result<(), PoolError> {
        self.lane_of(name)
            .change_volume(name, change)
            .await
            .map(drop)
    }

    /// What a volume holds alone and what it shares.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn holdings(&self, name: &str) -> Result<Holdings, PoolError> {
        self.lane_of(name).holdings(name).await
    }

    /// Clones a volume, in its lane.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn clone_volume(
        &self,
        source: &str,
        name: &str,
        read_only: bool,
        at_unix_s: u64,
    ) -> Result<Volume<SimWorld>, PoolError> {
        // Names are the whole pool's.
        let lane = match self.volume(name) {
            Some(_) => self.lane_of(name),
            None => self.lane_of(source),
        };
        lane.clone_volume(source, name, read_only, at_unix_s).await
    }

    /// All volumes with their properties, in the trash and not.
    pub fn volumes_with_properties(&self) -> Vec<(VolumeInfo, VolumeProperties)> {
        let of_lane = |pool: &Lane<SimWorld>| {
            let properties = |info: VolumeInfo| {
                let properties = pool.volume_of(info.uuid).map(|volume| volume.properties());
                (info, properties.unwrap_or_default())
            };
            let seen: Vec<_> = pool.volumes().into_iter().map(properties).collect();
            [seen, pool.trash()].concat()
        };
        self.lanes.iter().flat_map(of_lane).collect()
    }

    /// Changes name and attributes of a volume. Names are the whole pool's.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn change_attributes(
        &self,
        name: &str,
        change: &AttributesChange,
    ) -> Result<(), PoolError> {
        let lane = self.lane_of(name);
        let volume = lane.volume(name).map(|volume| volume.info());
        if let Some((info, new)) = volume.zip(change.name.as_deref()) {
            self.check_free(lane, info, new)?;
        }
        lane.change_attributes(name, change).await
    }

    /// Its volumes, and where they are, but for those in the trash.
    fn placed(&self) -> Vec<PlacedVolume> {
        let of_lane = |lane: &Lane<SimWorld>| {
            let placed = |(info, properties)| PlacedVolume {
                pool: self.pool.name().to_owned(),
                lane: lane.lane(),
                info,
                properties,
            };
            let volumes = lane.volumes_with_properties();
            volumes.into_iter().map(placed).collect::<Vec<_>>()
        };
        self.lanes.iter().flat_map(of_lane).collect()
    }

    /// That no other lane has a volume that is called as this one is to be, or as one of
    /// its snapshots would be then. Its own lane looks for itself, and so is tried, too.
    fn check_free(
        &self,
        lane: &Lane<SimWorld>,
        volume: VolumeInfo,
        new: &str,
    ) -> Result<(), PoolError> {
        let placed = |info| PlacedVolume {
            pool: self.pool.name().to_owned(),
            lane: lane.lane(),
            info,
            properties: VolumeProperties::default(),
        };
        let volume = placed(volume);
        let (here, elsewhere): (Vec<_>, Vec<_>) = self
            .placed()
            .into_iter()
            .partition(|placed| placed.lane == lane.lane());
        let others = by_name(&elsewhere);
        for renamed in renamed(&volume, new, &here) {
            if renamed.taken_by(&others).is_some() {
                return Err(PoolError {
                    kind: PoolErrorKind::Exists,
                    context: format!("{} is in another lane", renamed.name),
                });
            }
        }
        Ok(())
    }

    /// Puts a volume into the trash.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn trash_volume(&self, name: &str, at_unix_s: u64) -> Result<(), PoolError> {
        self.lane_of(name).trash_volume(name, at_unix_s).await
    }

    /// What is in the trash.
    pub fn trash(&self) -> Vec<(VolumeInfo, VolumeProperties)> {
        self.lanes.iter().flat_map(Lane::trash).collect()
    }

    fn lane_of_uuid(&self, uuid: Uuid) -> &Lane<SimWorld> {
        let has = |pool: &&Lane<SimWorld>| pool.volume_of(uuid).is_some();
        self.lanes.iter().find(has).unwrap_or(&self.lanes[0])
    }

    /// Takes a volume out of the trash.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn recover_trashed(&self, uuid: Uuid, name: Option<&str>) -> Result<(), PoolError> {
        let lane = self.lane_of_uuid(uuid);
        let trash = lane.trash();
        let old = trash.iter().find(|(info, _)| info.uuid == uuid);
        if let Some((info, _)) = old {
            self.check_free(lane, info.clone(), name.unwrap_or(&info.name))?;
        }
        lane.recover_trashed(uuid, name).await
    }

    /// Deletes a volume that is in the trash.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn delete_trashed(&self, uuid: Uuid) -> Result<(), PoolError> {
        self.lane_of_uuid(uuid).delete_trashed(uuid).await
    }

    /// Takes snapshots of volumes, `(volume, name)`, at one instant, also when they are in
    /// several lanes.
    ///
    /// # Errors
    /// As the pool's: what the first lane that fails says. Others may have theirs then
    /// only if the pool has stopped.
    pub async fn snapshot_together(
        &self,
        world: &SimWorld,
        pairs: &[(&str, &str)],
        at_unix_s: u64,
    ) -> Result<Vec<Volume<SimWorld>>, PoolError> {
        let of = |pool: &Lane<SimWorld>| -> Vec<(&str, &str)> {
            let here = |pair: &&(&str, &str)| pool.volume(pair.0).is_some();
            pairs.iter().filter(here).copied().collect()
        };
        let lanes = self.lanes.iter().map(|pool| (pool, of(pool)));
        let lanes: Vec<_> = lanes.filter(|(_, pairs)| !pairs.is_empty()).collect();
        let runtime = Arc::new(OneThread::new(world.clone(), at_unix_s));
        let barrier = SnapshotBarrier::of(lanes.len(), runtime);
        let take = async |(pool, pairs): &(&Lane<SimWorld>, Vec<(&str, &str)>)| {
            let taking = Taking {
                read_only: true,
                at_unix_s,
                attributes: &[],
            };
            barrier.take_in(pool, pairs, taking).await
        };
        let mut made = Vec::new();
        let (mut failure, mut is_called_off) = (None, false);
        for outcome in join_all(lanes.iter().map(take)).await {
            match outcome {
                Ok(Some(volumes)) => made.extend(volumes),
                Ok(None) => is_called_off = true,
                Err(NotTaken::Lane(error)) => failure = Some(error),
                Err(NotTaken::Unsound(error)) => unreachable!("nobody erases here: {error}"),
            }
        }
        match failure {
            Some(error) => Err(error),
            None if is_called_off => Err(PoolError {
                kind: PoolErrorKind::Busy,
                context: "the lanes did not come to a stand at one instant".to_owned(),
            }),
            None => Ok(made),
        }
    }

    /// Gives a volume what a snapshot in its lane has.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn restore(
        &self,
        name: &str,
        snapshot: &str,
        keep: Option<&str>,
        at_unix_s: u64,
    ) -> Result<(), PoolError> {
        let lane = self.lane_of(name);
        lane.restore(name, snapshot, keep, at_unix_s).await
    }

    /// Grows a volume.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn resize_volume(&self, name: &str, size_bytes: u64) -> Result<(), PoolError> {
        self.lane_of(name).resize_volume(name, size_bytes).await
    }

    /// Makes a volume smaller.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn shrink_volume(&self, name: &str, size_bytes: u64) -> Result<(), PoolError> {
        self.lane_of(name).shrink_volume(name, size_bytes).await
    }

    /// Deletes a volume.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn delete_volume(&self, name: &str) -> Result<(), PoolError> {
        self.lane_of(name).delete_volume(name).await
    }

    /// Whole scrubs since the opening, of each lane.
    pub fn scrubs_ended(&self) -> Vec<u64> {
        self.lanes.iter().map(Lane::scrubs_ended).collect()
    }

    /// Whole scrubs that went on by themselves since the opening, of each lane.
    pub fn scrub_rounds_ended(&self) -> Vec<u64> {
        self.lanes.iter().map(Lane::scrub_rounds_ended).collect()
    }

    /// Whether the last scrub of every lane found nothing.
    pub fn last_scrub_clean(&self) -> bool {
        self.lanes.iter().all(Lane::last_scrub_clean)
    }

    /// All events, lane by lane.
    pub fn events(&self) -> Vec<Event> {
        self.lanes.iter().flat_map(|pool| pool.events(0)).collect()
    }

    /// Empties all logs.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn drain(&self) -> Result<(), PoolError> {
        for pool in &self.lanes {
            pool.store().drain().await?;
        }
        Ok(())
    }

    /// Closes every lane.
    ///
    /// # Errors
    /// What the first lane that fails says.
    pub async fn close(&self) -> Result<(), PoolError> {
        let mut outcome = Ok(());
        for pool in &self.lanes {
            outcome = outcome.and(pool.close().await);
        }
        outcome
    }
}
