//! On a disk, work in the background reads and writes in turns, behind the commands of hosts: [`Turns`].
//!
//! A rebuild's reads lie side by side, so of a disk's queue one of them is always the nearest. A host's
//! command in the same queue starves. So few bytes of the work are under way at a time, and none begin
//! while a command of hosts is older than the *patience*. The work halts then until the disk is idle. Each
//! halt costs the disk two long seeks, however many commands it serves: with more patience the work gets
//! more of the disk's time, and commands wait longer. The pace chooses the patience (`space/pace.rs`).
//!
//! Invariants:
//! - Turns are given in the order in which they were asked for.
//! - A halt lasts [`HALT_MAX`] at most, and the work runs for [`RUN_MIN`] or the patience after it,
//!   whatever commands are under way: a disk that is never idle doesn't stop it.
//! - A turn that is dropped, or is not waited for any more, lets the next begin.
//! - Commands of hosts are all reads and writes that others make way for (`overdue.rs`), so what goes in
//!   place from the log, too. They are those of one lane, as the turns are.

use base::Time;
use futures_channel::oneshot;
use futures_util::future::select;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

/// Bytes of the work that are under way at a time, at most: a disk transfers them in about 3 ms. A host's
/// command waits so long behind them. Twice as many made reads of hosts 7 to 22 % slower, and the rebuild
/// 4 % faster at most (example `rebuild` of `ashlar-rehearse`).
const FLIGHT_BYTES: u64 = 512 << 10;

/// How long the work halts at most: a disk serves a dozen commands in that time.
const HALT_MAX: Duration = Duration::from_millis(100);

/// How long it runs after such a halt, at least.
const RUN_MIN: Duration = Duration::from_millis(5);

/// Whether the work may go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Halt {
    #[default]
    No,
    /// Commands are served that were older than the patience.
    Since(Time),
    /// The halt was too long: whatever commands are under way, it runs.
    RunsUntil(Time),
}

/// What one who waits finds.
enum Look {
    /// It is its turn.
    Begins,
    /// Others come first, or have to end first.
    Waits,
    /// The work halts so long at most.
    Halts(Duration),
}

/// Commands of hosts that a disk has.
pub(super) trait HostCommands {
    /// Whether none is under way.
    fn is_idle(&self) -> bool;

    /// Whether one is older than this.
    fn is_any_older(&self, patience: Duration, now: Time) -> bool;
}

/// The turns of a disk.
#[derive(Default)]
pub(super) struct Turns {
    in_flight_bytes: Cell<u64>,
    halt: Cell<Halt>,
    /// Those who wait, by their tickets: in the order in which they came. Each is told to look again.
    waiting: RefCell<BTreeMap<u64, Option<oneshot::Sender<()>>>>,
    next_ticket: Cell<u64>,
}

/// A turn, until what it was for has ended.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    bytes: u64,
    /// Whether the work halted before it.
    pub halted: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let left = self.turns.in_flight_bytes.get() - self.bytes;
        self.turns.in_flight_bytes.set(left);
        self.turns.have_first_look();
    }
}

/// A place in the order of those who wait.
struct Place<'a> {
    turns: &'a Turns,
    ticket: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.turns.waiting.borrow_mut().remove(&self.ticket);
        self.turns.have_first_look();
    }
}

impl Place<'_> {
    fn is_first(&self) -> bool {
        let waiting = self.turns.waiting.borrow();
        waiting.keys().next() == Some(&self.ticket)
    }

    /// Ends when it is to look again.
    fn told(&self) -> oneshot::Receiver<()> {
        let (look, told) = oneshot::channel();
        let mut waiting = self.turns.waiting.borrow_mut();
        waiting.insert(self.ticket, Some(look));
        told
    }
}

impl Turns {
    /// The disk has served all commands of hosts.
    pub(super) fn resume(&self) {
        self.halt.set(Halt::No);
        self.have_first_look();
    }

    /// Only the first of those who wait looks, and the next once that has its turn.
    fn have_first_look(&self) {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(look) = waiting.values_mut().next().and_then(Option::take) {
            let _ = look.send(());
        }
    }

    /// Waits for a turn of so many bytes, behind commands that are older than this.
    pub(super) async fn turn(
        &self,
        (bytes, patience): (u64, Duration),
        commands: &impl HostCommands,
        now: impl Fn() -> Time,
        sleep: impl AsyncFn(Duration),
    ) -> Turn<'_> {
        let place = self.queue_up();
        let mut halted = false;
        loop {
            let look = match place.is_first() {
                true => self.look((bytes, patience), commands, now()),
                false => Look::Waits,
            };
            match look {
                Look::Begins => break,
                Look::Waits => drop(place.told().await),
                Look::Halts(left) => {
                    halted = true;
                    select(place.told(), pin!(sleep(left))).await;
                }
            }
        }
        let in_flight = self.in_flight_bytes.get() + bytes;
        self.in_flight_bytes.set(in_flight);
        drop(place);
        Turn {
            turns: self,
            bytes,
            halted,
        }
    }

    fn queue_up(&self) -> Place<'_> {
        let ticket = self.next_ticket.get();
        self.next_ticket.set(ticket + 1);
        self.waiting.borrow_mut().insert(ticket, None);
        Place {
            turns: self,
            ticket,
        }
    }

    /// What the first of those who wait is to do.
    fn look(
        &self,
        (bytes, patience): (u64, Duration),
        commands: &impl HostCommands,
        now: Time,
    ) -> Look {
        let in_flight = self.in_flight_bytes.get();
        if in_flight > 0 && in_flight + bytes > FLIGHT_BYTES {
            return Look::Waits;
        }
        let halt = match self.halt.get() {
            Halt::RunsUntil(until) if now < until => Halt::RunsUntil(until),
            Halt::Since(_) if commands.is_idle() => Halt::No,
            Halt::Since(since) if now.since(since) >= HALT_MAX => {
                Halt::RunsUntil(now + patience.max(RUN_MIN))
            }
            Halt::Since(since) => Halt::Since(since),
            Halt::No | Halt::RunsUntil(_) => match commands.is_any_older(patience, now) {
                true => Halt::Since(now),
                false => Halt::No,
            },
        };
        self.halt.set(halt);
        match halt {
            Halt::Since(since) => Look::Halts(HALT_MAX - now.since(since)),
            Halt::No | Halt::RunsUntil(_) => Look::Begins,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::pin::Pin;

    const PATIENCE: Duration = Duration::from_millis(10);
    const UNIT: u64 = 64 << 10;

    /// A disk, when its commands began, and a clock; nobody's sleep ends.
    struct Disk {
        turns: Turns,
        begun: RefCell<Vec<Time>>,
        now: Cell<Time>,
    }

    impl HostCommands for Disk {
        fn is_idle(&self) -> bool {
            self.begun.borrow().is_empty()
        }

        fn is_any_older(&self, patience: Duration, now: Time) -> bool {
            let begun = self.begun.borrow();
            begun.iter().any(|begun| now.since(*begun) > patience)
        }
    }

    impl Disk {
        fn new() -> Disk {
            Disk {
                turns: Turns::default(),
                begun: RefCell::default(),
                now: Cell::new(Time(0)),
            }
        }

        fn after(&self, time: Duration) {
            self.now.set(self.now.get() + time);
        }

        fn begin(&self) {
            self.begun.borrow_mut().push(self.now.get());
        }

        /// The oldest command ends.
        fn end(&self) {
            self.begun.borrow_mut().remove(0);
            if self.is_idle() {
                self.turns.resume();
            }
        }

        fn turn(&self, bytes: u64) -> Pin<Box<dyn Future<Output = Turn<'_>> + '_>> {
            let sleep = async |_| std::future::pending().await;
            let wanted = (bytes, PATIENCE);
            Box::pin(self.turns.turn(wanted, self, || self.now.get(), sleep))
        }
    }

    #[test]
    fn only_so_much_is_under_way_and_turns_come_in_order() {
        let disk = Disk::new();
        let first = disk.turn(FLIGHT_BYTES - UNIT).now_or_never().unwrap();
        let second = disk.turn(UNIT).now_or_never().unwrap();
        let (mut third, mut fourth) = (disk.turn(2 * UNIT), disk.turn(UNIT));
        assert!(third.as_mut().now_or_never().is_none());
        assert!(fourth.as_mut().now_or_never().is_none());
        drop(second);
        // There is room for the fourth; but the third came first.
        assert!(third.as_mut().now_or_never().is_none());
        assert!(fourth.as_mut().now_or_never().is_none());
        // It goes away, and lets the next look.
        drop(third);
        let fourth = fourth.now_or_never().unwrap();
        assert!(disk.turn(UNIT).now_or_never().is_none());
        drop((first, fourth));
        assert!(disk.turn(2 * FLIGHT_BYTES).now_or_never().is_some());
    }

    #[test]
    fn it_halts_for_an_old_command_until_the_disk_has_served_all() {
        let disk = Disk::new();
        disk.begin();
        disk.after(PATIENCE);
        assert!(disk.turn(UNIT).now_or_never().is_some(), "not yet overdue");
        disk.after(Duration::from_nanos(1));
        disk.begin();
        let mut turn = disk.turn(UNIT);
        assert!(turn.as_mut().now_or_never().is_none());
        disk.end();
        assert!(turn.as_mut().now_or_never().is_none(), "the young, too");
        disk.end();
        assert!(turn.now_or_never().is_some_and(|turn| turn.halted));
    }

    #[test]
    fn a_halt_has_an_end_and_the_work_runs_after_it() {
        let disk = Disk::new();
        disk.begin();
        disk.after(2 * PATIENCE);
        assert!(disk.turn(UNIT).now_or_never().is_none());
        disk.after(HALT_MAX);
        assert!(disk.turn(UNIT).now_or_never().is_some());
        disk.after(PATIENCE - Duration::from_nanos(1));
        assert!(disk.turn(UNIT).now_or_never().is_some(), "it runs");
        disk.after(Duration::from_nanos(1));
        assert!(disk.turn(UNIT).now_or_never().is_none(), "the next halt");
    }

    /// Its sleep ends at once: whoever looked again in a circle would never come back.
    #[test]
    fn one_who_waits_for_room_does_not_wait_for_the_end_of_an_old_halt() {
        let disk = Disk::new();
        let full = disk.turn(FLIGHT_BYTES).now_or_never().unwrap();
        disk.turns.halt.set(Halt::Since(Time(0)));
        disk.begin();
        disk.after(2 * HALT_MAX);
        let turn = disk.turns.turn(
            (UNIT, PATIENCE),
            &disk,
            || disk.now.get(),
            async |_: Duration| {},
        );
        let mut turn = pin!(turn);
        assert!(turn.as_mut().now_or_never().is_none());
        drop(full);
        assert!(turn.now_or_never().is_some());
    }
}
