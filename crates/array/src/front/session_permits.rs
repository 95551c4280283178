//! Limits sessions, in all and of each initiator.
//!
//! A login that reinstates a session (RFC 7143 clause 6.3.5) always gets a permit: the old
//! one is about to end, and it is often there only because its host has died. How many
//! there can be of both is bounded by session handles.

use crate::directory::canonical;
use iscsi::login::SessionKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hands out permits.
pub(crate) struct SessionPermits {
    max: usize,
    per_initiator_max: usize,
    shared: Arc<Mutex<TakenPermits>>,
}

/// Target, its portal group, and the initiator's part of the identifier.
type Session = (String, u16, [u8; 6]);

#[derive(Default)]
struct TakenPermits {
    sessions: usize,
    by_initiator: BTreeMap<String, BTreeMap<Session, usize>>,
}

/// A permit in use; free again when this is dropped.
pub(crate) struct SessionPermit {
    initiator: String,
    session: Session,
    shared: Arc<Mutex<TakenPermits>>,
}

impl SessionPermits {
    pub(crate) fn new(max: usize, per_initiator_max: usize) -> Self {
        SessionPermits {
            max,
            per_initiator_max,
            shared: Arc::default(),
        }
    }

    /// A permit, unless there are too many.
    pub(crate) fn take(&self, session: SessionKey<'_>) -> Option<SessionPermit> {
        let initiator = canonical(session.initiator);
        let target = canonical(session.target?);
        let session = (target, session.portal_group, session.isid);
        let mut taken = lock(&self.shared);
        let own = taken.by_initiator.get(&initiator);
        let reinstates = own.is_some_and(|own| own.contains_key(&session));
        let few = own.map_or(0, BTreeMap::len) < self.per_initiator_max;
        if !reinstates && (!few || taken.sessions >= self.max) {
            return None;
        }
        let own = taken.by_initiator.entry(initiator.clone()).or_default();
        *own.entry(session.clone()).or_default() += 1;
        taken.sessions += usize::from(!reinstates);
        Some(SessionPermit {
            initiator,
            session,
            shared: Arc::clone(&self.shared),
        })
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        let mut taken = lock(&self.shared);
        let Some(own) = taken.by_initiator.get_mut(&self.initiator) else {
            return;
        };
        if let Some(count) = own.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                own.remove(&self.session);
                if own.is_empty() {
                    taken.by_initiator.remove(&self.initiator);
                }
                taken.sessions -= 1;
            }
        }
    }
}

// What is counted is whole whatever panicked beside it.
fn lock(shared: &Mutex<TakenPermits>) -> MutexGuard<'_, TakenPermits> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;

    fn key(initiator: &'static str, isid: u8) -> SessionKey<'static> {
        SessionKey {
            initiator,
            isid: [isid; 6],
            target: Some("iqn.t"),
            portal_group: 1,
        }
    }

    #[test]
    fn there_are_so_many_in_all_and_of_each() {
        let session_permits = SessionPermits::new(3, 2);
        let first = session_permits.take(key("iqn.a", 1)).unwrap();
        let _second = session_permits.take(key("iqn.A", 2)).unwrap();
        assert!(
            session_permits.take(key("iqn.a", 3)).is_none(),
            "two of one initiator"
        );
        let _third = session_permits.take(key("iqn.b", 1)).unwrap();
        assert!(
            session_permits.take(key("iqn.c", 1)).is_none(),
            "three in all"
        );
        drop(first);
        session_permits.take(key("iqn.a", 3)).unwrap();
    }

    #[test]
    fn who_reinstates_a_session_always_gets_a_permit() {
        let session_permits = SessionPermits::new(1, 1);
        let old = session_permits.take(key("iqn.a", 1)).unwrap();
        let new = session_permits.take(key("iqn.a", 1)).unwrap();
        drop(old);
        assert!(
            session_permits.take(key("iqn.a", 2)).is_none(),
            "the new one is there"
        );
        drop(new);
        let other = session_permits.take(key("iqn.a", 2)).unwrap();
        drop(other);
        let taken = lock(&session_permits.shared);
        assert_eq!((taken.sessions, taken.by_initiator.len()), (0, 0));
    }
}
