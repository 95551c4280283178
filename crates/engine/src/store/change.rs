//! Changing stripes in place: intent, writes, sums.
//!
//! Invariant: the writes of a change begin only when its intent, if it needs one, is
//! durable; its sums are set only when its writes are durable on every drive in use.

use super::Store;
use super::address::{StripeRef, ZoneAddress};
use super::counts::Purpose;
use super::entry::Intent;
use crate::drive::DriveError;
use crate::drives::Zone;
use crate::drives::{DriveFault, Member, flush_each};
use crate::error::PoolError;
use crate::integrity::{Pinned, Sum};
use crate::ring::Hold;
use crate::world::World;
use base::{BLOCK_BYTES, Slice};
use futures_util::future::join_all;
use std::rc::Rc;

/// A run of rows on one drive, and what they are to hold.
#[derive(Clone, Debug)]
pub(crate) struct PlaceWrite {
    pub place: usize,
    pub row: u32,
    pub data: Slice,
    pub purpose: Purpose,
}

/// What changes in one stripe. Whoever made it holds the stripe's lock.
pub(crate) struct Change<W: World> {
    pub zone: Rc<Zone<W>>,
    pub stripe: StripeRef,
    pub writes: Vec<PlaceWrite>,
    /// By block of the zone.
    pub sums: Vec<(u64, Sum)>,
    /// Whether it rests on something that is only in place, or sets sums that no log has.
    pub needs_intent: bool,
    pub pinned: Pinned,
}

impl<W: World> Change<W> {
    /// A change of nothing yet.
    pub fn new(zone: &Rc<Zone<W>>, stripe: StripeRef, pinned: Pinned) -> Self {
        Change {
            zone: Rc::clone(zone),
            stripe,
            writes: Vec::new(),
            sums: Vec::new(),
            needs_intent: false,
            pinned,
        }
    }

    /// Has the sums be those of what is durable in place by now.
    fn set_sums(&self) {
        for (block, sum) in &self.sums {
            self.pinned.set(*block, *sum);
        }
    }

    /// Bytes that its writes hold.
    pub(super) fn data_bytes(&self) -> usize {
        self.writes.iter().map(|write| write.data.len()).sum()
    }

    /// What its writes hold, one after the other.
    pub(super) fn data(&self) -> impl Iterator<Item = Slice> {
        self.writes.iter().map(|write| write.data.clone())
    }

    pub(super) fn intent(&self) -> Intent {
        let rows = |write: &PlaceWrite| {
            (
                write.place as u8,
                write.row,
                (write.data.len() / BLOCK_BYTES) as u32,
            )
        };
        Intent {
            stripe: self.stripe,
            writes: self.writes.iter().map(rows).collect(),
            sums: self.sums.clone(),
        }
    }
}

impl<W: World> Store<W> {
    /// Makes `change`, durably. What holds its log entries is let go by the caller through `Store`.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now.
    pub(crate) async fn make(&self, change: &Change<W>) -> Result<(), PoolError> {
        let intent = match self.needs_intent(change) {
            true => {
                let logged = self.log_intents(&[&change.intent()], change.data()).await?;
                Some(Rc::new(logged))
            }
            false => None,
        };
        self.write_in_place(std::slice::from_ref(change)).await?;
        self.is_in_place(change, intent);
        Ok(())
    }

    /// The same for one change of many that are on their way at the same time: it shares its entry
    /// of the intent log, and flushes, with others.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now.
    pub(super) async fn put_in_place(self: &Rc<Self>, change: &Change<W>) -> Result<(), PoolError> {
        let intent = match self.needs_intent(change) {
            true => self.intend(change).await?,
            false => None,
        };
        let changes = std::slice::from_ref(change);
        self.write_and_flush(changes, Member::flush_with_others)
            .await?;
        self.is_in_place(change, intent);
        Ok(())
    }

    fn is_in_place(&self, change: &Change<W>, intent: Option<Rc<Hold>>) {
        change.set_sums();
        self.settled.borrow_mut().extend(intent);
        self.keeper.set();
    }

    fn needs_intent(&self, change: &Change<W>) -> bool {
        let skipped = self.world.planted("no intent before a partial stripe");
        !skipped && (change.needs_intent || self.has_live_intent(change.stripe))
    }

    /// Writes all of `changes`, and flushes each drive that it concerns.
    pub(super) async fn write_in_place(&self, changes: &[Change<W>]) -> Result<(), PoolError> {
        self.write_and_flush(changes, Member::flush).await
    }

    async fn write_and_flush(
        &self,
        changes: &[Change<W>],
        flush: impl AsyncFn(&Member<W>) -> Result<(), DriveError>,
    ) -> Result<(), PoolError> {
        let (touched, mut faults) = self.write_places(changes).await;
        if !self.world.planted("destage not flushed") {
            faults.extend(flush_each(touched, flush).await);
        }
        self.outlive(faults).await
    }

    /// Writes all of `changes`, not durably. Gives the drives that were written, and what they said.
    async fn write_places(
        &self,
        changes: &[Change<W>],
    ) -> (Vec<Rc<Member<W>>>, Vec<DriveFault<W>>) {
        let mut touched: Vec<Rc<Member<W>>> = Vec::new();
        let mut writes = Vec::with_capacity(changes.iter().map(|change| change.writes.len()).sum());
        for change in changes {
            let zone = &change.zone;
            let places = change.writes.iter();
            for (write, taker) in places.flat_map(|write| {
                let takers = zone.takers(write.place);
                takers.map(move |taker| (write, taker))
            }) {
                let member = &taker.member;
                if !touched.iter().any(|other| Rc::ptr_eq(other, member)) {
                    touched.push(Rc::clone(member));
                }
                self.counts.count(write.purpose, write.data.len());
                let at = zone.on_drive(change.stripe, write.row);
                let data = write.data.clone();
                writes.push(async move {
                    let error = taker.member.write(at, data).await.err()?;
                    let (is_fault, member) = (!taker.excuses(), taker.member);
                    is_fault.then_some(DriveFault { member, error })
                });
            }
        }
        let faults = join_all(writes).await.into_iter().flatten().collect();
        (touched, faults)
    }

    /// Goes on without the drives that have failed, where the pool can.
    async fn outlive(&self, faults: Vec<DriveFault<W>>) -> Result<(), PoolError> {
        if faults.is_empty() && self.drives.are_losses_durable() {
            return Ok(());
        }
        self.world.reached("destage outlives a drive");
        let outcome = self.drives.absorb(faults).await;
        outcome.map_err(|error| {
            self.stop(format!(
                "what was acknowledged can't be put in place: {error}"
            ))
        })
    }

    /// The most data of one entry of a ring.
    pub(super) fn entry_bytes_max(&self, ring: &crate::ring::Ring<W>) -> usize {
        // A quarter is what the ring takes at most; heads and headers need room too.
        (ring.capacity_bytes() as usize / 8).min(1 << 20) / BLOCK_BYTES * BLOCK_BYTES
    }
}
