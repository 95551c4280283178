//! The judgement whether a plan meets its limits, with as few modelled operations as it takes.
//!
//! - A run is given up when a stream falls far behind its rate: the operation that waits longest
//!   there has been due for [`BEHIND_LIMITS`] times the limit and for [`BEHIND_SHARE`] of the time
//!   so far, and for longer at the end of each of [`BEHIND_SECONDS`] seconds.
//! - The warm-up takes [`WARMUP_MAX`] at most. The window ends once enough operations were due
//!   in it ([`OPERATIONS`] when a pool is sized), after [`WINDOW_MIN`] at the earliest.
//! - The short window decides when every limit lies clear of the measured mean: by [`CLEAR`], and
//!   by the 95 % interval over the seconds of the window. Else the whole window is measured.
//!
//! A short window does not see slow changes: caches that fill, write caches that overflow, logs
//! that are written a second time. [`crate::search::sizing`] therefore measures the whole window
//! of the mix that is proposed.
//!
//! Plans with events, closed loops or traces have no part that stands for the whole: they are
//! measured as they say.

use crate::error::RehearseError;
use crate::plan::demand::{Demand, Flow};
use crate::plan::profiles::Profiles;
use crate::rig::vm::StreamRun;
use crate::run::confidence::{Estimate, estimate};
use crate::run::{self, Outcome};
use site::plan::{Plan, TRACE};
use std::rc::Rc;
use std::time::Duration;
use workload::report::{LimitReport, Report, SecondReport, Verdict, VmReport};

/// Operations in a short window, when a pool is sized.
pub const OPERATIONS: f64 = 200_000.0;

/// The shortest window: load that changes within seconds is in it.
pub const WINDOW_MIN: Duration = Duration::from_secs(10);

/// The longest warm-up before a short window.
pub const WARMUP_MAX: Duration = Duration::from_secs(10);

/// A stream is far behind when its oldest operation has waited for this many limits …
pub const BEHIND_LIMITS: u32 = 50;

/// … and for this part of the run so far: less than three quarters of the load were taken.
pub const BEHIND_SHARE: u32 = 4;

/// Seconds in a row in which a stream has to fall further behind.
pub const BEHIND_SECONDS: u32 = 5;

/// Distance between a limit and a mean, as a share of the limit, at which the short window
/// decides.
const CLEAR: f64 = 0.2;

/// Completed operations in percent of those due, below which a longer window does not help.
const ACHIEVED_PERCENT: f64 = 90.0;

/// The fewest seconds with an interval.
const SECONDS_MIN: usize = 5;

/// Whether a plan meets its limits.
#[derive(Clone, Debug)]
pub enum Judged {
    /// It was rehearsed; whether it meets them.
    Rehearsed(bool, Box<Outcome>),
    /// It was given up.
    GivenUp(Fallen),
}

/// How far a stream had fallen behind its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallen {
    /// How long what waits longest has been due.
    pub behind: Duration,
    /// When, in seconds from the start of the run.
    pub at_s: u32,
}

/// Finds out whether `plan` meets its limits with `seed`, by so many operations where they
/// tell.
///
/// # Errors
/// As [`crate::run()`].
pub fn judge(
    plan: &Plan,
    (seed, profiles): (u64, Profiles<'_>),
    operations: f64,
) -> Result<Judged, RehearseError> {
    if let Some(due_per_s) = due_per_s(plan, profiles) {
        let window = Duration::from_secs_f64((operations / due_per_s).ceil()).max(WINDOW_MIN);
        let mut brief = plan.clone();
        brief.run.measure = window.min(plan.run.measure);
        brief.run.warmup = plan.run.warmup.min(WARMUP_MAX);
        let mut lag = Lag::new(plan.run.limit * BEHIND_LIMITS);
        let mut watch = |streams: &[Rc<StreamRun>]| lag.goes_on(streams);
        let Some(outcome) = run::run_watched(&brief, seed, profiles, Some(&mut watch))? else {
            return Ok(Judged::GivenUp(lag.fallen()));
        };
        let is_whole = brief.run == plan.run;
        let meets = outcome.load.verdict == Verdict::Pass;
        if let Some(meets) = is_whole.then_some(meets).or_else(|| told(&outcome.load)) {
            return Ok(Judged::Rehearsed(meets, Box::new(outcome)));
        }
    }
    whole(plan, seed, profiles)
}

/// Finds out whether `plan` meets its limits with `seed`, over its whole window.
///
/// # Errors
/// As [`crate::run()`].
pub fn whole(plan: &Plan, seed: u64, profiles: Profiles<'_>) -> Result<Judged, RehearseError> {
    let outcome = run::run_lasting(plan, seed, profiles)?;
    let meets = outcome.load.verdict == Verdict::Pass;
    Ok(Judged::Rehearsed(meets, Box::new(outcome)))
}

/// Operations per second that are due, where a part of the window stands for the whole.
fn due_per_s(plan: &Plan, profiles: Profiles<'_>) -> Option<f64> {
    let is_trace = |vm_group: &site::plan::VmGroup| vm_group.profile.starts_with(TRACE);
    if !plan.events.is_empty() || plan.vm_groups.iter().any(is_trace) {
        return None;
    }
    let demand = Demand::of(plan, profiles);
    let flows = || {
        let disks = demand.vms.iter().flat_map(|vm| &vm.disks);
        disks.flat_map(|disk| &disk.flows)
    };
    let is_open = flows().all(|flow: &Flow| flow.outstanding.is_none());
    let due_per_s: f64 = flows().map(|flow| flow.per_s).sum();
    (is_open && due_per_s > 0.0).then_some(due_per_s)
}

/// How far each stream is behind, second by second.
struct Lag {
    /// Further behind than this is far.
    far: Duration,
    second: u32,
    /// How far each was at the last second, and for how many seconds it was further each time.
    streams: Vec<(Duration, u32)>,
}

impl Lag {
    fn new(far: Duration) -> Lag {
        Lag {
            far,
            second: 0,
            streams: Vec::new(),
        }
    }

    /// Whether no stream has fallen behind for good, after one more second.
    fn goes_on(&mut self, streams: &[Rc<StreamRun>]) -> bool {
        let behind: Vec<Duration> = streams.iter().map(|stream| stream.behind()).collect();
        self.next(&behind)
    }

    fn next(&mut self, behind: &[Duration]) -> bool {
        self.second += 1;
        self.streams.resize(behind.len(), (Duration::ZERO, 0));
        for ((before, seconds), now) in self.streams.iter_mut().zip(behind) {
            *seconds = if now > before { *seconds + 1 } else { 0 };
            *before = *now;
        }
        let far = self
            .far
            .max(Duration::from_secs(1) * self.second / BEHIND_SHARE);
        let is_lost =
            |&(behind, seconds): &(Duration, u32)| behind > far && seconds >= BEHIND_SECONDS;
        !self.streams.iter().any(is_lost)
    }

    /// The stream that is furthest behind.
    fn fallen(&self) -> Fallen {
        let behind = self.streams.iter().map(|(behind, _)| *behind).max();
        Fallen {
            behind: behind.unwrap_or_default(),
            at_s: self.second,
        }
    }
}

/// Whether the limits are met, when what was measured tells.
fn told(load: &Report) -> Option<bool> {
    let of_vms: Vec<Option<bool>> = load.vms.iter().map(|vm| told_of_vm(load, vm)).collect();
    if of_vms.contains(&Some(false)) {
        return Some(false);
    }
    of_vms.iter().all(Option::is_some).then_some(true)
}

fn told_of_vm(load: &Report, vm: &VmReport) -> Option<bool> {
    if vm.failed > 0 {
        return Some(false);
    }
    if !vm.valid {
        let achieved = vm
            .streams
            .iter()
            .filter_map(|stream| stream.achieved_percent);
        let worst = achieved.fold(100.0, f64::min);
        return (worst < ACHIEVED_PERCENT).then_some(false);
    }
    let mut all = Some(true);
    for limit in &vm.limits {
        let is_read = limit.kpi.contains("read");
        match told_of_limit(limit, interval(load, vm, is_read)) {
            Some(true) => {}
            Some(false) => return Some(false),
            None => all = None,
        }
    }
    all
}

fn told_of_limit(limit: &LimitReport, interval: Option<Estimate>) -> Option<bool> {
    let half = interval?.half_width?;
    if limit.value_ms + half < limit.limit_ms * (1.0 - CLEAR) {
        return Some(true);
    }
    (limit.value_ms - half > limit.limit_ms * (1.0 + CLEAR)).then_some(false)
}

/// The mean response time of the reads or writes of a VM over the seconds of the window; none
/// when they are too few.
pub fn interval(load: &Report, vm: &VmReport, is_read: bool) -> Option<Estimate> {
    let window = load.warmup_s..=load.warmup_s + load.measured_s - 1.0;
    let in_window = |second: &&SecondReport| window.contains(&(second.second as f64));
    let means: Vec<f64> = vm
        .seconds
        .iter()
        .filter(in_window)
        .filter_map(|second| match is_read {
            true => second.read_mean_ms,
            false => second.write_mean_ms,
        })
        .collect();
    (means.len() >= SECONDS_MIN).then(|| estimate(&means))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_falls_behind_for_seconds_is_lost_and_one_that_catches_up_is_not() {
        let ms = Duration::from_millis;
        let mut lag = Lag::new(ms(2000));
        for behind in [400, 800, 1200, 1600] {
            assert!(lag.next(&[ms(behind), ms(0)]));
        }
        assert!(lag.next(&[ms(2000), ms(0)]), "not far enough yet");
        assert!(!lag.next(&[ms(2001), ms(0)]));
        let fallen = Fallen {
            behind: ms(2001),
            at_s: 6,
        };
        assert_eq!(lag.fallen(), fallen);
        let mut lag = Lag::new(ms(2000));
        for behind in [2600, 2700, 2800, 2900, 2850, 2900, 2950, 3000] {
            assert!(lag.next(&[ms(behind)]), "{behind}");
        }
        // A tenth of the load is late: caches that fill may make up for it.
        let mut lag = Lag::new(ms(500));
        for second in 1..60 {
            assert!(lag.next(&[ms(100 * second)]), "{second}");
        }
    }

    fn limit(value_ms: f64) -> LimitReport {
        LimitReport {
            kpi: "mean read latency".into(),
            value_ms,
            limit_ms: 5.0,
            pass: value_ms < 5.0,
        }
    }

    #[test]
    fn a_limit_is_told_only_when_it_is_clear_of_the_interval() {
        let of = |value_ms, half| {
            let interval = Estimate {
                mean: value_ms,
                half_width: Some(half),
            };
            told_of_limit(&limit(value_ms), Some(interval))
        };
        assert_eq!(of(3.0, 0.5), Some(true));
        assert_eq!(of(3.0, 1.5), None);
        assert_eq!(of(4.5, 0.1), None);
        assert_eq!(of(5.5, 0.1), None);
        assert_eq!(of(7.0, 0.5), Some(false));
        assert_eq!(of(7.0, 1.5), None);
        assert_eq!(told_of_limit(&limit(1.0), None), None);
    }
}
