//! Compares a site with existing pools and volumes, and gives the steps to match it.
//!
//! Only what is missing is made and only growth is done by itself. What exists and isn't in the
//! file is kept and named, and nothing that would lose data is done. Levels and drives of a pool
//! that exists are changed by command only, and so do volumes move or shrink: where the file says
//! otherwise, that is named, and what is on the drives counts. Descriptions, tags, schedules and
//! the like lose nothing and are applied without being compared here.

use crate::types::{Group, Pool, Provisioning, Site};
use engine::raid::Spread;
use engine::{GroupRole, Level};

/// A volume that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingVolume {
    /// Name of the volume, unique over the site.
    pub name: String,
    /// The pool it is in.
    pub pool: String,
    /// Size that initiators see.
    pub size_bytes: u64,
    /// How it takes space: thin or thick.
    pub provisioning: Provisioning,
}

/// A step towards the volumes that the site describes; none loses data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Create a volume that the site describes.
    Create(ExistingVolume),
    /// Grow a volume to the site's size.
    Grow {
        /// Name of the volume to grow.
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
    /// Volumes that are missing and that the array does not make, and why. It says which.
    pub withheld: Vec<(String, String)>,
    /// Volumes that exist and aren't in the site: pool and name.
    pub kept: Vec<(String, String)>,
    /// Volumes that are thin or thick where the site says otherwise, and what they are.
    pub converted: Vec<(String, Provisioning)>,
    /// Volumes that are in another pool than the site says, and in which.
    pub moved: Vec<(String, String)>,
    /// Volumes that are larger than the site says, and how large.
    pub larger: Vec<(String, u64)>,
}

/// Compares the volumes of `site` with those that exist in its pools.
pub fn volumes(site: &Site, existing: &[ExistingVolume]) -> VolumePlan {
    let mut plan = VolumePlan::default();
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
        if wanted.size_bytes < there.size_bytes {
            // What it was grown to while it served counts.
            plan.larger.push((wanted.name.clone(), there.size_bytes));
        }
        if wanted.pool != there.pool {
            // Where it was moved to while it served counts.
            plan.moved.push((wanted.name.clone(), there.pool.clone()));
        }
        if wanted.provisioning != there.provisioning {
            // What was converted while it served counts.
            plan.converted
                .push((wanted.name.clone(), there.provisioning));
        }
        if there.size_bytes < wanted.size_bytes {
            let (name, pool) = (wanted.name.clone(), there.pool.clone());
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
    plan
}

/// A group of a pool that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingGroup {
    /// Its number in the pool.
    pub index: u16,
    /// How it protects new zones.
    pub level: Level,
    /// How it is wider than its stripes, if it is: with distributed spares.
    pub spread: Option<Spread>,
    /// Whether it is for data or for the logs.
    pub role: GroupRole,
    /// Names of its drives.
    pub drives: Vec<String>,
    /// It is being emptied, to leave the pool.
    pub leaves: bool,
}

/// Where the site file is not what a pool is by now; for people, one line each.
pub fn pool(site: &Pool, groups: &[ExistingGroup], spares: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let described = |drive: &&String| site.drives().any(|name| name == *drive);
    for group in groups.iter().filter(|group| !group.leaves) {
        let of_site = site
            .groups
            .iter()
            .max_by_key(|other| in_common(other, group));
        let of_site = of_site.filter(|other| in_common(other, group) > 0);
        let level = group.level.as_str();
        match of_site {
            Some(other) if other.level != group.level => lines.push(format!(
                "group {} is of level {level}, the site file says {}: write level = \"{level}\" \
                 there (what is on the drives counts)",
                group.index,
                other.level.as_str()
            )),
            Some(other) => lines.extend(other_keys(other, group)),
            None => {
                lines.push(not_described(group));
                continue;
            }
        }
        lines.extend(group.drives.iter().filter(|d| !described(d)).map(|drive| {
            let index = group.index;
            format!("drive {drive} of group {index} is not in the site file: describe it there")
        }));
        let stood_in = group
            .drives
            .iter()
            .filter(|name| site.spares.contains(name));
        lines.extend(stood_in.map(|drive| {
            format!(
                "the spare {drive} of the site file is in group {} by now: write it into drives \
                 there, in the place of the drive that it stands in for",
                group.index
            )
        }));
    }
    let is_of_group = |drive: &&String| site.groups.iter().any(|of| of.drives.contains(drive));
    lines.extend(spares.iter().filter(is_of_group).map(|drive| {
        format!("drive {drive} of the site file is a spare by now: write it into spares there")
    }));
    lines.extend(
        spares
            .iter()
            .filter(|d| !described(d))
            .map(|drive| format!("the spare {drive} is not in the site file: describe it there")),
    );
    let is_there = |drive: &&String| {
        let mut members = groups.iter().flat_map(|group| &group.drives).chain(spares);
        members.any(|name| name == *drive)
    };
    lines.extend(site.drives().filter(|d| !is_there(d)).map(|drive| {
        format!(
            "the site file lists drive {drive}, which is no drive of the pool: remove it there, \
             or make it one with ashlar pool grow, or ashlar drive add-spare"
        )
    }));
    lines
}

fn other_keys(site: &Group, group: &ExistingGroup) -> impl Iterator<Item = String> {
    let role = other_role(site, group).into_iter();
    role.chain(other_spread(site, group))
}

fn other_role(site: &Group, group: &ExistingGroup) -> Option<String> {
    let (index, role) = (group.index, group.role.as_str());
    let differs = site.role != group.role;
    differs
        .then(|| format!("group {index} is for {role}: write role = \"{role}\" in the site file"))
}

fn other_spread(site: &Group, group: &ExistingGroup) -> Option<String> {
    let index = group.index;
    let (there, wanted) = (keys_of(group.spread), keys_of(site.spread));
    match (group.spread, site.spread) {
        (there, wanted) if there == wanted => None,
        (None, _) => Some(format!(
            "group {index} has no distributed spares, the site file says {wanted}: remove both \
             there (what is on the drives counts)"
        )),
        (Some(_), None) => Some(format!(
            "group {index} has distributed spares, and the site file says nothing of them: write \
             {there} there (what is on the drives counts)"
        )),
        (Some(_), Some(_)) => Some(format!(
            "group {index} has {there}, the site file says {wanted}: write the former there (what \
             is on the drives counts)"
        )),
    }
}

/// The keys of a group with distributed spares, as the site file has them.
fn keys_of(spread: Option<Spread>) -> String {
    let keys = spread.map(|Spread { width, spares }| {
        format!("stripe_width = {width} and distributed_spares = {spares}")
    });
    keys.unwrap_or_default()
}

fn not_described(group: &ExistingGroup) -> String {
    let (drives, level) = (group.drives.join(", "), group.level.as_str());
    let role = match group.role {
        GroupRole::Data => "",
        GroupRole::Log => " and role \"log\"",
    };
    let spread = match group.spread {
        None => String::new(),
        spread => format!(" with {}", keys_of(spread)),
    };
    format!(
        "group {} of {drives} is not in the site file: describe its drives there, and the group as \
         [[pool.group]] of level \"{level}\"{role}{spread}",
        group.index
    )
}

fn in_common(site: &Group, group: &ExistingGroup) -> usize {
    let known = site
        .drives
        .iter()
        .filter(|name| group.drives.contains(name));
    known.count()
}
