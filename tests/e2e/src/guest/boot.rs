//! One boot of the guest under QEMU.

use super::{Cable, Image, Phase};
use crate::lines::Lines;
use crate::program::{self, Ended};
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

/// A boot under emulation takes some ten seconds on an idle machine, and minutes on one
/// that is busy; only a hang reaches this.
const PATIENCE: Duration = Duration::from_secs(900);

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
        let mut command = qemu(image, 256, &format!("ashlar.phase={}", phase.name()));
        for Disk { file, read_only } in disks {
            let access = if *read_only { "on" } else { "off" };
            command.arg("-drive").arg(format!(
                "file={file},format=raw,if=virtio,cache=none,discard=unmap,readonly={access}"
            ));
        }
        let mut guest = Guest::start(command);
        if phase == Phase::Obey {
            guest.wait_for("OBEYS");
        }
        guest
    }

    /// Boots a Linux host that logs in to the array by itself: `image` is
    /// [`Image::build_initiator`]'s. It takes orders, see `initiator.sh`.
    pub fn boot_initiator(image: &Image, name: &str, cables: &[&Cable]) -> Self {
        let addresses: Vec<String> = cables.iter().map(|cable| cable.guest()).collect();
        let words = format!(
            "ashlar.name={name} ashlar.addresses={}",
            addresses.join(",")
        );
        let mut command = qemu(image, 512, &words);
        for (n, cable) in cables.iter().enumerate() {
            let netdev = format!("tap,id=n{n},ifname={},script=no,downscript=no", cable.tap);
            let device = format!("virtio-net-pci,netdev=n{n},mac={}", cable.mac());
            command.args(["-netdev", &netdev, "-device", &device]);
        }
        let mut guest = Guest::start(command);
        guest.wait_for("OBEYS");
        guest
    }

    fn start(mut command: Command) -> Self {
        let mut qemu = command.spawn().expect("qemu-system-x86_64 starts");
        let orders = qemu.stdin.take().expect("a pipe was asked for");
        let console = Lines::follow(
            "the guest",
            qemu.stdout.take().expect("a pipe was asked for"),
        );
        Guest {
            qemu,
            orders,
            console,
        }
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

    /// Has an initiator's shell do this, and gives all it said (both streams) and how
    /// it ended.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> Ended {
        const MARK: &str = "guest: | ";
        let begin = self.console.seen().len();
        writeln!(self.orders, "?{line}").expect("the guest listens");
        self.wait_for("ANSWERED");
        let lines = self.console.seen()[begin..].iter();
        let mut said: Vec<&str> = lines
            .filter_map(|line| Some(line.split_once(MARK)?.1))
            .collect();
        let end = said.pop().and_then(|end| end.strip_prefix("= "));
        let code = end.and_then(|code| code.parse().ok());
        Ended {
            command: line.to_owned(),
            success: code == Some(0),
            code,
            stdout: said.join("\n"),
            stderr: String::new(),
        }
    }

    /// What an initiator's shell says when it does this, which has to succeed.
    ///
    /// # Panics
    /// When it fails; with all it said.
    #[track_caller]
    pub fn tell(&mut self, line: &str) -> String {
        self.ask(line).ok()
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

/// For the guest's kernel, on a machine that does not always let it run: its test of the
/// timer, early in the boot, fails there, and it may not come up; its watchdogs take that
/// for a hang, and say so in the midst of what the guest says.
const BUSY_HOST: &str = "no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1";

/// The guest runs nothing that would spy on its kernel, and what keeps such programs out takes
/// a third of the time that an emulated processor needs.
const FAST: &str = "mitigations=off";

/// QEMU with this much memory and these words for the guest's kernel, without devices
/// but a console.
fn qemu(image: &Image, memory_mib: u32, words: &str) -> Command {
    let mut command = program::bound("qemu-system-x86_64");
    command
        .args(["-accel", "tcg", "-nodefaults", "-no-reboot"])
        .args(["-m", &memory_mib.to_string()])
        .args(["-display", "none", "-serial", "stdio"])
        .arg("-kernel")
        .arg(&image.kernel)
        .arg("-initrd")
        .arg(&image.initramfs)
        .arg("-append")
        .arg(format!(
            "console=ttyS0 panic=-1 quiet {FAST} {BUSY_HOST} {words}"
        ))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to do.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}
