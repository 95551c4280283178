//! Recovering the metadata: newest checkpoint, and the journal since.
//!
//! Headers are read first, of all copies; then one payload, a piece at a time, from the
//! first copy that has the newest. Another copy, and an older checkpoint after all of
//! them, is read only when that one is not whole.

use super::{PoolError, PoolErrorKind};
use crate::drives::{Doubt, DriveFault, Member};
use crate::label::PoolIdentity;
use crate::meta::checkpoint::{self, Decoder, Header};
use crate::meta::journal::Scan;
use crate::space::State;
use crate::world::World;
use base::{BLOCK_BYTES, Buf, DriveOffset, Time, Uuid};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Journals are read in pieces of this size.
const TRANSFER_BYTES: u64 = 1 << 20;

/// Pieces of a payload that are read ahead.
const PIECES_AHEAD: usize = 4;

const UNREADABLE: &str = "metadata copy unreadable in recovery";

/// What was read.
pub(super) struct Recovered<W: World> {
    /// Of the newest checkpoint.
    pub generation: u64,
    /// After every record journalled since.
    pub state: State,
    /// Drives that don't have the newest checkpoint.
    pub behind: Option<Behind<W>>,
}

/// A checkpoint, a drive that has it, and drives that get it before the next one takes
/// the place of what they have.
pub(super) struct Behind<W: World> {
    header: Header,
    source: Rc<Member<W>>,
    members: Vec<Rc<Member<W>>>,
}

/// The newest checkpoint, and every record journalled since.
pub(super) async fn recover<W: World>(
    world: &W,
    pool: &PoolIdentity,
    members: &[Rc<Member<W>>],
) -> Result<Recovered<W>, PoolError> {
    let copies = members.iter().filter(|m| m.metadata() && m.is_writable());
    let copies = Copies {
        world,
        pool,
        copies: copies.cloned().collect(),
        unread: RefCell::default(),
    };
    let mut doubt = Doubt::default();
    let recovered = loop {
        let began = world.now();
        let recovered = copies.recover().await;
        if copies.has_read_one() || !copies.looks_again(&mut doubt, began).await? {
            break recovered;
        }
        copies.unread.take();
    };
    recovered.map_err(|what| {
        let context = format!("metadata of pool '{}': {what}", pool.name);
        PoolError::new(PoolErrorKind::Corrupt, context)
    })
}

/// The drives that carry the metadata.
struct Copies<'a, W: World> {
    world: &'a W,
    pool: &'a PoolIdentity,
    copies: Vec<Rc<Member<W>>>,
    /// Drives of which something could not be read.
    unread: RefCell<BTreeSet<Uuid>>,
}

impl<W: World> Copies<'_, W> {
    /// Whether one drive has been read without an error: none of the others has anything
    /// newer.
    fn has_read_one(&self) -> bool {
        let unread = self.unread.borrow();
        let mut copies = self.copies.iter();
        copies.any(|member| !unread.contains(&member.uuid))
    }

    /// Whether to look again, since no drive could be read without an error.
    ///
    /// # Errors
    /// `Drive` when one that may have all of it does not answer.
    async fn looks_again(&self, doubt: &mut Doubt, began: Time) -> Result<bool, PoolError> {
        let again = doubt.opening_looks_again(self.world, &self.copies, began);
        again.await.map_err(|away| {
            let context = format!(
                "metadata of pool '{}': drive '{}' can't be read now, and no other has all of it: try again, or bring the missing drives back",
                self.pool.name, away.name
            );
            PoolError::new(PoolErrorKind::Drive, context)
        })
    }

    async fn recover(&self) -> Result<Recovered<W>, String> {
        let (generation, mut state, behind) = self.newest_checkpoint().await?;
        // The generation after it, too: a crash may have come between the switch of the
        // journal area and the end of the checkpoint that goes with it.
        for generation in [generation, generation + 1] {
            let journal = self.journal(generation).await;
            for record in journal.iter().flat_map(Scan::records) {
                state.apply(&record?)?;
            }
        }
        Ok(Recovered {
            generation,
            state,
            behind,
        })
    }

    async fn newest_checkpoint(&self) -> Result<(u64, State, Option<Behind<W>>), String> {
        let slots = self
            .copies
            .iter()
            .flat_map(|member| [self.read_header(member, 0), self.read_header(member, 1)]);
        let mut found: Vec<(Header, &Rc<Member<W>>)> =
            join_all(slots).await.into_iter().flatten().collect();
        // The sort is stable: of one generation, the first drive comes first.
        found.sort_by_key(|(header, _)| std::cmp::Reverse(header.generation));
        let mut tried: Vec<&Rc<Member<W>>> = Vec::new();
        for (header, member) in &found {
            if let Some(state) = self.read_payload(member, *header).await? {
                let has_it = |member: &Rc<Member<W>>| {
                    let mut of_it = found.iter().filter(|(_, other)| Rc::ptr_eq(other, member));
                    of_it.any(|(own, _)| own == header)
                        && !tried.iter().any(|other| Rc::ptr_eq(other, member))
                };
                let mut members = self.copies.clone();
                members.retain(|other| !Rc::ptr_eq(other, member) && !has_it(other));
                let behind = (!members.is_empty()).then(|| Behind {
                    header: *header,
                    source: Rc::clone(member),
                    members,
                });
                return Ok((header.generation, state, behind));
            }
            self.world.reached(UNREADABLE);
            tried.push(member);
        }
        Err("no copy of it is whole".to_owned())
    }

    async fn read_header<'m>(
        &self,
        member: &'m Rc<Member<W>>,
        slot: u64,
    ) -> Option<(Header, &'m Rc<Member<W>>)> {
        let at = self.pool.checkpoint_offset(slot);
        let len = checkpoint::HEADER_BYTES as u64;
        let block = self.read(member, at, len as usize).await?;
        let header = checkpoint::decode_header(block.bytes()?, self.pool.lane_uuid())?;
        let room = self.pool.checkpoint_bytes - len;
        let fits = header.payload_bytes <= room && header.generation % 2 == slot;
        fits.then_some((header, member))
    }

    /// The state that `header` speaks of, when this copy of it is whole.
    async fn read_payload(
        &self,
        member: &Member<W>,
        header: Header,
    ) -> Result<Option<State>, String> {
        let slot = self.pool.checkpoint_offset(header.generation);
        let from = slot + checkpoint::HEADER_BYTES as u64;
        let piece = u64::from(header.segment_bytes);
        let pieces = (0..header.payload_bytes.div_ceil(piece)).map(|index| {
            let len = piece.min(header.payload_bytes - index * piece);
            self.read(member, from + index * piece, len as usize)
        });
        let mut pieces = stream::iter(pieces).buffered(PIECES_AHEAD);
        let mut decoder = Decoder::new(header);
        while let Some(buf) = pieces.next().await {
            let whole = match buf.as_ref().and_then(Buf::bytes) {
                Some(segment) => decoder.take(segment),
                None => false,
            };
            if !whole {
                return Ok(None);
            }
        }
        decoder.finish()
    }

    /// The journal of a generation, from the copy that has the most of it: every
    /// acknowledged batch is on all.
    async fn journal(&self, generation: u64) -> Option<Scan> {
        let scans = self
            .copies
            .iter()
            .map(|member| self.scan(member, generation));
        // A copy that can't be read is one copy fewer.
        let scans = join_all(scans).await.into_iter().flatten();
        scans.reduce(|longest, scan| match scan.batches() > longest.batches() {
            true => scan,
            false => longest,
        })
    }

    async fn scan(&self, member: &Member<W>, generation: u64) -> Option<Scan> {
        let at = self.pool.journal_offset(generation);
        let area = u64::from(self.pool.journal_bytes);
        let mut scan = Scan::new(self.pool.lane_uuid(), generation);
        let mut done = 0;
        while done < area {
            let len = (area - done).min(TRANSFER_BYTES);
            let buf = self.read(member, at + done, len as usize).await?;
            if !scan.take(buf.bytes()?) {
                break;
            }
            done += len;
        }
        Some(scan)
    }

    async fn read(&self, member: &Member<W>, at: u64, len: usize) -> Option<Buf> {
        assert!(len.is_multiple_of(BLOCK_BYTES), "metadata is whole blocks");
        let buf = self.world.buffers().bytes(len);
        let read = member.read(DriveOffset(at), buf).await;
        if read.is_err() {
            self.world.reached(UNREADABLE);
            self.unread.borrow_mut().insert(member.uuid);
        }
        read.ok()
    }
}

impl<W: World> Behind<W> {
    /// Gives the checkpoint to the drives that don't have it, header last. Without it, one that
    /// is written into the other slot would go over the only whole one that they have, and if
    /// that were cut short they would have none. Returns drives that could not be written; none
    /// when the checkpoint can't be read any more.
    pub async fn put_right(&self, world: &W, pool: &PoolIdentity) -> Option<Vec<DriveFault<W>>> {
        world.reached("checkpoint copied at an opening");
        let slot = pool.checkpoint_offset(self.header.generation);
        let head = checkpoint::HEADER_BYTES as u64;
        let mut at = head;
        let mut faults = Vec::new();
        while at < head + self.header.payload_bytes {
            let len = (head + self.header.payload_bytes - at).min(TRANSFER_BYTES);
            self.copy(world, slot + at, len, &mut faults).await?;
            at += len;
        }
        self.copy(world, slot, head, &mut faults).await?;
        Some(faults)
    }

    async fn copy(
        &self,
        world: &W,
        at: u64,
        len: u64,
        faults: &mut Vec<DriveFault<W>>,
    ) -> Option<()> {
        let buf = world.buffers().bytes(len as usize);
        let data = self.source.read(DriveOffset(at), buf).await.ok()?.freeze();
        let failed =
            |member: &Rc<Member<W>>| faults.iter().any(|fault| Rc::ptr_eq(&fault.member, member));
        let in_use = |member: &&Rc<Member<W>>| member.is_writable() && !failed(member);
        let members = self.members.iter().filter(in_use);
        let writes = members.map(async |member| {
            let outcome = member.write_durably(DriveOffset(at), data.clone()).await;
            let member = Rc::clone(member);
            outcome.err().map(|error| DriveFault { member, error })
        });
        let failures: Vec<_> = join_all(writes).await.into_iter().flatten().collect();
        faults.extend(failures);
        Some(())
    }
}
