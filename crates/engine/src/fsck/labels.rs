//! Both label slots of every drive, and the pool that they describe.
//!
//! The rules are those of an opening (`docs/FORMAT.md`, "Label"): the newest label
//! decides, a drive may lag by one generation. A clean close leaves two whole labels,
//! of the last two generations, on every drive in use.

use super::report::{Findings, Run, Severity};
use super::subject::{Subject, unreadable};
use super::table;
use crate::drive::Drive;
use crate::label::{FORMAT_VERSION, Label, SLOT_BYTES, SLOT_OFFSETS, Slot};
use crate::pool::drives::Drives;
use crate::pool::{NamedDrive, PoolError, PoolErrorKind};
use crate::world::World;
use base::{DriveOffset, Uuid};
use std::collections::BTreeMap;

/// What a label slot holds.
pub(super) enum Found {
    Label(Box<Label>),
    Nothing,
    Unreadable(String),
}

/// A drive, and what its label slots hold.
pub(super) struct Labelled<W: World> {
    pub name: String,
    pub drive: W::Drive,
    pub slots: Vec<Found>,
}

impl<W: World> Labelled<W> {
    /// The newest label of the drive.
    pub fn label(&self) -> Option<&Label> {
        let labels = self.slots.iter().filter_map(|slot| match slot {
            Found::Label(label) => Some(label.as_ref()),
            _ => None,
        });
        labels.max_by_key(|label| label.generation)
    }
}

/// Reads the labels of `drives`, and says what is wrong with them.
///
/// # Errors
/// See [`super::check`].
pub(super) async fn find<W: World>(
    world: &W,
    drives: Vec<NamedDrive<W>>,
) -> Result<Subject<W>, PoolError> {
    let mut read = Vec::new();
    for named in drives {
        read.push(read_slots(world, named).await?);
    }
    let newest = newest(&read)?;
    let mut findings = Findings::default();
    if !newest.clean {
        findings.push(
            Severity::Note,
            format!("pool '{}'", newest.pool.name),
            "it was not closed cleanly: the next opening puts right what notes name".to_owned(),
        );
    }
    let (mut ours, mut without) = (Vec::new(), Vec::new());
    for drive in read {
        match drive.label() {
            Some(_) => ours.push(drive),
            None => without.push(drive),
        }
    }
    for drive in &without {
        let text = match drive.slots.iter().find_map(failure) {
            Some(failure) => format!("it has no label that can be read: {failure}"),
            None => "it has no label: it belongs to no pool, or was replaced or wiped".to_owned(),
        };
        findings.push(Severity::Damage, format!("drive '{}'", drive.name), text);
    }
    for drive in &ours {
        judge_slots(&newest, drive, &mut findings);
    }
    let present = ours.len() as u64;
    let clean = newest.clean;
    let (groups, spares) = table::members(world, &newest, ours, &mut findings)?;
    let drives = Drives::new(world.clone(), newest, groups, spares);
    let subject = Subject::new(world.clone(), drives, clean, findings);
    subject.count(|counts| counts.drives = present);
    Ok(subject)
}

fn failure(slot: &Found) -> Option<&str> {
    match slot {
        Found::Unreadable(failure) => Some(failure),
        _ => None,
    }
}

async fn read_slots<W: World>(
    world: &W,
    NamedDrive { name, drive }: NamedDrive<W>,
) -> Result<Labelled<W>, PoolError> {
    let mut slots = Vec::new();
    for offset in SLOT_OFFSETS {
        if offset + SLOT_BYTES as u64 > drive.geometry().capacity_bytes {
            slots.push(Found::Nothing);
            continue;
        }
        let buf = world.buffers().bytes(SLOT_BYTES);
        let (buf, outcome) = drive.read(DriveOffset(offset), buf).await;
        slots.push(match outcome {
            Err(error) => Found::Unreadable(unreadable(&error)),
            Ok(()) => match Label::decode(buf.bytes().unwrap_or_default()) {
                Slot::Label(label) => Found::Label(label),
                Slot::Empty => Found::Nothing,
                Slot::Newer(version) => {
                    let context = format!(
                        "drive '{name}': a label of format version {version}, and this program knows {FORMAT_VERSION}: use a newer one"
                    );
                    return Err(PoolError::new(PoolErrorKind::Version, context));
                }
            },
        });
    }
    Ok(Labelled { name, drive, slots })
}

/// The newest label, when all drives are of one pool and each is there once.
fn newest<W: World>(drives: &[Labelled<W>]) -> Result<Label, PoolError> {
    let refuse = |kind, context: String| Err(PoolError::new(kind, context));
    let mut seen: BTreeMap<Uuid, &str> = BTreeMap::new();
    let mut newest: Option<(&str, &Label)> = None;
    for drive in drives {
        let Some(label) = drive.label() else { continue };
        if let Some(twin) = seen.insert(label.drive_uuid, &drive.name) {
            let context = format!(
                "drives '{twin}' and '{}' are the same drive ({}), or one is a copy of the other: look at one of them",
                drive.name, label.drive_uuid
            );
            return refuse(PoolErrorKind::Invalid, context);
        }
        if let Some((name, other)) = newest
            && other.pool.uuid != label.pool.uuid
        {
            let context = format!(
                "drive '{}' belongs to pool '{}' ({}), and '{name}' to pool '{}' ({}): look at one pool at a time",
                drive.name, label.pool.name, label.pool.uuid, other.pool.name, other.pool.uuid
            );
            return refuse(PoolErrorKind::Foreign, context);
        }
        if newest.is_none_or(|(_, other)| other.generation < label.generation) {
            newest = Some((&drive.name, label));
        }
    }
    let failure = drives
        .iter()
        .find_map(|drive| Some((&drive.name, drive.slots.iter().find_map(failure)?)));
    match (newest, failure) {
        (Some((_, label)), _) if label.generation == 1 => refuse(
            PoolErrorKind::Unlabelled,
            format!(
                "the creation of pool '{}' was cut short and it holds nothing",
                label.pool.name
            ),
        ),
        (Some((_, label)), _) => Ok(label.clone()),
        (None, Some((name, failure))) => refuse(
            PoolErrorKind::Drive,
            format!("drive '{name}': its label: {failure}"),
        ),
        (None, None) if drives.is_empty() => refuse(
            PoolErrorKind::Invalid,
            "a pool can't be looked through without drives".to_owned(),
        ),
        (None, None) => refuse(
            PoolErrorKind::Unlabelled,
            "none of the drives has a label: they belong to no pool".to_owned(),
        ),
    }
}

/// Each slot by itself, of a drive that is in use.
fn judge_slots<W: World>(newest: &Label, drive: &Labelled<W>, findings: &mut Findings) {
    let Some(own) = drive.label() else { return };
    if !table::is_in_use(newest, own) {
        return;
    }
    for ((slot, found), offset) in (0u64..).zip(&drive.slots).zip(SLOT_OFFSETS) {
        let is_newest = newest.generation % 2 == slot;
        let (severity, text) = match found {
            Found::Unreadable(failure) => (Severity::Damage, format!("label slot: {failure}")),
            Found::Nothing if newest.clean => (
                Severity::Damage,
                "there is no whole label in this slot".to_owned(),
            ),
            Found::Nothing => (
                Severity::Note,
                "there is no whole label in this slot: it was being written".to_owned(),
            ),
            Found::Label(label) if label.generation % 2 != slot => (
                Severity::Damage,
                format!(
                    "the label of generation {} is in the slot of the other ones",
                    label.generation
                ),
            ),
            Found::Label(label) if is_newest && label.generation < newest.generation => (
                Severity::Note,
                format!(
                    "the label is of generation {} and the newest is {}: an update of the labels was cut short",
                    label.generation, newest.generation
                ),
            ),
            Found::Label(label) if is_newest && !table::agree(label, newest) => (
                Severity::Damage,
                "this label and that of another drive are of one generation and differ".to_owned(),
            ),
            Found::Label(_) => continue,
        };
        let run = Run {
            subject: format!("drive '{}'", drive.name),
            at: offset,
            len: SLOT_BYTES as u64,
        };
        findings.push_run(severity, run, text);
    }
}
