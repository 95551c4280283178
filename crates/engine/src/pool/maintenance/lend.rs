//! Lending zones to other lanes of the pool.
//!
//! A lane that has no free page left, and finds no zone that nobody has, asks the others.
//! Who has one that the rest of its own could take in empties it and gives it away; so
//! the pool is full only when no lane could. Who is asked answers between two zones of
//! whatever it is about, also of two that are being rebuilt, once the drives have answered
//! that it waits for: who asks waits for that.

use super::zones::Emptied;
use super::{Task, TaskKind};
use crate::pool::PoolError;
use crate::space::LaneState;
use crate::world::World;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// How often a lane looks whether it is asked.
const LOOK: Duration = Duration::from_millis(20);

/// Wakes the pool's task when another lane asks for a zone, or has done something about
/// groups.
pub(super) async fn watch<W: World>(world: W, pool: Weak<LaneState<W>>) {
    let mut seen = 0;
    loop {
        {
            let Some(inner) = pool.upgrade() else { return };
            let lane = inner.drives.lane();
            if lane.registry.lanes() == 1 || inner.go_on().is_err() {
                // Nobody waits long for an answer that doesn't come.
                lane.registry.refuse_zone(lane.index);
                lane.registry.fall_silent(lane.index);
                return;
            }
            let turn = lane.registry.turn();
            if lane.registry.is_wanted_of(lane.index) || turn != seen {
                inner.wake_background();
            }
            seen = turn;
        }
        world.sleep(LOOK).await;
    }
}

impl<W: World> LaneState<W> {
    /// Gives another lane a zone, or says that there is none to give, if one is asked
    /// for.
    pub(super) async fn lend(self: &Rc<Self>) -> Result<(), PoolError> {
        let lane = self.drives.lane();
        if !lane.registry.is_wanted_of(lane.index) {
            return Ok(());
        }
        let promised = self.promised_pages();
        let least = {
            let space = self.space();
            let zones = self.drives.zones().into_iter();
            zones
                .min_by_key(|zone| space.used_in(zone.shape.zone))
                .filter(|zone| {
                    let number = zone.shape.zone;
                    let left = space.free() - space.free_in(number);
                    left >= space.used_in(number) + promised
                })
        };
        let unseen = Task::of(TaskKind::Move, "", self.world.now(), (0, 0));
        let given = match &least {
            // Somebody waits for it, and a zone is soon empty: no drive goes first.
            Some(zone) => self.empty_zone(zone, &unseen, true).await,
            None => Ok(Emptied::CalledOff),
        };
        match (&given, &least) {
            (Ok(Emptied::Done), Some(zone)) => {
                lane.registry.lend_zone(lane.index, zone.shape.zone);
                self.world.reached("lane gives a zone to another");
            }
            _ => lane.registry.refuse_zone(lane.index),
        }
        if let Err(error) = given {
            self.go_on()?;
            self.background().note_lending_failure(error);
        }
        Ok(())
    }
}
