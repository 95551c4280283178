//! Drives that are copied before they leave: [`Successions`], and the command for it.
//!
//! A copy is a rebuild whose drive is still there: it goes zone by zone as rebuilds do ([`super::rebuild`]),
//! reads the drive that leaves, and puts together from the others only what that can't give. Parity
//! has no checksums, so it is reckoned anew. [`crate::drives`] (`succession`) has what holds meanwhile.
//!
//! Invariants:
//! - A copy begins and ends while no zone is being taken into use.
//! - The old drive leaves when the new one holds every zone, in all lanes, and carries the metadata and
//!   the logs if the old one does.
//! - A copy that one lane has given up ends in all.

use super::Copies;
use super::logs::LogCarriers;
use super::new_spares::{NewSpares, is_fit};
use super::placement::Placement;
use crate::drives::{EventKind, Group, Member};
use crate::meta::Record;
use crate::pool::{Lane, MemberState, PoolError, PoolErrorKind};
use crate::space::LaneState;
use crate::world::World;
use std::rc::Rc;

/// Copies under way in a lane, at most: a checkpoint has room for the zones of so many drives, and of
/// as many that are being rebuilt.
const COPIES_MAX: usize = 4;

/// A suspect drive is copied once in so many times the time after which it is.
const PAUSE_TIMES: u32 = 6;

/// Drives that are copied, and their successors.
pub(super) struct Successions<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Successions<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Successions { lane }
    }

    /// The successors of a group that there is something to do for.
    pub(super) fn to_copy(&self, group: &Group<W>) -> Vec<Rc<Member<W>>> {
        let places = group.places().into_iter();
        let mut all: Vec<_> = places.filter_map(|old| old.successor()).collect();
        all.retain(|new| !self.waits(new));
        all
    }

    /// Whether there is anything to copy, or to end.
    pub(super) fn has_work(&self) -> bool {
        let mut all = self.lane.drives().successors().into_iter();
        all.any(|new| !self.waits(&new))
    }

    /// Whether a successor holds everything, and something else has to be done first.
    fn waits(&self, new: &Member<W>) -> bool {
        let lane = self.lane.drives().lane();
        let standing = (new.group(), new.place());
        let others_copy = lane.registry.has_said_copied(lane.index, new.uuid)
            && !lane.registry.is_copied_in_all(new.uuid, standing);
        let old = self.lane.drives().predecessor(new);
        let needs_logs = old.is_some_and(|old| old.log()) && !new.log();
        self.holds_all(new)
            && (others_copy || needs_logs && !Placement::of(self.lane).may_carry_logs(new))
    }

    /// Whether all zones of its group are whole on it.
    fn holds_all(&self, new: &Member<W>) -> bool {
        let group = self.lane.drives().group(new.group());
        let zones = self.lane.drives().zones_of(&group);
        let whole = new.rebuilt().borrow();
        let lacking = zones
            .iter()
            .filter(|zone| zone.place_of(new).is_some() && !whole.contains(&zone.shape.zone));
        let planted = "copied drive leaves before its last zone";
        lacking.count() <= usize::from(self.lane.world().planted(planted))
    }

    /// Does what the other lanes have begun or given up, and ends copies in groups that leave.
    pub(super) async fn follow(&self) -> Result<(), PoolError> {
        let (drives, registry) = (self.lane.drives(), &self.lane.drives().lane().registry);
        let mut is_one_over = false;
        for new in drives.successors() {
            let is_given_up = registry.lanes() > 1
                && registry.is_completed()
                && !registry.is_known_in_all(new.uuid);
            if is_given_up || drives.group(new.group()).leaves() {
                drives.call_off_succession(&new);
                self.let_logs_go(&new);
                is_one_over = true;
            }
        }
        if is_one_over {
            drives.settle_labels().await;
            self.lane.check()?;
        }
        self.forget_lost().await?;
        self.copy_suspect().await?;
        if registry.lanes() == 1 {
            return Ok(());
        }
        for old in drives.members() {
            let beside = registry.successor_beside(drives.lane().index, old.uuid);
            let spares = drives.spares().into_iter();
            let mut spares = spares.filter(|spare| Some(spare.uuid) == beside);
            if let Some(new) = spares.next()
                && registry.is_known_in_all(new.uuid)
                && self.check_begin(&old, &new).is_ok()
            {
                self.lane.world().reached("lane follows another's copy");
                self.begin(&old, &new).await?;
            }
        }
        Ok(())
    }

    /// Nothing counts any more of what drives hold that are neither rebuilt nor copied to: successors
    /// that were lost.
    async fn forget_lost(&self) -> Result<(), PoolError> {
        let drives = self.lane.drives();
        let all = drives.members().into_iter().chain(drives.successors());
        let rebuilding = all.filter(|member| member.state() == MemberState::Rebuilding);
        let wanted: Vec<_> = rebuilding.map(|member| member.uuid).collect();
        let known: Vec<_> = self.lane.state().rebuilt.keys().copied().collect();
        let lost = known.into_iter().filter(|uuid| !wanted.contains(uuid));
        let records: Vec<Record> = lost.map(|member| Record::RebuildOver { member }).collect();
        match records.is_empty() {
            true => Ok(()),
            false => self.lane.journal().commit(records).await,
        }
    }

    /// Begins to copy a drive that has been suspect for long to a spare, one of a group at a time. The
    /// first lane does; the others follow. It is not tried again for a while, whatever came of it.
    async fn copy_suspect(&self) -> Result<(), PoolError> {
        let (drives, lane) = (self.lane.drives(), self.lane.drives().lane());
        let Some(patience) = self.lane.background().limits().copied_after else {
            return Ok(());
        };
        // A drive that has failed needs a spare more.
        let is_lost = |member: &Rc<Member<W>>| member.state() == MemberState::Failed;
        if lane.index > 0 || !lane.registry.all_opened() || drives.members().iter().any(is_lost) {
            return Ok(());
        }
        for group in drives.groups() {
            let places = group.places();
            let long: Vec<_> = places
                .iter()
                .filter(|member| member.suspect_for() >= patience && member.is_suspect())
                .collect();
            let is_quiet = places
                .iter()
                .all(|member| member.is_whole() && member.successor().is_none());
            let Some(old) = long.first().filter(|_| is_quiet) else {
                continue;
            };
            let spares = drives.spares().into_iter();
            let mut fit = spares.filter(|new| {
                let is_known =
                    lane.registry.lanes() == 1 || lane.registry.is_known_in_all(new.uuid);
                is_known && self.check_begin(old, new).is_ok()
            });
            if let Some(new) = fit.next()
                && old.note_copied(patience * PAUSE_TIMES)
            {
                self.lane.world().reached("suspect drive copied");
                self.begin(old, &new).await?;
            }
        }
        Ok(())
    }

    /// That `new`, a spare, can be a successor of `old`.
    fn check_begin(&self, old: &Member<W>, new: &Member<W>) -> Result<(), PoolError> {
        let drives = self.lane.drives();
        let invalid = |why: String| Err(PoolError::new(PoolErrorKind::Invalid, why));
        let (name, group) = (&old.name, drives.group(old.group()));
        if !old.is_whole() || old.successor().is_some() || group.leaves() {
            return invalid(format!(
                "drive '{name}' can't be copied: it is out of use, is copied already, or leaves with its group"
            ));
        }
        if drives.successors().len() >= COPIES_MAX {
            return invalid(format!(
                "drive '{name}' can't be copied yet: {COPIES_MAX} others of the pool are"
            ));
        }
        let needed = NewSpares::of(drives).needed_of(&group);
        let lane = drives.lane();
        let standing = (old.group(), old.place());
        if !is_fit(drives, new, needed)
            || !lane.registry.could_stand(lane.index, new.uuid, standing)
        {
            return invalid(format!(
                "drive '{name}' can't be copied to '{}': that is too small, is not well, or stands in \
                 for another drive",
                new.name
            ));
        }
        Ok(())
    }

    /// Has `new` get what `old` holds. False when something has come between.
    async fn begin(&self, old: &Rc<Member<W>>, new: &Rc<Member<W>>) -> Result<bool, PoolError> {
        let drives = self.lane.drives();
        self.forget_rebuilt(new).await?;
        {
            let _settled = self.lane.zone_changes().settle().await;
            let lane = drives.lane();
            let standing = (old.group(), old.place());
            let is_there = drives.spares().iter().any(|spare| Rc::ptr_eq(spare, new));
            let has_place = Rc::ptr_eq(
                &drives.group(old.group()).place(usize::from(old.place())),
                old,
            );
            if !is_there
                || !has_place
                || self.check_begin(old, new).is_err()
                || !lane.registry.may_stand(lane.index, new.uuid, standing)
            {
                return self.lane.check().map(|()| false);
            }
            drives.begin_succession(old, new);
            drives.want_labels();
            drives.settle_labels().await;
        }
        self.lane.world().reached("copy of a drive begins");
        let text = format!(
            "drive '{}' is to take the place of '{}' (place {} of group {}), which stays until it is copied",
            new.name,
            old.name,
            old.place(),
            old.group()
        );
        drives.event(EventKind::SpareTaken, text);
        self.lane.wake_background();
        self.lane.check().map(|()| true)
    }

    /// Nothing that a drive held of an earlier rebuild or copy counts any more.
    pub(super) async fn forget_rebuilt(&self, new: &Member<W>) -> Result<(), PoolError> {
        new.rebuilt().borrow_mut().clear();
        let member = new.uuid;
        let is_known = self.lane.state().rebuilt.contains_key(&member);
        match is_known {
            true => {
                let over = Record::RebuildOver { member };
                self.lane.journal().commit(vec![over]).await
            }
            false => Ok(()),
        }
    }

    /// Has the successors of a group that hold everything take their places. Whether one has.
    pub(super) async fn finish(&self, group: &Group<W>) -> Result<bool, PoolError> {
        let mut has_one_ended = false;
        for old in group.places() {
            let Some(new) = old.successor().filter(|new| self.holds_all(new)) else {
                continue;
            };
            let lane = self.lane.drives().lane();
            lane.registry.say_copied(lane.index, new.uuid);
            if !self.waits(&new) && self.carry(&old, &new).await? {
                has_one_ended |= self.end(&old, &new).await?;
            }
        }
        Ok(has_one_ended)
    }

    /// Has a successor carry what the old drive carries. Whether it does.
    async fn carry(&self, old: &Rc<Member<W>>, new: &Rc<Member<W>>) -> Result<bool, PoolError> {
        let is_here = || new.state() == MemberState::Rebuilding && new.succeeds();
        if old.takes_metadata() && !new.metadata() && is_here() {
            new.take_metadata();
            self.lane.journal().checkpoint_to_all().await?;
            new.set_metadata(is_here());
        }
        let leaves_logs = self
            .lane
            .world()
            .planted("copied drive leaves with the logs");
        if old.log() && !new.log() && is_here() && !leaves_logs {
            if !LogCarriers::of(self.lane).carry_logs(new).await {
                return self.lane.check().map(|()| false);
            }
            new.set_log(is_here());
        }
        self.lane.drives().want_labels();
        self.lane.drives().settle_labels().await;
        self.lane.check().map(|()| is_here())
    }

    /// A drive carries no logs any more.
    fn let_logs_go(&self, drive: &Member<W>) {
        for ring in [&self.lane.store().log, &self.lane.store().intents] {
            ring.keep_members(|member| member.uuid != drive.uuid);
        }
    }

    /// The successor takes the place, unless something has come between.
    async fn end(&self, old: &Rc<Member<W>>, new: &Rc<Member<W>>) -> Result<bool, PoolError> {
        let drives = self.lane.drives();
        {
            let _settled = self.lane.zone_changes().settle().await;
            let is_here = new.state() == MemberState::Rebuilding && new.succeeds();
            let carries = (!old.log()
                || new.log()
                || self
                    .lane
                    .world()
                    .planted("copied drive leaves with the logs"))
                && (!old.metadata() || new.metadata());
            if !is_here || !carries || !self.holds_all(new) {
                return self.lane.check().map(|()| false);
            }
            drives.succeed(old, new);
            drives.settle_labels().await;
        }
        self.lane.check()?;
        self.let_logs_go(old);
        if drives.lane().registry.lanes() == 1 {
            drives.tell_retired(old);
        }
        self.forget_rebuilt(new).await?;
        self.lane.background().rebuild_has_ended(new.uuid);
        let text = format!(
            "copy of drive '{}' has ended: '{}' holds everything",
            old.name, new.name
        );
        drives.event(EventKind::Rebuild, text);
        self.lane.world().reached("copy of a drive ends");
        Copies::of(self.lane).move_copies().await?;
        self.lane.wake_background();
        Ok(true)
    }
}

impl<W: World> Lane<W> {
    /// Has the spare called `new` get what the drive called `old` holds, and then its place. The old
    /// drive is in use until then, as before. One that is copied to it already is left alone, and so is
    /// one that is out of use: the spare stands in for it.
    ///
    /// # Errors
    /// `NotFound` for the old drive; `Invalid` when it can't be copied, or not to that one.
    pub async fn copy_drive(&self, old: &str, new: &str) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let is_new = |other: &Member<W>| other.name == new || other.uuid.to_string() == new;
        let members = inner.drives().members();
        let old = match inner.drives().named_member(old) {
            // It was out of use here, and the spare stands in for it already.
            Err(_) if members.iter().any(|member| is_new(member)) => return Ok(()),
            found => found?,
        };
        let is_copied = old.successor().is_some_and(|successor| is_new(&successor));
        if is_copied || !old.is_writable() {
            return Ok(());
        }
        let refused = || {
            let context = format!(
                "drive '{}' is not copied to '{new}': that is no spare, or stands in for another drive",
                old.name
            );
            PoolError::new(PoolErrorKind::Invalid, context)
        };
        let spare = inner.drives().named_spare(new).ok_or_else(refused)?;
        let successions = Successions::of(inner);
        successions.check_begin(&old, &spare)?;
        match successions.begin(&old, &spare).await? {
            true => Ok(()),
            false => Err(refused()),
        }
    }
}
