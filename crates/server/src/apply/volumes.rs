//! Applies volumes of a site file: creates and grows them, and names all others.

use super::{Action, Difference};
use crate::array::{Array, ArrayError};
use engine::VolumeSpec;
use site::diff::{self, ExistingVolume, Step, VolumePlan};
use site::{Provisioning, Site, human};
use std::sync::Arc;

/// Compares the site with the volumes of the pools that are open. While one is not, nothing
/// is made: it may have the volume, whatever the site file says of where that is.
///
/// # Errors
/// A shard has stopped.
pub(crate) async fn plan(site: &Site, array: &Array) -> Result<VolumePlan, ArrayError> {
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
    if let Some(closed) = array.closed_names() {
        plan.steps.retain(|step| match step {
            Step::Create(volume) => {
                let name = &volume.name;
                tracing::warn!(
                    "volume {name} is not there, and is not made as long as it may be in a pool \
                     that is not open: {closed}"
                );
                false
            }
            Step::Grow { .. } => true,
        });
    }
    Ok(plan)
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

/// Says in the log what a start leaves as it is.
pub(crate) fn tell(plan: &VolumePlan) {
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
pub(crate) fn name_of(step: &Step) -> &str {
    match step {
        Step::Create(volume) => &volume.name,
        Step::Grow { name, .. } => name,
    }
}

/// Makes or grows a volume.
///
/// # Errors
/// What the array says.
pub(crate) async fn make(step: Step, site: &Site, array: &Arc<Array>) -> Result<(), ArrayError> {
    match step {
        Step::Create(volume) => {
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
            let beside = beside.unwrap_or_default();
            array.create_volume(volume.pool, spec, beside).await?;
        }
        Step::Grow {
            name, size_bytes, ..
        } => {
            tracing::info!("growing volume {name} to {}", human(size_bytes));
            array.resize_volume(name, size_bytes, false).await?;
        }
    }
    Ok(())
}

/// The volumes of the site that no open pool has, by name. While a pool is not open, it may have
/// them.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn unseen(site: &Site, array: &Array) -> Result<Vec<String>, ArrayError> {
    let there = array.volumes().await?;
    let is_there = |name: &String| there.iter().any(|volume| volume.info.name == *name);
    let names = site.volumes.iter().map(|volume| volume.name.clone());
    Ok(names.filter(|name| !is_there(name)).collect())
}

/// Where volumes are not what the site file says, beside their words.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn differences(site: &Site, array: &Array) -> Result<Vec<Difference>, ArrayError> {
    let plan = plan(site, array).await?;
    let trash = array.trash().await?;
    let mut found = Vec::new();
    let mut differs = |action, volume: &str, how: String| {
        let what = format!("volume {volume}");
        found.push(Difference { action, what, how });
    };
    for step in &plan.steps {
        match step {
            Step::Create(volume) => {
                let (size, pool) = (human(volume.size_bytes), &volume.pool);
                let mut deleted = trash.iter().filter(|one| one.info.name == volume.name);
                let deleted = deleted.next().map_or(String::new(), |one| {
                    let uuid = one.info.uuid;
                    format!(", without data: `ashlar trash restore {uuid}` brings back what it had")
                });
                differs(
                    Action::Create,
                    &volume.name,
                    format!("{size} in pool {pool}{deleted}"),
                );
            }
            Step::Grow {
                name, size_bytes, ..
            } => differs(
                Action::Change,
                name,
                format!("grows to {}", human(*size_bytes)),
            ),
        }
    }
    if let Some(closed) = array.closed_names() {
        for volume in unseen(site, array).await? {
            let how = format!("may be in a pool that is not open: {closed}");
            differs(Action::Keep, &volume, how);
        }
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
