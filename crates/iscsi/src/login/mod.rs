//! Login: from the first byte to full-feature phase (RFC 7143 clauses 6 and 13).
//!
//! The types here are what the front and the shards share; the state machine is
//! in `exchange`, the rules of each key in `keys`, and CHAP in `security`.

mod exchange;
mod keys;
mod security;
mod status;

pub use exchange::{Login, turn_away};
pub(crate) use keys::is_operational;

use crate::chap::Account;
use std::net::SocketAddr;
use std::sync::Arc;

/// Where a connection came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginPortal {
    /// Target portal group tag.
    pub portal_group: u16,
    /// Local address of the connection.
    pub address: SocketAddr,
}

/// Who has a session, and how it came to it: all that decides which targets it may
/// reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The iSCSI name that the initiator logged in with.
    pub initiator: String,
    /// What it has proved by CHAP, if it had to.
    pub account: Option<Arc<Account>>,
    /// Where it came in.
    pub portal: LoginPortal,
}

impl Admission {
    /// The CHAP name that was authenticated.
    pub fn chap_name(&self) -> Option<&str> {
        let account = self.account.as_deref()?;
        Some(&account.initiator.name)
    }
}

/// A session by what makes it another one (RFC 7143 clause 6.3.5): a login with the
/// same reinstates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionKey<'a> {
    /// The initiator's iSCSI name (InitiatorName).
    pub initiator: &'a str,
    /// Initiator part of the session identifier.
    pub isid: [u8; 6],
    /// The target; `None` for a discovery session.
    pub target: Option<&'a str>,
    /// Tag of the portal group that it came in at.
    pub portal_group: u16,
}

/// What the front knows of targets and who may see them.
pub trait TargetDirectory {
    /// What `initiator` has to prove before it gets a session with the target called
    /// `target` through this portal, or a discovery session when that is `None`;
    /// nothing when its name is enough.
    ///
    /// # Errors
    /// Why the initiator gets no session there.
    fn admit(
        &self,
        initiator: &str,
        target: Option<&str>,
        portal: &LoginPortal,
    ) -> Result<Option<Arc<Account>>, Refusal>;

    /// Takes a permit for a session that has proved all it has to, right before it is
    /// told so.
    ///
    /// # Errors
    /// There are too many, or it is not admitted any more.
    fn take_permit(&self, _session: SessionKey<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// Targets that `initiator` may see through this portal, each with its portals
    /// and their portal group tags.
    fn visible(&self, initiator: &str, portal: &LoginPortal) -> Vec<VisibleTarget>;
}

/// One row of a SendTargets answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisibleTarget {
    /// The target's iSCSI name (TargetName).
    pub name: String,
    /// Where it is served, with target portal group tags.
    pub portals: Vec<(SocketAddr, u16)>,
}

/// Why a login is refused (RFC 7143 clause 11.13.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 02/03: no such target.
    NotFound,
    /// 02/02: the initiator has no mapping.
    Forbidden,
    /// 03/01: the target is shutting down or not up yet.
    Unavailable,
    /// 03/02: there are too many connections or sessions.
    OutOfResources,
}

/// Bounds on what a peer may make us do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest data segment accepted (declared as MaxRecvDataSegmentLength).
    pub max_recv_data_segment_bytes: u32,
    /// Largest text-key area accepted over one exchange.
    pub max_text_bytes: u32,
    /// Commands in flight per session (the CmdSN window).
    pub queue_depth: u32,
    /// Largest unsolicited burst that we offer (FirstBurstLength).
    pub first_burst_bytes: u32,
    /// Largest burst that we offer (MaxBurstLength).
    pub max_burst_bytes: u32,
    /// Largest data-out of one command.
    pub max_transfer_bytes: u32,
    /// Data-out that is asked for by R2T and has not come, of all commands together;
    /// one command alone may ask for more.
    pub solicited_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_recv_data_segment_bytes: 256 << 10,
            max_text_bytes: 64 << 10,
            queue_depth: 128,
            first_burst_bytes: 256 << 10,
            max_burst_bytes: 1 << 20,
            max_transfer_bytes: 16 << 20,
            solicited_bytes: 2 << 20,
        }
    }
}

/// Operational parameters as agreed (RFC 7143 clause 13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// CRC-32C behind every header.
    pub header_digest: bool,
    /// CRC-32C behind every data segment.
    pub data_digest: bool,
    /// Whether unsolicited data-out needs an R2T first.
    pub initial_r2t: bool,
    /// Whether data may ride on the command.
    pub immediate_data: bool,
    /// What the peer takes in one data segment.
    pub peer_max_recv_data_segment_bytes: u32,
    /// Largest burst, in or solicited out (MaxBurstLength).
    pub max_burst_bytes: u32,
    /// Largest burst of unsolicited data-out (FirstBurstLength).
    pub first_burst_bytes: u32,
    /// R2Ts outstanding per task.
    pub max_outstanding_r2t: u16,
}

impl Default for Parameters {
    /// What holds for a key that nobody brings up (clause 13).
    fn default() -> Self {
        Parameters {
            header_digest: false,
            data_digest: false,
            initial_r2t: true,
            immediate_data: true,
            peer_max_recv_data_segment_bytes: 8192,
            max_burst_bytes: 256 << 10,
            first_burst_bytes: 64 << 10,
            max_outstanding_r2t: 1,
        }
    }
}

/// What a login agreed on: all that the full-feature phase needs.
#[derive(Clone, Debug)]
pub struct Negotiated {
    /// The initiator, and how it came in: decides which targets the session may reach.
    pub admission: Admission,
    /// The initiator's alias, if it gave one.
    pub initiator_alias: Option<String>,
    /// The target, in lower case; `None` for a discovery session.
    pub target: Option<String>,
    /// Initiator part of the session identifier.
    pub isid: [u8; 6],
    /// Target part of the session identifier, ours.
    pub tsih: u16,
    /// Connection identifier, which the initiator chose.
    pub cid: u16,
    /// Operational parameters, as both sides agreed on them.
    pub parameters: Parameters,
    /// CmdSN that the next command carries.
    pub cmd_sn: u32,
    /// StatSN that our next response carries.
    pub stat_sn: u32,
}

impl Negotiated {
    /// The target; empty for a discovery session, which has none.
    pub fn target_name(&self) -> &str {
        self.target.as_deref().unwrap_or_default()
    }

    /// What makes the session another one.
    pub fn session_key(&self) -> SessionKey<'_> {
        SessionKey {
            initiator: &self.admission.initiator,
            isid: self.isid,
            target: self.target.as_deref(),
            portal_group: self.admission.portal.portal_group,
        }
    }
}

/// What came of feeding bytes to a login.
#[derive(Debug)]
pub enum LoginProgress {
    /// Send what is in `out`; more bytes are needed.
    More,
    /// Send what is in `out`; the connection is in full-feature phase. Bytes left
    /// in `input` belong to it.
    Done(Box<Negotiated>),
    /// Send what is in `out`, then close.
    Close {
        /// For the log.
        reason: String,
    },
}
