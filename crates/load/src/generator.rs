//! The stream of operations of one VM: pure and seeded.
//!
//! Invariants:
//! - The stream depends on the VM's profile, the capacities of its disks and the
//!   seed, on nothing else. There is no clock here: `at` is a plan, and the same
//!   generator runs in real and in virtual time.
//! - Arrival times never go back. They are drawn from a stream of their own, so
//!   scaling the rate changes when operations start and not which ones.
//! - An operation lies inside its disk, and its offset and size are multiples of
//!   [`IO_GRAIN_BYTES`].
//!
//! Random and sequential are meant as Iometer means them: an operation is random
//! with the given chance, at a multiple of its own size; otherwise it continues
//! where the previous operation on that disk ended, and at the end of the disk
//! goes on from its start.

use crate::profile::{IO_GRAIN_BYTES, Mix, Pacing, VmProfile};
use base::{Prng, Time};

/// Whether an operation reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// From the target.
    Read,
    /// To the target.
    Write,
}

/// One operation of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Intended start, from the start of the run. Zero in a closed loop, where
    /// it is due at once.
    pub at: Time,
    /// Index of the VM's disk.
    pub disk: usize,
    /// Read or write.
    pub kind: Kind,
    /// Offset on the disk in bytes.
    pub offset_bytes: u64,
    /// Size in bytes.
    pub bytes: u32,
}

/// Draws the operations of one VM.
#[derive(Clone, Debug)]
pub struct Generator {
    mix: Mix,
    per_second: Option<f64>,
    disks: Vec<Disk>,
    weight_sum: u64,
    arrivals: Prng,
    draws: Prng,
    at_ns: f64,
}

#[derive(Clone, Debug)]
struct Disk {
    capacity_bytes: u64,
    weight: u64,
    /// Where the previous operation ended.
    cursor_bytes: u64,
}

impl Generator {
    /// The operations of `vm` on disks of these capacities, in bytes.
    ///
    /// # Panics
    /// When the VM breaks [`crate::profile::Profile::check`], the number of
    /// capacities is not that of its disks, or one is smaller than the VM's
    /// largest operation: the plan has refused all that before.
    pub fn new(vm: &VmProfile, capacities_bytes: &[u64], seed: u64) -> Self {
        assert_eq!(
            vm.disks.len(),
            capacities_bytes.len(),
            "{}: one capacity per disk",
            vm.name
        );
        let smallest = capacities_bytes.iter().copied().min().unwrap_or(0);
        assert!(
            smallest >= u64::from(vm.mix.bytes_max()),
            "{}: a disk is too small",
            vm.name
        );
        let root = Prng::from_seed(seed).stream("load").stream(&vm.name);
        let disks: Vec<Disk> = vm
            .disks
            .iter()
            .zip(capacities_bytes)
            .map(|(disk, &capacity_bytes)| Disk {
                capacity_bytes,
                weight: u64::from(disk.weight),
                cursor_bytes: 0,
            })
            .collect();
        Generator {
            mix: vm.mix.clone(),
            per_second: match vm.pacing {
                Pacing::Open { per_second } => Some(per_second),
                Pacing::Closed { .. } => None,
            },
            weight_sum: disks.iter().map(|disk| disk.weight).sum(),
            disks,
            arrivals: root.stream("arrivals"),
            draws: root.stream("operations"),
            at_ns: 0.0,
        }
    }

    /// The next operation. The stream has no end.
    pub fn draw(&mut self) -> Operation {
        let at = self.arrival();
        let disk = self.choose_disk();
        let bytes = *self.draws.pick(&self.mix.sizes);
        let random = self.draws.chance(u64::from(self.mix.random_percent), 100);
        let read = self.draws.chance(u64::from(self.mix.read_percent), 100);
        let offset_bytes = self.place(disk, bytes, random);
        self.disks[disk].cursor_bytes = offset_bytes + u64::from(bytes);
        let kind = if read { Kind::Read } else { Kind::Write };
        Operation {
            at,
            disk,
            kind,
            offset_bytes,
            bytes,
        }
    }

    /// Exponential gaps make a Poisson process.
    fn arrival(&mut self) -> Time {
        let Some(per_second) = self.per_second else {
            return Time(0);
        };
        let gap_s = -(1.0 - self.arrivals.unit()).ln() / per_second;
        self.at_ns += gap_s * 1e9;
        Time(self.at_ns as u64)
    }

    fn choose_disk(&mut self) -> usize {
        let mut drawn = self.draws.below(self.weight_sum);
        for (index, disk) in self.disks.iter().enumerate() {
            if drawn < disk.weight {
                return index;
            }
            drawn -= disk.weight;
        }
        unreachable!("a draw below the sum of the weights falls into one of them")
    }

    fn place(&mut self, disk: usize, bytes: u32, random: bool) -> u64 {
        let Disk {
            capacity_bytes,
            cursor_bytes,
            ..
        } = self.disks[disk];
        let size = u64::from(bytes);
        if random {
            return self.draws.below(capacity_bytes / size) * size;
        }
        let end = capacity_bytes - capacity_bytes % u64::from(IO_GRAIN_BYTES);
        if cursor_bytes + size <= end {
            cursor_bytes
        } else {
            0
        }
    }
}
