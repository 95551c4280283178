//! What the control plane asks of its surroundings: the time of day, pauses, and tasks.
//!
//! A server answers with its calendar and its threads, the simulator with virtual time.

use base::Time;
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, ready, select};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// Tells the time, and has tasks run.
pub trait Runtime: Send + Sync {
    /// Microseconds since 1970.
    fn unix_us(&self) -> u64;

    /// Seconds since 1970.
    fn unix_s(&self) -> u64 {
        self.unix_us() / 1_000_000
    }

    /// Time since it began; it never goes back.
    fn now(&self) -> Time;

    /// Ends `duration` from now, never earlier.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Runs `task` to its end. Nobody waits for it, so a failed assertion in it ends the process.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Runs `task` to its end, also when nobody waits for that any more. A failed assertion in it is
    /// told to who waits.
    fn see_through(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, Result<(), String>>;

    /// Does `work`, which takes the processor for long, where no task waits for that.
    fn aside(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, Result<(), String>> {
        work();
        ready(Ok(())).boxed()
    }

    /// As [`engine::World::reached`].
    fn reached(&self, mark: &'static str) {
        let _ = mark;
    }

    /// As [`engine::World::planted`].
    fn planted(&self, bug: &'static str) -> bool {
        let _ = bug;
        false
    }
}

impl dyn Runtime + '_ {
    /// What comes of `work`; none when it has not ended after `patience`.
    pub async fn in_time<T>(&self, patience: Duration, work: impl Future<Output = T>) -> Option<T> {
        match select(pin!(work), self.sleep(patience)).await {
            Either::Left((outcome, _)) => Some(outcome),
            Either::Right(_) => None,
        }
    }

    /// As [`Runtime::see_through`], and gives what came of `work`.
    pub(super) async fn outcome<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        let (answer, answered) = oneshot::channel();
        let task = async move {
            // Whoever asked may have gone away.
            let _ = answer.send(work.await);
        };
        self.see_through(task.boxed()).await?;
        answered.await.map_err(|_| "it has no outcome".to_owned())
    }

    /// Runs `work` to its end, and gives what came of it; none when the process ends before.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        let (answer, answered) = oneshot::channel();
        let task = async move {
            // Whoever asked may have gone on without the answer.
            let _ = answer.send(work.await);
        };
        self.spawn(task.boxed());
        answered.map(Result::ok)
    }
}
