//! What VMs do to a pool, drawn apart from the operations of a run. They bring the pool where a long time
//! under this load does, while no time goes by.

use super::Rig;
use super::vm::VmRig;
use crate::error::RehearseError;
use crate::parts::disk::DiskRig;
use crate::parts::pool::PoolRig;
use base::Prng;
use std::rc::Rc;
use std::time::Duration;
use workload::generator::{Kind, Operation};
use workload::profile::{Pacing, Stream, VmProfile};
use workload::source::Source;

/// Draws from a stream, at most, until one of them is for a pool.
const DRAWS_MAX: usize = 256;

/// Streams that are picked, at most, until one has such an operation among its next.
const PICKS_MAX: usize = 64;

/// Operations that a closed loop is taken to do for each that it has under way, per second. It says
/// only what part of the operations is whose.
const OF_CLOSED_PER_S: f64 = 100.0;

/// Reads of one pool, or writes to it, as its VMs do them.
pub(super) struct Draws {
    kind: Kind,
    prng: Prng,
    streams: Vec<(Rc<VmRig>, Source)>,
    /// Up to each stream, the shares of all.
    shares: Vec<f64>,
}

/// The operations per second that a stream has a share by.
fn share(vm: &VmProfile, index: usize) -> f64 {
    match vm.streams[index].pacing {
        Pacing::Open { per_second } => per_second,
        Pacing::Closed { outstanding } => outstanding as f64 * OF_CLOSED_PER_S,
        Pacing::Threads(_) | Pacing::Commits { .. } => {
            let latency = Duration::from_secs_f64(1.0 / OF_CLOSED_PER_S);
            vm.threads_per_s(index, latency).unwrap_or(0.0)
        }
    }
}

impl Draws {
    /// `None` when nobody does such operations there. They are other ones than those of the run, which `name`
    /// keeps apart, at the same hot places.
    pub(super) fn of(
        kind: Kind,
        (pool, rig): (&PoolRig, &Rig),
        (seed, name): (u64, &str),
    ) -> Result<Option<Draws>, RehearseError> {
        let (mut streams, mut shares) = (Vec::new(), Vec::new());
        let mut sum = 0.0;
        for vm in &rig.vms {
            let is_here = |disk: &Rc<DiskRig>| disk.pool.borrow().name == pool.name;
            let here: Vec<bool> = vm.disks.iter().map(is_here).collect();
            if !here.contains(&true) {
                continue;
            }
            let bytes: Vec<u64> = vm.disks.iter().map(|disk| disk.in_use_bytes).collect();
            let sources = Source::of_vm(&vm.profile, &bytes, seed);
            let sources = sources.map_err(RehearseError::engine)?;
            for (index, (stream, source)) in vm.profile.streams.iter().zip(sources).enumerate() {
                let part = part_of(stream, kind, &here);
                if part > 0.0 && matches!(source, Source::Drawn(_)) {
                    sum += share(&vm.profile, index) * part;
                    shares.push(sum);
                    streams.push((Rc::clone(vm), source.apart(name)));
                }
            }
        }
        let prng = Prng::from_seed(seed).stream(name).stream(&pool.name);
        Ok((sum > 0.0).then_some(Draws {
            kind,
            prng,
            streams,
            shares,
        }))
    }

    /// The next one; `None` when none comes.
    pub(super) fn next(&mut self, pool: &PoolRig) -> Option<(Rc<VmRig>, Operation)> {
        let sum = *self.shares.last()?;
        for _ in 0..PICKS_MAX {
            let at = self.prng.unit() * sum;
            let stream = self.shares.partition_point(|share| *share <= at);
            let (vm, source) = self.streams.get_mut(stream)?;
            for _ in 0..DRAWS_MAX {
                let operation = source.draw().ok().flatten()?;
                let is_here = vm.disks[operation.disk].pool.borrow().name == pool.name;
                if operation.kind == self.kind && is_here {
                    return Some((Rc::clone(vm), operation));
                }
            }
        }
        None
    }
}

/// The part of a stream's operations that are of this kind, on those disks of its VM that are here.
fn part_of(stream: &Stream, kind: Kind, here: &[bool]) -> f64 {
    let weights = stream.weights.iter().zip(here);
    let weight_here: u32 = weights
        .filter(|(_, here)| **here)
        .map(|(weight, _)| weight)
        .sum();
    let weight: u32 = stream.weights.iter().sum();
    let percent = match kind {
        // A run begins to read in order where these did, so they would be hot, and are read once.
        Kind::Read if stream.mix.random_percent == 0 => 0,
        Kind::Read => stream.mix.read_percent,
        Kind::Write => 100 - stream.mix.read_percent.min(100),
    };
    f64::from(weight_here) / f64::from(weight.max(1)) * f64::from(percent) / 100.0
}
