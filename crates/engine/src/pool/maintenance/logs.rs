//! The logs on other drives: when theirs fail, when a log group is added or lacks drives, and when a
//! group leaves.
//!
//! Invariants:
//! - As long as all drives are whole, the logs lie on more drives of one span than it can lose. Copies
//!   in two spans don't add up: with one drive of each the logs are lost, and no data is.
//! - While they move, labels name the old and the new drives: an opening finds all that was
//!   acknowledged on either.

use crate::drives::Member;
use crate::drives::{EventKind, Group};
use crate::pool::{MemberState, PoolError};
use crate::raid::Geometry;
use crate::space::LaneState;
use crate::world::World;
use std::rc::Rc;

/// Drives that carry the logs and are lost together with data, or with a log group, when all are lost.
struct LogSpan<W: World> {
    /// Its drives, whether they carry the logs or not.
    members: Vec<Rc<Member<W>>>,
    /// How many of them do.
    carriers: usize,
    /// How many have to, so that one is left as long as the span is.
    wanted: usize,
}

impl<W: World> LogSpan<W> {
    fn has(&self, member: &Member<W>) -> bool {
        let at = (member.group(), member.place());
        let mut members = self.members.iter();
        members.any(|other| (other.group(), other.place()) == at)
    }

    /// How many more drives have to carry the logs.
    fn missing(&self) -> usize {
        self.wanted.saturating_sub(self.carriers)
    }
}

impl<W: World> LaneState<W> {
    /// The span on which the logs are safest: while they move, they lie on two.
    fn log_span(&self) -> Option<LogSpan<W>> {
        let mut spans: Vec<LogSpan<W>> = Vec::new();
        for carrier in self.drives.log_members() {
            match spans.iter_mut().find(|span| span.has(&carrier)) {
                Some(span) => span.carriers += 1,
                None => spans.extend(self.span_around(&carrier)),
            }
        }
        spans.into_iter().min_by_key(LogSpan::missing)
    }

    /// The span of a drive, the only one of it that carries the logs.
    fn span_around(&self, carrier: &Member<W>) -> Option<LogSpan<W>> {
        let group = self.drives.group(carrier.group());
        let unit = u64::from(self.identity().stripe_unit_bytes);
        let geometry = Geometry::of(group.level(), group.drives(), unit).ok()?;
        let span = geometry.span_of(usize::from(carrier.place()));
        let places = geometry.span_places(span);
        Some(LogSpan {
            members: places.map(|place| group.place(place)).collect(),
            carriers: 1,
            wanted: geometry.redundancy() + 1,
        })
    }

    /// Whether fewer drives carry the logs than should.
    pub(super) fn logs_are_short(&self) -> bool {
        self.log_span().is_none_or(|span| span.missing() > 0)
    }

    /// How many more of the drives that carry the logs can be lost, where this one lies among them.
    pub(super) fn logs_left_beside(&self, member: &Member<W>) -> Option<usize> {
        let span = self.log_span()?;
        span.has(member).then(|| span.carriers.saturating_sub(1))
    }

    /// Another drive of the same span carries the logs, when too few do. Whether one does now that
    /// did not.
    pub(super) async fn copy_logs(self: &Rc<Self>) -> Result<bool, PoolError> {
        let short = self.log_span().filter(|span| span.missing() > 0);
        let Some(span) = short else {
            return Ok(false);
        };
        let able = span.members.into_iter();
        let able = able.filter(|member| member.is_whole() && !member.log());
        let able = able.filter(|next| self.may_carry_logs(next));
        let spins = |member: &Member<W>| member.geometry().is_some_and(|drive| drive.rotational);
        let next = able.min_by_key(|next| (spins(next), next.metadata()));
        let Some(next) = next else {
            return Ok(false);
        };
        if !self.carry_logs(&next).await {
            return self.check().map(|()| false);
        }
        next.set_log(true);
        let text = format!("drive '{}' carries the logs now", next.name);
        self.tell_carrier(text, "log copy moved").await;
        self.check().map(|()| next.log())
    }

    /// Has the logs lie where they should, where there is a log group.
    pub(super) async fn bring_logs_home(self: &Rc<Self>) -> Result<(), PoolError> {
        let Some((home, text)) = self.next_home() else {
            return Ok(());
        };
        if !self.move_logs(&home).await? {
            return Ok(());
        }
        self.drives.event(EventKind::CopyMoved, text);
        self.wake_background();
        self.check()
    }

    /// The drives that should carry the logs instead of those that do, and what is told then: drives
    /// of the log group, or of data while only one copy is left.
    fn next_home(&self) -> Option<(Vec<Rc<Member<W>>>, String)> {
        let (group, span) = (self.drives.log_group()?, self.log_span()?);
        let carriers = self.drives.log_members();
        let is_home = carriers.iter().all(|member| member.group() == group.index);
        let is_one_span = carriers.iter().all(|member| span.has(member));
        let is_complete = span.missing() == 0;
        if is_home && is_one_span && (is_complete || self.is_mended_soon(&span)) {
            return None;
        }
        let planned = |groups: &[Rc<Group<W>>]| {
            let places = self.planned(groups).logs.into_iter();
            places.map(|at| self.member_at(at)).collect::<Vec<_>>()
        };
        let index = group.index;
        let home = planned(&[group]);
        if !home.is_empty() {
            return Some((home, format!("log group {index} carries the logs now")));
        }
        if is_complete || span.carriers > 1 {
            return None;
        }
        let data = planned(&self.drives.staying_groups());
        let text = format!(
            "drives of data carry the logs now, since log group {index} lacks drives: replace those that are out of use"
        );
        (!data.is_empty()).then_some((data, text))
    }

    /// Whether a drive that stands in is about to carry the logs, or whether that is not known yet.
    fn is_mended_soon(&self, span: &LogSpan<W>) -> bool {
        let mut states = span.members.iter().map(|member| member.state());
        let is_mended = states.any(|state| state == MemberState::Rebuilding);
        is_mended || !self.drives.lane().registry.all_opened()
    }

    /// Has these drives carry the logs, and no others. False when they can't.
    ///
    /// The labels name both for a while: an opening finds all that was acknowledged on either.
    async fn move_logs(self: &Rc<Self>, home: &[Rc<Member<W>>]) -> Result<bool, PoolError> {
        for member in home.iter().filter(|member| !member.log()) {
            if !self.carry_logs(member).await {
                return self.check().map(|()| false);
            }
            member.set_log(true);
        }
        self.world.reached("log moves to another group");
        let is_home = |member: &Member<W>| home.iter().any(|own| own.uuid == member.uuid);
        if self
            .world
            .planted("old log let go before labels name the new one")
        {
            self.store.log.keep_members(is_home);
            self.store.intents.keep_members(is_home);
        }
        self.drives.want_labels();
        self.drives.settle_labels().await;
        self.check()?;
        if !home.iter().all(|member| member.is_whole() && member.log()) {
            // One was lost meanwhile: it is looked at anew who can carry them.
            return Ok(false);
        }
        for member in self.drives.members() {
            member.set_log(is_home(&member));
        }
        self.drives.want_labels();
        self.drives.settle_labels().await;
        self.store.log.keep_members(Member::log);
        self.store.intents.keep_members(Member::log);
        self.check().map(|()| true)
    }

    /// Whether a drive is tried, or could not take the logs over a while ago.
    pub(super) fn may_carry_logs(&self, member: &Member<W>) -> bool {
        let failed = self.background().no_carriers();
        !failed.has(member.uuid, self.world.now())
    }

    /// Gives a drive what is in the logs, and all that comes. False when it can't: others are tried
    /// then.
    async fn carry_logs(&self, next: &Rc<Member<W>>) -> bool {
        let failed = self.background().no_carriers();
        for ring in [&self.store.log, &self.store.intents] {
            if let Err(error) = ring.add_member(Rc::clone(next)).await {
                if failed.add(next.uuid, self.world.now()) {
                    let text = format!(
                        "drive '{}' can't carry the logs: {error}; others are tried, and this one again from time to time",
                        next.name
                    );
                    self.drives.event(EventKind::CopyMoved, text);
                }
                // All or nothing: the other one may have taken it in.
                let stays = |member: &Member<W>| member.log() || member.uuid != next.uuid;
                self.store.log.keep_members(stays);
                self.store.intents.keep_members(stays);
                return false;
            }
        }
        failed.remove(next.uuid);
        true
    }

    /// Has drives of another group carry the logs. False when that can't be yet.
    pub(super) async fn move_logs_off(
        self: &Rc<Self>,
        leaving: &Rc<Group<W>>,
    ) -> Result<bool, PoolError> {
        if leaving.is_log() && self.world.planted("log group leaves with the logs") {
            leaving
                .places()
                .iter()
                .for_each(|member| member.set_log(false));
            return Ok(true);
        }
        let mut groups = self.drives.groups_beside(leaving);
        groups.extend(self.drives.log_group());
        let planned = self.planned(&groups).logs;
        let carriers: Vec<_> = planned.iter().map(|at| self.member_at(*at)).collect();
        match carriers.is_empty() {
            true => {
                self.tell_group_kept(leaving, "the logs");
                Ok(false)
            }
            false => self.move_logs(&carriers).await,
        }
    }
}
