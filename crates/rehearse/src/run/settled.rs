//! The judgement whether a run has settled: what its pools owe their drives stays the same.
//!
//! A write log takes writes faster than drives do, until it is full: a run that ends before shows
//! the log, not the array. Pools owe their drives two things: data that waits in a log, and checksums
//! that have changed in RAM. Over the measured window each may change by [`TOLERANCE`] of the bytes that
//! hosts have written in it.
//!
//! A run that has not settled goes on ([`super::run`]): logs are filled ([`crate::rig::aged`]), and
//! windows are measured until one has settled, or there were [`WINDOWS_MAX`]. Its first window is
//! the **burst**, its last one the **sustained** load. Plans with events or traces are measured once,
//! and say whether that has settled: what happens in them happens once.

use crate::parts::pool::PoolRig;
use crate::parts::world::RigWorld;
use crate::rig::Rig;
use engine::store::Store;
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use std::time::Duration;
use workload::report::Report;

/// What may change of what was accepted.
pub const TOLERANCE: f64 = 0.02;

/// What may change however little was accepted, bytes: a few stripes.
const LEAST_BYTES: f64 = 1048576.0;

/// Windows after the first, at most.
pub const WINDOWS_MAX: u32 = 6;

/// From here on, as a share of what a log takes before writes wait, it holds writes back.
const FULL: f64 = 0.95;

/// What a lane of a pool owed its drives, and what it accepted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owed {
    /// The pool that owes it, as the file names it.
    pub pool: String,
    /// Data that waits in its log, bytes.
    pub log_bytes: u64,
    /// From so many on writes wait.
    pub log_bytes_max: u64,
    /// Checksums that have changed in RAM, bytes.
    pub sums_bytes: u64,
    /// Bytes that hosts have written since its opening.
    pub accepted_bytes: u64,
}

/// How the debt of a pool went over a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolDebt {
    /// The pool that owes it, as the file names it.
    pub pool: String,
    /// Bytes that hosts wrote per second.
    pub accepted_per_s: f64,
    /// By how many bytes a second the data that waits in its log grew; less than zero where it
    /// shrank.
    pub log_growth_per_s: f64,
    /// Data that waits there at the end, as a share of what the log takes before writes wait; of the
    /// fullest lane.
    pub log_fill: f64,
    /// In how many seconds the first log of a lane is full if it goes on like this; null where none
    /// grows.
    pub log_full_in_s: Option<f64>,
    /// The same from an empty log.
    #[serde(default)]
    pub log_lasts_s: Option<f64>,
    /// By how many bytes a second the checksums grew that have changed in RAM.
    pub checksums_growth_per_s: f64,
    /// Whether both stayed the same.
    pub is_settled: bool,
}

/// The load that the array took before its logs were full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// Operations that completed in a second, reads and writes together.
    pub iops: f64,
    /// Mean response time of reads, milliseconds.
    pub read_ms: f64,
    /// Mean response time of writes, milliseconds.
    pub write_ms: f64,
    /// For how many seconds the logs absorb it, from empty; null where it is not they that grew.
    pub lasts_s: Option<f64>,
}

/// Whether a run has settled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settling {
    /// Whether it has, in all pools.
    pub is_settled: bool,
    /// Seconds of load before the measured window.
    pub after_s: f64,
    /// Each pool, in the order of the file.
    pub pools: Vec<PoolDebt>,
    /// What the first window measured, where that had not settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
}

/// What all lanes of all pools owe now.
pub(super) fn owed(rig: &Rig) -> Vec<Owed> {
    let lanes = rig.pools.iter().flat_map(|pool| {
        let lanes = pool.lanes.iter().enumerate();
        lanes.map(move |(lane, of)| (pool, lane, of.store()))
    });
    let of_lane = |(pool, lane, store): (&Rc<PoolRig>, usize, &Store<RigWorld>)| {
        let debt = store.debt();
        let maps = pool.file_system.get();
        let maps_bytes = maps.map_or(0, |maps| maps.written_in(lane));
        Owed {
            pool: pool.name.clone(),
            log_bytes: debt.log_bytes,
            log_bytes_max: debt.log_bytes_max,
            sums_bytes: debt.sums_bytes,
            accepted_bytes: store.io().host_writes.bytes.saturating_sub(maps_bytes),
        }
    };
    lanes.map(of_lane).collect()
}

impl PoolDebt {
    /// From what its only lane owed before and after a window.
    fn over(before: &Owed, after: &Owed, window: Duration) -> PoolDebt {
        let seconds = window.as_secs_f64();
        let change = |before: u64, after: u64| after as f64 - before as f64;
        let accepted = change(before.accepted_bytes, after.accepted_bytes);
        let log = change(before.log_bytes, after.log_bytes);
        let sums = change(before.sums_bytes, after.sums_bytes);
        let most = (accepted * TOLERANCE).max(LEAST_BYTES);
        let room = after.log_bytes_max.saturating_sub(after.log_bytes) as f64;
        let log_full_in_s = (log > most).then_some(room / log * seconds);
        let log_fill = after.log_bytes as f64 / (after.log_bytes_max as f64).max(1.0);
        PoolDebt {
            pool: after.pool.clone(),
            accepted_per_s: accepted / seconds,
            log_growth_per_s: log / seconds,
            log_fill,
            log_full_in_s,
            log_lasts_s: log_full_in_s.map(|full_in_s| full_in_s / (1.0 - log_fill).max(0.01)),
            checksums_growth_per_s: sums / seconds,
            is_settled: log.abs() <= most && sums.abs() <= most,
        }
    }

    /// With another lane of the pool.
    fn with(self, lane: PoolDebt) -> PoolDebt {
        let sooner = |one: Option<f64>, other: Option<f64>| {
            let both = one.into_iter().chain(other);
            both.min_by(f64::total_cmp)
        };
        PoolDebt {
            accepted_per_s: self.accepted_per_s + lane.accepted_per_s,
            log_growth_per_s: self.log_growth_per_s + lane.log_growth_per_s,
            log_fill: self.log_fill.max(lane.log_fill),
            log_full_in_s: sooner(self.log_full_in_s, lane.log_full_in_s),
            log_lasts_s: sooner(self.log_lasts_s, lane.log_lasts_s),
            checksums_growth_per_s: self.checksums_growth_per_s + lane.checksums_growth_per_s,
            is_settled: self.is_settled && lane.is_settled,
            pool: self.pool,
        }
    }

    /// Whether its log is so full that it holds writes back.
    pub fn is_held_back(&self) -> bool {
        self.log_fill >= FULL
    }

    /// The cause, where it has not settled.
    fn cause(&self) -> Option<String> {
        let (pool, megabytes) = (&self.pool, |rate: f64| rate.abs() / 1e6);
        let accepted = megabytes(self.accepted_per_s);
        if self.is_settled {
            return None;
        }
        if let Some(full_in_s) = self.log_full_in_s {
            return Some(format!(
                "the write log of pool {pool} grows by {:.1} MB/s of {accepted:.1} MB/s written, and absorbs this for {} more",
                megabytes(self.log_growth_per_s),
                lasting(full_in_s)
            ));
        }
        let (grown, rate) = match self.log_growth_per_s.abs() > self.checksums_growth_per_s.abs() {
            true => ("the data in the write log", self.log_growth_per_s),
            false => (
                "the changed checksums in memory",
                self.checksums_growth_per_s,
            ),
        };
        let how = if rate > 0.0 { "grow" } else { "shrink" };
        Some(format!(
            "{grown} of pool {pool} {how} by {:.1} MB/s of {accepted:.1} MB/s written",
            megabytes(rate)
        ))
    }
}

impl Settling {
    /// From what was owed before and after a window that began so long after the start.
    pub(super) fn over(
        (before, after): (&[Owed], &[Owed]),
        window: Duration,
        began_after: Duration,
    ) -> Settling {
        let mut pools: Vec<PoolDebt> = Vec::new();
        for (before, after) in before.iter().zip(after) {
            let lane = PoolDebt::over(before, after, window);
            match pools.pop_if(|last| last.pool == lane.pool) {
                Some(pool) => pools.push(pool.with(lane)),
                None => pools.push(lane),
            }
        }
        Settling {
            is_settled: pools.iter().all(|pool| pool.is_settled),
            after_s: began_after.as_secs_f64(),
            pools,
            burst: None,
        }
    }

    /// What was measured before the logs were full.
    pub(super) fn burst(&self, load: &Report) -> Burst {
        let total = &load.total;
        let lasting = self.pools.iter().filter_map(|pool| pool.log_lasts_s);
        Burst {
            iops: total.reads_per_s + total.writes_per_s,
            read_ms: total.read.response.mean_ms,
            write_ms: total.write.response.mean_ms,
            lasts_s: lasting.min_by(f64::total_cmp),
        }
    }

    /// Sentences for reports; none where the run has settled from the start.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        if let Some(burst) = &self.burst {
            let lasts = match burst.lasts_s {
                Some(lasts_s) => format!(", for {}", lasting(lasts_s)),
                None => String::new(),
            };
            said.push(format!(
                "Burst{lasts}, while write logs and memory absorb writes: {:.0} IO/s, reads {:.2} ms, writes {:.2} ms. \
                 The other figures are for a load that lasts.",
                burst.iops, burst.read_ms, burst.write_ms
            ));
        }
        if !self.is_settled {
            let causes: Vec<String> = self.pools.iter().filter_map(PoolDebt::cause).collect();
            said.push(format!("Not settled: {}.", causes.join("; ")));
        }
        said
    }
}

/// A time for people.
fn lasting(seconds: f64) -> String {
    match seconds {
        0.0..100.0 => format!("{seconds:.0} s"),
        100.0..6000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn owed(log: u64, sums: u64, accepted: u64) -> Owed {
        Owed {
            pool: "data".into(),
            log_bytes: log * MIB,
            log_bytes_max: 48 * MIB,
            sums_bytes: sums * MIB,
            accepted_bytes: accepted * MIB,
        }
    }

    fn settling(before: Owed, after: Owed) -> Settling {
        let window = Duration::from_secs(10);
        Settling::over((&[before], &[after]), window, Duration::from_secs(5))
    }

    #[test]
    fn a_log_that_grows_is_not_settled_and_says_for_how_long_it_lasts() {
        let found = settling(owed(10, 1, 0), owed(20, 1, 100));
        assert!(!found.is_settled);
        assert_eq!(found.pools[0].log_full_in_s, Some(28.0));
        let said = found.sentences();
        let wanted = "the write log of pool data grows by 1.0 MB/s of 10.5 MB/s written, and absorbs this for 28 s more";
        assert_eq!(said, [format!("Not settled: {wanted}.")]);
    }

    #[test]
    fn the_lane_whose_log_fills_first_says_how_long_that_lasts() {
        let window = Duration::from_secs(10);
        let [full, idle] = [owed(40, 1, 100), owed(0, 1, 0)];
        let before = [owed(36, 1, 0), owed(4, 1, 0)];
        let found = Settling::over((&before, &[full, idle]), window, window);
        let [pool] = &found.pools[..] else {
            panic!("one pool: {found:?}")
        };
        assert!(!found.is_settled, "one fills, and one drains");
        assert_eq!(pool.log_growth_per_s, 0.0);
        assert_eq!(pool.log_full_in_s, Some(20.0));
        assert!(
            pool.log_lasts_s
                .is_some_and(|lasts_s| (lasts_s - 120.0).abs() < 1e-6)
        );
        assert!((pool.log_fill - 40.0 / 48.0).abs() < 1e-9);
    }

    #[test]
    fn a_fiftieth_of_what_was_accepted_may_come_and_go() {
        assert!(settling(owed(10, 5, 0), owed(12, 3, 100)).is_settled);
        assert!(!settling(owed(10, 5, 0), owed(13, 5, 100)).is_settled);
        assert!(
            !settling(owed(13, 5, 0), owed(10, 5, 100)).is_settled,
            "it drains"
        );
        assert!(!settling(owed(10, 5, 0), owed(10, 8, 100)).is_settled);
        // However little was written.
        assert!(settling(owed(10, 5, 0), owed(11, 5, 0)).is_settled);
    }

    #[test]
    fn a_full_log_holds_writes_back() {
        assert!(settling(owed(46, 0, 0), owed(46, 0, 100)).pools[0].is_held_back());
        assert!(!settling(owed(40, 0, 0), owed(40, 0, 100)).pools[0].is_held_back());
    }

    #[test]
    fn times_are_told_in_units_that_people_use() {
        assert_eq!([40.0, 540.0, 7200.0].map(lasting), ["40 s", "9 min", "2 h"]);
    }
}
