//! What an array holds that has run for a long time under its load: changed checksums in RAM, and,
//! where it takes more than its drives do, a full write log.
//!
//! Neither is waited for. Writes of the load, drawn apart from those of the run, go to the volumes
//! while drives take no time: so the engine itself comes to that state.

use super::Rig;
use super::draws::Draws;
use super::warmed;
use crate::error::RehearseError;
use crate::parts::pool::PoolRig;
use base::VolumeOffset;
use engine::World;
use engine::store::Debt;
use workload::generator::Kind;

/// Writes between two looks at the checksums that have changed.
const STEP: usize = 4096;

/// Steps, at most: what has not come to an end by then changes slowly.
const STEPS_MAX: usize = 64;

/// Changed checksums have come to an end when a step adds less than this share.
const GROWTH: f64 = 0.02;

/// A write log is filled to so many parts, of so many, of what it takes before writes wait.
const FULL_PARTS: (u64, u64) = (15, 16);

/// Keeps these draws apart from those of the run.
const AGED: &str = "aged";

/// Has all pools hold what they do after a long time: as many changed checksums as come together, and
/// in their write logs all that these take without a wait.
///
/// # Errors
/// What the engine says.
pub async fn age(rig: &Rig, seed: u64) -> Result<(), RehearseError> {
    let aged = async {
        for pool in &rig.pools {
            age_pool(rig, pool, seed).await?;
        }
        Ok(())
    };
    rig.in_no_time(aged).await
}

async fn age_pool(rig: &Rig, pool: &PoolRig, seed: u64) -> Result<(), RehearseError> {
    let Some(mut writes) = Draws::of(Kind::Write, (pool, rig), (seed, AGED))? else {
        return Ok(());
    };
    change_checksums(rig, pool, &mut writes).await?;
    // What was written went out of the caches. After this nothing may go in place any more.
    warmed::warm_pool(rig, pool, (seed, AGED)).await?;
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
    writes: &mut Draws,
) -> Result<(), RehearseError> {
    let mut before = 0;
    for _ in 0..STEPS_MAX {
        let done = write(writes, (rig, pool), STEP, |_, _| true).await?;
        let changed: u64 = pool.debts().map(|debt| debt.sums_bytes).sum();
        if done < STEP || changed as f64 <= before as f64 * (1.0 + GROWTH) {
            return Ok(());
        }
        before = changed;
    }
    Ok(())
}

/// Fills the logs of all lanes that hosts write to.
async fn fill_log(rig: &Rig, pool: &PoolRig, writes: &mut Draws) -> Result<(), RehearseError> {
    let (parts, of) = FULL_PARTS;
    let has_room =
        |debt: Debt, bytes: u64| debt.log_bytes + bytes < debt.log_bytes_max * parts / of;
    let all_bytes: u64 = pool.debts().map(|debt| debt.log_bytes_max).sum();
    let most = all_bytes / base::BLOCK_BYTES as u64;
    let done = write(writes, (rig, pool), most as usize, has_room).await;
    done.map(drop)
}

/// Draws so many writes, and does those to lanes that have room, as long as one has. How many it drew.
async fn write(
    draws: &mut Draws,
    (rig, pool): (&Rig, &PoolRig),
    most: usize,
    has_room: impl Fn(Debt, u64) -> bool,
) -> Result<usize, RehearseError> {
    for done in 0..most {
        if !pool.debts().any(|debt| has_room(debt, 0)) {
            return Ok(done);
        }
        let Some((vm, operation)) = draws.next(pool) else {
            return Ok(done);
        };
        let volume = vm.disks[operation.disk].volume.borrow().clone();
        let lane = pool.lane_of_writes(&volume);
        let debt = lane.map_err(RehearseError::engine)?.store().debt();
        // The end of a write, and its maps, come after its beginning: nothing would make room for them here.
        let bytes = operation.offset_bytes..operation.offset_bytes + u64::from(operation.bytes);
        let maps = pool.file_system.get();
        let of_maps = maps.map_or(0, |maps| maps.written_bytes(&bytes));
        if !has_room(debt, u64::from(operation.bytes) + of_maps) {
            continue;
        }
        let data = rig.world.buffers().data(operation.bytes as usize).freeze();
        let at = VolumeOffset(bytes.start);
        let written = pool.write(&volume, at, data).await;
        written.map_err(|error| RehearseError::engine(error.to_string()))?;
    }
    Ok(most)
}
