//! Who stands in for whom.

use crate::drive::Drive;
use crate::label::{MEMBERS_MAX, MemberEntry};
use crate::pool::create::check_name;
use crate::pool::drives::{EventKind, Group, SPARE_GROUP, stride_bytes};
use crate::pool::{Inner, MemberState, NamedDrive, Pool, PoolError, PoolErrorKind};
use crate::raid::Member;
use crate::world::World;
use std::rc::Rc;

/// A drive that has failed, and the spare for its place.
type StandIn<W> = (Rc<Member<W>>, Rc<Member<W>>);

impl<W: World> Inner<W> {
    /// Puts spares in the places of drives that have failed.
    pub(super) async fn take_spares(self: &Rc<Self>) -> Result<(), PoolError> {
        while let Some((failed, spare)) = self.next_to_stand_in() {
            self.stand_in(&failed, spare).await?;
        }
        Ok(())
    }

    /// A drive that has failed, and a spare that is large enough for its place.
    pub(super) fn next_to_stand_in(&self) -> Option<StandIn<W>> {
        let mut failed = self.drives.members();
        failed.retain(|member| member.state() == MemberState::Failed);
        if failed.is_empty() {
            return None;
        }
        let mut spares = self.drives.spares();
        spares.retain(|spare| !spare.is_reserved());
        let pair = |failed: &Rc<Member<W>>, is_wanted: &dyn Fn(&Member<W>) -> bool| {
            let needed = self.needed_of(&self.drives.group(failed.group()));
            let mut fit = spares.iter().filter(|spare| spare.capacity_bytes >= needed);
            let spare = fit.find(|spare| is_wanted(spare))?;
            Some((Rc::clone(failed), Rc::clone(spare)))
        };
        // One that comes back under its name comes back to its place.
        let back = failed
            .iter()
            .find_map(|failed| pair(failed, &|spare| spare.name == failed.name));
        back.or_else(|| failed.iter().find_map(|failed| pair(failed, &|_| true)))
    }

    /// `spare` takes the place of `failed`; a rebuild gives it what it should hold.
    async fn stand_in(
        self: &Rc<Self>,
        failed: &Rc<Member<W>>,
        spare: Rc<Member<W>>,
    ) -> Result<(), PoolError> {
        // No zone is taken into use meanwhile: it would be written to one of both, and
        // believed to be on the other.
        let _alone = self.zoning.lock().await;
        let (group, place) = (failed.group(), failed.place());
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
                "drive '{}' stands in for '{}' (place {place} of group {group})",
                spare.name, failed.name
            ),
        );
        self.check()
    }

    fn named_spare(&self, name: &str) -> Option<Rc<Member<W>>> {
        let spares = self.drives.spares().into_iter();
        let mut free = spares.filter(|spare| !spare.is_reserved());
        free.find(|spare| spare.name == name || spare.uuid.to_string() == name)
    }

    fn named_member(&self, name: &str) -> Result<Rc<Member<W>>, PoolError> {
        let found = self
            .drives
            .members()
            .into_iter()
            .find(|member| member.name == name || member.uuid.to_string() == name);
        found.ok_or_else(|| {
            let context = format!(
                "there is no drive '{name}' in a group of pool '{}'",
                self.drives.name()
            );
            PoolError::new(PoolErrorKind::NotFound, context)
        })
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

    /// Bytes that a drive must have to stand in anywhere.
    fn needed_bytes(&self) -> u64 {
        let groups = self.drives.groups();
        let all = groups.iter().filter(|group| group.drives() > 0);
        all.map(|group| self.needed_of(group)).max().unwrap_or(0)
    }

    /// Bytes that the drives of a group must have.
    fn needed_of(&self, group: &Group<W>) -> u64 {
        let stride = stride_bytes(group.drives(), self.identity());
        self.identity().data_start + u64::from(group.zones) * stride
    }
}

impl<W: World> Pool<W> {
    /// Takes a drive out of use. A spare is part of the pool no more then, and free.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` when the pool can't do without it.
    pub async fn fail_drive(&self, name: &str) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        if let Some(spare) = inner.named_spare(name)
            && inner.drives.part_with_spare(&spare).await?
        {
            return Ok(());
        }
        self.fail_member(&inner.named_member(name)?).await
    }

    async fn fail_member(&self, member: &Rc<Member<W>>) -> Result<(), PoolError> {
        let (inner, name) = (&self.inner, &member.name);
        if !member.is_writable() {
            return Ok(());
        }
        inner.check_can_lose(member)?;
        member.set_state(MemberState::Failed);
        inner.drives.event(
            EventKind::DriveFailed,
            format!("drive '{name}' was taken out of use by command"),
        );
        inner.drives.want_labels();
        inner.drives.settle_labels().await;
        inner.wake_life();
        inner.check()
    }

    /// Adds a drive that stands in for the next one that fails, or for one that has
    /// failed. A drive that was part of this pool before, and is no more, may come
    /// back like this; what is on it is lost.
    ///
    /// # Errors
    /// `Exists` for a drive of another pool, or in use in this one; `TooSmall`;
    /// `Invalid` for a name or a number that can't be.
    pub async fn add_spare(&self, named: NamedDrive<W>) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let NamedDrive { name, drive } = named;
        check_name("drive", &name)?;
        let members = inner.drives.members();
        let spares = inner.drives.spares();
        if members.len() + spares.len() >= MEMBERS_MAX {
            return Err(PoolError::new(
                PoolErrorKind::Invalid,
                format!(
                    "pool '{}' has {MEMBERS_MAX} drives already",
                    inner.drives.name()
                ),
            ));
        }
        if let Some(label) = Self::probe(&inner.world, &drive).await?
            && inner.drives.has_use_for(&label)
        {
            return Err(PoolError::new(
                PoolErrorKind::Exists,
                format!(
                    "drive '{name}' belongs to pool '{}' already; it is not taken as a spare",
                    label.pool_name
                ),
            ));
        }
        let (capacity_bytes, needed) = (drive.geometry().capacity_bytes, inner.needed_bytes());
        if capacity_bytes < needed {
            return Err(PoolError::new(
                PoolErrorKind::TooSmall,
                format!(
                    "drive '{name}' has {capacity_bytes} bytes, and a spare of pool '{}' needs {needed}",
                    inner.drives.name()
                ),
            ));
        }
        let entry = MemberEntry {
            uuid: inner
                .world
                .prng(&format!(
                    "spare {name} {} {}",
                    inner.world.now().as_nanos(),
                    spares.len()
                ))
                .uuid(),
            group: SPARE_GROUP,
            place: spares.len() as u16,
            state: MemberState::Spare,
            metadata: false,
            log: false,
            capacity_bytes,
            name,
        };
        inner
            .drives
            .change_spares(|spares| spares.push(Rc::new(Member::new(&inner.world, drive, &entry))));
        inner.drives.want_labels();
        inner.drives.settle_labels().await;
        inner.wake_life();
        inner.check()
    }

    /// Has `drive` stand in for the drive called `name`, which is taken out of use
    /// first. In the place of a spare it is one.
    ///
    /// # Errors
    /// As [`Pool::fail_drive`] and [`Pool::add_spare`].
    pub async fn replace_drive(&self, name: &str, drive: NamedDrive<W>) -> Result<(), PoolError> {
        if let Some(spare) = self.inner.named_spare(name) {
            self.add_spare(drive).await?;
            // Where it stands in for another by now, it stays.
            return self.inner.drives.part_with_spare(&spare).await.map(drop);
        }
        let member = self.inner.named_member(name)?;
        if member.is_writable() {
            self.inner.check_can_lose(&member)?;
        }
        self.add_spare(drive).await?;
        // Not by name: the new one may have the same.
        self.fail_member(&member).await
    }

    /// Closes a drive that has failed, so that another can be opened in its place.
    ///
    /// # Errors
    /// `NotFound`; `Busy` when it is in use.
    pub fn let_go(&self, name: &str) -> Result<(), PoolError> {
        let spare = self.inner.named_spare(name);
        let member = spare.map_or_else(|| self.inner.named_member(name), Ok)?;
        if member.is_writable() || member.state() == MemberState::Spare {
            let context = format!("drive '{name}' is in use");
            return Err(PoolError::new(PoolErrorKind::Busy, context));
        }
        member.let_go();
        Ok(())
    }

    /// Limits work in the background.
    pub fn set_rates(&self, rates: super::Rates) {
        self.inner.life.pace.set_rates(rates);
    }
}
