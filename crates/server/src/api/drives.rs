//! Drives in their pools.

use super::problem::Segment;
use super::types::{Drive, DriveState, Problem, ProblemKind};
use crate::array::Array;
use axum::Json;
use axum::extract::State;
use engine::pool::{MemberInfo, MemberState};
use std::sync::Arc;

/// All drives, by pool, group and place.
#[utoipa::path(
    get, path = "/api/v1/drives", tag = "drives",
    responses((status = 200, body = Vec<Drive>), (status = 503, body = Problem))
)]
pub(super) async fn list_drives(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<Drive>>, Problem> {
    Ok(Json(drives(&array).await?))
}

/// The drive of this name.
#[utoipa::path(
    get, path = "/api/v1/drives/{name}", tag = "drives",
    params(("name" = String, Path, description = "Name of the drive")),
    responses((status = 200, body = Drive), (status = 404, body = Problem))
)]
pub(super) async fn get_drive(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<Drive>, Problem> {
    let found = drives(&array)
        .await?
        .into_iter()
        .find(|drive| drive.name == name);
    let missing = || Problem::new(ProblemKind::NotFound, format!("there is no drive {name}"));
    found.map(Json).ok_or_else(missing)
}

async fn drives(array: &Array) -> Result<Vec<Drive>, Problem> {
    let pools = array.pools().await?;
    let drives = pools.into_iter().flat_map(|(_, pool)| {
        let name = pool.name;
        pool.members
            .into_iter()
            .map(move |member| drive(&name, member))
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
    }
}
