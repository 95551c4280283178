//! Workloads of blocks by the names that plans use: profiles of `load`, and traces of real hosts
//! (`trace:FILE`, or `trace:FILE,FORMAT`), replayed at their own times.

use load::profile::Profile;
use load::trace::{self, BeyondEnd, Trace};
use site::plan::TRACE;

/// The workload of that name. A trace is read through for it.
///
/// # Errors
/// A sentence: what is allowed, or what is wrong with the trace.
pub fn find(name: &str) -> Result<Profile, String> {
    if let Some(file) = name.strip_prefix(TRACE) {
        let (path, format) = trace::file_and_format(file);
        let trace = Trace::survey(&path, format, BeyondEnd::Refuse);
        return trace.map(Trace::profile).map_err(|error| error.to_string());
    }
    Profile::named(name).ok_or_else(|| {
        let names = Profile::names().join(", ");
        format!("profile {name:?} does not exist; allowed: {names}, or {TRACE}FILE")
    })
}

/// The same, without a reason where there is none.
pub fn named(name: &str) -> Option<Profile> {
    find(name).ok()
}
