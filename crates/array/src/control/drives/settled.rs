//! Has the settings say which groups and drives open pools have, and where the drives are.
//!
//! Invariant: the settings name each drive once, and each place, as a site file does. While a new drive
//! waits for the place of a failed one with its name, or in whose place it is, they stay behind.

use super::{AddedDrive, DrivePlaces};
use crate::control::{ArrayError, ControlPlane};
use engine::World;
use engine::pool::{GroupRole, PoolInfo};
use site::{Drive, DriveSource, Group, Site};
use std::collections::BTreeSet;

impl<W: World> ControlPlane<W> {
    /// Has the settings name the drives of open pools, and of the others those that they named before.
    ///
    /// # Errors
    /// A shard has stopped.
    pub(in crate::control) async fn name_drives(
        &self,
        settings: &mut Site,
    ) -> Result<(), ArrayError> {
        let mut open = self.pools().await?;
        open.retain(|(_, info)| self.can_be_named(info));
        for (_, info) in &open {
            regroup(settings, info);
        }
        let pools = settings.pools.clone();
        let is_used = |drive: &Drive| {
            let mut names = pools.iter().flat_map(site::Pool::drives);
            names.any(|name| *name == drive.name)
        };
        settings.drives.retain(is_used);
        for (_, info) in &open {
            for member in info.members.iter().chain(&info.spares) {
                if let Some(at) = self.places().find_of(&info.name, &member.name) {
                    let bytes = member.capacity_bytes;
                    place(&mut settings.drives, at, bytes, self.places());
                }
            }
        }
        Ok(())
    }

    /// Whether each drive of a pool has a name and a place of its own.
    fn can_be_named(&self, info: &PoolInfo) -> bool {
        let planted = "settings name a new drive and the one that it replaces";
        if self.runtime.planted(planted) {
            return true;
        }
        let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
        let mut all = info.members.iter().chain(&info.spares);
        all.all(|member| {
            let place = self.places().find_of(&info.name, &member.name);
            names.insert(&member.name) && place.is_some_and(|place| paths.insert(place.path))
        })
    }
}

/// Has the settings say of an open pool which groups and drives it has.
fn regroup(settings: &mut Site, info: &PoolInfo) {
    let Some(pool) = settings.pools.iter_mut().find(|one| one.name == info.name) else {
        return;
    };
    let groups = info.groups.iter().filter(|group| !group.members.is_empty());
    let groups = groups.map(|group| {
        let drives = group.members.iter().map(|member| member.name.clone());
        Group {
            level: group.level,
            role: group.role,
            drives: drives.collect(),
        }
    });
    pool.groups = groups.collect();
    // The first one is the pool's own table.
    pool.groups
        .sort_by_key(|group| group.role == GroupRole::Log);
    pool.spares = info.spares.iter().map(|spare| spare.name.clone()).collect();
}

/// Has `drives` say where a drive is, unless they do.
fn place(drives: &mut Vec<Drive>, at: AddedDrive, capacity_bytes: u64, places: &DrivePlaces) {
    let known = drives.iter().position(|drive| drive.name == at.name);
    if known.is_some_and(|index| places.path_of(&drives[index]) == at.path) {
        return;
    }
    let path = places.kept_path(&at.path);
    let drive = Drive {
        name: at.name,
        source: match at.is_device {
            true => DriveSource::Device { path },
            false => DriveSource::File {
                path,
                size_bytes: capacity_bytes,
            },
        },
    };
    match known {
        Some(index) => drives[index] = drive,
        None => drives.push(drive),
    }
}
