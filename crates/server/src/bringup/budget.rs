//! How much memory all connections may hold together.
//!
//! Invariant: half of it has seats for all sessions. Where the site file allows more sessions
//! than that, fewer are taken, and the log says how many.

use super::{BringUpError, BringUpErrorKind};
use crate::memory::{BUDGET_BYTES_MIN, machine, seats};
use site::{CONNECTION_MEMORY_BYTES_MIN, Limits, human};

/// The part of the machine's memory that connections get when the site file says nothing.
const PART: u64 = 4;

/// `limits` with the budget in bytes, and no more sessions than fit it.
///
/// # Errors
/// The machine has not so much memory.
pub(super) fn fitted(limits: Limits) -> Result<(Limits, u64), BringUpError> {
    let there_is = machine::memory_bytes();
    let bytes = budget(limits.memory_bytes, there_is)
        .map_err(|context| BringUpError::new(BringUpErrorKind::System, context))?;
    let of = match (limits.memory_bytes, there_is) {
        (None, Some(all)) => format!("a quarter of {}", human(all)),
        (None, None) => "this system does not say how much there is".to_owned(),
        (Some(_), _) => "limits.memory of the site file".to_owned(),
    };
    tracing::info!(
        "connections may hold {} of memory together: {of}",
        human(bytes)
    );
    let fitting = u16::try_from(seats(bytes)).unwrap_or(u16::MAX);
    if fitting < limits.sessions {
        tracing::warn!(
            "of {} sessions (limits.sessions of the site file), {fitting} are taken at most: more \
             do not fit {} of memory (limits.memory)",
            limits.sessions,
            human(bytes)
        );
    }
    let sessions = limits.sessions.min(fitting);
    Ok((Limits { sessions, ..limits }, bytes))
}

// What the site file may say is enough.
const _: () = assert!(CONNECTION_MEMORY_BYTES_MIN >= BUDGET_BYTES_MIN);

/// The budget, by what the site file says and what there is.
fn budget(said: Option<u64>, there_is: Option<u64>) -> Result<u64, String> {
    match (said, there_is) {
        (Some(said), Some(all)) if said > all => Err(format!(
            "limits.memory of the site file is {}, and this machine has {} for the array: say \
             less, or leave it out for a quarter",
            human(said),
            human(all)
        )),
        (Some(said), _) => Ok(said),
        (None, all) => Ok((all.unwrap_or(0) / PART).max(CONNECTION_MEMORY_BYTES_MIN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_quarter_unless_the_site_file_says_otherwise() {
        assert_eq!(budget(None, Some(16 << 30)), Ok(4 << 30));
        assert_eq!(
            budget(None, Some(100 << 20)),
            Ok(CONNECTION_MEMORY_BYTES_MIN)
        );
        assert_eq!(budget(None, None), Ok(CONNECTION_MEMORY_BYTES_MIN));
        assert_eq!(budget(Some(8 << 30), Some(16 << 30)), Ok(8 << 30));
        assert_eq!(budget(Some(8 << 30), None), Ok(8 << 30));
        let why = budget(Some(17 << 30), Some(16 << 30)).unwrap_err();
        assert!(
            why.contains("is 17 GiB") && why.contains("has 16 GiB"),
            "{why}"
        );
    }

    #[test]
    fn sessions_that_do_not_fit_are_not_taken() {
        let limits = |memory_bytes| Limits {
            memory_bytes: Some(memory_bytes),
            ..Limits::default()
        };
        let sessions = |memory| fitted(limits(memory)).unwrap().0.sessions;
        assert_eq!(sessions(CONNECTION_MEMORY_BYTES_MIN), 42);
        assert_eq!(sessions(512 << 20), 170);
    }
}
