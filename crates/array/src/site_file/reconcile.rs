//! Applies what a site file says of volumes: descriptions, limits, tags, schedules, groups.
//!
//! Zero detection belongs here, too; places and sizes do not.
//!
//! Invariant: what the file does not say stays: other tags, other schedules, other volumes of a
//! group.

use super::volumes::unseen;
use super::{Action, Difference};
use crate::control::consistency::group_of;
use crate::control::{ArrayError, ConsistencyGroup, ControlPlane, NewAttributes, PlacedVolume};
use crate::control::{Schedule, attributes, limits, schedule};
use engine::World;
use engine::pool::VolumeChange;
use site::Site;
use std::sync::Arc;

/// Things that could not be as the site file says, and why.
pub type Failed = Vec<(String, String)>;

/// Has volumes and groups be what the site says of them. Gives what can't be, which the log has,
/// too.
///
/// # Errors
/// A shard has stopped.
pub async fn apply<W: World>(
    site: &Site,
    array: &Arc<ControlPlane<W>>,
) -> Result<Failed, ArrayError> {
    let mut failed = Failed::new();
    let volumes = array.volumes().await?;
    for wanted in &site.volumes {
        let there = volumes.iter().find(|there| there.info.name == wanted.name);
        // All of them have been made by now.
        let Some(there) = there.filter(|there| !there.is_snapshot()) else {
            continue;
        };
        say(array, wanted, there, &mut failed).await;
        schedule_as_said(array, wanted, there, &mut failed).await;
    }
    // Who has not made them has said why.
    let absent = unseen(site, array).await?;
    for wanted in &site.groups {
        let called = &wanted.name;
        let wanted = &without(wanted, &absent);
        if wanted.volumes.is_empty() {
            continue;
        }
        let gathered = gather(array, wanted).await;
        let group = format!("group {called}");
        let Some(there) = told(&mut failed, &group, "its volumes", gathered) else {
            continue;
        };
        for new in missing(&wanted.schedules, &there.schedules) {
            let (every_s, keep) = (new.every.as_secs(), new.keep);
            let added = array.add_group_schedule(called.clone(), every_s, keep);
            let added = added.await;
            told(&mut failed, &group, "a schedule", added);
        }
    }
    Ok(failed)
}

/// Where volumes and groups are not what the site says of them.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn differences<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<Vec<Difference>, ArrayError> {
    let volumes = array.volumes().await?;
    let of_volumes = site.volumes.iter().filter_map(|wanted| {
        let there = volumes.iter().find(|there| there.info.name == wanted.name);
        let there = there.filter(|there| !there.is_snapshot())?;
        differs(format!("volume {}", wanted.name), &words(wanted, there))
    });
    let mut found: Vec<Difference> = of_volumes.collect();
    let (waiting, mut late) = (waiting(site, array).await?, Vec::new());
    for whole in &site.groups {
        let wanted = &without(whole, &waiting);
        if wanted.volumes.len() < whole.volumes.len() {
            late.push(joins_later(whole, &waiting, array));
        }
        if wanted.volumes.is_empty() {
            continue;
        }
        let there = array.consistency_group(&wanted.name).await.ok();
        let has = there.as_ref().map_or(&[][..], |group| &group.volumes);
        let is_in = |volume: &String| has.iter().any(|there| there.info.name == *volume);
        let lacks = !wanted.volumes.iter().all(is_in);
        let schedules = there.as_ref().map_or(&[][..], |group| &group.schedules);
        let schedules = missing(&wanted.schedules, schedules);
        let of = [
            (lacks || there.is_none(), "volumes"),
            (!schedules.is_empty(), "schedules"),
        ];
        found.extend(differs(format!("group {}", wanted.name), &of));
    }
    found.extend(late);
    found.extend(other_groups(site, array).await?);
    Ok(found)
}

/// The groups of the array that the site does not have.
async fn other_groups<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<Vec<Difference>, ArrayError> {
    let described = |name: &String| site.groups.iter().any(|group| group.name == *name);
    let there = array.consistency_groups().await?.into_iter();
    let others = there.filter(|group| !described(&group.name));
    let others = others.map(|group| Difference {
        action: Action::Keep,
        what: format!("group {}", group.name),
        how: "is not in the site file".to_owned(),
    });
    Ok(others.collect())
}

/// Which words of a volume differ.
fn words(wanted: &site::Volume, there: &PlacedVolume) -> [(bool, &'static str); 4] {
    let said = new_attributes(wanted, there) != NewAttributes::default();
    let zeroes = wanted.detect_zeroes;
    let zeroes = zeroes.is_some_and(|detects| detects != there.info.detects_zeroes);
    let schedules = missing(&wanted.schedules, &schedule::of(there));
    let limited = wanted.limits;
    let limited = limited.is_some_and(|wanted| wanted != limits(&there.properties));
    [
        (limited, "limits"),
        (said, "description or tags"),
        (zeroes, "detect_zeroes"),
        (!schedules.is_empty(), "schedules"),
    ]
}

/// That something has to change, if any of that is so.
fn differs(what: String, of: &[(bool, &str)]) -> Option<Difference> {
    let how = of.iter().filter(|(differs, _)| *differs);
    let how: Vec<&str> = how.map(|(_, word)| *word).collect();
    (!how.is_empty()).then(|| Difference {
        action: Action::Change,
        what,
        how: how.join("; "),
    })
}

/// Volumes that may be in pools that are not open: they can't join a group now.
async fn waiting<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<Vec<String>, ArrayError> {
    match array.closed_names() {
        Some(_) => unseen(site, array).await,
        None => Ok(Vec::new()),
    }
}

/// A group of the site without volumes that are not there.
fn without(wanted: &site::ConsistencyGroup, absent: &[String]) -> site::ConsistencyGroup {
    let mut group = wanted.clone();
    group.volumes.retain(|volume| !absent.contains(volume));
    group
}

/// That volumes of a group wait for their pools.
fn joins_later<W: World>(
    wanted: &site::ConsistencyGroup,
    waiting: &[String],
    array: &ControlPlane<W>,
) -> Difference {
    let late = wanted.volumes.iter().filter(|name| waiting.contains(name));
    let late: Vec<&str> = late.map(String::as_str).collect();
    let closed = array.closed_names().unwrap_or_default();
    Difference {
        action: Action::Keep,
        what: format!("group {}", wanted.name),
        how: format!(
            "{} may be in a pool that is not open: {closed}; apply the file again when it is",
            late.join(", ")
        ),
    }
}

/// What came of it; where nothing did, a warning and a note.
fn told<T>(
    failed: &mut Failed,
    what: &str,
    part: &str,
    outcome: Result<T, ArrayError>,
) -> Option<T> {
    if let Err(error) = &outcome {
        tracing::warn!("{what}, {part}: it can't be as the site file says: {error}");
        failed.push((what.to_owned(), format!("{part}: {error}")));
    }
    outcome.ok()
}

/// Description, tags, zeroes and limits of a volume.
async fn say<W: World>(
    array: &Arc<ControlPlane<W>>,
    wanted: &site::Volume,
    there: &PlacedVolume,
    failed: &mut Failed,
) {
    let name = &wanted.name;
    let what = &format!("volume {name}");
    let mut new = new_attributes(wanted, there);
    if array
        .runtime()
        .planted("tags of a site file replace others")
        && !wanted.tags.is_empty()
    {
        let others = attributes::tags(&there.properties).into_keys();
        let others = others.filter(|key| !wanted.tags.contains_key(key));
        new.tags.extend(others.map(|key| (key, String::new())));
    }
    if new != NewAttributes::default() {
        tracing::info!("volume {name} has description and tags of the site file");
        let said = array.change_attributes(name.clone(), new).await;
        told(failed, what, "description and tags", said);
    }
    let zeroes = wanted.detect_zeroes;
    if zeroes.is_some_and(|detects| detects != there.info.detects_zeroes) {
        tracing::info!("volume {name} detects zeroes or not as the site file says");
        let change = VolumeChange {
            detects_zeroes: zeroes,
            ..VolumeChange::default()
        };
        let changed = array.convert_volume(name.clone(), change).await;
        told(failed, what, "detect_zeroes", changed);
    }
    if let Some(wanted) = wanted.limits
        && wanted != limits(&there.properties)
    {
        tracing::info!("volume {name} has the limits of the site file");
        let changed = array.limit_volume(name.clone(), wanted).await;
        told(failed, what, "limits", changed);
    }
}

/// Adds the schedules that a volume lacks.
async fn schedule_as_said<W: World>(
    array: &Arc<ControlPlane<W>>,
    wanted: &site::Volume,
    there: &PlacedVolume,
    failed: &mut Failed,
) {
    let planted = "schedules of a site file are added again";
    let known = match array.runtime().planted(planted) {
        true => Vec::new(),
        false => schedule::of(there),
    };
    for new in missing(&wanted.schedules, &known) {
        let (every_s, keep) = (new.every.as_secs(), new.keep);
        let added = array.add_schedule(&wanted.name, every_s, keep).await;
        let what = format!("volume {}", wanted.name);
        told(failed, &what, "a schedule", added);
    }
}

/// What is to be said of a volume that is not said yet.
fn new_attributes(wanted: &site::Volume, there: &PlacedVolume) -> NewAttributes {
    let description = wanted.description.clone();
    let said = attributes::tags(&there.properties);
    let is_new = |(key, value): &(&String, &String)| said.get(*key) != Some(value);
    let tags = wanted.tags.iter().filter(is_new);
    NewAttributes {
        name: None,
        description: description.filter(|text| *text != attributes::description(&there.properties)),
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
async fn gather<W: World>(
    array: &Arc<ControlPlane<W>>,
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
    use crate::control::schedule::Subject;
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
