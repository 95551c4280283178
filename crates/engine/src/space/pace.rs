//! The pace of work in the background.
//!
//! Three limits: a highest rate, the commands, and a least rate. While commands come in, the work
//! rests a multiple of the time that it worked, so it takes a part of the drives' time only
//! ([`Share`]). It rests less where it would not end in time otherwise. It never stops altogether,
//! so everything heals in the end.

use base::Time;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

/// Commands count as coming in until none came for so long: one that is late by chance
/// is no reason to take everything.
const QUIET: Duration = Duration::from_millis(100);

/// The longest pause.
pub(crate) const PAUSE_MAX: Duration = Duration::from_millis(500);

/// How long a step of the work lasts while commands come in. Much longer than the one seek of a
/// disk that a step costs (about 10 ms there and back), so most of it moves data; and short beside
/// what a host waits for a command at the worst.
pub(crate) const STEP_BEHIND_COMMANDS: Duration = Duration::from_millis(50);

/// How long a step of work lasts that is behind its least rate. Filling the drives' queues and having
/// them run empty costs about 50 ms, and more while the work halts for commands.
pub(crate) const STEP_BEHIND_RATE: Duration = Duration::from_secs(1);

/// How long a rebuild takes at most, if nothing else is said. A span lacks redundancy so long; the
/// next failure within two days is unlikely, and a disk of 20 TB needs half of its own rate for it.
const REBUILD_WITHIN: Duration = Duration::from_secs(48 * 3600);

/// The part of its time in which work aims to end.
const AIM: f64 = 0.96;

/// How long a scrub that begins by itself takes, if nothing else is said. Damage is found within a
/// month, while the other drives of its stripe are most likely sound; it takes a disk of 20 TB 4 % of
/// its rate.
const SCRUB_WITHIN: Duration = Duration::from_secs(30 * 24 * 3600);

/// The longest patience with which work in the background lets commands wait on a disk. It has the disk
/// two thirds of the time then, whatever commands come in (`HALT_MAX` of `drives/turns.rs`).
const PATIENCE_MAX: Duration = Duration::from_millis(200);

/// By how much one step raises the patience, however small it was.
const PATIENCE_STEP: Duration = Duration::from_millis(1);

/// How long a patience is kept when no step changes it: the load is another one then.
const PATIENCE_KEPT: Duration = Duration::from_secs(60);

/// The patience, at least, of work without which a span has no redundancy, and which need not end by a time.
/// It has a disk half of the time then.
const PATIENCE_AT_RISK: Duration = Duration::from_millis(100);

/// The part of the drives' time that work takes while commands come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A fifth: commands hardly feel it, and there is time.
    Small,
    /// A half: a span has no redundancy left. The next failure loses data, so each hour that the
    /// rebuild takes is a risk; commands still get as much as the rebuild.
    Half,
}

impl Share {
    /// How much longer than a step the pause after it is.
    fn rest(self) -> u32 {
        match self {
            Share::Small => 4,
            Share::Half => 1,
        }
    }
}

/// The bounds of some work in the background.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Bytes a second at most; none is no limit.
    pub most: Option<u64>,
    /// Bytes a second at least, whatever commands come in; 0 is no bound.
    pub least: f64,
    /// The part of the drives' time that it has beside commands anyway.
    pub share: Share,
}

impl Bounds {
    /// Of work that need not end by a time.
    pub fn at_most(most: Option<u64>) -> Bounds {
        Bounds {
            most,
            least: 0.0,
            share: Share::Small,
        }
    }
}

/// When work is due that began at `began` and takes so long at most; its part of that where it is a part
/// of the work.
pub(crate) fn due(began: Time, within: Option<Duration>, part: f64) -> Option<Time> {
    within.map(|within| began + within.mul_f64(part))
}

/// The least rate of work that is due then: it aims at a bit less time, for the ends of zones, flushes
/// and records count for nothing.
pub(crate) fn least_rate(began: Time, due: Option<Time>, bytes_left: u64, now: Time) -> f64 {
    let aim = due.map(|due| began + due.since(began).mul_f64(AIM));
    rate_until(aim, bytes_left, now)
}

/// The rate, in bytes a second, at which so many bytes end by `due`.
fn rate_until(due: Option<Time>, bytes_left: u64, now: Time) -> f64 {
    match due {
        None => 0.0,
        // Late already: as fast as it goes.
        Some(due) if due <= now => f64::INFINITY,
        Some(due) => bytes_left as f64 / due.since(now).as_secs_f64(),
    }
}

/// Limits of work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Bytes a second of a rebuild; none is as fast as it goes.
    pub rebuild_bytes_per_s: Option<u64>,
    /// Bytes a second of a scrub.
    pub scrub_bytes_per_s: Option<u64>,
    /// Whether commands go first. Off, the work takes what it can get.
    pub yields: bool,
    /// A rebuild takes so long at most, whatever commands come in; none leaves it to them.
    pub rebuild_within: Option<Duration>,
    /// A scrub that begins by itself takes so long; none lets no scrub begin by itself.
    pub scrub_within: Option<Duration>,
}

impl Default for Rates {
    fn default() -> Self {
        Rates {
            rebuild_bytes_per_s: None,
            scrub_bytes_per_s: Some(128 << 20),
            yields: true,
            rebuild_within: Some(REBUILD_WITHIN),
            scrub_within: Some(SCRUB_WITHIN),
        }
    }
}

/// The limits, and what was seen of the commands last.
#[derive(Debug, Default)]
pub struct Pace {
    rates: Cell<Rates>,
    commands: Cell<u64>,
    /// When some were seen last.
    busy_at: Cell<Option<Time>>,
    /// How long commands wait for work on the disks of a group, and since when, by its number.
    patience: RefCell<BTreeMap<u16, (Duration, Time)>>,
}

impl Pace {
    /// The limits that are in force.
    pub fn rates(&self) -> Rates {
        self.rates.get()
    }

    /// Sets the limits for all steps from now on.
    pub fn set_rates(&self, rates: Rates) {
        self.rates.set(rates);
    }

    /// How old a command gets on the disks of a group before work with these bounds halts for it.
    pub fn patience(&self, group: u16, bounds: Bounds, now: Time) -> Duration {
        let patience = self.patience.borrow();
        let known = patience.get(&group);
        let known = known.filter(|(_, at)| now.since(*at) < PATIENCE_KEPT);
        let known = known.map(|(patience, _)| *patience).unwrap_or_default();
        match bounds.share {
            // It has no time to end by, which would say how much it needs.
            Share::Half if bounds.least == 0.0 => known.max(PATIENCE_AT_RISK),
            _ => known,
        }
    }

    /// A step of work on the disks of a group, which began and ended then, would have had to be `shortfall`
    /// times as fast. So the next are more patient, or less. Of steps side by side one counts.
    pub fn adjust_patience(&self, group: u16, shortfall: f64, (began, ended): (Time, Time)) {
        let mut all = self.patience.borrow_mut();
        let (patience, at) = all.entry(group).or_insert((Duration::ZERO, Time(0)));
        if *at <= began {
            (*patience, *at) = (next_patience(*patience, shortfall), ended);
        }
    }

    /// Whether commands come in and are to go first: the next step had better be short.
    pub fn makes_way(&self, commands: u64, now: Time) -> bool {
        if self.commands.replace(commands) != commands {
            self.busy_at.set(Some(now));
        }
        let is_busy = |at: Time| now.since(at) < QUIET;
        self.rates.get().yields && self.busy_at.get().is_some_and(is_busy)
    }

    /// How long to rest after a step that began at `began`, ended at `now` and moved
    /// `bytes`, with `commands` so far.
    pub fn pause(
        &self,
        bounds: Bounds,
        bytes: u64,
        (began, now): (Time, Time),
        commands: u64,
    ) -> Duration {
        let worked = now.since(began);
        let rest = match self.makes_way(commands, now) {
            true => {
                let share = worked * bounds.share.rest();
                share.min(time_of(bytes, bounds.least).saturating_sub(worked))
            }
            false => Duration::ZERO,
        };
        let due = bounds.most.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64)
        });
        rest.max(due.saturating_sub(worked)).min(PAUSE_MAX.max(due))
    }
}

/// The patience after a step that would have had to be `shortfall` times as fast as it was.
fn next_patience(before: Duration, shortfall: f64) -> Duration {
    // Twice as patient a disk is not twice as fast. A step too slow by chance changes little.
    let next = before.mul_f64((shortfall * shortfall).clamp(0.5, 2.0));
    match shortfall > 1.0 {
        true => (next + PATIENCE_STEP).min(PATIENCE_MAX),
        false => next.saturating_sub(PATIENCE_STEP / 4),
    }
}

/// How long so many bytes take at such a rate.
fn time_of(bytes: u64, bytes_per_s: f64) -> Duration {
    Duration::try_from_secs_f64(bytes as f64 / bytes_per_s).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Bounds = Bounds {
        most: None,
        least: 0.0,
        share: Share::Small,
    };

    #[test]
    fn it_rests_for_commands_and_keeps_to_the_rate() {
        let pace = Pace::default();
        let step = (Time(0), Time(1_000_000));
        assert_eq!(pace.pause(NONE, 1 << 20, step, 0), Duration::ZERO);
        assert_eq!(pace.pause(NONE, 1 << 20, step, 5), Duration::from_millis(4));
        assert_eq!(
            pace.pause(NONE, 1 << 20, step, 5),
            Duration::from_millis(4),
            "nobody came since, but just before"
        );
        let later = (Time(200_000_000), Time(201_000_000));
        assert_eq!(
            pace.pause(NONE, 1 << 20, later, 5),
            Duration::ZERO,
            "nobody came for long"
        );
        let limited = Bounds::at_most(Some(1 << 30));
        assert_eq!(
            pace.pause(limited, 1 << 30, later, 5),
            Duration::from_millis(999)
        );
        let rates = Rates {
            yields: false,
            ..Rates::default()
        };
        assert!(!pace.makes_way(5, later.1) && pace.makes_way(6, later.1));
        pace.set_rates(rates);
        assert!(!pace.makes_way(7, later.1));
        assert_eq!(pace.pause(NONE, 1 << 20, later, 8), Duration::ZERO);
    }

    #[test]
    fn it_rests_less_where_it_would_be_late_or_data_is_at_risk() {
        let pace = Pace::default();
        let (step, ms) = ((Time(0), Time(1_000_000)), Duration::from_millis);
        let of = |bounds: Bounds, commands| pace.pause(bounds, 1_000_000, step, commands);
        let share = Share::Half;
        assert_eq!(of(Bounds { share, ..NONE }, 1), ms(1));
        // 1 MB in 3 ms.
        let least = 1e9 / 3.0;
        assert_eq!(of(Bounds { least, ..NONE }, 2), ms(2));
        let slow = 1e3;
        let least = slow;
        assert_eq!(of(Bounds { least, ..NONE }, 3), ms(4), "a fifth anyway");
        let least = f64::INFINITY;
        assert_eq!(of(Bounds { least, ..NONE }, 4), Duration::ZERO);
        let most = Some(100_000_000);
        let limited = Bounds { most, least, share };
        assert_eq!(of(limited, 5), ms(9), "the limit holds all the same");
    }

    #[test]
    fn the_least_rate_grows_as_the_time_runs_out() {
        let at = |seconds: u64| Time(seconds * 1_000_000_000);
        let rate = |now| rate_until(Some(at(10)), 100, now);
        assert_eq!(rate(at(0)), 10.0);
        assert_eq!(rate(at(5)), 20.0);
        assert_eq!(rate(at(10)), f64::INFINITY);
        assert_eq!(rate_until(None, 100, at(0)), 0.0);
    }

    #[test]
    fn patience_grows_while_the_work_is_behind_and_goes_when_it_is_not() {
        let mut patience = Duration::ZERO;
        let mut seen = Vec::new();
        for shortfall in [1.1, f64::INFINITY, 1.1, 1.0, 0.5] {
            patience = next_patience(patience, shortfall);
            seen.push(patience.as_micros());
        }
        assert_eq!(seen, [1_000, 3_000, 4_630, 4_380, 1_940]);
        for (shortfall, end) in [(1.01, PATIENCE_MAX), (0.99, Duration::ZERO)] {
            for _ in 0..200 {
                patience = next_patience(patience, shortfall);
            }
            assert_eq!(patience, end);
        }
    }

    #[test]
    fn of_steps_side_by_side_one_changes_the_patience() {
        let (pace, at) = (Pace::default(), |ms: u64| Time(ms * 1_000_000));
        let adjust = |began, ended| pace.adjust_patience(3, 1.1, (at(began), at(ended)));
        let patience = |group, ms| pace.patience(group, NONE, at(ms));
        adjust(0, 10);
        assert_eq!(patience(3, 10), PATIENCE_STEP);
        adjust(5, 15);
        assert_eq!(patience(3, 15), PATIENCE_STEP, "it began before that");
        adjust(10, 20);
        assert!(patience(3, 20) > PATIENCE_STEP);
        assert_eq!(patience(4, 20), Duration::ZERO);
        assert_eq!(patience(3, 60_020), Duration::ZERO, "long ago");
        let share = Share::Half;
        let at_risk = pace.patience(3, Bounds { share, ..NONE }, at(20));
        assert_eq!(at_risk, PATIENCE_AT_RISK);
    }
}
