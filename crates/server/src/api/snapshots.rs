//! Requests about snapshots and clones.

use super::problem::Refusal;
use super::problem::{Body, Segment};
use super::volumes::{check_name, deleted, volume};
use crate::array::{Array, Deletion, PlacedVolume};
use api::{Deleted, LunPlace, Problem, Snapshot, SnapshotCreate, Volume, VolumeClone};
use axum::Json;
use axum::extract::{Query, State, rejection::QueryRejection};
use axum::http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Which snapshots.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// Of this volume only.
    volume: Option<String>,
}

/// Snapshots, by name: all, or those of one volume.
#[utoipa::path(
    get, path = "/api/v1/snapshots", tag = "snapshots", params(Which),
    responses(
        (status = 200, body = Vec<Snapshot>), (status = 400, body = Problem),
        (status = 404, body = Problem)
    )
)]
pub(super) async fn list_snapshots(
    State(array): State<Arc<Array>>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Vec<Snapshot>>, Refusal> {
    let Query(which) = which.map_err(|wrong| Refusal::invalid(wrong.body_text()))?;
    let snapshots = array.snapshots(which.volume.as_deref()).await?;
    let all = array.volumes().await?;
    let shown = snapshots.into_iter().map(|one| snapshot(&array, &all, one));
    Ok(Json(shown.collect()))
}

/// The snapshot of this name.
#[utoipa::path(
    get, path = "/api/v1/snapshots/{name}", tag = "snapshots",
    params(("name" = String, Path, description = "Name of the snapshot: VOLUME@NAME")),
    responses((status = 200, body = Snapshot), (status = 404, body = Problem))
)]
pub(super) async fn get_snapshot(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<Snapshot>, Refusal> {
    let found = array.snapshot(&name).await?;
    let all = array.volumes().await?;
    Ok(Json(snapshot(&array, &all, found)))
}

/// Takes a snapshot of a volume: what it has at one instant, which nobody writes. It
/// takes no space until the volume changes.
#[utoipa::path(
    post, path = "/api/v1/volumes/{name}/snapshots", tag = "snapshots",
    request_body = SnapshotCreate,
    params(("name" = String, Path, description = "Name of the volume")),
    responses(
        (status = 201, body = Snapshot), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn create_snapshot(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(create): Body<SnapshotCreate>,
) -> Result<(StatusCode, Json<Snapshot>), Refusal> {
    check_name(&create.name)?;
    let taken = array.take_snapshot(name, &create.name).await?;
    let all = array.volumes().await?;
    Ok((StatusCode::CREATED, Json(snapshot(&array, &all, taken))))
}

/// Deletes a snapshot: it goes into the trash. The volume, other snapshots and clones stay as they
/// are. One that is exported is refused.
#[utoipa::path(
    delete, path = "/api/v1/snapshots/{name}", tag = "snapshots",
    params(("name" = String, Path, description = "Name of the snapshot: VOLUME@NAME"), AtOnce),
    responses(
        (status = 200, description = "What came of it", body = Deleted),
        (status = 404, description = "There is no such snapshot", body = Problem),
        (status = 409, description = "It is exported", body = Problem)
    )
)]
pub(super) async fn delete_snapshot(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    how: Result<Query<AtOnce>, QueryRejection>,
) -> Result<Json<Deleted>, Refusal> {
    let gone = array.delete_snapshot(name, deletion(how)?).await?;
    Ok(Json(deleted(gone)))
}

/// How to delete a snapshot.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AtOnce {
    /// It does not pass the trash.
    #[serde(default)]
    at_once: bool,
}

pub(super) fn deletion(how: Result<Query<AtOnce>, QueryRejection>) -> Result<Deletion, Refusal> {
    let Query(how) = how.map_err(|wrong| Refusal::invalid(wrong.body_text()))?;
    Ok(Deletion {
        at_once: how.at_once,
        ..Deletion::default()
    })
}

/// Makes a volume that begins as what a volume or a snapshot has. Both go their own ways
/// from then on; it takes no space until one of them changes.
#[utoipa::path(
    post, path = "/api/v1/volumes/{name}/clone", tag = "snapshots", request_body = VolumeClone,
    params(("name" = String, Path, description = "Name of the volume or snapshot")),
    responses(
        (status = 201, body = Volume), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn clone_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(clone): Body<VolumeClone>,
) -> Result<(StatusCode, Json<Volume>), Refusal> {
    check_name(&clone.name)?;
    let made = array.clone_volume(name, clone.name).await?;
    let all = array.volumes().await?;
    Ok((StatusCode::CREATED, Json(volume(&array, &all, made))))
}

pub(super) fn snapshot(array: &Array, all: &[PlacedVolume], placed: PlacedVolume) -> Snapshot {
    let mut of = all.iter().filter(|other| placed.is_of(other));
    let of = of.next().map(|other| other.info.name.clone());
    let PlacedVolume {
        pool,
        info,
        properties,
        ..
    } = placed;
    let export = array.lun_of(&info.name, Some(info.uuid));
    Snapshot {
        name: info.name,
        uuid: info.uuid.to_string(),
        volume: of,
        pool,
        at_unix_s: properties.origin.map_or(0, |origin| origin.at_unix_s),
        size_bytes: info.size_bytes,
        mapped_bytes: info.mapped_bytes,
        export: export.map(|(target, lun)| LunPlace {
            target,
            lun: lun as u64,
        }),
    }
}
