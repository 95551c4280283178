//! The directory: which targets there are, who may log in, and which shard
//! serves them.
//!
//! It is what the front and the API share with all shards: small, read at every
//! login and written when an export changes. Nothing of the data path is in it.

use iscsi::login::{Refusal, TargetDirectory, VisibleTarget};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The portal group that every portal is in (for now there is one).
pub const PORTAL_GROUP: u16 = 1;

/// Who may log in to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initiators {
    /// Anyone.
    Any,
    /// Those with these iSCSI names.
    Named(BTreeSet<String>),
}

impl Initiators {
    fn admit(&self, initiator: &str) -> bool {
        match self {
            Initiators::Any => true,
            // iSCSI names compare without case (RFC 7143 clause 4.2.7.1).
            Initiators::Named(names) => names.iter().any(|n| n.eq_ignore_ascii_case(initiator)),
        }
    }
}

/// A target as the front knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetEntry {
    /// Index of the shard that serves it.
    pub shard: usize,
    /// Who may log in.
    pub initiators: Initiators,
}

/// Targets and portals. Shared by reference between front, API and bring-up.
#[derive(Debug, Default)]
pub struct Directory {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    portals: Vec<SocketAddr>,
    targets: BTreeMap<String, TargetEntry>,
    closed: bool,
}

impl Directory {
    /// A directory without targets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says where the portals are, for discovery.
    pub fn set_portals(&self, portals: Vec<SocketAddr>) {
        self.write().portals = portals;
    }

    /// Where the portals are.
    pub fn portals(&self) -> Vec<SocketAddr> {
        self.read().portals.clone()
    }

    /// Adds or replaces the target called `name`.
    pub fn set_target(&self, name: &str, entry: TargetEntry) {
        self.write().targets.insert(canonical(name), entry);
    }

    /// Removes the target called `name`, which takes no more logins then.
    pub fn remove_target(&self, name: &str) -> Option<TargetEntry> {
        self.write().targets.remove(&canonical(name))
    }

    /// The target called `name`.
    pub fn target(&self, name: &str) -> Option<TargetEntry> {
        self.read().targets.get(&canonical(name)).cloned()
    }

    /// All targets, by name.
    pub fn targets(&self) -> Vec<(String, TargetEntry)> {
        self.read()
            .targets
            .iter()
            .map(|(name, entry)| (name.clone(), entry.clone()))
            .collect()
    }

    /// Refuses every login from now on: the server is stopping.
    pub fn close(&self) {
        self.write().closed = true;
    }

    // A writer that panicked has at most left one map entry out: what is there
    // is whole, so a poisoned lock is used on.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// iSCSI names compare without case.
pub(crate) fn canonical(name: &str) -> String {
    name.to_ascii_lowercase()
}

impl TargetDirectory for Directory {
    fn admit(&self, initiator: &str, target: &str) -> Result<(), Refusal> {
        let state = self.read();
        if state.closed {
            return Err(Refusal::Unavailable);
        }
        let entry = state
            .targets
            .get(&canonical(target))
            .ok_or(Refusal::NotFound)?;
        if entry.initiators.admit(initiator) {
            Ok(())
        } else {
            Err(Refusal::Forbidden)
        }
    }

    fn visible(&self, initiator: &str) -> Vec<VisibleTarget> {
        let state = self.read();
        let portals: Vec<_> = state.portals.iter().map(|at| (*at, PORTAL_GROUP)).collect();
        let allowed = state
            .targets
            .iter()
            .filter(|(_, entry)| entry.initiators.admit(initiator));
        allowed
            .map(|(name, _)| VisibleTarget {
                name: name.clone(),
                portals: portals.clone(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> Directory {
        let directory = Directory::new();
        directory.set_portals(vec!["127.0.0.1:3260".parse().unwrap()]);
        let named = Initiators::Named(["iqn.2026-11.test:a".to_owned()].into());
        directory.set_target(
            "iqn.T:any",
            TargetEntry {
                shard: 0,
                initiators: Initiators::Any,
            },
        );
        directory.set_target(
            "iqn.t:named",
            TargetEntry {
                shard: 1,
                initiators: named,
            },
        );
        directory
    }

    #[test]
    fn a_target_is_admitted_refused_or_unknown() {
        let directory = directory();
        assert_eq!(directory.admit("iqn.x", "IQN.t:any"), Ok(()));
        assert_eq!(directory.admit("iqn.2026-11.TEST:a", "iqn.t:named"), Ok(()));
        assert_eq!(
            directory.admit("iqn.x", "iqn.t:named"),
            Err(Refusal::Forbidden)
        );
        assert_eq!(
            directory.admit("iqn.x", "iqn.t:none"),
            Err(Refusal::NotFound)
        );
        directory.close();
        assert_eq!(
            directory.admit("iqn.x", "iqn.t:any"),
            Err(Refusal::Unavailable)
        );
    }

    #[test]
    fn discovery_shows_only_what_the_initiator_may_use() {
        let directory = directory();
        let names = |initiator: &str| -> Vec<String> {
            directory
                .visible(initiator)
                .into_iter()
                .map(|target| target.name)
                .collect()
        };
        assert_eq!(names("iqn.x"), ["iqn.t:any"]);
        assert_eq!(names("iqn.2026-11.test:a"), ["iqn.t:any", "iqn.t:named"]);
        assert_eq!(directory.visible("iqn.x")[0].portals[0].1, PORTAL_GROUP);
    }
}
