//! Requests about drives of pools: list, take out of use, replace, remove.

use super::deadline::Served;
use super::drive_health;
use super::pool_view;
use super::problem::Refusal;
use super::problem::{Body, Segment};
use super::status::numbers;
use crate::array::{Array, KnownDrive, NewDrive};
use api::{
    Drive, DriveAdd, DriveFailure, DriveRedundancy, DriveReplace, DriveReplaced, DriveState, Pool,
    Problem, ProblemKind,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use engine::pool::{MemberInfo, MemberState, PoolInfo};
use std::sync::Arc;

/// All drives, by pool, group and place.
#[utoipa::path(
    get, path = "/api/v1/drives", tag = "drives",
    responses((status = 200, body = Vec<Drive>), (status = 503, body = Problem))
)]
pub(super) async fn list_drives(State(served): State<Served>) -> Result<Json<Vec<Drive>>, Refusal> {
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
) -> Result<Json<Drive>, Refusal> {
    Ok(Json(found(&served, &name).await?))
}

async fn found(served: &Served, name: &str) -> Result<Drive, Refusal> {
    let mut drives = drives(served).await?.into_iter();
    let missing = || Refusal::new(ProblemKind::NotFound, format!("there is no drive {name}"));
    drives.find(|drive| drive.name == name).ok_or_else(missing)
}

/// What the drive's group would keep of its redundancy without the drive. Nothing is changed.
#[utoipa::path(
    get, path = "/api/v1/drives/{name}/redundancy", tag = "drives",
    params(("name" = String, Path, description = "Name of the drive")),
    responses(
        (status = 200, description = "What is left", body = DriveRedundancy),
        (status = 400, description = "The pool can't do without the drive", body = Problem)
    )
)]
pub(super) async fn get_redundancy(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<DriveRedundancy>, Refusal> {
    let is_kept = array.is_covered_without(&name).await?;
    Ok(Json(DriveRedundancy { is_kept }))
}

/// Takes a drive out of use. Refused when its pool can't do without it.
#[utoipa::path(
    post, path = "/api/v1/drives/{name}/fail", tag = "drives",
    params(("name" = String, Path, description = "Name of the drive")),
    responses(
        (status = 200, body = Pool), (status = 400, body = Problem),
        (status = 404, body = Problem),
        (status = 409, description = "It has failed and left its pool", body = Problem)
    )
)]
pub(super) async fn fail_drive(
    State(served): State<Served>,
    Segment(name): Segment<String>,
) -> Result<Json<Pool>, Refusal> {
    let pool = found(&served, &name).await?.pool;
    served.array.fail_drive(name).await?;
    pool_view::shown(&served.array, &pool).await
}

/// Puts another drive in the place of one; it is rebuilt from the others.
#[utoipa::path(
    post, path = "/api/v1/drives/{name}/replace", tag = "drives", request_body = DriveReplace,
    params(("name" = String, Path, description = "Name of the drive")),
    responses(
        (status = 200, body = DriveReplaced), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn replace_drive(
    State(served): State<Served>,
    Segment(name): Segment<String>,
    Body(replace): Body<DriveReplace>,
) -> Result<Json<DriveReplaced>, Refusal> {
    let with = replace.with.map(new_drive).transpose()?;
    let replaced = served.array.replace_drive(name, with).await?;
    let mut all = drives(&served).await?;
    // The old one may have the same name, and its place still.
    all.retain(|drive| drive.pool == replaced.pool && drive.state != DriveState::Failed);
    let named = |name: &str| all.iter().find(|drive| drive.name == name).cloned();
    let drive = named(&replaced.new).ok_or_else(|| {
        let message = format!(
            "drive {} has failed at once; see ashlar events",
            replaced.new
        );
        Refusal::new(ProblemKind::Internal, message)
    })?;
    let stands_in = replaced.stands_in.as_deref().and_then(named);
    Ok(Json(DriveReplaced {
        drive,
        stands_in,
        waits_for: replaced.waits_for,
        is_copied: replaced.is_copied,
    }))
}

/// Forgets a failed drive that another stands in for.
#[utoipa::path(
    delete, path = "/api/v1/drives/{name}", tag = "drives",
    params(("name" = String, Path, description = "Name of the drive")),
    responses(
        (status = 204), (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn remove_drive(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<StatusCode, Refusal> {
    array.remove_drive(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a request says of a new drive, checked.
pub(super) fn new_drive(add: DriveAdd) -> Result<NewDrive, Refusal> {
    let wrong = |field: &str, found: &str, allowed: &str| {
        Refusal::invalid(format!("{field}: found {found:?}; allowed: {allowed}"))
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
            return Err(Refusal::invalid(message.to_owned()));
        }
    };
    if let Some(size_bytes) = add.size_bytes
        && !site::NEW_DRIVE_SIZES.admit(size_bytes)
    {
        let allowed = site::NEW_DRIVE_SIZES.rule_near(size_bytes);
        return Err(wrong("size_bytes", &size_bytes.to_string(), &allowed));
    }
    Ok(NewDrive {
        name: add.name,
        path,
        is_device: add.device.is_some(),
        size_bytes: add.size_bytes,
    })
}

async fn drives(served: &Served) -> Result<Vec<Drive>, Refusal> {
    let array = &served.array;
    let glance = array.glance(served.patience.look).await?;
    let drives = glance.pools.iter().flat_map(|(_, pool)| {
        let silent = numbers(&array.silent_homes(&pool.name, &glance.silent));
        let all = pool.members.iter().chain(&pool.spares);
        let there = all.map(|member| drive(pool, member, array));
        let departed = array.departed_failures(pool).into_iter();
        let departed = departed.map(|known| departed_drive(pool, known));
        let all: Vec<Drive> = there.chain(departed).collect();
        all.into_iter().map(move |drive| Drive {
            silent_shards: silent.clone(),
            ..drive
        })
    });
    Ok(drives.collect())
}

/// A drive that its pool has.
fn drive(pool: &PoolInfo, member: &MemberInfo, array: &Array) -> Drive {
    Drive {
        state: match member.state {
            MemberState::Healthy => DriveState::Healthy,
            MemberState::Suspect => DriveState::Suspect,
            MemberState::Failed => DriveState::Failed,
            MemberState::Rebuilding => DriveState::Rebuilding,
            MemberState::Spare => DriveState::Spare,
        },
        trouble: member.trouble.clone(),
        successor: member.successor.clone(),
        reads: member.reads,
        writes: member.writes,
        flushes: member.flushes,
        errors: member.errors,
        mends: member.mends,
        read_latency_us: member.read_latency.as_micros() as u64,
        write_latency_us: member.write_latency.as_micros() as u64,
        health: drive_health::shown(array, &member.uuid.to_string()),
        ..shown(pool, array.known_drive(pool, member))
    }
}

/// A failed drive that has no place in its pool any more.
fn departed_drive(pool: &PoolInfo, known: KnownDrive) -> Drive {
    Drive {
        state: DriveState::Failed,
        ..shown(pool, known)
    }
}

/// What is known of a drive without asking it.
fn shown(pool: &PoolInfo, known: KnownDrive) -> Drive {
    let stands_in = known.stand_in(pool).map(|member| member.name.clone());
    Drive {
        name: known.name,
        uuid: known.uuid,
        pool: known.pool,
        group: known.group,
        place: known.place,
        state: DriveState::Healthy,
        capacity_bytes: known.capacity_bytes,
        path: known.path.map(|path| path.display().to_string()),
        serial: known.serial,
        failure: known.failure.map(|failure| DriveFailure {
            why: failure.why,
            since_unix_s: failure.since_unix_s,
            stands_in,
        }),
        trouble: None,
        successor: None,
        health: None,
        reads: 0,
        writes: 0,
        flushes: 0,
        errors: 0,
        mends: 0,
        read_latency_us: 0,
        write_latency_us: 0,
        silent_shards: Vec::new(),
    }
}
