//! JSON of settings and portals.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Settings by table and key, as in a site file. Keys that have their default may be absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Settings(pub BTreeMap<String, BTreeMap<String, Value>>);

/// Settings to change, by table and key; null takes the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettingsChange(pub BTreeMap<String, BTreeMap<String, Value>>);

/// An iSCSI portal: an address at which the array serves targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Portal {
    /// Address and port that the array keeps.
    pub address: String,
    /// Tag of its portal group.
    pub group: u16,
    /// Where it listens; absent when it does not, because one portal stands for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_at: Option<String>,
}

/// A portal to open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortalAdd {
    /// An address of this machine, and a port.
    pub address: String,
    /// Tag of its portal group; 1 unless said otherwise.
    #[serde(default)]
    pub group: Option<u16>,
}

/// What becomes of a portal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortalChange {
    /// Tag of its new portal group.
    pub group: u16,
}
