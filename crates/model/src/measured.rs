//! A drive as it was measured: rates of random commands by kind, size and number outstanding. For
//! the drives of a machine that is there, which no datasheet describes: `ashlar calibrate` measures them.
//!
//! It is a server whose speed depends on its load, and all commands share it alike. That is the
//! flow-equivalent server of Chandy, Herzog and Woo (*Parametric Analysis of Queuing Networks*, IBM
//! Journal of Research and Development 19, 1975). Of the commands of a kind and size, `x(n)` a second
//! ended while `n` were outstanding. So one took `t(n) = n / x(n)`. With `n` commands of any kinds under
//! way, each gets on by `1 / t(n)` of itself a second, with its own `t`. Its work is drawn out of twenty parts:
//! the times that single commands took, shortest to longest, as shares of their mean. A closed loop of `n` of
//! one kind thus does `x(n)` again.
//!
//! A durable write may get another share beside commands of other kinds: to many drives it is a write and
//! a flush, one after the other, each of which waits for the others. That is discriminatory processor sharing (Kleinrock,
//! *Time-shared Systems: A Theoretical Treatment*, JACM 14, 1967): with weights `w`, a command has `w` of their sum in place of one
//! of `n`.
//!
//! Between two measured numbers or two sizes, `t` is a straight line. Above the largest size it grows with
//! the size. No more commands are under way than were measured at most: others wait in the order
//! of arrival. A flush is a command like others, whose times are those of flushes after a write each. A
//! discard takes no time.
//!
//! It knows no places: sequential commands cost what random ones cost. A disk with an arm is better
//! described by [`crate::hdd`].
//!
//! Invariants: commands begin in the order of arrival; no more are under way than the deepest curve
//! has; what ends does so in the order of time.

use crate::{Completed, Request, RequestKind, Ticket};
use base::{Prng, Time};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What was measured of a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What it is called.
    pub name: String,
    /// Bytes that it offers to its host.
    pub capacity_bytes: u64,
    /// Whether the kernel says that it has platters.
    pub rotational: bool,
    /// Whether all drives of the model are parts of one device, as files on one disk are.
    pub shared: bool,
    /// Random commands that read.
    pub reads: Curves,
    /// Commands that write, of which a flush makes many durable.
    pub writes: Curves,
    /// Commands that write and are durable when they end.
    pub durable_writes: Curves,
    /// Flushes, each after a write; their size does not count.
    pub flushes: Curves,
    /// What a durable write has of the drive beside commands of other kinds, against what each of these has;
    /// above zero.
    pub durable_write_share: f64,
}

impl Measured {
    /// What a command of a kind has of the drive beside others, against a read.
    fn share(&self, kind: RequestKind) -> f64 {
        match kind {
            RequestKind::DurableWrite => self.durable_write_share,
            RequestKind::Read | RequestKind::Write | RequestKind::Flush | RequestKind::Discard => {
                1.0
            }
        }
    }
}

/// What was measured of one kind of commands.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// By size, the smallest first; at least one.
    pub by_size: Vec<Curve>,
    /// Times of single commands, from the shortest twentieth to the longest, against each other; at least
    /// one.
    pub spread: Vec<f64>,
}

/// Rates of commands of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The size of each.
    pub len_bytes: u64,
    /// Commands a second with 1, 2, 4, 8 … outstanding; at least one, all above zero.
    pub per_s: Vec<f64>,
}

impl Curve {
    /// The most commands outstanding that were measured.
    fn deepest(&self) -> usize {
        1 << (self.per_s.len() - 1)
    }

    /// Commands a second at the depth at which most of them end.
    fn most_per_s(&self) -> f64 {
        self.per_s.iter().copied().fold(0.0, f64::max)
    }

    /// What a command takes while `outstanding` are under way; from 1.
    fn mean_ns(&self, outstanding: usize) -> f64 {
        let at = |step: usize| (1_usize << step) as f64 / self.per_s[step] * 1e9;
        let (last, most) = (self.per_s.len() - 1, self.deepest());
        if outstanding >= most {
            return at(last) * outstanding as f64 / most as f64;
        }
        let step = outstanding.ilog2() as usize;
        let below = 1 << step;
        let part = (outstanding - below) as f64 / below as f64;
        at(step) + part * (at(step + 1) - at(step))
    }
}

impl Curves {
    /// The most commands outstanding that were measured.
    fn deepest(&self) -> usize {
        self.by_size.iter().map(Curve::deepest).max().unwrap_or(1)
    }

    /// What a command of `len_bytes` takes while `outstanding` are under way.
    fn mean_ns(&self, len_bytes: u64, outstanding: usize) -> f64 {
        self.interpolated(len_bytes, &|curve| curve.mean_ns(outstanding))
    }

    /// A time between those of two sizes.
    fn interpolated(&self, len_bytes: u64, of_curve: &dyn Fn(&Curve) -> f64) -> f64 {
        let after = self.by_size.partition_point(|of| of.len_bytes < len_bytes);
        let time = |place: usize| of_curve(&self.by_size[place]);
        let bytes = |place: usize| self.by_size[place].len_bytes as f64;
        match after {
            0 => time(0),
            _ if after == self.by_size.len() => {
                time(after - 1) * len_bytes as f64 / bytes(after - 1)
            }
            _ => {
                let (low, high) = (bytes(after - 1), bytes(after));
                let part = (len_bytes as f64 - low) / (high - low);
                time(after - 1) + part * (time(after) - time(after - 1))
            }
        }
    }

    /// What a command of `len_bytes` takes of the drive at the depth at which most of them end.
    fn best_ns(&self, len_bytes: u64) -> f64 {
        self.interpolated(len_bytes, &|curve| 1e9 / curve.most_per_s())
    }

    /// The work of a command against that of the mean one.
    fn work(&self, randomness: &mut Prng) -> f64 {
        let mean = self.spread.iter().sum::<f64>() / self.spread.len() as f64;
        randomness.pick(&self.spread) / mean
    }

    fn check(&self, what: &str) {
        assert!(
            !self.by_size.is_empty(),
            "no rate of {what}: nothing would end"
        );
        for curve in &self.by_size {
            let ends = !curve.per_s.is_empty() && curve.per_s.iter().all(|rate| *rate > 0.0);
            assert!(
                ends,
                "no rate of {what} of {} bytes: none would end",
                curve.len_bytes
            );
        }
        assert!(
            self.by_size
                .is_sorted_by(|one, next| one.len_bytes < next.len_bytes),
            "sizes of {what} grow"
        );
        let spread = &self.spread;
        assert!(
            spread.iter().all(|part| *part > 0.0) && !spread.is_empty(),
            "{what} take time"
        );
    }
}

impl Measured {
    fn curves(&self, kind: RequestKind) -> &Curves {
        match kind {
            RequestKind::Write => &self.writes,
            RequestKind::DurableWrite => &self.durable_writes,
            RequestKind::Flush => &self.flushes,
            RequestKind::Read | RequestKind::Discard => &self.reads,
        }
    }

    /// Bytes a second of large reads, many at a time.
    pub fn read_bytes_per_s(&self) -> f64 {
        let curve = self.reads.by_size.last();
        curve.map_or(0.0, |curve| curve.most_per_s() * curve.len_bytes as f64)
    }
}

/// A command under way.
#[derive(Clone, Debug)]
struct UnderWay {
    ticket: Ticket,
    request: Request,
    /// What is left of it, as a part of the mean command's work.
    left: f64,
    /// What the mean command takes now.
    mean_ns: f64,
    /// What the mean command takes of the drive where it does most of them.
    best_ns: f64,
}

impl UnderWay {
    fn left_ns(&self) -> u64 {
        (self.left * self.mean_ns).round() as u64
    }
}

/// A drive at work.
#[derive(Clone, Debug)]
pub struct State {
    drive: Arc<Measured>,
    randomness: Prng,
    deepest: usize,
    now: Time,
    arrived: u64,
    under_way: Vec<UnderWay>,
    waiting: VecDeque<(Ticket, Request)>,
    /// Discards, which have ended when they came.
    discards: VecDeque<(Time, Ticket)>,
    busy_ns: f64,
}

impl State {
    /// A drive at rest, which draws from `randomness`.
    ///
    /// # Panics
    /// When a kind of commands has no rate, or sizes do not grow.
    pub fn new(drive: &Arc<Measured>, randomness: Prng) -> State {
        let all = [
            (&drive.reads, "reads"),
            (&drive.writes, "writes"),
            (&drive.durable_writes, "durable writes"),
            (&drive.flushes, "flushes"),
        ];
        for (curves, what) in all {
            curves.check(what);
        }
        State {
            deepest: all
                .map(|(curves, _)| curves.deepest())
                .into_iter()
                .fold(1, usize::max),
            drive: Arc::clone(drive),
            randomness,
            now: Time::default(),
            arrived: 0,
            under_way: Vec::new(),
            waiting: VecDeque::new(),
            discards: VecDeque::new(),
            busy_ns: 0.0,
        }
    }

    /// A command comes.
    ///
    /// # Panics
    /// When time runs back, or passes an event that was not looked at.
    pub fn arrive(&mut self, request: Request, now: Time) -> Ticket {
        assert!(now >= self.now, "time runs back: {now} after {}", self.now);
        let passed = self.next_event().is_some_and(|event| event < now);
        assert!(!passed, "an event before {now} was not looked at");
        self.progress(now);
        let ticket = Ticket(self.arrived);
        self.arrived += 1;
        match request.kind {
            RequestKind::Discard => self.discards.push_back((now, ticket)),
            RequestKind::Read
            | RequestKind::Write
            | RequestKind::DurableWrite
            | RequestKind::Flush => {
                self.waiting.push_back((ticket, request));
                self.begin();
            }
        }
        ticket
    }

    /// When something ends next.
    pub fn next_event(&self) -> Option<Time> {
        let transfer = self.first().map(|(_, end)| end);
        let discard = self.discards.front().map(|(end, _)| *end);
        transfer.into_iter().chain(discard).min()
    }

    /// Lets time pass until `now`; adds what ended, in the order of time.
    pub fn advance(&mut self, now: Time, completed: &mut Vec<Completed>) {
        while let Some(event) = self.next_event().filter(|event| *event <= now) {
            if let Some((end, ticket)) = self.discards.front().copied()
                && end == event
            {
                self.discards.pop_front();
                completed.push(Completed { ticket, end });
                continue;
            }
            let Some((place, end)) = self.first() else {
                unreachable!("what ends at {event} is under way")
            };
            self.progress(end);
            let UnderWay { ticket, .. } = self.under_way.remove(place);
            completed.push(Completed { ticket, end });
            self.begin();
        }
        self.progress(now);
    }

    /// Time that the drive would have needed at least for what it did so far. So it is busy for all of the
    /// time only at its best, and a single command leaves room for others.
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_ns as u64)
    }

    /// The command that ends first, and when; the one that came first, of several.
    fn first(&self) -> Option<(usize, Time)> {
        let ends = self.under_way.iter().map(UnderWay::left_ns).enumerate();
        let (place, left_ns) = ends.min_by_key(|(place, left_ns)| (*left_ns, *place))?;
        Some((place, self.now + Duration::from_nanos(left_ns)))
    }

    /// Lets all commands get on until `now`.
    fn progress(&mut self, now: Time) {
        let passed = now.max(self.now) - self.now;
        let passed_ns = passed.as_nanos() as f64;
        for command in &mut self.under_way {
            let part = passed_ns / command.mean_ns;
            self.busy_ns += part * command.best_ns;
            command.left = (command.left - part).max(0.0);
        }
        self.now = self.now.max(now);
    }

    /// Takes those that wait, as far as there is room, and tells all how fast they get on now.
    fn begin(&mut self) {
        while self.under_way.len() < self.deepest
            && let Some((ticket, request)) = self.waiting.pop_front()
        {
            let curves = self.drive.curves(request.kind);
            self.under_way.push(UnderWay {
                ticket,
                request,
                left: curves.work(&mut self.randomness),
                mean_ns: 1.0,
                best_ns: curves.best_ns(request.len_bytes),
            });
        }
        let outstanding = self.under_way.len();
        let shares = self.under_way.iter();
        let shares: f64 = shares
            .map(|command| self.drive.share(command.request.kind))
            .sum();
        for command in &mut self.under_way {
            let kind = command.request.kind;
            let mean_ns = self
                .drive
                .curves(kind)
                .mean_ns(command.request.len_bytes, outstanding);
            let of_all = outstanding as f64 * self.drive.share(kind);
            command.mean_ns = mean_ns * (shares / of_all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RequestKind::{Discard, DurableWrite, Flush, Read, Write};
    use base::DriveOffset;

    fn curves(by_size: &[(u64, &[f64])]) -> Curves {
        let curve = |(len_bytes, per_s): &(u64, &[f64])| Curve {
            len_bytes: *len_bytes,
            per_s: per_s.to_vec(),
        };
        Curves {
            by_size: by_size.iter().map(curve).collect(),
            spread: vec![1.0],
        }
    }

    /// A read of 4 KiB takes 100 ns alone, and two take 160; a write 200 whatever comes beside it up to two.
    fn drive() -> Arc<Measured> {
        Arc::new(Measured {
            name: "by hand".to_owned(),
            capacity_bytes: 1 << 20,
            rotational: false,
            shared: false,
            reads: curves(&[(4096, &[1e7, 1.25e7]), (8192, &[5e6, 5e6])]),
            writes: curves(&[(4096, &[5e6, 1e7])]),
            durable_writes: curves(&[(4096, &[1e6])]),
            flushes: curves(&[(4096, &[1e9 / 70.0])]),
            durable_write_share: 1.0,
        })
    }

    /// Beside a read a durable write of this drive has a third of it, so the read gets on by 4/3 of what it
    /// would: in 120 ns. Alone, or beside its like, a durable write takes what it takes.
    #[test]
    fn a_durable_write_has_its_share_beside_others_only() {
        let mut drive = (*drive()).clone();
        drive.durable_write_share = 0.5;
        let drive = Arc::new(drive);
        let beside = [(0, Read, 4096), (0, DurableWrite, 4096)];
        // In 120 ns it gets on by a twenty-fifth: two of equal shares take 2 µs each, and it has two thirds of that.
        assert_eq!(ends(&drive, &beside), [120, 1080]);
        let alike = [(0, DurableWrite, 4096), (0, DurableWrite, 4096)];
        assert_eq!(ends(&drive, &alike), [2000, 2000]);
        assert_eq!(ends(&drive, &[(0, DurableWrite, 4096)]), [1000]);
    }

    fn request(kind: RequestKind, len_bytes: u64) -> Request {
        Request {
            kind,
            at: DriveOffset(0),
            len_bytes,
        }
    }

    /// The ends of commands that come at these times, in the order of their coming.
    fn ends(drive: &Arc<Measured>, commands: &[(u64, RequestKind, u64)]) -> Vec<u64> {
        let (mut state, mut completed) = (State::new(drive, Prng::from_seed(1)), Vec::new());
        for &(at, kind, len_bytes) in commands {
            state.advance(Time(at), &mut completed);
            state.arrive(request(kind, len_bytes), Time(at));
        }
        while let Some(event) = state.next_event() {
            state.advance(event, &mut completed);
        }
        assert!(completed.is_sorted_by_key(|done| done.end));
        completed.sort_by_key(|done| done.ticket);
        completed.iter().map(|done| done.end.0).collect()
    }

    #[test]
    fn a_single_command_takes_the_mean_of_its_kind_and_size() {
        let commands = [
            (0, Read, 4096),
            (1000, Write, 4096),
            (2000, DurableWrite, 4096),
            (4000, Flush, 0),
            (5000, Discard, 4096),
        ];
        assert_eq!(ends(&drive(), &commands), [100, 1200, 3000, 4070, 5000]);
    }

    #[test]
    fn between_two_sizes_the_time_is_a_straight_line_and_above_them_it_grows_with_the_size() {
        let commands = [
            (0, Read, 2048),
            (1000, Read, 6144),
            (2000, Read, 8192),
            (3000, Read, 16384),
        ];
        assert_eq!(ends(&drive(), &commands), [100, 1150, 2200, 3400]);
    }

    /// Alone it gets through half of itself in 50 ns; beside the second it takes 160 for a whole one, and so
    /// 80 for the half. The second has 80 of 160 then, and the half that is left takes 50 alone.
    #[test]
    fn commands_share_the_drive() {
        let commands = [(0, Read, 4096), (50, Read, 4096)];
        assert_eq!(ends(&drive(), &commands), [130, 180]);
    }

    /// Two are the most that were measured. The third begins when the first two end.
    #[test]
    fn commands_beyond_the_deepest_that_was_measured_wait() {
        let commands = [(0, Read, 4096), (0, Read, 4096), (0, Read, 4096)];
        assert_eq!(ends(&drive(), &commands), [160, 160, 260]);
    }

    #[test]
    fn between_two_depths_the_time_is_a_straight_line() {
        let curve = Curve {
            len_bytes: 4096,
            per_s: vec![1e7, 1e7, 4e7],
        };
        let times = [1, 2, 3, 4, 8].map(|outstanding| curve.mean_ns(outstanding));
        assert_eq!(times, [100.0, 200.0, 150.0, 100.0, 200.0]);
    }

    /// As the model promises: what was measured comes out again, with any spread.
    #[test]
    fn a_closed_loop_does_what_was_measured() {
        let mut drive = (*drive()).clone();
        drive.reads.spread = vec![0.5, 0.75, 1.0, 3.0];
        for (depth, per_s) in [(1, 1e7), (2, 1.25e7)] {
            let mut state = State::new(&Arc::new(drive.clone()), Prng::from_seed(7));
            let (mut ended, mut completed, mut now) = (0_u32, Vec::new(), Time(0));
            for _ in 0..depth {
                state.arrive(request(Read, 4096), now);
            }
            while ended < 40_000 {
                now = state.next_event().expect("something is under way");
                state.advance(now, &mut completed);
                for _ in completed.drain(..) {
                    ended += 1;
                    state.arrive(request(Read, 4096), now);
                }
            }
            let rate = f64::from(ended) / now.0 as f64 * 1e9;
            assert!((rate / per_s - 1.0).abs() < 0.02, "{depth}: {rate}");
            // At its best, which is with two, it is always busy.
            let busy = state.busy().as_nanos() as f64 / now.0 as f64;
            assert!((busy - per_s / 1.25e7).abs() < 0.02, "{depth}: {busy}");
        }
    }

    #[test]
    #[should_panic(expected = "none would end")]
    fn a_drive_without_a_rate_is_refused() {
        let mut drive = (*drive()).clone();
        drive.writes.by_size[0].per_s[1] = 0.0;
        State::new(&Arc::new(drive), Prng::from_seed(1));
    }
}
