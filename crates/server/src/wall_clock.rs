//! The time of day, for records and for people.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970; a clock that is before that says 0.
pub(crate) fn now_unix_s() -> u64 {
    now_unix_us() / 1_000_000
}

/// Microseconds since 1970; the same.
pub(crate) fn now_unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
