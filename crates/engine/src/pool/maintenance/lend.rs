//! Lending zones to other lanes of the pool: the side that is asked, which is [`Lending`].
//!
//! A lane that has no free page left, and finds no zone that nobody has, asks the others. A lane that
//! can spare a zone empties and lends it. So the pool is full only when no lane could.
//!
//! A lane that is asked answers between two zones of its present work, also of a rebuild. If that work
//! waits for drives, the lane that asks waits for them, too.
//!
//! Invariants (`lane::requests` says what follows from them):
//! - What is left after a zone is lent covers what the lane has promised and keeps back.
//! - A lane lends nothing while a write of its own has asked for a zone. If it could spare one, this
//!   write finds its page at the next look, and the lane answers after that.
//! - A write or a promise calls the emptying of a zone off only if that gives it pages. So the lane
//!   can't spare a zone any more, and says no.

use super::emptying::{Emptied, Emptying, Use};
use super::{Task, TaskKind};
use crate::drives::Zone;
use crate::pool::PoolError;
use crate::space::LaneState;
use crate::space::promise::kept_of;
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
            let lane = inner.drives().lane();
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

/// The way it was: a zone that had just come for a write was lent on before the write had its page.
const HASTY: &str = "zone lent on that a write waits for";

/// A lane whose own write waits does not even say that it has nothing to lend.
const MUTE: &str = "lanes with writes that wait do not answer each other";

/// What a lane lends to others.
pub(super) struct Lending<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Lending<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Lending { lane }
    }

    /// Lends another lane a zone, or says that there is none to lend, if one is asked for.
    pub(super) async fn lend(&self) -> Result<(), PoolError> {
        let lane = self.lane.drives().lane();
        if !lane.registry.is_wanted_of(lane.index) {
            return Ok(());
        }
        let has_waiting_write = lane.registry.has_waiting_write(lane.index);
        if has_waiting_write && self.lane.world().planted(MUTE) {
            return Ok(());
        }
        let Some(zone) = self.zone_to_lend() else {
            lane.registry.refuse_zone(lane.index);
            return Ok(());
        };
        if has_waiting_write && !self.lane.world().planted(HASTY) {
            return Ok(());
        }
        let unseen = Task::of(TaskKind::Move, "", self.lane.world().now(), (0, 0));
        let emptying = Emptying::of(self.lane);
        match emptying.empty_zone(&zone, &unseen, Use::Lent).await {
            Ok(Emptied::Done) => self.lane.world().reached("lane gives a zone to another"),
            Ok(Emptied::CalledOff | Emptied::PutOff) => lane.registry.refuse_zone(lane.index),
            Err(error) => {
                lane.registry.refuse_zone(lane.index);
                self.lane.go_on()?;
                self.lane.background().note_lending_failure(error);
            }
        }
        Ok(())
    }

    /// The zone with the fewest pages in use, of those that the lane can spare. It can spare a zone if
    /// its other zones have room for that zone's pages, and for all that is promised and kept back.
    fn zone_to_lend(&self) -> Option<Rc<Zone<W>>> {
        let space = self.lane.space();
        let kept = match self.lane.world().planted(HASTY) {
            true => 0,
            false => kept_of(space.pages()),
        };
        let held = self.lane.promised_pages() + kept;
        let mut zones = self.lane.drives().zones();
        zones.retain(|zone| {
            let number = zone.shape.zone;
            let left = space.free() - space.free_in(number);
            left >= space.used_in(number) + held
        });
        let zones = zones.into_iter();
        zones.min_by_key(|zone| space.used_in(zone.shape.zone))
    }
}
