//! One boot of the guest under QEMU.

use super::{Image, Phase};
use crate::lines::Lines;
use crate::program;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

/// A boot under emulation takes some ten seconds on an idle machine; only a hang
/// reaches this.
const PATIENCE: Duration = Duration::from_secs(300);

/// A disk of a guest.
#[derive(Clone, Copy, Debug)]
pub struct Disk<'a> {
    /// A path, or a URL that QEMU's block drivers take (`iscsi://…`).
    pub file: &'a str,
    /// Whether the guest may only read it.
    pub read_only: bool,
}

/// A running guest; killed hard when dropped, as a power loss would.
#[derive(Debug)]
pub struct Guest {
    qemu: Child,
    orders: ChildStdin,
    console: Lines,
}

impl Guest {
    /// Boots `image` with this as its only disk, see [`Disk::file`].
    pub fn boot(image: &Image, file: &str, phase: Phase) -> Self {
        let disk = Disk {
            file,
            read_only: false,
        };
        Guest::boot_with(image, &[disk], phase)
    }

    /// Boots `image` with these disks: `/dev/vda` and so on.
    pub fn boot_with(image: &Image, disks: &[Disk<'_>], phase: Phase) -> Self {
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
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        for Disk { file, read_only } in disks {
            let access = if *read_only { "on" } else { "off" };
            command.arg("-drive").arg(format!(
                "file={file},format=raw,if=virtio,cache=none,discard=unmap,readonly={access}"
            ));
        }
        let mut qemu = command.spawn().expect("qemu-system-x86_64 starts");
        let orders = qemu.stdin.take().expect("a pipe was asked for");
        let console = Lines::follow(
            "the guest",
            qemu.stdout.take().expect("a pipe was asked for"),
        );
        let mut guest = Guest {
            qemu,
            orders,
            console,
        };
        if phase == Phase::Obey {
            guest.wait_for("OBEYS");
        }
        guest
    }

    /// Has the guest's shell do this, and waits until it has; see `slots.sh` for what
    /// there is beside busybox.
    ///
    /// # Panics
    /// When it fails; with the guest's console.
    #[track_caller]
    pub fn order(&mut self, line: &str) {
        writeln!(self.orders, "{line}").expect("the guest listens");
        self.wait_for("OBEYED");
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
        self.said("sum")
    }

    /// What the guest said after this word so far, as far as anybody waited; in order.
    pub fn said(&self, word: &str) -> Vec<String> {
        let begin = format!("guest: {word} ");
        let lines = self.console.seen().iter();
        lines
            .filter_map(|line| Some(line.split_once(&begin)?.1.to_owned()))
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
