//! Who is admitted to which target through which portal, and reaches which volumes, at any instant.
//!
//! Nobody is admitted whom neither the array before an application nor the site file admits, nor with
//! less to prove, nor through another portal.

use super::author::INITIATORS;
use super::seen::Seen;
use array::control::ControlPlane;
use array::directory::{Access, Directory, Initiators};
use iscsi::chap::Account;
use iscsi::login::TargetDirectory;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use world_sim::SimWorld;

/// What has to be proved: nothing, or a name and a secret.
type Proof = Option<Vec<u8>>;

/// What may be, by initiator.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    /// By initiator, target and portal.
    targets: BTreeMap<(&'static str, String, SocketAddr), BTreeSet<Proof>>,
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
                    for portal in portals(seen, &export.access) {
                        let target = (initiator, export.target.clone(), portal);
                        let proofs = allowed.targets.entry(target).or_default();
                        proofs.insert(proof.clone());
                    }
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
                let admitted = admitted_now(directory, initiator, &export.target);
                for (portal, proof) in &admitted {
                    let target = &export.target;
                    let known = self.targets.get(&(initiator, target.clone(), *portal));
                    if known.is_none_or(|known| !known.contains(proof)) {
                        return Err(format!(
                            "{initiator} is admitted to {target} at {portal}, which neither the \
                             array before nor the site file says"
                        ));
                    }
                }
                let is_other = |volume: &&String| {
                    let reached = (initiator, (*volume).clone());
                    !self.volumes.contains(&reached)
                };
                if !admitted.is_empty()
                    && let Some(volume) = export.volumes.iter().find(is_other)
                {
                    return Err(format!(
                        "{initiator} is shown volume {volume} at {}",
                        export.target
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The portals of an array through which a target is seen.
fn portals(seen: &Seen, access: &Access) -> Vec<SocketAddr> {
    let all = seen.settings.portals.iter().map(|portal| portal.address);
    let is_seen = |at: &SocketAddr| access.portals.as_ref().is_none_or(|only| only.contains(at));
    all.filter(is_seen).collect()
}

/// The portals at which an initiator is admitted just now, and what it has to prove there.
fn admitted_now(directory: &Directory, initiator: &str, target: &str) -> Vec<(SocketAddr, Proof)> {
    let portals = directory.portals().into_iter();
    let admitted = portals.filter_map(|portal| {
        let at = directory.portal_at(portal.address);
        let admitted = directory.admit(initiator, Some(target), &at).ok()?;
        Some((portal.address, proof(admitted.as_deref())))
    });
    admitted.collect()
}
