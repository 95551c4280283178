//! Keeps a pool closed of which only drives with old data are there.
//!
//! The label of a drive that failed by a fault does not say that it is out of use; the labels of the
//! drives that went on without it do. Where those are away, the roster in the data directory knows.
//!
//! Invariants:
//! - Where all drives of a pool are there, the labels alone decide.
//! - The roster is written soon after a failure, and not before the next write is acknowledged: it
//!   is a second guard, and labels are the first.

use super::drives::{Found, Look};
use super::pools::misplaced;
use std::collections::BTreeMap;

/// Names of the drives that are there and are out of use.
pub(super) fn failed(looks: &[Look], failed: &BTreeMap<String, String>) -> Vec<String> {
    let is_failed = |look: &&Look| match &look.found {
        Found::Labelled(label) => failed.contains_key(&label.drive_uuid.to_string()),
        _ => false,
    };
    let of = looks.iter().filter(is_failed);
    of.map(|look| look.place.name.clone()).collect()
}

/// Why a pool is not opened: some of its drives are away, and all others are out of use. The drives
/// that are away went on without these. Only their labels say so.
pub(super) fn refusal(
    name: &str,
    looks: &[Look],
    uuid: Option<&str>,
    failed: &BTreeMap<String, String>,
) -> Option<Vec<String>> {
    let (mut old, mut away) = (Vec::new(), Vec::new());
    for Look { place, found, .. } in looks {
        let (drive, path) = (&place.name, place.path.display());
        let why = match found {
            Found::Labelled(label) => match misplaced(label, name, place, uuid) {
                None => {
                    let out = failed.get(&label.drive_uuid.to_string())?;
                    old.push(format!("drive {drive} {out}: it may lack the last writes"));
                    continue;
                }
                Some(why) => why,
            },
            Found::Nothing(_) => format!("{path} is not there"),
            Found::Unusable(why) => why.clone(),
            Found::Empty | Found::Occupied => format!("{path} has no label"),
        };
        away.push(format!("drive {drive}: {why}"));
    }
    if old.is_empty() || away.is_empty() {
        // Labels that are all there say which of them is right.
        return None;
    }
    Some([vec![remedy(name)], old, away].concat())
}

/// What is wrong with such a pool, and what to do.
pub(super) fn remedy(name: &str) -> String {
    format!(
        "pool {name}: only drives that are out of use are there; bring the others back. If the \
         others are lost, stop Ashlar, remove ashlar-roster.json from the data directory, and start"
    )
}
