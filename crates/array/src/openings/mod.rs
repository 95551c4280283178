//! Pools of this array: which were made here, and how they are opened, made and destroyed.
//!
//! What the machine has is the caller's: drives ([`DriveBays`]) and records. So a seed of the simulator
//! replays each decision, and each crash between two writes.
//!
//! - [`bays`]: drives that are open; [`look`]: what is on them.
//! - [`made`]: the record of pools that were made here.
//! - [`pool_plan`]: what is to become of a pool; [`decide`] decides that of one pool, [`plan`] of all.
//! - [`open`] opens pools, [`make`] makes them, [`taking_back`] takes back what did not end.
//! - [`old_makings`]: whether a pool is in use that a build of before has on record as being made.
//! - [`old_data`]: drives that an open pool, or its other lanes, have gone on without.
//! - [`unlisted`]: pools that were made here, and that the settings do not name.
//! - [`create`], [`destroy`], [`whereabouts`]: pools that come, go and move while the array serves.
//! - [`start`]: what a start does before anything else. [`late`]: what was missing then.

mod bays;
mod create;
mod decide;
mod destroy;
mod error;
mod late;
mod look;
mod made;
mod make;
mod old_data;
mod old_makings;
mod open;
mod plan;
mod pool_plan;

mod start;
mod taking_back;
mod unlisted;
mod whereabouts;

pub use bays::{
    DriveBays, MadeFiles, NotOpen, NotOpenKind, OpenBay, Patience, READ_TIME, READY_TIME,
};
pub use create::NewPool;
pub use destroy::check_destroyable;
pub use error::{OpeningError, OpeningErrorKind};
pub use late::{LateRounds, LateWork, PAUSE as LATE_PAUSE};
pub use look::{DriveContent, DrivePlace, Look};
pub use made::{Made, MadePool, MadePools};
pub use plan::{KnownPools, homes};
pub use pool_plan::{Action, PoolPlan};
pub use start::{KeptRecords, Opened};

use crate::control::line::Line;
use crate::shard::{ShardGone, ShardHandle};
use bays::SpinUp;
use engine::World;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The pools of an array, and what it takes to open, make and destroy them.
pub struct Openings<W: World> {
    bays: Arc<dyn DriveBays<W>>,
    made: MadePools,
    data: PathBuf,
    /// How long the start waits for drives that are not ready. Later openings wait no more: they are
    /// tried again.
    spin_up: SpinUp,
    /// At its head stands who notes what came of an opening: of two pools with a volume of one name,
    /// one stays open.
    noting: Arc<Line>,
}

impl<W: World> Openings<W> {
    /// Over the drives in `bays`. Files of drives are in the directory `data`.
    pub fn new(bays: Arc<dyn DriveBays<W>>, made: MadePools, data: PathBuf) -> Self {
        Openings {
            bays,
            made,
            data,
            spin_up: SpinUp::default(),
            noting: Arc::default(),
        }
    }

    /// The record of pools that were made here.
    pub fn made(&self) -> &MadePools {
        &self.made
    }

    /// The directory that files of drives are in.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The places of drives on this machine.
    pub fn bays(&self) -> &Arc<dyn DriveBays<W>> {
        &self.bays
    }

    /// Looks at `places`, all at once, on `shard`, and lets go of them again. One that is in use, or
    /// not ready, is waited for.
    async fn look(
        &self,
        shard: &ShardHandle<W>,
        places: Vec<DrivePlace>,
    ) -> Result<Vec<Look>, ShardGone> {
        look::look(&self.bays, shard, places, &self.spin_up).await
    }

    /// Looks at one place, and does not wait for what is in use.
    ///
    /// # Errors
    /// The shard has stopped.
    pub async fn glance(
        &self,
        shard: &ShardHandle<W>,
        place: DrivePlace,
    ) -> Result<Look, ShardGone> {
        look::glance(&self.bays, shard, place).await
    }
}
