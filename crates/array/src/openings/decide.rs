//! Decides of one pool whether to open or to make it, and of which drives; explains each refusal.
//!
//! Invariants:
//! - Of a pool that is there, whatever is not one of its drives, whole, is a drive that is
//!   missing. One that can't be opened for that keeps no other from being opened.
//! - Only what was never made is made, and only of drives that are free to take.

use super::look::{DriveContent, DrivePlace, Look};
use super::pool_plan::{Action, misplaced};
use crate::bays::blank;
use crate::control::MissingDrive;
use std::collections::BTreeMap;

/// Whether a pool is opened or made, and of which drives, given what is at their places and
/// the identity that it was made with here, if it was.
pub(super) fn decide(
    name: &str,
    looks: Vec<Look>,
    uuid: Option<&str>,
) -> Result<(Vec<DrivePlace>, Action), Vec<String>> {
    let is_labelled = |look: &Look| matches!(look.found, DriveContent::Labelled(_));
    if uuid.is_none() && !looks.iter().any(is_labelled) {
        return decide_make(looks);
    }
    let is_clean = looks.iter().all(|look| match &look.found {
        DriveContent::Labelled(label) => label.is_clean,
        _ => true,
    });
    let is_known = uuid.is_some();
    let uuid = uuid
        .map(str::to_owned)
        .or_else(|| most_labelled(&looks, name));
    let (places, missing) = decide_open(name, looks, uuid.as_deref());
    if !places.is_empty() {
        return Ok((places, Action::Open { missing, is_clean }));
    }
    let why = missing.iter().map(MissingDrive::to_string).collect();
    match is_known {
        true => Ok((places, Action::Refuse { why })),
        // Nobody knows of such a pool: it would be made, and all drives are others'.
        false => Err(why),
    }
}

/// Of the pools called `name`, the one that most of the drives are of; none where two have as
/// many.
fn most_labelled(looks: &[Look], name: &str) -> Option<String> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for look in looks {
        if let DriveContent::Labelled(label) = &look.found
            && label.pool_name == name
        {
            *found.entry(label.pool_uuid.to_string()).or_default() += 1;
        }
    }
    let most = found.values().copied().max()?;
    let mut largest = found.into_iter().filter(|(_, drives)| *drives == most);
    let (uuid, _) = largest.next()?;
    largest.next().is_none().then_some(uuid)
}

/// A pool that is there: its drives that are there, and what is to be said of the others.
fn decide_open(
    name: &str,
    looks: Vec<Look>,
    uuid: Option<&str>,
) -> (Vec<DrivePlace>, Vec<MissingDrive>) {
    let mut missing = Vec::new();
    let mut places = Vec::new();
    for look in looks {
        let why = why_missing(name, &look, uuid);
        let place = look.place;
        if let Some(why) = why {
            missing.push(MissingDrive::new(place.name, place.path, why));
            continue;
        }
        match look.wrong_size {
            // The engine leaves it out, for its label says how large it was.
            Some(size) if size.smaller => {
                let (name, path) = (place.name.clone(), place.path.clone());
                missing.push(MissingDrive::new(name, path, size.context));
            }
            // All of it is there.
            Some(size) => tracing::warn!("pool {name}: drive {}: {}", place.name, size.context),
            None => {}
        }
        places.push(place);
    }
    (places, missing)
}

/// Why what was found is no drive of a pool that is there; nothing for one that is.
fn why_missing(name: &str, look: &Look, uuid: Option<&str>) -> Option<String> {
    let path = look.place.path.display();
    match &look.found {
        DriveContent::Nothing(_) => Some(format!(
            "{path} is not there, and pool {name} holds data on this drive; bring the file \
             back (Ashlar does not create it again)"
        )),
        DriveContent::Empty | DriveContent::Occupied => Some(format!(
            "{path} has no label: it isn't the drive that pool {name} was made with; put that \
             one in its place"
        )),
        DriveContent::Unusable(why) => Some(format!(
            "{why}; pool {name} holds data on this drive: repair it, or run `ashlar drive replace {}`",
            look.place.name
        )),
        DriveContent::Labelled(label) => misplaced(label, name, &look.place, uuid),
    }
}

/// A pool that is not there: every drive must be free to take.
fn decide_make(looks: Vec<Look>) -> Result<(Vec<DrivePlace>, Action), Vec<String>> {
    let mut wrong = Vec::new();
    let mut new_files = Vec::new();
    let mut places = Vec::new();
    for Look {
        place,
        found,
        wrong_size,
        ..
    } in looks
    {
        let path = place.path.display();
        let why = match (found, place.size_bytes, wrong_size) {
            (_, _, Some(size)) => Some(size.context),
            (DriveContent::Nothing(_), Some(size_bytes), _) => {
                new_files.push((place.path.clone(), size_bytes));
                None
            }
            (DriveContent::Nothing(why) | DriveContent::Unusable(why), _, _) => Some(why),
            (DriveContent::Occupied, _, _) => Some(format!("{path} {}", blank::REMEDY)),
            (DriveContent::Empty | DriveContent::Labelled(_), _, _) => None,
        };
        wrong.extend(why.map(|why| format!("drive {}: {why}", place.name)));
        places.push(place);
    }
    match wrong.is_empty() {
        true => Ok((places, Action::Make { new_files })),
        false => Err(wrong),
    }
}
