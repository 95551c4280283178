//! Adds RAID groups to a pool, changes their level, and removes them.
//!
//! Invariant: no group weakens a pool that is added without force.

use super::Pool;
use super::new_drives::NewDrives;
use super::purpose::Purpose;
use crate::error::{ArrayError, ArrayErrorKind};
use engine::pool::{GroupInfo, GroupRole, PoolInfo};
use engine::raid::Protection;
use engine::{Lane, Level, World};
use site::SpreadKeys;

impl<W: World> Pool<W> {
    /// Adds a group of new drives, of this level; without one, of that of the pool's first group.
    /// It has distributed spares where the keys say so. The logs go to a log group in the
    /// background.
    ///
    /// # Errors
    /// A name or a drive is taken; drives that don't make a group of that level, or are too small;
    /// without force, a level that is weaker than the pool's. No lane has the group then.
    pub async fn add_group<N: NewDrives<W>>(
        &self,
        (level, spread, role): (Option<Level>, SpreadKeys, GroupRole),
        new: &N,
        by_force: bool,
    ) -> Result<(), ArrayError> {
        let info = self.info().await?;
        let level = level.unwrap_or_else(|| usual_level(&info, role));
        let spread = spread.spread(level, role).map_err(|wrong| {
            let context = format!("pool {}: {wrong}", info.name);
            ArrayError::new(ArrayErrorKind::Invalid, context)
        })?;
        let protection = Protection { level, spread };
        check_count(&info, protection, new.drives().len())?;
        if !by_force && role == GroupRole::Data {
            check_strength(&info, level)?;
        }
        self.take_in(Purpose::Group(protection, role), new).await
    }

    /// Gives a group another level, in the background.
    ///
    /// # Errors
    /// No such group; a level that it can't have or go to; it is being changed; no room.
    pub async fn convert_group(&self, index: u16, level: Level) -> Result<(), ArrayError> {
        let check = move |_, lane: Lane<W>| async move {
            Ok(lane.check_convert_group(index, level).await?)
        };
        self.ask(check).await?;
        let visit =
            move |_, lane: Lane<W>| async move { Ok(lane.convert_group(index, level).await?) };
        self.visit_all(visit).await
    }

    /// Has a group leave, in the background.
    ///
    /// # Errors
    /// No such group; it is the last, or is being changed; no room for what it holds; without
    /// force, the pool would be nearly full then.
    pub async fn remove_group(&self, index: u16, by_force: bool) -> Result<(), ArrayError> {
        let check =
            move |_, lane: Lane<W>| async move { Ok(lane.check_remove_group(index).await?) };
        self.ask(check).await?;
        if !by_force {
            self.check_room_without(index).await?;
        }
        let visit = move |_, lane: Lane<W>| async move { Ok(lane.remove_group(index).await?) };
        self.visit_all(visit).await
    }
}

/// The level of a new group that nobody says: that of the first, or of mirrors that protect the log
/// as well as every group protects data.
fn usual_level(info: &PoolInfo, role: GroupRole) -> Level {
    let strongest = info.groups.iter().map(|group| group.level.redundancy());
    match (role, strongest.max()) {
        (GroupRole::Data, _) => info.level,
        (GroupRole::Log, Some(2..)) => Level::Raid10 { copies: 3 },
        (GroupRole::Log, _) => Level::Raid10 { copies: 2 },
    }
}

/// That a pool does not get weaker by a new group: a volume is on all groups.
fn check_strength(info: &PoolInfo, level: Level) -> Result<(), ArrayError> {
    let is_stronger = |group: &&GroupInfo| group.level.redundancy() > level.redundancy();
    let data = info.groups.iter();
    let data = data.filter(|group| group.role == GroupRole::Data);
    let weakest = data.min_by_key(|group| group.level.redundancy());
    let Some(stronger) = weakest.filter(is_stronger) else {
        return Ok(());
    };
    let context = format!(
        "pool {}: a group of level {level} survives {} lost drives, and the pool's groups survive \
         {}; the whole pool would be lost with the new group. Choose level {}, or --force",
        info.name,
        level.redundancy(),
        stronger.level.redundancy(),
        stronger.level
    );
    Err(ArrayError::new(ArrayErrorKind::Invalid, context))
}

/// That so many drives make a group, before files are made for them.
fn check_count(info: &PoolInfo, protection: Protection, drives: usize) -> Result<(), ArrayError> {
    if protection.data_drives(drives).is_some() {
        return Ok(());
    }
    let context = format!(
        "pool {}: found {} for a new group; allowed: {}",
        info.name,
        site::counted(drives as u64, "drive"),
        protection.drives_rule()
    );
    Err(ArrayError::new(ArrayErrorKind::Invalid, context))
}
