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
use tokio::io::AsyncWriteExt;

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

/// Serves `arrival` until its session has ended.
pub(crate) async fn serve(state: Rc<ShardState>, arrival: Arrival) {
    let Some(session) = begin(&state, &arrival).await else {
        return;
    };
    let Arrival {
        stream,
        peer,
        negotiated,
        input,
        output,
        limits,
        directory,
        lease,
        ..
    } = arrival;
    tracing::info!(
        initiator = session.initiator,
        target = session.target,
        %peer,
        tsih = session.tsih,
        "session begins"
    );
    let buffers = engine::World::buffers(state.world()).clone();
    let connection = Connection::new(*negotiated, buffers, limits);
    let reason = match greet(stream, &output).await {
        Ok(stream) => {
            Pump::new(stream, connection, Rc::clone(&session), &state, directory)
                .run(&input)
                .await
        }
        Err(error) => format!("the login response could not be sent: {error}"),
    };
    tracing::info!(
        initiator = session.initiator,
        target = session.target,
        %peer,
        tsih = session.tsih,
        reason,
        "session ends"
    );
    state.remove_session(&session);
    session.end();
    drop(lease);
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
    stream.write_all(output).await?;
    Ok(stream)
}
