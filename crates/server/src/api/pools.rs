//! Pools.

use super::problem::Segment;
use super::types::{Health, Pool, Problem};
use crate::array::Array;
use axum::Json;
use axum::extract::State;
use engine::pool::{MemberState, PoolInfo};
use std::sync::Arc;

/// All pools, by name.
#[utoipa::path(
    get, path = "/api/v1/pools", tag = "pools",
    responses((status = 200, body = Vec<Pool>), (status = 503, body = Problem))
)]
pub(super) async fn list_pools(
    State(array): State<Arc<Array>>,
) -> Result<Json<Vec<Pool>>, Problem> {
    let pools = array.pools().await?;
    Ok(Json(
        pools
            .into_iter()
            .map(|(shard, info)| pool(shard, info))
            .collect(),
    ))
}

/// The pool of this name.
#[utoipa::path(
    get, path = "/api/v1/pools/{name}", tag = "pools",
    params(("name" = String, Path, description = "Name of the pool")),
    responses((status = 200, body = Pool), (status = 404, body = Problem))
)]
pub(super) async fn get_pool(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<Pool>, Problem> {
    let (shard, info) = array.pool(&name).await?;
    Ok(Json(pool(shard, info)))
}

/// Whether a pool serves, and with what redundancy.
pub(super) fn health(info: &PoolInfo) -> Health {
    let failed = info
        .members
        .iter()
        .any(|member| member.state == MemberState::Failed);
    match (&info.failure, failed) {
        (Some(_), _) => Health::Failed,
        (None, true) => Health::Degraded,
        (None, false) => Health::Healthy,
    }
}

fn pool(shard: usize, info: PoolInfo) -> Pool {
    Pool {
        health: health(&info),
        name: info.name,
        uuid: info.uuid.to_string(),
        level: info.level.to_string(),
        failure: info.failure,
        page_bytes: info.page_bytes,
        capacity_bytes: info.capacity_bytes,
        mapped_bytes: info.mapped_bytes,
        provisioned_bytes: info.provisioned_bytes,
        epoch: info.epoch,
        shard: shard as u64,
        drives: info.members.into_iter().map(|member| member.name).collect(),
    }
}
