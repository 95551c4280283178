//! A pool that a controller serves, over its modelled drives.

use super::controller::ControllerRig;
use super::drive::DriveRig;
use super::world::RigWorld;
use super::write_region::WriteRegion;
use base::{Slice, VolumeOffset};
use engine::{IoError, Lane, Provisioning, Volume, VolumeSpec};
use site::human;
use std::cell::OnceCell;
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
    /// The handle of the engine's open pool.
    pub pool: Lane<RigWorld>,
    /// The drives of its groups, then its spares.
    pub drives: Vec<Rc<DriveRig>>,
    /// Where its hosts' writes go, if that is anywhere.
    pub write_region: OnceCell<WriteRegion>,
}

impl PoolRig {
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
        let provisioning = match provisioning {
            site::Provisioning::Thin => Provisioning::Thin,
            site::Provisioning::Thick => Provisioning::Thick,
        };
        let spec = VolumeSpec {
            name: name.to_owned(),
            size_bytes,
            provisioning,
        };
        let made = self.pool.create_volume(spec).await;
        made.map_err(|error| format!("volume {name:?} in pool {:?}: {error}", self.name))
    }

    /// Has writes go to free stripes, in what it has free, from now on.
    ///
    /// # Errors
    /// A sentence that names the pool, also where it has too little room.
    pub async fn write_anywhere(&self) -> Result<(), String> {
        let info = self.pool.info();
        let taken = info.mapped_bytes + info.promised_bytes + info.kept_bytes;
        let size_bytes = info.capacity_bytes.saturating_sub(taken) / REGION_PART;
        let size_bytes = size_bytes.min(REGION_BYTES_MAX) >> 20 << 20;
        let least_bytes = self.pool.store().debt().log_bytes_max * REGION_LOGS_MIN;
        if size_bytes < least_bytes.max(1 << 20) {
            return Err(format!(
                "pool {:?} has too little room to write anywhere: {} free, {} needed; set \
                 writes = \"in-place\" of its controller, or plan more drives",
                self.name,
                human(size_bytes * REGION_PART),
                human(least_bytes * REGION_PART)
            ));
        }
        let thick = site::Provisioning::Thick;
        let volume = self.make_volume(thick, "free-stripes", size_bytes).await?;
        let laid_out = volume.lay_out(0..size_bytes).await;
        laid_out.map_err(|error| format!("free stripes of pool {:?}: {error}", self.name))?;
        let _ = self.write_region.set(WriteRegion::in_volume(volume));
        Ok(())
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
        match self.write_region.get() {
            Some(region) => region.write(data).await,
            None => volume.write(at, data).await,
        }
    }
}
