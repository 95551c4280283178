//! One run of smartctl, in bounded time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

/// Longer than a disk takes to answer all commands, each with the kernel's retries.
pub(super) const RUN_MAX: Duration = Duration::from_secs(60);

/// No report is longer.
const REPORT_MAX: u64 = 1 << 20;

/// What smartctl printed, and its exit status; none where a signal ended it.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) printed: Vec<u8>,
    pub(super) status: Option<i32>,
}

/// The runs under way.
#[derive(Debug, Default)]
pub(super) struct Runs(Mutex<BTreeSet<PathBuf>>);

/// The run of a device: over when this goes.
struct Turn(Arc<Runs>, PathBuf);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.devices().remove(&self.1);
    }
}

impl Runs {
    fn devices(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        // A set is whole after each step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `command` says that asks this device.
    ///
    /// # Errors
    /// It can't be started, does not answer in time, or has not since before.
    pub(super) async fn run(
        self: &Arc<Self>,
        device: &Path,
        command: std::process::Command,
    ) -> Result<Answer, String> {
        self.run_within(device, command, RUN_MAX).await
    }

    async fn run_within(
        self: &Arc<Self>,
        device: &Path,
        command: std::process::Command,
        patience: Duration,
    ) -> Result<Answer, String> {
        if !self.devices().insert(device.to_owned()) {
            return Err("it has not answered since it was asked before".to_owned());
        }
        let turn = Turn(Arc::clone(self), device.to_owned());
        let mut command = Command::from(command);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let started = command.kill_on_drop(true).spawn();
        let mut child = started.map_err(|error| format!("can't start smartctl: {error}"))?;
        let stdout = child.stdout.take();
        let answering = async {
            let mut printed = Vec::new();
            if let Some(stdout) = stdout {
                stdout.take(REPORT_MAX).read_to_end(&mut printed).await?;
            }
            let status = child.wait().await?.code();
            Ok::<Answer, std::io::Error>(Answer { printed, status })
        };
        match timeout(patience, answering).await {
            Ok(answer) => answer.map_err(|error| format!("smartctl: {error}")),
            Err(_) => {
                // One that waits in the kernel ends when the drive lets it.
                let _ = child.start_kill();
                tokio::spawn(async move {
                    let _ = child.wait().await;
                    drop(turn);
                });
                Err(format!(
                    "it does not answer: it has not within {patience:?}"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> std::process::Command {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn what_is_printed_and_the_status_are_told() {
        let runs = Arc::new(Runs::default());
        let device = Path::new("/dev/a");
        let answer = runs.run(device, shell("echo said; exit 68")).await.unwrap();
        assert_eq!(
            (&answer.printed[..], answer.status),
            (&b"said\n"[..], Some(68))
        );
        let killed = runs.run(device, shell("kill -9 $$")).await.unwrap();
        assert_eq!(killed.status, None);
        let endless = runs.run(device, shell("yes")).await.unwrap();
        assert_eq!(endless.printed.len() as u64, REPORT_MAX);
        let absent = std::process::Command::new("/nowhere/smartctl");
        let why = runs.run(device, absent).await.unwrap_err();
        assert!(why.contains("can't start"), "{why}");
    }

    #[tokio::test]
    async fn a_run_that_hangs_is_left_behind_and_none_beside_it() {
        let runs = Arc::new(Runs::default());
        let (hung, other) = (Path::new("/dev/hung"), Path::new("/dev/other"));
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        // It waits for somebody to read, as a call waits for a drive.
        let waits = shell(&format!("trap '' TERM; echo > {}", pipe.display()));
        let why = runs.run_within(hung, waits, Duration::from_millis(1)).await;
        assert!(why.unwrap_err().contains("does not answer"));
        assert!(runs.run(other, shell("exit 0")).await.is_ok());
        // It is killed, and the device may be asked again.
        let again = async {
            while runs.devices().contains(hung) {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(60), again).await.unwrap();
        let turn = runs.devices().insert(hung.to_owned());
        assert!(turn);
        let why = runs.run(hung, shell("exit 0")).await.unwrap_err();
        assert!(why.contains("since it was asked before"), "{why}");
    }
}
