//! The `ashlar serve` under test: built, started over a data directory of its
//! own, killed or stopped, and started again over the same data.

use crate::guest::target_directory;
use crate::lines::Lines;
use crate::program;
use crate::program::Ended;
use serde_json::Value;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant, SystemTime};

/// Longest that a start or a stop may take; only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(120);

/// The target that every volume of [`SITE`] is exported by.
pub const TARGET: &str = "iqn.2026-11.dev.ashlar:e2e";

/// Sizes of the LUNs of [`SITE`], in order.
pub const LUN_BYTES: [u64; 3] = [64 << 20, 64 << 20, 128 << 20];

/// RAID 10 over four file drives; LUNs 0 and 2 are thin, LUN 1 is thick.
const SITE: &str = r#"
[site]
name = "e2e"
[api]
listen = "127.0.0.1:0"
[[portal]]
address = "127.0.0.1:0"
[[drive]]
name = "d0"
file = "d0.img"
size = "256 MiB"
[[drive]]
name = "d1"
file = "d1.img"
size = "256 MiB"
[[drive]]
name = "d2"
file = "d2.img"
size = "256 MiB"
[[drive]]
name = "d3"
file = "d3.img"
size = "256 MiB"
[[pool]]
name = "pool0"
level = "10"
drives = ["d0", "d1", "d2", "d3"]
[[volume]]
name = "thin"
pool = "pool0"
size = "64 MiB"
provisioning = "thin"
[[volume]]
name = "thick"
pool = "pool0"
size = "64 MiB"
provisioning = "thick"
[[volume]]
name = "guest"
pool = "pool0"
size = "128 MiB"
provisioning = "thin"
[[export]]
target = "iqn.2026-11.dev.ashlar:e2e"
volumes = ["thin", "thick", "guest"]
initiators = "any"
"#;

/// A running array. Killed hard when dropped; its data goes with it.
#[derive(Debug)]
pub struct Array {
    home: tempfile::TempDir,
    running: Running,
}

#[derive(Debug)]
struct Running {
    child: Child,
    portal: SocketAddr,
    api: String,
    log: Lines,
}

impl Array {
    /// Brings up [`SITE`] in a new directory.
    pub fn start() -> Self {
        Array::start_with(SITE)
    }

    /// Brings up a site in a new directory.
    pub fn start_with(site: &str) -> Self {
        Array::start_over(site, |_| ())
    }

    /// Brings up a site in a new directory, over what `prepare` puts into its data
    /// directory.
    pub fn start_over(site: &str, prepare: impl FnOnce(&Path)) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let file = home.path().join("site.toml");
        std::fs::write(&file, site).expect("write the site file");
        // It may have secrets.
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&file, private).expect("keep the site file private");
        let data = home.path().join("data");
        std::fs::create_dir(&data).expect("make the data directory");
        prepare(&data);
        let running = Running::start(home.path());
        Array { home, running }
    }

    /// Has it be as its site file says: where its drives come from another array, nobody can log
    /// in before.
    pub fn apply_site(&self) {
        let file = self.home.path().join("site.toml");
        let file = file.to_str().expect("a path that is text");
        self.command(&["site", "apply", "--yes", file]).ok();
    }

    /// Stops it and starts it again where it may have so much address space.
    pub fn start_within(&mut self, address_kib: u64) {
        self.stop();
        let mut command = Command::new("sh");
        let script = format!("ulimit -v {address_kib}; exec \"$0\" \"$@\"");
        command.args(["-c", &script]).arg(binary());
        self.running = Running::follow(Running::spawn_by(command, self.home.path()));
    }

    /// Waits until its process has ended by itself, and gives how.
    ///
    /// # Panics
    /// When it does not.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        // Its output ends when it does.
        let ended = self.running.log.find(PATIENCE, |_| false);
        assert_eq!(ended, Err(RecvTimeoutError::Disconnected), "it goes on");
        self.running.child.wait().expect("the server ends")
    }

    /// Begins an `ashlar` command; what it says is nobody's.
    pub fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(binary());
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("ashlar starts")
    }

    /// Kills it with SIGKILL, as a crash would.
    pub fn kill(&mut self) {
        self.running.kill();
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.running.child.id()
    }

    /// Stops it with SIGTERM and gives how it ended.
    pub fn stop(&mut self) -> ExitStatus {
        program::run("kill", &["-TERM", &self.running.child.id().to_string()]).ok();
        self.wait_for_end()
    }

    /// Starts it again over the same data, after [`Array::kill`] or
    /// [`Array::stop`]. It listens on another port than before.
    pub fn start_again(&mut self) {
        self.running = Running::start(self.home.path());
    }

    /// Starts it again and kills it while it comes up: `moments` after it has begun to
    /// write to its drives, or when it serves if that is sooner.
    pub fn start_and_kill(&mut self, moments: u64) {
        let mut child = Running::spawn(self.home.path());
        let stdout = child.stdout.take().expect("a pipe was asked for");
        let mut log = Lines::follow("ashlar serve", stdout);
        let before = self.last_write();
        let deadline = Instant::now() + PATIENCE;
        let mut moments_left = moments;
        // A moment is a look at the drives: some microseconds, and no clock.
        while moments_left > 0 && log.find(Duration::ZERO, |_| true).is_err() {
            assert!(Instant::now() < deadline, "it doesn't come up");
            moments_left -= u64::from(self.last_write() != before);
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }

    /// When a drive file was written last.
    fn last_write(&self) -> Option<SystemTime> {
        let files = std::fs::read_dir(self.file("")).expect("the data directory");
        let drives = files
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "img"));
        drives
            .filter_map(|drive| drive.metadata().ok()?.modified().ok())
            .max()
    }

    /// A file of its data directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path().join("data").join(name)
    }

    /// Where it serves targets.
    pub fn portal(&self) -> SocketAddr {
        self.running.portal
    }

    /// Runs an `ashlar` command against it.
    pub fn command(&self, arguments: &[&str]) -> Ended {
        let whole = [&["--api", &self.running.api], arguments].concat();
        program::run_at(binary(), &whole)
    }

    /// What a command says with `--json`.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.command(&[arguments, &["--json"]].concat());
        // An array that is not ok is shown, with a code of its own.
        let said = match arguments == ["status"] && ended.code == Some(7) {
            true => ended.stdout,
            false => ended.ok(),
        };
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    }

    /// Asks again and again until the answer `is_wanted`, and gives that.
    ///
    /// # Panics
    /// When it never is.
    #[track_caller]
    pub fn wait_for(&self, arguments: &[&str], is_wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = self.json(arguments);
            if is_wanted(&said) {
                return said;
            }
            if Instant::now() >= deadline {
                let pool = self.json(&["pool", "show", "p"]);
                let (drives, events) = (self.json(&["drive", "list"]), self.told());
                panic!("{arguments:?} stays {said}\n{pool:#}\n{drives:#}\n{events:#?}");
            }
        }
    }

    /// Waits until all its drives are whole.
    #[track_caller]
    pub fn wait_healthy(&self) {
        self.wait_for(&["status"], |status| {
            let health = status["health"].as_str().unwrap_or_default();
            ["ok", "attention", "full"].contains(&health)
        });
    }

    /// Waits until an event that says this is on record, and there after a kill.
    #[track_caller]
    pub fn wait_recorded(&self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        let record = self.file("ashlar-events.jsonl");
        loop {
            let there = std::fs::read_to_string(&record).unwrap_or_default();
            if there.contains(text) {
                return;
            }
            assert!(Instant::now() < deadline, "{text:?} is not in {there}");
        }
    }

    /// Has pool `p` scrubbed, waits for the end, and gives what it says of itself then.
    #[track_caller]
    pub fn scrub(&self) -> String {
        let scrubs = |pool: &Value| pool["scrubs"].as_u64().unwrap_or(0);
        let before = scrubs(&self.json(&["pool", "show", "p"]));
        self.command(&["pool", "scrub", "p"]).ok();
        self.wait_for(&["pool", "show", "p"], |pool| scrubs(pool) > before);
        self.events("scrub").pop().unwrap_or_default()
    }

    /// The texts of its events, but those of single blocks.
    fn told(&self) -> Vec<String> {
        let events = self.json(&["events"]);
        let all = events.as_array().into_iter().flatten();
        all.filter(|event| event["kind"] != "block_mended")
            .filter_map(|event| event["text"].as_str().map(str::to_owned))
            .collect()
    }

    /// The texts of its events of this kind, since it was started.
    pub fn events(&self, kind: &str) -> Vec<String> {
        self.events_of(kind, false)
    }

    /// The texts of its events of this kind, of before it was started.
    pub fn earlier_events(&self, kind: &str) -> Vec<String> {
        self.events_of(kind, true)
    }

    fn events_of(&self, kind: &str, before_start: bool) -> Vec<String> {
        let events = self.json(&["events"]);
        let of_kind = events.as_array().into_iter().flatten();
        of_kind
            .filter(|event| event["kind"] == kind && event["before_start"] == before_start)
            .filter_map(|event| event["text"].as_str().map(str::to_owned))
            .collect()
    }

    /// What `ashlar fsck --deep` says of its drives, with exit code; it must not run.
    pub fn fsck(&self) -> (Option<i32>, Value) {
        let (site, data) = (self.home.path().join("site.toml"), self.file(""));
        let (site, data) = (site.display().to_string(), data.display().to_string());
        let arguments = ["fsck", "--site", &site, "--data", &data, "--deep", "--json"];
        let ended = program::run_at(binary(), &arguments);
        let said = serde_json::from_str(&ended.stdout);
        let said = said.unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        (ended.code, said)
    }

    /// The portal's `iscsi://` URL.
    pub fn portal_url(&self) -> String {
        format!("iscsi://{}", self.running.portal)
    }

    /// A LUN's URL, in the form of libiscsi and QEMU.
    pub fn lun_url(&self, lun: usize) -> String {
        format!("{}/{TARGET}/{lun}", self.portal_url())
    }
}

impl Running {
    fn spawn(home: &Path) -> Child {
        Running::spawn_by(Command::new(binary()), home)
    }

    fn spawn_by(mut command: Command, home: &Path) -> Child {
        command
            .arg("serve")
            .arg("--site")
            .arg(home.join("site.toml"))
            .arg("--data")
            .arg(home.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("ashlar starts")
    }

    fn start(home: &Path) -> Self {
        Running::follow(Running::spawn(home))
    }

    fn follow(mut child: Child) -> Self {
        let stdout = child.stdout.take().expect("a pipe was asked for");
        let mut log = Lines::follow("ashlar serve", stdout);
        let ready = log.wait_for("serving", "error:", PATIENCE);
        let portal =
            portal_in(&ready).unwrap_or_else(|| panic!("the line names no portal: {ready}"));
        let api = ready.split_once("API ").map_or("", |(_, rest)| rest);
        let api = api.split([',', ' ']).next().unwrap_or("").to_owned();
        Running {
            child,
            portal,
            api,
            log,
        }
    }

    fn kill(&mut self) {
        // It may be gone already; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The first word that is a plain address: the API's has `http://` before it.
fn portal_in(line: &str) -> Option<SocketAddr> {
    line.split(|c: char| c.is_whitespace() || ",;()".contains(c))
        .map(|word| word.strip_prefix("iscsi://").unwrap_or(word))
        .find_map(|word| word.parse().ok())
}

/// The program that `ASHLAR_BIN` names; else the `ashlar` of the profile that this
/// test was built in, built if it isn't fresh (a test of another package gets no
/// path from Cargo).
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("ASHLAR_BIN") {
            return path.into();
        }
        let target = target_directory();
        let profile = if cfg!(debug_assertions) {
            "dev"
        } else {
            "release"
        };
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "ashlar",
                "--profile",
                profile,
            ])
            .arg("--manifest-path")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
            .arg("--target-dir")
            .arg(&target)
            .status()
            .expect("cargo runs");
        assert!(built.success(), "ashlar does not build");
        let directory = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        };
        target.join(directory).join("ashlar")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_portal_is_found_in_the_ready_line() {
        let portal = portal_in("serving demo: API http://127.0.0.1:80/, portals 127.0.0.1:3260");
        assert_eq!(portal, Some("127.0.0.1:3260".parse().unwrap()));
        assert_eq!(
            portal_in("serving iscsi://[::1]:9").map(|a| a.port()),
            Some(9)
        );
        assert_eq!(portal_in("serving nothing"), None);
    }
}
