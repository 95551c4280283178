//! Drives in their pools.

use super::deadline::Served;
use super::problem::{Body, Segment};
use super::status::numbers;
use super::types::{Drive, DriveAdd, DriveReplace, DriveState, Problem, ProblemKind};
use crate::array::{Array, NewDrive};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use engine::pool::{MemberInfo, MemberState};
use std::sync::Arc;

/// All drives, by pool, group and place.
#[utoipa::path(
    get, path = "/api/v1/drives", tag = "drives",
    responses((status = 200, body = Vec<Drive>), (status = 503, body = Problem))
)]
pub(super) async fn list_drives(State(served): State<Served>) -> Result<Json<Vec<Drive>>, Problem> {
    Ok(Json(drives(&served).await?))
}

/// The drive of this name.
#[utoipa::path(
    get, path = "/api/v1/drives/{name}", tag = "drives",
    params(("name" = String, Path, description = "Name of the drive")),
    responses((status = 200, body = Drive), (status = 404, body = Problem))
)]
pub(super) async fn get_drive(
    State(served): State<Served>,
    Segment(name): Segment<String>,
) -> Result<Json<Drive>, Problem> {
    let found = drives(&served)
        .await?
        .into_iter()
        .find(|drive| drive.name == name);
    let missing = || Problem::new(ProblemKind::NotFound, format!("there is no drive {name}"));
    found.map(Json).ok_or_else(missing)
}

/// Takes a drive out of use. Refused when its pool can't do without it.
#[utoipa::path(
    post, path = "/api/v1/drives/{name}/fail", tag = "drives",
    params(("name" = String, Path, description = "Name of the drive")),
    responses(
        (status = 204), (status = 400, body = Problem), (status = 404, body = Problem)
    )
)]
pub(super) async fn fail_drive(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<StatusCode, Problem> {
    array.fail_drive(name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Puts another drive in the place of one; it is rebuilt from the others.
#[utoipa::path(
    post, path = "/api/v1/drives/{name}/replace", tag = "drives", request_body = DriveReplace,
    params(("name" = String, Path, description = "Name of the drive")),
    responses(
        (status = 204), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem)
    )
)]
pub(super) async fn replace_drive(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(replace): Body<DriveReplace>,
) -> Result<StatusCode, Problem> {
    let with = replace.with.map(new_drive).transpose()?;
    array.replace_drive(name, with).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a request says of a new drive, checked.
pub(super) fn new_drive(add: DriveAdd) -> Result<NewDrive, Problem> {
    let wrong = |field: &str, found: &str, allowed: &str| {
        Problem::invalid(format!("{field}: found {found:?}; allowed: {allowed}"))
    };
    if !site::is_name(&add.name) {
        return Err(wrong("name", &add.name, site::NAME_RULE));
    }
    let path = match (&add.file, &add.device) {
        (Some(file), None) => {
            site::drive_file(file).ok_or_else(|| wrong("file", file, site::FILE_RULE))?
        }
        (None, Some(device)) => {
            site::drive_device(device).ok_or_else(|| wrong("device", device, site::DEVICE_RULE))?
        }
        _ => {
            let message = "file, device: found both or neither; allowed: one of the two";
            return Err(Problem::invalid(message.to_owned()));
        }
    };
    if let Some(size_bytes) = add.size_bytes
        && !((1 << 20..=1 << 50).contains(&size_bytes) && size_bytes.is_multiple_of(4096))
    {
        let allowed = "1 MiB to 1 PiB, a multiple of 4096 bytes";
        return Err(wrong("size_bytes", &size_bytes.to_string(), allowed));
    }
    Ok(NewDrive {
        name: add.name,
        path,
        is_device: add.device.is_some(),
        size_bytes: add.size_bytes,
    })
}

async fn drives(served: &Served) -> Result<Vec<Drive>, Problem> {
    let array = &served.array;
    let glance = array.glance(served.patience.look).await?;
    let drives = glance.pools.into_iter().flat_map(|(_, pool)| {
        let name = pool.name;
        let silent = numbers(&array.silent_homes(&name, &glance.silent));
        let all = pool.members.into_iter().chain(pool.spares);
        all.map(move |member| Drive {
            silent_shards: silent.clone(),
            ..drive(&name, member)
        })
    });
    Ok(drives.collect())
}

fn drive(pool: &str, member: MemberInfo) -> Drive {
    Drive {
        name: member.name,
        uuid: member.uuid.to_string(),
        pool: pool.to_owned(),
        group: member.group,
        place: member.place,
        state: match member.state {
            MemberState::Healthy => DriveState::Healthy,
            MemberState::Suspect => DriveState::Suspect,
            MemberState::Failed => DriveState::Failed,
            MemberState::Rebuilding => DriveState::Rebuilding,
            MemberState::Spare => DriveState::Spare,
        },
        capacity_bytes: member.capacity_bytes,
        reads: member.reads,
        writes: member.writes,
        flushes: member.flushes,
        errors: member.errors,
        mends: member.mends,
        read_latency_us: member.read_latency.as_micros() as u64,
        write_latency_us: member.write_latency.as_micros() as u64,
        silent_shards: Vec::new(),
    }
}
