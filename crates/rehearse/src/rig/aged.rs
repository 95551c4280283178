//! What an array holds that has run for a long time under its load: changed checksums in RAM, and,
//! where it takes more than its drives do, a full write log.
//!
//! Neither is waited for. Writes of the load, drawn apart from those of the run, go to the volumes
//! while drives take no time: so the engine itself comes to that state.

use super::Rig;
use super::vm::VmRig;
use crate::error::RehearseError;
use crate::parts::pool::PoolRig;
use base::{Prng, VolumeOffset};
use engine::World;
use engine::store::Debt;
use std::rc::Rc;
use std::time::Duration;
use workload::generator::{Kind, Operation};
use workload::profile::{Pacing, VmProfile};
use workload::source::Source;

/// Writes between two looks at the checksums that have changed.
const STEP: usize = 4096;

/// Steps, at most: what has not come to an end by then changes slowly.
const STEPS_MAX: usize = 64;

/// Changed checksums have come to an end when a step adds less than this share.
const GROWTH: f64 = 0.02;

/// Draws from streams, at most, until one of them writes to a pool.
const DRAWS_MAX: usize = 256;

/// A write log is filled to so many parts, of so many, of what it takes before writes wait.
const FULL_PARTS: (u64, u64) = (15, 16);

/// Operations that a closed loop is taken to do for each that it has under way, per second. It says
/// only what part of the writes is whose.
const OF_CLOSED_PER_S: f64 = 100.0;

/// Writes to one pool, as its VMs write.
struct Writes {
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

impl Writes {
    /// `None` when nobody writes to the pool.
    fn to(pool: &PoolRig, rig: &Rig, seed: u64) -> Result<Option<Writes>, RehearseError> {
        let (mut streams, mut shares) = (Vec::new(), Vec::new());
        let mut sum = 0.0;
        for vm in &rig.vms {
            let mut disks = vm.disks.iter();
            if !disks.any(|disk| disk.pool.borrow().name == pool.name) {
                continue;
            }
            let bytes: Vec<u64> = vm.disks.iter().map(|disk| disk.in_use_bytes).collect();
            let sources = Source::of_vm(&vm.profile, &bytes, seed ^ AGED);
            let sources = sources.map_err(RehearseError::engine)?;
            for (index, (stream, source)) in vm.profile.streams.iter().zip(sources).enumerate() {
                if stream.mix.read_percent < 100 && matches!(source, Source::Drawn(_)) {
                    sum += share(&vm.profile, index);
                    shares.push(sum);
                    streams.push((Rc::clone(vm), source));
                }
            }
        }
        let prng = Prng::from_seed(seed ^ AGED).stream(&pool.name);
        Ok((sum > 0.0).then_some(Writes {
            prng,
            streams,
            shares,
        }))
    }

    /// The next write; `None` when none comes.
    fn draw(&mut self, pool: &PoolRig) -> Option<(Rc<VmRig>, Operation)> {
        let sum = *self.shares.last()?;
        for _ in 0..DRAWS_MAX {
            let at = self.prng.unit() * sum;
            let stream = self.shares.partition_point(|share| *share <= at);
            let (vm, source) = self.streams.get_mut(stream)?;
            let operation = source.draw().ok().flatten()?;
            let is_here = vm.disks[operation.disk].pool.borrow().name == pool.name;
            if operation.kind == Kind::Write && is_here {
                return Some((Rc::clone(vm), operation));
            }
        }
        None
    }

    /// Draws so many writes, and does those to lanes that have room, as long as one has. How many it drew.
    async fn run(
        &mut self,
        (rig, pool): (&Rig, &PoolRig),
        most: usize,
        has_room: impl Fn(Debt) -> bool,
    ) -> Result<usize, RehearseError> {
        for done in 0..most {
            if !pool.debts().any(&has_room) {
                return Ok(done);
            }
            let Some((vm, operation)) = self.draw(pool) else {
                return Ok(done);
            };
            let volume = vm.disks[operation.disk].volume.borrow().clone();
            let lane = pool.lane_of_writes(&volume);
            if !has_room(lane.map_err(RehearseError::engine)?.store().debt()) {
                continue;
            }
            let data = rig.world.buffers().data(operation.bytes as usize).freeze();
            let at = VolumeOffset(operation.offset_bytes);
            let written = pool.write(&volume, at, data).await;
            written.map_err(|error| RehearseError::engine(error.to_string()))?;
        }
        Ok(most)
    }
}

/// Keeps these draws apart from those of the run.
const AGED: u64 = 0x6167_6564;

/// Has all pools hold what they do after a long time: as many changed checksums as come together, and
/// in their write logs all that these take without a wait.
///
/// # Errors
/// What the engine says.
pub async fn age(rig: &Rig, seed: u64) -> Result<(), RehearseError> {
    rig.drives().for_each(|drive| drive.set_timeless(true));
    let mut aged = Ok(());
    for pool in &rig.pools {
        if aged.is_ok() {
            aged = age_pool(rig, pool, seed).await;
        }
    }
    rig.drives().for_each(|drive| drive.set_timeless(false));
    aged
}

async fn age_pool(rig: &Rig, pool: &PoolRig, seed: u64) -> Result<(), RehearseError> {
    let Some(mut writes) = Writes::to(pool, rig, seed)? else {
        return Ok(());
    };
    change_checksums(rig, pool, &mut writes).await?;
    let set_windows = |stripes| {
        let stores = pool.lanes.iter().map(|lane| lane.store());
        stores.for_each(|store| store.set_window_stripes(stripes));
    };
    set_windows(Some(0));
    let filled = fill_log(rig, pool, &mut writes).await;
    set_windows(None);
    filled
}

async fn change_checksums(
    rig: &Rig,
    pool: &PoolRig,
    writes: &mut Writes,
) -> Result<(), RehearseError> {
    let mut before = 0;
    for _ in 0..STEPS_MAX {
        let done = writes.run((rig, pool), STEP, |_| true).await?;
        let changed: u64 = pool.debts().map(|debt| debt.sums_bytes).sum();
        if done < STEP || changed as f64 <= before as f64 * (1.0 + GROWTH) {
            return Ok(());
        }
        before = changed;
    }
    Ok(())
}

/// Fills the logs of all lanes that hosts write to.
async fn fill_log(rig: &Rig, pool: &PoolRig, writes: &mut Writes) -> Result<(), RehearseError> {
    let (parts, of) = FULL_PARTS;
    let has_room = |debt: Debt| debt.log_bytes < debt.log_bytes_max * parts / of;
    let all_bytes: u64 = pool.debts().map(|debt| debt.log_bytes_max).sum();
    let most = all_bytes / base::BLOCK_BYTES as u64;
    let done = writes.run((rig, pool), most as usize, has_room).await;
    done.map(drop)
}
