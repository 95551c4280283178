//! Workloads of VM groups by the names that plans use: profiles of `workload`, and traces of real
//! hosts (`trace:FILE`, or `trace:FILE,FORMAT`), replayed at their own times.

use site::plan::TRACE;
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

/// The workload of that name, where there are no files: a trace is refused.
///
/// # Errors
/// As [`Profiles`] says.
pub fn shipped(name: &str) -> Result<Profile, String> {
    find(name, |_| Err(io::Error::from(io::ErrorKind::Unsupported)))
}
