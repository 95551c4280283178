//! Requests about settings, portals, discovery CHAP, and the array as a site file.

use super::caller::Caller;
use super::problem::Refusal;
use super::problem::{Body, Segment};
use crate::array::Array;
use ::array::site_file;
use api::{
    ChapCreate, DiscoveryChap, Portal, PortalAdd, PortalChange, Problem, ProblemKind, Settings,
    SettingsChange, SiteText,
};
use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use serde_json::Value;
use site::Setting;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// The settings: the array's name, its trash, directories, limits and the like. Keys that have
/// their default may be absent.
#[utoipa::path(
    get, path = "/api/v1/settings", tag = "settings",
    responses((status = 200, description = "The settings, by table and key", body = Settings))
)]
pub(super) async fn get_settings(State(array): State<Arc<Array>>) -> Json<Settings> {
    Json(shown(&array))
}

fn shown(array: &Array) -> Settings {
    let tables = site::settings(&array.settings()).into_iter();
    let shown = tables.map(|(name, table)| {
        let keys = table.into_iter().map(|(key, value)| (key, json(value)));
        (name, keys.collect())
    });
    Settings(shown.collect())
}

/// Changes settings; null takes the default. Limits, the name, the number of shards and the API's
/// place count from the next start on, the rest at once. Directories and the API's place are for
/// root and the server's user to change, not for the socket's group.
#[utoipa::path(
    patch, path = "/api/v1/settings", tag = "settings", request_body = SettingsChange,
    responses(
        (status = 200, description = "The settings as they are now", body = Settings),
        (status = 400, description = "No such key, or a value that it can't have", body = Problem),
        (status = 403, description = "Root may, and the server's user", body = Problem)
    )
)]
pub(super) async fn change_settings(
    State(array): State<Arc<Array>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    Body(change): Body<SettingsChange>,
) -> Result<Json<Settings>, Refusal> {
    array.edit_settings(edit(change, &caller)?).await?;
    Ok(Json(shown(&array)))
}

/// Values of settings by table and key; nothing for the default.
type Edit = BTreeMap<String, BTreeMap<String, Option<Setting>>>;

/// What a caller wants to change, when the caller may.
pub(super) fn edit(
    SettingsChange(change): SettingsChange,
    caller: &Caller,
) -> Result<Edit, Refusal> {
    let says = |whole: &str| {
        let (table, key) = whole.split_once('.')?;
        change.get(table)?.get(key)
    };
    let of_files = site_file::OF_FILES.iter().find(|key| says(key).is_some());
    if let Some(key) = of_files.filter(|_| !caller.is_owner()) {
        let message = format!("{caller} may not change {key}: root may, and the server's user");
        return Err(Refusal::new(ProblemKind::Forbidden, message));
    }
    let mut changes = Edit::new();
    for (table, keys) in change {
        for (key, value) in keys {
            let value = setting_of(value).map_err(|what| {
                Refusal::invalid(format!(
                    "{table}.{key}: found {what}; allowed: a value of a site file"
                ))
            })?;
            changes.entry(table.clone()).or_default().insert(key, value);
        }
    }
    Ok(changes)
}

/// A value of a site file as JSON has it.
fn json(value: Setting) -> Value {
    match value {
        Setting::String(text) => Value::from(text),
        Setting::Integer(number) => Value::from(number),
        Setting::Boolean(is) => Value::from(is),
        Setting::Array(values) => Value::Array(values.into_iter().map(json).collect()),
        other => Value::from(other.to_string()),
    }
}

/// A value of JSON as a site file has it, nothing for null; an error is what can't be one.
fn setting_of(value: Value) -> Result<Option<Setting>, String> {
    let value = match value {
        Value::Null => return Ok(None),
        Value::String(text) => Setting::String(text),
        Value::Bool(is) => Setting::Boolean(is),
        Value::Number(number) => {
            Setting::Integer(number.as_i64().ok_or_else(|| number.to_string())?)
        }
        Value::Array(values) => {
            let values = values
                .into_iter()
                .map(|value| setting_of(value)?.ok_or_else(|| "null in a list".to_owned()));
            Setting::Array(values.collect::<Result<_, String>>()?)
        }
        Value::Object(_) => return Err("an object".to_owned()),
    };
    Ok(Some(value))
}

/// The portals.
#[utoipa::path(
    get, path = "/api/v1/portals", tag = "settings",
    responses((status = 200, description = "All portals that the array keeps", body = Vec<Portal>))
)]
pub(super) async fn list_portals(State(array): State<Arc<Array>>) -> Json<Vec<Portal>> {
    Json(portals(&array))
}

fn portals(array: &Array) -> Vec<Portal> {
    let open = array.directory().portals();
    let portal = |portal: &site::Portal| {
        let at = open
            .iter()
            .find(|one| one.described == Some(portal.address));
        Portal {
            address: portal.address.to_string(),
            group: portal.group,
            open_at: at.map(|one| one.address.to_string()),
        }
    };
    array.settings().portals.iter().map(portal).collect()
}

/// Serves targets at another address of this machine, too.
#[utoipa::path(
    post, path = "/api/v1/portals", tag = "settings", request_body = PortalAdd,
    responses(
        (status = 201, description = "All portals by now", body = Vec<Portal>),
        (status = 400, description = "It can't be opened", body = Problem),
        (status = 409, description = "There is that portal already, or the address is in use", body = Problem)
    )
)]
pub(super) async fn add_portal(
    State(array): State<Arc<Array>>,
    Body(add): Body<PortalAdd>,
) -> Result<(StatusCode, Json<Vec<Portal>>), Refusal> {
    let address = address(&add.address)?;
    let group = add.group.unwrap_or(1);
    array.add_portal(site::Portal { address, group }).await?;
    Ok((StatusCode::CREATED, Json(portals(&array))))
}

/// Puts a portal into another portal group; sessions that came in there end, and initiators log in
/// again.
#[utoipa::path(
    patch, path = "/api/v1/portals/{address}", tag = "settings", request_body = PortalChange,
    params(("address" = String, Path, description = "Address and port of the portal")),
    responses(
        (status = 200, description = "All portals by now", body = Vec<Portal>),
        (status = 400, description = "The group can't be", body = Problem),
        (status = 404, description = "There is no such portal", body = Problem)
    )
)]
pub(super) async fn change_portal(
    State(array): State<Arc<Array>>,
    Segment(at): Segment<String>,
    Body(change): Body<PortalChange>,
) -> Result<Json<Vec<Portal>>, Refusal> {
    let (address, group) = (of_portal(&at)?, change.group);
    array.change_portal(site::Portal { address, group }).await?;
    Ok(Json(portals(&array)))
}

/// Serves targets at this address no more; sessions that came in there end.
#[utoipa::path(
    delete, path = "/api/v1/portals/{address}", tag = "settings",
    params(("address" = String, Path, description = "Address and port of the portal")),
    responses(
        (status = 204, description = "It is closed"),
        (status = 404, description = "There is no such portal", body = Problem),
        (status = 409, description = "It is the last, or a target is limited to it", body = Problem)
    )
)]
pub(super) async fn remove_portal(
    State(array): State<Arc<Array>>,
    Segment(at): Segment<String>,
) -> Result<StatusCode, Refusal> {
    array.remove_portal(of_portal(&at)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The address of a portal as a path has it.
pub(super) fn of_portal(at: &str) -> Result<SocketAddr, Refusal> {
    let none = || Refusal::not_there(&format!("portal {at}"), "portal list");
    at.parse().map_err(|_| none())
}

fn address(text: &str) -> Result<SocketAddr, Refusal> {
    text.parse().map_err(|_| {
        Refusal::invalid(format!(
            "address: found {text:?}; allowed: an address of this machine and a port, such as \
             \"192.0.2.10:3260\""
        ))
    })
}

/// All of the array as a site file, but its secrets.
#[utoipa::path(
    get, path = "/api/v1/site", tag = "settings",
    responses((status = 200, description = "The text of a site file", body = SiteText))
)]
pub(super) async fn get_site(State(array): State<Arc<Array>>) -> Result<Json<SiteText>, Refusal> {
    let site = site_file::site_of(&array).await?;
    Ok(Json(SiteText {
        file: format!("{}.toml", site.name),
        text: site_file::left_out(&array) + &site::text(&site),
    }))
}

/// What initiators have to prove before discovery names targets.
#[utoipa::path(
    get, path = "/api/v1/discovery/chap", tag = "settings",
    responses((status = 200, description = "The account, without secrets", body = DiscoveryChap))
)]
pub(super) async fn get_discovery(State(array): State<Arc<Array>>) -> Json<DiscoveryChap> {
    let account = array.directory().discovery();
    let chap = account.as_deref().map(super::hosts::chap);
    Json(DiscoveryChap { chap })
}

/// Sets what initiators have to prove before discovery names targets.
#[utoipa::path(
    put, path = "/api/v1/discovery/chap", tag = "settings", request_body = ChapCreate,
    responses(
        (status = 204, description = "Discovery asks for it from now on"),
        (status = 400, description = "A secret that can't be one, or proves somebody else", body = Problem)
    )
)]
pub(super) async fn set_discovery(
    State(array): State<Arc<Array>>,
    Body(create): Body<ChapCreate>,
) -> Result<StatusCode, Refusal> {
    let account = super::hosts::account(create)?;
    array.change_discovery(Some(account)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Has discovery ask for nothing.
#[utoipa::path(
    delete, path = "/api/v1/discovery/chap", tag = "settings",
    responses((status = 204, description = "Discovery asks for nothing"))
)]
pub(super) async fn clear_discovery(
    State(array): State<Arc<Array>>,
) -> Result<StatusCode, Refusal> {
    array.change_discovery(None).await?;
    Ok(StatusCode::NO_CONTENT)
}
