//! The array under test: a directory with a site file, and a process.

use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

/// A pool of one mirrored pair with a thin volume behind a target.
pub const SITE: &str = r#"[site]
name = "test"
[api]
listen = "127.0.0.1:0"
[[portal]]
address = "127.0.0.1:0"
[[drive]]
name = "d0"
file = "d0.img"
size = "64 MiB"
[[drive]]
name = "d1"
file = "d1.img"
size = "64 MiB"
[[pool]]
name = "p0"
level = "10"
drives = ["d0", "d1"]
[[volume]]
name = "v0"
pool = "p0"
size = "8 MiB"
[[export]]
target = "iqn.2026-11.dev.ashlar:a"
volumes = ["v0"]
initiators = "any"
"#;

/// A second pool, of one drive.
pub const SECOND_POOL: &str = r#"[[drive]]
name = "e0"
file = "e0.img"
size = "64 MiB"
[[pool]]
name = "p1"
level = "simple"
drives = ["e0"]
"#;

/// A volume of [`SECOND_POOL`], behind the target [`SECOND`].
pub const SECOND_VOLUME: &str = r#"[[volume]]
name = "v1"
pool = "p1"
size = "8 MiB"
[[export]]
target = "iqn.2026-11.dev.ashlar:b"
volumes = ["v1"]
initiators = "any"
"#;

pub const SECOND: &str = "iqn.2026-11.dev.ashlar:b";

/// [`SITE`] with two lanes and room for them, and [`SECOND_POOL`].
pub fn two_lanes_and_a_pool() -> String {
    let lanes = SITE
        .replace("level = \"10\"", "level = \"10\"\nlanes = 2")
        .replace("64 MiB", "160 MiB");
    format!("{lanes}{SECOND_POOL}")
}

/// Takes from others what they may do with a file.
pub fn make_private(file: &Path) {
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A directory with a site file and a data directory.
pub struct Home {
    dir: tempfile::TempDir,
}

/// A serving array; killed hard when dropped.
pub struct Serving {
    child: Child,
    pub api: String,
    pub portal: String,
}

/// The binary, to be given arguments.
pub fn ashlar() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ashlar"));
    command
        .env_remove("ASHLAR_API")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

impl Home {
    pub fn new(site: &str) -> Self {
        let home = Home {
            dir: tempfile::tempdir().unwrap(),
        };
        home.set_site(site);
        home
    }

    pub fn set_site(&self, site: &str) {
        fs::write(self.site(), site).unwrap();
        // It may have secrets.
        fs::set_permissions(self.site(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub fn site(&self) -> PathBuf {
        self.dir.path().join("site.toml")
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.data().join(name)
    }

    /// `ashlar serve` on this home.
    pub fn command(&self) -> Command {
        let mut command = ashlar();
        command
            .arg("serve")
            .arg("--site")
            .arg(self.site())
            .arg("--data")
            .arg(self.data());
        command
    }

    /// [`Home::command`], with its API elsewhere.
    pub fn command_at(&self, api: &str) -> Command {
        let mut command = self.command();
        command.args(["--api", api]);
        command
    }

    /// [`Home::serve`], with its API elsewhere.
    pub fn serve_at(&self, api: &str) -> Serving {
        Serving::start(self.command_at(api), &self.log_file())
    }

    /// Starts it and waits until it serves.
    pub fn serve(&self) -> Serving {
        Serving::start(self.command(), &self.log_file())
    }

    /// Starts it, expecting that it refuses; gives exit code and what it said.
    pub fn refused(&self) -> (i32, String) {
        let mut command = self.command();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        if !line.is_empty() {
            let _ = child.kill();
        }
        let output = child.wait_with_output().unwrap();
        assert!(line.is_empty(), "it isn't refused: {line}");
        said(output)
    }

    /// Where it logs to.
    pub fn log_file(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// What it logged while it served last.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap()
    }

    /// Whether it has logged a line of this level that has all these parts.
    pub fn has_logged(&self, level: &str, parts: &[&str]) -> bool {
        let log = self.log();
        let mut of_level = log.lines().filter(|line| line.contains(level));
        of_level.any(|line| parts.iter().all(|part| line.contains(part)))
    }

    /// Waits until it has logged this: lines come by a thread of their own.
    pub fn wait_log(&self, part: &str) {
        for _ in 0..100 {
            if self.log().contains(part) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{part:?} is not in the log:\n{}", self.log());
    }

    /// Everything in the data directory, names with sizes, but what changes whenever it
    /// serves.
    pub fn listing(&self) -> Vec<(String, u64)> {
        let entries = fs::read_dir(self.data()).into_iter().flatten();
        let mut all: Vec<(String, u64)> = entries
            .map(|entry| entry.unwrap())
            .map(|e| {
                (
                    e.file_name().into_string().unwrap(),
                    e.metadata().unwrap().len(),
                )
            })
            .filter(|(name, _)| {
                let written_beside = [
                    "ashlar.lock",
                    "ashlar-events.jsonl",
                    "ashlar-roster.json",
                    "ashlar-scrubs.json",
                    "ashlar-scrubs.new",
                ];
                !written_beside.contains(&&name[..])
            })
            .collect();
        all.sort();
        all
    }

    /// The records in the data directory, as text.
    pub fn records(&self) -> Vec<Option<String>> {
        let names = ["ashlar-data.json", "ashlar-configuration.json"];
        names
            .iter()
            .map(|name| fs::read_to_string(self.file(name)).ok())
            .collect()
    }
}

/// The command that adds a spare to pool `p0`.
pub fn add_spare<'a>(name: &'a str, file: &'a str) -> [&'a str; 7] {
    ["drive", "add-spare", name, "--pool", "p0", "--file", file]
}

/// Exit code and standard error.
pub fn said(output: Output) -> (i32, String) {
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8(output.stderr).unwrap(),
    )
}

impl Serving {
    /// Where the API is.
    pub fn api_address(&self) -> (&str, &str) {
        let address = self.api.trim_start_matches("http://");
        address.rsplit_once(':').unwrap()
    }

    /// Applies the site file of `home`.
    pub fn apply(&self, home: &Home) {
        let site = home.site();
        self.done(&["site", "apply", "--yes", site.to_str().unwrap()]);
    }

    /// Runs `command`, which is to serve, with its log in `log`.
    pub fn start(mut command: Command, log: &Path) -> Self {
        command
            .stdout(Stdio::piped())
            .stderr(File::create(log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        if !line.starts_with("serving ") {
            let _ = child.kill();
            let _ = child.wait();
            let mut said = Vec::new();
            // Some logs are no files, and have no end.
            let log = File::open(log).unwrap().take(1 << 20);
            let _ = { log }.read_to_end(&mut said);
            panic!(
                "it doesn't serve: {line:?}\n{}",
                String::from_utf8_lossy(&said)
            );
        }
        let word_after = |word: &str| {
            let rest = line.split_once(word).unwrap().1;
            rest.split([',', '\n']).next().unwrap().to_owned()
        };
        Serving {
            portal: word_after(" portal "),
            api: word_after(" API "),
            child,
        }
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Runs a command against it.
    pub fn run(&self, args: &[&str]) -> Output {
        ashlar()
            .args(args)
            .env("ASHLAR_API", &self.api)
            .output()
            .unwrap()
    }

    /// Runs a command that has to succeed and gives its JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        // An array that is not ok is shown, with a code of its own.
        let is_shown = args == ["status"] && output.status.code() == Some(7);
        assert!(
            output.status.success() || is_shown,
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The texts of its events, of before this start or since.
    pub fn events(&self, before_start: bool) -> Vec<String> {
        let all = self.json(&["events"]);
        let all = all.as_array().unwrap().iter();
        all.filter(|event| event["before_start"] == before_start)
            .map(|event| event["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The texts of its events of this kind since this start.
    pub fn events_of(&self, kind: &str) -> Vec<String> {
        let all = self.json(&["events"]);
        let all = all.as_array().unwrap().iter();
        all.filter(|event| event["before_start"] == false && event["kind"] == kind)
            .map(|event| event["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Runs a command that has to succeed.
    pub fn done(&self, args: &[&str]) {
        let output = self.run(args);
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.is_empty() || text.ends_with('\n'),
            "{args:?}: {text:?}"
        );
    }

    /// Runs a command that has to end well; what it says on standard error, such as warnings.
    pub fn warnings(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Runs a command that has to fail; gives exit code and what it said.
    pub fn refused(&self, args: &[&str]) -> (i32, String) {
        let output = self.run(args);
        assert!(!output.status.success(), "{args:?} succeeds");
        said(output)
    }

    /// Runs a command that has to fail; gives the kind of its error, and its message.
    pub fn refusal(&self, args: &[&str]) -> (String, String) {
        let (_, said) = self.refused(&[args, &["--json"]].concat());
        let error: Value =
            serde_json::from_str(&said).unwrap_or_else(|_| panic!("{args:?}: {said}"));
        let text = |key: &str| error[key].as_str().unwrap().to_owned();
        (text("kind"), text("message"))
    }

    /// Asks until the answer `is_wanted`, and gives that.
    pub fn wait(&self, args: &[&str], is_wanted: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..600 {
            let said = self.json(args);
            if is_wanted(&said) {
                return said;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{args:?} stays {:#}", self.json(args));
    }

    /// Waits until all drives are whole.
    pub fn wait_healthy(&self) {
        self.wait(&["status"], |status| {
            !["degraded", "stopped"].contains(&status["health"].as_str().unwrap())
        });
    }

    /// Adds a spare to pool `p0`.
    pub fn add_spare(&self, name: &str, file: &str) {
        self.done(&add_spare(name, file));
    }

    /// Sends a signal and gives how the process ended.
    pub fn stop(mut self, signal: &str) -> ExitStatus {
        let process = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", signal, &process])
                .status()
                .unwrap()
                .success()
        );
        self.child.wait().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
