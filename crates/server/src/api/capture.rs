//! Requests about captures: begin one, read what it has counted, take it away.

use super::problem::{Body, Refusal};
use crate::array::Array;
use crate::shard::tally::size_from_bytes;
use crate::shard::watch::{PERIOD, Watch, WatchedFlow};
use ::array::control::Watching;
use api::{
    Capture, CaptureCreate, CapturedFlow, CapturedSize, CapturedVolume, Problem, ProblemKind,
};
use axum::Json;
use axum::extract::{Query, State, rejection::QueryRejection};
use axum::http::StatusCode;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use utoipa::IntoParams;

/// Begins to count sizes, places and bursts of all volumes for a while.
#[utoipa::path(
    post, path = "/api/v1/stats/capture", tag = "status", request_body = CaptureCreate,
    responses((status = 201, body = Capture), (status = 400, body = Problem),
        (status = 409, body = Problem))
)]
pub(super) async fn begin_capture(
    State(array): State<Arc<Array>>,
    Body(create): Body<CaptureCreate>,
) -> Result<(StatusCode, Json<Capture>), Refusal> {
    let watching = array.watch(Duration::from_secs(create.duration_s)).await?;
    let capture = capture(&array, &watching).await?;
    Ok((StatusCode::CREATED, Json(capture)))
}

/// Which capture.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// The id that it was begun with.
    id: Option<String>,
}

/// Which capture ends.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Ending {
    /// The id that it was begun with.
    id: Option<String>,
    /// The one that there is, whoever began it.
    #[serde(default)]
    force: bool,
}

/// What a capture has counted so far.
#[utoipa::path(
    get, path = "/api/v1/stats/capture", tag = "status", params(Which),
    responses((status = 200, body = Capture), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 503, body = Problem))
)]
pub(super) async fn get_capture(
    State(array): State<Arc<Array>>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Capture>, Refusal> {
    let Query(which) = which.map_err(|wrong| Refusal::invalid(wrong.body_text()))?;
    let watching = named(array.watching(), which.id.as_deref())?;
    let answer = capture(&array, &watching).await?;
    if answer.left_ms == 0 {
        watching.mark_read();
    }
    Ok(Json(answer))
}

/// Ends a capture and forgets what it has counted.
#[utoipa::path(
    delete, path = "/api/v1/stats/capture", tag = "status", params(Ending),
    responses((status = 204), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 503, body = Problem))
)]
pub(super) async fn end_capture(
    State(array): State<Arc<Array>>,
    ending: Result<Query<Ending>, QueryRejection>,
) -> Result<StatusCode, Refusal> {
    let Query(ending) = ending.map_err(|wrong| Refusal::invalid(wrong.body_text()))?;
    let there = array.watching();
    let watching = match ending.force {
        true => there.ok_or_else(none)?,
        false => named(there, ending.id.as_deref())?,
    };
    match array.stop_watching(&watching.id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(none()),
    }
}

/// The capture that there is, if it is the one that is meant.
fn named(there: Option<Watching>, id: Option<&str>) -> Result<Watching, Refusal> {
    let there = there.ok_or_else(none)?;
    match id {
        Some(id) if id == there.id => Ok(there),
        Some(id) => {
            let context = format!("there is no capture {id}: it was ended, and another was begun");
            Err(Refusal::new(ProblemKind::NotFound, context))
        }
        None => {
            let context = "which capture is not said: give the id that it was begun with";
            Err(Refusal::new(ProblemKind::Busy, context))
        }
    }
}

fn none() -> Refusal {
    let context = "there is no capture: it was not begun, or it was ended";
    Refusal::new(ProblemKind::NotFound, context)
}

/// The volumes that are still there, under the names that they have now.
async fn capture(array: &Array, watching: &Watching) -> Result<Capture, Refusal> {
    let left = array.left_of(watching).unwrap_or_default();
    let elapsed = watching.duration.saturating_sub(left);
    let periods = (elapsed.as_nanos() / PERIOD.as_nanos()) as usize;
    let volumes = array.volumes().await?.into_iter();
    let named: BTreeMap<String, _> = volumes
        .map(|placed| (placed.info.name, placed.info.uuid))
        .collect();
    let volumes = named.into_iter().filter_map(|(name, uuid)| {
        let watch = watching.watches.get(&uuid)?;
        Some(captured(name, uuid.to_string(), watch, periods))
    });
    Ok(Capture {
        id: watching.id.clone(),
        since_unix_s: watching.since_unix_s,
        duration_s: watching.duration.as_secs(),
        left_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
        volumes: volumes.collect(),
    })
}

fn captured(name: String, uuid: String, watch: &Watch, periods: usize) -> CapturedVolume {
    CapturedVolume {
        name,
        uuid,
        size_bytes: watch.size_bytes,
        grain_bytes: watch.grain_bytes,
        working_set_bytes: watch.working_set_bytes(),
        hottest_tenth: watch.hottest_tenth(),
        reads: flow(&watch.reads, periods),
        writes: flow(&watch.writes, periods),
    }
}

fn flow(flow: &WatchedFlow, periods: usize) -> CapturedFlow {
    let sizes = flow.sizes.iter().enumerate();
    let sizes = sizes.map(|(class, (commands, bytes))| CapturedSize {
        from_bytes: size_from_bytes(class),
        commands: commands.load(Relaxed),
        bytes: bytes.load(Relaxed),
    });
    let sizes: Vec<CapturedSize> = sizes.filter(|size| size.commands > 0).collect();
    let (placed, pairs) = flow.meetings();
    let whole = flow.periods.get(..periods).unwrap_or(&flow.periods);
    let (period_mean, period_variance) = spread(whole);
    CapturedFlow {
        commands: sizes.iter().map(|size| size.commands).sum(),
        random: flow.random.load(Relaxed),
        sizes,
        placed,
        pairs,
        periods: whole.len() as u64,
        period_mean,
        period_variance,
    }
}

/// Mean and variance of the counts of periods; zeroes without any.
fn spread(periods: &[AtomicU32]) -> (f64, f64) {
    if periods.is_empty() {
        return (0.0, 0.0);
    }
    let count = periods.len() as f64;
    let counts = periods.iter().map(|one| f64::from(one.load(Relaxed)));
    let (sum, squares) = counts.fold((0.0, 0.0), |(sum, squares), one| {
        (sum + one, squares + one * one)
    });
    let mean = sum / count;
    let variance = (squares - sum * mean) / (count - 1.0).max(1.0);
    (mean, variance.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_the_counts() {
        let periods = [2, 4, 4, 4, 5, 5, 7, 9].map(AtomicU32::new);
        assert_eq!(spread(&periods), (5.0, 32.0 / 7.0));
        assert_eq!(spread(&[]), (0.0, 0.0));
        assert_eq!(spread(&[AtomicU32::new(3)]), (3.0, 0.0));
    }
}
