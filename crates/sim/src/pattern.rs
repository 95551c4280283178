//! The content of sectors, from which the simulator tells the write that left it.
//!
//! A sector is 64 words. The first is the write's number (never zero), the second
//! names the volume and the sector's place in it, the others follow from both. So
//! a sector at the wrong place, of another volume or of two writes is noticed.

use base::SECTOR_BYTES;

/// The number of a write, unique in a run; [`ZEROES`] stands for "never written".
pub type WriteId = u64;

/// What a sector holds that was never written.
pub const ZEROES: WriteId = 0;

/// What a sector holds: what a write wrote, and where that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Number of the write that left it; zero for zeroes.
    pub id: WriteId,
    place: u64,
}

impl Content {
    /// What was never written, or was cleared.
    pub const ZEROES: Content = Content {
        id: ZEROES,
        place: 0,
    };

    /// What write `id` writes at `place`.
    pub fn of(id: WriteId, place: SectorPlace) -> Content {
        match id {
            ZEROES => Content::ZEROES,
            id => Content {
                id,
                place: place.word(),
            },
        }
    }
}

impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == Content::ZEROES {
            return f.write_str("zeroes");
        }
        let (volume, sector) = (self.place >> 40, self.place & ((1 << 40) - 1));
        write!(
            f,
            "what write {} wrote to sector {sector} of volume {volume}",
            self.id
        )
    }
}

const WORDS: usize = SECTOR_BYTES / 8;

/// Where a sector belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorPlace {
    /// Which volume: unique in a run, also for a name used again.
    pub volume: u64,
    /// Which sector of it.
    pub sector: u64,
}

impl SectorPlace {
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
pub fn fill(bytes: &mut [u8], id: WriteId, first: SectorPlace) {
    assert!(
        id != ZEROES && bytes.len().is_multiple_of(SECTOR_BYTES),
        "whole sectors of a write"
    );
    for (sector, content) in bytes.chunks_exact_mut(SECTOR_BYTES).enumerate() {
        let place = SectorPlace {
            sector: first.sector + sector as u64,
            ..first
        }
        .word();
        for (index, to) in content.chunks_exact_mut(8).enumerate() {
            to.copy_from_slice(&word(id, place, index).to_le_bytes());
        }
    }
}

/// What a sector holds: of which write, and where that was written; what is wrong with it
/// when it is of none.
pub fn identify(content: &[u8]) -> Result<Content, String> {
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
            None => Ok(Content::ZEROES),
            Some(index) => Err(format!("zeroes up to word {index}, then something else")),
        };
    }
    if let Some(index) = (2..WORDS).find(|&index| read(index) != word(id, found, index)) {
        return Err(format!(
            "starts as write {id} and is torn or garbage at word {index}"
        ));
    }
    Ok(Content { id, place: found })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: SectorPlace = SectorPlace {
        volume: 3,
        sector: 17,
    };

    fn sector(id: WriteId, place: SectorPlace) -> Vec<u8> {
        let mut bytes = vec![0; SECTOR_BYTES];
        fill(&mut bytes, id, place);
        bytes
    }

    #[test]
    fn a_sector_says_which_write_it_came_from_and_where_that_was() {
        let here = Content::of(5, PLACE);
        assert_eq!(identify(&sector(5, PLACE)), Ok(here));
        assert_eq!(identify(&[0; SECTOR_BYTES]), Ok(Content::ZEROES));
        for elsewhere in [
            SectorPlace {
                sector: 18,
                ..PLACE
            },
            SectorPlace { volume: 2, ..PLACE },
        ] {
            let found = identify(&sector(5, elsewhere)).unwrap();
            assert_eq!(found, Content::of(5, elsewhere));
            assert_ne!(found, here);
        }
    }

    #[test]
    fn torn_and_half_zero_sectors_are_noticed() {
        let mut torn = sector(5, PLACE);
        torn[256..].copy_from_slice(&sector(6, PLACE)[256..]);
        assert!(identify(&torn).unwrap_err().contains("word 32"));
        let mut half = [0; SECTOR_BYTES];
        half[504] = 1;
        assert!(identify(&half).unwrap_err().contains("word 63"));
    }
}
