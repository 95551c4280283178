//! Requests for the events of all pools.

use super::problem::Refusal;
use crate::array::{Array, PoolEvent};
use api::{Event, Problem};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;

/// Events of all pools, oldest first: up to 1,000 from before the server was started, as
/// far as they are on record, then those since; of these each pool keeps its newest 1,024.
#[utoipa::path(
    get, path = "/api/v1/events", tag = "events",
    responses((status = 200, body = Vec<Event>), (status = 503, body = Problem))
)]
pub(super) async fn list_events(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<Event>>, Refusal> {
    let events = array.events().await?;
    Ok(Json(events.into_iter().map(event).collect()))
}

fn event(of_pool: PoolEvent) -> Event {
    Event {
        pool: of_pool.pool,
        sequence: of_pool.sequence,
        before_start: of_pool.before_start,
        at_unix_s: of_pool.at_unix_us / 1_000_000,
        kind: of_pool.kind,
        text: of_pool.text,
    }
}
