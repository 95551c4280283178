//! A pool as the API shows it.

use super::health;
use super::problem::Refusal;
use crate::array::Array;
use ::array::pool::paces::{DAY, HOUR};
use api::{
    Background, Cache, Group, Io, LastScrub, MissingDrive, Operations, Pool, Rates, ScrubRound,
    Task, TaskKind, Thresholds,
};
use axum::Json;
use engine::pool::maintenance::{ScrubInfo, TaskInfo, fullness};
use engine::pool::{GroupInfo, MemberInfo, MemberState, PoolInfo};
use engine::store::counts::IoCounts;
use std::time::{Duration, SystemTime};

/// A pool as it is now.
pub(super) async fn shown(array: &Array, name: &str) -> Result<Json<Pool>, Refusal> {
    let (shard, info) = array.pool(name).await?;
    Ok(Json(pool(array, shard, info)))
}

fn names(members: &[MemberInfo]) -> Vec<String> {
    members.iter().map(|member| member.name.clone()).collect()
}

/// The spares to which no drive is copied.
fn waiting(info: &PoolInfo) -> Vec<MemberInfo> {
    let mut spares = info.spares.clone();
    spares.retain(|spare| spare.state == MemberState::Spare);
    spares
}

fn group(info: &GroupInfo) -> Group {
    Group {
        index: info.index,
        role: info.role.as_str().to_owned(),
        level: info.level.to_string(),
        stripe_width: info.spread.map(|spread| spread.width),
        distributed_spares: info.spread.map(|spread| spread.spares),
        lost_places: info.places.lost,
        away_places: info.places.away,
        drives: names(&info.members),
        zones: info.zones,
        zones_in_use: info.zones_in_use,
        zones_to_move: info.zones_to_empty,
        leaving: info.leaving,
    }
}

fn task(info: &TaskInfo) -> Task {
    Task {
        kind: match info.kind {
            engine::pool::maintenance::TaskKind::Rebuild => TaskKind::Rebuild,
            engine::pool::maintenance::TaskKind::Scrub => TaskKind::Scrub,
            engine::pool::maintenance::TaskKind::Move => TaskKind::Move,
        },
        subject: info.subject.clone(),
        done_bytes: info.done_bytes,
        total_bytes: info.total_bytes,
        bytes_per_s: info.bytes_per_s,
        left_s: info.left.map(|left| left.as_secs()),
        due_s: info.due.map(|due| due.as_secs()),
    }
}

fn cache(info: &PoolInfo) -> Cache {
    Cache {
        capacity_bytes: info.cache.capacity_bytes,
        resident_bytes: info.cache.resident_bytes,
        hits: info.cache.hits,
        misses: info.cache.misses,
        ahead_bytes: info.cache.ahead_bytes,
        ahead_used_bytes: info.cache.ahead_used_bytes,
    }
}

fn io(counts: &IoCounts) -> Io {
    let of = |operations: engine::store::counts::Operations| Operations {
        count: operations.count,
        bytes: operations.bytes,
    };
    Io {
        host_reads: of(counts.host_reads),
        host_writes: of(counts.host_writes),
        data_reads: of(counts.data_reads),
        modify_reads: of(counts.modify_reads),
        data_writes: of(counts.data_writes),
        parity_writes: of(counts.parity_writes),
        repair_reads: of(counts.repair_reads),
        repair_writes: of(counts.repair_writes),
        log_writes: of(counts.log_writes),
        intent_writes: of(counts.intent_writes),
        sum_writes: of(counts.sum_writes),
        sum_loads: counts.sum_loads,
        partial_stripes: counts.partial_stripes,
        whole_stripes: counts.whole_stripes,
        bypassed_bytes: counts.bypassed_bytes,
    }
}

fn in_state(info: &PoolInfo, state: MemberState) -> Vec<String> {
    let members = info.members.iter();
    let in_state = members.filter(|member| member.state == state);
    in_state.map(|member| member.name.clone()).collect()
}

fn missing_drives(array: &Array, info: &PoolInfo) -> Vec<MissingDrive> {
    let missing = array.missing_drives(info).into_iter();
    let told = missing.map(|drive| MissingDrive {
        name: drive.name,
        why: drive.why,
        is_back: drive.is_back,
    });
    told.collect()
}

fn last_scrub(scrub: &ScrubInfo) -> LastScrub {
    let ended = SystemTime::now().checked_sub(scrub.age);
    let since = ended.and_then(|ended| ended.duration_since(SystemTime::UNIX_EPOCH).ok());
    LastScrub {
        ended_unix_s: since.map_or(0, |since| since.as_secs()),
        mended_blocks: scrub.found.mended,
        lost_blocks: scrub.found.lost,
    }
}

fn scrub_round(info: &PoolInfo) -> Option<ScrubRound> {
    let (round, within) = (info.scrub_round?, info.rates.scrub_within?);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()?;
    let began_unix_s = now.saturating_sub(round.age).as_secs();
    Some(ScrubRound {
        began_unix_s,
        due_unix_s: began_unix_s.saturating_add(within.as_secs()),
        done_bytes: round.done_bytes,
        total_bytes: round.total_bytes,
        mended_blocks: round.found.mended,
        lost_blocks: round.found.lost,
    })
}

/// The limits of work in the background.
fn rates(rates: &engine::pool::maintenance::Rates) -> Rates {
    Rates {
        rebuild_bytes_per_s: rates.rebuild_bytes_per_s,
        scrub_bytes_per_s: rates.scrub_bytes_per_s,
        rebuild_hours: count_of(rates.rebuild_within, HOUR),
        scrub_days: count_of(rates.scrub_within, DAY),
        background: match rates.yields {
            true => Background::Yield,
            false => Background::Full,
        },
    }
}

/// How many whole units it is, a part counted as one.
fn count_of(within: Option<Duration>, unit: Duration) -> Option<u32> {
    let count = within?.as_nanos().div_ceil(unit.as_nanos());
    Some(u32::try_from(count).unwrap_or(u32::MAX))
}

fn free_bytes(info: &PoolInfo) -> u64 {
    let used = info.mapped_bytes + info.promised_bytes;
    info.capacity_bytes.saturating_sub(used)
}

pub(super) fn pool(array: &Array, shard: usize, info: PoolInfo) -> Pool {
    let condition = health::of_pool(&info, array);
    let departed = array.departed_failures(&info).into_iter();
    let mut failed_drives = in_state(&info, MemberState::Failed);
    failed_drives.extend(departed.map(|drive| drive.name));
    Pool {
        health: condition.health,
        why: condition.why,
        suspect_drives: in_state(&info, MemberState::Suspect),
        failed_drives,
        missing_drives: missing_drives(array, &info),
        last_scrub: info.last_scrub.as_ref().map(last_scrub),
        scrub_round: scrub_round(&info),
        level: info.level.to_string(),
        lanes: info.lanes,
        page_bytes: info.page_bytes,
        capacity_bytes: info.capacity_bytes,
        mapped_bytes: info.mapped_bytes,
        promised_bytes: info.promised_bytes,
        free_bytes: free_bytes(&info),
        kept_bytes: info.kept_bytes,
        backed_bytes: info.backed_bytes,
        backing_bytes: info.backing_bytes,
        overhead_bytes: overhead_bytes(&info),
        fullness: fullness(&info),
        thresholds: thresholds(&info),
        provisioned_bytes: info.provisioned_bytes,
        snapshots_bytes: info.snapshots_bytes,
        epoch: info.epoch,
        shard: shard as u64,
        silent_shards: Vec::new(),
        drives: names(&info.members),
        groups: info.groups.iter().map(group).collect(),
        spares: names(&waiting(&info)),
        tasks: info.tasks.iter().map(task).collect(),
        log_used_bytes: info.log_used_bytes,
        log_capacity_bytes: info.log_capacity_bytes,
        log_drives: info.log_drives.clone(),
        mended_bytes: info.mended_bytes,
        lost_bytes: info.lost_bytes,
        cache: cache(&info),
        io: io(&info.io),
        rates: rates(&info.rates),
        scrubs: info.scrubs_ended,
        failure: info.failure,
        uuid: info.uuid.to_string(),
        name: info.name,
    }
}

/// The thresholds of a pool.
pub(super) fn thresholds(info: &PoolInfo) -> Thresholds {
    Thresholds {
        warn_percent: info.fullness.thresholds.warn_percent,
        alarm_percent: info.fullness.thresholds.alarm_percent,
    }
}

/// How full a pool is.
pub(super) fn fullness(info: &PoolInfo) -> api::Fullness {
    use api::Fullness;
    match info.fullness.fullness {
        fullness::Fullness::Ample => Fullness::Ample,
        fullness::Fullness::Warn => Fullness::Warn,
        fullness::Fullness::Alarm => Fullness::Alarm,
        fullness::Fullness::Full => Fullness::Full,
    }
}

/// Bytes of a pool's drives that hold no data of volumes: labels, metadata, logs, sums,
/// and what no zone has.
pub(super) fn overhead_bytes(info: &PoolInfo) -> u64 {
    let of_group = |group: &engine::pool::GroupInfo| {
        let zones_bytes = u64::from(group.zones) * group.zone_bytes;
        let members = group.members.iter();
        members
            .map(|member| member.capacity_bytes.saturating_sub(zones_bytes))
            .sum::<u64>()
    };
    info.groups.iter().map(of_group).sum()
}
