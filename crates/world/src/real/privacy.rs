//! Files that this process makes are for its user only.

/// From now on nobody else can read or write what this process, and programs that it starts,
/// make: files have mode 0600, directories 0700.
pub fn make_files_private() {
    // SAFETY: umask(2) sets a number of the process, touches no memory and can't fail.
    unsafe { libc::umask(0o077) };
}
