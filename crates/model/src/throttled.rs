//! A drive that is made slow on purpose: fixed delays and a token bucket, as `nbdkit` makes it with
//! its filters `delay` and `rate`, in this order. All its figures are set, none is measured: such a
//! drive can be built on any machine and held against this model.
//!
//! `slots` commands are under way at a time, the threads that `nbdkit` has for a connection
//! (16 unless told otherwise); more of them wait in the order of arrival. One that begins at
//! `b` sleeps for its kind's delay `d`, then needs a token of its kind's bucket for each of
//! its `n` bytes. It keeps its slot all the while. Reads and writes have a bucket each, full
//! at first. With `r` tokens a second, `c` of them at most and `v` in the bucket when it was
//! last looked at, at `u`:
//!
//! ```text
//! looks first at          t = b + d
//! at every look           v = min(c, v + r (t - u))     u = t
//!   n ≤ v                 v = v - n                     end = t
//!   else                  n = n - v,  v = 0             looks again at t + n / r
//! ```
//!
//! Who has to look again has no right to the tokens that come meanwhile: whoever looks first
//! takes them. So commands overtake each other, but no token is lost, and the drive does the
//! lesser of `slots / d` commands and `r` bytes a second once the bucket has been emptied.
//! A flush and a discard need no token; a flush has no delay.
//!
//! `nbdkit` counts bits and microseconds where this counts bytes and nanoseconds; what a
//! thread needs to wake up and to move data is not in the model.
//!
//! Invariants: commands begin in the order of arrival; at most `slots` are under way; a
//! bucket never holds more than its capacity. Those that look at one instant do so in the
//! order of arrival.

use crate::{Completed, Request, RequestKind, Ticket};
use base::Time;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What the drive is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    /// What it is called.
    pub name: &'static str,
    /// Bytes that it offers to its host.
    pub capacity_bytes: u64,
    /// Commands under way at a time, from 1.
    pub slots: u16,
    /// Delay of a read.
    pub read_delay: Duration,
    /// Delay of a write, and of a discard.
    pub write_delay: Duration,
    /// Tokens that come into each bucket in a second, from 1.
    pub bytes_per_second: u64,
    /// Tokens that a bucket holds at most, from 1. `nbdkit` gives it what comes in two seconds.
    pub burst_bytes: u64,
}

impl Throttled {
    /// A file behind these filters that `nbdfuse` gives back as a file, so that an array can have it as
    /// a drive. libfuse has ten threads. The array uses eight of them: submitting to such a file may
    /// block, and then each lane gives a drive's commands to workers of the kernel, eight at a time.
    pub const SLOWED_FILE: Throttled = Throttled {
        name: "file behind nbdkit's delay and rate, and nbdfuse",
        capacity_bytes: 1 << 40,
        slots: 8,
        read_delay: Duration::from_millis(20),
        write_delay: Duration::from_millis(30),
        bytes_per_second: 20_000_000,
        burst_bytes: 40_000_000,
    };

    fn delay(&self, kind: RequestKind) -> Duration {
        match kind {
            RequestKind::Read => self.read_delay,
            RequestKind::Write | RequestKind::DurableWrite | RequestKind::Discard => {
                self.write_delay
            }
            RequestKind::Flush => Duration::ZERO,
        }
    }
}

/// Parts of a token: as many as come in a nanosecond at one token a second are one.
const PARTS: u128 = 1_000_000_000;

#[derive(Clone, Debug)]
struct Bucket {
    parts: u128,
    looked: Time,
}

impl Bucket {
    /// Takes what is wanted, or all that there is; gives what is missing then.
    fn take(&mut self, drive: &Throttled, now: Time, wanted: u128) -> u128 {
        let come = u128::from(drive.bytes_per_second) * (now - self.looked).as_nanos();
        self.parts = (self.parts + come).min(u128::from(drive.burst_bytes) * PARTS);
        self.looked = now;
        let taken = wanted.min(self.parts);
        self.parts -= taken;
        wanted - taken
    }
}

/// A command that has a slot.
#[derive(Clone, Debug)]
struct UnderWay {
    kind: RequestKind,
    begun: Time,
    /// Parts of tokens that it still needs.
    missing: u128,
}

/// A drive at work.
#[derive(Clone, Debug)]
pub struct State {
    drive: Throttled,
    now: Time,
    arrived: u64,
    waiting: VecDeque<(Ticket, Request)>,
    /// By the time of its next look.
    under_way: BTreeMap<(Time, Ticket), UnderWay>,
    read_bucket: Bucket,
    write_bucket: Bucket,
    busy: Duration,
}

impl State {
    /// A drive at rest, with full buckets.
    ///
    /// # Panics
    /// When it has no slot, or nothing comes into a bucket or fits in: nothing would ever end.
    pub fn new(drive: &Throttled) -> State {
        assert!(drive.slots > 0, "a drive without a slot serves nothing");
        let fills = drive.bytes_per_second > 0 && drive.burst_bytes > 0;
        assert!(fills, "a bucket without tokens serves nothing");
        let full = Bucket {
            parts: u128::from(drive.burst_bytes) * PARTS,
            looked: Time::default(),
        };
        State {
            drive: *drive,
            now: Time::default(),
            arrived: 0,
            waiting: VecDeque::new(),
            under_way: BTreeMap::new(),
            read_bucket: full.clone(),
            write_bucket: full,
            busy: Duration::ZERO,
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
        self.now = now;
        let ticket = Ticket(self.arrived);
        self.arrived += 1;
        self.waiting.push_back((ticket, request));
        self.begin(now);
        ticket
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<Time> {
        let ((at, _), _) = self.under_way.first_key_value()?;
        Some(*at)
    }

    /// Lets time pass until `now`; adds what ended, in the order of time.
    pub fn advance(&mut self, now: Time, completed: &mut Vec<Completed>) {
        while let Some(entry) = self.under_way.first_entry() {
            let (at, ticket) = *entry.key();
            if at > now {
                break;
            }
            let command = entry.remove();
            let left = self.look(at, &command);
            if left > 0 {
                let rate = u128::from(self.drive.bytes_per_second);
                let again = Duration::from_nanos(left.div_ceil(rate) as u64);
                let command = UnderWay {
                    missing: left,
                    ..command
                };
                self.under_way.insert((at + again, ticket), command);
                continue;
            }
            self.busy += at - command.begun;
            completed.push(Completed { ticket, end: at });
            self.begin(at);
        }
        self.now = self.now.max(now);
    }

    /// Time that its slots were taken by commands that ended, added up.
    pub fn busy(&self) -> Duration {
        self.busy
    }

    /// Takes tokens for a command; gives what is missing then.
    fn look(&mut self, at: Time, command: &UnderWay) -> u128 {
        let bucket = match command.kind {
            RequestKind::Read => &mut self.read_bucket,
            RequestKind::Write | RequestKind::DurableWrite => &mut self.write_bucket,
            RequestKind::Flush | RequestKind::Discard => return 0,
        };
        bucket.take(&self.drive, at, command.missing)
    }

    /// Gives free slots to those that wait.
    fn begin(&mut self, now: Time) {
        while self.under_way.len() < usize::from(self.drive.slots)
            && let Some((ticket, request)) = self.waiting.pop_front()
        {
            let command = UnderWay {
                kind: request.kind,
                begun: now,
                missing: u128::from(request.len_bytes) * PARTS,
            };
            let looks = now + self.drive.delay(request.kind);
            self.under_way.insert((looks, ticket), command);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RequestKind::{Discard, Flush, Read, Write};
    use base::DriveOffset;

    /// A token comes every 10 ns.
    const DRIVE: Throttled = Throttled {
        name: "by hand",
        capacity_bytes: 1 << 20,
        slots: 2,
        read_delay: Duration::from_nanos(100),
        write_delay: Duration::from_nanos(40),
        bytes_per_second: 100_000_000,
        burst_bytes: 50,
    };

    /// The ends of commands that come at these times, in the order of their coming.
    fn ends(drive: &Throttled, commands: &[(u64, RequestKind, u64)]) -> Vec<u64> {
        let (mut state, mut completed) = (State::new(drive), Vec::new());
        for &(at, kind, len_bytes) in commands {
            state.advance(Time(at), &mut completed);
            let request = Request {
                kind,
                at: DriveOffset(0),
                len_bytes,
            };
            state.arrive(request, Time(at));
        }
        while let Some(event) = state.next_event() {
            state.advance(event, &mut completed);
        }
        assert!(completed.is_sorted_by_key(|done| done.end));
        completed.sort_by_key(|done| done.ticket);
        completed.iter().map(|done| done.end.0).collect()
    }

    #[test]
    fn within_the_burst_a_command_takes_its_delay() {
        let commands = [
            (0, Read, 50),
            (1000, Write, 50),
            (2000, Flush, 0),
            (3000, Discard, 400),
        ];
        assert_eq!(ends(&DRIVE, &commands), [100, 1040, 2000, 3040]);
    }

    #[test]
    fn the_third_of_two_slots_waits_for_the_one_that_is_free_first() {
        let commands = [(0, Read, 1), (1, Write, 1), (2, Write, 1), (3, Read, 1)];
        assert_eq!(ends(&DRIVE, &commands), [100, 41, 81, 181]);
    }

    /// At 100 the first takes all 50. At 130 the second finds 3 tokens of its 20 and
    /// sleeps for 17 more: 170 ns.
    #[test]
    fn an_empty_bucket_makes_a_command_sleep_until_its_tokens_came() {
        assert_eq!(ends(&DRIVE, &[(0, Read, 50), (30, Read, 20)]), [100, 300]);
    }

    /// 80 of a bucket of 50: at 100 it takes 50 and sleeps for 30 tokens, and the bucket fills from
    /// nothing: at 400 there are 30. Later 50 again are in it, not more: at 1,500 the second
    /// takes them and sleeps for 10 more.
    #[test]
    fn a_bucket_holds_no_more_than_its_burst() {
        assert_eq!(
            ends(&DRIVE, &[(0, Read, 80), (1400, Read, 60)]),
            [400, 1600]
        );
    }

    #[test]
    fn reads_and_writes_have_a_bucket_each() {
        assert_eq!(ends(&DRIVE, &[(0, Read, 50), (0, Write, 50)]), [100, 40]);
    }

    /// Both look at 100. The first takes the 50 and misses 30: 400. The second finds nothing
    /// and sleeps for its 40 tokens: until 500. At 400 the first takes all 30 that came; at
    /// 500 the second finds 10 and sleeps for the 30 that it misses: 800.
    #[test]
    fn whoever_looks_first_takes_what_came() {
        assert_eq!(ends(&DRIVE, &[(0, Read, 80), (0, Read, 40)]), [400, 800]);
    }

    /// Without tokens 2 slots of 100 ns would do 20 commands a microsecond.
    #[test]
    fn in_the_long_run_it_gives_its_rate() {
        let commands: Vec<_> = (0..1000).map(|_| (0, Read, 25)).collect();
        let last = ends(&DRIVE, &commands).into_iter().max();
        // 25,000 tokens, 50 of them there at 100.
        assert_eq!(last, Some(100 + 10 * (25_000 - 50)));
    }

    #[test]
    fn the_time_of_taken_slots_adds_up() {
        let mut state = State::new(&DRIVE);
        for kind in [Read, Write, Write] {
            let request = Request {
                kind,
                at: DriveOffset(0),
                len_bytes: 1,
            };
            state.arrive(request, Time(0));
        }
        let mut completed = Vec::new();
        state.advance(Time(500), &mut completed);
        assert_eq!((completed.len(), state.next_event()), (3, None));
        assert_eq!(state.busy(), Duration::from_nanos(100 + 40 + 40));
    }

    #[test]
    #[should_panic(expected = "without a slot")]
    fn a_drive_without_slots_is_refused() {
        State::new(&Throttled { slots: 0, ..DRIVE });
    }

    #[test]
    #[should_panic(expected = "without tokens")]
    fn a_bucket_that_nothing_comes_into_is_refused() {
        State::new(&Throttled {
            bytes_per_second: 0,
            ..DRIVE
        });
    }
}
