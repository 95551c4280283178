//! The values of a pool that change in service: rates, thresholds, cache size.
//!
//! Invariant: rates and cache are the whole pool's, and each lane has its share of them; the lanes
//! have one set of thresholds together.

use super::Pool;
use crate::error::ArrayError;
use engine::pool::maintenance::Rates;
use engine::pool::maintenance::fullness::Thresholds;
use engine::{Lane, World};
use site::{Background, RateLimit, TimeLimit};
use std::time::Duration;

/// These values of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paces {
    /// Limits of work in the background.
    pub rates: Rates,
    /// From which part of the capacity on people are told.
    pub thresholds: Thresholds,
    /// RAM for reads; 0 is none.
    pub cache_bytes: u64,
}

impl Paces {
    /// What the settings say of a pool.
    pub fn of(site: &site::Pool) -> Self {
        let usual = Rates::default();
        let limit = |limit: Option<RateLimit>, usual: Option<u64>| match limit {
            None => usual,
            Some(RateLimit::Unlimited) => None,
            Some(RateLimit::BytesPerS(bytes_per_s)) => Some(bytes_per_s),
        };
        Paces {
            rates: Rates {
                rebuild_bytes_per_s: limit(site.rebuild_rate, usual.rebuild_bytes_per_s),
                scrub_bytes_per_s: limit(site.scrub_rate, usual.scrub_bytes_per_s),
                yields: site.background == Background::Yield,
                rebuild_within: within(site.rebuild_hours, HOUR, usual.rebuild_within),
                scrub_within: within(site.scrub_days, DAY, usual.scrub_within),
            },
            thresholds: thresholds(site),
            cache_bytes: site.cache_bytes,
        }
    }

    /// Has a lane go by its share of them.
    pub fn set_on<W: World>(&self, lane: &Lane<W>) {
        set_cache(lane, self.cache_bytes);
        set_rates(lane, self.rates);
        lane.set_thresholds(self.thresholds);
    }
}

/// An hour, the unit of the time of rebuilds.
pub const HOUR: Duration = Duration::from_secs(3600);

/// A day, the unit of the time of scrubs.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// How long something may take.
fn within(limit: Option<TimeLimit>, unit: Duration, usual: Option<Duration>) -> Option<Duration> {
    match limit {
        None => usual,
        Some(TimeLimit::Off) => None,
        Some(TimeLimit::Of(count)) => Some(unit * u32::from(count)),
    }
}

/// As the settings say it, a part of a unit counts as one.
pub(crate) fn time_limit(within: Option<Duration>, unit: Duration) -> TimeLimit {
    let count = |within: Duration| within.as_nanos().div_ceil(unit.as_nanos());
    within.map_or(TimeLimit::Off, |within| {
        TimeLimit::Of(u16::try_from(count(within)).unwrap_or(u16::MAX))
    })
}

/// One of the two may be named alone: the other gives way then.
fn thresholds(site: &site::Pool) -> Thresholds {
    let usual = Thresholds::default();
    let (warn, alarm) = (usual.warn_percent, usual.alarm_percent);
    Thresholds {
        warn_percent: site
            .warn_at
            .unwrap_or(warn.min(site.alarm_at.unwrap_or(warn))),
        alarm_percent: site
            .alarm_at
            .unwrap_or(alarm.max(site.warn_at.unwrap_or(alarm))),
    }
}

fn set_rates<W: World>(lane: &Lane<W>, rates: Rates) {
    lane.set_rates(rates.of_each(u64::from(lane.info().lanes)));
}

fn set_cache<W: World>(lane: &Lane<W>, cache_bytes: u64) {
    let lanes = u64::from(lane.info().lanes);
    lane.store().cache.set_capacity(cache_bytes / lanes);
}

impl<W: World> Pool<W> {
    /// Limits work in the background.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn set_rates(&self, rates: Rates) -> Result<(), ArrayError> {
        let visit = move |_, lane: Lane<W>| async move {
            set_rates(&lane, rates);
            Ok(())
        };
        self.visit_all(visit).await
    }

    /// Gives it so much RAM for reads; 0 is none.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn set_cache(&self, cache_bytes: u64) -> Result<(), ArrayError> {
        let visit = move |_, lane: Lane<W>| async move {
            set_cache(&lane, cache_bytes);
            Ok(())
        };
        self.visit_all(visit).await
    }

    /// Says from which part of its capacity on people are told.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn set_thresholds(&self, thresholds: Thresholds) -> Result<(), ArrayError> {
        let visit = move |_, lane: Lane<W>| async move {
            lane.set_thresholds(thresholds);
            Ok(())
        };
        // All lanes have them together.
        self.visit(0, visit).await
    }

    /// Has it go by all of these.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn set_paces(&self, paces: Paces) -> Result<(), ArrayError> {
        let visit = move |_, lane: Lane<W>| async move {
            paces.set_on(&lane);
            Ok(())
        };
        self.visit_all(visit).await
    }
}
