//! JSON of hosts, host groups and CHAP.
//!
//! The API takes secrets, and never gives them.

use crate::Initiators;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A secret: 12 to 255 bytes, as text or as `0x` and two hexadecimal digits for each byte.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText")
    }
}

/// What has to be proved by CHAP. With a mutual name and secret we prove who we are, too,
/// to initiators that ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChapCreate {
    /// CHAP name that the initiator gives.
    pub name: String,
    /// Secret that the initiator has to know.
    pub secret: SecretText,
    /// CHAP name that the array gives in mutual CHAP; absent for one-way CHAP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual_name: Option<String>,
    /// Our secret, another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual_secret: Option<SecretText>,
}

/// What has to be proved by CHAP, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Chap {
    /// CHAP name that the initiator has to give.
    pub name: String,
    /// Our name, where authentication is mutual.
    pub mutual_name: Option<String>,
}

/// What initiators have to prove before discovery names targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiscoveryChap {
    /// The account that it asks for; null when it asks for none.
    pub chap: Option<Chap>,
}

/// A host: one or more initiators under one name, by which exports admit them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Name of the host, unique among hosts.
    pub name: String,
    /// iSCSI names of its initiators.
    pub initiators: Vec<String>,
    /// What they have to prove, if anything of their own.
    pub chap: Option<Chap>,
    /// Names of the host groups that it is in.
    pub host_groups: Vec<String>,
}

/// A host to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostCreate {
    /// Name of the host, unique among hosts: 1 to 64 letters, digits, `-`, `_`, `.`, the first a
    /// letter or digit.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub name: String,
    /// iSCSI names of its initiators, one or more; each is of one host at most.
    #[schema(min_items = 1)]
    pub initiators: Vec<String>,
    /// What they have to prove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<ChapCreate>,
}

/// What becomes different of a host. What is not named stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostChange {
    /// Initiators that it gets.
    #[serde(default)]
    pub add: Vec<String>,
    /// Initiators that it loses.
    #[serde(default)]
    pub remove: Vec<String>,
    /// What has to be proved from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<ChapCreate>,
    /// Nothing has to be proved any more.
    #[serde(default)]
    pub remove_chap: bool,
}

/// A group of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostGroup {
    /// Unique among groups of hosts.
    pub name: String,
    /// Names of its hosts.
    pub hosts: Vec<String>,
}

/// A group of hosts to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostGroupCreate {
    /// Unique among groups of hosts.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub name: String,
    /// Names of its hosts, one or more.
    #[schema(min_items = 1)]
    pub hosts: Vec<String>,
}

/// Hosts that a group gets and loses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostGroupChange {
    /// Names of hosts that it gets.
    #[serde(default)]
    pub add: Vec<String>,
    /// Names of hosts that it loses.
    #[serde(default)]
    pub remove: Vec<String>,
}

/// Who may log in to a target from now on, and what initiators may do there. Fields that are not
/// given stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportChange {
    /// By name; an empty list for nobody by name alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiators: Option<Initiators>,
    /// Names of all hosts that may log in from now on; an empty list removes all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// Names of host groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_groups: Option<Vec<String>>,
    /// What everybody has to prove who has nothing of their own to prove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<ChapCreate>,
    /// Nothing of the target's own has to be proved any more.
    #[serde(default)]
    pub remove_chap: bool,
    /// Addresses of the portals that it is seen through; an empty list for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub portals: Option<Vec<String>>,
    /// Whether initiators may erase thin LUNs with SANITIZE. An erasure that has begun continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_sanitize: Option<bool>,
    /// Whether initiators may change mode pages (SWP, D_SENSE) and reset the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_affect_others: Option<bool>,
    /// Volumes that come behind the target. Not together with who may log in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_luns: Vec<LunAdd>,
    /// Names of volumes that are taken away from it; they stay as volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_volumes: Vec<String>,
}

/// A volume to be put behind a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LunAdd {
    /// Name of the volume to export.
    pub volume: String,
    /// The LUN, 0 to 255; the lowest one that is free unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 255)]
    pub lun: Option<u16>,
}
