//! The front: portals beside the shards, and the thread that logins run on.
//!
//! [`::array::front`] says how a login goes; this has its sockets, its clock and its randomness.

mod socket;

pub use ::array::connection::Timeouts;
pub use ::array::front::FrontLimits;

use crate::directory::{Directory, Portal};
use crate::offload::Offload;
use crate::shard::ShardHandle;
use crate::wall_clock::now_unix_s;
use ::array::control::{ArrayError, ArrayErrorKind, BoundSocket, Sockets};
use ::array::front::{Desk, Surroundings};
use ::array::memory::Budget;
use ::array::wake::Clock;
use base::Time;
use iscsi::chap::RANDOM_BYTES;
use socket::Socket;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task;
use world_real::RealWorld;

/// The clock of the thread for logins.
#[derive(Clone)]
struct ThreadClock;

impl Clock for ThreadClock {
    fn now(&self) -> Time {
        world_real::now()
    }

    // Without tokio's budget: a peer that always has something to read would use it up, and the
    // time could never be over.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static {
        task::coop::unconstrained(tokio::time::sleep(duration))
    }
}

/// The machine: its calendar, and its kernel's randomness.
struct Machine;

impl Surroundings for Machine {
    fn unix_s(&self) -> u64 {
        now_unix_s()
    }

    fn random(&self) -> Result<[u8; RANDOM_BYTES], String> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        Ok(random)
    }
}

type LoginDesk = Desk<RealWorld, ThreadClock>;

/// A portal can't be opened.
#[derive(Debug, thiserror::Error)]
#[error("portal {address}: {source}; {}", advice(source))]
pub struct PortalError {
    /// The address that was asked for.
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

/// The open portals, served by a thread of their own.
pub struct Front {
    portals: Vec<SocketAddr>,
    budget: Budget,
    stop: watch::Sender<bool>,
    changes: mpsc::UnboundedSender<Change>,
    thread: std::thread::JoinHandle<()>,
}

/// What becomes different of the open portals.
enum Change {
    Open(Listener),
    /// The portal that listens there.
    Close(SocketAddr),
}

/// A socket, and the address that it has.
type Listener = (TcpListener, SocketAddr);

/// Opens and closes portals while targets are served. What initiators are told of them is in the
/// directory.
#[derive(Clone, Debug)]
pub(crate) struct Portals {
    changes: mpsc::UnboundedSender<Change>,
}

impl Sockets for Portals {
    fn bind(&self, address: SocketAddr) -> Result<Box<dyn BoundSocket>, ArrayError> {
        let bound = listen(address).map_err(|source| not_open(PortalError { address, source }))?;
        Ok(Box::new(BoundListener {
            listener: bound,
            changes: self.changes.clone(),
        }))
    }

    fn close(&self, bound: SocketAddr) {
        let _ = self.changes.send(Change::Close(bound));
    }
}

/// A listener at which connections wait.
struct BoundListener {
    listener: Listener,
    changes: mpsc::UnboundedSender<Change>,
}

impl BoundSocket for BoundListener {
    fn address(&self) -> SocketAddr {
        self.listener.1
    }

    fn serve(self: Box<Self>) {
        // A front that has ended opens nothing any more.
        let _ = self.changes.send(Change::Open(self.listener));
    }
}

/// Why a portal can't be opened.
fn not_open(error: PortalError) -> ArrayError {
    let kind = match error.source.kind() {
        io::ErrorKind::AddrInUse => ArrayErrorKind::Busy,
        _ => ArrayErrorKind::Invalid,
    };
    ArrayError::new(kind, error.to_string())
}

/// Listeners at these portals, and where they are.
///
/// # Errors
/// The first portal that can't be opened.
fn listen_at(
    portals: &[impl Into<Portal> + Copy],
) -> Result<(Vec<Listener>, Vec<Portal>), PortalError> {
    let (mut listeners, mut opened) = (Vec::new(), Vec::new());
    for portal in portals {
        let portal: Portal = (*portal).into();
        let address = portal.address;
        let (listener, bound) =
            listen(address).map_err(|source| PortalError { address, source })?;
        listeners.push((listener, bound));
        opened.push(Portal {
            address: bound,
            ..portal
        });
    }
    Ok((listeners, opened))
}

impl Front {
    /// Opens `portals` (port 0 lets the system choose), writes where they are
    /// into the directory and takes logins from then on. `shards` stand in the
    /// order of their indices.
    ///
    /// # Errors
    /// The first portal that can't be opened; none stays open then.
    pub async fn open(
        portals: &[impl Into<Portal> + Copy],
        (directory, offload): (Arc<Directory>, Arc<Offload>),
        shards: Vec<ShardHandle>,
        limits: FrontLimits,
    ) -> Result<Front, PortalError> {
        let (listeners, opened) = listen_at(portals)?;
        let addresses: Vec<SocketAddr> = opened.iter().map(|portal| portal.address).collect();
        directory.set_portals(opened);
        offload.set_shards(&shards);
        let silence = limits.timeouts.silence;
        let budget = Budget::new(limits.memory_bytes, limits.sessions_max);
        let shared = budget.clone();
        let (stop, stopped) = watch::channel(false);
        let (changes, changing) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new()
            .name("front".to_owned())
            .spawn(move || {
                crate::panics::on_the_data_path();
                let shared = (directory, offload, shared);
                let desk = Desk::new(shared, shards, limits, ThreadClock, Box::new(Machine));
                run(listeners, (stopped, changing), (desk, silence));
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
            budget,
            stop,
            changes,
            thread,
        })
    }

    /// Opens and closes portals from now on.
    pub(crate) fn changes(&self) -> Portals {
        Portals {
            changes: self.changes.clone(),
        }
    }

    /// The addresses that the portals have.
    pub fn portals(&self) -> &[SocketAddr] {
        &self.portals
    }

    /// The memory that its connections hold.
    pub fn budget(&self) -> &Budget {
        &self.budget
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

fn run(
    listeners: Vec<Listener>,
    (mut stopped, changes): (watch::Receiver<bool>, mpsc::UnboundedReceiver<Change>),
    desk: (Rc<LoginDesk>, Duration),
) {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "no event loop for logins"),
    };
    task::LocalSet::new().block_on(&runtime, async move {
        tokio::select! {
            () = take_logins(listeners, changes, desk) => {}
            // Also ends when the front was dropped instead of stopped.
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
    });
}

/// Takes logins at `listeners`, and wherever `changes` says. Never ends.
async fn take_logins(
    listeners: Vec<Listener>,
    mut changes: mpsc::UnboundedReceiver<Change>,
    (desk, silence): (Rc<LoginDesk>, Duration),
) {
    let mut open = BTreeMap::new();
    let begin = |(listener, bound): Listener| match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => {
            let taking = task::spawn_local(accept(listener, Rc::clone(&desk), silence));
            Some((bound, taking.abort_handle()))
        }
        Err(error) => {
            tracing::error!(%error, "a portal can't be watched");
            None
        }
    };
    open.extend(listeners.into_iter().filter_map(begin));
    while let Some(change) = changes.recv().await {
        match change {
            Change::Open(listener) => open.extend(begin(listener)),
            Change::Close(bound) => {
                if let Some(taking) = open.remove(&bound) {
                    taking.abort();
                }
            }
        }
    }
    // Nobody can change anything any more.
    std::future::pending().await
}

async fn accept(listener: tokio::net::TcpListener, desk: Rc<LoginDesk>, silence: Duration) {
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
        let prepared = socket::prepare(&stream, peer, silence);
        let local = match prepared {
            Ok(local) => local,
            Err(error) => {
                tracing::info!(%peer, reason = %error, "no login");
                continue;
            }
        };
        let desk = Rc::clone(&desk);
        task::spawn_local(async move { desk.serve(Socket(stream), peer, local).await });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::array::wake::in_time;

    #[tokio::test]
    async fn time_is_over_for_a_peer_that_always_has_something_to_read() {
        let reads = async {
            // Far more than a moment's worth.
            for _ in 0..20_000_000_u64 {
                task::coop::consume_budget().await;
            }
        };
        let patience = Duration::from_millis(20);
        assert_eq!(in_time(&ThreadClock, patience, reads).await, None);
    }
}
