//! Every command of the README, run in its order on the array that it describes.
//!
//! What needs another machine, KVM or a minute's build is named in [`SKIPPED`]; everything else has
//! to end well.

use crate::array::Serving;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Beginnings of commands that are not run, each with the reason.
const SKIPPED: [(&str, &str); 6] = [
    ("make ", "these are CI's own steps"),
    ("export PATH", "the test has the program in its path"),
    ("qemu-system", "it needs KVM and another machine's address"),
    ("ashlar rehearse", "the tests of docs/REHEARSAL.md run it"),
    ("ashlar plan", "the tests of docs/PLANS.md run it"),
    ("ashlar load", "the tests of `load` run it"),
];

/// Commands that look at drives which nobody serves.
const OFFLINE: [&str; 2] = ["ashlar fsck", "ashlar pool salvage"];

fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    fs::read_to_string(path).unwrap()
}

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let parts = text.split(&fence).skip(1);
    parts
        .map(|rest| rest.split("\n```").next().unwrap_or_default().to_owned())
        .collect()
}

/// The commands of users, in order; a `\` at the end goes on in the next line.
fn commands(text: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for block in blocks(text, "console") {
        let mut goes_on = false;
        for line in block.lines() {
            let command = line.strip_prefix("$ ");
            if let (true, Some(last)) = (goes_on, commands.last_mut()) {
                *last = format!("{}{line}", last.trim_end_matches('\\'));
            } else if let Some(command) = command {
                commands.push(command.to_owned());
            }
            goes_on = (goes_on || command.is_some()) && line.ends_with('\\');
        }
    }
    commands
}

/// A quarter of each size: the README's drives take more room than a test should.
fn smaller(text: &str) -> String {
    let unit = |text: &str| {
        let units = [
            (" GiB", 1024, " MiB"),
            (" MiB", 1024, " KiB"),
            ("G ", 1024, "M "),
        ];
        units
            .into_iter()
            .find(|(unit, _, _)| text.starts_with(unit))
    };
    let (mut smaller, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        smaller.push_str(&rest[..at]);
        let number = &rest[at..];
        let end = number.find(|c: char| !c.is_ascii_digit());
        let (digits, after) = number.split_at(end.unwrap_or(number.len()));
        match (unit(after), digits.parse::<u64>()) {
            (Some((unit, times, other)), Ok(count)) => {
                smaller.push_str(&format!("{}{other}", count * times / 4));
                rest = &after[unit.len()..];
            }
            _ => {
                smaller.push_str(digits);
                rest = after;
            }
        }
    }
    smaller + rest
}

#[test]
fn sizes_are_a_quarter_and_all_else_is_as_it_is() {
    let text = "size = \"1 GiB\" }, d0.img 10.0.0.1:3260 --size 1G f0 --length \"64 MiB\"";
    let wanted = "size = \"256 MiB\" }, d0.img 10.0.0.1:3260 --size 256M f0 --length \"16384 KiB\"";
    assert_eq!(smaller(text), wanted);
}

/// A place to run them in.
struct Lab {
    dir: tempfile::TempDir,
    serving: Option<Serving>,
}

impl Lab {
    fn new() -> Lab {
        let lab = Lab {
            dir: tempfile::tempdir().unwrap(),
            serving: None,
        };
        let file = lab.path("lab.toml");
        let whole = blocks(&readme(), "toml").into_iter();
        let mut whole = whole.filter(|block| block.contains("name = \"lab\""));
        let text = whole.next().unwrap();
        let text = text.replace("127.0.0.1:3260", "127.0.0.1:0");
        fs::write(&file, smaller(&text)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(lab.path("images")).unwrap();
        let made = Command::new("qemu-img")
            .args(["create", "-q", "-f", "vhdx"])
            .arg(lab.path("images/web01.vhdx"))
            .arg("16M")
            .status();
        assert!(made.unwrap().success());
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn api(&self) -> String {
        format!("unix:{}", self.path("api.sock").display())
    }

    /// A command as the README has it, with the places that a test has.
    fn shell(&self, command: &str) -> Command {
        let images = self.path("images").display().to_string();
        let socket = self.path("api.sock").display().to_string();
        let command = smaller(command)
            .replace("/srv/images", &images)
            .replace("/run/ashlar/api.sock", &socket);
        let program = Path::new(env!("CARGO_BIN_EXE_ashlar"));
        let path = format!(
            "{}:{}",
            program.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let mut shell = Command::new("bash");
        shell.args(["-c", &command]).current_dir(self.dir.path());
        shell.env("PATH", path).env("ASHLAR_API", self.api());
        shell.stdin(Stdio::null());
        shell
    }

    fn serve(&mut self, command: &str) {
        let shell = self.shell(&format!("exec {command} --api {}", self.api()));
        self.serving = Some(Serving::start(shell, &self.path("log")));
    }

    /// Waits until no pool has anything under way: some commands are refused until then.
    fn settle(&self) {
        let Some(serving) = &self.serving else { return };
        let is_idle = |pool: &serde_json::Value| {
            let moves = |group: &serde_json::Value| group["zones_to_move"] != 0;
            pool["tasks"].as_array().unwrap().is_empty()
                && !pool["groups"].as_array().unwrap().iter().any(moves)
        };
        serving.wait(&["pool", "list"], |pools| {
            pools.as_array().unwrap().iter().all(is_idle)
        });
    }

    fn run(&mut self, command: &str) {
        let is_offline = OFFLINE.iter().any(|offline| command.starts_with(offline));
        match (is_offline, self.serving.is_some()) {
            (true, true) => {
                let serving = self.serving.take().unwrap();
                assert!(serving.stop("TERM").success());
            }
            (false, false) => self.serve("ashlar serve --data lab-data"),
            _ => {}
        }
        self.settle();
        let (line, comment) = command.split_once(" #").unwrap_or((command, ""));
        // Somebody at a terminal is asked.
        let asks = ["delete", "destroy", "drive remove"];
        let asks = asks.iter().any(|word| line.contains(word));
        let whole = match asks && !line.contains("--yes") {
            true => format!("{} --yes", line.trim_end()),
            false => line.to_owned(),
        };
        let output = self.shell(&whole).output().unwrap();
        assert!(
            output.status.success(),
            "{whole} ({comment}): {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn every_command_of_the_readme_runs_in_its_order() {
    let commands = commands(&readme());
    assert!(commands.len() > 30, "{commands:?}");
    let mut lab = Lab::new();
    for command in &commands {
        if SKIPPED
            .iter()
            .any(|(begins, _)| command.starts_with(begins))
        {
            continue;
        }
        if command == "ashlar site check lab.toml" {
            assert!(lab.shell(command).status().unwrap().success());
        } else if command.starts_with("ashlar serve ") {
            lab.serve(command);
        } else {
            lab.run(command);
        }
    }
}

#[test]
fn each_exception_is_in_the_readme() {
    let commands = commands(&readme());
    for (begins, _) in SKIPPED {
        // Not all are said there by now; those that are must not be run twice.
        let said = commands.iter().any(|command| command.starts_with(begins));
        assert!(
            said || ["ashlar plan", "ashlar load"].contains(&begins),
            "{begins}"
        );
    }
}
