//! Replacing copies of the metadata when their drives fail: [`Copies`]; `logs` has those of the logs.
//!
//! Invariant: as long as all drives are whole, some span has more drives that carry the
//! metadata than it can lose, and so it is with the logs. So neither is ever lost while
//! all data is there.

use super::logs::LogCarriers;
use super::placement::Placement;
use super::redundancy::Redundancy;
use crate::drives::Group;
use crate::drives::Member;
use crate::pool::{METADATA_COPIES, PoolError};
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

/// The copies of the metadata, and of the logs.
pub(in crate::pool) struct Copies<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Copies<'a, W> {
    pub(in crate::pool) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Copies { lane }
    }

    pub(super) async fn move_copies(&self) -> Result<(), PoolError> {
        while self.copy_metadata().await? {}
        while LogCarriers::of(self.lane).copy_logs().await? {}
        LogCarriers::of(self.lane).bring_logs_home().await
    }

    /// Whether fewer drives carry metadata or logs than should, or the wrong ones.
    pub(in crate::pool) fn copies_are_short(&self) -> bool {
        let members = self.staying();
        let metadata = members.iter().filter(|m| m.is_whole() && m.metadata());
        if metadata.count() < METADATA_COPIES.min(members.len()) || !self.metadata_is_safe() {
            return true;
        }
        Redundancy::of(self.lane.drives()).logs_are_short()
    }

    /// Their drives.
    fn staying(&self) -> Vec<Rc<Member<W>>> {
        let groups = self.lane.drives().staying_groups().into_iter();
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
        let unit = u64::from(self.lane.identity().stripe_unit_bytes);
        self.lane
            .drives()
            .staying_groups()
            .into_iter()
            .flat_map(move |group| {
                let geometry = group.shape_at(group.level(), unit).ok();
                let is_spread = group.spread.is_some();
                let spans = geometry.map_or(0, |geometry| geometry.spans);
                let spans = if is_spread { 1 } else { spans };
                (0..spans).filter_map(move |span| {
                    let places = match is_spread {
                        // Any of its drives meet in some zone.
                        true => 0..group.drives(),
                        false => geometry?.span_places(span),
                    };
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
        let planned = Placement::of(self.lane)
            .planned(&self.lane.drives().staying_groups())
            .metadata;
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
    async fn copy_metadata(&self) -> Result<bool, PoolError> {
        let Some(next) = self.next_carrier() else {
            return Ok(false);
        };
        // It gets everything from now on, and all that was before in a checkpoint: only then
        // do the labels say so, and may others be lost.
        next.take_metadata();
        self.lane.journal().checkpoint_to_all().await?;
        next.set_metadata(next.is_whole());
        let text = format!("drive '{}' carries the metadata now", next.name);
        Placement::of(self.lane)
            .tell_carrier(text, "metadata copy moved")
            .await;
        self.lane.check().map(|()| next.metadata())
    }

    /// Has drives of other groups carry what the drives of `leaving` do. False when
    /// that can't be yet.
    pub(super) async fn move_copies_off(&self, leaving: &Rc<Group<W>>) -> Result<bool, PoolError> {
        let here = leaving.places();
        let carries = |member: &Rc<Member<W>>| member.metadata() || member.log();
        if !here.iter().any(carries) {
            return Ok(true);
        }
        if here.iter().any(|member| member.metadata()) && !self.move_metadata_off(leaving).await? {
            return Ok(false);
        }
        if here.iter().any(|member| member.log())
            && !LogCarriers::of(self.lane).move_logs_off(leaving).await?
        {
            return Ok(false);
        }
        self.lane.drives().want_labels();
        self.lane.drives().settle_labels().await;
        self.lane.check()?;
        here.iter().for_each(|member| member.set_metadata(false));
        self.lane.drives().want_labels();
        self.lane.drives().settle_labels().await;
        self.lane.world().reached("log copy moved");
        self.lane.background().group_is_free(leaving.index);
        self.lane.check().map(|()| true)
    }

    /// Has drives of other groups carry the metadata, too. False when that can't be yet.
    async fn move_metadata_off(&self, leaving: &Rc<Group<W>>) -> Result<bool, PoolError> {
        let mut elsewhere = self.lane.drives().members();
        elsewhere.retain(|member| {
            let group = self.lane.drives().group(member.group());
            !Rc::ptr_eq(&group, leaving) && !group.is_log() && member.is_whole()
        });
        if elsewhere.is_empty() {
            Placement::of(self.lane).tell_group_kept(leaving, "the metadata");
            return Ok(false);
        }
        // As in `copy_metadata`.
        let planned = Placement::of(self.lane)
            .planned(&self.lane.drives().groups_beside(leaving))
            .metadata;
        let mut takers: Vec<_> = planned
            .iter()
            .map(|at| Placement::of(self.lane).member_at(*at))
            .collect();
        if takers.is_empty() {
            takers = elsewhere;
            takers.truncate(METADATA_COPIES);
        }
        takers.iter().for_each(|member| member.take_metadata());
        self.lane.journal().checkpoint_to_all().await?;
        let fill = |member: &Rc<Member<W>>| member.set_metadata(member.is_whole());
        takers.iter().for_each(fill);
        Ok(takers.iter().any(|member| member.metadata()))
    }
}
