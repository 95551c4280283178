//! What this process takes of the machine: time, processor time and memory. Linux only.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real time

use std::fs;
use std::time::{Duration, Instant};

/// The machine's clock.
pub fn now() -> Instant {
    Instant::now()
}

/// Time that a processor spent on this thread. Other programs do not count.
///
/// # Errors
/// The kernel counts no such time.
pub fn processor_time() -> Result<Duration, String> {
    let file = "/proc/thread-self/schedstat";
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let first = text
        .split_whitespace()
        .next()
        .and_then(|ns| ns.parse().ok());
    first
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("{file} says no processor time: {text}"))
}

/// A field of `/proc/self/status`, in MiB: `VmRSS:` is what is resident now, `VmHWM:` the most so far.
///
/// # Errors
/// There is no such field.
pub fn memory_mib(field: &str) -> Result<u64, String> {
    let file = "/proc/self/status";
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kib: Option<u64> = line
        .and_then(|line| line.split_whitespace().next())
        .and_then(|kib| kib.parse().ok());
    kib.map(|kib| kib >> 10)
        .ok_or_else(|| format!("{file} has no {field}"))
}
