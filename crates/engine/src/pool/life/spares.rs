//! Who stands in for whom.

use crate::drive::Drive;
use crate::label::{MEMBERS_MAX, MemberEntry};
use crate::pool::create::check_name;
use crate::pool::drives::{EventKind, Group, SPARE_GROUP, stride_bytes};
use crate::pool::{Inner, MemberState, NamedDrive, Pool, PoolError, PoolErrorKind};
use crate::raid::Member;
use crate::world::World;
use std::rc::Rc;

/// A drive that has failed, and the spare that can take its place.
type StandIn<W> = (Rc<Member<W>>, Rc<Member<W>>);

impl<W: World> Inner<W> {
    /// Puts spares in the places of drives that have failed.
    pub(super) async fn take_spares(self: &Rc<Self>) -> Result<(), PoolError> {
        while let Some((failed, spare)) = self.next_stand_in() {
            self.stand_in(&failed, spare).await?;
        }
        Ok(())
    }

    /// Who is to stand in for whom next.
    pub(super) fn next_stand_in(&self) -> Option<StandIn<W>> {
        let members = self.drives.members();
        let failed = members
            .into_iter()
            .find(|member| member.state() == MemberState::Failed)?;
        let spares = self.drives.spares();
        let spare = spares.into_iter().find(|spare| !spare.is_reserved())?;
        let needed = self.needed_of(&self.drives.group(failed.group()));
        (spare.capacity_bytes >= needed).then_some((failed, spare))
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

    fn named_member(&self, name: &str) -> Result<Rc<Member<W>>, PoolError> {
        let found = self
            .drives
            .members()
            .into_iter()
            .find(|member| member.name == name || member.uuid.to_string() == name);
        found.ok_or_else(|| {
            PoolError::new(
                PoolErrorKind::NotFound,
                format!(
                    "there is no drive '{name}' in a group of pool '{}'",
                    self.drives.name()
                ),
            )
        })
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
    /// Takes a drive out of use.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` when the pool can't do without it.
    pub async fn fail_drive(&self, name: &str) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let member = inner.named_member(name)?;
        if !member.is_writable() {
            return Ok(());
        }
        if !inner.drives.can_lose(&member) {
            return Err(PoolError::new(
                PoolErrorKind::Invalid,
                format!(
                    "pool '{}' can't do without drive '{name}' now: it would lose data",
                    inner.drives.name()
                ),
            ));
        }
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
        if let Some(label) = Self::probe(&inner.world, &drive).await? {
            let known = members
                .iter()
                .chain(&spares)
                .find(|member| member.uuid == label.drive_uuid);
            let in_use = known.is_some_and(|member| member.state() != MemberState::Failed);
            if label.pool_uuid != inner.drives.uuid() || in_use {
                return Err(PoolError::new(
                    PoolErrorKind::Exists,
                    format!(
                        "drive '{name}' belongs to pool '{}' already; it is not taken as a spare",
                        label.pool_name
                    ),
                ));
            }
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
    /// first.
    ///
    /// # Errors
    /// As [`Pool::fail_drive`] and [`Pool::add_spare`].
    pub async fn replace_drive(&self, name: &str, drive: NamedDrive<W>) -> Result<(), PoolError> {
        let member = self.inner.named_member(name)?;
        if member.is_writable() && !self.inner.drives.can_lose(&member) {
            return Err(PoolError::new(
                PoolErrorKind::Invalid,
                format!(
                    "pool '{}' can't do without drive '{name}' now: it would lose data",
                    self.inner.drives.name()
                ),
            ));
        }
        self.add_spare(drive).await?;
        self.fail_drive(name).await
    }

    /// Closes a drive that has failed, so that another can be opened in its place.
    ///
    /// # Errors
    /// `NotFound`; `Busy` when it is in use.
    pub fn let_go(&self, name: &str) -> Result<(), PoolError> {
        let member = self.inner.named_member(name)?;
        if member.is_writable() {
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
