//! Has the settings say which groups and drives open pools have, and where the drives are.
//!
//! Invariants:
//! - The settings name each drive once, and each place, as a site file does. A spare that waits for
//!   the place of a failed drive of its name, or in whose place it is, is named when it has that place.
//! - Of a pool with a drive whose place nobody knows, they say what they said before.

use super::{AddedDrive, DrivePlaces};
use crate::control::{ArrayError, ControlPlane};
use base::Uuid;
use engine::World;
use engine::pool::{GroupRole, MemberInfo, MemberState, PoolInfo};
use site::{Drive, DriveSource, Group, Site};

/// An open pool, without the spares that the settings do not name yet.
struct Named {
    info: PoolInfo,
    /// Where its drives are, and their bytes.
    places: Vec<(AddedDrive, u64)>,
}

impl<W: World> ControlPlane<W> {
    /// Has the settings name the drives of open pools, and of the others those that they named before.
    ///
    /// # Errors
    /// A shard has stopped.
    pub(in crate::control) async fn name_drives(
        &self,
        settings: &mut Site,
    ) -> Result<(), ArrayError> {
        let open = self.pools().await?.into_iter();
        let open: Vec<Named> = open.filter_map(|(_, info)| self.named(info)).collect();
        for Named { info, .. } in &open {
            regroup(settings, info);
        }
        let pools = settings.pools.clone();
        let is_used = |drive: &Drive| {
            let mut names = pools.iter().flat_map(site::Pool::drives);
            names.any(|name| *name == drive.name)
        };
        settings.drives.retain(is_used);
        for (at, bytes) in open.into_iter().flat_map(|named| named.places) {
            place(&mut settings.drives, at, bytes, self.places());
        }
        Ok(())
    }

    /// An open pool as the settings can name it; none when the place of a drive is not known.
    fn named(&self, mut info: PoolInfo) -> Option<Named> {
        let waiting = self.waiting_spares(&info);
        let planted = "settings name a new drive and the one that it replaces";
        let all_are_named = self.runtime.planted(planted);
        let is_named = |spare: &MemberInfo| all_are_named || !waiting.contains(&spare.uuid);
        let spares = info.spares.iter().filter(|spare| is_named(spare));
        let all = info.members.iter().chain(spares);
        let place = |member| Some((self.settled_place(&info, member)?, member.capacity_bytes));
        let places: Option<Vec<_>> = all.map(place).collect();
        info.spares.retain(is_named);
        Some(Named {
            info,
            places: places?,
        })
    }

    /// The spares that wait for the place of a failed drive of their name, or in whose place they are.
    pub(in crate::control) fn waiting_spares(&self, info: &PoolInfo) -> Vec<Uuid> {
        let path = |member: &MemberInfo| {
            let place = self.places().find_of(&info.name, &member.name);
            place.map(|place| place.path)
        };
        let of_members: Vec<_> = info
            .members
            .iter()
            .map(|one| (&one.name, path(one)))
            .collect();
        let waits = |spare: &&MemberInfo| {
            let (name, at) = (&spare.name, path(spare));
            let mut members = of_members.iter();
            members.any(|(known, place)| *known == name || (place.is_some() && *place == at))
        };
        let waiting = info.spares.iter().filter(waits);
        waiting.map(|spare| spare.uuid).collect()
    }

    /// Whether the settings say that a drive of an open pool is at a place where another was that had its
    /// name.
    pub(in crate::control) fn is_elsewhere_by_settings(&self, info: &PoolInfo) -> bool {
        let is_elsewhere = |member: &MemberInfo| {
            let named = self.places().named_of(&info.name, &member.name);
            let at = self.settled_place(info, member);
            at.zip(named)
                .is_some_and(|(at, named)| named.path != at.path)
        };
        let waiting = self.waiting_spares(info);
        let mut all = info.members.iter().chain(&info.spares);
        all.any(|member| {
            let is_settled = member.state != MemberState::Failed && !waiting.contains(&member.uuid);
            is_settled && is_elsewhere(member)
        })
    }

    /// Where a drive is. Of a failed one whose name a new drive has, too, only the settings know that.
    fn settled_place(&self, info: &PoolInfo, member: &MemberInfo) -> Option<AddedDrive> {
        let mut all = info.members.iter().chain(&info.spares);
        let is_shared = all.any(|one| one.name == member.name && one.uuid != member.uuid);
        if !is_shared || member.state != MemberState::Failed {
            return self.places().find_of(&info.name, &member.name);
        }
        self.places().named_of(&info.name, &member.name)
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
            spread: group.spread,
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
