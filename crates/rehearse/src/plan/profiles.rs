//! Workloads of VM groups by the names that plans use: those that the plan describes itself, profiles
//! of `workload`, and traces of real hosts (`trace:FILE`, or `trace:FILE,FORMAT`), replayed at their
//! own times.

use super::described;
use site::plan::{Plan, TRACE};
use std::io;
use workload::profile::Profile;
use workload::trace::{self, BeyondEnd, Open, Trace, TraceFile};

/// The profile of a name that a VM group uses, or a sentence: what is allowed, or what is wrong with
/// a trace.
pub type Profiles<'a> = &'a (dyn Fn(&str) -> Result<Profile, String> + Sync);

/// The workload of that name. A trace is read through for it, as `open` opens files.
///
/// # Errors
/// As [`Profiles`] says.
pub fn find(name: &str, open: Open) -> Result<Profile, String> {
    if let Some(file) = name.strip_prefix(TRACE) {
        let (path, format) = trace::file_and_format(file);
        let trace = Trace::survey(TraceFile { path, open }, format, BeyondEnd::Refuse);
        return trace.map(Trace::profile).map_err(|error| error.to_string());
    }
    Profile::named(name).ok_or_else(|| {
        let names = Profile::names().join(", ");
        format!("profile {name:?} does not exist; allowed: {names}, or {TRACE}FILE")
    })
}

/// The workload that VM groups of `plan` mean by `name`: the plan's own, else one of `profiles`.
///
/// # Errors
/// As [`Profiles`] says.
pub fn of(plan: &Plan, name: &str, profiles: Profiles<'_>) -> Result<Profile, String> {
    match plan.profiles.iter().find(|own| own.name == name) {
        Some(own) => described::profile(own),
        None => profiles(name),
    }
}

/// The workload of that name, where there are no files: a trace is refused.
///
/// # Errors
/// As [`Profiles`] says.
pub fn shipped(name: &str) -> Result<Profile, String> {
    find(name, |_| Err(io::Error::from(io::ErrorKind::Unsupported)))
}
