//! The vitals of a drive: its operations, their errors and their latencies.
//!
//! Invariants:
//! - An operation is in flight from its first poll to its end, or until it is dropped.
//! - A drive that was given up answers nothing any more, and what is in flight on it
//!   ends at once, for its callers: nobody waits for a drive that hangs.
//! - A drive is busy while an operation is in flight, or while it is late.
//! - A drive is late from when a read takes too long until it answers a read. Of what is
//!   in flight then, only reads end whose callers have somebody else to ask.

use base::Time;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

/// Kinds of operations that are compared with each other only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads of any length.
    Read,
    /// Writes that need not be durable when they end.
    Write,
    /// Writes that are durable when they end.
    Durable,
    /// Flushes. A drive without a volatile cache answers them at once, also while its durable writes
    /// wait: and of these only drives with logs have many.
    Flush,
}

const KINDS: usize = 4;

impl Kind {
    /// All kinds, in the order of [`Window::ended`].
    pub const ALL: [Kind; KINDS] = [Kind::Read, Kind::Write, Kind::Durable, Kind::Flush];

    /// For people, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "reads",
            Kind::Write => "writes",
            Kind::Durable => "durable writes",
            Kind::Flush => "flushes",
        }
    }
}

/// When a read that is held back reaches its drive, until that is known.
pub const NOT_YET: Time = Time(u64::MAX);

/// A newer operation counts for one part in this many of a mean.
const MEAN_OF: u64 = 32;

/// Operations of a kind that ended in a window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedOperations {
    /// Operations that ended, slow or not.
    pub count: u64,
    /// Those that took longer than what counts as slow.
    pub slow: u64,
    /// What they took in all.
    pub took: Duration,
}

impl EndedOperations {
    /// The mean time of an operation; zero when none ended.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.took.as_nanos() as u64 / self.count.max(1))
    }
}

/// What came of a drive's operations in a window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Operations that ended, failed or not, by kind as in [`Kind::ALL`].
    pub ended: [EndedOperations; KINDS],
    /// Operations that failed, of any kind.
    pub errors: u64,
    /// Blocks that had to be put right.
    pub mends: u64,
    /// How long it was busy.
    pub busy: Duration,
    /// Operations of all kinds that it did.
    pub done: u64,
}

impl Window {
    /// How long the drive was busy for each operation that it did. A long queue makes operations take
    /// long, and this no longer.
    pub fn work(&self) -> Duration {
        Duration::from_nanos(self.busy.as_nanos() as u64 / self.done.max(1))
    }
}

/// Whether an operation is waited for when its drive is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as the drive is in use.
    Waits,
    /// No: somebody else can be asked.
    Leaves,
}

/// What came of an operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The drive has answered.
    Done(T),
    /// The drive is late, and is not waited for.
    Late,
    /// The drive was given up.
    GivenUp,
}

/// An operation that has begun and not ended.
#[derive(Debug)]
struct Waiting {
    begun: Time,
    kind: Kind,
    patience: Patience,
    /// It ends without an answer.
    left: bool,
    waker: Option<Waker>,
}

/// Operations that have begun and not ended.
#[derive(Debug, Default)]
struct Flights {
    /// None where the slot is free.
    slots: Vec<Option<Waiting>>,
    free: Vec<usize>,
}

/// The figures of a drive since its pool was opened.
#[derive(Debug, Default)]
pub struct Vitals {
    pub reads: Cell<u64>,
    pub writes: Cell<u64>,
    pub flushes: Cell<u64>,
    pub errors: Cell<u64>,
    pub mends: Cell<u64>,
    read_ns: Cell<u64>,
    write_ns: Cell<u64>,
    window: RefCell<Window>,
    /// What counts as slow in the window.
    slow: Cell<Duration>,
    /// While it is busy: since when that is not in the window yet.
    busy_since: Cell<Option<Time>>,
    flights: RefCell<Flights>,
    given_up: Cell<bool>,
    /// When it answered last.
    answered: Cell<Option<Time>>,
    /// While it is late: when the oldest read began that it has not answered.
    late: Cell<Option<Time>>,
}

/// An operation in flight.
struct Flight<'a> {
    vitals: &'a Vitals,
    slot: usize,
}

impl Flight<'_> {
    /// It reached the drive only then.
    fn reaches(&self, at: Time) {
        let mut flights = self.vitals.flights.borrow_mut();
        if let Some(waiting) = &mut flights.slots[self.slot] {
            waiting.begun = at;
        }
    }

    /// `waker` is told when the drive is given up, or the operation left. False when
    /// that is so.
    fn wait(&self, waker: &Waker) -> bool {
        let mut flights = self.vitals.flights.borrow_mut();
        let Some(waiting) = &mut flights.slots[self.slot] else {
            return true;
        };
        match &mut waiting.waker {
            Some(known) => known.clone_from(waker),
            None => waiting.waker = Some(waker.clone()),
        }
        !waiting.left
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut flights = self.vitals.flights.borrow_mut();
        flights.slots[self.slot] = None;
        flights.free.push(self.slot);
    }
}

/// Adds one to a counter.
pub fn bump(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

impl Vitals {
    /// Operations that the drive has not answered yet.
    pub fn outstanding(&self) -> u32 {
        let flights = self.flights.borrow();
        (flights.slots.len() - flights.free.len()) as u32
    }

    /// When the oldest operation began that the drive has not answered. Of reads that
    /// nobody waits for any more that is known while it is late.
    pub fn oldest(&self) -> Option<Time> {
        let flights = self.flights.borrow();
        let begun = flights.slots.iter().flatten().map(|waiting| waiting.begun);
        begun.chain(self.late.get()).min()
    }

    /// When the oldest read in flight began.
    pub fn oldest_read(&self) -> Option<Time> {
        let flights = self.flights.borrow();
        let waiting = flights.slots.iter().flatten();
        let reads = waiting.filter(|waiting| waiting.kind == Kind::Read);
        reads.map(|waiting| waiting.begun).min()
    }

    /// Whether it has answered anything since then.
    pub fn has_answered_since(&self, then: Time) -> bool {
        self.answered.get().is_some_and(|answered| answered >= then)
    }

    /// Whether others are to be asked first, because it lets a read wait.
    pub fn is_late(&self) -> bool {
        self.late.get().is_some()
    }

    /// It is late: reads that began up to then should have ended. Those whose callers
    /// can ask somebody else end now, and those that are held back.
    pub fn leave(&self, up_to: Time) {
        let since = self.oldest_read().into_iter().chain(self.late.get()).min();
        self.late.set(since);
        let wakers: Vec<Waker> = {
            let mut flights = self.flights.borrow_mut();
            let waiting = flights.slots.iter_mut().flatten();
            let leaves = |waiting: &&mut Waiting| {
                let is_old = waiting.begun <= up_to || waiting.begun == NOT_YET;
                waiting.patience == Patience::Leaves && is_old
            };
            let left = waiting.filter(leaves).filter_map(|waiting| {
                waiting.left = true;
                waiting.waker.take()
            });
            left.collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Mean latency of reads, of late.
    pub fn read_latency(&self) -> Duration {
        Duration::from_nanos(self.read_ns.get())
    }

    /// Mean latency of writes and flushes, of late.
    pub fn write_latency(&self) -> Duration {
        Duration::from_nanos(self.write_ns.get())
    }

    /// What came since the last call; operations longer than `slow` count as slow from
    /// now on.
    pub fn take_window(&self, now: Time, slow: Duration) -> Window {
        self.slow.set(slow);
        self.note_busy(now);
        self.window.take()
    }

    /// Puts the time that it was busy into the window.
    fn note_busy(&self, now: Time) {
        let is_busy = self.outstanding() > 0 || self.is_late();
        if let Some(since) = self.busy_since.replace(is_busy.then_some(now)) {
            self.window.borrow_mut().busy += now.since(since);
        }
    }

    /// A block of the drive was not what it should be.
    pub fn note_mend(&self) {
        bump(&self.mends);
        self.window.borrow_mut().mends += 1;
    }

    /// Whether nothing is asked of it any more.
    pub fn is_given_up(&self) -> bool {
        self.given_up.get()
    }

    /// Ends everything in flight, and everything to come, without an answer.
    pub fn give_up(&self) {
        self.given_up.set(true);
        self.late.set(None);
        let waiting: Vec<Waker> = {
            let mut flights = self.flights.borrow_mut();
            let slots = flights.slots.iter_mut().flatten();
            slots.filter_map(|waiting| waiting.waker.take()).collect()
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Runs `operation` and takes its time.
    pub fn run<T>(
        &self,
        kind: (Kind, Patience),
        now: impl Fn() -> Time,
        operation: impl Future<Output = T>,
        failed: impl FnOnce(&T) -> bool,
    ) -> impl Future<Output = Outcome<T>> {
        self.run_held(kind, (now, None), operation, failed)
    }

    /// As [`Vitals::run`], of an operation that may be held back: it says in `held` when it reached the
    /// drive. The time before that is not the drive's. A read says [`NOT_YET`] until then, and is not late.
    pub async fn run_held<T>(
        &self,
        (kind, patience): (Kind, Patience),
        (now, held): (impl Fn() -> Time, Option<&Cell<Option<Time>>>),
        operation: impl Future<Output = T>,
        failed: impl FnOnce(&T) -> bool,
    ) -> Outcome<T> {
        let begun = now();
        let flight = self.begin(begun, kind, patience);
        let mut operation = pin!(operation);
        let outcome = poll_fn(|context| {
            if self.given_up.get() {
                return Poll::Ready(Outcome::GivenUp);
            }
            let polled = operation.as_mut().poll(context);
            if kind == Kind::Read
                && let Some(reached) = held.and_then(Cell::get)
            {
                flight.reaches(reached);
            }
            match polled {
                Poll::Ready(done) => Poll::Ready(Outcome::Done(done)),
                Poll::Pending if flight.wait(context.waker()) => Poll::Pending,
                Poll::Pending => Poll::Ready(Outcome::Late),
            }
        })
        .await;
        drop(flight);
        let reached = held.and_then(Cell::get).unwrap_or(begun);
        self.note_outcome(kind, &outcome, (reached, now()), failed);
        outcome
    }

    /// An operation that reached the drive at `reached` has ended now.
    fn note_outcome<T>(
        &self,
        kind: Kind,
        outcome: &Outcome<T>,
        (reached, now): (Time, Time),
        failed: impl FnOnce(&T) -> bool,
    ) {
        let has_failed = match outcome {
            Outcome::Done(done) => failed(done),
            Outcome::Late => false,
            Outcome::GivenUp => true,
        };
        let has_answered = matches!(outcome, Outcome::Done(_));
        if kind == Kind::Read && has_answered {
            self.late.set(None);
        }
        self.note_busy(now);
        if has_answered {
            self.answered.set(Some(now));
            self.window.borrow_mut().done += u64::from(!has_failed);
        }
        self.end(kind, now.since(reached), has_failed);
    }

    fn begin(&self, begun: Time, kind: Kind, patience: Patience) -> Flight<'_> {
        let mut flights = self.flights.borrow_mut();
        let slot = match flights.free.pop() {
            Some(slot) => slot,
            None => {
                flights.slots.push(None);
                flights.slots.len() - 1
            }
        };
        flights.slots[slot] = Some(Waiting {
            begun,
            kind,
            patience,
            left: false,
            waker: None,
        });
        drop(flights);
        self.note_busy(begun);
        Flight { vitals: self, slot }
    }

    fn end(&self, kind: Kind, took: Duration, failed: bool) {
        let mut window = self.window.borrow_mut();
        if failed {
            bump(&self.errors);
            window.errors += 1;
        }
        let ended = &mut window.ended[kind as usize];
        ended.count += 1;
        ended.slow += u64::from(took > self.slow.get());
        ended.took += took;
        let mean = match kind {
            Kind::Read => &self.read_ns,
            Kind::Write | Kind::Durable | Kind::Flush => &self.write_ns,
        };
        let (old, new) = (mean.get(), took.as_nanos() as u64);
        mean.set(match old {
            0 => new,
            old => old - old / MEAN_OF + new / MEAN_OF,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_channel::oneshot;
    use futures_util::stream::FuturesUnordered;
    use futures_util::{FutureExt, StreamExt};

    const READ: (Kind, Patience) = (Kind::Read, Patience::Waits);

    #[test]
    fn what_is_in_flight_ends_when_the_drive_is_given_up() {
        let (vitals, clock) = (Vitals::default(), Cell::new(Time(5)));
        let (_never, wait) = oneshot::channel::<()>();
        let mut hung = Box::pin(vitals.run(READ, || clock.get(), wait, |_| false));
        assert!(hung.as_mut().now_or_never().is_none());
        assert_eq!((vitals.outstanding(), vitals.oldest()), (1, Some(Time(5))));
        vitals.give_up();
        assert_eq!(hung.now_or_never(), Some(Outcome::GivenUp));
        assert_eq!((vitals.outstanding(), vitals.oldest()), (0, None));
        assert_eq!(vitals.errors.get(), 1);
        let after = vitals.run(READ, || clock.get(), async {}, |()| false);
        assert_eq!(after.now_or_never(), Some(Outcome::GivenUp));
    }

    #[test]
    fn giving_up_wakes_who_waits() {
        let vitals = Vitals::default();
        let (_never, wait) = oneshot::channel::<()>();
        // Polls again only who was woken.
        let mut all = FuturesUnordered::new();
        let write = (Kind::Durable, Patience::Waits);
        all.push(vitals.run(write, || Time(0), wait, |_| false));
        assert!(all.next().now_or_never().is_none());
        vitals.give_up();
        let ended = all.next().now_or_never();
        assert_eq!(ended, Some(Some(Outcome::GivenUp)));
    }

    #[test]
    fn only_reads_end_early_that_have_somebody_else_to_ask() {
        let (vitals, clock) = (Vitals::default(), Cell::new(Time(10)));
        let now = || clock.get();
        let begin = |kind: (Kind, Patience)| {
            let (never, wait) = oneshot::channel::<()>();
            let mut run = Box::pin(vitals.run(kind, now, wait, |_| false));
            assert!(run.as_mut().now_or_never().is_none());
            (never, run)
        };
        let (answer, mut waits) = begin(READ);
        let (_write, mut write) = begin((Kind::Durable, Patience::Waits));
        clock.set(Time(20));
        let (_left, left) = begin((Kind::Read, Patience::Leaves));
        clock.set(Time(30));
        let (_young, mut young) = begin((Kind::Read, Patience::Leaves));
        assert_eq!(vitals.oldest_read(), Some(Time(10)));
        vitals.leave(Time(20));
        assert!(vitals.is_late());
        assert_eq!(left.now_or_never(), Some(Outcome::Late));
        for still in [&mut waits, &mut write, &mut young] {
            assert!(still.as_mut().now_or_never().is_none());
        }
        assert_eq!(vitals.errors.get(), 0);
        // It is late until it answers a read, also when nobody waits for any.
        vitals.leave(Time(30));
        assert_eq!(young.now_or_never(), Some(Outcome::Late));
        drop(write);
        assert_eq!(vitals.oldest(), Some(Time(10)));
        answer.send(()).unwrap();
        assert_eq!(waits.now_or_never(), Some(Outcome::Done(Ok(()))));
        assert_eq!((vitals.is_late(), vitals.oldest()), (false, None));
    }

    #[test]
    fn the_time_for_which_an_operation_was_held_back_is_not_the_drives() {
        let (vitals, clock) = (Vitals::default(), Cell::new(Time(0)));
        vitals.take_window(Time(0), Duration::from_nanos(50));
        let held = Cell::new(None);
        let operation = async {
            clock.set(Time(1000));
            held.set(Some(clock.get()));
            clock.set(Time(1030));
        };
        let write = (Kind::Write, Patience::Waits);
        let run = vitals.run_held(write, (|| clock.get(), Some(&held)), operation, |()| false);
        assert_eq!(run.now_or_never(), Some(Outcome::Done(())));
        let writes = vitals.take_window(clock.get(), Duration::ZERO).ended[Kind::Write as usize];
        assert_eq!((writes.count, writes.slow), (1, 0));
        assert_eq!(writes.mean(), Duration::from_nanos(30));
    }

    #[test]
    fn a_drive_is_busy_while_anything_is_in_flight() {
        let (vitals, clock) = (Vitals::default(), Cell::new(Time(0)));
        let begin = |at| {
            clock.set(Time(at));
            let (answer, wait) = oneshot::channel::<()>();
            let mut run = Box::pin(vitals.run(READ, || clock.get(), wait, |_| false));
            assert!(run.as_mut().now_or_never().is_none());
            (answer, run)
        };
        let ((one, first), (other, second)) = (begin(0), begin(50));
        for (at, answer, run) in [(100, one, first), (150, other, second)] {
            clock.set(Time(at));
            answer.send(()).unwrap();
            assert_eq!(run.now_or_never(), Some(Outcome::Done(Ok(()))));
        }
        let (answer, third) = begin(300);
        let window = vitals.take_window(Time(305), Duration::ZERO);
        assert_eq!(window.busy, Duration::from_nanos(155));
        clock.set(Time(310));
        answer.send(()).unwrap();
        assert_eq!(third.now_or_never(), Some(Outcome::Done(Ok(()))));
        let window = vitals.take_window(Time(400), Duration::ZERO);
        assert_eq!(window.work(), Duration::from_nanos(5));
    }

    #[test]
    fn a_read_that_was_held_back_is_as_old_as_its_time_at_the_drive() {
        let (vitals, clock) = (Vitals::default(), Cell::new(Time(0)));
        let held = Cell::new(None);
        let (_never, wait) = oneshot::channel::<()>();
        let run = vitals.run_held(READ, (|| clock.get(), Some(&held)), wait, |_| false);
        let mut run = Box::pin(run);
        assert!(run.as_mut().now_or_never().is_none());
        assert_eq!(vitals.oldest_read(), Some(Time(0)));
        for reached in [NOT_YET, Time(70)] {
            held.set(Some(reached));
            assert!(run.as_mut().now_or_never().is_none());
            assert_eq!(vitals.oldest_read(), Some(reached));
        }
    }

    #[test]
    fn a_window_has_what_ended_since_the_last() {
        let (vitals, clock) = (Vitals::default(), Cell::new(Time(0)));
        let slow = Duration::from_nanos(50);
        vitals.take_window(Time(0), slow);
        for took in [10, 100, 40] {
            let operation = async { clock.set(clock.get() + Duration::from_nanos(took)) };
            let run = vitals.run(READ, || clock.get(), operation, |()| took == 40);
            assert_eq!(run.now_or_never(), Some(Outcome::Done(())));
        }
        vitals.note_mend();
        let window = vitals.take_window(Time(0), slow);
        let reads = window.ended[Kind::Read as usize];
        assert_eq!((reads.count, reads.slow), (3, 1));
        assert_eq!(reads.mean(), Duration::from_nanos(50));
        assert_eq!((window.errors, window.mends), (1, 1));
        assert_eq!(vitals.take_window(Time(0), slow), Window::default());
        assert!(vitals.read_latency() >= Duration::from_nanos(10));
        assert_eq!(vitals.write_latency(), Duration::ZERO);
    }
}
