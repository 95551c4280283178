//! Hosts and groups as they are kept: in a file that only its owner can read, for it has
//! secrets.
//!
//! Invariant: an account whose secret can't be read is an error, never no account: without
//! it, anybody would be admitted.

use super::{Host, HostGroup, Known};
use crate::array::{Array, ArrayError, ArrayErrorKind, Origin};
use crate::record::{self, RecordError};
use iscsi::chap::{Account, Credential, Secret};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

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
pub(in crate::array) struct KeptAccount {
    name: String,
    secret: String,
    mutual: Option<(String, String)>,
}

impl KeptAccount {
    pub(in crate::array) fn of(account: &Account) -> Self {
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
    pub(in crate::array) fn account(self) -> Option<Arc<Account>> {
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

/// An account that was kept, of whatever `whose` names.
pub(in crate::array) fn restored(
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

impl Array {
    /// Writes the hosts and groups that the API made.
    pub(super) async fn keep_hosts(&self, known: &Known) -> Result<(), ArrayError> {
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
}
