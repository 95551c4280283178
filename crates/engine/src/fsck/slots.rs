//! The two label slots of a drive: their content, and the content that they should have.
//!
//! A clean close leaves two whole labels, of the last two generations, on every drive
//! in use. But the power may go while the close, or the next opening, writes one of them:
//! so a slot without a label tells nothing of damage while the other one has one.

use super::report::{Findings, Run, Severity};
use super::subject::unreadable;
use crate::drive::Drive;
use crate::error::{PoolError, PoolErrorKind};
use crate::label::MemberState;
use crate::label::{Label, SLOT_BYTES, SLOT_OFFSETS, Slot, other_version};
use crate::lane::{Part, View};
use crate::world::World;
use base::DriveOffset;
use std::rc::Rc;

/// What a label slot holds.
pub(super) enum LabelSlot {
    Label(Box<Label>),
    Nothing,
    Unreadable(String),
}

/// A drive, and what its label slots hold.
pub(super) struct Labelled<W: World> {
    pub name: String,
    pub drive: View<W::Drive>,
    pub slots: Vec<LabelSlot>,
}

impl<W: World> Labelled<W> {
    /// The newest label of the drive.
    pub fn label(&self) -> Option<&Label> {
        let labels = self.slots.iter().filter_map(|slot| match slot {
            LabelSlot::Label(label) => Some(label.as_ref()),
            _ => None,
        });
        labels.max_by_key(|label| label.generation)
    }

    /// Why a slot can't be read.
    pub fn failure(&self) -> Option<&str> {
        self.slots.iter().find_map(|slot| match slot {
            LabelSlot::Unreadable(failure) => Some(failure.as_str()),
            _ => None,
        })
    }
}

/// A drive by its name; each lane has its own view of it.
pub(super) type Shared<W> = (String, Rc<<W as World>::Drive>);

/// Reads both slots that a lane has on a drive.
///
/// # Errors
/// `Version` for a label of another format.
pub(super) async fn read<W: World>(
    world: &W,
    (name, drive): Shared<W>,
    part: Part,
) -> Result<Labelled<W>, PoolError> {
    let drive = View::new(drive, part);
    let mut slots = Vec::new();
    for offset in SLOT_OFFSETS {
        if offset + SLOT_BYTES as u64 > drive.geometry().capacity_bytes {
            slots.push(LabelSlot::Nothing);
            continue;
        }
        let buf = world.buffers().bytes(SLOT_BYTES);
        let (buf, outcome) = drive.read(DriveOffset(offset), buf).await;
        slots.push(match outcome {
            Err(error) => LabelSlot::Unreadable(unreadable(&error)),
            Ok(()) => match Label::decode(buf.bytes().unwrap_or_default()) {
                Slot::Label(label) if label.pool.lane != part.lane => LabelSlot::Nothing,
                Slot::Label(label) => LabelSlot::Label(label),
                Slot::Empty => LabelSlot::Nothing,
                Slot::Other(version) => {
                    let context = format!("drive '{name}': {}", other_version(version));
                    return Err(PoolError::new(PoolErrorKind::Version, context));
                }
            },
        });
    }
    Ok(Labelled { name, drive, slots })
}

/// Looks at each slot by itself, of a drive that is in use.
pub(super) fn judge<W: World>(newest: &Label, drive: &Labelled<W>, findings: &mut Findings) {
    let in_use = drive.label().is_some_and(|own| is_in_use(newest, own));
    if !in_use {
        return;
    }
    for ((slot, found), offset) in (0u64..).zip(&drive.slots).zip(SLOT_OFFSETS) {
        let Some((severity, text)) = fault(newest, slot, found) else {
            continue;
        };
        let run = Run {
            subject: format!("drive '{}'", drive.name),
            at: newest
                .pool
                .part()
                .place(DriveOffset(offset), SLOT_BYTES as u64)
                .0,
            len: SLOT_BYTES as u64,
        };
        findings.push_run(severity, run, text);
    }
}

/// What is wrong with a slot.
fn fault(newest: &Label, slot: u64, found: &LabelSlot) -> Option<(Severity, String)> {
    let is_newest = newest.generation % 2 == slot;
    let damage = |text: String| Some((Severity::Damage, text));
    match found {
        LabelSlot::Unreadable(failure) => damage(format!("label slot: {failure}")),
        LabelSlot::Nothing => {
            let text = "there is no whole label in this slot: writing it was cut short, or it went bad since; the next opening writes it";
            Some((Severity::Note, text.to_owned()))
        }
        LabelSlot::Label(label) if label.generation % 2 != slot => damage(format!(
            "the label of generation {} is in the slot of the other ones",
            label.generation
        )),
        LabelSlot::Label(label) if is_newest && label.generation < newest.generation => {
            let text = format!(
                "the label is of generation {} and the newest is {}: an update of the labels was cut short",
                label.generation, newest.generation
            );
            Some((Severity::Note, text))
        }
        LabelSlot::Label(label) if is_newest && !agree(label, newest) => damage(
            "this label and that of another drive are of one generation and differ".to_owned(),
        ),
        LabelSlot::Label(_) => None,
    }
}

/// Whether two labels of one generation say the same, but for whose they are.
fn agree(one: &Label, other: &Label) -> bool {
    let theirs = Label {
        drive_uuid: one.drive_uuid,
        ..other.clone()
    };
    *one == theirs
}

/// Whether the drive with the label `own` is in use or waits to be.
fn is_in_use(newest: &Label, own: &Label) -> bool {
    let entry = newest
        .members
        .iter()
        .find(|entry| entry.uuid == own.drive_uuid);
    let lags = own.generation + 1 < newest.generation;
    entry.is_some_and(|entry| entry.state != MemberState::Failed) && !lags
}
