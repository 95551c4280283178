//! What the pool does by itself: makes copies equal after a crash, and marks
//! regions clean that nobody writes to.

use super::{Inner, Pool, PoolError};
use crate::meta::Record;
use crate::world::World;
use base::GroupOffset;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// How often idle regions are looked for.
const TICK: Duration = Duration::from_secs(1);

/// Copies are made equal this much at a time; writes there wait for it.
const EQUALISE_BYTES: u64 = 256 << 10;

impl<W: World> Pool<W> {
    /// Starts the upkeep of a pool that is ready for use.
    pub(super) fn start(inner: Rc<Inner<W>>) -> Self {
        if inner.has_copies() {
            let world = inner.world.clone();
            world.spawn(keep_up(world.clone(), Rc::downgrade(&inner)));
        }
        Pool { inner }
    }
}

async fn keep_up<W: World>(world: W, pool: Weak<Inner<W>>) {
    loop {
        {
            let Some(inner) = pool.upgrade() else { return };
            if inner.check().is_err() {
                return;
            }
            inner.equalise_next_suspect().await;
            if inner.regions.borrow().next_suspect().is_some() {
                continue;
            }
            // An error here means that the pool has stopped; the next turn sees it.
            let _ = inner.clean_idle_regions(inner.region_idle.get()).await;
        }
        world.sleep(TICK).await;
    }
}

impl<W: World> Inner<W> {
    /// Makes the copies of one suspect region equal.
    async fn equalise_next_suspect(&self) {
        let Some(region) = self.regions.borrow().next_suspect() else {
            return;
        };
        let (start, len) = self.regions.borrow().span(region);
        let end = (start.0 + len).min(self.space.borrow().pages() * self.page_bytes());
        let mut at = start.0;
        while at < end {
            let run = EQUALISE_BYTES.min(end - at);
            let _alone = self.equalising.exclusive(at, at + run).await;
            if self.check().is_err() {
                return;
            }
            if let Err(error) = self.equalise(GroupOffset(at), run as usize).await {
                self.stop(format!("copies can't be made equal: {error}"));
                return;
            }
            at += run;
        }
        self.regions.borrow_mut().equalised(region);
    }

    /// Marks as clean the regions without writes for `idle`.
    pub(super) async fn clean_idle_regions(
        self: &Rc<Self>,
        idle: Duration,
    ) -> Result<(), PoolError> {
        let now = self.world.now();
        let regions = self.regions.borrow_mut().take_idle(now, idle);
        let clean = regions
            .into_iter()
            .map(|region| Record::Clean { region, count: 1 });
        self.commit(clean.collect()).await
    }
}
