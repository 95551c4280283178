//! The recorder of the operations of one stream of a VM.

use super::{IntervalOf, Latency, interval};
use crate::generator::Kind;
use base::Time;
use std::time::Duration;

/// The measured part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first instant that is measured: the end of the warm-up.
    pub start: Time,
    /// The first instant after it.
    pub end: Time,
}

impl Window {
    /// Whether `at` lies in it.
    pub fn holds(&self, at: Time) -> bool {
        self.start <= at && at < self.end
    }

    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        (self.end - self.start).as_secs_f64()
    }
}

/// What completed in one second of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SecondOf {
    /// Operations that completed in that second.
    pub count: u64,
    /// Sum of their response times, in nanoseconds.
    pub response_ns: u128,
    /// The longest of them, in nanoseconds.
    pub response_max_ns: u64,
}

impl SecondOf {
    fn add(&mut self, response: Duration) {
        self.count += 1;
        self.response_ns += response.as_nanos();
        let nanos = u64::try_from(response.as_nanos()).unwrap_or(u64::MAX);
        self.response_max_ns = self.response_max_ns.max(nanos);
    }

    fn merge(&mut self, other: &SecondOf) {
        self.count += other.count;
        self.response_ns += other.response_ns;
        self.response_max_ns = self.response_max_ns.max(other.response_max_ns);
    }

    /// Mean response time in milliseconds, if anything completed.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.response_ns as f64 / self.count as f64 / 1e6)
    }
}

/// One kind of operation of one VM, or of several merged.
#[derive(Clone, Debug, Default)]
pub struct OfKind {
    /// From the intended start.
    pub response: Latency,
    /// From the issue to the completion.
    pub service: Latency,
    /// Operations that completed inside the window.
    pub completed: u64,
    /// Bytes that the completed operations moved inside the window.
    pub bytes: u64,
    /// Per second of the run, from its start (warm-up included).
    pub seconds: Vec<SecondOf>,
    /// Per interval of the run ([`Measured::interval`]), from its start.
    pub intervals: Vec<IntervalOf>,
}

impl OfKind {
    fn merge(&mut self, other: &OfKind) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.completed += other.completed;
        self.bytes += other.bytes;
        if self.seconds.len() < other.seconds.len() {
            self.seconds
                .resize(other.seconds.len(), SecondOf::default());
        }
        for (second, also) in self.seconds.iter_mut().zip(&other.seconds) {
            second.merge(also);
        }
        if self.intervals.len() < other.intervals.len() {
            self.intervals
                .resize_with(other.intervals.len(), IntervalOf::default);
        }
        for (interval, also) in self.intervals.iter_mut().zip(&other.intervals) {
            interval.merge(also);
        }
    }
}

/// What was measured of one VM, or of several merged.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Figures of the reads alone.
    pub read: OfKind,
    /// Figures of the writes alone.
    pub write: OfKind,
    /// How late operations were issued although a slot was free: the error of
    /// the generator itself.
    pub lateness: Latency,
    /// Operations whose intended start lies in the window; `None` for a closed
    /// loop, which intends none.
    pub offered: Option<u64>,
    /// Operations of open loops that completed inside the window: what is held
    /// against `offered`, also where closed loops are merged in.
    pub offered_completed: u64,
    /// Operations of the window that had not completed when the run was over.
    pub unfinished: u64,
    /// Operations that failed, at any time of the run.
    pub failed: u64,
    /// Of them, those that were under way when a session was lost: writes may have been done.
    pub lost: u64,
    /// The first failures, for people.
    pub failures: Vec<String>,
    /// Unit attentions; the operations that met them were sent again.
    pub attentions: u64,
    /// The first of them, for people.
    pub told: Vec<String>,
    /// Operations under way, summed over the window, in operation-nanoseconds.
    pub outstanding_ns: u128,
    /// The length of its intervals; none where nothing was taken down.
    pub interval: Option<Duration>,
    /// Transactions that completed inside the window, of closed networks.
    pub transactions: u64,
    /// Their response times, from the end of the think time to the end of the last operation; of
    /// those that began in the window.
    pub transaction: Latency,
}

/// At most this many failures are kept word by word.
const FAILURES_KEPT: usize = 3;

impl Measured {
    /// Adds what was measured of another stream or VM of the same run.
    ///
    /// # Panics
    /// When the intervals are of another length.
    pub fn merge(&mut self, other: &Measured) {
        if let (Some(one), Some(other)) = (self.interval, other.interval) {
            assert_eq!(one, other, "streams of one run have the same intervals");
        }
        self.interval = self.interval.or(other.interval);
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.lateness.merge(&other.lateness);
        self.offered = match (self.offered, other.offered) {
            (Some(a), Some(b)) => Some(a + b),
            (only, None) | (None, only) => only,
        };
        self.offered_completed += other.offered_completed;
        self.unfinished += other.unfinished;
        self.failed += other.failed;
        self.lost += other.lost;
        self.failures.extend_from_slice(&other.failures);
        self.failures.truncate(FAILURES_KEPT);
        self.attentions += other.attentions;
        self.told.extend_from_slice(&other.told);
        self.told.truncate(FAILURES_KEPT);
        self.outstanding_ns += other.outstanding_ns;
        self.transactions += other.transactions;
        self.transaction.merge(&other.transaction);
    }

    /// Operations that completed inside the window.
    pub fn completed(&self) -> u64 {
        self.read.completed + self.write.completed
    }
}

/// Takes down the operations of one stream while it runs.
#[derive(Clone, Debug)]
pub struct Recorder {
    window: Window,
    measured: Measured,
    outstanding: u64,
    changed: Time,
}

impl Recorder {
    /// A recorder that has seen no operation yet; only an open loop has operations that are due.
    pub fn new(window: Window, open_loop: bool) -> Self {
        let measured = Measured {
            offered: open_loop.then_some(0),
            interval: Some(interval(window.end.since(Time(0)))),
            ..Measured::default()
        };
        Recorder {
            window,
            measured,
            outstanding: 0,
            changed: Time(0),
        }
    }

    /// An operation was intended for `at` (open loop; issued or not).
    pub fn offered(&mut self, at: Time) {
        if self.window.holds(at)
            && let Some(offered) = &mut self.measured.offered
        {
            *offered += 1;
        }
    }

    /// An operation was issued, `late` although it could have been earlier.
    pub fn issued(&mut self, now: Time, late: Duration) {
        self.account(now);
        self.outstanding += 1;
        if self.window.holds(now) {
            self.measured.lateness.record(late);
        }
    }

    /// An operation intended for `at` and issued at `issued` has completed.
    pub fn completed(&mut self, now: Time, kind: Kind, bytes: u32, at: Time, issued: Time) {
        self.account(now);
        let interval = self.interval_of(now);
        self.outstanding -= 1;
        let (response, service) = (now - at, now - issued);
        let window = self.window;
        let of_kind = self.of_kind(kind);
        if window.holds(at) {
            of_kind.response.record(response);
            of_kind.service.record(service);
        }
        if window.holds(now) {
            of_kind.completed += 1;
            of_kind.bytes += u64::from(bytes);
        }
        let second = (now.as_nanos() / 1_000_000_000) as usize;
        if second >= of_kind.seconds.len() {
            of_kind.seconds.resize(second + 1, SecondOf::default());
        }
        of_kind.seconds[second].add(response);
        if interval >= of_kind.intervals.len() {
            of_kind
                .intervals
                .resize_with(interval + 1, IntervalOf::default);
        }
        of_kind.intervals[interval].record(response);
        if window.holds(now) && self.measured.offered.is_some() {
            self.measured.offered_completed += 1;
        }
    }

    /// An operation has failed with `what`.
    pub fn failed(&mut self, now: Time, what: String) {
        self.account(now);
        self.outstanding -= 1;
        self.measured.failed += 1;
        if self.measured.failures.len() < FAILURES_KEPT {
            self.measured.failures.push(what);
        }
    }

    /// An operation met a unit attention, and was sent again.
    pub fn attention(&mut self, what: String) {
        self.measured.attentions += 1;
        if self.measured.told.len() < FAILURES_KEPT {
            self.measured.told.push(what);
        }
    }

    /// An operation went with its session.
    pub fn lost(&mut self, now: Time) {
        self.account(now);
        self.outstanding -= 1;
        self.measured.failed += 1;
        self.measured.lost += 1;
    }

    /// A transaction that began at `began` has ended.
    pub fn transacted(&mut self, now: Time, began: Time) {
        if self.window.holds(now) {
            self.measured.transactions += 1;
        }
        if self.window.holds(began) {
            self.measured.transaction.record(now - began);
        }
    }

    /// The run is over and an operation of `kind`, intended for `at`, has not
    /// completed. It is recorded with the time it has taken so far (leaving it
    /// out would hide the slowest ones).
    pub fn unfinished(&mut self, now: Time, kind: Kind, at: Time) {
        if self.window.holds(at) {
            self.measured.unfinished += 1;
            self.of_kind(kind).response.record(now - at);
        }
    }

    /// Forgets what was measured, and measures another window from now on. Operations under way are
    /// as before.
    pub fn begin_anew(&mut self, now: Time, window: Window) {
        self.account(now);
        let fresh = Recorder::new(window, self.measured.offered.is_some());
        self.window = window;
        self.measured = fresh.measured;
    }

    /// The run was stopped at `now`: the window ends there.
    pub fn cut(&mut self, now: Time) {
        self.account(now);
        self.window.end = self.window.end.min(now).max(self.window.start);
    }

    /// What was measured, and the window it was measured in.
    pub fn finish(mut self, now: Time) -> (Measured, Window) {
        self.account(now);
        (self.measured, self.window)
    }

    /// The number of the interval that `now` lies in. What completes after the run belongs to
    /// none of it, and is counted right behind.
    fn interval_of(&self, now: Time) -> usize {
        let length_ns = self.measured.interval.map_or(1, |length| length.as_nanos());
        let behind = self.window.end.as_nanos().div_ceil(length_ns as u64);
        (now.as_nanos() / length_ns as u64).min(behind) as usize
    }

    fn of_kind(&mut self, kind: Kind) -> &mut OfKind {
        match kind {
            Kind::Read => &mut self.measured.read,
            Kind::Write => &mut self.measured.write,
        }
    }

    /// Sums up the operations under way since the last change.
    fn account(&mut self, now: Time) {
        let from = self.changed.max(self.window.start);
        let until = now.min(self.window.end);
        self.measured.outstanding_ns += until.since(from).as_nanos() * u128::from(self.outstanding);
        self.changed = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn window() -> Window {
        Window {
            start: Time(1000 * MS),
            end: Time(3000 * MS),
        }
    }

    #[test]
    fn response_counts_from_the_intended_start_and_service_from_the_issue() {
        let mut recorder = Recorder::new(window(), true);
        recorder.offered(Time(1500 * MS));
        recorder.issued(Time(1700 * MS), Duration::ZERO);
        recorder.completed(
            Time(1710 * MS),
            Kind::Read,
            4096,
            Time(1500 * MS),
            Time(1700 * MS),
        );
        let (measured, window) = recorder.finish(Time(4000 * MS));
        assert!((measured.read.response.mean_ms() - 210.0).abs() < 0.3);
        assert!((measured.read.service.mean_ms() - 10.0).abs() < 0.02);
        assert_eq!(measured.offered, Some(1));
        assert_eq!((measured.completed(), measured.read.bytes), (1, 4096));
        assert_eq!(measured.read.seconds[1].count, 1);
        assert_eq!(measured.interval, Some(Duration::from_secs(1)));
        let of_intervals = measured.read.intervals.iter().map(IntervalOf::count);
        assert_eq!(of_intervals.collect::<Vec<_>>(), [0, 1]);
        assert!((measured.read.intervals[1].percentile_ms(99.0) - 210.0).abs() < 210.0 * 0.02);
        assert_eq!(measured.outstanding_ns, u128::from(10 * MS));
        assert_eq!(window.seconds(), 2.0);
    }

    #[test]
    fn what_lies_outside_the_window_does_not_count() {
        let mut recorder = Recorder::new(window(), true);
        let begin = |recorder: &mut Recorder, at: u64| {
            recorder.offered(Time(at * MS));
            recorder.issued(Time(at * MS), Duration::ZERO);
        };
        let end = |recorder: &mut Recorder, now: u64, at: u64| {
            recorder.completed(Time(now * MS), Kind::Write, 1, Time(at * MS), Time(at * MS));
        };
        // Completes in the window, intended before it: counts for the rate only.
        begin(&mut recorder, 900);
        end(&mut recorder, 1100, 900);
        // Intended in the window, completes after it: counts for latency only.
        begin(&mut recorder, 2999);
        begin(&mut recorder, 3000);
        end(&mut recorder, 3100, 2999);
        end(&mut recorder, 3100, 3000);
        let (measured, _) = recorder.finish(Time(3200 * MS));
        assert_eq!(measured.offered, Some(1));
        assert_eq!(measured.write.completed, 1);
        assert_eq!(measured.write.response.count(), 1);
        // 1000..1100 and 2999..3000.
        assert_eq!(measured.outstanding_ns, u128::from(101 * MS));
    }

    #[test]
    fn failures_and_unfinished_ones_are_kept_apart() {
        let mut recorder = Recorder::new(window(), true);
        for _ in 0..5 {
            recorder.issued(Time(1000 * MS), Duration::ZERO);
            recorder.failed(Time(1001 * MS), "EIO".into());
        }
        recorder.unfinished(Time(5000 * MS), Kind::Read, Time(2000 * MS));
        let (mut measured, _) = recorder.finish(Time(5000 * MS));
        assert_eq!(
            (
                measured.failed,
                measured.failures.len(),
                measured.unfinished
            ),
            (5, 3, 1)
        );
        assert!(measured.read.response.max_ms() > 2900.0);
        let copy = measured.clone();
        measured.merge(&copy);
        assert_eq!(
            (
                measured.failed,
                measured.failures.len(),
                measured.unfinished
            ),
            (10, 3, 2)
        );
    }
}
