//! Groups that leave, and the steps that lanes take about groups together: [`Departures`].
//!
//! Invariants:
//! - What the first lane's labels say of a group, the others do, whatever their room: each
//!   was asked before the first one began.
//! - A group is in the tables of all lanes until nothing of any lane is in it; its drives are
//!   wiped when it is in no table any more. Whatever a crash cuts short goes on at the next
//!   opening: which step a lane is at follows from its labels and its metadata.

use super::copies::Copies;
use crate::drives::{EventKind, Group, HASTY};
use crate::lane::Departure;
use crate::pool::PoolError;
use crate::space::LaneState;
use crate::world::World;
use std::rc::Rc;

/// Groups on their way out of the pool.
pub(in crate::pool) struct Departures<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Departures<'a, W> {
    pub(in crate::pool) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Departures { lane }
    }

    /// Does what the first lane does about groups, if this one does something else.
    pub(super) async fn follow_first_lane(&self) -> Result<(), PoolError> {
        if self.lane.drives().lane().index == 0 {
            return Ok(());
        }
        // Who closes the pool holds it, and waits for us.
        let Some(_administration) = self.lane.try_administration() else {
            return Ok(());
        };
        self.follow().await?;
        let lane = self.lane.drives().lane();
        let is_settled =
            lane.registry.all_opened() && lane.registry.groups_missing(lane.index) == 0;
        match is_settled {
            true => self.part_with_reserved().await,
            false => Ok(()),
        }
    }

    /// Lets drives go that were to become a group of which no label tells: its addition was cut
    /// short. The caller holds the administration's lock, or is the only one there.
    pub(in crate::pool) async fn part_with_reserved(&self) -> Result<(), PoolError> {
        let mut reserved = self.lane.drives().spares();
        reserved.retain(|spare| spare.is_reserved());
        for spare in reserved {
            self.lane
                .drives()
                .part_with_spare(&spare, self.lane.background().patience())
                .await?;
        }
        Ok(())
    }

    /// As [`Departures::follow_first_lane`]; the caller holds the administration's lock.
    pub(super) async fn follow(&self) -> Result<(), PoolError> {
        let lane = self.lane.drives().lane();
        for (index, first) in lane.registry.first_lane().iter().enumerate() {
            let goes = first.leaving || first.drives == 0;
            let Some(own) = self.lane.drives().groups().get(index).cloned() else {
                if !goes {
                    // It is to be added here, too, and so are those after it.
                    return Ok(());
                }
                self.lane.drives().adopt_departed(first).await?;
                let registry = &lane.registry;
                registry.say_departure(lane.index, index as u16, Departure::Wiped);
                continue;
            };
            if own.drives() == 0 {
                continue;
            }
            if own.leaves() != goes {
                self.follow_leaving(&own, goes).await?;
            }
            if own.level() != first.level && own.level().can_become(first.level) {
                let (from, to) = (own.level(), first.level);
                own.set_level(to);
                self.lane.world().reached("lane follows the first one");
                self.announce(format!("group {index} goes from level {from} to {to}"))
                    .await?;
            }
        }
        Ok(())
    }

    async fn follow_leaving(&self, group: &Rc<Group<W>>, goes: bool) -> Result<(), PoolError> {
        {
            let _settled = self.lane.zone_changes().settle().await;
            group.set_leaving(goes);
        }
        self.lane.world().reached("lane follows the first one");
        let index = group.index;
        self.announce(match goes {
            true => format!("group {index} is emptied, to leave the pool"),
            false => format!("group {index} stays in the pool"),
        })
        .await
    }

    /// Lets groups go that are empty in all lanes and are to leave.
    pub(super) async fn part_with_groups(&self) -> Result<(), PoolError> {
        let registry = &self.lane.drives().lane().registry;
        if !registry.all_opened() {
            return Ok(());
        }
        for (group, first) in self
            .lane
            .drives()
            .groups()
            .iter()
            .zip(registry.first_lane())
        {
            let goes = first.leaving || first.drives == 0;
            if goes && group.leaves() && group.drives() > 0 {
                self.part_with(group).await?;
            }
            if group.drives() == 0 {
                self.free_drives(group).await;
            }
        }
        Ok(())
    }

    /// Lets a group go, when no lane has anything in it.
    async fn part_with(&self, group: &Rc<Group<W>>) -> Result<(), PoolError> {
        if !self.lane.drives().zones_of(group).is_empty()
            || !Copies::of(self.lane).move_copies_off(group).await?
        {
            return Ok(());
        }
        let (lane, index) = (self.lane.drives().lane(), group.index);
        let registry = &lane.registry;
        registry.say_departure(lane.index, index, Departure::Emptied);
        let hasty = self.lane.world().planted(HASTY);
        if !hasty && !registry.have_departed(index, Departure::Emptied) {
            return Ok(());
        }
        let _settled = self.lane.zone_changes().settle().await;
        self.lane.drives().drop_group(group).await?;
        self.lane.check()?;
        registry.say_departure(lane.index, index, Departure::Left);
        if hasty {
            self.lane
                .drives()
                .wipe_departed(group, self.lane.background().patience())
                .await;
            self.tell_free(index);
        }
        Ok(())
    }

    /// Wipes the drives of a group that has left, once no lane has it any more.
    async fn free_drives(&self, group: &Rc<Group<W>>) {
        let (lane, index) = (self.lane.drives().lane(), group.index);
        let registry = &lane.registry;
        if !registry.may_wipe(lane.index, index) {
            return;
        }
        self.lane
            .drives()
            .wipe_departed(group, self.lane.background().patience())
            .await;
        if registry.say_departure(lane.index, index, Departure::Wiped) {
            self.tell_free(index);
        }
    }

    fn tell_free(&self, index: u16) {
        let text = format!("group {index} has left the pool: its drives are free");
        self.lane.drives().event(EventKind::Group, text);
        self.lane.world().reached("group left");
    }

    /// Makes a change of groups durable, and begins with what follows from it.
    pub(super) async fn announce(&self, text: String) -> Result<(), PoolError> {
        self.lane.drives().want_labels();
        self.lane.drives().settle_labels().await;
        self.lane.drives().event(EventKind::Group, text);
        self.lane.wake_background();
        self.lane.check()
    }
}
