//! Changes that depend on the present content, and writes that are never torn.
//!
//! Invariants:
//! - Between the look at what is there and the change nobody else reads or writes those
//!   blocks: of two at once on the same blocks, one sees what the other made.
//! - A write that is asked to be whole is one entry of the log: after a crash all of it is
//!   there, or nothing.

use super::io::{Run, block_span, failed, runs};
use super::{Alteration, Altered, IoError, IoErrorKind, Volume, WHOLE_BYTES_MAX};
use crate::space::Claim;
use crate::store::Write;
use crate::world::World;
use base::{BLOCK_BYTES, PoolOffset, Slice, VolumeOffset};
use smallvec::SmallVec;
use std::time::Duration;

impl<W: World> Volume<W> {
    /// Does `alteration` from `at` on, at one instant; whole sectors.
    ///
    /// # Errors
    /// As [`Volume::write`]; `OutOfRange` also for more than [`WHOLE_BYTES_MAX`] bytes, or
    /// than the log takes at once.
    pub async fn alter(
        &self,
        at: VolumeOffset,
        alteration: Alteration,
    ) -> Result<Altered, IoError> {
        if let Some(there) = self.core.live.moved() {
            return there.alter(at, alteration).await;
        }
        let len = alteration.data().len();
        self.check_range(at, len)?;
        self.check_writable(at)?;
        if len > self.whole_bytes_max() {
            return Err(self.too_long(at, len));
        }
        let _operation = self.core.live.begin().ok_or_else(|| self.deleted(at))?;
        if len == 0 {
            return Ok(Altered::Done);
        }
        self.inner.store().counts.host_write(len);
        let (start, end) = block_span(at.0, len as u64);
        let range = self.core.live.ranges.exclusive(start, end).await;
        if let Some(there) = self.core.live.moved() {
            drop(range);
            return there.alter(at, alteration).await;
        }
        self.check_end(at, len as u64)?;
        let outcome = self.outcome(at, &alteration).await;
        if outcome.is_err() {
            self.settle(at)?;
        }
        let data = match outcome? {
            Ok(data) => data,
            Err(differs) => return Ok(differs),
        };
        let mirrored = self.core.live.mirror().map(|_| data.clone());
        let written = self.write_whole(at, data).await;
        if let Some(data) = mirrored {
            self.mirror_write(at.0, data, written.is_ok()).await;
        }
        self.settle(at)?;
        written.map_err(|error| error.within(at, len as u64))?;
        Ok(Altered::Done)
    }

    /// Bytes of one [`Alteration`], at most.
    pub fn whole_bytes_max(&self) -> usize {
        // Where it does not begin with a block, it is widened to whole ones.
        let entry = self.inner.store().write_bytes_max();
        WHOLE_BYTES_MAX.min(entry.saturating_sub(BLOCK_BYTES))
    }

    fn too_long(&self, at: VolumeOffset, len: usize) -> IoError {
        let most = self.whole_bytes_max();
        IoError {
            kind: IoErrorKind::OutOfRange,
            at,
            context: format!(
                "{len} bytes at once in volume '{}': allowed are {most}",
                self.core.name
            ),
        }
    }

    /// What is to be written, or that nothing is. The caller holds the blocks.
    async fn outcome(
        &self,
        at: VolumeOffset,
        alteration: &Alteration,
    ) -> Result<Result<Slice, Altered>, IoError> {
        let len = alteration.data().len() as u64;
        match alteration {
            Alteration::Whole(data) => Ok(Ok(data.clone())),
            Alteration::Exchange { expected, new } => {
                let found = match self
                    .inner
                    .world()
                    .planted("compare and write does not compare")
                {
                    true => expected.clone(),
                    false => self.read_held(at.0, len).await?,
                };
                let (found, expected) = (found.bytes(), expected.bytes());
                // Without bytes, as calibrated runs have it, nothing differs.
                let both = found
                    .unwrap_or_default()
                    .iter()
                    .zip(expected.unwrap_or_default());
                let differs = { both }.position(|(found, expected)| found != expected);
                Ok(match differs {
                    None => Ok(new.clone()),
                    Some(offset) => Err(Altered::Differs {
                        offset_bytes: offset as u64,
                    }),
                })
            }
            Alteration::Or(data) => {
                let found = self.read_held(at.0, len).await?;
                let mut both = self.inner.world().buffers().data(len as usize);
                both.put(0, &found);
                if let (Some(both), Some(data)) = (both.bytes_mut(), data.bytes()) {
                    both.iter_mut().zip(data).for_each(|(a, b)| *a |= b);
                }
                Ok(Ok(both.freeze()))
            }
        }
    }

    /// Writes `data` by one entry of the log; the caller holds the blocks.
    async fn write_whole(&self, at: VolumeOffset, data: Slice) -> Result<(), IoError> {
        if self.inner.world().planted("whole write in two parts") && data.len() >= 2 * BLOCK_BYTES {
            let half = data.len() / 2 / BLOCK_BYTES * BLOCK_BYTES;
            let later = VolumeOffset(at.0 + half as u64);
            self.write_held(at, data.slice(0, half)).await?;
            self.inner.world().sleep(Duration::from_micros(100)).await;
            return self
                .write_held(later, data.slice(half, data.len() - half))
                .await;
        }
        let (start, end) = block_span(at.0, data.len() as u64);
        let data = match data.len() as u64 == end - start && data.is_aligned() {
            true => data,
            false => self.whole_blocks(start, end, at, data).await?,
        };
        let page_bytes = self.inner.page_bytes();
        let runs: SmallVec<[Run; 2]> = runs(page_bytes, start, data.len()).collect();
        loop {
            let places = runs.iter().map(|run| match self.place(run.page) {
                Some((phys, false)) => Some((run, phys)),
                _ => None,
            });
            let places: Option<Vec<_>> = places.collect();
            if let Some(places) = places {
                // Nothing was awaited since the look at the map.
                let write = |(run, phys): &(&Run, base::PhysPage)| {
                    let to = PoolOffset(phys.0 * page_bytes + run.inside);
                    Write::Data(to, data.slice(run.start, run.len))
                };
                let writes = places.iter().map(write).collect();
                let written = self.inner.store().write(writes).await;
                return written.map_err(|error| failed(VolumeOffset(start), error));
            }
            for run in &runs {
                self.make_place(*run).await?;
            }
        }
    }

    /// Gives what is about to be written a page that nobody else has.
    async fn make_place(&self, run: Run) -> Result<(), IoError> {
        match self.place(run.page) {
            Some((_, false)) => Ok(()),
            Some((_, true)) => self.make_private(run.page, Claim::Open).await,
            None => {
                let zeroes = self.inner.world().buffers().zeros(BLOCK_BYTES);
                let first = Run {
                    len: BLOCK_BYTES,
                    ..run
                };
                self.write_part(first, zeroes).await
            }
        }
    }
}
