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
//!   while doubles each time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A submission that takes so long has blocked. One of many entries takes a millisecond.
pub(super) const LONG: Duration = Duration::from_millis(50);

/// How long workers make the transfers after the first one that took long.
const FIRST: Duration = Duration::from_secs(60);

/// No more doublings: a while of about a month.
const DOUBLINGS_MAX: u32 = 16;

/// Whether a drive's submissions may block. Shared by the shards that use the drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspicion(Arc<State>);

#[derive(Debug, Default)]
struct State {
    always: bool,
    /// Milliseconds of the clock; until then it is suspect.
    until: AtomicU64,
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
        let times = self.0.times.fetch_add(1, Relaxed).min(DOUBLINGS_MAX);
        let span = FIRST.as_millis() as u64;
        self.0.until.store(now() + (span << times), Relaxed);
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
        assert!(Suspicion::new(true).in_worker());
        assert!(!one.is(&Suspicion::new(false)));
    }
}
