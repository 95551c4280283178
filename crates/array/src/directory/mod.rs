//! The directory of targets: their access rules and the shards that serve them.
//!
//! It is what the front and the API share with all shards: small, read at every
//! login and written when an export, a host or a portal changes. Nothing of the data
//! path is in it.
//!
//! Invariant: whoever is not admitted to a target does not learn that it is there. A
//! login is refused as for a target that is not (RFC 7143 clause 11.13.5, status 0203
//! instead of 0202), and discovery is silent about it. A target that is withheld is shown to
//! who is admitted, and a login is told that it is not operational (0301): initiators try
//! again then.

mod access;

pub use access::{Access, AdmittedHost, Initiators, Portal};

use iscsi::chap::{Account, Algorithm};
use iscsi::login::{Admission, LoginPortal, Refusal, TargetDirectory, VisibleTarget};
use site::ChapAlgorithm;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The portal group of a portal that is in no other.
pub const PORTAL_GROUP: u16 = 1;

/// A target as the front knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetEntry {
    /// Index of the shard that serves it.
    pub shard: usize,
    /// Who may log in.
    pub access: Access,
}

impl TargetEntry {
    /// A target of that shard which anybody may log in to, through every portal.
    pub fn open(shard: usize) -> Self {
        TargetEntry {
            shard,
            access: Access::open(),
        }
    }
}

/// Targets, hosts and portals. Shared by reference between front, API and bring-up.
#[derive(Debug, Default)]
pub struct Directory {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    portals: Vec<Portal>,
    targets: BTreeMap<String, TargetEntry>,
    /// Those that nobody can log in to for now, and who may when it is over.
    withheld: BTreeMap<String, Access>,
    hosts: BTreeMap<String, AdmittedHost>,
    /// Names of hosts, by group.
    host_groups: BTreeMap<String, BTreeSet<String>>,
    /// What has to be proved before discovery.
    discovery: Option<Arc<Account>>,
    /// How it may be proved; all algorithms when nothing was said.
    algorithms: Option<Vec<Algorithm>>,
    closed: bool,
}

impl State {
    /// What an initiator has to prove to be admitted to a target: `None` when it is not
    /// admitted at all, `Some(None)` when its name is enough.
    fn requirement(
        &self,
        access: &Access,
        initiator: &str,
        portal: &LoginPortal,
    ) -> Option<Option<Arc<Account>>> {
        self.is_shown(access, portal).then_some(())?;
        let groups = access.host_groups.iter();
        let in_groups = groups.filter_map(|group| self.host_groups.get(group));
        let hosts = access.hosts.iter().chain(in_groups.flatten());
        let mut hosts = hosts.filter_map(|name| self.hosts.get(name));
        // A host's own secret counts before the target's.
        let host = hosts.find(|host| host.is_called(initiator));
        match host {
            Some(host) => Some(host.account.clone().or_else(|| access.account.clone())),
            None if access.initiators.admit(initiator) => Some(access.account.clone()),
            None => None,
        }
    }

    /// Whether a target is seen through this portal. One that was closed shows none, and one that
    /// went to another portal group shows none to those who came in before.
    fn is_shown(&self, access: &Access, portal: &LoginPortal) -> bool {
        let mut portals = self.portals_of(access);
        portals.any(|one| one.is_at(portal.address) && one.group == portal.portal_group)
    }

    /// The portals through which a target is seen.
    fn portals_of(&self, access: &Access) -> impl Iterator<Item = &Portal> {
        let shown = |portal: &&Portal| match (&access.portals, portal.described) {
            (Some(only), Some(described)) => only.contains(&described),
            // It is there instead of all that are described: it may be on another network.
            (Some(only), None) => only.contains(&portal.address),
            (None, _) => true,
        };
        self.portals.iter().filter(shown)
    }
}

impl Directory {
    /// A directory without targets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says where the portals are.
    pub fn set_portals(&self, portals: Vec<Portal>) {
        self.write().portals = portals;
    }

    /// Where the portals are.
    pub fn portals(&self) -> Vec<Portal> {
        self.read().portals.clone()
    }

    /// Says which hosts there are, and which of them are in which group; and at the same instant who
    /// may log in to these targets, as far as they are there.
    pub fn set_hosts<'a>(
        &self,
        hosts: BTreeMap<String, AdmittedHost>,
        host_groups: BTreeMap<String, BTreeSet<String>>,
        targets: impl Iterator<Item = (&'a str, &'a Access)>,
    ) {
        let mut state = self.write();
        (state.hosts, state.host_groups) = (hosts, host_groups);
        for (name, access) in targets {
            let name = canonical(name);
            if let Some(entry) = state.targets.get_mut(&name) {
                entry.access = access.clone();
            } else if let Some(withheld) = state.withheld.get_mut(&name) {
                withheld.clone_from(access);
            }
        }
    }

    /// Says what initiators have to prove before they may ask which targets there are.
    pub fn set_discovery(&self, account: Option<Arc<Account>>) {
        self.write().discovery = account;
    }

    /// What initiators have to prove before they may ask.
    pub fn discovery(&self) -> Option<Arc<Account>> {
        self.read().discovery.clone()
    }

    /// Says which algorithms CHAP may use, those preferred first.
    pub fn set_algorithms(&self, algorithms: Vec<Algorithm>) {
        self.write().algorithms = Some(algorithms);
    }

    /// Says which algorithms CHAP may use, as the settings do.
    pub fn allow_algorithms(&self, chap: &site::Chap) {
        let algorithm = |algorithm: &ChapAlgorithm| match algorithm {
            ChapAlgorithm::Sha3_256 => Algorithm::Sha3_256,
            ChapAlgorithm::Sha256 => Algorithm::Sha256,
            ChapAlgorithm::Sha1 => Algorithm::Sha1,
            ChapAlgorithm::Md5 => Algorithm::Md5,
        };
        self.set_algorithms(chap.algorithms.iter().map(algorithm).collect());
    }

    /// The algorithms that CHAP may use, those preferred first.
    pub fn algorithms(&self) -> Vec<Algorithm> {
        let said = self.read().algorithms.clone();
        said.unwrap_or_else(|| Algorithm::ALL.to_vec())
    }

    /// The portal that a connection to the local address `local` came in at.
    pub fn portal_at(&self, local: SocketAddr) -> LoginPortal {
        let state = self.read();
        let mut at = state.portals.iter().filter(|portal| portal.is_at(local));
        let exact = at
            .clone()
            .find(|portal| !portal.address.ip().is_unspecified());
        let portal = exact.or_else(|| at.next());
        LoginPortal {
            portal_group: portal.map_or(PORTAL_GROUP, |portal| portal.group),
            address: local,
        }
    }

    /// Adds or replaces the target called `name`.
    pub fn set_target(&self, name: &str, entry: TargetEntry) {
        let mut state = self.write();
        state.withheld.remove(&canonical(name));
        state.targets.insert(canonical(name), entry);
    }

    /// Has the target called `name` be there, without taking logins for now.
    pub fn withhold_target(&self, name: &str, access: Access) {
        let mut state = self.write();
        state.targets.remove(&canonical(name));
        state.withheld.insert(canonical(name), access);
    }

    /// Removes the target called `name`, which takes no more logins then.
    pub fn remove_target(&self, name: &str) -> Option<TargetEntry> {
        let mut state = self.write();
        state.withheld.remove(&canonical(name));
        state.targets.remove(&canonical(name))
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

    /// Whether a session would be admitted to `target`, with the name, the secret and the
    /// portal that it came with: then it may reach what is behind that one, too.
    pub fn admits(&self, admission: &Admission, target: &str) -> bool {
        let state = self.read();
        let entry = state.targets.get(&canonical(target));
        let needed = entry.and_then(|entry| {
            state.requirement(&entry.access, &admission.initiator, &admission.portal)
        });
        match (needed, &admission.account) {
            (None, _) => false,
            (Some(None), _) => true,
            (Some(Some(needed)), Some(proved)) => needed.initiator == proved.initiator,
            (Some(Some(_)), None) => false,
        }
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
pub fn canonical(name: &str) -> String {
    name.to_ascii_lowercase()
}

impl TargetDirectory for Directory {
    fn admit(
        &self,
        initiator: &str,
        target: Option<&str>,
        portal: &LoginPortal,
    ) -> Result<Option<Arc<Account>>, Refusal> {
        let state = self.read();
        if state.closed {
            return Err(Refusal::Unavailable);
        }
        let Some(target) = target else {
            return Ok(state.discovery.clone());
        };
        let name = canonical(target);
        if let Some(access) = state.withheld.get(&name) {
            let needed = state.requirement(access, initiator, portal);
            return Err(match needed {
                Some(_) => Refusal::Unavailable,
                None => Refusal::NotFound,
            });
        }
        let entry = state.targets.get(&name);
        let needed = entry.and_then(|entry| state.requirement(&entry.access, initiator, portal));
        needed.ok_or(Refusal::NotFound)
    }

    fn visible(&self, initiator: &str, portal: &LoginPortal) -> Vec<VisibleTarget> {
        let state = self.read();
        let served = state.targets.iter();
        let served = served.map(|(name, entry)| (name, &entry.access));
        let all: BTreeMap<&String, &Access> = served.chain(&state.withheld).collect();
        let admitted = all
            .into_iter()
            .filter(|(_, access)| state.requirement(access, initiator, portal).is_some());
        let row = |(name, access): (&String, &Access)| VisibleTarget {
            name: name.clone(),
            portals: state
                .portals_of(access)
                .map(|one| (reached(one.address, portal.address), one.group))
                .collect(),
        };
        admitted.map(row).collect()
    }
}

/// Where a portal is for who came in at `local`: one at all addresses of the machine is
/// known by that one.
fn reached(portal: SocketAddr, local: SocketAddr) -> SocketAddr {
    match portal.ip().is_unspecified() {
        true => SocketAddr::new(local.ip(), portal.port()),
        false => portal,
    }
}

#[cfg(test)]
mod tests;
