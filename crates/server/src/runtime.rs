//! Time and tasks of the real world, as the control plane asks for them.

use crate::panics;
use crate::wall_clock::now_unix_us;
use ::array::control::Runtime;
use base::Time;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::time::Duration;
use tokio::runtime::Handle;

/// The executor beside the data path, and this machine's clocks.
pub(crate) struct Executor(Handle);

impl Executor {
    /// That which this is called on.
    ///
    /// # Panics
    /// When it is called on none.
    pub(crate) fn current() -> Self {
        Executor(Handle::current())
    }
}

impl Runtime for Executor {
    fn unix_us(&self) -> u64 {
        now_unix_us()
    }

    fn now(&self) -> Time {
        world_real::now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        async move { tokio::time::sleep(duration).await }.boxed()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn(task);
    }

    fn see_through(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, Result<(), String>> {
        let whole = self.0.spawn(panics::heard(task));
        let ended = async move {
            match whole.await {
                Ok(ended) => ended,
                Err(error) => Err(error.to_string()),
            }
        };
        ended.boxed()
    }

    fn aside(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, Result<(), String>> {
        let done = self.0.spawn_blocking(work);
        async move { done.await.map_err(|error| error.to_string()) }.boxed()
    }
}
