//! Pools that a build of before has on record as being made, without their identity.
//!
//! Such a build opened a pool whose first start was cut off, and left the record as it was: the pool may
//! be in use. Builds of now put the identity on record, and do not open such a pool.
//!
//! Invariants:
//! - A pool that holds volumes is on record as made from then on.
//! - No label is wiped: of a pool without volumes, nobody knows whether it is of another array.

use super::Openings;
use super::bays::in_time;
use super::error::OpeningError;
use super::look::{DriveContent, DrivePlace, Look};
use super::made::MadePool;
use crate::pool::opening::doors;
use crate::shard::{ShardGone, ShardHandle, ShardState};
use base::Uuid;
use engine::World;
use engine::fsck::{self, Options, Report};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// What is wrong with a pool of which nobody knows whether it is in use.
pub(super) const REMEDY: &str = "an earlier version of Ashlar has it on record as being made, and its \
    drives may hold data: bring them all back and start again; if nobody needs them, wipe them";

/// A check that takes longer says nothing: other pools wait for it.
const CHECK_TIME: Duration = Duration::from_secs(300);

/// What a look at the drives of such a pool says.
enum Found {
    /// It holds volumes.
    InUse {
        uuid: Uuid,
        drives: Vec<String>,
    },
    /// No drive has a label of it.
    Nothing,
    Unknown,
}

impl<W: World> Openings<W> {
    /// Whether what is on record of a pool says what becomes of it. A pool that is in use, and that a
    /// build of before has on record as being made, is on record as made after this.
    ///
    /// # Errors
    /// The shard has stopped, or the record can't be written.
    pub(super) async fn settle_without_identity(
        &self,
        shard: &ShardHandle<W>,
        name: &str,
    ) -> Result<bool, OpeningError> {
        let Some(paths) = self.made.pool(name).and_then(MadePool::without_identity) else {
            return Ok(true);
        };
        let planted = "pool in use is taken back as being made";
        if self.bays.planted(planted) {
            return Ok(true);
        }
        match self.look_into(shard, name, paths).await? {
            Found::Nothing => Ok(true),
            Found::Unknown => {
                tracing::error!("pool {name}: {REMEDY}");
                Ok(false)
            }
            Found::InUse { uuid, drives } => {
                let uuid = uuid.to_string();
                let made = MadePool::Made { uuid, drives };
                let noted = self.made.set(name, Some(made)).await;
                noted.map_err(OpeningError::record)?;
                tracing::warn!(
                    "pool {name} was on record as being made, and is in use: it is kept"
                );
                self.bays
                    .reached("pool in use that was on record as being made");
                Ok(true)
            }
        }
    }

    /// Looks at the drives that the record names, and changes nothing.
    async fn look_into(
        &self,
        shard: &ShardHandle<W>,
        name: &str,
        (new_files, of_before): (Vec<PathBuf>, Vec<PathBuf>),
    ) -> Result<Found, OpeningError> {
        let place = |path: &PathBuf| DrivePlace::at(path.display().to_string(), path.clone());
        let all = new_files.iter().chain(&of_before).map(place);
        let looks = self.look(shard, all.collect()).await?;
        let is_away = |look: &Look| {
            let is_unread = matches!(
                look.found,
                DriveContent::Nothing(_) | DriveContent::Unusable(_)
            );
            // A new file may not have been made, or in part.
            is_unread && of_before.contains(&look.place.path)
        };
        let is_whole = !looks.iter().any(is_away);
        let is_its = |look: &&Look| match &look.found {
            DriveContent::Labelled(label) => label.pool_name == name,
            _ => false,
        };
        let labelled = looks.iter().filter(is_its);
        let labelled: Vec<DrivePlace> = labelled.map(|look| look.place.clone()).collect();
        if labelled.is_empty() && is_whole {
            return Ok(Found::Nothing);
        }
        let report = self.check_drives(shard, &labelled).await?;
        let report = report.filter(|report| report.counts.volumes > 0);
        Ok(report.map_or(Found::Unknown, |report| Found::InUse {
            uuid: report.uuid,
            drives: labelled.into_iter().map(|place| place.name).collect(),
        }))
    }

    /// What a check says of the pool on these drives; nothing where it can't say which that is, or takes
    /// too long.
    async fn check_drives(
        &self,
        shard: &ShardHandle<W>,
        places: &[DrivePlace],
    ) -> Result<Option<Report>, ShardGone> {
        let (drives, _) = self.open_those_there(places).await;
        let check = move |state: Rc<ShardState<W>>| async move {
            let options = Options { deep: false };
            let checking = fsck::check(state.world(), doors(&state, &drives), options);
            in_time(state.world(), CHECK_TIME, checking).await
        };
        let checked = shard.call(check).await?;
        Ok(checked.and_then(Result::ok))
    }
}
