//! A shard: one thread with its own executor, ring, buffers, pools and the
//! connections of the targets homed on it.
//!
//! Invariants:
//! - All that a [`ShardState`] holds lives and dies on its thread; others reach
//!   it only by sending a closure through a [`ShardHandle`].
//! - Such a closure runs to its end even when the caller goes away.

pub(crate) mod distant;
pub(crate) mod latency;
pub(crate) mod ledger;
pub(crate) mod room;
pub(crate) mod session;
mod state;
mod statistics;
pub(crate) mod tally;

pub use session::SessionInfo;
use state::CLOSE_MAX;
pub(crate) use state::DRAIN_MAX;
pub use state::{ExportError, ExportErrorKind, ShardState, UnitTraits};
pub use statistics::{Counted, CountedSession};
pub use tally::{Flow, Kind, Timing, Totals};

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task;
use tokio::time::timeout;

/// A shard has so long to end its sessions and close its pools,
const CLOSED_MAX: Duration = DRAIN_MAX
    .saturating_add(CLOSE_MAX)
    .saturating_add(Duration::from_secs(5));

/// and its thread to end, which waits for transfers in the kernel, too.
const END_MAX: Duration = Duration::from_secs(10);

type Visit = Box<dyn FnOnce(Rc<ShardState>) + Send>;

/// Reaches a shard from any thread.
#[derive(Clone, Debug)]
pub struct ShardHandle {
    index: usize,
    visits: mpsc::UnboundedSender<Visit>,
}

/// The shard's thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("shard {0} has stopped")]
pub struct ShardGone(pub usize);

impl ShardHandle {
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
        F: FnOnce(Rc<ShardState>) -> Fut + Send + 'static,
        Fut: Future<Output = R> + 'static,
        R: Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let visit: Visit = Box::new(move |state| {
            task::spawn_local(async move {
                // A caller that went away does not want the answer.
                let _ = answer.send(visit(state).await);
            });
        });
        self.visits.send(visit).map_err(|_| ShardGone(self.index))?;
        answered.await.map_err(|_| ShardGone(self.index))
    }
}

impl ShardHandle {
    /// Runs `visit` on the shard; nobody waits for it.
    pub(crate) fn post<F, Fut>(&self, visit: F) -> Result<(), ShardGone>
    where
        F: FnOnce(Rc<ShardState>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let visit: Visit = Box::new(move |state| {
            task::spawn_local(visit(state));
        });
        self.visits.send(visit).map_err(|_| ShardGone(self.index))
    }
}

/// A running shard. Its thread ends after [`Shard::stop`].
#[derive(Debug)]
pub struct Shard {
    handle: ShardHandle,
    thread: std::thread::JoinHandle<()>,
}

impl Shard {
    /// Starts the thread of shard `index`.
    ///
    /// # Errors
    /// The thread can't be started, or has no io_uring; the message says which.
    pub async fn start(index: usize) -> io::Result<Shard> {
        let (visits, inbox) = mpsc::unbounded_channel();
        let (ready, started) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(format!("shard {index}"))
            .spawn(move || run(index, inbox, ready))?;
        match started.await {
            Ok(Ok(())) => Ok(Shard {
                handle: ShardHandle { index, visits },
                thread,
            }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other(format!(
                "shard {index} ended while it started"
            ))),
        }
    }

    /// How others reach it.
    pub fn handle(&self) -> &ShardHandle {
        &self.handle
    }

    /// Closes its connections once their commands have ended, closes its pools
    /// and ends the thread. Returns what its pools said, by name of the pool. A thread that
    /// does not answer any more is left behind.
    pub async fn stop(self) -> Vec<(String, engine::PoolError)> {
        let index = self.handle.index;
        let closing = self.handle.call(|state| async move { state.close().await });
        let failures = match timeout(CLOSED_MAX, closing).await {
            Ok(failures) => failures.unwrap_or_default(),
            Err(_) => {
                let context = format!("it does not answer after {CLOSED_MAX:?}: a drive may hang");
                tracing::error!("shard {index}: {context}");
                let error = engine::PoolError {
                    kind: engine::PoolErrorKind::Failed,
                    context,
                };
                vec![(format!("lanes on shard {index}"), error)]
            }
        };
        drop(self.handle);
        // Joins off the async threads: the shard may still be ending tasks.
        let joined = task::spawn_blocking(move || self.thread.join());
        match timeout(END_MAX, joined).await {
            Ok(Ok(Ok(()))) => {}
            Ok(_) => tracing::error!("a shard's thread ended by a panic"),
            Err(_) => tracing::error!("shard {index} does not end: a drive may hang"),
        }
        failures
    }
}

fn run(
    index: usize,
    mut inbox: mpsc::UnboundedReceiver<Visit>,
    ready: oneshot::Sender<io::Result<()>>,
) {
    crate::panics::on_the_data_path();
    let ready = Cell::new(Some(ready));
    let started = |outcome| {
        ready
            .take()
            .is_some_and(|ready| ready.send(outcome).is_ok())
    };
    let ran = world::real::run(|world| {
        let state = ShardState::new(index, world);
        started(Ok(()));
        async move {
            // Ends when the last handle is gone, or the state has been closed.
            loop {
                tokio::select! {
                    biased;
                    () = state.closed() => break,
                    visit = inbox.recv() => match visit {
                        Some(visit) => visit(Rc::clone(&state)),
                        None => break,
                    },
                }
            }
        }
    });
    if let Err(error) = ran {
        started(Err(io::Error::other(error)));
    }
}
