//! Volumes: the site's are made or grown; others are kept and named. What a job has to itself
//! is grown another time.

use super::{BringUpError, BringUpErrorKind};
use crate::array::{Array, ArrayErrorKind};
use engine::VolumeSpec;
use site::diff::{self, ExistingVolume, Step, VolumePlan};
use site::{Provisioning, Site, human};
use std::sync::Arc;

/// Compares the site with the volumes of the pools that are open. While one is not, nothing
/// is made: it may have the volume, whatever the site file says of where that is.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn plan(site: &Site, array: &Array) -> Result<VolumePlan, BringUpError> {
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

/// Makes and grows volumes.
///
/// # Errors
/// What the first step that fails says.
pub(super) async fn apply(
    plan: VolumePlan,
    site: &Site,
    array: &Arc<Array>,
) -> Result<(), BringUpError> {
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
    for step in plan.steps {
        let failed = |what: &str, error: crate::array::ArrayError| {
            BringUpError::new(BringUpErrorKind::Volume, format!("{what}: {error}"))
        };
        match step {
            Step::Create(volume) => {
                let what = format!("volume {}", volume.name);
                tracing::info!(
                    "making volume {}, {}",
                    volume.name,
                    human(volume.size_bytes)
                );
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
                let created = array.create_volume(volume.pool, spec, beside).await;
                created.map_err(|error| failed(&what, error))?;
            }
            Step::Grow {
                name, size_bytes, ..
            } => {
                let what = format!("volume {name}");
                tracing::info!("growing volume {name} to {}", human(size_bytes));
                match array.resize_volume(name, size_bytes, false).await {
                    Ok(_) => {}
                    // A job that was interrupted goes on with it, as it is. That is no reason
                    // not to serve the others.
                    Err(error) if error.kind == ArrayErrorKind::Busy => {
                        tracing::warn!("{what} is grown at the next start: {error}");
                    }
                    Err(error) => return Err(failed(&what, error)),
                }
            }
        }
    }
    Ok(())
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
