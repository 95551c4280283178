//! Messages between shards: closures that run where a shard's state is.
//!
//! Invariants:
//! - All that a [`ShardState`] holds lives and dies where its shard runs; others reach it only by
//!   sending a closure through a [`ShardHandle`].
//! - Such a closure runs to its end even when the caller goes away.

use super::ShardState;
use engine::World;
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

/// Work for a shard: begun there, and polled to its end there.
pub type Visit<W> = Box<dyn FnOnce(Rc<ShardState<W>>) -> LocalBoxFuture<'static, ()> + Send>;

/// The way to a shard. Threads are one, a simulated network another.
pub trait Link<W: World>: Send + Sync {
    /// Sends `visit` on its way. `false` when the shard has stopped.
    fn send(&self, visit: Visit<W>) -> bool;
}

/// Reaches a shard from anywhere.
pub struct ShardHandle<W: World> {
    index: usize,
    link: Arc<dyn Link<W>>,
}

impl<W: World> Clone for ShardHandle<W> {
    fn clone(&self) -> Self {
        let link = Arc::clone(&self.link);
        let index = self.index;
        ShardHandle { index, link }
    }
}

impl<W: World> fmt::Debug for ShardHandle<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardHandle({})", self.index)
    }
}

/// The shard has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("shard {0} has stopped")]
pub struct ShardGone(pub usize);

impl<W: World> ShardHandle<W> {
    /// The shard with this index, from zero, at the end of `link`.
    pub fn new(index: usize, link: Arc<dyn Link<W>>) -> Self {
        ShardHandle { index, link }
    }

    /// Its index, from zero.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Runs `visit` on the shard and brings its outcome back.
    ///
    /// # Errors
    /// The shard has stopped.
    pub async fn call<R, F, Fut>(&self, visit: F) -> Result<R, ShardGone>
    where
        F: FnOnce(Rc<ShardState<W>>) -> Fut + Send + 'static,
        Fut: Future<Output = R> + 'static,
        R: Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let visit: Visit<W> = Box::new(move |state| {
            let answer = async move {
                // A caller that went away does not want the answer.
                let _ = answer.send(visit(state).await);
            };
            answer.boxed_local()
        });
        self.send(visit)?;
        answered.await.map_err(|_| ShardGone(self.index))
    }

    /// Runs `visit` on the shard; nobody waits for it.
    ///
    /// # Errors
    /// The shard has stopped.
    pub fn post<F, Fut>(&self, visit: F) -> Result<(), ShardGone>
    where
        F: FnOnce(Rc<ShardState<W>>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.send(Box::new(move |state| visit(state).boxed_local()))
    }

    fn send(&self, visit: Visit<W>) -> Result<(), ShardGone> {
        match self.link.send(visit) {
            true => Ok(()),
            false => Err(ShardGone(self.index)),
        }
    }
}
