//! Applies volumes of a site file: creates and grows them, and names all others.

use super::renamed::MADE_AGAIN;
use super::{Action, Difference};
use crate::control::attributes::SITE_NAME;
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use engine::pool::SNAPSHOT_MARK;
use engine::{VolumeSpec, World};
use site::diff::{self, ExistingVolume, Step, VolumePlan};
use site::{Provisioning, Site, human};
use std::sync::Arc;

/// Compares the site with the volumes of the pools that are open. What is [`withheld`] is not made.
///
/// # Errors
/// A shard has stopped.
pub async fn plan<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<VolumePlan, ArrayError> {
    let mut existing = Vec::new();
    let there = array.volumes().await?.into_iter();
    for volume in there.filter(|volume| !volume.is_snapshot()) {
        existing.push(ExistingVolume {
            name: volume.info.name,
            pool: volume.pool,
            size_bytes: volume.info.size_bytes,
            provisioning: match volume.info.provisioning {
                engine::Provisioning::Thin => Provisioning::Thin,
                engine::Provisioning::Thick => Provisioning::Thick,
            },
        });
    }
    let mut plan = diff::volumes(site, &existing);
    if array.runtime().planted(SHRINKS) {
        shrink(&mut plan, site);
    }
    let withheld = withheld(site, array).await?;
    plan.steps.retain(|step| match step {
        Step::Create(volume) => withheld.iter().all(|(name, _)| *name != volume.name),
        Step::Grow { .. } => true,
    });
    plan.withheld = withheld;
    Ok(plan)
}

/// A planted bug.
const SHRINKS: &str = "site file shrinks volumes";

/// As the planted bug has it.
fn shrink(plan: &mut VolumePlan, site: &Site) {
    for (name, _) in std::mem::take(&mut plan.larger) {
        let said = site.volumes.iter().find(|volume| volume.name == name);
        plan.steps.extend(said.map(|volume| Step::Grow {
            name,
            pool: volume.pool.clone(),
            size_bytes: volume.size_bytes,
        }));
    }
}

/// What makes a volume that has nothing of the one of before.
const MAKE_EMPTY: &str = "`ashlar volume create` makes an empty one";

/// The volumes of the site that no open pool has and that are not made, because drives hold one of
/// that name, or may; each with the place of that, and how it comes back.
///
/// # Errors
/// A shard has stopped.
async fn withheld<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<Vec<(String, String)>, ArrayError> {
    let unseen = unseen(site, array).await?;
    if unseen.is_empty() {
        return Ok(Vec::new());
    }
    let (there, trash) = (array.volumes().await?, array.trash().await?);
    let (unlisted, closed) = (array.unlisted_names(), array.closed_names());
    let why = |name: &str| {
        let known = kept_by_drives(name, &there, trash_seen(array, &trash));
        let unlisted = unlisted.as_ref().map(|pool| {
            format!(
                "may be in a pool that was made here and is not in the settings, pool {pool}: \
                 write that pool into the site file; {MAKE_EMPTY}"
            )
        });
        let closed = closed.as_ref();
        let closed = closed.map(|pool| format!("may be in a pool that is not open: {pool}"));
        let runtime = array.runtime();
        if known.is_some() {
            runtime.reached("volume of a site file not made, for one had its name");
        } else if closed.is_some() {
            runtime.reached("volume of a site file not made, for a pool is not open");
        }
        known.or(unlisted).or(closed)
    };
    let said = unseen.into_iter().filter_map(|name| {
        let why = why(&name)?;
        Some((name, why))
    });
    Ok(said.collect())
}

/// The volumes in the trash that count.
fn trash_seen<'a, W: World>(
    array: &ControlPlane<W>,
    trash: &'a [PlacedVolume],
) -> &'a [PlacedVolume] {
    let planted = "volume in the trash is made again by a site file";
    match array.runtime().planted(planted) {
        true => &[],
        false => trash,
    }
}

/// Where the data of a volume is that no open pool has: `there` are all that have a name, and in the
/// `trash`, the newest is the last.
fn kept_by_drives(name: &str, there: &[PlacedVolume], trash: &[PlacedVolume]) -> Option<String> {
    let is_of = |other: &&PlacedVolume| {
        let of = other.info.name.split_once(SNAPSHOT_MARK);
        of.is_some_and(|(volume, _)| volume == name)
    };
    let whole = trash.iter().rfind(|one| one.info.name == name);
    // It was renamed, and deleted since.
    let whole = whole.or(trash.iter().rfind(|one| was_called(one, name)));
    if whole.is_none()
        && let Some(snapshot) = there.iter().find(is_of)
    {
        let (pool, snapshot) = (&snapshot.pool, &snapshot.info.name);
        return Some(format!(
            "has a snapshot {snapshot} in pool {pool}: `ashlar volume clone {snapshot} {name}` \
             makes a volume of that, {MAKE_EMPTY}"
        ));
    }
    let deleted = whole.or(trash.iter().rfind(is_of))?;
    let (pool, what, uuid) = (&deleted.pool, &deleted.info.name, deleted.info.uuid);
    let had_it = there.iter().find(|one| was_called(one, name));
    let or_that = had_it.map_or(String::new(), |one| {
        let now = &one.info.name;
        format!("; or write {now} into the site file, which had this name, too")
    });
    Some(format!(
        "is in the trash of pool {pool}, as {what}: `ashlar trash restore {uuid}` restores it, \
         {MAKE_EMPTY}{or_that}"
    ))
}

/// Why a volume is not made, though it was to be a moment ago: it has been deleted or renamed since.
fn not_made(
    name: &str,
    site: &Site,
    (there, trash): (&[PlacedVolume], &[PlacedVolume]),
) -> Option<String> {
    let describes = |name: &str| site.volumes.iter().any(|volume| volume.name == name);
    let is_it = |one: &&PlacedVolume| was_called(one, name) && !describes(&one.info.name);
    let renamed = there.iter().find(is_it).map(|one| {
        let now = &one.info.name;
        format!("is called {now} now: write that name into the site file; {MAKE_EMPTY}")
    });
    renamed.or(kept_by_drives(name, there, trash))
}

/// Whether a volume had this name before.
fn was_called(volume: &PlacedVolume, name: &str) -> bool {
    let noted = volume.properties.attributes.get(SITE_NAME);
    noted.is_some_and(|before| before == name)
}

/// Volumes that a line of the log names; it counts the others.
const NAMED_MAX: usize = 3;

/// What the log says of volumes that the site file does not describe, by pool and name.
fn kept(volumes: &[(String, String)]) -> Option<String> {
    let names = volumes.iter().map(|(_, volume)| volume.as_str());
    let named: Vec<&str> = names.take(NAMED_MAX).collect();
    let others = volumes.len() - named.len();
    let named = named.join(", ");
    match (volumes.len(), others) {
        (0, _) => None,
        (1, _) => Some(format!("volume {named} isn't in the site file: it is kept")),
        (_, 0) => Some(format!(
            "volumes {named} aren't in the site file: they are kept"
        )),
        _ => Some(format!(
            "volumes {named} and {others} more aren't in the site file: they are kept"
        )),
    }
}

/// Says in the log which volumes are not made.
pub fn tell_withheld(plan: &VolumePlan) {
    for (volume, why) in &plan.withheld {
        tracing::warn!("volume {volume} of the site file is not made: it {why}");
    }
}

/// Says in the log what a start leaves as it is.
pub fn tell(plan: &VolumePlan) {
    tell_withheld(plan);
    if let Some(line) = kept(&plan.kept) {
        tracing::info!("{line}");
    }
    for (volume, pool) in &plan.moved {
        tracing::info!(
            "volume {volume} is in pool {pool}, the site file says otherwise: write pool = \"{pool}\" there"
        );
    }
    for (volume, size_bytes) in &plan.larger {
        let is = human(*size_bytes);
        tracing::warn!(
            "volume {volume} has {is}, the site file says less, and a start shrinks nothing: write \
             size = \"{is}\" there, or make it smaller with `ashlar volume resize --force-shrink`"
        );
    }
    for (volume, is) in &plan.converted {
        let is = is.as_str();
        tracing::info!(
            "volume {volume} is {is}, the site file says otherwise: write provisioning = \"{is}\" there"
        );
    }
}

/// The volume that a step is for.
pub fn name_of(step: &Step) -> &str {
    match step {
        Step::Create(volume) => &volume.name,
        Step::Grow { name, .. } => name,
    }
}

/// Makes or grows a volume of a site file, as it was `written` and as it is followed.
///
/// # Errors
/// The file has another name for a volume that is to be made; or what the array says.
pub async fn make<W: World>(
    step: Step,
    (written, site): (&Site, &Site),
    array: &Arc<ControlPlane<W>>,
) -> Result<(), ArrayError> {
    match step {
        Step::Create(volume) => {
            let name = &volume.name;
            if !written.volumes.iter().any(|volume| volume.name == *name) {
                let context = format!(
                    "the file has another name for volume {name}, and it has gone, or got a third, \
                     meanwhile"
                );
                return Err(ArrayError::new(ArrayErrorKind::Exists, context));
            }
            create(volume, site, array).await
        }
        Step::Grow {
            name, size_bytes, ..
        } => {
            tracing::info!("growing volume {name} to {}", human(size_bytes));
            let by_force = array.runtime().planted(SHRINKS);
            let grown = array.resize_volume(name, size_bytes, by_force).await;
            grown.map(drop)
        }
    }
}

/// Makes a volume, unless another one has its name by now, or had it.
async fn create<W: World>(
    volume: ExistingVolume,
    site: &Site,
    array: &Arc<ControlPlane<W>>,
) -> Result<(), ArrayError> {
    let size = human(volume.size_bytes);
    tracing::info!("making volume {}, {size}", volume.name);
    let spec = VolumeSpec {
        name: volume.name,
        size_bytes: volume.size_bytes,
        provisioning: match volume.provisioning {
            Provisioning::Thin => engine::Provisioning::Thin,
            Provisioning::Thick => engine::Provisioning::Thick,
        },
    };
    let mut exports = site.exports.iter();
    let export = exports.find(|export| export.volumes.contains(&spec.name));
    let beside = export.map(|export| export.volumes.clone());
    let (name, site, own) = (spec.name.clone(), site.clone(), Arc::clone(array));
    let may_be_made = move |there: &[PlacedVolume], trash: &[PlacedVolume]| {
        let trash = trash_seen(&own, trash);
        let there = match own.runtime().planted(MADE_AGAIN) {
            true => &[],
            false => there,
        };
        let Some(why) = not_made(&name, &site, (there, trash)) else {
            return Ok(());
        };
        let mark = "volume renamed or deleted while a site file is applied";
        own.runtime().reached(mark);
        let context = format!("volume {name} is not made: it {why}");
        Err(ArrayError::new(ArrayErrorKind::Exists, context))
    };
    let beside = beside.unwrap_or_default();
    let made = array.create_volume_if(volume.pool, spec, beside, may_be_made);
    made.await.map(drop)
}

/// The volumes of the site that no open pool has, by name. While a pool is not open, it may have
/// them.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn unseen<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<Vec<String>, ArrayError> {
    let there = array.volumes().await?;
    let is_there = |name: &String| there.iter().any(|volume| volume.info.name == *name);
    let names = site.volumes.iter().map(|volume| volume.name.clone());
    Ok(names.filter(|name| !is_there(name)).collect())
}

/// What a step does, for people.
fn of_step(step: &Step) -> (Action, String) {
    match step {
        Step::Create(volume) => {
            let (size, pool) = (human(volume.size_bytes), &volume.pool);
            (Action::Create, format!("{size} in pool {pool}"))
        }
        Step::Grow { size_bytes, .. } => {
            let how = format!("grows to {}", human(*size_bytes));
            (Action::Change, how)
        }
    }
}

/// Where volumes are not what the site file says, beside their words.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn differences<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<Vec<Difference>, ArrayError> {
    let plan = plan(site, array).await?;
    let mut found = Vec::new();
    let mut differs = |action, volume: &str, how: String| {
        let what = format!("volume {volume}");
        found.push(Difference { action, what, how });
    };
    for step in &plan.steps {
        let (action, how) = of_step(step);
        differs(action, name_of(step), how);
    }
    for (volume, how) in &plan.withheld {
        differs(Action::Keep, volume, how.clone());
    }
    for (volume, pool) in &plan.moved {
        let how = format!("is in pool {pool}: `ashlar volume move` moves it");
        differs(Action::Keep, volume, how);
    }
    for (volume, size_bytes) in &plan.larger {
        let how = format!(
            "has {}: `ashlar volume resize --force-shrink` makes it smaller",
            human(*size_bytes)
        );
        differs(Action::Keep, volume, how);
    }
    for (volume, is) in &plan.converted {
        let how = format!("is {}: `ashlar volume convert` changes that", is.as_str());
        differs(Action::Keep, volume, how);
    }
    for (_, volume) in &plan.kept {
        differs(Action::Keep, volume, "is not in the site file".to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_of_commands_are_one_line_of_the_log() {
        let volumes = |count: u32| -> Vec<(String, String)> {
            let volume = |n| ("p".to_owned(), format!("v{n}"));
            (0..count).map(volume).collect()
        };
        assert_eq!(kept(&volumes(0)), None);
        for (count, who) in [
            (1, "volume v0 isn't"),
            (3, "volumes v0, v1, v2 aren't"),
            (1008, "volumes v0, v1, v2 and 1005 more aren't"),
        ] {
            let line = kept(&volumes(count)).unwrap_or_default();
            assert!(line.starts_with(who), "{line}");
        }
    }
}
