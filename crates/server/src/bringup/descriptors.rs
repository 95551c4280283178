//! Whether this process may have as many files open as it will need.
//!
//! Invariant: drives and records come before sessions. Where the limit is too low for all
//! sessions that the site file allows, fewer are taken, and the log says how many: a drive or
//! a record that can't be opened would be a fault of the array.

use super::{BringUpError, BringUpErrorKind};
use crate::api::CONNECTIONS_MAX;
use crate::array;
use site::Site;
use std::path::Path;
use world::real::{Descriptors, raise_descriptors};

/// Of each shard: its ring, its event loop, what wakes them.
const EACH_SHARD: u64 = 8;

/// Everything else: the API and who asks it, records, logs, images and the programs that read
/// them, drives that are looked at before they are opened.
const OTHERS: u64 = CONNECTIONS_MAX as u64 + 64;

/// How many sessions there can be, of those that the site file allows.
///
/// # Errors
/// The limit is too low even without them, with the numbers.
pub(super) fn sessions(
    site: &Site,
    data: &Path,
    shards: u16,
    portals: usize,
) -> Result<u16, BringUpError> {
    let system = |context| BringUpError::new(BringUpErrorKind::System, context);
    let limits = raise_descriptors()
        .map_err(|error| system(format!("the limit of open files can't be raised: {error}")))?;
    let drives = site.drives.len() + array::added(data)?.len();
    let needed = Needed {
        drives: drives as u64,
        shards: u64::from(shards),
        portals: portals as u64,
        logins: u64::from(site.limits.logins),
    };
    let fitting = needed
        .sessions(limits, site.limits.sessions)
        .map_err(system)?;
    if fitting < site.limits.sessions {
        tracing::warn!(
            "of {} sessions (limits.sessions of the site file), {fitting} are taken at most: {}",
            site.limits.sessions,
            needed.told(limits, site.limits.sessions)
        );
    }
    Ok(fitting)
}

/// What files are needed for beside sessions.
#[derive(Clone, Copy, Debug)]
struct Needed {
    drives: u64,
    shards: u64,
    portals: u64,
    logins: u64,
}

impl Needed {
    fn without_sessions(&self) -> u64 {
        self.drives + self.shards * EACH_SHARD + self.portals + self.logins + OTHERS
    }

    fn told(&self, limits: Descriptors, sessions: u16) -> String {
        let needed = self.without_sessions() + u64::from(sessions);
        format!(
            "this process may have {} files open (the hard limit is {}), and needs {needed}: \
             {sessions} for sessions, {} for logins, {} for drives, {} for portals, {} for {} \
             shards, {OTHERS} for others; raise the hard limit (ulimit -Hn, LimitNOFILE=), or \
             lower [limits] in the site file",
            limits.soft,
            limits.hard,
            self.logins,
            self.drives,
            self.portals,
            self.shards * EACH_SHARD,
            self.shards,
        )
    }

    /// How many of `sessions` fit; at least one has to.
    fn sessions(&self, limits: Descriptors, sessions: u16) -> Result<u16, String> {
        let left = limits.soft.saturating_sub(self.without_sessions());
        match u16::try_from(left).unwrap_or(u16::MAX).min(sessions) {
            0 => Err(format!(
                "too few open files: {}",
                self.told(limits, sessions)
            )),
            fitting => Ok(fitting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_get_what_drives_and_records_leave() {
        let needed = Needed {
            drives: 10,
            shards: 2,
            portals: 1,
            logins: 64,
        };
        let of = |soft| needed.sessions(Descriptors { soft, hard: soft }, 1024);
        let others = 10 + 16 + 1 + 64 + OTHERS;
        assert_eq!(of(1 << 20), Ok(1024));
        assert_eq!(of(others + 1024), Ok(1024));
        assert_eq!(of(others + 1023), Ok(1023));
        assert_eq!(of(others + 1), Ok(1));
        let why = of(others).unwrap_err();
        for part in ["needs 1243", "10 for drives", "64 for logins", "16 for 2"] {
            assert!(why.contains(part), "{part}: {why}");
        }
    }
}
