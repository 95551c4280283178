//! A door that several parties can hold shut: operations wait until the last party lets go.
//!
//! Invariant: those that wait go on in the order of their coming.

use engine::World;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use world_sim::SimWorld;

/// The door. Open at first.
#[derive(Default)]
pub struct Halt {
    holders: Cell<u32>,
    waiting: RefCell<Vec<Waker>>,
}

impl Halt {
    /// Nothing passes until [`Halt::release`], as often as this was called.
    pub fn hold(&self) {
        self.holders.set(self.holders.get() + 1);
    }

    /// One that held it lets go.
    ///
    /// # Panics
    /// When nobody holds it.
    pub fn release(&self) {
        assert!(self.holders.get() > 0, "nobody holds it");
        self.holders.set(self.holders.get() - 1);
        if !self.is_held() {
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Whether somebody holds it.
    pub fn is_held(&self) -> bool {
        self.holders.get() > 0
    }

    /// Ends when nobody holds it.
    pub async fn passed(&self) {
        poll_fn(|context| {
            if !self.is_held() {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Runs all of them at the same time; ends when the last has ended.
pub async fn together<T: Future<Output = ()> + 'static>(
    world: &SimWorld,
    tasks: impl Iterator<Item = T>,
) {
    let halt = Rc::new(Halt::default());
    for task in tasks {
        halt.hold();
        let halt = Rc::clone(&halt);
        world.spawn(async move {
            task.await;
            halt.release();
        });
    }
    halt.passed().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::world::RigWorld;
    use std::time::Duration;
    use world_sim::Outcome;

    #[test]
    fn what_comes_waits_for_the_last_that_holds_it() {
        let world = RigWorld::new(1);
        let halt = Rc::new(Halt::default());
        let seen = Rc::new(RefCell::new(Vec::new()));
        halt.hold();
        halt.hold();
        for number in 0..2 {
            let (world, halt, seen) = (world.clone(), Rc::clone(&halt), Rc::clone(&seen));
            world.clone().spawn(async move {
                halt.passed().await;
                seen.borrow_mut().push((world.now().0, number));
            });
        }
        let end = async {
            world.sleep(Duration::from_nanos(10)).await;
            halt.release();
            world.sleep(Duration::from_nanos(10)).await;
            halt.release();
            world.sleep(Duration::from_nanos(10)).await;
        };
        assert_eq!(world.run(u64::MAX, end), Ok(Outcome::Done(())));
        assert_eq!(*seen.borrow(), [(20, 0), (20, 1)]);
        world.power_off();
    }
}
