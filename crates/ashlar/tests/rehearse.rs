//! `ashlar rehearse`, as users run it, and every command that README.md, docs/reference/rehearsal.md
//! and docs/guide/rehearsing.md show.

// Tests of the real world: processes, files.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use rehearse::report::schema::{Document, SCHEMA};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const REFERENCE: &str = "docs/reference/rehearsal.md";
const README: &str = "README.md";
const GUIDE: &str = "docs/guide/rehearsing.md";

/// What users read.
fn page(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name);
    std::fs::read_to_string(file).unwrap()
}

/// The code blocks of a kind in it.
fn blocks<'a>(manual: &'a str, kind: &str) -> Vec<&'a str> {
    let fence = format!("```{kind}\n");
    let blocks = manual.split(fence.as_str()).skip(1);
    blocks
        .map(|block| block.split_once("```").unwrap().0)
        .collect()
}

/// A directory with the manual's example, made short and small.
struct Shop(TempDir);

/// What is changed in the example: commands take seconds then, and do the same.
const SMALLER: [(&str, &str); 4] = [
    ("warmup = \"2 s\"", "warmup = \"100 ms\""),
    ("measure = \"10 s\"", "measure = \"1 s\""),
    ("at = \"8 s\"", "at = \"200 ms\""),
    (
        "[\"MBX01\", \"SQL01\", \"WEB01\", \"WEB02\"]",
        "[\"WEB01\"]",
    ),
];

impl Shop {
    fn new() -> Shop {
        Shop::of(REFERENCE)
    }

    /// With the example of this page.
    fn of(name: &str) -> Shop {
        Shop::with(blocks(&page(name), "toml")[0], &SMALLER)
    }

    /// With an example and what is changed in it.
    fn with(example: &str, changes: &[(&str, &str)]) -> Shop {
        let directory = tempfile::tempdir().unwrap();
        let mut file = example.to_owned();
        for (from, to) in changes {
            assert_eq!(file.matches(from).count(), 1, "{from}");
            file = file.replace(from, to);
        }
        std::fs::write(directory.path().join("shop.toml"), file).unwrap();
        Shop(directory)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Exit code, standard output and standard error.
    fn ashlar(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ashlar"));
        let output = command
            .args(arguments)
            .current_dir(self.0.path())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    fn rehearse(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        self.ashlar(&[&["rehearse", "shop.toml"], arguments].concat())
    }
}

/// Words of a command line; quotes hold words together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Runs every command of a page; how many there were.
fn run_all(shop: &Shop, name: &str) -> usize {
    run_text(shop, name, &page(name))
}

/// The same of a part of a page.
fn run_text(shop: &Shop, name: &str, text: &str) -> usize {
    let blocks = blocks(text, "console");
    let lines = blocks.iter().flat_map(|block| block.lines());
    let run = lines.map(|line| {
        let command = line.strip_prefix("$ ashlar ").expect("a command of ours");
        let words = words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (code, said, wrong) = shop.ashlar(&words);
        assert_eq!((code, wrong.as_str()), (Some(0), ""), "{name}: {line}");
        assert!(!said.is_empty(), "{name}: {line}");
    });
    run.count()
}

#[test]
fn every_command_of_the_guide_runs_as_written() {
    let shop = Shop::of(GUIDE);
    let run = run_all(&shop, GUIDE);
    assert!(run >= 10, "{run} commands");
    for page in ["shop.html", "load.html"] {
        assert!(shop.read(page).contains("class=\"site\""), "{page}");
    }
    let document: Document = serde_json::from_str(&shop.read("shop.json")).unwrap();
    assert_eq!(document.variants.len(), 4);
}

#[test]
fn the_rehearsal_of_the_readme_runs_as_written() {
    let readme = page(README);
    let (_, after) = readme.split_once("Save this as `shop.toml`").unwrap();
    let (part, _) = after.split_once("\n## ").unwrap();
    // It has neither an event nor a choice of VMs.
    let shop = Shop::with(blocks(part, "toml")[0], &SMALLER[..2]);
    assert_eq!(run_text(&shop, README, part), 1);
    assert!(shop.read("shop.html").contains("class=\"site\""));
    // There is no rehearsal elsewhere on the page.
    assert_eq!(readme.matches("\n$ ashlar rehearse").count(), 1);
    assert!(!readme.contains("\n$ ashlar plan"));
}

#[test]
fn every_command_of_the_manual_runs_as_written() {
    let shop = Shop::new();
    let run = run_all(&shop, REFERENCE);
    assert!(run >= 8, "{run} commands");
    for page in ["shop.html", "load.html"] {
        assert!(shop.read(page).contains("class=\"site\""), "{page}");
    }
    let document: Document = serde_json::from_str(&shop.read("shop.json")).unwrap();
    assert_eq!(document.variants.len(), 4);
    assert!(shop.read("shop.html").contains("Side by side"));
    assert!(shop.read("load.html").contains("<b>found</b>"));
    let page = shop.read("plan.html");
    assert!(page.contains("Mixes of drives") && page.contains("class=\"site\""));
    let document: Document = serde_json::from_str(&shop.read("plan.json")).unwrap();
    let sizing = document.sizing.unwrap();
    assert_eq!((sizing.pool.as_str(), sizing.candidates.len()), ("data", 4));
    let best = &sizing.candidates[0];
    assert!(best.rejected.is_none() && best.drives.is_some(), "{best:?}");
    let name = format!("{} × {}: ", best.drives.unwrap(), best.model);
    assert!(document.variants[0].name.starts_with(&name));
}

#[test]
fn reports_have_the_same_bytes_again_and_hold_every_variant() {
    let shop = Shop::new();
    let arguments = ["--compare", "--json", "a.json", "--html", "a.html"];
    let (code, table, wrong) = shop.rehearse(&arguments);
    assert_eq!((code, wrong.as_str()), (Some(0), ""));
    assert!(table.contains("RAID 6"), "tables as well as files: {table}");
    let (code, json, _) = shop.rehearse(&["--compare", "--json", "-", "--html", "b.html"]);
    assert_eq!(code, Some(0));
    assert!(json == shop.read("a.json"), "standard output has the same");
    assert!(shop.read("a.html") == shop.read("b.html"), "other bytes");
    let document: Document = serde_json::from_str(&json).unwrap();
    assert_eq!(document.schema, SCHEMA);
    let names: Vec<&str> = document.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names[..2], ["as it stands", "RAID 6"]);
    assert!(document.variants.iter().all(|v| v.seeds.len() == 2));
}

#[test]
fn a_search_has_its_curve_in_both_reports() {
    let shop = Shop::new();
    let arguments = ["--find-load", "20ms", "--json", "-", "--html", "a.html"];
    let (code, json, wrong) = shop.rehearse(&arguments);
    assert_eq!((code, wrong.as_str()), (Some(0), ""));
    let document: Document = serde_json::from_str(&json).unwrap();
    let search = document.variants[0].search.as_ref().unwrap();
    assert_eq!((search.capped.as_str(), search.cap_ms), ("mean", 20.0));
    let found = search.factor.unwrap();
    assert!(search.tried.iter().any(|tried| tried.factor == found));
    assert!(shop.read("a.html").contains("cap 20 ms"));
}

#[test]
fn what_can_not_be_is_refused_with_what_is_allowed() {
    let shop = Shop::new();
    for (arguments, told) in [
        (&["--variant", "RAID 7"][..], "\"RAID 6\""),
        (&["--set", "network.wan.mtu=9000"], "there is no \"wan\""),
        (&["--set", "network.san.mtu=9"], "576 to 9216"),
        (&["--set", "network"], "KEY=VALUE"),
        (&["--set", "drives.sas.model=tape"], "nl-sas-1000"),
        (&["--find-load", "soon"], "such as 20ms"),
        (&["--find-load", "20"], "such as 20ms or p95:20ms"),
        (&["--seeds", "0"], "1..=100"),
        (&["--compare", "--find-load", "20ms"], "cannot be used with"),
    ] {
        let (code, said, wrong) = shop.rehearse(arguments);
        assert_eq!((code, said.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(wrong.contains(told), "{arguments:?}: {wrong}");
    }
    let (code, _, wrong) = shop.ashlar(&["rehearse", "shed.toml"]);
    assert_eq!(code, Some(2));
    assert!(wrong.contains("shed.toml"), "{wrong}");
    std::fs::write(
        shop.path("bad.toml"),
        "[site]\nname = \"bad\"\nheight = 3\n",
    )
    .unwrap();
    let (code, _, wrong) = shop.ashlar(&["rehearse", "bad.toml"]);
    assert_eq!(code, Some(2));
    assert!(wrong.contains("bad.toml:3"), "{wrong}");
}

#[test]
fn a_report_that_can_not_be_written_is_told_before_anything_runs() {
    let shop = Shop::new();
    for option in ["--json", "--html"] {
        // Nobody would wait for this to run.
        let long = "run.measure=30 d";
        let (code, said, wrong) = shop.rehearse(&["--set", long, option, "no/such/file"]);
        assert_eq!((code, said.as_str()), (Some(1), ""), "{option}");
        assert!(wrong.contains("no/such/file"), "{wrong}");
    }
}

#[test]
fn a_plan_proposes_the_smallest_mix_and_says_what_was_rejected() {
    let shop = Shop::new();
    let plan = |arguments: &[&str]| shop.ashlar(&[&["plan", "shop.toml"], arguments].concat());
    let fast = ["--drive", "slc-200", "--drive", "nl-sas-1000"];
    let limit = [
        "--set",
        "run.limit=\"3 ms\"",
        "--set",
        "variant=[]",
        "--set",
        "vary=[]",
    ];
    let (code, said, wrong) = plan(&[&fast[..], &limit[..]].concat());
    assert_eq!((code, wrong.as_str()), (Some(0), ""), "{said}");
    let first = said.lines().next().unwrap();
    assert!(
        first.contains("the smallest mix") && first.contains("slc-200: "),
        "{said}"
    );
    let (_, larger) = said
        .split_once("Not sized, as they need more drives")
        .unwrap();
    assert!(larger.contains("nl-sas-1000"), "{said}");
    assert!(!said.contains("Rejected:"), "{said}");
    let (code, said, _) = plan(&[&fast[..], &limit[..], &["--every"]].concat());
    assert_eq!(code, Some(0), "{said}");
    let (_, rejected) = said.split_once("Rejected:").unwrap();
    assert!(rejected.contains("nl-sas-1000"), "{said}");
    assert!(!said.contains("Not sized"), "{said}");
    let (code, said, _) = plan(&[&["--drive", "nl-sas-1000"][..], &limit[..]].concat());
    assert_eq!(code, Some(3), "{said}");
    let (code, json, _) = plan(&[&["--drive", "nl-sas-1000", "--json", "-"], &limit[..]].concat());
    assert_eq!(code, Some(3), "{json}");
    let document: Document = serde_json::from_str(&json).unwrap();
    let candidates = document.sizing.unwrap().candidates;
    assert!(document.variants.is_empty() && candidates.len() == 4);
    assert!(candidates.iter().all(|one| one.rejected.is_some()));
    for (arguments, says) in [
        (["--drive", "tape"], "allowed: sas-15k-600"),
        (["--pool", "nowhere"], "there are: "),
        (["--set", "vm_group.office.roles=[\"WEB99\"]"], "\"WEB99\""),
        (["--html", "no/such/file"], "no/such/file"),
    ] {
        let (code, _, wrong) = plan(&arguments);
        assert!(matches!(code, Some(1 | 2)), "{arguments:?}");
        assert!(wrong.contains(says), "{wrong}");
    }
}

#[test]
fn a_mix_that_is_too_small_is_rejected_while_others_are_sized() {
    let shop = Shop::new();
    let settings = [
        "event=[]",
        "vm_group.office.scale=0.02",
        "vm_group.office.roles=[\"MBX01\"]",
        "vm_group.office.count=8",
        "host.esx.memory=\"1 TiB\"",
        "pool.data.page=\"16 MiB\"",
    ];
    let drives = ["slc-100", "nl-sas-1000"];
    let mut arguments = vec!["plan", "shop.toml", "--every", "--json", "-"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    arguments.extend(drives.iter().flat_map(|drive| ["--drive", drive]));
    let (code, json, wrong) = shop.ashlar(&arguments);
    assert_eq!((code, wrong.as_str()), (Some(0), ""), "{json}");
    let document: Document = serde_json::from_str(&json).unwrap();
    let mixes = document.sizing.unwrap().candidates;
    let (large, small): (Vec<_>, Vec<_>) = mixes.iter().partition(|mix| mix.model != "slc-100");
    assert_eq!((large.len(), small.len()), (4, 4));
    for mix in small {
        let why = mix.rejected.as_deref().unwrap();
        assert!(why.contains("not hold"), "{why}");
        assert!(mix.tried.is_empty(), "it was rehearsed: {mix:?}");
    }
    assert!(large.iter().all(|mix| !mix.tried.is_empty()));
}

#[test]
fn the_demo_that_is_served_is_rehearsed_and_what_is_assumed_is_named() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sites/demo.toml");
    let example = std::fs::read_to_string(demo).unwrap();
    let shop = Shop::with(&example, &[]);
    let short = ["--set", "run.warmup=100 ms", "--set", "run.measure=1 s"];
    let (code, said, wrong) = shop.rehearse(&short);
    assert_eq!((code, wrong.as_str()), (Some(0), ""));
    let (_, assumed) = said
        .split_once("\nAssumed, because the file does not say it\n")
        .unwrap();
    let keys: Vec<&str> = assumed
        .lines()
        .map(|line| line.split(':').next().unwrap().trim())
        .collect();
    assert_eq!(
        keys,
        [
            "network",
            "controller",
            "bus",
            "drive.model",
            "host",
            "vm.filled"
        ]
    );
    let (_, json, _) = shop.rehearse(&[&short[..], &["--json", "-"]].concat());
    let document: Document = serde_json::from_str(&json).unwrap();
    let of_json: Vec<&str> = document
        .assumed
        .iter()
        .map(|one| one.key.as_str())
        .collect();
    assert_eq!(of_json, keys);
    // What the file says is assumed no more.
    let said = "network.lan={ kind = \"ethernet\", speed = \"25 Gb/s\" }";
    let (_, json, _) = shop.rehearse(&[&short[..], &["--set", said, "--json", "-"]].concat());
    let document: Document = serde_json::from_str(&json).unwrap();
    assert!(
        document.assumed.iter().all(|one| one.key != "network"),
        "{json}"
    );
}
