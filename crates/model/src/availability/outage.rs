//! An outage as a sequence of stages.

use std::time::Duration;

/// A part of an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The name that reports give the stage.
    pub name: &'static str,
    /// How long it alone holds everything up.
    pub duration: Duration,
}

/// Stages, one after the other, from the failure on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outage {
    /// The stages in order; an empty list is no outage.
    pub stages: Vec<Stage>,
}

impl Outage {
    /// With another stage after those before.
    pub fn then(mut self, name: &'static str, duration: Duration) -> Outage {
        self.stages.push(Stage { name, duration });
        self
    }

    /// With a stage that has run since the failure, beside all before, and ends so long
    /// after it: only what is left of it holds anything up.
    pub fn lasting_until(self, name: &'static str, since_failure: Duration) -> Outage {
        let left = since_failure.saturating_sub(self.duration());
        self.then(name, left)
    }

    /// The length of the outage: the sum over its stages.
    pub fn duration(&self) -> Duration {
        self.stages.iter().map(|stage| stage.duration).sum()
    }
}

/// What a service takes, wherever it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// To stop in order: its last checkpoint, its disks, its address.
    pub offline: Duration,
    /// To start where nothing has to be recovered: disks, address, name, the program.
    pub online: Duration,
    /// To replay the log after a crash.
    pub recovery: Duration,
}

/// Time to replay the log: what was written since the last checkpoint over the rate of
/// replaying it.
///
/// # Panics
/// When nothing is ever replayed.
pub fn log_replay(
    since_checkpoint: Duration,
    log_bytes_per_second: f64,
    replay_bytes_per_second: f64,
) -> Duration {
    assert!(
        replay_bytes_per_second > 0.0,
        "a log that is never replayed"
    );
    since_checkpoint.mul_f64(log_bytes_per_second / replay_bytes_per_second)
}

/// Time to boot: so many I/Os, one after the other, of this mean latency.
pub fn boot(ios: u32, mean_latency: Duration) -> Duration {
    mean_latency * ios
}
