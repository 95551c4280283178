//! Writing labels.

use super::{Drives, EventKind};
use crate::label::{Label, MemberEntry, SLOT_OFFSETS};
use crate::pool::{PoolError, PoolErrorKind};
use crate::raid::{DriveFault, Member};
use crate::world::World;
use base::DriveOffset;
use futures_util::future::join_all;
use std::rc::Rc;

impl<W: World> Drives<W> {
    /// The member table has changed and is to be made durable.
    pub fn want_labels(&self) {
        self.wanted.set(self.wanted.get() + 1);
    }

    /// Ends when every change of the member table so far is on the labels of all
    /// drives in use. A drive that fails meanwhile is taken out too; when the pool
    /// needs it, the pool stops.
    pub async fn settle_labels(&self) {
        while self.durable.get() != self.wanted.get() {
            let _writing = self.writing.lock().await;
            let wanted = self.wanted.get();
            if self.durable.get() == wanted {
                return;
            }
            if let Err(error) = self.write_labels(|_| ()).await {
                self.stop(error.context);
                return;
            }
            self.durable.set(wanted);
        }
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
        let label = {
            let table = self.table();
            let mut label = self.label.borrow_mut();
            label.generation += 1;
            label.members = table;
            for (entry, group) in label.groups.iter_mut().zip(self.groups.borrow().iter()) {
                entry.level = group.level();
            }
            change(&mut label);
            label.clone()
        };
        self.send_labels(&label, |_| true).await
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
        let mut to = self.members();
        to.retain(|member| member.is_writable());
        // Spares belong to the pool, too.
        to.extend(self.spares());
        to.retain(|member| concerns(member));
        let writes = to.into_iter().map(async |member| {
            let outcome = self.write_label(&member, label).await;
            outcome.map(|error| DriveFault { member, error })
        });
        self.expel_all(join_all(writes).await.into_iter().flatten().collect())
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
        let slot = DriveOffset(SLOT_OFFSETS[(label.generation % 2) as usize]);
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
        let mut spares = self.spares.borrow_mut();
        let before = spares.len();
        spares.retain(|spare| !Rc::ptr_eq(spare, member));
        let dropped = spares.len() < before;
        if dropped {
            self.event(
                EventKind::DriveFailed,
                format!(
                    "spare '{}' has failed and is no spare any more",
                    member.name
                ),
            );
        }
        dropped
    }
}
