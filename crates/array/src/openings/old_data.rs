//! Keeps a pool closed of which only drives with old data are there.
//!
//! The label of a drive that failed by a fault does not say that it is out of use; the labels of the
//! drives that went on without it do. Where those are away, the roster in the data directory knows.
//!
//! Invariants:
//! - Where all drives of a pool are there, the labels alone decide. A drive is there, for a lane, if
//!   the lane's label can be read.
//! - The roster is written soon after a failure, and not before the next write is acknowledged: it
//!   is a second guard, and labels are the first.

use super::bays::OpenedDrive;
use super::look::{DriveContent, Look};
use super::pool_plan::{PoolPlan, misplaced};
use crate::control::MissingDrive;
use crate::pool::opening::doors;
use crate::shard::{ShardGone, ShardHandle, ShardState};
use engine::World;
use engine::pool::{Lane, NamedDrive};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Names of the drives that are there and are out of use.
pub(super) fn failed(looks: &[Look], failed: &BTreeMap<String, String>) -> Vec<String> {
    let is_failed = |look: &&Look| match &look.found {
        DriveContent::Labelled(label) => failed.contains_key(&label.drive_uuid.to_string()),
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
            DriveContent::Labelled(label) => match misplaced(label, name, place, uuid) {
                None => {
                    let out = failed.get(&label.drive_uuid.to_string())?;
                    old.push(format!("drive {drive} {out}: it may lack the last writes"));
                    continue;
                }
                Some(why) => why,
            },
            DriveContent::Nothing(_) => format!("{path} is not there"),
            DriveContent::Unusable(why) => why.clone(),
            DriveContent::Empty | DriveContent::Occupied => format!("{path} has no label"),
        };
        away.push(format!("drive {drive}: {why}"));
    }
    if old.is_empty() || away.is_empty() {
        // Labels that are all there say which of them is right.
        return None;
    }
    Some([vec![remedy(name)], old, away].concat())
}

/// Why a pool is not opened: of its drives, only those could be opened that are out of use.
pub(super) fn of_opened<W: World>(
    plan: &PoolPlan,
    drives: &[OpenedDrive<W>],
    missing: &[MissingDrive],
) -> Option<Vec<String>> {
    let is_failed = |drive: &OpenedDrive<W>| plan.failed.contains(&drive.name);
    if missing.is_empty() || drives.is_empty() || !drives.iter().all(is_failed) {
        return None;
    }
    let lines = missing.iter().map(MissingDrive::to_string);
    Some(
        std::iter::once(remedy(&plan.spec.name))
            .chain(lines)
            .collect(),
    )
}

/// Why a pool is not opened whose drives are there: in one of its lanes, only drives that are out of
/// use have a label that can be read. The labels of the others would say so.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn of_a_lane<W: World>(
    PoolPlan {
        failed,
        label,
        shards: homes,
        ..
    }: &PoolPlan,
    shards: &[ShardHandle<W>],
    drives: &[OpenedDrive<W>],
) -> Result<Option<Vec<String>>, ShardGone> {
    let Some(label) = label.as_ref().filter(|_| !failed.is_empty()) else {
        return Ok(None);
    };
    for (lane, home) in homes.iter().enumerate() {
        let (known, drives) = (label.clone(), drives.to_vec());
        let visit = move |state: Rc<ShardState<W>>| async move {
            let (mut with, mut without) = (Vec::new(), Vec::new());
            for NamedDrive { name, drive } in doors(&state, &drives) {
                let has = Lane::has_label(state.world(), &drive, &known, lane as u16).await;
                match has {
                    Ok(true) => with.push(name),
                    _ => without.push(name),
                }
            }
            (with, without)
        };
        let (with, without) = shards[*home].call(visit).await?;
        let is_old = !with.is_empty() && with.iter().all(|drive| failed.contains(drive));
        if is_old && !without.is_empty() {
            let (old, others) = (with.join(", "), without.join(", "));
            let why = format!(
                "lane {lane}: the drives that are out of use ({old}) have a label, and no label can \
                 be read on {others}"
            );
            return Ok(Some(vec![remedy(&label.pool_name), why]));
        }
    }
    Ok(None)
}

/// What is wrong with such a pool, and what to do.
fn remedy(name: &str) -> String {
    format!(
        "pool {name}: only drives that are out of use are there; bring the others back. If the \
         others are lost, stop Ashlar, remove ashlar-roster.json from the data directory, and start"
    )
}
