//! Drives whose submissions may block: a worker of the kernel makes their transfers.
//!
//! io_uring starts a transfer inside the call that submits it, as far as that can be done
//! without waiting. A file system whose server has stopped, or an old kernel before a file
//! system that is frozen, may wait there all the same, and with it the whole shard.
//!
//! Invariants:
//! - A drive of a file system that is not known to start transfers without waiting never has
//!   one started by the submitting call.
//! - One that took part in a submission that took long has none started so for a while; the
//!   while doubles each time, to an hour or so, and is halved for each hour without one: a
//!   processor that was busy elsewhere, or a machine that was paused, is soon forgotten.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A submission that takes so long has blocked. One of many entries takes a millisecond.
pub(super) const LONG: Duration = Duration::from_millis(50);

/// How long workers make the transfers after the first one that took long.
const FIRST: Duration = Duration::from_secs(60);

/// No more doublings: a while of about an hour.
const DOUBLINGS_MAX: u32 = 6;

/// A while without one for which a doubling is taken back.
const QUIET: Duration = Duration::from_secs(3600);

/// Whether a drive's submissions may block. Shared by the shards that use the drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspicion(Arc<State>);

#[derive(Debug, Default)]
struct State {
    always: bool,
    /// Milliseconds of the clock; until then it is suspect.
    until: AtomicU64,
    /// How often the while has doubled.
    times: AtomicU32,
}

impl Suspicion {
    /// Of a drive that may block by its nature, or else of one that should not.
    pub(super) fn new(always: bool) -> Self {
        Suspicion(Arc::new(State {
            always,
            ..State::default()
        }))
    }

    /// Whether a worker is to make its transfers.
    pub(super) fn in_worker(&self) -> bool {
        let until = self.0.until.load(Relaxed);
        // The clock is not read for drives that never were suspect.
        self.0.always || until > 0 && now() < until
    }

    /// It took part in a submission that took long.
    pub(super) fn rouse(&self) {
        self.rouse_at(now());
    }

    fn rouse_at(&self, now: u64) {
        let state = &self.0;
        let until = state.until.load(Relaxed);
        let doublings = match until {
            0 => 0,
            _ => {
                let quiet = now.saturating_sub(until) / QUIET.as_millis() as u64;
                let quiet = u32::try_from(quiet).unwrap_or(u32::MAX);
                let more = state.times.load(Relaxed).saturating_add(1);
                more.saturating_sub(quiet).min(DOUBLINGS_MAX)
            }
        };
        state.times.store(doublings, Relaxed);
        let span = (FIRST.as_millis() as u64) << doublings;
        state.until.store(now + span, Relaxed);
    }

    /// Whether both are of the same drive.
    pub(super) fn is(&self, other: &Suspicion) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The same for all handles to one drive, and for no other drive that is open.
    pub(super) fn key(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// Milliseconds since the first look, and never zero.
fn now() -> u64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let began = BEGAN.get_or_init(Instant::now);
    began.elapsed().as_millis() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_blocks_again_is_suspect_for_longer() {
        let one = Suspicion::new(false);
        assert!(!one.in_worker());
        one.clone().rouse();
        assert!(one.in_worker(), "all handles know of it");
        let first = one.0.until.load(Relaxed);
        one.rouse();
        assert!(one.0.until.load(Relaxed) >= first + FIRST.as_millis() as u64);
        (0..100).for_each(|_| one.rouse());
        assert!(one.in_worker());
        assert!(one.0.until.load(Relaxed) < now() + 2 * QUIET.as_millis() as u64);
        assert!(Suspicion::new(true).in_worker());
        assert!(!one.is(&Suspicion::new(false)));
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let (minute, hour) = (60_000, 3_600_000);
        let one = Suspicion::new(false);
        let span_at = |now| {
            one.rouse_at(now);
            one.0.until.load(Relaxed) - now
        };
        assert_eq!(span_at(1), minute);
        assert_eq!(span_at(2), 2 * minute);
        assert_eq!(span_at(3), 4 * minute);
        // An hour and a half after that has ended.
        assert_eq!(span_at(4 * minute + 3 + hour * 3 / 2), 4 * minute);
        assert_eq!(span_at(100 * hour), minute);
        // Now and then, as where a processor is shared, it never gets to be long.
        for day in 10..1000 {
            assert_eq!(span_at(day * 24 * hour), minute);
        }
        let last = (0..100).map(|nth| span_at(25_000 * hour + nth)).max();
        assert_eq!(last, Some(64 * minute));
    }
}
