//! Requests about pools: list, scrub, rates of background work, spares.

use super::deadline::Served;
use super::pool_view::{pool, shown};
use super::problem::Refusal;
use super::problem::{Body, Segment};
use super::status::numbers;
use crate::array::Array;
use ::array::pool::paces::{DAY, HOUR};
use api::{Background, DriveAdd, Pool, Problem, RatesChange, ScrubChange};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use engine::pool::PoolInfo;
use std::sync::Arc;
use std::time::Duration;

/// All pools, by name.
#[utoipa::path(
    get, path = "/api/v1/pools", tag = "pools",
    responses((status = 200, body = Vec<Pool>), (status = 503, body = Problem))
)]
pub(super) async fn list_pools(State(served): State<Served>) -> Result<Json<Vec<Pool>>, Refusal> {
    Ok(Json(known(&served).await?))
}

/// All pools, as far as they are known.
async fn known(served: &Served) -> Result<Vec<Pool>, Refusal> {
    let array = &served.array;
    let glance = array.glance(served.patience.look).await?;
    let shown = |(shard, info): (usize, PoolInfo)| {
        let silent = array.silent_homes(&info.name, &glance.silent);
        Pool {
            silent_shards: numbers(&silent),
            ..pool(array, shard, info)
        }
    };
    Ok(glance.pools.into_iter().map(shown).collect())
}

/// The pool of this name.
#[utoipa::path(
    get, path = "/api/v1/pools/{name}", tag = "pools",
    params(("name" = String, Path, description = "Name of the pool")),
    responses((status = 200, body = Pool), (status = 404, body = Problem))
)]
pub(super) async fn get_pool(
    State(served): State<Served>,
    Segment(name): Segment<String>,
) -> Result<Json<Pool>, Refusal> {
    let mut pools = known(&served).await?.into_iter();
    let found = pools.find(|pool| pool.name == name);
    let found = found.ok_or_else(|| served.array.no_such_pool(&name))?;
    Ok(Json(found))
}

/// Begins a scrub, or ends the one under way.
#[utoipa::path(
    put, path = "/api/v1/pools/{name}/scrub", tag = "pools", request_body = ScrubChange,
    params(("name" = String, Path, description = "Name of the pool")),
    responses((status = 200, body = Pool), (status = 404, body = Problem))
)]
pub(super) async fn change_scrub(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(change): Body<ScrubChange>,
) -> Result<Json<Pool>, Refusal> {
    array.scrub(&name, change.running).await?;
    shown(&array, &name).await
}

/// Changes the limits of work in the background. They stay after a restart.
#[utoipa::path(
    put, path = "/api/v1/pools/{name}/rates", tag = "pools", request_body = RatesChange,
    params(("name" = String, Path, description = "Name of the pool")),
    responses(
        (status = 200, body = Pool), (status = 400, body = Problem),
        (status = 404, body = Problem)
    )
)]
pub(super) async fn change_rates(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(change): Body<RatesChange>,
) -> Result<Json<Pool>, Refusal> {
    check(&change)?;
    array
        .change_rates(name.clone(), move |rates| changed(rates, change))
        .await?;
    shown(&array, &name).await
}

/// That there can be such limits.
fn check(change: &RatesChange) -> Result<(), Refusal> {
    let found = [
        ("rebuild rate", change.rebuild_bytes_per_s),
        ("scrub rate", change.scrub_bytes_per_s),
    ];
    for (what, found) in found {
        let (least, most) = (1 << 20, site::RATE_BYTES_MAX);
        let is_wrong = |found: &u64| *found != 0 && !(least..=most).contains(found);
        if let Some(found) = found.filter(is_wrong) {
            let [found, least, most] = [found, least, most].map(site::human);
            let message = format!(
                "{what}: found {found}/s; allowed: {least}/s to {most}/s, or 0 for no limit"
            );
            return Err(Refusal::invalid(message));
        }
    }
    let found = [
        (
            "rebuild hours",
            change.rebuild_hours,
            site::REBUILD_HOURS_MAX,
        ),
        ("scrub days", change.scrub_days, site::SCRUB_DAYS_MAX),
    ];
    for (what, found, most) in found {
        if let Some(found) = found.filter(|found| *found > u32::from(most)) {
            let message = format!("{what}: found {found}; allowed: 1 to {most}, or 0 for off");
            return Err(Refusal::invalid(message));
        }
    }
    Ok(())
}

/// `rates` with what `change` says.
fn changed(
    rates: engine::pool::maintenance::Rates,
    change: RatesChange,
) -> engine::pool::maintenance::Rates {
    let limit = |asked: Option<u64>, now: Option<u64>| match asked {
        None => now,
        Some(0) => None,
        Some(bytes_per_s) => Some(bytes_per_s),
    };
    let within = |asked: Option<u32>, unit: Duration, now: Option<Duration>| match asked {
        None => now,
        Some(0) => None,
        Some(count) => Some(unit * count),
    };
    engine::pool::maintenance::Rates {
        rebuild_bytes_per_s: limit(change.rebuild_bytes_per_s, rates.rebuild_bytes_per_s),
        scrub_bytes_per_s: limit(change.scrub_bytes_per_s, rates.scrub_bytes_per_s),
        rebuild_within: within(change.rebuild_hours, HOUR, rates.rebuild_within),
        scrub_within: within(change.scrub_days, DAY, rates.scrub_within),
        yields: change
            .background
            .map_or(rates.yields, |background| background == Background::Yield),
    }
}

/// Adds a drive that stands in for one that fails, or has failed.
#[utoipa::path(
    post, path = "/api/v1/pools/{name}/spares", tag = "pools", request_body = DriveAdd,
    params(("name" = String, Path, description = "Name of the pool")),
    responses(
        (status = 201, body = Pool), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn add_spare(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(add): Body<DriveAdd>,
) -> Result<(StatusCode, Json<Pool>), Refusal> {
    array
        .add_spare(name.clone(), super::drives::new_drive(add)?)
        .await?;
    Ok((StatusCode::CREATED, shown(&array, &name).await?))
}
