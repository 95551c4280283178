//! Volumes: list, create, change, delete.

use super::problem::Refusal;
use super::problem::{Body, Segment};
use crate::array::attributes;
use crate::array::consistency;
use crate::array::{self, Array, Deletion, NewAttributes, PlacedVolume};
use api::{
    Deleted, LunPlace, Problem, Provisioning, Volume, VolumeChange, VolumeCreate, VolumeOrigin,
};
use axum::Json;
use axum::extract::{Query, State, rejection::QueryRejection};
use axum::http::StatusCode;
use engine::VolumeSpec;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Which volumes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// Those with this tag only: `key=value`, or `key` for any value.
    tag: Option<String>,
}

/// How to delete.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct How {
    /// Also when it is exported: the export goes, too.
    #[serde(default)]
    force: bool,
    /// At once, without passing the trash.
    #[serde(default)]
    at_once: bool,
}

/// The volumes, by name, without snapshots: all, or those with a tag.
#[utoipa::path(
    get, path = "/api/v1/volumes", tag = "volumes", params(Which),
    responses(
        (status = 200, body = Vec<Volume>), (status = 400, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn list_volumes(
    State(array): State<Arc<Array>>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Vec<Volume>>, Refusal> {
    let Query(which) = which.map_err(|wrong| Refusal::invalid(wrong.body_text()))?;
    let all = array.volumes().await?;
    let has_tag = |volume: &&PlacedVolume| {
        let Some(tag) = &which.tag else {
            return true;
        };
        let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
        let found = attributes::tags(&volume.properties).remove(key);
        found.is_some_and(|found| value.is_empty() || found == value)
    };
    let wanted = all.iter().filter(|placed| !placed.is_snapshot());
    let wanted = wanted.filter(has_tag).cloned();
    let shown = wanted.map(|placed| volume(&array, &all, placed));
    Ok(Json(shown.collect()))
}

/// The volume or snapshot of this name.
#[utoipa::path(
    get, path = "/api/v1/volumes/{name}", tag = "volumes",
    params(("name" = String, Path, description = "Name of the volume")),
    responses((status = 200, body = Volume), (status = 404, body = Problem))
)]
pub(super) async fn get_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<Volume>, Refusal> {
    let placed = array.volume(&name).await?;
    let all = array.volumes().await?;
    Ok(Json(volume(&array, &all, placed)))
}

/// Creates a volume. All pages of a thick one are set aside for it when this answers.
#[utoipa::path(
    post, path = "/api/v1/volumes", tag = "volumes", request_body = VolumeCreate,
    responses(
        (status = 201, body = Volume), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn create_volume(
    State(array): State<Arc<Array>>,
    Body(create): Body<VolumeCreate>,
) -> Result<(StatusCode, Json<Volume>), Refusal> {
    check_name(&create.name)?;
    check_size(create.size_bytes)?;
    let spec = VolumeSpec {
        name: create.name,
        size_bytes: create.size_bytes,
        provisioning: match create.provisioning {
            Provisioning::Thin => engine::Provisioning::Thin,
            Provisioning::Thick => engine::Provisioning::Thick,
        },
    };
    let zeroes = create.detect_zeroes;
    let placed = array
        .create_volume_as(create.pool, spec, Vec::new(), zeroes)
        .await?;
    Ok((StatusCode::CREATED, Json(volume(&array, &[], placed))))
}

/// Changes size, name, description and tags of a volume, in this order. It shrinks by force
/// only, and loses what is behind its new end; its initiators are told; of another name they notice nothing.
#[utoipa::path(
    patch, path = "/api/v1/volumes/{name}", tag = "volumes", request_body = VolumeChange,
    params(("name" = String, Path, description = "Name of the volume")),
    responses(
        (status = 200, body = Volume), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem),
        (status = 507, body = Problem)
    )
)]
pub(super) async fn change_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(change): Body<VolumeChange>,
) -> Result<Json<Volume>, Refusal> {
    if change == VolumeChange::default() {
        let rule = "one or more of size_bytes, name, description and tags";
        return Err(Refusal::invalid(format!("nothing to change: give {rule}")));
    }
    change.size_bytes.map_or(Ok(()), check_size)?;
    let attributes = new_attributes(&change)?;
    let mut placed = match change.size_bytes {
        Some(size_bytes) => {
            let force = change.force_shrink;
            array.resize_volume(name.clone(), size_bytes, force).await?
        }
        None => array.volume(&name).await?,
    };
    if attributes != NewAttributes::default() {
        placed = array.change_attributes(name, attributes).await?;
    }
    let all = array.volumes().await?;
    Ok(Json(volume(&array, &all, placed)))
}

fn new_attributes(change: &VolumeChange) -> Result<NewAttributes, Refusal> {
    let wrong = |text: &&String| !site::is_description(text);
    if let Some(text) = change.description.as_ref().filter(wrong) {
        let rule = site::DESCRIPTION_RULE;
        let message = format!("description: found {text:?}; allowed: {rule}");
        return Err(Refusal::invalid(message));
    }
    let mut tags = Vec::new();
    for (key, value) in &change.tags {
        if !site::is_tag(key, value.as_deref().unwrap_or("-")) {
            let found = format!("{key}={}", value.as_deref().unwrap_or_default());
            let message = format!("tags: found {found:?}; allowed: {}", site::TAG_RULE);
            return Err(Refusal::invalid(message));
        }
        tags.push((key.clone(), value.clone().unwrap_or_default()));
    }
    Ok(NewAttributes {
        name: change.name.clone(),
        description: change.description.clone(),
        tags,
    })
}

/// Deletes a volume: it goes into the trash, where its data stay for a time. Snapshots and
/// clones of it stay. One that is exported is refused without force.
#[utoipa::path(
    delete, path = "/api/v1/volumes/{name}", tag = "volumes",
    params(("name" = String, Path, description = "Name of the volume"), How),
    responses(
        (status = 200, body = Deleted), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn delete_volume(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    how: Result<Query<How>, QueryRejection>,
) -> Result<Json<Deleted>, Refusal> {
    let gone = array.delete_volume(name, deletion(how)?).await?;
    Ok(Json(deleted(gone)))
}

pub(super) fn deletion(how: Result<Query<How>, QueryRejection>) -> Result<Deletion, Refusal> {
    let Query(how) = how.map_err(|wrong| Refusal::invalid(wrong.body_text()))?;
    Ok(Deletion {
        by_force: how.force,
        at_once: how.at_once,
        only_check: false,
    })
}

/// What came of a deletion.
pub(super) fn deleted(of: array::Deleted) -> Deleted {
    Deleted {
        name: of.volume.info.name,
        uuid: of.volume.info.uuid.to_string(),
        until_unix_s: of.until_unix_s,
        snapshots: of.snapshots,
        clones: of.clones,
    }
}

pub(super) fn check_name(name: &str) -> Result<(), Refusal> {
    if site::is_name(name) {
        return Ok(());
    }
    let message = format!("name: found {name:?}; allowed: {}", site::NAME_RULE);
    Err(Refusal::invalid(message))
}

pub(super) fn check_size(size_bytes: u64) -> Result<(), Refusal> {
    if site::is_volume_size(size_bytes) {
        return Ok(());
    }
    let message = format!(
        "size: found {}; allowed: {}",
        site::human(size_bytes),
        site::VOLUME_SIZES.rule_near(size_bytes)
    );
    Err(Refusal::invalid(message))
}

/// A volume as it is shown; what it was taken from is looked for in `all`.
pub(super) fn volume(array: &Array, all: &[PlacedVolume], placed: PlacedVolume) -> Volume {
    let mut of = all.iter().filter(|other| placed.is_of(other));
    let of = of.next().map(|other| other.info.name.clone());
    let group = consistency::group_of(&placed).cloned();
    let PlacedVolume {
        pool,
        info,
        properties,
        ..
    } = placed;
    let export = array.lun_of(&info.name, Some(info.uuid));
    Volume {
        name: info.name,
        uuid: info.uuid.to_string(),
        pool,
        size_bytes: info.size_bytes,
        mapped_bytes: info.mapped_bytes,
        promised_bytes: info.promised_bytes,
        detect_zeroes: info.detects_zeroes,
        provisioning: match info.provisioning {
            engine::Provisioning::Thin => Provisioning::Thin,
            engine::Provisioning::Thick => Provisioning::Thick,
        },
        read_only: info.read_only,
        description: attributes::description(&properties),
        tags: attributes::tags(&properties),
        group,
        origin: properties.origin.map(|origin| VolumeOrigin {
            uuid: origin.uuid.to_string(),
            volume: of,
            name: origin.name,
            at_unix_s: origin.at_unix_s,
        }),
        export: export.map(|(target, lun)| LunPlace {
            target,
            lun: lun as u64,
        }),
        withheld_for: properties.transit.map(|transit| transit.pool_name),
    }
}
