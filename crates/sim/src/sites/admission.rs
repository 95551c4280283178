//! Who is admitted to which target, and reaches which volumes, at any instant.
//!
//! Nobody is admitted whom neither the array before an application nor the site file admits, nor with
//! less to prove.

use super::author::INITIATORS;
use super::seen::Seen;
use array::control::ControlPlane;
use array::directory::{Access, Directory, Initiators};
use iscsi::chap::Account;
use iscsi::login::TargetDirectory;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use world_sim::SimWorld;

/// What has to be proved: nothing, or a name and a secret.
type Proof = Option<Vec<u8>>;

/// What may be, by initiator.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    /// By initiator and target.
    targets: BTreeMap<(&'static str, String), BTreeSet<Proof>>,
    /// By initiator and name of the volume.
    volumes: BTreeSet<(&'static str, String)>,
}

fn proof(account: Option<&Account>) -> Proof {
    let one = &account?.initiator;
    Some([one.name.as_bytes(), b":", one.secret.bytes()].concat())
}

/// What an initiator has to prove, if it is admitted.
fn admitted(seen: &Seen, access: &Access, initiator: &str) -> Option<Proof> {
    let groups = access.host_groups.iter();
    let groups = groups.filter_map(|name| seen.known.groups.get(name));
    let of_groups = groups.flat_map(|group| &group.hosts);
    let hosts = access.hosts.iter().chain(of_groups);
    let mut hosts = hosts.filter_map(|name| seen.known.hosts.get(name));
    match hosts.find(|host| host.initiators.contains(initiator)) {
        Some(host) => Some(proof(host.account.as_deref().or(access.account.as_deref()))),
        None => match &access.initiators {
            Initiators::Named(names) if !names.contains(initiator) => None,
            _ => Some(proof(access.account.as_deref())),
        },
    }
}

impl Allowed {
    /// What each of these arrays allows.
    pub(super) fn by(arrays: &[Seen]) -> Allowed {
        let mut allowed = Allowed::default();
        for seen in arrays {
            for export in seen.exports.values() {
                for initiator in INITIATORS {
                    let Some(proof) = admitted(seen, &export.access, initiator) else {
                        continue;
                    };
                    let target = (initiator, export.target.clone());
                    allowed.targets.entry(target).or_default().insert(proof);
                    let volumes = export.volumes.iter();
                    let volumes = volumes.map(|volume| (initiator, volume.clone()));
                    allowed.volumes.extend(volumes);
                }
            }
        }
        allowed
    }

    /// Whether an array admits nobody else just now.
    ///
    /// # Errors
    /// Whom it admits, and to what.
    pub(super) fn check(&self, array: &ControlPlane<SimWorld>) -> Result<(), String> {
        let directory: &Arc<Directory> = array.directory();
        for export in array.exports() {
            for initiator in INITIATORS {
                let Some(proof) = is_admitted(directory, initiator, &export.target) else {
                    continue;
                };
                let target = &export.target;
                let known = self.targets.get(&(initiator, target.clone()));
                if known.is_none_or(|known| !known.contains(&proof)) {
                    return Err(format!(
                        "{initiator} is admitted to {target}, which neither the array before nor \
                         the site file says"
                    ));
                }
                let is_other = |volume: &&String| {
                    let reached = (initiator, (*volume).clone());
                    !self.volumes.contains(&reached)
                };
                if let Some(volume) = export.volumes.iter().find(is_other) {
                    return Err(format!("{initiator} is shown volume {volume} at {target}"));
                }
            }
        }
        Ok(())
    }
}

/// What an initiator has to prove at some portal, if it is admitted at one.
fn is_admitted(directory: &Directory, initiator: &str, target: &str) -> Option<Proof> {
    directory.portals().iter().find_map(|portal| {
        let at = directory.portal_at(portal.address);
        let admitted = directory.admit(initiator, Some(target), &at);
        admitted.ok().map(|account| proof(account.as_deref()))
    })
}
