//! Drives whose replacement waits: a pool rebuilds one drive at a time, and puts a spare in the place
//! of the next failed drive only then.

use engine::pool::{MemberInfo, MemberState, PoolInfo};
use std::collections::BTreeSet;

/// A failed drive, the spare that is to have its place, and the rebuild that both wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingReplacement<'a> {
    /// Name of the spare.
    pub spare: &'a str,
    /// Name of the drive that is being rebuilt.
    pub rebuilding: &'a str,
}

impl<'a> WaitingReplacement<'a> {
    /// Of the failed drive at a place of a group; none where nothing waits.
    pub fn of(info: &'a PoolInfo, (group, place): (u16, u16)) -> Option<Self> {
        let of_state = |state| info.members.iter().filter(move |one| one.state == state);
        let rebuilding = of_state(MemberState::Rebuilding).next()?;
        // A drive that comes back under its name comes back to its place.
        let comes_back =
            |failed: &MemberInfo| info.spares.iter().any(|spare| spare.name == failed.name);
        let mut failed: Vec<&MemberInfo> = of_state(MemberState::Failed).collect();
        failed.sort_by_key(|failed| !comes_back(failed));
        let mut taken = BTreeSet::new();
        for failed in failed {
            let needed = needed_bytes(info, failed.group);
            let waiting = info.spares.iter();
            let waiting = waiting.filter(|spare| spare.state == MemberState::Spare);
            let mut spares: Vec<&MemberInfo> = waiting.collect();
            spares.sort_by_key(|spare| spare.name != failed.name);
            let spare = spares.into_iter().find(|spare| {
                let is_well = spare.trouble.is_none() && spare.capacity_bytes >= needed;
                is_well && !taken.contains(&spare.uuid)
            });
            let Some(spare) = spare else { continue };
            if (failed.group, failed.place) == (group, place) {
                return Some(WaitingReplacement {
                    spare: &spare.name,
                    rebuilding: &rebuilding.name,
                });
            }
            taken.insert(spare.uuid);
        }
        None
    }
}

/// A drive with so many bytes can stand in in a group.
fn needed_bytes(info: &PoolInfo, group: u16) -> u64 {
    let of_group = info.members.iter().filter(|member| member.group == group);
    of_group
        .map(|member| member.capacity_bytes)
        .min()
        .unwrap_or(0)
}
