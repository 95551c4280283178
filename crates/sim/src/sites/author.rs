//! Draws site files, and edits of them.
//!
//! Invariant: each keeps every rule of a site file: what breaks one is never drawn.

use super::NAMES;
use crate::control::{PORTAL, settings};
use crate::pools::shelf::{Bay, Shelf};
use base::Prng;
use engine::Level;
use engine::qos::{Limits, Rate};
use site::{
    Background, ChapAccount, ConsistencyGroup, Credential, Export, Group, Host, HostGroup,
    Initiators, Pool, Portal, Provisioning, Schedule, Secret, Site, Volume,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

/// Volumes that a file describes of a pool, at most.
const VOLUMES_MAX: usize = 5;

/// Initiators that there are.
pub(super) const INITIATORS: [&str; 5] = [
    "iqn.2026-11.sim:a",
    "iqn.2026-11.sim:b",
    "iqn.2026-11.sim:c",
    "iqn.2026-11.sim:d",
    "iqn.2026-11.sim:e",
];

/// Targets that files describe.
pub(super) const TARGETS: [&str; 4] = [
    "iqn.2026-11.sim:t0",
    "iqn.2026-11.sim:t1",
    "iqn.2026-11.sim:t2",
    "iqn.2026-11.sim:t3",
];

const HOSTS: [&str; 4] = ["h0", "h1", "h2", "h3"];
const HOST_GROUPS: [&str; 2] = ["hg0", "hg1"];
const GROUPS: [&str; 2] = ["g0", "g1"];

/// A site file that somebody writes.
pub(super) struct Author<'a> {
    pub(super) prng: &'a mut Prng,
    pub(super) shelf: &'a Shelf,
    /// Drives that the array has, whatever the file says.
    pub(super) used: BTreeSet<String>,
    /// What is described once is described for good, and stays where it is.
    pub(super) is_gentle: bool,
}

/// A site as its file reads. The text of a site shows no secrets: they are put back.
///
/// # Errors
/// It breaks a rule.
pub(super) fn read_again(site: &Site) -> Result<Site, String> {
    let mut bare = site.clone();
    bare.hosts.iter_mut().for_each(|host| host.chap = None);
    let exports = bare.exports.iter_mut();
    exports.for_each(|export| export.chap = None);
    bare.chap.discovery = None;
    let read = site::parse("sim", &site::text(&bare));
    let mut read = read.map_err(|error| error.to_string())?;
    for host in &mut read.hosts {
        let said = site.hosts.iter().find(|said| said.name == host.name);
        host.chap = said.and_then(|said| said.chap.clone());
    }
    for export in &mut read.exports {
        let mut said = site.exports.iter();
        let said = said.find(|said| said.target == export.target);
        export.chap = said.and_then(|said| said.chap.clone());
    }
    read.chap.discovery = site.chap.discovery.clone();
    Ok(read)
}

impl Author<'_> {
    /// A first site file.
    ///
    /// # Errors
    /// It breaks a rule.
    pub(super) fn first(&mut self) -> Result<Site, String> {
        let mut site = settings(&[], &[], &[PORTAL.into()])?;
        self.add_pool(&mut site);
        for _ in 0..self.prng.between(6, 20) {
            site = self.edited(&site);
        }
        Ok(site)
    }

    /// The file after some edits.
    pub(super) fn edits(&mut self, site: &Site) -> Site {
        let mut site = site.clone();
        for _ in 0..self.prng.between(1, 5) {
            site = self.edited(&site);
        }
        site
    }

    /// The file after an edit, or as it was where that would break a rule.
    fn edited(&mut self, site: &Site) -> Site {
        let mut edited = site.clone();
        match self.prng.below(16) {
            0..=2 => self.add_volume(&mut edited),
            3 | 4 => self.change_volume(&mut edited),
            5 => self.change_group(&mut edited),
            6 | 7 => self.change_host(&mut edited),
            8 => self.change_host_group(&mut edited),
            9 | 10 => self.add_export(&mut edited),
            11 | 12 => self.change_export(&mut edited),
            13 => self.change_settings(&mut edited),
            14 => self.add_pool(&mut edited),
            _ if !self.is_gentle => self.remove(&mut edited),
            _ => {}
        }
        read_again(&edited).unwrap_or_else(|_| site.clone())
    }

    fn add_pool(&mut self, site: &mut Site) {
        let described = site.drives.iter().map(|drive| drive.name.clone());
        let used: BTreeSet<String> = described.chain(self.used.iter().cloned()).collect();
        let is_free = |bay: &&Rc<Bay>| !used.contains(&bay.name) && !bay.is_away.get();
        let mut free: Vec<Rc<Bay>> = self.shelf.own().filter(is_free).cloned().collect();
        let name = NAMES.into_iter().find(|name| site.pool(name).is_none());
        let (level, count) = *self
            .prng
            .pick(&[(Level::Simple, 1), (Level::Raid10 { copies: 2 }, 2)]);
        let Some(name) = name.filter(|_| free.len() >= count) else {
            return;
        };
        let at = |prng: &mut Prng, free: &[Rc<Bay>]| prng.below(free.len() as u64) as usize;
        let taken: Vec<Rc<Bay>> = (0..count)
            .map(|_| free.swap_remove(at(self.prng, &free)))
            .collect();
        let names = taken.iter().map(|bay| bay.name.clone()).collect();
        site.drives.extend(taken.iter().map(|bay| bay.drive()));
        site.pools.push(Pool {
            name: name.to_owned(),
            groups: vec![Group::of_data(level, names)],
            lanes: self.prng.between(1, 2) as u16,
            stripe_unit_bytes: 8 << 10,
            page_bytes: 8192 << self.prng.below(2),
            cache_bytes: 0,
            ..Pool::usual()
        });
    }

    fn add_volume(&mut self, site: &mut Site) {
        let pool = self.prng.pick(&site.pools).name.clone();
        let of_pool = site.volumes.iter().filter(|volume| volume.pool == pool);
        let name = format!("v{}", self.prng.below(8));
        let is_there = site.volumes.iter().any(|volume| volume.name == name);
        if of_pool.count() >= VOLUMES_MAX || is_there {
            return;
        }
        let mut volume = Volume {
            name,
            pool,
            size_bytes: self.size_bytes(),
            provisioning: match self.prng.chance(1, 4) {
                true => Provisioning::Thick,
                false => Provisioning::Thin,
            },
            description: None,
            tags: BTreeMap::new(),
            detect_zeroes: None,
            limits: None,
            schedules: Vec::new(),
        };
        if self.prng.chance(1, 2) {
            self.describe(&mut volume);
        }
        site.volumes.push(volume);
    }

    fn size_bytes(&mut self) -> u64 {
        (64 << 10) * self.prng.between(1, 8)
    }

    fn change_volume(&mut self, site: &mut Site) {
        if site.volumes.is_empty() {
            return;
        }
        let pool = self.prng.pick(&site.pools).name.clone();
        let at = self.prng.below(site.volumes.len() as u64) as usize;
        let volume = &mut site.volumes[at];
        match self.prng.below(8) {
            // A smaller one, another pool, another way to take space: these stay as they are.
            0 => volume.size_bytes = self.size_bytes(),
            1 if !self.is_gentle => volume.pool = pool,
            2 => volume.provisioning = Provisioning::Thin,
            3 => volume.size_bytes += 64 << 10,
            _ => self.describe(volume),
        }
    }

    fn describe(&mut self, volume: &mut Volume) {
        let number = self.prng.below(3);
        match self.prng.below(4) {
            0 => {
                volume.description = Some(format!("for {number}"));
                volume.limits = Some(Limits {
                    ios: Some(Rate::even(1000 + number)),
                    ..Limits::default()
                });
            }
            1 => {
                let key = format!("key{}", self.prng.below(2));
                volume.tags.insert(key, format!("value{number}"));
            }
            2 => volume.detect_zeroes = Some(self.prng.chance(1, 2)),
            _ => volume.schedules.push(self.schedule()),
        }
    }

    fn schedule(&mut self) -> Schedule {
        Schedule {
            every: Duration::from_secs(3600 * self.prng.between(1, 3)),
            keep: self.prng.between(1, 2),
        }
    }

    /// Adds a volume or a schedule to a consistency group.
    fn change_group(&mut self, site: &mut Site) {
        let name = *self.prng.pick(&GROUPS);
        let is_free = |volume: &&Volume| {
            let mut groups = site.groups.iter();
            !groups.any(|group| group.volumes.contains(&volume.name))
        };
        let free: Vec<String> = site
            .volumes
            .iter()
            .filter(is_free)
            .map(|volume| volume.name.clone())
            .collect();
        let schedule = self.schedule();
        let group = site.groups.iter_mut().find(|group| group.name == name);
        match group {
            Some(group) if free.is_empty() || self.prng.chance(1, 3) => {
                group.schedules.push(schedule);
            }
            _ if free.is_empty() => {}
            Some(group) => group.volumes.push(self.prng.pick(&free).clone()),
            None => site.groups.push(ConsistencyGroup {
                name: name.to_owned(),
                volumes: vec![self.prng.pick(&free).clone()],
                schedules: Vec::new(),
            }),
        }
    }

    /// Adds a host, gives it an initiator, also of another host, or another secret.
    fn change_host(&mut self, site: &mut Site) {
        let name = *self.prng.pick(&HOSTS);
        let initiator = self.initiator();
        let chap = self.account();
        for host in &mut site.hosts {
            host.initiators.retain(|other| *other != initiator);
        }
        let host = site.hosts.iter_mut().find(|host| host.name == name);
        match host {
            Some(host) if self.prng.chance(1, 4) => host.chap = chap,
            Some(host) if self.prng.chance(1, 2) => host.initiators = vec![initiator],
            Some(host) => host.initiators.push(initiator),
            None => site.hosts.push(Host {
                name: name.to_owned(),
                initiators: vec![initiator],
                chap,
            }),
        }
    }

    fn initiator(&mut self) -> String {
        (*self.prng.pick(&INITIATORS)).to_owned()
    }

    fn account(&mut self) -> Option<ChapAccount> {
        let number = self.prng.below(3);
        let secret = Secret::new(format!("secret of account {number}").into_bytes())?;
        self.prng.chance(1, 3).then_some(ChapAccount {
            initiator: Credential {
                name: format!("user{number}"),
                secret,
            },
            mutual: None,
        })
    }

    /// Says which hosts a group has.
    fn change_host_group(&mut self, site: &mut Site) {
        let name = *self.prng.pick(&HOST_GROUPS);
        let hosts = self.some(site.hosts.iter().map(|host| host.name.clone()));
        site.host_groups.retain(|group| group.name != name);
        site.host_groups.push(HostGroup {
            name: name.to_owned(),
            hosts,
        });
    }

    /// Some of these, in their order.
    fn some(&mut self, all: impl Iterator<Item = String>) -> Vec<String> {
        all.filter(|_| self.prng.chance(1, 2)).collect()
    }

    fn add_export(&mut self, site: &mut Site) {
        let target = *self.prng.pick(&TARGETS);
        let free = self.not_exported(site);
        let is_there = site.exports.iter().any(|export| export.target == target);
        if free.is_empty() || is_there {
            return;
        }
        let mut export = Export {
            target: target.to_owned(),
            volumes: vec![self.prng.pick(&free).clone()],
            luns: vec![self.prng.below(3) as u16],
            initiators: Initiators::Named(vec![self.initiator()]),
            hosts: Vec::new(),
            host_groups: Vec::new(),
            chap: None,
            portals: Vec::new(),
            physical_block_bytes: None,
            may_sanitize: false,
            may_affect_others: false,
        };
        self.admit(&mut export, site);
        site.exports.push(export);
    }

    fn not_exported(&self, site: &Site) -> Vec<String> {
        let names = site.volumes.iter().map(|volume| volume.name.clone());
        let is_exported = |name: &String| {
            let mut exports = site.exports.iter();
            exports.any(|export| export.volumes.contains(name))
        };
        names.filter(|name| !is_exported(name)).collect()
    }

    /// Says anew who may log in, or adds a LUN, or both.
    fn change_export(&mut self, site: &mut Site) {
        if site.exports.is_empty() {
            return;
        }
        let free = self.not_exported(site);
        let at = self.prng.below(site.exports.len() as u64) as usize;
        let mut export = site.exports.swap_remove(at);
        if !free.is_empty() && self.prng.chance(1, 2) {
            let next = export.luns.iter().max().map_or(0, |lun| lun + 1);
            export.volumes.push(self.prng.pick(&free).clone());
            export.luns.push(next);
        }
        if self.prng.chance(3, 4) {
            self.admit(&mut export, site);
        }
        site.exports.push(export);
    }

    fn admit(&mut self, export: &mut Export, site: &Site) {
        let initiator = self.initiator();
        export.initiators = match self.prng.below(6) {
            0 => Initiators::Any,
            1 | 2 => Initiators::Named(vec![initiator]),
            _ => Initiators::Named(Vec::new()),
        };
        export.hosts = self.some(site.hosts.iter().map(|host| host.name.clone()));
        export.host_groups = self.some(site.host_groups.iter().map(|group| group.name.clone()));
        export.chap = self.account();
        export.may_sanitize = self.prng.chance(1, 4);
        export.may_affect_others = self.prng.chance(1, 4);
        export.portals = match self.prng.chance(1, 3) {
            true => vec![self.prng.pick(&site.portals).address],
            false => Vec::new(),
        };
    }

    fn change_settings(&mut self, site: &mut Site) {
        let group = self.prng.between(1, 2) as u16;
        match self.prng.below(7) {
            0 => site.trash = Duration::from_secs(100 * self.prng.between(1, 3)),
            1 => site.limits.sessions = 256 * self.prng.between(1, 3) as u16,
            2 => site.chap.discovery = self.account(),
            3 | 4 => {
                let number = self.prng.between(1, 3) as u8;
                let address = SocketAddr::from(([10, 0, 0, number], PORTAL.1));
                let portal = site.portals.iter_mut().find(|one| one.address == address);
                match portal {
                    Some(portal) => portal.group = group,
                    None => site.portals.push(Portal { address, group }),
                }
            }
            _ => {
                let at = self.prng.below(site.pools.len() as u64) as usize;
                let pool = &mut site.pools[at];
                match self.prng.below(2) {
                    0 => pool.warn_at = Some(50 + 5 * self.prng.below(4) as u8),
                    _ => pool.background = Background::Full,
                }
            }
        }
    }

    /// Describes something no more: it stays.
    fn remove(&mut self, site: &mut Site) {
        let at = |prng: &mut Prng, count: usize| prng.below(count.max(1) as u64) as usize;
        match self.prng.below(4) {
            0 if !site.volumes.is_empty() => {
                let volume = site.volumes.swap_remove(at(self.prng, site.volumes.len()));
                for group in &mut site.groups {
                    group.volumes.retain(|name| *name != volume.name);
                }
                site.groups.retain(|group| !group.volumes.is_empty());
                let shows = |export: &Export| export.volumes.contains(&volume.name);
                site.exports.retain(|export| !shows(export));
            }
            1 if !site.exports.is_empty() => {
                site.exports.swap_remove(at(self.prng, site.exports.len()));
            }
            2 if !site.hosts.is_empty() => {
                let host = site.hosts.swap_remove(at(self.prng, site.hosts.len()));
                for group in &mut site.host_groups {
                    group.hosts.retain(|name| *name != host.name);
                }
                for export in &mut site.exports {
                    export.hosts.retain(|name| *name != host.name);
                }
            }
            _ => site.chap.discovery = None,
        }
    }
}
