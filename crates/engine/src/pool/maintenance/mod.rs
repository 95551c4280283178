//! The tasks that the pool runs for its drives: spares taken, drives rebuilt, copies of metadata
//! and logs moved, scrubs from time to time.
//!
//! One task a pool, one thing at a time (but rebuilds of several drives), behind the commands: see
//! [`pace`].
//!
//! Each room has a type that looks at the lane, or at its drives, as long as a call takes. `Round`
//! asks them one after the other.
//!
//! Rooms, of space: `zones` (which are emptied), `emptying` (how), `lend` (to other lanes). Of groups:
//! `groups` (converted, added, removed), `new_groups` (judged and made), `departures` (those that
//! leave; the lanes together), [`remains`] (the space without a group). Of drives: `spares` (who stands
//! in for whom, and the commands for it), `succession` (drives that are copied before they leave),
//! `place_choice` (which places of zones go to which
//! other drives of their group), `places` (how),
//! `new_spares` (judged), [`candidates`] (labels judged before
//! any lane takes drives), `redundancy` (what can still be lost), `rebuild`, `scrub` (by command),
//! `scrub_rounds` (by themselves), `steps` (of all these), [`pace`]. Of copies: `copies` (of the
//! metadata), `logs` (on which drives), `placement` (where they may lie).
//!
//! [`health`] is a task of its own: drives are watched while others are rebuilt ([`crate::drives`] has
//! what it does about those that do not answer). So is [`fullness`]: who has to be told that space runs
//! out; and `fill`: pages that lie over others.

pub mod candidates;
mod copies;
mod departures;
mod emptying;
mod fill;
pub mod fullness;
mod groups;
pub mod health;
pub(super) mod lend;
mod logs;
mod new_groups;
mod new_spares;
mod place_choice;
mod placement;
mod places;
mod rebuild;
mod redundancy;
pub mod remains;
mod scrub;
mod scrub_rounds;
mod spares;
mod steps;
mod succession;
mod zones;

use crate::space::background::Task;
pub use crate::space::background::{ScrubFindings, ScrubInfo, ScrubState, TaskInfo, TaskKind};
pub use crate::space::pace::{self, Rates};
pub(super) use copies::Copies;
pub(super) use departures::Departures;
pub use scrub_rounds::RoundInfo;
pub(super) use scrub_rounds::ScrubRounds;

use super::PoolError;
use crate::drives::EventKind;
use crate::drives::heartbeat;
use crate::space::LaneState;
use crate::world::World;
use futures_util::future::select;
use lend::Lending;
use places::PlaceMoves;
use rebuild::Rebuilds;
use scrub::Scrubbing;
use spares::Spares;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;
use succession::Successions;
use zones::ZoneMoves;

/// How often the task looks around without being woken.
const TICK: Duration = Duration::from_secs(1);

/// Starts the task; it ends with the pool.
pub(super) fn start<W: World>(inner: &Rc<LaneState<W>>) {
    let store = Rc::downgrade(inner.store());
    inner.drives().set_waker(move || {
        if let Some(store) = store.upgrade() {
            store.lifeline.set();
        }
    });
    inner.drives().set_watched();
    let world = inner.world().clone();
    world.spawn(live(world.clone(), Rc::downgrade(inner)));
    world.spawn(health::watch(world.clone(), Rc::downgrade(inner)));
    world.spawn(fullness::watch(world.clone(), Rc::downgrade(inner)));
    world.spawn(fill::watch(world.clone(), Rc::downgrade(inner)));
    heartbeat::begin(inner.drives());
    if inner.drives().lane().registry.lanes() > 1 {
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
            match Round::of(&inner).look_after().await {
                Ok(()) => inner.background().round_has_ended(),
                Err(_) if inner.go_on().is_err() => return,
                Err(error) => Round::of(&inner).tell_trouble(error),
            }
        }
        let Some(store) = pool.upgrade().map(|inner| Rc::clone(inner.store())) else {
            return;
        };
        let (woken, ticked) = (pin!(store.lifeline.wait()), pin!(world.sleep(TICK)));
        select(woken, ticked).await;
    }
}

/// One round of everything that the task does.
pub(super) struct Round<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Round<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Round { lane }
    }

    /// A round has ended early though the pool serves: it is tried again, and told once.
    fn tell_trouble(&self, error: PoolError) {
        if self.lane.background().tells_trouble(&error.context) {
            let text = format!(
                "work on the drives ended early, and is tried again: {}",
                error.context
            );
            self.lane.drives().event(EventKind::Trouble, text);
        }
    }

    /// One round of everything. Where the round ends early, lending may have failed all the same.
    async fn look_after(&self) -> Result<(), PoolError> {
        let round = self.look_after_each().await;
        let lent = self.lane.background().take_lending_failure();
        round.and(lent.map_or(Ok(()), Err))
    }

    async fn look_after_each(&self) -> Result<(), PoolError> {
        Departures::of(self.lane).follow_first_lane().await?;
        Successions::of(self.lane).follow().await?;
        Spares::of(self.lane).follow_others().await?;
        Spares::of(self.lane).take_spares().await?;
        Copies::of(self.lane).move_copies().await?;
        // What a crash left open is in place before anything is compared with it.
        if self.lane.store().has_replayed() {
            return Ok(());
        }
        Lending::of(self.lane).lend().await?;
        Rebuilds::of(self.lane).rebuild_all().await?;
        let home = PlaceMoves::of(self.lane).bring_home().await;
        let emptied = ZoneMoves::of(self.lane).empty_zones().await;
        self.lane.go_on()?;
        Departures::of(self.lane).part_with_groups().await?;
        Scrubbing::of(self.lane).scrub_if_wanted().await?;
        ScrubRounds::of(self.lane).scrub_what_is_due().await?;
        emptied.and(home)
    }
}
