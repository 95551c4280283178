//! The virtual-time executor: one thread, no host clock.
//!
//! Invariants:
//! - A task is in the ready queue at most once.
//! - While anything is ready, time stands still. When nothing is, time jumps to
//!   the first timer; timers of one instant fire in the order of their setting.
//! - No cell is borrowed while a task is polled or dropped, or an alarm rings: all may
//!   spawn, wake and set timers.

use super::timer::{Alarm, Timers};
use super::trace::Trace;
use base::{Prng, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The slot that stands for the root future in the ready queue.
const ROOT: u32 = u32::MAX;

/// What a task may ask the world in one poll: far more than any operation needs.
const STEPS_MAX: u64 = 5_000_000;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The root future ended with this.
    Done(T),
    /// The polls ran out; the root future was dropped where it waited.
    Cut,
}

/// The root future waits, nothing is ready and no timer is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When everything stood still.
    pub at: Time,
    /// Tasks that wait, without the root.
    pub tasks: usize,
}

impl std::fmt::Display for Deadlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "deadlock at {}: nothing is ready, no timer is set, {} tasks wait",
            self.at, self.tasks
        )
    }
}

impl std::error::Error for Deadlock {}

/// Which task a waker wakes. The generation tells a finished task from the next
/// one in its slot.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TaskId {
    slot: u32,
    generation: u32,
}

/// Tasks to poll. Behind a lock because wakers must be `Send`; one thread uses
/// it, so the lock is always free.
#[derive(Default)]
struct Ready(Mutex<VecDeque<TaskId>>);

impl Ready {
    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<TaskId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct TaskWaker {
    id: TaskId,
    queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.ready.queue().push_back(self.id);
        }
    }
}

#[derive(Default)]
struct Slot {
    generation: u32,
    /// `None` while it is polled and when the slot is free.
    task: Option<Task>,
    waker: Option<(Arc<TaskWaker>, Waker)>,
}

pub(super) struct Executor {
    now: Cell<Time>,
    polls: Cell<u64>,
    /// What the task that is being polled has asked the world since.
    steps: Cell<u64>,
    off: Cell<bool>,
    /// The run ends when so many polls were made.
    cut_at: Cell<u64>,
    /// Time that is to pass before the next poll, and all that has passed so.
    pause: Cell<Duration>,
    paused: Cell<Duration>,
    /// Who is told at which number of polls.
    at_polls: RefCell<Option<(u64, Waker)>>,
    slots: RefCell<Vec<Slot>>,
    free: RefCell<Vec<u32>>,
    ready: Arc<Ready>,
    shuffle: Option<RefCell<Prng>>,
    pub(super) timers: Timers,
    pub(super) trace: Trace,
}

impl Executor {
    pub(super) fn new(shuffle: Option<Prng>, start: Time) -> Self {
        Executor {
            now: Cell::new(start),
            polls: Cell::new(0),
            steps: Cell::new(0),
            off: Cell::new(false),
            cut_at: Cell::new(u64::MAX),
            pause: Cell::default(),
            paused: Cell::default(),
            at_polls: RefCell::default(),
            slots: RefCell::default(),
            free: RefCell::default(),
            ready: Arc::default(),
            shuffle: shuffle.map(RefCell::new),
            timers: Timers::default(),
            trace: Trace::new(),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.now.get()
    }

    pub(super) fn polls(&self) -> u64 {
        self.polls.get()
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        if self.off.get() {
            return;
        }
        let slot = self.free.borrow_mut().pop();
        let mut slots = self.slots.borrow_mut();
        let slot = slot.unwrap_or_else(|| {
            slots.push(Slot::default());
            slots.len() as u32 - 1
        });
        let place = &mut slots[slot as usize];
        let waker = self.waker(TaskId {
            slot,
            generation: place.generation,
        });
        waker.0.wake_by_ref();
        place.waker = Some(waker);
        place.task = Some(Box::pin(task));
    }

    fn waker(&self, id: TaskId) -> (Arc<TaskWaker>, Waker) {
        let ready = Arc::clone(&self.ready);
        let waker = Arc::new(TaskWaker {
            id,
            queued: AtomicBool::new(false),
            ready,
        });
        (Arc::clone(&waker), Waker::from(waker))
    }

    /// Rings `alarm` at `deadline`, or as soon as nothing is ready when that is past.
    pub(super) fn at(&self, deadline: Time, alarm: Rc<dyn Alarm>) {
        if !self.off.get() {
            self.timers.set_alarm(deadline.max(self.now()), alarm);
        }
    }

    pub(super) fn run<T>(
        &self,
        polls_max: u64,
        root: impl Future<Output = T>,
    ) -> Result<Outcome<T>, Deadlock> {
        assert!(!self.off.get(), "a world that is off runs nothing");
        let mut root = pin!(root);
        // Each run has a root of its own; wakers of an earlier one are deaf.
        let generation = self.polls.get() as u32;
        let (root_task, root_waker) = self.waker(TaskId {
            slot: ROOT,
            generation,
        });
        root_task.wake_by_ref();
        let polls_end = self.polls.get().saturating_add(polls_max);
        while self.polls.get() < polls_end.min(self.cut_at.get()) {
            self.pass_pause();
            let Some(id) = self.next_ready() else {
                self.advance()?;
                continue;
            };
            if id.slot != ROOT {
                self.poll_task(id);
            } else if id.generation == generation {
                self.count_poll(id);
                root_task.queued.store(false, Ordering::Relaxed);
                let mut context = Context::from_waker(&root_waker);
                if let Poll::Ready(value) = root.as_mut().poll(&mut context) {
                    return Ok(Outcome::Done(value));
                }
            }
        }
        Ok(Outcome::Cut)
    }

    /// Ends the run when so many more polls were made, as polls that ran out would.
    pub(super) fn cut_after(&self, polls: u64) {
        let at = self.polls.get().saturating_add(polls);
        self.cut_at.set(at.min(self.cut_at.get()));
    }

    /// Whether that has come.
    pub(super) fn is_cut(&self) -> bool {
        self.polls.get() >= self.cut_at.get()
    }

    /// Nothing is polled for `length`, beginning with the next poll.
    pub(super) fn pause(&self, length: Duration) {
        self.pause.set(self.pause.get() + length);
    }

    /// Time that passed while nothing was polled.
    pub(super) fn paused(&self) -> Duration {
        self.paused.get()
    }

    /// What was waited for until the end of a pause has come by then, all at once.
    fn pass_pause(&self) {
        let length = self.pause.take();
        if length.is_zero() {
            return;
        }
        self.paused.set(self.paused.get() + length);
        self.now.set(self.now() + length);
        self.timers.fire(self.now(), &self.trace);
    }

    /// Tells `waker` when `polls` were made; who asked before is forgotten.
    pub(super) fn wake_at_polls(&self, polls: u64, waker: Waker) {
        self.at_polls.replace(Some((polls, waker)));
    }

    /// A task asks the world something: one that does so without end and never waits would hold
    /// its shard for good.
    ///
    /// # Panics
    /// At more than [`STEPS_MAX`] in one poll.
    pub(super) fn step(&self) {
        let steps = self.steps.get() + 1;
        assert!(
            steps <= STEPS_MAX,
            "a task continues without waiting: it asked the world {steps} times in one poll"
        );
        self.steps.set(steps);
    }

    fn count_poll(&self, id: TaskId) {
        self.polls.set(self.polls.get() + 1);
        self.steps.set(0);
        let due = self.at_polls.borrow().as_ref().map(|(polls, _)| *polls);
        if due.is_some_and(|polls| polls <= self.polls.get())
            && let Some((_, waker)) = self.at_polls.take()
        {
            waker.wake();
        }
        self.trace
            .mark(u64::from(id.slot) << 32 ^ self.now.get().as_nanos());
    }

    fn next_ready(&self) -> Option<TaskId> {
        let mut queue = self.ready.queue();
        match &self.shuffle {
            Some(prng) if queue.len() > 1 => {
                let chosen = prng.borrow_mut().below(queue.len() as u64) as usize;
                queue.swap_remove_back(chosen)
            }
            _ => queue.pop_front(),
        }
    }

    /// Lets time pass to the first timer, and fires all timers of that instant.
    fn advance(&self) -> Result<(), Deadlock> {
        match self.timers.next() {
            Some(at) => {
                assert!(
                    at >= self.now.get(),
                    "time runs backwards from {} to {at}",
                    self.now()
                );
                self.now.set(at);
                self.timers.fire(at, &self.trace);
                Ok(())
            }
            None => Err(Deadlock {
                at: self.now.get(),
                tasks: self.waiting(),
            }),
        }
    }

    fn waiting(&self) -> usize {
        self.slots
            .borrow()
            .iter()
            .filter(|slot| slot.task.is_some())
            .count()
    }

    fn poll_task(&self, id: TaskId) {
        let (mut task, waker) = {
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[id.slot as usize];
            if slot.generation != id.generation {
                return;
            }
            let Some(task) = slot.task.take() else { return };
            let Some((queued, waker)) = slot.waker.take() else {
                return;
            };
            queued.queued.store(false, Ordering::Relaxed);
            (task, (queued, waker))
        };
        self.count_poll(id);
        let polled = task.as_mut().poll(&mut Context::from_waker(&waker.1));
        if polled.is_pending() {
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[id.slot as usize];
            slot.task = Some(task);
            slot.waker = Some(waker);
            return;
        }
        drop(task);
        self.slots.borrow_mut()[id.slot as usize].generation += 1;
        self.free.borrow_mut().push(id.slot);
    }

    pub(super) fn power_off(&self) {
        self.off.set(true);
        let slots = std::mem::take(&mut *self.slots.borrow_mut());
        drop(slots);
        self.timers.clear();
        self.ready.queue().clear();
    }
}

#[cfg(test)]
mod tests {
    use crate::{Alarm, Order, Outcome, SimWorld};
    use base::{BufPool, Prng, Time};
    use engine::World;
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    fn world(seed: u64, order: Order) -> SimWorld {
        SimWorld::new(Prng::from_seed(seed), order, BufPool::new(), Time(0))
    }

    /// The order in which ten tasks ran that were ready at once.
    fn order_of_ten(seed: u64, order: Order) -> (Vec<u32>, u64) {
        let world = world(seed, order);
        let seen = Rc::new(RefCell::new(Vec::new()));
        for task in 0..10 {
            let seen = Rc::clone(&seen);
            world.spawn(async move { seen.borrow_mut().push(task) });
        }
        let sleep = world.sleep(Duration::from_nanos(1));
        assert_eq!(world.run(u64::MAX, sleep).unwrap(), Outcome::Done(()));
        let order = seen.borrow().clone();
        (order, world.trace_hash())
    }

    #[test]
    #[should_panic(expected = "a task continues without waiting")]
    fn a_task_that_never_waits_ends_the_run() {
        let world = world(1, Order::Fifo);
        let here = world.clone();
        let endless = async move { while !here.planted("something") {} };
        // The assertion is in the run.
        let _ = world.run(u64::MAX, endless);
    }

    #[test]
    fn sleepers_wake_in_the_order_of_time_and_then_of_setting() {
        let world = world(1, Order::Fifo);
        let seen = Rc::new(RefCell::new(Vec::new()));
        for (name, nanos) in [("c", 30), ("a", 10), ("b", 10)] {
            let (here, seen) = (world.clone(), Rc::clone(&seen));
            world.spawn(async move {
                here.sleep(Duration::from_nanos(nanos)).await;
                seen.borrow_mut().push((name, here.now().as_nanos()));
            });
        }
        let sleep = world.sleep(Duration::from_secs(3600));
        assert_eq!(world.run(u64::MAX, sleep).unwrap(), Outcome::Done(()));
        assert_eq!(*seen.borrow(), [("a", 10), ("b", 10), ("c", 30)]);
        assert_eq!(world.now(), Time(3_600_000_000_000));
    }

    /// Notes when it rings; the first time it sets others.
    struct Bell {
        world: SimWorld,
        name: &'static str,
        then: RefCell<Vec<(u64, Rc<Bell>)>>,
        seen: Rc<RefCell<Vec<(&'static str, u64)>>>,
    }

    impl Alarm for Bell {
        fn ring(self: Rc<Self>, now: Time) {
            assert_eq!(now, self.world.now());
            self.seen.borrow_mut().push((self.name, now.as_nanos()));
            for (at, bell) in self.then.take() {
                self.world.at(Time(at), bell);
            }
        }
    }

    #[test]
    fn alarms_ring_in_the_order_of_time_and_setting_among_sleepers() {
        let world = world(6, Order::Fifo);
        let seen = Rc::new(RefCell::new(Vec::new()));
        let bell = |name, then| {
            let (world, seen) = (world.clone(), Rc::clone(&seen));
            let then = RefCell::new(then);
            Rc::new(Bell {
                world,
                name,
                then,
                seen,
            })
        };
        world.at(Time(20), bell("second", vec![]));
        // One for the same instant, one in the past, and one for later.
        let then = vec![
            (10, bell("at once", vec![])),
            (3, bell("past", vec![])),
            (15, bell("then", vec![])),
        ];
        world.at(Time(10), bell("first", then));
        let (here, noted) = (world.clone(), Rc::clone(&seen));
        let sleeper = async move {
            here.sleep(Duration::from_nanos(20)).await;
            noted.borrow_mut().push(("sleeper", here.now().as_nanos()));
            here.at(Time(20), bell("last", vec![]));
            here.sleep(Duration::from_nanos(1)).await;
        };
        assert_eq!(world.run(u64::MAX, sleeper).unwrap(), Outcome::Done(()));
        let expected = [
            ("first", 10),
            ("at once", 10),
            ("past", 10),
            ("then", 15),
            ("second", 20),
            ("sleeper", 20),
            ("last", 20),
        ];
        assert_eq!(*seen.borrow(), expected);
        world.power_off();
    }

    #[test]
    fn an_alarm_goes_with_its_world() {
        let world = world(7, Order::Fifo);
        let seen = Rc::default();
        let bell = Rc::new(Bell {
            world: world.clone(),
            name: "bell",
            then: RefCell::default(),
            seen,
        });
        world.at(Time(5), bell.clone());
        assert_eq!(Rc::strong_count(&bell), 2);
        world.power_off();
        world.at(Time(6), bell.clone());
        assert_eq!(Rc::strong_count(&bell), 1);
    }

    #[test]
    fn fifo_keeps_the_order_and_shuffled_draws_it_from_the_seed() {
        let in_order: Vec<u32> = (0..10).collect();
        assert_eq!(order_of_ten(1, Order::Fifo).0, in_order);
        let (first, first_hash) = order_of_ten(1, Order::Shuffled);
        assert_ne!(first, in_order);
        assert_eq!(
            order_of_ten(1, Order::Shuffled),
            (first.clone(), first_hash)
        );
        let (other, other_hash) = order_of_ten(2, Order::Shuffled);
        assert_ne!((other, other_hash), (first, first_hash));
    }

    #[test]
    fn after_a_pause_all_that_was_due_comes_at_once() {
        let world = world(8, Order::Fifo);
        let here = world.clone();
        let root = async move {
            let short = here.sleep(Duration::from_secs(1));
            let long = here.sleep(Duration::from_secs(100));
            let longer = here.sleep(Duration::from_secs(200));
            here.pause(Duration::from_secs(150));
            let mut woken = Vec::new();
            for sleep in [short, long, longer] {
                sleep.await;
                woken.push(here.now().as_nanos() / 1_000_000_000);
            }
            woken
        };
        let woken = world.run(u64::MAX, root).unwrap();
        assert_eq!(woken, Outcome::Done(vec![150, 150, 200]));
    }

    #[test]
    fn a_run_is_cut_before_any_poll() {
        let polls_of_all = |polls_max| {
            let world = world(3, Order::Fifo);
            let steps = Rc::new(RefCell::new(0));
            let (here, count) = (world.clone(), Rc::clone(&steps));
            let root = async move {
                for _ in 0..5 {
                    *count.borrow_mut() += 1;
                    here.sleep(Duration::from_micros(1)).await;
                }
            };
            let outcome = world.run(polls_max, root).unwrap();
            world.power_off();
            let steps = *steps.borrow();
            (outcome, steps)
        };
        assert_eq!(polls_of_all(0), (Outcome::Cut, 0));
        assert_eq!(polls_of_all(3), (Outcome::Cut, 3));
        assert_eq!(polls_of_all(6), (Outcome::Done(()), 5));
    }

    #[test]
    fn waiting_for_nothing_is_a_deadlock_with_a_count() {
        let world = world(4, Order::Shuffled);
        world.spawn(std::future::pending());
        let deadlock = world
            .run(u64::MAX, std::future::pending::<()>())
            .unwrap_err();
        assert_eq!(deadlock.tasks, 1);
    }

    #[test]
    fn power_off_drops_tasks_where_they_wait_and_breaks_the_circle() {
        struct Flag(Rc<RefCell<bool>>);
        impl Drop for Flag {
            fn drop(&mut self) {
                *self.0.borrow_mut() = true;
            }
        }
        let world = world(5, Order::Fifo);
        let dropped = Rc::new(RefCell::new(false));
        let (flag, here) = (Flag(Rc::clone(&dropped)), world.clone());
        world.spawn(async move {
            here.sleep(Duration::from_secs(9)).await;
            drop(flag);
        });
        let sleep = world.sleep(Duration::from_secs(1));
        assert_eq!(world.run(u64::MAX, sleep).unwrap(), Outcome::Done(()));
        assert!(!*dropped.borrow());
        world.power_off();
        assert!(*dropped.borrow());
    }
}
