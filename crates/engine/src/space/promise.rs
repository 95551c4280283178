//! The claims on the last free pages: those promised to thick volumes ([`Pledges`]), and those kept
//! back.
//!
//! Invariants:
//! - The free pages of zones in use, and of those that the lane can have by itself, are as
//!   many as are promised ([`crate::meta::Promises`]) and not given out. So a thick volume
//!   finds its pages whatever the others write.
//! - The only lane of a pool can have every zone. With several lanes another may be
//!   quicker, so what is promised lies in zones that are in use.
//! - Some pages are kept back for who clears a part of a page that others have, too: space
//!   can be given back when there is none. Deleting takes none at all: the metadata has
//!   room of its own on the drives for the worst that can be.

use super::VolumeCore;
use super::zones::{WAIT, WAITS};
use crate::error::{PoolError, PoolErrorKind};
use crate::lane::Purpose;
use crate::meta::Promise;
use crate::space::LaneState;
use crate::world::World;
use base::size::human_pair;
use std::rc::Rc;
use std::time::Duration;

/// Of so many pages one is kept back, and this many at most.
const KEPT_OF: u64 = 64;
const KEPT_MAX: u64 = 64;

/// How long to wait for pages that are on their way.
const MOVING: Duration = Duration::from_micros(100);

/// On what ground pages are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// None: what is neither promised nor kept back.
    Open,
    /// They were promised.
    Promised,
    /// A copy of a page to be cleared in part.
    Clearing,
}

/// Of so many pages in all, those kept back.
pub(crate) fn kept_of(pages: u64) -> u64 {
    (pages / KEPT_OF).min(KEPT_MAX)
}

/// What a lane has promised of its free pages, and what it keeps back.
pub(crate) struct Pledges<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Pledges<'a, W> {
    pub(crate) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Pledges { lane }
    }

    /// Free pages of zones in use that `claim` may have, as far as somebody is
    /// interested in: `max`.
    pub(crate) fn spare(&self, max: u64, claim: Claim) -> u64 {
        let (free, pages) = {
            let space = self.lane.space();
            (space.free(), space.pages())
        };
        let held = match claim {
            Claim::Promised => 0,
            _ if self.lane.world.planted("promised pages given to anybody") => 0,
            Claim::Open => self.lane.promised_pages() + kept_of(pages),
            Claim::Clearing => self.lane.promised_pages(),
        };
        let spare = free.saturating_sub(held);
        if spare >= max.min(free) {
            return spare;
        }
        // Zones that nobody else can have are as good.
        free.min((free + self.own_unopened()).saturating_sub(held))
    }

    /// Pages of zones not in use that nobody else can have.
    fn own_unopened(&self) -> u64 {
        match self.lane.drives.lane().registry.lanes() {
            1 => self.lane.drives.unopened_pages(),
            _ => 0,
        }
    }

    /// Pages of the lane that nobody has and that are not promised, zones not in use
    /// included.
    pub(crate) fn unpromised_pages(&self) -> u64 {
        self.lane
            .free_pages()
            .saturating_sub(self.lane.promised_pages())
    }

    /// Whether what is promised has room in the free pages, without those of a zone that
    /// is being emptied.
    pub(crate) fn keeps_promises(&self) -> bool {
        let free = self.lane.space().free() + self.own_unopened();
        free >= self.lane.promised_pages()
    }

    /// Sets so many pages aside, to be promised by records that come next. What those do
    /// not need, `unpledge` gives back. False, and nothing set aside, when there are too
    /// few. One at a time: the caller holds the administration's lock.
    ///
    /// # Errors
    /// `Full` when the metadata has no room for their maps; when the pool has stopped.
    pub(crate) async fn pledge(&self, promise: Promise) -> Result<bool, PoolError> {
        let _reserved = self.lane.metadata_room().reserve_promise(promise)?;
        let pages = promise.pages;
        let lane = self.lane.drives.lane();
        let (mut asked, mut request) = (0, None);
        let waits = match self.lane.world.planted("lanes are not waited for") {
            true => WAITS / 12,
            false => WAITS,
        };
        loop {
            if self.can_promise(pages)
                || self.lane.world.planted("pages promised that are not there")
            {
                self.lane.pages.pledge(promise);
                return Ok(true);
            }
            let others = lane.registry.lanes() > 1;
            if others && self.open_another().await? || self.stop_emptying_for(pages) {
                continue;
            }
            if self.lane.zone_changes.are_pages_moving() {
                self.lane.world.sleep(MOVING).await;
                self.lane.check()?;
                continue;
            }
            if !others || asked == waits {
                return Ok(false);
            }
            asked += 1;
            let ask = || lane.registry.request_zone(lane.index, Purpose::Promise);
            let answered = request.get_or_insert_with(ask).is_refused();
            // What came between the answer and now counts, too.
            if !self.open_another().await? {
                if answered {
                    return Ok(self.can_promise(pages) && self.pledge_now(promise));
                }
                self.lane.world.sleep(WAIT).await;
                self.lane.check()?;
            }
        }
    }

    fn pledge_now(&self, promise: Promise) -> bool {
        self.lane.pages.pledge(promise);
        true
    }

    /// The change that pages were set aside for is over.
    pub(crate) fn unpledge(&self) {
        self.lane.pages.unpledge();
    }

    /// What was set aside is promised to a volume that is about to be thick.
    pub(crate) fn promise_pledged(&self, core: &VolumeCore) {
        self.lane.pages.promise(core);
    }

    /// Has the zone that is being emptied give out its free pages again, if these are what is missing
    /// to promise so many. False when nothing has changed.
    fn stop_emptying_for(&self, pages: u64) -> bool {
        let free = {
            let space = self.lane.space();
            space.pages() - space.used()
        };
        self.can_promise_of(free, pages) && self.lane.zones_in_use().stop_emptying()
    }

    fn can_promise(&self, pages: u64) -> bool {
        let free = self.lane.space().free();
        self.can_promise_of(free, pages)
    }

    /// As [`Pledges::can_promise`], if there were so many free pages.
    fn can_promise_of(&self, free: u64, pages: u64) -> bool {
        let own = self.own_unopened();
        let all = self.lane.space().pages() + own;
        free + own >= self.lane.promised_pages() + kept_of(all) + pages
    }

    async fn open_another(&self) -> Result<bool, PoolError> {
        let _alone = self.lane.zone_changes.settle().await;
        self.lane.zones_in_use().open_zones().await
    }

    /// Pages of a volume, mapped or promised, up to its end.
    pub(crate) fn pages_of(&self, core: &VolumeCore) -> u64 {
        let mapped = core.map.borrow().mapped();
        mapped + core.unmapped_pages(self.lane.page_bytes())
    }

    /// That so many pages can't be promised to a volume.
    pub(crate) fn no_room_for(&self, name: &str, pages: u64) -> PoolError {
        let page_bytes = self.lane.page_bytes();
        let all = self.lane.space().pages() + self.own_unopened();
        let left = self.unpromised_pages().saturating_sub(kept_of(all));
        let (needed, left) = human_pair(pages * page_bytes, left * page_bytes);
        let context = format!(
            "thick volume '{name}' needs {needed} more, and pool '{}' has {left} left that are not promised: delete volumes or make it thin",
            self.lane.identity().name,
        );
        PoolError::new(PoolErrorKind::Full, context)
    }
}
