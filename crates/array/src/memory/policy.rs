//! The rules that share the memory budget among initiators and their connections.
//!
//! Deterministic: no clock, no threads, no sockets. [`super::Budget`] puts it between shards.
//!
//! The budget has three parts:
//! - *Seats.* Each session that there may be has [`SEAT_BYTES`] of its own: small commands ask
//!   nobody.
//! - *Unasked.* Data that comes with commands which have not begun, an eighth of the budget.
//!   Nobody waits for it: a connection that gets no more stops reading.
//! - *Commands.* Everything else: data of commands from before they begin until it is written,
//!   or sent. A command has room for all of its data before it begins, so one that has begun
//!   always can end; one that gets none waits.
//!
//! Invariants:
//! - What is granted is never more than the budget.
//! - A part of that for commands is reserved: for initiators that hold nothing, and their first
//!   command, however long it is.
//! - An initiator's share is the rest, divided by the initiators that use some of it or wait.
//!   What is within a share, and first commands, come before all that is beyond, in the order of
//!   asking.
//! - Commands of one initiator are served in the order of asking, whichever connection they are
//!   on. So while a long one waits, what its initiator holds comes to an end, and the long one
//!   becomes a first command.
//! - Beyond its share an initiator gets what nobody else waits for. Who holds the least comes
//!   first.
//! - Names are compared as they are given; a login has written them in one way.

use std::collections::{BTreeMap, BTreeSet};

/// What each connection has for itself, in bytes: a PDU that comes in, what one read can bring,
/// and small commands.
pub(crate) const SEAT_BYTES: u64 = 1536 << 10;

/// Of that, for what comes unasked.
pub(crate) const SEAT_UNASKED_BYTES: u64 = 832 << 10;

/// And for commands in progress and their answers.
pub(crate) const SEAT_COMMAND_BYTES: u64 = 448 << 10;

/// The longest command, with all that comes beside its data.
const COMMAND_BYTES_MAX: u64 = 36 << 20;

/// The smallest budget, in bytes: half for seats, an eighth for what comes unasked, and the
/// rest holds the longest command.
pub const BUDGET_BYTES_MIN: u64 = 128 << 20;

/// Sessions that have seats in a budget of so many bytes.
pub fn seats(budget_bytes: u64) -> u64 {
    budget_bytes / 2 / SEAT_BYTES
}

/// Names a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AccountId(u64);

/// Bytes of the budget that are in use, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Bytes of seats: each connection has its own.
    pub seats: u64,
    /// Beyond seats, for what came unasked.
    pub unasked: u64,
    /// Beyond seats, for commands.
    pub commands: u64,
}

impl Use {
    /// Bytes in use in all parts together.
    pub fn bytes(&self) -> u64 {
        self.seats + self.unasked + self.commands
    }
}

/// One connection.
#[derive(Debug)]
struct Account {
    initiator: String,
    commands: u64,
    unasked: u64,
    /// What it waits for, and since which turn.
    waits: Option<(u64, u64)>,
}

/// All connections of an initiator.
#[derive(Debug, Default)]
struct Initiator {
    accounts: usize,
    commands: u64,
    unasked: u64,
    waiting: usize,
}

impl Initiator {
    fn is_active(&self) -> bool {
        self.commands > 0 || self.waiting > 0
    }
}

/// The account of all.
#[derive(Debug)]
pub(crate) struct Policy {
    /// The parts of the budget, in bytes.
    commands_most: u64,
    unasked_most: u64,
    accounts: BTreeMap<AccountId, Account>,
    initiators: BTreeMap<String, Initiator>,
    used: Use,
    /// Accounts that wait for room for a command, by turn.
    queue: BTreeMap<u64, AccountId>,
    /// Accounts that would read, had they room.
    stalled: BTreeSet<AccountId>,
    /// Initiators that use something or wait.
    active: u64,
    next: u64,
}

impl Policy {
    /// A budget of so many bytes, for so many sessions at most.
    ///
    /// # Panics
    /// When it is below [`BUDGET_BYTES_MIN`], or has not so many [`seats`].
    pub(crate) fn new(budget: u64, sessions: u64) -> Policy {
        assert!(budget >= BUDGET_BYTES_MIN, "a budget of {budget} bytes");
        assert!(sessions <= seats(budget), "{sessions} in {budget} bytes");
        let unasked_most = budget / 8;
        Policy {
            commands_most: budget - sessions * SEAT_BYTES - unasked_most,
            unasked_most,
            accounts: BTreeMap::new(),
            initiators: BTreeMap::new(),
            used: Use::default(),
            queue: BTreeMap::new(),
            stalled: BTreeSet::new(),
            active: 0,
            next: 0,
        }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> Use {
        self.used
    }

    /// A connection begins. The front has seen to it that there are seats; one that comes to
    /// reinstate another has its own for a moment, too.
    pub(crate) fn open(&mut self, initiator: &str) -> AccountId {
        self.next += 1;
        let id = AccountId(self.next);
        let account = Account {
            initiator: initiator.to_owned(),
            commands: 0,
            unasked: 0,
            waits: None,
        };
        self.accounts.insert(id, account);
        let own = self.initiators.entry(initiator.to_owned()).or_default();
        own.accounts += 1;
        self.used.seats += SEAT_BYTES;
        id
    }

    /// A connection has ended, and what it held. Gives those that others got room for, or may
    /// read.
    pub(crate) fn close(&mut self, id: AccountId) -> Vec<AccountId> {
        self.withdraw(id);
        self.stalled.remove(&id);
        let mut news = self.hold_unasked(id, 0);
        self.set_commands(id, 0);
        if let Some(account) = self.accounts.remove(&id)
            && let Some(own) = self.initiators.get_mut(&account.initiator)
        {
            own.accounts -= 1;
            if own.accounts == 0 {
                self.initiators.remove(&account.initiator);
            }
            self.used.seats -= SEAT_BYTES;
        }
        news.extend(self.serve());
        news
    }

    /// What a connection has been granted for commands, beyond its seat.
    pub(crate) fn commands(&self, id: AccountId) -> u64 {
        self.accounts.get(&id).map_or(0, |account| account.commands)
    }

    /// A connection wants to hold `bytes` for commands, beyond its seat. Whether it may; if
    /// not, it waits until [`Policy::withdraw`] or until one of the others names it.
    pub(crate) fn want_commands(&mut self, id: AccountId, bytes: u64) -> bool {
        let Some(account) = self.accounts.get(&id) else {
            return false;
        };
        if bytes <= account.commands {
            self.withdraw(id);
            return true;
        }
        let more = bytes - account.commands;
        let turn = match account.waits {
            Some((turn, _)) => turn,
            None => {
                self.next += 1;
                self.next
            }
        };
        self.set_waits(id, Some((turn, more)));
        // Others whose turn it is get theirs when something is given back: nothing was.
        if self.next_served() == Some(id) && self.fits(id, more) {
            self.grant(id, more);
            return true;
        }
        false
    }

    /// Whether a connection waits for room.
    pub(crate) fn is_waiting(&self, id: AccountId) -> bool {
        let account = self.accounts.get(&id);
        account.is_some_and(|account| account.waits.is_some())
    }

    /// A connection waits no more.
    pub(crate) fn withdraw(&mut self, id: AccountId) {
        self.set_waits(id, None);
    }

    /// A connection holds no more than `bytes` for commands now, beyond its seat. Gives those
    /// that got room by that.
    pub(crate) fn keep_commands(&mut self, id: AccountId, bytes: u64) -> Vec<AccountId> {
        if self.commands(id) <= bytes {
            return Vec::new();
        }
        self.set_commands(id, bytes);
        self.serve()
    }

    /// A connection that waited has withdrawn: gives those that get room instead.
    pub(crate) fn give_way(&mut self, id: AccountId) -> Vec<AccountId> {
        self.withdraw(id);
        self.serve()
    }

    /// Whether a connection may hold `bytes` of what comes unasked, beyond its seat. If not, it
    /// is named whenever somebody gives some back.
    pub(crate) fn want_unasked(&mut self, id: AccountId, bytes: u64) -> bool {
        let Some(account) = self.accounts.get(&id) else {
            return false;
        };
        let more = bytes.saturating_sub(account.unasked);
        let own = self.initiators.get(&account.initiator);
        let own = own.map_or(0, |own| own.unasked);
        let users = self.users_of_unasked(&account.initiator);
        let most = self.unasked_most;
        let used = self.used.unasked + more;
        let fits = used <= most && (own + more <= most / users || used <= most / 2);
        if more == 0 || fits {
            self.set_unasked(id, bytes.max(self.unasked(id)));
            self.stalled.remove(&id);
            return true;
        }
        self.stalled.insert(id);
        false
    }

    /// What a connection has been granted for what comes unasked, beyond its seat.
    pub(crate) fn unasked(&self, id: AccountId) -> u64 {
        self.accounts.get(&id).map_or(0, |account| account.unasked)
    }

    /// A connection holds no more than `bytes` of what came unasked, beyond its seat. Gives
    /// those that may try to read again.
    pub(crate) fn hold_unasked(&mut self, id: AccountId, bytes: u64) -> Vec<AccountId> {
        if self.unasked(id) <= bytes {
            return Vec::new();
        }
        self.set_unasked(id, bytes);
        // They stay until they have got some: what they would use counts.
        self.stalled.iter().copied().collect()
    }

    /// Initiators that hold some of what comes unasked, or would; `own` among them.
    fn users_of_unasked(&self, own: &str) -> u64 {
        let holders = self.initiators.iter().filter(|(_, one)| one.unasked > 0);
        let stalled = self.stalled.iter().filter_map(|id| self.accounts.get(id));
        let stalled = stalled.map(|account| account.initiator.as_str());
        let names = holders.map(|(name, _)| name.as_str()).chain(stalled);
        names.chain([own]).collect::<BTreeSet<_>>().len() as u64
    }

    /// How many commands a connection whose window has `depth` places should have in progress
    /// as things are: all, unless memory is short; then fewer, the more its initiator has of its
    /// share, and one at least.
    pub(crate) fn window(&self, id: AccountId, depth: u32) -> u32 {
        if !self.is_short() {
            return depth;
        }
        let (held, share) = (self.held_by_initiator(id), self.share());
        let left = share.saturating_sub(held);
        let width = u128::from(depth) * u128::from(left) / u128::from(share.max(1));
        u32::try_from(width).unwrap_or(depth).clamp(1, depth)
    }

    /// Whether there is little left.
    fn is_short(&self) -> bool {
        !self.queue.is_empty()
            || self.used.commands > self.commands_most / 4 * 3
            || self.used.unasked > self.unasked_most / 4 * 3
    }

    /// What is left for the first commands of initiators that hold nothing.
    fn reserve(&self) -> u64 {
        COMMAND_BYTES_MAX.max(self.commands_most / 8)
    }

    fn share(&self) -> u64 {
        self.commands_most.saturating_sub(self.reserve()) / self.active.max(1)
    }

    /// What the initiator of a connection holds for commands.
    fn held_by_initiator(&self, id: AccountId) -> u64 {
        let own = self.accounts.get(&id).map(|account| &account.initiator);
        let own = own.and_then(|name| self.initiators.get(name));
        own.map_or(0, |own| own.commands)
    }

    /// Whether an initiator may have that much more by right.
    fn is_within(&self, id: AccountId, more: u64) -> bool {
        let held = self.held_by_initiator(id);
        held == 0 || held + more <= self.share()
    }

    fn fits(&self, id: AccountId, more: u64) -> bool {
        let left = match self.held_by_initiator(id) {
            0 => 0,
            _ => self.reserve(),
        };
        // What is longer than all there is runs alone.
        self.used.commands == 0 || self.used.commands + more + left <= self.commands_most
    }

    /// Who of those that wait is served next.
    fn next_served(&self) -> Option<AccountId> {
        let mut beyond: Option<(u64, AccountId)> = None;
        let mut seen = BTreeSet::new();
        for id in self.queue.values() {
            let Some(account) = self.accounts.get(id) else {
                continue;
            };
            if !seen.insert(account.initiator.as_str()) {
                continue;
            }
            if self.is_within(*id, account.waits.map_or(0, |(_, more)| more)) {
                return Some(*id);
            }
            let held = self.held_by_initiator(*id);
            if beyond.is_none_or(|(least, _)| held < least) {
                beyond = Some((held, *id));
            }
        }
        beyond.map(|(_, id)| id)
    }

    /// Grants what can be granted, in turn.
    fn serve(&mut self) -> Vec<AccountId> {
        let mut served = Vec::new();
        while let Some(id) = self.next_served() {
            let waits = self.accounts.get(&id).and_then(|account| account.waits);
            let Some((_, more)) = waits.filter(|(_, more)| self.fits(id, *more)) else {
                break;
            };
            self.grant(id, more);
            served.push(id);
        }
        served
    }

    fn grant(&mut self, id: AccountId, more: u64) {
        self.withdraw(id);
        self.set_commands(id, self.commands(id) + more);
    }

    fn set_commands(&mut self, id: AccountId, bytes: u64) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        let before = std::mem::replace(&mut account.commands, bytes);
        self.used.commands = self.used.commands - before + bytes;
        if let Some(own) = self.initiators.get_mut(&account.initiator) {
            let was = own.is_active();
            own.commands = own.commands - before + bytes;
            self.active = self.active + u64::from(own.is_active()) - u64::from(was);
        }
    }

    fn set_unasked(&mut self, id: AccountId, bytes: u64) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        let before = std::mem::replace(&mut account.unasked, bytes);
        self.used.unasked = self.used.unasked - before + bytes;
        if let Some(own) = self.initiators.get_mut(&account.initiator) {
            own.unasked = own.unasked - before + bytes;
        }
    }

    fn set_waits(&mut self, id: AccountId, waits: Option<(u64, u64)>) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        let before = std::mem::replace(&mut account.waits, waits);
        if let Some((turn, _)) = before {
            self.queue.remove(&turn);
        }
        if let Some((turn, _)) = waits {
            self.queue.insert(turn, id);
        }
        if let Some(own) = self.initiators.get_mut(&account.initiator) {
            let was = own.is_active();
            own.waiting =
                own.waiting - usize::from(before.is_some()) + usize::from(waits.is_some());
            self.active = self.active + u64::from(own.is_active()) - u64::from(was);
        }
    }
}

#[cfg(test)]
mod tests;
