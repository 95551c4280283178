//! The member table of the newest label, and the drives that were given.
//!
//! Invariant: a drive that an opening would not use (failed, stale, missing, cut
//! short) counts as failed here, too: what is on it is not looked at.

use super::report::{Findings, Severity};
use super::slots::Labelled;
use crate::drive::Drive;
use crate::drives::Member;
use crate::drives::Places;
use crate::error::{PoolError, PoolErrorKind};
use crate::label::MemberState;
use crate::label::{Label, MemberEntry};
use crate::world::World;
use base::Uuid;
use base::size::human_pair;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The members by group and place, and the spares.
type Members<W> = (Places<W>, Vec<Rc<Member<W>>>);

/// The members by group and place, and the spares.
///
/// # Errors
/// `Corrupt` when the table contradicts itself, or groups have numbers together.
pub(super) fn members<W: World>(
    world: &W,
    newest: &Label,
    drives: Vec<Labelled<W>>,
    findings: &mut Findings,
) -> Result<Members<W>, PoolError> {
    let mut by_uuid: BTreeMap<Uuid, Labelled<W>> = BTreeMap::new();
    for drive in drives {
        if let Some(uuid) = drive.label().map(|label| label.drive_uuid) {
            by_uuid.insert(uuid, drive);
        }
    }
    let mut groups: Places<W> = newest.groups.iter().map(|_| Vec::new()).collect();
    let mut spares = Vec::new();
    for entry in &newest.members {
        let found = by_uuid.remove(&entry.uuid);
        let fault = fault(newest, entry, found.as_ref());
        let usable = !matches!(fault, Some((Severity::Damage, _)));
        if let Some((severity, text)) = fault {
            let name = found.as_ref().map_or(&entry.name, |found| &found.name);
            let place = match entry.state {
                MemberState::Spare => format!("spare '{name}'"),
                _ => format!(
                    "drive '{name}' (place {} of group {})",
                    entry.place, entry.group
                ),
            };
            findings.push(severity, place, text);
        }
        let member = member(world, entry, found, usable);
        match groups.get_mut(usize::from(entry.group)) {
            Some(group) => group.push(Rc::new(member)),
            None => spares.push(Rc::new(member)),
        }
    }
    for stranger in by_uuid.into_values() {
        findings.push(
            Severity::Note,
            format!("drive '{}'", stranger.name),
            format!("it is not a member of pool '{}' any more", newest.pool.name),
        );
    }
    check_places(newest, &mut groups)?;
    Ok((groups, spares))
}

fn member<W: World>(
    world: &W,
    entry: &MemberEntry,
    found: Option<Labelled<W>>,
    usable: bool,
) -> Member<W> {
    let state = match usable {
        true => entry.state,
        false => MemberState::Failed,
    };
    let name = found.as_ref().map_or(&entry.name, |found| &found.name);
    let entry = MemberEntry {
        state,
        name: name.clone(),
        ..entry.clone()
    };
    match found {
        Some(found) => Member::new(world, found.drive, &entry),
        None => Member::absent(world, &entry),
    }
}

/// Why a member can't be used (damage), or what else is to be said of it.
fn fault<W: World>(
    newest: &Label,
    entry: &MemberEntry,
    found: Option<&Labelled<W>>,
) -> Option<(Severity, String)> {
    let damage = |text: String| Some((Severity::Damage, text));
    let found = match (entry.state, found) {
        (MemberState::Failed, _) => {
            return damage("it has failed and is out of use: replace it".to_owned());
        }
        (MemberState::Spare, None) => {
            return Some((Severity::Note, "it is missing".to_owned()));
        }
        (_, None) => {
            return damage(format!(
                "it is missing ({}): it belongs beside the drives that were looked at",
                entry.uuid
            ));
        }
        (_, Some(found)) => found,
    };
    let generation = found.label().map_or(0, |label| label.generation);
    if generation + 1 < newest.generation {
        return damage(format!(
            "it is stale: its label is of generation {generation} and the newest is {}",
            newest.generation
        ));
    }
    let capacity = found.drive.geometry().capacity_bytes;
    if capacity < entry.capacity_bytes {
        let (capacity, was) = human_pair(capacity, entry.capacity_bytes);
        return damage(format!(
            "it has {capacity} and had {was} when it was labelled"
        ));
    }
    (entry.state == MemberState::Rebuilding).then(|| {
        let text = "it is being rebuilt: the part that is not rebuilt is not checked";
        (Severity::Note, text.to_owned())
    })
}

/// Puts the members of each group in order; every place is there once.
fn check_places<W: World>(newest: &Label, groups: &mut Places<W>) -> Result<(), PoolError> {
    for (group, members) in newest.groups.iter().zip(groups) {
        members.sort_by_key(|member| member.place());
        let places = members.iter().map(|member| member.place());
        if !places.eq(0..group.drives) {
            let context = format!(
                "the member table of pool '{}' contradicts itself",
                newest.pool.name
            );
            return Err(PoolError::new(PoolErrorKind::Corrupt, context));
        }
    }
    let numbers = newest.check_numbers();
    numbers.map_err(|context| PoolError::new(PoolErrorKind::Corrupt, context))
}
