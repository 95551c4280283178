//! Spares, and the drives that they stand in for.

use crate::drive::Drive;
use crate::drives::Member;
use crate::drives::{EventKind, Group, SPARE_GROUP, stride_bytes};
use crate::label::{Label, MEMBERS_MAX, MemberEntry};
use crate::pool::create::check_name;
use crate::pool::label_reads::read_slots;
use crate::pool::{
    LabelSummary, Lane, MemberState, NamedDrive, PoolError, PoolErrorKind, PoolInfo,
};
use crate::space::LaneState;
use crate::world::World;
use base::Uuid;
use base::size::human_pair;
use std::rc::Rc;
use std::time::Duration;

/// How often, and how far apart, a label is looked for that is being written.
const LABEL_LOOKS: u32 = 10;
const LABEL_PAUSE: Duration = Duration::from_millis(5);

/// A drive that has failed, and the spare for its place.
type StandIn<W> = (Rc<Member<W>>, Rc<Member<W>>);

/// Whether a spare can stand in where so many bytes are needed.
fn is_fit<W: World>(spare: &Member<W>, needed_bytes: u64) -> bool {
    !spare.is_reserved() && !spare.has_trouble() && spare.capacity_bytes >= needed_bytes
}

impl<W: World> LaneState<W> {
    /// Puts spares in the places of drives that have failed.
    pub(super) async fn take_spares(self: &Rc<Self>) -> Result<(), PoolError> {
        while let Some((failed, spare)) = self.next_to_stand_in() {
            let standing = (failed.group(), failed.place());
            let lane = self.drives.lane();
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
        let mut failed = self.drives.members();
        failed.retain(|member| member.state() == MemberState::Failed);
        // One that comes back under its name comes back to its place.
        let comes_back = |failed: &Rc<Member<W>>| {
            let spares = self.drives.spares();
            spares.iter().any(|spare| spare.name == failed.name)
        };
        // Where the next failure would lose data, a spare is needed most.
        failed.sort_by_key(|failed| (!comes_back(failed), self.redundancy_left_beside(failed)));
        failed.into_iter().find_map(|failed| {
            let spare = self.spare_for(&failed)?;
            Some((failed, spare))
        })
    }

    /// A spare that is large enough, and that no other lane has anywhere else.
    fn spare_for(&self, failed: &Member<W>) -> Option<Rc<Member<W>>> {
        let needed = self.needed_of(&self.drives.group(failed.group()));
        let standing = (failed.group(), failed.place());
        let lane = self.drives.lane();
        if !lane.registry.all_opened() {
            // Who is not open yet may have it elsewhere.
            return None;
        }
        let mut spares = self.drives.spares();
        // The one that stands there in other lanes goes before all others.
        let there = lane.registry.stand_in(lane.index, standing, failed.uuid);
        spares.sort_by_key(|spare| (Some(spare.uuid) != there, spare.name != failed.name));
        spares.into_iter().find(|spare| {
            is_fit(spare, needed) && lane.registry.could_stand(lane.index, spare.uuid, standing)
        })
    }

    /// Takes drives out of use that other lanes were ordered to take out; and those whose
    /// places other lanes have given to a spare, where nothing else is missing: a drive that
    /// one lane can't use is replaced in all. A drive that waits there to stand in, since it
    /// came back, is not among these: nothing is wrong with it, and without it this lane
    /// could lose one drive less until the spare is rebuilt. Nor is one that a lane has not been
    /// offered yet since the opening.
    pub(super) async fn follow_others(self: &Rc<Self>) -> Result<(), PoolError> {
        let lane = self.drives.lane();
        if lane.registry.lanes() == 1 {
            return Ok(());
        }
        for member in self.drives.members() {
            let is_ordered = lane.registry.is_ordered_out(member.uuid) && member.is_writable();
            if is_ordered && self.drives.can_lose(&member) {
                self.world.reached("lane follows an order to another");
                self.take_out_by_command(&member).await?;
                continue;
            }
            let standing = (member.group(), member.place());
            let other = match self.world.planted("usable drive given up for another lane") {
                true => lane.registry.stand_in(lane.index, standing, member.uuid),
                false if lane.registry.is_completed() => {
                    lane.registry.replaced_by(lane.index, standing, member.uuid)
                }
                false => None,
            };
            let group = self.drives.group(member.group());
            let (spares, needed) = (self.drives.spares(), self.needed_of(&group));
            let is_spare = |uuid| {
                let mut spares = spares.iter();
                spares.any(|spare| spare.uuid == uuid && is_fit(spare, needed))
            };
            let whole = group.places().iter().all(|member| member.is_whole());
            if other.is_some_and(is_spare) && whole {
                self.world.reached("lane follows another's spare");
                let why = "a spare stands in for it in another lane of the pool";
                self.drives.give_up(vec![(member, why.to_owned())]);
                self.drives.settle_labels().await;
                self.check()?;
            }
        }
        Ok(())
    }

    /// `spare` takes the place of `failed`; a rebuild gives it what it should hold.
    async fn stand_in(
        self: &Rc<Self>,
        failed: &Rc<Member<W>>,
        spare: Rc<Member<W>>,
    ) -> Result<(), PoolError> {
        // No zone is taken into use meanwhile: it would be written to one of both, and
        // believed to be on the other.
        let _settled = self.zone_changes().settle().await;
        let (group, place) = (failed.group(), failed.place());
        let spares = self.drives.spares();
        let is_there = spares.iter().any(|other| Rc::ptr_eq(other, &spare));
        let in_place = self.drives.group(group).place(usize::from(place));
        if !is_there || !Rc::ptr_eq(&in_place, failed) {
            // By command, while this waited.
            return self.check();
        }
        self.drives
            .change_spares(|spares| spares.retain(|other| !Rc::ptr_eq(other, &spare)));
        spare.set_place(group, place);
        spare.set_metadata(false);
        spare.set_log(false);
        spare.rebuilt().borrow_mut().clear();
        spare.set_state(match self.world.planted("spare counts as whole at once") {
            true => MemberState::Healthy,
            false => MemberState::Rebuilding,
        });
        self.drives
            .group(group)
            .put(usize::from(place), Rc::clone(&spare));
        self.drives.want_labels();
        self.drives.settle_labels().await;
        self.world.reached("spare taken");
        self.drives.event(
            EventKind::SpareTaken,
            format!(
                "{} (place {place} of group {group})",
                stands_in(&spare.name, &failed.name)
            ),
        );
        self.check()
    }

    /// The label that the first lane has on a drive. Others look for it while the first
    /// may be writing the next, so they look again.
    pub(super) async fn label_of_first_lane(
        &self,
        drive: &W::Drive,
    ) -> Result<Option<LabelSummary>, PoolError> {
        let mut looks = match self.drives.lane().index {
            0 => 1,
            _ => LABEL_LOOKS,
        };
        loop {
            let found = Lane::<W>::probe(&self.world, drive).await?;
            looks -= 1;
            if found.is_some() || looks == 0 {
                return Ok(found);
            }
            self.world.sleep(LABEL_PAUSE).await;
        }
    }

    /// What the label says that this lane has on a drive: it may be in use here as another
    /// than the first lane takes it for.
    pub(super) async fn own_label(
        &self,
        drive: &W::Drive,
    ) -> Result<Option<LabelSummary>, PoolError> {
        let part = self.identity().part();
        let label = read_slots(&self.world, drive, part).await?;
        let label = label.and_then(|label| LabelSummary::of(&label));
        let planted = self.world.planted("drive in two places of a lane");
        Ok(label.filter(|label| label.pool_uuid == self.drives.uuid() && !planted))
    }

    /// That no other lane uses a drive which the first one has let go of: it would be
    /// another in each.
    ///
    /// # Errors
    /// `Exists` when one does.
    pub(super) fn check_unused_elsewhere(
        &self,
        name: &str,
        label: &LabelSummary,
    ) -> Result<(), PoolError> {
        let lane = self.drives.lane();
        let planted = self.world.planted("drive in two places of a lane");
        let is_asked = lane.index == 0 && lane.registry.lanes() > 1 && !planted;
        let user = lane.registry.user_beside(lane.index, label.drive_uuid);
        match user.filter(|_| is_asked) {
            None => Ok(()),
            Some(user) => Err(PoolError::new(
                PoolErrorKind::Exists,
                format!(
                    "drive '{name}' is in use in lane {user} of pool '{}': run `ashlar drive fail \
                     {name}` before you add it",
                    self.drives.name()
                ),
            )),
        }
    }

    /// Takes a drive out of use as it was ordered, durably. What is in flight on it ends.
    ///
    /// In a pool of one lane its own label says so first, where it answers: it has old data from
    /// now on, and must not open the pool with that when the other drives are away.
    async fn take_out_by_command(&self, member: &Member<W>) -> Result<(), PoolError> {
        let is_told = !self.world.planted("drive not told that it is out of use");
        // A lane may keep a drive that another lane takes out, and be the one that is right.
        let is_alone = self.drives.lane().registry.lanes() == 1;
        if is_told && is_alone && !member.vitals().is_late() {
            let mark = |label: &mut Label| {
                let entries = label.members.iter_mut();
                for entry in entries.filter(|entry| entry.uuid == member.uuid) {
                    entry.state = MemberState::Failed;
                }
            };
            self.drives.write_labels_alone(mark).await?;
        }
        member.order_out();
        self.drives
            .take_out(member, "was taken out of use by command");
        self.drives.settle_labels().await;
        self.wake_background();
        self.check()
    }

    fn check_can_lose(&self, member: &Rc<Member<W>>) -> Result<(), PoolError> {
        match self.drives.can_lose(member) {
            true => Ok(()),
            false => Err(PoolError::new(
                PoolErrorKind::Invalid,
                format!(
                    "pool '{}' can't do without drive '{}' now: it would lose data",
                    self.drives.name(),
                    member.name
                ),
            )),
        }
    }

    /// That the pool may have another drive, of this name.
    pub(super) fn check_new_spare(&self, name: &str) -> Result<(), PoolError> {
        check_name("drive", name)?;
        if self.drives.members().len() + self.drives.spares().len() >= MEMBERS_MAX {
            return Err(PoolError::new(
                PoolErrorKind::Invalid,
                format!(
                    "pool '{}' has {MEMBERS_MAX} drives already",
                    self.drives.name()
                ),
            ));
        }
        Ok(())
    }

    /// The identity of a spare that is added beside so many.
    fn spare_uuid(&self, name: &str, spares: usize) -> Uuid {
        let at = self.world.now().as_nanos();
        let stream = format!("spare {name} {at} {spares}");
        self.world.prng(&stream).uuid()
    }

    /// That a drive with such a label of the first lane is free to be a spare.
    async fn check_free(
        &self,
        name: &str,
        drive: &W::Drive,
        found: Option<&LabelSummary>,
    ) -> Result<(), PoolError> {
        let is_first = self.drives.lane().index == 0;
        // Lanes after the first find the label that the first has just given it.
        if !is_first && found.is_none_or(|label| label.pool_uuid != self.drives.uuid()) {
            let context = format!(
                "drive '{name}' is not part of the first lane of pool '{}' yet",
                self.drives.name()
            );
            return Err(PoolError::new(PoolErrorKind::Invalid, context));
        }
        let own = match is_first {
            true => None,
            false => self.own_label(drive).await?,
        };
        let mut labels = found.into_iter().chain(&own);
        if let Some(label) = labels.find(|label| self.drives.has_use_for(label)) {
            let context = format!(
                "drive '{name}' belongs to pool '{}' already; it is not taken as a spare",
                label.pool_name
            );
            return Err(PoolError::new(PoolErrorKind::Exists, context));
        }
        match found {
            Some(label) => self.check_unused_elsewhere(name, label),
            None => Ok(()),
        }
    }

    /// That a drive, of which this lane has so many bytes, can stand in in a group or in any.
    pub(super) fn check_large_enough(
        &self,
        name: &str,
        group: Option<u16>,
        whole_bytes: u64,
        capacity_bytes: u64,
    ) -> Result<(), PoolError> {
        let needed = match self.drives.lane().index {
            0 => self.needed_bytes(group),
            // The first lane has judged it.
            _ => self.least_needed_bytes(),
        };
        if capacity_bytes >= needed {
            return Ok(());
        }
        // Other lanes have parts of it, too.
        let beside = whole_bytes.saturating_sub(capacity_bytes);
        let (there, needed) = human_pair(whole_bytes, needed + beside);
        let what = match group {
            Some(group) => format!("a drive of group {group}"),
            None => "a spare".to_owned(),
        };
        let pool = self.drives.name();
        Err(PoolError::new(
            PoolErrorKind::TooSmall,
            format!(
                "drive '{name}' has {there}, and {what} of pool '{pool}' needs {needed}: use a \
                 larger drive, or delete the file and try again, and Ashlar makes a new one"
            ),
        ))
    }

    /// Bytes that a drive must have to stand in in a group, or anywhere.
    fn needed_bytes(&self, of: Option<u16>) -> u64 {
        let groups = self.drives.groups();
        let all = groups.iter().filter(|group| group.drives() > 0);
        let all = all.filter(|group| of.is_none_or(|of| group.index == of));
        all.map(|group| self.needed_of(group)).max().unwrap_or(0)
    }

    /// Bytes that a drive must have to stand in somewhere.
    fn least_needed_bytes(&self) -> u64 {
        let groups = self.drives.groups();
        let all = groups.iter().filter(|group| group.drives() > 0);
        all.map(|group| self.needed_of(group)).min().unwrap_or(0)
    }

    /// Bytes that the drives of a group must have.
    fn needed_of(&self, group: &Group<W>) -> u64 {
        let stride = stride_bytes(group.drives(), self.identity());
        self.identity().data_start + u64::from(group.zones) * stride
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
        if let Some(spare) = inner.drives.named_spare(name)
            && inner
                .drives
                .part_with_spare(&spare, inner.background().patience())
                .await?
        {
            return Ok(());
        }
        self.fail_member(&inner.drives.named_member(name)?).await
    }

    async fn fail_member(&self, member: &Rc<Member<W>>) -> Result<(), PoolError> {
        let inner = &self.inner;
        if !member.is_writable() {
            return Ok(());
        }
        inner.check_can_lose(member)?;
        inner.take_out_by_command(member).await
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
        let inner = &self.inner;
        inner.check()?;
        let NamedDrive { name, drive } = named;
        inner.check_new_spare(&name)?;
        let spares = inner.drives.spares().len();
        let found = inner.label_of_first_lane(&drive).await?;
        inner.check_free(&name, &drive, found.as_ref()).await?;
        let whole_bytes = drive.geometry().capacity_bytes;
        let drive = inner.drives.view(drive);
        let capacity_bytes = drive.geometry().capacity_bytes;
        inner.check_large_enough(&name, group, whole_bytes, capacity_bytes)?;
        let uuid = match found {
            Some(label) if inner.drives.lane().index > 0 => label.drive_uuid,
            _ => inner.spare_uuid(&name, spares),
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
            capacity_bytes,
            name,
        };
        inner
            .drives
            .change_spares(|spares| spares.push(Rc::new(Member::new(&inner.world, drive, &entry))));
        inner.drives.want_labels();
        inner.drives.settle_labels().await;
        inner.wake_background();
        inner.check()
    }

    /// Has `drive` stand in for the drive called `name`, which is taken out of use
    /// first. In the place of a spare it is one.
    ///
    /// # Errors
    /// As [`Lane::fail_drive`] and [`Lane::add_spare`].
    pub async fn replace_drive(&self, name: &str, drive: NamedDrive<W>) -> Result<(), PoolError> {
        if let Some(spare) = self.inner.drives.named_spare(name) {
            self.add_spare(drive).await?;
            // Where it stands in for another by now, it stays.
            let patience = self.inner.background().patience();
            let parted = self.inner.drives.part_with_spare(&spare, patience).await;
            return parted.map(drop);
        }
        let member = self.inner.drives.named_member(name)?;
        if member.is_writable() {
            self.inner.check_can_lose(&member)?;
        }
        self.add_spare_for(Some(member.group()), drive).await?;
        // Not by name: the new one may have the same.
        self.fail_member(&member).await
    }

    /// Every lane of the pool has been offered the drives that it lacks ([`Lane::drives_missing`]):
    /// drives that a lane still lacks are replaced in all lanes. To be said to each lane.
    pub fn say_completed(&self) {
        self.inner.drives.lane().registry.say_completed();
        self.inner.wake_background();
    }

    /// Drives that the first lane has, in groups that this one has too or as spares, and
    /// this one has not: their adding was cut short. They are to be added as spares.
    pub fn drives_missing(&self, first: &PoolInfo) -> Vec<String> {
        let drives = &self.inner.drives;
        let groups = drives.groups();
        let is_here = |group: u16| {
            let group = groups.get(usize::from(group));
            group.is_some_and(|group| group.drives() > 0)
        };
        let own = drives.members().into_iter().chain(drives.spares());
        let own: Vec<Uuid> = own.map(|member| member.uuid).collect();
        let of_groups = first.members.iter();
        let of_groups = of_groups.filter(|member| is_here(member.group));
        of_groups
            .chain(&first.spares)
            .filter(|member| member.state != MemberState::Failed && !own.contains(&member.uuid))
            .map(|member| member.name.clone())
            .collect()
    }

    /// Whether a group has a drive of this name.
    pub fn has_drive(&self, name: &str) -> bool {
        self.inner.drives.named_member(name).is_ok()
    }

    /// That a drive could be taken out of use now, or is.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` when the pool can't do without it.
    pub fn can_do_without(&self, name: &str) -> Result<(), PoolError> {
        let member = self.inner.drives.named_member(name)?;
        match member.is_writable() {
            true => self.inner.check_can_lose(&member),
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
        let member = self.inner.drives.named_member(name)?;
        Ok(!member.is_writable() || self.inner.drives.is_covered_without(&member))
    }

    /// Closes a drive that has failed, so that another can be opened in its place.
    ///
    /// # Errors
    /// `NotFound`; `Busy` when it is in use.
    pub fn let_go(&self, name: &str) -> Result<(), PoolError> {
        let spare = self.inner.drives.named_spare(name);
        let member = spare.map_or_else(|| self.inner.drives.named_member(name), Ok)?;
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
