//! Ends programs that the server has started when the server ends, however it ends.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the kernel kill the program that `command` starts when the thread that starts it
/// ends, and so when this process does. To be started from a thread that stays.
pub fn ends_with_us(command: &mut Command) {
    let us = std::process::id();
    let bind = move || {
        // SAFETY: prctl with these arguments touches no memory, and getppid never fails.
        let parent = unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::getppid()
        };
        // We may have ended before the kernel was asked.
        match u32::try_from(parent) == Ok(us) {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    };
    // SAFETY: between fork and exec it calls only what is safe there (signal-safety(7)),
    // and allocates nothing.
    unsafe { command.pre_exec(bind) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let started = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            ends_with_us(command.arg("60"));
            command.spawn().unwrap()
        });
        let mut child = started.join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }
}
