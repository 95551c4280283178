//! The front: portals, logins and discovery, beside the shards.
//!
//! A connection logs in here, on a thread of the front's own, and is then moved
//! to the shard of its target, or to one beside it. Discovery sessions are served here to their end.
//! What peers can make the front hold is bounded: logins under way, the time
//! each may take, and sessions.

mod berths;
mod discovery;
mod login;
mod tsih;

pub(crate) use berths::Berth;
pub(crate) use tsih::TsihLease;

use crate::directory::Directory;
use crate::shard::ShardHandle;
use berths::Berths;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task;
use tsih::Tsihs;

/// Bounds on what peers can make the front hold.
#[derive(Clone, Debug)]
pub struct FrontLimits {
    /// A login that takes longer is cut; so is a discovery session.
    pub login_timeout: Duration,
    /// Logins under way, and discovery sessions.
    pub half_open_max: usize,
    /// Sessions, with logins under way.
    pub sessions_max: usize,
    /// Bounds inside one connection.
    pub iscsi: iscsi::login::Limits,
}

impl Default for FrontLimits {
    fn default() -> Self {
        FrontLimits {
            login_timeout: Duration::from_secs(15),
            half_open_max: 64,
            sessions_max: 1024,
            iscsi: iscsi::login::Limits::default(),
        }
    }
}

/// A portal can't be opened.
#[derive(Debug, thiserror::Error)]
#[error("portal {address}: {source}; {}", advice(source))]
pub struct PortalError {
    /// The portal.
    pub address: SocketAddr,
    /// What the kernel said.
    pub source: io::Error,
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there: stop it, or choose another portal"
        }
        io::ErrorKind::AddrNotAvailable => "this host has no such address: correct the portal",
        io::ErrorKind::PermissionDenied => "ports below 1024 need a privilege: choose another port",
        _ => "check the address and the port",
    }
}

/// The open portals.
pub struct Front {
    portals: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    thread: std::thread::JoinHandle<()>,
}

/// What all logins share.
struct Desk {
    directory: Arc<Directory>,
    shards: Vec<ShardHandle>,
    limits: FrontLimits,
    tsihs: Tsihs,
    berths: Berths,
    half_open: Arc<Semaphore>,
}

impl Front {
    /// Opens `portals` (port 0 lets the system choose), writes their addresses
    /// into the directory and takes logins from then on. `shards` stand in the
    /// order of their indices.
    ///
    /// # Errors
    /// The first portal that can't be opened; none stays open then.
    pub async fn open(
        portals: &[SocketAddr],
        directory: Arc<Directory>,
        shards: Vec<ShardHandle>,
        limits: FrontLimits,
    ) -> Result<Front, PortalError> {
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        for address in portals {
            let (listener, bound) = listen(*address).map_err(|source| PortalError {
                address: *address,
                source,
            })?;
            listeners.push(listener);
            addresses.push(bound);
        }
        directory.set_portals(addresses.clone());
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new()
            .name("front".to_owned())
            .spawn(move || {
                let tsihs = Tsihs::new(limits.sessions_max);
                let berths = Berths::new(shards.len());
                let half_open = Arc::new(Semaphore::new(limits.half_open_max));
                run(
                    listeners,
                    stopped,
                    Desk {
                        directory,
                        shards,
                        limits,
                        tsihs,
                        berths,
                        half_open,
                    },
                );
            })
            .map_err(|error| {
                let address = addresses.first().copied().unwrap_or(([0; 4], 0).into());
                let why = format!("the thread for its logins can't be started: {error}");
                PortalError {
                    address,
                    source: io::Error::new(error.kind(), why),
                }
            })?;
        Ok(Front {
            portals: addresses,
            stop,
            thread,
        })
    }

    /// The addresses that the portals have.
    pub fn portals(&self) -> &[SocketAddr] {
        &self.portals
    }

    /// Closes the portals, and ends logins and discovery sessions under way.
    /// Sessions on shards go on until [`crate::shard::Shard::stop`].
    pub async fn stop(self) {
        // The thread may have ended already.
        let _ = self.stop.send(true);
        if !matches!(
            task::spawn_blocking(move || self.thread.join()).await,
            Ok(Ok(()))
        ) {
            tracing::error!("the thread for logins ended by a panic");
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

fn run(listeners: Vec<TcpListener>, mut stopped: watch::Receiver<bool>, desk: Desk) {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "no event loop for logins"),
    };
    let desk = Rc::new(desk);
    task::LocalSet::new().block_on(&runtime, async move {
        for listener in listeners {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => drop(task::spawn_local(accept(listener, Rc::clone(&desk)))),
                Err(error) => tracing::error!(%error, "a portal can't be watched"),
            }
        }
        // Also ends when the front was dropped instead of stopped.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    });
}

async fn accept(listener: tokio::net::TcpListener, desk: Rc<Desk>) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Mostly too many open files: others must end first.
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&desk.half_open).try_acquire_owned() else {
            tracing::warn!(%peer, "turned away: too many logins are under way");
            continue;
        };
        let desk = Rc::clone(&desk);
        task::spawn_local(async move {
            login::serve(stream, peer, &desk).await;
            drop(permit);
        });
    }
}
