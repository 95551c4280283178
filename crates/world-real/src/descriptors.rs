//! Raises and tells the number of files that this process may have open.

use std::io;

/// The limits of this process, in file descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// How many it may have by now.
    pub soft: u64,
    /// How many it could have at most.
    pub hard: u64,
}

/// Raises the soft limit of open files to the hard one, and gives both.
///
/// # Errors
/// The kernel does not say, or does not let it.
pub fn raise_descriptors() -> io::Result<Descriptors> {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limits` has room for the answer.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limits.rlim_cur < limits.rlim_max {
        limits.rlim_cur = limits.rlim_max;
        // SAFETY: the kernel only reads `limits`.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(Descriptors {
        soft: limits.rlim_cur,
        hard: limits.rlim_max,
    })
}
