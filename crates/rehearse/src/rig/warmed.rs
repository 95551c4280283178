//! What read caches hold of an array that has run for a long time under its load.
//!
//! This is not waited for. Reads of the load, drawn apart from those of the run, go to the volumes while
//! drives take no time. So the engine's own cache comes to that state, or as near as [`READS_MAX`] reads bring it.
//!
//! Left out: writes, which take blocks out of a cache. Where it holds nearly all data of VMs that write, it
//! begins too warm. Traces have but the operations of the run.

use super::Rig;
use super::draws::Draws;
use crate::error::RehearseError;
use crate::parts::pool::PoolRig;
use base::VolumeOffset;
use workload::generator::Kind;

/// Looks at a cache while as much is read as it holds.
const LOOKS: u64 = 8;

/// Reads, at most, of a pool.
pub(crate) const READS_MAX: usize = 1 << 18;

/// A pool is read so many times as much as its caches hold, at most.
const ROUNDS_MAX: u64 = 4;

/// A cache that is full has come to an end when, of the reads between two looks, the share that it has
/// differs by less, so many times in a row.
const GROWTH: f64 = 0.01;
const STEADY_LOOKS: u32 = 2;

/// All that is asked for is there.
const ALL_SHARE: f64 = 0.99;

/// Keeps these draws apart from those of the run.
const WARMED: &str = "warmed";

/// Has the caches of all pools hold what they do after a long time.
///
/// # Errors
/// What the engine says.
pub async fn warm(rig: &Rig, seed: u64) -> Result<(), RehearseError> {
    let warmed = async {
        for pool in &rig.pools {
            warm_pool(rig, pool, (seed, WARMED)).await?;
        }
        Ok(())
    };
    rig.in_no_time(warmed).await
}

/// The same of one pool, by reads that `name` keeps apart from others. Drives take no time.
pub(super) async fn warm_pool(
    rig: &Rig,
    pool: &PoolRig,
    (seed, name): (u64, &str),
) -> Result<(), RehearseError> {
    let caches = pool.lanes.iter().map(|lane| &lane.store().cache);
    let caches = caches.filter(|cache| cache.is_on());
    let capacity_bytes: u64 = caches.map(|cache| cache.capacity_bytes()).sum();
    let Some(mut reads) = Draws::of(Kind::Read, (pool, rig), (seed, name))? else {
        return Ok(());
    };
    let (mut left, mut before) = (READS_MAX, Seen::of(pool));
    let (mut share, mut steady) = (0.0, 0);
    for _ in 0..LOOKS * ROUNDS_MAX {
        let done = read(&mut reads, pool, (capacity_bytes / LOOKS, left)).await?;
        let now = Seen::of(pool);
        let found = now.share_since(&before);
        steady = match now.is_full && (found - share).abs() < GROWTH {
            true => steady + 1,
            false => 0,
        };
        if done == 0 || found > ALL_SHARE || steady == STEADY_LOOKS {
            break;
        }
        (left, before, share) = (left.saturating_sub(done), now, found);
    }
    Ok(())
}

/// What caches have been asked for.
struct Seen {
    hits: u64,
    misses: u64,
    /// Whether each that was asked has sent blocks out for others.
    is_full: bool,
}

impl Seen {
    fn of(pool: &PoolRig) -> Seen {
        let caches = pool.lanes.iter().map(|lane| lane.store().cache.stats());
        let mut seen = Seen {
            hits: 0,
            misses: 0,
            is_full: true,
        };
        for cache in caches {
            seen.hits += cache.hits;
            seen.misses += cache.misses;
            seen.is_full &= cache.evicted > 0 || cache.hits + cache.misses == 0;
        }
        seen
    }

    /// Of the blocks asked for since, the share that was there.
    fn share_since(&self, before: &Seen) -> f64 {
        let hits = self.hits - before.hits;
        let all = hits + self.misses - before.misses;
        hits as f64 / all.max(1) as f64
    }
}

/// Reads so many bytes, in so many reads at most. How many reads there were.
async fn read(
    reads: &mut Draws,
    pool: &PoolRig,
    (mut bytes, most): (u64, usize),
) -> Result<usize, RehearseError> {
    for done in 0..most {
        if bytes == 0 {
            return Ok(done);
        }
        let Some((vm, operation)) = reads.next(pool) else {
            return Ok(done);
        };
        let volume = vm.disks[operation.disk].volume.borrow().clone();
        let (at, len) = (
            VolumeOffset(operation.offset_bytes),
            operation.bytes as usize,
        );
        let read = pool.read(&volume, at, len).await;
        read.map_err(|error| RehearseError::engine(error.to_string()))?;
        bytes = bytes.saturating_sub(u64::from(operation.bytes));
    }
    Ok(most)
}
