//! What is to become of a pool of the site, before anything is done with it.

use super::look::DrivePlace;
use super::made::Made;
use crate::control::MissingDrive;
use engine::pool::LabelSummary;
use std::path::PathBuf;

/// What is to become of a pool of the site.
#[derive(Clone, Debug)]
pub struct PoolPlan {
    pub spec: site::Pool,
    /// The shard of each lane, by index.
    pub shards: Vec<usize>,
    /// Its drives, by group, the spares last; of a pool that is there, those that are.
    pub(super) places: Vec<DrivePlace>,
    /// Names of those drives that are out of use, by the roster.
    pub failed: Vec<String>,
    /// The label of one of its drives.
    pub label: Option<LabelSummary>,
    pub(super) action: Action,
}

/// What is done with a pool.
#[derive(Clone, Debug)]
pub enum Action {
    /// Open it from the labels of its drives. What is wrong with others is no reason
    /// not to, if they can be done without.
    Open {
        /// Drives that are not used.
        missing: Vec<MissingDrive>,
        /// It was closed before.
        is_clean: bool,
    },
    /// It is there, and none of its drives is; why, one line for each.
    Refuse { why: Vec<String> },
    /// Make it; these files have to be made first.
    Make {
        /// Not there yet, in the order of the drives.
        new_files: Vec<(PathBuf, u64)>,
    },
}

impl PoolPlan {
    /// Why it can't be made: it is there, or part of it is.
    pub fn labelled(&self) -> Option<String> {
        let name = &self.spec.name;
        match &self.action {
            Action::Make { .. } => None,
            Action::Open { missing, .. } => {
                let lines = missing.iter().map(MissingDrive::to_string);
                let of_it = self.places.iter().map(|place| {
                    format!(
                        "drive {}: it is of a pool called {name} already",
                        place.name
                    )
                });
                Some(lines.chain(of_it).collect::<Vec<_>>().join("\n"))
            }
            Action::Refuse { why } => Some(why.join("\n")),
        }
    }

    /// It is opened, and was not made in this data directory.
    pub fn comes_from_elsewhere(&self, made: &Made) -> bool {
        let is_there = matches!(self.action, Action::Open { .. });
        is_there && !made.pools.contains_key(&self.spec.name)
    }
}

/// Why a drive with this label should not be here.
pub(super) fn misplaced(
    label: &LabelSummary,
    name: &str,
    place: &DrivePlace,
    uuid: Option<&str>,
) -> Option<String> {
    let path = place.path.display();
    if label.pool_name != name {
        return Some(format!(
            "{path} is a drive of pool {}; put it under that pool in the site file, or put the \
             right drive in its place",
            label.pool_name
        ));
    }
    let uuid = uuid.filter(|uuid| label.pool_uuid.to_string() != *uuid)?;
    Some(format!(
        "{path} is a drive of another pool called {name} ({}), not of this one ({uuid}); put the \
         right drive in its place",
        label.pool_uuid
    ))
}
