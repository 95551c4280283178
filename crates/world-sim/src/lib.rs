//! The simulated world: virtual time, seeded order, drives that are nasty or
//! modelled.
//!
//! Invariants:
//! - Nothing here depends on the host: not on its clock, its load, its addresses
//!   or its hash order. One seed gives one run, poll by poll, and the
//!   [`SimWorld::trace_hash`] of two runs of a seed is the same.
//! - Virtual time passes only when nothing is ready to run.
//! - A run may be stopped before any poll. That is how a power cut comes at any
//!   await point: see [`SimWorld::run`], [`SimWorld::power_cut`].

mod adversarial;
mod blocks;
mod drive;
mod executor;
mod faults;
mod media;
mod modelled;
mod timer;
mod trace;

pub use blocks::Blocks;
pub use drive::SimDrive;
pub use executor::{Deadlock, Outcome};
pub use faults::Faults;
pub use media::{Media, MediaSpec, Snapshot};
pub use modelled::ModelledMedia;
pub use timer::{Alarm, Sleep};

use base::{BufPool, Prng, Time};
use engine::World;
use engine::world::Host;
use executor::Executor;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// In which order tasks that are ready at the same time are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The order in which they became ready. Fast.
    Fifo,
    /// Any order, drawn from the seed. Finds what relies on an order by chance.
    Shuffled,
}

/// The simulated world. Clones are handles on the same one.
///
/// It ends with [`SimWorld::power_off`]; its tasks hold handles on it, so one
/// that is only dropped leaks.
#[derive(Clone)]
pub struct SimWorld {
    executor: Rc<Executor>,
    seed: Rc<Prng>,
    buffers: BufPool,
    rare: Rc<Rare>,
    host: Rc<Host>,
}

/// Rare paths that were taken, and the bug that is planted.
#[derive(Debug, Default)]
struct Rare {
    reached: RefCell<BTreeMap<&'static str, u64>>,
    planted: RefCell<Option<String>>,
    cut: RefCell<Option<CutAt>>,
}

/// When a run ends that ends soon after a rare path was taken.
#[derive(Debug)]
struct CutAt {
    marks: &'static [&'static str],
    /// How often one of them is to be passed before.
    passes: u64,
    polls: u64,
}

impl SimWorld {
    /// A world that starts at `start`, with `seed` as the root of all its
    /// randomness.
    pub fn new(seed: Prng, order: Order, buffers: BufPool, start: Time) -> Self {
        let shuffle = (order == Order::Shuffled).then(|| seed.stream("order of ready tasks"));
        SimWorld {
            executor: Rc::new(Executor::new(shuffle, start)),
            seed: Rc::new(seed),
            buffers,
            rare: Rc::default(),
            host: Rc::default(),
        }
    }

    /// This world as another host sees it: the same time, and randomness of its own.
    pub fn on_host(&self, host: Host) -> SimWorld {
        SimWorld {
            seed: Rc::new(self.seed.stream(&format!("host {host}"))),
            host: Rc::new(host),
            ..self.clone()
        }
    }

    /// Runs `root`, and everything spawned, until `root` ends or `polls_max`
    /// polls were made. In the second case `root` is dropped where it waits.
    ///
    /// # Errors
    /// [`Deadlock`] when `root` still waits, nothing is ready and no timer is set:
    /// it could never end.
    pub fn run<T>(
        &self,
        polls_max: u64,
        root: impl Future<Output = T>,
    ) -> Result<Outcome<T>, Deadlock> {
        self.executor.run(polls_max, root)
    }

    /// Drops every task at the await point where it waits. Nothing runs in this
    /// world any more. The drives keep their power: see [`SimWorld::power_cut`].
    pub fn power_off(&self) {
        self.executor.power_off();
    }

    /// Cuts the power of `media` and of this world. A new world over the same
    /// media finds what a power cut may leave there.
    pub fn power_cut<'a>(&self, media: impl IntoIterator<Item = &'a Rc<Media>>) {
        // The drives first: the tasks that go away with the world must not end
        // their writes in going.
        for media in media {
            media.power_cut();
        }
        self.power_off();
    }

    /// A hash over all that has happened so far: every poll, every drive
    /// operation and its end, each with its time.
    pub fn trace_hash(&self) -> u64 {
        self.executor.trace.hash()
    }

    /// Ends the run before the next poll, as polls that ran out would.
    pub fn cut(&self) {
        self.executor.cut_after(0);
    }

    /// Ends the run so many polls after one of the rare paths `marks` was taken, not
    /// counting the first `passes` times.
    pub fn cut_at_mark(&self, marks: &'static [&'static str], passes: u64, polls: u64) {
        self.rare.cut.replace(Some(CutAt {
            marks,
            passes,
            polls,
        }));
    }

    /// Whether the run ended so, or by [`SimWorld::cut`].
    pub fn was_cut(&self) -> bool {
        self.executor.is_cut()
    }

    /// The process stands still for `length`, from the next poll on: drives work on, and
    /// all that comes to an end meanwhile is seen at once after it.
    pub fn pause(&self, length: Duration) {
        self.note(|| format!("nothing is polled for {length:?}"));
        self.executor.pause(length);
    }

    /// Time that has passed in pauses.
    pub fn paused(&self) -> Duration {
        self.executor.paused()
    }

    /// Ends after so many more polls, of all tasks together. One waits for this at a time.
    pub fn after_polls(&self, polls: u64) -> impl Future<Output = ()> + 'static {
        let (executor, end) = (Rc::clone(&self.executor), self.polls() + polls);
        std::future::poll_fn(move |context| {
            if executor.polls() >= end {
                return Poll::Ready(());
            }
            executor.wake_at_polls(end, context.waker().clone());
            Poll::Pending
        })
    }

    /// Polls made so far.
    pub fn polls(&self) -> u64 {
        self.executor.polls()
    }

    /// Sends a line for people to the trace, when anyone listens. The line is
    /// made only then.
    pub fn note(&self, line: impl FnOnce() -> String) {
        self.executor.trace.note(self.executor.now(), line);
    }

    /// How often each rare path was taken.
    pub fn marks(&self) -> BTreeMap<&'static str, u64> {
        self.rare.reached.borrow().clone()
    }

    /// Plants a bug of [`engine::rare::BUGS`].
    pub fn plant(&self, bug: Option<&str>) {
        self.rare.planted.replace(bug.map(str::to_owned));
    }

    /// Feeds `value` to the trace hash.
    pub fn mark(&self, value: u64) {
        self.executor.trace.mark(value);
    }

    /// Calls `listener` with every line of the trace from now on.
    pub fn listen(&self, listener: impl Fn(Time, &str) + 'static) {
        self.executor.trace.listen(listener);
    }
}

impl World for SimWorld {
    type Drive = SimDrive;

    fn now(&self) -> Time {
        self.executor.now()
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.executor.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static {
        self.sleep_until(self.now() + duration)
    }

    fn prng(&self, name: &str) -> Prng {
        self.seed.stream(name)
    }

    fn buffers(&self) -> &BufPool {
        &self.buffers
    }

    fn host(&self) -> Host {
        Host::clone(&self.host)
    }

    fn reached(&self, mark: &'static str) {
        self.note(|| format!("reached: {mark}"));
        *self.rare.reached.borrow_mut().entry(mark).or_default() += 1;
        let mut cut = self.rare.cut.borrow_mut();
        if let Some(at) = cut.as_mut().filter(|at| at.marks.contains(&mark)) {
            match at.passes.checked_sub(1) {
                Some(left) => at.passes = left,
                None => self.executor.cut_after(at.polls),
            }
        }
    }

    fn planted(&self, bug: &'static str) -> bool {
        self.executor.step();
        self.rare.planted.borrow().as_deref() == Some(bug)
    }
}

impl SimWorld {
    /// Ends at `deadline`, or at once when that is past.
    pub fn sleep_until(&self, deadline: Time) -> Sleep {
        Sleep::new(Rc::clone(&self.executor), deadline)
    }

    /// Rings `alarm` at `deadline`, among those who sleep until then in the order of
    /// setting, without a task and a poll. One whose deadline is past rings at this
    /// instant, as soon as nothing is ready to run. It goes with the world: one that is
    /// off rings nothing.
    pub fn at(&self, deadline: Time, alarm: Rc<dyn Alarm>) {
        self.executor.at(deadline, alarm);
    }
}
