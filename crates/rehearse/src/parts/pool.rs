//! A pool that a controller serves, over its modelled drives.
//!
//! Invariant: its lanes are what a served pool has, each with its own log, and a new volume goes to the
//! emptiest.

use super::controller::ControllerRig;
use super::drive::DriveRig;
use super::file_system::FileSystemRig;
use super::world::RigWorld;
use super::write_region::WriteRegion;
use base::{Slice, VolumeOffset};
use engine::store::Debt;
use engine::{IoError, Lane, PoolInfo, Provisioning, Volume, VolumeSpec};
use futures_util::future::join;
use site::human;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// The most that is kept free for writes that go anywhere.
const REGION_BYTES_MAX: u64 = 64 << 30;

/// It is so many times the write log at least: else what is in the log would be written over before
/// it is on drives.
const REGION_LOGS_MIN: u64 = 4;

/// Of the room of a pool that nothing is in, one part of so many.
const REGION_PART: u64 = 8;

/// A pool and its drives.
pub struct PoolRig {
    /// Unique over the site.
    pub name: String,
    /// The controller that serves it; another after a takeover.
    pub controller: Rc<ControllerRig>,
    /// The handles of the engine's open pool, the first lane first; at least one.
    pub lanes: Vec<Lane<RigWorld>>,
    /// The drives of its groups, then its spares.
    pub drives: Vec<Rc<DriveRig>>,
    /// Where its hosts' writes go, if that is anywhere: of each lane.
    pub write_regions: OnceCell<WriteRegions>,
    /// What lies between its hosts and its volumes, where its controller is a NAS head.
    pub file_system: OnceCell<FileSystemRig>,
}

/// Free stripes of each lane of a pool.
pub struct WriteRegions {
    of_lanes: Vec<WriteRegion>,
    next: Cell<usize>,
}

impl WriteRegions {
    /// The one that this write goes to: one lane after the other.
    fn take_next(&self) -> &WriteRegion {
        let next = self.next.get();
        self.next.set((next + 1) % self.of_lanes.len());
        &self.of_lanes[next]
    }
}

impl PoolRig {
    /// The lane that a new volume goes to: the one whose volumes are smallest together.
    pub fn emptiest_lane(&self) -> &Lane<RigWorld> {
        let lane = PoolInfo::emptiest_lane(self.lanes.iter().map(Lane::info));
        &self.lanes[usize::from(lane)]
    }

    /// The lane of a volume, by its name.
    ///
    /// # Errors
    /// A sentence that names volume and pool.
    pub fn lane_of(&self, volume: &str) -> Result<&Lane<RigWorld>, String> {
        let mut lanes = self.lanes.iter();
        let found = lanes.find(|lane| lane.volume(volume).is_some());
        found.ok_or_else(|| format!("there is no volume {volume:?} in pool {:?}", self.name))
    }

    /// The lane that the next write to a volume goes to.
    ///
    /// # Errors
    /// A sentence that names volume and pool.
    pub fn lane_of_writes(&self, volume: &Volume<RigWorld>) -> Result<&Lane<RigWorld>, String> {
        match (self.lanes.len(), self.write_regions.get()) {
            (1, _) => Ok(&self.lanes[0]),
            (_, Some(regions)) => Ok(&self.lanes[regions.next.get()]),
            (_, None) => self.lane_of(&volume.info().name),
        }
    }

    /// What each lane owes its drives.
    pub fn debts(&self) -> impl Iterator<Item = Debt> {
        self.lanes.iter().map(|lane| lane.store().debt())
    }

    /// The pool at a glance.
    pub fn info(&self) -> PoolInfo {
        match PoolInfo::of_lanes(self.lanes.iter().map(Lane::info)) {
            Some(info) => info,
            None => unreachable!("a pool has a lane"),
        }
    }

    /// Makes an empty volume.
    ///
    /// # Errors
    /// A sentence that names volume and pool.
    pub async fn make_volume(
        &self,
        provisioning: site::Provisioning,
        name: &str,
        size_bytes: u64,
    ) -> Result<Volume<RigWorld>, String> {
        let lane = self.emptiest_lane();
        self.make_volume_in(lane, provisioning, (name, size_bytes))
            .await
    }

    /// Makes an empty volume in a lane.
    ///
    /// # Errors
    /// A sentence that names volume and pool.
    pub async fn make_volume_in(
        &self,
        lane: &Lane<RigWorld>,
        provisioning: site::Provisioning,
        (name, size_bytes): (&str, u64),
    ) -> Result<Volume<RigWorld>, String> {
        let provisioning = match provisioning {
            site::Provisioning::Thin => Provisioning::Thin,
            site::Provisioning::Thick => Provisioning::Thick,
        };
        let spec = VolumeSpec {
            name: name.to_owned(),
            size_bytes,
            provisioning,
        };
        let made = lane.create_volume(spec).await;
        made.map_err(|error| format!("volume {name:?} in pool {:?}: {error}", self.name))
    }

    /// Has writes go to free stripes, in what it has free, from now on.
    ///
    /// # Errors
    /// A sentence that names the pool, also where it has too little room.
    pub async fn write_anywhere(&self) -> Result<(), String> {
        let info = self.info();
        let lanes = self.lanes.len() as u64;
        let taken = info.mapped_bytes + info.promised_bytes + info.kept_bytes;
        let size_bytes = info.capacity_bytes.saturating_sub(taken) / REGION_PART / lanes;
        let size_bytes = size_bytes.min(REGION_BYTES_MAX / lanes) >> 20 << 20;
        let log_bytes_max = self.debts().map(|debt| debt.log_bytes_max).max();
        let least_bytes = log_bytes_max.unwrap_or(0) * REGION_LOGS_MIN;
        if size_bytes < least_bytes.max(1 << 20) {
            return Err(format!(
                "pool {:?} has too little room to write anywhere: {} free, {} needed; set \
                 writes = \"in-place\" of its controller, or plan more drives",
                self.name,
                human(size_bytes * REGION_PART * lanes),
                human(least_bytes * REGION_PART * lanes)
            ));
        }
        let mut of_lanes = Vec::new();
        for lane in &self.lanes {
            let name = match lane.lane() {
                0 => "free-stripes".to_owned(),
                other => format!("free-stripes-{other}"),
            };
            let thick = site::Provisioning::Thick;
            let made = self.make_volume_in(lane, thick, (&name, size_bytes)).await;
            let volume = made?;
            let laid_out = volume.lay_out(0..size_bytes).await;
            laid_out.map_err(|error| format!("free stripes of pool {:?}: {error}", self.name))?;
            of_lanes.push(WriteRegion::in_volume(volume));
        }
        let next = Cell::new(0);
        let _ = self.write_regions.set(WriteRegions { of_lanes, next });
        Ok(())
    }

    /// A host's read of a volume.
    ///
    /// # Errors
    /// What the engine says.
    pub async fn read(
        &self,
        volume: &Volume<RigWorld>,
        at: VolumeOffset,
        len_bytes: usize,
    ) -> Result<(), IoError> {
        if let Some(file_system) = self.file_system.get() {
            let bytes = at.0..at.0 + len_bytes as u64;
            file_system.look_up(&self.lanes, volume, bytes).await?;
        }
        volume.read(at, len_bytes).await.map(drop)
    }

    /// A host's write to a volume: there, or where the pool writes anywhere.
    ///
    /// # Errors
    /// What the engine says.
    pub async fn write(
        &self,
        volume: &Volume<RigWorld>,
        at: VolumeOffset,
        data: Slice,
    ) -> Result<(), IoError> {
        let bytes = at.0..at.0 + data.len() as u64;
        let written = async {
            match self.write_regions.get() {
                Some(regions) => regions.take_next().write(data).await,
                None => volume.write(at, data).await,
            }
        };
        let Some(file_system) = self.file_system.get() else {
            return written.await;
        };
        let (written, mapped) = join(written, file_system.change(&self.lanes, volume, bytes)).await;
        written.and(mapped)
    }
}
