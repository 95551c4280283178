//! Serves one connection from its first byte until it is at its shard.

use super::login_permits::LoginPermit;
use super::{Desk, discovery};
use super::{SessionPermit, Tickets};
use crate::connection::{LoggedIn, serve as serve_on_shard};
use crate::directory::canonical;
use crate::stream::{Stream, read, write_all};
use crate::wake::{Clock, in_time};
use engine::World;
use iscsi::chap::{Account, Challenge, Chap};
use iscsi::login::{
    Login, LoginPortal, LoginProgress, Negotiated, Refusal, SessionKey, TargetDirectory,
    VisibleTarget,
};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Bytes read at once; a login is a few hundred.
const RECEIVE_BYTES: usize = 16 << 10;

/// A peer may take this part of the time of a login for one request.
const REQUESTS_OF_A_LOGIN: u32 = 3;

/// A login that has succeeded.
struct Agreed<S> {
    stream: S,
    negotiated: Box<Negotiated>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Of its session; none for discovery.
    permit: Option<SessionPermit>,
}

/// The directory as one login sees it: a session that is about to begin takes its permit.
struct PermittingDirectory<'a, W: World, C: Clock> {
    desk: &'a Desk<W, C>,
    permit: Cell<Option<SessionPermit>>,
}

impl<W: World, C: Clock> TargetDirectory for PermittingDirectory<'_, W, C> {
    fn admit(
        &self,
        initiator: &str,
        target: Option<&str>,
        portal: &LoginPortal,
    ) -> Result<Option<Arc<Account>>, Refusal> {
        let directory = &self.desk.services.directory;
        let needed = directory.admit(initiator, target, portal)?;
        Ok(needed.filter(|_| !self.desk.clock.planted("secret not asked for")))
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
        self.desk.services.directory.visible(initiator, portal)
    }
}

/// Takes the login of `stream`, and moves it to its shard or serves discovery.
pub(super) async fn serve<W: World, C: Clock, S: Stream>(
    stream: S,
    (peer, local): (SocketAddr, SocketAddr),
    desk: &Desk<W, C>,
    own: &LoginPermit,
) {
    let Some(lease) = desk.tsihs.lease() else {
        tracing::warn!(%peer, "turned away: there are too many sessions");
        return desk.turned_away.tell(&desk.clock, stream).await;
    };
    let limits = &desk.limits;
    let login = login(stream, local, lease.tsih(), desk, own);
    let agreed = match in_time(&desk.clock, limits.login_timeout, login).await {
        Some(Ok(agreed)) => agreed,
        Some(Err(reason)) => return tracing::info!(%peer, reason, "no login"),
        None => return tracing::info!(%peer, "no login: it took too long"),
    };
    let Some(target) = agreed.negotiated.target.as_deref().map(canonical) else {
        return discover(agreed, peer, desk).await;
    };
    // The target may have gone since the login was admitted: the initiator sees
    // the connection close, and logs in again to hear why.
    let entry = desk.services.directory.target(&target);
    let Some(home) = entry.and_then(|entry| desk.shards.get(entry.shard)) else {
        return;
    };
    let slot = desk.carrier_slots.take(home.index());
    let carrier = desk.shards[slot.carrier()].clone();
    // Takes the stream off this thread.
    let stream = match agreed.stream.park() {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%peer, %error, "a connection could not be moved"),
    };
    let login: LoggedIn<S> = LoggedIn {
        stream,
        peer,
        negotiated: agreed.negotiated,
        target,
        since_unix_s: desk.surroundings.unix_s(),
        input: agreed.input,
        output: agreed.output,
    };
    let tickets = Tickets {
        _lease: lease,
        _permit: agreed.permit,
        _slot: slot,
    };
    let services = Arc::clone(&desk.services);
    let moved = home.post(move |state| serve_on_shard(state, login, services, carrier, tickets));
    if let Err(error) = moved {
        tracing::warn!(%peer, %error, "a connection could not be moved");
    }
}

/// Serves a discovery session to its end.
async fn discover<W: World, C: Clock, S: Stream>(
    mut agreed: Agreed<S>,
    peer: SocketAddr,
    desk: &Desk<W, C>,
) {
    let session = async {
        let sent = write_all(&mut agreed.stream, &agreed.output).await;
        sent.map_err(|error| error.to_string())?;
        let (directory, limits) = (&desk.services.directory, desk.limits.iscsi);
        let Agreed {
            stream,
            negotiated,
            input,
            ..
        } = agreed;
        discovery::serve(stream, *negotiated, &input, directory, limits).await
    };
    match in_time(&desk.clock, desk.limits.login_timeout, session).await {
        Some(Ok(reason) | Err(reason)) => tracing::debug!(%peer, reason, "discovery ends"),
        None => tracing::info!(%peer, "discovery cut: it took too long"),
    }
}

async fn login<W: World, C: Clock, S: Stream>(
    mut stream: S,
    local: SocketAddr,
    tsih: u16,
    desk: &Desk<W, C>,
    login_permit: &LoginPermit,
) -> Result<Agreed<S>, String> {
    let said = |error: io::Error| error.to_string();
    let directory = &desk.services.directory;
    let random = desk.surroundings.random();
    let chap = Chap {
        algorithms: directory.algorithms(),
        challenge: Challenge::from_random(random.map_err(|why| format!("no randomness: {why}"))?),
    };
    let mut login = Login::new(directory.portal_at(local), tsih, desk.limits.iscsi, chap);
    let permitting = PermittingDirectory {
        desk,
        permit: Cell::default(),
    };
    let (mut input, mut output) = (Vec::new(), Vec::new());
    let mut space = vec![0; RECEIVE_BYTES];
    let patience = desk.limits.login_timeout / REQUESTS_OF_A_LOGIN;
    let mut due = desk.clock.now() + patience;
    loop {
        let left = due.since(desk.clock.now());
        let Some(came) = in_time(&desk.clock, left, read(&mut stream, &mut space)).await else {
            return Err(format!("no whole request came for {patience:?}"));
        };
        match came.map_err(said)? {
            0 => return Err("the initiator closed the connection".to_owned()),
            came => input.extend_from_slice(&space[..came]),
        }
        let progress = login.receive(&mut input, &permitting, &mut output);
        if login.has_proved() {
            login_permit.keep();
        }
        match progress {
            LoginProgress::More => {
                write_all(&mut stream, &output).await.map_err(said)?;
                if !output.is_empty() {
                    due = desk.clock.now() + patience;
                }
                output.clear();
            }
            LoginProgress::Done(negotiated) => {
                return Ok(Agreed {
                    stream,
                    negotiated,
                    input,
                    output,
                    permit: permitting.permit.take(),
                });
            }
            LoginProgress::Close { reason } => {
                write_all(&mut stream, &output).await.map_err(said)?;
                return Err(reason);
            }
        }
    }
}
