//! The future of an operation on a shard's ring.

use super::SharedRing;
use super::queue::{KernelBuffers, State};
use crate::errno;
use std::future::Future;
use std::io;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// An operation under way. Dropping it leaves the operation to itself: it may be
/// done or not.
#[must_use = "the result tells whether it was done"]
pub(crate) struct Operation {
    pub(super) shared: Rc<SharedRing>,
    /// None when the result has been taken.
    pub(super) key: Option<usize>,
}

impl Future for Operation {
    /// What the kernel said (a count of bytes), and what it had been lent.
    type Output = (io::Result<usize>, KernelBuffers);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(key) = self.key else {
            panic!("polled after its end")
        };
        let mut queue = self.shared.queue.borrow_mut();
        let slot = &mut queue.slots[key];
        if let State::Waiting(known) = &mut slot.state {
            let outdated = match known {
                Some(waker) if waker.will_wake(cx.waker()) => None,
                _ => known.replace(cx.waker().clone()),
            };
            drop(queue);
            drop(outdated); // May drop a task, and with it another operation.
            return Poll::Pending;
        }
        let slot = queue.slots.remove(key);
        drop(queue);
        self.key = None;
        let State::Done(result) = slot.state else {
            panic!("operation {key} was abandoned")
        };
        Poll::Ready((errno::count(result), slot.held))
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let mut queue = self.shared.queue.borrow_mut();
        // What is dropped here may be the last of a task, and with it another
        // operation: let go of the queue first.
        if matches!(queue.slots[key].state, State::Done(_)) {
            let slot = queue.slots.remove(key);
            drop(queue);
            drop(slot);
        } else {
            let state = mem::replace(&mut queue.slots[key].state, State::Abandoned);
            drop(queue);
            drop(state);
        }
    }
}
