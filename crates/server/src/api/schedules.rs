//! Requests about snapshot schedules of volumes and consistency groups.

use super::problem::Refusal;
use super::problem::{Body, Segment};
use crate::array::{self, Array, schedule};
use api::{Problem, Schedule, ScheduleCreate};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;

/// The schedules of a volume.
#[utoipa::path(
    get, path = "/api/v1/volumes/{name}/schedules", tag = "snapshots",
    params(("name" = String, Path, description = "Name of the volume")),
    responses((status = 200, body = Vec<Schedule>), (status = 404, body = Problem))
)]
pub(super) async fn list_schedules(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<Vec<Schedule>>, Refusal> {
    let all = array.schedules(&name).await?.into_iter();
    Ok(Json(all.map(schedule).collect()))
}

/// Has snapshots of a volume taken by the clock, the first one at once. Those beyond what
/// is kept are deleted, the oldest first: those of this schedule only.
#[utoipa::path(
    post, path = "/api/v1/volumes/{name}/schedules", tag = "snapshots",
    request_body = ScheduleCreate,
    params(("name" = String, Path, description = "Name of the volume")),
    responses(
        (status = 201, body = Schedule), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 507, body = Problem)
    )
)]
pub(super) async fn create_schedule(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(create): Body<ScheduleCreate>,
) -> Result<(StatusCode, Json<Schedule>), Refusal> {
    check(&create)?;
    let made = array
        .add_schedule(&name, create.every_s, create.keep)
        .await?;
    Ok((StatusCode::CREATED, Json(schedule(made))))
}

/// That there can be such a schedule.
fn check(create: &ScheduleCreate) -> Result<(), Refusal> {
    let (every, most) = (schedule::EVERY_S_MIN, schedule::EVERY_S_MAX);
    let allowed = [
        ("every_s", create.every_s, every..=most),
        ("keep", create.keep, 1..=site::KEEP_MAX),
    ];
    for (key, found, allowed) in allowed {
        if !allowed.contains(&found) {
            let (least, most) = (allowed.start(), allowed.end());
            let message = format!("{key}: found {found}; allowed: {least} to {most}");
            return Err(Refusal::invalid(message));
        }
    }
    Ok(())
}

/// Ends a schedule. Snapshots that it took stay.
#[utoipa::path(
    delete, path = "/api/v1/volumes/{name}/schedules/{number}", tag = "snapshots",
    params(
        ("name" = String, Path, description = "Name of the volume"),
        ("number" = u64, Path, description = "Number of the schedule")
    ),
    responses((status = 204), (status = 404, body = Problem))
)]
pub(super) async fn delete_schedule(
    State(array): State<Arc<Array>>,
    Segment((name, number)): Segment<(String, u64)>,
) -> Result<StatusCode, Refusal> {
    array.remove_schedule(&name, number).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The schedules of a consistency group.
#[utoipa::path(
    get, path = "/api/v1/consistency-groups/{name}/schedules", tag = "consistency groups",
    params(("name" = String, Path, description = "Name of the group")),
    responses((status = 200, body = Vec<Schedule>), (status = 404, body = Problem))
)]
pub(super) async fn list_group_schedules(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<Vec<Schedule>>, Refusal> {
    let all = array.consistency_group(&name).await?.schedules.into_iter();
    Ok(Json(all.map(schedule).collect()))
}

/// Has snapshots of all volumes of a group taken by the clock, at one instant, the first ones
/// at once; or none, when that can't be of one of them, which an event tells. Of each volume
/// those beyond what is kept are deleted, the oldest first: those of this schedule only.
#[utoipa::path(
    post, path = "/api/v1/consistency-groups/{name}/schedules", tag = "consistency groups",
    request_body = ScheduleCreate,
    params(("name" = String, Path, description = "Name of the group")),
    responses(
        (status = 201, body = Schedule), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 507, body = Problem)
    )
)]
pub(super) async fn create_group_schedule(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(create): Body<ScheduleCreate>,
) -> Result<(StatusCode, Json<Schedule>), Refusal> {
    check(&create)?;
    let ScheduleCreate { every_s, keep } = create;
    let made = array.add_group_schedule(name, every_s, keep).await?;
    Ok((StatusCode::CREATED, Json(schedule(made))))
}

/// Ends a schedule of a group. Snapshots that it took stay.
#[utoipa::path(
    delete, path = "/api/v1/consistency-groups/{name}/schedules/{number}",
    tag = "consistency groups",
    params(
        ("name" = String, Path, description = "Name of the group"),
        ("number" = u64, Path, description = "Number of the schedule")
    ),
    responses((status = 204), (status = 404, body = Problem))
)]
pub(super) async fn delete_group_schedule(
    State(array): State<Arc<Array>>,
    Segment((name, number)): Segment<(String, u64)>,
) -> Result<StatusCode, Refusal> {
    array.remove_group_schedule(name, number).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn schedule(schedule: array::Schedule) -> Schedule {
    Schedule {
        number: schedule.number,
        every_s: schedule.every_s,
        keep: schedule.keep,
        next_unix_s: schedule.next_unix_s(),
    }
}
