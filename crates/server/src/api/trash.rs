//! Requests about the trash: list, empty, delete, restore.

use super::problem::Refusal;
use super::problem::{Body, Segment};
use super::volumes::{check_name, volume};
use crate::array::{Array, PlacedVolume};
use api::{Problem, TrashRestore, Trashed, Volume};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;

/// What is in the trash, what came in first at the front.
#[utoipa::path(
    get, path = "/api/v1/trash", tag = "trash",
    responses((status = 200, body = Vec<Trashed>), (status = 503, body = Problem))
)]
pub(super) async fn list_trash(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<Trashed>>, Refusal> {
    let all = array.trash().await?.into_iter();
    Ok(Json(all.map(|placed| trashed(&array, placed)).collect()))
}

/// Deletes all that is in the trash, with its data.
#[utoipa::path(
    delete, path = "/api/v1/trash", tag = "trash",
    responses((status = 204), (status = 503, body = Problem))
)]
pub(super) async fn empty_trash(State(array): State<Arc<Array>>) -> Result<StatusCode, Refusal> {
    array.empty_trash().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a volume that is in the trash, with its data.
#[utoipa::path(
    delete, path = "/api/v1/trash/{name}", tag = "trash",
    params(("name" = String, Path, description = "UUID or name; of several of a name the last")),
    responses((status = 204), (status = 404, body = Problem))
)]
pub(super) async fn delete_trashed(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<StatusCode, Refusal> {
    array.delete_trashed(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a volume out of the trash.
#[utoipa::path(
    post, path = "/api/v1/trash/{name}/restore", tag = "trash", request_body = TrashRestore,
    params(("name" = String, Path, description = "UUID or name; of several of a name the last")),
    responses(
        (status = 200, body = Volume), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn restore_trashed(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(restore): Body<TrashRestore>,
) -> Result<Json<Volume>, Refusal> {
    restore.name.as_deref().map_or(Ok(()), check_name)?;
    let placed = array.recover_volume(name, restore.name).await?;
    let all = array.volumes().await?;
    Ok(Json(volume(&array, &all, placed)))
}

fn trashed(array: &Array, placed: PlacedVolume) -> Trashed {
    let PlacedVolume {
        pool,
        info,
        properties,
        ..
    } = placed;
    let since_unix_s = properties.trashed_unix_s.unwrap_or(0);
    Trashed {
        name: info.name,
        uuid: info.uuid.to_string(),
        pool,
        size_bytes: info.size_bytes,
        mapped_bytes: info.mapped_bytes,
        since_unix_s,
        until_unix_s: since_unix_s.saturating_add(array.trash_kept().as_secs()),
    }
}
