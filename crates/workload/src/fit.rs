//! The parameters of a stream that does what a running array has counted: the way back from counts
//! to what [`crate::generator`] draws from.
//!
//! Each parameter comes from one count, by the rule of the generator:
//! - sizes: the mean of each power of two, in multiples of 4 KiB, with whole per cents as shares;
//! - random: the share of operations that did not go on where one ended;
//! - skew: how often two random operations meet in a grain. A cascade of each `hot` has its own
//!   chance for that, which grows with it ([`Cascade::shares`]);
//! - bursts: the variance of the counts of periods against that of a Poisson process.
//!
//! Differences that may be chance are ignored: they are no skew and no bursts.
//!
//! Pure: equal counts give equal parameters.

use crate::locality::{Cascade, Locality};
use crate::profile::{IO_BYTES_MAX, IO_GRAIN_BYTES};
use base::Prng;

/// Deviations from here on, in standard deviations, are not taken for chance.
const SIGNIFICANT: f64 = 4.0;

/// Disks whose chance to meet is averaged: where the parts of a cascade lie against the grains
/// moves it a little.
const DISKS: u64 = 4;

const HOT_MIN: u32 = 50;
const HOT_MAX: u32 = 99;

/// What was counted of reads or of writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Operations, and random ones among them.
    pub operations: u64,
    /// Those that did not go on where one before had ended.
    pub random: u64,
    /// By size class: operations, and their bytes in all.
    pub sizes: Vec<(u64, u64)>,
    /// Random operations whose grain was counted.
    pub placed: u64,
    /// Pairs of those that began in the same grain.
    pub pairs: f64,
    /// Size of the disk.
    pub disk_bytes: u64,
    /// Length of a grain of it.
    pub grain_bytes: u64,
    /// Periods of [`crate::profile::BURST_PERIOD`] that were counted.
    pub periods: u64,
    /// Mean number of operations in a period.
    pub period_mean: f64,
    /// Variance of that number.
    pub period_variance: f64,
}

/// Parameters of a stream, but for its rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// Sizes in bytes, with their shares in per cent.
    pub sizes: Vec<(u32, u32)>,
    /// Per cent at a random place.
    pub random_percent: u32,
    /// Skew of random places; 50 is none.
    pub hot_percent: u32,
    /// Per cent of periods with operations; 100 is Poisson.
    pub active_percent: u32,
}

/// The parameters; nothing where nothing was counted.
pub fn fit(counted: &Counted) -> Option<Fitted> {
    let operations = counted.operations.max(1) as f64;
    let random = counted.random.min(counted.operations) as f64 / operations;
    let sizes = sizes(&counted.sizes);
    (!sizes.is_empty()).then(|| Fitted {
        sizes,
        random_percent: (random * 100.0).round() as u32,
        hot_percent: hot_percent(counted),
        active_percent: active_percent(counted),
    })
}

/// Whole per cents by largest remainders; the sizes that have none are left out.
fn sizes(counted: &[(u64, u64)]) -> Vec<(u32, u32)> {
    let grain = u64::from(IO_GRAIN_BYTES);
    let counted: Vec<_> = counted.iter().filter(|(count, _)| *count > 0).collect();
    let all: u64 = counted.iter().map(|(count, _)| count).sum();
    let rounded = |(count, bytes): &&(u64, u64)| {
        let grains = (*bytes as f64 / *count as f64 / grain as f64).round() as u32;
        grains.clamp(1, IO_BYTES_MAX / IO_GRAIN_BYTES) * IO_GRAIN_BYTES
    };
    let percents = percents(counted.iter().map(|(count, _)| *count), all);
    let mut sizes: Vec<(u32, u32)> = Vec::new();
    for (bytes, percent) in counted.iter().map(rounded).zip(percents) {
        match sizes.iter_mut().find(|(known, _)| *known == bytes) {
            Some((_, share)) => *share += percent,
            None if percent > 0 => sizes.push((bytes, percent)),
            None => {}
        }
    }
    sizes
}

/// What each count is of all of them, in per cents that add up to 100.
fn percents(counts: impl Iterator<Item = u64>, all: u64) -> Vec<u32> {
    let exact: Vec<f64> = counts
        .map(|count| count as f64 * 100.0 / all as f64)
        .collect();
    let mut whole: Vec<u32> = exact.iter().map(|percent| *percent as u32).collect();
    let mut by_rest: Vec<usize> = (0..exact.len()).collect();
    by_rest.sort_by(|a, b| {
        exact[*b]
            .fract()
            .total_cmp(&exact[*a].fract())
            .then(a.cmp(b))
    });
    let missing = 100u32.saturating_sub(whole.iter().sum());
    for place in by_rest.into_iter().take(missing as usize) {
        whole[place] += 1;
    }
    whole
}

fn grain_count(counted: &Counted) -> u64 {
    counted
        .disk_bytes
        .div_ceil(counted.grain_bytes.max(1))
        .max(1)
}

/// The cascade whose random operations meet as often in a grain.
fn hot_percent(counted: &Counted) -> u32 {
    let met = counted.pairs;
    let all = counted.placed as f64 * counted.placed.saturating_sub(1) as f64 / 2.0;
    let by_chance = all / grain_count(counted) as f64;
    if met <= by_chance + SIGNIFICANT * (by_chance + 1.0).sqrt() {
        return HOT_MIN;
    }
    // The smallest that meets more often, or the one before it if that is nearer.
    let (mut below, mut above) = (HOT_MIN, HOT_MAX);
    while above - below > 1 {
        let middle = u32::midpoint(below, above);
        match chance_to_meet(middle, counted) * all < met {
            true => below = middle,
            false => above = middle,
        }
    }
    let off = |hot| (chance_to_meet(hot, counted) * all / met).ln().abs();
    match off(below) < off(above) {
        true => below,
        false => above,
    }
}

/// That two random operations begin in the same grain.
fn chance_to_meet(hot_percent: u32, counted: &Counted) -> f64 {
    let locality = Locality::SelfSimilar {
        hot_percent,
        host_keeps_percent: 0,
        drift: None,
    };
    let of_disk = |seed| {
        let root = Prng::from_seed(seed);
        let cascade = Cascade::new(locality, counted.disk_bytes, &root);
        let shares = cascade.map(|cascade| cascade.shares(grain_count(counted)));
        let shares = shares.unwrap_or_default();
        shares.iter().map(|share| share * share).sum::<f64>()
    };
    (0..DISKS).map(of_disk).sum::<f64>() / DISKS as f64
}

/// The share of active periods that gives this variance; see [`crate::profile::BURST_PERIOD`].
fn active_percent(counted: &Counted) -> u32 {
    let (mean, periods) = (counted.period_mean, counted.periods as f64);
    if mean <= 0.0 || periods < 2.0 {
        return 100;
    }
    let ratio = counted.period_variance / mean;
    if ratio <= 1.0 + SIGNIFICANT * (2.0 / (periods - 1.0)).sqrt() {
        return 100;
    }
    let active = mean / (mean + ratio - 1.0);
    ((active * 100.0).round() as u32).clamp(1, 100)
}
