//! Sizes the memory that all connections may hold together.
//!
//! Invariants:
//! - Half of it has seats for all sessions. Where the settings allow more sessions than that, fewer
//!   are taken, and the log says how many.
//! - No setting keeps the array from starting: a machine may have less memory than it had.

use crate::machine_memory;
use ::array::memory::{BUDGET_BYTES_MIN, seats};
use site::{CONNECTION_MEMORY_BYTES_MIN, Limits, human};

/// The part of the machine's memory that connections get when the site file says nothing.
const PART: u64 = 4;

/// `limits` with the budget in bytes, and no more sessions than fit it.
pub(super) fn fitted(limits: Limits) -> (Limits, u64) {
    let there_is = machine_memory::memory_bytes();
    let bytes = budget(limits.memory_bytes, there_is);
    let of = match (limits.memory_bytes, there_is) {
        (Some(said), _) if said == bytes => "limits.memory of the settings".to_owned(),
        (said, Some(all)) => {
            if let Some(said) = said {
                // What the array kept on a larger machine is no reason not to serve.
                tracing::error!(
                    "limits.memory is {}, and this machine has {} for the array: it counts as not \
                     said; `ashlar settings set limits.memory=` changes it",
                    human(said),
                    human(all)
                );
            }
            format!("a quarter of {}", human(all))
        }
        (_, None) => "this system does not say how much there is".to_owned(),
    };
    tracing::info!(
        "connections may hold {} of memory together: {of}",
        human(bytes)
    );
    let fitting = u16::try_from(seats(bytes)).unwrap_or(u16::MAX);
    if fitting < limits.sessions {
        tracing::warn!(
            "of {} sessions (limits.sessions), {fitting} are taken at most: more do not fit {} of \
             memory (limits.memory)",
            limits.sessions,
            human(bytes)
        );
    }
    let sessions = limits.sessions.min(fitting);
    (Limits { sessions, ..limits }, bytes)
}

// What the site file may say is enough.
const _: () = assert!(CONNECTION_MEMORY_BYTES_MIN >= BUDGET_BYTES_MIN);

/// The budget, by what the settings say and what there is.
fn budget(said: Option<u64>, there_is: Option<u64>) -> u64 {
    match (said, there_is) {
        (Some(said), None) => said,
        (Some(said), Some(all)) if said <= all => said,
        (_, all) => (all.unwrap_or(0) / PART).max(CONNECTION_MEMORY_BYTES_MIN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_quarter_unless_the_site_file_says_otherwise() {
        assert_eq!(budget(None, Some(16 << 30)), 4 << 30);
        assert_eq!(budget(None, Some(100 << 20)), CONNECTION_MEMORY_BYTES_MIN);
        assert_eq!(budget(None, None), CONNECTION_MEMORY_BYTES_MIN);
        assert_eq!(budget(Some(8 << 30), Some(16 << 30)), 8 << 30);
        assert_eq!(budget(Some(8 << 30), None), 8 << 30);
        // Kept on a larger machine.
        assert_eq!(budget(Some(17 << 30), Some(16 << 30)), 4 << 30);
    }

    #[test]
    fn sessions_that_do_not_fit_are_not_taken() {
        let limits = |memory_bytes| Limits {
            memory_bytes: Some(memory_bytes),
            ..Limits::default()
        };
        let sessions = |memory| fitted(limits(memory)).0.sessions;
        assert_eq!(sessions(CONNECTION_MEMORY_BYTES_MIN), 42);
        assert_eq!(sessions(512 << 20), 170);
    }
}
