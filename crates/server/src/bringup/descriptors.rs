//! Checks that this process may open as many files as it will need.
//!
//! Invariant: drives and records come before sessions. Where the limit is too low for all sessions
//! and logins that the settings allow, fewer are taken, and the log says how many: a drive or a
//! record that can't be opened would be a fault of the array.

use super::{BringUpError, BringUpErrorKind};
use crate::api::CONNECTIONS_MAX;
use crate::array;
use site::{Limits, Site};
use std::path::Path;
use world_real::{Descriptors, raise_descriptors};

/// Of each shard: its ring, its event loop, what wakes them.
const EACH_SHARD: u64 = 8;

/// Everything else: the API and who asks it, records, logs, images and the programs that read
/// them, drives that are looked at before they are opened.
const OTHERS: u64 = CONNECTIONS_MAX as u64 + 64;

/// How many sessions and logins there can be, of those that the settings allow.
///
/// # Errors
/// The limit is too low for one of each, with the numbers.
pub(super) fn fitted(
    site: &Site,
    data: &Path,
    shards: u16,
    portals: usize,
) -> Result<Limits, BringUpError> {
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
    let said = &site.limits;
    let (logins, sessions) = needed.fitting(limits, said.sessions).map_err(system)?;
    if (logins, sessions) != (said.logins, said.sessions) {
        tracing::warn!(
            "of {} sessions and {} logins (limits.sessions, limits.logins), {sessions} and {logins} are \
             taken at most: {}",
            said.sessions,
            said.logins,
            needed.told(limits, said.sessions)
        );
    }
    Ok(Limits {
        sessions,
        logins,
        logins_per_address: said.logins_per_address.min(logins),
        ..said.clone()
    })
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
             lower limits.sessions and limits.logins",
            limits.soft,
            limits.hard,
            self.logins,
            self.drives,
            self.portals,
            self.shards * EACH_SHARD,
            self.shards,
        )
    }

    /// How many logins and how many of `sessions` fit; at least one of each has to. Logins get half
    /// of what is left at most.
    fn fitting(&self, limits: Descriptors, sessions: u16) -> Result<(u16, u16), String> {
        let others = self.without_sessions() - self.logins;
        let left = limits.soft.saturating_sub(others);
        let logins = self.logins.min(left / 2);
        let sessions = u64::from(sessions).min(left - logins);
        match (u16::try_from(logins), u16::try_from(sessions)) {
            (Ok(logins @ 1..), Ok(sessions @ 1..)) => Ok((logins, sessions)),
            _ => Err(format!(
                "too few open files: {}",
                self.told(limits, u16::try_from(sessions).unwrap_or(u16::MAX))
            )),
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
        let of = |soft| needed.fitting(Descriptors { soft, hard: soft }, 1024);
        let others = 10 + 16 + 1 + OTHERS;
        assert_eq!(of(1 << 20), Ok((64, 1024)));
        assert_eq!(of(others + 64 + 1024), Ok((64, 1024)));
        assert_eq!(of(others + 64 + 1023), Ok((64, 1023)));
        assert_eq!(of(others + 64 + 1), Ok((32, 33)));
        assert_eq!(of(others + 2), Ok((1, 1)));
        let why = of(others + 1).unwrap_err();
        for part in ["10 for drives", "64 for logins", "16 for 2"] {
            assert!(why.contains(part), "{part}: {why}");
        }
    }
}
