//! Copying a volume to another pool, while hosts use the volume.
//!
//! Invariants:
//! - What is copied is held for reading until the copy has it.
//! - Only what differs is written: zeroes and pages that are not there take no space, and a
//!   copy that was begun before a crash is gone on with.

use super::io::runs;
use super::{Mirror, Volume};
use crate::world::World;
use base::{Payload, Slice, VolumeOffset};
use futures_util::future::join_all;
use std::ops::Range;
use std::time::Duration;

/// Read and written at once.
const PIECE_BYTES: u64 = 1 << 20;

/// Pieces on their way at once.
const AT_ONCE: usize = 4;

/// Operations that end in this time are no reason to wait.
const SOON: Duration = Duration::from_millis(5);

/// The longest wait for a moment in which they do.
const CALM_MAX: Duration = Duration::from_secs(3);

/// What the copy is to be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fix {
    Nothing,
    Zeroes,
    Data,
}

impl<W: World> Volume<W> {
    /// Copies all of it; what is written meanwhile goes to the copy, too.
    ///
    /// # Errors
    /// Why there is no copy: one of both can't be read or written, or somebody said
    /// [`Mirror::fail`].
    pub async fn copy_to(&self, mirror: &Mirror) -> Result<(), String> {
        let one = async |_| {
            loop {
                match self.copy_some(mirror).await {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(why) => return mirror.fail(why),
                }
            }
        };
        join_all((0..AT_ONCE).map(one)).await;
        mirror.check_whole()
    }

    /// Waits, not for ever, for a moment in which what is under way ends soon: who has the
    /// volume stand still then does so for no longer than that.
    pub(crate) async fn calm(&self) {
        let world = self.inner.world();
        let began = world.now();
        loop {
            let asked = world.now();
            self.core.live.turn_over(world).await;
            let now = world.now();
            if now - asked <= SOON || now - began >= CALM_MAX {
                return;
            }
        }
    }

    /// Copies the next run; false when there is none.
    async fn copy_some(&self, mirror: &Mirror) -> Result<bool, String> {
        let turn = mirror.turn.lock().await;
        let start = mirror.cursor.get();
        let size_bytes = mirror.progress().size_bytes;
        if start == size_bytes || mirror.failure().is_some() {
            return Ok(false);
        }
        let end = self.next_end(start, size_bytes);
        let held_end = end.next_multiple_of(base::BLOCK_BYTES as u64);
        if self.mapped_run(start, 1).0 {
            mirror.pace(self.inner.world(), end - start).await;
        }
        let _range = self.core.live.ranges.shared(start, held_end).await;
        // From here on whoever writes there waits, and writes to the copy, too.
        mirror.cursor.set(end);
        drop(turn);
        self.copy_run(mirror, start..end).await?;
        let mut progress = mirror.progress();
        progress.done_bytes += end - start;
        mirror.progress.set(progress);
        Ok(true)
    }

    /// Where the piece that begins at `start` ends: what has no pages is one.
    fn next_end(&self, start: u64, size_bytes: u64) -> u64 {
        let piece = (start / PIECE_BYTES + 1) * PIECE_BYTES;
        match self.mapped_run(start, size_bytes - start) {
            (true, _) => piece.min(size_bytes),
            (false, alike) => piece
                .max((start + alike) / PIECE_BYTES * PIECE_BYTES)
                .min(size_bytes),
        }
    }

    /// Copies what is held.
    async fn copy_run(&self, mirror: &Mirror, run: Range<u64>) -> Result<(), String> {
        let mut at = run.start;
        while at < run.end {
            let (is_there, alike) = self.mapped_run(at, run.end - at);
            let to = match is_there {
                false => at + alike,
                true => (at + alike).min((at / PIECE_BYTES + 1) * PIECE_BYTES),
            };
            match is_there {
                false => clear_there(mirror, at..to).await?,
                true => self.copy_piece(mirror, at..to).await?,
            }
            at = to;
        }
        Ok(())
    }

    async fn copy_piece(&self, mirror: &Mirror, piece: Range<u64>) -> Result<(), String> {
        let (at, len) = (
            VolumeOffset(piece.start),
            (piece.end - piece.start) as usize,
        );
        let here = self
            .read_held(piece.start, piece.end - piece.start)
            .await
            .map_err(|error| error.context)?;
        let mapping = mirror.to.mapping(at).await;
        let mapping = mapping.map_err(|error| error.context)?;
        let is_blank = !mapping.is_mapped && mapping.len_bytes >= len as u64;
        let there = match is_blank {
            true => None,
            false => {
                let there = mirror.to.read(at, len).await;
                let there = there.map_err(|error| error.context)?;
                self.inner.world().reached("move gone on with");
                Some(there)
            }
        };
        let grain = mirror.to.info().page_bytes;
        for (run, fix) in fixes(&here, there.as_ref(), (piece.start, grain)) {
            let at = VolumeOffset(piece.start + run.start as u64);
            let fixed = match fix {
                Fix::Nothing => continue,
                Fix::Zeroes => mirror.to.clear(at, run.len() as u64).await,
                Fix::Data => {
                    let data = here.slice(run.start, run.len());
                    mirror.to.write(at, data).await
                }
            };
            fixed.map_err(|error| error.context)?;
            let mut progress = mirror.progress();
            progress.data_bytes += run.len() as u64;
            mirror.progress.set(progress);
        }
        Ok(())
    }
}

/// Has a run of the copy read as zeroes.
async fn clear_there(mirror: &Mirror, run: Range<u64>) -> Result<(), String> {
    let mut at = run.start;
    while at < run.end {
        let mapping = mirror.to.mapping(VolumeOffset(at)).await;
        let mapping = mapping.map_err(|error| error.context)?;
        let len = mapping.len_bytes.clamp(1, run.end - at);
        if mapping.is_mapped {
            let cleared = mirror.to.clear(VolumeOffset(at), len).await;
            cleared.map_err(|error| error.context)?;
        }
        at += len;
    }
    Ok(())
}

/// What has to be done for the copy, which lies at `at` and has `there` (nothing at all, if
/// `None`), to have `here`: by pages of the copy, those in a row together.
fn fixes(
    here: &Slice,
    there: Option<&Payload>,
    (at, page_bytes): (u64, u64),
) -> Vec<(Range<usize>, Fix)> {
    let there = there.map(Payload::to_vec);
    let mut fixes: Vec<(Range<usize>, Fix)> = Vec::new();
    for run in runs(page_bytes, at, here.len()) {
        let run = run.start..run.start + run.len;
        let fix = match here.bytes() {
            // Nobody keeps bytes here.
            None => Fix::Data,
            Some(here) => {
                let here = &here[run.clone()];
                let is_zeroes = here.iter().all(|byte| *byte == 0);
                match &there {
                    None if is_zeroes => Fix::Nothing,
                    None => Fix::Data,
                    Some(there) if *here == there[run.clone()] => Fix::Nothing,
                    Some(_) if is_zeroes => Fix::Zeroes,
                    Some(_) => Fix::Data,
                }
            }
        };
        match fixes.last_mut() {
            Some((last, alike)) if *alike == fix => last.end = run.end,
            _ => fixes.push((run, fix)),
        }
    }
    fixes
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BufPool;

    #[test]
    fn only_what_differs_is_written_and_zeroes_take_no_space() {
        let pool = BufPool::new();
        let slice = |bytes: &[u8]| pool.copy_of(bytes).freeze();
        let mut bytes = vec![0u8; 4 * 512];
        bytes[600] = 1;
        bytes[1600] = 2;
        let here = slice(&bytes);
        let found = |there: Option<&Payload>, at| fixes(&here, there, (at, 512));
        let data = |run| (run, Fix::Data);
        assert_eq!(
            found(None, 0),
            [
                (0..512, Fix::Nothing),
                data(512..1024),
                (1024..1536, Fix::Nothing),
                data(1536..2048)
            ]
        );
        // The piece begins in the middle of a page.
        assert_eq!(found(None, 256)[1], data(256..768));
        let mut other = bytes.clone();
        other[5] = 9;
        other[1600] = 3;
        let there = Payload::from(slice(&other));
        assert_eq!(
            found(Some(&there), 0),
            [
                (0..512, Fix::Zeroes),
                (512..1536, Fix::Nothing),
                data(1536..2048)
            ]
        );
        let same = Payload::from(slice(&bytes));
        assert_eq!(found(Some(&same), 0), [(0..2048, Fix::Nothing)]);
    }
}
