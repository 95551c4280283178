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
mod gauge;
mod management;
mod pump;
mod request;
mod tasks;
#[cfg(test)]
mod tests;

use crate::array::now_unix_s;
use crate::directory::Directory;
use crate::front::{CarrierSlot, SessionPermit, Timeouts, TsihLease};
use crate::memory::Budget;
use crate::offload::{Offload, SessionCopier};
use crate::shard::Session;
use crate::shard::session::{Closing, ConnectionControl, Scope};
use crate::shard::{ShardHandle, ShardState};
use gauge::Gauge;
use iscsi::connection::Connection;
use iscsi::login::{Admission, Limits, Negotiated};
use pump::{Progress, Pump};
use request::{Route, Runner};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// A connection that has logged in, on its way from the front to a shard.
pub(crate) struct Arrival {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) negotiated: Box<Negotiated>,
    pub(crate) target: String,
    /// Came behind the last login request.
    pub(crate) input: Vec<u8>,
    /// The last login response, not yet sent: the initiator hears that it has a
    /// session when it has one.
    pub(crate) output: Vec<u8>,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) directory: Arc<Directory>,
    pub(crate) offload: Arc<Offload>,
    pub(crate) budget: Budget,
    /// The shard that carries it.
    pub(crate) carrier: ShardHandle,
    /// Freed when the session has ended.
    pub(crate) lease: TsihLease,
    pub(crate) permit: Option<SessionPermit>,
    pub(crate) slot: CarrierSlot,
}

/// What a shard needs to carry a connection.
struct Cargo {
    stream: TcpStream,
    negotiated: Box<Negotiated>,
    input: Vec<u8>,
    output: Vec<u8>,
    limits: Limits,
    timeouts: Timeouts,
    directory: Arc<Directory>,
    budget: Budget,
    control: Arc<ConnectionControl>,
    admission: Admission,
    target: String,
    peer: SocketAddr,
}

/// A login response that is not taken within this time is given up.
const GREETING: Duration = Duration::from_secs(5);

/// Serves `arrival`, on the home shard of its target, until its session has ended.
pub(crate) async fn serve(state: Rc<ShardState>, arrival: Arrival) {
    let Some(session) = begin(&state, &arrival).await else {
        return;
    };
    let (carrier, home) = (arrival.carrier, state.index());
    let (target, peer) = (session.target.clone(), arrival.peer);
    let (initiator, tsih) = (&session.initiator, session.tsih);
    tracing::info!(initiator, target, %peer, tsih, carrier = carrier.index(), "session begins");
    let ending = Ending {
        state: Rc::clone(&state),
        session: Rc::clone(&session),
        _lease: arrival.lease,
        _permit: arrival.permit,
        _slot: arrival.slot,
    };
    let cargo = Cargo {
        stream: arrival.stream,
        negotiated: arrival.negotiated,
        input: arrival.input,
        output: arrival.output,
        limits: arrival.limits,
        timeouts: arrival.timeouts,
        directory: arrival.directory,
        budget: arrival.budget,
        control: Arc::clone(&session.control),
        admission: session.admission.clone(),
        target,
        peer,
    };
    let runner = Runner::new(Rc::clone(&state), session);
    if carrier.index() == home {
        carry(state, cargo, Route::Here(runner)).await;
    } else {
        let (requests, to_do) = batch::queue();
        let (done, ended) = batch::queue();
        let carried =
            carrier.post(move |state| carry(state, cargo, Route::between(requests, ended)));
        // When the carrier has stopped, so has the queue of requests.
        if let Err(error) = carried {
            tracing::warn!(%peer, %error, "a connection could not be carried");
        }
        runner.serve(to_do, done).await;
    }
    drop(ending);
}

/// Carries a connection to its end.
async fn carry(state: Rc<ShardState>, cargo: Cargo, route: Route) {
    let Cargo {
        admission,
        target,
        peer,
        control,
        directory,
        budget,
        timeouts,
        ..
    } = cargo;
    let initiator = admission.initiator.clone();
    let tsih = cargo.negotiated.tsih;
    let buffers = engine::World::buffers(state.world()).clone();
    let account = budget.open(&initiator, Arc::clone(&control));
    let gauge = Gauge::new(Arc::clone(&control));
    let progress = Progress::new(&buffers, timeouts, gauge, account);
    let connection = Connection::new(*cargo.negotiated, buffers, cargo.limits);
    let reason = match greet(cargo.stream, &cargo.output).await {
        Ok(stream) => {
            let pump = Pump {
                stream,
                connection,
                control,
                admission,
                target: target.clone(),
                state,
                directory,
                route,
                progress,
            };
            pump.run(&cargo.input).await
        }
        Err(error) => format!("the login response could not be sent: {error}"),
    };
    tracing::info!(initiator, target, %peer, tsih, reason, "session ends");
}

/// Ends its session when dropped: also when the connection's task is dropped
/// with its shard, or panics. Whoever waits for the session must hear of it.
struct Ending {
    state: Rc<ShardState>,
    session: Rc<Session>,
    _lease: TsihLease,
    _permit: Option<SessionPermit>,
    _slot: CarrierSlot,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.state.remove_session(&self.session);
        self.session.nexus.lost();
        self.session.end();
    }
}

/// Makes the session, after ending the one that it reinstates (RFC 7143 clause
/// 6.3.5): same initiator, same ISID, same target, same portal group. `None` when the
/// target went away meanwhile.
async fn begin(state: &Rc<ShardState>, arrival: &Arrival) -> Option<Rc<Session>> {
    let Arrival {
        negotiated,
        target,
        peer,
        ..
    } = arrival;
    let is_same = |session: &Session| {
        session.target == *target
            && session.initiator == negotiated.initiator
            && session.isid == negotiated.isid
            && session.admission.portal.portal_group == negotiated.portal_group
    };
    // Again until none is left: others may reinstate the same session at once.
    while state.close_sessions(Closing::Now, is_same).await > 0 {}
    if state.is_stopping() {
        return None;
    }
    let initiator = scsi::InitiatorPort::new(&negotiated.initiator, negotiated.isid);
    let nexus = state
        .target(target)?
        .connect(initiator, negotiated.portal_group);
    let shared = (&arrival.directory, &arrival.offload);
    let copier = SessionCopier::new(state, shared, negotiated.admission(), target);
    nexus.set_copier(Rc::new(copier));
    let session = Rc::new(Session::new(
        negotiated,
        target,
        *peer,
        arrival.carrier.index(),
        nexus,
        (now_unix_s(), world::real::now()),
    ));
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
    state.add_session(Rc::clone(&session));
    // What it was admitted by may be gone since. Whoever takes such away writes the
    // directory first, and then looks through the sessions.
    if !arrival.directory.admits(&session.admission, target) {
        state.remove_session(&session);
        session.end();
        return None;
    }
    Some(session)
}

async fn greet(stream: TcpStream, output: &[u8]) -> io::Result<tokio::net::TcpStream> {
    let mut stream = tokio::net::TcpStream::from_std(stream)?;
    timeout(GREETING, stream.write_all(output)).await??;
    Ok(stream)
}
