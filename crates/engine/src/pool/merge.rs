//! Merging the reports of a pool's lanes into a report of the pool.

use super::maintenance::{Rates, RoundInfo, ScrubInfo};
use super::{GroupInfo, MemberInfo, MemberState, PoolInfo};
use crate::cache::CacheStats;
use crate::store::counts::{IoCounts, Operations};

impl PoolInfo {
    /// The whole pool; `None` for no lanes. Drives are in the worst state that they have
    /// in any lane.
    pub fn of_lanes(lanes: impl IntoIterator<Item = PoolInfo>) -> Option<PoolInfo> {
        lanes.into_iter().reduce(PoolInfo::with)
    }

    /// The lane that a new volume goes to, where none says otherwise: the one whose volumes are smallest
    /// together. `lanes` is what each lane says of itself, the first lane first.
    pub fn emptiest_lane(lanes: impl IntoIterator<Item = PoolInfo>) -> u16 {
        let sizes = lanes.into_iter().map(|info| info.provisioned_bytes);
        sizes.zip(0..).min().map_or(0, |(_, lane)| lane)
    }

    fn with(mut self, other: PoolInfo) -> PoolInfo {
        // What no lane has taken yet is in the capacity of each that could take it.
        let free_zones_bytes = self.free_zones_bytes.max(other.free_zones_bytes);
        let taken = |info: &PoolInfo| info.capacity_bytes.saturating_sub(info.free_zones_bytes);
        let capacity_bytes = taken(&self) + taken(&other) + free_zones_bytes;
        add_groups(&mut self.groups, other.groups);
        let members = self.groups.iter().flat_map(|group| group.members.clone());
        let members: Vec<MemberInfo> = members.collect();
        let mut spares: Vec<MemberInfo> = self.spares;
        for spare in other.spares {
            if spares.iter().all(|own| own.uuid != spare.uuid) {
                spares.push(spare);
            }
        }
        spares.retain(|spare| members.iter().all(|member| member.uuid != spare.uuid));
        self.tasks.extend(other.tasks);
        self.departed.extend(other.departed);
        let rounds = self.scrub_round.zip(other.scrub_round);
        let scrubs = self.last_scrub.zip(other.last_scrub);
        PoolInfo {
            capacity_bytes,
            free_zones_bytes,
            promised_bytes: self.promised_bytes + other.promised_bytes,
            kept_bytes: self.kept_bytes + other.kept_bytes,
            backing_bytes: self.backing_bytes + other.backing_bytes,
            backed_bytes: self.backed_bytes + other.backed_bytes,
            mapped_bytes: self.mapped_bytes + other.mapped_bytes,
            provisioned_bytes: self.provisioned_bytes + other.provisioned_bytes,
            snapshots_bytes: self.snapshots_bytes + other.snapshots_bytes,
            members,
            spares,
            epoch: self.epoch.max(other.epoch),
            log_used_bytes: self.log_used_bytes + other.log_used_bytes,
            log_drives: with_others(self.log_drives, other.log_drives),
            log_capacity_bytes: self.log_capacity_bytes + other.log_capacity_bytes,
            mended_bytes: self.mended_bytes + other.mended_bytes,
            lost_bytes: self.lost_bytes + other.lost_bytes,
            copies_are_short: self.copies_are_short || other.copies_are_short,
            scrubs_ended: self.scrubs_ended.min(other.scrubs_ended),
            cache: self.cache.with(&other.cache),
            io: self.io.with(&other.io),
            rates: self.rates.with(&other.rates),
            last_scrub: scrubs.map(|(a, b)| a.with(b)),
            scrub_round: rounds.map(|(a, b)| a.with(b)),
            failure: self.failure.or(other.failure),
            ..self
        }
    }
}

fn add_groups(groups: &mut Vec<GroupInfo>, others: Vec<GroupInfo>) {
    for theirs in others {
        match groups.iter_mut().find(|own| own.index == theirs.index) {
            Some(own) => own.add(theirs),
            None => groups.push(theirs),
        }
    }
}

fn with_others(mut names: Vec<String>, others: Vec<String>) -> Vec<String> {
    for name in others {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl GroupInfo {
    fn add(&mut self, other: GroupInfo) {
        self.zones_in_use += other.zones_in_use;
        self.zones_to_empty += other.zones_to_empty;
        self.leaving |= other.leaving;
        self.places = self.places.and(other.places);
        for (own, theirs) in self.members.iter_mut().zip(other.members) {
            if own.uuid == theirs.uuid {
                own.add(&theirs);
            }
        }
    }
}

/// The worse, the higher.
fn badness(state: MemberState) -> u8 {
    match state {
        MemberState::Spare => 0,
        MemberState::Healthy => 1,
        MemberState::Suspect => 2,
        MemberState::Rebuilding => 3,
        MemberState::Failed => 4,
    }
}

impl MemberInfo {
    fn add(&mut self, other: &MemberInfo) {
        if badness(other.state) > badness(self.state) {
            self.state = other.state;
            self.trouble.clone_from(&other.trouble);
        } else if other.state == self.state && self.trouble.is_none() {
            self.trouble.clone_from(&other.trouble);
        }
        self.successor = self.successor.take().or_else(|| other.successor.clone());
        self.reads += other.reads;
        self.writes += other.writes;
        self.flushes += other.flushes;
        self.errors += other.errors;
        self.mends += other.mends;
        self.read_latency = self.read_latency.max(other.read_latency);
        self.write_latency = self.write_latency.max(other.write_latency);
    }
}

impl ScrubInfo {
    fn with(self, other: ScrubInfo) -> ScrubInfo {
        ScrubInfo {
            age: self.age.max(other.age),
            found: self.found.and(other.found),
        }
    }
}

impl RoundInfo {
    fn with(self, other: RoundInfo) -> RoundInfo {
        RoundInfo {
            age: self.age.max(other.age),
            done_bytes: self.done_bytes + other.done_bytes,
            total_bytes: self.total_bytes + other.total_bytes,
            found: self.found.and(other.found),
        }
    }
}

impl Rates {
    /// What each of so many lanes may do.
    pub fn of_each(self, lanes: u64) -> Rates {
        Rates {
            rebuild_bytes_per_s: self.rebuild_bytes_per_s.map(|rate| rate.div_ceil(lanes)),
            scrub_bytes_per_s: self.scrub_bytes_per_s.map(|rate| rate.div_ceil(lanes)),
            ..self
        }
    }

    /// What lanes may do together.
    pub fn of_all(self, lanes: u64) -> Rates {
        let together = |rate: u64| rate.saturating_mul(lanes);
        Rates {
            rebuild_bytes_per_s: self.rebuild_bytes_per_s.map(together),
            scrub_bytes_per_s: self.scrub_bytes_per_s.map(together),
            ..self
        }
    }

    fn with(self, other: &Rates) -> Rates {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Rates {
            rebuild_bytes_per_s: sum(self.rebuild_bytes_per_s, other.rebuild_bytes_per_s),
            scrub_bytes_per_s: sum(self.scrub_bytes_per_s, other.scrub_bytes_per_s),
            ..self
        }
    }
}

impl CacheStats {
    fn with(self, other: &CacheStats) -> CacheStats {
        CacheStats {
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            inserted: self.inserted + other.inserted,
            evicted: self.evicted + other.evicted,
            ahead_bytes: self.ahead_bytes + other.ahead_bytes,
            ahead_used_bytes: self.ahead_used_bytes + other.ahead_used_bytes,
            resident_bytes: self.resident_bytes + other.resident_bytes,
            capacity_bytes: self.capacity_bytes + other.capacity_bytes,
        }
    }
}

impl Operations {
    fn with(self, other: Operations) -> Operations {
        Operations {
            count: self.count + other.count,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl IoCounts {
    fn with(self, other: &IoCounts) -> IoCounts {
        IoCounts {
            host_reads: self.host_reads.with(other.host_reads),
            host_writes: self.host_writes.with(other.host_writes),
            data_reads: self.data_reads.with(other.data_reads),
            modify_reads: self.modify_reads.with(other.modify_reads),
            data_writes: self.data_writes.with(other.data_writes),
            parity_writes: self.parity_writes.with(other.parity_writes),
            repair_reads: self.repair_reads.with(other.repair_reads),
            repair_writes: self.repair_writes.with(other.repair_writes),
            log_writes: self.log_writes.with(other.log_writes),
            intent_writes: self.intent_writes.with(other.intent_writes),
            sum_writes: self.sum_writes.with(other.sum_writes),
            sum_loads: self.sum_loads + other.sum_loads,
            partial_stripes: self.partial_stripes + other.partial_stripes,
            whole_stripes: self.whole_stripes + other.whole_stripes,
            bypassed_bytes: self.bypassed_bytes + other.bypassed_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_rate_is_no_failed_assertion() {
        let most = Rates {
            rebuild_bytes_per_s: Some(u64::MAX),
            scrub_bytes_per_s: Some(u64::MAX),
            ..Rates::default()
        };
        for lanes in [1, 2, 3, 4] {
            let each = most.of_each(lanes);
            assert_eq!(each.of_all(lanes), most);
            let all = (1..lanes).fold(each, |all, _| all.with(&each));
            assert_eq!(all, most);
        }
        let none = Rates::default();
        assert_eq!(most.with(&none).rebuild_bytes_per_s, None);
    }
}
