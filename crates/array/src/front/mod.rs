//! Logins and discovery, before a connection is a shard's.
//!
//! A connection logs in here, where its portal is, and is then moved to the shard of its target, or
//! to one beside it. Discovery sessions are served here to their end. What peers can make the front
//! hold is bounded: logins under way, the time each may take, and sessions. Who is beyond a bound
//! is told so by the status of its login, as long as that costs little.

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

use crate::connection::{Services, Timeouts};
use crate::directory::Directory;
use crate::memory::Budget;
use crate::offload::Offload;
use crate::shard::ShardHandle;
use crate::stream::Stream;
use crate::wake::Clock;
use carrier_slots::CarrierSlots;
use engine::World;
use futures_util::future::{Either, select};
use iscsi::chap::RANDOM_BYTES;
use login_permits::LoginPermits;
use session_permits::SessionPermits;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tsih::Tsihs;
use turned_away::TurnedAway;

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

/// What a session holds from its login to its end: its handle, its place among the sessions, and
/// one on the shard that carries it. Dropped when the session has ended.
pub(crate) struct Tickets {
    _lease: TsihLease,
    _permit: Option<SessionPermit>,
    _slot: CarrierSlot,
}

/// What the front asks of its surroundings beside time.
pub trait Surroundings {
    /// The second since 1970.
    fn unix_s(&self) -> u64;

    /// Bytes that nobody can foresee, for a challenge (RFC 1994 clause 2.3).
    ///
    /// # Errors
    /// There are none; the message says why.
    fn random(&self) -> Result<[u8; RANDOM_BYTES], String>;
}

/// What all logins share.
pub struct Desk<W: World, C: Clock> {
    services: Arc<Services<W>>,
    shards: Vec<ShardHandle<W>>,
    limits: FrontLimits,
    clock: C,
    surroundings: Box<dyn Surroundings>,
    tsihs: Tsihs,
    session_permits: SessionPermits,
    carrier_slots: CarrierSlots,
    login_permits: LoginPermits,
    /// Peers that are being told that there are too many.
    turned_away: TurnedAway,
}

impl<W: World, C: Clock> Desk<W, C> {
    /// A desk in front of `shards`, which stand in the order of their indices, and which `offload`
    /// knows already.
    pub fn new(
        (directory, offload, budget): (Arc<Directory>, Arc<Offload<W>>, Budget),
        shards: Vec<ShardHandle<W>>,
        limits: FrontLimits,
        clock: C,
        surroundings: Box<dyn Surroundings>,
    ) -> Rc<Self> {
        let services = Services {
            directory,
            offload,
            budget,
            limits: limits.iscsi,
            timeouts: limits.timeouts,
        };
        let FrontLimits {
            half_open_max,
            half_open_per_address_max,
            sessions_max,
            sessions_per_initiator_max,
            ..
        } = limits;
        Rc::new(Desk {
            services: Arc::new(services),
            // A session that is reinstated, and one that is about to be, have one each.
            tsihs: Tsihs::new(sessions_max.saturating_add(half_open_max)),
            session_permits: SessionPermits::new(sessions_max, sessions_per_initiator_max),
            carrier_slots: CarrierSlots::new(shards.len()),
            login_permits: LoginPermits::new(half_open_max, half_open_per_address_max),
            turned_away: TurnedAway::default(),
            shards,
            limits,
            clock,
            surroundings,
        })
    }

    /// Takes the login of `stream`, which came from `peer` to the portal at `local`, and moves it
    /// to its shard, or serves discovery to its end.
    pub async fn serve<S: Stream>(&self, stream: S, peer: SocketAddr, local: SocketAddr) {
        let Some(permit) = self.login_permits.take(peer.ip()) else {
            tracing::warn!(%peer, "turned away: too many logins are under way");
            return self.turned_away.tell(&self.clock, stream).await;
        };
        {
            let served = pin!(login::serve(stream, (peer, local), self, &permit));
            if let Either::Right(_) = select(served, pin!(permit.given_away())).await {
                tracing::info!(%peer, "no login: too many are under way, and it had proved nothing");
            }
        }
        if self.clock.planted("permit of a login is kept") {
            std::mem::forget(permit);
        }
    }
}
