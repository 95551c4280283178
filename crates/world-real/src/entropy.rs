//! The one seed of a real world, from the kernel.

use super::setup::StartError;
use std::io;

/// 64 bits of entropy.
///
/// # Errors
/// When the kernel has none to give.
pub(super) fn seed() -> Result<u64, StartError> {
    let mut bytes = [0u8; 8];
    loop {
        // SAFETY: `bytes` is valid for writes of its length during the call.
        let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        // Up to 256 bytes come whole or not at all (getrandom(2)).
        if usize::try_from(got) == Ok(bytes.len()) {
            return Ok(u64::from_ne_bytes(bytes));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(StartError::entropy(&error));
        }
    }
}
