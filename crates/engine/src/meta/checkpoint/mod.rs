//! The checkpoint: the whole state in one piece, in one of two slots.
//!
//! A checkpoint of generation `g` goes to slot `g % 2`; the one before it stays
//! whole until the new one is durable on every metadata drive.
//!
//! Its payload is cut into segments, so that it can be written and read a piece at a
//! time while others work. Invariants:
//! - The header is written when the whole payload is durable: a header that belongs to
//!   its payload says that the checkpoint is whole.
//! - Each segment has a checksum of its own: nothing is decoded that was not written so.
//! - A mapped page takes [`MAP_BYTES`] at most, so the worst state has a known size.

mod decode;
mod encode;

pub use decode::{Decoder, decode_header, decode_payload};
pub use encode::{Encoder, Step};

use super::page_map::{CHUNK, CHUNK_BYTES_MAX, PageMap, TABLE as TABLE_CHUNKS, chunk_bytes};
use super::properties::PROPERTIES_BYTES;
use super::record::{BACKED_BYTES, BEHAVE_BYTES, MAP_BYTES, RECORD_BYTES_MAX, TABLE_HEAD_BYTES};
use super::refs::Owned;
use base::{BLOCK_BYTES, PageIndex, Uuid};

const MAGIC: &[u8; 8] = b"ASHLARCP";
const HEADER_CRC_OFFSET: usize = 8;

/// Bytes of the records of a zone in use, and of one that is rebuilt.
const ZONE_BYTES: u64 = 1 + 4 + 1 + 4;
const REBUILT_BYTES: u64 = 1 + 16 + 4;

/// Bytes of the record of a place that stands elsewhere than at home.
const MOVED_BYTES: u64 = 1 + 4 + 1 + 1;

/// Bytes of the header, a block of its own.
pub const HEADER_BYTES: usize = BLOCK_BYTES;

/// The longest segment of a checkpoint, bytes.
pub const SEGMENT_BYTES_MAX: usize = 1 << 20;

/// Bytes before the records of a segment: checksum, length.
const SEGMENT_HEAD_BYTES: usize = 4 + 4;

/// Bytes of a run of shared chunks, which others may have elsewhere.
pub const SHARED_BYTES: u64 = 1 + 4 + 4 + 4 + 4 + 4;

/// A segment with less room than this is full: any record fits it, and some pages.
const ROOM_MIN: usize = RECORD_BYTES_MAX + TABLE_HEAD_BYTES;

/// The header: what follows it, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub pool: Uuid,
    pub generation: u64,
    pub payload_bytes: u64,
    pub payload_crc: u32,
    /// Bytes of each segment but the last.
    pub segment_bytes: u32,
}

/// Drives that are being rebuilt at the same time, at most.
const REBUILDS_MAX: u64 = 8;

/// Bytes of the segments of a pool with journal areas of `journal_bytes`: half of one.
/// Small pools have small segments, so that what may come in between comes in between
/// there as well.
pub fn segment_bytes(journal_bytes: u32) -> usize {
    let half = journal_bytes as usize / 2 / BLOCK_BYTES * BLOCK_BYTES;
    half.clamp(BLOCK_BYTES, SEGMENT_BYTES_MAX)
}

/// Lanes of which each has room in its slots for the worst maps of all pages.
const LANES_ALONE: u16 = 2;

/// With more lanes than this the slots of each are no smaller.
const LANES_MAX: u16 = 16;

/// Bytes of maps that the slots of a lane are laid out for, in a pool that may come to have so many
/// pages. These are `page_bytes` for each page, or the lane's share of what [`LANES_ALONE`] lanes have
/// together. So each of sixteen lanes has 2.1 bytes a page. A chunk whose pages are all mapped takes 4.1
/// bytes a page.
pub fn laid_out_bytes(pages: u64, lanes: u16, page_bytes: Option<u32>) -> u64 {
    let worst = MAP_BYTES as u64;
    let lanes = u64::from(lanes.clamp(LANES_ALONE, LANES_MAX));
    let bytes = match page_bytes {
        Some(page_bytes) => pages * worst.min(page_bytes.into()),
        None => (pages * worst * u64::from(LANES_ALONE)).div_ceil(lanes),
    };
    match bytes < pages * worst {
        // Each change has to find that much beside what is there.
        true => bytes + MAPS_STEP_BYTES,
        false => bytes,
    }
}

/// Bytes that a slot needs for the worst state of a pool without shared pages: every page
/// mapped on its own, all zones in use and nearly rebuilt on several drives, all volumes
/// there.
pub fn slot_bytes(pages: u64, zones: u64, volumes_max: u32, journal_bytes: u32) -> u64 {
    slot_bytes_of(pages * MAP_BYTES as u64, zones, volumes_max, journal_bytes)
}

/// Bytes that maps take at most, where `backed` pages have a backing.
pub fn maps_bytes(owned: Owned, backed: u64) -> u64 {
    owned.chunk_bytes + owned.sharers * SHARED_BYTES + backed * BACKED_BYTES as u64
}

/// What maps can grow by when a volume is to have a page of its own: a table and a chunk.
pub const MAPS_STEP_BYTES: u64 =
    TABLE_CHUNKS as u64 * SHARED_BYTES + (CHUNK_BYTES_MAX + BACKED_BYTES) as u64;

/// What maps can grow by when `count` pages of `map` from `first` on come to be those of
/// others: a table that others have is copied, and a chunk may be new.
pub fn copy_bytes(map: &PageMap, first: PageIndex, count: u64) -> u64 {
    let (first, end) = (first.0 as usize, (first.0 + count) as usize);
    let tables = first / CHUNK / TABLE_CHUNKS..end.div_ceil(CHUNK).div_ceil(TABLE_CHUNKS);
    let shared = |table: &usize| map.shared_table(table * TABLE_CHUNKS).is_some();
    let shared = tables.clone().filter(shared).count() * TABLE_CHUNKS;
    let chunks = first / CHUNK..end.div_ceil(CHUNK);
    let chunk = |index: usize| {
        let pages = end.min((index + 1) * CHUNK) - first.max(index * CHUNK);
        match map.is_shared(index) {
            true => CHUNK_BYTES_MAX as u64,
            false => chunk_bytes(pages),
        }
    };
    let places = (tables.len() + shared + chunks.len()) as u64;
    places * SHARED_BYTES + chunks.map(chunk).sum::<u64>()
}

/// The same with maps of `maps_bytes`.
pub fn slot_bytes_of(maps_bytes: u64, zones: u64, volumes_max: u32, journal_bytes: u32) -> u64 {
    let volumes = u64::from(volumes_max) * (RECORD_BYTES_MAX + BEHAVE_BYTES + 5) as u64;
    let zones = zones * (ZONE_BYTES + REBUILDS_MAX * REBUILT_BYTES);
    let records = volumes + maps_bytes + zones + 5 + 5;
    let bytes = HEADER_BYTES as u64 + in_segments(records, journal_bytes);
    bytes.next_multiple_of(BLOCK_BYTES as u64)
}

/// How many zones of a usual group take as much as so many zones on so many drives do. In a spread group
/// each place of them may stand elsewhere than at home.
pub fn zones_of(is_spread: bool, zones: u64, drives: usize) -> u64 {
    let moved = match is_spread {
        true => zones * drives as u64 * MOVED_BYTES,
        false => 0,
    };
    zones + moved.div_ceil(ZONE_BYTES + REBUILDS_MAX * REBUILT_BYTES)
}

/// Bytes that records of `bytes` take in segments.
fn in_segments(bytes: u64, journal_bytes: u32) -> u64 {
    // What each segment holds for sure.
    let held = (segment_bytes(journal_bytes) - SEGMENT_HEAD_BYTES - ROOM_MIN) as u64;
    bytes + bytes.div_ceil(held) * (SEGMENT_HEAD_BYTES + ROOM_MIN) as u64
}

/// Bytes that a slot needs beside [`slot_bytes`] when what is said of volumes takes
/// `properties_bytes`.
pub fn more_bytes(properties_bytes: u64, journal_bytes: u32) -> u64 {
    in_segments(properties_bytes, journal_bytes).next_multiple_of(BLOCK_BYTES as u64)
}

/// What of this a new pool's slots are laid out for. Pools that were made before volumes
/// had properties have what their maps leave: slots are for more pages than a new pool's.
pub fn properties_room(volumes_max: u32, journal_bytes: u32) -> u64 {
    more_bytes(u64::from(volumes_max) * PROPERTIES_BYTES, journal_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::page_map::runs_of;
    use crate::meta::{Record, State, VolumeId};
    use crate::raid::Level;
    use crate::volume::Provisioning;
    use base::PhysPage;
    use std::collections::BTreeSet;
    use std::rc::Rc;

    const POOL: Uuid = Uuid::from_u128(7);

    #[test]
    fn lanes_share_the_room_for_maps_and_the_first_two_have_all() {
        let step = MAPS_STEP_BYTES;
        for (lanes, bytes) in [
            (1, 17_000),
            (2, 17_000),
            (4, 8500 + step),
            (16, 2125 + step),
            (64, 2125 + step),
        ] {
            assert_eq!(laid_out_bytes(1000, lanes, None), bytes, "{lanes}");
        }
        assert_eq!(laid_out_bytes(1000, 1, Some(4)), 4000 + step);
        assert_eq!(laid_out_bytes(1000, 16, Some(40)), 17_000);
    }

    /// All of the payload, and the header.
    fn encode(segment_bytes: usize, state: &State) -> (Vec<u8>, Vec<u8>) {
        let mut encoder = Encoder::new(POOL, 9, segment_bytes, state);
        let mut payload = Vec::new();
        loop {
            match encoder.step() {
                Step::More => {}
                Step::Segment(bytes) => payload.extend(bytes),
                Step::End(header) => return (header, payload),
            }
        }
    }

    fn same(a: &State, b: &State) -> bool {
        encode(4096, a) == encode(4096, b)
    }

    /// Pages `step` apart, each mapped to a place that is next to no other's.
    fn state(volumes: u32, pages: u64, step: u64) -> State {
        let mut state = State::default();
        for id in (0..volumes).map(VolumeId) {
            let name = format!("{:064}", id.0);
            let provisioning = Provisioning::Thin;
            let create = Record::Create {
                id,
                uuid: Uuid::nil(),
                name,
                size_bytes: 512,
                provisioning,
                read_only: false,
            };
            state.apply(&create).unwrap();
            state.apply(&Record::Ready { id }).unwrap();
        }
        for page in 0..pages {
            let (page, phys) = (PageIndex(step * page), PhysPage(2 * page));
            state
                .apply(&Record::Map {
                    id: VolumeId(0),
                    page,
                    phys,
                    count: 1,
                })
                .unwrap();
        }
        for zone in 0..10 {
            let on = Record::ZoneOn {
                zone,
                level: Level::Raid6,
                incarnation: zone,
            };
            state.apply(&on).unwrap();
            let member = Uuid::from_u128(3);
            state.apply(&Record::Rebuilt { member, zone }).unwrap();
        }
        state
    }

    fn back(header: &[u8], payload: &[u8]) -> Option<State> {
        let header = decode_header(header, POOL).unwrap();
        assert_eq!(header.generation, 9);
        decode_payload(&header, payload).unwrap()
    }

    #[test]
    fn the_worst_states_fit_their_slots_and_come_back() {
        for journal_bytes in [8 << 10, 24 << 10, 8 << 20] {
            let segment = segment_bytes(journal_bytes);
            for (pages, step) in [(100, 1), (5000, 1), (5000, 2), (3000, 5), (700, 1025)] {
                let state = state(3, pages, step);
                let (header, payload) = encode(segment, &state);
                let slot = slot_bytes(pages, 10, 3, journal_bytes);
                let len = (header.len() + payload.len()) as u64;
                assert!(
                    len <= slot,
                    "{len} bytes in a slot of {slot}: {pages} pages, {step} apart"
                );
                let back = back(&header, &payload).unwrap();
                assert!(same(&back, &state));
                assert_eq!(back.volumes[&VolumeId(0)].map.borrow().mapped(), pages);
            }
        }
    }

    #[test]
    fn scattered_pages_take_four_bytes_and_runs_seventeen() {
        let (_, scattered) = encode(SEGMENT_BYTES_MAX, &state(1, 100_000, 1));
        assert!(scattered.len() < 100_000 * 4 + 400 * TABLE_HEAD_BYTES + 8192);
        let mut run = state(1, 0, 1);
        let map = Record::Map {
            id: VolumeId(0),
            page: PageIndex(7),
            phys: PhysPage(0),
            count: 100_000,
        };
        run.apply(&map).unwrap();
        let (header, payload) = encode(SEGMENT_BYTES_MAX, &run);
        assert_eq!(payload.len(), 2 * BLOCK_BYTES);
        assert!(same(&back(&header, &payload).unwrap(), &run));
    }

    fn remap(state: &mut State, id: u32, page: u64, phys: u64) {
        let remap = Record::Remap {
            id: VolumeId(id),
            page: PageIndex(page),
            phys: PhysPage(phys),
        };
        state.apply(&remap).unwrap();
    }

    /// Volumes that are copies of the first, each changed in one place after it was made.
    fn shared_state(copies: u32, pages: u64) -> State {
        let mut state = state(copies + 1, pages, 1);
        for copy in 1..=copies {
            let from = VolumeId((copy - 1) / 2);
            let id = VolumeId(copy);
            state.apply(&Record::Share { id, from }).unwrap();
            remap(
                &mut state,
                copy,
                u64::from(copy) * 300,
                (1 << 20) + u64::from(copy),
            );
            let page = u64::from(copy) * 300 + 1;
            let overlay = Record::Overlay {
                id,
                page: PageIndex(page),
                phys: PhysPage((1 << 21) + u64::from(copy)),
                backing: PhysPage(2 * page),
            };
            state.apply(&overlay).unwrap();
            let page = PageIndex(2000);
            let count = copy % 3;
            state.apply(&Record::Unmap { id, page, count }).unwrap();
        }
        state
    }

    /// As the opening of a pool does.
    fn count_holders(state: &mut State) {
        let (mut chunks, mut pages) = (BTreeSet::new(), BTreeSet::new());
        for core in state.volumes.values() {
            let map = core.map.borrow();
            let mut next = 0;
            while let Some((index, chunk)) = map.chunk_from(next) {
                next = index + 1;
                if !chunks.insert(Rc::as_ptr(chunk)) {
                    continue;
                }
                for run in runs_of(index, chunk.entries()) {
                    let held = (run.phys.0..run.phys.0 + run.count).map(PhysPage);
                    held.filter(|page| !pages.insert(*page))
                        .for_each(|page| state.refs.add(page));
                }
            }
        }
    }

    #[test]
    fn maps_that_are_shared_take_no_more_than_is_reckoned() {
        for (copies, pages, segment) in
            [(1, 3000, 4096), (20, 300_000, 1 << 20), (60, 20_000, 8192)]
        {
            let state = shared_state(copies, pages);
            let maps = maps_bytes(state.refs.owned, state.backings.len());
            let bound = slot_bytes_of(maps, 1, copies + 1, 2 * segment as u32);
            let payload = encode(segment, &state).1.len();
            assert!(
                payload as u64 <= bound,
                "{copies}: {payload} bytes, not {bound}"
            );
        }
    }

    #[test]
    fn copies_that_go_while_a_checkpoint_is_made_do_not_make_it_longer() {
        let mut state = shared_state(20, 300_000);
        let whole = encode(8192, &state);
        let mut encoder = Encoder::new(POOL, 9, 8192, &state);
        let mut payload = Vec::new();
        let mut copies = (1..=20).map(VolumeId);
        let header = loop {
            match encoder.step() {
                Step::More => {}
                Step::Segment(bytes) => payload.extend(bytes),
                Step::End(header) => break header,
            }
            if let Some(id) = copies.next() {
                state.apply(&Record::Delete { id }).unwrap();
                while state.give_up_some() {}
            }
        };
        assert!((header, payload) == whole);
    }

    #[test]
    fn a_table_that_is_shared_behind_shared_chunks_is_written_once() {
        // A page in each chunk of two tables, with a snapshot of them.
        let mut state = state(3, 2 * TABLE_CHUNKS as u64, CHUNK as u64);
        let from = VolumeId(0);
        let share = |id| Record::Share { id, from };
        state.apply(&share(VolumeId(1))).unwrap();
        // All chunks of the second table but the first are new, and the table is shared then.
        for index in (TABLE_CHUNKS + 1..2 * TABLE_CHUNKS).map(|index| index as u64) {
            remap(&mut state, 0, index * CHUNK as u64, (1 << 20) + index);
        }
        state.apply(&share(VolumeId(2))).unwrap();
        remap(&mut state, 2, 0, 1 << 21);
        let (header, payload) = encode(4096, &state);
        let maps = maps_bytes(state.refs.owned, 0);
        assert!(payload.len() as u64 <= slot_bytes_of(maps, 10, 3, 8192));
        let again = back(&header, &payload).unwrap();
        assert!(same(&again, &state));
        let copy = again.volumes[&VolumeId(2)].map.borrow();
        assert!(copy.shared_table(2 * TABLE_CHUNKS - 1).is_some());
    }

    #[test]
    fn what_volumes_share_is_written_once_and_shared_again() {
        let mut state = shared_state(20, 300_000);
        let alone = encode(SEGMENT_BYTES_MAX, &shared_state(0, 300_000)).1.len();
        let (header, payload) = encode(SEGMENT_BYTES_MAX, &state);
        let copies = payload.len() - alone;
        assert!(
            copies < 20 * (3 * 1024 + 2000),
            "{copies} bytes for 20 copies"
        );
        let mut again = back(&header, &payload).unwrap();
        assert!(same(&again, &state));
        for (id, core) in &state.volumes {
            let (map, other) = (core.map.borrow(), again.volumes[id].map.borrow());
            assert!(map.runs().eq(other.runs()), "volume {id:?}");
            assert_eq!(map.mapped(), other.mapped());
        }
        // What goes then is what goes from the original.
        count_holders(&mut again);
        let mut all = 0;
        for id in [0, 3, 1, 7, 20].map(VolumeId) {
            let gone = [&mut state, &mut again].map(|state| {
                state.apply(&Record::Delete { id }).unwrap();
                while state.give_up_some() {}
                state.take_freed().len()
            });
            assert_eq!(gone[0], gone[1], "pages of {id:?}");
            all += gone[0];
        }
        assert!(all > 1, "{all} pages went");
        assert!(same(&again, &state));
    }

    fn copy(state: &mut State, (id, page): (u32, u64), (from, from_page): (u32, u64), count: u32) {
        let copy = Record::Copy {
            id: VolumeId(id),
            page: PageIndex(page),
            from: VolumeId(from),
            from_page: PageIndex(from_page),
            count,
        };
        state.apply(&copy).unwrap();
    }

    #[test]
    fn chunks_that_lie_elsewhere_come_back_where_they_were() {
        let mut state = shared_state(3, 5000);
        for (to, from, count) in [
            // Of others: at another place, at the same, a chunk and a half, no whole one.
            ((1, 256 * 40), (0, 256 * 2), 256 * 5),
            ((2, 256 * 3), (0, 256 * 3), 256 * 2),
            ((2, 256 * 60), (1, 256 * 41), 384),
            ((3, 7), (0, 300), 900),
            // Its own: one chunk at three places, before and behind where it was.
            ((0, 256 * 30), (0, 256 * 4), 256 * 3),
            ((0, 256), (0, 256 * 31), 256),
            ((3, 256 * 600), (3, 256 * 4), 256 * 2),
        ] {
            copy(&mut state, to, from, count);
        }
        let (header, payload) = encode(4096, &state);
        let maps = maps_bytes(state.refs.owned, 0);
        assert!(payload.len() as u64 <= slot_bytes_of(maps, 10, 4, 8192));
        let mut again = back(&header, &payload).unwrap();
        assert!(same(&again, &state));
        for (id, core) in &state.volumes {
            let (map, other) = (core.map.borrow(), again.volumes[id].map.borrow());
            assert!(map.runs().eq(other.runs()), "volume {id:?}");
            assert_eq!(map.mapped(), other.mapped());
        }
        assert!(again.volumes[&VolumeId(1)].map.borrow().is_shared(40));
        count_holders(&mut again);
        state.take_freed();
        for id in [1, 0, 3, 2].map(VolumeId) {
            let gone = [&mut state, &mut again].map(|state| {
                state.apply(&Record::Delete { id }).unwrap();
                while state.give_up_some() {}
                state.take_freed().len()
            });
            assert_eq!(gone[0], gone[1], "pages of {id:?}");
        }
        assert_eq!((state.refs.owned, state.refs.shared()), Default::default());
    }

    #[test]
    fn shared_chunks_of_nobody_are_a_contradiction() {
        let mut state = shared_state(1, 3000);
        let chunks = (0, 4);
        for (id, from) in [(0, 1), (1, 1), (0, 9), (9, 0)] {
            let shared = state.apply_shared(VolumeId(id), VolumeId(from), chunks);
            assert!(shared.is_err(), "{id} with {from}");
        }
    }

    #[test]
    fn what_changes_while_it_is_written_is_not_in_it() {
        let mut state = state(2, 5000, 1);
        let (_, before) = encode(4096, &state);
        let mut encoder = Encoder::new(POOL, 9, 4096, &state);
        let mut payload = Vec::new();
        let mut page = 6000;
        while let Step::Segment(bytes) = encoder.step() {
            payload.extend(bytes);
            page += 700;
            let (id, page) = (VolumeId(0), PageIndex(page % 4999));
            let phys = PhysPage(1 << 20);
            state.apply(&Record::Remap { id, page, phys }).unwrap();
        }
        let id = VolumeId(1);
        state.apply(&Record::Delete { id }).unwrap();
        assert_eq!(payload, before);
        assert!(encode(4096, &state).1 != before);
    }

    #[test]
    fn a_torn_or_foreign_checkpoint_is_none() {
        let (header, payload) = encode(4096, &state(1, 5000, 1));
        assert_eq!(decode_header(&header, Uuid::from_u128(8)), None);
        for sector in 0..payload.len() / 512 {
            let mut torn = payload.clone();
            torn[sector * 512] ^= 1;
            assert!(back(&header, &torn).is_none(), "sector {sector}");
        }
        assert!(back(&header, &payload[..payload.len() - 4096]).is_none());
        let mut torn = header.clone();
        torn[512..1024].fill(0xee);
        assert_eq!(decode_header(&torn, POOL), None);
    }

    #[test]
    fn segments_of_another_checkpoint_are_none() {
        let (header, payload) = encode(4096, &state(1, 5000, 1));
        let (_, older) = encode(4096, &state(1, 4000, 2));
        // Each segment is whole, and may contradict what was before it.
        let mut mixed = older[..8192].to_vec();
        mixed.extend(&payload[8192..]);
        assert!(back(&header, &mixed).is_none());
        mixed = payload[..8192].to_vec();
        mixed.extend(&payload[4096..payload.len() - 4096]);
        assert!(back(&header, &mixed).is_none());
    }

    #[test]
    fn a_contradiction_that_was_written_is_an_error() {
        let state = state(1, 5000, 1);
        let (header, payload) = encode(4096, &state);
        // The pages of a segment twice, under a header that says so.
        let mut twice = payload[..8192].to_vec();
        twice.extend(&payload[4096..]);
        let header = Header {
            payload_bytes: twice.len() as u64,
            payload_crc: base::crc32c(&twice),
            ..decode_header(&header, POOL).unwrap()
        };
        assert!(decode_payload::<()>(&header, &twice).is_err());
    }
}
