//! Writes of zeroes on a volume that detects them: they take no space.
//!
//! Invariants:
//! - A page is judged by all that a write has for it. One whose part is zeroes is judged
//!   by no more than that part, and nothing else of it changes.
//! - Where a page is not there, zeroes need nothing: whoever is about to make it makes all
//!   of it zeroes that is not his.
//! - Zeroes that were acknowledged are as durable as any write.

use super::io::runs;
use super::{IoError, Volume};
use crate::space::Claim;
use crate::world::World;
use base::{BLOCK_BYTES, Slice};

static ZEROES: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// Whether all of it is zeroes.
pub(super) fn is_zeroes(bytes: &[u8]) -> bool {
    bytes
        .chunks(BLOCK_BYTES)
        .all(|part| part == &ZEROES[..part.len()])
}

/// A part of a write: from where, how much, whether it is zeroes.
type Stretch = (usize, usize, bool);

impl<W: World> Volume<W> {
    /// Writes whole blocks, but those that are zeroes, which are cleared; the caller holds
    /// their range.
    pub(super) async fn write_but_zeroes(&self, start: u64, data: Slice) -> Result<(), IoError> {
        for (from, len, zeroes) in self.stretches(start, &data) {
            let at = start + from as u64;
            match zeroes {
                false => self.write_blocks(at, data.slice(from, len)).await?,
                true => {
                    self.clear_blocks(at..at + len as u64, Claim::Open).await?;
                    self.inner.world().reached("zeroes not kept");
                }
            }
        }
        Ok(())
    }

    /// Pages in a row that are alike.
    fn stretches(&self, start: u64, data: &Slice) -> Vec<Stretch> {
        let page_bytes = self.inner.page_bytes();
        let mut stretches: Vec<Stretch> = Vec::new();
        for run in runs(page_bytes, start, data.len()) {
            let judged = match self
                .inner
                .world()
                .planted("zeroes judged by the first block")
            {
                true => BLOCK_BYTES.min(run.len),
                false => run.len,
            };
            let part = data.slice(run.start, judged);
            let zeroes = part.bytes().is_some_and(is_zeroes);
            match stretches.last_mut() {
                Some((_, len, alike)) if *alike == zeroes => *len += run.len,
                _ => stretches.push((run.start, run.len, zeroes)),
            }
        }
        stretches
    }
}
