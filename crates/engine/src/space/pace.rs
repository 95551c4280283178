//! The pace of work in the background.
//!
//! Two limits: a rate, and the commands. While commands come in, the work rests four
//! times as long as it worked, so it takes a fifth of the drives' time at most; it
//! never stops altogether, so everything heals in the end.

use base::Time;
use std::cell::Cell;
use std::time::Duration;

/// How much longer than a step the pause after it is, while commands come in.
const REST: u32 = 4;

/// Commands count as coming in until none came for so long: one that is late by chance
/// is no reason to take everything.
const QUIET: Duration = Duration::from_millis(100);

/// The longest pause.
pub(crate) const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Limits of work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Bytes a second of a rebuild; none is as fast as it goes.
    pub rebuild_bytes_per_s: Option<u64>,
    /// Bytes a second of a scrub.
    pub scrub_bytes_per_s: Option<u64>,
    /// Whether commands go first. Off, the work takes what it can get.
    pub yields: bool,
}

impl Default for Rates {
    fn default() -> Self {
        Rates {
            rebuild_bytes_per_s: None,
            scrub_bytes_per_s: Some(128 << 20),
            yields: true,
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
        rate: Option<u64>,
        bytes: u64,
        (began, now): (Time, Time),
        commands: u64,
    ) -> Duration {
        let worked = now.since(began);
        let rest = match self.makes_way(commands, now) {
            true => worked * REST,
            false => Duration::ZERO,
        };
        let due = rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64)
        });
        rest.max(due.saturating_sub(worked)).min(PAUSE_MAX.max(due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_for_commands_and_keeps_to_the_rate() {
        let pace = Pace::default();
        let step = (Time(0), Time(1_000_000));
        assert_eq!(pace.pause(None, 1 << 20, step, 0), Duration::ZERO);
        assert_eq!(pace.pause(None, 1 << 20, step, 5), Duration::from_millis(4));
        assert_eq!(
            pace.pause(None, 1 << 20, step, 5),
            Duration::from_millis(4),
            "nobody came since, but just before"
        );
        let later = (Time(200_000_000), Time(201_000_000));
        assert_eq!(
            pace.pause(None, 1 << 20, later, 5),
            Duration::ZERO,
            "nobody came for long"
        );
        assert_eq!(
            pace.pause(Some(1 << 30), 1 << 30, later, 5),
            Duration::from_millis(999)
        );
        let rates = Rates {
            yields: false,
            ..Rates::default()
        };
        assert!(!pace.makes_way(5, later.1) && pace.makes_way(6, later.1));
        pace.set_rates(rates);
        assert!(!pace.makes_way(7, later.1));
        assert_eq!(pace.pause(None, 1 << 20, later, 8), Duration::ZERO);
    }
}
