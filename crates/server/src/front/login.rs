//! Serves one connection from its first byte until it is at its shard.

use super::login_permits::LoginPermit;
use super::{Desk, discovery, turned_away};
use crate::connection::{Arrival, serve as serve_on_shard};
use crate::directory::canonical;
use crate::front::SessionPermit;
use iscsi::chap::{Account, Challenge, Chap, RANDOM_BYTES};
use iscsi::login::{
    Login, LoginPortal, LoginProgress, Negotiated, Refusal, SessionKey, TargetDirectory,
    VisibleTarget,
};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes read at once; a login is a few hundred.
const RECEIVE_BYTES: usize = 16 << 10;

/// A peer may take this part of the time of a login for one request.
const REQUESTS_OF_A_LOGIN: u32 = 3;

/// A connection in full-feature phase, with bytes on their way in and out.
struct LoggedIn {
    stream: TcpStream,
    negotiated: Box<Negotiated>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Of its session; none for discovery.
    permit: Option<SessionPermit>,
}

/// The directory as one login sees it: a session that is about to begin takes its permit.
struct Gate<'a> {
    desk: &'a Desk,
    permit: Cell<Option<SessionPermit>>,
}

impl TargetDirectory for Gate<'_> {
    fn admit(
        &self,
        initiator: &str,
        target: Option<&str>,
        portal: &LoginPortal,
    ) -> Result<Option<Arc<Account>>, Refusal> {
        self.desk.directory.admit(initiator, target, portal)
    }

    fn take_permit(&self, session: SessionKey<'_>) -> Result<(), Refusal> {
        if session.target.is_some() {
            let permit = self.desk.session_permits.take(session);
            self.permit
                .set(Some(permit.ok_or(Refusal::OutOfResources)?));
        }
        Ok(())
    }

    fn visible(&self, initiator: &str, portal: &LoginPortal) -> Vec<VisibleTarget> {
        self.desk.directory.visible(initiator, portal)
    }
}

/// Takes the login of `stream`, and moves it to its shard or serves discovery.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, desk: &Desk, own: &LoginPermit) {
    let Some(lease) = desk.tsihs.lease() else {
        tracing::warn!(%peer, "turned away: there are too many sessions");
        return turned_away::tell(stream).await;
    };
    let login = login(stream, lease.tsih(), desk, own);
    let logged_in = match timeout(desk.limits.login_timeout, login).await {
        Ok(Ok(logged_in)) => logged_in,
        Ok(Err(reason)) => return tracing::info!(%peer, reason, "no login"),
        Err(_) => return tracing::info!(%peer, "no login: it took too long"),
    };
    let LoggedIn {
        mut stream,
        negotiated,
        input,
        output,
        permit,
    } = logged_in;
    let Some(target) = negotiated.target.as_deref().map(canonical) else {
        let limits = &desk.limits;
        let session = async {
            let sent = stream.write_all(&output).await;
            sent.map_err(|error| error.to_string())?;
            discovery::serve(stream, *negotiated, &input, &desk.directory, limits.iscsi).await
        };
        match timeout(limits.login_timeout, session).await {
            Ok(Ok(reason)) | Ok(Err(reason)) => tracing::debug!(%peer, reason, "discovery ends"),
            Err(_) => tracing::info!(%peer, "discovery cut: it took too long"),
        }
        return;
    };
    // Deregisters the socket from this thread's event loop.
    let stream = match stream.into_std() {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%peer, %error, "a connection could not be moved"),
    };
    let (limits, timeouts) = (desk.limits.iscsi, desk.limits.timeouts);
    let entry = desk.directory.target(&target);
    let shard = entry.and_then(|entry| desk.shards.get(entry.shard));
    // The target may have gone since the login was admitted: the initiator sees
    // the connection close, and logs in again to hear why.
    if let Some(shard) = shard {
        let slot = desk.carrier_slots.take(shard.index());
        let carrier = desk.shards[slot.carrier()].clone();
        let (directory, budget) = (Arc::clone(&desk.directory), desk.budget.clone());
        let arrival = Arrival {
            stream,
            peer,
            negotiated,
            target,
            input,
            output,
            limits,
            timeouts,
            directory,
            offload: Arc::clone(&desk.offload),
            budget,
            carrier,
            lease,
            permit,
            slot,
        };
        if let Err(error) = shard.post(move |state| serve_on_shard(state, arrival)) {
            tracing::warn!(%peer, %error, "a connection could not be moved");
        }
    }
}

async fn login(
    mut stream: TcpStream,
    tsih: u16,
    desk: &Desk,
    login_permit: &LoginPermit,
) -> Result<LoggedIn, String> {
    let said = |error: io::Error| error.to_string();
    stream.set_nodelay(true).map_err(said)?;
    let address = stream.local_addr().map_err(said)?;
    let portal = desk.directory.portal_at(address);
    let chap = Chap {
        algorithms: desk.directory.algorithms(),
        challenge: challenge().map_err(|error| format!("no randomness: {error}"))?,
    };
    let mut login = Login::new(portal, tsih, desk.limits.iscsi, chap);
    let gate = Gate {
        desk,
        permit: Cell::default(),
    };
    let (mut input, mut output) = (Vec::new(), Vec::new());
    let patience = desk.limits.login_timeout / REQUESTS_OF_A_LOGIN;
    let mut due = Instant::now() + patience;
    loop {
        input.reserve(RECEIVE_BYTES);
        let Ok(read) = timeout_at(due, stream.read_buf(&mut input)).await else {
            return Err(format!("no whole request came for {patience:?}"));
        };
        if read.map_err(said)? == 0 {
            return Err("the initiator closed the connection".to_owned());
        }
        let progress = login.receive(&mut input, &gate, &mut output);
        if login.has_proved() {
            login_permit.keep();
        }
        match progress {
            LoginProgress::More => {
                stream.write_all(&output).await.map_err(said)?;
                if !output.is_empty() {
                    due = Instant::now() + patience;
                }
                output.clear();
            }
            LoginProgress::Done(negotiated) => {
                return Ok(LoggedIn {
                    stream,
                    negotiated,
                    input,
                    output,
                    permit: gate.permit.take(),
                });
            }
            LoginProgress::Close { reason } => {
                stream.write_all(&output).await.map_err(said)?;
                return Err(reason);
            }
        }
    }
}

/// What nobody can foresee, and no other login has.
fn challenge() -> Result<Challenge, getrandom::Error> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random)?;
    Ok(Challenge::from_random(random))
}
