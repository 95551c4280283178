//! Rules that a change of hosts, host groups or exports has to keep.

use super::KnownHosts;
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane};
use crate::directory;
use engine::World;
use iscsi::chap::Account;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl KnownHosts {
    /// What speaks against it: for people.
    pub fn complaint(&self) -> Option<String> {
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for host in self.hosts.values() {
            for initiator in &host.initiators {
                if let Some(other) = owners.insert(initiator, &host.name) {
                    let name = &host.name;
                    return Some(format!(
                        "initiator {initiator} would be of host {name} and of host {other}"
                    ));
                }
            }
        }
        self.groups.values().find_map(|group| {
            let missing = group
                .hosts
                .iter()
                .find(|name| !self.hosts.contains_key(*name))?;
            let name = &group.name;
            Some(format!(
                "there is no host {missing}, which host group {name} names"
            ))
        })
    }

    /// What an export names and nothing is called by.
    pub fn missing(&self, access: &directory::Access) -> Option<String> {
        let host = access
            .hosts
            .iter()
            .find(|name| !self.hosts.contains_key(*name));
        let mut groups = access.host_groups.iter();
        let group = groups.find(|name| !self.groups.contains_key(*name));
        host.map(|name| format!("there is no host {name}"))
            .or_else(|| group.map(|name| format!("there is no host group {name}")))
    }
}

impl<W: World> ControlPlane<W> {
    /// Whether no secret proves both an initiator and us.
    pub(in crate::control) fn check_secrets(
        &self,
        mut accounts: Vec<Arc<Account>>,
    ) -> Result<(), ArrayError> {
        accounts.extend(self.directory.discovery());
        let of_initiators = || accounts.iter().map(|account| &account.initiator.secret);
        let ours = accounts
            .iter()
            .filter_map(|account| account.mutual.as_ref());
        for mutual in ours {
            if of_initiators().any(|secret| *secret == mutual.secret) {
                let context = format!(
                    "the mutual secret of {} also proves an initiator; choose another one",
                    mutual.name
                );
                return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
            }
        }
        Ok(())
    }
}

/// Adds and removes names; one at least is left.
pub(super) fn edit(
    names: &mut BTreeSet<String>,
    add: Vec<String>,
    remove: &[String],
    what: &str,
    name: &str,
) -> Result<(), ArrayError> {
    for one in remove {
        if !names.remove(one) {
            let context = format!("{what} {name} does not have {one}");
            return Err(ArrayError::new(ArrayErrorKind::NotFound, context));
        }
    }
    names.extend(add);
    if names.is_empty() {
        let context = format!("{what} {name} would have nothing left; delete it instead");
        return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
    }
    Ok(())
}

pub(super) fn not_named(target: Option<String>, what: &str, name: &str) -> Result<(), ArrayError> {
    match target {
        None => Ok(()),
        Some(target) => {
            let context = format!("target {target} admits {what} {name}; change that export first");
            Err(ArrayError::new(ArrayErrorKind::Busy, context))
        }
    }
}

pub(super) fn no(what: &str, name: &str) -> ArrayError {
    ArrayError::new(
        ArrayErrorKind::NotFound,
        format!("there is no {what} {name}"),
    )
}

pub(super) fn taken(what: &str, name: &str) -> ArrayError {
    let context = format!("there is a {what} {name} already; change that, or choose another name");
    ArrayError::new(ArrayErrorKind::Exists, context)
}
