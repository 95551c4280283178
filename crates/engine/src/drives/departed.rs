//! Drives that are no longer part of the pool: those of groups that have left, and spares.
//!
//! Invariants:
//! - A drive is wiped of a lane's labels only when no label of any lane tells of it, durably.
//! - Nobody waits for a drive that does not answer: its label stays, and is known to be old.

use super::{Drives, EventKind, Group};
use crate::drives::Member;
use crate::error::PoolError;
use crate::label::MemberState;
use crate::label::{GroupEntry, MemberEntry};
use crate::lane::{Departure, View};
use crate::world::World;
use base::{DriveOffset, Uuid};
use futures_channel::oneshot;
use futures_util::future::{join_all, select};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// What is wiped of each lane's part of a drive: more than the label, so that whoever looks for
/// something to lose finds nothing.
pub(crate) const WIPED_BYTES: u64 = 1 << 20;

/// As lanes once did.
pub const HASTY: &str = "drives of a group wiped before every lane has left";

impl<W: World> Drives<W> {
    /// What the labels say of groups, and of drives that are to go, is durable: the other
    /// lanes hear it.
    pub(super) fn tell_decided(&self) {
        let label = self.label.borrow();
        self.lane.registry.decide(self.lane.index, &label.groups);
        let out = label.members.iter().filter(|entry| entry.ordered_out);
        let out = out.map(|entry| entry.uuid).collect();
        self.lane.registry.order_out(self.lane.index, out);
    }

    /// Says to the other lanes which groups have left this one before, and what their
    /// labels decide of the others.
    pub fn tell_groups(&self) {
        self.tell_decided();
        for group in self.groups() {
            if group.drives() == 0 {
                let stage = match group.departed().is_empty() {
                    true => Departure::Wiped,
                    false => Departure::Left,
                };
                let registry = &self.lane.registry;
                registry.say_departure(self.lane.index, group.index, stage);
            }
        }
    }

    /// Lets a group go that holds nothing any more. Its drives keep the labels that they
    /// have, for [`Drives::wipe_departed`].
    ///
    /// # Errors
    /// When labels can't be written.
    pub async fn drop_group(&self, group: &Group<W>) -> Result<(), PoolError> {
        let _writing = self.writing.lock().await;
        let successors = group.places().into_iter();
        for successor in successors.filter_map(|member| member.successor()) {
            self.call_off_succession(&successor);
        }
        group.drop_places();
        self.write_labels(|_| ()).await
    }

    /// Drives of groups that have left, which are not wiped yet.
    pub fn departed(&self) -> Vec<Rc<Member<W>>> {
        let groups = self.groups.borrow();
        groups.iter().flat_map(|group| group.departed()).collect()
    }

    /// Wipes the drives of a group that has left every lane of this one's labels, as far as
    /// they can be written within `patience`; they are closed then.
    pub async fn wipe_departed(&self, group: &Group<W>, patience: Duration) {
        let mut drives = group.departed();
        // Nobody takes one in again before it is wiped; but it is worth a look.
        let is_known = |uuid| self.lane.registry.knows(uuid) && !self.world.planted(HASTY);
        drives.retain(|member| !is_known(member.uuid));
        self.wipe(drives, patience).await;
        group.forget_departed();
    }

    /// Fills the starts of drives with zeroes, so that they count as empty.
    async fn wipe(&self, drives: Vec<Rc<Member<W>>>, patience: Duration) {
        // What comes after is another lane's.
        let own = |member: &Member<W>| match self.lane.registry.lanes() {
            1 => member.capacity_bytes,
            _ => self.identity.data_start,
        };
        let wipe = |member: Rc<Member<W>>| {
            let len = WIPED_BYTES.min(own(&member)) as usize;
            let zeroes = self.world.buffers().zeroed(len).freeze();
            // It is somebody else's from now on, whatever it says.
            async move { drop(member.write_durably(DriveOffset(0), zeroes).await) }
        };
        let wiping = join_all(drives.into_iter().map(wipe));
        let (done, ended) = oneshot::channel();
        self.world.spawn(async move {
            wiping.await;
            // Nobody may wait any more.
            let _ = done.send(());
        });
        select(ended, pin!(self.world.sleep(patience))).await;
    }

    /// Takes in a group that the first lane is about to let go, or has let go, and that
    /// this one never had: so that the next one has the same number in all.
    ///
    /// # Errors
    /// When labels can't be written.
    pub async fn adopt_departed(&self, first: &GroupEntry) -> Result<(), PoolError> {
        let _writing = self.writing.lock().await;
        let entry = GroupEntry {
            leaving: true,
            drives: 0,
            ..*first
        };
        let index = self.groups.borrow().len() as u16;
        let group = Rc::new(Group::new(index, entry, Vec::new(), &self.identity));
        self.take_in(group);
        self.write_labels(|label| label.groups.push(entry)).await
    }

    /// Lets a spare go that nobody needs any more; it is free then. False when it is none
    /// any more, because it stands in for another by now, or has failed.
    ///
    /// # Errors
    /// When labels can't be written.
    pub async fn part_with_spare(
        &self,
        spare: &Rc<Member<W>>,
        patience: Duration,
    ) -> Result<bool, PoolError> {
        let why = match spare.is_reserved() {
            true => "is free: the addition of its group was cut short",
            false => "was taken out of the pool by command",
        };
        {
            let _writing = self.writing.lock().await;
            let before = self.spares().len();
            self.leave_successor(spare);
            self.change_spares(|spares| spares.retain(|other| !Rc::ptr_eq(other, spare)));
            if self.spares().len() == before {
                return Ok(false);
            }
            let text = format!("spare '{}' {why}", spare.name);
            let kind = match spare.is_reserved() {
                true => EventKind::Group,
                false => EventKind::DriveFailed,
            };
            self.event(kind, text);
            self.write_labels(|_| ()).await?;
        }
        self.wipe(vec![Rc::clone(spare)], patience).await;
        Ok(true)
    }
}

/// A drive whose label of this lane is older than the departure of its group.
pub struct Leftover<D> {
    /// The name that it was given.
    pub name: String,
    /// As the lane sees it.
    pub drive: View<D>,
    /// What the old label says of it.
    pub entry: MemberEntry,
}

impl<W: World> Group<W> {
    /// Drives that carry labels still which nobody needs any more: a crash kept them from
    /// being wiped.
    pub fn set_leftovers(&self, world: &W, leftovers: Vec<Leftover<W::Drive>>) {
        let mut seen: BTreeMap<Uuid, Rc<Member<W>>> = BTreeMap::new();
        for Leftover { name, drive, entry } in leftovers {
            let entry = MemberEntry {
                name,
                state: MemberState::Failed,
                ..entry
            };
            seen.insert(entry.uuid, Rc::new(Member::new(world, drive, &entry)));
        }
        self.set_departed(seen.into_values().collect());
    }
}
