//! What VMs do to a pool, drawn apart from the operations of a run: in no time, and as many as it takes to
//! bring the pool where a long time under this load does.

use super::Rig;
use super::vm::VmRig;
use crate::error::RehearseError;
use crate::parts::pool::PoolRig;
use base::Prng;
use std::rc::Rc;
use std::time::Duration;
use workload::generator::{Kind, Operation};
use workload::profile::{Pacing, VmProfile};
use workload::source::Source;

/// Draws from streams, at most, until one of them is for a pool.
const DRAWS_MAX: usize = 256;

/// Operations that a closed loop is taken to do for each that it has under way, per second. It says
/// only what part of the writes is whose.
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
    /// `None` when nobody does such operations there. `seed` keeps them apart from those of the run.
    pub(super) fn of(
        kind: Kind,
        (pool, rig): (&PoolRig, &Rig),
        seed: u64,
    ) -> Result<Option<Draws>, RehearseError> {
        let (mut streams, mut shares) = (Vec::new(), Vec::new());
        let mut sum = 0.0;
        for vm in &rig.vms {
            let mut disks = vm.disks.iter();
            if !disks.any(|disk| disk.pool.borrow().name == pool.name) {
                continue;
            }
            let bytes: Vec<u64> = vm.disks.iter().map(|disk| disk.in_use_bytes).collect();
            let sources = Source::of_vm(&vm.profile, &bytes, seed);
            let sources = sources.map_err(RehearseError::engine)?;
            for (index, (stream, source)) in vm.profile.streams.iter().zip(sources).enumerate() {
                let does_so = match kind {
                    // Who reads in order finds nothing of what was read before: it begins anew in a run.
                    Kind::Read => stream.mix.read_percent > 0 && stream.mix.random_percent > 0,
                    Kind::Write => stream.mix.read_percent < 100,
                };
                if does_so && matches!(source, Source::Drawn(_)) {
                    sum += share(&vm.profile, index);
                    shares.push(sum);
                    streams.push((Rc::clone(vm), source));
                }
            }
        }
        let prng = Prng::from_seed(seed).stream(&pool.name);
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
        for _ in 0..DRAWS_MAX {
            let at = self.prng.unit() * sum;
            let stream = self.shares.partition_point(|share| *share <= at);
            let (vm, source) = self.streams.get_mut(stream)?;
            let operation = source.draw().ok().flatten()?;
            let is_here = vm.disks[operation.disk].pool.borrow().name == pool.name;
            if operation.kind == self.kind && is_here {
                return Some((Rc::clone(vm), operation));
            }
        }
        None
    }
}
