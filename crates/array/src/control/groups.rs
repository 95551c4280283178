//! Adds RAID groups, changes their levels, and removes them.
//!
//! Invariant: a refused group leaves nothing behind: no file, no record.

use super::{ArrayError, ControlPlane, NewDrive};
use crate::bays::DriveBays;
use engine::World;
use engine::pool::{GroupRole, Level};
use site::SpreadKeys;
use std::sync::Arc;

/// A group to add to a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGroup {
    /// Its level; that of the pool's first group unless said otherwise.
    pub level: Option<Level>,
    /// Whether it has distributed spares, and which stripes then.
    pub spread: SpreadKeys,
    /// Whether it is for data or for the logs.
    pub role: GroupRole,
    /// Its drives, by place.
    pub drives: Vec<NewDrive>,
    /// It may survive fewer lost drives than the groups of the pool do.
    pub by_force: bool,
}

impl<W: World> ControlPlane<W> {
    /// Adds a group of new drives.
    ///
    /// # Errors
    /// - There is no such pool, or a name or a drive is taken.
    /// - The drives don't make a group of that level, or are too small.
    /// - The level is weaker than the pool's, and nobody has said `by_force`.
    pub async fn add_group(
        self: &Arc<Self>,
        pool: String,
        group: NewGroup,
        bays: &Arc<dyn DriveBays<W>>,
    ) -> Result<(), ArrayError> {
        let bays = Arc::clone(bays);
        self.change(move |array| async move {
            let (_, info) = array.pool(&pool).await?;
            array.check_new_drives(&group.drives).await?;
            let drives = group.drives.clone();
            let new = array.place(&bays, &info, drives, None).await?;
            let of = (group.level, group.spread, group.role);
            array
                .pool_of(&pool)?
                .add_group(of, &new, group.by_force)
                .await?;
            for drive in &group.drives {
                array.forget_other_places(&pool, drive).await;
            }
            Ok(())
        })
        .await
    }

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

    /// Has a group leave, in the background; its drives are forgotten then.
    ///
    /// # Errors
    /// No such pool or group; it is the last, or is being changed; no room for what it
    /// holds; without force, a pool that is nearly full then; which drives the pool has can't be
    /// put on record.
    pub async fn remove_group(
        self: &Arc<Self>,
        pool: String,
        index: u16,
        by_force: bool,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            // A spare that has a place of the group by now leaves with it, and has not failed.
            array.note_drives().await?;
            array.pool_of(&pool)?.remove_group(index, by_force).await
        })
        .await?;
        self.follow_departures().await;
        Ok(())
    }
}
