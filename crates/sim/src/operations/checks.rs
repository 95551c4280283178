//! What holds whenever nothing is under way.

use super::Boot;
use super::draw::INITIATORS;
use super::observe::{discovery_of, is_by_schedule};
use array::control::hosts::KnownHosts;
use array::control::schedule::Subject;
use array::control::{PlacedVolume, Schedule};
use array::pool::Paces;

use base::Uuid;
use iscsi::login::{Admission, LoginPortal};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// A schedule has run so long after its time.
const LATE_S: u64 = 20;

impl Boot {
    /// Those who may log in are those whom exports and hosts admit.
    pub(super) fn check_access(&self) {
        let model = self.books.model.borrow();
        let served: BTreeSet<String> = self
            .directory
            .targets()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        if !served.iter().eq(model.exports.keys()) {
            let what = format!(
                "served are {served:?}, exports are {:?}",
                model.exports.keys()
            );
            return self.books.fail(&self.world, what);
        }
        for target in model.exports.keys() {
            for initiator in INITIATORS {
                let admission = Admission {
                    initiator: initiator.to_owned(),
                    account: None,
                    portal: LoginPortal {
                        portal_group: 1,
                        address: SocketAddr::from(([10, 0, 0, 1], 3260)),
                    },
                };
                let (may, does) = (
                    model.admits(initiator, target),
                    self.directory.admits(&admission, target),
                );
                if may != does {
                    let what = format!("{initiator} at {target}: may log in {may}, can {does}");
                    return self.books.fail(&self.world, what);
                }
            }
        }
    }

    /// The settings say of each pool what it goes by.
    pub(super) fn check_settings(&self) {
        let model = self.books.model.borrow();
        for pool in &self.array.settings().pools {
            let (settled, goes_by) = (Paces::of(pool), model.paces.get(&pool.name));
            if goes_by != Some(&settled) {
                let what = format!(
                    "pool {}: {settled:?} by the settings, {goes_by:?}",
                    pool.name
                );
                return self.books.fail(&self.world, what);
            }
        }
    }

    /// Volumes are on their way between pools where jobs move them, and nowhere else.
    pub(super) fn check_copies(&self) {
        if self.books.stalls_one_of.is_some() {
            return;
        }
        let pending: BTreeSet<Uuid> = self
            .array
            .jobs()
            .pending()
            .iter()
            .filter_map(|job| job.uuid())
            .collect();
        for lane in self.shards.states.iter().flat_map(|state| state.pools()) {
            let transits = lane.transits().into_iter();
            let mut left = transits.filter(|(info, _)| !pending.contains(&info.uuid));
            if let Some((info, transit)) = left.next() {
                let (name, stage, pool) = (info.name, transit.stage, lane.name());
                let what = format!("no job moves {name}, which pool {pool} has as {stage:?}");
                return self.books.fail(&self.world, what);
            }
        }
    }

    /// Targets show the volumes that their exports name, and no others.
    pub(super) fn check_luns(&self) {
        for export in self.array.exports() {
            let target = &export.target;
            let Some(entry) = self.directory.target(target) else {
                let why = export.withheld.unwrap_or_default();
                let what = format!("{target} is not served: {why}");
                return self.books.fail(&self.world, what);
            };
            let shown = self.shards.states[entry.shard].luns(target);
            let shown: Vec<(u16, Uuid)> = shown
                .iter()
                .map(|(lun, disk)| (*lun, disk.info().uuid))
                .collect();
            let named: Vec<(u16, Uuid)> = export.luns.iter().copied().zip(export.uuids).collect();
            if shown != named {
                let what = format!("{target} shows {shown:?}, its export names {named:?}");
                return self.books.fail(&self.world, what);
            }
        }
    }

    /// The record says of exports, hosts and settings what the array says.
    pub(super) fn check_record(&self) {
        let kept = self.books.records.configuration.kept();
        let hosts = |known: &KnownHosts| -> BTreeMap<String, BTreeSet<String>> {
            let hosts = known.hosts.iter();
            hosts
                .map(|(name, host)| (name.clone(), host.initiators.clone()))
                .collect()
        };
        let now = self.array.configuration();
        if hosts(&kept.known) != hosts(&now.known) {
            return self.books.fail(&self.world, "the record has other hosts");
        }
        // Names may have changed since: identities count.
        let exports = |all: &BTreeMap<String, array::control::Export>| {
            let of = |one: &array::control::Export| {
                (
                    one.target.clone(),
                    one.luns.clone(),
                    one.uuids.clone(),
                    one.access.clone(),
                )
            };
            all.values().map(of).collect::<Vec<_>>()
        };
        if exports(&kept.exports) != exports(&now.exports) {
            return self.books.fail(&self.world, "the record has other exports");
        }
        if discovery_of(&kept) != discovery_of(&now) {
            let what = "the record has another account for discovery";
            return self.books.fail(&self.world, what);
        }
        if kept.settings != now.settings {
            self.books
                .fail(&self.world, "the record has other settings");
        }
    }

    /// Schedules have run when they were due, and keep as many as they should.
    pub(super) async fn check_schedules(&self) {
        let all = match self.array.volumes().await {
            Ok(all) => all,
            Err(error) => {
                let what = format!("looking at snapshots: {error}");
                return self.books.fail(&self.world, what);
            }
        };
        for volume in all.iter().filter(|one| !one.is_snapshot()) {
            let own = array::control::schedule::of(volume).into_iter();
            let of_group = array::control::schedule::of_group(volume);
            for schedule in own.chain(of_group) {
                self.check_schedule(&all, volume, &schedule);
            }
        }
        self.check_marks(&all);
    }

    /// The same of one schedule of a volume.
    fn check_schedule(&self, all: &[PlacedVolume], volume: &PlacedVolume, schedule: &Schedule) {
        let mark = schedule.mark();
        let has_mark =
            |one: &&PlacedVolume| one.properties.attributes.get("_taken-by") == Some(&mark);
        let at = |one: &PlacedVolume| Some(one.properties.origin.as_ref()?.at_unix_s);
        let of_volume = all.iter().filter(|one| has_mark(one) && one.is_of(volume));
        let taken: Vec<u64> = of_volume.filter_map(at).collect();
        let name = &volume.info.name;
        if taken.len() as u64 > schedule.keep + 1 {
            let count = taken.len();
            let what = format!("{name}: schedule {schedule:?} has {count} snapshots");
            return self.books.fail(&self.world, what);
        }
        // A volume that joined a group just now has none of its schedules yet: any member's count.
        let newest = match schedule.subject {
            Subject::Volume => taken.iter().copied().max(),
            Subject::Group => all.iter().filter(has_mark).filter_map(at).max(),
        };
        let now = self.array.runtime().unix_s();
        let from = self.began_unix_s.get().max(schedule.since_unix_s);
        let due_s = schedule.every_s + LATE_S;
        if now > from + due_s && newest.unwrap_or(0) + due_s < now {
            let what = format!("{name}: schedule {schedule:?} did not run by {now}: {taken:?}");
            self.books.fail(&self.world, what);
        }
    }

    /// Snapshots by schedule say which took them.
    fn check_marks(&self, all: &[PlacedVolume]) {
        let unmarked = |one: &&PlacedVolume| {
            is_by_schedule(&one.info.name) && !one.properties.attributes.contains_key("_taken-by")
        };
        if let Some(one) = all.iter().find(unmarked) {
            let what = format!("{} does not say which schedule took it", one.info.name);
            self.books.fail(&self.world, what);
        }
    }
}
