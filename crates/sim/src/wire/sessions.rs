//! The sessions of a host with a target, one after the other, and what lost ones have left.
//!
//! Invariant: what a lost session had under way is over for its host when somebody says so
//! ([`Sessions::bury`]): when there is a new session in its place, or can't be one.

use super::front::Front;
use super::login::{Identity, NoSession, Offer, login};
use super::network::{Pace, connect};
use super::path::{Outcome, Path};
use array::wake::in_time;
use base::Prng;
use engine::World;
use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

/// A login has an answer after this time.
const LOGIN_ANSWER_MAX: Duration = Duration::from_secs(60);

/// How long to wait before something is looked at again.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(crate) struct Sessions {
    path: RefCell<Option<Rc<Path>>>,
    is_logging_in: Cell<bool>,
    /// What ran when sessions were lost.
    orphans: RefCell<Vec<oneshot::Sender<Outcome>>>,
}

/// How a connection of a host is made, and where it comes from and goes to.
pub(crate) struct Connecting {
    pub(crate) host: usize,
    pub(crate) portal: SocketAddr,
    pub(crate) pace: Pace,
    pub(crate) offer: Offer,
}

impl Connecting {
    /// Tries to log in once. Says first whether the wire is slow.
    pub(crate) async fn log_in(
        &self,
        front: &Front,
        who: &Identity,
        prng: &RefCell<Prng>,
        is_slow: &Cell<bool>,
    ) -> Result<Rc<Path>, NoSession> {
        let (mut near, far) = connect(&front.world, &mut prng.borrow_mut(), self.pace);
        is_slow.set(near.wire().is_slow());
        front.accept(far, self.host, self.portal);
        // Another for each login.
        let mut prng = Prng::from_seed(prng.borrow_mut().next_u64());
        let logging_in = login(&mut near, who, (&mut prng, self.offer));
        match in_time(&front.world, LOGIN_ANSWER_MAX, logging_in).await {
            Some(agreed) => Ok(Path::new(near, agreed?)),
            None => Err(NoSession::Wrong("no answer to a login".to_owned())),
        }
    }
}

impl Sessions {
    /// Its session, if it has one.
    pub(crate) fn path(&self) -> Option<Rc<Path>> {
        self.path.borrow().clone().filter(|path| path.is_up())
    }

    /// Its session, after `log_in` where there is none: by one task at a time.
    pub(crate) async fn up(
        &self,
        front: &Front,
        log_in: impl AsyncFnOnce() -> Option<Rc<Path>>,
    ) -> Option<Rc<Path>> {
        while self.is_logging_in.get() {
            front.world.sleep(PAUSE).await;
        }
        if let Some(path) = self.path() {
            return Some(path);
        }
        self.is_logging_in.set(true);
        let path = log_in().await;
        self.is_logging_in.set(false);
        path
    }

    /// A session begins at `now`. What earlier ones left is over: whoever logs in again is told so
    /// when the old session has ended (clause 6.3.5).
    ///
    /// # Errors
    /// The old one goes on.
    pub(crate) fn begin(&self, front: &Front, path: &Rc<Path>, now: u64) -> Result<(), String> {
        let old = self.path.replace(Some(Rc::clone(path)));
        if let Some(old) = old {
            self.orphans.borrow_mut().extend(old.take_orphans());
        }
        self.bury(now);
        front.check_alone(path.agreed.tsih)
    }

    /// Has the session run until it is lost, and keeps what it leaves.
    ///
    /// # Errors
    /// The target has broken a rule.
    pub(crate) async fn run(&self, path: &Path) -> Result<(), String> {
        let ran = path.run().await;
        self.orphans.borrow_mut().extend(path.take_orphans());
        ran
    }

    /// What lost sessions have left is over.
    pub(crate) fn bury(&self, now: u64) {
        for orphan in self.orphans.take() {
            // Its host may have gone with the boot.
            let _ = orphan.send(Outcome::Over(now));
        }
    }
}
