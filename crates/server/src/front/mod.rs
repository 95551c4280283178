//! The front: portals, logins and discovery, beside the shards.
//!
//! A connection logs in here, on a thread of the front's own, and is then moved to the shard of its
//! target, or to one beside it. Discovery sessions are served here to their end. What peers can
//! make the front hold is bounded: logins under way, the time each may take, and sessions. Who is
//! beyond a bound is told so by the status of its login, as long as that costs little.

mod carrier_slots;
mod discovery;
mod login;
mod login_permits;
mod session_permits;
mod tsih;
mod turned_away;

pub(crate) use carrier_slots::CarrierSlot;
pub(crate) use session_permits::SessionPermit;
pub(crate) use tsih::TsihLease;

use crate::directory::{Directory, Portal};
use crate::memory::Budget;
use crate::offload::Offload;
use crate::shard::ShardHandle;
use carrier_slots::CarrierSlots;
use login_permits::LoginPermits;
use session_permits::SessionPermits;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task;
use tsih::Tsihs;

/// Bounds on what peers can make the front hold.
#[derive(Clone, Debug)]
pub struct FrontLimits {
    /// A login that takes longer is cut; so is a discovery session, and a peer that takes a third
    /// of it for one request.
    pub login_timeout: Duration,
    /// Logins under way, and discovery sessions.
    pub half_open_max: usize,
    /// Those from one address; a network of 64 bits counts as one.
    pub half_open_per_address_max: usize,
    /// Sessions, each with one connection.
    pub sessions_max: usize,
    /// Sessions of one initiator.
    pub sessions_per_initiator_max: usize,
    /// Memory that all connections may hold together, in bytes; at least 128 MiB.
    pub memory_bytes: u64,
    /// How silence and partings are dealt with.
    pub timeouts: Timeouts,
    /// Bounds inside one connection.
    pub iscsi: iscsi::login::Limits,
}

impl Default for FrontLimits {
    fn default() -> Self {
        FrontLimits {
            login_timeout: Duration::from_secs(15),
            half_open_max: 64,
            half_open_per_address_max: 32,
            sessions_max: 1024,
            sessions_per_initiator_max: 256,
            memory_bytes: 4 << 30,
            timeouts: Timeouts::default(),
            iscsi: iscsi::login::Limits::default(),
        }
    }
}

/// How long a connection waits for its peer.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// A peer that was silent for this long is pinged; one that is silent for as long
    /// again, or takes that long to send one PDU, is given up.
    pub silence: Duration,
    /// An initiator that is asked to log out has this long, in whole seconds at least
    /// one, before its connection is closed.
    pub logout: Duration,
    /// A peer that keeps a command waiting for its data for so long, or does not take its
    /// answers, is parted with.
    pub data: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            silence: Duration::from_secs(30),
            logout: Duration::from_secs(3),
            data: Duration::from_secs(30),
        }
    }
}

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

impl Portals {
    /// Listens at `address`, and says where that is: port 0 lets the system choose.
    ///
    /// # Errors
    /// It can't be opened.
    pub(crate) fn open(&self, address: SocketAddr) -> Result<SocketAddr, PortalError> {
        let opened = listen(address).map_err(|source| PortalError { address, source })?;
        let bound = opened.1;
        // A front that has ended opens nothing any more.
        let _ = self.changes.send(Change::Open(opened));
        Ok(bound)
    }

    /// Takes no more logins at `bound`. Sessions that came in there go on.
    pub(crate) fn close(&self, bound: SocketAddr) {
        let _ = self.changes.send(Change::Close(bound));
    }
}

/// What all logins share.
struct Desk {
    directory: Arc<Directory>,
    offload: Arc<Offload>,
    shards: Vec<ShardHandle>,
    limits: FrontLimits,
    budget: Budget,
    tsihs: Tsihs,
    session_permits: SessionPermits,
    carrier_slots: CarrierSlots,
    login_permits: LoginPermits,
    /// Peers that are being told that there are too many.
    turned_away: Arc<Semaphore>,
}

impl Desk {
    fn new(
        (directory, offload): (Arc<Directory>, Arc<Offload>),
        shards: Vec<ShardHandle>,
        limits: FrontLimits,
        budget: Budget,
    ) -> Self {
        Desk {
            // A session that is reinstated, and one that is about to be, have one each.
            tsihs: Tsihs::new(limits.sessions_max.saturating_add(limits.half_open_max)),
            session_permits: SessionPermits::new(
                limits.sessions_max,
                limits.sessions_per_initiator_max,
            ),
            carrier_slots: CarrierSlots::new(shards.len()),
            login_permits: LoginPermits::new(
                limits.half_open_max,
                limits.half_open_per_address_max,
            ),
            turned_away: Arc::new(Semaphore::new(turned_away::AT_ONCE_MAX)),
            directory,
            offload,
            shards,
            limits,
            budget,
        }
    }
}

/// A listener, and the address that it has.
type Listening = (TcpListener, SocketAddr);

/// Listeners at these portals, and where they are.
///
/// # Errors
/// The first portal that can't be opened.
fn listen_at(
    portals: &[impl Into<Portal> + Copy],
) -> Result<(Vec<Listening>, Vec<Portal>), PortalError> {
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
        let budget = Budget::new(limits.memory_bytes, limits.sessions_max);
        let shared = budget.clone();
        let (stop, stopped) = watch::channel(false);
        let (changes, changing) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new()
            .name("front".to_owned())
            .spawn(move || {
                crate::panics::on_the_data_path();
                let desk = Desk::new((directory, offload), shards, limits, shared);
                run(listeners, (stopped, changing), desk);
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
    desk: Desk,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "no event loop for logins"),
    };
    let desk = Rc::new(desk);
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
    desk: Rc<Desk>,
) {
    let mut open = BTreeMap::new();
    let begin = |(listener, bound): Listener| match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => {
            let taking = task::spawn_local(accept(listener, Rc::clone(&desk)));
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
        if let Err(error) = attend(&stream, desk.limits.timeouts.silence) {
            tracing::warn!(%peer, %error, "a dead peer may be noticed late");
        }
        let Some(login_permit) = desk.login_permits.take(peer.ip()) else {
            turned_away::begin(stream, peer, &desk);
            continue;
        };
        let desk = Rc::clone(&desk);
        task::spawn_local(async move {
            tokio::select! {
                () = login::serve(stream, peer, &desk, &login_permit) => {}
                () = login_permit.given_away() => {
                    tracing::info!(%peer, "no login: too many are under way, and it had proved nothing");
                }
            }
        });
    }
}

/// Probes of a silent peer before the kernel gives it up.
const PROBES: u32 = 3;

/// Has the kernel watch the peer, too: it notices one that is gone while nothing of the
/// protocol is due, and data that nobody acknowledges.
fn attend(stream: &tokio::net::TcpStream, silence: Duration) -> io::Result<()> {
    // The kernel counts in whole seconds.
    let interval = (silence / PROBES).max(Duration::from_secs(1));
    let probes = socket2::TcpKeepalive::new()
        .with_time(silence.max(Duration::from_secs(1)))
        .with_interval(interval)
        .with_retries(PROBES);
    let socket = socket2::SockRef::from(stream);
    socket.set_tcp_keepalive(&probes)?;
    socket.set_tcp_user_timeout(Some(2 * silence))
}
