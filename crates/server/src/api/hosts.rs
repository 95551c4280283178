//! Requests about hosts and host groups.

use super::problem::Refusal;
use super::problem::{Body, Segment};
use super::volumes::check_name;
use crate::array::hosts::account_of;
use crate::array::{self, Array};
use api::{
    Chap, ChapCreate, Host, HostChange, HostCreate, HostGroup, HostGroupChange, HostGroupCreate,
    Problem,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use iscsi::chap::Account;
use std::sync::Arc;

/// All hosts, by name.
#[utoipa::path(
    get, path = "/api/v1/hosts", tag = "hosts",
    responses((status = 200, body = Vec<Host>))
)]
pub(super) async fn list_hosts(State(array): State<Arc<Array>>) -> Json<Vec<Host>> {
    let hosts = array.hosts().into_iter();
    Json(hosts.map(|one| host(&array, one)).collect())
}

/// The host of this name.
#[utoipa::path(
    get, path = "/api/v1/hosts/{name}", tag = "hosts",
    params(("name" = String, Path, description = "Name of the host")),
    responses((status = 200, body = Host), (status = 404, body = Problem))
)]
pub(super) async fn get_host(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<Host>, Refusal> {
    Ok(Json(host(&array, array.host(&name)?)))
}

/// Makes a host: initiators under one name, with what they have to prove. It is there again
/// after a restart.
#[utoipa::path(
    post, path = "/api/v1/hosts", tag = "hosts", request_body = HostCreate,
    responses(
        (status = 201, body = Host), (status = 400, body = Problem),
        (status = 409, body = Problem)
    )
)]
pub(super) async fn create_host(
    State(array): State<Arc<Array>>,
    Body(create): Body<HostCreate>,
) -> Result<(StatusCode, Json<Host>), Refusal> {
    check_name(&create.name)?;
    check_initiators(&create.initiators)?;
    some("initiators", &create.initiators)?;
    let name = create.name.clone();
    let wanted = array::Host {
        name: create.name,
        initiators: create.initiators.into_iter().collect(),
        account: create.chap.map(account).transpose()?,
    };
    array.create_host(wanted).await?;
    Ok((StatusCode::CREATED, Json(host(&array, array.host(&name)?))))
}

/// Changes a host. Sessions that would not be admitted any more are asked to log out, and
/// closed.
#[utoipa::path(
    patch, path = "/api/v1/hosts/{name}", tag = "hosts", request_body = HostChange,
    params(("name" = String, Path, description = "Name of the host")),
    responses(
        (status = 200, body = Host), (status = 400, body = Problem),
        (status = 404, body = Problem)
    )
)]
pub(super) async fn change_host(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(change): Body<HostChange>,
) -> Result<Json<Host>, Refusal> {
    check_initiators(&change.add)?;
    let wanted = array::HostChange {
        add: change.add,
        remove: change.remove,
        account: new_account(change.chap, change.remove_chap)?,
    };
    array.change_host(name.clone(), wanted).await?;
    Ok(Json(host(&array, array.host(&name)?)))
}

/// Forgets a host that no export and no group names.
#[utoipa::path(
    delete, path = "/api/v1/hosts/{name}", tag = "hosts",
    params(("name" = String, Path, description = "Name of the host")),
    responses(
        (status = 204), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem)
    )
)]
pub(super) async fn delete_host(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<StatusCode, Refusal> {
    array.delete_host(name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// All groups of hosts, by name.
#[utoipa::path(
    get, path = "/api/v1/host-groups", tag = "hosts",
    responses((status = 200, body = Vec<HostGroup>))
)]
pub(super) async fn list_host_groups(State(array): State<Arc<Array>>) -> Json<Vec<HostGroup>> {
    Json(array.host_groups().into_iter().map(group).collect())
}

/// The group of hosts of this name.
#[utoipa::path(
    get, path = "/api/v1/host-groups/{name}", tag = "hosts",
    params(("name" = String, Path, description = "Name of the group")),
    responses((status = 200, body = HostGroup), (status = 404, body = Problem))
)]
pub(super) async fn get_host_group(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<Json<HostGroup>, Refusal> {
    Ok(Json(group(array.host_group(&name)?)))
}

/// Makes a group of hosts. It is there again after a restart.
#[utoipa::path(
    post, path = "/api/v1/host-groups", tag = "hosts", request_body = HostGroupCreate,
    responses(
        (status = 201, body = HostGroup), (status = 400, body = Problem),
        (status = 409, body = Problem)
    )
)]
pub(super) async fn create_host_group(
    State(array): State<Arc<Array>>,
    Body(create): Body<HostGroupCreate>,
) -> Result<(StatusCode, Json<HostGroup>), Refusal> {
    check_name(&create.name)?;
    some("hosts", &create.hosts)?;
    let wanted = array::HostGroup {
        name: create.name,
        hosts: create.hosts.into_iter().collect(),
    };
    array.create_host_group(wanted.clone()).await?;
    Ok((StatusCode::CREATED, Json(group(wanted))))
}

/// Adds hosts to a group, and takes others out of it. Sessions that would not be admitted any
/// more are asked to log out, and closed.
#[utoipa::path(
    patch, path = "/api/v1/host-groups/{name}", tag = "hosts", request_body = HostGroupChange,
    params(("name" = String, Path, description = "Name of the group")),
    responses(
        (status = 200, body = HostGroup), (status = 400, body = Problem),
        (status = 404, body = Problem)
    )
)]
pub(super) async fn change_host_group(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
    Body(change): Body<HostGroupChange>,
) -> Result<Json<HostGroup>, Refusal> {
    let HostGroupChange { add, remove } = change;
    array.change_host_group(name.clone(), add, remove).await?;
    Ok(Json(group(array.host_group(&name)?)))
}

/// Forgets a group of hosts that no export names; its hosts stay.
#[utoipa::path(
    delete, path = "/api/v1/host-groups/{name}", tag = "hosts",
    params(("name" = String, Path, description = "Name of the group")),
    responses(
        (status = 204), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem)
    )
)]
pub(super) async fn delete_host_group(
    State(array): State<Arc<Array>>,
    Segment(name): Segment<String>,
) -> Result<StatusCode, Refusal> {
    array.delete_host_group(name).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn some(key: &str, names: &[String]) -> Result<(), Refusal> {
    match names.is_empty() {
        true => Err(Refusal::invalid(format!(
            "{key}: found an empty list; allowed: one name or more"
        ))),
        false => Ok(()),
    }
}

/// Whether these may be names of initiators.
pub(super) fn check_initiators(names: &[String]) -> Result<(), Refusal> {
    match names.iter().find(|name| !site::is_initiator_name(name)) {
        None => Ok(()),
        Some(name) => Err(Refusal::invalid(format!(
            "initiators: found {name:?}; allowed: iSCSI names (iqn., eui. or naa., in lower case)"
        ))),
    }
}

/// The account that becomes another one, if any.
pub(super) fn new_account(
    chap: Option<ChapCreate>,
    remove: bool,
) -> Result<Option<Option<Arc<Account>>>, Refusal> {
    match (chap, remove) {
        (Some(_), true) => Err(Refusal::invalid(
            "remove_chap: found beside chap; allowed: one of the two",
        )),
        (Some(chap), false) => Ok(Some(Some(account(chap)?))),
        (None, true) => Ok(Some(None)),
        (None, false) => Ok(None),
    }
}

/// The rules that the site file has, for what comes from outside here. No message has a
/// secret in it.
pub(super) fn account(chap: ChapCreate) -> Result<Arc<Account>, Refusal> {
    let credential = |keys: [&str; 2], name: String, secret: &str| {
        let wrong = |key: &str, found: String, rule: &str| {
            Refusal::invalid(format!("chap.{key}: found {found}; allowed: {rule}"))
        };
        if !site::is_chap_name(&name) {
            return Err(wrong(keys[0], format!("{name:?}"), site::CHAP_NAME_RULE));
        }
        let found = || format!("text of {} bytes", secret.len());
        let secret = site::Secret::parse(secret);
        let secret = secret.ok_or_else(|| wrong(keys[1], found(), site::SECRET_RULE))?;
        Ok(site::Credential { name, secret })
    };
    let initiator = credential(["name", "secret"], chap.name, &chap.secret.0)?;
    let mutual = match (chap.mutual_name, chap.mutual_secret) {
        (None, None) => None,
        (Some(name), Some(secret)) => {
            let keys = ["mutual_name", "mutual_secret"];
            Some(credential(keys, name, &secret.0)?)
        }
        _ => {
            let rule = "mutual_name and mutual_secret, or none of them";
            let message = format!("chap: found one of two; allowed: {rule}");
            return Err(Refusal::invalid(message));
        }
    };
    Ok(account_of(&site::ChapAccount { initiator, mutual }))
}

/// What is said of an account.
pub(super) fn chap(account: &Account) -> Chap {
    Chap {
        name: account.initiator.name.clone(),
        mutual_name: account.mutual.as_ref().map(|mutual| mutual.name.clone()),
    }
}

fn host(array: &Array, host: array::Host) -> Host {
    let groups = array.host_groups().into_iter();
    let groups = groups.filter(|group| group.hosts.contains(&host.name));
    Host {
        host_groups: groups.map(|group| group.name).collect(),
        initiators: host.initiators.into_iter().collect(),
        chap: host.account.as_deref().map(chap),
        name: host.name,
    }
}

fn group(group: array::HostGroup) -> HostGroup {
    HostGroup {
        name: group.name,
        hosts: group.hosts.into_iter().collect(),
    }
}
