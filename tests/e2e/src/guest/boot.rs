//! One boot of the guest under QEMU.

use super::{Image, Phase};
use crate::lines::Lines;
use crate::program;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A boot under emulation takes some ten seconds on an idle machine; only a hang
/// reaches this.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running guest; killed hard when dropped, as a power loss would.
#[derive(Debug)]
pub struct Guest {
    qemu: Child,
    console: Lines,
}

impl Guest {
    /// Boots `image` with `disk` as its only disk: a path, or a URL that QEMU's
    /// block drivers take (`iscsi://…`).
    pub fn boot(image: &Image, disk: &str, phase: Phase) -> Self {
        let mut command = Command::new(program::find("qemu-system-x86_64"));
        command
            .args(["-accel", "tcg", "-m", "256", "-nodefaults", "-no-reboot"])
            .args(["-display", "none", "-serial", "stdio"])
            .arg("-kernel")
            .arg(&image.kernel)
            .arg("-initrd")
            .arg(&image.initramfs)
            .arg("-append")
            .arg(format!(
                "console=ttyS0 panic=-1 quiet ashlar.phase={}",
                phase.name()
            ))
            .arg("-drive")
            .arg(format!(
                "file={disk},format=raw,if=virtio,cache=none,discard=unmap"
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut qemu = command.spawn().expect("qemu-system-x86_64 starts");
        let console = Lines::follow(
            "the guest",
            qemu.stdout.take().expect("a pipe was asked for"),
        );
        Guest { qemu, console }
    }

    /// Waits until the guest says `word`.
    ///
    /// # Panics
    /// When it reports a failure, ends or hangs; with its console.
    #[track_caller]
    pub fn wait_for(&mut self, word: &str) {
        self.console
            .wait_for(&format!("guest: {word}"), "guest: FAILED", PATIENCE);
    }

    /// The checksum lines that the guest printed, in order.
    pub fn checksums(&self) -> Vec<String> {
        self.console
            .seen()
            .iter()
            .filter_map(|line| {
                line.split_once("guest: sum ")
                    .map(|(_, sum)| sum.to_owned())
            })
            .collect()
    }

    /// Kills QEMU hard. What the guest had not synced may be lost.
    pub fn kill(mut self) {
        self.qemu.kill().expect("kill QEMU");
        self.qemu.wait().expect("QEMU ends");
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to do.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}
