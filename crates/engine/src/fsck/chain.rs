//! The chain of batches of a ring, followed on all its drives at once, as a recovery does it; a
//! copy that is not whole is reported, not repaired.

use super::report::Severity;
use super::subject::Subject;
use crate::drives::Member;
use crate::ring::RingSpec;
use crate::ring::format::{self, SUPERBLOCKS_BYTES, Superblock, Whole};
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset, Slice};
use std::rc::Rc;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// The ring is read this much at a time.
const WINDOW_BYTES: u64 = 1 << 20;

/// What was found on a ring's drives.
pub(super) struct Chain<W: World> {
    pub spec: RingSpec,
    /// Its batches, from the tail on.
    pub batches: Vec<Whole>,
    members: Vec<Rc<Member<W>>>,
    superblock: Superblock,
}

/// Where the next batch is looked for.
#[derive(Clone, Copy)]
struct Next {
    head: u64,
    sequence: u64,
    /// The oldest that the batch may be of.
    incarnation: u32,
}

impl<W: World> Chain<W> {
    /// Follows the chain that begins where `superblock` says.
    pub async fn follow(
        subject: &Subject<W>,
        spec: RingSpec,
        members: Vec<Rc<Member<W>>>,
        superblock: Superblock,
    ) -> Self {
        let mut chain = Chain {
            spec,
            batches: Vec::new(),
            members,
            superblock,
        };
        let mut next = Next {
            head: superblock.tail,
            sequence: superblock.tail_sequence,
            incarnation: superblock.oldest_incarnation(superblock.tail_sequence),
        };
        let (mut used, room) = (0, chain.capacity_bytes());
        while let Some((at, len, whole)) = chain.next(subject, next).await {
            used += len;
            if used > room {
                let text = "its batches overlap";
                subject.say(Severity::Loss, chain.place(subject), text);
                break;
            }
            next = Next {
                head: at + len,
                sequence: next.sequence + 1,
                incarnation: superblock.oldest_incarnation(next.sequence + 1),
            };
            chain.batches.push(whole);
        }
        chain.look_behind(subject, next).await;
        chain
    }

    /// The ring, as a place.
    pub fn place(&self, subject: &Subject<W>) -> String {
        format!("{}, {}", subject.pool(), self.spec.label)
    }

    fn capacity_bytes(&self) -> u64 {
        self.spec.len_bytes - SUPERBLOCKS_BYTES
    }

    fn on_drive(&self, at: u64) -> DriveOffset {
        self.spec.batch_at(at)
    }

    /// The next batch, if any drive has it whole: where, its length, and itself.
    async fn next(&self, subject: &Subject<W>, next: Next) -> Option<(u64, u64, Whole)> {
        let starts = if next.head == 0 { 1 } else { 2 };
        // Right after the last one, or, where it did not fit, at the start.
        for at in [next.head, 0].into_iter().take(starts) {
            let mut found: Option<(Whole, Slice)> = None;
            let mut lacking = Vec::new();
            for member in &self.members {
                let whole = self.whole_on(subject, member, at).await;
                match (whole.filter(|(whole, _)| is_next(whole, at, next)), &found) {
                    (Some(whole), None) => found = Some(whole),
                    (Some((_, bytes)), Some((_, first))) if bytes.bytes() == first.bytes() => {}
                    (other, _) => lacking.push((member, other.is_some())),
                }
            }
            let Some((whole, bytes)) = found else {
                continue;
            };
            let len = bytes.len() as u64;
            if subject.clean && whole.id.incarnation < self.superblock.incarnation {
                // A clean close has emptied the ring: nothing older can be in it.
                let text = format!(
                    "batch {} at {at} is left over from before the last opening, and the next would take it up",
                    next.sequence
                );
                subject.say(Severity::Damage, self.place(subject), text);
                return None;
            }
            for (member, differs) in lacking {
                let (severity, text) = match differs {
                    true => (Severity::Damage, "differs from that of another drive"),
                    false => (
                        subject.unless_crashed(),
                        "is not whole here, and is on another drive",
                    ),
                };
                let text = format!("{}: this batch {text}", self.spec.label);
                subject.say_at(severity, member, self.on_drive(at), len, text);
            }
            return Some((at, len, whole));
        }
        None
    }

    async fn whole_on(
        &self,
        subject: &Subject<W>,
        member: &Member<W>,
        at: u64,
    ) -> Option<(Whole, Slice)> {
        let room = self.capacity_bytes().checked_sub(at)?;
        if room < BLOCK {
            return None;
        }
        let from = self.on_drive(at);
        let first = subject.read(member, from, BLOCK_BYTES).await.ok()?;
        let (_, len) = format::lengths(first.bytes()?)?;
        if len as u64 > room {
            return None;
        }
        let bytes = match len {
            BLOCK_BYTES => first,
            len => subject.read(member, from, len).await.ok()?,
        };
        let whole = format::decode(&self.spec, bytes.bytes()?)?;
        Some((whole, bytes))
    }

    /// Reads the whole ring. Batches of this opening that come after the end: after a
    /// crash nobody was told of them; after a clean close there are none.
    async fn look_behind(&self, subject: &Subject<W>, end: Next) {
        let mut behind = false;
        for member in &self.members {
            let mut at = 0;
            while at < self.capacity_bytes() {
                let len = WINDOW_BYTES.min(self.capacity_bytes() - at);
                for at in self.heads(subject, member, at, len).await {
                    let found = self.whole_on(subject, member, at).await;
                    behind |= found.is_some_and(|(whole, _)| {
                        whole.id.at == at
                            && whole.id.incarnation == self.superblock.incarnation
                            && whole.id.sequence > end.sequence
                    });
                }
                at += len;
            }
        }
        if behind {
            let (severity, text) = match subject.clean {
                true => (Severity::Loss, "what they say is lost"),
                false => (
                    Severity::Note,
                    "a crash leaves that, and nobody was told of them",
                ),
            };
            let text = format!(
                "batch {} is whole on no drive, and later ones are there: {text}",
                end.sequence
            );
            subject.say(severity, self.place(subject), text);
        }
    }

    /// Where in a window something begins that looks like a batch.
    async fn heads(&self, subject: &Subject<W>, member: &Member<W>, at: u64, len: u64) -> Vec<u64> {
        let (bytes, bad) = subject
            .read_blocks(member, self.on_drive(at), len as usize)
            .await;
        for (index, why) in bad {
            let from = self.on_drive(at + index as u64 * BLOCK);
            let text = format!("{}: {why}", self.spec.label);
            subject.say_at(Severity::Damage, member, from, BLOCK, text);
        }
        let blocks = (at..).step_by(BLOCK_BYTES).zip(bytes.chunks(BLOCK_BYTES));
        blocks
            .filter(|(_, block)| format::lengths(block).is_some())
            .map(|(at, _)| at)
            .collect()
    }
}

fn is_next(whole: &Whole, at: u64, next: Next) -> bool {
    let id = whole.id;
    id.at == at && id.sequence == next.sequence && id.incarnation >= next.incarnation
}
