//! The runtime of an array that is all on one thread, as the world is that it runs over: in the
//! simulator, in a rehearsal, in tests.

use super::Runtime;
use crate::pool::Waiter;
use base::Time;
use engine::World;
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use send_wrapper::SendWrapper;
use std::time::Duration;

/// Time and tasks of a world. It belongs to the thread that it was made on.
pub struct OneThread<W: World> {
    world: SendWrapper<W>,
    /// When the world's time began.
    began_unix_s: u64,
}

impl<W: World> OneThread<W> {
    /// Of a world whose time begins at this second since 1970.
    pub fn new(world: W, began_unix_s: u64) -> Self {
        OneThread {
            world: SendWrapper::new(world),
            began_unix_s,
        }
    }
}

impl<W: World> Runtime for OneThread<W> {
    fn unix_us(&self) -> u64 {
        let since = self.now().since(Time(0));
        self.began_unix_s * 1_000_000 + since.as_micros() as u64
    }

    fn now(&self) -> Time {
        World::now(&*self.world)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        SendWrapper::new(World::sleep(&*self.world, duration)).boxed()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.world.spawn(task);
    }

    fn see_through(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, Result<(), String>> {
        let (ended, ends) = oneshot::channel();
        self.world.spawn(async move {
            task.await;
            // Nobody may wait for it any more.
            let _ = ended.send(());
        });
        ends.map(|ended| ended.map_err(|_| "the world has ended".to_owned()))
            .boxed()
    }

    fn reached(&self, mark: &'static str) {
        World::reached(&*self.world, mark);
    }

    fn planted(&self, bug: &'static str) -> bool {
        World::planted(&*self.world, bug)
    }
}

/// A visit to a lane takes as long as it takes: no change gives its turn away.
impl<W: World> Waiter for OneThread<W> {
    fn wait<'a>(&'a self, _: &'a str, visit: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        visit
    }

    fn planted(&self, bug: &'static str) -> bool {
        World::planted(&*self.world, bug)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use base::{BufPool, Prng};
    use std::sync::Arc;
    use world_sim::{Order, SimWorld};

    /// Runs `test` in a world of its own, with its time and tasks.
    pub(in crate::control) fn in_a_world(test: impl AsyncFnOnce(Arc<dyn Runtime>)) {
        let world = SimWorld::new(Prng::from_seed(7), Order::Shuffled, BufPool::new(), Time(0));
        let runtime = Arc::new(OneThread::new(world.clone(), 1_800_000_000));
        let outcome = world.run(1_000_000, test(runtime));
        assert!(
            matches!(outcome, Ok(world_sim::Outcome::Done(()))),
            "it does not end"
        );
    }

    #[test]
    fn a_task_is_seen_through_and_the_day_goes_on_with_the_world() {
        in_a_world(async |runtime| {
            assert_eq!(runtime.unix_s(), 1_800_000_000);
            let slept = runtime.sleep(Duration::from_secs(3));
            assert_eq!(runtime.see_through(slept).await, Ok(()));
            assert_eq!(runtime.unix_s(), 1_800_000_003);
        });
    }
}
