//! What people should know of.

use super::types::{Event, Problem};
use crate::array::{Array, PoolEvent};
use axum::Json;
use axum::extract::State;
use engine::pool::EventKind;
use std::sync::Arc;
use std::time::SystemTime;

/// Events of all pools since they were opened, oldest first; each pool keeps its newest
/// 1,024.
#[utoipa::path(
    get, path = "/api/v1/events", tag = "events",
    responses((status = 200, body = Vec<Event>), (status = 503, body = Problem))
)]
pub(super) async fn list_events(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<Event>>, Problem> {
    let events = array.events().await?;
    let now = SystemTime::now();
    Ok(Json(
        events.into_iter().map(|event| of(event, now)).collect(),
    ))
}

fn of(event: PoolEvent, now: SystemTime) -> Event {
    let at = now.checked_sub(event.age).unwrap_or(SystemTime::UNIX_EPOCH);
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    Event {
        pool: event.pool,
        sequence: event.event.sequence,
        at_unix_s: since.map_or(0, |since| since.as_secs()),
        kind: word(event.event.kind).to_owned(),
        text: event.event.text,
    }
}

fn word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::DriveFailed => "drive_failed",
        EventKind::DriveSuspect => "drive_suspect",
        EventKind::DriveHealthy => "drive_healthy",
        EventKind::DriveMissing => "drive_missing",
        EventKind::SpareTaken => "spare_taken",
        EventKind::Rebuild => "rebuild",
        EventKind::BlockMended => "block_mended",
        EventKind::BlockLost => "block_lost",
        EventKind::CopyMoved => "copy_moved",
        EventKind::Scrub => "scrub",
        EventKind::Group => "group",
        EventKind::PoolStopped => "pool_stopped",
    }
}
