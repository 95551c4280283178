//! Workload profiles: the I/O of each VM on its disks, as data.
//!
//! A profile is a list of VMs. A VM has disks and one or several [`Stream`]s of
//! operations on them, all at the same time. Nothing here draws a number or reads
//! a clock: [`crate::generator`] turns the streams of a VM into operations.
//!
//! Invariants, held by [`Profile::check`]: percentages are at most 100, sizes are
//! multiples of 4 KiB and at most [`IO_BYTES_MAX`], every VM has a disk and a
//! stream, every stream has one weight for each disk and they do not sum to zero,
//! names are unique.

pub mod boot_storm;
mod catalogue;
mod closed;
mod ecommerce20;
pub mod hetero10;
mod oio_ladder;
mod single;
mod sqlio;
mod stream;
mod tpce_like;

pub use catalogue::Entry;
pub use stream::{BURST_PERIOD, Mix, Pacing, Stream};

use crate::trace::BeyondEnd;
use std::time::Duration;

/// The largest I/O a profile may ask for, in bytes.
pub const IO_BYTES_MAX: u32 = 1 << 20;

/// Sizes and offsets are multiples of this many bytes.
pub const IO_GRAIN_BYTES: u32 = 4096;

/// Mean latency a VM's reads and its writes stay below, unless told otherwise:
/// the planning limit of the published reference architectures.
pub const MEAN_LATENCY_LIMIT: Duration = Duration::from_millis(20);

/// A disk must hold at least this many of its VM's largest operations, or random
/// places on it are none.
const OPERATIONS_PER_DISK_MIN: u64 = 16;

const GIB: u64 = 1 << 30;

/// A named workload of one or more VMs.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The name it is asked for by.
    pub name: String,
    /// The VMs, in the order in which targets are given to them.
    pub vms: Vec<VmProfile>,
    /// What its KPIs are held against.
    pub limits: Limits,
}

/// One VM of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct VmProfile {
    /// Its name, unique in the profile.
    pub name: String,
    /// What the VM stands for, for people.
    pub role: String,
    /// What it needs of its host.
    pub compute: Compute,
    /// Its disks, the system disk first.
    pub disks: Vec<DiskProfile>,
    /// What it does to them.
    pub streams: Vec<Stream>,
}

/// What a VM needs of its host. Says nothing to a load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compute {
    /// Virtual processors that it is given.
    pub vcpus: u32,
    /// Memory in bytes; with dynamic memory, the most it may get.
    pub memory_bytes: u64,
    /// Whether the host gives memory only as the VM uses it.
    pub dynamic_memory: bool,
    /// Per cent of its vCPUs that it keeps busy during a measured run.
    pub cpu_percent: u32,
    /// Per cent of its memory that it holds during a measured run.
    pub memory_percent: u32,
}

impl Compute {
    /// What a VM has of which the reference says nothing: two vCPUs and 4 GiB, as
    /// the smallest VM of `hetero10`, idle but for its I/O.
    pub const UNTOLD: Compute = Compute {
        vcpus: 2,
        memory_bytes: 4 * GIB,
        dynamic_memory: false,
        cpu_percent: 0,
        memory_percent: 0,
    };
}

/// One disk of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskProfile {
    /// The capacity in the published configuration, in bytes. In real time, only
    /// its ratio to the VM's other disks counts, and only where disks share one
    /// target.
    pub nominal_bytes: u64,
}

impl DiskProfile {
    /// A disk of so many gigabytes of 1,000,000,000 bytes, as drives are sold.
    pub const fn gigabytes(gigabytes: u64) -> DiskProfile {
        DiskProfile {
            nominal_bytes: gigabytes * 1_000_000_000,
        }
    }
}

/// What KPIs are held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Mean response time of the reads of each VM.
    pub read_mean: Duration,
    /// Mean response time of the writes of each VM.
    pub write_mean: Duration,
    /// Mean response time over all operations of all random streams of all VMs
    /// ([`Stream::is_random`]), where the profile has such a cap.
    pub random_mean: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            read_mean: MEAN_LATENCY_LIMIT,
            write_mean: MEAN_LATENCY_LIMIT,
            random_mean: None,
        }
    }
}

impl Profile {
    /// Every rate, and the threads of closed networks, multiplied by `factor`. Loops that keep
    /// operations under way stay as they are.
    pub fn scaled(mut self, factor: f64) -> Profile {
        for vm in &mut self.vms {
            vm.scale(factor);
        }
        self
    }

    /// Every stream of every VM as a closed loop of `outstanding` operations.
    pub fn with_depth(mut self, outstanding: usize) -> Profile {
        for stream in self.vms.iter_mut().flat_map(|vm| &mut vm.streams) {
            stream.pacing = Pacing::Closed { outstanding };
            stream.outstanding_max = outstanding;
        }
        self
    }

    /// Every stream of every VM as an open loop of `per_second` operations on
    /// average, with at most `outstanding_max` under way.
    pub fn with_rate(mut self, per_second: f64, outstanding_max: usize) -> Profile {
        for stream in self.vms.iter_mut().flat_map(|vm| &mut vm.streams) {
            stream.pacing = Pacing::Open { per_second };
            stream.outstanding_max = outstanding_max;
        }
        self
    }

    /// Every operation of every VM of `bytes`.
    pub fn with_size(mut self, bytes: u32) -> Profile {
        for stream in self.vms.iter_mut().flat_map(|vm| &mut vm.streams) {
            stream.mix.sizes = vec![bytes];
        }
        self
    }

    /// So many per cent of the operations of every stream read; the others write.
    pub fn with_reads(mut self, percent: u32) -> Profile {
        for stream in self.vms.iter_mut().flat_map(|vm| &mut vm.streams) {
            stream.mix.read_percent = percent;
        }
        self
    }

    /// One VM of this profile for each of `count` targets (VM01, VM02, …), each
    /// the same. Does nothing to a profile of several VMs, or of one with several
    /// disks.
    pub fn repeated(mut self, count: usize) -> Profile {
        if let [vm] = self.vms.as_slice()
            && vm.disks.len() == 1
        {
            self.vms = vm.copies("VM", count);
        }
        self
    }

    /// The VM that stands for `role`: by its name, or the only one there is.
    pub fn role(&self, role: &str) -> Option<&VmProfile> {
        match self.vms.as_slice() {
            [only] => Some(only),
            vms => vms.iter().find(|vm| vm.name == role),
        }
    }

    /// Whether any VM writes.
    pub fn writes(&self) -> bool {
        self.vms.iter().any(VmProfile::writes)
    }

    /// Operations per second of all open loops together.
    pub fn per_second(&self) -> f64 {
        self.vms.iter().map(VmProfile::per_second).sum()
    }

    /// Refuses what no generator can produce.
    ///
    /// # Errors
    /// The first broken invariant of the module, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        for (index, vm) in self.vms.iter().enumerate() {
            vm.check()
                .map_err(|what| format!("profile {}: VM {}: {what}", self.name, vm.name))?;
            if self.vms[..index].iter().any(|other| other.name == vm.name) {
                return Err(format!(
                    "profile {}: two VMs are called {}",
                    self.name, vm.name
                ));
            }
        }
        if self.vms.is_empty() {
            return Err(format!("profile {}: it has no VM", self.name));
        }
        Ok(())
    }
}

impl VmProfile {
    /// Multiplies the rates of its open loops, and the threads of its closed networks.
    pub fn scale(&mut self, factor: f64) {
        for stream in &mut self.streams {
            stream.scale(factor);
        }
        self.settle();
    }

    /// Lets streams of commits have as many operations under way as the threads whose they are:
    /// to be called when threads have changed.
    pub fn settle(&mut self) {
        for index in 0..self.streams.len() {
            if let Pacing::Commits { of } = self.streams[index].pacing
                && let Some(threads) = self.streams.get(of).and_then(Stream::threads)
            {
                self.streams[index].outstanding_max = threads.outstanding_max();
            }
        }
    }

    /// Whether threads do transactions in it.
    pub fn has_threads(&self) -> bool {
        self.streams.iter().any(|stream| stream.threads().is_some())
    }

    /// The stream of the commits of stream `index`, if it has one.
    pub fn commits_of(&self, index: usize) -> Option<usize> {
        let mut streams = self.streams.iter();
        streams.position(|stream| stream.pacing == Pacing::Commits { of: index })
    }

    /// Operations per second of stream `index` while each operation takes `latency`, if threads
    /// do them: data or commits.
    pub fn threads_per_s(&self, index: usize, latency: Duration) -> Option<f64> {
        let (of, is_commits) = match self.streams[index].pacing {
            Pacing::Commits { of } => (of, true),
            _ => (index, false),
        };
        let threads = self.streams.get(of)?.threads()?;
        let transactions_per_s = threads.per_s(latency, self.commits_of(of).is_some());
        Some(match is_commits {
            true => transactions_per_s,
            false => transactions_per_s * threads.operations,
        })
    }

    /// Operations per second of its open loops together.
    pub fn per_second(&self) -> f64 {
        self.streams
            .iter()
            .filter_map(|stream| stream.pacing.per_second())
            .sum()
    }

    /// The largest operation in bytes.
    pub fn bytes_max(&self) -> u32 {
        let sizes = self.streams.iter().map(|stream| stream.mix.bytes_max());
        sizes.max().unwrap_or(0)
    }

    /// Whether any stream writes.
    pub fn writes(&self) -> bool {
        self.streams.iter().any(|stream| stream.mix.writes())
    }

    /// Operations under way at most, over all streams. Commits are among those of their threads,
    /// of which each has one under way in both streams.
    pub fn outstanding_max(&self) -> usize {
        self.streams
            .iter()
            .filter(|stream| !matches!(stream.pacing, Pacing::Commits { .. }))
            .map(|stream| stream.outstanding_max)
            .sum()
    }

    /// The smallest disk that its streams can work on, in bytes.
    pub fn disk_bytes_min(&self) -> u64 {
        let workers = self.streams.iter().map(|stream| stream.workers_per_disk);
        let workers = u64::from(workers.max().unwrap_or(1));
        u64::from(self.bytes_max()) * OPERATIONS_PER_DISK_MIN.max(workers)
    }

    /// The smallest target that one of its disks can be on, in bytes: what streams need
    /// to work, and all that a trace goes to, if it may not wrap.
    pub fn bytes_needed(&self, disk: usize) -> u64 {
        let traces = self
            .streams
            .iter()
            .filter_map(|stream| stream.trace.as_ref());
        let ends = traces
            .filter(|trace| trace.beyond_end == BeyondEnd::Refuse)
            .map(|trace| trace.survey.disks[disk].end_bytes);
        ends.max().unwrap_or(0).max(self.disk_bytes_min())
    }

    /// So many VMs like this one, called by `prefix` and a number from 01.
    pub(crate) fn copies(&self, prefix: &str, count: usize) -> Vec<VmProfile> {
        let copy = |number| VmProfile {
            name: format!("{prefix}{number:02}"),
            ..self.clone()
        };
        (1..=count).map(copy).collect()
    }

    fn check(&self) -> Result<(), String> {
        if self.disks.is_empty() {
            return Err("it has no disk".into());
        }
        if self.streams.is_empty() {
            return Err("it has no stream of operations".into());
        }
        for (index, stream) in self.streams.iter().enumerate() {
            let name = &stream.name;
            stream
                .check(self.disks.len())
                .map_err(|what| match self.streams.len() {
                    1 => what,
                    _ => format!("stream {name}: {what}"),
                })?;
            if self.streams[..index]
                .iter()
                .any(|other| other.name == *name)
            {
                return Err(format!("two streams are called {name}"));
            }
            self.check_commits(index)?;
        }
        Ok(())
    }

    /// Commits belong to threads, and no two streams to the same.
    fn check_commits(&self, index: usize) -> Result<(), String> {
        let stream = &self.streams[index];
        let Pacing::Commits { of } = stream.pacing else {
            return Ok(());
        };
        let threads = self.streams.get(of).and_then(Stream::threads);
        if threads.is_none() || self.commits_of(of) != Some(index) {
            let name = &stream.name;
            return Err(format!(
                "stream {name}: it commits for no threads of its own"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_no_rate_is_refused() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let refused = hetero10::profile().scaled(factor).check().unwrap_err();
            assert!(
                refused.contains("NET01") && refused.contains("rate"),
                "{refused}"
            );
        }
    }

    #[test]
    fn broken_profiles_are_refused_by_name() {
        let whole = Profile::named("rand-4k-read").unwrap();
        let broken = |change: &dyn Fn(&mut VmProfile)| {
            let mut profile = whole.clone();
            change(&mut profile.vms[0]);
            profile.check().unwrap_err()
        };
        assert!(broken(&|vm| vm.streams[0].mix.sizes = vec![512]).contains("multiples of 4096"));
        assert!(broken(&|vm| vm.streams[0].mix.sizes.clear()).contains("I/O sizes"));
        assert!(broken(&|vm| vm.streams[0].mix.read_percent = 101).contains("above 100"));
        assert!(broken(&|vm| vm.disks.clear()).contains("no disk"));
        assert!(broken(&|vm| vm.streams.clear()).contains("no stream"));
        assert!(broken(&|vm| vm.streams[0].weights = vec![0]).contains("no disk gets"));
        assert!(broken(&|vm| vm.streams[0].weights = vec![1, 1]).contains("2 weights for 1 disk"));
        assert!(broken(&|vm| vm.streams[0].workers_per_disk = 0).contains("worker"));
        let idle = Pacing::Closed { outstanding: 0 };
        assert!(broken(&|vm| vm.streams[0].pacing = idle).contains("depth"));
        let same = broken(&|vm| vm.streams.push(vm.streams[0].clone()));
        assert!(same.contains("two streams"), "{same}");
        let twice = Profile {
            vms: vec![whole.vms[0].clone(); 2],
            ..whole.clone()
        };
        assert!(twice.check().unwrap_err().contains("two VMs"));
    }

    #[test]
    fn depth_and_rate_replace_the_pacing() {
        let profile = Profile::named("rand-4k-write").unwrap();
        let deep = profile.clone().with_depth(32);
        let stream = &deep.vms[0].streams[0];
        assert_eq!(stream.pacing, Pacing::Closed { outstanding: 32 });
        assert_eq!(stream.outstanding_max, 32);
        let paced = profile.with_rate(50.0, 64).repeated(3);
        assert_eq!(paced.vms.len(), 3);
        assert_eq!(paced.vms[2].name, "VM03");
        assert_eq!(paced.per_second(), 150.0);
        assert_eq!(paced.vms[2].outstanding_max(), 64);
    }
}
