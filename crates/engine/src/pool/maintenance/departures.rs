//! Groups that leave, and the steps that lanes take about groups together.
//!
//! Invariants:
//! - What the first lane's labels say of a group, the others do, whatever their room: each
//!   was asked before the first one began.
//! - A group is in the tables of all lanes until nothing of any lane is in it; its drives are
//!   wiped when it is in no table any more. Whatever a crash cuts short goes on at the next
//!   opening: which step a lane is at follows from its labels and its metadata.

use crate::drives::{EventKind, Group, HASTY};
use crate::lane::Departure;
use crate::pool::PoolError;
use crate::space::LaneState;
use crate::world::World;
use std::rc::Rc;

impl<W: World> LaneState<W> {
    /// Does what the first lane does about groups, if this one does something else.
    pub(super) async fn follow_first_lane(self: &Rc<Self>) -> Result<(), PoolError> {
        if self.drives.lane().index == 0 {
            return Ok(());
        }
        // Who closes the pool holds it, and waits for us.
        let Some(_administration) = self.try_administration() else {
            return Ok(());
        };
        self.follow().await?;
        let lane = self.drives.lane();
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
        let mut reserved = self.drives.spares();
        reserved.retain(|spare| spare.is_reserved());
        for spare in reserved {
            self.drives
                .part_with_spare(&spare, self.background().patience())
                .await?;
        }
        Ok(())
    }

    /// As [`LaneState::follow_first_lane`]; the caller holds the administration's lock.
    pub(super) async fn follow(self: &Rc<Self>) -> Result<(), PoolError> {
        let lane = self.drives.lane();
        for (index, first) in lane.registry.first_lane().iter().enumerate() {
            let goes = first.leaving || first.drives == 0;
            let Some(own) = self.drives.groups().get(index).cloned() else {
                if !goes {
                    // It is to be added here, too, and so are those after it.
                    return Ok(());
                }
                self.drives.adopt_departed(first).await?;
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
                self.world.reached("lane follows the first one");
                self.announce(format!("group {index} goes from level {from} to {to}"))
                    .await?;
            }
        }
        Ok(())
    }

    async fn follow_leaving(
        self: &Rc<Self>,
        group: &Rc<Group<W>>,
        goes: bool,
    ) -> Result<(), PoolError> {
        {
            let _settled = self.zone_changes().settle().await;
            group.set_leaving(goes);
        }
        self.world.reached("lane follows the first one");
        let index = group.index;
        self.announce(match goes {
            true => format!("group {index} is emptied, to leave the pool"),
            false => format!("group {index} stays in the pool"),
        })
        .await
    }

    /// Lets groups go that are empty in all lanes and are to leave.
    pub(super) async fn part_with_groups(self: &Rc<Self>) -> Result<(), PoolError> {
        let registry = &self.drives.lane().registry;
        if !registry.all_opened() {
            return Ok(());
        }
        for (group, first) in self.drives.groups().iter().zip(registry.first_lane()) {
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
    async fn part_with(self: &Rc<Self>, group: &Rc<Group<W>>) -> Result<(), PoolError> {
        if !self.drives.zones_of(group).is_empty() || !self.move_copies_off(group).await? {
            return Ok(());
        }
        let (lane, index) = (self.drives.lane(), group.index);
        let registry = &lane.registry;
        registry.say_departure(lane.index, index, Departure::Emptied);
        let hasty = self.world.planted(HASTY);
        if !hasty && !registry.have_departed(index, Departure::Emptied) {
            return Ok(());
        }
        let _settled = self.zone_changes().settle().await;
        self.drives.drop_group(group).await?;
        self.check()?;
        registry.say_departure(lane.index, index, Departure::Left);
        if hasty {
            self.drives
                .wipe_departed(group, self.background().patience())
                .await;
            self.tell_free(index);
        }
        Ok(())
    }

    /// Wipes the drives of a group that has left, once no lane has it any more.
    async fn free_drives(&self, group: &Rc<Group<W>>) {
        let (lane, index) = (self.drives.lane(), group.index);
        let registry = &lane.registry;
        if !registry.may_wipe(lane.index, index) {
            return;
        }
        self.drives
            .wipe_departed(group, self.background().patience())
            .await;
        if registry.say_departure(lane.index, index, Departure::Wiped) {
            self.tell_free(index);
        }
    }

    fn tell_free(&self, index: u16) {
        let text = format!("group {index} has left the pool: its drives are free");
        self.drives.event(EventKind::Group, text);
        self.world.reached("group left");
    }
}
