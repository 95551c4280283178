//! Requests about pools: list, scrub, rates of background work, spares.

use super::deadline::Served;
use super::health;
use super::problem::Refusal;
use super::problem::{Body, Segment};
use super::status::numbers;
use crate::array::Array;
use api::{
    Background, Cache, DriveAdd, Group, Io, LastScrub, MissingDrive, Operations, Pool, Problem,
    Rates, RatesChange, ScrubChange, Task, TaskKind,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use engine::pool::maintenance::{ScrubInfo, TaskInfo};
use engine::pool::{GroupInfo, MemberInfo, MemberState, PoolInfo};
use engine::store::counts::IoCounts;
use std::sync::Arc;
use std::time::SystemTime;

/// All pools, by name.
#[utoipa::path(
    get, path = "/api/v1/pools", tag = "pools",
    responses((status = 200, body = Vec<Pool>), (status = 503, body = Problem))
)]
pub(super) async fn list_pools(State(served): State<Served>) -> Result<Json<Vec<Pool>>, Refusal> {
    Ok(Json(known(&served).await?))
}

/// All pools, as far as they are known.
async fn known(served: &Served) -> Result<Vec<Pool>, Refusal> {
    let array = &served.array;
    let glance = array.glance(served.patience.look).await?;
    let shown = |(shard, info): (usize, PoolInfo)| {
        let silent = array.silent_homes(&info.name, &glance.silent);
        Pool {
            silent_shards: numbers(&silent),
            ..pool(array, shard, info)
        }
    };
    Ok(glance.pools.into_iter().map(shown).collect())
}

/// The pool of this name.
#[utoipa::path(
    get, path = "/api/v1/pools/{name}", tag = "pools",
    params(("name" = String, Path, description = "Name of the pool")),
    responses((status = 200, body = Pool), (status = 404, body = Problem))
)]
pub(super) async fn get_pool(
    State(served): State<Served>,
    Segment(name): Segment<String>,
) -> Result<Json<Pool>, Refusal> {
    let mut pools = known(&served).await?.into_iter();
    let found = pools.find(|pool| pool.name == name);
    let found = found.ok_or_else(|| served.array.no_such_pool(&name))?;
    Ok(Json(found))
}

/// Begins a scrub, or ends the one under way.
#[utoipa::path(
    put, path = "/api/v1/pools/{name}/scrub", tag = "pools", request_body = ScrubChange,
    params(("name" = String, Path, description = "Name of the pool")),
    responses((status = 200, body = Pool), (status = 404, body = Problem))
)]
pub(super) async fn change_scrub(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(change): Body<ScrubChange>,
) -> Result<Json<Pool>, Refusal> {
    array.scrub(&name, change.running).await?;
    shown(&array, &name).await
}

/// Changes the limits of work in the background. They stay after a restart.
#[utoipa::path(
    put, path = "/api/v1/pools/{name}/rates", tag = "pools", request_body = RatesChange,
    params(("name" = String, Path, description = "Name of the pool")),
    responses(
        (status = 200, body = Pool), (status = 400, body = Problem),
        (status = 404, body = Problem)
    )
)]
pub(super) async fn change_rates(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(change): Body<RatesChange>,
) -> Result<Json<Pool>, Refusal> {
    check(&change)?;
    array
        .change_rates(name.clone(), move |rates| changed(rates, change))
        .await?;
    shown(&array, &name).await
}

/// That there can be such limits.
fn check(change: &RatesChange) -> Result<(), Refusal> {
    let found = [
        ("rebuild rate", change.rebuild_bytes_per_s),
        ("scrub rate", change.scrub_bytes_per_s),
    ];
    for (what, found) in found {
        let (least, most) = (1 << 20, site::RATE_BYTES_MAX);
        let is_wrong = |found: &u64| *found != 0 && !(least..=most).contains(found);
        if let Some(found) = found.filter(is_wrong) {
            let [found, least, most] = [found, least, most].map(site::human);
            let message = format!(
                "{what}: found {found}/s; allowed: {least}/s to {most}/s, or 0 for no limit"
            );
            return Err(Refusal::invalid(message));
        }
    }
    Ok(())
}

/// `rates` with what `change` says.
fn changed(
    rates: engine::pool::maintenance::Rates,
    change: RatesChange,
) -> engine::pool::maintenance::Rates {
    let limit = |asked: Option<u64>, now: Option<u64>| match asked {
        None => now,
        Some(0) => None,
        Some(bytes_per_s) => Some(bytes_per_s),
    };
    engine::pool::maintenance::Rates {
        rebuild_bytes_per_s: limit(change.rebuild_bytes_per_s, rates.rebuild_bytes_per_s),
        scrub_bytes_per_s: limit(change.scrub_bytes_per_s, rates.scrub_bytes_per_s),
        yields: change
            .background
            .map_or(rates.yields, |background| background == Background::Yield),
    }
}

/// Adds a drive that stands in for one that fails, or has failed.
#[utoipa::path(
    post, path = "/api/v1/pools/{name}/spares", tag = "pools", request_body = DriveAdd,
    params(("name" = String, Path, description = "Name of the pool")),
    responses(
        (status = 201, body = Pool), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn add_spare(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(add): Body<DriveAdd>,
) -> Result<(StatusCode, Json<Pool>), Refusal> {
    array
        .add_spare(name.clone(), super::drives::new_drive(add)?)
        .await?;
    Ok((StatusCode::CREATED, shown(&array, &name).await?))
}

/// A pool as it is now.
pub(super) async fn shown(array: &Array, name: &str) -> Result<Json<Pool>, Refusal> {
    let (shard, info) = array.pool(name).await?;
    Ok(Json(pool(array, shard, info)))
}

fn names(members: &[MemberInfo]) -> Vec<String> {
    members.iter().map(|member| member.name.clone()).collect()
}

fn group(info: &GroupInfo) -> Group {
    Group {
        index: info.index,
        level: info.level.to_string(),
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

fn free_bytes(info: &PoolInfo) -> u64 {
    let used = info.mapped_bytes + info.promised_bytes;
    info.capacity_bytes.saturating_sub(used)
}

fn pool(array: &Array, shard: usize, info: PoolInfo) -> Pool {
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
        overhead_bytes: super::space::overhead_bytes(&info),
        fullness: super::space::fullness(&info),
        thresholds: super::space::thresholds(&info),
        provisioned_bytes: info.provisioned_bytes,
        snapshots_bytes: info.snapshots_bytes,
        epoch: info.epoch,
        shard: shard as u64,
        silent_shards: Vec::new(),
        drives: names(&info.members),
        groups: info.groups.iter().map(group).collect(),
        spares: names(&info.spares),
        tasks: info.tasks.iter().map(task).collect(),
        log_used_bytes: info.log_used_bytes,
        log_capacity_bytes: info.log_capacity_bytes,
        mended_bytes: info.mended_bytes,
        lost_bytes: info.lost_bytes,
        cache: Cache {
            capacity_bytes: info.cache.capacity_bytes,
            resident_bytes: info.cache.resident_bytes,
            hits: info.cache.hits,
            misses: info.cache.misses,
            ahead_bytes: info.cache.ahead_bytes,
            ahead_used_bytes: info.cache.ahead_used_bytes,
        },
        io: io(&info.io),
        rates: Rates {
            rebuild_bytes_per_s: info.rates.rebuild_bytes_per_s,
            scrub_bytes_per_s: info.rates.scrub_bytes_per_s,
            background: match info.rates.yields {
                true => Background::Yield,
                false => Background::Full,
            },
        },
        scrubs: info.scrubs_ended,
        failure: info.failure,
        uuid: info.uuid.to_string(),
        name: info.name,
    }
}
