//! A shard of the real world: one thread with its own executor, ring and buffers, and the state
//! that [`::array::shard`] keeps there.

pub use ::array::shard::{
    Counted, CountedSession, ExportError, ExportErrorKind, Flow, Kind, SessionInfo, ShardGone,
    Timing, Totals, UnitTraits,
};
pub(crate) use ::array::shard::{DRAIN_MAX, latency, tally, watch};

#[cfg(test)]
mod waiting_writes;

use ::array::shard::{CLOSE_MAX, Link, Visit};
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task;
use tokio::time::timeout;
use world_real::RealWorld;

/// The state of a shard, on its thread.
pub type ShardState = ::array::shard::ShardState<RealWorld>;

/// Reaches a shard from any thread.
pub type ShardHandle = ::array::shard::ShardHandle<RealWorld>;

/// The way to a thread.
struct Inbox(mpsc::UnboundedSender<Visit<RealWorld>>);

impl Link<RealWorld> for Inbox {
    fn send(&self, visit: Visit<RealWorld>) -> bool {
        self.0.send(visit).is_ok()
    }
}

/// A shard has so long to end its sessions and close its pools,
const CLOSED_MAX: Duration = DRAIN_MAX
    .saturating_add(CLOSE_MAX)
    .saturating_add(Duration::from_secs(5));

/// and its thread to end, which waits for transfers in the kernel, too.
const END_MAX: Duration = Duration::from_secs(10);

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
                handle: ShardHandle::new(index, Arc::new(Inbox(visits))),
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
        let index = self.handle.index();
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
    mut inbox: mpsc::UnboundedReceiver<Visit<RealWorld>>,
    ready: oneshot::Sender<io::Result<()>>,
) {
    crate::panics::on_the_data_path();
    let ready = Cell::new(Some(ready));
    let started = |outcome| {
        ready
            .take()
            .is_some_and(|ready| ready.send(outcome).is_ok())
    };
    let ran = world_real::run(|world| {
        let state = ShardState::new(index, world);
        started(Ok(()));
        async move {
            // Ends when the last handle is gone, or the state has been closed.
            loop {
                tokio::select! {
                    biased;
                    () = state.closed() => break,
                    visit = inbox.recv() => match visit {
                        Some(visit) => {
                            task::spawn_local(visit(Rc::clone(&state)));
                        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use engine::pool::{Level, NamedDrive};
    use engine::volume::CancelToken;
    use engine::{Lane, PoolSpec, Provisioning, Volume, VolumeSpec};
    use std::path::PathBuf;
    use world_real::RealDrive;

    /// Has a pool called `p`, of a new file, with a volume `v`.
    async fn make_pool(state: &ShardState, path: PathBuf) -> Volume<RealWorld> {
        RealDrive::create_file(&path, 64 << 20).unwrap();
        let drive = NamedDrive {
            name: "d".to_owned(),
            drive: RealDrive::open(state.world(), &path).unwrap(),
        };
        let spec = PoolSpec::new("p", Level::Simple);
        let pool = Lane::create(state.world().clone(), spec, vec![drive]);
        let pool = pool.await.unwrap();
        state.add_pool(pool.clone());
        let volume = pool.create_volume(VolumeSpec {
            name: "v".to_owned(),
            size_bytes: 1 << 20,
            provisioning: Provisioning::Thin,
        });
        volume.await.unwrap()
    }

    #[tokio::test]
    async fn what_keeps_data_for_tokens_goes_with_its_pool() {
        let home = tempfile::tempdir().unwrap();
        let at = home.path().to_owned();
        let shard = Shard::start(0).await.unwrap();
        let visit = move |state: Rc<ShardState>| async move {
            make_pool(&state, at.join("first")).await;
            let kept = Rc::downgrade(&state.holder(&state.pool("p").unwrap()));
            let first = state.take_pool("p", 0).unwrap();
            first.close().await.unwrap();
            // Who has begun before has something to end with.
            let late = Rc::downgrade(&state.holder(&first));
            let volume = make_pool(&state, at.join("again")).await;
            let holder = state.holder(&state.pool("p").unwrap());
            let cancel = CancelToken::default();
            let held = holder.hold(&volume, &[(0, 4096)], &cancel).await;
            let held = held.map(drop).map_err(|error| error.to_string());
            (kept.upgrade().is_none(), late.upgrade().is_none(), held)
        };
        let (is_gone, is_late_gone, held) = shard.handle().call(visit).await.unwrap();
        assert!(is_gone && is_late_gone, "it keeps the first pool in memory");
        assert_eq!(held, Ok(()), "in the pool that was made again");
        shard.stop().await;
    }
}
