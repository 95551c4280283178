//! One stream of operations of a VM: their mix, their places and their times.

use super::{IO_BYTES_MAX, IO_GRAIN_BYTES};
use crate::locality::Locality;
use crate::threads::Threads;
use crate::trace::Trace;
use std::sync::Arc;
use std::time::Duration;

/// How long a burst is, and a pause: what the bursts of a served array are counted by.
pub const BURST_PERIOD: Duration = Duration::from_millis(100);

/// The name of a stream that is all that its VM does.
const ALL: &str = "all";

/// Operations under way at most, of an open loop of which nothing is published:
/// what a paravirtual adapter gives a disk.
pub(super) const OUTSTANDING_MAX: usize = 64;

/// One stream of operations of a VM. It has slots of its own: streams of one VM
/// wait for each other only at the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Its name, unique in the VM.
    pub name: String,
    /// What its operations look like.
    pub mix: Mix,
    /// Where random operations go.
    pub locality: Locality,
    /// Whether operations start at a rate, or when others complete.
    pub pacing: Pacing,
    /// Of an open loop, per cent of the periods of [`BURST_PERIOD`] that operations start in, all
    /// of those of the rate; 100: Poisson.
    pub active_percent: u32,
    /// The share of the operations that each disk of the VM gets, relative to the
    /// others; 0: none.
    pub weights: Vec<u32>,
    /// Each disk is worked on by so many workers in turn, each of which goes on
    /// from where it was itself. The first starts at the start of the disk, the
    /// others at equal distances behind it.
    pub workers_per_disk: u32,
    /// At most this many operations are under way at a time; further ones wait
    /// and keep their intended start times.
    pub outstanding_max: usize,
    /// What it replays instead of drawing operations; the mix and the rate are then what
    /// was found in it.
    pub trace: Option<Arc<Trace>>,
}

/// What operations look like.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Sizes in bytes; each equally likely. One that stands there twice is twice as
    /// likely as one that stands there once.
    pub sizes: Vec<u32>,
    /// Per cent of operations at a random place; the others continue where the
    /// worker's previous operation on that disk ended.
    pub random_percent: u32,
    /// Per cent of operations that read; the others write.
    pub read_percent: u32,
}

/// The rule by which the next operation starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Poisson arrivals: independent of how fast the target answers.
    Open {
        /// Mean operations per second.
        per_second: f64,
    },
    /// The next operation starts when one of `outstanding` completes.
    Closed {
        /// Operations kept under way.
        outstanding: usize,
    },
    /// Threads do transactions, and each waits for its operations: a closed network.
    Threads(Threads),
    /// Each transaction of another stream of the VM ends with an operation of this one, which its
    /// thread waits for.
    Commits {
        /// Which of the VM's streams, one of [`Pacing::Threads`].
        of: usize,
    },
}

impl Mix {
    /// Operations of one size.
    pub fn new(bytes: u32, random_percent: u32, read_percent: u32) -> Mix {
        Mix {
            sizes: vec![bytes],
            random_percent,
            read_percent,
        }
    }

    /// The largest size in bytes.
    pub fn bytes_max(&self) -> u32 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }

    /// Whether any operation writes.
    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }
}

impl Pacing {
    /// Mean operations per second, of an open loop.
    pub fn per_second(self) -> Option<f64> {
        match self {
            Pacing::Open { per_second } => Some(per_second),
            Pacing::Closed { .. } | Pacing::Threads(_) | Pacing::Commits { .. } => None,
        }
    }

    /// Operations under way at most, where nothing else says so. A stream of commits has as many
    /// as the threads whose they are, which its VM knows.
    fn outstanding_max(self) -> usize {
        match self {
            Pacing::Open { .. } => OUTSTANDING_MAX,
            Pacing::Closed { outstanding } => outstanding,
            Pacing::Threads(threads) => threads.outstanding_max(),
            Pacing::Commits { .. } => 1,
        }
    }
}

impl Stream {
    /// A stream that is all that its VM does: all over the disks, one worker on
    /// each.
    pub fn alone(mix: Mix, pacing: Pacing, weights: &[u32]) -> Stream {
        Stream {
            name: ALL.into(),
            mix,
            locality: Locality::Uniform,
            pacing,
            active_percent: 100,
            weights: weights.to_vec(),
            workers_per_disk: 1,
            outstanding_max: pacing.outstanding_max(),
            trace: None,
        }
    }

    /// The same under a name, beside others of its VM.
    pub fn named(self, name: &str) -> Stream {
        Stream {
            name: name.into(),
            ..self
        }
    }

    /// The same for each of so many disks, by itself: "disk 1", "disk 2", …; for one
    /// disk, as it is.
    pub(super) fn on_each_disk(self, disks: usize) -> Vec<Stream> {
        if disks == 1 {
            return vec![self];
        }
        let on = |disk| Stream {
            name: format!("disk {}", disk + 1),
            weights: (0..disks).map(|other| u32::from(other == disk)).collect(),
            ..self.clone()
        };
        (0..disks).map(on).collect()
    }

    /// Multiplies the rate of an open loop, or the threads of a network; loops that keep
    /// operations under way stay as they are.
    pub(super) fn scale(&mut self, factor: f64) {
        match self.pacing {
            Pacing::Open { per_second } => {
                self.pacing = Pacing::Open {
                    per_second: per_second * factor,
                };
            }
            Pacing::Threads(threads) => self.set_threads(threads.scaled(factor)),
            Pacing::Closed { .. } | Pacing::Commits { .. } => {}
        }
        if let Some(trace) = &mut self.trace {
            Arc::make_mut(trace).speed *= factor;
        }
    }

    /// Gives it other threads.
    pub fn set_threads(&mut self, threads: Threads) {
        self.pacing = Pacing::Threads(threads);
        self.outstanding_max = threads.outstanding_max();
    }

    /// Its threads, if it is a closed network.
    pub fn threads(&self) -> Option<Threads> {
        match self.pacing {
            Pacing::Threads(threads) => Some(threads),
            _ => None,
        }
    }

    /// Whether it counts where KPIs of random I/O are asked for: more than half of
    /// it is.
    pub fn is_random(&self) -> bool {
        self.mix.random_percent > 50
    }

    pub(super) fn check(&self, disks: usize) -> Result<(), String> {
        let sizes = &self.mix.sizes;
        let fits =
            |&size: &u32| size > 0 && size <= IO_BYTES_MAX && size.is_multiple_of(IO_GRAIN_BYTES);
        if sizes.is_empty() || !sizes.iter().all(fits) {
            return Err(format!(
                "I/O sizes {sizes:?} must be multiples of {IO_GRAIN_BYTES} up to {IO_BYTES_MAX}"
            ));
        }
        if self.mix.random_percent > 100 || self.mix.read_percent > 100 {
            return Err("a share is above 100 %".into());
        }
        if !(1..=100).contains(&self.active_percent) {
            return Err(format!(
                "operations in {} % of the time: allowed is 1 to 100",
                self.active_percent
            ));
        }
        let weights = &self.weights;
        if weights.len() != disks {
            return Err(format!("{} weights for {disks} disks", weights.len()));
        }
        if weights.iter().all(|&weight| weight == 0) {
            return Err("no disk gets any I/O".into());
        }
        if self.workers_per_disk == 0 {
            return Err("a disk has no worker".into());
        }
        if self.outstanding_max == 0 {
            return Err("it may have no operation under way".into());
        }
        self.locality.check()?;
        match self.pacing {
            Pacing::Open { per_second } if !(per_second.is_finite() && per_second > 0.0) => {
                Err(format!("a rate of {per_second} per second"))
            }
            Pacing::Closed { outstanding: 0 } => Err("a queue depth of 0".into()),
            Pacing::Threads(threads) => threads.check(),
            _ => Ok(()),
        }
    }
}
