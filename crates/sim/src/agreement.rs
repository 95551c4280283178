//! Whether all lanes of a pool have the same groups and drives.

use crate::lanes::Lanes;
use base::Uuid;
use engine::{Lane, MemberState, PoolInfo};
use std::collections::{BTreeMap, BTreeSet};
use world_sim::SimWorld;

/// How many groups each lane has, or had: a refused change uses no number up.
pub fn groups_ever(pool: &Lanes) -> Vec<usize> {
    pool.all().iter().map(Lane::groups_ever).collect()
}

/// A drive that stands at one place in one lane and at another in another, which is never so.
pub fn drive_at_two_places(pool: &Lanes) -> Option<String> {
    let mut places: BTreeMap<Uuid, (u16, u16)> = BTreeMap::new();
    for info in infos(pool) {
        for member in info.members {
            let place = (member.group, member.place);
            let other = *places.entry(member.uuid).or_insert(place);
            if other != place && member.state != MemberState::Failed {
                return Some(format!("{} is at {other:?} and {place:?}", member.name));
            }
        }
    }
    None
}

/// Where lanes have other groups than the first lane. Drives are compared where no damage has
/// one lane lose what another keeps.
pub fn difference(pool: &Lanes, with_drives: bool) -> Option<String> {
    let pictures: Vec<String> = infos(pool)
        .zip(pool.all())
        .map(|(info, lane)| picture(&info, lane, with_drives))
        .collect();
    let first = pictures.first()?;
    let differs = pictures.iter().find(|picture| *picture != first)?;
    Some(format!("{first}, and {differs}"))
}

fn infos(pool: &Lanes) -> impl Iterator<Item = PoolInfo> {
    pool.all().iter().map(Lane::info)
}

fn picture(info: &PoolInfo, lane: &Lane<SimWorld>, with_drives: bool) -> String {
    let groups = info.groups.iter();
    let groups = groups.map(|group| (group.index, group.level, group.leaving, group.members.len()));
    let groups: Vec<_> = groups.collect();
    let out = |state| matches!(state, MemberState::Failed);
    let members = info.members.iter();
    let members: BTreeSet<_> = members
        .map(|member| (member.group, member.place, member.uuid, out(member.state)))
        .collect();
    let spares: BTreeSet<Uuid> = info.spares.iter().map(|spare| spare.uuid).collect();
    let ever = lane.groups_ever();
    match with_drives {
        true => format!("{ever} groups: {groups:?}, drives: {members:?}, spares: {spares:?}"),
        false => format!("{ever} groups: {groups:?}"),
    }
}
