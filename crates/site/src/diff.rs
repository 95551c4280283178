//! What has to be done so that what exists becomes what the site says.
//!
//! Only what is missing is made and only growth is done by itself. What exists
//! and isn't in the file is kept and named; what would lose data is refused.

use crate::size::human;
use crate::types::{Provisioning, Site};
use std::fmt;

/// A volume that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingVolume {
    /// Its name.
    pub name: String,
    /// The pool it is in.
    pub pool: String,
    /// Size that initiators see.
    pub size_bytes: u64,
    /// Thin or thick.
    pub provisioning: Provisioning,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Create a volume that the site describes.
    Create(ExistingVolume),
    /// Grow a volume to the site's size.
    Grow {
        /// Its name.
        name: String,
        /// The pool it is in.
        pool: String,
        /// Size to grow to.
        size_bytes: u64,
    },
}

/// What to do about volumes, and what is left as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumePlan {
    /// In the order of the site file.
    pub steps: Vec<Step>,
    /// Volumes that exist and aren't in the site: pool and name.
    pub kept: Vec<(String, String)>,
}

/// A difference that can't be applied without losing data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The volume.
    pub volume: String,
    /// What the site says.
    pub wanted: String,
    /// What exists.
    pub existing: String,
    /// What the user can do.
    pub remedy: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conflict {
            volume,
            wanted,
            existing,
            remedy,
        } = self;
        write!(
            f,
            "volume {volume}: the site says {wanted}, what exists is {existing}; {remedy}"
        )
    }
}

impl std::error::Error for Conflict {}

/// Compares the volumes of `site` with those that exist in its pools.
///
/// # Errors
/// Every conflict there is; nothing of the plan may be done then.
pub fn volumes(site: &Site, existing: &[ExistingVolume]) -> Result<VolumePlan, Vec<Conflict>> {
    let mut plan = VolumePlan::default();
    let mut conflicts = Vec::new();
    for wanted in &site.volumes {
        let Some(there) = existing.iter().find(|volume| volume.name == wanted.name) else {
            plan.steps.push(Step::Create(ExistingVolume {
                name: wanted.name.clone(),
                pool: wanted.pool.clone(),
                size_bytes: wanted.size_bytes,
                provisioning: wanted.provisioning,
            }));
            continue;
        };
        if let Some(conflict) = conflict(wanted, there) {
            conflicts.push(conflict);
        } else if there.size_bytes < wanted.size_bytes {
            let (name, pool) = (wanted.name.clone(), wanted.pool.clone());
            plan.steps.push(Step::Grow {
                name,
                pool,
                size_bytes: wanted.size_bytes,
            });
        }
    }
    let described = |name: &str| site.volumes.iter().any(|volume| volume.name == name);
    let kept = existing.iter().filter(|volume| !described(&volume.name));
    plan.kept = kept
        .map(|volume| (volume.pool.clone(), volume.name.clone()))
        .collect();
    if conflicts.is_empty() {
        Ok(plan)
    } else {
        Err(conflicts)
    }
}

fn conflict(wanted: &crate::types::Volume, there: &ExistingVolume) -> Option<Conflict> {
    let conflict = |wanted_text: String, existing: String, remedy: &str| {
        let (volume, remedy) = (wanted.name.clone(), remedy.to_owned());
        Some(Conflict {
            volume,
            wanted: wanted_text,
            existing,
            remedy,
        })
    };
    if wanted.pool != there.pool {
        return conflict(
            format!("pool {}", wanted.pool),
            format!("in pool {}", there.pool),
            "volumes don't move by themselves: put its pool into the site file, or copy it",
        );
    }
    if wanted.size_bytes < there.size_bytes {
        return conflict(
            human(wanted.size_bytes),
            human(there.size_bytes),
            "a volume doesn't shrink: put its size into the site file, or delete it first",
        );
    }
    if wanted.provisioning != there.provisioning {
        return conflict(
            wanted.provisioning.as_str().to_owned(),
            there.provisioning.as_str().to_owned(),
            "provisioning is settled at creation: put what exists into the site file",
        );
    }
    None
}
