//! A connection in full-feature phase, on the shard of its target.
//!
//! Invariants:
//! - A command that has begun runs to its end, whether or not anybody waits for
//!   its answer; the session ends only after that. So no write of a dead
//!   session lands after a new session of the same initiator has begun.
//! - What a peer can make a connection hold is bounded: input is not read while
//!   much output waits, and commands do not begin while those before them hold
//!   [`tasks::IN_FLIGHT_BYTES_MAX`].

mod management;
mod pump;
mod tasks;

use crate::directory::Directory;
use crate::front::TsihLease;
use crate::shard::ShardState;
use crate::shard::session::{Closing, Session};
use iscsi::connection::Connection;
use iscsi::login::{Limits, Negotiated};
use pump::Pump;
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
    pub(crate) directory: Arc<Directory>,
    /// Freed when the session has ended.
    pub(crate) lease: TsihLease,
}

/// A login response that is not taken within this time is given up.
const GREETING: Duration = Duration::from_secs(5);

/// Serves `arrival` until its session has ended.
pub(crate) async fn serve(state: Rc<ShardState>, arrival: Arrival) {
    let Some(session) = begin(&state, &arrival).await else {
        return;
    };
    let Session {
        initiator,
        target,
        peer,
        tsih,
        ..
    } = &*session;
    tracing::info!(initiator, target, %peer, tsih, "session begins");
    let ending = Ending {
        state: Rc::clone(&state),
        session: Rc::clone(&session),
        _lease: arrival.lease,
    };
    let buffers = engine::World::buffers(state.world()).clone();
    let connection = Connection::new(*arrival.negotiated, buffers, arrival.limits);
    let reason = match greet(arrival.stream, &arrival.output).await {
        Ok(stream) => {
            let session = Rc::clone(&session);
            let pump = Pump::new(stream, connection, session, &state, arrival.directory);
            pump.run(&arrival.input).await
        }
        Err(error) => format!("the login response could not be sent: {error}"),
    };
    tracing::info!(initiator, target, %peer, tsih, reason, "session ends");
    drop(ending);
}

/// Ends its session when dropped: also when the connection's task is dropped
/// with its shard, or panics. Whoever waits for the session must hear of it.
struct Ending {
    state: Rc<ShardState>,
    session: Rc<Session>,
    _lease: TsihLease,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.state.remove_session(&self.session);
        self.session.end();
    }
}

/// Makes the session, after ending the one that it reinstates (RFC 7143 clause
/// 6.3.5): same initiator, same ISID, same target. `None` when the target went
/// away meanwhile.
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
    };
    // Again until none is left: others may reinstate the same session at once.
    while state.close_sessions(Closing::Now, is_same).await > 0 {}
    if state.is_stopping() {
        return None;
    }
    let nexus = state.target(target)?.connect();
    let session = Rc::new(Session::new(negotiated, target, *peer, nexus));
    state.add_session(Rc::clone(&session));
    Some(session)
}

async fn greet(stream: TcpStream, output: &[u8]) -> io::Result<tokio::net::TcpStream> {
    let mut stream = tokio::net::TcpStream::from_std(stream)?;
    timeout(GREETING, stream.write_all(output)).await??;
    Ok(stream)
}
