//! The space of a volume: its own, and the part that it shares with snapshots and clones.
//!
//! Invariants:
//! - A page is a volume's own when no other volume has it: deleting the volume gives back
//!   exactly these, and what was promised to it. One that the volume itself has at several
//!   places is its own once, and counts as shared for the other places.
//!   One that backs another counts as shared until that is whole.
//! - Nobody waits for the count: it goes through the map a part at a time, and passes what
//!   is shared as a whole (tables) without looking into it. What changes meanwhile may be
//!   counted as it was or as it is.

use super::{Lane, PoolError};
use crate::meta::page_map::{Chunk, TABLE, UNMAPPED};
use crate::meta::{PageMap, Refs};
use crate::space::VolumeCore;
use crate::world::World;
use base::PhysPage;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::time::Duration;

/// Chunks looked at before others have their turn.
const CHUNKS_AT_ONCE: usize = 64;
const REST: Duration = Duration::from_micros(1);

/// What of the pool's space is a volume's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// The size that initiators see, bytes.
    pub provisioned_bytes: u64,
    /// Bytes of pages that it has.
    pub mapped_bytes: u64,
    /// Of these, those that nobody else has, each once.
    pub exclusive_bytes: u64,
    /// And those that snapshots, clones, copies or other places of the volume have, too.
    pub shared_bytes: u64,
    /// Bytes promised to it beyond what it has.
    pub promised_bytes: u64,
}

impl Holdings {
    /// What others can have when it is deleted.
    pub fn reclaimable_bytes(&self) -> u64 {
        self.exclusive_bytes + self.promised_bytes
    }
}

/// What was counted of a map, part by part.
#[derive(Default)]
struct Count {
    /// Pages that nobody else has.
    own: u64,
    /// Of chunks that have several owners, at how many places the volume has them.
    chunks: FxHashMap<*const Chunk, u32>,
    /// Of pages that have several holders, how many of these are the volume's.
    holders: Refs,
}

impl Count {
    /// A chunk that the volume alone has. A page is its own when all of its holders are.
    fn chunk(&mut self, chunk: &Chunk, refs: &Refs) {
        let pages = chunk.entries().iter().filter(|&&entry| entry != UNMAPPED);
        for page in pages.map(|&entry| PhysPage(u64::from(entry))) {
            let beyond = refs.beyond_first(page);
            let seen = self.holders.beyond_first(page);
            self.own += u64::from(seen == beyond);
            if beyond > 0 {
                self.holders.add(page);
            }
        }
    }

    /// A chunk that others have, too, or other places of the volume: whether those are all.
    fn is_last_of(&mut self, chunk: &Rc<Chunk>) -> bool {
        let seen = self.chunks.entry(Rc::as_ptr(chunk)).or_default();
        *seen += 1;
        *seen == chunk.owners()
    }
}

/// Counts the next chunks from `next` on; where to go on, if there is more.
fn count_some(map: &PageMap, refs: &Refs, mut next: usize, count: &mut Count) -> Option<usize> {
    for _ in 0..CHUNKS_AT_ONCE {
        if map.shared_table(next).is_some() {
            next = (next / TABLE + 1) * TABLE;
            continue;
        }
        let (index, chunk) = map.chunk_from(next)?;
        if index / TABLE != next / TABLE {
            // Another table: it may be shared.
            next = index / TABLE * TABLE;
            if map.shared_table(next).is_some() {
                continue;
            }
        }
        next = index + 1;
        if !map.is_shared(index) || count.is_last_of(chunk) {
            count.chunk(chunk, refs);
        }
    }
    Some(next)
}

impl<W: World> Lane<W> {
    /// What a volume holds alone and what it shares.
    ///
    /// # Errors
    /// `NotFound`, or when the pool has stopped.
    pub async fn holdings(&self, name: &str) -> Result<Holdings, PoolError> {
        self.inner.check()?;
        let core = self.existing(name)?;
        let mut count = Count::default();
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.count_part(&core, from, &mut count);
            if next.is_some() {
                self.inner.world().sleep(REST).await;
                self.inner.check()?;
            }
        }
        let info = self.handle(&core).info();
        // Some may have been given back since they were counted.
        let exclusive_bytes = (count.own * info.page_bytes).min(info.mapped_bytes);
        Ok(Holdings {
            provisioned_bytes: info.size_bytes,
            mapped_bytes: info.mapped_bytes,
            exclusive_bytes,
            shared_bytes: info.mapped_bytes - exclusive_bytes,
            promised_bytes: info.promised_bytes,
        })
    }

    fn count_part(&self, core: &VolumeCore, from: usize, count: &mut Count) -> Option<usize> {
        let map = core.map.borrow();
        match self
            .inner
            .world()
            .planted("shared pages counted as exclusive")
        {
            true => count_some(&map, &Refs::default(), from, count),
            false => count_some(&map, &self.inner.state().refs, from, count),
        }
    }
}
