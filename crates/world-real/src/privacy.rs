//! Keeps the files and the memory of this process from other users.

/// From now on nobody else can read or write what this process, and programs that it starts,
/// make: files have mode 0600, directories 0700.
pub fn make_files_private() {
    // SAFETY: umask(2) sets a number of the process, touches no memory and can't fail.
    unsafe { libc::umask(0o077) };
}

/// From now on only root can look into the memory of this process, or trace it, and no core dump
/// is written of it: what hosts write and secrets are there. Programs that it starts are as others.
pub fn make_memory_private() {
    // SAFETY: prctl(2) with these arguments touches no memory, and can't fail.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
}
