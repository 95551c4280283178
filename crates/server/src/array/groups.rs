//! Adds RAID groups to pools, changes their level, and removes them.
//!
//! Invariants:
//! - What the engine refuses leaves nothing behind: no file, no record.
//! - Of several lanes all are asked before the first one does anything. What that one has
//!   done, the others do, too, at once or after the next start.

use super::places::{NewDrive, Placed, Purpose};
use super::{Array, ArrayError, ArrayErrorKind};
use crate::shard::ShardState;
use engine::pool::{Lane, Level, PoolInfo};
use std::rc::Rc;
use std::sync::Arc;
use world_real::RealWorld;

/// A group to add to a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGroup {
    /// Its level; that of the pool's first group unless said otherwise.
    pub level: Option<Level>,
    /// Its drives, by place.
    pub drives: Vec<NewDrive>,
    /// It may survive fewer lost drives than the groups of the pool do.
    pub by_force: bool,
}

impl Array {
    /// Gives a group another level, in the background.
    ///
    /// # Errors
    /// No such pool or group; a level that it can't have or go to; it is being changed;
    /// no room.
    pub async fn convert_group(
        self: &Arc<Self>,
        pool: String,
        index: u16,
        level: Level,
    ) -> Result<(), ArrayError> {
        self.change(
            move |array| async move { array.pool_of(&pool)?.convert_group(index, level).await },
        )
        .await
    }

    /// Adds a group of new drives.
    ///
    /// # Errors
    /// No such pool; a name or a drive is taken; drives that don't make a group of that
    /// level, or are too small; a level that is weaker than the pool's, without force.
    pub async fn add_group(
        self: &Arc<Self>,
        pool: String,
        group: NewGroup,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let (_, info) = array.pool(&pool).await?;
            array.check_drives(&group.drives).await?;
            let level = group.level.unwrap_or(info.level);
            check_count(&info, level, group.drives.len())?;
            if !group.by_force {
                check_strength(&info, level)?;
            }
            let take = move |state: Rc<ShardState>, pool: Lane<RealWorld>, placed: Vec<Placed>| async move {
                let mut drives = Vec::new();
                for drive in placed {
                    drives.push(drive.open(&state, &pool).await?);
                }
                pool.add_group(level, drives).await?;
                Ok(())
            };
            let purpose = Purpose::Group(level);
            array
                .bring_in(&info, group.drives, (purpose, None), take)
                .await
        })
        .await
    }

    /// Has a group leave, in the background; its drives are forgotten then.
    ///
    /// # Errors
    /// No such pool or group; it is the last, or is being changed; no room for what it
    /// holds; without force, a pool that is nearly full then.
    pub async fn remove_group(
        self: &Arc<Self>,
        pool: String,
        index: u16,
        by_force: bool,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            array.pool_of(&pool)?.remove_group(index, by_force).await
        })
        .await?;
        self.follow_departures().await;
        Ok(())
    }

    /// That each name and each place is new, and there once.
    async fn check_drives(&self, drives: &[NewDrive]) -> Result<(), ArrayError> {
        for (index, drive) in drives.iter().enumerate() {
            let before = &drives[..index];
            let twice = |what: String| {
                let context = format!("drives: found {what} twice; allowed: each once");
                Err(ArrayError::new(ArrayErrorKind::Invalid, context))
            };
            if before.iter().any(|other| other.name == drive.name) {
                return twice(format!("the name {:?}", drive.name));
            }
            if before.iter().any(|other| other.path == drive.path) {
                return twice(drive.path.display().to_string());
            }
            self.check_free(&drive.name).await?;
        }
        Ok(())
    }
}

/// How many lost drives a group of this level survives, whichever they are.
fn losses(level: Level) -> u8 {
    match level {
        Level::Simple => 0,
        Level::Raid10 { copies } => copies.saturating_sub(1),
        Level::Raid5 | Level::Raid50 => 1,
        Level::Raid6 => 2,
    }
}

/// That a pool does not get weaker by a new group: a volume is on all groups.
fn check_strength(info: &PoolInfo, level: Level) -> Result<(), ArrayError> {
    let is_stronger = |group: &&engine::pool::GroupInfo| losses(group.level) > losses(level);
    let weakest = info.groups.iter().min_by_key(|group| losses(group.level));
    let Some(stronger) = weakest.filter(is_stronger) else {
        return Ok(());
    };
    let context = format!(
        "pool {}: a group of level {level} survives {} lost drives, and the pool's groups survive \
         {}; the whole pool would be lost with the new group. Choose level {}, or --force",
        info.name,
        losses(level),
        losses(stronger.level),
        stronger.level
    );
    Err(ArrayError::new(ArrayErrorKind::Invalid, context))
}

/// That so many drives make a group, before files are made for them.
fn check_count(info: &PoolInfo, level: Level, drives: usize) -> Result<(), ArrayError> {
    if level.data_drives(drives).is_some() {
        return Ok(());
    }
    let context = format!(
        "pool {}: found {} for a new group; allowed: {}",
        info.name,
        site::counted(drives as u64, "drive"),
        level.drives_rule()
    );
    Err(ArrayError::new(ArrayErrorKind::Invalid, context))
}
