//! Taking zones into use, and giving out their pages.
//!
//! A zone's sums are written before the record that it is in use is durable: what
//! was there before is never taken for anything.

use super::{Claim, LaneState};
use crate::drives::Group;
use crate::error::{PoolError, PoolErrorKind};
use crate::meta::Record;
use crate::world::World;
use base::PhysPage;
use std::rc::Rc;
use std::time::Duration;

/// How long to wait for the other lanes of the pool to be open.
const OTHERS_OPEN: Duration = Duration::from_millis(1);

impl<W: World> LaneState<W> {
    /// Takes a run of free pages, `max` at most, consecutive. None when the pool is
    /// full: also of pages that are kept free to empty a zone.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn take_pages(
        self: &Rc<Self>,
        max: u64,
        claim: Claim,
    ) -> Result<Option<(PhysPage, u64)>, PoolError> {
        loop {
            let taken = self.take_free(max, claim).await?;
            if taken.is_some() || !self.stop_emptying() {
                return Ok(taken);
            }
        }
    }

    /// Has the zone that is being emptied give out its free pages again: whoever writes
    /// goes before it. False when there is none.
    pub(crate) fn stop_emptying(&self) -> bool {
        let called_off = self.zone_changes.call_off_emptying();
        if called_off {
            self.world.reached("zone is not emptied for want of pages");
        }
        called_off
    }

    /// Takes a run of free pages, but for those of a zone that is being emptied.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn take_free(
        self: &Rc<Self>,
        max: u64,
        claim: Claim,
    ) -> Result<Option<(PhysPage, u64)>, PoolError> {
        loop {
            let spare = self.spare(max.max(1), claim);
            if spare > 0 {
                let was_promised = claim == Claim::Promised;
                return Ok(self.pages.allocate(spare.min(max), was_promised));
            }
            if !self.open_zone(claim).await? {
                return Ok(None);
            }
        }
    }

    /// As [`LaneState::take_pages`]; but while overwrites are on their way to new pages,
    /// a full pool is so only for a moment.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn take_pages_or_wait(
        self: &Rc<Self>,
        max: u64,
        claim: Claim,
    ) -> Result<Option<(PhysPage, u64)>, PoolError> {
        loop {
            let moving = self.zone_changes.are_pages_moving();
            let taken = self.take_pages(max, claim).await?;
            if taken.is_some() {
                return Ok(taken);
            }
            // They may have begun while a zone was taken into use for us.
            if !(moving || self.zone_changes.are_pages_moving()) {
                return self.take_lent(max, claim).await;
            }
            self.world.sleep(Duration::from_micros(100)).await;
            self.check()?;
        }
    }

    /// Pages that could still be given out, zones not yet in use included.
    pub fn free_pages(&self) -> u64 {
        self.space().free() + self.drives.unopened_pages()
    }

    /// Takes another zone into use, of the group that has the fewest free pages.
    /// False when there is none. When somebody else just did, that counts, too.
    async fn open_zone(self: &Rc<Self>, claim: Claim) -> Result<bool, PoolError> {
        let _alone = self.zone_changes.settle().await;
        if self.spare(1, claim) > 0 {
            return Ok(true);
        }
        if self.space().free() > 0 && self.drives.lane().registry.lanes() == 1 {
            // What there is, of zones not in use, too, is promised.
            return Ok(false);
        }
        self.open_zones().await
    }

    /// Takes another zone of each group into use; false when there is none. The caller
    /// holds the lock.
    pub(crate) async fn open_zones(self: &Rc<Self>) -> Result<bool, PoolError> {
        let lane = self.drives.lane();
        while !lane.registry.all_opened() {
            self.world.sleep(OTHERS_OPEN).await;
            self.go_on()?;
        }
        let mut opened = false;
        // All groups together, so that pages are spread over all of them.
        for group in self.drives.groups() {
            if !self.drives.takes_zones(&group) {
                continue;
            }
            let zones = group.first_zone..group.first_zone + group.zones;
            if let Some(zone) = lane.registry.take_zone(lane.index, zones) {
                self.zone_on(&group, zone).await?;
                opened = true;
            }
        }
        Ok(opened)
    }

    async fn zone_on(self: &Rc<Self>, group: &Rc<Group<W>>, number: u32) -> Result<(), PoolError> {
        let next = self.state().next_incarnation;
        let (level, incarnation) = (group.level(), self.drives.lane().incarnation(next));
        let invalid = |context| PoolError::new(PoolErrorKind::Invalid, context);
        let zone = self
            .drives
            .zone_on(number, level, incarnation)
            .map_err(invalid)?;
        let formatted = self.store.integrity.format_zone(&zone).await;
        formatted.map_err(|error| {
            let context = format!("zone {number} can't be taken into use: {error}");
            self.stop(context.clone());
            PoolError::new(PoolErrorKind::Drive, context)
        })?;
        // Rebuilds under way have nothing to do here: a new zone is written whole.
        let mut records = vec![Record::ZoneOn {
            zone: number,
            level,
            incarnation,
        }];
        for member in group.places() {
            if member.state() == crate::label::MemberState::Rebuilding {
                member.rebuilt().borrow_mut().insert(number);
                records.push(Record::Rebuilt {
                    member: member.uuid,
                    zone: number,
                });
            }
        }
        self.commit(records).await?;
        self.world.reached("zone taken into use");
        let pages = zone.pages(self.page_bytes());
        self.zone_changes.add(number, group.index, pages);
        Ok(())
    }
}
