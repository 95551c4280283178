//! A drive's model at work in the simulated world: commands in, ends out.
//!
//! Invariants: every command ends once; the model is told of every one of its events at
//! its instant; a drive that is dead ends what it has with an error and takes nothing
//! more.

use super::model::{Busy, DriveModel};
use base::Time;
use engine::World;
use model::hdd::STROKE_PARTS;
use model::{Completed, Request};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use world_sim::Alarm;
use world_sim::SimWorld;

/// That a drive does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dead;

/// A command's place to be ended in.
#[derive(Default)]
struct Slot {
    end: Cell<Option<Result<(), Dead>>>,
    waker: RefCell<Option<Waker>>,
}

impl Slot {
    fn end(&self, outcome: Result<(), Dead>) {
        self.end.set(Some(outcome));
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// What commands took, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandCounts {
    /// Commands that came since the start of the run.
    pub arrived: u64,
    /// Commands that ended since the start, failed ones included.
    pub ended: u64,
    /// Time from their coming to their end, added up.
    pub response: Duration,
    /// Commands in the drive, added up over time: command-nanoseconds.
    pub outstanding_ns: u128,
    /// Bytes read and written.
    pub bytes: u64,
}

/// What a drive took of a device, which may be that of other drives as well.
pub(crate) struct Tally {
    taken: Cell<CommandCounts>,
    /// When `taken` was last brought up to date.
    counted: Cell<Time>,
}

impl Tally {
    /// Nothing yet.
    pub(crate) fn begun(now: Time) -> Rc<Tally> {
        Rc::new(Tally {
            taken: Cell::default(),
            counted: Cell::new(now),
        })
    }

    /// What commands took so far.
    pub(super) fn taken(&self, now: Time) -> CommandCounts {
        self.count(now, |_| ());
        self.taken.get()
    }

    fn count(&self, now: Time, change: impl FnOnce(&mut CommandCounts)) {
        let mut taken = self.taken.get();
        let inside = taken.arrived - taken.ended;
        taken.outstanding_ns += u128::from(inside) * (now - self.counted.get()).as_nanos();
        change(&mut taken);
        self.taken.set(taken);
        self.counted.set(now);
    }

    fn ended(&self, now: Time, came: Time) {
        self.count(now, |taken| {
            taken.ended += 1;
            taken.response += now - came;
        });
    }
}

/// A command in a device: where it ends, when it came, and whose it is.
struct Inside {
    slot: Rc<Slot>,
    came: Time,
    tally: Rc<Tally>,
}

/// A device at work.
pub(crate) struct Device {
    world: SimWorld,
    model: RefCell<DriveModel>,
    inside: RefCell<FxHashMap<u64, Inside>>,
    /// When the next alarm rings, if one is set.
    armed: Cell<Option<Time>>,
    dead: Cell<bool>,
    /// Commands that ended, of all tallies.
    served: Cell<u64>,
    ended: RefCell<Vec<Completed>>,
}

impl Device {
    pub(crate) fn new(world: SimWorld, model: DriveModel) -> Rc<Device> {
        Rc::new(Device {
            world,
            model: RefCell::new(model),
            inside: RefCell::default(),
            armed: Cell::new(None),
            dead: Cell::new(false),
            served: Cell::new(0),
            ended: RefCell::default(),
        })
    }

    /// Takes a command of the drive that `tally` is of; its end is to be waited for.
    pub(crate) fn submit(self: &Rc<Self>, request: Request, tally: &Rc<Tally>) -> End {
        let slot = Rc::new(Slot::default());
        if self.dead.get() {
            slot.end.set(Some(Err(Dead)));
            return End(slot);
        }
        let now = self.world.now();
        tally.count(now, |taken| {
            taken.arrived += 1;
            taken.bytes += request.len_bytes;
        });
        // What is over by now, and its alarm has not rung yet.
        self.catch_up(now);
        let ticket = self.model.borrow_mut().arrive(request, now);
        let inside = Inside {
            slot: Rc::clone(&slot),
            came: now,
            tally: Rc::clone(tally),
        };
        self.inside.borrow_mut().insert(ticket.0, inside);
        self.arm();
        End(slot)
    }

    /// It does not answer any more.
    pub(super) fn die(&self) {
        self.dead.set(true);
        let mut under_way: Vec<_> = self.inside.borrow_mut().drain().collect();
        under_way.sort_by_key(|(ticket, _)| *ticket);
        let now = self.world.now();
        for (_, Inside { slot, came, tally }) in under_way {
            self.served.set(self.served.get() + 1);
            tally.ended(now, came);
            slot.end(Err(Dead));
        }
    }

    /// What its mechanism did so far.
    pub(super) fn busy(&self) -> Busy {
        self.model.borrow().busy(self.served.get())
    }

    /// Commands so far by where they lie on the stroke; none of a drive without an arm.
    pub(super) fn by_stroke(&self) -> Option<[u64; STROKE_PARTS]> {
        self.model.borrow().by_stroke()
    }

    fn catch_up(&self, now: Time) {
        let mut ended = self.ended.take();
        self.model.borrow_mut().advance(now, &mut ended);
        for Completed { ticket, end } in ended.drain(..) {
            assert!(end <= now, "{ticket:?} ends at {end}, after {now}");
            // Those of a drive that died are ended already.
            let Some(of) = self.inside.borrow_mut().remove(&ticket.0) else {
                continue;
            };
            self.served.set(self.served.get() + 1);
            of.tally.ended(now, of.came);
            of.slot.end(Ok(()));
        }
        self.ended.replace(ended);
    }

    /// Sets an alarm for the model's next event, unless one rings earlier.
    fn arm(self: &Rc<Self>) {
        let Some(next) = self.model.borrow().next_event() else {
            return;
        };
        if self.armed.get().is_none_or(|armed| next < armed) {
            self.armed.set(Some(next));
            self.world.at(next, Rc::clone(self) as Rc<dyn Alarm>);
        }
    }
}

impl Alarm for Device {
    fn ring(self: Rc<Self>, now: Time) {
        if self.armed.get().is_some_and(|armed| armed <= now) {
            self.armed.set(None);
        }
        if self.dead.get() {
            return;
        }
        self.catch_up(now);
        self.arm();
    }
}

/// Ends when a command has ended.
pub(crate) struct End(Rc<Slot>);

impl Future for End {
    type Output = Result<(), Dead>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(outcome) = self.0.end.get() {
            return Poll::Ready(outcome);
        }
        let mut waker = self.0.waker.borrow_mut();
        if !waker
            .as_ref()
            .is_some_and(|set| set.will_wake(context.waker()))
        {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}
