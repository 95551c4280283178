//! Hosts and groups of them: the names under which exports admit initiators.
//!
//! Invariants:
//! - An initiator is of one host at most.
//! - What an export or a group names is there: it can't be deleted before.
//! - A secret that proves initiators proves us nowhere (RFC 7143 clause 9.2.1).
//! - After a change, sessions that would not be admitted any more are ended.

mod rules;

use super::{ArrayError, ArrayErrorKind, ControlPlane, Export};
use crate::directory;
use crate::shard::ShardState;
use base::Uuid;
use engine::World;
use futures_util::future::join_all;
use iscsi::chap::{Account, Credential, Secret};
use rules::{edit, no, not_named, taken};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, MutexGuard, PoisonError};

/// A host: one or more initiators under one name, by which exports admit them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name of the host, unique among hosts.
    pub name: String,
    /// iSCSI names of its initiators, at least one.
    pub initiators: BTreeSet<String>,
    /// What they have to prove.
    pub account: Option<Arc<Account>>,
}

/// Hosts under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGroup {
    /// Unique among groups of hosts.
    pub name: String,
    /// Names of its hosts, at least one.
    pub hosts: BTreeSet<String>,
}

/// What becomes different of a host.
#[derive(Clone, Debug, Default)]
pub struct HostChange {
    /// Initiators that it gets.
    pub add: Vec<String>,
    /// Initiators that it loses.
    pub remove: Vec<String>,
    /// What has to be proved from now on; `Some(None)` for nothing.
    pub account: Option<Option<Arc<Account>>>,
}

/// All hosts and groups, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownHosts {
    pub hosts: BTreeMap<String, Host>,
    pub groups: BTreeMap<String, HostGroup>,
}

/// What a site file says of an account.
pub fn account_of(chap: &site::ChapAccount) -> Arc<Account> {
    let credential = |of: &site::Credential| {
        let Some(secret) = Secret::new(of.secret.bytes()) else {
            unreachable!("a secret of a site has the length of one");
        };
        let name = of.name.clone();
        Credential { name, secret }
    };
    Arc::new(Account {
        initiator: credential(&chap.initiator),
        mutual: chap.mutual.as_ref().map(credential),
    })
}

/// An account as a site file says it.
pub fn said_of(account: &Account) -> site::ChapAccount {
    let credential = |of: &Credential| {
        let Some(secret) = site::Secret::new(of.secret.bytes().to_vec()) else {
            unreachable!("a secret that is in use has the length of one");
        };
        let name = of.name.clone();
        site::Credential { name, secret }
    };
    site::ChapAccount {
        initiator: credential(&account.initiator),
        mutual: account.mutual.as_ref().map(credential),
    }
}

/// The hosts and groups of a site file.
pub fn of_site(site: &site::Site) -> KnownHosts {
    let host = |host: &site::Host| Host {
        name: host.name.clone(),
        initiators: host.initiators.iter().cloned().collect(),
        account: host.chap.as_ref().map(account_of),
    };
    let group = |group: &site::HostGroup| HostGroup {
        name: group.name.clone(),
        hosts: group.hosts.iter().cloned().collect(),
    };
    let hosts = site.hosts.iter().map(host);
    let groups = site.host_groups.iter().map(group);
    KnownHosts {
        hosts: hosts.map(|host| (host.name.clone(), host)).collect(),
        groups: groups.map(|group| (group.name.clone(), group)).collect(),
    }
}

impl<W: World> ControlPlane<W> {
    /// All hosts, by name.
    pub fn hosts(&self) -> Vec<Host> {
        self.known_hosts().hosts.values().cloned().collect()
    }

    /// The host called `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn host(&self, name: &str) -> Result<Host, ArrayError> {
        let found = self.known_hosts().hosts.get(name).cloned();
        found.ok_or_else(|| no("host", name))
    }

    /// All groups of hosts, by name.
    pub fn host_groups(&self) -> Vec<HostGroup> {
        self.known_hosts().groups.values().cloned().collect()
    }

    /// The group of hosts called `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn host_group(&self, name: &str) -> Result<HostGroup, ArrayError> {
        let found = self.known_hosts().groups.get(name).cloned();
        found.ok_or_else(|| no("host group", name))
    }

    /// Makes a host.
    ///
    /// # Errors
    /// There is one of this name, an initiator is of another one, or it can't be kept.
    pub async fn create_host(self: &Arc<Self>, host: Host) -> Result<(), ArrayError> {
        self.regroup_hosts(move |_, known| match known.hosts.contains_key(&host.name) {
            true => Err(taken("host", &host.name)),
            false => {
                known.hosts.insert(host.name.clone(), host);
                Ok(())
            }
        })
        .await
    }

    /// Changes a host; all of that or nothing. Sessions that are not admitted any more end.
    ///
    /// # Errors
    /// There is none, it would have no initiator, or as for
    /// [`ControlPlane::create_host`].
    pub async fn change_host(
        self: &Arc<Self>,
        name: String,
        change: HostChange,
    ) -> Result<(), ArrayError> {
        self.regroup_hosts(move |array, known| {
            let host = known.hosts.get_mut(&name);
            let host = host.ok_or_else(|| no("host", &name))?;
            edit(
                &mut host.initiators,
                change.add,
                &change.remove,
                "host",
                &name,
            )?;
            let planted = "new secret of a host does not count";
            if let Some(account) = change.account.filter(|_| !array.runtime.planted(planted)) {
                host.account = account;
            }
            Ok(())
        })
        .await
    }

    /// Forgets a host.
    ///
    /// # Errors
    /// There is none, or a group or an export names it.
    pub async fn delete_host(self: &Arc<Self>, name: String) -> Result<(), ArrayError> {
        self.regroup_hosts(move |array, known| {
            known.hosts.get(&name).ok_or_else(|| no("host", &name))?;
            let mut groups = known.groups.values();
            if let Some(group) = groups.find(|group| group.hosts.contains(&name)) {
                let context = format!("host {name} is in host group {}", group.name);
                return Err(ArrayError::new(ArrayErrorKind::Busy, context));
            }
            not_named(
                array.exports_naming(|one| one.hosts.contains(&name)),
                "host",
                &name,
            )?;
            known.hosts.remove(&name);
            Ok(())
        })
        .await
    }

    /// Makes a group of hosts.
    ///
    /// # Errors
    /// There is one of this name, there is no such host, or it can't be kept.
    pub async fn create_host_group(self: &Arc<Self>, group: HostGroup) -> Result<(), ArrayError> {
        self.regroup_hosts(
            move |_, known| match known.groups.contains_key(&group.name) {
                true => Err(taken("host group", &group.name)),
                false => {
                    known.groups.insert(group.name.clone(), group);
                    Ok(())
                }
            },
        )
        .await
    }

    /// Adds hosts to a group, and takes others out of it; all of that or nothing.
    ///
    /// # Errors
    /// As for [`ControlPlane::change_host`].
    pub async fn change_host_group(
        self: &Arc<Self>,
        name: String,
        add: Vec<String>,
        remove: Vec<String>,
    ) -> Result<(), ArrayError> {
        self.regroup_hosts(move |_, known| {
            let group = known.groups.get_mut(&name);
            let group = group.ok_or_else(|| no("host group", &name))?;
            edit(&mut group.hosts, add, &remove, "host group", &name)
        })
        .await
    }

    /// Forgets a group; its hosts stay.
    ///
    /// # Errors
    /// There is none, or an export names it.
    pub async fn delete_host_group(self: &Arc<Self>, name: String) -> Result<(), ArrayError> {
        self.regroup_hosts(move |array, known| {
            let there = known.groups.get(&name);
            there.ok_or_else(|| no("host group", &name))?;
            let named = array.exports_naming(|one| one.host_groups.contains(&name));
            not_named(named, "host group", &name)?;
            known.groups.remove(&name);
            Ok(())
        })
        .await
    }

    /// Takes hosts and groups over at the start.
    pub(in crate::control) fn restore_hosts(&self, known: KnownHosts) {
        *self.known_hosts() = known;
        self.publish_hosts();
    }

    /// Does a change of hosts and groups: checked, kept, published; then sessions that
    /// have lost their admission end.
    async fn regroup_hosts(
        self: &Arc<Self>,
        change: impl FnOnce(&ControlPlane<W>, &mut KnownHosts) -> Result<(), ArrayError>
        + Send
        + 'static,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let mut known = array.known_hosts().clone();
            change(&array, &mut known)?;
            if let Some(complaint) = known.complaint() {
                return Err(ArrayError::new(ArrayErrorKind::Invalid, complaint));
            }
            let mut configuration = array.configuration();
            configuration.known = known.clone();
            array.check_secrets(configuration.accounts())?;
            if !array.runtime.planted("hosts are not kept") {
                array.keep(configuration).await?;
            }
            *array.known_hosts() = known;
            if !array.runtime.planted("change of hosts reaches no target") {
                array.publish_hosts();
            }
            if !array.runtime.planted("change of hosts ends no sessions") {
                array.end_not_admitted().await;
            }
            // As after a change of an export.
            let exports = array.exports_by_target().into_values();
            let uuids: Vec<Uuid> = exports.flat_map(|export| export.uuids).collect();
            array.end_offload(&uuids).await
        })
        .await
    }

    fn publish_hosts(&self) {
        self.publish_hosts_and(std::iter::empty());
    }

    /// Has the directory admit by these hosts, and to these targets as they say, from one instant on.
    pub(in crate::control) fn publish_hosts_and<'a>(
        &self,
        targets: impl Iterator<Item = &'a Export>,
    ) {
        let known = self.known_hosts().clone();
        let host = |host: Host| directory::AdmittedHost {
            initiators: host.initiators,
            account: host.account,
        };
        let hosts = known
            .hosts
            .into_iter()
            .map(|(name, known)| (name, host(known)));
        let groups = known
            .groups
            .into_iter()
            .map(|(name, group)| (name, group.hosts));
        let targets = targets.map(|export| (&export.target[..], &export.access));
        self.directory
            .set_hosts(hosts.collect(), groups.collect(), targets);
    }

    /// Ends the sessions that would not be admitted any more, on all shards at once.
    pub async fn end_not_admitted(&self) {
        let visits = self.shards.iter().map(|shard| {
            let directory = Arc::clone(&self.directory);
            let end = |state: Rc<ShardState<W>>| async move {
                state.close_not_admitted(&directory).await;
            };
            shard.call(end)
        });
        // A shard that has stopped has no sessions. Commands may be under way in any pool, and
        // what follows has to do with none.
        let _ = self.turns.wait("", join_all(visits)).await;
    }

    fn exports_naming(&self, names: impl Fn(&directory::Access) -> bool) -> Option<String> {
        let exports = self.exports_by_target();
        let mut exports = exports.into_values();
        exports
            .find(|export| names(&export.access))
            .map(|export| export.target)
    }

    // Whoever panicked with this lock held has left whole maps behind.
    pub(super) fn known_hosts(&self) -> MutexGuard<'_, KnownHosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
