//! Draws requests: of things that are there for the most part, and of some that are not.

use super::RequestKind;
use super::model::{Export, Model};
use super::request::{Pace, Request};
use base::{Prng, SECTOR_BYTES};
use engine::Provisioning;
use std::collections::BTreeSet;

/// Names of volumes.
const VOLUMES: [&str; 6] = ["v0", "v1", "v2", "v3", "v4", "v5"];
/// A snapshot's own names.
const OWN: [&str; 3] = ["s0", "s1", "s2"];
const GROUPS: [&str; 2] = ["g0", "g1"];
const TARGETS: [&str; 3] = [
    "iqn.2026-11.dev.ashlar:t0",
    "iqn.2026-11.dev.ashlar:t1",
    "iqn.2026-11.dev.ashlar:t2",
];
const HOSTS: [&str; 3] = ["h0", "h1", "h2"];
const HOST_GROUPS: [&str; 2] = ["hg0", "hg1"];
/// Initiators that hosts have, or that targets admit by name.
pub(super) const INITIATORS: [&str; 4] = [
    "iqn.2026-11.sim:i0",
    "iqn.2026-11.sim:i1",
    "iqn.2026-11.sim:i2",
    "iqn.2026-11.sim:i3",
];

/// Of a volume.
const SECTORS_MAX: u64 = 64;

/// Whoever asks for things.
pub(super) struct Drawing<'a> {
    pub(super) prng: &'a mut Prng,
    pub(super) model: &'a Model,
    pub(super) pools: &'a [String],
}

impl<'a> Drawing<'a> {
    /// Asks an array that is so, which has these pools.
    pub(super) fn new(prng: &'a mut Prng, model: &'a Model, pools: &'a [String]) -> Self {
        Drawing { prng, model, pools }
    }
}

impl Drawing<'_> {
    /// One of those that are there, or, now and then, any.
    fn some_of<'a>(&mut self, there: impl Iterator<Item = &'a String>, all: &[&str]) -> String {
        let there: Vec<&String> = there.collect();
        match there.is_empty() || self.prng.chance(1, 6) {
            true => (*self.prng.pick(all)).to_owned(),
            false => (*self.prng.pick(&there)).clone(),
        }
    }

    fn volume(&mut self) -> String {
        let model = self.model;
        let volumes = model.volumes.iter().filter(|(_, one)| !one.is_snapshot);
        self.some_of(volumes.map(|(name, _)| name), &VOLUMES)
    }

    /// A volume or a snapshot.
    fn any(&mut self) -> String {
        let model = self.model;
        self.some_of(model.volumes.keys(), &VOLUMES)
    }

    fn volumes(&mut self) -> Vec<String> {
        let some: BTreeSet<String> = (0..self.prng.between(1, 3))
            .map(|_| self.volume())
            .collect();
        some.into_iter().collect()
    }

    fn group(&mut self) -> String {
        let model = self.model;
        let groups = model.volumes.values().filter_map(|one| one.group.as_ref());
        self.some_of(groups, &GROUPS)
    }

    fn member(&mut self, group: &str) -> String {
        let members = self.model.members(group);
        self.some_of(members.iter(), &VOLUMES)
    }

    fn trashed(&mut self) -> String {
        let model = self.model;
        self.some_of(model.trash.iter().map(|one| &one.name), &VOLUMES)
    }

    fn target(&mut self) -> String {
        let model = self.model;
        self.some_of(model.exports.keys(), &TARGETS)
    }

    fn host(&mut self) -> String {
        let model = self.model;
        self.some_of(model.hosts.keys(), &HOSTS)
    }

    fn host_group(&mut self) -> String {
        let model = self.model;
        self.some_of(model.host_groups.keys(), &HOST_GROUPS)
    }

    fn own(&mut self) -> String {
        (*self.prng.pick(&OWN)).to_owned()
    }

    fn new_name(&mut self) -> String {
        (*self.prng.pick(&VOLUMES)).to_owned()
    }

    fn size_bytes(&mut self) -> u64 {
        self.prng.between(1, SECTORS_MAX) * SECTOR_BYTES as u64
    }

    fn initiator(&mut self) -> String {
        (*self.prng.pick(&INITIATORS)).to_owned()
    }

    fn maybe<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.prng.chance(1, 2).then(|| draw(self))
    }

    /// A request; `ended` are the jobs that have.
    pub(super) fn of(&mut self, about: RequestKind, ended: &[u64]) -> Request {
        match about {
            RequestKind::Jobs => self.of_jobs(ended),
            RequestKind::Settings => self.of_settings(),
            RequestKind::Others => self.of_others(),
            RequestKind::TheRest => self.of_the_rest(),
            RequestKind::NoPool => self.of_no_pool(),
        }
    }

    fn of_others(&mut self) -> Request {
        match self.prng.below(10) {
            0..=3 => self.of_volumes(),
            4 | 5 => self.of_snapshots(),
            6 | 7 => self.of_groups(),
            8 => self.of_exports(),
            _ => self.of_hosts(),
        }
    }

    fn of_jobs(&mut self, ended: &[u64]) -> Request {
        let model = self.model;
        match self.prng.below(10) {
            0..=3 => Request::Move {
                volume: self.volume(),
                to: self.some_of(model.pools.iter(), &["a", "b", "c"]),
                leave_snapshots: self.prng.chance(1, 2),
            },
            4..=6 => Request::Copy {
                source: self.any(),
                target: self.new_name(),
                pool: self.maybe(|this| this.prng.pick(this.pools).clone()),
            },
            7 if !ended.is_empty() => Request::ForgetJob {
                id: *self.prng.pick(ended),
            },
            _ => Request::CancelJob {
                volume: self.some_of(model.jobs.keys(), &VOLUMES),
            },
        }
    }

    fn of_settings(&mut self) -> Request {
        let model = self.model;
        let pool = self.some_of(model.pools.iter(), &["a", "b", "c"]);
        // All lanes have whole bytes of it.
        let bytes = self.prng.below(64) << 20;
        let bytes_per_s = Some(bytes).filter(|bytes| *bytes > 0);
        match self.prng.below(8) {
            0 | 1 => Request::LimitScrub { pool, bytes_per_s },
            2 => Request::LimitRebuild {
                pool,
                bytes_per_s,
                yields: self.prng.chance(1, 2),
            },
            3 => Request::ChangeThresholds {
                pool,
                warn_percent: self.prng.between(1, 90) as u8,
                alarm_percent: self.prng.between(50, 100) as u8,
            },
            4 | 5 => Request::ChangeCache {
                pool,
                capacity_bytes: bytes,
            },
            6 => Request::LimitSessions {
                sessions: self.prng.below(200) as u16,
            },
            _ => Request::LimitLogins {
                logins: self.prng.below(200) as u16,
            },
        }
    }

    fn of_the_rest(&mut self) -> Request {
        match self.prng.below(12) {
            0..=3 => Request::Convert {
                name: match self.prng.chance(1, 3) {
                    true => self.some_of(self.model.jobs.keys(), &VOLUMES),
                    false => self.volume(),
                },
                provisioning: self.maybe(|this| match this.prng.chance(2, 3) {
                    true => Provisioning::Thick,
                    false => Provisioning::Thin,
                }),
                detects_zeroes: self.maybe(|this| this.prng.chance(1, 2)),
            },
            4 => Request::EmptyTrash,
            5 | 6 => Request::DeleteSnapshot {
                name: self.snapshot(),
                at_once: self.prng.chance(1, 2),
            },
            7 | 8 => Request::Gather {
                group: (*self.prng.pick(&GROUPS)).to_owned(),
                volumes: self.volumes(),
            },
            9 => Request::ChangeDiscovery {
                account: self.maybe(Self::own),
            },
            _ => self.pace(),
        }
    }

    fn of_no_pool(&mut self) -> Request {
        match self.prng.below(6) {
            0 | 1 => self.of_hosts(),
            2 => Request::LimitSessions {
                sessions: self.prng.below(200) as u16,
            },
            3 => Request::ChangeDiscovery {
                account: self.maybe(Self::own),
            },
            _ => self.pace(),
        }
    }

    fn snapshot(&mut self) -> String {
        let model = self.model;
        let snapshots = model.volumes.iter().filter(|(_, one)| one.is_snapshot);
        self.some_of(snapshots.map(|(name, _)| name), &VOLUMES)
    }

    fn pace(&mut self) -> Request {
        let model = self.model;
        let bytes_per_s = |this: &mut Self| this.maybe(|this| this.prng.between(1, 64) << 20);
        Request::Pace {
            pool: self.some_of(model.pools.iter(), &["a", "b", "c"]),
            pace: Pace {
                cache_bytes: self.prng.below(64) << 20,
                scrub_bytes_per_s: bytes_per_s(self),
                rebuild_bytes_per_s: bytes_per_s(self),
                yields: self.prng.chance(1, 2),
                warn_percent: self.prng.between(1, 90) as u8,
            },
        }
    }

    fn of_volumes(&mut self) -> Request {
        match self.prng.below(10) {
            0..=3 => Request::Create {
                name: self.new_name(),
                pool: self.prng.pick(self.pools).clone(),
                size_bytes: self.size_bytes(),
            },
            4 => Request::Resize {
                name: self.volume(),
                size_bytes: self.size_bytes(),
            },
            5 => Request::Delete {
                name: self.any(),
                at_once: self.prng.chance(1, 2),
            },
            6 => Request::Recover {
                name: self.trashed(),
                new: self.maybe(Self::new_name),
            },
            7 => match self.prng.chance(1, 3) {
                true => Request::DeleteTrashed {
                    name: self.trashed(),
                },
                false => Request::Describe {
                    name: self.volume(),
                    text: format!("what {} is for", self.own()),
                },
            },
            8 => Request::Rename {
                name: self.volume(),
                new: self.new_name(),
            },
            _ => Request::Tag {
                name: self.volume(),
                key: self.own(),
                value: self.maybe(Self::own).unwrap_or_default(),
            },
        }
    }

    fn of_snapshots(&mut self) -> Request {
        match self.prng.below(6) {
            0 | 1 => Request::Snapshot {
                volumes: vec![self.volume()],
                own: self.own(),
            },
            2 => Request::Snapshot {
                volumes: self.volumes(),
                own: self.own(),
            },
            3 => Request::SnapshotGroup {
                group: self.group(),
                own: self.own(),
            },
            4 => Request::Clone {
                source: self.any(),
                name: self.new_name(),
            },
            _ => Request::Restore {
                volume: self.volume(),
                own: self.own(),
                keep: self.maybe(Self::own),
            },
        }
    }

    fn of_groups(&mut self) -> Request {
        let group = self.group();
        let times = (self.prng.between(1, 30), self.prng.between(1, 3));
        match self.prng.below(8) {
            0 | 1 => Request::CreateGroup {
                group: (*self.prng.pick(&GROUPS)).to_owned(),
                volumes: self.volumes(),
            },
            2 => Request::ChangeGroup {
                add: self.maybe(Self::volume).into_iter().collect(),
                remove: self.maybe(|this| this.member(&group)).into_iter().collect(),
                group,
            },
            3 => Request::DeleteGroup { group },
            4 => Request::AddSchedule {
                name: self.volume(),
                every_s: times.0,
                keep: times.1,
            },
            5 => Request::RemoveSchedule {
                name: self.volume(),
                number: self.prng.between(1, 2),
            },
            6 => Request::AddGroupSchedule {
                group,
                every_s: times.0,
                keep: times.1,
            },
            _ => Request::RemoveGroupSchedule {
                group,
                number: self.prng.between(1, 2),
            },
        }
    }

    fn of_exports(&mut self) -> Request {
        match self.prng.below(6) {
            0 | 1 => {
                let names: BTreeSet<String> =
                    (0..self.prng.between(1, 2)).map(|_| self.any()).collect();
                let export = Export {
                    luns: (0..).zip(names).collect(),
                    initiators: self.maybe(Self::initiator).into_iter().collect(),
                    hosts: self.maybe(Self::host).into_iter().collect(),
                    host_groups: self.maybe(Self::host_group).into_iter().collect(),
                };
                let target = (*self.prng.pick(&TARGETS)).to_owned();
                Request::CreateExport { target, export }
            }
            2 => Request::ChangeExport {
                target: self.target(),
                hosts: self.maybe(Self::host).into_iter().collect(),
                host_groups: self.maybe(Self::host_group).into_iter().collect(),
            },
            3 => Request::DeleteExport {
                target: self.target(),
            },
            4 => Request::AddLun {
                target: self.target(),
                volume: self.any(),
            },
            _ => Request::RemoveLun {
                target: self.target(),
                volume: self.any(),
            },
        }
    }

    fn of_hosts(&mut self) -> Request {
        match self.prng.below(6) {
            0 | 1 => Request::CreateHost {
                host: (*self.prng.pick(&HOSTS)).to_owned(),
                initiators: BTreeSet::from([self.initiator()]),
            },
            2 => Request::ChangeHost {
                host: self.host(),
                add: self.initiator(),
                remove: self.initiator(),
            },
            3 => match self.prng.chance(1, 2) {
                true => Request::DeleteHost { host: self.host() },
                false => Request::DeleteHostGroup {
                    group: self.host_group(),
                },
            },
            4 => Request::CreateHostGroup {
                group: (*self.prng.pick(&HOST_GROUPS)).to_owned(),
                hosts: BTreeSet::from([self.host()]),
            },
            _ => Request::ChangeHostGroup {
                group: self.host_group(),
                add: self.host(),
                remove: self.host(),
            },
        }
    }
}
