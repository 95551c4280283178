//! Requests for I/O statistics of volumes, initiators and sessions.

use super::problem::Refusal;
use crate::array::Array;
use crate::shard::CountedSession;
use crate::shard::latency::below_ns;
use crate::shard::tally::{Flow, Kind, Rare, Timing, Totals, size_from_bytes};
use api::{
    CommandStats, InitiatorStats, IoStats, LatencyBucket, LatencyStats, Problem, SessionStats,
    SizeCount, TransferStats, VolumeStats,
};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use std::time::Duration;

/// What was done at each volume since the start, by name.
#[utoipa::path(
    get, path = "/api/v1/stats/volumes", tag = "status",
    responses((status = 200, body = Vec<VolumeStats>), (status = 503, body = Problem))
)]
pub(super) async fn volume_stats(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<VolumeStats>>, Refusal> {
    let volumes = array.volume_totals().await?.into_iter();
    let over_ms = millis(array.uptime());
    let stats = volumes.map(|(volume, counted)| VolumeStats {
        name: volume.info.name,
        uuid: volume.info.uuid.to_string(),
        sessions: counted.sessions,
        over_ms,
        io: io_stats(&counted.totals, over_ms),
    });
    Ok(Json(stats.collect()))
}

/// What each initiator did since the start, by name. Of those that are gone, the last 1024
/// of each shard are known.
#[utoipa::path(
    get, path = "/api/v1/stats/initiators", tag = "status",
    responses((status = 200, body = Vec<InitiatorStats>), (status = 503, body = Problem))
)]
pub(super) async fn initiator_stats(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<InitiatorStats>>, Refusal> {
    let initiators = array.initiator_totals().await?.into_iter();
    let over_ms = millis(array.uptime());
    let stats = initiators.map(|(name, counted)| InitiatorStats {
        name,
        sessions: counted.sessions,
        over_ms,
        io: io_stats(&counted.totals, over_ms),
    });
    Ok(Json(stats.collect()))
}

/// What each connected session did since it began, by number.
#[utoipa::path(
    get, path = "/api/v1/stats/sessions", tag = "status",
    responses((status = 200, body = Vec<SessionStats>), (status = 503, body = Problem))
)]
pub(super) async fn session_stats(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<SessionStats>>, Refusal> {
    let sessions = array.session_totals().await?.into_iter();
    let stats = sessions.map(of_session);
    Ok(Json(stats.collect()))
}

fn of_session(session: CountedSession) -> SessionStats {
    let over_ms = millis(session.age);
    SessionStats {
        id: session.info.tsih,
        initiator: session.info.initiator,
        target: session.info.target,
        since_unix_s: session.info.since_unix_s,
        over_ms,
        io: io_stats(&session.totals, over_ms),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn io_stats(totals: &Totals, over_ms: u64) -> IoStats {
    let stats = IoStats {
        commands: totals.commands,
        reads: transfer_stats(&totals.reads),
        writes: transfer_stats(&totals.writes),
        unmaps: command_stats(totals.of(Kind::Unmap)),
        write_sames: command_stats(totals.of(Kind::WriteSame)),
        compare_and_writes: command_stats(totals.of(Kind::CompareAndWrite)),
        offloads: command_stats(totals.of(Kind::Offload)),
        errors: totals.errors,
        reservation_conflicts: totals.conflicts,
        queue_depth_ns: totals.depth_ns,
        queue_depth_max: totals.depth_max,
        ..IoStats::default()
    };
    stats.derived(over_ms)
}

fn command_stats(rare: &Rare<u64>) -> CommandStats {
    let of = |timing: &Timing<u64>| CommandStats {
        commands: timing.commands,
        latency: latency_stats(timing),
    };
    rare.timing().map(of).unwrap_or_default()
}

fn transfer_stats(flow: &Flow<u64>) -> TransferStats {
    let sizes = flow.sizes.iter().enumerate();
    let sizes = sizes.map(|(class, commands)| SizeCount {
        from_bytes: size_from_bytes(class),
        commands: *commands,
    });
    TransferStats {
        commands: flow.timing.commands,
        bytes: flow.bytes,
        random: flow.random,
        sizes: sizes.filter(|size| size.commands > 0).collect(),
        latency: latency_stats(&flow.timing),
    }
}

fn latency_stats(timing: &Timing<u64>) -> LatencyStats {
    let buckets = timing.buckets.iter().enumerate();
    let buckets = buckets.map(|(bucket, commands)| LatencyBucket {
        below_ns: below_ns(bucket),
        commands: *commands,
    });
    let buckets = buckets.filter(|bucket| bucket.commands > 0).collect();
    LatencyStats::of(buckets, timing.total_ns, timing.max_ns)
}
