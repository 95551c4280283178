//! Group commit: many callers, one flush at a time, and no flush in vain.
//!
//! Invariant: [`GroupCommit::run`] returns the outcome of an action that *began
//! after* the call. A caller that finds an action under way waits for the next
//! one, which then serves everybody who came meanwhile.
//!
//! Callers run to their end (the engine's rule for operations): one that is
//! dropped while it leads would leave the others waiting.

use futures_channel::oneshot;
use std::cell::{Cell, RefCell};

#[derive(Debug)]
enum Turn<T> {
    /// Somebody's action covered the call.
    Done(T),
    /// The caller leads the next action.
    Lead,
}

/// Callers of one action that can serve many.
#[derive(Debug)]
pub struct GroupCommit<T> {
    busy: Cell<bool>,
    waiting: RefCell<Vec<oneshot::Sender<Turn<T>>>>,
}

impl<T> Default for GroupCommit<T> {
    fn default() -> Self {
        GroupCommit {
            busy: Cell::new(false),
            waiting: RefCell::new(Vec::new()),
        }
    }
}

impl<T: Clone> GroupCommit<T> {
    /// Runs `action`, or waits for another caller's that begins after now.
    pub async fn run(&self, action: impl AsyncFnOnce() -> T) -> T {
        if self.busy.replace(true) {
            let (turn, arrives) = oneshot::channel();
            self.waiting.borrow_mut().push(turn);
            match arrives.await {
                Ok(Turn::Done(outcome)) => return outcome,
                Ok(Turn::Lead) => {}
                Err(oneshot::Canceled) => unreachable!("a leader was dropped before its end"),
            }
        }
        let riders = self.waiting.take();
        let outcome = action().await;
        for rider in riders {
            // A rider that is gone needs no answer.
            let _ = rider.send(Turn::Done(outcome.clone()));
        }
        self.pass_the_lead();
        outcome
    }

    /// Whether an action is under way.
    pub fn is_busy(&self) -> bool {
        self.busy.get()
    }

    fn pass_the_lead(&self) {
        let mut waiting = self.waiting.borrow_mut();
        while !waiting.is_empty() {
            if waiting.remove(0).send(Turn::Lead).is_ok() {
                return;
            }
        }
        self.busy.set(false);
    }
}
