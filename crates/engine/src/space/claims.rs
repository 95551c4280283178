//! The pages that maps have, found at an opening: one bit for each page number.
//!
//! A pool of 100 TiB has 400 million pages, in any order. A bit for each number is one access to
//! memory, and accesses do not wait for each other. Looking for each page's zone is three accesses,
//! one after the other.
//!
//! Invariant: a page number outside all zones in use is never claimed silently:
//! [`Claims::mark`] gives it back.

use crate::meta::Refs;
use crate::meta::page_map::{Entries, UNMAPPED, chunk_bytes, mapped_in};
use crate::pages::Space;
use base::PhysPage;

/// Pages of a word.
const WORD: u64 = u64::BITS as u64;

/// The pages that were claimed so far.
pub(super) struct Claims {
    /// A bit for each page number, from the first on. Memory of numbers without a page is never touched.
    words: Vec<u64>,
    /// Bits that are set.
    claimed: u64,
}

impl Claims {
    /// None yet, of a space without used pages.
    pub fn of(space: &Space) -> Self {
        Claims {
            words: vec![0; space.numbers_end().div_ceil(WORD) as usize],
            claimed: 0,
        }
    }

    /// Claims the pages of a chunk; those that other chunks have get another holder.
    ///
    /// # Errors
    /// A page whose number is behind those of all zones.
    pub fn claim(&mut self, chunk: &Entries, refs: &mut Refs) -> Result<(), PhysPage> {
        let mapped = chunk.iter().filter(|&&entry| entry != UNMAPPED);
        for page in mapped.map(|&entry| u64::from(entry)) {
            let word = self.words.get_mut((page / WORD) as usize);
            let word = word.ok_or(PhysPage(page))?;
            let bit = 1 << (page % WORD);
            match *word & bit == 0 {
                true => self.claimed += 1,
                false => refs.add(PhysPage(page)),
            }
            *word |= bit;
        }
        refs.owned.resize_chunk(0, chunk_bytes(mapped_in(chunk)));
        Ok(())
    }

    /// Marks the pages as used in `space`, all of whose pages are free.
    ///
    /// # Errors
    /// A page that was claimed and is in no zone.
    pub fn mark(mut self, space: &mut Space) -> Result<(), PhysPage> {
        let taken = space.take_claimed(&mut self.words);
        if taken == self.claimed {
            return Ok(());
        }
        // What is left over is in no zone.
        let at = self.words.iter().position(|word| *word != 0);
        let at = at.unwrap_or_else(|| unreachable!("a page was claimed and is nowhere"));
        let bit = self.words[at].trailing_zeros();
        Err(PhysPage(at as u64 * WORD + u64::from(bit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives::PageNumbers;
    use crate::meta::page_map::CHUNK;
    use crate::meta::record::MAP_BYTES;

    /// Two zones of a hundred pages, a hundred apart, with a chunk claimed that has these.
    fn claimed(pages: &[u32]) -> (Result<(), PhysPage>, Space, Refs) {
        let mut space = Space::new(PageNumbers::even(100));
        space.add_zone(0, 0, 100);
        space.add_zone(2, 0, 100);
        let mut claims = Claims::of(&space);
        let (mut chunk, mut refs) = ([UNMAPPED; CHUNK], Refs::default());
        chunk[7..7 + pages.len()].copy_from_slice(pages);
        let claim = claims.claim(&chunk, &mut refs);
        (claim.and_then(|()| claims.mark(&mut space)), space, refs)
    }

    #[test]
    fn pages_that_are_claimed_are_used_and_a_second_holder_is_counted() {
        let (claimed, space, refs) = claimed(&[0, 63, 64, 299, 63, 200]);
        assert_eq!(claimed, Ok(()));
        assert_eq!(space.used(), 5);
        assert!(
            [0, 63, 64, 200, 299]
                .into_iter()
                .all(|page| space.is_used(PhysPage(page)))
        );
        assert_eq!(
            (refs.owned.chunk_bytes, refs.shared()),
            (6 * MAP_BYTES as u64, 1)
        );
        assert_eq!(refs.beyond_first(PhysPage(63)), 1);
    }

    #[test]
    fn pages_in_no_zone_are_named() {
        for outside in [100, 127, 128, 199, 300, 319, 320, UNMAPPED - 1] {
            let (claimed, ..) = claimed(&[5, outside, 299]);
            assert_eq!(claimed, Err(PhysPage(u64::from(outside))));
        }
    }
}
