//! What the simulator writes into sectors, so that every sector read back says
//! which write it came from, or that it came from none.
//!
//! A sector is 64 words. The first is the write's number (never zero), the second
//! names the volume and the sector's place in it, the others follow from both. So
//! a sector at the wrong place, of another volume or of two writes is noticed.

use base::SECTOR_BYTES;
use std::collections::BTreeSet;

/// The number of a write, unique in a run; [`ZEROES`] stands for "never written".
pub type WriteId = u64;

/// What a sector holds that was never written.
pub const ZEROES: WriteId = 0;

const WORDS: usize = SECTOR_BYTES / 8;

/// Where a sector belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which volume: unique in a run, also for a name used again.
    pub volume: u64,
    /// Which sector of it.
    pub sector: u64,
}

impl Place {
    fn word(self) -> u64 {
        self.volume << 40 | self.sector
    }
}

fn word(id: WriteId, place: u64, index: usize) -> u64 {
    match index {
        0 => id,
        1 => place,
        _ => (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ place.wrapping_mul(0xd6e8_feb8_6659_fd93))
            .wrapping_add((index as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9)),
    }
}

/// Fills `bytes`, whole sectors from `first` on, with what write `id` writes.
pub fn fill(bytes: &mut [u8], id: WriteId, first: Place) {
    assert!(
        id != ZEROES && bytes.len().is_multiple_of(SECTOR_BYTES),
        "whole sectors of a write"
    );
    for (sector, content) in bytes.chunks_exact_mut(SECTOR_BYTES).enumerate() {
        let place = Place {
            sector: first.sector + sector as u64,
            ..first
        }
        .word();
        for (index, to) in content.chunks_exact_mut(8).enumerate() {
            to.copy_from_slice(&word(id, place, index).to_le_bytes());
        }
    }
}

/// Which write the sector read at `place` came from; what is wrong with it when
/// it came from none.
///
/// A volume that was cloned has what was written to its `ancestors`, too.
pub fn identify(
    content: &[u8],
    place: Place,
    ancestors: &BTreeSet<u64>,
) -> Result<WriteId, String> {
    assert!(
        content.len() == SECTOR_BYTES,
        "one sector, not {} bytes",
        content.len()
    );
    let read = |index: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&content[index * 8..index * 8 + 8]);
        u64::from_le_bytes(bytes)
    };
    let (id, found) = (read(0), read(1));
    if id == ZEROES {
        return match (0..WORDS).find(|&index| read(index) != 0) {
            None => Ok(ZEROES),
            Some(index) => Err(format!("zeroes up to word {index}, then something else")),
        };
    }
    if let Some(index) = (2..WORDS).find(|&index| read(index) != word(id, found, index)) {
        return Err(format!(
            "starts as write {id} and is torn or garbage at word {index}"
        ));
    }
    let (volume, sector) = (found >> 40, found & ((1 << 40) - 1));
    let is_own = volume == place.volume || ancestors.contains(&volume);
    if sector != place.sector || !is_own {
        return Err(format!(
            "belongs to sector {sector} of volume {volume} (write {id})"
        ));
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place {
        volume: 3,
        sector: 17,
    };

    const NONE: BTreeSet<u64> = BTreeSet::new();

    fn sector(id: WriteId, place: Place) -> Vec<u8> {
        let mut bytes = vec![0; SECTOR_BYTES];
        fill(&mut bytes, id, place);
        bytes
    }

    #[test]
    fn a_sector_says_which_write_it_came_from() {
        assert_eq!(identify(&sector(5, PLACE), PLACE, &NONE), Ok(5));
        assert_eq!(identify(&[0; SECTOR_BYTES], PLACE, &NONE), Ok(ZEROES));
    }

    #[test]
    fn misplaced_foreign_torn_and_half_zero_sectors_are_noticed() {
        let elsewhere = sector(
            5,
            Place {
                sector: 18,
                ..PLACE
            },
        );
        assert!(
            identify(&elsewhere, PLACE, &NONE)
                .unwrap_err()
                .contains("sector 18 of volume 3")
        );
        let foreign = sector(5, Place { volume: 2, ..PLACE });
        assert!(
            identify(&foreign, PLACE, &NONE)
                .unwrap_err()
                .contains("of volume 2")
        );
        assert_eq!(identify(&foreign, PLACE, &BTreeSet::from([2])), Ok(5));
        let mut torn = sector(5, PLACE);
        torn[256..].copy_from_slice(&sector(6, PLACE)[256..]);
        assert!(
            identify(&torn, PLACE, &NONE)
                .unwrap_err()
                .contains("word 32")
        );
        let mut half = [0; SECTOR_BYTES];
        half[504] = 1;
        assert!(
            identify(&half, PLACE, &NONE)
                .unwrap_err()
                .contains("word 63")
        );
    }
}
