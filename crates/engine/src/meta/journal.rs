//! The journal: batches of records in an area of its own.
//!
//! An area holds batches back to back from its start, each a whole number of
//! blocks. A batch belongs to a generation (that of the checkpoint it follows) and
//! has a sequence number in it, so what an earlier use left in the area is never
//! taken for part of it. The checksum covers the whole batch: a torn one ends the
//! journal, and was never acknowledged.

use super::Record;
use crate::codec::{Reader, Writer};
use base::checksum::crc32c_of;
use base::{BLOCK_BYTES, Uuid, crc32c};
use std::ops::Range;

/// Batches on their way at a time. One is acknowledged when all before it are durable.
pub const BATCHES_AT_ONCE: usize = 4;

/// Bytes before a batch's records.
pub const HEADER_BYTES: usize = 64;

const MAGIC: &[u8; 4] = b"ASJB";
const CRC_OFFSET: usize = 4;

/// What tells one batch from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchId {
    pub pool: Uuid,
    pub generation: u64,
    pub sequence: u64,
}

/// Bytes that a batch with `payload` bytes of records takes in an area.
pub fn batch_bytes(payload: usize) -> usize {
    (HEADER_BYTES + payload).next_multiple_of(BLOCK_BYTES)
}

/// A batch, padded to whole blocks. `payload` is encoded records.
pub fn encode_batch(id: BatchId, payload: &[u8]) -> Vec<u8> {
    let mut w = Writer::default();
    w.bytes.extend_from_slice(MAGIC);
    w.u32(0);
    w.uuid(id.pool);
    w.u64(id.generation);
    w.u64(id.sequence);
    w.u32(u32::try_from(payload.len()).unwrap_or_else(|_| unreachable!("bounded by the area")));
    w.pad_to(HEADER_BYTES);
    w.bytes.extend_from_slice(payload);
    let crc = crc32c(&w.bytes);
    w.bytes[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
    w.pad_to(batch_bytes(payload.len()));
    w.bytes
}

/// A journal read a piece at a time: what is behind its last batch need not be read.
#[derive(Debug)]
pub struct Scan {
    /// The batch that would come next.
    next: BatchId,
    bytes: Vec<u8>,
    /// Where the records of each batch are.
    payloads: Vec<Range<usize>>,
    /// Where the next batch would begin.
    end: usize,
}

impl Scan {
    /// Nothing read yet of `pool`'s journal of `generation`.
    pub fn new(pool: Uuid, generation: u64) -> Self {
        let sequence = 0;
        Scan {
            next: BatchId {
                pool,
                generation,
                sequence,
            },
            bytes: Vec::new(),
            payloads: Vec::new(),
            end: 0,
        }
    }

    /// Takes the next bytes of the area. False when the journal ends in what was taken.
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        self.bytes.extend_from_slice(bytes);
        while let Some(payload) = whole_batch(&self.bytes[self.end..], self.next) {
            let start = self.end + HEADER_BYTES;
            self.payloads.push(start..start + payload.len());
            self.end += batch_bytes(payload.len());
            self.next.sequence += 1;
        }
        let rest = &self.bytes[self.end..];
        match header(&mut Reader::new(rest)) {
            Some((_, id, len)) => id == self.next && rest.len() < batch_bytes(len),
            None => rest.len() < HEADER_BYTES,
        }
    }

    /// Batches that are whole, from the first on.
    pub fn batches(&self) -> u64 {
        self.next.sequence
    }

    /// The records of these batches; an error when a record cannot be read.
    pub fn records(&self) -> impl Iterator<Item = Result<Record, String>> + '_ {
        let payloads = self.payloads.iter().map(|range| &self.bytes[range.clone()]);
        payloads.flat_map(|payload| {
            let mut r = Reader::new(payload);
            std::iter::from_fn(move || {
                let more = !r.is_empty();
                more.then(|| {
                    Record::decode(&mut r).ok_or_else(|| {
                        // It would be found again and again.
                        r = Reader::new(&[]);
                        "a journal batch has a record of no known kind".to_owned()
                    })
                })
            })
        })
    }
}

/// The payload of the batch `id` at the start of `bytes`, when it is whole.
pub(crate) fn whole_batch(bytes: &[u8], id: BatchId) -> Option<&[u8]> {
    let (found, payload) = any_batch(bytes)?;
    (found == id).then_some(payload)
}

/// Whether the batch `id` seems to have been at the start of `bytes` once, whole or not.
pub(crate) fn begins_like(bytes: &[u8], id: BatchId) -> bool {
    let fields = |bytes| {
        let mut r = Reader::new(bytes);
        let magic = r.take(4)?;
        r.u32()?;
        Some((magic == MAGIC, r.uuid()?, r.u64()?, r.u64()?))
    };
    fields(bytes) == Some((true, id.pool, id.generation, id.sequence))
}

/// Any batch at the start of `bytes`, when it is whole: which, and its payload.
pub(crate) fn any_batch(bytes: &[u8]) -> Option<(BatchId, &[u8])> {
    let (crc, found, payload_len) = header(&mut Reader::new(bytes))?;
    let whole = bytes.get(..HEADER_BYTES.checked_add(payload_len)?)?;
    bytes.get(..batch_bytes(payload_len))?;
    let (head, tail) = whole.split_at(CRC_OFFSET);
    let intact = crc32c_of([head, &[0; 4], tail.get(4..)?]) == crc;
    intact.then(|| (found, &whole[HEADER_BYTES..]))
}

/// Checksum, identity and bytes of records of a batch, as its header has them.
fn header(r: &mut Reader<'_>) -> Option<(u32, BatchId, usize)> {
    if r.take(4)? != MAGIC {
        return None;
    }
    let crc = r.u32()?;
    let id = BatchId {
        pool: r.uuid()?,
        generation: r.u64()?,
        sequence: r.u64()?,
    };
    Some((crc, id, r.u32()? as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::VolumeId;

    const POOL: Uuid = Uuid::from_u128(7);

    /// Batches and records of an area read a block at a time, and the blocks read.
    fn read(area: &[u8], pool: Uuid, generation: u64) -> (u64, Vec<Record>, usize) {
        let mut scan = Scan::new(pool, generation);
        let mut blocks = area.chunks(BLOCK_BYTES);
        let read = blocks.position(|block| !scan.take(block));
        let records = scan.records().map(Result::unwrap).collect();
        let all = area.len() / BLOCK_BYTES;
        (scan.batches(), records, read.map_or(all, |at| at + 1))
    }

    fn scan(area: &[u8], pool: Uuid, generation: u64) -> (u64, Vec<Record>) {
        let (batches, records, _) = read(area, pool, generation);
        (batches, records)
    }

    fn batch(generation: u64, sequence: u64, records: &[Record]) -> Vec<u8> {
        let mut w = Writer::default();
        records.iter().for_each(|record| record.encode(&mut w));
        encode_batch(
            BatchId {
                pool: POOL,
                generation,
                sequence,
            },
            &w.bytes,
        )
    }

    fn ready(id: u32) -> Record {
        Record::Ready { id: VolumeId(id) }
    }

    #[test]
    fn batches_are_read_until_one_is_missing() {
        let mut area = batch(3, 0, &[ready(1), ready(2)]);
        area.extend(batch(3, 1, &[ready(3)]));
        area.extend(batch(2, 2, &[ready(4)]));
        area.resize(64 << 10, 0);
        let (batches, records) = scan(&area, POOL, 3);
        assert_eq!((batches, records), (2, vec![ready(1), ready(2), ready(3)]));
        assert_eq!(scan(&area, POOL, 2).0, 0);
        assert_eq!(scan(&area, Uuid::from_u128(8), 3).0, 0);
    }

    #[test]
    fn a_torn_batch_ends_the_journal() {
        let records: Vec<_> = (0..2000).map(ready).collect();
        let mut area = batch(1, 0, &[ready(9)]);
        area.extend(batch(1, 1, &records));
        for sector in 8..area.len() / 512 {
            let mut torn = area.clone();
            torn[sector * 512..(sector + 1) * 512].fill(0xaa);
            let batches = scan(&torn, POOL, 1).0;
            let in_padding = sector * 512 >= 4096 + HEADER_BYTES + records.len() * 5;
            assert_eq!(batches, if in_padding { 2 } else { 1 }, "sector {sector}");
        }
        assert_eq!(scan(&area[..4096], POOL, 1).0, 1);
    }

    #[test]
    fn nothing_behind_the_last_batch_is_read() {
        let records: Vec<_> = (0..2000).map(ready).collect();
        let mut area = batch(1, 0, &records);
        area.extend(batch(1, 1, &[ready(9)]));
        let end = area.len() / BLOCK_BYTES;
        area.resize(64 << 10, 0);
        let (batches, found, blocks) = read(&area, POOL, 1);
        assert_eq!((batches, found.len(), blocks), (2, 2001, end + 1));
        assert_eq!(read(&area, POOL, 2).2, 1);
    }

    #[test]
    fn a_record_of_no_known_kind_is_an_error_once() {
        let id = BatchId {
            pool: POOL,
            generation: 1,
            sequence: 0,
        };
        let mut scan = Scan::new(POOL, 1);
        scan.take(&encode_batch(id, &[99, 0, 0, 0, 0, 0]));
        let found: Vec<_> = scan.records().collect();
        assert!(matches!(found[..], [Err(_)]));
    }

    #[test]
    fn a_length_from_nowhere_is_no_batch() {
        let mut area = batch(1, 0, &[ready(9)]);
        area[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(scan(&area, POOL, 1).0, 0);
    }
}
