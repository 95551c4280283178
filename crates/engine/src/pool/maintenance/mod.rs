//! The tasks that the pool runs for its drives: spares taken, drives rebuilt, copies of metadata
//! and logs moved, scrubs from time to time.
//!
//! One task a pool, one thing at a time (but rebuilds of several drives), behind the commands: see
//! [`pace`].
//!
//! Rooms: `zones` (emptied: for another level, or for a group that leaves), `groups`
//! (converted, added, removed), [`candidates`] (drives judged before any lane takes them), `remains` (the space without a group), `departures` (those that leave; the lanes together), `spares` (who stands in for whom, and the commands for
//! it), `rebuild`, `scrub` (by command), `scrub_rounds` (by themselves), `steps` (of all these), `copies` (of the metadata), `logs` (on which drives), [`pace`]. [`health`] is a
//! task of its own: drives are watched while others are rebuilt ([`crate::drives`] has what it does
//! about those that do not answer). So is [`fullness`]: who
//! has to be told that space runs out; and `fill`: pages that lie over others.

pub mod candidates;
mod copies;
mod departures;
mod fill;
pub mod fullness;
mod groups;
pub mod health;
pub(super) mod lend;
mod logs;
mod rebuild;
pub mod remains;
mod scrub;
mod scrub_rounds;
mod spares;
mod steps;
mod zones;

use crate::space::background::Task;
pub use crate::space::background::{ScrubFindings, ScrubInfo, ScrubState, TaskInfo, TaskKind};
pub use crate::space::pace::{self, Rates};
pub use scrub_rounds::RoundInfo;

use super::{MemberState, PoolError};
use crate::drives::EventKind;
use crate::drives::heartbeat;
use crate::space::LaneState;
use crate::world::World;
use futures_util::future::select;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// How often the task looks around without being woken.
const TICK: Duration = Duration::from_secs(1);

/// Starts the task; it ends with the pool.
pub(super) fn start<W: World>(inner: &Rc<LaneState<W>>) {
    let store = Rc::downgrade(&inner.store);
    inner.drives.set_waker(move || {
        if let Some(store) = store.upgrade() {
            store.lifeline.set();
        }
    });
    inner.drives.set_watched();
    let world = inner.world.clone();
    world.spawn(live(world.clone(), Rc::downgrade(inner)));
    world.spawn(health::watch(world.clone(), Rc::downgrade(inner)));
    world.spawn(fullness::watch(world.clone(), Rc::downgrade(inner)));
    world.spawn(fill::watch(world.clone(), Rc::downgrade(inner)));
    heartbeat::begin(&inner.drives);
    if inner.drives.lane().registry.lanes() > 1 {
        world.spawn(lend::watch(world.clone(), Rc::downgrade(inner)));
    }
}

async fn live<W: World>(world: W, pool: Weak<LaneState<W>>) {
    loop {
        {
            let Some(inner) = pool.upgrade() else { return };
            let _busy = inner.background().be_busy().await;
            if inner.go_on().is_err() {
                return;
            }
            match inner.look_after().await {
                Ok(()) => inner.background().round_has_ended(),
                Err(_) if inner.go_on().is_err() => return,
                Err(error) => inner.tell_trouble(error),
            }
        }
        let Some(store) = pool.upgrade().map(|inner| Rc::clone(&inner.store)) else {
            return;
        };
        let (woken, ticked) = (pin!(store.lifeline.wait()), pin!(world.sleep(TICK)));
        select(woken, ticked).await;
    }
}

impl<W: World> LaneState<W> {
    /// A round has ended early though the pool serves: it is tried again, and told once.
    fn tell_trouble(&self, error: PoolError) {
        if self.background().tells_trouble(&error.context) {
            let text = format!(
                "work on the drives ended early, and is tried again: {}",
                error.context
            );
            self.drives.event(EventKind::Trouble, text);
        }
    }

    /// One round of everything. Where the round ends early, lending may have failed all the same.
    async fn look_after(self: &Rc<Self>) -> Result<(), PoolError> {
        let round = self.look_after_each().await;
        let lent = self.background().take_lending_failure();
        round.and(lent.map_or(Ok(()), Err))
    }

    async fn look_after_each(self: &Rc<Self>) -> Result<(), PoolError> {
        self.follow_first_lane().await?;
        self.follow_others().await?;
        self.take_spares().await?;
        self.move_copies().await?;
        // What a crash left open is in place before anything is compared with it.
        if self.store.has_replayed() {
            return Ok(());
        }
        self.lend().await?;
        self.rebuild_all().await?;
        let emptied = self.empty_zones().await;
        self.go_on()?;
        self.part_with_groups().await?;
        self.scrub_if_wanted().await?;
        self.scrub_what_is_due().await?;
        emptied
    }

    /// Whether a drive has failed, or holds less than it should, and something can be done
    /// about that: it goes before whatever else is under way.
    fn is_drive_wanting(&self) -> bool {
        let members = self.drives.members();
        let mut states = members.iter().map(|member| member.state());
        states.any(|state| state == MemberState::Rebuilding) || self.next_to_stand_in().is_some()
    }

    /// Puts `task` off until no drive is wanting any more.
    async fn look_after_drives(self: &Rc<Self>, task: &Rc<Task>) -> Result<(), PoolError> {
        self.background().put_off(task);
        while self.is_drive_wanting() {
            self.take_spares().await?;
            self.move_copies().await?;
            self.rebuild_all().await?;
            self.go_on()?;
        }
        self.background().resume(task, self.world.now());
        Ok(())
    }
}
