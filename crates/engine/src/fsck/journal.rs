//! The check of the journal: every batch equal on all metadata drives, and none missing.
//!
//! A few batches are written at a time, and one counts when all before it are on all
//! drives: so a crash can keep back only the last few from some of them, and leave some
//! behind one that is torn.

use super::report::Severity;
use super::subject::{Subject, unreadable};
use crate::codec::Reader;
use crate::drives::Member;
use crate::meta::journal::{
    BATCHES_AT_ONCE, BatchId, any_batch, batch_bytes, begins_like, whole_batch,
};
use crate::meta::{Record, State};
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset};
use std::ops::Range;
use std::rc::Rc;

/// A drive's copy of a journal area, and the batches in it, one after the other.
struct Area<W: World> {
    member: Rc<Member<W>>,
    bytes: Vec<u8>,
    batches: Vec<Range<usize>>,
}

impl<W: World> Area<W> {
    fn batch(&self, index: usize) -> Option<&[u8]> {
        self.bytes.get(self.batches.get(index)?.clone())
    }

    fn end(&self) -> usize {
        self.batches.last().map_or(0, |batch| batch.end)
    }
}

/// Looks at the copies of the journal of `generation`, and applies its records.
/// None when they contradict the state.
pub(super) async fn replay<W: World>(
    subject: &Subject<W>,
    members: &[Rc<Member<W>>],
    generation: u64,
    state: &mut State,
) -> Option<()> {
    let identity = subject.drives.identity();
    let at = identity.journal_offset(generation);
    let mut areas = Vec::new();
    for member in members {
        let len = u64::from(identity.journal_bytes);
        match subject.read_run(member, at, len).await {
            Ok(bytes) => areas.push(Area {
                member: Rc::clone(member),
                batches: batches(subject, &bytes, generation),
                bytes,
            }),
            Err(error) => {
                let text = format!("journal area: {}", unreadable(&error));
                subject.say_at(Severity::Damage, member, DriveOffset(at), len, text);
            }
        }
    }
    let Some(longest) = areas.iter().max_by_key(|area| area.batches.len()) else {
        let text = format!("journal {generation} can't be read on any drive");
        subject.say(Severity::Loss, subject.metadata(), text);
        return None;
    };
    for area in &areas {
        compare(subject, at, area, longest);
    }
    look_behind(subject, generation, &areas, longest);
    apply(subject, longest, generation, state)
}

fn batches<W: World>(subject: &Subject<W>, bytes: &[u8], generation: u64) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let mut at = 0;
    loop {
        let id = BatchId {
            pool: subject.drives.identity().lane_uuid(),
            generation,
            sequence: batches.len() as u64,
        };
        let Some(payload) = whole_batch(&bytes[at..], id) else {
            return batches;
        };
        let end = at + batch_bytes(payload.len());
        batches.push(at..end);
        at = end;
    }
}

/// Each batch of the longest copy is in this one.
fn compare<W: World>(subject: &Subject<W>, at: u64, area: &Area<W>, longest: &Area<W>) {
    for (index, batch) in longest.batches.iter().enumerate() {
        let (severity, text) = match area.batch(index) {
            // The checksum does not cover the padding.
            Some(found) if any_batch(found) == longest.batch(index).and_then(any_batch) => continue,
            Some(_) => (
                Severity::Damage,
                "this journal batch differs from that of another drive",
            ),
            None if index + BATCHES_AT_ONCE >= longest.batches.len() => (
                subject.unless_crashed(),
                "this recent journal batch is not whole here, and is on another drive",
            ),
            None => (
                Severity::Damage,
                "this journal batch is not whole here, and is on another drive",
            ),
        };
        let from = DriveOffset(at + batch.start as u64);
        subject.say_at(severity, &area.member, from, batch.len() as u64, text);
    }
}

/// A whole batch behind the end says that one between them was lost, unless they may have
/// been on their way together in a crash. So does, after a clean close, one that begins
/// there and is not whole.
fn look_behind<W: World>(
    subject: &Subject<W>,
    generation: u64,
    areas: &[Area<W>],
    longest: &Area<W>,
) {
    let (pool, count) = (
        subject.drives.identity().lane_uuid(),
        longest.batches.len() as u64,
    );
    let with_it = match subject.clean {
        true => 0,
        false => BATCHES_AT_ONCE as u64 - 1,
    };
    let is_later = |bytes: &[u8]| {
        any_batch(bytes).is_some_and(|(id, _)| {
            id.pool == pool && id.generation == generation && id.sequence > count + with_it
        })
    };
    let behind = |area: &Area<W>| {
        let rest = &area.bytes[area.end()..];
        (0..rest.len())
            .step_by(BLOCK_BYTES)
            .any(|at| is_later(&rest[at..]))
    };
    let id = BatchId {
        pool,
        generation,
        sequence: count,
    };
    let cut = |area: &Area<W>| begins_like(&area.bytes[area.end()..], id);
    if subject.clean && areas.iter().any(cut) {
        let text = format!(
            "journal {generation}: batch {count} is whole on no drive: what it says is lost"
        );
        subject.say(Severity::Loss, subject.metadata(), text);
    }
    if areas.iter().any(behind) {
        let text = format!(
            "journal {generation}: batch {count} is whole on no drive, and later ones are there: what they say is lost"
        );
        subject.say(Severity::Loss, subject.metadata(), text);
    }
}

fn apply<W: World>(
    subject: &Subject<W>,
    area: &Area<W>,
    generation: u64,
    state: &mut State,
) -> Option<()> {
    let contradiction = |sequence: usize, what: &str| {
        let text = format!("journal {generation}, batch {sequence}: {what}");
        subject.say(Severity::Loss, subject.metadata(), text);
    };
    for index in 0..area.batches.len() {
        let (_, payload) = area.batch(index).and_then(any_batch)?;
        let mut r = Reader::new(payload);
        while !r.is_empty() {
            let Some(record) = Record::decode(&mut r) else {
                contradiction(index, "a record of no known kind");
                return None;
            };
            subject.count(|counts| counts.journal_records += 1);
            if let Err(what) = state.apply(&record) {
                contradiction(index, &what);
                return None;
            }
        }
    }
    Some(())
}
