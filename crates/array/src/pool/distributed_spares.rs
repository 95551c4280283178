//! What distributed spares make up for: a drive that is out of use, with all that it held redundant on
//! the other drives of its group.

use engine::pool::{GroupInfo, MemberInfo, PoolInfo};

/// The group of a drive, if it has distributed spares.
pub fn group_of<'a>(info: &'a PoolInfo, member: &MemberInfo) -> Option<&'a GroupInfo> {
    let mut groups = info.groups.iter();
    groups.find(|group| group.index == member.group && group.spread.is_some())
}

/// Whether the group of a drive is redundant without it: nothing of the group is lost, for its
/// distributed spares hold what the drives that are not in use held.
pub fn make_up_for(info: &PoolInfo, member: &MemberInfo) -> bool {
    group_of(info, member).is_some_and(|group| group.places.lost == 0)
}
