//! Requests about connected iSCSI sessions: list and drop.

use super::problem::Refusal;
use super::problem::Segment;
use crate::array::Array;
use crate::shard::SessionInfo;
use api::{Problem, ProblemKind, Session};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;

/// All connected sessions, by number.
#[utoipa::path(
    get, path = "/api/v1/sessions", tag = "sessions",
    responses((status = 200, body = Vec<Session>), (status = 503, body = Problem))
)]
pub(super) async fn list_sessions(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<Session>>, Refusal> {
    Ok(Json(
        array.sessions().await?.into_iter().map(session).collect(),
    ))
}

/// The session of this number.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}", tag = "sessions",
    params(("id" = u16, Path, description = "Number of the session")),
    responses((status = 200, body = Session), (status = 404, body = Problem))
)]
pub(super) async fn get_session(
    State(array): State<Arc<Array>>,
    Segment(id): Segment<u16>,
) -> Result<Json<Session>, Refusal> {
    let found = array
        .sessions()
        .await?
        .into_iter()
        .find(|session| session.tsih == id);
    let missing = || Refusal::new(ProblemKind::NotFound, format!("there is no session {id}"));
    found.map(session).map(Json).ok_or_else(missing)
}

/// Closes a session once its commands have ended. The initiator may log in again.
#[utoipa::path(
    delete, path = "/api/v1/sessions/{id}", tag = "sessions",
    params(("id" = u16, Path, description = "Number of the session")),
    responses((status = 204), (status = 404, body = Problem))
)]
pub(super) async fn drop_session(
    State(array): State<Arc<Array>>,
    Segment(id): Segment<u16>,
) -> Result<StatusCode, Refusal> {
    array.drop_session(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn session(info: SessionInfo) -> Session {
    Session {
        id: info.tsih,
        initiator: info.initiator,
        initiator_alias: info.initiator_alias,
        target: info.target,
        peer: info.peer.to_string(),
        portal: info.portal.to_string(),
        portal_group: info.portal_group,
        chap_name: info.chap_name,
        since_unix_s: info.since_unix_s,
        commands: info.commands,
        reads: info.reads,
        writes: info.writes,
        read_bytes: info.read_bytes,
        written_bytes: info.written_bytes,
        in_flight: info.in_flight,
    }
}
