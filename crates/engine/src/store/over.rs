//! Pages that lie over another: the blocks of their own, and reads through to the rest.
//!
//! A block is a page's own when something was written to it there; what reads as "never
//! written", in the log or by its sum, is its backing's. Whoever reads holds the backing
//! in place: see [`crate::volume`], `backing`.

use super::address::ZoneAddress;
use super::index::Content;
use super::read::Unreadable;
use super::{BLOCK, Store};
use crate::integrity::Sum;
use crate::world::World;
use base::{BLOCK_BYTES, Payload, PoolOffset};
use futures_util::future::join_all;
use std::ops::Range;

impl<W: World> Store<W> {
    /// The runs of blocks at `at` that are alike: bytes from `at` on, and whether they are
    /// the page's own.
    pub async fn own_runs(&self, at: PoolOffset, len: usize) -> Vec<(Range<usize>, bool)> {
        let place = self.block_at(at);
        let (zone, first, count) = (place.zone, place.block, len as u64 / BLOCK);
        let _pinned = self.pin_unless_cached(&zone, first, count).await;
        let index = self.index.borrow();
        let mut runs: Vec<(Range<usize>, bool)> = Vec::new();
        for (offset, block) in (first..first + count).enumerate() {
            let own = match index.get(zone.locate(block)) {
                Some(logged) => matches!(logged.content, Content::Data(_)),
                None => {
                    let Some(sum) = self.integrity.peek(&zone.shape, block) else {
                        unreachable!("a pinned block has its sum in RAM")
                    };
                    sum != Sum::UNWRITTEN
                }
            };
            let bytes = offset * BLOCK_BYTES..(offset + 1) * BLOCK_BYTES;
            match runs.last_mut() {
                Some((run, alike)) if *alike == own => run.end = bytes.end,
                _ => runs.push((bytes, own)),
            }
        }
        runs
    }

    /// Reads `len` bytes at `at`, and what is not there from the same place of its backing.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub async fn read_over(
        &self,
        at: PoolOffset,
        backing: PoolOffset,
        len: usize,
    ) -> Result<Payload, Unreadable> {
        let runs = self.own_runs(at, len).await;
        let reads = runs.iter().map(async |(bytes, own)| {
            let from = if *own { at } else { backing };
            let read = self.read(from + bytes.start as u64, bytes.len()).await;
            read.map_err(|unreadable| Unreadable {
                start: bytes.start + unreadable.start,
                ..unreadable
            })
        });
        let mut payload = Payload::new();
        for part in join_all(reads).await {
            part?
                .parts
                .into_iter()
                .for_each(|slice| payload.push(slice));
        }
        Ok(payload)
    }
}
