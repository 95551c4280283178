//! Timers, ordered by (time, sequence of setting).

use super::executor::Executor;
use base::Time;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

struct Timer {
    at: Time,
    sequence: u64,
    waker: Waker,
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
    fn set(&self, at: Time, waker: Waker) {
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        self.heap.borrow_mut().push(Timer {
            at,
            sequence,
            waker,
        });
    }

    /// Wakes the waiters of the first instant at which any wait; says when.
    pub(super) fn fire_next(&self) -> Option<Time> {
        let at = self.heap.borrow().peek()?.at;
        while let Some(waker) = self.pop_at(at) {
            waker.wake();
        }
        Some(at)
    }

    fn pop_at(&self, at: Time) -> Option<Waker> {
        let mut heap = self.heap.borrow_mut();
        if heap.peek()?.at > at {
            return None;
        }
        heap.pop().map(|timer| timer.waker)
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
    set_for: Option<Waker>,
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
        if !self
            .set_for
            .as_ref()
            .is_some_and(|set| set.will_wake(waker))
        {
            self.executor.timers.set(self.deadline, waker.clone());
            self.set_for = Some(waker.clone());
        }
        Poll::Pending
    }
}
