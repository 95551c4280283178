//! The tokens that are valid, with the data that each stands for.
//!
//! Invariants:
//! - There are at most so many ([`Limits`]). An initiator that has all of its own gives up
//!   the oldest that was used when it makes another; one that was never used stays until
//!   its time is over.
//! - A token that nobody used for its time is no more. Each use begins that time anew.
//! - What a token stands for is let go of when nobody uses it any more, and once.
//! - A token may be used by any initiator that has it: it is the right to read the data
//!   (SPC-4 clause 5.17.6.1). What it is written to is looked at apart from that.

use super::HeldData;
use super::token::{KEY_BYTES, Meaning, Seal, TOKEN_BYTES, TokenError, TokenFields};
use base::{Time, Uuid};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Tokens that are remembered after they are gone, so that it can be said why.
const GONE_MAX: usize = 1024;

/// How many tokens there may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tokens of all initiators together.
    pub total: usize,
    /// Tokens of any single initiator.
    pub per_initiator: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            total: 1024,
            per_initiator: 256,
        }
    }
}

/// What a token stands for.
#[derive(Clone, Debug)]
pub struct Representation {
    /// The iSCSI name of the initiator that made the token.
    pub initiator: String,
    /// The volume that it was made of.
    pub source: Uuid,
    /// Where the data is.
    pub held: HeldData,
    /// For how long nobody may use it.
    pub inactivity: Duration,
}

struct Entry {
    of: Representation,
    expires: Time,
    /// Commands that use it now.
    users: u32,
    was_used: bool,
    /// Why it is no more, while there are users left.
    gone: Option<TokenError>,
}

/// A token that a command uses.
pub(super) enum Lease {
    Zeroes,
    Kept { number: u64, held: HeldData },
}

/// Which tokens there are.
pub struct Tokens {
    seal: Seal,
    limits: Limits,
    next: u64,
    entries: BTreeMap<u64, Entry>,
    gone: VecDeque<(u64, TokenError)>,
}

impl Tokens {
    /// None, of a server that has just drawn these 40 bytes: they must be such that nobody
    /// can guess them.
    pub fn new(secret: &[u8; KEY_BYTES + 8], limits: Limits) -> Self {
        Tokens {
            seal: Seal::new(secret),
            limits,
            next: 1,
            entries: BTreeMap::new(),
            gone: VecDeque::new(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries
            .values()
            .filter(|entry| entry.gone.is_none())
            .count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What this token stands for, while it is one.
    pub fn held(&self, token: &[u8]) -> Option<HeldData> {
        let Ok(Meaning::Kept(number)) = self.seal.open(token) else {
            return None;
        };
        let entry = self.entries.get(&number)?;
        entry.gone.is_none().then(|| entry.of.held.clone())
    }

    /// Those whose time is over are no more; what they stood for.
    pub fn expire(&mut self, now: Time) -> Vec<HeldData> {
        self.end_all(TokenError::Expired, |entry| {
            entry.users == 0 && entry.expires <= now
        })
    }

    /// Those that were made of this volume are no more; what they stood for.
    pub fn revoke_source(&mut self, volume: Uuid) -> Vec<HeldData> {
        self.end_all(TokenError::Revoked, |entry| entry.of.source == volume)
    }

    /// Those whose data this volume holds are no more; what they stood for.
    pub fn revoke_holder(&mut self, holder: Uuid) -> Vec<HeldData> {
        self.end_all(TokenError::Revoked, |entry| entry.of.held.holder == holder)
    }

    /// Makes room for one more of `initiator`: whether there is some now, and what the
    /// token that went stood for.
    pub(super) fn make_room(&mut self, initiator: &str) -> (bool, Vec<HeldData>) {
        let there = |entry: &&Entry| entry.gone.is_none();
        let own = |entry: &&Entry| entry.of.initiator == initiator;
        let all = self.entries.values().filter(there).count();
        let of_own = self.entries.values().filter(there).filter(own).count();
        if all < self.limits.total && of_own < self.limits.per_initiator {
            return (true, Vec::new());
        }
        let is_idle = |entry: &Entry| entry.was_used && entry.users == 0 && entry.gone.is_none();
        let mut idle = self.entries.iter().filter(|(_, entry)| is_idle(entry));
        // Others keep theirs.
        let oldest = idle
            .find(|(_, entry)| own(entry))
            .map(|(number, _)| *number);
        match oldest {
            Some(number) => (true, self.end(number, TokenError::Revoked)),
            None => (false, Vec::new()),
        }
    }

    /// A new token. `None`, and nothing has changed, when there are too many.
    pub(super) fn issue(
        &mut self,
        of: Representation,
        (naa, target): (&[u8; 16], &str),
        now: Time,
    ) -> Option<Box<[u8; TOKEN_BYTES]>> {
        if self.len() >= self.limits.total {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let token = self.seal.token(TokenFields {
            number,
            naa,
            target,
            bytes: of.held.bytes(),
        });
        let entry = Entry {
            expires: now + of.inactivity,
            of,
            users: 0,
            was_used: false,
            gone: None,
        };
        self.entries.insert(number, entry);
        Some(token)
    }

    /// A command begins to use a token.
    pub(super) fn begin(&mut self, token: &[u8], now: Time) -> Result<Lease, TokenError> {
        let number = match self.seal.open(token)? {
            Meaning::Zeroes => return Ok(Lease::Zeroes),
            Meaning::Kept(number) => number,
        };
        let Some(entry) = self.entries.get_mut(&number) else {
            let mut gone = self.gone.iter();
            let found = gone.find(|(other, _)| *other == number);
            return Err(found.map_or(TokenError::Unknown, |(_, why)| *why));
        };
        if let Some(why) = entry.gone {
            return Err(why);
        }
        if entry.users == 0 && entry.expires <= now {
            return Err(TokenError::Expired);
        }
        entry.users += 1;
        entry.was_used = true;
        Ok(Lease::Kept {
            number,
            held: entry.of.held.clone(),
        })
    }

    /// It has ended; `deletes` when the token is to go with it. What it stood for, if nobody
    /// needs it any more.
    pub(super) fn end_use(&mut self, number: u64, deletes: bool, now: Time) -> Vec<HeldData> {
        let Some(entry) = self.entries.get_mut(&number) else {
            return Vec::new();
        };
        entry.users -= 1;
        entry.expires = now + entry.of.inactivity;
        match entry.gone.or(deletes.then_some(TokenError::Deleted)) {
            Some(why) => self.end(number, why),
            None => Vec::new(),
        }
    }

    fn end_all(&mut self, why: TokenError, which: impl Fn(&Entry) -> bool) -> Vec<HeldData> {
        let all = self.entries.iter().filter(|(_, entry)| which(entry));
        let numbers: Vec<u64> = all.map(|(number, _)| *number).collect();
        let ended = numbers.into_iter().flat_map(|number| self.end(number, why));
        ended.collect()
    }

    /// A token is no more. What it stood for, when nobody uses it.
    fn end(&mut self, number: u64, why: TokenError) -> Vec<HeldData> {
        let Some(entry) = self.entries.get_mut(&number) else {
            return Vec::new();
        };
        let why = *entry.gone.get_or_insert(why);
        if entry.users > 0 {
            return Vec::new();
        }
        if self.gone.len() >= GONE_MAX {
            self.gone.pop_front();
        }
        self.gone.push_back((number, why));
        let entry = self.entries.remove(&number);
        entry.map(|entry| entry.of.held).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(total: usize, per_initiator: usize) -> Tokens {
        let limits = Limits {
            total,
            per_initiator,
        };
        Tokens::new(&[9; 40], limits)
    }

    fn of(initiator: &str, at: u64) -> Representation {
        Representation {
            initiator: initiator.to_owned(),
            source: Uuid::from_u128(5),
            held: HeldData {
                holder: Uuid::from_u128(6),
                slot: at..at + 100,
                places: vec![(at, 512)],
            },
            inactivity: Duration::from_secs(30),
        }
    }

    const NAMED: (&[u8; 16], &str) = (&[6; 16], "iqn.t");

    fn at(seconds: u64) -> Time {
        Time(0) + Duration::from_secs(seconds)
    }

    fn issue(tokens: &mut Tokens, initiator: &str, slot: u64) -> Vec<u8> {
        assert!(tokens.make_room(initiator).0);
        let token = tokens.issue(of(initiator, slot), NAMED, at(0));
        token.unwrap().to_vec()
    }

    fn use_once(tokens: &mut Tokens, token: &[u8], now: Time) -> Result<(), TokenError> {
        match tokens.begin(token, now)? {
            Lease::Zeroes => panic!("it is not zeroes"),
            Lease::Kept { number, .. } => assert_eq!(tokens.end_use(number, false, now), []),
        }
        Ok(())
    }

    #[test]
    fn a_token_lives_while_it_is_used_and_its_time_after() {
        let mut tokens = tokens(10, 10);
        let token = issue(&mut tokens, "a", 0);
        assert_eq!(use_once(&mut tokens, &token, at(29)), Ok(()));
        assert_eq!(use_once(&mut tokens, &token, at(58)), Ok(()), "replayed");
        assert_eq!(tokens.expire(at(87)), []);
        let late = use_once(&mut tokens, &token, at(88));
        assert_eq!(late, Err(TokenError::Expired), "before it was looked at");
        assert_eq!(tokens.expire(at(88)), [of("a", 0).held]);
        assert_eq!(tokens.expire(at(88)), [], "once");
        let late = use_once(&mut tokens, &token, at(89));
        assert_eq!(late, Err(TokenError::Expired), "and afterwards");
        assert!(tokens.is_empty());
    }

    #[test]
    fn what_is_in_use_is_let_go_of_when_the_last_user_has_ended() {
        let mut tokens = tokens(10, 10);
        let token = issue(&mut tokens, "a", 0);
        let begin = |tokens: &mut Tokens| match tokens.begin(&token, at(1)) {
            Ok(Lease::Kept { number, .. }) => number,
            _ => panic!("it is there"),
        };
        let (first, second) = (begin(&mut tokens), begin(&mut tokens));
        assert_eq!(tokens.expire(at(1000)), [], "it is in use");
        assert_eq!(tokens.held(&token), Some(of("a", 0).held));
        assert_eq!(tokens.held(&token[1..]), None, "it is no token");
        assert_eq!(tokens.revoke_source(Uuid::from_u128(5)), []);
        let revoked = tokens.begin(&token, at(1));
        assert_eq!(revoked.err(), Some(TokenError::Revoked));
        assert_eq!(tokens.held(&token), None, "for its users only");
        assert_eq!(tokens.end_use(first, false, at(2)), []);
        assert_eq!(tokens.end_use(second, true, at(2)), [of("a", 0).held]);
        assert_eq!(tokens.end_use(second, true, at(2)), []);
        let revoked = tokens.begin(&token, at(2));
        assert_eq!(revoked.err(), Some(TokenError::Revoked));
    }

    #[test]
    fn tokens_are_revoked_with_their_source_and_with_their_holder() {
        let mut tokens = tokens(10, 10);
        issue(&mut tokens, "a", 0);
        assert_eq!(tokens.revoke_source(Uuid::from_u128(4)), []);
        assert_eq!(tokens.revoke_holder(Uuid::from_u128(5)), []);
        assert_eq!(tokens.revoke_holder(Uuid::from_u128(6)).len(), 1);
        let token = issue(&mut tokens, "a", 0);
        let Ok(Lease::Kept { number, .. }) = tokens.begin(&token, at(0)) else {
            panic!("it is there")
        };
        assert_eq!(tokens.end_use(number, true, at(0)).len(), 1);
        let deleted = tokens.begin(&token, at(0));
        assert_eq!(deleted.err(), Some(TokenError::Deleted));
    }

    #[test]
    fn who_has_all_of_his_own_gives_up_the_oldest_that_was_used() {
        let mut tokens = tokens(4, 2);
        let (first, second) = (issue(&mut tokens, "a", 0), issue(&mut tokens, "a", 1000));
        assert_eq!(tokens.make_room("a"), (false, vec![]), "none was used");
        use_once(&mut tokens, &second, at(1)).unwrap();
        assert_eq!(tokens.make_room("a"), (true, vec![of("a", 1000).held]));
        assert_eq!(use_once(&mut tokens, &first, at(1)), Ok(()));
        let gone = use_once(&mut tokens, &second, at(1));
        assert_eq!(gone, Err(TokenError::Revoked));
        issue(&mut tokens, "b", 2000);
        issue(&mut tokens, "b", 3000);
        issue(&mut tokens, "c", 4000);
        assert_eq!(tokens.make_room("d"), (false, vec![]), "others keep theirs");
        assert!(tokens.issue(of("d", 0), NAMED, at(1)).is_none());
        assert_eq!(tokens.len(), 4);
    }

    #[test]
    fn what_is_remembered_of_those_that_are_gone_is_bounded() {
        let mut tokens = tokens(10, 10);
        let first = issue(&mut tokens, "a", 0);
        for _ in 0..GONE_MAX {
            tokens.revoke_source(Uuid::from_u128(5));
            issue(&mut tokens, "a", 0);
        }
        let revoked = tokens.begin(&first, at(0));
        assert_eq!(revoked.err(), Some(TokenError::Revoked));
        tokens.revoke_source(Uuid::from_u128(5));
        let unknown = tokens.begin(&first, at(0));
        assert_eq!(unknown.err(), Some(TokenError::Unknown));
        assert_eq!(tokens.gone.len(), GONE_MAX);
    }
}
