//! Requests that create and destroy pools, and that size their read caches.

use super::drives::new_drive;
use super::pool_view::shown;
use super::problem::Refusal;
use super::problem::{Body, Segment};
use crate::array::Array;
use ::array::openings::NewPool;
use api::{CacheChange, DriveAdd, GroupAdd, Pool, PoolCreate, Problem};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use site::{Background, DriveSource, Group, GroupRole, Level, SpreadKeys};
use std::sync::Arc;

/// Makes a pool of drives that hold nothing. Drives are files or devices in the directories that the
/// settings allow; files that are not there are made.
#[utoipa::path(
    post, path = "/api/v1/pools", tag = "pools", request_body = PoolCreate,
    responses(
        (status = 201, description = "The pool", body = Pool),
        (status = 400, description = "It would break a rule, or a drive is not allowed", body = Problem),
        (status = 409, description = "A name is taken, or a drive holds something", body = Problem)
    )
)]
pub(super) async fn create_pool(
    State(array): State<Arc<Array>>,
    Body(create): Body<PoolCreate>,
) -> Result<(StatusCode, Json<Pool>), Refusal> {
    let name = create.name.clone();
    let new = new_pool(create, &array)?;
    array.openings().create(array.control(), new).await?;
    Ok((StatusCode::CREATED, shown(&array, &name).await?))
}

/// Destroys a pool that holds no volumes. Its trash goes with it; its drives are empty then.
#[utoipa::path(
    delete, path = "/api/v1/pools/{name}", tag = "pools",
    params(("name" = String, Path, description = "Name of the pool")),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, description = "There is no such pool", body = Problem),
        (status = 409, description = "It holds volumes", body = Problem),
        (status = 503, description = "It is not open", body = Problem)
    )
)]
pub(super) async fn destroy_pool(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<StatusCode, Refusal> {
    array.openings().destroy(array.control(), name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Changes how much RAM a pool has for reads.
#[utoipa::path(
    put, path = "/api/v1/pools/{name}/cache", tag = "pools", request_body = CacheChange,
    params(("name" = String, Path, description = "Name of the pool")),
    responses(
        (status = 200, description = "The pool", body = Pool),
        (status = 400, description = "More than a pool may have", body = Problem),
        (status = 404, description = "There is no such pool", body = Problem)
    )
)]
pub(super) async fn change_cache(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(change): Body<CacheChange>,
) -> Result<Json<Pool>, Refusal> {
    array
        .change_cache(name.clone(), change.capacity_bytes)
        .await?;
    shown(&array, &name).await
}

fn new_pool(create: PoolCreate, array: &Array) -> Result<NewPool, Refusal> {
    let usual = site::Pool::usual();
    let mut drives = Vec::new();
    let mut take = |all: Vec<DriveAdd>| -> Result<Vec<String>, Refusal> {
        let mut names = Vec::new();
        for add in all {
            let drive = drive(add, array)?;
            names.push(drive.name.clone());
            drives.push(drive);
        }
        Ok(names)
    };
    let first = GroupAdd {
        level: None,
        role: None,
        stripe_width: create.stripe_width,
        distributed_spares: create.distributed_spares,
        drives: create.drives,
        force: false,
    };
    let of_pool = level(&create.level)?;
    let mut groups = Vec::new();
    for mut add in std::iter::once(first).chain(create.groups) {
        let drives = take(std::mem::take(&mut add.drives))?;
        groups.push(group(&add, of_pool, drives)?);
    }
    let pool = site::Pool {
        name: create.name,
        groups,
        spares: take(create.spares)?,
        lanes: create.lanes.unwrap_or(usual.lanes),
        stripe_unit_bytes: create.stripe_unit_bytes.unwrap_or(usual.stripe_unit_bytes),
        page_bytes: create.page_bytes.unwrap_or(usual.page_bytes),
        cache_bytes: create.cache_bytes.unwrap_or(usual.cache_bytes),
        log_bytes: create.log_bytes,
        background: Background::Yield,
        ..usual
    };
    Ok(NewPool { pool, drives })
}

/// A group as the settings have it; its level is that of the pool unless it has its own.
fn group(add: &GroupAdd, of_pool: Level, drives: Vec<String>) -> Result<Group, Refusal> {
    let level = add.level.as_deref().map_or(Ok(of_pool), level)?;
    let role = role(add.role.as_deref())?;
    let keys = SpreadKeys {
        stripe_width: add.stripe_width,
        distributed_spares: add.distributed_spares,
    };
    let spread = keys.spread(level, role);
    Ok(Group {
        level,
        spread: spread.map_err(|wrong| Refusal::invalid(wrong.to_string()))?,
        role,
        drives,
    })
}

/// A drive as the settings have it. A file that is there has the size that it has.
fn drive(add: DriveAdd, array: &Array) -> Result<site::Drive, Refusal> {
    let new = new_drive(add)?;
    let path = array.data()?.path().join(&new.path);
    // Before anything is said of a file: whoever may ask may not know all of them.
    let allowed = array.check_allowed(&path);
    allowed.map_err(|error| error.of_drive(&new.name))?;
    if new.is_device {
        let source = DriveSource::Device { path: new.path };
        return Ok(site::Drive {
            name: new.name,
            source,
        });
    }
    let there = std::fs::metadata(path).ok().map(|about| about.len());
    let size_bytes = new.size_bytes.or(there).ok_or_else(|| {
        let path = new.path.display();
        let rule = site::DRIVE_SIZES.rule();
        Refusal::invalid(format!(
            "size_bytes is missing, and {path} does not exist: give {rule}"
        ))
    })?;
    if !site::DRIVE_SIZES.admit(size_bytes) {
        let (path, rule) = (new.path.display(), site::DRIVE_SIZES.rule_near(size_bytes));
        let message = format!("{path}: found a size of {size_bytes} bytes; allowed: {rule}");
        return Err(Refusal::invalid(message));
    }
    let source = DriveSource::File {
        path: new.path,
        size_bytes,
    };
    Ok(site::Drive {
        name: new.name,
        source,
    })
}

pub(super) fn level(text: &str) -> Result<Level, Refusal> {
    Level::parse(text).ok_or_else(|| {
        let known = Level::ALL
            .map(|level| format!("{:?}", level.as_str()))
            .join(", ");
        Refusal::invalid(format!("level: found {text:?}; allowed: {known}"))
    })
}

/// What a group is for; data unless said otherwise.
pub(super) fn role(text: Option<&str>) -> Result<GroupRole, Refusal> {
    let Some(text) = text else {
        return Ok(GroupRole::Data);
    };
    GroupRole::parse(text).ok_or_else(|| {
        let known = GroupRole::ALL.map(|role| format!("{:?}", role.as_str()));
        let known = known.join(", ");
        Refusal::invalid(format!("role: found {text:?}; allowed: {known}"))
    })
}
