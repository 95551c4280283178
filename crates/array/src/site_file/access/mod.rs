//! Applies exports, hosts, host groups and discovery CHAP of a site file.

mod fields;

use super::portals::{new_portals, what as portal_at};
use super::{Action, Difference};
use crate::control::hosts::{KnownHosts, account_of, of_site};
use crate::control::{
    AccessToAdopt, Adopted, ArrayError, Configuration, ControlPlane, Export, NewAccess, NewLun,
};
use crate::directory::{self, Access};
use crate::shard::UnitTraits;
use engine::World;
use fields::{changed, create, joined, keep, of_access, of_account, of_export, told};
use iscsi::chap::Account;
use site::{Initiators, Portal, Site};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// What the array is to be by the site file alone: for the first start.
pub fn configuration(site: &Site) -> Configuration {
    let exports = site.exports.iter().map(from_site);
    Configuration {
        exports: exports
            .map(|export| (export.target.clone(), export))
            .collect(),
        known: of_site(site),
        discovery: site.chap.discovery.as_ref().map(account_of),
        settings: Some(Arc::new(site.settings())),
        is_complete: false,
        is_lost: false,
        unfinished: Vec::new(),
    }
}

/// Where `now` is not what the site file says.
pub(super) fn differences(site: &Site, now: &Configuration) -> Vec<Difference> {
    let wanted = configuration(site);
    let mut found = hosts(&wanted.known, &now.known);
    for (target, export) in &wanted.exports {
        let what = format!("target {target}");
        let Some(there) = now.exports.get(target) else {
            found.push(create(what, &of_export(export)));
            continue;
        };
        let (new, kept) = luns(there, export);
        let new = new.iter().map(|new| {
            let lun = new.lun.unwrap_or_default();
            format!("gets volume {} as LUN {lun}", new.volume)
        });
        let access = changed(what.clone(), of_access(there), of_access(export));
        let how: Vec<String> = new.chain(access.map(|access| access.how)).collect();
        found.extend((!how.is_empty()).then(|| Difference {
            action: Action::Change,
            what: what.clone(),
            how: how.join("; "),
        }));
        found.extend((!kept.is_empty()).then(|| Difference {
            action: Action::Keep,
            what,
            how: kept.join("; "),
        }));
    }
    let kept = now.exports.keys();
    let kept = kept.filter(|target| !wanted.exports.contains_key(*target));
    found.extend(kept.map(|target| keep(format!("target {target}"))));
    found.extend(discovery(&wanted, now));
    found
}

/// Where discovery asks for something else.
fn discovery(wanted: &Configuration, now: &Configuration) -> Option<Difference> {
    let chap = |account: Option<&Account>| vec![("CHAP", of_account(account))];
    let (is, says) = (now.discovery.as_deref(), wanted.discovery.as_deref());
    match says {
        _ if is == says => None,
        None => Some(keep("CHAP of discovery".to_owned())),
        Some(_) => Some(Difference {
            action: Action::Change,
            what: "discovery".to_owned(),
            how: told(&chap(is), &chap(says)),
        }),
    }
}

/// Has the array admit whom the site file admits, at all portals of the file, and then show what the
/// file adds: nobody whom the file does not admit is shown that. Gives what could not be done, and
/// why.
pub(super) async fn apply<W: World>(
    site: &Site,
    array: &Arc<ControlPlane<W>>,
) -> Vec<(String, String)> {
    let (wanted, now) = (configuration(site), array.configuration());
    let mut failed = Vec::new();
    let planted = "LUNs of a site file are shown before its access";
    if array.runtime().planted(planted) {
        for (target, export) in &wanted.exports {
            if let Some(there) = now.exports.get(target) {
                let _ = show(array, target, there, export).await;
            }
        }
    }
    admit_too_early(&wanted, site, array).await;
    let portals = new_portals(site, array);
    let unadmitted = admit((&wanted, portals), &now, array, &mut failed).await;
    let mut note = |what: String, error: Option<String>| {
        failed.extend(error.map(|error| (what, error)));
    };
    if let Some(account) = wanted.discovery
        && now.discovery.as_ref() != Some(&account)
    {
        let changed = array.change_discovery(Some(account)).await;
        note("discovery".to_owned(), changed.err().map(|e| e.context));
    }
    for (target, export) in wanted.exports {
        let what = format!("target {target}");
        if let Some(why) = unadmitted.get(&target) {
            let differs = is_to_change(now.exports.get(&target), &export);
            note(what, differs.then(|| why.clone()));
            continue;
        }
        let done = match now.exports.get(&target) {
            None => array.create_export(export).await,
            Some(_) if array.runtime().planted(planted) => Ok(()),
            Some(there) => show(array, &target, there, &export).await,
        };
        note(what, done.err().map(|error| error.context));
    }
    failed
}

/// Has hosts, their groups and targets admit whom the file admits, all at once: an initiator may go
/// from one host to another, a host from one target to another, and a target to a portal that is
/// opened now. Gives the targets that do not, also those to be made, and why; notes the hosts and
/// portals that have failed.
async fn admit<W: World>(
    (wanted, portals): (&Configuration, Vec<Portal>),
    now: &Configuration,
    array: &Arc<ControlPlane<W>>,
    failed: &mut Vec<(String, String)>,
) -> BTreeMap<String, String> {
    let differing = differing_hosts(wanted, now);
    let mut others: Vec<&Export> = wanted.exports.values().collect();
    others.retain(|export| is_to_admit_others(now, export));
    if differing.is_empty() && others.is_empty() && portals.is_empty() {
        return BTreeMap::new();
    }
    let runtime = array.runtime();
    let addresses: Vec<SocketAddr> = portals.iter().map(|portal| portal.address).collect();
    let adopted = array.adopt_access(AccessToAdopt {
        known: wanted.known.clone(),
        targets: others.iter().map(|export| new_access(export)).collect(),
        portals,
    });
    let adopted = adopted.await.unwrap_or_else(|error| Adopted {
        targets: Err(error),
        unopened: BTreeMap::new(),
    });
    let mut unopened = adopted.unopened;
    let why = match adopted.targets {
        Ok(left) => {
            let unopened = unopened.into_iter();
            failed.extend(unopened.map(|(at, why)| (portal_at(at), why)));
            if !left.is_empty() {
                runtime.reached("target of a site file left as it is");
            }
            return left;
        }
        Err(error) => error.context,
    };
    runtime.reached("hosts of a site file left as they are");
    failed.extend(differing.into_iter().map(|host| (host.what, why.clone())));
    let mut why_of = |at| unopened.remove(&at).unwrap_or_else(|| why.clone());
    let addresses = addresses.into_iter();
    failed.extend(addresses.map(|at| (portal_at(at), why_of(at))));
    admit_without_hosts((wanted, now), array, (&others, &why)).await
}

/// The hosts and groups that are to be made or changed.
fn differing_hosts(wanted: &Configuration, now: &Configuration) -> Vec<Difference> {
    let mut differing = hosts(&wanted.known, &now.known);
    differing.retain(|difference| difference.action != Action::Keep);
    differing
}

/// Planted bugs: a part is changed before the others.
async fn admit_too_early<W: World>(
    wanted: &Configuration,
    site: &Site,
    array: &Arc<ControlPlane<W>>,
) {
    let runtime = array.runtime();
    if runtime.planted("hosts of a site file count before its targets") {
        let hosts_only = AccessToAdopt {
            known: wanted.known.clone(),
            ..AccessToAdopt::default()
        };
        let _ = array.adopt_access(hosts_only).await;
    }
    if runtime.planted("portals of a site file are open before its access") {
        for portal in new_portals(site, array) {
            let _ = array.add_portal(portal).await;
        }
    }
}

/// Has those of these targets that have nothing to do with hosts admit whom the file admits. `why`
/// says why the hosts are not as in the file. Gives the targets that do not, and why.
async fn admit_without_hosts<W: World>(
    (wanted, now): (&Configuration, &Configuration),
    array: &Arc<ControlPlane<W>>,
    (others, why): (&[&Export], &str),
) -> BTreeMap<String, String> {
    let alone = others.iter().filter(|export| !is_by_hosts(export, now));
    let new: Vec<NewAccess> = alone.map(|export| new_access(export)).collect();
    let targets: Vec<String> = new.iter().map(|new| new.target.clone()).collect();
    let adopted = array.adopt_access(AccessToAdopt {
        targets: new,
        ..AccessToAdopt::default()
    });
    let adopted = adopted.await.and_then(|adopted| adopted.targets);
    let mut left = adopted.unwrap_or_else(|error| {
        let left = targets.into_iter().zip(std::iter::repeat(error.context));
        left.collect()
    });
    // Its hosts may be more there than in the file.
    let by_hosts = wanted.exports.values();
    let by_hosts = by_hosts.filter(|export| is_by_hosts(export, now));
    let why = format!("it names hosts, which are not as in the file: {why}");
    left.extend(by_hosts.map(|export| (export.target.clone(), why.clone())));
    left
}

/// Whether a target is there, and admits others than `wanted`.
fn is_to_admit_others(now: &Configuration, wanted: &Export) -> bool {
    let there = now.exports.get(&wanted.target);
    there.is_some_and(|there| admits_others(there, wanted))
}

/// Whether something is to be done for a target to be as the file says.
fn is_to_change(there: Option<&Export>, wanted: &Export) -> bool {
    there.is_none_or(|there| admits_others(there, wanted) || !luns(there, wanted).0.is_empty())
}

/// Whether a target names hosts, in the file or as it is.
fn is_by_hosts(export: &Export, now: &Configuration) -> bool {
    let names_hosts = |export: &Export| {
        let access = &export.access;
        !access.hosts.is_empty() || !access.host_groups.is_empty()
    };
    names_hosts(export) || now.exports.get(&export.target).is_some_and(names_hosts)
}

/// Whether a target admits others than `wanted`, or permits them something else.
fn admits_others(there: &Export, wanted: &Export) -> bool {
    let permissions =
        |export: &Export| [export.traits.may_sanitize, export.traits.may_affect_others];
    there.access != wanted.access || permissions(there) != permissions(wanted)
}

fn new_access(export: &Export) -> NewAccess {
    NewAccess {
        target: export.target.clone(),
        access: export.access.clone(),
        may_sanitize: export.traits.may_sanitize,
        may_affect_others: export.traits.may_affect_others,
    }
}

/// Has a target show what the file adds.
async fn show<W: World>(
    array: &Arc<ControlPlane<W>>,
    target: &str,
    there: &Export,
    wanted: &Export,
) -> Result<(), ArrayError> {
    let (new, _) = luns(there, wanted);
    if !new.is_empty() {
        array.change_luns(target, new, Vec::new()).await?;
    }
    Ok(())
}

/// The LUNs that a target gets, and what of it stays as it is.
fn luns(there: &Export, wanted: &Export) -> (Vec<NewLun>, Vec<String>) {
    let (mut new, mut kept) = (Vec::new(), Vec::new());
    let by_lun = |export: &Export| -> BTreeMap<u16, String> {
        let luns = export.luns.iter().copied();
        luns.zip(export.volumes.iter().cloned()).collect()
    };
    let (is, says) = (by_lun(there), by_lun(wanted));
    for (lun, volume) in &says {
        let other = is
            .iter()
            .find(|(other, there)| *there == volume && *other != lun);
        match (is.get(lun), other) {
            (Some(there), _) if there == volume => {}
            (None, None) => new.push(NewLun {
                volume: volume.clone(),
                lun: Some(*lun),
            }),
            (_, Some((other, _))) => {
                kept.push(format!("volume {volume} is LUN {other}, not {lun}"))
            }
            (Some(there), None) => kept.push(format!(
                "LUN {lun} is volume {there}, not {volume}: `ashlar export remove-lun` removes it"
            )),
        }
    }
    let extra = is
        .iter()
        .filter(|(_, volume)| !says.values().any(|said| said == *volume));
    let extra = extra.filter(|(lun, _)| !says.contains_key(lun));
    kept.extend(
        extra.map(|(lun, volume)| format!("LUN {lun}, volume {volume}, is not in the site file")),
    );
    let [is, says] = [there, wanted].map(|export| export.traits.physical_block_bytes);
    if is != says {
        let why = "physical_block differs: to change it, delete the export and create it again";
        kept.push(why.to_owned());
    }
    (new, kept)
}

/// Differences of hosts and their groups.
fn hosts(wanted: &KnownHosts, now: &KnownHosts) -> Vec<Difference> {
    let mut found = Vec::new();
    for (name, host) in &wanted.hosts {
        let of_host = |host: &crate::control::Host| {
            vec![
                ("initiators", joined(&host.initiators)),
                ("CHAP", of_account(host.account.as_deref())),
            ]
        };
        let what = format!("host {name}");
        found.extend(match now.hosts.get(name) {
            None => Some(create(what, &of_host(host))),
            Some(there) if there == host => None,
            Some(there) => changed(what, of_host(there), of_host(host)),
        });
    }
    for (name, group) in &wanted.groups {
        let of_group = |group: &crate::control::HostGroup| vec![("hosts", joined(&group.hosts))];
        let what = format!("host group {name}");
        found.extend(match now.groups.get(name) {
            None => Some(create(what, &of_group(group))),
            Some(there) => changed(what, of_group(there), of_group(group)),
        });
    }
    let kept = now.hosts.keys();
    let kept = kept.filter(|name| !wanted.hosts.contains_key(*name));
    found.extend(kept.map(|name| keep(format!("host {name}"))));
    let kept = now.groups.keys();
    let kept = kept.filter(|name| !wanted.groups.contains_key(*name));
    found.extend(kept.map(|name| keep(format!("host group {name}"))));
    found
}

fn from_site(export: &site::Export) -> Export {
    let mut by_lun: Vec<_> = export.luns.iter().zip(&export.volumes).collect();
    by_lun.sort();
    let (luns, volumes) = by_lun
        .into_iter()
        .map(|(lun, name)| (*lun, name.clone()))
        .unzip();
    Export {
        target: export.target.to_ascii_lowercase(),
        volumes,
        luns,
        uuids: Vec::new(),
        access: Access {
            initiators: match &export.initiators {
                Initiators::Any => directory::Initiators::Any,
                Initiators::Named(names) => {
                    directory::Initiators::Named(names.iter().cloned().collect())
                }
            },
            hosts: export.hosts.iter().cloned().collect(),
            host_groups: export.host_groups.iter().cloned().collect(),
            account: export.chap.as_ref().map(account_of),
            portals: match export.portals.is_empty() {
                true => None,
                false => Some(export.portals.iter().copied().collect()),
            },
        },
        traits: UnitTraits {
            physical_block_bytes: export.physical_block_bytes,
            may_sanitize: export.may_sanitize,
            may_affect_others: export.may_affect_others,
        },
        withheld: None,
    }
}
