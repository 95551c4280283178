//! What a volume holds alone, and what it shares with snapshots and clones.
//!
//! Invariants:
//! - A page is a volume's own when no other place of any map has it: deleting the volume
//!   gives back exactly these, and what was promised to it.
//! - Nobody waits for the count: it goes through the map a part at a time, and passes what
//!   is shared as a whole (tables) without looking into it. What changes meanwhile may be
//!   counted as it was or as it is.

use super::{Pool, PoolError};
use crate::meta::page_map::{TABLE, UNMAPPED};
use crate::meta::{PageMap, Refs, VolumeCore};
use crate::world::World;
use base::PhysPage;
use std::time::Duration;

/// Chunks looked at before others have their turn.
const CHUNKS_AT_ONCE: usize = 64;
const REST: Duration = Duration::from_micros(1);

/// What of the pool's space is a volume's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// Its size.
    pub provisioned_bytes: u64,
    /// Bytes of pages that it has.
    pub mapped_bytes: u64,
    /// Of these, those that nobody else has.
    pub exclusive_bytes: u64,
    /// And those that snapshots or clones have, too.
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

/// The pages of the next chunks from `next` on that nobody else has; where to go on, if
/// there is more.
fn own_pages(map: &PageMap, refs: &Refs, mut next: usize) -> (u64, Option<usize>) {
    let mut own = 0;
    for _ in 0..CHUNKS_AT_ONCE {
        if map.shared_table(next).is_some() {
            next = (next / TABLE + 1) * TABLE;
            continue;
        }
        let Some((index, chunk)) = map.chunk_from(next) else {
            return (own, None);
        };
        if index / TABLE != next / TABLE {
            // Another table: it may be shared.
            next = index / TABLE * TABLE;
            if map.shared_table(next).is_some() {
                continue;
            }
        }
        next = index + 1;
        if map.is_shared(index) {
            continue;
        }
        let entries = chunk.entries().iter().filter(|&&entry| entry != UNMAPPED);
        let alone = entries.filter(|&&entry| refs.beyond_first(PhysPage(u64::from(entry))) == 0);
        own += alone.count() as u64;
    }
    (own, Some(next))
}

impl<W: World> Pool<W> {
    /// What a volume holds alone and what it shares.
    ///
    /// # Errors
    /// `NotFound`, or when the pool has stopped.
    pub async fn holdings(&self, name: &str) -> Result<Holdings, PoolError> {
        self.inner.check()?;
        let core = self.existing(name)?;
        let mut own = 0;
        let mut next = Some(0);
        while let Some(from) = next {
            let (pages, more) = self.own_part(&core, from);
            own += pages;
            next = more;
            if next.is_some() {
                self.inner.world.sleep(REST).await;
                self.inner.check()?;
            }
        }
        let info = self.handle(&core).info();
        // Some may have been given back since they were counted.
        let exclusive_bytes = (own * info.page_bytes).min(info.mapped_bytes);
        Ok(Holdings {
            provisioned_bytes: info.size_bytes,
            mapped_bytes: info.mapped_bytes,
            exclusive_bytes,
            shared_bytes: info.mapped_bytes - exclusive_bytes,
            promised_bytes: info.promised_bytes,
        })
    }

    fn own_part(&self, core: &VolumeCore, from: usize) -> (u64, Option<usize>) {
        let map = core.map.borrow();
        match self
            .inner
            .world
            .planted("shared pages counted as exclusive")
        {
            true => own_pages(&map, &Refs::default(), from),
            false => own_pages(&map, &self.inner.state.borrow().refs, from),
        }
    }
}
