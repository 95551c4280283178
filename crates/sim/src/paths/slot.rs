//! One way of a host to a target: it logs in there, again when its session is lost.

use super::access::{Attempt, Verdict};
use super::array::{Array, PORTALS};
use super::credential;
use super::host::Host;
use crate::wire::login::{Identity, NoSession, Offer};
use crate::wire::network::Pace;
use crate::wire::path::Path;
use crate::wire::sessions::{Connecting, PAUSE, Sessions};
use base::{Prng, Time};
use engine::World;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

/// A host that may log in has a session after this time at the latest.
const LOGIN_MAX: Duration = Duration::from_secs(100);

/// Statuses of logins (clause 11.13.5): the initiator's fault, and the target's.
const INITIATOR: u8 = 2;
const TARGET: u8 = 3;

/// And what of.
const WRONG_SECRET: u8 = 1;
const NOT_FOUND: u8 = 3;

/// How often it is looked whether a silent peer's session has ended, with commands that wait for
/// slow drives.
const NOTICED_MAX: u32 = 50;

pub(super) struct Slot {
    pub(super) host: Weak<Host>,
    array: Rc<Array>,
    pub(super) target: usize,
    who: Identity,
    portal: usize,
    prng: RefCell<Prng>,
    sessions: Sessions,
    /// The wire of its last login is slow.
    is_slow: Cell<bool>,
    /// Makes its ISID another one.
    turn: Cell<u8>,
    /// Nobody logs in before then.
    rests_until: Cell<Time>,
}

impl Slot {
    pub(super) fn new(
        host: Weak<Host>,
        array: &Rc<Array>,
        target: usize,
        who: Identity,
        portal: usize,
    ) -> Rc<Slot> {
        let name = format!("{} {} {portal} {target}", who.initiator, who.isid);
        Rc::new(Slot {
            host,
            array: Rc::clone(array),
            target,
            prng: RefCell::new(array.world.prng(&name)),
            who,
            portal,
            sessions: Sessions::default(),
            is_slow: Cell::new(false),
            turn: Cell::new(0),
            rests_until: Cell::default(),
        })
    }

    /// Its session, if it has one.
    pub(super) fn path(&self) -> Option<Rc<Path>> {
        self.sessions.path()
    }

    /// Its session, after a login where there is none. Nothing, where it may not log in.
    pub(super) async fn up(self: &Rc<Self>) -> Option<Rc<Path>> {
        let front = &self.array.front;
        self.sessions.up(front, async || self.log_in().await).await
    }

    async fn log_in(self: &Rc<Self>) -> Option<Rc<Path>> {
        let world = &self.array.world;
        while self.rests_until.get() > world.now() {
            world.sleep(PAUSE * 10).await;
        }
        let began = world.now();
        while self.array.goes_on() {
            let access = &self.array.books.access;
            let oldest = access.borrow().oldest();
            let (who, attempt) = self.own();
            let outcome = self.try_once(&who).await;
            self.judge(oldest, attempt, &outcome);
            let is_certain = access.borrow().is_as_at(oldest);
            match outcome {
                Ok(path) => {
                    self.begin(&path);
                    return Some(path);
                }
                Err(NoSession::Refused(INITIATOR, NOT_FOUND)) => return None,
                // It came with what was the secret just before, or is about to be.
                Err(NoSession::Refused(INITIATOR, WRONG_SECRET)) => {}
                Err(NoSession::Refused(TARGET, _)) => {}
                // A session is not begun whose admission is gone, or while the array stops.
                Err(NoSession::Lost)
                    if !is_certain || !self.may_log_in() || !self.array.goes_on() => {}
                Err(NoSession::Lost) if self.is_slow.get() => {}
                Err(error) => {
                    let may = self.may_log_in();
                    self.fail(&format!("may log in ({may}): {error:?}"));
                    return None;
                }
            }
            if world.now().since(began) > LOGIN_MAX {
                self.fail(&format!("could not log in for {LOGIN_MAX:?}"));
                return None;
            }
            let pause = Duration::from_nanos(self.prng.borrow_mut().below(500_000_000));
            world.sleep(pause).await;
        }
        None
    }

    /// A login that began when these were the oldest rules has to be explained by some since.
    fn judge(&self, oldest: usize, attempt: Attempt, outcome: &Result<Rc<Path>, NoSession>) {
        let verdict = match outcome {
            Ok(_) => Verdict::Admitted,
            Err(NoSession::Refused(INITIATOR, NOT_FOUND)) => Verdict::NotFound,
            Err(NoSession::Refused(INITIATOR, WRONG_SECRET)) => Verdict::WrongSecret,
            // Of other reasons, it says nothing of who may log in.
            Err(_) => return,
        };
        let mut access = self.array.books.access.borrow_mut();
        if let Err(what) = access.judge(oldest, attempt, verdict) {
            drop(access);
            self.fail(&format!("by no rules: {what}"));
        }
    }

    /// A login with a secret that is not the host's, or is not any more, has to be refused.
    pub(super) async fn log_in_wrongly(&self) {
        let (mut who, mut attempt) = self.own();
        who.isid = 0x77;
        let Some(wrong) = &mut who.credential else {
            return;
        };
        let access = &self.array.books.access;
        let oldest = access.borrow().oldest();
        let now = access.borrow().rules().hosts[attempt.host].secret;
        let before = now.and_then(|now| now.checked_sub(1));
        attempt.secret = before.filter(|_| self.prng.borrow_mut().chance(1, 2));
        match attempt.secret {
            Some(before) => *wrong = credential(attempt.host, before),
            None => wrong.secret = credential(attempt.host, u64::MAX).secret,
        }
        let outcome = self.try_once(&who).await;
        self.judge(oldest, attempt, &outcome);
        match outcome {
            Ok(_) => self.fail("logged in with a wrong secret"),
            Err(NoSession::Refused(INITIATOR, WRONG_SECRET | NOT_FOUND)) => {}
            Err(NoSession::Refused(TARGET, _)) => {}
            Err(error) => self.fail(&format!("with a wrong secret: {error:?}")),
        }
    }

    async fn try_once(&self, who: &Identity) -> Result<Rc<Path>, NoSession> {
        let connecting = Connecting {
            host: self.host_number(),
            portal: PORTALS[self.portal].into(),
            pace: Pace::Drawn,
            offer: Offer::Any,
        };
        let front = &self.array.front;
        let logged_in = connecting.log_in(front, who, &self.prng, &self.is_slow);
        logged_in.await
    }

    /// A session begins.
    fn begin(self: &Rc<Self>, path: &Rc<Path>) {
        self.note(&format!("has session {}", path.agreed.tsih));
        let now = self.array.books.tick();
        if let Err(what) = self.sessions.begin(&self.array.front, path, now) {
            self.array.books.fail(&self.array.world, what);
        }
        let (slot, path) = (Rc::clone(self), Rc::clone(path));
        self.array.world.spawn(async move {
            if let Err(why) = slot.sessions.run(&path).await {
                slot.fail(&why);
            }
            let why = path.dead.borrow().clone().unwrap_or_default();
            slot.note(&format!("has lost session {}: {why}", path.agreed.tsih));
            slot.mourn().await;
        });
    }

    /// Logs in again. A host that may not is rid of its sessions once that is settled.
    async fn mourn(self: &Rc<Self>) {
        // At once, too: while what the old session has begun still runs.
        let longest_ns = *self.prng.borrow_mut().pick(&[1, 1, 100_000, 5_000_000]);
        let pause = Duration::from_nanos(self.prng.borrow_mut().below(longest_ns));
        self.array.world.sleep(pause).await;
        while self.array.goes_on() && self.up().await.is_none() {
            let is_settled = self.array.books.access.borrow().is_settled();
            if is_settled && !self.may_log_in() {
                return self.sessions.bury(self.array.books.tick());
            }
            self.array.world.sleep(PAUSE).await;
        }
    }

    /// Its host goes without a word, and comes back with a new session: at once, or when the array
    /// should have noticed.
    pub(super) async fn vanish(&self) {
        let Some(path) = self.path() else {
            return;
        };
        let at_once = self.prng.borrow_mut().chance(1, 2);
        let world = &self.array.world;
        if !at_once {
            let rest = self.array.front.noticed_after * (NOTICED_MAX + 1);
            self.rests_until.set(world.now() + rest);
        }
        path.wire().vanish();
        path.die("its host has vanished");
        if at_once {
            return;
        }
        for _ in 0..NOTICED_MAX {
            world.sleep(self.array.front.noticed_after).await;
            if !self.array.front.has_session(path.agreed.tsih) {
                return self.rests_until.set(Time::default());
            }
        }
        self.fail("has a session still, and has long been silent");
    }

    /// Who it is: with another ISID in each turn, and its host's secret. While that changes, with
    /// either.
    fn own(&self) -> (Identity, Attempt) {
        let host = self.host_number();
        let access = self.array.books.access.borrow();
        let rules = match access.is_settled() || self.prng.borrow_mut().chance(1, 2) {
            true => access.rules(),
            false => access.coming(),
        };
        let secret = rules.hosts[host].secret;
        let mut who = self.who.clone();
        who.isid += self.turn.get() << 3;
        who.credential = secret.map(|number| credential(host, number));
        let attempt = Attempt {
            host,
            target: self.target,
            portal: self.portal,
            secret,
        };
        (who, attempt)
    }

    /// Logs out, and in again as somebody else for the target: what the session held is free.
    pub(super) async fn turn(self: &Rc<Self>) {
        if let Some(path) = self.path() {
            path.log_out().await;
        }
        self.turn.set((self.turn.get() + 1) % 8);
        if self.up().await.is_none() && self.array.goes_on() {
            self.fail("may log in, and has no session");
        }
    }

    /// Whether it may log in by the rules that were acknowledged.
    fn may_log_in(&self) -> bool {
        let access = self.array.books.access.borrow();
        let host = self.host_number();
        let attempt = Attempt {
            host,
            target: self.target,
            portal: self.portal,
            secret: access.rules().hosts[host].secret,
        };
        access.rules().verdict(attempt) == Verdict::Admitted
    }

    fn host_number(&self) -> usize {
        self.host.upgrade().map_or(0, |host| host.number)
    }

    fn note(&self, what: &str) {
        let Identity {
            initiator, isid, ..
        } = &self.who;
        let target = self.target;
        self.array
            .world
            .note(|| format!("{initiator}/{isid} at target {target} {what}"));
    }

    pub(super) fn fail(&self, what: &str) {
        let Identity {
            initiator, isid, ..
        } = &self.who;
        let target = self.target;
        let what = format!("{initiator}/{isid} at target {target}: {what}");
        self.array.books.fail(&self.array.world, what);
    }
}
