//! Requests about jobs: import and export of images, copies and moves of volumes.

use super::problem::Refusal;
use super::problem::{Body, Segment};
use super::volumes::volume;
use crate::array::{Array, NewPlace};
use crate::images::{self, NewExport, NewImport};
use ::array::control::jobs::{NewCopy, NewMove};
use api::{Job, Problem, Provisioning, Volume, VolumeCopy, VolumeExport, VolumeImport, VolumeMove};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;

/// Begins to make a volume of an image. It can be used once the job is done.
#[utoipa::path(
    post, path = "/api/v1/volumes/{name}/import", tag = "jobs", request_body = VolumeImport,
    params(("name" = String, Path, description = "Name that the volume is to have")),
    responses(
        (status = 202, body = Job), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn import_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(import): Body<VolumeImport>,
) -> Result<(StatusCode, Json<Job>), Refusal> {
    if !site::is_name(&name) {
        let message = format!("name: found {name:?}; allowed: {}", site::NAME_RULE);
        return Err(Refusal::invalid(message));
    }
    let new = NewImport {
        file: import.file.into(),
        format: import.format,
        pool: import.pool,
        name,
        provisioning: match import.provisioning {
            Provisioning::Thin => engine::Provisioning::Thin,
            Provisioning::Thick => engine::Provisioning::Thick,
        },
        verify: import.verify,
        rate_bytes_per_s: rate(import.rate_bytes_per_s)?,
    };
    let job = images::import(&array, new).await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

/// Begins to make an image of a volume. The file is there once the job is done.
#[utoipa::path(
    post, path = "/api/v1/volumes/{name}/export", tag = "jobs", request_body = VolumeExport,
    params(("name" = String, Path, description = "Name of the volume")),
    responses(
        (status = 202, body = Job), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn export_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(export): Body<VolumeExport>,
) -> Result<(StatusCode, Json<Job>), Refusal> {
    let new = NewExport {
        volume: name,
        file: export.file.into(),
        format: export.format,
        options: export.options,
        verify: export.verify,
        live: export.live,
        rate_bytes_per_s: rate(export.rate_bytes_per_s)?,
    };
    let job = images::export(&array, new).await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

/// Begins to move a volume to another pool, while it is used. It is there once the job is
/// done; until then it stays where it is, and can't be resized, renamed, restored,
/// converted or deleted.
#[utoipa::path(
    post, path = "/api/v1/volumes/{name}/move", tag = "jobs", request_body = VolumeMove,
    params(("name" = String, Path, description = "Name of the volume")),
    responses(
        (status = 202, body = Job), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 503, body = Problem), (status = 507, body = Problem)
    )
)]
pub(super) async fn move_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(wanted): Body<VolumeMove>,
) -> Result<(StatusCode, Json<Job>), Refusal> {
    let new = NewMove {
        volume: name,
        to: NewPlace {
            pool: wanted.pool,
            leave_snapshots: wanted.leave_snapshots,
            force: wanted.force,
        },
        rate_bytes_per_s: rate(wanted.rate_bytes_per_s)?,
    };
    let job = array.move_volume(new).await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

/// Has a volume served as it is, that was on its way from or to a pool that is not there
/// any more. Where that pool had it last, what was written there is lost.
#[utoipa::path(
    delete, path = "/api/v1/volumes/{name}/move", tag = "jobs",
    params(("name" = String, Path, description = "Name of the volume")),
    responses(
        (status = 200, body = Volume), (status = 404, body = Problem),
        (status = 409, body = Problem)
    )
)]
pub(super) async fn abandon_move(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<Volume>, Refusal> {
    let served = array.abandon_move(name).await?;
    let all = array.volumes().await?;
    Ok(Json(volume(&array, &all, served)))
}

/// Begins to copy from a volume to another, or within it. Whole pages of one lane are shared
/// and take no space; the rest is read and written.
#[utoipa::path(
    post, path = "/api/v1/volumes/{name}/copy", tag = "jobs", request_body = VolumeCopy,
    params(("name" = String, Path, description = "Name of the volume or snapshot")),
    responses(
        (status = 202, body = Job), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn copy_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(copy): Body<VolumeCopy>,
) -> Result<(StatusCode, Json<Job>), Refusal> {
    let is_snapshot = copy.destination.contains(engine::pool::SNAPSHOT_MARK);
    if !is_snapshot && !site::is_name(&copy.destination) {
        let found = &copy.destination;
        let message = format!("destination: found {found:?}; allowed: {}", site::NAME_RULE);
        return Err(Refusal::invalid(message));
    }
    let new = NewCopy {
        source: name,
        target: copy.destination,
        pool: copy.pool,
        provisioning: match copy.provisioning {
            Provisioning::Thin => engine::Provisioning::Thin,
            Provisioning::Thick => engine::Provisioning::Thick,
        },
        from_bytes: copy.from_bytes,
        to_bytes: copy.to_bytes,
        len_bytes: copy.length_bytes,
        overwrite: copy.overwrite,
        live: copy.live,
        rate_bytes_per_s: rate(copy.rate_bytes_per_s)?,
    };
    let job = array.copy_to_volume(new).await?;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

/// All jobs, oldest first; of those that have ended, the last hundred.
#[utoipa::path(
    get, path = "/api/v1/jobs", tag = "jobs",
    responses((status = 200, body = Vec<Job>))
)]
pub(super) async fn list_jobs(State(array): State<Arc<Array>>) -> Json<Vec<Job>> {
    Json(array.jobs().list())
}

/// The job of this number.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(("id" = u64, Path, description = "Number of the job")),
    responses((status = 200, body = Job), (status = 404, body = Problem))
)]
pub(super) async fn get_job(
    State(array): State<Arc<Array>>,
    Segment(id): Segment<u64>,
) -> Result<Json<Job>, Refusal> {
    Ok(Json(array.jobs().job(id)?))
}

/// Ends a job, which takes back what it has made; one that has ended is forgotten.
#[utoipa::path(
    delete, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(("id" = u64, Path, description = "Number of the job")),
    responses((status = 204), (status = 404, body = Problem))
)]
pub(super) async fn cancel_job(
    State(array): State<Arc<Array>>,
    Segment(id): Segment<u64>,
) -> Result<StatusCode, Refusal> {
    array.jobs().cancel(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn rate(bytes_per_s: Option<u64>) -> Result<Option<u64>, Refusal> {
    match bytes_per_s {
        Some(found) if !(1..=site::RATE_BYTES_MAX).contains(&found) => {
            let [found, least, most] = [found, 1, site::RATE_BYTES_MAX].map(site::human);
            let message = format!("rate: found {found}/s; allowed: {least}/s to {most}/s");
            Err(Refusal::invalid(message))
        }
        rate => Ok(rate),
    }
}
