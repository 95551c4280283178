//! Limits connections to the API: their number, the share of each user, and their time.
//!
//! A user who can connect can also hold a connection open without sending a request. So each user
//! has permits of their own, and the head of a request has to come within a time. Other users cannot
//! take the permits that the administrators of the array need.
//!
//! Invariants:
//! - There are [`ALL_MAX`] connections at most. One more of a user who has all their permits is
//!   closed at once.
//! - A connection that is idle, or whose request does not come, ends after [`HEAD_TIME`]; one whose
//!   answer is not taken, after [`ANSWER_TIME`].
//! - A stop waits for requests that are being carried out. It waits for no head and no body that
//!   has not come: nothing of such a request is done.

mod stage;

use super::ApiListener;
use super::caller::{Caller, Standing};
use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use stage::{Awaited, Stage};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_io_timeout::TimeoutStream;

/// Permits of root, and as many of the user that the server runs as.
const ADMINISTRATOR_SEATS: usize = 20;
/// Permits of each member of the socket's group.
const MEMBER_SEATS: usize = 8;
/// Permits of all members of the socket's group together.
const MEMBERS_SEATS: usize = 16;
/// Permits of all those who are only told that they may not ask.
const STRANGERS_SEATS: usize = 8;
/// All permits.
pub(crate) const ALL_MAX: usize = 2 * ADMINISTRATOR_SEATS + MEMBERS_SEATS + STRANGERS_SEATS;

/// The head of a request has so long to come, from the end of the one before it on.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// What has been answered has so long to go out when the server stops.
const LAST_BYTES: Duration = Duration::from_secs(1);

/// A caller has to take some of its answer in so long.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// How long to wait when the system has no connection for us, as when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The connections of each standing.
#[derive(Clone, Debug, Default)]
struct ConnectionPermits(Arc<Mutex<BTreeMap<Standing, usize>>>);

/// A permit that is free again when this is dropped.
#[derive(Debug)]
struct ConnectionPermit {
    permits: ConnectionPermits,
    standing: Standing,
}

impl ConnectionPermits {
    // Whoever panicked with this lock held has left whole numbers behind.
    fn taken(&self) -> MutexGuard<'_, BTreeMap<Standing, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for somebody of this standing; none when all of theirs are taken.
    fn take(&self, standing: Standing) -> Option<ConnectionPermit> {
        let mut taken = self.taken();
        let of_members = |(standing, count): (&Standing, &usize)| match standing {
            Standing::Member(_) => *count,
            _ => 0,
        };
        let members: usize = taken.iter().map(of_members).sum();
        let own = taken.entry(standing).or_default();
        let is_free = match standing {
            Standing::Administrator(_) => *own < ADMINISTRATOR_SEATS,
            Standing::Member(_) => *own < MEMBER_SEATS && members < MEMBERS_SEATS,
            Standing::Stranger => *own < STRANGERS_SEATS,
        };
        if !is_free {
            return None;
        }
        *own += 1;
        drop(taken);
        let permits = self.clone();
        Some(ConnectionPermit { permits, standing })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = self.permits.taken();
        if let Some(own) = taken.get_mut(&self.standing) {
            *own -= 1;
        }
        taken.retain(|_, count| *count > 0);
    }
}

/// Answers requests on `listener` until `stop` ends, and then those under way.
pub(super) async fn serve(listener: &ApiListener, router: Router, stop: impl Future<Output = ()>) {
    let permits = ConnectionPermits::default();
    let (stopping, stopped) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut stop = pin!(stop);
    let mut is_full = false;
    loop {
        let accepted = tokio::select! {
            accepted = accept(listener) => accepted,
            Some(_) = open.join_next() => continue,
            () = &mut stop => break,
        };
        let (stream, caller) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("the API can't take a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(permit) = permits.take(caller.standing()) else {
            if !std::mem::replace(&mut is_full, true) {
                tracing::warn!(
                    "{caller} has all connections to the API that there are for them: more are closed"
                );
            }
            continue;
        };
        is_full = false;
        open.spawn(converse(
            stream,
            caller,
            router.clone(),
            stopped.clone(),
            permit,
        ));
    }
    // Nobody may be there any more.
    let _ = stopping.send(true);
    while open.join_next().await.is_some() {}
}

/// The bytes of a connection.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn accept(listener: &ApiListener) -> io::Result<(Box<dyn Stream>, Caller)> {
    Ok(match listener {
        ApiListener::Tcp(listener) => {
            let (stream, peer) = listener.accept().await?;
            let caller = Caller::of(peer, stream.local_addr().ok());
            (Box::new(stream), caller)
        }
        ApiListener::Unix(listener, _) => {
            let (stream, _) = listener.accept().await?;
            let caller = Caller::at_socket(stream.peer_cred().ok());
            (Box::new(stream), caller)
        }
    })
}

/// Answers what comes by a connection, until it ends, is idle for too long, or the server stops.
async fn converse(
    stream: Box<dyn Stream>,
    caller: Caller,
    router: Router,
    mut stopped: watch::Receiver<bool>,
    _permit: ConnectionPermit,
) {
    let router = TowerToHyperService::new(router);
    let (stage, mut reached) = watch::channel(Stage::Unasked);
    let stage = Arc::new(stage);
    let service = service_fn(|request: Request<Incoming>| {
        Stage::UnderWay.reach(&stage);
        let told = Arc::clone(&stage);
        let mut request = request.map(|body| Awaited { body, stage: told });
        request.extensions_mut().insert(ConnectInfo(caller));
        let (answer, stage) = (router.call(request), &stage);
        async move {
            let answer = answer.await;
            Stage::Answered.reach(stage);
            answer
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new());
    http.header_read_timeout(HEAD_TIME);
    // A stranger is told once.
    http.keep_alive(caller.is_ours());
    let stopping = async move {
        // Nobody may be there any more to say so.
        drop(stopped.wait_for(|stopped| *stopped).await);
    };
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(ANSWER_TIME));
    let stream = TokioIo::new(Box::pin(stream));
    let mut connection = pin!(http.serve_connection(stream, service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping => {
            connection.as_mut().graceful_shutdown();
            last_words(connection, &mut reached).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("{caller}: the connection to the API ended: {error}");
    }
}

/// Waits for a connection when the server stops: for a request that is being carried out, and for
/// an answer that goes out. A request of which a part has not come is dropped.
async fn last_words<E>(
    mut connection: Pin<&mut impl Future<Output = Result<(), E>>>,
    reached: &mut watch::Receiver<Stage>,
) -> Result<(), E> {
    loop {
        let stage = *reached.borrow_and_update();
        let patience = async {
            match stage {
                Stage::Unasked | Stage::Incomplete => {}
                Stage::UnderWay => std::future::pending().await,
                Stage::Answered => sleep(LAST_BYTES).await,
            }
        };
        tokio::select! {
            biased;
            ended = connection.as_mut() => return ended,
            Ok(()) = reached.changed() => {}
            () = patience => return Ok(()),
        }
    }
}

#[cfg(test)]
mod stopping;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_the_permits_of_others() {
        let permits = ConnectionPermits::default();
        let all = |standing| {
            let taken: Vec<ConnectionPermit> =
                std::iter::from_fn(|| permits.take(standing)).collect();
            taken
        };
        let strangers = all(Standing::Stranger);
        assert_eq!(strangers.len(), STRANGERS_SEATS);
        let one = all(Standing::Member(1000));
        let other = all(Standing::Member(1001));
        assert_eq!((one.len(), other.len()), (MEMBER_SEATS, MEMBER_SEATS));
        assert_eq!(all(Standing::Member(1002)).len(), 0, "members share theirs");
        let root = all(Standing::Administrator(0));
        let own = all(Standing::Administrator(998));
        assert_eq!(
            (root.len(), own.len()),
            (ADMINISTRATOR_SEATS, ADMINISTRATOR_SEATS)
        );
        let all = [strangers, one, other, root, own];
        assert_eq!(all.iter().map(Vec::len).sum::<usize>(), ALL_MAX);
    }

    #[test]
    fn a_permit_is_free_again_when_its_connection_ends() {
        let permits = ConnectionPermits::default();
        let mut taken: Vec<ConnectionPermit> =
            std::iter::from_fn(|| permits.take(Standing::Stranger)).collect();
        taken.pop();
        assert!(permits.take(Standing::Stranger).is_some());
        taken.clear();
        assert!(permits.taken().is_empty());
    }
}
