//! The first write to a shared page: a new page for the written data, over the page that the others
//! keep.
//!
//! Invariants:
//! - What is not written is in the backing; what the old page had beyond that is copied.
//!   So a page lies over one other, never over more.
//! - When the map has the new page and a crash takes what was on its way there, all of it
//!   reads as before.

use super::io::{Run, failed};
use super::{IoError, Volume};
use crate::meta::Record;
use crate::meta::backing::BACKED_MAX;
use crate::space::{Backing, Claim};
use crate::store::Write;
use crate::world::World;
use base::{BLOCK_BYTES, PhysPage, PoolOffset, Slice, VolumeOffset};
use futures_util::future::join;
use std::ops::Range;

/// What a new page is to lie over.
struct Under {
    backing: PhysPage,
    /// What the old page has beyond its backing, and where in the page.
    copies: Vec<(u64, Slice)>,
    /// Whether the old page has nothing beyond the backing, not even where it is written now:
    /// then the backing alone reads as it does.
    is_alike: bool,
    /// Keeps the backing there.
    _held: Option<Backing>,
}

impl<W: World> Volume<W> {
    /// Writes a part of a page that others have. False when nothing is written, and the
    /// map has to be looked at again.
    ///
    /// # Errors
    /// `PoolFull`, `PoolFailed`.
    pub(super) async fn overlay(&self, run: Run, data: &Slice) -> Result<bool, IoError> {
        let Some(_allocation) = self.core.live.allocate(run.page).await else {
            return Ok(false);
        };
        let Some(from) = self.shared(run.page) else {
            return Ok(false);
        };
        let under = match self.may_overlay(run) {
            true => self.under(run, from).await,
            false => None,
        };
        let Some(under) = under else {
            self.copy_private(run.page, from, Claim::Open).await?;
            return Ok(false);
        };
        let at = VolumeOffset(run.page.0 * self.inner.page_bytes() + run.inside);
        let chunks = self.core.map.borrow().shared_chunks(run.page, 1);
        // It stands in checkpoints, also where the chunk is nobody else's.
        let _reserved = self.reserve_chunks(chunks.max(1), at)?;
        let (to, _) = match self.take(1, at, Claim::Open).await {
            Ok(taken) => taken,
            // Others have let go of it meanwhile: it is ours.
            Err(_) if self.shared(run.page).is_none() => return Ok(false),
            Err(full) => return Err(full),
        };
        self.write_over(run, data, to, under).await?;
        self.inner.store().filler.set();
        self.inner.world().reached("page laid over another");
        Ok(true)
    }

    /// Whether there is room for pages that keep others from being free.
    fn may_overlay(&self, run: Run) -> bool {
        (run.len as u64) < self.inner.page_bytes()
            && self.inner.backings().backed_pages() < BACKED_MAX
            && self.has_room_to_move()
    }

    /// What a new page instead of `from` is to lie over; none when it had better have all
    /// of its content itself.
    async fn under(&self, run: Run, from: PhysPage) -> Option<Under> {
        if self.inner.backings().is_becoming_whole(from) {
            return None;
        }
        let Some(held) = self.inner.backings().backing(from) else {
            return Some(Under {
                backing: from,
                copies: Vec::new(),
                is_alike: true,
                _held: None,
            });
        };
        let page_bytes = self.inner.page_bytes();
        let store = self.inner.store();
        let start = PoolOffset(from.0 * page_bytes);
        let runs = store.own_runs(start, page_bytes as usize).await;
        let written = run.inside as usize..run.inside as usize + run.len;
        let own: Vec<_> = runs.into_iter().filter(|(_, own)| *own).collect();
        let is_alike = own.is_empty();
        let own: Vec<Range<usize>> = own
            .into_iter()
            .flat_map(|(bytes, _)| without(bytes, &written))
            .collect();
        if own.iter().map(|bytes| bytes.len() as u64).sum::<u64>() * 2 > page_bytes {
            return None;
        }
        let mut copies = Vec::new();
        for bytes in own {
            let payload = store
                .read(start + bytes.start as u64, bytes.len())
                .await
                .ok()?;
            let mut at = bytes.start as u64;
            for part in payload.parts {
                let len = part.len() as u64;
                copies.push((at, part));
                at += len;
            }
        }
        self.inner.world().reached("part of a page copied");
        Some(Under {
            backing: held.page,
            copies,
            is_alike,
            _held: Some(held),
        })
    }

    async fn write_over(
        &self,
        run: Run,
        data: &Slice,
        to: PhysPage,
        under: Under,
    ) -> Result<(), IoError> {
        let page_bytes = self.inner.page_bytes();
        let start = PoolOffset(to.0 * page_bytes);
        let blocks = page_bytes / BLOCK_BYTES as u64;
        let is_clean = !self.inner.store().needs_zeroing(start, blocks).await;
        let mut parts = under.copies;
        parts.push((run.inside, data.clone()));
        parts.sort_by_key(|(at, _)| *at);
        let mut writes = Vec::new();
        if !is_clean {
            let gaps = gaps(&parts, page_bytes).into_iter();
            writes.extend(gaps.map(|gap| {
                let blocks = (gap.end - gap.start) / BLOCK_BYTES as u64;
                Write::Zero(start + gap.start, blocks)
            }));
        }
        let parts = parts.into_iter();
        writes.extend(parts.map(|(at, data)| Write::Data(start + at, data)));
        let map = Record::Overlay {
            id: self.core.id,
            page: run.page,
            phys: to,
            backing: under.backing,
        };
        let (written, journal) = (self.inner.store().write(writes), self.inner.journal());
        let mapped = journal.commit(vec![map]);
        // Until it is written, a page of which nothing was ever written reads as its backing.
        let at_once = is_clean && under.is_alike;
        let outcome = match at_once || self.inner.world().planted("overlay before its content") {
            true => {
                let (written, mapped) = join(written, mapped).await;
                written.and(mapped)
            }
            false => match written.await {
                Ok(()) => mapped.await,
                Err(error) => Err(error),
            },
        };
        self.core.live.copied.add(run.page);
        // When this fails the pool has stopped: the page stays taken, mapped or not.
        outcome.map_err(|error| failed(VolumeOffset(run.page.0 * page_bytes), error))
    }
}

/// What is left of `bytes` without `other`.
fn without(bytes: Range<usize>, other: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let before = bytes.start..bytes.end.min(other.start);
    let after = bytes.start.max(other.end)..bytes.end;
    [before, after]
        .into_iter()
        .filter(|part| part.start < part.end)
}

/// What of a page is in none of `parts`, which are in order.
fn gaps(parts: &[(u64, Slice)], page_bytes: u64) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    let mut at = 0;
    for (start, data) in parts {
        if *start > at {
            gaps.push(at..*start);
        }
        at = start + data.len() as u64;
    }
    if at < page_bytes {
        gaps.push(at..page_bytes);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn what_is_left_of_a_run_and_what_is_between_parts() {
        let left = |bytes, other: Range<usize>| -> Vec<(usize, usize)> {
            let parts = without(bytes, &other);
            parts.map(|part| (part.start, part.end)).collect()
        };
        assert_eq!(left(4..8, 5..6), [(4, 5), (6, 8)]);
        assert_eq!(left(4..8, 0..5), [(5, 8)]);
        assert_eq!(left(4..8, 7..9), [(4, 7)]);
        assert_eq!(left(4..8, 4..8), []);
        assert_eq!(left(4..8, 9..10), [(4, 8)]);
        let pool = base::BufPool::default();
        let data = |len| pool.zeroed(len).freeze();
        let parts = [(4096, data(4096)), (8192, data(4096)), (16384, data(4096))];
        assert_eq!(gaps(&parts, 32768), [0..4096, 12288..16384, 20480..32768]);
        assert_eq!(gaps(&parts[2..], 20480).len(), 1);
    }
}
