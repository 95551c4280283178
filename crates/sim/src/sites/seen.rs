//! What an array says that it is, when nothing is under way; and what of it a site file may change.

use array::control::attributes::{SITE_NAME, description, tags};
use array::control::consistency::group_of;
use array::control::hosts::{KnownHosts, of_site};
use array::control::{ArrayError, ControlPlane, Export, PlacedVolume, limits, schedule};
use array::directory::Access;
use base::Uuid;
use engine::Provisioning;
use engine::qos::Limits;
use iscsi::chap::Account;
use site::Site;
use std::collections::BTreeMap;
use std::sync::Arc;
use world_sim::SimWorld;

/// A volume, as far as commands and site files have to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenVolume {
    pub(super) name: String,
    pub(super) pool: String,
    pub(super) size_bytes: u64,
    pub(super) is_thick: bool,
    pub(super) detects_zeroes: bool,
    pub(super) limits: Limits,
    pub(super) is_snapshot: bool,
    pub(super) is_trashed: bool,
    pub(super) description: String,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) group: Option<String>,
    /// Of it and its group: times and how many stay.
    pub(super) schedules: Vec<(u64, u64)>,
    /// The name that a site file had for it.
    pub(super) site_name: Option<String>,
}

/// An array.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) volumes: BTreeMap<Uuid, SeenVolume>,
    pub(super) exports: BTreeMap<String, Export>,
    pub(super) known: KnownHosts,
    pub(super) discovery: Option<Arc<Account>>,
    pub(super) settings: Site,
    pub(super) open: Vec<String>,
    /// Pools that are not open.
    pub(super) closed: Vec<String>,
}

impl Seen {
    /// What it says now.
    pub(super) async fn of(array: &ControlPlane<SimWorld>) -> Result<Seen, ArrayError> {
        let (volumes, trash) = (array.volumes().await?, array.trash().await?);
        let volumes = volumes.iter().map(|volume| (volume, false));
        let trash = trash.iter().map(|volume| (volume, true));
        let all = volumes.chain(trash);
        let all =
            all.map(|(volume, is_trashed)| (volume.info.uuid, SeenVolume::of(volume, is_trashed)));
        let configuration = array.configuration();
        let open = array.pools().await?.into_iter();
        let closed = array.closed_pools().into_iter();
        Ok(Seen {
            volumes: all.collect(),
            exports: configuration.exports,
            known: configuration.known,
            discovery: configuration.discovery,
            settings: array.settings().as_ref().clone(),
            open: open.map(|(_, pool)| pool.name).collect(),
            closed: closed.map(|pool| pool.name).collect(),
        })
    }

    /// The volumes that have a name.
    pub(super) fn living(&self) -> impl Iterator<Item = &SeenVolume> {
        self.volumes.values().filter(|volume| !volume.is_trashed)
    }

    /// The one that is called so.
    pub(super) fn called(&self, name: &str) -> Option<&SeenVolume> {
        self.living().find(|volume| volume.name == name)
    }

    /// How `now` differs from it, if it does.
    pub(super) fn differs(&self, now: &Seen) -> Option<String> {
        // A file that says the names that volumes have now has earlier ones be forgotten.
        let named = |volumes: &BTreeMap<Uuid, SeenVolume>| -> BTreeMap<Uuid, SeenVolume> {
            let forgotten = |volume: &SeenVolume| SeenVolume {
                site_name: None,
                ..volume.clone()
            };
            let volumes = volumes.iter();
            volumes
                .map(|(uuid, volume)| (*uuid, forgotten(volume)))
                .collect()
        };
        let (before, after) = (named(&self.volumes), named(&now.volumes));
        let mut other = before.iter().filter(|one| after.get(one.0) != Some(one.1));
        if let Some((uuid, volume)) = other.next() {
            return Some(format!("{volume:?} became {:?}", after.get(uuid)));
        }
        if before.len() != after.len() {
            return Some("there are more volumes".to_owned());
        }
        if self.exports != now.exports {
            return Some(format!("{:?} became {:?}", self.exports, now.exports));
        }
        let same_hosts = self.known.hosts == now.known.hosts;
        if !same_hosts || self.known.groups != now.known.groups {
            return Some(format!("{:?} became {:?}", self.known, now.known));
        }
        if self.discovery != now.discovery {
            return Some("CHAP of discovery became another one".to_owned());
        }
        let same = self.settings == now.settings;
        (!same).then(|| format!("{:?} became {:?}", self.settings, now.settings))
    }

    /// Who would be admitted to what, if this were as `file` says.
    pub(super) fn with_access_of(&self, file: &Site) -> Seen {
        let mut after = self.clone();
        let portals = &mut after.settings.portals;
        for portal in &file.portals {
            if portals.iter().all(|one| one.address != portal.address) {
                portals.push(portal.clone());
            }
        }
        let said = of_site(file);
        after.known.hosts.extend(said.hosts);
        after.known.groups.extend(said.groups);
        for export in &file.exports {
            let volumes = export.volumes.iter().cloned();
            let access = access_of(export);
            match after.exports.get_mut(&export.target) {
                Some(there) => {
                    there.access = access;
                    there.volumes.extend(volumes);
                }
                None => {
                    let new = Export {
                        target: export.target.clone(),
                        volumes: volumes.collect(),
                        luns: export.luns.clone(),
                        uuids: Vec::new(),
                        access,
                        traits: Default::default(),
                        withheld: None,
                    };
                    after.exports.insert(export.target.clone(), new);
                }
            }
        }
        after
    }
}

impl SeenVolume {
    fn of(volume: &PlacedVolume, is_trashed: bool) -> SeenVolume {
        let (info, said) = (&volume.info, &volume.properties);
        let schedules = schedule::of(volume).into_iter();
        SeenVolume {
            name: info.name.clone(),
            pool: volume.pool.clone(),
            size_bytes: info.size_bytes,
            is_thick: info.provisioning == Provisioning::Thick,
            detects_zeroes: info.detects_zeroes,
            limits: limits(said),
            is_snapshot: volume.is_snapshot(),
            is_trashed,
            description: description(said),
            tags: tags(said),
            group: group_of(volume).cloned(),
            schedules: schedules.map(|one| (one.every_s, one.keep)).collect(),
            site_name: said.attributes.get(SITE_NAME).cloned(),
        }
    }
}

/// What a file says of who may log in to a target.
pub(super) fn access_of(export: &site::Export) -> Access {
    use array::directory::Initiators;
    Access {
        initiators: match &export.initiators {
            site::Initiators::Any => Initiators::Any,
            site::Initiators::Named(names) => Initiators::Named(names.iter().cloned().collect()),
        },
        hosts: export.hosts.iter().cloned().collect(),
        host_groups: export.host_groups.iter().cloned().collect(),
        account: export.chap.as_ref().map(array::control::hosts::account_of),
        portals: match export.portals.is_empty() {
            true => None,
            false => Some(export.portals.iter().copied().collect()),
        },
    }
}
