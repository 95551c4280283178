//! Zones for other lanes of the pool.
//!
//! A lane that has no free page left, and finds no zone that nobody has, asks the others.
//! Who has one that the rest of its own could take in empties it and gives it away; so
//! the pool is full only when no lane could. Who is asked answers between two zones of
//! whatever it is about, once the drives have answered that it waits for: who asks waits for
//! that. Where a drive has to be rebuilt first, it says so, and who waits gives up after a
//! while.

use super::zones::Emptied;
use super::{Task, TaskKind};
use crate::pool::{Claim, Inner, PoolError};
use crate::world::World;
use base::PhysPage;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// How often a lane looks whether it is asked.
const LOOK: Duration = Duration::from_millis(20);

/// How often who asks looks for an answer.
pub(in crate::pool) const WAIT: Duration = Duration::from_millis(2);

/// How many times, where all that could answer have put it off; and where they have not,
/// which is longer than any drive is waited for.
const WAITS_PUT_OFF: u32 = 5_000;
const WAITS: u32 = 60_000;

/// How long who asks goes on waiting.
#[derive(Debug, Default)]
pub(in crate::pool) struct Patience {
    waits: u32,
    put_off: u32,
}

impl Patience {
    /// Whether that was long enough; looked at before each wait.
    pub(in crate::pool) fn ends(&mut self, put_off: bool) -> bool {
        self.waits += 1;
        self.put_off += u32::from(put_off);
        self.put_off > WAITS_PUT_OFF || self.waits > WAITS
    }
}

/// Wakes the pool's task when another lane asks for a zone, or has done something about
/// groups.
pub(super) async fn watch<W: World>(world: W, pool: Weak<Inner<W>>) {
    let mut seen = 0;
    loop {
        {
            let Some(inner) = pool.upgrade() else { return };
            let lane = inner.drives.lane();
            if lane.commons.lanes() == 1 || inner.go_on().is_err() {
                // Nobody waits long for an answer that doesn't come.
                lane.commons.refuse_zone(lane.index);
                lane.commons.put_zones_off(lane.index, true);
                return;
            }
            let turn = lane.commons.turn();
            let is_wanted = lane.commons.is_wanted_of(lane.index);
            if is_wanted {
                let put_off = inner.is_drive_wanting()
                    || world.planted("lane that waits for a drive counts as putting off");
                lane.commons.put_zones_off(lane.index, put_off);
            }
            if is_wanted || turn != seen {
                inner.wake_life();
            }
            seen = turn;
        }
        world.sleep(LOOK).await;
    }
}

impl<W: World> Inner<W> {
    /// Gives another lane a zone, or says that there is none to give, if one is asked
    /// for.
    pub(super) async fn lend(self: &Rc<Self>) -> Result<(), PoolError> {
        let lane = self.drives.lane();
        if !lane.commons.is_wanted_of(lane.index) {
            return Ok(());
        }
        let promised = self.promised_pages();
        let least = {
            let space = self.space.borrow();
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
        let given = match least {
            Some(zone) => self.empty_zone(&zone, &unseen).await?,
            None => Emptied::CalledOff,
        };
        match given {
            Emptied::Done => self.world.reached("lane gives a zone to another"),
            Emptied::CalledOff => lane.commons.refuse_zone(lane.index),
            // Who asked waits; after the drive it is this zone's turn again.
            Emptied::PutOff => {}
        }
        Ok(())
    }

    /// Takes pages of a zone that another lane gives; none when no lane can, or does in
    /// time.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub(in crate::pool) async fn take_lent(
        self: &Rc<Self>,
        max: u64,
        claim: Claim,
    ) -> Result<Option<(PhysPage, u64)>, PoolError> {
        let lane = self.drives.lane();
        if lane.commons.lanes() == 1 {
            return Ok(None);
        }
        lane.commons.want_zone(lane.index);
        let mut patience = Patience::default();
        while !patience.ends(lane.commons.is_put_off(lane.index)) {
            let answered = lane.commons.all_refused(lane.index);
            // What came between the answer and now counts, too.
            let taken = self.take_pages(max, claim).await?;
            if taken.is_some() || answered {
                return Ok(taken);
            }
            self.world.sleep(WAIT).await;
            self.check()?;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_put_off_gives_up_sooner_than_who_has_no_answer() {
        let waits = |put_off: fn(u32) -> bool| {
            let mut patience = Patience::default();
            (0..).find(|wait| patience.ends(put_off(*wait)))
        };
        assert_eq!(waits(|_| true), Some(WAITS_PUT_OFF));
        assert_eq!(waits(|_| false), Some(WAITS));
        assert_eq!(waits(|wait| wait >= 1_000), Some(1_000 + WAITS_PUT_OFF));
    }
}
