//! A queue depth: it admits a number of commands; the others wait in the order of their coming.
//!
//! Invariant: whoever leaves gives the place to the first that waits; nobody comes in
//! between.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// One that waits.
#[derive(Default)]
struct QueuedCommand {
    is_in: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// The door of a queue.
pub struct Gate {
    free: Cell<usize>,
    depth: usize,
    waiting: RefCell<VecDeque<Rc<QueuedCommand>>>,
}

impl Gate {
    /// A door that lets in `depth`.
    ///
    /// # Panics
    /// When it would let nobody in.
    pub fn new(depth: usize) -> Gate {
        assert!(depth > 0, "a queue of depth 0 lets nobody in");
        Gate {
            free: Cell::new(depth),
            depth,
            waiting: RefCell::default(),
        }
    }

    /// Comes in when there is a place.
    pub fn enter(&self) -> Enter<'_> {
        Enter {
            gate: self,
            waiting: None,
        }
    }

    /// Comes in when there is a place, which goes back with what this gives.
    pub async fn pass(&self) -> GatePass<'_> {
        self.enter().await;
        GatePass(self)
    }

    /// Gives a place back.
    ///
    /// # Panics
    /// When nobody is inside.
    pub fn leave(&self) {
        if let Some(next) = self.waiting.borrow_mut().pop_front() {
            next.is_in.set(true);
            if let Some(waker) = next.waker.borrow_mut().take() {
                waker.wake();
            }
            return;
        }
        assert!(self.free.get() < self.depth, "nobody was inside");
        self.free.set(self.free.get() + 1);
    }
}

/// A place inside, which goes back to the gate on drop.
pub struct GatePass<'a>(&'a Gate);

impl Drop for GatePass<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// On the way in. Once polled it has to be polled to its end, as all futures here.
pub struct Enter<'a> {
    gate: &'a Gate,
    waiting: Option<Rc<QueuedCommand>>,
}

impl Future for Enter<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(waiting) = &self.waiting {
            if waiting.is_in.get() {
                return Poll::Ready(());
            }
            waiting.waker.replace(Some(context.waker().clone()));
            return Poll::Pending;
        }
        if self.gate.free.get() > 0 {
            self.gate.free.set(self.gate.free.get() - 1);
            return Poll::Ready(());
        }
        let waiting = Rc::new(QueuedCommand::default());
        waiting.waker.replace(Some(context.waker().clone()));
        self.gate
            .waiting
            .borrow_mut()
            .push_back(Rc::clone(&waiting));
        self.waiting = Some(waiting);
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::world::RigWorld;
    use engine::World;
    use std::time::Duration;
    use world_sim::Outcome;

    #[test]
    fn so_many_are_inside_and_the_others_come_in_order() {
        let world = RigWorld::new(1);
        let gate = Rc::new(Gate::new(2));
        let seen = Rc::new(RefCell::new(Vec::new()));
        for number in 0..5 {
            let (world, gate, seen) = (world.clone(), Rc::clone(&gate), Rc::clone(&seen));
            world.clone().spawn(async move {
                gate.enter().await;
                seen.borrow_mut().push((world.now().0, number));
                world.sleep(Duration::from_nanos(10)).await;
                gate.leave();
            });
        }
        let end = world.sleep(Duration::from_nanos(1000));
        assert_eq!(world.run(u64::MAX, end), Ok(Outcome::Done(())));
        let expected = [(0, 0), (0, 1), (10, 2), (10, 3), (20, 4)];
        assert_eq!(*seen.borrow(), expected);
        assert_eq!(gate.free.get(), 2);
        world.power_off();
    }
}
