//! Requests for the array at a glance, and for sums over sessions and drives.

use super::deadline::Served;
use super::health;
use super::problem::Refusal;
use crate::array::{self, Array};
use api::{ClosedPool, Problem, Stats, Status};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;

/// The array at a glance.
#[utoipa::path(
    get, path = "/api/v1/status", tag = "status",
    responses((status = 200, body = Status), (status = 503, body = Problem))
)]
pub(super) async fn get_status(State(served): State<Served>) -> Result<Json<Status>, Refusal> {
    let array = &served.array;
    let glance = array.glance(served.patience.look).await?;
    let pools = &glance.pools;
    let closed: Vec<ClosedPool> = array.closed_pools().into_iter().map(closed_pool).collect();
    let condition = health::of_array(&glance, &closed, array);
    Ok(Json(Status {
        site: array.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_s: array.uptime_s(),
        health: condition.health,
        why: condition.why,
        portals: array
            .directory()
            .portals()
            .iter()
            .map(|portal| portal.address.to_string())
            .collect(),
        pools: pools.len() as u64,
        volumes: glance.volumes as u64,
        exports: array.exports().len() as u64,
        sessions: glance.sessions as u64,
        capacity_bytes: pools.iter().map(|(_, info)| info.capacity_bytes).sum(),
        mapped_bytes: pools.iter().map(|(_, info)| info.mapped_bytes).sum(),
        promised_bytes: pools.iter().map(|(_, info)| info.promised_bytes).sum(),
        silent_shards: numbers(&glance.silent),
        closed_pools: closed,
    }))
}

/// Shards as they are shown.
pub(super) fn numbers(shards: &[usize]) -> Vec<u64> {
    shards.iter().map(|shard| *shard as u64).collect()
}

fn closed_pool(pool: array::ClosedPool) -> ClosedPool {
    ClosedPool {
        name: pool.name,
        why: pool.why,
        since_unix_s: pool.since_unix_s,
    }
}

/// Sums over connected sessions and all drives.
#[utoipa::path(
    get, path = "/api/v1/stats", tag = "status",
    responses((status = 200, body = Stats), (status = 503, body = Problem))
)]
pub(super) async fn get_stats(State(array): State<Arc<Array>>) -> Result<Json<Stats>, Refusal> {
    let mut stats = Stats {
        uptime_s: array.uptime_s(),
        ..Stats::default()
    };
    for session in array.sessions().await? {
        stats.sessions += 1;
        stats.commands += session.commands;
        stats.reads += session.reads;
        stats.writes += session.writes;
        stats.read_bytes += session.read_bytes;
        stats.written_bytes += session.written_bytes;
        stats.in_flight += session.in_flight;
    }
    for (_, pool) in array.pools().await? {
        for member in pool.members {
            stats.drive_reads += member.reads;
            stats.drive_writes += member.writes;
            stats.drive_flushes += member.flushes;
            stats.drive_errors += member.errors;
        }
    }
    Ok(Json(stats))
}
