//! The sessions of a host with a target, one after the other.
//!
//! One that is lost is reinstated, at once or a little later. A session whose target is deleted has no
//! successor until there is a target with this name again.

use super::array::{Array, target_name};
use super::attention::Told;
use crate::control::PORTAL;
use crate::wire::login::{Identity, NoSession, Offer};
use crate::wire::network::Pace;
use crate::wire::path::Path;
use crate::wire::sessions::{Connecting, PAUSE, Sessions};
use base::Prng;
use engine::World;
use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::time::Duration;

/// Whoever may log in has a session after this time at the latest.
const LOGIN_MAX: Duration = Duration::from_secs(60);

/// A session that is lost has ended after this time, where nothing is slow: what waited for room
/// waits no more.
const LOSS_MAX: Duration = Duration::from_millis(1_500);

/// Statuses of logins (clause 11.13.5): there is no such target; it is the target's fault.
const NOT_FOUND: (u8, u8) = (2, 3);
const TARGET: u8 = 3;

/// One login in so many offers whatever an initiator may, where wires take no time.
const ANY_ONE_OF: u64 = 8;

pub(super) struct Slot {
    host: u64,
    pub(super) target: usize,
    array: Rc<Array>,
    sessions: Sessions,
    prng: RefCell<Prng>,
    is_slow: Cell<bool>,
    /// By unit of the run.
    told: Vec<RefCell<Told>>,
}

impl Slot {
    pub(super) fn new(host: u64, array: &Rc<Array>, target: usize) -> Rc<Slot> {
        Rc::new(Slot {
            host,
            target,
            array: Rc::clone(array),
            sessions: Sessions::default(),
            prng: RefCell::new(array.world.prng(&format!("host {host} at {target}"))),
            is_slow: Cell::new(false),
            told: array
                .books
                .units
                .iter()
                .map(|_| RefCell::default())
                .collect(),
        })
    }

    /// The attentions at one of its units.
    pub(super) fn told(&self, unit: usize) -> RefMut<'_, Told> {
        self.told[unit].borrow_mut()
    }

    /// Its session, if it has one.
    pub(super) fn path(&self) -> Option<Rc<Path>> {
        self.sessions.path()
    }

    /// Its session, after a login where there is none. Nothing where there is no target. One that is
    /// asked to leave does so, or lets itself be closed.
    pub(super) async fn up(self: &Rc<Self>) -> Option<Rc<Path>> {
        let front = &self.array.front;
        let path = self
            .sessions
            .up(front, async || self.log_in().await)
            .await?;
        if path.is_asked_to_leave.get() && self.prng.borrow_mut().chance(1, 2) {
            path.log_out().await;
            return self.sessions.up(front, async || self.log_in().await).await;
        }
        Some(path)
    }

    async fn log_in(self: &Rc<Self>) -> Option<Rc<Path>> {
        let world = &self.array.world;
        let began = world.now();
        while self.array.goes_on() {
            let (upsets, is_shown) = (self.array.books.upsets(), self.array.is_shown(self.target));
            let tried = world.now();
            let outcome = self.try_once().await;
            let now = (self.array.books.upsets(), self.array.is_shown(self.target));
            let is_shown = is_shown.filter(|_| now == (upsets, is_shown));
            if let Some(path) = self.judge(outcome, is_shown)? {
                self.check_time(world.now().since(tried));
                self.begin(&path);
                return Some(path);
            }
            if world.now().since(began) > LOGIN_MAX {
                self.fail(&format!("could not log in for {LOGIN_MAX:?}"));
                return None;
            }
            let pause = Duration::from_nanos(self.prng.borrow_mut().below(500_000));
            world.sleep(pause).await;
        }
        None
    }

    /// What a login has come to, when the target is there, or not, for certain: a session; or none yet,
    /// or none at all.
    fn judge(
        &self,
        outcome: Result<Rc<Path>, NoSession>,
        is_shown: Option<bool>,
    ) -> Option<Option<Rc<Path>>> {
        let wrong = match outcome {
            Ok(path) if is_shown != Some(false) => return Some(Some(path)),
            Ok(_) => "has a session with a target that is not there".to_owned(),
            Err(NoSession::Refused(class, detail)) if (class, detail) == NOT_FOUND => {
                if is_shown != Some(true) {
                    return None;
                }
                "is told that its target is not there".to_owned()
            }
            // The old session holds its place until it has ended; the target may have gone since.
            Err(NoSession::Refused(TARGET, _) | NoSession::Lost) => return Some(None),
            Err(error) => format!("logging in: {error:?}"),
        };
        self.fail(&wrong);
        None
    }

    async fn try_once(&self) -> Result<Rc<Path>, NoSession> {
        let who = Identity {
            initiator: format!("iqn.2026-11.sim:h{}", self.host),
            isid: 1,
            target: target_name(self.target),
            credential: None,
        };
        let pace = self.array.books.pace;
        let is_any = pace == Pace::Drawn || self.prng.borrow_mut().chance(1, ANY_ONE_OF);
        let connecting = Connecting {
            host: self.host as usize,
            portal: PORTAL.into(),
            pace,
            offer: if is_any { Offer::Any } else { Offer::Long },
        };
        let front = &self.array.front;
        let logged_in = connecting.log_in(front, &who, &self.prng, &self.is_slow);
        logged_in.await
    }

    /// A login waits for the session that it reinstates, whose commands wait for nothing more.
    fn check_time(&self, took: Duration) {
        let is_quick = self.array.books.victims.is_empty() && !self.is_slow.get();
        if is_quick && took > LOSS_MAX {
            self.fail(&format!("a lost session goes on for {took:?}"));
        }
    }

    fn begin(self: &Rc<Self>, path: &Rc<Path>) {
        self.note(&format!("has session {}", path.agreed.tsih));
        let now = self.array.books.tick();
        for unit in self.array.books.units_at(self.target) {
            self.told(unit.number).session_begins(now);
        }
        if let Err(what) = self.sessions.begin(&self.array.front, path, now) {
            self.array.fail(what);
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

    /// Logs in again. A target that is deleted has ended all of its sessions.
    async fn mourn(self: &Rc<Self>) {
        // At once, too: while what the old session has begun still runs.
        let pause = {
            let mut prng = self.prng.borrow_mut();
            let longest_ns = *prng.pick(&[1, 1, 100_000]);
            Duration::from_nanos(prng.below(longest_ns))
        };
        self.array.world.sleep(pause).await;
        while self.array.goes_on() && self.up().await.is_none() {
            if self.array.is_shown(self.target) == Some(false) {
                break;
            }
            self.array.world.sleep(PAUSE).await;
        }
        if self.path().is_none() {
            self.sessions.bury(self.array.books.tick());
        }
    }

    fn note(&self, what: &str) {
        let (host, target) = (self.host, self.target);
        self.array
            .world
            .note(|| format!("host {host} at target {target} {what}"));
    }

    fn fail(&self, what: &str) {
        let (host, target) = (self.host, self.target);
        self.array
            .fail(format!("host {host} at target {target}: {what}"));
    }
}
