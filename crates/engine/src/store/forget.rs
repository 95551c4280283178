//! Blocks marked as lost where they are moved to, and zones that go out of use.

use super::address::{StripeRef, ZoneAddress};
use super::change::Change;
use super::{Store, Write};
use crate::error::PoolError;
use crate::integrity::Sum;
use crate::ring::Ring;
use crate::world::World;
use base::PoolOffset;
use std::ops::Range;
use std::time::Duration;

/// How often it is looked whether the log has let go.
const PAUSE: Duration = Duration::from_millis(1);

impl<W: World> Store<W> {
    /// Marks a block of a page that nobody maps yet as lost, durably.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn mark_lost(&self, at: PoolOffset) -> Result<(), PoolError> {
        // In place it counts as zeroes, in the parity, too, before it is lost.
        self.write(vec![Write::Zero(at, 1)]).await?;
        let place = self.block_at(at);
        let inside = self.locate(&place);
        let zeroes = self.log.last_stamp();
        {
            let _draining = self.window.drain();
            self.until(|| self.index.borrow().get(inside).is_none())
                .await?;
            // A log that still had the zeroes would put them over the mark after a crash.
            self.let_go_up_to(zeroes, &[&self.log]).await?;
        }
        let _alone = self.locks.lock(inside.stripe).await;
        let blocks = place.zone.blocks_of(inside.stripe);
        let pinned = self.integrity.pin(&place.zone.shape, blocks).await;
        let mut change = Change::new(&place.zone, inside.stripe, pinned);
        change.sums.push((place.block, Sum::LOST));
        change.needs_intent = true;
        self.make(&change).await?;
        // It must be known as lost before anybody maps it.
        self.trim().await
    }

    /// Ends when neither the logs nor RAM know anything of a zone that has no page in
    /// use.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn forget_zone(&self, zone: u32) -> Result<(), PoolError> {
        {
            let _draining = self.window.drain();
            self.let_go_of_zone(zone).await?;
        }
        // What was mended in passing is in no log, and may be on its way to the drives.
        loop {
            self.trim().await?;
            if !self.integrity.is_dirty(zone) {
                break;
            }
        }
        self.integrity.forget_zone(zone);
        self.cache.invalidate(self.blocks_of_zone(zone));
        Ok(())
    }

    /// The pool addresses that a zone takes, in blocks.
    fn blocks_of_zone(&self, zone: u32) -> Range<u64> {
        let numbers = self.drives.numbers().of_zone(zone);
        let pages = numbers.map_or(0..0, |(first, count)| first.0..first.0 + count);
        let of_page = self.page_blocks();
        pages.start * of_page..pages.end * of_page
    }

    async fn let_go_of_zone(&self, zone: u32) -> Result<(), PoolError> {
        // What was begun to be read ahead before its pages moved would bring sums and
        // blocks back; nothing new is begun, since nothing is mapped here.
        let blocks = self.blocks_of_zone(zone);
        self.until(|| !self.cache.fills().any_in(&blocks)).await?;
        let of_zone = |stripe: StripeRef| stripe.zone == zone;
        self.until(|| !self.index.borrow().has_any(of_zone)).await?;
        self.let_go_up_to(self.log.last_stamp(), &[&self.log, &self.intents])
            .await
    }

    /// Waits until no log of these has an entry up to that stamp. The caller has the log
    /// drained.
    pub(super) async fn let_go_up_to(
        &self,
        stamp: u64,
        logs: &[&Ring<W>],
    ) -> Result<(), PoolError> {
        let is_past = |ring: &&Ring<W>| ring.used_bytes() == 0 || ring.tail_stamp() > stamp;
        while !logs.iter().all(is_past) {
            self.check()?;
            self.destager.set();
            self.trim().await?;
            self.world.sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Waits until the destager has brought something about.
    async fn until(&self, is_so: impl Fn() -> bool) -> Result<(), PoolError> {
        while !is_so() {
            self.check()?;
            self.destager.set();
            self.world.sleep(PAUSE).await;
        }
        Ok(())
    }
}
