//! The room that lanes have, and that a pool has once a group has left.
//!
//! Invariant: no group leaves a pool that is nearly full then, unless by force.

use super::Pool;
use crate::error::{ArrayError, ArrayErrorKind};
use engine::pool::maintenance::remains::Remains;
use engine::pool::{GroupInfo, GroupRole, PoolInfo};
use engine::{Lane, World};

/// A pool with less than this part of it free needs what is in the trash.
const ROOM_PARTS: u64 = 50;

/// Whether a pool with so much free of so much gives what is in the trash.
pub fn is_short(free_bytes: u64, capacity_bytes: u64) -> bool {
    free_bytes < capacity_bytes / ROOM_PARTS
}

impl<W: World> Pool<W> {
    /// That the pool is not nearly full without one of its groups: it would empty its trash, and
    /// soon refuse writes. A group that is leaving already is let go.
    pub(super) async fn check_room_without(&self, index: u16) -> Result<(), ArrayError> {
        let info = self.info().await?;
        let mut groups = info.groups.iter();
        // A log group holds no data.
        let is_free = |group: &GroupInfo| group.leaving || group.role == GroupRole::Log;
        if groups.any(|group| group.index == index && is_free(group)) {
            return Ok(());
        }
        let remains = Remains::of_lanes(self.remains_without(index).await?);
        let thresholds = info.fullness.thresholds;
        let is_short = is_short(remains.free_bytes(), remains.capacity_bytes());
        match is_short || remains.is_past_alarm(thresholds) {
            true => Err(too_full(&info, index, remains)),
            false => Ok(()),
        }
    }

    /// Of each lane that has the group.
    async fn remains_without(&self, index: u16) -> Result<Vec<Remains>, ArrayError> {
        let mut lanes = Vec::new();
        for lane in 0..self.lanes() {
            let visit = move |_, lane: Lane<W>| async move { Ok(lane.remains_without(index)?) };
            match self.visit(lane, visit).await {
                Err(error) if error.kind == ArrayErrorKind::NotFound => {}
                said => lanes.push(said?),
            }
        }
        Ok(lanes)
    }
}

fn too_full(info: &PoolInfo, index: u16, remains: Remains) -> ArrayError {
    let context = format!(
        "pool {pool} would be {} % full without group {index}, the trash included; its alarm \
         threshold is {} %, and Ashlar empties the trash of a full pool. Delete volumes or \
         snapshots, empty the trash (`ashlar trash empty`), add a group (`ashlar pool grow \
         {pool}`), or --force",
        remains.percent(),
        info.fullness.thresholds.alarm_percent,
        pool = info.name
    );
    ArrayError::new(ArrayErrorKind::Full, context)
}
