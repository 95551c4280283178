//! Programs of others that the server starts: QEMU's, and smartctl.
//!
//! Invariants:
//! - They get nothing of our surroundings, and reach only what they are given
//!   ([`world_real::confine`]). Where the kernel can't keep them so, they are not started.
//! - None of them outlives the server, however that ends.

use std::io;
use std::process::{Command, Stdio};
use world_real::Reach;

/// Where programs for root are, which a user's PATH may lack.
const OF_ROOT: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Why a program is not started.
#[derive(Debug)]
pub(crate) enum NotStarted {
    /// It is not installed.
    Absent,
    /// The kernel can't keep it to what it is given.
    Unconfined(io::Error),
}

/// The program of this name, to be started from a thread that stays. What it prints is told.
///
/// # Errors
/// It is not installed, or can't be confined.
pub(crate) fn confined(name: &str, reach: &Reach) -> Result<Command, NotStarted> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(OF_ROOT.map(Into::into));
    let mut places = directories.map(|directory| directory.join(name));
    let found = places.find(|place| place.is_absolute() && place.is_file());
    let mut command = Command::new(found.ok_or(NotStarted::Absent)?);
    command.env_clear().env("LC_ALL", "C").current_dir("/");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    world_real::confine(&mut command, reach).map_err(NotStarted::Unconfined)?;
    // Last: a change of privileges would undo it.
    world_real::ends_with_us(&mut command);
    Ok(command)
}
