//! Running a program from outside, with a deadline, and showing what it said
//! when it fails.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Longest that a client program may take, in seconds: far above what any needs,
/// so that only a hang reaches it.
const DEADLINE_S: &str = "180";

/// What a program said and how it ended.
#[derive(Debug)]
pub struct Ended {
    /// The command line, for messages.
    pub command: String,
    /// Whether it ended with exit code 0.
    pub success: bool,
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ended {
    /// The standard output of a program that must have succeeded.
    ///
    /// # Panics
    /// When it failed, with all it said.
    #[track_caller]
    pub fn ok(self) -> String {
        assert!(
            self.success,
            "`{}` ended with {:?}\nstdout: {}\nstderr: {}",
            self.command, self.code, self.stdout, self.stderr
        );
        self.stdout
    }
}

/// Runs `name` with `arguments` to its end, under coreutils' `timeout`.
///
/// # Panics
/// When the program is not there: the message names what installs it.
#[track_caller]
pub fn run<A: AsRef<OsStr>>(name: &str, arguments: &[A]) -> Ended {
    run_at(&find(name), arguments)
}

/// Runs the program at `path` as [`run`] does.
pub fn run_at<A: AsRef<OsStr>>(path: &Path, arguments: &[A]) -> Ended {
    let mut command = Command::new("timeout");
    command
        .args(["--signal=KILL", DEADLINE_S])
        .arg(path)
        .args(arguments);
    let shown: Vec<_> = arguments
        .iter()
        .map(|a| a.as_ref().to_string_lossy())
        .collect();
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("coreutils' timeout runs");
    ended(format!("{} {}", path.display(), shown.join(" ")), &output)
}

/// The program `name`, which the kernel kills when the thread that started it ends: a test that is
/// killed leaves nothing behind that works on.
///
/// # Panics
/// When it, or util-linux' `setpriv`, is not there.
#[track_caller]
pub fn bound(name: &str) -> Command {
    let mut command = Command::new(find("setpriv"));
    // It becomes the program, so the process is the program's.
    command.args(["--pdeathsig", "KILL"]).arg(find(name));
    command
}

fn ended(command: String, output: &Output) -> Ended {
    Ended {
        command,
        success: output.status.success(),
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Where a program is, looked for in PATH and in the system's sbin directories
/// (which a plain user's PATH lacks).
///
/// # Panics
/// When it is nowhere.
#[track_caller]
pub fn find(name: &str) -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin", "/sbin"].map(std::path::PathBuf::from);
    std::env::split_paths(&path)
        .chain(sbin)
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| panic!("the program `{name}` is not here; run: make setup"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_failing_program_is_reported_with_what_it_said() {
        let ended = run("sh", &["-c", "echo out; echo err >&2; exit 3"]);
        assert_eq!((ended.code, ended.success), (Some(3), false));
        let failure = std::panic::catch_unwind(|| ended.ok()).unwrap_err();
        let message = failure.downcast_ref::<String>().unwrap();
        assert!(
            message.contains("out") && message.contains("err"),
            "{message}"
        );
    }

    #[test]
    fn a_bound_program_ends_with_the_thread_that_started_it() {
        let start = || {
            let mut child = bound("sleep").arg("60").spawn().expect("it starts");
            // It is bound once it runs, and not before.
            let name = format!("/proc/{}/comm", child.id());
            while std::fs::read_to_string(&name).is_ok_and(|name| name.trim() != "sleep") {
                assert!(child.try_wait().expect("it is there").is_none(), "it ended");
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            child
        };
        let started = std::thread::spawn(start).join();
        let mut child = started.expect("the thread ends");
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(9), "{status}");
    }

    #[test]
    #[should_panic(expected = "make setup")]
    fn a_missing_program_fails_the_test() {
        run("no-such-program-here", &[] as &[&str]);
    }
}
