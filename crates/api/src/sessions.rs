//! JSON of sessions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An iSCSI session that is connected now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its number (the TSIH of RFC 7143), until it ends.
    pub id: u16,
    /// iSCSI name that the initiator logged in with.
    pub initiator: String,
    /// The alias it gave.
    pub initiator_alias: Option<String>,
    /// iSCSI name of the target that the session is at.
    pub target: String,
    /// Where it connects from.
    pub peer: String,
    /// The portal that it came in at.
    #[serde(default)]
    pub portal: String,
    /// Tag of the portal's group.
    #[serde(default)]
    pub portal_group: u16,
    /// The CHAP name that it has proved, if it had to.
    #[serde(default)]
    pub chap_name: Option<String>,
    /// When it logged in, in seconds since 1970.
    pub since_unix_s: u64,
    /// Commands of any kind that have ended since the login, whatever became of them.
    pub commands: u64,
    /// READ commands that have ended well since the login.
    pub reads: u64,
    /// WRITE commands that have ended well since the login, with WRITE AND VERIFY, WRITE ATOMIC and
    /// ORWRITE.
    pub writes: u64,
    /// Bytes that the array has sent for reads.
    pub read_bytes: u64,
    /// Bytes that the array has taken for writes.
    pub written_bytes: u64,
    /// Commands in flight now.
    pub in_flight: u64,
}
