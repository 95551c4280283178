//! Consistency groups: volumes that share snapshots of one instant.
//!
//! A group is nothing by itself: each member has an attribute that says which one it is in.
//! So membership goes with a volume wherever it goes, and survives what it survives.
//!
//! Invariants:
//! - A volume is in one group at most, and a snapshot in none. A group without volumes is
//!   not there.
//! - Every member has all schedules of its group; who is in none has none of them. A change is made
//!   of all members or of none, also over a crash. Only the time of the last run may differ after
//!   one, and the newest counts.
//! - What is in the trash is not snapshotted. It is in its group again when it comes back,
//!   with the schedules that this has then.

mod schedules;

use super::schedule::{Schedule, Subject, all_of, check_fits, merged};
use super::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use engine::World;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Attribute of a volume: the name of its group.
const GROUP: &str = "_group";

/// Volumes that are snapshotted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistencyGroup {
    /// What people call it.
    pub name: String,
    /// Its volumes, by name; none when the last one has just left.
    pub volumes: Vec<PlacedVolume>,
    /// When snapshots of all of them are taken.
    pub schedules: Vec<Schedule>,
}

impl ConsistencyGroup {
    fn of(name: String, volumes: Vec<PlacedVolume>) -> Self {
        let schedules = merged(volumes.iter().flat_map(all_of));
        ConsistencyGroup {
            name,
            volumes,
            schedules,
        }
    }
}

/// The name of the group that a volume is in.
pub fn group_of(volume: &PlacedVolume) -> Option<&String> {
    volume.properties.attributes.get(GROUP)
}

/// The groups that there are, by name.
fn groups(volumes: Vec<PlacedVolume>) -> Vec<ConsistencyGroup> {
    let mut by_name: BTreeMap<String, Vec<PlacedVolume>> = BTreeMap::new();
    for volume in volumes {
        if let Some(group) = group_of(&volume).cloned() {
            by_name.entry(group).or_default().push(volume);
        }
    }
    let group = |(name, volumes)| ConsistencyGroup::of(name, volumes);
    by_name.into_iter().map(group).collect()
}

impl<W: World> ControlPlane<W> {
    /// The consistency groups, by name.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn consistency_groups(&self) -> Result<Vec<ConsistencyGroup>, ArrayError> {
        Ok(groups(self.volumes().await?))
    }

    /// The consistency group called `name`.
    ///
    /// # Errors
    /// There is none, or a shard has stopped.
    pub async fn consistency_group(&self, name: &str) -> Result<ConsistencyGroup, ArrayError> {
        let all = self.consistency_groups().await?;
        let found = all.into_iter().find(|group| group.name == name);
        found.ok_or_else(|| {
            let context = format!("there is no consistency group {name}");
            ArrayError::new(ArrayErrorKind::NotFound, context)
        })
    }

    /// Makes a group of volumes.
    ///
    /// # Errors
    /// There is a group of this name; or as for [`ControlPlane::change_group`].
    pub async fn create_group(
        self: &Arc<Self>,
        name: String,
        volumes: Vec<String>,
    ) -> Result<ConsistencyGroup, ArrayError> {
        self.change(move |array| async move {
            if array.consistency_group(&name).await.is_ok() {
                let context = format!(
                    "there is a consistency group {name} already; add to that, or choose another name"
                );
                return Err(ArrayError::new(ArrayErrorKind::Exists, context));
            }
            let new = ConsistencyGroup::of(name, Vec::new());
            array.regroup(new, &volumes, &[]).await
        })
        .await
    }

    /// Adds volumes to a group, and takes others out of it; all of that or nothing. Volumes
    /// that are in it already are no mistake. What it gives has no volumes when the group is
    /// gone with its last one.
    ///
    /// # Errors
    /// There is no such group or volume; one is a snapshot, or in another group, or not in
    /// this one; its name has no room for those of snapshots by schedule; or what its pool
    /// says.
    pub async fn change_group(
        self: &Arc<Self>,
        name: String,
        add: Vec<String>,
        remove: Vec<String>,
    ) -> Result<ConsistencyGroup, ArrayError> {
        self.change(move |array| async move {
            let group = array.consistency_group(&name).await?;
            if let Some(both) = add.iter().find(|name| remove.contains(*name)) {
                let context = format!("volume {both}: found it both to be added and to be removed");
                return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
            }
            array.regroup(group, &add, &remove).await
        })
        .await
    }

    /// Ends a group. Its volumes stay, and so do all snapshots.
    ///
    /// # Errors
    /// There is none, or what a pool says.
    pub async fn delete_group(self: &Arc<Self>, name: String) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let group = array.consistency_group(&name).await?;
            array.check_whole_group(&name)?;
            array.attach(&group.volumes, left).await.map(drop)
        })
        .await
    }

    /// Takes snapshots of all volumes of a group at one instant, each called `VOLUME@OWN`.
    ///
    /// # Errors
    /// There is no such group, or as for [`ControlPlane::take_snapshots`]; none is there then.
    pub async fn snapshot_group(
        self: &Arc<Self>,
        name: String,
        own: String,
    ) -> Result<Vec<PlacedVolume>, ArrayError> {
        self.change(move |array| async move {
            let group = array.consistency_group(&name).await?;
            array.check_whole_group(&name)?;
            array.take_of(&group.volumes, &own, &[]).await
        })
        .await
    }

    /// That all volumes of a group are known. Each says itself which group it is in: those of
    /// a pool that is not open can't.
    fn check_whole_group(&self, name: &str) -> Result<(), ArrayError> {
        let Some(closed) = self.closed_names() else {
            return Ok(());
        };
        let context = format!(
            "group {name} may have volumes in pools that are not open: {closed}; see ashlar status"
        );
        Err(ArrayError::new(ArrayErrorKind::Unavailable, context))
    }

    /// Takes snapshots of volumes at one instant, with attributes, for one whose turn it is.
    async fn take_of(
        &self,
        volumes: &[PlacedVolume],
        own: &str,
        attributes: &[(String, String)],
    ) -> Result<Vec<PlacedVolume>, ArrayError> {
        let pair = |volume: &PlacedVolume| (volume.info.name.clone(), own.to_owned());
        let pairs = volumes.iter().map(pair).collect();
        self.take_pairs(pairs, attributes).await
    }

    /// Has volumes be in a group, with its schedules, and others no longer.
    async fn regroup(
        &self,
        group: ConsistencyGroup,
        add: &[String],
        remove: &[String],
    ) -> Result<ConsistencyGroup, ArrayError> {
        let leaving = leaving(&group, remove)?;
        let keeps = self
            .runtime
            .planted("volume that leaves keeps schedules of its group");
        let mut changing = self.others(&group, add).await?;
        if let Some(volume) = changing.iter().find(|volume| group_of(volume).is_some()) {
            return Err(in_another(volume));
        }
        check_names(&group, &changing)?;
        changing.extend(leaving);
        let said = |volume: &PlacedVolume| match group_of(volume) {
            Some(_) if keeps => vec![(GROUP.to_owned(), String::new())],
            Some(_) => left(volume),
            None => joined(volume, &group),
        };
        self.attach(&changing, said).await?;
        self.present(group.name).await
    }

    /// Has volumes be in a group, which is made if there is none, out of others if need be; all
    /// of them or none.
    ///
    /// # Errors
    /// There is no such volume, it is a snapshot, or its name has no room for those of
    /// snapshots by schedule; or what its pool says.
    pub async fn gather(
        self: &Arc<Self>,
        name: String,
        volumes: Vec<String>,
    ) -> Result<ConsistencyGroup, ArrayError> {
        self.change(move |array| async move {
            let group = array.present(name).await?;
            let changing = array.others(&group, &volumes).await?;
            check_names(&group, &changing)?;
            let keeps = array
                .runtime
                .planted("gathered volume keeps schedules of its old group");
            let said = |volume: &PlacedVolume| match keeps {
                true => vec![(GROUP.to_owned(), group.name.clone())],
                false => joined(volume, &group),
            };
            array.attach(&changing, said).await?;
            array.present(group.name).await
        })
        .await
    }

    /// The group of this name as it is, if only without volumes.
    async fn present(&self, name: String) -> Result<ConsistencyGroup, ArrayError> {
        let mut volumes = self.volumes().await?;
        volumes.retain(|volume| group_of(volume) == Some(&name));
        Ok(ConsistencyGroup::of(name, volumes))
    }

    /// The volumes of these names that are not in a group.
    async fn others(
        &self,
        group: &ConsistencyGroup,
        names: &[String],
    ) -> Result<Vec<PlacedVolume>, ArrayError> {
        let all = self.volumes().await?;
        let mut others = Vec::new();
        for name in BTreeSet::from_iter(names) {
            let found = all.iter().find(|volume| volume.info.name == *name);
            let volume = found.ok_or_else(|| ArrayError::no_volume(name))?;
            if volume.is_snapshot() {
                let context =
                    format!("{name} is a snapshot: allowed in a consistency group are volumes");
                return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
            }
            if group_of(volume) != Some(&group.name) {
                others.push(volume.clone());
            }
        }
        Ok(others)
    }

    /// Has a volume that comes from the trash have the schedules that its group has by now.
    pub(super) async fn back_in_its_group(&self, back: PlacedVolume) -> PlacedVolume {
        let Some(name) = group_of(&back).cloned() else {
            return back;
        };
        let others = self.volumes().await.unwrap_or_default().into_iter();
        let others: Vec<PlacedVolume> = others
            .filter(|other| group_of(other) == Some(&name) && other.info.uuid != back.info.uuid)
            .collect();
        if others.is_empty() || self.runtime.planted("volume comes back with old schedules") {
            return back;
        }
        let group = ConsistencyGroup::of(name, others);
        let said = |volume: &PlacedVolume| joined(volume, &group);
        match self.attach(std::slice::from_ref(&back), said).await {
            Ok(mut said) => said.pop().unwrap_or(back),
            Err(error) => {
                let name = &back.info.name;
                tracing::warn!("volume {name} has old schedules of its group: {error}");
                back
            }
        }
    }
}

/// What a volume says when it has joined a group, wherever it was before.
fn joined(volume: &PlacedVolume, group: &ConsistencyGroup) -> Vec<(String, String)> {
    let mut said: BTreeMap<String, String> = left(volume).into_iter().collect();
    said.insert(GROUP.to_owned(), group.name.clone());
    let schedules = group.schedules.iter();
    said.extend(schedules.map(|schedule| (schedule.key(), schedule.value())));
    said.into_iter().collect()
}

/// What a volume says no more when it has left its group.
fn left(volume: &PlacedVolume) -> Vec<(String, String)> {
    let of_group = all_of(volume).into_iter();
    let of_group = of_group.filter(|schedule| schedule.subject == Subject::Group);
    let keys = of_group.map(|schedule| schedule.key());
    let keys = std::iter::once(GROUP.to_owned()).chain(keys);
    keys.map(|key| (key, String::new())).collect()
}

/// The members of these names.
fn leaving(group: &ConsistencyGroup, names: &[String]) -> Result<Vec<PlacedVolume>, ArrayError> {
    let member = |name: &String| {
        let found = group
            .volumes
            .iter()
            .find(|volume| volume.info.name == *name);
        found.cloned().ok_or_else(|| {
            let context = format!("volume {name} is not in consistency group {}", group.name);
            ArrayError::new(ArrayErrorKind::NotFound, context)
        })
    };
    let names: BTreeSet<&String> = names.iter().collect();
    names.into_iter().map(member).collect()
}

/// That the names of volumes that join a group have room for those of snapshots by schedule.
fn check_names(group: &ConsistencyGroup, joining: &[PlacedVolume]) -> Result<(), ArrayError> {
    match group.schedules.is_empty() {
        true => Ok(()),
        false => joining
            .iter()
            .try_for_each(|volume| check_fits(&volume.info.name)),
    }
}

/// Why a volume that is in a group can't join another one.
fn in_another(volume: &PlacedVolume) -> ArrayError {
    let name = &volume.info.name;
    let other = group_of(volume).map_or("", String::as_str);
    let context = format!(
        "volume {name} is in consistency group {other}: remove it from that group \
         first, with `ashlar group remove {other} {name}`"
    );
    ArrayError::new(ArrayErrorKind::Busy, context)
}
