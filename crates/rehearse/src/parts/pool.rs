//! A pool that a controller serves, over its modelled drives.

use super::controller::ControllerRig;
use super::drive::DriveRig;
use super::world::RigWorld;
use super::write_region::WriteRegion;
use base::{Slice, VolumeOffset};
use engine::{IoError, Lane, Provisioning, Volume, VolumeSpec};
use std::cell::OnceCell;
use std::rc::Rc;

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
