//! Where copies of the metadata and the logs may lie, and what is told of them: [`Placement`].
//!
//! Invariants:
//! - Copies are planned for drives that are whole, and the logs for none that could not take them a
//!   while ago.
//! - It is told that a drive carries something once the labels say so.

use crate::drives::{EventKind, Group, Member};
use crate::pool::carriers::{self, Carriers, Place, Spans, spans_of};
use crate::space::LaneState;
use crate::world::World;
use std::rc::Rc;

/// Where copies may lie.
pub(super) struct Placement<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Placement<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Placement { lane }
    }

    /// Where metadata and logs of this lane would lie in these groups, on drives that are whole, and
    /// the logs on none that could not take them.
    pub(super) fn planned(&self, groups: &[Rc<Group<W>>]) -> Carriers {
        let identity = self.lane.identity();
        let mut spans = Spans::default();
        for group in groups {
            let index = usize::from(group.index);
            let of_group = spans_of(index, group.protection(), group.drives());
            spans.add(group.is_log(), of_group);
        }
        spans.retain(|at| self.member_at(at).is_whole());
        spans.retain_for_logs(|at| {
            let member = self.member_at(at);
            member.log() || self.may_carry_logs(&member)
        });
        let spins = |at: Place| self.member_at(at).is_rotational();
        carriers::plan(&spans, (identity.lanes, identity.lane), spins)
    }

    /// The drive at a place.
    pub(super) fn member_at(&self, (group, place): Place) -> Rc<Member<W>> {
        self.lane.drives().group(group as u16).place(place)
    }

    /// Has the labels say what drives carry, and then tells of the one that is new.
    pub(super) async fn tell_carrier(&self, text: String, mark: &'static str) {
        self.lane.drives().want_labels();
        self.lane.drives().settle_labels().await;
        self.lane.world().reached(mark);
        self.lane.drives().event(EventKind::CopyMoved, text);
        self.lane.wake_background();
    }

    /// Tells, once, that a group can't leave yet since nobody can carry `what` lies on it.
    pub(super) fn tell_group_kept(&self, leaving: &Group<W>, what: &'static str) {
        if !self.lane.background().tells_group_kept(leaving.index, what) {
            return;
        }
        let text = format!(
            "group {} can't leave yet: no other group has enough drives to carry {what}; replace those that are out of use, or add a group",
            leaving.index
        );
        self.lane.drives().event(EventKind::Trouble, text);
    }

    /// Whether a drive is tried, or could not take the logs over a while ago.
    pub(super) fn may_carry_logs(&self, member: &Member<W>) -> bool {
        let failed = self.lane.background().no_carriers();
        !failed.has(member.uuid, self.lane.world().now())
    }
}
