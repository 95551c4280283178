//! A session as its shard keeps it: names, counters, and ways to reach its connection.

use super::tally::{Tally, Totals};
use super::watch::Watch;
use crate::wake::Wake;
use base::{Time, Uuid};
use engine::World;
use event_listener::Event;
use futures_channel::oneshot;
use iscsi::login::{Admission, Negotiated};
use scsi::Nexus;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A session at a glance, for the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Target session identifying handle: unique among the sessions of the server.
    pub tsih: u16,
    /// Name of the initiator.
    pub initiator: String,
    /// Alias that the initiator gave.
    pub initiator_alias: Option<String>,
    /// Name of the target.
    pub target: String,
    /// Where the initiator connects from.
    pub peer: SocketAddr,
    /// Tag of the portal group that it logged in through.
    pub portal_group: u16,
    /// Address of the portal.
    pub portal: SocketAddr,
    /// The CHAP name that it has proved, if it had to.
    pub chap_name: Option<String>,
    /// Index of the shard that carries its connection.
    pub carrier: usize,
    /// When it logged in, in seconds since 1970.
    pub since_unix_s: u64,
    /// Commands of any kind that have ended since the login, whatever became of them.
    pub commands: u64,
    /// READ commands that have ended well since the login.
    pub reads: u64,
    /// WRITE commands that have ended well, with WRITE AND VERIFY, WRITE ATOMIC and ORWRITE.
    pub writes: u64,
    /// Bytes of data-in sent.
    pub read_bytes: u64,
    /// Bytes of data-out taken.
    pub written_bytes: u64,
    /// Commands in flight now.
    pub in_flight: u64,
}

/// Which tasks are to be aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of one logical unit.
    Unit(u16),
    /// All.
    All,
}

/// How a session is closed by others.
/// In the order of their urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closing {
    /// The initiator is asked to log out. When it does not, within a bound, it is closed
    /// as by `Drain`.
    Logout,
    /// What runs is answered, within a bound.
    Drain,
    /// Nothing is sent any more.
    Now,
}

/// Asks a connection to abort tasks. `done` hears how many there were, once
/// none of them is running any more.
pub struct AbortRequest {
    pub scope: Scope,
    pub done: oneshot::Sender<usize>,
}

impl AbortRequest {
    /// For one task, with the end that hears of it.
    pub fn of_one() -> (Self, oneshot::Receiver<usize>) {
        let (done, ended) = oneshot::channel();
        (
            AbortRequest {
                scope: Scope::All,
                done,
            },
            ended,
        )
    }
}

/// A session with its one connection, on the home shard of its target.
pub struct Session<W: World> {
    /// What its login agreed on.
    pub negotiated: Negotiated,
    pub peer: SocketAddr,
    pub carrier: usize,
    pub since_unix_s: u64,
    began: Time,
    pub nexus: Rc<Nexus<W>>,
    pub control: Arc<ConnectionControl>,
    ended: Event,
    has_ended: Cell<bool>,
}

/// How others hold a connection, which may be on another shard.
#[derive(Default)]
pub struct ConnectionControl {
    /// Commands in progress. Only the shard that carries the connection writes it.
    pub in_flight: AtomicU64,
    /// Wakes the connection's task for what is asked.
    pub wake: Wake,
    asked: Mutex<AskedOfConnection>,
    /// What it did, by LUN; without one, what was at no logical unit.
    tallies: Mutex<Vec<(Option<u16>, Arc<Tally>)>>,
    /// What a capture counts, by LUN; empty without a capture.
    watches: Mutex<Vec<(u16, Arc<Watch>)>>,
    /// Grows whenever others are watched than before.
    watch_turn: AtomicU64,
}

#[derive(Default)]
struct AskedOfConnection {
    /// Set to close the connection: commands in flight end, no new ones begin.
    closing: Option<Closing>,
    /// Waits for the connection's task, which takes them.
    aborts: Vec<AbortRequest>,
}

impl ConnectionControl {
    // Whoever panicked with this lock held has left whole requests behind.
    fn asked(&self) -> MutexGuard<'_, AskedOfConnection> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another LUN is counted.
    pub fn add_tally(&self, lun: Option<u16>, tally: Arc<Tally>) {
        self.tallies().push((lun, tally));
    }

    // A vector is whole after each step.
    fn tallies(&self) -> MutexGuard<'_, Vec<(Option<u16>, Arc<Tally>)>> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on these LUNs are watched, and no others.
    pub fn watch(&self, luns: Vec<(u16, Arc<Watch>)>) {
        *self.watches() = luns;
        self.watch_turn.fetch_add(1, Release);
    }

    /// What is watched changes with this number.
    pub fn watch_turn(&self) -> u64 {
        self.watch_turn.load(Acquire)
    }

    /// What counts a LUN for a capture, if one is under way.
    pub fn watch_of(&self, lun: u16) -> Option<Arc<Watch>> {
        let watches = self.watches();
        let found = watches.iter().find(|(watched, _)| *watched == lun);
        found.map(|(_, watch)| Arc::clone(watch))
    }

    // As above.
    fn watches(&self) -> MutexGuard<'_, Vec<(u16, Arc<Watch>)>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the connection is to be closed, if it is.
    pub fn closing(&self) -> Option<Closing> {
        self.asked().closing
    }

    /// What is to be aborted, once.
    pub fn take_aborts(&self) -> Vec<AbortRequest> {
        std::mem::take(&mut self.asked().aborts)
    }
}

impl<W: World> Session<W> {
    /// A session that has just been agreed on, at that second since 1970 and by the clock of the
    /// world.
    pub fn new(
        negotiated: Negotiated,
        peer: SocketAddr,
        carrier: usize,
        nexus: Rc<Nexus<W>>,
        (since_unix_s, began): (u64, Time),
    ) -> Self {
        Session {
            negotiated,
            peer,
            carrier,
            since_unix_s,
            began,
            nexus,
            control: Arc::default(),
            ended: Event::new(),
            has_ended: Cell::new(false),
        }
    }

    /// Target session identifying handle.
    pub fn tsih(&self) -> u16 {
        self.negotiated.tsih
    }

    /// What it logged in with: decides which targets it may reach
    /// ([`crate::directory::Directory::admits`]).
    pub fn admission(&self) -> &Admission {
        &self.negotiated.admission
    }

    /// Name of the initiator.
    pub fn initiator(&self) -> &str {
        &self.admission().initiator
    }

    /// Name of the target.
    pub fn target(&self) -> &str {
        self.negotiated.target_name()
    }

    /// What it is and has done.
    pub fn info(&self) -> SessionInfo {
        let Totals {
            commands,
            reads,
            writes,
            ..
        } = self.totals();
        SessionInfo {
            tsih: self.tsih(),
            initiator: self.initiator().to_owned(),
            initiator_alias: self.negotiated.initiator_alias.clone(),
            target: self.target().to_owned(),
            peer: self.peer,
            portal_group: self.admission().portal.portal_group,
            portal: self.admission().portal.address,
            chap_name: self.admission().chap_name().map(str::to_owned),
            carrier: self.carrier,
            since_unix_s: self.since_unix_s,
            commands,
            reads: reads.timing.commands,
            writes: writes.timing.commands,
            read_bytes: reads.bytes,
            written_bytes: writes.bytes,
            in_flight: self.control.in_flight.load(Relaxed),
        }
    }

    /// How long it has been there.
    pub fn age(&self, now: Time) -> Duration {
        now.since(self.began)
    }

    /// What it did at each volume, and at none.
    pub fn done(&self) -> Vec<(Option<Uuid>, Totals)> {
        let target = self.nexus.target();
        let tallies = self.control.tallies();
        let read = tallies.iter().map(|(lun, tally)| {
            let unit = lun.and_then(|lun| target.unit(lun));
            let mut totals = Totals::default();
            totals.add(tally);
            (unit.map(|unit| unit.uuid()), totals)
        });
        read.collect()
    }

    /// Watches its LUNs that show one of these volumes, and no others.
    pub fn watch(&self, volumes: &BTreeMap<Uuid, Arc<Watch>>) {
        let target = self.nexus.target();
        let watch = |lun| {
            let unit = target.unit(lun)?;
            Some((lun, Arc::clone(volumes.get(&unit.uuid())?)))
        };
        let luns = target.luns().into_iter().filter_map(watch);
        self.control.watch(luns.collect());
    }

    /// What it did in all.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for (_, tally) in self.control.tallies().iter() {
            totals.add(tally);
        }
        totals
    }

    /// Closes the connection; ends when its last command has ended.
    pub async fn close(&self, how: Closing) {
        {
            let mut asked = self.control.asked();
            asked.closing = asked.closing.max(Some(how));
        }
        self.control.wake.notify();
        loop {
            let ended = self.ended.listen();
            if self.has_ended.get() {
                return;
            }
            ended.await;
        }
    }

    /// Its last command has ended and its connection is closed.
    pub fn end(&self) {
        self.has_ended.set(true);
        drop(self.control.take_aborts());
        self.ended.notify(usize::MAX);
    }

    /// Aborts the tasks in `scope`; ends with their number when none of them is
    /// running any more.
    pub async fn abort(&self, scope: Scope) -> usize {
        if self.has_ended.get() {
            return 0;
        }
        let (done, aborted) = oneshot::channel();
        let request = AbortRequest { scope, done };
        self.control.asked().aborts.push(request);
        self.control.wake.notify();
        // A connection that ends drops the request after its last command.
        aborted.await.unwrap_or(0)
    }
}
