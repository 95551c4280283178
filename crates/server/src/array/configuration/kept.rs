//! A configuration as a record in the data directory, which only its owner can read.
//!
//! Invariant: who may log in is said in each export. What is not said is an error, and never
//! "any".

use super::Configuration;
use super::unfinished::KeptTakeBack;
use crate::array::Export;
use crate::array::hosts::{Host, HostGroup, KnownHosts, account_of, said_of};
use crate::directory::{Access, Initiators};
use crate::own_files::kept_path;
use crate::record::{self, CONFIGURATION_FILE, RecordError};
use crate::shard::UnitTraits;
use ::array::records::Store;
use base::Uuid;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use iscsi::chap::Account;
use serde::{Deserialize, Serialize};
use site::{DriveSource, Site};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A record in a file.
#[derive(Clone, Debug)]
pub(crate) struct InFile {
    file: PathBuf,
}

impl InFile {
    pub(crate) fn new(file: PathBuf) -> Self {
        InFile { file }
    }

    /// The configuration; `None` when none was ever kept.
    ///
    /// # Errors
    /// It is there and can't be read or understood.
    pub(crate) fn read(&self) -> Result<Option<Configuration>, RecordError> {
        let kept: Option<KeptConfiguration> = record::read(&self.file)?;
        kept.map(|kept| kept.restored(&self.file)).transpose()
    }

    /// Keeps it, durably.
    ///
    /// # Errors
    /// The one before is still kept then, unless only the last sync failed.
    pub(crate) fn write(&self, configuration: &Configuration) -> Result<(), RecordError> {
        let data = self.file.parent().unwrap_or(Path::new(""));
        let settings = configuration.settings.as_ref();
        let kept = Configuration {
            settings: settings.map(|settings| Arc::new(from_there(settings, data))),
            ..configuration.clone()
        };
        record::write(&self.file, &KeptConfiguration::of(&kept))
    }
}

/// The settings that are kept in the data directory `data`, for those who look at drives while
/// nobody serves them.
///
/// # Errors
/// The record is there and can't be read or understood.
pub fn kept_settings(data: &Path) -> Result<Option<Site>, RecordError> {
    let store = InFile::new(data.join(CONFIGURATION_FILE));
    let settings = store.read()?.and_then(|kept| kept.settings);
    Ok(settings.map(|settings| settings.as_ref().clone()))
}

impl Store<Configuration> for InFile {
    fn keep(&self, configuration: Configuration) -> BoxFuture<'static, Result<(), String>> {
        let file = self.clone();
        let write = move || file.write(&configuration);
        record::write_aside("the configuration", write).boxed()
    }
}

/// Settings that name drive files in the data directory `data` by their path from there.
fn from_there(settings: &Site, data: &Path) -> Site {
    let mut settings = settings.clone();
    for drive in &mut settings.drives {
        let (DriveSource::File { path, .. } | DriveSource::Device { path }) = &mut drive.source;
        *path = kept_path(data, path);
    }
    settings
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptConfiguration {
    is_complete: bool,
    #[serde(default)]
    is_lost: bool,
    discovery: Option<KeptAccount>,
    /// The text of a site file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<String>,
    hosts: Vec<KeptHost>,
    host_groups: Vec<KeptGroup>,
    exports: Vec<KeptExport>,
    /// What takes changes back that have begun and not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unfinished: Vec<KeptTakeBack>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptHost {
    pub(super) name: String,
    pub(super) initiators: BTreeSet<String>,
    pub(super) chap: Option<KeptAccount>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptGroup {
    pub(super) name: String,
    pub(super) hosts: BTreeSet<String>,
}

/// How an account is kept: secrets in hexadecimal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptAccount {
    name: String,
    secret: String,
    mutual: Option<(String, String)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptExport {
    pub(super) target: String,
    pub(super) volumes: Vec<String>,
    /// The LUN of each volume.
    pub(super) luns: Vec<u16>,
    /// None when they are not known yet.
    pub(super) uuids: Vec<String>,
    pub(super) initiators: KeptInitiators,
    pub(super) hosts: BTreeSet<String>,
    pub(super) host_groups: BTreeSet<String>,
    pub(super) chap: Option<KeptAccount>,
    /// Absent for all.
    pub(super) portals: Option<BTreeSet<SocketAddr>>,
    pub(super) physical_block_bytes: Option<u32>,
    pub(super) may_sanitize: bool,
    #[serde(default)]
    pub(super) may_affect_others: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum KeptInitiators {
    Any,
    Named(BTreeSet<String>),
}

impl KeptConfiguration {
    fn of(configuration: &Configuration) -> Self {
        let Configuration {
            exports,
            known,
            discovery,
            settings,
            is_complete,
            is_lost,
            unfinished,
        } = configuration;
        let host = |host: &Host| KeptHost {
            name: host.name.clone(),
            initiators: host.initiators.clone(),
            chap: host.account.as_deref().map(KeptAccount::of),
        };
        let group = |group: &HostGroup| KeptGroup {
            name: group.name.clone(),
            hosts: group.hosts.clone(),
        };
        KeptConfiguration {
            is_complete: *is_complete,
            is_lost: *is_lost && exports.is_empty(),
            discovery: discovery.as_deref().map(KeptAccount::of),
            settings: settings.as_deref().map(site::text),
            hosts: known.hosts.values().map(host).collect(),
            host_groups: known.groups.values().map(group).collect(),
            exports: exports.values().map(KeptExport::of).collect(),
            unfinished: unfinished.iter().map(KeptTakeBack::of).collect(),
        }
    }

    fn restored(self, file: &Path) -> Result<Configuration, RecordError> {
        let unfinished = self.unfinished.into_iter();
        let unfinished = unfinished.map(|kept| kept.restored(file));
        let exports = self.exports.into_iter().map(|kept| kept.restored(file));
        Ok(Configuration {
            exports: by_target(exports)?,
            known: known(self.hosts, self.host_groups, file)?,
            discovery: restored(self.discovery, file, "discovery")?,
            settings: self
                .settings
                .map(|text| settings(&text, file))
                .transpose()?,
            is_complete: self.is_complete,
            is_lost: self.is_lost,
            unfinished: unfinished.collect::<Result<_, _>>()?,
        })
    }
}

impl KeptExport {
    fn of(export: &Export) -> Self {
        KeptExport {
            target: export.target.clone(),
            volumes: export.volumes.clone(),
            luns: export.luns.clone(),
            uuids: export.uuids.iter().map(ToString::to_string).collect(),
            initiators: match &export.access.initiators {
                Initiators::Any => KeptInitiators::Any,
                Initiators::Named(names) => KeptInitiators::Named(names.clone()),
            },
            hosts: export.access.hosts.clone(),
            host_groups: export.access.host_groups.clone(),
            chap: export.access.account.as_deref().map(KeptAccount::of),
            portals: export.access.portals.clone(),
            physical_block_bytes: export.traits.physical_block_bytes,
            may_sanitize: export.traits.may_sanitize,
            may_affect_others: export.traits.may_affect_others,
        }
    }

    pub(super) fn restored(self, file: &Path) -> Result<Export, RecordError> {
        let uuids = self.uuids.iter().map(|text| Uuid::parse_str(text).ok());
        let uuids: Option<Vec<Uuid>> = uuids.collect();
        let rises = self.luns.windows(2).all(|two| two[0] < two[1]);
        if self.luns.len() != self.volumes.len() || !rises {
            return Err(RecordError {
                path: file.to_owned(),
                context: format!(
                    "the LUNs of target {} do not fit its volumes; restore the file from a copy",
                    self.target
                ),
            });
        }
        // Without all of them, volumes are found by their names.
        let uuids = uuids.filter(|uuids| uuids.len() == self.volumes.len());
        Ok(Export {
            uuids: uuids.unwrap_or_default(),
            volumes: self.volumes,
            luns: self.luns,
            access: Access {
                initiators: match self.initiators {
                    KeptInitiators::Any => Initiators::Any,
                    KeptInitiators::Named(names) => Initiators::Named(names),
                },
                hosts: self.hosts,
                host_groups: self.host_groups,
                account: restored(self.chap, file, &format!("target {}", self.target))?,
                portals: self.portals,
            },
            target: self.target,
            traits: UnitTraits {
                physical_block_bytes: self.physical_block_bytes,
                may_sanitize: self.may_sanitize,
                may_affect_others: self.may_affect_others,
            },
            withheld: None,
        })
    }
}

impl KeptAccount {
    fn of(account: &Account) -> Self {
        let site::ChapAccount { initiator, mutual } = said_of(account);
        KeptAccount {
            name: initiator.name,
            secret: initiator.secret.hexadecimal(),
            mutual: mutual.map(|mutual| (mutual.name, mutual.secret.hexadecimal())),
        }
    }

    /// The account; `None` when a secret is none.
    fn account(self) -> Option<Arc<Account>> {
        let credential = |name: String, secret: String| {
            let secret = site::Secret::parse(&secret)?;
            Some(site::Credential { name, secret })
        };
        let mutual = match self.mutual {
            Some((name, secret)) => Some(credential(name, secret)?),
            None => None,
        };
        let initiator = credential(self.name, self.secret)?;
        Some(account_of(&site::ChapAccount { initiator, mutual }))
    }
}

/// An account that was kept, of whatever `whose` names.
fn restored(
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

/// Settings that were kept.
fn settings(text: &str, file: &Path) -> Result<Arc<Site>, RecordError> {
    let parsed = site::parse("its settings", text);
    parsed.map(Arc::new).map_err(|error| RecordError {
        path: file.to_owned(),
        context: format!(
            "it can't be understood; use the version that wrote it, or restore it from a copy: \
             {error}"
        ),
    })
}

/// Exports by their targets.
pub(super) fn by_target(
    exports: impl Iterator<Item = Result<Export, RecordError>>,
) -> Result<BTreeMap<String, Export>, RecordError> {
    let named = exports.map(|export| export.map(|export| (export.target.clone(), export)));
    named.collect()
}

/// Hosts and groups by their names.
pub(super) fn known(
    hosts: Vec<KeptHost>,
    groups: Vec<KeptGroup>,
    file: &Path,
) -> Result<KnownHosts, RecordError> {
    let mut known = KnownHosts::default();
    for host in hosts {
        let account = restored(host.chap, file, &format!("host {}", host.name))?;
        let (name, initiators) = (host.name, host.initiators);
        let host = Host {
            name: name.clone(),
            initiators,
            account,
        };
        known.hosts.insert(name, host);
    }
    for group in groups {
        let (name, hosts) = (group.name, group.hosts);
        let group = HostGroup {
            name: name.clone(),
            hosts,
        };
        known.groups.insert(name, group);
    }
    match known.complaint() {
        None => Ok(known),
        Some(complaint) => Err(RecordError {
            path: file.to_owned(),
            context: format!("{complaint}; restore the file from a copy"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{AttributeChange, TakeBack};
    use iscsi::chap::{Credential, Secret};

    fn account() -> Arc<Account> {
        let credential = |name: &str, secret: &[u8]| Credential {
            name: name.to_owned(),
            secret: Secret::new(secret).unwrap(),
        };
        Arc::new(Account {
            initiator: credential("a", b"a-secret-of-a"),
            mutual: Some(credential("us", b"a-secret-of-us")),
        })
    }

    fn site() -> Site {
        let text = "[site]\nname = \"a\"\n[[portal]]\naddress = \"127.0.0.1:1\"\n\
                    [[drive]]\nname = \"d\"\ndevice = \"/dev/sdx\"\n\
                    [[pool]]\nname = \"p\"\nlevel = \"simple\"\ndrives = [\"d\"]\n";
        site::parse("t", text).unwrap()
    }

    fn configuration() -> Configuration {
        let export = |target: &str, initiators| Export {
            target: target.to_owned(),
            volumes: vec!["v0".to_owned()],
            luns: vec![3],
            uuids: vec![Uuid::from_u128(7)],
            access: Access {
                initiators,
                hosts: ["esx1".to_owned()].into(),
                host_groups: ["cluster".to_owned()].into(),
                account: Some(account()),
                portals: Some(["[::1]:3260".parse().unwrap()].into()),
            },
            traits: UnitTraits {
                physical_block_bytes: Some(512),
                may_sanitize: true,
                may_affect_others: true,
            },
            withheld: None,
        };
        let named = Initiators::Named(["iqn.2026-11.test:a".to_owned()].into());
        let exports = [export("iqn.a", Initiators::Any), export("iqn.b", named)];
        let host = Host {
            name: "esx1".to_owned(),
            initiators: ["iqn.2026-11.test:h".to_owned()].into(),
            account: Some(account()),
        };
        let group = HostGroup {
            name: "cluster".to_owned(),
            hosts: ["esx1".to_owned()].into(),
        };
        Configuration {
            exports: by_target(exports.into_iter().map(Ok)).unwrap(),
            known: KnownHosts {
                hosts: [("esx1".to_owned(), host)].into(),
                groups: [("cluster".to_owned(), group)].into(),
            },
            discovery: Some(account()),
            settings: Some(Arc::new(site().settings())),
            is_complete: true,
            is_lost: false,
            unfinished: vec![
                TakeBack::Snapshot {
                    name: "v0@s".to_owned(),
                    of: Uuid::from_u128(7),
                    at_unix_s: 1_800_000_000,
                },
                TakeBack::Attributes {
                    volume: Uuid::from_u128(8),
                    changes: vec![AttributeChange {
                        key: "_group".to_owned(),
                        from: String::new(),
                        to: "g".to_owned(),
                    }],
                },
            ],
        }
    }

    #[test]
    fn what_is_kept_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = InFile::new(dir.path().join("c.json"));
        assert!(store.read().unwrap().is_none());
        let wanted = configuration();
        store.write(&wanted).unwrap();
        let found = store.read().unwrap().unwrap();
        assert_eq!(found.exports, wanted.exports);
        assert_eq!(found.known.hosts, wanted.known.hosts);
        assert_eq!(found.known.groups, wanted.known.groups);
        assert_eq!(found.discovery, wanted.discovery);
        assert_eq!(found.settings, wanted.settings);
        assert!(found.is_complete);
        assert_eq!(found.unfinished, wanted.unfinished);
    }

    #[test]
    fn what_is_not_said_admits_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.json");
        let store = InFile::new(file.clone());
        store.write(&configuration()).unwrap();
        let whole = std::fs::read_to_string(&file).unwrap();
        for (part, instead, why) in [
            ("\"initiators\": \"any\",", "", "missing field `initiators`"),
            ("3\n", "3, 3\n", "the LUNs of target iqn.a do not fit"),
            ("\"chap\"", "\"chat\"", "can't understand it"),
            ("\"discovery\"", "\"discover\"", "can't understand it"),
            ("[[pool]]", "[[pol]]", "its settings:"),
            ("612d7365637265742d6f662d61", "61", "the CHAP secret of "),
            (
                "00000000-0000-0000-0000-000000000008",
                "x",
                "an unfinished change is of \"x\"",
            ),
            (
                "\"name\": \"esx1\"",
                "\"name\": \"esx2\"",
                "there is no host esx1",
            ),
        ] {
            let damaged = whole.replacen(part, instead, 1);
            assert_ne!(damaged, whole, "{part}");
            std::fs::write(&file, damaged).unwrap();
            let error = store.read().unwrap_err().to_string();
            assert!(error.contains(why), "{part}: {error}");
        }
    }
}
