//! Loading many blocks of sums at once, for passes over whole zones.
//!
//! Invariant: blocks are marked as being loaded before their copies are read, so that nobody writes
//! them meanwhile.

use super::{Integrity, Slot, key};
use crate::drives::Zone;
use crate::world::World;
use futures_util::future::join_all;
use std::collections::BTreeSet;

/// Blocks that are loaded at once, at most: with three copies of each they are 24 MiB on the drives.
const BLOCKS_AT_ONCE: usize = 1024;

impl<W: World> Integrity<W> {
    /// Brings blocks of sums into RAM, as far as the budget lets, by few large reads. They may go out of
    /// RAM again: [`Integrity::pin`] keeps them there.
    pub async fn load_ahead(&self, zone: &Zone<W>, indices: impl Iterator<Item = u64> + Clone) {
        let mut room = self.budget_blocks.get() / 2;
        loop {
            let most = room.min(BLOCKS_AT_ONCE);
            let loaded = self.load_some(zone, indices.clone(), most).await;
            room -= loaded;
            if loaded < BLOCKS_AT_ONCE {
                return;
            }
        }
    }

    /// Loads the first of these blocks that are not in RAM, so many at most. How many that were.
    async fn load_some(
        &self,
        zone: &Zone<W>,
        indices: impl Iterator<Item = u64>,
        most: usize,
    ) -> usize {
        let missing = self.missing(zone, indices, most);
        // One is loaded by whoever needs it.
        if missing.len() < 2 {
            return 0;
        }
        let keys = missing.iter().map(|index| key(zone.shape.zone, *index));
        let loading = keys.map(|key| (key, Slot::Loading(Vec::new())));
        self.slots.borrow_mut().extend(loading);
        let areas = self.read_areas(zone, &missing).await;
        let loads = missing
            .iter()
            .map(|index| self.load(zone.shape.zone, *index, &areas));
        join_all(loads).await;
        self.world.reached("sums of many blocks loaded at once");
        missing.len()
    }

    /// The first of these blocks that are not in RAM, so many at most, in ascending order.
    fn missing(&self, zone: &Zone<W>, indices: impl Iterator<Item = u64>, most: usize) -> Vec<u64> {
        let slots = self.slots.borrow();
        let mut missing = BTreeSet::new();
        for index in indices {
            if missing.len() == most {
                break;
            }
            if !slots.contains_key(&key(zone.shape.zone, index)) {
                missing.insert(index);
            }
        }
        missing.into_iter().collect()
    }
}
