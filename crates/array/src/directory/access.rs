//! Rules that say which initiators may reach a target, and through which portals.
//!
//! An initiator is admitted by its own name or by its host's, with the CHAP secret that either has
//! to prove.

use iscsi::chap::Account;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

/// Initiators that may log in to a target by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initiators {
    /// Every initiator, whatever its name.
    Any,
    /// Those with these iSCSI names.
    Named(BTreeSet<String>),
}

impl Initiators {
    pub(super) fn admit(&self, initiator: &str) -> bool {
        match self {
            Initiators::Any => true,
            Initiators::Named(names) => is_among(names, initiator),
        }
    }
}

/// Who may log in to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Initiators that may log in by their own names.
    pub initiators: Initiators,
    /// Names of hosts whose initiators may.
    pub hosts: BTreeSet<String>,
    /// Groups of hosts, by name.
    pub host_groups: BTreeSet<String>,
    /// What everybody has to prove who has nothing of their own to prove.
    pub account: Option<Arc<Account>>,
    /// Described addresses of the portals through which it is seen; all when `None`.
    pub portals: Option<BTreeSet<SocketAddr>>,
}

impl Default for Access {
    /// Nobody.
    fn default() -> Self {
        Access {
            initiators: Initiators::Named(BTreeSet::new()),
            hosts: BTreeSet::new(),
            host_groups: BTreeSet::new(),
            account: None,
            portals: None,
        }
    }
}

impl Access {
    /// Anybody, through every portal.
    pub fn open() -> Self {
        Access {
            initiators: Initiators::Any,
            ..Access::default()
        }
    }

    /// Whether nobody at all may log in: neither initiators nor hosts are named.
    pub fn is_closed(&self) -> bool {
        let by_name = match &self.initiators {
            Initiators::Any => true,
            Initiators::Named(names) => !names.is_empty(),
        };
        !by_name && self.hosts.is_empty() && self.host_groups.is_empty()
    }
}

/// A host: the names that its initiators have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmittedHost {
    /// iSCSI names of its initiators, compared without case.
    pub initiators: BTreeSet<String>,
    /// What they have to prove wherever the host is named.
    pub account: Option<Arc<Account>>,
}

impl AdmittedHost {
    pub(super) fn is_called(&self, initiator: &str) -> bool {
        is_among(&self.initiators, initiator)
    }
}

/// iSCSI names compare without case (RFC 7143 clause 4.2.7.1).
fn is_among(names: &BTreeSet<String>, initiator: &str) -> bool {
    names
        .iter()
        .any(|name| name.eq_ignore_ascii_case(initiator))
}

/// Where targets are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portal {
    /// The address that it is described by; `None` for one that is there instead of all
    /// that are described.
    pub described: Option<SocketAddr>,
    /// The address of its socket, with the port that the system chose if it was asked to.
    pub address: SocketAddr,
    /// Target portal group tag.
    pub group: u16,
}

impl From<SocketAddr> for Portal {
    /// At the address that it is described by, in the first portal group.
    fn from(address: SocketAddr) -> Self {
        Portal {
            described: Some(address),
            address,
            group: super::PORTAL_GROUP,
        }
    }
}

impl From<&site::Portal> for Portal {
    /// At the address that settings have, in the group that they say.
    fn from(portal: &site::Portal) -> Self {
        Portal {
            group: portal.group,
            ..Portal::from(portal.address)
        }
    }
}

impl Portal {
    /// Whether a connection to `local` came in here.
    pub fn is_at(&self, local: SocketAddr) -> bool {
        let (own, came) = (self.address.ip(), local.ip().to_canonical());
        let is_any = own.is_unspecified() && (own.is_ipv6() || came.is_ipv4());
        let same_ip = own == local.ip() || own == came || is_any;
        same_ip && self.address.port() == local.port()
    }
}
