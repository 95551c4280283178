//! A pool that never writes over its data: units go to the end of a log of segments, and a cleaner
//! moves what is alive out of old segments.
//!
//! How often the cleaner writes a unit for each that a host writes depends on how full the pool is,
//! on the load and on the choice of segments. It hardly depends on size: so the log here is small,
//! and a drive's time is counted for segments of the real size (`drives`).
//!
//! Invariants:
//! - Each unit has one slot, and each slot one unit at most.
//! - The slots that a segment counts as alive are those that have a unit.
//! - A log that is too full refuses a write: it never cleans without end.

use base::Prng;
use std::collections::VecDeque;

/// Segments of the log.
const SEGMENTS: u32 = 512;
/// Segments that the cleaner needs. They are not part of the capacity that a fill level is of.
const KEPT_FREE: u32 = 4;
/// A segment is worth cleaning when one unit in so many is dead.
const DEAD_PARTS: u32 = 20;
/// Writes for each unit before its amplification is measured, and after.
const WARMUP: u32 = 4;
const ROUNDS: u32 = 6;
/// A slot without a unit, and a unit without a slot.
const NOWHERE: u32 = u32::MAX;
/// Hot and cold units lie in runs of a page.
const RUN_BYTES: u32 = 256 << 10;

/// Where a host writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Each unit is as likely as any other.
    Uniform,
    /// A fifth of the space gets four fifths of the writes.
    Skewed,
}

impl Load {
    /// Both, the even one first.
    pub const ALL: [Load; 2] = [Load::Uniform, Load::Skewed];

    /// As tables say it.
    pub fn name(self) -> &'static str {
        match self {
            Load::Uniform => "uniform",
            Load::Skewed => "80/20",
        }
    }

    fn draw(self, units: u32, run: u32, prng: &mut Prng) -> u32 {
        let runs = units / run;
        let within = prng.below(u64::from(run)) as u32;
        let hot = prng.chance(4, 5);
        let chosen = match self {
            Load::Uniform => prng.below(u64::from(runs)) as u32,
            Load::Skewed if hot => prng.below(u64::from(runs / 5)) as u32 * 5,
            Load::Skewed => {
                let cold = prng.below(u64::from(runs / 5 * 4)) as u32;
                cold / 4 * 5 + 1 + cold % 4
            }
        };
        chosen * run + within
    }

    /// Of so many items, how many different ones so many writes meet, on the average.
    pub fn distinct(self, items: f64, writes: f64) -> f64 {
        let met = |items: f64, writes: f64| items * (1.0 - (-writes / items).exp());
        match self {
            Load::Uniform => met(items, writes),
            Load::Skewed => met(items / 5.0, writes * 0.8) + met(items * 0.8, writes / 5.0),
        }
    }
}

/// How the cleaner chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaner {
    /// The segment with the fewest live units.
    Greedy,
    /// The best of free space × age / cost (Rosenblum and Ousterhout, 1992). What it moves goes to
    /// segments of its own.
    CostBenefit,
    /// The same choice. Units that are written often go to segments of their own.
    ByHeat,
}

/// The log is too full to be cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    live: u32,
    filled: u32,
    youngest: u32,
}

/// Units that the host wrote, units that the cleaner wrote once more, and segments that it read.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    host: u64,
    moved: u64,
    read: u64,
}

/// A log of segments and its map.
struct Log {
    per_segment: u32,
    cleaner: Cleaner,
    slot_of: Vec<u32>,
    unit_in: Vec<u32>,
    segments: Vec<Segment>,
    free: VecDeque<u32>,
    open: [Option<u32>; 2],
    /// Of each unit: when the host wrote it last, in writes, and whether that was soon after the
    /// time before.
    written: Vec<u32>,
    is_hot: Vec<bool>,
    now: u32,
    counts: Counts,
}

impl Log {
    /// A log of which so much is filled, one unit after the other.
    fn filled(per_segment: u32, fill_percent: u32, run: u32, cleaner: Cleaner) -> Log {
        let capacity = (SEGMENTS - KEPT_FREE) * per_segment;
        let grain = 5 * run;
        let units = capacity / 100 * fill_percent / grain * grain;
        let mut log = Log {
            per_segment,
            cleaner,
            slot_of: vec![NOWHERE; units as usize],
            unit_in: vec![NOWHERE; (SEGMENTS * per_segment) as usize],
            segments: vec![Segment::default(); SEGMENTS as usize],
            free: (0..SEGMENTS).collect(),
            open: [None; 2],
            written: vec![0; units as usize],
            is_hot: vec![false; units as usize],
            now: 0,
            counts: Counts::default(),
        };
        for unit in 0..units {
            let appended = log.append(unit, 0);
            assert!(appended.is_ok(), "{fill_percent} % fit");
        }
        log
    }

    /// The host writes a unit once more.
    ///
    /// # Errors
    /// [`Full`]: no segment is worth cleaning.
    fn overwrite(&mut self, unit: u32) -> Result<(), Full> {
        while self.free.len() < KEPT_FREE as usize {
            self.clean()?;
        }
        self.now += 1;
        let rested = self.now - self.written[unit as usize];
        self.is_hot[unit as usize] = rested < self.slot_of.len() as u32;
        self.written[unit as usize] = self.now;
        self.counts.host += 1;
        self.append(unit, self.head(unit, 0))
    }

    /// The open segment for a unit; `usual` where heat does not count.
    fn head(&self, unit: u32, usual: usize) -> usize {
        let rested = self.now - self.written[unit as usize];
        let is_hot = self.is_hot[unit as usize] && rested < self.slot_of.len() as u32;
        match self.cleaner {
            Cleaner::Greedy => 0,
            Cleaner::CostBenefit => usual,
            Cleaner::ByHeat => usize::from(!is_hot),
        }
    }

    fn append(&mut self, unit: u32, head: usize) -> Result<(), Full> {
        let at = match self.open[head] {
            Some(at) => at,
            None => self.free.pop_front().ok_or(Full)?,
        };
        let old = self.slot_of[unit as usize];
        if old != NOWHERE {
            self.unit_in[old as usize] = NOWHERE;
            self.segments[(old / self.per_segment) as usize].live -= 1;
        }
        let segment = &mut self.segments[at as usize];
        let slot = at * self.per_segment + segment.filled;
        segment.filled += 1;
        segment.live += 1;
        segment.youngest = segment.youngest.max(self.written[unit as usize]);
        self.open[head] = Some(at).filter(|_| segment.filled < self.per_segment);
        self.unit_in[slot as usize] = unit;
        self.slot_of[unit as usize] = slot;
        Ok(())
    }

    /// Moves the live units out of a segment, which is free then.
    fn clean(&mut self) -> Result<(), Full> {
        let victim = self.victim()?;
        self.counts.read += u64::from(self.segments[victim as usize].live > 0);
        for slot in victim * self.per_segment..(victim + 1) * self.per_segment {
            let unit = self.unit_in[slot as usize];
            if unit != NOWHERE {
                self.counts.moved += 1;
                self.append(unit, self.head(unit, 1))?;
            }
        }
        assert_eq!(self.segments[victim as usize].live, 0, "all have moved");
        self.segments[victim as usize] = Segment::default();
        self.free.push_back(victim);
        Ok(())
    }

    fn victim(&self) -> Result<u32, Full> {
        let (mut best, mut best_score, mut most_dead) = (None, 0.0, 0);
        for (at, segment) in (0..SEGMENTS).zip(&self.segments) {
            // It is open or free.
            if segment.filled < self.per_segment {
                continue;
            }
            let dead = self.per_segment - segment.live;
            let share = f64::from(segment.live) / f64::from(self.per_segment);
            let age = f64::from(self.now - segment.youngest + 1);
            let score = match self.cleaner {
                Cleaner::Greedy => f64::from(dead),
                Cleaner::CostBenefit | Cleaner::ByHeat => (1.0 - share) * age / (1.0 + share),
            };
            most_dead = most_dead.max(dead);
            if score > best_score {
                (best, best_score) = (Some(at), score);
            }
        }
        best.filter(|_| most_dead * DEAD_PARTS >= self.per_segment)
            .ok_or(Full)
    }

    /// # Panics
    /// When the map and the segments contradict each other.
    fn check(&self) {
        let live: u32 = self.segments.iter().map(|segment| segment.live).sum();
        assert_eq!(live as usize, self.slot_of.len(), "live units are constant");
        for (unit, slot) in (0u32..).zip(&self.slot_of) {
            assert_eq!(self.unit_in[*slot as usize], unit, "the map is wrong");
        }
    }
}

/// A log after many overwrites.
pub struct Aged {
    /// Units written, by host and cleaner, for each that the host wrote.
    pub amplification: f64,
    /// Segments read by the cleaner for each that was written.
    pub read_per_written: f64,
    /// Slots of the log.
    pub slots: u64,
    /// Slots of the units when each was written once, and three times, on the average.
    pub scattered: [Vec<u32>; 2],
}

/// Overwrites all of a log several times.
///
/// # Errors
/// [`Full`]: the log can't be cleaned at this fill level.
pub fn age(unit_bytes: u32, fill: u32, load: Load, cleaner: Cleaner) -> Result<Aged, Full> {
    let run = RUN_BYTES / unit_bytes;
    // 4 MiB of data, and 16 MiB where units are pages: enough units to make an average.
    let per_segment = (16 * run).max(64);
    let mut log = Log::filled(per_segment, fill, run, cleaner);
    let mut prng = Prng::from_seed(1).stream("overwrites");
    let units = log.slot_of.len() as u32;
    let (mut scattered, mut before) = ([Vec::new(), Vec::new()], Counts::default());
    for round in 1..=ROUNDS {
        for _ in 0..units {
            log.overwrite(load.draw(units, run, &mut prng))?;
        }
        match round {
            1 => scattered[0] = log.slot_of.clone(),
            3 => scattered[1] = log.slot_of.clone(),
            WARMUP => before = log.counts,
            _ => {}
        }
    }
    log.check();
    let host = (log.counts.host - before.host) as f64;
    let written = host + (log.counts.moved - before.moved) as f64;
    let read = (log.counts.read - before.read) as f64;
    assert!(written >= host && host > 0.0, "a write is written");
    Ok(Aged {
        amplification: written / host,
        read_per_written: read * f64::from(per_segment) / written,
        slots: log.unit_in.len() as u64,
        scattered,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_full_says_so_under_every_load_and_cleaner() {
        for load in Load::ALL {
            for cleaner in [Cleaner::Greedy, Cleaner::CostBenefit, Cleaner::ByHeat] {
                assert!(
                    age(16 << 10, 100, load, cleaner).is_err(),
                    "{load:?}, {cleaner:?}"
                );
            }
        }
    }

    #[test]
    fn parting_hot_units_from_cold_ones_pays_where_there_are_hot_ones() {
        let amplification = |load, cleaner| {
            let aged = age(16 << 10, 80, load, cleaner);
            aged.map_or(f64::NAN, |aged| aged.amplification)
        };
        let [greedy, by_heat] =
            [Cleaner::Greedy, Cleaner::ByHeat].map(|c| amplification(Load::Skewed, c));
        assert!(by_heat < 0.9 * greedy, "{by_heat}, not {greedy}");
    }

    #[test]
    fn four_fifths_of_the_skewed_writes_go_to_a_fifth_of_the_units() {
        let mut prng = Prng::from_seed(1);
        let draws = (0..100_000).map(|_| Load::Skewed.draw(1000, 10, &mut prng));
        let hot = draws.filter(|unit| unit / 10 % 5 == 0).count();
        assert!((79_000..81_000).contains(&hot), "{hot}");
    }

    #[test]
    #[should_panic(expected = "the map is wrong")]
    fn a_unit_that_is_elsewhere_than_the_map_says_is_noticed() {
        let mut log = Log::filled(64, 50, 1, Cleaner::Greedy);
        log.slot_of.swap(0, 1);
        log.check();
    }
}
