//! Volumes: list, create, resize, delete.

use super::problem::{Body, Segment};
use super::types::{LunPlace, Problem, Provisioning, Volume, VolumeCreate, VolumeResize};
use crate::array::{Array, PlacedVolume};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use engine::VolumeSpec;
use std::sync::Arc;

/// All volumes, by name.
#[utoipa::path(
    get, path = "/api/v1/volumes", tag = "volumes",
    responses((status = 200, body = Vec<Volume>), (status = 503, body = Problem))
)]
pub(super) async fn list_volumes(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<Volume>>, Problem> {
    let volumes = array.volumes().await?;
    Ok(Json(
        volumes
            .into_iter()
            .map(|placed| volume(&array, placed))
            .collect(),
    ))
}

/// The volume of this name.
#[utoipa::path(
    get, path = "/api/v1/volumes/{name}", tag = "volumes",
    params(("name" = String, Path, description = "Name of the volume")),
    responses((status = 200, body = Volume), (status = 404, body = Problem))
)]
pub(super) async fn get_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<Volume>, Problem> {
    let placed = array.volume(&name).await?;
    Ok(Json(volume(&array, placed)))
}

/// Creates a volume. A thick one has all its pages, zeroed, when this answers.
#[utoipa::path(
    post, path = "/api/v1/volumes", tag = "volumes", request_body = VolumeCreate,
    responses(
        (status = 201, body = Volume), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn create_volume(
    State(array): State<Arc<Array>>,
    Body(create): Body<VolumeCreate>,
) -> Result<(StatusCode, Json<Volume>), Problem> {
    if !site::is_name(&create.name) {
        let message = format!(
            "name: found {:?}; allowed: {}",
            create.name,
            site::NAME_RULE
        );
        return Err(Problem::invalid(message));
    }
    check_size(create.size_bytes)?;
    let spec = VolumeSpec {
        name: create.name,
        size_bytes: create.size_bytes,
        provisioning: match create.provisioning {
            Provisioning::Thin => engine::Provisioning::Thin,
            Provisioning::Thick => engine::Provisioning::Thick,
        },
    };
    let placed = array.create_volume(create.pool, spec, Vec::new()).await?;
    Ok((StatusCode::CREATED, Json(volume(&array, placed))))
}

/// Grows a volume; its initiators are told. A smaller size is refused.
#[utoipa::path(
    patch, path = "/api/v1/volumes/{name}", tag = "volumes", request_body = VolumeResize,
    params(("name" = String, Path, description = "Name of the volume")),
    responses(
        (status = 200, body = Volume), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 507, body = Problem)
    )
)]
pub(super) async fn resize_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(resize): Body<VolumeResize>,
) -> Result<Json<Volume>, Problem> {
    check_size(resize.size_bytes)?;
    let placed = array.resize_volume(name, resize.size_bytes).await?;
    Ok(Json(volume(&array, placed)))
}

/// Deletes a volume with all its data. One that is exported is refused.
#[utoipa::path(
    delete, path = "/api/v1/volumes/{name}", tag = "volumes",
    params(("name" = String, Path, description = "Name of the volume")),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem))
)]
pub(super) async fn delete_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<StatusCode, Problem> {
    array.delete_volume(name).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn check_size(size_bytes: u64) -> Result<(), Problem> {
    if site::is_volume_size(size_bytes) {
        return Ok(());
    }
    let message = format!(
        "size_bytes: found {size_bytes}; allowed: {}",
        site::VOLUME_SIZE_RULE
    );
    Err(Problem::invalid(message))
}

fn volume(array: &Array, placed: PlacedVolume) -> Volume {
    let PlacedVolume { pool, info, .. } = placed;
    let export = array.lun_of(&info.name);
    Volume {
        name: info.name,
        uuid: info.uuid.to_string(),
        pool,
        size_bytes: info.size_bytes,
        mapped_bytes: info.mapped_bytes,
        provisioning: match info.provisioning {
            engine::Provisioning::Thin => Provisioning::Thin,
            engine::Provisioning::Thick => Provisioning::Thick,
        },
        export: export.map(|(target, lun)| LunPlace {
            target,
            lun: lun as u64,
        }),
    }
}
