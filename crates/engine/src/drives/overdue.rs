//! On a disk, reads and writes that go in place make way for commands that are overdue: [`Overdue`].
//!
//! A disk takes the command that is nearest to its heads, out of dozens. Writes that go in place come in
//! the order in which they lie there, so one of them is always nearer than the logs, which lie in front of
//! all zones. Hosts wait for the log. They wait for a read, too, and for the room of the log's oldest
//! entry, however unlucky its write in place is. So a write in place does not begin while a command is
//! overdue: a write of the logs after [`LOG_PATIENCE`], any other command after [`PATIENCE`]. The disk has
//! fewer and fewer commands to choose from then. Commands that have begun go on.
//!
//! Dozens of readers in order starve one of them in the same way: the next read of each lies beside its last.
//! So a read of hosts that has nothing locked does not begin either while any command is older than
//! [`PATIENCE`].
//!
//! Invariants:
//! - A command that makes way begins once none is overdue, however these end.
//! - It begins after [`WAY_MAX`] at the latest: a slow command keeps others back for no longer.
//! - Writes of the logs wait for nobody.
//! - It is a matter of one lane: the lanes of a pool do not know of each other's commands.

use super::turns::{HostCommands, Turns};
use base::Time;
use futures_channel::oneshot;
use futures_util::future::select;
use std::cell::RefCell;
use std::pin::pin;
use std::time::Duration;

/// How long a write of the logs may take before others make way: a few accesses of a disk. The longest
/// random write to eight modelled disks of RAID 10 took 463, 541 and 778 ms with 25, 50 and 100 ms. It took
/// 1,326 ms without a bound. The rates differed little (`docs/internals/performance.md`).
const LOG_PATIENCE: Duration = Duration::from_millis(25);

/// How long another command may take: several times as long as the mean of a disk with thirty commands.
/// With 150 ms 60 modelled disks behind a log of flash wrote 4 % less, and the longest write took as long.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a command makes way, at most.
const WAY_MAX: Duration = Duration::from_millis(250);

/// Commands that hosts wait for in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Writes of the logs.
    Log,
    /// Reads, and writes in place.
    Other,
}

/// Who makes way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newcomer {
    /// A read.
    Read,
    /// A write that goes in place.
    Write,
}

/// Commands of one class that have not ended.
#[derive(Debug, Default)]
struct Commands {
    /// When they began, the oldest first.
    begun: RefCell<Vec<Time>>,
}

/// The commands of a disk, and those that make way for them.
#[derive(Default)]
pub(super) struct Overdue {
    /// Of work in the background, which is none of the commands.
    turns: Turns,
    log: Commands,
    others: Commands,
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

/// A command, until it has ended.
pub(super) struct Command<'a> {
    overdue: &'a Overdue,
    class: Class,
    begun: Time,
}

impl Drop for Command<'_> {
    fn drop(&mut self) {
        let mut begun = self.overdue.of(self.class).begun.borrow_mut();
        let at = begun.iter().position(|begun| *begun == self.begun);
        if let Some(at) = at {
            begun.remove(at);
        }
        drop(begun);
        if self.overdue.is_idle() {
            self.overdue.turns.resume();
        }
        // The oldest one is waited for, and no other.
        if at != Some(0) {
            return;
        }
        // Each looks for itself whether it may begin now.
        for waiting in self.overdue.waiting.take() {
            let _ = waiting.send(());
        }
    }
}

impl Commands {
    fn is_older(&self, patience: Duration, now: Time) -> bool {
        let begun = self.begun.borrow();
        let oldest = begun.first();
        oldest.is_some_and(|begun| now.since(*begun) > patience)
    }
}

impl Overdue {
    fn of(&self, class: Class) -> &Commands {
        match class {
            Class::Log => &self.log,
            Class::Other => &self.others,
        }
    }

    /// A command begins.
    pub(super) fn begin(&self, class: Class, begun: Time) -> Command<'_> {
        self.of(class).begun.borrow_mut().push(begun);
        Command {
            overdue: self,
            class,
            begun,
        }
    }

    /// Whether a command is overdue, for one of these.
    pub(super) fn is_any(&self, newcomer: Newcomer, now: Time) -> bool {
        let of_log = match newcomer {
            Newcomer::Read => PATIENCE,
            Newcomer::Write => LOG_PATIENCE,
        };
        self.log.is_older(of_log, now) || self.others.is_older(PATIENCE, now)
    }

    /// The turns of work in the background.
    pub(super) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Who has gone leaves no trace, however long a command takes.
    fn wait(&self, next: oneshot::Sender<()>) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() == waiting.capacity() {
            waiting.retain(|waiting| !waiting.is_canceled());
        }
        waiting.push(next);
    }

    /// Ends when a command may begin; how long it made way.
    pub(super) async fn make_way(
        &self,
        newcomer: Newcomer,
        now: impl Fn() -> Time,
        sleep: impl AsyncFn(Duration),
    ) -> Duration {
        let came = now();
        while self.is_any(newcomer, now()) {
            let left = WAY_MAX.saturating_sub(now().since(came));
            if left.is_zero() {
                break;
            }
            let (next, turn) = oneshot::channel();
            self.wait(next);
            select(turn, pin!(sleep(left))).await;
        }
        now().since(came)
    }
}

impl HostCommands for Overdue {
    fn is_idle(&self) -> bool {
        self.log.begun.borrow().is_empty() && self.others.begun.borrow().is_empty()
    }

    fn is_any_older(&self, patience: Duration, now: Time) -> bool {
        self.log.is_older(patience, now) || self.others.is_older(patience, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::cell::Cell;
    use std::pin::Pin;

    const OLD: Time = Time(LOG_PATIENCE.as_nanos() as u64 + 1);

    /// A write that makes way for as long as it has to: its sleep never ends.
    fn make_way<'a>(
        overdue: &'a Overdue,
        clock: &'a Cell<Time>,
    ) -> Pin<Box<impl Future<Output = Duration> + 'a>> {
        let sleep = async |_| std::future::pending().await;
        Box::pin(overdue.make_way(Newcomer::Write, || clock.get(), sleep))
    }

    #[test]
    fn a_write_makes_way_for_an_old_one_of_the_log_and_for_no_young_one() {
        let (overdue, clock) = (Overdue::default(), Cell::new(Time(0)));
        let first = overdue.begin(Class::Log, clock.get());
        let at_once = make_way(&overdue, &clock).now_or_never();
        assert_eq!(at_once, Some(Duration::ZERO));
        clock.set(OLD);
        let second = overdue.begin(Class::Log, clock.get());
        let mut waits = make_way(&overdue, &clock);
        assert_eq!(waits.as_mut().now_or_never(), None);
        // The younger one changes nothing.
        drop(second);
        assert_eq!(waits.as_mut().now_or_never(), None);
        clock.set(OLD + LOG_PATIENCE);
        drop(first);
        assert_eq!(waits.now_or_never(), Some(LOG_PATIENCE));
        let at_once = make_way(&overdue, &clock).now_or_never();
        assert_eq!(at_once, Some(Duration::ZERO));
    }

    #[test]
    fn all_who_wait_begin_when_the_log_has_ended() {
        let (overdue, clock) = (Overdue::default(), Cell::new(Time(0)));
        let log = overdue.begin(Class::Log, clock.get());
        clock.set(OLD);
        let mut all: Vec<_> = (0..3).map(|_| make_way(&overdue, &clock)).collect();
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
        let (overdue, clock) = (Overdue::default(), Cell::new(Time(0)));
        let (one, other) = (
            overdue.begin(Class::Log, clock.get()),
            overdue.begin(Class::Log, clock.get()),
        );
        clock.set(OLD);
        drop(one);
        assert_eq!(make_way(&overdue, &clock).now_or_never(), None);
        drop(other);
        assert!(make_way(&overdue, &clock).now_or_never().is_some());
    }

    #[test]
    fn nobody_makes_way_for_ever() {
        let (overdue, clock) = (Overdue::default(), Cell::new(Time(0)));
        let _log = overdue.begin(Class::Log, clock.get());
        clock.set(OLD);
        let sleep = async |left| clock.set(clock.get() + left);
        let made = overdue.make_way(Newcomer::Write, || clock.get(), sleep);
        assert_eq!(made.now_or_never(), Some(WAY_MAX));
    }

    #[test]
    fn reads_and_writes_are_overdue_later_than_the_log() {
        let (overdue, clock) = (Overdue::default(), Cell::new(Time(0)));
        let oldest = overdue.begin(Class::Other, clock.get());
        clock.set(OLD);
        let younger = overdue.begin(Class::Other, clock.get());
        assert!(make_way(&overdue, &clock).now_or_never().is_some());
        clock.set(Time(0) + PATIENCE + Duration::from_nanos(1));
        let mut waits = make_way(&overdue, &clock);
        assert_eq!(waits.as_mut().now_or_never(), None);
        drop(younger);
        assert_eq!(waits.as_mut().now_or_never(), None);
        drop(oldest);
        assert_eq!(waits.now_or_never(), Some(Duration::ZERO));
    }

    #[test]
    fn a_read_makes_way_for_old_commands_of_any_class() {
        for class in [Class::Log, Class::Other] {
            let (overdue, clock) = (Overdue::default(), Cell::new(Time(0)));
            let oldest = overdue.begin(class, clock.get());
            let sleep = async |_| std::future::pending().await;
            let read = || overdue.make_way(Newcomer::Read, || clock.get(), sleep);
            clock.set(OLD);
            assert_eq!(read().now_or_never(), Some(Duration::ZERO), "{class:?}");
            clock.set(Time(0) + PATIENCE + Duration::from_nanos(1));
            let mut waits = pin!(read());
            assert_eq!(waits.as_mut().now_or_never(), None, "{class:?}");
            drop(oldest);
            assert!(waits.now_or_never().is_some(), "{class:?}");
        }
    }

    #[test]
    fn work_in_the_background_takes_its_turn_when_the_last_command_has_ended() {
        let (overdue, clock) = (Overdue::default(), Cell::new(Time(0)));
        let log = overdue.begin(Class::Log, clock.get());
        let other = overdue.begin(Class::Other, clock.get());
        clock.set(OLD);
        let sleep = async |_| std::future::pending().await;
        let turn = overdue
            .turns()
            .turn((1, Duration::ZERO), &overdue, || clock.get(), sleep);
        let mut turn = pin!(turn);
        assert!(turn.as_mut().now_or_never().is_none());
        drop(log);
        assert!(turn.as_mut().now_or_never().is_none());
        drop(other);
        assert!(turn.now_or_never().is_some());
    }
}
