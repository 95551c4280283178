//! The encoder of a checkpoint, a segment at a time.

use super::{HEADER_BYTES, HEADER_CRC_OFFSET, MAGIC, ROOM_MIN, SEGMENT_HEAD_BYTES};
use crate::codec::Writer;
use crate::meta::page_map::{CHUNK, Chunk, TABLE as TABLE_CHUNKS, Table, Tree, UNMAPPED, next_run};
use crate::meta::record::{MAP_BYTES, SHARED, SHARED_ELSEWHERE, TABLE, TABLE_HEAD_BYTES};
use crate::meta::{Backings, InFlight, Part, Record, State, VolumeId};
use base::checksum::{Crc32c, crc32c_of};
use base::{BLOCK_BYTES, PageIndex, PhysPage, Uuid, crc32c};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::rc::Rc;
use std::vec::IntoIter;

/// Chunks of a map that are gone through in one step: some tenths of a millisecond.
const CHUNKS_AT_ONCE: usize = 256;

/// What a step came to.
#[derive(Debug)]
pub enum Step {
    /// Nothing to write yet; others may want to work.
    More,
    /// The next bytes of the payload, whole blocks.
    Segment(Vec<u8>),
    /// The header: there is no more payload.
    End(Vec<u8>),
}

/// A state on its way to a slot.
#[derive(Debug)]
pub struct Encoder {
    pool: Uuid,
    generation: u64,
    segment_bytes: usize,
    parts: IntoIter<Part>,
    map: Option<Cursor>,
    /// What backs pages, and the first that is not done.
    backings: Option<(Backings, PhysPage)>,
    /// Chunks that several volumes have, and the first of these.
    shared: Shared,
    /// The segment in the making.
    segment: Writer,
    crc: Crc32c,
    payload_bytes: u64,
}

/// Tables and chunks that several volumes have, by their address, and the first volume of
/// those. An address is nobody else's as long as what it is of is in here.
#[derive(Debug, Default)]
struct Shared {
    tables: FxHashMap<*const Table, (Rc<Table>, VolumeId)>,
    chunks: FxHashMap<*const Chunk, (Rc<Chunk>, VolumeId, usize)>,
}

/// A run of chunks that are there already, at `theirs` of the volume `with`.
struct SharedRun {
    with: VolumeId,
    theirs: usize,
    chunks: Range<usize>,
}

/// Where in a map the encoder is.
#[derive(Debug)]
struct Cursor {
    id: VolumeId,
    map: Tree,
    chunk: usize,
    /// Entries of the chunk that are done.
    done: usize,
}

impl Encoder {
    /// A checkpoint of `state` as it is now.
    pub fn new<L: InFlight>(
        pool: Uuid,
        generation: u64,
        segment_bytes: usize,
        state: &State<L>,
    ) -> Self {
        Encoder {
            pool,
            generation,
            segment_bytes,
            parts: state.snapshot().into_iter(),
            map: None,
            backings: None,
            shared: Shared::default(),
            segment: new_segment(),
            crc: Crc32c::default(),
            payload_bytes: 0,
        }
    }

    /// The generation that the checkpoint gets.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Goes on for a moment.
    pub fn step(&mut self) -> Step {
        for _ in 0..CHUNKS_AT_ONCE {
            if self.room() < ROOM_MIN {
                return Step::Segment(self.seal());
            }
            if let Some(cursor) = &mut self.map {
                let room = self.segment_bytes - self.segment.bytes.len();
                if !cursor.put(room, &mut self.shared, &mut self.segment) {
                    self.map = None;
                }
                continue;
            }
            if let Some((backings, from)) = &mut self.backings {
                match backings.next(*from) {
                    Some((phys, backing)) => {
                        Record::Backed { phys, backing }.encode(&mut self.segment);
                        *from = PhysPage(phys.0 + 1);
                    }
                    None => self.backings = None,
                }
                continue;
            }
            match self.parts.next() {
                Some(Part::Record(record)) => record.encode(&mut self.segment),
                Some(Part::Backings(backings)) => self.backings = Some((backings, PhysPage(0))),
                Some(Part::Map(id, map)) => self.map = Some(Cursor::new(id, map)),
                None if self.segment.bytes.len() > SEGMENT_HEAD_BYTES => {
                    return Step::Segment(self.seal());
                }
                None => return Step::End(self.header()),
            }
        }
        Step::More
    }

    fn room(&self) -> usize {
        self.segment_bytes - self.segment.bytes.len()
    }

    /// The segment as it goes to the drive: whole, or the last one.
    fn seal(&mut self) -> Vec<u8> {
        let full = self.room() < ROOM_MIN;
        let mut bytes = std::mem::replace(&mut self.segment, new_segment()).bytes;
        let len = (bytes.len() - SEGMENT_HEAD_BYTES) as u32;
        bytes[4..8].copy_from_slice(&len.to_le_bytes());
        let crc = crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        let padded = match full {
            true => self.segment_bytes,
            false => bytes.len().next_multiple_of(BLOCK_BYTES),
        };
        bytes.resize(padded, 0);
        self.crc.update(&bytes);
        self.payload_bytes += bytes.len() as u64;
        bytes
    }

    fn header(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.bytes.extend_from_slice(MAGIC);
        w.u32(0);
        w.u32(self.crc.value());
        w.uuid(self.pool);
        w.u64(self.generation);
        w.u64(self.payload_bytes);
        // At most `SEGMENT_BYTES_MAX`.
        w.u32(self.segment_bytes as u32);
        w.pad_to(HEADER_BYTES);
        let crc = crc32c_of([w.bytes.as_slice()]);
        w.bytes[HEADER_CRC_OFFSET..HEADER_CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
        w.bytes
    }
}

fn new_segment() -> Writer {
    let mut segment = Writer::default();
    segment.pad_to(SEGMENT_HEAD_BYTES);
    segment
}

impl Cursor {
    fn new(id: VolumeId, map: Tree) -> Self {
        let (chunk, done) = (0, 0);
        Cursor {
            id,
            map,
            chunk,
            done,
        }
    }

    /// Puts what is left of a chunk, as far as there is room, into `w`. False when
    /// there is nothing left.
    fn put(&mut self, room: usize, shared: &mut Shared, w: &mut Writer) -> bool {
        let Some((index, chunk)) = self.map.chunk_from(self.chunk) else {
            return false;
        };
        if let Some(run) = self.shared_run(index, shared) {
            let elsewhere = run.theirs != run.chunks.start;
            w.u8(if elsewhere { SHARED_ELSEWHERE } else { SHARED });
            w.u32(self.id.0);
            w.u32(run.with.0);
            w.u32(run.chunks.start as u32);
            w.u32(run.chunks.end as u32);
            if elsewhere {
                w.u32(run.theirs as u32);
            }
            self.map.let_go(self.chunk, run.chunks.end);
            (self.chunk, self.done) = (run.chunks.end, 0);
            return true;
        }
        let from = if index == self.chunk { self.done } else { 0 };
        let put = put_part(self.id, index, &chunk.entries()[from..], from, room, w);
        let passed = self.chunk;
        (self.chunk, self.done) = match put {
            Some(len) => (index, from + len),
            None => (index + 1, 0),
        };
        self.map.let_go(passed, self.chunk);
        true
    }

    /// The run of chunks from `index` on, or from its table's start, that a volume that
    /// came before has, too. What others have and comes first here is noted.
    fn shared_run(&self, index: usize, shared: &mut Shared) -> Option<SharedRun> {
        let start = index / TABLE_CHUNKS * TABLE_CHUNKS;
        if start >= self.chunk
            && self.done == 0
            && let Some(with) = self.table_of(start, shared)
        {
            let mut end = start + TABLE_CHUNKS;
            while self.table_of(end, shared) == Some(with) {
                end += TABLE_CHUNKS;
            }
            return Some(SharedRun {
                with,
                theirs: start,
                chunks: start..end,
            });
        }
        let (with, theirs) = self.chunk_of(index, shared)?;
        let mut end = index + 1;
        // To the next gap: the other volume may have something there. The next table may be shared as a
        // whole, which is found at its start only.
        while !end.is_multiple_of(TABLE_CHUNKS)
            && self.chunk_of(end, shared) == Some((with, theirs + end - index))
        {
            end += 1;
        }
        Some(SharedRun {
            with,
            theirs,
            chunks: index..end,
        })
    }

    fn table_of(&self, index: usize, shared: &mut Shared) -> Option<VolumeId> {
        // Its owners may be fewer by now than when the checkpoint was begun.
        let table = self.map.once_shared_table(index)?;
        let known = shared
            .tables
            .entry(Rc::as_ptr(table))
            .or_insert_with(|| (Rc::clone(table), self.id));
        (known.1 != self.id).then_some(known.1)
    }

    /// Where the chunk was before, if anywhere: of which volume, which chunk of it.
    fn chunk_of(&self, index: usize, shared: &mut Shared) -> Option<(VolumeId, usize)> {
        let in_table = self.map.once_shared_table(index).is_some();
        let chunk = self.map.chunk(index);
        let chunk = chunk.filter(|chunk| in_table || chunk.was_shared())?;
        let known = shared
            .chunks
            .entry(Rc::as_ptr(chunk))
            .or_insert_with(|| (Rc::clone(chunk), self.id, index));
        let (with, theirs) = (known.1, known.2);
        ((with, theirs) != (self.id, index)).then_some((with, theirs))
    }
}

/// Puts `entries`, of the chunk `index` from `from` on, as a table or as runs,
/// whichever is shorter. How many entries are done; `None` when all are.
fn put_part(
    id: VolumeId,
    index: usize,
    entries: &[u32],
    from: usize,
    room: usize,
    w: &mut Writer,
) -> Option<usize> {
    let mapped = |entry: &u32| *entry != UNMAPPED;
    let first = entries.iter().position(mapped)?;
    let last = entries.iter().rposition(mapped)?;
    let page = |at: usize| PageIndex((index * CHUNK + from + at) as u64);
    let end = (last + 1).min(first + (room - TABLE_HEAD_BYTES) / 4);
    let part = &entries[..end];
    let table_bytes = TABLE_HEAD_BYTES + 4 * (end - first);
    let runs = || {
        let mut at = first;
        std::iter::from_fn(move || {
            let run = next_run(part, at)?;
            at = run.0 + run.2;
            Some(run)
        })
    };
    // As many runs as a table has room for fit the room as well.
    if runs().nth(table_bytes / MAP_BYTES).is_some() {
        w.u8(TABLE);
        w.u32(id.0);
        w.u32(page(first).0 as u32);
        w.u32((end - first) as u32);
        w.u32s(&part[first..]);
    } else {
        for (at, phys, count) in runs() {
            let map = Record::Map {
                id,
                page: page(at),
                phys: PhysPage(u64::from(phys)),
                count: count as u32,
            };
            map.encode(w);
        }
    }
    (end <= last).then_some(end)
}
