//! Requests about exports: targets, their LUNs, and the initiators that may log in.

use super::hosts::{account, chap, check_initiators, new_account};
use super::problem::Refusal;
use super::problem::{Body, Segment};
use crate::array::{self, Array};
use crate::directory::{self, Access};
use crate::shard::UnitTraits;
use api::{Any, Export, ExportChange, ExportCreate, Initiators, Lun, LunAdd, Problem};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::collections::BTreeSet;
use std::net::SocketAddr;
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
) -> Result<Json<Export>, Refusal> {
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
) -> Result<(StatusCode, Json<Export>), Refusal> {
    let wanted = checked(create)?;
    array.create_export(wanted.clone()).await?;
    Ok((StatusCode::CREATED, Json(export(wanted))))
}

/// Changes who may log in, or adds and removes LUNs. Sessions that would not be admitted any more
/// are asked to log out, and closed; initiators are told that LUNs have changed.
#[utoipa::path(
    patch, path = "/api/v1/exports/{target}", tag = "exports", request_body = ExportChange,
    params(("target" = String, Path, description = "iSCSI name of the target")),
    responses(
        (status = 200, body = Export), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(super) async fn change_export(
    State(array): State<Arc<Array>>,
    Segment(target): Segment<String>,
    Body(change): Body<ExportChange>,
) -> Result<Json<Export>, Refusal> {
    let of_luns = (change.add_luns, change.remove_volumes);
    let of_access = ExportChange {
        add_luns: Vec::new(),
        remove_volumes: Vec::new(),
        ..change
    };
    if of_luns != (Vec::new(), Vec::new()) {
        if of_access != ExportChange::default() {
            let message =
                "found changes of LUNs and of who may log in; allowed: one after the other";
            return Err(Refusal::invalid(message));
        }
        let (add, remove) = of_luns;
        let new = |add: LunAdd| array::NewLun {
            volume: add.volume,
            lun: add.lun,
        };
        let add = add.into_iter().map(new).collect();
        return Ok(Json(export(array.change_luns(&target, add, remove).await?)));
    }
    let change = of_access;
    let initiators = change.initiators.map(initiators).transpose()?;
    let account = new_account(change.chap, change.remove_chap)?;
    let portals = change.portals.map(|found| portals(&found)).transpose()?;
    let names = |names: Vec<String>| names.into_iter().collect();
    let (hosts, groups) = (change.hosts.map(names), change.host_groups.map(names));
    let (may_sanitize, may_affect_others) = (change.may_sanitize, change.may_affect_others);
    let changed = move |access: &mut Access, traits: &mut UnitTraits| {
        let said = |place: &mut bool, said: Option<bool>| *place = said.unwrap_or(*place);
        said(&mut traits.may_sanitize, may_sanitize);
        said(&mut traits.may_affect_others, may_affect_others);
        let now = access.clone();
        *access = Access {
            initiators: initiators.unwrap_or(now.initiators),
            hosts: hosts.unwrap_or(now.hosts),
            host_groups: groups.unwrap_or(now.host_groups),
            account: account.unwrap_or(now.account),
            portals: portals.unwrap_or(now.portals),
        };
    };
    Ok(Json(export(array.change_export(&target, changed).await?)))
}

/// Closes the target's sessions and takes it away; the volumes stay.
#[utoipa::path(
    delete, path = "/api/v1/exports/{target}", tag = "exports",
    params(("target" = String, Path, description = "iSCSI name of the target")),
    responses((status = 204), (status = 404, body = Problem))
)]
pub(super) async fn delete_export(
    State(array): State<Arc<Array>>,
    Segment(target): Segment<String>,
) -> Result<StatusCode, Refusal> {
    array.delete_export(&target).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The rules that the site file has, for what comes from outside here.
fn checked(create: ExportCreate) -> Result<array::Export, Refusal> {
    let ExportCreate {
        target,
        volumes,
        initiators: by_name,
        hosts,
        host_groups,
        chap,
        portals: shown,
        physical_block_bytes,
        may_sanitize,
        may_affect_others,
    } = create;
    if !site::is_target_name(&target) {
        let message = format!("target: found {target:?}; allowed: {}", site::TARGET_RULE);
        return Err(Refusal::invalid(message));
    }
    if volumes.is_empty() || volumes.len() > site::LUNS_MAX {
        let (found, most) = (volumes.len(), site::LUNS_MAX);
        let message = format!("volumes: found {found}; allowed: 1 to {most} names");
        return Err(Refusal::invalid(message));
    }
    for (index, volume) in volumes.iter().enumerate() {
        if volumes.iter().take(index).any(|earlier| earlier == volume) {
            let message = format!("volumes: found {volume:?} twice; allowed: each once");
            return Err(Refusal::invalid(message));
        }
    }
    let is_block = |bytes: &u32| bytes.is_power_of_two() && (512..=4096).contains(bytes);
    if let Some(bytes) = physical_block_bytes.filter(|bytes| !is_block(bytes)) {
        let message =
            format!("physical block: found {bytes} B; allowed: 512 B, 1 KiB, 2 KiB or 4 KiB");
        return Err(Refusal::invalid(message));
    }
    let by_name = match by_name {
        Some(by_name) => initiators(by_name)?,
        None => directory::Initiators::Named(BTreeSet::new()),
    };
    Ok(array::Export {
        target,
        luns: (0..).take(volumes.len()).collect(),
        volumes,
        uuids: Vec::new(),
        access: Access {
            initiators: by_name,
            hosts: hosts.into_iter().collect(),
            host_groups: host_groups.into_iter().collect(),
            account: chap.map(account).transpose()?,
            portals: portals(&shown)?,
        },
        traits: UnitTraits {
            physical_block_bytes,
            may_sanitize,
            may_affect_others,
        },
        withheld: None,
    })
}

fn initiators(initiators: Initiators) -> Result<directory::Initiators, Refusal> {
    match initiators {
        Initiators::Any(Any::Any) => Ok(directory::Initiators::Any),
        Initiators::Named(names) => {
            check_initiators(&names)?;
            Ok(directory::Initiators::Named(names.into_iter().collect()))
        }
    }
}

/// Addresses of portals; `None`, which is all, when there are none.
fn portals(portals: &[String]) -> Result<Option<BTreeSet<SocketAddr>>, Refusal> {
    let parsed = portals.iter().map(|text| {
        text.parse::<SocketAddr>().map_err(|_| {
            let rule = "addresses of portals, such as \"127.0.0.1:3260\"";
            Refusal::invalid(format!("portals: found {text:?}; allowed: {rule}"))
        })
    });
    let parsed = parsed.collect::<Result<BTreeSet<_>, _>>()?;
    Ok((!parsed.is_empty()).then_some(parsed))
}

fn export(export: array::Export) -> Export {
    let luns = export.luns.into_iter().zip(export.volumes);
    Export {
        target: export.target,
        luns: luns
            .map(|(lun, volume)| Lun {
                lun: u64::from(lun),
                volume,
            })
            .collect(),
        initiators: match export.access.initiators {
            directory::Initiators::Any => Initiators::Any(Any::Any),
            directory::Initiators::Named(names) => Initiators::Named(names.into_iter().collect()),
        },
        hosts: export.access.hosts.into_iter().collect(),
        host_groups: export.access.host_groups.into_iter().collect(),
        chap: export.access.account.as_deref().map(chap),
        portals: export.access.portals.map(|portals| {
            let portals = portals.into_iter();
            portals.map(|portal| portal.to_string()).collect()
        }),
        physical_block_bytes: export.traits.physical_block_bytes.unwrap_or(4096),
        may_sanitize: export.traits.may_sanitize,
        may_affect_others: export.traits.may_affect_others,
        withheld: export.withheld,
    }
}
