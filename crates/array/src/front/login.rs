//! Serves one connection from its first byte until it is at its shard.

use super::login_permits::LoginPermit;
use super::tsih::TsihLease;
use super::{Desk, SessionPermit, Tickets, discovery};
use crate::connection::{LoggedIn, serve as serve_on_shard};
use crate::stream::{Stream, read, write_all};
use crate::wake::{Clock, in_time};
use engine::World;
use iscsi::chap::{Account, Challenge, Chap};
use iscsi::login::{
    Login, LoginPortal, LoginProgress, Refusal, SessionKey, TargetDirectory, VisibleTarget,
};
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;

/// Bytes read at once; a login is a few hundred.
const RECEIVE_BYTES: usize = 16 << 10;

/// A peer may take this part of the time of a login for one request.
const REQUESTS_OF_A_LOGIN: u32 = 3;

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
    let directory = PermittingDirectory {
        desk,
        permit: Cell::default(),
    };
    let login = login(stream, (peer, local), lease.tsih(), &directory, own);
    let login = match in_time(&desk.clock, desk.limits.login_timeout, login).await {
        Some(Ok(login)) => login,
        Some(Err(reason)) => return tracing::info!(%peer, reason, "no login"),
        None => return tracing::info!(%peer, "no login: it took too long"),
    };
    match login.negotiated.target {
        Some(_) => move_home(login, lease, directory.permit.take(), desk),
        None => discover(login, desk).await,
    }
}

/// Moves a connection to the home shard of its target.
fn move_home<W: World, C: Clock, S: Stream>(
    login: LoggedIn<S>,
    lease: TsihLease,
    permit: Option<SessionPermit>,
    desk: &Desk<W, C>,
) {
    // The target may have gone since the login was admitted: the initiator sees
    // the connection close, and logs in again to hear why.
    let target = login.negotiated.target_name();
    let entry = desk.services.directory.target(target);
    let Some(home) = entry.and_then(|entry| desk.shards.get(entry.shard)) else {
        return;
    };
    let slot = desk.carrier_slots.take(home.index());
    let carrier = desk.shards[slot.carrier()].clone();
    let peer = login.peer;
    let login = match login.park() {
        Ok(login) => login,
        Err(error) => return tracing::warn!(%peer, %error, "a connection could not be moved"),
    };
    let tickets = Tickets {
        _lease: lease,
        _permit: permit,
        _slot: slot,
    };
    let services = Arc::clone(&desk.services);
    let visit = move |state| serve_on_shard::<W, S, _>(state, login, services, carrier, tickets);
    if let Err(error) = home.post(visit) {
        tracing::warn!(%peer, %error, "a connection could not be moved");
    }
}

/// Serves a discovery session to its end.
async fn discover<W: World, C: Clock, S: Stream>(mut login: LoggedIn<S>, desk: &Desk<W, C>) {
    let peer = login.peer;
    let session = async {
        send(&mut login.stream, &login.output).await?;
        let (directory, limits) = (&desk.services.directory, desk.limits.iscsi);
        let (stream, negotiated) = (login.stream, *login.negotiated);
        discovery::serve(stream, negotiated, &login.input, directory, limits).await
    };
    match in_time(&desk.clock, desk.limits.login_timeout, session).await {
        Some(Ok(reason) | Err(reason)) => tracing::debug!(%peer, reason, "discovery ends"),
        None => tracing::info!(%peer, "discovery cut: it took too long"),
    }
}

/// Takes requests until the login has succeeded, or failed for the reason that this gives.
async fn login<W: World, C: Clock, S: Stream>(
    mut stream: S,
    (peer, local): (SocketAddr, SocketAddr),
    tsih: u16,
    directory: &PermittingDirectory<'_, W, C>,
    own: &LoginPermit,
) -> Result<LoggedIn<S>, String> {
    let desk = directory.desk;
    let mut login = begin(local, tsih, desk)?;
    let (mut input, mut output) = (Vec::new(), Vec::new());
    let mut space = vec![0; RECEIVE_BYTES];
    let patience = desk.limits.login_timeout / REQUESTS_OF_A_LOGIN;
    let mut due = desk.clock.now() + patience;
    loop {
        let left = due.since(desk.clock.now());
        let came = read_more(&mut stream, &mut space, &mut input);
        let came = in_time(&desk.clock, left, came).await;
        came.unwrap_or_else(|| Err(format!("no whole request came for {patience:?}")))?;
        let progress = login.receive(&mut input, directory, &mut output);
        if login.has_proved() {
            own.keep();
        }
        if let LoginProgress::Done(negotiated) = progress {
            return Ok(LoggedIn {
                stream,
                peer,
                negotiated,
                since_unix_s: desk.surroundings.unix_s(),
                input,
                output,
            });
        }
        send(&mut stream, &output).await?;
        if let LoginProgress::Close { reason } = progress {
            return Err(reason);
        }
        if !output.is_empty() {
            due = desk.clock.now() + patience;
        }
        output.clear();
    }
}

/// Reads what comes behind `input`.
async fn read_more<S: Stream>(
    stream: &mut S,
    space: &mut [u8],
    input: &mut Vec<u8>,
) -> Result<(), String> {
    match read(stream, space).await {
        Ok(0) => Err("the initiator closed the connection".to_owned()),
        Ok(came) => {
            input.extend_from_slice(&space[..came]);
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

async fn send(stream: &mut impl Stream, output: &[u8]) -> Result<(), String> {
    let sent = write_all(stream, output).await;
    sent.map_err(|error| error.to_string())
}

/// A login that has not begun, with a challenge that nobody can foresee.
fn begin<W: World, C: Clock>(
    local: SocketAddr,
    tsih: u16,
    desk: &Desk<W, C>,
) -> Result<Login, String> {
    let directory = &desk.services.directory;
    let random = desk.surroundings.random();
    let chap = Chap {
        algorithms: directory.algorithms(),
        challenge: Challenge::from_random(random.map_err(|why| format!("no randomness: {why}"))?),
    };
    let portal = directory.portal_at(local);
    Ok(Login::new(portal, tsih, desk.limits.iscsi, chap))
}
