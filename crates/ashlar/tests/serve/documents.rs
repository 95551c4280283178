//! Every command and every site file of the README and of the guide, run in their order, page by page, on
//! the array that the page describes.
//!
//! A page has its own site file, or has that of `guide/first-array.md`. A file is called by the name of
//! its site. Lines below a command are what it
//! prints: `…` stands for any text, and in a line of its own for any lines. What needs another machine or a
//! minute's build is named in [`SKIPPED`]; everything else has to end well.

use crate::array::Serving;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Beginnings of commands that are not run, each with the reason.
const SKIPPED: [(&str, &str); 8] = [
    ("make ", "these are CI's own steps"),
    ("export PATH", "the test has the program in its path"),
    ("qemu-system", "it needs KVM and another machine's address"),
    ("ashlar rehearse", "`tests/rehearse.rs` runs it"),
    ("ashlar plan", "`tests/rehearse.rs` runs it"),
    ("ashlar load", "the tests of `load` run it"),
    ("systemctl ", "it changes the machine"),
    ("journalctl ", "it reads the machine's log"),
];

/// Commands that look at drives which nobody serves.
const OFFLINE: [&str; 2] = ["ashlar fsck", "ashlar pool salvage"];

/// The page whose site file all pages without one have.
const FIRST: &str = "docs/guide/first-array.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// The fenced blocks of a language; those of a list are indented.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let (mut blocks, mut lines) = (Vec::new(), text.lines());
    while let Some(line) = lines.next() {
        let Some(kind) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let inside = lines.by_ref().take_while(|line| line.trim() != "```");
        let inside = inside.map(|line| line.get(indent..).unwrap_or_default());
        let block: Vec<&str> = inside.collect();
        if kind == language {
            blocks.push(block.join("\n"));
        }
    }
    blocks
}

/// A command of users, and what the page says that it prints.
#[derive(Debug, Default, PartialEq)]
struct Step {
    command: String,
    printed: Vec<String>,
}

/// The commands of a page, in order; a `\` at the end goes on in the next line.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in blocks(text, "console") {
        let mut goes_on = false;
        for line in block.lines() {
            let command = line.strip_prefix("$ ");
            match (goes_on, command, steps.last_mut()) {
                (true, _, Some(last)) => {
                    last.command = format!("{}{line}", last.command.trim_end_matches('\\'));
                }
                (_, Some(command), _) => steps.push(Step {
                    command: command.to_owned(),
                    printed: Vec::new(),
                }),
                (_, None, Some(last)) if !line.starts_with("# ") => {
                    last.printed.push(line.to_owned())
                }
                _ => {}
            }
            goes_on = (goes_on || command.is_some()) && line.ends_with('\\');
        }
    }
    steps
}

/// Whether `found` is a line that the page shows as `shown`; widths of columns don't count.
fn is_line(shown: &str, found: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, found) = (words(shown), words(found));
    // The test has a port of its own.
    let shown = shown.replace("127.0.0.1:3260", "…");
    let Some((first, others)) = shown.split_once('…') else {
        return shown == found;
    };
    let (between, last) = others.rsplit_once('…').unwrap_or(("", others));
    let rest = found.strip_prefix(first.trim_end());
    let rest = rest.and_then(|rest| rest.strip_suffix(last.trim_start()));
    let mut parts = between.split('…').map(str::trim);
    rest.is_some_and(|rest| {
        let found = parts.try_fold(rest, |rest, part| {
            rest.find(part).map(|at| &rest[at + part.len()..])
        });
        found.is_some()
    })
}

/// Whether a command printed the lines that the page shows, and no others where it has no `…`.
fn is_printed(shown: &[String], found: &[&str]) -> bool {
    match shown {
        [] => found.is_empty(),
        [any, rest @ ..] if any.trim() == "…" => {
            (0..=found.len()).any(|skipped| is_printed(rest, &found[skipped..]))
        }
        [line, rest @ ..] => match found {
            [first, others @ ..] => is_line(line, first) && is_printed(rest, others),
            [] => false,
        },
    }
}

#[test]
fn output_is_compared_line_by_line() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let found = ["pool0  RAID 6   ok", "3 volumes", "done"];
    for (text, is_right) in [
        ("pool0 RAID 6 ok\n3 volumes\ndone", true),
        ("pool0 … ok\n…\ndone", true),
        ("…\ndone", true),
        ("pool0 …\n…", true),
        ("pool0 … bad\n…", false),
        ("pool0 RAID 6 ok\ndone", false),
        ("pool0 RAID 6 ok\n3 volumes", false),
        ("pool0 RAID\n…", false),
    ] {
        assert_eq!(is_printed(&shown(text), &found), is_right, "{text}");
    }
    let block = "```console\n$ ashlar a \\\n    b\nprinted\n# root\n$ ashlar c\n```\n";
    let found = steps(block);
    assert_eq!(found[0].command, "ashlar a     b");
    assert_eq!(found[0].printed, ["printed"]);
    assert_eq!((found.len(), found[1].printed.len()), (2, 0));
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

/// The name of the site that a whole file describes; nothing for a part of one.
fn site_name(block: &str) -> Option<&str> {
    let is_of_site = |line: &&str| line.starts_with("[site]") || line.starts_with("site = ");
    let mut lines = block.lines();
    let first = lines.by_ref().find(is_of_site)?;
    let mut all = std::iter::once(first).chain(lines);
    let line = all.find(|line| line.contains("name = \""))?;
    line.split("name = \"").nth(1)?.split('"').next()
}

/// A place to run a page in.
struct Lab {
    page: &'static str,
    dir: tempfile::TempDir,
    serving: Option<Serving>,
    /// The page's `umask`, if it has said one: each command has a shell of its own.
    umask: String,
}

impl Lab {
    fn new(page: &'static str) -> Lab {
        let lab = Lab {
            page,
            dir: tempfile::tempdir().unwrap(),
            serving: None,
            umask: String::new(),
        };
        for page in [FIRST, page] {
            for block in blocks(&read(page), "toml") {
                let Some(name) = site_name(&block) else {
                    continue;
                };
                let text = match name {
                    "lab" => smaller(&block.replace("127.0.0.1:3260", "127.0.0.1:0")),
                    _ => block.clone(),
                };
                lab.write(&format!("{name}.toml"), &text);
            }
        }
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

    fn write(&self, name: &str, text: &str) {
        let file = self.path(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn api(&self) -> String {
        format!("unix:{}", self.path("api.sock").display())
    }

    /// A command as the page has it, with the places that a test has.
    fn shell(&self, command: &str) -> Command {
        let images = self.path("images").display().to_string();
        let socket = self.path("api.sock").display().to_string();
        let mut command = smaller(command)
            .replace("/srv/images", &images)
            .replace("/run/ashlar/api.sock", &socket);
        if let Some(portal) = self
            .serving
            .as_ref()
            .map(|serving| serving.portal.to_string())
        {
            command = command.replace("127.0.0.1:3260", &portal);
        }
        let program = Path::new(env!("CARGO_BIN_EXE_ashlar"));
        let path = format!(
            "{}:{}",
            program.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let mut shell = Command::new("bash");
        let command = format!("{}{command}", self.umask);
        shell.args(["-c", &command]).current_dir(self.dir.path());
        shell.env("PATH", path).env("ASHLAR_API", self.api());
        shell.stdin(Stdio::null());
        shell
    }

    fn serve(&mut self, command: &str) {
        if let Some(serving) = self.serving.take() {
            assert!(serving.stop("TERM").success());
        }
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

    fn run(&mut self, step: &Step) {
        let command = step.command.as_str();
        if command.starts_with("umask ") {
            self.umask = format!("{command}; ");
        }
        if command.starts_with("ashlar serve ") {
            return self.serve(command);
        }
        let is_offline = OFFLINE.iter().any(|offline| command.starts_with(offline));
        let asks = command.contains("ashlar ") || command.contains("/run/ashlar/api.sock");
        let needs_array = asks && !command.contains("site check");
        match (is_offline, self.serving.is_some()) {
            (true, true) => {
                let serving = self.serving.take().unwrap();
                assert!(serving.stop("TERM").success());
            }
            (false, false) if needs_array && self.path("lab-data").exists() => {
                self.serve("ashlar serve --data lab-data");
            }
            (false, false) if needs_array => {
                self.serve("ashlar serve --site lab.toml --data lab-data");
            }
            _ => {}
        }
        self.settle();
        let (line, _) = command.split_once(" #").unwrap_or((command, ""));
        let mut output = self.shell(line).output().unwrap();
        // Somebody at a terminal is asked.
        if String::from_utf8_lossy(&output.stderr).contains("no terminal") {
            output = self
                .shell(&format!("{} --yes", line.trim_end()))
                .output()
                .unwrap();
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{}: {command}: {}\n{printed}{}",
            self.page,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let lines: Vec<&str> = printed.lines().collect();
        assert!(
            step.printed.is_empty() || is_printed(&step.printed, &lines),
            "{}: {command}: the page shows\n{}\nand the command prints\n{printed}",
            self.page,
            step.printed.join("\n")
        );
    }
}

/// Runs a page.
fn run(page: &'static str) {
    let mut lab = Lab::new(page);
    let is_skipped = |step: &&Step| {
        let mut all = SKIPPED.iter();
        !all.any(|(begins, _)| step.command.starts_with(begins))
    };
    for step in steps(&read(page)).iter().filter(is_skipped) {
        lab.run(step);
    }
}

/// Site files of a page, and parts of them, are good.
fn check_files(page: &'static str) {
    let lab = Lab::new(page);
    for (at, block) in blocks(&read(page), "toml").iter().enumerate() {
        let name = format!("{at}.toml");
        let whole = match site_name(block) {
            Some(_) => block.clone(),
            None => format!(
                "{}\n{block}",
                fs::read_to_string(lab.path("lab.toml")).unwrap()
            ),
        };
        lab.write(&name, &whole);
        let checked = lab
            .shell(&format!("ashlar site check {name}"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{page}: toml block {at}: {said}");
    }
}

macro_rules! pages {
    ($($name:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(
            #[test]
            fn $name() {
                run($page);
                check_files($page);
            }
        )*
    };
}

pages! {
    readme: "README.md",
    access: "docs/guide/access.md",
    failures: "docs/guide/failures.md",
    first_array: "docs/guide/first-array.md",
    growing: "docs/guide/growing.md",
    hosts: "docs/guide/hosts.md",
    images: "docs/guide/images.md",
    install: "docs/guide/install.md",
    limits: "docs/guide/limits.md",
    load_testing: "docs/guide/load-testing.md",
    monitoring: "docs/guide/monitoring.md",
    rehearsing: "docs/guide/rehearsing.md",
    snapshots: "docs/guide/snapshots.md",
    api: "docs/reference/api.md",
}

#[test]
fn every_page_of_the_guide_is_run() {
    let files = fs::read_dir(root().join("docs/guide")).unwrap();
    for file in files {
        let name = file.unwrap().file_name().into_string().unwrap();
        let page = format!("docs/guide/{name}");
        assert!(PAGES.contains(&page.as_str()), "{page}");
    }
}

#[test]
fn each_exception_is_on_a_page() {
    let all: Vec<Step> = PAGES.iter().flat_map(|page| steps(&read(page))).collect();
    for (begins, why) in SKIPPED {
        let is_said = all.iter().any(|step| step.command.starts_with(begins));
        assert!(is_said, "{begins} ({why})");
    }
}
