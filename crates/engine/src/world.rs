//! The interface between the engine and the world that it runs in.
//!
//! The real world gives it io_uring, a monotonic clock and entropy from the
//! kernel; the simulated world gives it modelled drives, virtual time and seeded
//! faults. Same code, same bytes on the drive.

use crate::drive::Drive;
use base::{BufPool, Prng, Time, Uuid};
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// The machine that a world is on, and which start of it this is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Stays the same from one start to the next.
    pub id: Uuid,
    /// Another at each start.
    pub boot: Uuid,
    /// The host's name, for messages.
    pub name: String,
}

impl Host {
    /// Whether locks on files keep the processes of both apart.
    pub fn is_same(&self, other: &Host) -> bool {
        self.id == other.id && self.boot == other.boot
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.is_empty() {
            true => write!(f, "{}", self.id),
            false => write!(f, "'{}' ({})", self.name, self.id),
        }
    }
}

/// Everything that the engine may ask of its surroundings. A cheap handle: one
/// world per shard, cloned freely, all on one thread.
pub trait World: Clone + 'static {
    /// The kind of drive that this world has.
    type Drive: Drive;

    /// Time since the world began.
    fn now(&self) -> Time;

    /// Runs `task` on this shard until it ends. Tasks still running when the
    /// world ends are dropped at an await point.
    fn spawn(&self, task: impl Future<Output = ()> + 'static);

    /// Ends `duration` from now, never earlier.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static;

    /// The PRNG stream of the component called `name`. The same name gives the
    /// same stream from its start: a component asks once and keeps it.
    fn prng(&self, name: &str) -> Prng;

    /// This shard's buffers.
    fn buffers(&self) -> &BufPool;

    /// Something was done just now: more may be about to come, so a world that waits by polling
    /// goes on polling.
    fn note_work(&self) {}

    /// Where this is.
    fn host(&self) -> Host {
        Host::default()
    }

    /// A path of [`crate::rare::MARKS`] was taken. The simulator counts them, so
    /// that a path that is never reached shows.
    fn reached(&self, mark: &'static str) {
        let _ = mark;
    }

    /// Whether the bug called so ([`crate::rare::BUGS`]) is planted. Only the
    /// simulated world ever says so: it shows that the checker notices.
    fn planted(&self, bug: &'static str) -> bool {
        let _ = bug;
        false
    }
}
