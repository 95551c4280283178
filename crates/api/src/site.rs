//! JSON of a site file, and of its differences from the array.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A site file, to be compared or applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SiteText {
    /// The file's name, for messages.
    #[serde(default = "site_toml")]
    pub file: String,
    /// All that it says.
    pub text: String,
}

fn site_toml() -> String {
    "site.toml".to_owned()
}

/// Something that a site file says and the array is not, or the other way round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SiteDifference {
    /// What becomes of it when the file is applied.
    pub action: SiteAction,
    /// The thing, such as "target iqn.2026-11.dev.ashlar:vm1".
    pub what: String,
    /// How it differs, in words for people.
    pub how: String,
    /// Why it could not be as the file says. Absent where nothing was tried, or it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What becomes of a difference when the file is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SiteAction {
    /// The array makes it, since it is only in the file.
    Create,
    /// The array changes it to what the file says.
    Change,
    /// It stays as it is.
    Keep,
}
