//! A session as the shard keeps it: who, since when, how much, and the ways to
//! reach its connection.

use iscsi::login::Negotiated;
use scsi::Nexus;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::SystemTime;
use tokio::sync::{Notify, oneshot};
use world::real::RealWorld;

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
    /// When it logged in.
    pub since: SystemTime,
    /// Commands ended.
    pub commands: u64,
    /// READ commands ended.
    pub reads: u64,
    /// WRITE commands ended.
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
pub(crate) enum Scope {
    /// Those of one logical unit.
    Unit(u16),
    /// All.
    All,
}

/// How a session is closed by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// What runs is answered, within a bound.
    Drain,
    /// Nothing is sent any more.
    Now,
}

/// Asks a connection to abort tasks. `done` hears how many there were, once
/// none of them is running any more.
pub(crate) struct AbortRequest {
    pub(crate) scope: Scope,
    pub(crate) done: oneshot::Sender<usize>,
}

impl AbortRequest {
    /// For one task, with the end that hears of it.
    pub(crate) fn of_one() -> (Self, oneshot::Receiver<usize>) {
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

/// A session with its one connection. Shared between the connection's task and
/// the shard's state.
pub(crate) struct Session {
    pub(crate) tsih: u16,
    pub(crate) initiator: String,
    pub(crate) initiator_alias: Option<String>,
    pub(crate) isid: [u8; 6],
    pub(crate) target: String,
    pub(crate) peer: SocketAddr,
    pub(crate) since: SystemTime,
    pub(crate) nexus: Rc<Nexus<RealWorld>>,
    pub(crate) counters: Counters,
    /// Set to close the connection: commands in flight end, no new ones begin.
    pub(crate) closing: Cell<Option<Closing>>,
    /// Waits for the connection's task, which takes them.
    pub(crate) aborts: RefCell<Vec<AbortRequest>>,
    /// Wakes the connection's task for the two above.
    pub(crate) wake: Notify,
    ended: Notify,
    has_ended: Cell<bool>,
}

/// What a session has done.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) commands: Cell<u64>,
    pub(crate) reads: Cell<u64>,
    pub(crate) writes: Cell<u64>,
    pub(crate) read_bytes: Cell<u64>,
    pub(crate) written_bytes: Cell<u64>,
    pub(crate) in_flight: Cell<u64>,
}

pub(crate) fn add(counter: &Cell<u64>, by: u64) {
    counter.set(counter.get() + by);
}

impl Session {
    /// A session that has just been agreed on.
    pub(crate) fn new(
        negotiated: &Negotiated,
        target: &str,
        peer: SocketAddr,
        nexus: Rc<Nexus<RealWorld>>,
    ) -> Self {
        Session {
            tsih: negotiated.tsih,
            initiator: negotiated.initiator.clone(),
            initiator_alias: negotiated.initiator_alias.clone(),
            isid: negotiated.isid,
            target: target.to_owned(),
            peer,
            since: SystemTime::now(),
            nexus,
            counters: Counters::default(),
            closing: Cell::new(None),
            aborts: RefCell::default(),
            wake: Notify::new(),
            ended: Notify::new(),
            has_ended: Cell::new(false),
        }
    }

    /// What it is and has done.
    pub(crate) fn info(&self) -> SessionInfo {
        SessionInfo {
            tsih: self.tsih,
            initiator: self.initiator.clone(),
            initiator_alias: self.initiator_alias.clone(),
            target: self.target.clone(),
            peer: self.peer,
            since: self.since,
            commands: self.counters.commands.get(),
            reads: self.counters.reads.get(),
            writes: self.counters.writes.get(),
            read_bytes: self.counters.read_bytes.get(),
            written_bytes: self.counters.written_bytes.get(),
            in_flight: self.counters.in_flight.get(),
        }
    }

    /// Closes the connection; ends when its last command has ended.
    pub(crate) async fn close(&self, how: Closing) {
        if self.closing.get() != Some(Closing::Now) {
            self.closing.set(Some(how));
        }
        self.wake.notify_one();
        loop {
            let ended = self.ended.notified();
            if self.has_ended.get() {
                return;
            }
            ended.await;
        }
    }

    /// Its last command has ended and its connection is closed.
    pub(crate) fn end(&self) {
        self.has_ended.set(true);
        self.aborts.take();
        self.ended.notify_waiters();
    }

    /// Aborts the tasks in `scope`; ends with their number when none of them is
    /// running any more.
    pub(crate) async fn abort(&self, scope: Scope) -> usize {
        if self.has_ended.get() {
            return 0;
        }
        let (done, aborted) = oneshot::channel();
        self.aborts.borrow_mut().push(AbortRequest { scope, done });
        self.wake.notify_one();
        // A connection that ends drops the request after its last command.
        aborted.await.unwrap_or(0)
    }
}
