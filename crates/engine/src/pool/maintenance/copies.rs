//! Replacing copies of the metadata when their drives fail; `logs` has those of the logs.
//!
//! Invariant: as long as all drives are whole, some span has more drives that carry the
//! metadata than it can lose, and so it is with the logs. So neither is ever lost while
//! all data is there.

use crate::drives::Member;
use crate::drives::{EventKind, Group};
use crate::pool::carriers::{self, Carriers, Place, Spans, spans_of};
use crate::pool::{METADATA_COPIES, PoolError};
use crate::raid::Geometry;
use crate::space::LaneState;
use crate::world::World;
use std::rc::Rc;

/// The whole drives of a span.
struct Span<W: World> {
    members: Vec<Rc<Member<W>>>,
    /// How many more have to carry the metadata, so that it is there as long as the
    /// data is.
    missing: usize,
    /// Whether there are as many.
    has_enough: bool,
}

impl<W: World> LaneState<W> {
    pub(super) async fn move_copies(self: &Rc<Self>) -> Result<(), PoolError> {
        while self.copy_metadata().await? {}
        while self.copy_logs().await? {}
        self.bring_logs_home().await
    }

    /// Whether fewer drives carry metadata or logs than should, or the wrong ones.
    pub(in crate::pool) fn copies_are_short(&self) -> bool {
        let members = self.staying();
        let metadata = members.iter().filter(|m| m.is_whole() && m.metadata());
        if metadata.count() < METADATA_COPIES.min(members.len()) || !self.metadata_is_safe() {
            return true;
        }
        self.logs_are_short()
    }

    /// Their drives.
    fn staying(&self) -> Vec<Rc<Member<W>>> {
        let groups = self.drives.staying_groups().into_iter();
        groups.flat_map(|group| group.places()).collect()
    }

    /// Whether all drives that carry the metadata can only be lost together with data:
    /// one span has more of them than it can lose.
    fn metadata_is_safe(&self) -> bool {
        self.spans().any(|span| span.missing == 0)
    }

    /// The spans of all groups of data that stay, and how far each is from losing data before all of its
    /// drives that carry the metadata are lost.
    fn spans(&self) -> impl Iterator<Item = Span<W>> {
        let unit = u64::from(self.identity().stripe_unit_bytes);
        self.drives
            .staying_groups()
            .into_iter()
            .flat_map(move |group| {
                let geometry = Geometry::of(group.level(), group.drives(), unit).ok();
                let spans = geometry.map_or(0, |geometry| geometry.spans);
                (0..spans).filter_map(move |span| {
                    let places = geometry?.span_places(span);
                    let mut members: Vec<_> = places.map(|place| group.place(place)).collect();
                    members.retain(|member| member.is_whole());
                    let wanted = geometry?.redundancy() + 1;
                    let carriers = members.iter().filter(|member| member.metadata()).count();
                    Some(Span {
                        missing: wanted.saturating_sub(carriers),
                        has_enough: members.len() >= wanted,
                        members,
                    })
                })
            })
    }

    /// Where metadata and logs of this lane would lie in these groups, on drives that are whole, and
    /// the logs on none that could not take them.
    pub(super) fn planned(&self, groups: &[Rc<Group<W>>]) -> Carriers {
        let identity = self.identity();
        let unit = u64::from(identity.stripe_unit_bytes);
        let mut spans = Spans::default();
        for group in groups {
            let index = usize::from(group.index);
            let of_group = spans_of(index, group.level(), group.drives(), unit);
            spans.add(group.is_log(), of_group);
        }
        spans.retain(|at| self.member_at(at).is_whole());
        spans.retain_for_logs(|at| {
            let member = self.member_at(at);
            member.log() || self.may_carry_logs(&member)
        });
        let spins = |at: Place| {
            let drive = self.member_at(at).geometry();
            drive.is_some_and(|drive| drive.rotational)
        };
        carriers::plan(&spans, (identity.lanes, identity.lane), spins)
    }

    pub(super) fn member_at(&self, (group, place): Place) -> Rc<Member<W>> {
        self.drives.group(group as u16).place(place)
    }

    /// The drive to carry the metadata, too, if there has to be another: of the span
    /// that needs the fewest more, and there one that does not carry the log.
    fn next_carrier(&self) -> Option<Rc<Member<W>>> {
        let mut whole = self.staying();
        whole.retain(|member| member.is_whole());
        let carriers = whole.iter().filter(|member| member.metadata()).count();
        let enough = carriers >= METADATA_COPIES.min(whole.len());
        if enough && self.metadata_is_safe() {
            return None;
        }
        let planned = self.planned(&self.drives.staying_groups()).metadata;
        let unsuited = |member: &Member<W>| {
            let place = (usize::from(member.group()), usize::from(member.place()));
            (!planned.contains(&place), member.log())
        };
        let free = |span: Span<W>| {
            let members = span.members.into_iter();
            let free = members.filter(|member| !member.metadata());
            let next = free.min_by_key(|member| unsuited(member))?;
            Some(((!span.has_enough, span.missing, unsuited(&next)), next))
        };
        let best = self
            .spans()
            .filter(|span| span.has_enough || !enough)
            .filter_map(free)
            .min_by_key(|(key, _)| *key);
        best.map(|(_, next)| next)
    }

    /// Another drive carries the metadata, when too few do. Whether one does now that did not.
    async fn copy_metadata(self: &Rc<Self>) -> Result<bool, PoolError> {
        let Some(next) = self.next_carrier() else {
            return Ok(false);
        };
        // It gets everything from now on, and all that was before in a checkpoint: only then
        // do the labels say so, and may others be lost.
        next.take_metadata();
        self.journal().checkpoint_to_all().await?;
        next.set_metadata(next.is_whole());
        let text = format!("drive '{}' carries the metadata now", next.name);
        self.tell_carrier(text, "metadata copy moved").await;
        self.check().map(|()| next.metadata())
    }

    /// Has the labels say what drives carry, and then tells of the one that is new.
    pub(super) async fn tell_carrier(self: &Rc<Self>, text: String, mark: &'static str) {
        self.drives.want_labels();
        self.drives.settle_labels().await;
        self.world.reached(mark);
        self.drives.event(EventKind::CopyMoved, text);
        self.wake_background();
    }

    /// Has drives of other groups carry what the drives of `leaving` do. False when
    /// that can't be yet.
    pub(super) async fn move_copies_off(
        self: &Rc<Self>,
        leaving: &Rc<Group<W>>,
    ) -> Result<bool, PoolError> {
        let here = leaving.places();
        let carries = |member: &Rc<Member<W>>| member.metadata() || member.log();
        if !here.iter().any(carries) {
            return Ok(true);
        }
        if here.iter().any(|member| member.metadata()) && !self.move_metadata_off(leaving).await? {
            return Ok(false);
        }
        if here.iter().any(|member| member.log()) && !self.move_logs_off(leaving).await? {
            return Ok(false);
        }
        self.drives.want_labels();
        self.drives.settle_labels().await;
        self.check()?;
        here.iter().for_each(|member| member.set_metadata(false));
        self.drives.want_labels();
        self.drives.settle_labels().await;
        self.world.reached("log copy moved");
        self.background().group_is_free(leaving.index);
        self.check().map(|()| true)
    }

    /// Has drives of other groups carry the metadata, too. False when that can't be yet.
    async fn move_metadata_off(self: &Rc<Self>, leaving: &Rc<Group<W>>) -> Result<bool, PoolError> {
        let mut elsewhere = self.drives.members();
        elsewhere.retain(|member| {
            let group = self.drives.group(member.group());
            !Rc::ptr_eq(&group, leaving) && !group.is_log() && member.is_whole()
        });
        if elsewhere.is_empty() {
            self.tell_group_kept(leaving, "the metadata");
            return Ok(false);
        }
        // As in `copy_metadata`.
        let planned = self.planned(&self.drives.groups_beside(leaving)).metadata;
        let mut takers: Vec<_> = planned.iter().map(|at| self.member_at(*at)).collect();
        if takers.is_empty() {
            takers = elsewhere;
            takers.truncate(METADATA_COPIES);
        }
        takers.iter().for_each(|member| member.take_metadata());
        self.journal().checkpoint_to_all().await?;
        let fill = |member: &Rc<Member<W>>| member.set_metadata(member.is_whole());
        takers.iter().for_each(fill);
        Ok(takers.iter().any(|member| member.metadata()))
    }

    /// Tells, once, that a group can't leave yet since nobody can carry `what` lies on it.
    pub(super) fn tell_group_kept(&self, leaving: &Group<W>, what: &'static str) {
        if !self.background().tells_group_kept(leaving.index, what) {
            return;
        }
        let text = format!(
            "group {} can't leave yet: no other group has enough drives to carry {what}; replace those that are out of use, or add a group",
            leaving.index
        );
        self.drives.event(EventKind::Trouble, text);
    }
}
