//! The task that makes pages whole that lie over another page, so that their backing can be free:
//! [`Filling`].
//!
//! A task of its own, since drives may be rebuilt for days meanwhile. It goes through the
//! maps of all volumes as long as any page has a backing, and makes way for commands.

use super::pace::Bounds;
use super::steps::Steps;
use crate::meta::page_map::UNMAPPED;
use crate::pool::{Lane, PoolError, PoolErrorKind};
use crate::space::LaneState;
use crate::space::VolumeCore;
use crate::volume::Volume;
use crate::world::World;
use base::{PageIndex, PhysPage};
use futures_util::future::{join_all, select};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// How often the task looks around, unless said otherwise: what is written meanwhile need
/// not be copied.
const PAUSE: Duration = Duration::from_millis(500);

/// Pages made whole at once.
const PAGES_AT_ONCE: usize = 4;

/// Chunks of maps looked at before others have a turn, and how long they have.
const CHUNKS_AT_ONCE: usize = 64;
const REST: Duration = Duration::from_micros(1);

/// How often the task looks around where nothing was to be done.
const TICK: Duration = Duration::from_secs(1);

/// Goes on until the pool is gone, stops or is closed.
pub(super) async fn watch<W: World>(world: W, pool: Weak<LaneState<W>>) {
    loop {
        let (store, pause) = {
            let Some(inner) = pool.upgrade() else { return };
            let _filling = inner.background().fill().await;
            let filled = match inner.backings().backed_pages() > 0 && !inner.store().has_replayed()
            {
                true => Filling::of(&inner).fill_pages().await,
                false => inner.go_on(),
            };
            let pause = match filled {
                Ok(()) => inner.background().fill_pause().unwrap_or(PAUSE),
                Err(_) if inner.go_on().is_err() => return,
                // A drive that is needed does not answer.
                Err(_) => TICK,
            };
            let is_done = inner.backings().backed_pages() == 0;
            (is_done.then(|| Rc::clone(inner.store())), pause)
        };
        if let Some(store) = store {
            let (woken, ticked) = (pin!(store.filler.wait()), pin!(world.sleep(TICK)));
            select(woken, ticked).await;
        }
        world.sleep(pause).await;
    }
}

impl<W: World> Lane<W> {
    /// Sets how often pages are looked for that lie over others.
    pub fn set_fill_pause(&self, pause: Duration) {
        self.inner.background().set_fill_pause(pause);
    }

    /// Makes the pages whole now that lie over others at the call: that would happen by
    /// itself, but not at once, and here is somebody who finds no room. What only backed
    /// them is free then, and what a volume shared with them is its own.
    ///
    /// # Errors
    /// When the pool has stopped; while a drive that is needed does not answer.
    pub async fn free_backings(&self) -> Result<(), PoolError> {
        let _filling = self.inner.background().fill().await;
        Filling::of(&self.inner).fill_pages().await
    }
}

/// Pages that are made whole.
pub(super) struct Filling<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Filling<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Filling { lane }
    }

    /// Makes the pages whole that volumes have at the call.
    async fn fill_pages(&self) -> Result<(), PoolError> {
        self.lane.go_on()?;
        let mut outcome = Ok(());
        let cores: Vec<_> = self.lane.state().volumes.values().cloned().collect();
        for core in cores {
            let (mut next, mut seen) = (0, 0);
            while let Some((index, pages)) = self.backed_of(&core, next) {
                next = index + 1;
                for some in pages.chunks(PAGES_AT_ONCE) {
                    // What is on other drives can be done.
                    let filled = self.fill_some(&core, some).await;
                    self.lane.go_on()?;
                    outcome = outcome.and(filled);
                }
                seen += 1;
                if seen % CHUNKS_AT_ONCE == 0 {
                    self.lane.world().sleep(REST).await;
                    self.lane.go_on()?;
                }
            }
        }
        outcome
    }

    /// The first chunk from `next` on that is there, and its pages that have a backing.
    fn backed_of(
        &self,
        core: &VolumeCore,
        next: usize,
    ) -> Option<(usize, Vec<(PageIndex, PhysPage)>)> {
        let map = core.map.borrow();
        let state = self.lane.state();
        let (index, chunk) = map.chunk_from(next)?;
        let first = (index * chunk.entries().len()) as u64;
        let entries = (first..).zip(chunk.entries());
        let mapped = entries.filter(|(_, entry)| **entry != UNMAPPED);
        let places = mapped.map(|(page, entry)| (PageIndex(page), PhysPage(u64::from(*entry))));
        let backed = places.filter(|(_, phys)| state.backings.get(*phys).is_some());
        Some((index, backed.collect()))
    }

    async fn fill_some(
        &self,
        core: &Rc<VolumeCore>,
        pages: &[(PageIndex, PhysPage)],
    ) -> Result<(), PoolError> {
        let began = self.lane.world().now();
        let fills = pages.iter().map(|(page, phys)| {
            let volume = Volume::new(Rc::clone(self.lane), Rc::clone(core));
            async move { volume.fill_page(*page, *phys).await }
        });
        let (mut bytes, mut outcome) = (0, Ok(()));
        for filled in join_all(fills).await {
            match filled {
                Ok(filled) => bytes += filled.unwrap_or(0),
                Err(error) => {
                    // What was read of it counts, too.
                    bytes += self.lane.page_bytes();
                    let error = PoolError::new(PoolErrorKind::Failed, error.context);
                    outcome = outcome.and(Err(error));
                }
            }
        }
        let rate = self.lane.background().pace().rates().rebuild_bytes_per_s;
        Steps::of(self.lane)
            .rest(Bounds::at_most(rate), bytes, began)
            .await;
        self.lane.go_on()?;
        outcome
    }
}
