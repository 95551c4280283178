//! Giving out free pages, of zones in use and of others that come into use for it: [`Supply`].
//!
//! Invariants:
//! - A page that is given out is one that its [`Claim`] may have ([`super::promise`]).
//! - The pool is full only when no zone can come into use, and none is being emptied. Besides, no
//!   overwrite is about to give back a page then, and no other lane lends a zone.

use super::LaneState;
use super::promise::Claim;
use super::zones::{WAIT, WAITS};
use crate::error::PoolError;
use crate::lane::Purpose;
use crate::world::World;
use base::PhysPage;
use std::rc::Rc;
use std::time::Duration;

/// Where a lane has its free pages from.
pub(crate) struct Supply<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Supply<'a, W> {
    pub(crate) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Supply { lane }
    }

    /// As [`Supply::take_pages`]; but while overwrites are on their way to new pages,
    /// a full pool is so only for a moment.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn take_pages_or_wait(
        &self,
        max: u64,
        claim: Claim,
    ) -> Result<Option<(PhysPage, u64)>, PoolError> {
        loop {
            let moving = self.lane.zone_changes.are_pages_moving();
            let taken = self.take_pages(max, claim).await?;
            if taken.is_some() {
                return Ok(taken);
            }
            // They may have begun while a zone was taken into use for us.
            if !(moving || self.lane.zone_changes.are_pages_moving()) {
                return self.take_lent(max, claim).await;
            }
            self.lane.world.sleep(Duration::from_micros(100)).await;
            self.lane.check()?;
        }
    }

    /// Takes a run of free pages, `max` at most, consecutive. None when the pool is
    /// full: also of pages that are kept free to empty a zone.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn take_pages(
        &self,
        max: u64,
        claim: Claim,
    ) -> Result<Option<(PhysPage, u64)>, PoolError> {
        loop {
            let taken = self.take_free(max, claim).await?;
            if taken.is_some() || !self.lane.zones_in_use().stop_emptying() {
                return Ok(taken);
            }
        }
    }

    /// Takes a run of free pages, but for those of a zone that is being emptied.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn take_free(
        &self,
        max: u64,
        claim: Claim,
    ) -> Result<Option<(PhysPage, u64)>, PoolError> {
        loop {
            let spare = self.lane.pledges().spare(max.max(1), claim);
            if spare > 0 {
                let was_promised = claim == Claim::Promised;
                return Ok(self.lane.pages.allocate(spare.min(max), was_promised));
            }
            if !self.open_zone(claim).await? {
                return Ok(None);
            }
        }
    }

    /// Takes another zone into use, of the group that has the fewest free pages.
    /// False when there is none. When somebody else just did, that counts, too.
    async fn open_zone(&self, claim: Claim) -> Result<bool, PoolError> {
        let _alone = self.lane.zone_changes.settle().await;
        if self.lane.pledges().spare(1, claim) > 0 {
            return Ok(true);
        }
        if self.lane.space().free() > 0 && self.lane.drives.lane().registry.lanes() == 1 {
            // What there is, of zones not in use, too, is promised.
            return Ok(false);
        }
        self.lane.zones_in_use().open_zones().await
    }

    /// Takes pages of a zone that another lane lends; none when no lane can, or does in
    /// time.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub(crate) async fn take_lent(
        &self,
        max: u64,
        claim: Claim,
    ) -> Result<Option<(PhysPage, u64)>, PoolError> {
        let lane = self.lane.drives.lane();
        if lane.registry.lanes() == 1 {
            return Ok(None);
        }
        let request = lane.registry.request_zone(lane.index, Purpose::Write);
        for _ in 0..WAITS {
            let answered = request.is_refused();
            // What came between the answer and now counts, too. A zone that was too small does not
            // end it.
            let taken = self.take_pages(max, claim).await?;
            if taken.is_some() || answered && request.is_refused() {
                return Ok(taken);
            }
            self.lane.world.sleep(WAIT).await;
            self.lane.check()?;
        }
        Ok(None)
    }
}
