//! The logs on other drives: when theirs fail, when a log group is added, and when a group leaves.
//!
//! Invariants:
//! - As long as all drives are whole, the logs lie on more drives of one span than it can lose.
//! - While they move, labels name the old and the new drives: an opening finds all that was
//!   acknowledged on either.

use crate::drives::Member;
use crate::drives::{EventKind, Group};
use crate::pool::PoolError;
use crate::raid::Geometry;
use crate::space::LaneState;
use crate::world::World;
use std::rc::Rc;

impl<W: World> LaneState<W> {
    /// How many more of the drives that carry the logs can be lost, where this one lies among them.
    pub(super) fn logs_left_beside(&self, member: &Member<W>) -> Option<usize> {
        let carriers = self.drives.log_members();
        let first = carriers.first()?;
        let geometry = self.log_geometry(first)?;
        let span_of = |member: &Member<W>| geometry.span_of(usize::from(member.place()));
        let is_beside = first.group() == member.group() && span_of(first) == span_of(member);
        is_beside.then(|| carriers.len() - 1)
    }

    /// The shape of the group that the logs are in.
    pub(super) fn log_geometry(&self, carrier: &Member<W>) -> Option<Geometry> {
        let group = self.drives.group(carrier.group());
        let unit = u64::from(self.identity().stripe_unit_bytes);
        Geometry::of(group.level(), group.drives(), unit).ok()
    }

    /// Another drive of the same span carries the logs, when too few do. Whether one does now that
    /// did not.
    pub(super) async fn copy_logs(self: &Rc<Self>) -> Result<bool, PoolError> {
        let carriers = self.drives.log_members();
        let Some(first) = carriers.first() else {
            return Ok(false);
        };
        let group = self.drives.group(first.group());
        let Some(geometry) = self.log_geometry(first) else {
            return Ok(false);
        };
        if carriers.len() > geometry.redundancy() {
            return Ok(false);
        }
        let span = geometry.span_of(usize::from(first.place()));
        let members = geometry.span_places(span).map(|place| group.place(place));
        let able = members.filter(|member| member.is_whole() && !member.log());
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
        self.drives.want_labels();
        self.drives.settle_labels().await;
        self.world.reached("log copy moved");
        self.drives.event(
            EventKind::CopyMoved,
            format!("drive '{}' carries the logs now", next.name),
        );
        self.wake_background();
        self.check().map(|()| next.log())
    }

    /// Has the logs lie on the log group, where there is one that can carry them.
    pub(super) async fn bring_logs_home(self: &Rc<Self>) -> Result<(), PoolError> {
        let Some(group) = self.log_group() else {
            return Ok(());
        };
        let is_home = |member: &Rc<Member<W>>| member.group() == group.index;
        let mut all = self.drives.members();
        all.retain(|member| member.log());
        if all.iter().all(is_home) {
            // A drive that is missing there is replaced, and then it carries them: `copy_logs`.
            return Ok(());
        }
        let planned = self.planned(&[Rc::clone(&group)]).logs;
        let home: Vec<_> = planned.iter().map(|at| self.member_at(*at)).collect();
        if home.is_empty() || !self.move_logs(&home).await? {
            return Ok(());
        }
        self.drives.event(
            EventKind::CopyMoved,
            format!("log group {} carries the logs now", group.index),
        );
        self.wake_background();
        self.check()
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
        let mut groups = self.groups_beside(leaving);
        groups.extend(self.log_group());
        let planned = self.planned(&groups).logs;
        let carriers: Vec<_> = planned.iter().map(|at| self.member_at(*at)).collect();
        match carriers.is_empty() {
            true => Ok(false),
            false => self.move_logs(&carriers).await,
        }
    }
}
