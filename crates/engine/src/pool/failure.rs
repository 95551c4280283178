//! Taking a failed drive out of use, durably.
//!
//! Invariant: nothing that a drive missed is acknowledged before the labels of the
//! others say that it has failed. So an opening never trusts it again.

use super::inner::Inner;
use super::{MemberState, PoolError, PoolErrorKind};
use crate::drive::DriveError;
use crate::label::{Label, SLOT_OFFSETS};
use crate::raid::{Fault, Member};
use crate::world::World;
use base::DriveOffset;
use futures_util::future::join_all;

impl<W: World> Inner<W> {
    /// Takes the drives of `faults` out of use and makes that durable.
    ///
    /// # Errors
    /// The fault of a drive that the pool can't do without: it stays in use, and
    /// what it was to do has failed.
    pub async fn absorb(&self, faults: &[Fault]) -> Result<(), DriveError> {
        for Fault { place, error } in faults {
            if self.group.members[*place].is_healthy() && !self.expel(*place) {
                if self.group.survives_without(*place) {
                    // Its data has another copy, the metadata has not: copies would
                    // differ with nobody to tell which is right.
                    self.stop(format!("the last drive with metadata failed: {error}"));
                }
                return Err(error.clone());
            }
        }
        for Fault { place, error } in faults {
            // Not healthy any more and nobody to stand in: it was the last of its
            // column when the operation began.
            if !self.group.survives_without(*place) {
                return Err(error.clone());
            }
        }
        self.settle_labels().await;
        Ok(())
    }

    /// Marks the member as failed in memory; false when the pool needs it.
    fn expel(&self, place: usize) -> bool {
        let member = &self.group.members[place];
        let metadata_elsewhere = || {
            self.metadata_members()
                .any(|other| usize::from(other.place) != place)
        };
        if !self.group.survives_without(place) || (member.metadata && !metadata_elsewhere()) {
            return false;
        }
        member.set_failed();
        self.labels.wanted.set(self.labels.wanted.get() + 1);
        true
    }

    /// Healthy members that carry metadata.
    pub fn metadata_members(&self) -> impl Iterator<Item = &Member<W>> {
        let members = self.group.members.iter().map(AsRef::as_ref);
        members.filter(|member: &&Member<W>| member.metadata && member.is_healthy())
    }

    /// Ends when every change of the member table so far is on the labels of all
    /// healthy drives. A drive that fails meanwhile is taken out too; when the pool
    /// needs it, the pool stops.
    pub async fn settle_labels(&self) {
        while self.labels.durable.get() != self.labels.wanted.get() {
            let _writing = self.labels.writing.lock().await;
            let wanted = self.labels.wanted.get();
            if self.labels.durable.get() == wanted {
                return;
            }
            if let Err(error) = self.write_labels(|_| ()).await {
                self.stop(error.context);
                return;
            }
            self.labels.durable.set(wanted);
        }
    }

    /// Writes the next generation of labels, changed by `change`, to every healthy
    /// drive. The caller holds the label lock, or is the only one there.
    pub async fn write_labels(&self, change: impl FnOnce(&mut Label)) -> Result<(), PoolError> {
        let label = {
            let mut label = self.labels.current.borrow_mut();
            label.generation += 1;
            for (entry, member) in label.members.iter_mut().zip(&self.group.members) {
                let healthy = member.is_healthy();
                entry.state = if healthy {
                    MemberState::Healthy
                } else {
                    MemberState::Failed
                };
            }
            change(&mut label);
            label.clone()
        };
        self.send_labels(&label, |_| true).await
    }

    /// Writes the present labels again to those members at `places` that are in use.
    pub async fn repeat_labels(&self, places: &[usize]) -> Result<(), PoolError> {
        let label = self.labels.current.borrow().clone();
        self.send_labels(&label, |place| places.contains(&place))
            .await
    }

    async fn send_labels(
        &self,
        label: &Label,
        concerns: impl Fn(usize) -> bool,
    ) -> Result<(), PoolError> {
        let members = self.group.members.iter();
        let healthy =
            members.filter(|member| member.is_healthy() && concerns(usize::from(member.place)));
        let writes = healthy.map(|member| self.write_label(member, label));
        self.expel_all(join_all(writes).await)
    }

    /// Flushes every drive in use.
    pub async fn flush_members(&self) -> Result<(), PoolError> {
        let flush = async |member: &Member<W>| {
            let outcome = member.flush().await;
            outcome.err().map(|error| Fault {
                place: usize::from(member.place),
                error,
            })
        };
        let members = self.group.members.iter().map(AsRef::as_ref);
        let healthy = members.filter(|member: &&Member<W>| member.is_healthy());
        self.expel_all(join_all(healthy.map(flush)).await)
    }

    /// Takes the drives of `faults` out of use in memory; an error when the pool
    /// needs one of them.
    fn expel_all(&self, faults: Vec<Option<Fault>>) -> Result<(), PoolError> {
        for fault in faults.into_iter().flatten() {
            let name = &self.group.members[fault.place].name;
            if !self.expel(fault.place) {
                let context = format!("drive '{name}': {}", fault.error);
                return Err(PoolError::new(PoolErrorKind::Drive, context));
            }
        }
        Ok(())
    }

    async fn write_label(&self, member: &Member<W>, label: &Label) -> Option<Fault> {
        let own = Label {
            drive_uuid: member.uuid,
            ..label.clone()
        };
        let slot = DriveOffset(SLOT_OFFSETS[(label.generation % 2) as usize]);
        let bytes = self.world.buffers().copy_of(&own.encode()).freeze();
        let outcome = member.write_durably(slot, bytes).await;
        outcome.err().map(|error| Fault {
            place: usize::from(member.place),
            error,
        })
    }
}
