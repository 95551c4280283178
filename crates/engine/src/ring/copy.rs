//! Copying all that is in a ring to another drive.
//!
//! Invariant: a batch goes to the drive as it was written, or not at all. What one copy
//! has that is not whole is taken from another.

use super::format::{self, Superblock};
use super::{Ring, RingError, RingErrorKind};
use crate::drives::Member;
use crate::world::World;
use base::{Buf, Slice};

/// A batch of the ring, as RAM knows it.
struct Known {
    at: u64,
    len_bytes: u64,
    sequence: u64,
}

impl<W: World> Ring<W> {
    /// Writes batches and superblocks to `member`, durably. No append is under way, and no
    /// trim.
    ///
    /// # Errors
    /// `Drive` when the drive can't be written, or no copy of a batch is whole.
    pub(super) async fn copy_to(&self, member: &Member<W>) -> Result<(), RingError> {
        for batch in self.known() {
            let bytes = self.whole_copy(&batch).await?;
            let written = member.write(self.on_drive(batch.at), bytes).await;
            written.map_err(|error| self.cannot_take(member, &error))?;
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

    fn known(&self) -> Vec<Known> {
        let state = self.state.borrow();
        let batches = (state.tail_sequence..).zip(&state.batches);
        batches
            .map(|(sequence, batch)| Known {
                at: batch.at,
                len_bytes: batch.len_bytes,
                sequence,
            })
            .collect()
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
