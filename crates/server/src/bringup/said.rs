//! What the site file says of volumes beside where they are and how large: what they are for,
//! tags, zeroes, schedules, consistency groups.
//!
//! It is applied at every start, to volumes that are there as to those that were just made.
//!
//! Invariants:
//! - What the file does not say stays: other tags, other schedules, other volumes of a group.
//!   A second start changes nothing.
//! - None of it keeps the array from coming up: what can't be said is named in the log.

use crate::array::consistency::group_of;
use crate::array::{Array, ArrayError, ConsistencyGroup, NewWords, PlacedVolume, Schedule};
use crate::array::{schedule, words};
use engine::pool::VolumeChange;
use site::Site;
use std::fmt::Display;
use std::sync::Arc;

/// Has volumes and groups be what the site says of them.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn apply(site: &Site, array: &Arc<Array>) -> Result<(), ArrayError> {
    let volumes = array.volumes().await?;
    for wanted in &site.volumes {
        let there = volumes.iter().find(|there| there.info.name == wanted.name);
        // All of them have been made by now.
        let Some(there) = there.filter(|there| !there.is_snapshot()) else {
            continue;
        };
        say(array, wanted, there).await;
        for new in missing(&wanted.schedules, &schedule::of(there)) {
            let (every_s, keep) = (new.every.as_secs(), new.keep);
            let added = array.add_schedule(&wanted.name, every_s, keep).await;
            told(format_args!("volume {}, a schedule", wanted.name), added);
        }
    }
    for wanted in &site.groups {
        let called = &wanted.name;
        let gathered = gather(array, wanted).await;
        let Some(there) = told(format_args!("group {called}"), gathered) else {
            continue;
        };
        for new in missing(&wanted.schedules, &there.schedules) {
            let (every_s, keep) = (new.every.as_secs(), new.keep);
            let added = array.add_group_schedule(called.clone(), every_s, keep);
            let added = added.await;
            told(format_args!("group {called}, a schedule"), added);
        }
    }
    Ok(())
}

/// What came of it, and a warning where nothing did.
fn told<T>(what: impl Display, outcome: Result<T, ArrayError>) -> Option<T> {
    if let Err(error) = &outcome {
        tracing::warn!("{what}: it can't be as the site file says: {error}");
    }
    outcome.ok()
}

/// Description, tags and zeroes of a volume.
async fn say(array: &Arc<Array>, wanted: &site::Volume, there: &PlacedVolume) {
    let name = &wanted.name;
    let new = new_words(wanted, there);
    if new != NewWords::default() {
        tracing::info!("volume {name} has description and tags of the site file");
        let said = array.change_words(name.clone(), new).await;
        told(format_args!("volume {name}, description and tags"), said);
    }
    let zeroes = wanted.detect_zeroes;
    if zeroes.is_some_and(|detects| detects != there.info.detects_zeroes) {
        tracing::info!("volume {name} detects zeroes or not as the site file says");
        let change = VolumeChange {
            detects_zeroes: zeroes,
            ..VolumeChange::default()
        };
        let changed = array.convert_volume(name.clone(), change).await;
        told(format_args!("volume {name}, detect_zeroes"), changed);
    }
}

/// What is to be said of a volume that is not said yet.
fn new_words(wanted: &site::Volume, there: &PlacedVolume) -> NewWords {
    let description = wanted.description.clone();
    let said = words::tags(&there.about);
    let is_new = |(key, value): &(&String, &String)| said.get(*key) != Some(value);
    let tags = wanted.tags.iter().filter(is_new);
    NewWords {
        name: None,
        description: description.filter(|text| *text != words::description(&there.about)),
        tags: tags
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    }
}

/// The schedules of `wanted` that are not among those there are: one that has the same times,
/// whoever made it, is there.
fn missing(wanted: &[site::Schedule], there: &[Schedule]) -> Vec<site::Schedule> {
    let is_there = |one: &site::Schedule| {
        let same =
            |other: &Schedule| (other.every_s, other.keep) == (one.every.as_secs(), one.keep);
        there.iter().any(same)
    };
    let mut new: Vec<site::Schedule> = Vec::new();
    for one in wanted {
        if !is_there(one) && !new.contains(one) {
            new.push(*one);
        }
    }
    new
}

/// Has the volumes of a group be in it.
async fn gather(
    array: &Arc<Array>,
    wanted: &site::ConsistencyGroup,
) -> Result<ConsistencyGroup, ArrayError> {
    let name = &wanted.name;
    for volume in &array.volumes().await? {
        let (volume, group) = (&volume.info.name, group_of(volume));
        if group == Some(name) || !wanted.volumes.contains(volume) {
            continue;
        }
        match group {
            None => tracing::info!("group {name} of the site file gets volume {volume}"),
            Some(other) => tracing::info!(
                "group {name} of the site file gets volume {volume}, from group {other}"
            ),
        }
    }
    array.gather(name.clone(), wanted.volumes.clone()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::schedule::Subject;
    use std::time::Duration;

    #[test]
    fn schedules_that_are_there_are_not_made_again() {
        let there = |every_s, keep| Schedule {
            subject: Subject::Volume,
            number: 1,
            every_s,
            keep,
            since_unix_s: 5,
            last_unix_s: 6,
        };
        let wanted = |every_s, keep| site::Schedule {
            every: Duration::from_secs(every_s),
            keep,
        };
        let all = [wanted(60, 1), wanted(60, 2), wanted(90, 1), wanted(60, 2)];
        let new = missing(&all, &[there(60, 1), there(30, 2)]);
        assert_eq!(new, [wanted(60, 2), wanted(90, 1)]);
    }
}
