//! An arrangement of disks on datastores, and its faults.

use super::{Inventory, Keep, Thresholds};
use std::cmp::Ordering;

/// What is wrong, the worst first. Shares and seconds are summed over datastores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Wrong {
    /// Bytes on datastores in maintenance.
    stranded_bytes: u64,
    /// Machines whose disks are not as they want them.
    broken_rules: usize,
    /// Space over the threshold, shares of a capacity.
    overfull: f64,
    /// Latency over the threshold, seconds.
    slow: f64,
}

impl Wrong {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Wrong::default()
    }

    /// The less wrong is the lesser.
    pub(super) fn compare(&self, other: &Wrong) -> Ordering {
        self.stranded_bytes
            .cmp(&other.stranded_bytes)
            .then(self.broken_rules.cmp(&other.broken_rules))
            .then(self.overfull.total_cmp(&other.overfull))
            .then(self.slow.total_cmp(&other.slow))
    }
}

/// Where each disk would be.
pub(super) struct State<'a> {
    pub(super) inventory: &'a Inventory,
    pub(super) thresholds: &'a Thresholds,
    pub(super) places: Vec<usize>,
}

impl<'a> State<'a> {
    pub(super) fn new(inventory: &'a Inventory, thresholds: &'a Thresholds) -> State<'a> {
        let places = inventory.disks.iter().map(|disk| disk.datastore).collect();
        State {
            inventory,
            thresholds,
            places,
        }
    }

    /// The disks that a datastore has.
    fn disks(&self, datastore: usize) -> impl Iterator<Item = &super::Disk> {
        let placed = self.inventory.disks.iter().zip(&self.places);
        placed.filter_map(move |(disk, &place)| (place == datastore).then_some(disk))
    }

    /// Share of a datastore that is used; of one without capacity all and more.
    pub(super) fn used(&self, datastore: usize) -> f64 {
        let bytes: u64 = self.disks(datastore).map(|disk| disk.bytes).sum();
        match self.inventory.datastores[datastore].capacity_bytes {
            0 => f64::MAX,
            capacity => bytes as f64 / capacity as f64,
        }
    }

    /// Latency of a datastore, seconds.
    pub(super) fn latency(&self, datastore: usize) -> f64 {
        let outstanding = self
            .disks(datastore)
            .fold(0.0, |sum, disk| sum + disk.outstanding);
        let each = self.inventory.datastores[datastore].latency_per_outstanding;
        each.as_secs_f64() * outstanding
    }

    /// Latency over the threshold, seconds.
    pub(super) fn slow(&self, datastore: usize) -> f64 {
        let most = self.thresholds.latency;
        most.map_or(0.0, |most| {
            (self.latency(datastore) - most.as_secs_f64()).max(0.0)
        })
    }

    /// Space over the threshold, share of the capacity.
    pub(super) fn overfull(&self, datastore: usize) -> f64 {
        (self.used(datastore) - self.thresholds.used).max(0.0)
    }

    /// Whether a machine's disks are not as it wants them.
    pub(super) fn breaks_rule(&self, machine: usize) -> bool {
        let disks = self.inventory.disks.iter().zip(&self.places);
        let its = disks.filter(|(disk, _)| disk.machine == machine);
        let mut places: Vec<usize> = its.map(|(_, &place)| place).collect();
        let disks = places.len();
        places.sort_unstable();
        places.dedup();
        match self.inventory.machines[machine] {
            Keep::Together => places.len() > 1,
            Keep::Apart => places.len() < disks,
            Keep::Anyhow => false,
        }
    }

    pub(super) fn wrong(&self) -> Wrong {
        let mut wrong = Wrong::default();
        for (number, datastore) in self.inventory.datastores.iter().enumerate() {
            if datastore.maintenance {
                let bytes: u64 = self.disks(number).map(|disk| disk.bytes).sum();
                wrong.stranded_bytes += bytes;
            } else {
                wrong.overfull += self.overfull(number);
                wrong.slow += self.slow(number);
            }
        }
        let machines = 0..self.inventory.machines.len();
        wrong.broken_rules = machines
            .filter(|&machine| self.breaks_rule(machine))
            .count();
        wrong
    }
}
