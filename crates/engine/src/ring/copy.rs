//! Copying all that is in a ring to another drive.
//!
//! Invariants:
//! - A batch goes to the drive as it was written, or not at all. What one copy has that is not
//!   whole is taken from another.
//! - A batch that lies where a trimmed one lay is written after it: those of one round lie apart, and
//!   rounds follow each other.

use super::format::{self, Superblock};
use super::{Batch, Ring, RingError, RingErrorKind};
use crate::drives::Member;
use crate::world::World;
use base::{Buf, Slice};
use futures_util::future::join_all;

/// A batch of the ring, as RAM knows it.
struct Known {
    at: u64,
    len_bytes: u64,
    sequence: u64,
}

/// Appends wait for the last part of a copy, which is a sixteenth of the ring or this.
const LAST_PART_BYTES_MAX: u64 = 1 << 20;

/// Copies go on beside appends in so many rounds at most: appends may be as fast as they are.
const ROUNDS_MAX: usize = 8;

/// Batches that are read, and then written, at the same time.
const PART: usize = 8;

impl<W: World> Ring<W> {
    /// Writes batches to `member` while appends and trims go on, until little is left. Returns the
    /// sequence of the first batch that is left.
    ///
    /// # Errors
    /// As [`Ring::copy_rest`].
    pub(super) async fn copy_beside_appends(&self, member: &Member<W>) -> Result<u64, RingError> {
        let last_part = LAST_PART_BYTES_MAX.min(self.capacity_bytes() / 16);
        let mut next = 0;
        for _ in 0..ROUNDS_MAX {
            let durable = self.known_from(next, |batch| batch.durable);
            let bytes: u64 = durable.iter().map(|batch| batch.len_bytes).sum();
            let Some(last) = durable.last().filter(|_| bytes > last_part) else {
                break;
            };
            next = last.sequence + 1;
            self.copy_batches(durable, member).await?;
        }
        if next > 0 {
            self.world.reached("log copied beside appends");
            // What is left then is soon on the drive.
            let flushed = member.flush().await;
            flushed.map_err(|error| self.cannot_take(member, &error))?;
        }
        Ok(next)
    }

    /// Writes the batches from `next` on, and superblocks, to `member`, durably. No append is under
    /// way, and no trim.
    ///
    /// # Errors
    /// `Drive` when the drive can't be written, or no copy of a batch is whole.
    pub(super) async fn copy_rest(&self, next: u64, member: &Member<W>) -> Result<(), RingError> {
        let forgets = self.world.planted("log moved without what came meanwhile");
        if !(forgets && next > 0) {
            let rest = self.known_from(next, |_| true);
            self.copy_batches(rest, member).await?;
        }
        let flushed = member.flush().await;
        flushed.map_err(|error| self.cannot_take(member, &error))?;
        // What it may have of an earlier time in the pool says nothing any more.
        let present = self.present_superblock();
        let before = Superblock {
            version: present.version - 1,
            ..present
        };
        for superblock in [before, present] {
            let block = superblock.encode(&self.spec);
            let block = self.world.buffers().copy_of(&block).freeze();
            let at = self.spec.superblock_at(superblock.version);
            let written = member.write_durably(at, block).await;
            written.map_err(|error| self.cannot_take(member, &error))?;
        }
        Ok(())
    }

    /// Batches in order, from this sequence to the first that is not `wanted`.
    fn known_from(&self, next: u64, wanted: impl Fn(&Batch) -> bool) -> Vec<Known> {
        let state = self.state.borrow();
        let batches = (state.tail_sequence..).zip(&state.batches);
        let known = batches
            .skip_while(|(sequence, _)| *sequence < next)
            .take_while(|(_, batch)| wanted(batch));
        known
            .map(|(sequence, batch)| Known {
                at: batch.at,
                len_bytes: batch.len_bytes,
                sequence,
            })
            .collect()
    }

    /// Writes these batches to `member`, but for those that are trimmed meanwhile.
    async fn copy_batches(&self, batches: Vec<Known>, member: &Member<W>) -> Result<(), RingError> {
        // Reads that nobody polls while others are written would look like those of a drive that hangs.
        for part in batches.chunks(PART) {
            let copies = join_all(part.iter().map(|batch| self.whole_copy(batch))).await;
            let mut writes = Vec::new();
            for (bytes, batch) in copies.into_iter().zip(part) {
                match bytes {
                    Ok(bytes) => writes.push(member.write(self.on_drive(batch.at), bytes)),
                    // Another one may lie in its place by now.
                    Err(_) if batch.sequence < self.state.borrow().tail_sequence => {}
                    Err(error) => return Err(error),
                }
            }
            for written in join_all(writes).await {
                written.map_err(|error| self.cannot_take(member, &error))?;
            }
        }
        Ok(())
    }

    /// A batch from the first drive that has it whole.
    async fn whole_copy(&self, batch: &Known) -> Result<Slice, RingError> {
        for source in self.in_use() {
            let buf = self.world.buffers().data(batch.len_bytes as usize);
            let read = source.read(self.on_drive(batch.at), buf).await;
            let is_whole = |buf: &Buf| match buf.bytes() {
                // A world without bytes has nothing that could be wrong with them.
                None => true,
                Some(bytes) => format::decode(&self.spec, bytes).is_some_and(|whole| {
                    whole.id.sequence == batch.sequence && whole.id.at == batch.at
                }),
            };
            let unverified = self.world.planted("log copied unverified");
            if let Some(buf) = read.ok().filter(|buf| is_whole(buf) || unverified) {
                return Ok(buf.freeze());
            }
            self.world.reached("log copied from another drive");
        }
        let context = format!(
            "{}: no drive has batch {} whole",
            self.spec.label, batch.sequence
        );
        Err(RingError::new(RingErrorKind::Drive, context))
    }

    fn cannot_take(&self, member: &Member<W>, error: &crate::drive::DriveError) -> RingError {
        let context = format!("{}: drive '{}': {error}", self.spec.label, member.name);
        RingError::new(RingErrorKind::Drive, context)
    }
}
