//! Writing labels to the drives of a pool.

use super::{Drives, EventKind, Group};
use crate::drives::{DriveFault, Member};
use crate::error::{PoolError, PoolErrorKind};
use crate::label::MemberState;
use crate::label::{GroupEntry, Label, MemberEntry};
use crate::world::World;
use futures_util::future::join_all;
use std::rc::Rc;

impl<W: World> Drives<W> {
    /// The member table has changed and is to be made durable.
    pub fn want_labels(&self) {
        self.wanted.set(self.wanted.get() + 1);
    }

    /// As [`Drives::want_labels`], of a drive that is out of use from now on: nothing is
    /// acknowledged before that is durable.
    pub(super) fn note_loss(&self) {
        self.want_labels();
        self.lost.set(self.wanted.get());
    }

    /// As [`Drives::settle_labels`], for callers who must not wait.
    pub fn settle_labels_soon(self: &Rc<Self>) {
        // One at a time: a needed drive that hangs lets it wait, and it is called again and
        // again meanwhile.
        if self.durable.get() != self.wanted.get() && !self.settling.replace(true) {
            let drives = Rc::clone(self);
            self.world.spawn(async move {
                drives.settle_labels().await;
                drives.settling.set(false);
            });
        }
    }

    /// Ends when every change of the member table so far is on the labels of all
    /// drives in use. A drive that fails meanwhile is taken out too; when the pool
    /// needs it, the pool stops.
    pub async fn settle_labels(&self) {
        while self.durable.get() != self.wanted.get() {
            let _writing = self.writing.lock().await;
            if self.check_failure().is_err() || self.heart.has_ended() {
                return;
            }
            let wanted = self.wanted.get();
            if self.durable.get() == wanted {
                return;
            }
            if self.write_labels(|_| ()).await.is_err() {
                return;
            }
            self.durable.set(wanted);
        }
    }

    /// Ends when no labels are being written.
    pub(super) async fn labels_ended(&self) {
        drop(self.writing.lock().await);
    }

    /// Whether the pool has been closed to its end, or its opening has failed: nothing more is said on
    /// labels.
    pub fn has_ended(&self) -> bool {
        self.heart.has_ended()
    }

    /// As [`Drives::write_labels`], when nobody else writes them.
    pub async fn write_labels_alone(
        &self,
        change: impl FnOnce(&mut Label),
    ) -> Result<(), PoolError> {
        let _writing = self.writing.lock().await;
        self.write_labels(change).await
    }

    /// Writes the next generation of labels, changed by `change`, to every drive in
    /// use. The caller holds the label lock, or is the only one there.
    pub async fn write_labels(&self, change: impl FnOnce(&mut Label)) -> Result<(), PoolError> {
        let label = self.next_label(change);
        self.send_labels(&label, |_| true).await?;
        self.tell_decided();
        Ok(())
    }

    /// The next generation of labels.
    fn next_label(&self, change: impl FnOnce(&mut Label)) -> Label {
        let table = self.table();
        let mut label = self.label.borrow_mut();
        label.generation += 1;
        label.members = table;
        for (entry, group) in label.groups.iter_mut().zip(self.groups.borrow().iter()) {
            entry.level = group.level();
            entry.leaving = group.leaves();
            entry.drives = group.drives() as u16;
        }
        change(&mut label);
        self.tell_standings();
        label.clone()
    }

    /// Says to the other lanes where this one's drives stand.
    pub fn tell_standings(&self) {
        if self.lane.registry.lanes() == 1 {
            return;
        }
        let groups = self.groups();
        let numbers = groups.iter().map(|group| group.numbers).collect();
        let told = self.lane.registry.set_groups(self.lane.index, numbers);
        if let Err(index) = told {
            self.stop(format!("group {index} lies elsewhere in another lane"));
        }
        let members = self.members();
        let successors = self.successors();
        let standings = members
            .iter()
            .chain(&successors)
            .map(|member| (member.uuid, (member.group(), member.place())));
        let registry = &self.lane.registry;
        let spares = self.spares();
        let spares = spares.iter().map(|spare| spare.uuid).collect();
        let failed = members.iter().filter(|member| !member.is_writable());
        let failed = failed.map(|member| member.uuid).collect();
        registry.set_standings(self.lane.index, standings.collect(), failed, spares);
        let copied = members
            .iter()
            .filter_map(|old| Some((old.uuid, old.successor()?.uuid)));
        registry.set_successors(self.lane.index, copied.collect());
    }

    /// Takes in a group. Its drives are reserved spares first, with labels, and a group by one
    /// generation of labels: so an opening never knows of the group and not of its
    /// drives. Reserved spares that no group follows are let go at the next opening.
    ///
    /// # Errors
    /// When one of its drives can't be written: there is no such group then.
    pub async fn add_group(
        &self,
        entry: GroupEntry,
        members: Vec<Rc<Member<W>>>,
    ) -> Result<(), PoolError> {
        let _writing = self.writing.lock().await;
        let is_new = |member: &Rc<Member<W>>| members.iter().any(|new| Rc::ptr_eq(new, member));
        self.change_spares(|spares| {
            // A crash may have kept them from being more.
            spares.retain(|spare| !is_new(spare));
            spares.extend(members.iter().cloned());
        });
        self.write_labels(|_| ()).await?;
        let still = self.spares().iter().filter(|spare| is_new(spare)).count();
        self.change_spares(|spares| spares.retain(|spare| !is_new(spare)));
        if still < members.len() {
            self.write_labels(|_| ()).await?;
            let context = "a drive of the new group can't be written: see the events";
            return Err(PoolError::new(PoolErrorKind::Drive, context));
        }
        let index = self.groups.borrow().len() as u16;
        for (place, member) in (0..).zip(&members) {
            member.set_place(index, place);
            member.set_state(MemberState::Healthy);
            member.set_reserved(false);
        }
        let group = Rc::new(Group::new(index, entry, members, &self.identity));
        self.take_in(group);
        self.write_labels(|label| label.groups.push(entry)).await
    }

    /// A group comes behind the others.
    pub(super) fn take_in(&self, group: Rc<Group<W>>) {
        self.numbers.add(group.numbers);
        self.groups.borrow_mut().push(group);
    }

    fn table(&self) -> Vec<MemberEntry> {
        let spares = self.spares();
        let members = self.members();
        members
            .iter()
            .chain(&spares)
            .map(|member| member.entry())
            .collect()
    }

    /// Writes the present labels again to those drives of `drives` that are in use.
    pub async fn repeat_labels(&self, drives: &[base::Uuid]) -> Result<(), PoolError> {
        let label = self.label.borrow().clone();
        self.send_labels(&label, |member| drives.contains(&member.uuid))
            .await
    }

    async fn send_labels(
        &self,
        label: &Label,
        concerns: impl Fn(&Member<W>) -> bool,
    ) -> Result<(), PoolError> {
        self.check_failure()?;
        let mut to = self.members();
        to.retain(|member| member.is_writable());
        // Spares belong to the pool, too.
        to.extend(self.spares());
        to.retain(|member| concerns(member));
        let writes = to.into_iter().map(async |member| {
            let outcome = self.write_label(&member, label).await;
            outcome.map(|error| DriveFault { member, error })
        });
        let faults = join_all(writes).await.into_iter().flatten().collect();
        // A needed drive that lacks one generation may be opened with. With another it would
        // be stale, and no opening would find enough drives.
        self.expel_all(faults).inspect_err(|error| {
            if !self.world.planted("labels go on after a needed drive") {
                self.stop(error.context.clone());
            }
        })
    }

    async fn write_label(
        &self,
        member: &Rc<Member<W>>,
        label: &Label,
    ) -> Option<crate::drive::DriveError> {
        let own = Label {
            drive_uuid: member.uuid,
            ..label.clone()
        };
        let slot = label.slot_offset();
        let bytes = self.world.buffers().copy_of(&own.encode()).freeze();
        member.write_durably(slot, bytes).await.err()
    }

    /// Flushes every drive in use.
    ///
    /// # Errors
    /// When one fails that the pool needs.
    pub async fn flush_members(&self) -> Result<(), PoolError> {
        let mut members = self.members();
        members.retain(|member| member.is_writable());
        let flushes = members.into_iter().map(async |member| {
            let outcome = member.flush().await;
            outcome.err().map(|error| DriveFault { member, error })
        });
        self.expel_all(join_all(flushes).await.into_iter().flatten().collect())
    }

    /// Takes the drives of `faults` out of use in memory; an error when the pool
    /// needs one of them.
    fn expel_all(&self, faults: Vec<DriveFault<W>>) -> Result<(), PoolError> {
        self.check_failure()?;
        for fault in faults {
            if self.drop_spare(&fault.member) {
                continue;
            }
            if fault.member.is_writable() && !self.expel(&fault) {
                let context = format!("drive '{}': {}", fault.member.name, fault.error);
                return Err(PoolError::new(PoolErrorKind::Drive, context));
            }
        }
        Ok(())
    }

    /// Whether it was a spare: it is none any more.
    pub(super) fn drop_spare(&self, member: &Rc<Member<W>>) -> bool {
        let mut dropped = false;
        // While it is one: nothing is written to it without being told of.
        self.leave_successor(member);
        self.change_spares(|spares| {
            let before = spares.len();
            spares.retain(|spare| !Rc::ptr_eq(spare, member));
            dropped = spares.len() < before;
        });
        if dropped {
            // Where it comes back the other lanes are asked whether they have it.
            self.tell_standings();
            self.event(
                EventKind::DriveFailed,
                format!(
                    "spare '{}' has failed and is no spare any more{}",
                    member.name,
                    member
                        .serial()
                        .map_or_else(String::new, |serial| format!(" (serial {serial})"))
                ),
            );
        }
        dropped
    }
}
