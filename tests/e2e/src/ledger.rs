//! What a run of sectors may hold: every sector carries the number of the write that
//! it is from, and a write that was under way in a crash may have happened or not,
//! sector by sector.

use crate::initiator::SECTOR;
use std::collections::BTreeMap;
use std::ops::Range;

/// Words of a sector.
const WORDS: usize = SECTOR / 8;

/// What is known of the sectors of a region.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// First sector of the region on its LUN.
    first: u64,
    /// Number of the write that a sector is from; 0 was never written, and zeroes.
    sure: Vec<u32>,
    /// Writes besides that a sector may be from.
    doubt: BTreeMap<u64, Vec<u32>>,
    next: u32,
}

impl Ledger {
    /// Of a region that was never written.
    pub fn new(sectors: Range<u64>) -> Self {
        let count = usize::try_from(sectors.end - sectors.start).expect("it fits in RAM");
        Ledger {
            first: sectors.start,
            sure: vec![0; count],
            doubt: BTreeMap::new(),
            next: 1,
        }
    }

    /// The sectors of the region.
    pub fn sectors(&self) -> Range<u64> {
        self.first..self.first + self.sure.len() as u64
    }

    /// A number for the next write.
    pub fn next_number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// What write `number` puts at `lba`.
    pub fn data(number: u32, lba: u64, sectors: usize) -> Vec<u8> {
        let mut data = vec![0; sectors * SECTOR];
        for (sector, bytes) in data.chunks_exact_mut(SECTOR).enumerate() {
            fill(number, lba + sector as u64, bytes);
        }
        data
    }

    /// Write `number` was acknowledged.
    pub fn acknowledged(&mut self, number: u32, lba: u64, sectors: usize) {
        let start = (lba - self.first) as usize;
        self.sure[start..start + sectors].fill(number);
    }

    /// Nobody has heard of write `number`.
    pub fn in_doubt(&mut self, number: u32, lba: u64, sectors: usize) {
        for sector in lba..lba + sectors as u64 {
            self.doubt.entry(sector).or_default().push(number);
        }
    }

    /// How many sectors were written.
    pub fn written(&self) -> usize {
        self.sure.iter().filter(|number| **number != 0).count()
    }

    /// The first LBA of `data`, when it is a run of sectors as they should be, one after
    /// the other.
    pub fn whose(&self, data: &[u8]) -> Option<u64> {
        let lba = word(data, 0);
        let mut right = [0; SECTOR];
        for (sector, bytes) in (0..).zip(data.chunks_exact(SECTOR)) {
            let sector = lba.checked_add(sector)?;
            let index = usize::try_from(sector.checked_sub(self.first)?).ok()?;
            let number = self.sure.get(index).filter(|number| **number != 0)?;
            fill(*number, sector, &mut right);
            if right != bytes {
                return None;
            }
        }
        Some(lba)
    }

    /// Checks what was read at `lba`. What was in doubt isn't afterwards: what has been
    /// read once stays.
    ///
    /// # Panics
    /// When a sector holds anything that it may not.
    #[track_caller]
    pub fn check(&mut self, lba: u64, data: &[u8], when: &str) {
        let mut right = [0; SECTOR];
        for (sector, bytes) in (lba..).zip(data.chunks_exact(SECTOR)) {
            let sure = &mut self.sure[(sector - self.first) as usize];
            let doubt = self.doubt.remove(&sector).unwrap_or_default();
            let mut candidates = std::iter::once(*sure).chain(doubt.iter().copied());
            let found = candidates.find(|number| {
                fill(*number, sector, &mut right);
                right == bytes
            });
            match found {
                Some(number) => *sure = number,
                None => panic!(
                    "{when}: sector {sector} is from write {sure} or one of {doubt:?}, and \
                     {} was read",
                    claim(bytes)
                ),
            }
        }
    }
}

/// A sector of write `number`: place and number, then words that follow from both.
fn fill(number: u32, lba: u64, bytes: &mut [u8]) {
    if number == 0 {
        bytes.fill(0);
        return;
    }
    let mut word = (lba << 32 | u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for (index, place) in bytes.chunks_exact_mut(8).enumerate().take(WORDS) {
        let value = match index {
            0 => lba,
            1 => u64::from(number),
            _ => {
                // xorshift64: never zero from a start that is not zero.
                word ^= word << 13;
                word ^= word >> 7;
                word ^= word << 17;
                word
            }
        };
        place.copy_from_slice(&value.to_le_bytes());
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// What a sector says of itself, for people.
fn claim(bytes: &[u8]) -> String {
    if bytes.iter().all(|byte| *byte == 0) {
        return "zeroes".to_owned();
    }
    let (lba, number) = (word(bytes, 0), word(bytes, 8));
    let mut right = [0; SECTOR];
    fill(u32::try_from(number).unwrap_or(1), lba, &mut right);
    match right == bytes {
        true => format!("sector {lba} of write {number}"),
        false => format!("garbage that begins {:02x?}", &bytes[..16]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        let mut ledger = Ledger::new(8..24);
        let first = ledger.next_number();
        ledger.acknowledged(first, 8, 4);
        ledger
    }

    #[test]
    fn what_was_acknowledged_and_what_was_never_written_is_right() {
        let mut ledger = ledger();
        ledger.check(8, &Ledger::data(1, 8, 4), "now");
        ledger.check(12, &[0; SECTOR], "now");
        assert_eq!(ledger.written(), 4);
    }

    #[test]
    fn what_was_in_doubt_may_be_either_and_stays() {
        let mut ledger = ledger();
        let number = ledger.next_number();
        ledger.in_doubt(number, 10, 4);
        ledger.check(10, &Ledger::data(2, 10, 1), "now");
        ledger.check(11, &Ledger::data(1, 11, 1), "now");
        ledger.check(12, &[0; SECTOR], "now");
        for (lba, other) in [(10, Ledger::data(1, 10, 1)), (11, Ledger::data(2, 11, 1))] {
            let mut ledger = ledger.clone();
            let check = std::panic::AssertUnwindSafe(|| ledger.check(lba, &other, "then"));
            assert!(std::panic::catch_unwind(check).is_err(), "{lba} goes back");
        }
    }

    #[test]
    fn a_block_is_known_by_its_content() {
        let ledger = ledger();
        assert_eq!(ledger.whose(&Ledger::data(1, 9, 2)), Some(9));
        assert_eq!(
            ledger.whose(&Ledger::data(1, 11, 2)),
            None,
            "12 is not from it"
        );
        assert_eq!(ledger.whose(&Ledger::data(2, 9, 2)), None);
        assert_eq!(ledger.whose(&[0; SECTOR]), None);
        assert_eq!(ledger.whose(&[0xff; SECTOR]), None);
    }

    #[test]
    #[should_panic(expected = "from write 1 or one of [], and sector 9 of write 1 was read")]
    fn a_misdirected_sector_is_seen() {
        ledger().check(8, &Ledger::data(1, 9, 1), "now");
    }

    #[test]
    #[should_panic(expected = "and zeroes was read")]
    fn a_lost_sector_is_seen() {
        ledger().check(11, &[0; SECTOR], "now");
    }

    #[test]
    #[should_panic(expected = "garbage that begins")]
    fn a_changed_byte_is_seen() {
        let mut data = Ledger::data(1, 8, 1);
        data[300] ^= 1;
        ledger().check(8, &data, "now");
    }
}
