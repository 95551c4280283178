//! Requests about space: thresholds of pools, provisioning and holdings of volumes.

use super::problem::Refusal;
use super::problem::{Body, Segment};
use crate::array::{Array, ArrayError, ArrayErrorKind};
use api::{Pool, Problem, Provisioning, ThresholdsChange};
use api::{Shrinking, Volume, VolumeConvert, VolumeSpace};
use axum::Json;
use axum::extract::{Query, State, rejection::QueryRejection};
use engine::pool::VolumeChange;
use engine::pool::maintenance::fullness;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Changes the percentages from which on a pool tells that it gets full. They stay after a
/// restart.
#[utoipa::path(
    put, path = "/api/v1/pools/{name}/thresholds", tag = "pools",
    request_body = ThresholdsChange,
    params(("name" = String, Path, description = "Name of the pool")),
    responses(
        (status = 200, body = Pool), (status = 400, body = Problem),
        (status = 404, body = Problem)
    )
)]
pub(super) async fn change_thresholds(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(change): Body<ThresholdsChange>,
) -> Result<Json<Pool>, Refusal> {
    array
        .change_thresholds(name.clone(), move |now| changed(now, change))
        .await?;
    super::pool_view::shown(&array, &name).await
}

fn changed(
    now: fullness::Thresholds,
    change: ThresholdsChange,
) -> Result<fullness::Thresholds, ArrayError> {
    let next = fullness::Thresholds {
        warn_percent: change.warn_percent.unwrap_or(now.warn_percent),
        alarm_percent: change.alarm_percent.unwrap_or(now.alarm_percent),
    };
    let is_percent = |percent: u8| (1..=100).contains(&percent);
    if is_percent(next.warn_percent)
        && is_percent(next.alarm_percent)
        && next.warn_percent <= next.alarm_percent
    {
        return Ok(next);
    }
    let context = format!(
        "thresholds: found {} % and {} %; allowed: from 1 to 100, the alarm not below the warning",
        next.warn_percent, next.alarm_percent
    );
    Err(ArrayError::new(ArrayErrorKind::Invalid, context))
}

/// Changes how a volume takes space; its initiators are told. All pages of one that
/// becomes thick are set aside for it: when they do not fit, nothing changes.
#[utoipa::path(
    put, path = "/api/v1/volumes/{name}/provisioning", tag = "volumes",
    request_body = VolumeConvert,
    params(("name" = String, Path, description = "Name of the volume")),
    responses(
        (status = 200, body = Volume), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn convert_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(convert): Body<VolumeConvert>,
) -> Result<Json<Volume>, Refusal> {
    let change = VolumeChange {
        provisioning: convert.provisioning.map(|provisioning| match provisioning {
            Provisioning::Thin => engine::Provisioning::Thin,
            Provisioning::Thick => engine::Provisioning::Thick,
        }),
        detects_zeroes: convert.detect_zeroes,
    };
    let placed = array.convert_volume(name, change).await?;
    let all = array.volumes().await?;
    Ok(Json(super::volumes::volume(&array, &all, placed)))
}

/// What a volume holds alone, and what it shares with snapshots and clones. Its map is
/// looked through for that, as far as it is its own.
#[utoipa::path(
    get, path = "/api/v1/volumes/{name}/space", tag = "volumes",
    params(("name" = String, Path, description = "Name of the volume")),
    responses((status = 200, body = VolumeSpace), (status = 404, body = Problem))
)]
pub(super) async fn get_space(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<VolumeSpace>, Refusal> {
    let held = array.holdings(&name).await?;
    Ok(Json(VolumeSpace {
        name,
        provisioned_bytes: held.provisioned_bytes,
        mapped_bytes: held.mapped_bytes,
        exclusive_bytes: held.exclusive_bytes,
        shared_bytes: held.shared_bytes,
        promised_bytes: held.promised_bytes,
        reclaimable_bytes: held.reclaimable_bytes(),
    }))
}

/// The size that a volume is to have.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSize {
    /// A multiple of 512, not zero; its size now when it is not said.
    size_bytes: Option<u64>,
}

/// What a volume would lose if it shrank. Nothing is changed.
#[utoipa::path(
    get, path = "/api/v1/volumes/{name}/shrinking", tag = "volumes",
    params(("name" = String, Path, description = "Name of the volume"), NewSize),
    responses(
        (status = 200, description = "What would be lost", body = Shrinking),
        (status = 409, description = "A job is at work on it", body = Problem)
    )
)]
pub(super) async fn get_shrinking(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    to: Result<Query<NewSize>, QueryRejection>,
) -> Result<Json<Shrinking>, Refusal> {
    let Query(to) = to.map_err(|wrong| Refusal::invalid(wrong.body_text()))?;
    to.size_bytes.map_or(Ok(()), super::volumes::check_size)?;
    let end_bytes = to.size_bytes.unwrap_or(u64::MAX);
    let (size_bytes, lost_mapped_bytes) = array.behind(&name, end_bytes).await?;
    Ok(Json(Shrinking {
        size_bytes,
        lost_bytes: size_bytes.saturating_sub(end_bytes),
        lost_mapped_bytes,
    }))
}
