//! The results of migrations: rounds, times and use of links.

use std::time::Duration;

/// A round of copying.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Memory copied in the round, bytes.
    pub memory_bytes: f64,
    /// Payload that it was on the links, bytes.
    pub wire_bytes: f64,
    /// The time that the round took.
    pub duration: Duration,
}

/// A migration that ended. Instants count from when all were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Migrated {
    /// It left the queue.
    pub begun: Duration,
    /// The machine was stopped.
    pub stopped: Duration,
    /// It ran on the destination.
    pub resumed: Duration,
    /// The source was cleaned up.
    pub ended: Duration,
    /// The rounds while it ran, and the last one while it did not.
    pub rounds: Vec<Round>,
    /// Its speed while it was copied, of full speed: 1 unless it was slowed down.
    pub speed: f64,
}

impl Migrated {
    /// From leaving the queue to the end.
    pub fn duration(&self) -> Duration {
        self.ended - self.begun
    }

    /// While it runs nowhere.
    pub fn blackout(&self) -> Duration {
        self.resumed - self.stopped
    }

    /// Memory copied in all, bytes.
    pub fn memory_bytes(&self) -> f64 {
        self.rounds.iter().map(|round| round.memory_bytes).sum()
    }
}

/// A time in which all rates were constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// The first instant, counted as [`Migrated`] counts.
    pub from: Duration,
    /// The first instant after it.
    pub to: Duration,
    /// Use of each link, 0 to 1: payload over the most payload.
    pub links: Vec<f64>,
    /// Cores that the source used.
    pub source_cores: f64,
    /// Cores that the destination used.
    pub destination_cores: f64,
}

/// All migrations, in the order in which they were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// A result for each migration, in that order.
    pub migrations: Vec<Migrated>,
    /// Time without gaps, from the first to the last.
    pub intervals: Vec<Interval>,
    /// The most payload of one link, bytes per second.
    pub link_payload: f64,
}

impl Outcome {
    /// Until the last has ended.
    pub fn duration(&self) -> Duration {
        let ends = self.migrations.iter().map(|migrated| migrated.ended);
        ends.max().unwrap_or_default()
    }

    /// Mean use of all links together over all of the time, in links.
    pub fn mean_links_used(&self) -> f64 {
        self.mean(|interval| interval.links.iter().sum())
    }

    /// Core-seconds of the source and of the destination.
    pub fn core_seconds(&self) -> (f64, f64) {
        let total = self.duration().as_secs_f64();
        (
            self.mean(|interval| interval.source_cores) * total,
            self.mean(|interval| interval.destination_cores) * total,
        )
    }

    fn mean(&self, of: impl Fn(&Interval) -> f64) -> f64 {
        let total = self.duration().as_secs_f64();
        let weigh = |interval: &Interval| {
            of(interval) * (interval.to.as_secs_f64() - interval.from.as_secs_f64())
        };
        let sum: f64 = self.intervals.iter().map(weigh).sum();
        if total > 0.0 { sum / total } else { 0.0 }
    }
}
