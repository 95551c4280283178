//! Requests for snapshots of several volumes at one instant, and for restoring volumes.

use super::problem::Refusal;
use super::problem::{Body, Segment};
use super::snapshots::snapshot;
use super::volumes::{check_name, volume};
use crate::array::{Array, Present, Restoring};
use api::{Problem, Snapshot, SnapshotsCreate, Volume, VolumeRestore};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;

/// Takes snapshots of several volumes at one instant: all of them or none.
#[utoipa::path(
    post, path = "/api/v1/snapshots", tag = "snapshots", request_body = SnapshotsCreate,
    responses(
        (status = 201, body = Vec<Snapshot>), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn create_snapshots(
    State(array): State<Arc<Array>>,
    Body(create): Body<SnapshotsCreate>,
) -> Result<(StatusCode, Json<Vec<Snapshot>>), Refusal> {
    if create.snapshots.is_empty() {
        return Err(Refusal::invalid("snapshots: found none".to_owned()));
    }
    for wanted in &create.snapshots {
        check_name(&wanted.name)?;
    }
    let pairs = create.snapshots.into_iter();
    let pairs = pairs.map(|wanted| (wanted.volume, wanted.name)).collect();
    let taken = array.take_snapshots(pairs).await?;
    let all = array.volumes().await?;
    let shown = taken.into_iter().map(|one| snapshot(&array, &all, one));
    Ok((StatusCode::CREATED, Json(shown.collect())))
}

/// Gives a volume what a snapshot has, at once. What it had becomes a snapshot, unless that
/// is not wanted.
#[utoipa::path(
    post, path = "/api/v1/volumes/{name}/restore", tag = "snapshots",
    request_body = VolumeRestore,
    params(("name" = String, Path, description = "Name of the volume")),
    responses(
        (status = 200, body = Volume), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn restore_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(restore): Body<VolumeRestore>,
) -> Result<Json<Volume>, Refusal> {
    let (snapshot, how) = restoring(restore)?;
    let restored = array.restore(name, snapshot, how).await?;
    let all = array.volumes().await?;
    Ok(Json(volume(&array, &all, restored)))
}

/// From which snapshot a request restores, and how.
pub(super) fn restoring(restore: VolumeRestore) -> Result<(String, Restoring), Refusal> {
    let present = match restore.keep {
        Some(keep) => {
            check_name(&keep)?;
            Present::Kept(keep)
        }
        None => Present::Discarded,
    };
    let how = Restoring {
        present,
        by_force: restore.force,
        only_check: false,
    };
    Ok((restore.snapshot, how))
}
