//! JSON of targets, and of what is behind them.

use crate::{Chap, ChapCreate};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A target and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Export {
    /// iSCSI qualified name of the target.
    pub target: String,
    /// Its logical units, by LUN.
    pub luns: Vec<Lun>,
    /// Who may log in by name.
    pub initiators: Initiators,
    /// Names of hosts that may.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Names of host groups that may.
    #[serde(default)]
    pub host_groups: Vec<String>,
    /// What everybody has to prove who has nothing of their own to prove.
    #[serde(default)]
    pub chap: Option<Chap>,
    /// Addresses of the portals that it is seen through; absent for all.
    #[serde(default)]
    pub portals: Option<Vec<String>>,
    /// How long initiators are told that physical blocks are.
    #[serde(default = "four_kib")]
    pub physical_block_bytes: u32,
    /// Whether initiators may erase thin LUNs with SANITIZE.
    #[serde(default)]
    pub may_sanitize: bool,
    /// Whether initiators may change mode pages (SWP, D_SENSE) and reset the target, which
    /// affects all of its hosts.
    #[serde(default)]
    pub may_affect_others: bool,
    /// Why nobody can log in for now: a volume of it is in a pool that is not open. Absent
    /// when it is served.
    #[serde(default)]
    pub withheld: Option<String>,
}

fn four_kib() -> u32 {
    4096
}

/// A logical unit of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lun {
    /// The LUN, 0 to 255.
    pub lun: u64,
    /// The volume behind it.
    pub volume: String,
}

/// An export to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportCreate {
    /// iSCSI qualified name that the target gets.
    pub target: String,
    /// Names of volumes: LUN 0, 1, and so on.
    #[schema(min_items = 1, max_items = 256)]
    pub volumes: Vec<String>,
    /// Who may log in by name: `"any"`, or iSCSI names. Nobody unless it is said; hosts or host
    /// groups must be named then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiators: Option<Initiators>,
    /// Names of hosts that may log in.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Names of host groups that may.
    #[serde(default)]
    pub host_groups: Vec<String>,
    /// What everybody has to prove who has nothing of their own to prove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<ChapCreate>,
    /// Addresses of the portals that it is seen through; all when there are none.
    #[serde(default)]
    pub portals: Vec<String>,
    /// How long initiators are told that physical blocks are: 512 to 4096; 4096 unless said
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_block_bytes: Option<u32>,
    /// Whether initiators may erase thin LUNs with SANITIZE: all data goes by one command of any
    /// host that is admitted.
    #[serde(default)]
    pub may_sanitize: bool,
    /// Whether initiators may change mode pages (SWP, D_SENSE) and reset the target. One host
    /// write-protects the LUNs for all hosts then, and ends what others have running.
    #[serde(default)]
    pub may_affect_others: bool,
}

/// Who may log in: the word `any`, or a list of iSCSI names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Initiators {
    /// Every initiator may log in.
    Any(Any),
    /// Only initiators with these iSCSI names may.
    Named(Vec<String>),
}

/// The word `any`, in the place of a list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Any {
    /// Every initiator may log in.
    Any,
}
