//! Pages that exist as if they had been written long ago, without a write of their data.
//!
//! For runs over modelled drives, whose volumes would take days to fill. Invariants:
//! - Only where buffers have no bytes: elsewhere a page would show what the drives held.
//! - Space, map and sums are what they are after a write of the whole range in order, and
//!   everything that was written before stays as it is.

use super::io::failed;
use super::{IoError, IoErrorKind, Volume};
use crate::meta::Record;
use crate::world::World;
use base::{BLOCK_BYTES, PageIndex, PhysPage, PoolOffset, VolumeOffset};
use std::ops::Range;

/// Pages mapped by one commit.
const PAGES_AT_ONCE: u64 = 16 << 10;

impl<W: World> Volume<W> {
    /// Maps all pages of `bytes` (whole sectors), those at its edges included, that are not mapped yet, and
    /// has them count as written. Returns how many bytes of pages that were. No data is
    /// read or written; what it costs is metadata, and zones that are taken into use.
    ///
    /// # Errors
    /// `OutOfRange`, `PoolFull` (what fits is mapped), `Deleted`, `ReadOnly`, `Withheld` of
    /// one that goes to another pool, `PoolFailed`.
    ///
    /// # Panics
    /// In a world whose buffers have bytes.
    pub async fn lay_out(&self, bytes: Range<u64>) -> Result<u64, IoError> {
        assert!(
            self.inner.world().buffers().is_length_only(),
            "pages are laid out unwritten only where buffers have no bytes"
        );
        let (at, len) = (VolumeOffset(bytes.start), bytes.end - bytes.start);
        self.check_range(at, len as usize)?;
        self.check_writable(at)?;
        let _operation = self.core.live.begin().ok_or_else(|| self.deleted(at))?;
        let page_bytes = self.inner.page_bytes();
        let pages = bytes.start / page_bytes..bytes.end.div_ceil(page_bytes);
        let ranges = &self.core.live.ranges;
        let _range = ranges
            .exclusive(pages.start * page_bytes, pages.end * page_bytes)
            .await;
        self.check_end(at, len)?;
        self.check_stays_here(at)?;
        let (mut next, mut laid_out) = (pages.start, 0);
        while next < pages.end {
            let most = PAGES_AT_ONCE.min(pages.end - next);
            let (is_mapped, alike) = self.core.map.borrow().alike(PageIndex(next), most);
            if !is_mapped {
                self.lay_out_hole(PageIndex(next), alike).await?;
                laid_out += alike * page_bytes;
            }
            next += alike;
        }
        self.settle(at)?;
        Ok(laid_out)
    }

    /// Maps a run of pages that are not mapped; the caller holds them.
    async fn lay_out_hole(&self, first: PageIndex, count: u64) -> Result<(), IoError> {
        let at = VolumeOffset(first.0 * self.inner.page_bytes());
        let _reserved = self.reserve_new_pages(first, count, at)?;
        // Groups take their turns as they do for who writes in order.
        let groups = self.inner.drives().groups().len();
        let most = self.inner.space().run_pages(groups);
        let mut records = Vec::new();
        let mut done = 0;
        let refused = loop {
            if done == count {
                break None;
            }
            let run = most.min(count - done);
            let (phys, pages) = match self.take(run, at, self.claim()).await {
                Ok(taken) => taken,
                Err(error) => break Some(error),
            };
            self.count_as_written(phys, pages);
            records.push(Record::Map {
                id: self.core.id,
                page: PageIndex(first.0 + done),
                phys,
                count: pages as u32,
            });
            done += pages;
        };
        let mapped = self.inner.journal().commit(records).await;
        mapped.map_err(|error| failed(at, error))?;
        refused.map_or(Ok(()), Err)
    }

    fn count_as_written(&self, phys: PhysPage, pages: u64) {
        let (store, page_bytes) = (self.inner.store(), self.inner.page_bytes());
        let first = store.block_at(PoolOffset(phys.0 * page_bytes));
        let blocks = pages * page_bytes / BLOCK_BYTES as u64;
        let run = first.block..first.block + blocks;
        store.integrity.lay_out(&first.zone, run);
    }

    /// That it is neither another pool's nor on its way there, where nothing would be laid
    /// out.
    fn check_stays_here(&self, at: VolumeOffset) -> Result<(), IoError> {
        if self.core.live.moved().is_none() && self.core.live.mirror().is_none() {
            return Ok(());
        }
        Err(IoError {
            kind: IoErrorKind::Withheld,
            at,
            context: format!(
                "volume '{}' goes to another pool: lay it out when it is there",
                self.core.name
            ),
        })
    }
}
