//! Requests about RAID groups of pools: add, change the level, remove.

use super::drives::new_drive;
use super::pool_changes;
use super::pool_view::shown;
use super::problem::Refusal;
use super::problem::{Body, Segment};
use crate::array::{Array, NewGroup};
use api::{GroupAdd, GroupChange, Pool, Problem};
use axum::Json;
use axum::extract::{Query, State, rejection::QueryRejection};
use axum::http::StatusCode;
use serde::Deserialize;
use site::SpreadKeys;
use std::sync::Arc;
use utoipa::IntoParams;

/// Adds a group of new drives.
#[utoipa::path(
    post, path = "/api/v1/pools/{name}/groups", tag = "pools", request_body = GroupAdd,
    params(("name" = String, Path, description = "Name of the pool")),
    responses(
        (status = 201, body = Pool), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn add_group(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(add): Body<GroupAdd>,
) -> Result<(StatusCode, Json<Pool>), Refusal> {
    let drives = add.drives.into_iter().map(new_drive);
    let group = NewGroup {
        level: add.level.as_deref().map(pool_changes::level).transpose()?,
        spread: SpreadKeys {
            stripe_width: add.stripe_width,
            distributed_spares: add.distributed_spares,
        },
        role: pool_changes::role(add.role.as_deref())?,
        drives: drives.collect::<Result<_, _>>()?,
        by_force: add.force,
    };
    array.add_group(name.clone(), group).await?;
    Ok((StatusCode::CREATED, shown(&array, &name).await?))
}

/// Gives a group another level, in the background: from 10 to 50 or 6, or from 50 to 6.
#[utoipa::path(
    patch, path = "/api/v1/pools/{name}/groups/{index}", tag = "pools",
    request_body = GroupChange,
    params(
        ("name" = String, Path, description = "Name of the pool"),
        ("index" = u16, Path, description = "Number of the group in the pool")
    ),
    responses(
        (status = 200, body = Pool), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn change_group(
    State(array): State<Arc<Array>>,
    Segment((name, index)): Segment<(String, u16)>,
    Body(change): Body<GroupChange>,
) -> Result<Json<Pool>, Refusal> {
    let level = pool_changes::level(&change.level)?;
    array.convert_group(name.clone(), index, level).await?;
    shown(&array, &name).await
}

/// How a group leaves.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct How {
    /// Also when the pool is nearly full then, and so empties its trash.
    #[serde(default)]
    force: bool,
}

/// Has a group leave, in the background: what it holds goes to the others first, then its
/// drives are free. Refused when the pool would be filled to its alarm threshold, unless by force.
#[utoipa::path(
    delete, path = "/api/v1/pools/{name}/groups/{index}", tag = "pools",
    params(
        ("name" = String, Path, description = "Name of the pool"),
        ("index" = u16, Path, description = "Number of the group in the pool"),
        How
    ),
    responses(
        (status = 202, body = Pool), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn remove_group(
    State(array): State<Arc<Array>>,
    Segment((name, index)): Segment<(String, u16)>,
    how: Result<Query<How>, QueryRejection>,
) -> Result<(StatusCode, Json<Pool>), Refusal> {
    let Query(how) = how.map_err(|wrong| Refusal::invalid(wrong.body_text()))?;
    array.remove_group(name.clone(), index, how.force).await?;
    Ok((StatusCode::ACCEPTED, shown(&array, &name).await?))
}
