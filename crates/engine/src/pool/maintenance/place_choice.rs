//! Which places of spread groups are lost or away from home, and which drives they can go to:
//! [`PlaceChoice`] looks, and changes nothing. `places` moves them.
//!
//! Invariant: a place goes to a drive that is whole, where no place of its zone is, nor is on its way
//! to.

use super::redundancy::Redundancy;
use crate::drives::{Group, Member, Zone};
use crate::space::LaneState;
use crate::world::World;
use std::rc::Rc;

/// A place of a zone that is to go to another drive.
pub(super) struct Wanted<W: World> {
    pub zone: Rc<Zone<W>>,
    pub place: usize,
}

/// Places, and where they can go.
pub(super) struct PlaceChoice<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> PlaceChoice<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        PlaceChoice { lane }
    }

    /// Whether a place of a group is lost that can be put together on another of its drives.
    pub(super) fn has_lost(&self, group: &Rc<Group<W>>) -> bool {
        self.is_any_lost_where(group, |zone| self.target(zone).is_some())
    }

    /// Whether a place of a group is lost.
    pub(super) fn is_any_lost(&self, group: &Rc<Group<W>>) -> bool {
        self.is_any_lost_where(group, |_| true)
    }

    fn is_any_lost_where(&self, group: &Rc<Group<W>>, is_so: impl Fn(&Zone<W>) -> bool) -> bool {
        let whole = group.whole();
        let mut lacking = (0..whole.len()).filter(|drive| !whole[*drive]);
        // With many zones the look takes long, and a drive that has been made up for stays away for
        // days.
        if group.spread.is_none() || !lacking.any(|drive| group.holds(drive)) {
            return false;
        }
        let zones = self.lane.drives().zones_of(group);
        let mut zones = zones.iter();
        zones.any(|zone| !zone.lost(&whole).is_empty() && is_so(zone))
    }

    /// The lost places of a group, in the order in which they are put together.
    pub(super) fn lost(&self, group: &Rc<Group<W>>) -> Vec<Wanted<W>> {
        let redundancy = Redundancy::of(self.lane.drives());
        let zones = self.lane.drives().zones_of(group).into_iter();
        let whole = group.whole();
        let of_zone = |zone: Rc<Zone<W>>| {
            let lost = zone.lost(&whole).into_iter();
            lost.map(move |place| Wanted {
                zone: Rc::clone(&zone),
                place,
            })
        };
        let mut lost: Vec<Wanted<W>> = zones.flat_map(of_zone).collect();
        lost.retain(|of| self.target(&of.zone).is_some());
        lost.sort_by_cached_key(|of| redundancy.redundancy_left(&of.zone, &[of.place]));
        lost
    }

    /// The places of a group that could go home, or nearer.
    pub(super) fn away(&self, group: &Rc<Group<W>>) -> Vec<Wanted<W>> {
        let state = self.lane.state();
        let away = self.lane.drives().away(group, &state.moved);
        let away = away.map(|(zone, place)| Wanted { zone, place });
        let mut away: Vec<Wanted<W>> = away.collect();
        away.retain(|of| self.towards_home(&of.zone, of.place).is_some());
        away
    }

    /// Whether a drive takes places now.
    fn takes(&self, member: &Member<W>) -> bool {
        let left_out = self.lane.background().no_takers();
        member.is_whole()
            && member.successor().is_none()
            && !left_out.has(member.uuid, self.lane.world().now())
    }

    /// The drive of a zone's group that a lost place goes to: one that is spare in the zone, and has
    /// the least to do.
    pub(super) fn target(&self, zone: &Zone<W>) -> Option<Rc<Member<W>>> {
        let spare = zone.spare_drives().into_iter();
        let members = spare.map(|drive| zone.group.place(drive));
        let turn = zone.shape.zone as usize;
        members
            .filter(|member| self.takes(member))
            .min_by_key(|member| {
                let turned = (usize::from(member.place()) + turn) % zone.group.drives();
                (member.is_suspect(), member.outstanding(), turned)
            })
    }

    /// The drive that a place goes to on its way home, if it can now: its home, or, where places
    /// stand on the homes of each other, one that is spare.
    pub(super) fn towards_home(&self, zone: &Zone<W>, place: usize) -> Option<Rc<Member<W>>> {
        if !zone.is_readable(place) {
            return None;
        }
        let (home, spare) = (zone.home_of(place), zone.spare_drives());
        if spare.contains(&home) {
            return Some(zone.group.place(home)).filter(|member| self.takes(member));
        }
        let mut away = zone.away().into_iter();
        let is_circle = away.all(|(place, _)| !spare.contains(&zone.home_of(place)));
        match is_circle && !zone.has_moves() {
            true => self.target(zone),
            false => None,
        }
    }
}
