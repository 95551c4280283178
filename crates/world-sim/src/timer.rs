//! Timers, ordered by (time, sequence of setting): of tasks that sleep, and alarms.

use super::executor::Executor;
use super::trace::Trace;
use base::Time;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Something that is told of an instant without being a task: the model of a drive or
/// of a link, of which one operation ends and the next one begins.
pub trait Alarm {
    /// It is `now`, as asked for by [`super::SimWorld::at`]. May wake, spawn and set
    /// alarms; one that it sets for `now` rings before time goes on.
    fn ring(self: Rc<Self>, now: Time);
}

/// Who is told of an instant.
enum Whom {
    Sleeper(Waker),
    Alarm(Rc<dyn Alarm>),
}

struct Timer {
    at: Time,
    sequence: u64,
    whom: Whom,
}

impl Ord for Timer {
    /// The earliest is the greatest, so that the heap gives it first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timer {}

#[derive(Default)]
pub(super) struct Timers {
    heap: RefCell<BinaryHeap<Timer>>,
    sequence: Cell<u64>,
}

impl Timers {
    fn set(&self, at: Time, whom: Whom) {
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        let mut heap = self.heap.borrow_mut();
        heap.push(Timer { at, sequence, whom });
    }

    pub(super) fn set_alarm(&self, at: Time, alarm: Rc<dyn Alarm>) {
        self.set(at, Whom::Alarm(alarm));
    }

    /// The first instant at which anybody waits.
    pub(super) fn next(&self) -> Option<Time> {
        self.heap.borrow().peek().map(|timer| timer.at)
    }

    /// Tells all that wait for `at`, in the order in which they were set.
    pub(super) fn fire(&self, at: Time, trace: &Trace) {
        while let Some(timer) = self.pop_at(at) {
            match timer.whom {
                Whom::Sleeper(waker) => waker.wake(),
                Whom::Alarm(alarm) => {
                    trace.mark(timer.sequence << 32 ^ at.as_nanos());
                    alarm.ring(at);
                }
            }
        }
    }

    fn pop_at(&self, at: Time) -> Option<Timer> {
        let mut heap = self.heap.borrow_mut();
        match heap.peek()?.at > at {
            true => None,
            false => heap.pop(),
        }
    }

    pub(super) fn clear(&self) {
        let timers = std::mem::take(&mut *self.heap.borrow_mut());
        drop(timers);
    }
}

/// Ends at a point of virtual time.
///
/// Dropped early it leaves its timer behind, which wakes nobody or once too
/// often; wakers allow both.
pub struct Sleep {
    executor: Rc<Executor>,
    deadline: Time,
    /// What the waker points to that the timer has. The timer keeps that alive, so
    /// nobody else's comes to lie there.
    set_for: Option<*const ()>,
}

impl Sleep {
    pub(super) fn new(executor: Rc<Executor>, deadline: Time) -> Self {
        Sleep {
            executor,
            deadline,
            set_for: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.executor.now() >= self.deadline {
            return Poll::Ready(());
        }
        let waker = context.waker();
        if self.set_for != Some(waker.data()) {
            let sleeper = Whom::Sleeper(waker.clone());
            self.executor.timers.set(self.deadline, sleeper);
            self.set_for = Some(waker.data());
        }
        Poll::Pending
    }
}
