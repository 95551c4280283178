//! A station: equal servers behind one queue, such as the cores of a controller.
//!
//! Jobs begin in the order of arrival, each at the server that is free first. With `a`
//! the arrival, `f` the time at which that server becomes free and `s` the service:
//!
//! ```text
//! begun = max(a, f)        end = begun + s
//! ```
//!
//! What is known of a stretch of time comes from sums over all that arrived, less what of
//! them lies after its end. That is exact, also with jobs in progress: a server that is
//! busy at `t` is busy without a gap until it is free, for whoever waits begins at once.
//!
//! ```text
//! busy(t)   = Σ s - Σ max(0, f - t) over servers           utilisation = Δbusy / (c Δt)
//! waited(t) = Σ (begun - a) - Σ (begun - t) of who waits   mean waiting = Δwaited / Δt
//! ```
//!
//! Invariants: a job never begins before one that came earlier; no server is free while a
//! job waits; but for jobs that wait when a station grows. Times are of the world's clock,
//! nanoseconds.

use base::Time;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// When a job begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// A server begins with the job.
    pub begun: Time,
    /// Its server is through.
    pub end: Time,
}

/// Equal servers and their queue at work.
#[derive(Clone, Debug)]
pub struct Station {
    free_at: BinaryHeap<Reverse<Time>>,
    /// When those begin that had not at the last arrival, in order.
    to_begin: VecDeque<Time>,
    last_arrival: Time,
    arrived: u64,
    service: Duration,
    waiting: Duration,
}

impl Station {
    /// A station at rest.
    ///
    /// # Panics
    /// When it has no server: nothing would ever end.
    pub fn new(servers: usize) -> Station {
        assert!(servers > 0, "a station without a server serves nothing");
        Station {
            free_at: vec![Reverse(Time::default()); servers].into(),
            to_begin: VecDeque::new(),
            last_arrival: Time::default(),
            arrived: 0,
            service: Duration::ZERO,
            waiting: Duration::ZERO,
        }
    }

    /// Takes in a job at `now` that needs a server for `service`. O(log servers).
    ///
    /// # Panics
    /// When `now` is before the arrival before: the order of the queue is the order of time.
    pub fn serve(&mut self, now: Time, service: Duration) -> Served {
        assert!(now >= self.last_arrival, "jobs arrive in order of time");
        self.last_arrival = now;
        let Some(mut first) = self.free_at.peek_mut() else {
            unreachable!("a station has a server");
        };
        let begun = now.max(first.0);
        let end = begun + service;
        *first = Reverse(end);
        drop(first);
        while self.to_begin.front().is_some_and(|&begins| begins <= now) {
            self.to_begin.pop_front();
        }
        if begun > now {
            self.to_begin.push_back(begun);
        }
        self.arrived += 1;
        self.service += service;
        self.waiting += begun.since(now);
        Served { begun, end }
    }

    /// Gives it `more` servers, free from `now` on. Jobs that wait keep the times that they were
    /// told; those that come begin at the new ones. A window over it counts the servers of its end.
    pub fn grow(&mut self, now: Time, more: usize) {
        self.free_at.extend(std::iter::repeat_n(Reverse(now), more));
    }

    /// Servers of the station, all equal.
    pub fn servers(&self) -> usize {
        self.free_at.len()
    }

    /// What was done until `at`. O(servers + jobs that wait).
    ///
    /// # Panics
    /// When `at` is before the last arrival: what was then is no longer known.
    pub fn snapshot(&self, at: Time) -> Snapshot {
        assert!(at >= self.last_arrival, "a snapshot of the past");
        let after = |time: Time| time.since(at);
        let still: Duration = self.free_at.iter().map(|free| after(free.0)).sum();
        let waiting: Vec<Duration> = self.to_begin.iter().map(|&begins| after(begins)).collect();
        let ahead = waiting.iter().filter(|wait| !wait.is_zero()).count() as u64;
        Snapshot {
            at,
            servers: self.free_at.len(),
            arrived: self.arrived,
            begun: self.arrived - ahead,
            busy: self.service - still,
            waited: self.waiting - waiting.iter().sum::<Duration>(),
        }
    }
}

/// All that a station did until a time. The difference of two is a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The instant up to which it counts.
    pub at: Time,
    /// Servers of the station.
    pub servers: usize,
    /// Jobs that came up to `at`.
    pub arrived: u64,
    /// Jobs that a server began up to `at`.
    pub begun: u64,
    /// Busy time of all servers together.
    pub busy: Duration,
    /// Time that jobs spent waiting, all together.
    pub waited: Duration,
}

impl Snapshot {
    /// What was done since `earlier`, of the same station.
    ///
    /// # Panics
    /// When `earlier` is not earlier.
    pub fn since(&self, earlier: &Snapshot) -> Window {
        assert!(earlier.at <= self.at, "a window that ends before it begins");
        Window {
            elapsed: self.at - earlier.at,
            servers: self.servers,
            arrived: self.arrived - earlier.arrived,
            begun: self.begun - earlier.begun,
            busy: self.busy - earlier.busy,
            waited: self.waited - earlier.waited,
        }
    }
}

/// What a station did in a stretch of time. Means of nothing are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How long it is.
    pub elapsed: Duration,
    /// Servers of the station.
    pub servers: usize,
    /// Jobs that came within the window.
    pub arrived: u64,
    /// Jobs that a server began within the window.
    pub begun: u64,
    /// Busy time of all servers together.
    pub busy: Duration,
    /// Time that jobs spent waiting, all together.
    pub waited: Duration,
}

impl Window {
    /// Share of the servers' time that was busy, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        ratio(self.busy, self.elapsed.as_secs_f64() * self.servers as f64)
    }

    /// Jobs waiting, a mean over time.
    pub fn mean_waiting(&self) -> f64 {
        ratio(self.waited, self.elapsed.as_secs_f64())
    }

    /// Jobs waiting or served, a mean over time.
    pub fn mean_present(&self) -> f64 {
        ratio(self.waited + self.busy, self.elapsed.as_secs_f64())
    }

    /// Waiting for each job that began, seconds. By Little's law: of a window that is
    /// short beside the wait, only as good as the jobs at its edges cancel out.
    pub fn mean_wait_s(&self) -> f64 {
        ratio(self.waited, self.begun as f64)
    }

    /// Service for each job that began, seconds; of short windows as the mean wait.
    pub fn mean_service_s(&self) -> f64 {
        ratio(self.busy, self.begun as f64)
    }
}

fn ratio(time: Duration, by: f64) -> f64 {
    if by > 0.0 {
        time.as_secs_f64() / by
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ns(nanos: u64) -> Duration {
        Duration::from_nanos(nanos)
    }

    fn served(begun: u64, end: u64) -> Served {
        Served {
            begun: Time(begun),
            end: Time(end),
        }
    }

    #[test]
    fn jobs_begin_in_order_at_the_server_that_is_free_first() {
        let mut station = Station::new(2);
        assert_eq!(station.serve(Time(10), ns(100)), served(10, 110));
        assert_eq!(station.serve(Time(20), ns(10)), served(20, 30));
        assert_eq!(station.serve(Time(25), ns(10)), served(30, 40));
        assert_eq!(station.serve(Time(25), ns(100)), served(40, 140));
        assert_eq!(station.serve(Time(25), ns(1)), served(110, 111));
        assert_eq!(station.serve(Time(500), ns(0)), served(500, 500));
    }

    /// By hand: one server, jobs [0, 100) at 0, then [100, 150) and [150, 160) both come
    /// at 50.
    #[test]
    fn a_window_counts_what_lies_in_it_also_of_jobs_in_progress() {
        let mut station = Station::new(1);
        station.serve(Time(0), ns(100));
        station.serve(Time(50), ns(50));
        station.serve(Time(50), ns(10));
        let early = station.snapshot(Time(60));
        assert_eq!((early.arrived, early.begun), (3, 1));
        assert_eq!((early.busy, early.waited), (ns(60), ns(20)));
        let middle = station.snapshot(Time(120));
        let window = middle.since(&early);
        assert_eq!((window.arrived, window.begun), (0, 1));
        // Both wait for 40 ns more, and the last one for another 20 ns.
        assert_eq!((window.busy, window.waited), (ns(60), ns(100)));
        assert_eq!(window.utilisation(), 1.0);
        assert!((window.mean_waiting() - 100.0 / 60.0).abs() < 1e-12);
        assert!((window.mean_present() - 160.0 / 60.0).abs() < 1e-12);
        let all = station
            .snapshot(Time(320))
            .since(&Station::new(1).snapshot(Time(0)));
        assert_eq!((all.begun, all.busy, all.waited), (3, ns(160), ns(150)));
        assert_eq!(all.utilisation(), 0.5);
        assert!((all.mean_wait_s() - 50e-9).abs() < 1e-18);
        assert!((all.mean_service_s() - 160e-9 / 3.0).abs() < 1e-18);
    }

    /// Windows of a busy station add up, and each is what a walk over all jobs says.
    #[test]
    fn windows_are_what_a_walk_over_all_jobs_finds() {
        let mut prng = base::Prng::from_seed(3);
        for servers in [1, 3, 8] {
            let (mut station, mut now) = (Station::new(servers), Time(0));
            let (mut jobs, mut before) = (Vec::new(), station.snapshot(now));
            for _ in 0..200 {
                for _ in 0..prng.below(12) {
                    now = now + ns(prng.below(60));
                    let job = station.serve(now, ns(prng.below(100 * servers as u64)));
                    jobs.push((now, job));
                }
                now = now + ns(prng.below(100));
                let snapshot = station.snapshot(now);
                let window = snapshot.since(&before);
                let inside = |from: Time, to: Time| to.min(now).since(from.max(before.at));
                let busy: Duration = jobs.iter().map(|(_, job)| inside(job.begun, job.end)).sum();
                let waited: Duration = jobs.iter().map(|(a, job)| inside(*a, job.begun)).sum();
                assert_eq!((window.busy, window.waited), (busy, waited));
                let begun = jobs.iter().filter(|(_, job)| job.begun <= now).count() as u64;
                assert_eq!(snapshot.begun, begun);
                before = snapshot;
            }
        }
    }

    #[test]
    fn a_station_that_grows_begins_what_comes_then_at_once() {
        let mut station = Station::new(1);
        station.serve(Time(0), ns(100));
        assert_eq!(station.serve(Time(10), ns(100)), served(100, 200));
        station.grow(Time(20), 2);
        assert_eq!(station.servers(), 3);
        assert_eq!(station.serve(Time(30), ns(5)), served(30, 35));
        assert_eq!(station.serve(Time(30), ns(5)), served(30, 35));
        assert_eq!(station.serve(Time(30), ns(5)), served(35, 40));
        let all = station.snapshot(Time(300));
        assert_eq!((all.begun, all.busy, all.waited), (5, ns(215), ns(95)));
    }

    #[test]
    fn an_idle_station_has_means_of_nothing() {
        let station = Station::new(4);
        let begin = station.snapshot(Time(0));
        let window = begin.since(&begin);
        assert_eq!(
            window.utilisation() + window.mean_wait_s() + window.mean_waiting(),
            0.0
        );
    }

    #[test]
    #[should_panic(expected = "in order of time")]
    fn a_job_from_the_past_is_refused() {
        let mut station = Station::new(1);
        station.serve(Time(10), ns(1));
        station.serve(Time(9), ns(1));
    }

    #[test]
    #[should_panic(expected = "without a server")]
    fn a_station_without_servers_is_refused() {
        Station::new(0);
    }
}
