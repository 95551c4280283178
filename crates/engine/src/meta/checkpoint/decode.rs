//! The decoder of a checkpoint, a segment at a time.

use super::{
    HEADER_BYTES, HEADER_CRC_OFFSET, Header, MAGIC, SEGMENT_BYTES_MAX, SEGMENT_HEAD_BYTES,
};
use crate::codec::Reader;
use crate::meta::record::{SHARED, SHARED_ELSEWHERE, TABLE};
use crate::meta::{InFlight, Record, State, VolumeId};
use base::checksum::{Crc32c, crc32c_of};
use base::{BLOCK_BYTES, PageIndex, Uuid, crc32c};

/// The header in `block`, when it is whole and of `pool`.
pub fn decode_header(block: &[u8], pool: Uuid) -> Option<Header> {
    let block = block.get(..HEADER_BYTES)?;
    let mut r = Reader::new(block);
    if r.take(8)? != MAGIC {
        return None;
    }
    let crc = r.u32()?;
    let (head, tail) = block.split_at(HEADER_CRC_OFFSET);
    if crc32c_of([head, &[0; 4], tail.get(4..)?]) != crc {
        return None;
    }
    let payload_crc = r.u32()?;
    let found = r.uuid()?;
    let header = Header {
        pool: found,
        generation: r.u64()?,
        payload_bytes: r.u64()?,
        payload_crc,
        segment_bytes: r.u32()?,
    };
    let segment = header.segment_bytes as usize;
    let sound = (BLOCK_BYTES..=SEGMENT_BYTES_MAX).contains(&segment)
        && segment.is_multiple_of(BLOCK_BYTES)
        && header.payload_bytes.is_multiple_of(BLOCK_BYTES as u64);
    (found == pool && sound).then_some(header)
}

/// The state in `payload`, when it is what `header` says.
///
/// # Errors
/// When the checksum is right and the records contradict themselves.
pub fn decode_payload<L: InFlight>(
    header: &Header,
    payload: &[u8],
) -> Result<Option<State<L>>, String> {
    let mut decoder = Decoder::new(*header);
    let segments = payload.chunks(header.segment_bytes as usize);
    for segment in segments {
        if !decoder.take(segment) {
            return Ok(None);
        }
    }
    decoder.finish()
}

/// A state on its way out of a slot.
#[derive(Debug)]
pub struct Decoder<L = ()> {
    header: Header,
    state: State<L>,
    crc: Crc32c,
    taken_bytes: u64,
    /// What is wrong with a record, which counts only if all of the payload is what was
    /// written.
    contradiction: Option<String>,
}

impl<L: InFlight> Decoder<L> {
    /// The payload that belongs to `header`.
    pub fn new(header: Header) -> Self {
        Decoder {
            header,
            state: State::default(),
            crc: Crc32c::default(),
            taken_bytes: 0,
            contradiction: None,
        }
    }

    /// Takes the next segment. False when it is not whole: nothing can come of the rest.
    pub fn take(&mut self, segment: &[u8]) -> bool {
        self.crc.update(segment);
        self.taken_bytes += segment.len() as u64;
        let Some(records) = records(segment) else {
            return false;
        };
        if self.contradiction.is_none() {
            self.contradiction = apply(&mut self.state, records).err();
        }
        true
    }

    /// The state, when all that was taken is what the header says.
    ///
    /// # Errors
    /// When the checksum is right and the records contradict themselves.
    pub fn finish(self) -> Result<Option<State<L>>, String> {
        let Header {
            payload_bytes,
            payload_crc,
            ..
        } = self.header;
        if self.taken_bytes != payload_bytes || self.crc.value() != payload_crc {
            return Ok(None);
        }
        match self.contradiction {
            Some(what) => Err(what),
            None => Ok(Some(self.state)),
        }
    }
}

/// The records of a segment, when it is whole.
fn records(segment: &[u8]) -> Option<&[u8]> {
    let mut r = Reader::new(segment);
    let crc = r.u32()?;
    let len = r.u32()? as usize;
    let checked = segment.get(4..SEGMENT_HEAD_BYTES.checked_add(len)?)?;
    (crc32c(checked) == crc).then(|| &checked[4..])
}

fn apply<L: InFlight>(state: &mut State<L>, records: &[u8]) -> Result<(), String> {
    let mut r = Reader::new(records);
    while !r.is_empty() {
        match r.peek() {
            Some(TABLE) => table(&mut r, state).ok_or("a table of pages that is cut short")??,
            Some(SHARED) => shared(&mut r, state).ok_or("shared chunks that are cut short")??,
            Some(SHARED_ELSEWHERE) => {
                shared_elsewhere(&mut r, state).ok_or("shared chunks that are cut short")??;
            }
            _ => {
                let record = Record::decode(&mut r).ok_or("a record of no known kind")?;
                state.apply(&record)?;
            }
        }
    }
    Ok(())
}

fn table<L: InFlight>(r: &mut Reader<'_>, state: &mut State<L>) -> Option<Result<(), String>> {
    r.u8()?;
    let id = VolumeId(r.u32()?);
    let first = PageIndex(u64::from(r.u32()?));
    let pages = r.u32()? as usize;
    let bytes = r.take(pages.checked_mul(4)?)?;
    let places = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|place| u32::from_le_bytes(*place));
    Some(state.apply_table(id, first, places))
}

fn shared<L: InFlight>(r: &mut Reader<'_>, state: &mut State<L>) -> Option<Result<(), String>> {
    r.u8()?;
    let (id, from) = (VolumeId(r.u32()?), VolumeId(r.u32()?));
    let chunks = (r.u32()? as usize, r.u32()? as usize);
    Some(state.apply_shared(id, from, chunks))
}

fn shared_elsewhere<L: InFlight>(
    r: &mut Reader<'_>,
    state: &mut State<L>,
) -> Option<Result<(), String>> {
    r.u8()?;
    let (id, from) = (VolumeId(r.u32()?), VolumeId(r.u32()?));
    let chunks = (r.u32()? as usize, r.u32()? as usize);
    let theirs = r.u32()? as usize;
    Some(state.apply_shared_elsewhere(id, (from, theirs), chunks))
}
