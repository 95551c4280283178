//! Hosts and groups of them: the names under which exports admit initiators.
//!
//! Those of the site file come from the site file at every start and are changed there;
//! those made by the API are kept in a file of their own, which only its owner can read.
//!
//! Invariants:
//! - An initiator is of one host at most.
//! - What an export or a group names is there: it can't be deleted before.
//! - A secret that proves initiators proves us nowhere (RFC 7143 clause 9.2.1).
//! - After a change, sessions that would not be admitted any more are ended.

use super::{Array, ArrayError, ArrayErrorKind, Origin};
use crate::directory;
use crate::record::{self, RecordError};
use crate::shard::ShardState;
use futures_util::future::join_all;
use iscsi::chap::{Account, Credential, Secret};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, MutexGuard, PoisonError};

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Unique among hosts.
    pub name: String,
    /// iSCSI names of its initiators, at least one.
    pub initiators: BTreeSet<String>,
    /// What they have to prove.
    pub account: Option<Arc<Account>>,
    /// Who described it.
    pub origin: Origin,
}

/// Hosts under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGroup {
    /// Unique among groups of hosts.
    pub name: String,
    /// Names of its hosts, at least one.
    pub hosts: BTreeSet<String>,
    /// Who described it.
    pub origin: Origin,
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
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) hosts: BTreeMap<String, Host>,
    pub(crate) groups: BTreeMap<String, HostGroup>,
}

/// How hosts and groups are kept.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    hosts: Vec<KeptHost>,
    groups: Vec<KeptGroup>,
}

#[derive(Serialize, Deserialize)]
struct KeptHost {
    name: String,
    initiators: BTreeSet<String>,
    chap: Option<KeptAccount>,
}

#[derive(Serialize, Deserialize)]
struct KeptGroup {
    name: String,
    hosts: BTreeSet<String>,
}

/// How an account is kept: secrets in hexadecimal.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptAccount {
    name: String,
    secret: String,
    mutual: Option<(String, String)>,
}

impl KeptAccount {
    pub(super) fn of(account: &Account) -> Self {
        let secret = |secret: &Secret| {
            let digits = secret.bytes().iter().map(|byte| format!("{byte:02x}"));
            std::iter::once("0x".to_owned())
                .chain(digits)
                .collect::<String>()
        };
        KeptAccount {
            name: account.initiator.name.clone(),
            secret: secret(&account.initiator.secret),
            mutual: account
                .mutual
                .as_ref()
                .map(|mutual| (mutual.name.clone(), secret(&mutual.secret))),
        }
    }

    /// The account; `None` when a secret is none.
    pub(super) fn account(self) -> Option<Arc<Account>> {
        let credential = |name: String, secret: String| {
            let secret = site::Secret::parse(&secret)?;
            let secret = Secret::new(secret.bytes())?;
            Some(Credential { name, secret })
        };
        let mutual = match self.mutual {
            Some((name, secret)) => Some(credential(name, secret)?),
            None => None,
        };
        let initiator = credential(self.name, self.secret)?;
        Some(Arc::new(Account { initiator, mutual }))
    }
}

/// What a site file says of an account.
pub(crate) fn account_of(chap: &site::ChapAccount) -> Arc<Account> {
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

/// An account that was kept, of whatever `whose` names.
pub(super) fn restored(
    chap: Option<KeptAccount>,
    file: &Path,
    whose: &str,
) -> Result<Option<Arc<Account>>, RecordError> {
    let Some(chap) = chap else { return Ok(None) };
    // Without its secret, anybody would be admitted.
    chap.account().map(Some).ok_or_else(|| RecordError {
        path: file.to_owned(),
        context: format!("the CHAP secret of {whose} is none; restore the file from a copy"),
    })
}

/// The hosts and groups that the API made, as kept in `file`.
///
/// # Errors
/// The file is there and can't be read or understood.
pub(crate) fn kept(file: &Path) -> Result<Known, RecordError> {
    let kept: Kept = record::read(file)?.unwrap_or_default();
    let mut known = Known::default();
    for host in kept.hosts {
        let account = restored(host.chap, file, &format!("host {}", host.name))?;
        let (name, initiators, origin) = (host.name, host.initiators, Origin::Api);
        let host = Host {
            name: name.clone(),
            initiators,
            account,
            origin,
        };
        known.hosts.insert(name, host);
    }
    for group in kept.groups {
        let (name, hosts, origin) = (group.name, group.hosts, Origin::Api);
        let group = HostGroup {
            name: name.clone(),
            hosts,
            origin,
        };
        known.groups.insert(name, group);
    }
    Ok(known)
}

/// The hosts and groups of a site file.
pub(crate) fn of_site(site: &site::Site) -> Known {
    let host = |host: &site::Host| Host {
        name: host.name.clone(),
        initiators: host.initiators.iter().cloned().collect(),
        account: host.chap.as_ref().map(account_of),
        origin: Origin::Site,
    };
    let group = |group: &site::HostGroup| HostGroup {
        name: group.name.clone(),
        hosts: group.hosts.iter().cloned().collect(),
        origin: Origin::Site,
    };
    let hosts = site.hosts.iter().map(host);
    let groups = site.host_groups.iter().map(group);
    Known {
        hosts: hosts.map(|host| (host.name.clone(), host)).collect(),
        groups: groups.map(|group| (group.name.clone(), group)).collect(),
    }
}

impl Known {
    /// What speaks against it: for people.
    pub(crate) fn complaint(&self) -> Option<String> {
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
    pub(super) fn missing(&self, access: &directory::Access) -> Option<String> {
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

impl Array {
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
    /// There is none, it is the site file's, it would have no initiator, or as for
    /// [`Array::create_host`].
    pub async fn change_host(
        self: &Arc<Self>,
        name: String,
        change: HostChange,
    ) -> Result<(), ArrayError> {
        self.regroup_hosts(move |_, known| {
            let host = known.hosts.get_mut(&name);
            let host = host.ok_or_else(|| no("host", &name))?;
            not_of_site(host.origin, "host", &name)?;
            edit(
                &mut host.initiators,
                change.add,
                &change.remove,
                "host",
                &name,
            )?;
            if let Some(account) = change.account {
                host.account = account;
            }
            Ok(())
        })
        .await
    }

    /// Forgets a host.
    ///
    /// # Errors
    /// There is none, it is the site file's, or a group or an export names it.
    pub async fn delete_host(self: &Arc<Self>, name: String) -> Result<(), ArrayError> {
        self.regroup_hosts(move |array, known| {
            let host = known.hosts.get(&name).ok_or_else(|| no("host", &name))?;
            not_of_site(host.origin, "host", &name)?;
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
    /// As for [`Array::change_host`].
    pub async fn change_host_group(
        self: &Arc<Self>,
        name: String,
        add: Vec<String>,
        remove: Vec<String>,
    ) -> Result<(), ArrayError> {
        self.regroup_hosts(move |_, known| {
            let group = known.groups.get_mut(&name);
            let group = group.ok_or_else(|| no("host group", &name))?;
            not_of_site(group.origin, "host group", &name)?;
            edit(&mut group.hosts, add, &remove, "host group", &name)
        })
        .await
    }

    /// Forgets a group; its hosts stay.
    ///
    /// # Errors
    /// There is none, it is the site file's, or an export names it.
    pub async fn delete_host_group(self: &Arc<Self>, name: String) -> Result<(), ArrayError> {
        self.regroup_hosts(move |array, known| {
            let group = known
                .groups
                .get(&name)
                .ok_or_else(|| no("host group", &name))?;
            not_of_site(group.origin, "host group", &name)?;
            let named = array.exports_naming(|one| one.host_groups.contains(&name));
            not_named(named, "host group", &name)?;
            known.groups.remove(&name);
            Ok(())
        })
        .await
    }

    /// Takes hosts and groups over at the start: they are in the site file, or kept.
    pub(crate) fn restore_hosts(&self, known: Known) {
        *self.known_hosts() = known;
        self.publish_hosts();
    }

    /// Does a change of hosts and groups: checked, kept, published; then sessions that
    /// have lost their admission end.
    async fn regroup_hosts(
        self: &Arc<Self>,
        change: impl FnOnce(&Array, &mut Known) -> Result<(), ArrayError> + Send + 'static,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let mut known = array.known_hosts().clone();
            change(&array, &mut known)?;
            if let Some(complaint) = known.complaint() {
                return Err(ArrayError::new(ArrayErrorKind::Invalid, complaint));
            }
            let accounts = known.hosts.values().filter_map(|host| host.account.clone());
            let of_exports = array.exports_by_target();
            let of_exports = of_exports
                .values()
                .filter_map(|export| export.access.account.clone());
            array.check_secrets(accounts.chain(of_exports).collect())?;
            array.keep_hosts(&known).await?;
            *array.known_hosts() = known;
            array.publish_hosts();
            array.end_not_admitted().await;
            Ok(())
        })
        .await
    }

    /// Whether no secret proves both an initiator and us.
    pub(super) fn check_secrets(&self, mut accounts: Vec<Arc<Account>>) -> Result<(), ArrayError> {
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

    fn publish_hosts(&self) {
        let known = self.known_hosts().clone();
        let host = |host: Host| directory::Host {
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
        self.directory.set_hosts(hosts.collect(), groups.collect());
    }

    /// Ends the sessions that would not be admitted any more, on all shards at once.
    pub(super) async fn end_not_admitted(&self) {
        let visits = self.shards.iter().map(|shard| {
            let directory = Arc::clone(&self.directory);
            let end = |state: Rc<ShardState>| async move {
                state.close_not_admitted(&directory).await;
            };
            shard.call(end)
        });
        // A shard that has stopped has no sessions.
        let _ = join_all(visits).await;
    }

    async fn keep_hosts(&self, known: &Known) -> Result<(), ArrayError> {
        let of_api = |origin: &Origin| *origin == Origin::Api;
        let hosts = known.hosts.values().filter(|host| of_api(&host.origin));
        let groups = known.groups.values().filter(|group| of_api(&group.origin));
        let kept = Kept {
            hosts: hosts
                .map(|host| KeptHost {
                    name: host.name.clone(),
                    initiators: host.initiators.clone(),
                    chap: host.account.as_deref().map(KeptAccount::of),
                })
                .collect(),
            groups: groups
                .map(|group| KeptGroup {
                    name: group.name.clone(),
                    hosts: group.hosts.clone(),
                })
                .collect(),
        };
        let file = self.hosts_file.clone();
        let written = tokio::task::spawn_blocking(move || record::write(&file, &kept)).await;
        let failed = |context: String| ArrayError::new(ArrayErrorKind::Internal, context);
        match written {
            Ok(outcome) => outcome.map_err(|error| failed(error.to_string())),
            Err(error) => Err(failed(format!("writing the hosts ended early: {error}"))),
        }
    }

    fn exports_naming(&self, names: impl Fn(&directory::Access) -> bool) -> Option<String> {
        let exports = self.exports_by_target();
        let mut exports = exports.into_values();
        exports
            .find(|export| names(&export.access))
            .map(|export| export.target)
    }

    // Whoever panicked with this lock held has left whole maps behind.
    pub(super) fn known_hosts(&self) -> MutexGuard<'_, Known> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds and removes names; one at least is left.
fn edit(
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

pub(super) fn not_of_site(origin: Origin, what: &str, name: &str) -> Result<(), ArrayError> {
    match origin {
        Origin::Api => Ok(()),
        Origin::Site => {
            let context = format!("{what} {name} is described by the site file; change it there");
            Err(ArrayError::new(ArrayErrorKind::Invalid, context))
        }
    }
}

fn not_named(target: Option<String>, what: &str, name: &str) -> Result<(), ArrayError> {
    match target {
        None => Ok(()),
        Some(target) => {
            let context = format!("target {target} admits {what} {name}; change that export first");
            Err(ArrayError::new(ArrayErrorKind::Busy, context))
        }
    }
}

fn no(what: &str, name: &str) -> ArrayError {
    ArrayError::new(
        ArrayErrorKind::NotFound,
        format!("there is no {what} {name}"),
    )
}

fn taken(what: &str, name: &str) -> ArrayError {
    let context = format!("there is a {what} {name} already; change that, or choose another name");
    ArrayError::new(ArrayErrorKind::Exists, context)
}
