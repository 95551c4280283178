//! One way of a host to a target: it logs in there, again when its session is lost.

use super::access::{Attempt, Verdict};
use super::array::Array;
use super::credential;
use super::host::Host;
use crate::wire::login::{Identity, NoSession, login};
use crate::wire::network::connect;
use crate::wire::path::{Outcome, Path};
use array::wake::in_time;
use base::{Prng, Time};
use engine::World;
use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

/// A host that may log in has a session after this time at the latest.
const LOGIN_MAX: Duration = Duration::from_secs(100);

/// And one login has an answer.
const LOGIN_ANSWER_MAX: Duration = Duration::from_secs(60);

/// Statuses of logins (clause 11.13.5): the initiator's fault, and the target's.
const INITIATOR: u8 = 2;
const TARGET: u8 = 3;

/// And what of.
const WRONG_SECRET: u8 = 1;
const NOT_FOUND: u8 = 3;

/// How often it is looked whether a silent peer's session has ended, with commands that wait for
/// slow drives.
const NOTICED_MAX: u32 = 50;

/// How long to wait before something is tried again.
const PAUSE: Duration = Duration::from_millis(1);

pub(super) struct Slot {
    pub(super) host: Weak<Host>,
    array: Rc<Array>,
    pub(super) target: usize,
    who: Identity,
    portal: usize,
    prng: RefCell<Prng>,
    path: RefCell<Option<Rc<Path>>>,
    is_logging_in: Cell<bool>,
    /// The wire of its last login is slow.
    is_slow: Cell<bool>,
    /// Makes its ISID another one.
    turn: Cell<u8>,
    /// What ran when sessions were lost.
    orphans: RefCell<Vec<oneshot::Sender<Outcome>>>,
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
            path: RefCell::default(),
            is_logging_in: Cell::new(false),
            is_slow: Cell::new(false),
            turn: Cell::new(0),
            orphans: RefCell::default(),
            rests_until: Cell::default(),
        })
    }

    /// Its session, if it has one.
    pub(super) fn path(&self) -> Option<Rc<Path>> {
        self.path.borrow().clone().filter(|path| path.is_up())
    }

    /// Its session, after a login where there is none. Nothing, where it may not log in.
    pub(super) async fn up(self: &Rc<Self>) -> Option<Rc<Path>> {
        while self.is_logging_in.get() {
            self.array.world.sleep(PAUSE).await;
        }
        if let Some(path) = self.path() {
            return Some(path);
        }
        self.is_logging_in.set(true);
        let path = self.log_in().await;
        self.is_logging_in.set(false);
        path
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
        let array = &self.array;
        let (mut near, far) = connect(&array.world, &mut self.prng.borrow_mut());
        self.is_slow.set(near.wire().is_slow());
        array.accept(far, self.host_number(), self.portal);
        // Another for each login.
        let mut prng = Prng::from_seed(self.prng.borrow_mut().next_u64());
        let logging_in = login(&mut near, who, &mut prng);
        match in_time(&array.world, LOGIN_ANSWER_MAX, logging_in).await {
            Some(agreed) => Ok(Path::new(near, agreed?)),
            None => Err(NoSession::Wrong("no answer to a login".to_owned())),
        }
    }

    /// A session begins. What earlier ones left is over: whoever logs in again is told so when the
    /// old session has ended (clause 6.3.5).
    fn begin(self: &Rc<Self>, path: &Rc<Path>) {
        self.note(&format!("has session {}", path.agreed.tsih));
        self.array.check_alone(path.agreed.tsih);
        self.path.replace(Some(Rc::clone(path)));
        self.bury();
        let (slot, path) = (Rc::clone(self), Rc::clone(path));
        self.array.world.spawn(async move {
            if let Err(why) = path.run().await {
                slot.fail(&why);
            }
            let why = path.dead.borrow().clone().unwrap_or_default();
            slot.note(&format!("has lost session {}: {why}", path.agreed.tsih));
            slot.orphans.borrow_mut().extend(path.take_orphans());
            slot.mourn().await;
        });
    }

    /// What lost sessions have left is over.
    fn bury(&self) {
        let now = self.array.books.tick();
        for orphan in self.orphans.take() {
            // Its host may have gone with the boot.
            let _ = orphan.send(Outcome::Over(now));
        }
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
                return self.bury();
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
            let rest = self.array.noticed_after() * (NOTICED_MAX + 1);
            self.rests_until.set(world.now() + rest);
        }
        path.wire().vanish();
        path.die("its host has vanished");
        if at_once {
            return;
        }
        for _ in 0..NOTICED_MAX {
            world.sleep(self.array.noticed_after()).await;
            if !self.array.has_session(path.agreed.tsih) {
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
