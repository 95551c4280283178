//! On a disk, writes to zones make way for a write of the front (labels, metadata, logs) that waits too
//! long: [`LogPriority`].
//!
//! A disk takes the command that is nearest to its heads, out of dozens. Writes that go in place come in
//! the order in which they lie there, so one of them is always nearer than the log, which lies in front of
//! all zones. Hosts wait for the log. So no write to a zone begins on a disk while a write of its front
//! has been under way for longer than [`PATIENCE`]; those that have begun end.
//!
//! Invariants:
//! - A write that makes way begins once no write of the front is that old, however these end.
//! - Reads make no way, and the front waits for nobody.

use base::Time;
use futures_channel::oneshot;
use std::cell::RefCell;
use std::time::Duration;

/// How long a write of the front may take before others make way: a few accesses of a disk. With 25, 50
/// and 100 ms the longest random write to eight modelled disks of RAID 10 took 446, 541 and 778 ms, and
/// without a bound 1,326 ms, all at about the same rate (`docs/internals/performance.md`).
const PATIENCE: Duration = Duration::from_millis(25);

/// The writes of a drive's front, and those that make way for them.
#[derive(Debug, Default)]
pub(super) struct LogPriority {
    /// When the writes of the front began that have not ended, the oldest first.
    front: RefCell<Vec<Time>>,
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

/// A write of the front, until it has ended.
pub(super) struct Front<'a> {
    priority: &'a LogPriority,
    begun: Time,
}

impl Drop for Front<'_> {
    fn drop(&mut self) {
        let mut front = self.priority.front.borrow_mut();
        if let Some(at) = front.iter().position(|begun| *begun == self.begun) {
            front.remove(at);
        }
        drop(front);
        // Each looks for itself whether it may begin now.
        for waiting in self.priority.waiting.take() {
            let _ = waiting.send(());
        }
    }
}

impl LogPriority {
    /// A write of the front begins.
    pub(super) fn begin_front(&self, begun: Time) -> Front<'_> {
        self.front.borrow_mut().push(begun);
        Front {
            priority: self,
            begun,
        }
    }

    /// Whether a write of the front waits too long.
    fn is_wanted(&self, now: Time) -> bool {
        let front = self.front.borrow();
        let oldest = front.first();
        oldest.is_some_and(|begun| now.since(*begun) > PATIENCE)
    }

    /// Ends when a write to a zone may begin. Whether it had to make way.
    pub(super) async fn make_way(&self, now: impl Fn() -> Time) -> bool {
        let mut has_waited = false;
        while self.is_wanted(now()) {
            has_waited = true;
            let (next, turn) = oneshot::channel();
            self.waiting.borrow_mut().push(next);
            // Also when nobody is left to say so.
            let _ = turn.await;
        }
        has_waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::cell::Cell;

    const OLD: Time = Time(PATIENCE.as_nanos() as u64 + 1);

    #[test]
    fn a_write_makes_way_for_an_old_one_of_the_front_and_for_no_young_one() {
        let (priority, clock) = (LogPriority::default(), Cell::new(Time(0)));
        let make = || priority.make_way(|| clock.get());
        let first = priority.begin_front(clock.get());
        assert_eq!(make().now_or_never(), Some(false));
        clock.set(OLD);
        let second = priority.begin_front(clock.get());
        let mut waits = Box::pin(make());
        assert_eq!(waits.as_mut().now_or_never(), None);
        // The younger one changes nothing.
        drop(second);
        assert_eq!(waits.as_mut().now_or_never(), None);
        drop(first);
        assert_eq!(waits.now_or_never(), Some(true));
        assert_eq!(make().now_or_never(), Some(false));
    }

    #[test]
    fn all_who_wait_begin_when_the_front_has_ended() {
        let (priority, clock) = (LogPriority::default(), Cell::new(Time(0)));
        let front = priority.begin_front(clock.get());
        clock.set(OLD);
        let mut all: Vec<_> = (0..3)
            .map(|_| Box::pin(priority.make_way(|| clock.get())))
            .collect();
        assert!(
            all.iter_mut()
                .all(|waits| waits.as_mut().now_or_never().is_none())
        );
        // One of them goes away.
        drop(all.pop());
        drop(front);
        assert!(
            all.into_iter()
                .all(|waits| waits.now_or_never() == Some(true))
        );
    }

    #[test]
    fn writes_of_the_front_that_begin_together_end_one_by_one() {
        let (priority, clock) = (LogPriority::default(), Cell::new(Time(0)));
        let (one, other) = (
            priority.begin_front(clock.get()),
            priority.begin_front(clock.get()),
        );
        clock.set(OLD);
        drop(one);
        assert_eq!(priority.make_way(|| clock.get()).now_or_never(), None);
        drop(other);
        assert_eq!(
            priority.make_way(|| clock.get()).now_or_never(),
            Some(false)
        );
    }
}
