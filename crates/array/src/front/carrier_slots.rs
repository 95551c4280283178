//! Chooses the shard that carries a connection.
//!
//! A connection's protocol (socket, PDUs, digests) may be worked off by another thread
//! than its target's commands. How busy a shard is, is taken from how many connections
//! it carries, and how many sessions its targets have: each weighs about the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// So much less busy than its home must another shard be to carry a connection. Each
/// command then wakes two threads instead of one, which costs processor time and, with
/// few commands outstanding, latency: a session that is alone stays at home.
const WORTH: usize = 2;

/// Connections and sessions of each shard.
#[derive(Clone)]
pub(crate) struct CarrierSlots {
    busy: Arc<[AtomicUsize]>,
}

/// A connection's slot, given back when dropped.
pub(crate) struct CarrierSlot {
    carrier_slots: CarrierSlots,
    home: usize,
    carrier: usize,
}

impl CarrierSlots {
    /// For that many shards, with nothing on them.
    pub(crate) fn new(shards: usize) -> Self {
        CarrierSlots {
            busy: (0..shards).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// A slot for a connection to a target that is at home on shard `home`: there,
    /// unless another shard is less busy by so much that the way there pays.
    pub(crate) fn take(&self, home: usize) -> CarrierSlot {
        self.busy[home].fetch_add(1, Relaxed);
        // Only the front takes slots, one after the other.
        let busy = |shard: usize| self.busy[shard].load(Relaxed);
        let others = (0..self.busy.len()).filter(|shard| *shard != home);
        let idlest = others.min_by_key(|shard| busy(*shard));
        let pays = |other: &usize| busy(*other) + WORTH <= busy(home);
        let carrier = idlest.filter(pays).unwrap_or(home);
        self.busy[carrier].fetch_add(1, Relaxed);
        CarrierSlot {
            carrier_slots: self.clone(),
            home,
            carrier,
        }
    }
}

impl CarrierSlot {
    /// The shard that carries the connection.
    pub(crate) fn carrier(&self) -> usize {
        self.carrier
    }
}

impl Drop for CarrierSlot {
    fn drop(&mut self) {
        for shard in [self.home, self.carrier] {
            self.carrier_slots.busy[shard].fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shard_carries_all() {
        let carrier_slots = CarrierSlots::new(1);
        let slots: Vec<_> = (0..3).map(|_| carrier_slots.take(0)).collect();
        assert!(slots.iter().all(|slot| slot.carrier() == 0));
    }

    #[test]
    fn the_first_stays_at_home_and_others_spread() {
        let carrier_slots = CarrierSlots::new(4);
        let slots: Vec<_> = (0..5).map(|_| carrier_slots.take(2)).collect();
        let carriers: Vec<_> = slots.iter().map(CarrierSlot::carrier).collect();
        assert_eq!(carriers, [2, 0, 1, 3, 0]);
    }

    #[test]
    fn targets_that_are_equally_busy_keep_theirs() {
        let carrier_slots = CarrierSlots::new(2);
        let slots: Vec<_> = (0..6)
            .map(|at| (at % 2, carrier_slots.take(at % 2)))
            .collect();
        assert!(slots.iter().all(|(home, slot)| slot.carrier() == *home));
    }

    #[test]
    fn a_slot_that_is_given_back_is_taken_again() {
        let carrier_slots = CarrierSlots::new(3);
        let [_home, _first, second] = [
            carrier_slots.take(0),
            carrier_slots.take(0),
            carrier_slots.take(0),
        ];
        assert_eq!(second.carrier(), 2);
        drop(second);
        assert_eq!(carrier_slots.take(0).carrier(), 2);
    }
}
