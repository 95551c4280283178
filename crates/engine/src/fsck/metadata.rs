//! The check of the metadata: all copies of the newest checkpoint equal, and the journal since.
//!
//! A checkpoint that a crash cut short is harmless: the one before it and both
//! journals make up for it. After a clean close there is none such.

use super::journal;
use super::report::Severity;
use super::subject::{Subject, unreadable};
use crate::drives::Member;
use crate::meta::{State, checkpoint};
use crate::world::World;
use base::{DriveOffset, crc32c};
use checkpoint::{HEADER_BYTES, Header};
use std::rc::Rc;

/// What a checkpoint slot holds.
enum CheckpointSlot {
    Whole(Header),
    /// A header without its payload: cut short, or damaged since.
    Headed(Header),
    Nothing,
    Unreadable(String),
}

/// A metadata drive, and its two slots.
struct Copy<W: World> {
    member: Rc<Member<W>>,
    slots: [CheckpointSlot; 2],
}

impl<W: World> Copy<W> {
    fn whole(&self) -> impl Iterator<Item = &Header> {
        self.slots.iter().filter_map(|slot| match slot {
            CheckpointSlot::Whole(header) => Some(header),
            _ => None,
        })
    }
}

/// Looks at all copies, and gives the state as an opening would have it. None when
/// there is no opening it.
pub(super) async fn check<W: World>(subject: &Subject<W>) -> Option<State> {
    let members = subject.drives.metadata_members();
    let mut copies = Vec::new();
    for member in &members {
        let slots = [
            read_slot(subject, member, 0).await,
            read_slot(subject, member, 1).await,
        ];
        let member = Rc::clone(member);
        copies.push(Copy { member, slots });
    }
    let newest = copies.iter().flat_map(Copy::whole);
    let Some(newest) = newest.max_by_key(|header| header.generation).copied() else {
        let text = match members.is_empty() {
            true => "no drive that carries it is in use",
            false => "no copy of any checkpoint is whole",
        };
        subject.say(Severity::Loss, subject.metadata(), text);
        return None;
    };
    subject.count(|counts| counts.checkpoint_generation = newest.generation);
    for copy in &copies {
        judge(subject, copy, &newest);
    }
    judge_newer(subject, &copies, &newest);
    let mut state = read_state(subject, &copies, &newest).await?;
    for generation in [newest.generation, newest.generation + 1] {
        journal::replay(subject, &members, generation, &mut state).await?;
    }
    take_up(subject, &state);
    Some(state)
}

async fn read_slot<W: World>(
    subject: &Subject<W>,
    member: &Member<W>,
    slot: u64,
) -> CheckpointSlot {
    let identity = subject.drives.identity();
    let at = identity.checkpoint_offset(slot);
    let block = match subject.read_run(member, at, HEADER_BYTES as u64).await {
        Ok(block) => block,
        Err(error) => return CheckpointSlot::Unreadable(unreadable(&error)),
    };
    let room = identity.checkpoint_bytes - HEADER_BYTES as u64;
    let header = checkpoint::decode_header(&block, identity.lane_uuid())
        .filter(|header| header.payload_bytes <= room && header.generation % 2 == slot);
    let Some(header) = header else {
        return CheckpointSlot::Nothing;
    };
    let at = at + HEADER_BYTES as u64;
    match subject.read_run(member, at, header.payload_bytes).await {
        Ok(payload) if crc32c(&payload) == header.payload_crc => CheckpointSlot::Whole(header),
        Ok(_) => CheckpointSlot::Headed(header),
        Err(error) => CheckpointSlot::Unreadable(unreadable(&error)),
    }
}

/// Whether a drive has the newest checkpoint, and if not, why that may be.
fn judge<W: World>(subject: &Subject<W>, copy: &Copy<W>, newest: &Header) {
    let generation = newest.generation;
    let older_is_whole = copy.whole().next().is_some();
    for (slot, found) in (0u64..).zip(&copy.slots) {
        let is_newest = generation % 2 == slot;
        let (severity, text) = match found {
            CheckpointSlot::Unreadable(failure) => {
                (Severity::Damage, format!("checkpoint slot: {failure}"))
            }
            CheckpointSlot::Whole(header) if is_newest && header.generation == generation => {
                if header == newest {
                    continue;
                }
                let text = format!("checkpoint {generation} differs from that of another drive");
                (Severity::Damage, text)
            }
            _ if is_newest && older_is_whole => {
                let text =
                    format!("checkpoint {generation} is not whole here, and is on another drive");
                (subject.unless_crashed(), text)
            }
            _ if is_newest => {
                let text = "no checkpoint is whole on this drive".to_owned();
                (Severity::Damage, text)
            }
            _ => continue,
        };
        let identity = subject.drives.identity();
        let at = DriveOffset(identity.checkpoint_offset(slot));
        subject.say_at(severity, &copy.member, at, identity.checkpoint_bytes, text);
    }
}

/// A checkpoint that is newer than the newest whole one, as far as its headers tell.
fn judge_newer<W: World>(subject: &Subject<W>, copies: &[Copy<W>], newest: &Header) {
    let headed = copies.iter().flat_map(|copy| &copy.slots);
    let generations = headed.filter_map(|slot| match slot {
        CheckpointSlot::Headed(header) => Some(header.generation),
        _ => None,
    });
    let Some(generation) = generations
        .max()
        .filter(|generation| *generation > newest.generation)
    else {
        return;
    };
    // The journals since the whole one are still there for the next, not for others.
    let severity = match (subject.clean, generation - newest.generation) {
        (false, _) => Severity::Note,
        (true, 1) => Severity::Damage,
        (true, _) => Severity::Loss,
    };
    let text = format!(
        "checkpoint {generation} is not whole on any drive; the newest that is, is {}",
        newest.generation
    );
    subject.say(severity, subject.metadata(), text);
}

async fn read_state<W: World>(
    subject: &Subject<W>,
    copies: &[Copy<W>],
    newest: &Header,
) -> Option<State> {
    let identity = subject.drives.identity();
    let at = identity.checkpoint_offset(newest.generation) + HEADER_BYTES as u64;
    let carriers = copies
        .iter()
        .filter(|copy| copy.whole().any(|header| header == newest));
    for copy in carriers {
        // It was whole a moment ago.
        let Ok(payload) = subject
            .read_run(&copy.member, at, newest.payload_bytes)
            .await
        else {
            continue;
        };
        match checkpoint::decode_payload(newest, &payload) {
            Ok(Some(state)) => return Some(state),
            Ok(None) => {}
            Err(what) => {
                let text = format!(
                    "checkpoint {} contradicts itself: {what}",
                    newest.generation
                );
                subject.say(Severity::Loss, subject.metadata(), text);
                return None;
            }
        }
    }
    let text = "the newest checkpoint was whole, and can't be read again";
    subject.say(Severity::Loss, subject.metadata(), text);
    None
}

/// What the state says of drives that are being rebuilt decides what they hold.
fn take_up<W: World>(subject: &Subject<W>, state: &State) {
    for member in subject.drives.members() {
        if let Some(zones) = state.rebuilt.get(&member.uuid) {
            member.rebuilt().borrow_mut().extend(zones);
        }
    }
}
