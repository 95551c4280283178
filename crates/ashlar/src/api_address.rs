//! Finds the address of an array's API: given by an option, or the default.

use crate::failure::Failure;
use site::ApiAddress;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The socket of an array that root runs, and of the example for systemd.
const OF_THE_MACHINE: &str = "/run/ashlar/api.sock";

/// What `--api` says, else the environment's `ASHLAR_API`.
///
/// # Errors
/// It is no place where the API can be.
pub fn said(option: Option<&str>) -> Result<Option<ApiAddress>, Failure> {
    let from_environment = std::env::var("ASHLAR_API").ok();
    let from_environment = from_environment.filter(|place| !place.is_empty());
    let parsed = option.or(from_environment.as_deref()).map(|text| {
        let rule = ApiAddress::RULE;
        let wrong = || Failure::Wrong(format!("--api: found {text:?}; allowed: {rule}"));
        ApiAddress::parse(text).ok_or_else(wrong)
    });
    parsed.transpose()
}

/// Where `serve` listens when nothing says where; `None` when this user has no usual place.
pub fn to_serve() -> Option<ApiAddress> {
    let of_service = || in_runtime_directory(std::env::var_os("RUNTIME_DIRECTORY")?);
    own_socket().or_else(of_service).map(ApiAddress::Unix)
}

/// The socket of a service of systemd that has a user of its own: in the first directory of
/// `RuntimeDirectory=`.
fn in_runtime_directory(directories: OsString) -> Option<PathBuf> {
    let first = std::env::split_paths(&directories).next()?;
    let path = first.join("api.sock");
    path.is_absolute().then_some(path)
}

/// The array that commands talk to when nothing says which: this user's, else the machine's.
pub fn to_ask() -> ApiAddress {
    let own = own_socket().filter(|path| path.exists());
    ApiAddress::Unix(own.unwrap_or_else(|| OF_THE_MACHINE.into()))
}

/// The usual place for a socket of this user.
fn own_socket() -> Option<PathBuf> {
    // A process without a user is not root.
    let is_root = fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0);
    if is_root {
        return Some(OF_THE_MACHINE.into());
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR")?;
    let path = Path::new(&runtime).join("ashlar/api.sock");
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_of_its_own_user_listens_in_its_runtime_directory() {
        let of = |directories: &str| in_runtime_directory(directories.into());
        assert_eq!(of("/run/ashlar"), Some("/run/ashlar/api.sock".into()));
        assert_eq!(of("/run/a:/run/b"), Some("/run/a/api.sock".into()));
        assert_eq!(of(""), None);
        assert_eq!(of("relative"), None);
    }
}
