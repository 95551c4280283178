//! The pool that the labels of drives describe.
//!
//! The rules are those of an opening (`docs/internals/format.md`, "Label"): the newest label
//! decides, and a drive may lag by one generation.

use super::report::{Findings, Severity};
use super::slots::{self, Labelled, Shared};
use super::subject::Subject;
use super::table;
use crate::drives::Drives;
use crate::error::{PoolError, PoolErrorKind};
use crate::label::Label;
use crate::lane::{LaneRegistry, LaneSlot, Part};
use crate::world::World;
use base::Uuid;
use std::collections::BTreeMap;

/// Reads the labels that a lane has on `drives`, and says what is wrong with them. The
/// first lane's say how many others there are.
///
/// # Errors
/// See [`super::check`].
pub(super) async fn find<W: World>(
    world: &W,
    drives: &[Shared<W>],
    (lane, part): (Option<LaneSlot>, Part),
) -> Result<Subject<W>, PoolError> {
    let mut read = Vec::new();
    for drive in drives {
        read.push(slots::read(world, drive.clone(), part).await?);
    }
    let newest = newest(&read)?;
    for labelled in &mut read {
        labelled.drive.set_part(newest.pool.part());
    }
    let lane = lane.unwrap_or_else(|| LaneSlot {
        index: 0,
        registry: LaneRegistry::new(newest.pool.lanes),
    });
    let mut findings = Findings::default();
    if !newest.clean {
        findings.push(
            Severity::Note,
            format!("pool '{}'", newest.pool.name),
            "it was not closed cleanly: Ashlar repairs what the notes name when it opens the pool"
                .to_owned(),
        );
    }
    for (drive, labelled) in drives.iter().zip(&read) {
        if labelled.label().is_some() {
            continue;
        }
        let (severity, text) = match labelled.failure() {
            Some(failure) => (
                Severity::Damage,
                format!("it has no label that can be read: {failure}"),
            ),
            None if is_of_others(world, &newest, drive).await => (
                Severity::Note,
                "it is not a member here, and is one of another lane: this one has let it go, or \
                 does not have it yet"
                    .to_owned(),
            ),
            None => (
                Severity::Damage,
                "it has no label: it belongs to no pool, or was replaced or wiped".to_owned(),
            ),
        };
        findings.push(severity, format!("drive '{}'", labelled.name), text);
    }
    let ours: Vec<_> = read
        .into_iter()
        .filter(|drive| drive.label().is_some())
        .collect();
    for drive in &ours {
        slots::judge(&newest, drive, &mut findings);
    }
    let (present, clean) = (ours.len() as u64, newest.clean);
    let (groups, spares) = table::members(world, &newest, ours, &mut findings)?;
    let drives = Drives::new(world.clone(), lane, newest, groups, spares);
    let subject = Subject::new(world.clone(), drives, clean, findings);
    subject.count(|counts| counts.drives = present);
    Ok(subject)
}

/// Whether another lane has its label on a drive that is no member in the one that
/// `newest` is of. Where it is a member, a label is missing.
async fn is_of_others<W: World>(world: &W, newest: &Label, drive: &Shared<W>) -> bool {
    let own = newest.pool.part();
    for lane in (0..own.lanes).filter(|lane| *lane != own.lane) {
        // What is wrong with that label is said where its lane is looked at.
        let there = slots::read(world, drive.clone(), Part { lane, ..own }).await;
        let Ok(there) = there else { continue };
        if let Some(label) = there
            .label()
            .filter(|label| label.pool.uuid == newest.pool.uuid)
        {
            let mut members = newest.members.iter();
            return members.all(|member| member.uuid != label.drive_uuid);
        }
    }
    false
}

fn refuse<T>(kind: PoolErrorKind, context: String) -> Result<T, PoolError> {
    Err(PoolError::new(kind, context))
}

/// The newest label, when all drives are of one pool and each is there once.
fn newest<W: World>(drives: &[Labelled<W>]) -> Result<Label, PoolError> {
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
    match newest {
        Some((_, label)) if label.generation == 1 => {
            let name = &label.pool.name;
            let context =
                format!("the creation of pool '{name}' was cut short and it holds nothing");
            refuse(PoolErrorKind::Unlabelled, context)
        }
        Some((_, label)) => Ok(label.clone()),
        None => no_label(drives),
    }
}

/// Why there is no label at all.
fn no_label<W: World>(drives: &[Labelled<W>]) -> Result<Label, PoolError> {
    let failed = |drive: &Labelled<W>| {
        let failure = drive.failure()?;
        Some(format!("drive '{}': its label: {failure}", drive.name))
    };
    match drives.iter().find_map(failed) {
        Some(context) => refuse(PoolErrorKind::Drive, context),
        None if drives.is_empty() => refuse(
            PoolErrorKind::Invalid,
            "a pool can't be checked without drives".to_owned(),
        ),
        None => refuse(
            PoolErrorKind::Unlabelled,
            "none of the drives has a label: they belong to no pool".to_owned(),
        ),
    }
}
