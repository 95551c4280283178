//! qemu-io as a client that says which of its writes were acknowledged.

use crate::lines::Lines;
use crate::program;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

/// One request ends in milliseconds; only a hang reaches this.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run of one byte value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First byte.
    pub at: u64,
    /// How many.
    pub len_bytes: u64,
    /// The value of each.
    pub value: u8,
}

/// A qemu-io that takes one command at a time. Killed when dropped.
#[derive(Debug)]
pub struct QemuIo {
    child: Child,
    commands: ChildStdin,
    answers: Lines,
}

impl QemuIo {
    /// Opens `url` for reading and writing. It sends no flush by itself.
    pub fn open(url: &str) -> Self {
        // Without a terminal qemu-io's C library would hold its answers back.
        let mut child = Command::new("stdbuf")
            .arg("-oL")
            .arg(program::find("qemu-io"))
            .args(["-f", "raw", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("stdbuf and qemu-io start");
        let commands = child.stdin.take().expect("a pipe was asked for");
        let answers = Lines::follow(
            "qemu-io",
            child.stdout.take().expect("a pipe was asked for"),
        );
        QemuIo {
            child,
            commands,
            answers,
        }
    }

    /// Its process, for whoever has to end it from another thread.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Writes a run and waits; false when it ended in any way but well, or when
    /// qemu-io is gone.
    pub fn write(&mut self, run: Run) -> bool {
        let Run {
            at,
            len_bytes,
            value,
        } = run;
        let sent = writeln!(self.commands, "write -P {value} {at} {len_bytes}")
            .and_then(|()| self.commands.flush());
        sent.is_ok()
            && self
                .answers
                .find(PATIENCE, |line| {
                    line.contains("wrote ") || line.contains("failed")
                })
                .is_ok_and(|line| line.contains("wrote "))
    }
}

impl Drop for QemuIo {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the runs back and compares every byte.
///
/// # Panics
/// When one differs, with the one that does.
#[track_caller]
pub fn verify(url: &str, runs: &[Run]) {
    let mut arguments = vec!["-f".to_owned(), "raw".to_owned(), "-r".to_owned()];
    for Run {
        at,
        len_bytes,
        value,
    } in runs
    {
        arguments.push("-c".to_owned());
        arguments.push(format!("read -P {value} {at} {len_bytes}"));
    }
    arguments.push(url.to_owned());
    let ended = program::run("qemu-io", &arguments);
    // Not every version says so in its exit code.
    assert!(!ended.stdout.contains("failed"), "{}", ended.stdout);
    let read = ended.ok().matches("read ").count();
    assert_eq!(
        read,
        runs.len(),
        "qemu-io answered another number of reads than asked for"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_verified_and_a_difference_is_seen() {
        let home = tempfile::tempdir().unwrap();
        let disk = home.path().join("disk");
        std::fs::File::create(&disk)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        let url = disk.to_str().unwrap();
        let run = Run {
            at: 513,
            len_bytes: 1025,
            value: 7,
        };
        assert!(QemuIo::open(url).write(run));
        verify(
            url,
            &[
                run,
                Run {
                    at: 0,
                    len_bytes: 513,
                    value: 0,
                },
            ],
        );
        let other = Run { value: 8, ..run };
        assert!(std::panic::catch_unwind(|| verify(url, &[run, other])).is_err());
    }

    #[test]
    fn a_refused_write_is_not_acknowledged() {
        let home = tempfile::tempdir().unwrap();
        let disk = home.path().join("disk");
        std::fs::File::create(&disk)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        let mut qemu = QemuIo::open(disk.to_str().unwrap());
        assert!(!qemu.write(Run {
            at: 1 << 40,
            len_bytes: 512,
            value: 7
        }));
        assert!(qemu.write(Run {
            at: 0,
            len_bytes: 512,
            value: 7
        }));
    }
}
