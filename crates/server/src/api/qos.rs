//! Requests about the limits of volumes.

use super::problem::Refusal;
use super::problem::{Body, Segment};
use crate::array::{Array, PlacedVolume, limits};
use api::{Limits, Problem, VolumeLimits};
use axum::Json;
use axum::extract::State;
use engine::qos::{self, Rate};
use std::sync::Arc;

/// The limits of all volumes that have some, by name of the volume.
#[utoipa::path(
    get, path = "/api/v1/qos", tag = "qos",
    responses((status = 200, body = Vec<VolumeLimits>))
)]
pub(super) async fn list_limits(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<VolumeLimits>>, Refusal> {
    let all = array.volumes().await?;
    let limited = all.iter().filter(|one| !limits(&one.properties).is_none());
    Ok(Json(limited.map(|one| shown(&array, one)).collect()))
}

/// The limits of a volume, and what they did.
#[utoipa::path(
    get, path = "/api/v1/qos/{volume}", tag = "qos",
    params(("volume" = String, Path, description = "Name of the volume or snapshot")),
    responses((status = 200, body = VolumeLimits), (status = 404, body = Problem))
)]
pub(super) async fn get_limits(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<VolumeLimits>, Refusal> {
    let volume = array.volume(&name).await?;
    Ok(Json(shown(&array, &volume)))
}

/// Limits a volume, in place of the limits that it has; without any, it has none. They count at
/// once, also for commands that wait.
#[utoipa::path(
    put, path = "/api/v1/qos/{volume}", tag = "qos", request_body = Limits,
    params(("volume" = String, Path, description = "Name of the volume or snapshot")),
    responses(
        (status = 200, body = VolumeLimits), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 507, body = Problem)
    )
)]
pub(super) async fn set_limits(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(wanted): Body<Limits>,
) -> Result<Json<VolumeLimits>, Refusal> {
    let volume = array.limit_volume(name, asked(&wanted)?).await?;
    Ok(Json(shown(&array, &volume)))
}

/// The limits that are asked for.
fn asked(wanted: &Limits) -> Result<qos::Limits, Refusal> {
    let rate = |per_s: Option<u64>, peak: Option<u64>, (name, of): (&str, &str)| match (per_s, peak)
    {
        (Some(per_s), None) => Ok(Some(Rate::even(per_s))),
        (Some(per_s), Some(peak_per_s)) if peak_per_s > per_s => {
            Ok(Some(Rate { per_s, peak_per_s }))
        }
        (None, None) => Ok(None),
        (_, Some(peak)) => {
            let message =
                format!("{name}: found {peak}; allowed: more than {of}, which has to be there");
            Err(Refusal::invalid(message))
        }
    };
    let Limits {
        iops,
        burst_iops,
        bytes_per_s,
        burst_bytes_per_s,
        burst_s,
        io_bytes,
    } = *wanted;
    if burst_s == Some(0) {
        let message = "burst_s: found 0; allowed: 1 to 3600 seconds";
        return Err(Refusal::invalid(message.to_owned()));
    }
    Ok(qos::Limits {
        ios: rate(iops, burst_iops, ("burst_iops", "iops"))?,
        bytes: rate(
            bytes_per_s,
            burst_bytes_per_s,
            ("burst_bytes_per_s", "bytes_per_s"),
        )?,
        io_bytes,
        burst_s: burst_s.unwrap_or(0),
    })
}

fn shown(array: &Array, volume: &PlacedVolume) -> VolumeLimits {
    let counts = array.limit_counts(volume.info.uuid);
    let limits = limits(&volume.properties);
    VolumeLimits {
        volume: volume.info.name.clone(),
        pool: volume.pool.clone(),
        limits: Limits {
            iops: limits.ios.map(|rate| rate.per_s),
            burst_iops: limits.ios.and_then(Rate::peak),
            bytes_per_s: limits.bytes.map(|rate| rate.per_s),
            burst_bytes_per_s: limits.bytes.and_then(Rate::peak),
            burst_s: Some(limits.burst_s).filter(|seconds| *seconds > 0),
            io_bytes: limits.io_bytes,
        },
        waiting: counts.waiting,
        held: counts.held,
        held_ms: counts.held_time.as_millis() as u64,
        refused: counts.refused,
    }
}
