//! A drive whose every operation takes a constant time.
//!
//! It has `slots` places in which operations run side by side; more of them wait
//! in the order of arrival. With `a` the arrival, `f` the time at which the slot
//! that is free first becomes free and `l` the latency of the kind of operation:
//!
//! ```text
//! begin = max(a, f)        end = begin + l
//! ```
//!
//! So the most that it does is `slots / l` operations per second: 32 slots of
//! 100 µs give 320,000. There is no bandwidth limit, no position and no
//! randomness. It is for smoke benchmarks and for tests whose figures can be
//! checked by hand, not for predictions.

use crate::{Request, RequestKind};
use base::{Prng, Time};
use std::time::Duration;

/// What the drive is like. All times are service times, without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Time of a read.
    pub read_latency: Duration,
    /// Time of a write.
    pub write_latency: Duration,
    /// Time of a flush. Zero for a drive with a protected write cache.
    pub flush_latency: Duration,
    /// Operations that run side by side, from 1.
    pub slots: u16,
}

impl Constant {
    /// A fast flash drive in round figures: 80 µs reads, 20 µs writes into a
    /// protected cache, flushes of 5 µs, 64 slots.
    pub const FLASH: Constant = Constant {
        read_latency: Duration::from_micros(80),
        write_latency: Duration::from_micros(20),
        flush_latency: Duration::from_micros(5),
        slots: 64,
    };

    /// Service time of an operation of this kind. A discard takes a write's time.
    pub const fn latency(&self, kind: RequestKind) -> Duration {
        match kind {
            RequestKind::Read => self.read_latency,
            RequestKind::Write | RequestKind::DurableWrite | RequestKind::Discard => {
                self.write_latency
            }
            RequestKind::Flush => self.flush_latency,
        }
    }
}

/// When each slot becomes free.
#[derive(Clone, Debug)]
pub struct State {
    free_at: Vec<Time>,
}

impl State {
    /// A drive at rest.
    ///
    /// # Panics
    /// When the drive has no slot: nothing would ever end.
    pub fn new(drive: &Constant) -> Self {
        assert!(drive.slots > 0, "a drive without a slot serves nothing");
        State {
            free_at: vec![Time::default(); usize::from(drive.slots)],
        }
    }

    /// When `request`, arriving at `arrival`, ends. Arrivals come in the order of
    /// time. Draws nothing from the randomness that other models need.
    pub fn serve(
        &mut self,
        drive: &Constant,
        arrival: Time,
        request: Request,
        _randomness: &mut Prng,
    ) -> Time {
        // A slot that is free by now is as good as any other; the first found
        // keeps the common case short.
        let mut first = 0;
        for (slot, &free_at) in self.free_at.iter().enumerate() {
            if free_at < self.free_at[first] {
                first = slot;
            }
            if free_at <= arrival {
                first = slot;
                break;
            }
        }
        let end = arrival.max(self.free_at[first]) + drive.latency(request.kind);
        self.free_at[first] = end;
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::DriveOffset;

    const DRIVE: Constant = Constant {
        read_latency: Duration::from_nanos(100),
        write_latency: Duration::from_nanos(10),
        flush_latency: Duration::ZERO,
        slots: 2,
    };

    fn ends(arrivals_and_kinds: &[(u64, RequestKind)]) -> Vec<u64> {
        let mut state = State::new(&DRIVE);
        let mut prng = Prng::from_seed(0);
        let mut serve = |&(arrival, kind): &(u64, RequestKind)| {
            let request = Request {
                kind,
                at: DriveOffset(0),
                len_bytes: 4096,
            };
            state.serve(&DRIVE, Time(arrival), request, &mut prng).0
        };
        arrivals_and_kinds.iter().map(&mut serve).collect()
    }

    #[test]
    fn a_free_drive_takes_the_latency_of_the_kind() {
        use RequestKind::{Discard, Flush, Read, Write};
        assert_eq!(
            ends(&[(1000, Read), (2000, Write), (3000, Flush), (4000, Discard)]),
            [1100, 2010, 3000, 4010]
        );
    }

    #[test]
    fn the_third_of_two_slots_waits_for_the_one_that_is_free_first() {
        use RequestKind::{Read, Write};
        assert_eq!(
            ends(&[(0, Read), (1, Write), (2, Read), (3, Read)]),
            [100, 11, 111, 200]
        );
    }

    #[test]
    #[should_panic(expected = "without a slot")]
    fn a_drive_without_slots_is_refused() {
        State::new(&Constant { slots: 0, ..DRIVE });
    }
}
