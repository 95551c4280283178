//! Requests that only ask whether a change is possible, and change nothing.
//!
//! A client sends such a request before it asks its user to confirm, so that no user confirms an
//! impossible deletion.
//!
//! Invariant: the path of a trial belongs to the trial alone. A server that does not know a trial
//! answers 404 and changes nothing. It would ignore a mere parameter, and make the change.

use super::caller::Caller;
use super::problem::Refusal;
use super::problem::{Body, Segment};
use super::{restore, settings, snapshots, volumes};
use crate::array::{Array, Deletion};
use ::array::openings;
use api::{Problem, SettingsChange, VolumeRestore};
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, Query, State};
use axum::http::StatusCode;
use std::sync::Arc;

/// What the paths of trials begin with.
pub(super) const PATHS: &str = "/api/v1/check/";

/// Whether a volume can be deleted, as far as that is known before. Nothing is changed.
#[utoipa::path(
    delete, path = "/api/v1/check/volumes/{name}", tag = "volumes",
    params(("name" = String, Path, description = "Name of the volume"), volumes::How),
    responses(
        (status = 204, description = "It can be deleted"),
        (status = 404, description = "There is no such volume", body = Problem),
        (status = 409, description = "It is in use", body = Problem)
    )
)]
pub(super) async fn check_delete_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    how: Result<Query<volumes::How>, QueryRejection>,
) -> Result<StatusCode, Refusal> {
    let how = Deletion {
        only_check: true,
        ..volumes::deletion(how)?
    };
    array.delete_volume(name, how).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether a snapshot can be deleted, as far as that is known before. Nothing is changed.
#[utoipa::path(
    delete, path = "/api/v1/check/snapshots/{name}", tag = "snapshots",
    params(
        ("name" = String, Path, description = "Name of the snapshot: VOLUME@NAME"),
        snapshots::AtOnce
    ),
    responses(
        (status = 204, description = "It can be deleted"),
        (status = 404, description = "There is no such snapshot", body = Problem),
        (status = 409, description = "It is exported", body = Problem)
    )
)]
pub(super) async fn check_delete_snapshot(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    how: Result<Query<snapshots::AtOnce>, QueryRejection>,
) -> Result<StatusCode, Refusal> {
    let how = Deletion {
        only_check: true,
        ..snapshots::deletion(how)?
    };
    array.delete_snapshot(name, how).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether a volume can be restored so, as far as that is known before. Nothing is changed.
#[utoipa::path(
    post, path = "/api/v1/check/volumes/{name}/restore", tag = "snapshots",
    request_body = VolumeRestore,
    params(("name" = String, Path, description = "Name of the volume")),
    responses(
        (status = 204, description = "It can be restored"),
        (status = 404, description = "There is no such volume or snapshot", body = Problem),
        (status = 409, description = "It is exported, or in use", body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn check_restore_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(restore): Body<VolumeRestore>,
) -> Result<StatusCode, Refusal> {
    let (snapshot, mut how) = restore::restoring(restore)?;
    how.only_check = true;
    array.restore(name, snapshot, how).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether a pool can be destroyed, as far as that is known before. Nothing is changed.
#[utoipa::path(
    delete, path = "/api/v1/check/pools/{name}", tag = "pools",
    params(("name" = String, Path, description = "Name of the pool")),
    responses(
        (status = 204, description = "It can be destroyed"),
        (status = 404, description = "There is no such pool", body = Problem),
        (status = 409, description = "It holds volumes", body = Problem),
        (status = 503, description = "It is not open", body = Problem)
    )
)]
pub(super) async fn check_destroy_pool(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<StatusCode, Refusal> {
    openings::check_destroyable(&array, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether the record of a drive can be removed. Nothing is changed.
#[utoipa::path(
    delete, path = "/api/v1/check/drives/{name}", tag = "drives",
    params(("name" = String, Path, description = "Name of the drive")),
    responses(
        (status = 204, description = "It can be removed"),
        (status = 404, description = "There is no such drive", body = Problem),
        (status = 409, description = "It has not failed", body = Problem)
    )
)]
pub(super) async fn check_remove_drive(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<StatusCode, Refusal> {
    array.removable(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether a portal can be closed. Nothing is changed.
#[utoipa::path(
    delete, path = "/api/v1/check/portals/{address}", tag = "settings",
    params(("address" = String, Path, description = "Address and port of the portal")),
    responses(
        (status = 204, description = "It can be closed"),
        (status = 404, description = "There is no such portal", body = Problem),
        (status = 409, description = "It is the last, or a target is limited to it", body = Problem)
    )
)]
pub(super) async fn check_remove_portal(
    State(array): State<Arc<Array>>,
    Segment(at): Segment<String>,
) -> Result<StatusCode, Refusal> {
    array.without_portal(settings::of_portal(&at)?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether settings can be changed so. Nothing is changed.
#[utoipa::path(
    patch, path = "/api/v1/check/settings", tag = "settings", request_body = SettingsChange,
    responses(
        (status = 204, description = "They can be changed"),
        (status = 400, description = "No such key, or a value that it can't have", body = Problem),
        (status = 403, description = "Root may, and the server's user", body = Problem)
    )
)]
pub(super) async fn check_change_settings(
    State(array): State<Arc<Array>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    Body(change): Body<SettingsChange>,
) -> Result<StatusCode, Refusal> {
    array.check_edit(&settings::edit(change, &caller)?)?;
    Ok(StatusCode::NO_CONTENT)
}
