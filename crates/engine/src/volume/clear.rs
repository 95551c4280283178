//! Clearing: bytes that read as zeroes afterwards, and pages that are given back.
//!
//! Invariants:
//! - Exactly what is cleared changes: of a block or a page that is cleared in part, the
//!   rest stays as it is.
//! - A page is given back once the map says durably that it is not there.
//! - A thick volume keeps its pages: they hold zeroes.

use super::io::{failed, runs};
use super::{IoError, Mapping, Volume, VolumeIo};
use crate::meta::InFlight as _;
use crate::meta::Record;
use crate::space::Claim;
use crate::store::Write;
use crate::world::World;
use base::{BLOCK_BYTES, PageIndex, PhysPage, PoolOffset, VolumeOffset};
use futures_util::future::join;
use std::ops::Range;
use std::rc::Rc;

/// Pages cleared at once: others come in between. More where they are only given back.
const PAGES_AT_ONCE: u64 = 1024;
const GIVEN_BACK_AT_ONCE: u64 = 8192;

impl<W: World> Volume<W> {
    /// Makes `len` bytes from `at`, both multiples of [`base::SECTOR_BYTES`], read as
    /// zeroes; pages of a thin volume that lie in there are given back. When it ends
    /// well that is durable.
    ///
    /// # Errors
    /// `OutOfRange`, `Media`, `Deleted`, `PoolFailed`. After an error each sector holds
    /// what was there or zeroes.
    pub async fn clear(&self, at: VolumeOffset, len: u64) -> Result<(), IoError> {
        if let Some(there) = self.core.live.moved() {
            return there.clear(at, len).await;
        }
        self.check_range(at, len as usize)?;
        self.check_writable(at)?;
        let _operation = self.core.live.begin().ok_or_else(|| self.deleted(at))?;
        let page_bytes = self.inner.page_bytes();
        let end = at.0 + len;
        let mut from = at.0;
        while from < end {
            // What its map says after a move is of no volume any more.
            if let Some(there) = self.core.live.moved() {
                return there.clear(VolumeOffset(from), end - from).await;
            }
            let hole = self.hole(from, end - from);
            if hole > 0 {
                // What is being written there now is written after this.
                from += hole;
                continue;
            }
            let most = match self.keeps_pages() {
                true => PAGES_AT_ONCE,
                false => GIVEN_BACK_AT_ONCE,
            };
            let to = ((from / page_bytes + most) * page_bytes).min(end);
            let cleared = self.clear_piece(from..to).await;
            if cleared.is_err() {
                self.settle(at)?;
            }
            let moved = cleared.map_err(|error| error.within(at, len))?;
            if let Some(there) = moved {
                return there.clear(VolumeOffset(from), end - from).await;
            }
            from = to;
        }
        self.settle(at)
    }

    /// How the volume is mapped from `at` on; looks at a bounded number of pages.
    ///
    /// # Errors
    /// `OutOfRange`, `Deleted`, `PoolFailed`.
    pub fn mapping(&self, at: VolumeOffset) -> Result<Mapping, IoError> {
        self.check_range(at, 0)?;
        if self.core.live.is_deleted() {
            return Err(self.deleted(at));
        }
        let left = self.size_bytes().saturating_sub(at.0);
        let (is_mapped, len_bytes) = self.mapped_run(at.0, left);
        Ok(Mapping {
            is_mapped,
            len_bytes,
        })
    }

    /// Clears a run of bytes, or says where the volume is by now, and does nothing.
    async fn clear_piece(&self, bytes: Range<u64>) -> Result<Option<Rc<dyn VolumeIo>>, IoError> {
        let block = BLOCK_BYTES as u64;
        let outer = bytes.start / block * block..bytes.end.next_multiple_of(block);
        let ranges = &self.core.live.ranges;
        let _range = ranges.exclusive(outer.start, outer.end).await;
        if let Some(there) = self.core.live.moved() {
            return Ok(Some(there));
        }
        self.check_end(VolumeOffset(bytes.start), bytes.end - bytes.start)?;
        let cleared = self.clear_held(bytes.clone(), Claim::Clearing).await;
        Box::pin(self.mirror_clear(bytes, cleared.is_ok())).await;
        cleared.map(|()| None)
    }

    /// Makes bytes zeroes, pages and blocks in part, too; the caller holds the whole blocks
    /// around them.
    pub(super) async fn clear_held(&self, bytes: Range<u64>, claim: Claim) -> Result<(), IoError> {
        let block = BLOCK_BYTES as u64;
        let whole = bytes.start.next_multiple_of(block)..bytes.end / block * block;
        if whole.start > whole.end {
            // Within one block.
            return self.clear_inside_block(bytes).await;
        }
        self.clear_inside_block(bytes.start..whole.start).await?;
        self.clear_blocks(whole.clone(), claim).await?;
        self.clear_inside_block(whole.end..bytes.end).await
    }

    /// A part of one block, or nothing.
    async fn clear_inside_block(&self, bytes: Range<u64>) -> Result<(), IoError> {
        let page = PageIndex(bytes.start / self.inner.page_bytes());
        if bytes.is_empty() || self.lookup(page).is_none() {
            return Ok(());
        }
        let block = BLOCK_BYTES as u64;
        let start = bytes.start / block * block;
        let len = (bytes.end - bytes.start) as usize;
        let zeroes = self.inner.world().buffers().zeroed(len).freeze();
        let at = VolumeOffset(bytes.start);
        let whole = self.whole_blocks(start, start + block, at, zeroes).await?;
        // Where others have it, too, the copy comes out of what is kept back for it.
        self.own(page, Claim::Clearing).await?;
        self.write_blocks(start, whole).await
    }

    /// Whole blocks; the caller holds their range.
    pub(super) async fn clear_blocks(
        &self,
        bytes: Range<u64>,
        claim: Claim,
    ) -> Result<(), IoError> {
        let (world, page_bytes) = (self.inner.world(), self.inner.page_bytes());
        let is_thin = !self.keeps_pages();
        let mut zeroes = Vec::new();
        let mut given_back: Option<Range<u64>> = None;
        for run in runs(page_bytes, bytes.start, (bytes.end - bytes.start) as usize) {
            if self.lookup(run.page).is_none() {
                continue;
            }
            let is_whole =
                run.len as u64 == page_bytes || world.planted("whole page given back for a part");
            if is_thin && is_whole {
                // Pages in between that are not mapped stay so.
                let first = given_back.map_or(run.page.0, |pages| pages.start);
                given_back = Some(first..run.page.0 + 1);
                continue;
            }
            let Some(phys) = self.own(run.page, claim).await? else {
                continue;
            };
            let at = PoolOffset(phys.0 * page_bytes + run.inside);
            let zero = match self.is_backed(phys) {
                // What is not there would be as in the backing.
                true => Write::Data(at, world.buffers().zeroed(run.len).freeze()),
                false => Write::Zero(at, run.len as u64 / BLOCK_BYTES as u64),
            };
            zeroes.push(zero);
        }
        let pages = given_back.clone().unwrap_or_default();
        let at = VolumeOffset(bytes.start);
        let _reserved = self.reserve_maps(PageIndex(pages.start), pages.end - pages.start, at)?;
        let zeroed = async {
            match zeroes.is_empty() {
                true => Ok(()),
                false => self.inner.store().write(zeroes).await,
            }
        };
        let (zeroed, unmapped) = join(zeroed, self.give_back(given_back)).await;
        let outcome = zeroed.and(unmapped);
        outcome.map_err(|error| failed(VolumeOffset(bytes.start), error))
    }

    /// Whether a page lies over another. Nobody makes it whole while the caller holds some
    /// of it.
    fn is_backed(&self, page: PhysPage) -> bool {
        if self.inner.world().planted("zeroes taken for the backing's") {
            return false;
        }
        self.inner.state().backings.get(page).is_some()
    }

    /// Whether pages that are cleared stay its own: of a thick volume, and of one that
    /// is about to be.
    pub(super) fn keeps_pages(&self) -> bool {
        self.core.is_promised.get() || self.core.live.keeps_pages.get()
    }

    /// Pages of a run that others have, too.
    fn shared_in(&self, pages: &Range<u64>) -> Vec<PhysPage> {
        let shared = |page| self.place(PageIndex(page)).filter(|(_, shared)| *shared);
        let places = pages.clone().filter_map(shared);
        places.map(|(phys, _)| phys).collect()
    }

    async fn give_back(&self, pages: Option<Range<u64>>) -> Result<(), crate::error::PoolError> {
        let Some(pages) = pages else { return Ok(()) };
        let unmap = Record::Unmap {
            id: self.core.id,
            page: PageIndex(pages.start),
            count: (pages.end - pages.start) as u32,
        };
        if self.inner.world().planted("unmapping not made durable") {
            let freed = self.inner.spoil(|state| {
                let _ = state.apply(&unmap);
                state.take_freed()
            });
            let freed = freed.into_iter();
            freed.for_each(|page| self.inner.store().release(page));
            return Ok(());
        }
        let freed = match self
            .inner
            .world()
            .planted("unmap of a shared page frees it")
        {
            true => self.shared_in(&pages),
            false => Vec::new(),
        };
        self.inner.journal().commit(vec![unmap]).await?;
        let freed = freed.into_iter();
        freed.for_each(|page| self.inner.store().release(page));
        self.inner.world().reached("pages given back");
        Ok(())
    }
}
