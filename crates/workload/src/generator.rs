//! The operations of one stream of a VM: pure and seeded.
//!
//! Invariants:
//! - The operations depend on the VM's profile, the capacities of its disks and the
//!   seed, on nothing else. There is no clock here: `at` is a plan, and the same
//!   generator runs in real and in virtual time.
//! - Arrival times never go back. They are drawn from a stream of their own, so
//!   scaling the rate changes when operations start and not which ones.
//! - An operation lies inside its disk, and its offset and size are multiples of
//!   [`IO_GRAIN_BYTES`].
//! - A stream that is added behind the others of a VM does not shift theirs.
//!
//! Random and sequential are meant as Iometer means them: an operation is random
//! with the given chance, at a multiple of its own size; otherwise it continues
//! where the previous operation of its worker on that disk ended, and at the end of
//! the worker's part goes on from its start. The workers of a disk take turns, and
//! each has an equal part of the disk.

use crate::arrivals::Arrivals;
use crate::locality::{Cascade, Drift, Locality};
use crate::profile::{IO_GRAIN_BYTES, Mix, Stream, VmProfile};
use base::{Prng, Time};

/// Whether an operation reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Data comes from the target.
    Read,
    /// Data goes to the target.
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
    /// Whether it reads or writes.
    pub kind: Kind,
    /// Offset on the disk in bytes.
    pub offset_bytes: u64,
    /// Size of the operation in bytes.
    pub bytes: u32,
}

/// Draws the operations of one stream of a VM.
#[derive(Clone, Debug)]
pub struct Generator {
    mix: Mix,
    arrivals: Arrivals,
    disks: Vec<Disk>,
    weight_sum: u64,
    drift: Option<Drift>,
    drawn: u64,
    draws: Prng,
}

#[derive(Clone, Debug)]
struct Disk {
    capacity_bytes: u64,
    weight: u64,
    workers: Vec<Worker>,
    /// Whose turn it is.
    turn: usize,
    cascade: Option<Cascade>,
}

/// What goes on from where it was.
#[derive(Clone, Debug)]
struct Worker {
    start_bytes: u64,
    end_bytes: u64,
    /// Where the previous operation ended.
    cursor_bytes: u64,
}

impl Generator {
    /// The generators of the streams of `vm`, in their order, on disks of these
    /// capacities, in bytes.
    ///
    /// # Panics
    /// When the VM breaks [`crate::profile::Profile::check`], the number of
    /// capacities is not that of its disks, or one is below
    /// [`VmProfile::disk_bytes_min`]: the plan has refused all that before.
    pub fn of_vm(vm: &VmProfile, capacities_bytes: &[u64], seed: u64) -> Vec<Generator> {
        assert_eq!(
            vm.disks.len(),
            capacities_bytes.len(),
            "{}: one capacity per disk",
            vm.name
        );
        let smallest = capacities_bytes.iter().copied().min().unwrap_or(0);
        assert!(
            smallest >= vm.disk_bytes_min(),
            "{}: a disk is too small",
            vm.name
        );
        let of_vm = Prng::from_seed(seed).stream("load").stream(&vm.name);
        let generator = |(index, stream): (usize, &Stream)| {
            // The first draws from the VM's own, so that a VM of one stream does
            // what it did before there were several.
            let own = match index {
                0 => of_vm.clone(),
                _ => of_vm.stream(&stream.name),
            };
            Generator::new(stream, capacities_bytes, &own, &of_vm)
        };
        vm.streams.iter().enumerate().map(generator).collect()
    }

    fn new(stream: &Stream, capacities_bytes: &[u64], own: &Prng, of_vm: &Prng) -> Generator {
        let disk = |(index, (&weight, &capacity_bytes)): (usize, (&u32, &u64))| {
            // What is hot is the disk's: all streams of the VM find it at the same
            // places.
            let hot = of_vm.stream(&format!("locality of disk {index}"));
            Disk {
                capacity_bytes,
                weight: u64::from(weight),
                workers: workers(capacity_bytes, stream.workers_per_disk),
                turn: 0,
                cascade: Cascade::new(stream.locality, capacity_bytes, &hot),
            }
        };
        let of_disk = stream.weights.iter().zip(capacities_bytes);
        let disks: Vec<Disk> = of_disk.enumerate().map(disk).collect();
        Generator {
            mix: stream.mix.clone(),
            arrivals: Arrivals::new(stream, own.stream("arrivals")),
            weight_sum: disks.iter().map(|disk| disk.weight).sum(),
            disks,
            drift: match stream.locality {
                Locality::SelfSimilar { drift, .. } => drift,
                Locality::Uniform => None,
            },
            drawn: 0,
            draws: own.stream("operations"),
        }
    }

    /// The same stream with the same hot places, whose operations are other ones.
    #[must_use]
    pub fn apart(self, name: &str) -> Generator {
        Generator {
            draws: self.draws.stream(name),
            ..self
        }
    }

    /// The next operation. There is always one.
    pub fn draw(&mut self) -> Operation {
        self.drift();
        let at = self.arrivals.next();
        let disk = self.choose_disk();
        let bytes = *self.draws.pick(&self.mix.sizes);
        let random = self.draws.chance(u64::from(self.mix.random_percent), 100);
        let read = self.draws.chance(u64::from(self.mix.read_percent), 100);
        let offset_bytes = self.disks[disk].place(bytes, random, &mut self.draws);
        let kind = if read { Kind::Read } else { Kind::Write };
        Operation {
            at,
            disk,
            kind,
            offset_bytes,
            bytes,
        }
    }

    /// Takes the hot places of all disks to the period that the next operation is
    /// in.
    fn drift(&mut self) {
        if let Some(drift) = self.drift {
            if self.drawn.is_multiple_of(drift.period_operations) {
                let period = self.drawn / drift.period_operations;
                let cascades = self
                    .disks
                    .iter_mut()
                    .filter_map(|disk| disk.cascade.as_mut());
                cascades.for_each(|cascade| cascade.set_period(period));
            }
            self.drawn += 1;
        }
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
}

/// The workers of a disk, each at the start of its part.
fn workers(capacity_bytes: u64, count: u32) -> Vec<Worker> {
    let grain = u64::from(IO_GRAIN_BYTES);
    let part_bytes = capacity_bytes / u64::from(count) / grain * grain;
    let worker = |index| Worker {
        start_bytes: index * part_bytes,
        end_bytes: (index + 1) * part_bytes,
        cursor_bytes: index * part_bytes,
    };
    (0..u64::from(count)).map(worker).collect()
}

impl Disk {
    /// The offset of the next operation.
    fn place(&mut self, bytes: u32, random: bool, draws: &mut Prng) -> u64 {
        let size = u64::from(bytes);
        let worker = &mut self.workers[self.turn];
        let offset_bytes = match &self.cascade {
            Some(cascade) if random => cascade.place_of(draws, bytes),
            None if random => draws.below(self.capacity_bytes / size) * size,
            _ if worker.cursor_bytes + size <= worker.end_bytes => worker.cursor_bytes,
            _ => worker.start_bytes,
        };
        worker.cursor_bytes = offset_bytes + size;
        self.turn = (self.turn + 1) % self.workers.len();
        offset_bytes
    }
}
