//! Requests about consistency groups: volumes that share snapshots of one instant.
//!
//! Their schedules are in [`super::schedules`].

use super::problem::Refusal;
use super::problem::{Body, Segment};
use super::schedules::schedule;
use super::snapshots::snapshot;
use super::volumes::check_name;
use crate::array::{self, Array};
use api::{
    ConsistencyGroup, ConsistencyGroupChange, ConsistencyGroupCreate, Problem, Snapshot,
    SnapshotCreate,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;

/// The consistency groups, by name.
#[utoipa::path(
    operation_id = "list_consistency_groups",
    get, path = "/api/v1/consistency-groups", tag = "consistency groups",
    responses((status = 200, body = Vec<ConsistencyGroup>), (status = 503, body = Problem))
)]
pub(super) async fn list_groups(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<ConsistencyGroup>>, Refusal> {
    let all = array.consistency_groups().await?.into_iter();
    Ok(Json(all.map(group).collect()))
}

/// The consistency group of this name.
#[utoipa::path(
    operation_id = "get_consistency_group",
    get, path = "/api/v1/consistency-groups/{name}", tag = "consistency groups",
    params(("name" = String, Path, description = "Name of the group")),
    responses((status = 200, body = ConsistencyGroup), (status = 404, body = Problem))
)]
pub(super) async fn get_group(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<ConsistencyGroup>, Refusal> {
    Ok(Json(group(array.consistency_group(&name).await?)))
}

/// Makes a group of volumes. Each may be in one group.
#[utoipa::path(
    operation_id = "create_consistency_group",
    post, path = "/api/v1/consistency-groups", tag = "consistency groups",
    request_body = ConsistencyGroupCreate,
    responses(
        (status = 201, body = ConsistencyGroup), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn create_group(
    State(array): State<Arc<Array>>,
    Body(create): Body<ConsistencyGroupCreate>,
) -> Result<(StatusCode, Json<ConsistencyGroup>), Refusal> {
    check_name(&create.name)?;
    if create.volumes.is_empty() {
        let rule = "one volume or more: a group without volumes is not there";
        return Err(Refusal::invalid(format!(
            "volumes: found none; allowed: {rule}"
        )));
    }
    let made = array.create_group(create.name, create.volumes).await?;
    Ok((StatusCode::CREATED, Json(group(made))))
}

/// Adds volumes to a group, which get its schedules, and takes others out of it, which lose
/// them. A group is gone with its last volume.
#[utoipa::path(
    operation_id = "change_consistency_group",
    patch, path = "/api/v1/consistency-groups/{name}", tag = "consistency groups",
    request_body = ConsistencyGroupChange,
    params(("name" = String, Path, description = "Name of the group")),
    responses(
        (status = 200, body = ConsistencyGroup), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn change_group(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(change): Body<ConsistencyGroupChange>,
) -> Result<Json<ConsistencyGroup>, Refusal> {
    if change == ConsistencyGroupChange::default() {
        let rule = "volumes to add or to remove";
        return Err(Refusal::invalid(format!("nothing to change: give {rule}")));
    }
    let changed = array.change_group(name, change.add, change.remove).await?;
    Ok(Json(group(changed)))
}

/// Ends a group. Its volumes stay, and so do all snapshots.
#[utoipa::path(
    operation_id = "delete_consistency_group",
    delete, path = "/api/v1/consistency-groups/{name}", tag = "consistency groups",
    params(("name" = String, Path, description = "Name of the group")),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem))
)]
pub(super) async fn delete_group(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<StatusCode, Refusal> {
    array.delete_group(name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes snapshots of all volumes of a group at one instant: all of them or none.
#[utoipa::path(
    operation_id = "snapshot_consistency_group",
    post, path = "/api/v1/consistency-groups/{name}/snapshots", tag = "consistency groups",
    request_body = SnapshotCreate,
    params(("name" = String, Path, description = "Name of the group")),
    responses(
        (status = 201, body = Vec<Snapshot>), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn snapshot_group(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(create): Body<SnapshotCreate>,
) -> Result<(StatusCode, Json<Vec<Snapshot>>), Refusal> {
    check_name(&create.name)?;
    let mut taken = array.snapshot_group(name, create.name).await?;
    taken.sort_by(|a, b| a.info.name.cmp(&b.info.name));
    let all = array.volumes().await?;
    let shown = taken.into_iter().map(|one| snapshot(&array, &all, one));
    Ok((StatusCode::CREATED, Json(shown.collect())))
}

fn group(group: array::ConsistencyGroup) -> ConsistencyGroup {
    let volumes = group.volumes.into_iter();
    ConsistencyGroup {
        name: group.name,
        volumes: volumes.map(|volume| volume.info.name).collect(),
        schedules: group.schedules.into_iter().map(schedule).collect(),
    }
}
