//! The whole state in one piece, in one of two slots.
//!
//! A checkpoint of generation `g` goes to slot `g % 2`; the one before it stays
//! whole until the new one is durable on every metadata drive.

use super::State;
use super::record::{MAP_BYTES, RECORD_BYTES_MAX, Record};
use crate::codec::{Reader, Writer};
use base::{BLOCK_BYTES, Uuid, crc32c};

const MAGIC: &[u8; 8] = b"ASHLARCP";
const HEADER_CRC_OFFSET: usize = 8;

/// Bytes of the records of a zone in use, and of one that is rebuilt.
const ZONE_BYTES: u64 = 1 + 4 + 1 + 4;
const REBUILT_BYTES: u64 = 1 + 16 + 4;

/// Bytes of the header, a block of its own.
pub const HEADER_BYTES: usize = BLOCK_BYTES;

/// The header: what follows it, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub pool: Uuid,
    pub generation: u64,
    pub payload_bytes: u64,
    pub payload_crc: u32,
}

/// Drives that are being rebuilt at the same time, at most.
const REBUILDS_MAX: u64 = 8;

/// Bytes that a slot needs for the worst state of a pool: every page mapped on
/// its own, all zones in use and nearly rebuilt on several drives, all volumes there.
pub fn slot_bytes(pages: u64, zones: u64, volumes_max: u32) -> u64 {
    let volumes = u64::from(volumes_max) * (RECORD_BYTES_MAX as u64 + 5);
    let zones = zones * (ZONE_BYTES + REBUILDS_MAX * REBUILT_BYTES);
    let payload = volumes + pages * MAP_BYTES as u64 + zones + 5 + 5;
    (HEADER_BYTES as u64 + payload).next_multiple_of(BLOCK_BYTES as u64)
}

/// A checkpoint of `state`, padded to whole blocks.
pub fn encode(pool: Uuid, generation: u64, state: &State) -> Vec<u8> {
    let mut payload = Writer::default();
    state
        .records()
        .iter()
        .for_each(|record| record.encode(&mut payload));
    let payload = payload.bytes;
    let mut w = Writer::default();
    w.bytes.extend_from_slice(MAGIC);
    w.u32(0);
    w.u32(crc32c(&payload));
    w.uuid(pool);
    w.u64(generation);
    w.u64(payload.len() as u64);
    w.pad_to(HEADER_BYTES);
    let crc = crc32c(&w.bytes);
    w.bytes[HEADER_CRC_OFFSET..HEADER_CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
    w.bytes.extend_from_slice(&payload);
    let padded = w.bytes.len().next_multiple_of(BLOCK_BYTES);
    w.pad_to(padded);
    w.bytes
}

/// The header in `block`, when it is whole and of `pool`.
pub fn decode_header(block: &[u8], pool: Uuid) -> Option<Header> {
    let block = block.get(..HEADER_BYTES)?;
    let mut r = Reader::new(block);
    if r.take(8)? != MAGIC {
        return None;
    }
    let crc = r.u32()?;
    let (head, tail) = block.split_at(HEADER_CRC_OFFSET);
    if base::checksum::crc32c_of([head, &[0; 4], tail.get(4..)?]) != crc {
        return None;
    }
    let payload_crc = r.u32()?;
    let found = r.uuid()?;
    let header = Header {
        pool: found,
        generation: r.u64()?,
        payload_bytes: r.u64()?,
        payload_crc,
    };
    (found == pool).then_some(header)
}

/// The state in `payload`, when it is what `header` says.
///
/// # Errors
/// When the checksum is right and the records contradict themselves.
pub fn decode_payload(header: &Header, payload: &[u8]) -> Result<Option<State>, String> {
    if payload.len() as u64 != header.payload_bytes || crc32c(payload) != header.payload_crc {
        return Ok(None);
    }
    let mut state = State::default();
    let mut r = Reader::new(payload);
    while !r.is_empty() {
        let record = Record::decode(&mut r).ok_or("a record of no known kind")?;
        state.apply(&record)?;
    }
    Ok(Some(state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::VolumeId;
    use crate::raid::Level;
    use crate::volume::Provisioning;
    use base::{PageIndex, PhysPage};

    const POOL: Uuid = Uuid::from_u128(7);

    fn state(volumes: u32, pages: u64) -> State {
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
            };
            state.apply(&create).unwrap();
            state.apply(&Record::Ready { id }).unwrap();
        }
        for page in 0..pages {
            let (page, phys) = (PageIndex(page), PhysPage(2 * page));
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

    #[test]
    fn the_worst_state_fits_its_slot_and_comes_back() {
        let state = state(3, 100);
        let bytes = encode(POOL, 9, &state);
        assert!(bytes.len() as u64 <= slot_bytes(100, 10, 3));
        let header = decode_header(&bytes, POOL).unwrap();
        assert_eq!(header.generation, 9);
        let end = HEADER_BYTES + header.payload_bytes as usize;
        let back = decode_payload(&header, &bytes[HEADER_BYTES..end])
            .unwrap()
            .unwrap();
        assert_eq!(back.records(), state.records());
    }

    #[test]
    fn a_torn_or_foreign_checkpoint_is_none() {
        let bytes = encode(POOL, 9, &state(1, 5));
        assert_eq!(decode_header(&bytes, Uuid::from_u128(8)), None);
        let header = decode_header(&bytes, POOL).unwrap();
        let mut payload =
            bytes[HEADER_BYTES..HEADER_BYTES + header.payload_bytes as usize].to_vec();
        payload[3] ^= 1;
        assert!(decode_payload(&header, &payload).unwrap().is_none());
        let mut torn = bytes.clone();
        torn[512..1024].fill(0xee);
        assert_eq!(decode_header(&torn, POOL), None);
    }
}
