//! Which places of spread groups are lost or away from home, and which drives they can go to:
//! [`PlaceChoice`] looks, and changes nothing. `places` moves them.
//!
//! Invariant: a place goes to a drive that is whole, where no place of its zone is, nor is on its way
//! to.

use super::redundancy::Redundancy;
use crate::drives::{Group, Member, Zone};
use crate::raid::spread::SPREAD_DRIVES_MAX;
use crate::space::LaneState;
use crate::world::World;
use std::collections::VecDeque;
use std::rc::Rc;

/// A place of a zone that is to go to another drive.
pub(super) struct Wanted<W: World> {
    pub zone: Rc<Zone<W>>,
    pub place: usize,
    /// Drives that the place's span can lose beside it.
    redundancy_left: usize,
    /// It is not lost, and goes home.
    is_away: bool,
    /// The drives that hold the rest of its stripes when it was looked at: bit *n* is drive *n*.
    sources: u64,
}

/// A place that goes to another drive next.
pub(super) struct Next<W: World> {
    pub wanted: Wanted<W>,
    /// The drives, by place in the group, that the move keeps busy; the last one is its target.
    pub drives: Vec<usize>,
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
        self.is_any_lost_where(group, |zone| self.target(zone, &[]).is_some())
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
            let wanted = |place| Wanted {
                redundancy_left: redundancy.redundancy_left(&zone, &[place]),
                sources: mask_of(&sources_of(&zone, place)),
                is_away: false,
                zone: Rc::clone(&zone),
                place,
            };
            lost.map(wanted).collect::<Vec<_>>()
        };
        let mut lost: Vec<Wanted<W>> = zones.flat_map(of_zone).collect();
        lost.retain(|of| self.target(&of.zone, &[]).is_some());
        lost.sort_by_key(|of| of.redundancy_left);
        lost
    }

    /// The next of these places: the first whose zone is on no drive that is busy, of those that have
    /// the least redundancy left. Where no drive is, simply the first.
    pub(super) fn next(&self, wanted: &mut VecDeque<Wanted<W>>, busy: &[usize]) -> Option<Next<W>> {
        let least = wanted.front()?.redundancy_left;
        let mask = mask_of(busy);
        let alike = wanted.iter().take_while(|of| of.redundancy_left == least);
        // There can be tens of thousands: most are passed over by their masks alone.
        let near = alike.enumerate().filter(|(_, of)| of.sources & mask == 0);
        let mut apart = near.filter_map(|(at, of)| {
            let drives = self.drives_of(of, busy);
            let is_apart = drives.iter().all(|drive| !busy.contains(drive));
            (is_apart || busy.is_empty()).then_some((at, drives))
        });
        let (at, drives) = apart.next()?;
        let wanted = wanted.remove(at)?;
        Some(Next { wanted, drives })
    }

    /// The drives that are busy while a place is put together, its target last.
    fn drives_of(&self, of: &Wanted<W>, busy: &[usize]) -> Vec<usize> {
        let zone = &of.zone;
        let mut drives = sources_of(zone, of.place);
        let target = match of.is_away {
            true => self.towards_home(zone, of.place),
            false => self.target(zone, busy),
        };
        drives.extend(target.map(|to| usize::from(to.place())));
        drives
    }

    /// The places of a group that could go home, or nearer.
    pub(super) fn away(&self, group: &Rc<Group<W>>) -> Vec<Wanted<W>> {
        let state = self.lane.state();
        let away = self.lane.drives().away(group, &state.moved);
        let away = away.map(|(zone, place)| Wanted {
            sources: mask_of(&sources_of(&zone, place)),
            zone,
            place,
            redundancy_left: 0,
            is_away: true,
        });
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

    /// The drive of a zone's group that a lost place goes to: one that is spare in the zone, is not
    /// busy with another move, and has the least to do.
    pub(super) fn target(&self, zone: &Zone<W>, busy: &[usize]) -> Option<Rc<Member<W>>> {
        let spare = zone.spare_drives().into_iter();
        let members = spare.map(|drive| zone.group.place(drive));
        let turn = zone.shape.zone as usize;
        members
            .filter(|member| self.takes(member))
            .min_by_key(|member| {
                let turned = (usize::from(member.place()) + turn) % zone.group.drives();
                let is_busy = busy.contains(&usize::from(member.place()));
                (member.is_suspect(), is_busy, member.outstanding(), turned)
            })
    }

    /// This drive of a zone's group if a lost place can go there still, or else another one.
    pub(super) fn target_or_other(
        &self,
        zone: &Zone<W>,
        target: Option<usize>,
    ) -> Option<Rc<Member<W>>> {
        let spare = zone.spare_drives();
        let target = target.filter(|drive| spare.contains(drive));
        let member = target.map(|drive| zone.group.place(drive));
        member
            .filter(|member| self.takes(member))
            .or_else(|| self.target(zone, &[]))
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
            true => self.target(zone, &[]),
            false => None,
        }
    }
}

/// The drives, by place in the group, that hold what a place is put together from.
fn sources_of<W: World>(zone: &Zone<W>, place: usize) -> Vec<usize> {
    let geometry = zone.shape.geometry;
    let others = geometry.span_places(geometry.span_of(place));
    let readable = others.filter(|place| zone.is_readable(*place));
    readable.map(|place| zone.drive_place(place)).collect()
}

/// These drives as bits; spread groups have at most as many.
fn mask_of(drives: &[usize]) -> u64 {
    const { assert!(SPREAD_DRIVES_MAX <= u64::BITS as usize) };
    drives.iter().fold(0, |mask, drive| mask | 1 << drive)
}
