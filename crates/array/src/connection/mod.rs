//! A connection in full-feature phase.
//!
//! Its session is on the home shard of its target. The connection itself, with socket
//! and protocol, is carried by that shard or by another one that has less to do.
//!
//! Invariants:
//! - A command that has begun runs to its end, whether or not anybody waits for
//!   its answer; the session ends only after that. So no write of a dead
//!   session lands after a new session of the same initiator has begun.
//! - What a peer can make a connection hold is bounded: input is not read while
//!   much output waits, and commands do not begin while those before them hold
//!   [`tasks::IN_FLIGHT_BYTES_MAX`]. What all connections hold together is bounded by the
//!   budget of the process ([`crate::memory`]): a command waits for its part.
//! - Who keeps such memory, with data that does not come or answers that are not taken, has so
//!   long and no longer ([`Timeouts::data`]).

mod batch;
mod connection_loop;
mod gauge;
mod management;
mod request;
mod tasks;

use crate::directory::Directory;
use crate::memory::Budget;
use crate::offload::{Offload, SessionCopier};
use crate::shard::session::{Closing, ConnectionControl, Scope, Session};
use crate::shard::{ShardHandle, ShardState};
use crate::stream::{Stream, write_all};
use crate::wake::in_time;
use connection_loop::{ConnectionLoop, Progress};
use engine::World;
use futures_util::FutureExt;
use gauge::Gauge;
use iscsi::login::{Limits, Negotiated};
use request::{Route, Runner};
use scsi::Nexus;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

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

/// What all connections share.
pub struct Services<W: World> {
    /// Who may reach which target.
    pub directory: Arc<Directory>,
    /// Copies and their tokens.
    pub offload: Arc<Offload<W>>,
    /// Memory that all connections may hold together.
    pub budget: Budget,
    /// Bounds inside one connection.
    pub limits: Limits,
    /// How long peers are waited for.
    pub timeouts: Timeouts,
}

/// A connection that has logged in: one record from its login to the shard that carries it.
pub(crate) struct LoggedIn<S> {
    /// Parked while it is on its way to another shard.
    pub(crate) stream: S,
    pub(crate) peer: SocketAddr,
    pub(crate) negotiated: Box<Negotiated>,
    pub(crate) since_unix_s: u64,
    /// Came behind the last login request.
    pub(crate) input: Vec<u8>,
    /// The last login response, not yet sent: the initiator hears that it has a
    /// session when it has one.
    pub(crate) output: Vec<u8>,
}

impl<S> LoggedIn<S> {
    /// The same with another stream, if that can be.
    fn try_map<T>(self, stream: impl FnOnce(S) -> io::Result<T>) -> io::Result<LoggedIn<T>> {
        Ok(LoggedIn {
            stream: stream(self.stream)?,
            peer: self.peer,
            negotiated: self.negotiated,
            since_unix_s: self.since_unix_s,
            input: self.input,
            output: self.output,
        })
    }

    fn target(&self) -> &str {
        self.negotiated.target_name()
    }
}

impl<S: Stream> LoggedIn<S> {
    /// Takes its stream off this shard.
    ///
    /// # Errors
    /// The system can't.
    pub(crate) fn park(self) -> io::Result<LoggedIn<S::Parked>> {
        self.try_map(S::park)
    }
}

/// A login response that is not taken within this time is given up.
const GREETING: Duration = Duration::from_secs(5);

/// A session that is reinstated has this long to end, with the commands that it has begun.
const REINSTATE_MAX: Duration = Duration::from_secs(30);

/// Serves a connection, on the home shard of its target, until its session has ended. Its
/// `tickets` are kept for as long.
pub(crate) async fn serve<W: World, S: Stream, T: 'static>(
    state: Rc<ShardState<W>>,
    login: LoggedIn<S::Parked>,
    services: Arc<Services<W>>,
    carrier: ShardHandle<W>,
    tickets: T,
) {
    let Some(session) = begin(&state, &login, &services, carrier.index()).await else {
        return;
    };
    let (peer, tsih) = (session.peer, session.tsih());
    let (initiator, target) = (session.initiator(), session.target());
    tracing::info!(initiator, target, %peer, tsih, carrier = carrier.index(), "session begins");
    let ending = Ending {
        state: Rc::clone(&state),
        session: Rc::clone(&session),
        tickets: Some(tickets),
    };
    let control = Arc::clone(&session.control);
    let (world, device) = (state.world().clone(), Rc::clone(session.nexus.target()));
    let offload = Arc::clone(&services.offload);
    let runner = Runner::new(Rc::clone(&state), session);
    if carrier.index() == state.index() {
        carry::<W, S>(state, login, services, control, Route::Here(runner)).await;
    } else {
        let (requests, to_do) = batch::queue();
        let (done, ended) = batch::queue();
        let carried = carrier.post(move |state| {
            let route = Route::between(requests, ended);
            carry::<W, S>(state, login, services, control, route)
        });
        // When the carrier has stopped, so has the queue of requests.
        if let Err(error) = carried {
            tracing::warn!(%peer, %error, "a connection could not be carried");
        }
        runner.serve(to_do, done).await;
    }
    drop(ending);
    end_tokens_if_planted(&world, (&offload, &device)).await;
}

/// Ends the tokens of the units of a target whose session has ended: a bug.
async fn end_tokens_if_planted<W: World>(
    world: &W,
    (offload, device): (&Offload<W>, &scsi::Target<W>),
) {
    if world.planted("tokens end with the sessions of their target") {
        for unit in device.luns().into_iter().filter_map(|lun| device.unit(lun)) {
            offload.revoke_volume(unit.uuid()).await;
        }
    }
}

/// Carries a connection to its end.
async fn carry<W: World, S: Stream>(
    state: Rc<ShardState<W>>,
    login: LoggedIn<S::Parked>,
    services: Arc<Services<W>>,
    control: Arc<ConnectionControl>,
    route: Route<W>,
) {
    let (peer, tsih, target) = (login.peer, login.negotiated.tsih, login.target().to_owned());
    let initiator = login.negotiated.admission.initiator.clone();
    let world = state.world().clone();
    let account = services.budget.open(&initiator, Arc::clone(&control));
    if world.planted("memory of a connection is kept") {
        std::mem::forget(services.budget.open(&initiator, Arc::clone(&control)));
    }
    let gauge = Gauge::new(Arc::clone(&control), world.clone());
    let progress = Progress::new(&world, services.timeouts, gauge, account);
    let reason = match greet::<S>(&world, login).await {
        Ok(login) => {
            let connection =
                ConnectionLoop::new(login, (state, services), control, route, progress);
            connection.run().await
        }
        Err(error) => format!("the login response could not be sent: {error}"),
    };
    tracing::info!(initiator, target, %peer, tsih, reason, "session ends");
}

/// Ends its session when dropped: also when the connection's task is dropped
/// with its shard, or panics. Whoever waits for the session must hear of it.
struct Ending<W: World, T> {
    state: Rc<ShardState<W>>,
    session: Rc<Session<W>>,
    tickets: Option<T>,
}

impl<W: World, T> Drop for Ending<W, T> {
    fn drop(&mut self) {
        self.state.remove_session(&self.session);
        self.session.nexus.lost();
        self.session.end();
        let tickets = self.tickets.take();
        if self.state.world().planted("tickets of a session are kept") {
            std::mem::forget(tickets);
        }
    }
}

/// Makes the session, after ending the one that it reinstates (RFC 7143 clause
/// 6.3.5): same initiator, same ISID, same target, same portal group. `None` when the
/// target went away meanwhile.
async fn begin<W: World, T>(
    state: &Rc<ShardState<W>>,
    login: &LoggedIn<T>,
    services: &Services<W>,
    carrier: usize,
) -> Option<Rc<Session<W>>> {
    let world = state.world();
    let old = old_nexus_if_planted(state, login);
    // Nobody waits for the answer to a login for longer, and the initiator tries again.
    let ended = in_time(world, REINSTATE_MAX, end_same(state, login)).await;
    if ended.is_none() {
        let (initiator, peer) = (&login.negotiated.admission.initiator, login.peer);
        tracing::warn!(initiator, %peer, "no login: the session that it reinstates does not end");
        return None;
    }
    if state.is_stopping() {
        return None;
    }
    let session = connect(state, login, services, (carrier, old))?;
    state.add_session(Rc::clone(&session));
    // What it was admitted by may be gone since. Whoever takes such away writes the
    // directory first, and then looks through the sessions.
    let is_admitted = services
        .directory
        .admits(session.admission(), session.target())
        || world.planted("admission not looked at again");
    if !is_admitted {
        world.reached("admission gone when a session begins");
        state.remove_session(&session);
        session.end();
        return None;
    }
    Some(session)
}

/// Ends the session that this login reinstates, with all that it has begun.
async fn end_same<W: World, T>(state: &ShardState<W>, login: &LoggedIn<T>) {
    let key = login.negotiated.session_key();
    let is_same = |session: &Session<W>| session.negotiated.session_key() == key;
    // Again until none is left: others may reinstate the same session at once.
    let world = state.world();
    loop {
        let closing = state.close_sessions(Closing::Now, is_same);
        let closed = match world.planted("session reinstated while the old one goes on") {
            true => closing.now_or_never().unwrap_or(0),
            false => closing.await,
        };
        if closed == 0 {
            break;
        }
        world.reached("session reinstated");
    }
}

/// The ISID that its nexus has: what the initiator has said.
fn isid<W: World>(state: &ShardState<W>, negotiated: &Negotiated) -> [u8; 6] {
    let mut isid = negotiated.isid;
    let planted = "reservations know sessions by their handles";
    if state.world().planted(planted) {
        isid[4..].copy_from_slice(&negotiated.tsih.to_be_bytes());
    }
    isid
}

/// The nexus of the session that this login reinstates, for the new one to have: a bug.
fn old_nexus_if_planted<W: World, T>(
    state: &ShardState<W>,
    login: &LoggedIn<T>,
) -> Option<Rc<Nexus<W>>> {
    let planted = "reinstated session has the nexus of the old one";
    if !state.world().planted(planted) {
        return None;
    }
    let key = login.negotiated.session_key();
    let mut sessions = state.connected().into_iter();
    let old = sessions.find(|one| one.negotiated.session_key() == key)?;
    Some(Rc::clone(&old.nexus))
}

/// Its nexus at the target, which is `None` when that went away, with the ways to copy and abort.
fn connect<W: World, T>(
    state: &Rc<ShardState<W>>,
    login: &LoggedIn<T>,
    services: &Services<W>,
    (carrier, old): (usize, Option<Rc<Nexus<W>>>),
) -> Option<Rc<Session<W>>> {
    let (negotiated, target) = (&*login.negotiated, login.target());
    let admission = &negotiated.admission;
    let initiator = scsi::InitiatorPort::new(&admission.initiator, isid(state, negotiated));
    let device = state.target(target)?;
    let nexus = old.unwrap_or_else(|| device.connect(initiator, admission.portal.portal_group));
    let shared = (&services.directory, &services.offload);
    let copier = SessionCopier::new(state, shared, admission.clone(), target);
    nexus.set_copier(Rc::new(copier));
    let since = (login.since_unix_s, state.world().now());
    let session = Session::new(negotiated.clone(), login.peer, carrier, nexus, since);
    let session = Rc::new(session);
    let held = Rc::downgrade(&session);
    session.nexus.set_aborter(Box::new(move |lun| {
        let session = held.upgrade();
        Box::pin(async move {
            match session {
                Some(session) => session.abort(Scope::Unit(lun)).await,
                None => 0,
            }
        })
    }));
    Some(session)
}

/// Tells the initiator that it has a session.
async fn greet<S: Stream>(
    world: &impl World,
    login: LoggedIn<S::Parked>,
) -> io::Result<LoggedIn<S>> {
    let mut login = login.try_map(S::unpark)?;
    let sent = write_all(&mut login.stream, &login.output);
    match in_time(world, GREETING, sent).await {
        Some(sent) => sent.map(|()| login),
        None => Err(io::ErrorKind::TimedOut.into()),
    }
}
