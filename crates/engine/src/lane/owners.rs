//! The lane that has each zone, over all zones of a pool.
//!
//! A pool of many big drives has tens of thousands of zones, and how many are free is asked
//! whenever pages are taken: so they stand side by side, and are counted by the chunk.
//! Invariants: `taken` counts what `lanes` says; what lies past the end is nobody's.

use std::ops::Range;

/// Of a zone that no lane has.
const NOBODY: u16 = u16::MAX;

/// Zones that are counted together.
const CHUNK: u32 = 256;

/// The lane of each zone, by number.
#[derive(Debug, Default)]
pub(super) struct Owners {
    lanes: Vec<u16>,
    /// How many of each chunk somebody has.
    taken: Vec<u32>,
}

impl Owners {
    /// Who has a zone.
    pub fn of(&self, zone: u32) -> Option<u16> {
        let owner = self.lanes.get(zone as usize).copied();
        owner.filter(|owner| *owner != NOBODY)
    }

    /// From now on `lane` has it.
    pub fn set(&mut self, zone: u32, lane: u16) {
        let (at, chunk) = (zone as usize, (zone / CHUNK) as usize);
        if self.lanes.len() <= at {
            self.lanes.resize(at + 1, NOBODY);
            self.taken.resize(chunk + 1, 0);
        }
        self.taken[chunk] += u32::from(self.lanes[at] == NOBODY);
        self.lanes[at] = lane;
    }

    /// Nobody has it any more. Who had it.
    pub fn clear(&mut self, zone: u32) -> Option<u16> {
        let had = self.of(zone)?;
        self.lanes[zone as usize] = NOBODY;
        self.taken[(zone / CHUNK) as usize] -= 1;
        Some(had)
    }

    /// How many of `zones` nobody has.
    pub fn free(&self, zones: Range<u32>) -> u64 {
        chunks(zones).map(|part| self.free_of_chunk(part)).sum()
    }

    /// The first of `zones` that nobody has.
    pub fn first_free(&self, zones: Range<u32>) -> Option<u32> {
        let mut parts = chunks(zones);
        let mut part = parts.find(|part| self.free_of_chunk(part.clone()) > 0)?;
        part.find(|zone| self.of(*zone).is_none())
    }

    /// How many of `zones`, all of one chunk, nobody has.
    fn free_of_chunk(&self, zones: Range<u32>) -> u64 {
        match self.taken.get((zones.start / CHUNK) as usize) {
            None | Some(0) => u64::from(zones.end - zones.start),
            Some(taken) if zones.end - zones.start == CHUNK => u64::from(CHUNK - taken),
            Some(_) => {
                let free = zones.filter(|zone| self.of(*zone).is_none());
                free.count() as u64
            }
        }
    }
}

/// The parts of `zones` that lie in one chunk each.
fn chunks(zones: Range<u32>) -> impl Iterator<Item = Range<u32>> {
    let mut next = zones.start;
    std::iter::from_fn(move || {
        let from = next;
        next = zones.end.min((from / CHUNK + 1).saturating_mul(CHUNK));
        (from < zones.end).then_some(from..next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn counts_are_those_of_a_plain_map() {
        let (mut owners, mut map) = (Owners::default(), BTreeMap::new());
        // A walk over 1,500 zones that takes and gives back in no order.
        let mut draw = 7_u32;
        for step in 0..4_000_u32 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let zone = (draw >> 16) % 1_500;
            match step % 3 {
                0 => assert_eq!(owners.clear(zone), map.remove(&zone)),
                lane => {
                    owners.set(zone, lane as u16);
                    map.insert(zone, lane as u16);
                }
            }
            assert_eq!(owners.of(zone), map.get(&zone).copied());
            for range in [
                0..1_500,
                255..257,
                256..512,
                300..300,
                100..1_777,
                zone..zone + 1,
            ] {
                let free = || range.clone().filter(|zone| !map.contains_key(zone));
                assert_eq!(
                    owners.free(range.clone()),
                    free().count() as u64,
                    "{range:?}"
                );
                assert_eq!(owners.first_free(range.clone()), free().next(), "{range:?}");
            }
        }
        assert!(map.len() > 800, "{} of 1,500 were taken", map.len());
    }
}
