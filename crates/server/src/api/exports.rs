//! Exports: targets and the volumes behind them.

use super::problem::{Body, Segment};
use super::types::{Any, Export, ExportCreate, Initiators, Lun, Origin, Problem};
use crate::array::{self, Array};
use crate::directory;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;

/// All exports, by target.
#[utoipa::path(
    get, path = "/api/v1/exports", tag = "exports",
    responses((status = 200, body = Vec<Export>))
)]
pub(super) async fn list_exports(State(array): State<Arc<Array>>) -> Json<Vec<Export>> {
    Json(array.exports().into_iter().map(export).collect())
}

/// The export of this target.
#[utoipa::path(
    get, path = "/api/v1/exports/{target}", tag = "exports",
    params(("target" = String, Path, description = "iSCSI name of the target")),
    responses((status = 200, body = Export), (status = 404, body = Problem))
)]
pub(super) async fn get_export(
    State(array): State<Arc<Array>>,
    Segment(target): Segment<String>,
) -> Result<Json<Export>, Problem> {
    Ok(Json(export(array.export(&target)?)))
}

/// Shows volumes behind a new target. It is there again after a restart.
#[utoipa::path(
    post, path = "/api/v1/exports", tag = "exports", request_body = ExportCreate,
    responses(
        (status = 201, body = Export), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn create_export(
    State(array): State<Arc<Array>>,
    Body(create): Body<ExportCreate>,
) -> Result<(StatusCode, Json<Export>), Problem> {
    let wanted = checked(create)?;
    array.create_export(wanted.clone()).await?;
    Ok((StatusCode::CREATED, Json(export(wanted))))
}

/// Closes the target's sessions and takes it away; the volumes stay. An export
/// that the site file describes is there again after the next start.
#[utoipa::path(
    delete, path = "/api/v1/exports/{target}", tag = "exports",
    params(("target" = String, Path, description = "iSCSI name of the target")),
    responses((status = 204), (status = 404, body = Problem))
)]
pub(super) async fn delete_export(
    State(array): State<Arc<Array>>,
    Segment(target): Segment<String>,
) -> Result<StatusCode, Problem> {
    array.delete_export(&target).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The rules that the site file has, for what comes from outside here.
fn checked(create: ExportCreate) -> Result<array::Export, Problem> {
    let ExportCreate {
        target,
        volumes,
        initiators,
    } = create;
    if !site::is_target_name(&target) {
        let message = format!("target: found {target:?}; allowed: {}", site::TARGET_RULE);
        return Err(Problem::invalid(message));
    }
    if volumes.is_empty() || volumes.len() > site::LUNS_MAX {
        let (found, most) = (volumes.len(), site::LUNS_MAX);
        let message = format!("volumes: found {found}; allowed: 1 to {most} names");
        return Err(Problem::invalid(message));
    }
    for (index, volume) in volumes.iter().enumerate() {
        if volumes.iter().take(index).any(|earlier| earlier == volume) {
            let message = format!("volumes: found {volume:?} twice; allowed: each once");
            return Err(Problem::invalid(message));
        }
    }
    let initiators = match initiators {
        Initiators::Any(Any::Any) => directory::Initiators::Any,
        Initiators::Named(names) => {
            let wrong = names.iter().find(|name| !site::is_initiator_name(name));
            if wrong.is_some() || names.is_empty() {
                let found = wrong.map_or("an empty list".to_owned(), |name| format!("{name:?}"));
                let rule = "\"any\", or a list of iSCSI names (iqn., eui. or naa., in lower case)";
                return Err(Problem::invalid(format!(
                    "initiators: found {found}; allowed: {rule}"
                )));
            }
            directory::Initiators::Named(names.into_iter().collect())
        }
    };
    Ok(array::Export {
        target,
        volumes,
        uuids: Vec::new(),
        access: directory::Access {
            initiators,
            ..directory::Access::default()
        },
        origin: array::Origin::Api,
    })
}

fn export(export: array::Export) -> Export {
    let luns = export.volumes.into_iter().enumerate();
    Export {
        target: export.target,
        luns: luns
            .map(|(lun, volume)| Lun {
                lun: lun as u64,
                volume,
            })
            .collect(),
        initiators: match export.access.initiators {
            directory::Initiators::Any => Initiators::Any(Any::Any),
            directory::Initiators::Named(names) => Initiators::Named(names.into_iter().collect()),
        },
        origin: match export.origin {
            array::Origin::Site => Origin::Site,
            array::Origin::Api => Origin::Api,
        },
    }
}
