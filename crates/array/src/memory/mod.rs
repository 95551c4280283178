//! One budget for the memory that initiators make the array hold, over all shards.
//!
//! - `policy` says who may hold how much; it is deterministic.
//!
//! Invariants:
//! - A connection asks before it holds more than its seat covers, and gives back what it holds
//!   no more: with its account, at the latest.
//! - The lock is held for a few looks into maps, never while anything is waited for, and only by
//!   connections that hold more than their seats cover.

mod policy;

pub use policy::{BUDGET_BYTES_MIN, Use, seats};
pub(crate) use policy::{SEAT_COMMAND_BYTES, SEAT_UNASKED_BYTES};

use crate::shard::session::ConnectionControl;
use policy::{AccountId, Policy};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The budget of the process. A cheap handle.
#[derive(Clone)]
pub struct Budget {
    desk: Arc<Mutex<Desk>>,
}

struct Desk {
    policy: Policy,
    /// How to wake each connection.
    control: BTreeMap<AccountId, Arc<ConnectionControl>>,
    /// The most that was ever in use, in bytes.
    peak: u64,
}

impl Budget {
    /// Of so many bytes, for so many sessions at most: no fewer bytes, and no more sessions,
    /// than there can be.
    pub fn new(bytes: u64, sessions: usize) -> Budget {
        let bytes = bytes.max(BUDGET_BYTES_MIN);
        let sessions = u64::try_from(sessions).unwrap_or(u64::MAX);
        let policy = Policy::new(bytes, sessions.min(seats(bytes)));
        let desk = Desk {
            policy,
            control: BTreeMap::new(),
            peak: 0,
        };
        Budget {
            desk: Arc::new(Mutex::new(desk)),
        }
    }

    /// What is in use.
    pub fn used(&self) -> Use {
        self.desk().policy.used()
    }

    /// The most that was ever in use, in bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.desk().peak
    }

    /// Opens the account of a connection of `initiator`, whose name is in lower case.
    pub(crate) fn open(&self, initiator: &str, control: Arc<ConnectionControl>) -> Account {
        let mut desk = self.desk();
        let id = desk.policy.open(initiator);
        desk.control.insert(id, control);
        desk.note_peak();
        Account {
            budget: self.clone(),
            id,
            commands: 0,
            unasked: 0,
            waits: false,
            stalled: false,
        }
    }

    // Whoever panicked with this lock held has left whole sums behind.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    fn note_peak(&mut self) {
        self.peak = self.peak.max(self.policy.used().bytes());
    }

    /// Others got room, or may try to read.
    fn wake(&mut self, news: &[AccountId]) {
        if !news.is_empty() {
            self.note_peak();
        }
        for control in news.iter().filter_map(|id| self.control.get(id)) {
            control.wake.notify();
        }
    }
}

/// What one connection holds. Everything is given back when it is dropped.
pub(crate) struct Account {
    budget: Budget,
    id: AccountId,
    /// Granted beyond the seat, as far as is known here; more, perhaps, while it waits.
    commands: u64,
    unasked: u64,
    waits: bool,
    stalled: bool,
}

impl Account {
    /// Whether commands and their answers, which hold `held` bytes now, may hold `more` beside.
    /// If not, the connection is woken when it has a grant. What is not held any more is given
    /// back first: a connection that waits keeps nothing that it does not use.
    pub(crate) fn may_hold(&mut self, held: u64, more: u64) -> bool {
        let beyond = (held + more).saturating_sub(SEAT_COMMAND_BYTES);
        if beyond == 0 && self.commands == 0 && !self.waits {
            return true;
        }
        let mut desk = self.budget.desk();
        // A grant that came while it waited is for this command.
        let is_granted = self.waits && !desk.policy.is_waiting(self.id);
        if !is_granted || desk.policy.commands(self.id) < beyond {
            let held_beyond = held.saturating_sub(SEAT_COMMAND_BYTES);
            let news = desk.policy.keep_commands(self.id, held_beyond);
            desk.wake(&news);
        }
        let may = desk.policy.want_commands(self.id, beyond);
        if may && self.waits {
            // It may have needed no grant: then those behind it have not been looked at.
            let news = desk.policy.give_way(self.id);
            desk.wake(&news);
        }
        desk.note_peak();
        self.commands = desk.policy.commands(self.id);
        self.waits = !may;
        may
    }

    /// Commands and their answers hold `bytes` now, and nothing waits for room.
    pub(crate) fn hold(&mut self, bytes: u64) {
        if self.commands == 0 && !self.waits {
            return;
        }
        let mut desk = self.budget.desk();
        if std::mem::take(&mut self.waits) {
            let news = desk.policy.give_way(self.id);
            desk.wake(&news);
        }
        let beyond = bytes.saturating_sub(SEAT_COMMAND_BYTES);
        let news = desk.policy.keep_commands(self.id, beyond);
        desk.wake(&news);
        self.commands = desk.policy.commands(self.id);
    }

    /// Whether it holds more than it may: answers of commands that need no room.
    pub(crate) fn is_overdrawn(&self, bytes: u64) -> bool {
        bytes > SEAT_COMMAND_BYTES + self.commands
    }

    /// How much of what comes unasked may be held, in bytes, when `bytes` would be good to
    /// have. If that is less, the connection is woken when there may be more.
    pub(crate) fn unasked_room(&mut self, bytes: u64) -> u64 {
        let beyond = bytes.saturating_sub(SEAT_UNASKED_BYTES);
        if beyond > self.unasked || self.stalled {
            let mut desk = self.budget.desk();
            self.stalled = !desk.policy.want_unasked(self.id, beyond);
            desk.note_peak();
            self.unasked = desk.policy.unasked(self.id);
        }
        SEAT_UNASKED_BYTES + self.unasked
    }

    /// `bytes` are held of what came unasked.
    pub(crate) fn hold_unasked(&mut self, bytes: u64) {
        let beyond = bytes.saturating_sub(SEAT_UNASKED_BYTES);
        if beyond < self.unasked {
            let mut desk = self.budget.desk();
            let news = desk.policy.hold_unasked(self.id, beyond);
            desk.wake(&news);
            self.unasked = beyond;
        }
    }

    /// How many commands should be in progress, of `depth`.
    pub(crate) fn window(&self, depth: u32) -> u32 {
        // What seats cover is there in any case.
        if self.commands == 0 && self.unasked == 0 && !self.waits {
            return depth;
        }
        self.budget.desk().policy.window(self.id, depth)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let mut desk = self.budget.desk();
        desk.control.remove(&self.id);
        let news = desk.policy.close(self.id);
        desk.wake(&news);
    }
}

#[cfg(test)]
mod tests;
