//! The logs on other drives: when theirs fail, when a log group is added or lacks drives, and when a
//! group leaves. [`LogCarriers`] moves them.
//!
//! Invariants:
//! - As long as all drives are whole, the logs lie on more drives of one span than it can lose. Copies
//!   in two spans don't add up: with one drive of each the logs are lost, and no data is.
//! - While they move, labels name the old and the new drives: an opening finds all that was
//!   acknowledged on either.

use super::placement::Placement;
use super::redundancy::{LogSpan, Redundancy};
use crate::drives::Member;
use crate::drives::{EventKind, Group};
use crate::pool::{MemberState, PoolError};
use crate::space::LaneState;
use crate::world::World;
use std::rc::Rc;

/// The drives that carry the logs.
pub(super) struct LogCarriers<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> LogCarriers<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        LogCarriers { lane }
    }

    /// Another drive of the same span carries the logs, when too few do. Whether one does now that
    /// did not.
    pub(super) async fn copy_logs(&self) -> Result<bool, PoolError> {
        let short = Redundancy::of(self.lane.drives())
            .log_span()
            .filter(|span| span.missing() > 0);
        let Some(span) = short else {
            return Ok(false);
        };
        let able = span.members.into_iter();
        let able = able.filter(|member| member.is_whole() && !member.log());
        let able = able.filter(|next| Placement::of(self.lane).may_carry_logs(next));
        let next = able.min_by_key(|next| (next.is_rotational(), next.metadata()));
        let Some(next) = next else {
            return Ok(false);
        };
        if !self.carry_logs(&next).await {
            return self.lane.check().map(|()| false);
        }
        next.set_log(true);
        let text = format!("drive '{}' carries the logs now", next.name);
        Placement::of(self.lane)
            .tell_carrier(text, "log copy moved")
            .await;
        self.lane.check().map(|()| next.log())
    }

    /// Has the logs lie where they should, where there is a log group.
    pub(super) async fn bring_logs_home(&self) -> Result<(), PoolError> {
        let Some((home, text)) = self.next_home() else {
            return Ok(());
        };
        if !self.move_logs(&home).await? {
            return Ok(());
        }
        self.lane.drives().event(EventKind::CopyMoved, text);
        self.lane.wake_background();
        self.lane.check()
    }

    /// The drives that should carry the logs instead of those that do, and what is told then: drives
    /// of the log group, or of data while only one copy is left.
    fn next_home(&self) -> Option<(Vec<Rc<Member<W>>>, String)> {
        let (group, span) = (
            self.lane.drives().log_group()?,
            Redundancy::of(self.lane.drives()).log_span()?,
        );
        let carriers = self.lane.drives().log_members();
        let is_home = carriers.iter().all(|member| member.group() == group.index);
        let is_one_span = carriers.iter().all(|member| span.has(member));
        let is_complete = span.missing() == 0;
        if is_home && is_one_span && (is_complete || self.is_mended_soon(&span)) {
            return None;
        }
        let planned = |groups: &[Rc<Group<W>>]| {
            let places = Placement::of(self.lane).planned(groups).logs.into_iter();
            places
                .map(|at| Placement::of(self.lane).member_at(at))
                .collect::<Vec<_>>()
        };
        let index = group.index;
        let home = planned(&[group]);
        if !home.is_empty() {
            return Some((home, format!("log group {index} carries the logs now")));
        }
        if is_complete || span.carriers > 1 {
            return None;
        }
        let data = planned(&self.lane.drives().staying_groups());
        let text = format!(
            "drives of data carry the logs now, since log group {index} lacks drives: replace those that are out of use"
        );
        (!data.is_empty()).then_some((data, text))
    }

    /// Whether a drive that stands in is about to carry the logs, or whether that is not known yet.
    fn is_mended_soon(&self, span: &LogSpan<W>) -> bool {
        let mut states = span.members.iter().map(|member| member.state());
        let is_mended = states.any(|state| state == MemberState::Rebuilding);
        is_mended || !self.lane.drives().lane().registry.all_opened()
    }

    /// Has these drives carry the logs, and no others. False when they can't.
    ///
    /// The labels name both for a while: an opening finds all that was acknowledged on either.
    async fn move_logs(&self, home: &[Rc<Member<W>>]) -> Result<bool, PoolError> {
        for member in home.iter().filter(|member| !member.log()) {
            if !self.carry_logs(member).await {
                return self.lane.check().map(|()| false);
            }
            member.set_log(true);
        }
        self.lane.world().reached("log moves to another group");
        let is_home = |member: &Member<W>| home.iter().any(|own| own.uuid == member.uuid);
        if self
            .lane
            .world()
            .planted("old log let go before labels name the new one")
        {
            self.lane.store().log.keep_members(is_home);
            self.lane.store().intents.keep_members(is_home);
        }
        self.lane.drives().want_labels();
        self.lane.drives().settle_labels().await;
        self.lane.check()?;
        if !home.iter().all(|member| member.is_whole() && member.log()) {
            // One was lost meanwhile: it is looked at anew who can carry them.
            return Ok(false);
        }
        let drives = self.lane.drives();
        for member in drives.members().into_iter().chain(drives.successors()) {
            member.set_log(is_home(&member));
        }
        self.lane.drives().want_labels();
        self.lane.drives().settle_labels().await;
        self.lane.store().log.keep_members(Member::log);
        self.lane.store().intents.keep_members(Member::log);
        self.lane.check().map(|()| true)
    }

    /// Gives a drive what is in the logs, and all that comes. False when it can't: others are tried
    /// then.
    pub(super) async fn carry_logs(&self, next: &Rc<Member<W>>) -> bool {
        let failed = self.lane.background().no_carriers();
        for ring in [&self.lane.store().log, &self.lane.store().intents] {
            if let Err(error) = ring.add_member(Rc::clone(next)).await {
                if failed.add(next.uuid, self.lane.world().now()) {
                    let text = format!(
                        "drive '{}' can't carry the logs: {error}; others are tried, and this one again from time to time",
                        next.name
                    );
                    self.lane.drives().event(EventKind::CopyMoved, text);
                }
                // All or nothing: the other one may have taken it in.
                let stays = |member: &Member<W>| member.log() || member.uuid != next.uuid;
                self.lane.store().log.keep_members(stays);
                self.lane.store().intents.keep_members(stays);
                return false;
            }
        }
        failed.remove(next.uuid);
        true
    }

    /// Has drives of another group carry the logs. False when that can't be yet.
    pub(super) async fn move_logs_off(&self, leaving: &Rc<Group<W>>) -> Result<bool, PoolError> {
        if leaving.is_log() && self.lane.world().planted("log group leaves with the logs") {
            leaving
                .places()
                .iter()
                .for_each(|member| member.set_log(false));
            return Ok(true);
        }
        let mut groups = self.lane.drives().groups_beside(leaving);
        groups.extend(self.lane.drives().log_group());
        let planned = Placement::of(self.lane).planned(&groups).logs;
        let carriers: Vec<_> = planned
            .iter()
            .map(|at| Placement::of(self.lane).member_at(*at))
            .collect();
        match carriers.is_empty() {
            true => {
                Placement::of(self.lane).tell_group_kept(leaving, "the logs");
                Ok(false)
            }
            false => self.move_logs(&carriers).await,
        }
    }
}
