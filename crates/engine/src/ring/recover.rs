//! Recovering a ring: finding its content, and making all its copies equal.

use super::format::{self, Superblock, Whole};
use super::{BLOCK, Batch, Hold, Losses, Recovered, Ring, RingError, RingErrorKind, RingSpec};
use crate::drive::DriveErrorKind;
use crate::drives::{Doubt, DriveFault, Member};
use crate::world::World;
use base::{BLOCK_BYTES, Slice, Time};
use std::cell::Cell;
use std::rc::Rc;

/// Drives are read this much at a time.
const WINDOW_BYTES: u64 = 1 << 20;

/// A drive, and the part of it that was read last.
struct Copy<W: World> {
    member: Rc<Member<W>>,
    start: u64,
    bytes: Vec<u8>,
}

/// A batch as found on some drive.
struct FoundBatch {
    whole: Whole,
    bytes: Slice,
}

impl<W: World> Ring<W> {
    /// The ring that `members` carry, and its entries in order.
    ///
    /// # Errors
    /// `NoRing` when no drive has a superblock; `Drive` when one fails that can't be
    /// done without.
    pub async fn recover(
        world: W,
        spec: RingSpec,
        members: Vec<Rc<Member<W>>>,
        stamps: Rc<Cell<u64>>,
        losses: Rc<dyn Losses<W>>,
    ) -> Result<(Rc<Self>, Vec<Recovered>), RingError> {
        let ring = Rc::new(Ring::with(world, spec, members, stamps, losses));
        let superblock = ring.newest_superblock().await?;
        let superblock = superblock.ok_or_else(|| {
            let context = format!(
                "{}: no drive that should carry it can be read: bring the missing drives back",
                ring.spec.label
            );
            RingError::new(RingErrorKind::NoRing, context)
        })?;
        {
            let mut state = ring.state.borrow_mut();
            state.version = superblock.version;
            state.head = superblock.tail;
            state.tail = superblock.tail;
            state.next_sequence = superblock.tail_sequence;
            state.tail_sequence = superblock.tail_sequence;
            state.tail_stamp = superblock.tail_stamp;
        }
        let recovered = ring.walk(&superblock).await?;
        let last = recovered
            .last()
            .map_or(superblock.tail_stamp, |entry| entry.stamp);
        ring.stamps.set(ring.stamps.get().max(last));
        {
            let mut state = ring.state.borrow_mut();
            state.incarnation = superblock.incarnation + 1;
            state.since_sequence = state.next_sequence;
            if recovered.is_empty() {
                state.tail_stamp = ring.stamps.get() + 1;
            }
        }
        ring.write_superblocks().await?;
        Ok((ring, recovered))
    }

    /// The newest superblock, once all drives have it: without that, the next one would go
    /// over the only whole one of a drive that does not.
    async fn newest_superblock(&self) -> Result<Option<Superblock>, RingError> {
        let members = self.in_use();
        let mut doubt = Doubt::default();
        let found = loop {
            let began = self.world.now();
            let (mut found, mut unread) = (Vec::new(), 0);
            for member in &members {
                let (superblock, is_read) = self.superblock_of(member).await;
                found.push(superblock);
                unread += usize::from(!is_read);
            }
            // An older superblock would take the end of the log for reached too early.
            if unread < members.len() || !self.looks_again(&mut doubt, &members, began).await? {
                break found;
            }
        };
        let version = |superblock: &Superblock| superblock.version;
        let Some(newest) = found.iter().flatten().max_by_key(|found| version(found)) else {
            return Ok(None);
        };
        let block = newest.encode(&self.spec);
        let block = self.world.buffers().copy_of(&block).freeze();
        let mut faults = Vec::new();
        for (member, found) in members.into_iter().zip(&found) {
            if found.as_ref().map(version) == Some(version(newest)) {
                continue;
            }
            let at = self.spec.superblock_at(version(newest));
            let written = member.write_durably(at, block.clone()).await;
            faults.extend(written.err().map(|error| DriveFault { member, error }));
        }
        self.absorb(faults).await?;
        Ok(found.into_iter().flatten().max_by_key(version))
    }

    /// Whether to look again for something that none of `members` could give.
    ///
    /// # Errors
    /// `Drive` when one that may have it does not answer.
    async fn looks_again(
        &self,
        doubt: &mut Doubt,
        members: &[Rc<Member<W>>],
        began: Time,
    ) -> Result<bool, RingError> {
        let again = doubt.opening_looks_again(&self.world, members, began);
        again.await.map_err(|away| {
            let (label, name) = (self.spec.label, &away.name);
            let context =
                format!("{label}: drive '{name}' can't be read now, and no other has all of it");
            RingError::new(RingErrorKind::Drive, context)
        })
    }

    /// The newer superblock of a drive, and whether both places could be read.
    async fn superblock_of(&self, member: &Member<W>) -> (Option<Superblock>, bool) {
        let mut newest: Option<Superblock> = None;
        let mut is_read = true;
        for slot in 0..2 {
            let buf = self.world.buffers().bytes(BLOCK_BYTES);
            let Ok(buf) = member.read(self.spec.superblock_at(slot), buf).await else {
                is_read = false;
                continue;
            };
            let found = buf
                .bytes()
                .and_then(|block| Superblock::decode(block, &self.spec));
            newest = newest
                .into_iter()
                .chain(found)
                .max_by_key(|superblock| superblock.version);
        }
        (newest, is_read)
    }

    /// Follows the chain from the tail on.
    async fn walk(&self, superblock: &Superblock) -> Result<Vec<Recovered>, RingError> {
        let members = self.in_use();
        let mut copies: Vec<Copy<W>> = members
            .into_iter()
            .map(|member| Copy {
                member,
                start: 0,
                bytes: Vec::new(),
            })
            .collect();
        let mut recovered = Vec::new();
        // What an earlier owner left at one of the two places where a batch may be is not
        // taken for the one that a later owner wrote at the other.
        let mut last = 0;
        loop {
            let (head, sequence) = {
                let state = self.state.borrow();
                (state.head, state.next_sequence)
            };
            let incarnation = superblock.oldest_incarnation(sequence).max(last);
            let mut next = None;
            // Right after the last one, or, where it did not fit, at the start.
            for at in [head, 0] {
                if let Some(found) = self.find(&mut copies, at, sequence, incarnation).await? {
                    next = Some((at, found));
                    break;
                }
                if head == 0 {
                    break;
                }
            }
            let Some((at, found)) = next else {
                return Ok(recovered);
            };
            last = found.whole.id.incarnation;
            self.take_up(at, head, found, &mut recovered);
            let full = self.state.borrow().used_bytes > self.capacity_bytes();
            if full {
                let context = format!("{}: its batches overlap", self.spec.label);
                return Err(RingError::new(RingErrorKind::NoRing, context));
            }
        }
    }

    fn take_up(&self, at: u64, head: u64, found: FoundBatch, recovered: &mut Vec<Recovered>) {
        let live = Rc::new(Cell::new(0));
        let first_stamp = found.whole.id.first_stamp;
        for (stamp, (head, range)) in (first_stamp..).zip(found.whole.entries) {
            let data = match range.is_empty() {
                true => Vec::new(),
                false => vec![found.bytes.slice(range.start, range.len())],
            };
            recovered.push(Recovered {
                stamp,
                head,
                data,
                hold: Hold::new(&live),
            });
        }
        let mut state = self.state.borrow_mut();
        let len = found.bytes.len() as u64;
        let skipped = if at == head {
            0
        } else {
            self.capacity_bytes() - head
        };
        state.head = at + len;
        state.next_sequence += 1;
        state.used_bytes += len + skipped;
        state.batches.push_back(Batch {
            at,
            len_bytes: len,
            taken_bytes: len + skipped,
            first_stamp,
            live,
            durable: true,
            waiting: Vec::new(),
            acknowledged: true,
        });
    }

    /// The batch `sequence` at `at`, if it is whole on any drive; then it is made so
    /// on all of them.
    async fn find(
        &self,
        copies: &mut [Copy<W>],
        at: u64,
        sequence: u64,
        incarnation: u32,
    ) -> Result<Option<FoundBatch>, RingError> {
        let members: Vec<_> = copies.iter().map(|copy| Rc::clone(&copy.member)).collect();
        let mut doubt = Doubt::default();
        let (found, lacking) = loop {
            let began = self.world.now();
            match self.look(copies, at, sequence, incarnation).await {
                (Some(found), lacking) => break (found, lacking),
                (None, _) if has_read_one(&members, began) => return Ok(None),
                (None, _) if self.lose_the_gone(&members, began).await? => {}
                (None, _) => {
                    // One may have the batch: the chain is not taken to end here.
                    if !self.looks_again(&mut doubt, &members, began).await? {
                        return Ok(None);
                    }
                    copies.iter_mut().for_each(|copy| copy.bytes.clear());
                }
            }
        };
        let mut faults = Vec::new();
        if !self.world.planted("log copies not made equal") {
            for index in lacking {
                self.world.reached("log copy rewritten in recovery");
                let member = Rc::clone(&copies[index].member);
                let written = member
                    .write_durably(self.on_drive(at), found.bytes.clone())
                    .await;
                // What was read ahead of it is out of date.
                copies[index].bytes.clear();
                faults.extend(written.err().map(|error| DriveFault { member, error }));
            }
        }
        self.absorb(faults).await?;
        Ok(Some(found))
    }

    /// Takes drives out of use that have gone since `began`, as any read of a pool in use does.
    /// None goes unless another was read without an error: that one says where the chain ends.
    /// Whether any has gone.
    ///
    /// # Errors
    /// `Drive` when one of them is needed.
    async fn lose_the_gone(
        &self,
        members: &[Rc<Member<W>>],
        began: Time,
    ) -> Result<bool, RingError> {
        let is_silent = |member: &&Rc<Member<W>>| member.was_silent_since(began);
        let mut in_use = members.iter().filter(|member| member.is_writable());
        if in_use.all(|member| is_silent(&member) || member.was_damaged_since(began)) {
            return Ok(false);
        }
        let mut faults = Vec::new();
        for member in members.iter().filter(is_silent) {
            let buf = self.world.buffers().data(BLOCK_BYTES);
            let probed = member.probe(self.spec.superblock_at(0), buf).await;
            if let Err(error) = probed
                && error.kind == DriveErrorKind::Gone
            {
                let member = Rc::clone(member);
                faults.push(DriveFault { member, error });
            }
        }
        let has_gone = !faults.is_empty();
        if has_gone {
            self.absorb(faults).await?;
        }
        Ok(has_gone)
    }

    /// The batch, from the first copy that has it whole, and which copies have not.
    async fn look(
        &self,
        copies: &mut [Copy<W>],
        at: u64,
        sequence: u64,
        incarnation: u32,
    ) -> (Option<FoundBatch>, Vec<usize>) {
        let mut found: Option<FoundBatch> = None;
        let mut lacking = Vec::new();
        for (index, copy) in copies.iter_mut().enumerate() {
            let whole = self.whole_on(copy, at).await.filter(|(whole, _)| {
                let id = whole.id;
                id.at == at
                    && id.sequence == sequence
                    && (id.incarnation >= incarnation
                        || self.world.planted("log incarnation not checked"))
            });
            match (whole, &found) {
                (Some((whole, bytes)), None) => {
                    let bytes = self.world.buffers().copy_of(&bytes).freeze();
                    found = Some(FoundBatch { whole, bytes });
                }
                (Some((whole, _)), Some(first)) if whole.id == first.whole.id => {}
                _ => lacking.push(index),
            }
        }
        (found, lacking)
    }

    async fn whole_on(&self, copy: &mut Copy<W>, at: u64) -> Option<(Whole, Vec<u8>)> {
        let first = self.bytes_of(copy, at, BLOCK).await?;
        let (_, len) = format::lengths(&first)?;
        let bytes = self.bytes_of(copy, at, len as u64).await?;
        let whole = format::decode(&self.spec, &bytes)?;
        Some((whole, bytes))
    }

    /// A run of the batch space as a drive has it; none when it can't be read or does
    /// not lie in the ring.
    async fn bytes_of(&self, copy: &mut Copy<W>, at: u64, len: u64) -> Option<Vec<u8>> {
        let end = at
            .checked_add(len)
            .filter(|end| *end <= self.capacity_bytes())?;
        let have = copy.start + copy.bytes.len() as u64;
        if at < copy.start || end > have {
            copy.bytes.clear();
            copy.start = at;
            let want = len.max(WINDOW_BYTES.min(self.capacity_bytes() - at));
            copy.bytes = match self.read(&copy.member, at, want).await {
                Some(bytes) => bytes,
                // Something further on may be what can't be read.
                None => self.read(&copy.member, at, len).await?,
            };
        }
        let from = (at - copy.start) as usize;
        copy.bytes
            .get(from..from + len as usize)
            .map(<[u8]>::to_vec)
    }

    async fn read(&self, member: &Member<W>, at: u64, len: u64) -> Option<Vec<u8>> {
        let place = self.on_drive(at);
        let buf = self.world.buffers().bytes(len as usize);
        let buf = member.read(place, buf).await.ok()?;
        buf.bytes().map(<[u8]>::to_vec)
    }
}

/// Whether one drive was read since then without an error, and none is silent: what that one
/// has not got was never acknowledged.
fn has_read_one<W: World>(members: &[Rc<Member<W>>], began: Time) -> bool {
    let in_use = || members.iter().filter(|member| member.is_writable());
    !in_use().any(|member| member.was_silent_since(began))
        && in_use().any(|member| !member.was_damaged_since(began))
}
