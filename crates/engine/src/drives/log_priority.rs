//! On a disk, writes that go in place make way for a write of the logs that waits too long:
//! [`LogPriority`].
//!
//! A disk takes the command that is nearest to its heads, out of dozens. Writes that go in place come in
//! the order in which they lie there, so one of them is always nearer than the logs, which lie in front of
//! all zones. Hosts wait for the log. So a write in place does not begin while a write of the logs has been
//! under way for longer than [`PATIENCE`]. Writes that have begun go on.
//!
//! Invariants:
//! - A write that makes way begins once no write of the logs is that old, however these end.
//! - It begins after [`WAY_MAX`] at the latest: slow logs keep nothing from going in place for ever.
//! - Reads make no way, and writes of the logs wait for nobody.
//! - It is a matter of one lane: the lanes of a pool do not know of each other's writes.

use base::Time;
use futures_channel::oneshot;
use futures_util::future::select;
use std::cell::RefCell;
use std::pin::pin;
use std::time::Duration;

/// How long a write of the logs may take before others make way: a few accesses of a disk. The longest
/// random write to eight modelled disks of RAID 10 took 463, 541 and 778 ms with 25, 50 and 100 ms. It took
/// 1,326 ms without a bound. The rates differed little (`docs/internals/performance.md`).
const PATIENCE: Duration = Duration::from_millis(25);

/// How long a write makes way, at most.
const WAY_MAX: Duration = Duration::from_millis(250);

/// The writes of a drive's logs, and those that make way for them.
#[derive(Debug, Default)]
pub(super) struct LogPriority {
    /// When the writes of the logs began that have not ended, the oldest first.
    log: RefCell<Vec<Time>>,
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

/// A write of the logs, until it has ended.
pub(super) struct LogWrite<'a> {
    priority: &'a LogPriority,
    begun: Time,
}

impl Drop for LogWrite<'_> {
    fn drop(&mut self) {
        let mut log = self.priority.log.borrow_mut();
        if let Some(at) = log.iter().position(|begun| *begun == self.begun) {
            log.remove(at);
        }
        drop(log);
        // Each looks for itself whether it may begin now.
        for waiting in self.priority.waiting.take() {
            let _ = waiting.send(());
        }
    }
}

impl LogPriority {
    /// A write of the logs begins.
    pub(super) fn begin_log(&self, begun: Time) -> LogWrite<'_> {
        self.log.borrow_mut().push(begun);
        LogWrite {
            priority: self,
            begun,
        }
    }

    /// Whether a write of the logs waits too long.
    pub(super) fn is_wanted(&self, now: Time) -> bool {
        let log = self.log.borrow();
        let oldest = log.first();
        oldest.is_some_and(|begun| now.since(*begun) > PATIENCE)
    }

    /// Ends when a write in place may begin; how long it made way.
    pub(super) async fn make_way(
        &self,
        now: impl Fn() -> Time,
        sleep: impl AsyncFn(Duration),
    ) -> Duration {
        let came = now();
        while self.is_wanted(now()) {
            let left = WAY_MAX.saturating_sub(now().since(came));
            if left.is_zero() {
                break;
            }
            let (next, turn) = oneshot::channel();
            self.waiting.borrow_mut().push(next);
            select(turn, pin!(sleep(left))).await;
        }
        now().since(came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::cell::Cell;
    use std::pin::Pin;

    const OLD: Time = Time(PATIENCE.as_nanos() as u64 + 1);

    /// A write that makes way for as long as it has to: its sleep never ends.
    fn make_way<'a>(
        priority: &'a LogPriority,
        clock: &'a Cell<Time>,
    ) -> Pin<Box<impl Future<Output = Duration> + 'a>> {
        Box::pin(priority.make_way(|| clock.get(), async |_| std::future::pending().await))
    }

    #[test]
    fn a_write_makes_way_for_an_old_one_of_the_log_and_for_no_young_one() {
        let (priority, clock) = (LogPriority::default(), Cell::new(Time(0)));
        let first = priority.begin_log(clock.get());
        let at_once = make_way(&priority, &clock).now_or_never();
        assert_eq!(at_once, Some(Duration::ZERO));
        clock.set(OLD);
        let second = priority.begin_log(clock.get());
        let mut waits = make_way(&priority, &clock);
        assert_eq!(waits.as_mut().now_or_never(), None);
        // The younger one changes nothing.
        drop(second);
        assert_eq!(waits.as_mut().now_or_never(), None);
        clock.set(OLD + PATIENCE);
        drop(first);
        assert_eq!(waits.now_or_never(), Some(PATIENCE));
        let at_once = make_way(&priority, &clock).now_or_never();
        assert_eq!(at_once, Some(Duration::ZERO));
    }

    #[test]
    fn all_who_wait_begin_when_the_log_has_ended() {
        let (priority, clock) = (LogPriority::default(), Cell::new(Time(0)));
        let log = priority.begin_log(clock.get());
        clock.set(OLD);
        let mut all: Vec<_> = (0..3).map(|_| make_way(&priority, &clock)).collect();
        for waits in &mut all {
            assert_eq!(waits.as_mut().now_or_never(), None);
        }
        // One of them goes away.
        drop(all.pop());
        drop(log);
        assert!(all.into_iter().all(|waits| waits.now_or_never().is_some()));
    }

    #[test]
    fn writes_of_the_log_that_begin_together_end_one_by_one() {
        let (priority, clock) = (LogPriority::default(), Cell::new(Time(0)));
        let (one, other) = (
            priority.begin_log(clock.get()),
            priority.begin_log(clock.get()),
        );
        clock.set(OLD);
        drop(one);
        assert_eq!(make_way(&priority, &clock).now_or_never(), None);
        drop(other);
        assert!(make_way(&priority, &clock).now_or_never().is_some());
    }

    #[test]
    fn nobody_makes_way_for_ever() {
        let (priority, clock) = (LogPriority::default(), Cell::new(Time(0)));
        let _log = priority.begin_log(clock.get());
        clock.set(OLD);
        let sleep = async |left| clock.set(clock.get() + left);
        let made = priority.make_way(|| clock.get(), sleep);
        assert_eq!(made.now_or_never(), Some(WAY_MAX));
    }
}
