//! Spares, and the drives that they stand in for: [`Spares`], and the commands for it.
//!
//! Invariants:
//! - A spare takes a place while no zone is being taken into use. So a zone is written to the one or
//!   the other of both, and believed to be where it is.
//! - Where the next failure would lose data, a spare goes first.

use super::candidates::{Candidate, Candidates};
use super::new_spares::{NewSpares, is_fit};
use super::place_choice::PlaceChoice;
use super::redundancy::Redundancy;
use super::succession::Successions;
use crate::drive::Drive;
use crate::drives::Member;
use crate::drives::{EventKind, SPARE_GROUP};
use crate::label::{Label, MemberEntry};
use crate::pool::{Lane, MemberState, NamedDrive, PoolError, PoolErrorKind, PoolInfo};
use crate::space::LaneState;
use crate::world::World;
use base::Uuid;
use std::rc::Rc;

/// A planted bug.
const OUT_ALTHOUGH_NEEDED: &str = "drive ordered out although another failed";

/// A drive that has failed, and the spare for its place.
type StandIn<W> = (Rc<Member<W>>, Rc<Member<W>>);

/// Who stands in for whom.
pub(super) struct Spares<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Spares<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Spares { lane }
    }

    /// Puts spares in the places of drives that have failed.
    pub(super) async fn take_spares(&self) -> Result<(), PoolError> {
        while let Some((failed, spare)) = self.next_to_stand_in() {
            let standing = (failed.group(), failed.place());
            let lane = self.lane.drives().lane();
            // Another lane may have been faster.
            if !lane.registry.may_stand(lane.index, spare.uuid, standing) {
                continue;
            }
            self.stand_in(&failed, spare).await?;
        }
        Ok(())
    }

    /// A drive that has failed, and a spare for its place.
    pub(super) fn next_to_stand_in(&self) -> Option<StandIn<W>> {
        let mut failed = self.lane.drives().members();
        failed.retain(|member| member.state() == MemberState::Failed);
        // One that comes back under its name comes back to its place.
        let comes_back = |failed: &Rc<Member<W>>| {
            let spares = self.lane.drives().spares();
            spares.iter().any(|spare| spare.name == failed.name)
        };
        // Where the next failure would lose data, a spare is needed most.
        failed.sort_by_key(|failed| {
            (
                !comes_back(failed),
                Redundancy::of(self.lane.drives()).redundancy_left_beside(failed),
            )
        });
        failed.into_iter().find_map(|failed| {
            let spare = self.spare_for(&failed)?;
            Some((failed, spare))
        })
    }

    /// A spare that is large enough, and that no other lane has anywhere else.
    fn spare_for(&self, failed: &Member<W>) -> Option<Rc<Member<W>>> {
        let needed =
            NewSpares::of(self.lane.drives()).needed_of(&self.lane.drives().group(failed.group()));
        let standing = (failed.group(), failed.place());
        let lane = self.lane.drives().lane();
        if !lane.registry.all_opened() {
            // Who is not open yet may have it elsewhere.
            return None;
        }
        let mut spares = self.lane.drives().spares();
        // The one that stands there in other lanes goes before all others.
        let there = lane.registry.stand_in(lane.index, standing, failed.uuid);
        spares.sort_by_key(|spare| (Some(spare.uuid) != there, spare.name != failed.name));
        spares.into_iter().find(|spare| {
            is_fit(self.lane.drives(), spare, needed)
                && lane.registry.could_stand(lane.index, spare.uuid, standing)
        })
    }

    /// Takes drives out of use that other lanes were ordered to take out; and those whose
    /// places other lanes have given to a spare, where nothing else is missing: a drive that
    /// one lane can't use is replaced in all. A drive that waits there to stand in, since it
    /// came back, is not among these: nothing is wrong with it, and without it this lane
    /// could lose one drive less until the spare is rebuilt. Nor is one that a lane has not been
    /// offered yet since the opening.
    pub(super) async fn follow_others(&self) -> Result<(), PoolError> {
        let (drives, world) = (self.lane.drives(), self.lane.world());
        let lane = drives.lane();
        if lane.registry.lanes() == 1 {
            return Ok(());
        }
        for member in drives.members() {
            let is_ordered = lane.registry.is_ordered_out(member.uuid) && member.is_writable();
            if is_ordered && drives.can_lose(&member) {
                world.reached("lane follows an order to another");
                self.take_out_by_command(&member).await?;
                continue;
            }
            let standing = (member.group(), member.place());
            let other = match world.planted("usable drive given up for another lane") {
                true => lane.registry.stand_in(lane.index, standing, member.uuid),
                false if lane.registry.is_completed() => {
                    lane.registry.replaced_by(lane.index, standing, member.uuid)
                }
                false => None,
            };
            let group = drives.group(member.group());
            let needed = NewSpares::of(drives).needed_of(&group);
            let spares = drives.spares();
            let is_spare = |uuid| {
                let mut spares = spares.iter();
                spares.any(|spare| spare.uuid == uuid && is_fit(drives, spare, needed))
            };
            let whole = group.places().iter().all(|member| member.is_whole());
            if other.is_some_and(is_spare) && whole {
                world.reached("lane follows another's spare");
                let why = "a spare stands in for it in another lane of the pool";
                drives.give_up(vec![(member, why.to_owned())]);
                drives.settle_labels().await;
                self.lane.check()?;
            }
        }
        Ok(())
    }

    /// `spare` takes the place of `failed`; a rebuild gives it what it should hold.
    async fn stand_in(
        &self,
        failed: &Rc<Member<W>>,
        spare: Rc<Member<W>>,
    ) -> Result<(), PoolError> {
        let (drives, world) = (self.lane.drives(), self.lane.world());
        Successions::of(self.lane).forget_rebuilt(&spare).await?;
        // No zone is taken into use meanwhile: it would be written to one of both, and
        // believed to be on the other.
        let _settled = self.lane.zone_changes().settle().await;
        let (group, place) = (failed.group(), failed.place());
        let spares = drives.spares();
        let mut free = spares.iter().filter(|spare| !spare.succeeds());
        let is_there = free.any(|other| Rc::ptr_eq(other, &spare));
        let in_place = drives.group(group).place(usize::from(place));
        if !is_there || !Rc::ptr_eq(&in_place, failed) {
            // By command, while this waited.
            return self.lane.check();
        }
        drives.change_spares(|spares| spares.retain(|other| !Rc::ptr_eq(other, &spare)));
        spare.set_place(group, place);
        spare.set_metadata(false);
        spare.set_log(false);
        spare.set_state(match world.planted("spare counts as whole at once") {
            true => MemberState::Healthy,
            false => MemberState::Rebuilding,
        });
        drives
            .group(group)
            .put(usize::from(place), Rc::clone(&spare));
        drives.want_labels();
        drives.settle_labels().await;
        world.reached("spare taken");
        drives.event(
            EventKind::SpareTaken,
            format!(
                "{} (place {place} of group {group})",
                stands_in(&spare.name, &failed.name)
            ),
        );
        self.lane.check()
    }

    /// Takes a drive out of use as it was ordered, durably. What is in flight on it ends.
    ///
    /// In a pool of one lane its own label says so first, where it answers: it has old data from
    /// now on, and must not open the pool with that when the other drives are away. Before that, and
    /// while it is written, another drive may fail: where the pool needs this one then, it stays.
    ///
    /// # Errors
    /// `Invalid` when the pool can't do without it by then.
    async fn take_out_by_command(&self, member: &Rc<Member<W>>) -> Result<(), PoolError> {
        let is_told = !self
            .lane
            .world()
            .planted("drive not told that it is out of use");
        // A lane may keep a drive that another lane takes out, and be the one that is right.
        let is_alone = self.lane.drives().lane().registry.lanes() == 1;
        if is_told && is_alone && !member.vitals().is_late() {
            self.say_on_labels_that_it_is_out(member).await?;
            self.check_still_can_lose(member).await?;
        }
        member.order_out();
        self.lane
            .drives()
            .take_out(member, "was taken out of use by command");
        self.lane.drives().settle_labels().await;
        self.lane.wake_background();
        self.lane.check()
    }

    /// Has all labels say that a drive is out of use, where the pool can do without it when they are
    /// written.
    async fn say_on_labels_that_it_is_out(&self, member: &Rc<Member<W>>) -> Result<(), PoolError> {
        let drives = self.lane.drives();
        // Who hangs is found before any label says that this one is out.
        drives.write_labels_alone(|_| ()).await?;
        let planted = self.lane.world().planted(OUT_ALTHOUGH_NEEDED);
        let mark = |label: &mut Label| {
            if !planted && (drives.has_ended() || !drives.can_lose(member)) {
                return;
            }
            let entries = label.members.iter_mut();
            for entry in entries.filter(|entry| entry.uuid == member.uuid) {
                entry.state = MemberState::Failed;
            }
        };
        drives.write_labels_alone(mark).await
    }

    /// That the pool can do without a drive whose label may say already that it is out of use. One
    /// that it needs is in use again, on the labels too, before the error is given.
    async fn check_still_can_lose(&self, member: &Rc<Member<W>>) -> Result<(), PoolError> {
        self.lane.check()?;
        let is_kept = member.is_writable() && self.lane.drives().has(member);
        if !is_kept || self.lane.world().planted(OUT_ALTHOUGH_NEEDED) {
            return Ok(());
        }
        let refused = self.check_can_lose(member);
        if refused.is_err() {
            self.lane.drives().want_labels();
            self.lane.drives().settle_labels().await;
        }
        refused
    }

    fn check_can_lose(&self, member: &Rc<Member<W>>) -> Result<(), PoolError> {
        match self.lane.drives().can_lose(member) {
            true => Ok(()),
            false => Err(PoolError::new(
                PoolErrorKind::Invalid,
                format!(
                    "pool '{}' can't do without drive '{}' now: it would lose data",
                    self.lane.drives().name(),
                    member.name
                ),
            )),
        }
    }

    /// Whether a drive has failed, or holds less than it should, and something can be done
    /// about that: it goes before whatever else is under way.
    pub(super) fn is_drive_wanting(&self) -> bool {
        let members = self.lane.drives().members();
        let mut states = members.iter().map(|member| member.state());
        states.any(|state| state == MemberState::Rebuilding)
            || self.next_to_stand_in().is_some()
            || Successions::of(self.lane).has_work()
            || self
                .lane
                .drives()
                .groups()
                .iter()
                .any(|group| PlaceChoice::of(self.lane).has_lost(group))
    }
}

impl<W: World> Lane<W> {
    /// Takes a drive out of use. A spare is part of the pool no more then, and free.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` when the pool can't do without it.
    pub async fn fail_drive(&self, name: &str) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        if let Some(spare) = inner.drives().named_spare(name)
            && inner
                .drives()
                .part_with_spare(&spare, inner.background().patience())
                .await?
        {
            return Ok(());
        }
        self.fail_member(&inner.drives().named_member(name)?).await
    }

    async fn fail_member(&self, member: &Rc<Member<W>>) -> Result<(), PoolError> {
        let inner = &self.inner;
        if !member.is_writable() {
            return Ok(());
        }
        Spares::of(inner).check_can_lose(member)?;
        Spares::of(inner).take_out_by_command(member).await
    }

    /// Adds a drive that stands in for the next one that fails, or for one that has
    /// failed. A drive that was part of this pool before, and is no more, may come
    /// back like this; what is on it is lost.
    ///
    /// # Errors
    /// `Exists` for a drive of another pool, or in use in this one; `TooSmall`;
    /// `Invalid` for a name or a number that can't be.
    pub async fn add_spare(&self, named: NamedDrive<W>) -> Result<(), PoolError> {
        self.add_spare_for(None, named).await
    }

    /// As [`Lane::add_spare`], of a drive that is to stand in in a group of this number, where there
    /// is one. It has to be large enough there only.
    ///
    /// # Errors
    /// As [`Lane::add_spare`].
    pub async fn add_spare_for(
        &self,
        group: Option<u16>,
        named: NamedDrive<W>,
    ) -> Result<(), PoolError> {
        let (inner, drives) = (&self.inner, self.inner.drives());
        let judge = NewSpares::of(drives);
        inner.check()?;
        let NamedDrive { name, drive } = named;
        judge.check_new_spare(&name)?;
        let spares = drives.spares().len();
        let found = Candidates::of(drives).label_of_first_lane(&drive).await?;
        judge.check_free(&name, &drive, found.as_ref()).await?;
        let whole_bytes = drive.geometry().capacity_bytes;
        let drive = drives.view(drive);
        let capacity_bytes = drive.geometry().capacity_bytes;
        judge.check_large_enough(&name, group, whole_bytes, capacity_bytes)?;
        let uuid = match found {
            Some(label) if drives.lane().index > 0 => label.drive_uuid,
            _ => judge.spare_uuid(&name, spares),
        };
        let entry = MemberEntry {
            uuid,
            group: SPARE_GROUP,
            place: spares as u16,
            state: MemberState::Spare,
            metadata: false,
            log: false,
            ordered_out: false,
            reserved: false,
            succeeds: None,
            capacity_bytes,
            name,
        };
        drives.change_spares(|spares| {
            spares.push(Rc::new(Member::new(inner.world(), drive, &entry)))
        });
        drives.want_labels();
        drives.settle_labels().await;
        inner.wake_background();
        inner.check()
    }

    /// That this lane could add a drive as a spare now, to stand in in a group of this number
    /// or in any.
    ///
    /// # Errors
    /// As [`Lane::add_spare_for`].
    pub async fn check_add_spare(
        &self,
        group: Option<u16>,
        drive: Candidate<'_, W>,
    ) -> Result<(), PoolError> {
        let inner = &self.inner;
        let judge = NewSpares::of(inner.drives());
        inner.check()?;
        judge.check_new_spare(drive.name)?;
        Candidates::of(inner.drives())
            .check_unlabelled(&drive)
            .await?;
        let part = inner.identity().part();
        let capacity_bytes = drive.capacity_bytes.saturating_sub(part.of_others_bytes());
        judge.check_large_enough(drive.name, group, drive.capacity_bytes, capacity_bytes)
    }

    /// Has `drive` stand in for the drive called `name`, which is taken out of use
    /// first. In the place of a spare it is one.
    ///
    /// # Errors
    /// As [`Lane::fail_drive`] and [`Lane::add_spare`].
    pub async fn replace_drive(&self, name: &str, drive: NamedDrive<W>) -> Result<(), PoolError> {
        if let Some(spare) = self.inner.drives().named_spare(name) {
            self.add_spare(drive).await?;
            // Where it stands in for another by now, it stays.
            let patience = self.inner.background().patience();
            let parted = self.inner.drives().part_with_spare(&spare, patience).await;
            return parted.map(drop);
        }
        let member = self.inner.drives().named_member(name)?;
        if member.is_writable() {
            Spares::of(&self.inner).check_can_lose(&member)?;
        }
        self.add_spare_for(Some(member.group()), drive).await?;
        // Not by name: the new one may have the same.
        self.fail_member(&member).await
    }

    /// Every lane of the pool has been offered the drives that it lacks ([`Lane::drives_missing`]):
    /// drives that a lane still lacks are replaced in all lanes. To be said to each lane.
    pub fn say_completed(&self) {
        self.inner.drives().lane().registry.say_completed();
        self.inner.wake_background();
    }

    /// Drives that the first lane has, in groups that this one has too or as spares, and
    /// this one has not: their adding was cut short. They are to be added as spares.
    pub fn drives_missing(&self, first: &PoolInfo) -> Vec<String> {
        let drives = self.inner.drives();
        let groups = drives.groups();
        let is_here = |group: u16| {
            let group = groups.get(usize::from(group));
            group.is_some_and(|group| group.drives() > 0)
        };
        let own = drives.members().into_iter().chain(drives.spares());
        let own: Vec<Uuid> = own.map(|member| member.uuid).collect();
        let of_groups = first.members.iter();
        // One that is copied is about to leave the pool.
        let of_groups =
            of_groups.filter(|member| is_here(member.group) && member.successor.is_none());
        of_groups
            .chain(&first.spares)
            .filter(|member| member.state != MemberState::Failed && !own.contains(&member.uuid))
            .map(|member| member.name.clone())
            .collect()
    }

    /// Whether a group has a drive of this name.
    pub fn has_drive(&self, name: &str) -> bool {
        self.inner.drives().named_member(name).is_ok()
    }

    /// That a drive could be taken out of use now, or is.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` when the pool can't do without it.
    pub fn can_do_without(&self, name: &str) -> Result<(), PoolError> {
        let member = self.inner.drives().named_member(name)?;
        match member.is_writable() {
            true => Spares::of(&self.inner).check_can_lose(&member),
            false => Ok(()),
        }
    }

    /// Whether the group of a drive keeps some redundancy when that drive goes. Without a drive
    /// that is out of use, nothing changes.
    ///
    /// # Errors
    /// As [`Lane::can_do_without`].
    pub fn is_covered_without(&self, name: &str) -> Result<bool, PoolError> {
        self.can_do_without(name)?;
        let member = self.inner.drives().named_member(name)?;
        Ok(!member.is_writable() || self.inner.drives().is_covered_without(&member))
    }

    /// Closes a drive that has failed, so that another can be opened in its place.
    ///
    /// # Errors
    /// `NotFound`; `Busy` when it is in use.
    pub fn let_go(&self, name: &str) -> Result<(), PoolError> {
        let spare = self.inner.drives().named_spare(name);
        let member = spare.map_or_else(|| self.inner.drives().named_member(name), Ok)?;
        if member.is_writable() || member.state() == MemberState::Spare {
            let context = format!("drive '{name}' is in use");
            return Err(PoolError::new(PoolErrorKind::Busy, context));
        }
        member.let_go();
        Ok(())
    }

    /// Limits work in the background.
    pub fn set_rates(&self, rates: super::Rates) {
        self.inner.background().pace().set_rates(rates);
    }
}

/// That the drive called `spare` takes the place of `failed`. One that was replaced may have passed
/// on its name.
fn stands_in(spare: &str, failed: &str) -> String {
    match spare == failed {
        true => format!("the new drive '{spare}' stands in for the old '{failed}'"),
        false => format!("drive '{spare}' stands in for '{failed}'"),
    }
}
