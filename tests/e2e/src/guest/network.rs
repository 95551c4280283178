//! A network of the test's own, with cables that can be cut.
//!
//! The test runs again inside a network namespace (and, for a user who is not root, a
//! user namespace) of its own: the array, QEMU and every command live there, nothing of
//! the host's network is touched, and all of it is gone when the last process ends. A
//! cable is a tap device; cut, it is down: what is sent is lost without a word to
//! either end, as when a switch dies.

use crate::program;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

/// Set for the run inside.
const INSIDE: &str = "ASHLAR_E2E_OWN_NETWORK";

/// Runs `body` as test `name` (its path, as libtest shows it) in a network of its own.
///
/// # Panics
/// When `body` does, with the beginning of what it said of that; or when this machine
/// allows no namespaces.
pub fn in_own_network(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        program::run("ip", &["link", "set", "lo", "up"]).ok();
        return body();
    }
    let user = std::fs::metadata("/proc/self").expect("proc is mounted");
    let mut command = program::bound("unshare");
    command.args(["--net", "--fork", "--kill-child"]);
    if user.uid() != 0 {
        command.arg("--map-root-user");
    }
    let output = command
        .arg(std::env::current_exe().expect("the path of this test"))
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .output()
        .expect("unshare runs");
    let [said, complained] =
        [&output.stdout, &output.stderr].map(|stream| String::from_utf8_lossy(stream));
    // Marked, so that nobody takes the results of the run inside for another test's.
    for line in said.lines().chain(complained.lines()) {
        println!("inside: {line}");
    }
    assert!(
        output.status.success() && said.contains("test result: ok. 1 passed"),
        "{name} failed in a network of its own (which root may have, and others where \
         unprivileged user namespaces are allowed), {}:\n{}",
        output.status,
        beginning_of_failure(&complained)
    );
}

/// The first panic, or, if there is none, what was said first.
fn beginning_of_failure(complained: &str) -> String {
    let lines: Vec<&str> = complained.lines().collect();
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let beginning = lines.iter().skip(panic.unwrap_or(0)).take(4);
    beginning.copied().collect::<Vec<_>>().join("\n")
}

/// A cable between the array and a guest.
#[derive(Debug)]
pub struct Cable {
    pub(super) tap: String,
    subnet: u8,
    host: u8,
}

impl Cable {
    /// Lays one from the array's address `10.10.<subnet>.1` to `10.10.<subnet>.<host>`.
    /// Several may lead to the same address of the array.
    pub fn lay(subnet: u8, host: u8) -> Self {
        let tap = format!("tap{subnet}x{host}");
        let cable = Cable { tap, subnet, host };
        ip(&["tuntap", "add", "dev", &cable.tap, "mode", "tap"]);
        let address = format!("{}/32", cable.array());
        ip(&["addr", "replace", &address, "dev", "lo"]);
        cable.mend();
        cable
    }

    /// The array's address.
    pub fn array(&self) -> String {
        format!("10.10.{}.1", self.subnet)
    }

    /// The guest's address.
    pub fn guest(&self) -> String {
        format!("10.10.{}.{}", self.subnet, self.host)
    }

    pub(super) fn mac(&self) -> String {
        format!("52:54:00:10:{:02x}:{:02x}", self.subnet, self.host)
    }

    /// From now on nothing comes through.
    pub fn cut(&self) {
        ip(&["link", "set", &self.tap, "down"]);
    }

    /// Everything comes through (again).
    pub fn mend(&self) {
        ip(&["link", "set", &self.tap, "up"]);
        // Routes went when it was cut.
        let (guest, array) = (format!("{}/32", self.guest()), self.array());
        ip(&["route", "replace", &guest, "dev", &self.tap, "src", &array]);
    }
}

#[track_caller]
fn ip(arguments: &[&str]) {
    program::run("ip", arguments).ok();
}
