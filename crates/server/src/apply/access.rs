//! Applies exports, hosts, host groups and discovery CHAP of a site file.

use super::{Action, Difference};
use crate::array::configuration::Configuration;
use crate::array::hosts::{KnownHosts, account_of, of_site};
use crate::array::{Array, ArrayError, Export, NewLun};
use crate::directory::{self, Access};
use crate::shard::UnitTraits;
use iscsi::chap::Account;
use site::{Initiators, Site};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

/// What the array is to be by the site file alone: for the first start.
pub(crate) fn configuration(site: &Site) -> Configuration {
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
    let chap = |account: Option<&Account>| vec![("CHAP", of_account(account))];
    let (is, says) = (now.discovery.as_deref(), wanted.discovery.as_deref());
    if says.is_some() && is != says {
        found.push(Difference {
            action: Action::Change,
            what: "discovery".to_owned(),
            how: told(&chap(is), &chap(says)),
        });
    } else if is != says {
        found.push(keep("CHAP of discovery".to_owned()));
    }
    found
}

/// Has the array admit whom the site file admits. Gives what could not be done, and why.
pub(super) async fn apply(site: &Site, array: &Arc<Array>) -> Vec<(String, String)> {
    let (wanted, now) = (configuration(site), array.configuration());
    let mut failed = Vec::new();
    let mut note = |what: String, error: Option<String>| {
        failed.extend(error.map(|error| (what, error)));
    };
    let differing = hosts(&wanted.known, &now.known);
    let differing = differing
        .iter()
        .filter(|difference| difference.action != Action::Keep);
    let differing: Vec<&Difference> = differing.collect();
    let mut unadopted = None;
    if !differing.is_empty() {
        // All at once: an initiator may go from one host to another.
        let adopted = array.adopt_hosts(wanted.known).await;
        unadopted = adopted.err().map(|error| error.context);
        for difference in differing {
            note(difference.what.clone(), unadopted.clone());
        }
    }
    if let Some(account) = wanted.discovery
        && now.discovery.as_ref() != Some(&account)
    {
        let changed = array.change_discovery(Some(account)).await;
        note("discovery".to_owned(), changed.err().map(|e| e.context));
    }
    for (target, export) in wanted.exports {
        let what = format!("target {target}");
        let there = now.exports.get(&target);
        let names_hosts = !export.access.hosts.is_empty() || !export.access.host_groups.is_empty();
        if let Some(why) = unadopted.as_ref().filter(|_| names_hosts) {
            // Its hosts may be more there than in the file.
            let is_to_do = there.is_none_or(|there| is_other(there, &export));
            let why = format!("it names hosts, which are not as in the file: {why}");
            note(what, is_to_do.then_some(why));
            continue;
        }
        let done = match there {
            None => array.create_export(export).await,
            Some(there) => change(array, &target, there, export).await,
        };
        note(what, done.err().map(|error| error.context));
    }
    failed
}

/// Whether applying `wanted` changes a target.
fn is_other(there: &Export, wanted: &Export) -> bool {
    there.access != wanted.access
        || permissions(there) != permissions(wanted)
        || !luns(there, wanted).0.is_empty()
}

/// What initiators may do that affects other hosts.
fn permissions(export: &Export) -> [bool; 2] {
    [export.traits.may_sanitize, export.traits.may_affect_others]
}

/// Has a target admit whom the file admits, and then show what the file adds: nobody whom the file
/// does not admit is shown that.
async fn change(
    array: &Arc<Array>,
    target: &str,
    there: &Export,
    wanted: Export,
) -> Result<(), ArrayError> {
    let (new, _) = luns(there, &wanted);
    let said = permissions(&wanted);
    if there.access != wanted.access || permissions(there) != said {
        let wanted = wanted.access;
        let change = move |access: &mut Access, traits: &mut UnitTraits| {
            *access = wanted;
            [traits.may_sanitize, traits.may_affect_others] = said;
        };
        array.change_export(target, change).await?;
    }
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
        let of_host = |host: &crate::array::Host| {
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
        let of_group = |group: &crate::array::HostGroup| vec![("hosts", joined(&group.hosts))];
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

/// What there is to say of something: the field's word, and what is so.
type Fields = Vec<(&'static str, Value)>;

/// What is compared, and how it is shown: secrets are compared only.
#[derive(PartialEq, Eq)]
struct Value {
    shown: String,
    secret: Vec<u8>,
}

fn shown(text: impl Display) -> Value {
    Value {
        shown: text.to_string(),
        secret: Vec::new(),
    }
}

fn joined(names: &BTreeSet<String>) -> Value {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names.is_empty() {
        true => shown("none"),
        false => shown(names.join(", ")),
    }
}

fn of_account(account: Option<&Account>) -> Value {
    let Some(account) = account else {
        return shown("none");
    };
    let mutual = account.mutual.as_ref();
    let by_us = mutual.map_or(String::new(), |ours| format!(", mutual {}", ours.name));
    let secrets = std::iter::once(&account.initiator).chain(mutual);
    Value {
        shown: format!("{}{by_us}", account.initiator.name),
        // With their lengths, so that no two pairs are alike.
        secret: secrets
            .flat_map(|one| {
                let bytes = one.secret.bytes();
                [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat()
            })
            .collect(),
    }
}

fn of_export(export: &Export) -> Fields {
    let mut said = vec![("volumes", shown(export.volumes.join(", ")))];
    if export.luns != site::Export::usual_luns(export.volumes.len()) {
        let luns: Vec<String> = export.luns.iter().map(ToString::to_string).collect();
        said.push(("LUNs", shown(luns.join(", "))));
    }
    said.extend(of_access(export));
    said.push((
        "physical block bytes",
        shown(export.traits.physical_block_bytes.unwrap_or(4096)),
    ));
    said
}

fn of_access(export: &Export) -> Fields {
    let access = &export.access;
    let portals = access.portals.iter().flatten();
    let portals: BTreeSet<String> = portals.map(ToString::to_string).collect();
    vec![
        (
            "initiators",
            match &access.initiators {
                directory::Initiators::Any => shown("any"),
                directory::Initiators::Named(names) => joined(names),
            },
        ),
        ("hosts", joined(&access.hosts)),
        ("host groups", joined(&access.host_groups)),
        ("CHAP", of_account(access.account.as_deref())),
        (
            "portals",
            match access.portals {
                None => shown("all"),
                Some(_) => joined(&portals),
            },
        ),
        ("SANITIZE", allowed(export.traits.may_sanitize)),
        ("affecting others", allowed(export.traits.may_affect_others)),
    ]
}

fn allowed(is_allowed: bool) -> Value {
    shown(if is_allowed { "allowed" } else { "none" })
}

fn create(what: String, says: &Fields) -> Difference {
    let is_said = |(_, value): &&(&str, Value)| value.shown != "none";
    let parts = says.iter().filter(is_said);
    let parts: Vec<String> = parts
        .map(|(name, value)| format!("{name} {}", value.shown))
        .collect();
    Difference {
        action: Action::Create,
        what,
        how: parts.join("; "),
    }
}

fn keep(what: String) -> Difference {
    Difference {
        action: Action::Keep,
        what,
        how: "is not in the site file".to_owned(),
    }
}

fn changed(what: String, is: Fields, says: Fields) -> Option<Difference> {
    let differs = is.iter().zip(&says).any(|(is, says)| is != says);
    differs.then(|| Difference {
        action: Action::Change,
        what,
        how: told(&is, &says),
    })
}

/// What differs, for people.
fn told(is: &[(&'static str, Value)], says: &[(&'static str, Value)]) -> String {
    let both = is.iter().zip(says).filter(|(is, says)| is != says);
    let lines = both.map(|((name, is), (_, says))| match is.shown == says.shown {
        true => format!("{name} {}: another secret", is.shown),
        false => format!("{name} {} becomes {}", is.shown, says.shown),
    });
    lines.collect::<Vec<_>>().join("; ")
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
