//! Every check finds its fault, and nothing in a plan that is good.

mod cases;

use cases::{CASES, Case, GOOD};
use rehearse::advice::{self, Finding};
use site::plan::Plan;
use workload::profile::{Compute, DiskProfile, Limits, Mix, Pacing, Profile, Stream, VmProfile};

/// An application: data under small random I/O, and a log.
fn app(data: Mix, pacing: Pacing, data_gigabytes: u64) -> Profile {
    let log = Pacing::Open { per_second: 40.0 };
    Profile {
        name: "app".into(),
        vms: vec![VmProfile {
            name: "APP01".into(),
            role: "application".into(),
            compute: Compute {
                vcpus: 4,
                memory_bytes: 8 << 30,
                ..Compute::UNTOLD
            },
            disks: vec![
                DiskProfile::gigabytes(data_gigabytes),
                DiskProfile::gigabytes(20),
            ],
            streams: vec![
                Stream::alone(data, pacing, &[1, 0]).named("data"),
                Stream::alone(Mix::new(8192, 0, 0), log, &[0, 1]).named("log"),
            ],
        }],
        limits: Limits::default(),
    }
}

fn profiles(name: &str) -> Result<Profile, String> {
    let open = Pacing::Open { per_second: 200.0 };
    let usual = Mix::new(8192, 100, 70);
    Ok(match name {
        "app" => app(usual, open, 100),
        "deep" => app(usual, Pacing::Closed { outstanding: 200 }, 100),
        "writes" => app(Mix::new(8192, 100, 40), open, 100),
        "large" => app(usual, open, 2000),
        "tempdb" => {
            let mut profile = app(usual, open, 100);
            profile.vms[0].streams[0].name = "tempdb".into();
            profile
        }
        "scans" => {
            let mut profile = app(usual, open, 100);
            let scan = Pacing::Open { per_second: 5.0 };
            let scan = Stream::alone(Mix::new(262_144, 0, 100), scan, &[1, 0]).named("scan");
            profile.vms[0].streams.push(scan);
            profile
        }
        _ => return Err(format!("no profile {name}")),
    })
}

fn plan(text: &str) -> Plan {
    let described = site::plan::parse("t.toml", text, &[]);
    described.unwrap_or_else(|error| panic!("{error}")).base
}

fn findings(text: &str) -> Vec<Finding> {
    let plan = plan(text);
    let fits: Vec<String> = rehearse::plan::fit::fit(&plan, &profiles)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(fits.is_empty(), "{fits:?}");
    advice::advise(&plan, &profiles)
}

fn edited(case: &Case) -> String {
    let mut text = GOOD.to_owned();
    for (from, to) in case.edits {
        assert_eq!(text.matches(from).count(), 1, "{}: {from:?}", case.check);
        text = text.replace(from, to);
    }
    text
}

#[test]
fn the_good_plan_is_good() {
    let said: Vec<String> = findings(GOOD)
        .iter()
        .map(|finding| format!("{}: {}", finding.check.name, finding.what))
        .collect();
    assert_eq!(said, [""; 0]);
}

#[test]
fn every_check_finds_what_it_is_for_and_says_where() {
    for case in CASES {
        let text = edited(case);
        let found: Vec<Finding> = findings(&text)
            .into_iter()
            .filter(|finding| finding.check.name == case.check)
            .collect();
        let Some(first) = found.first() else {
            panic!("{} finds nothing", case.check)
        };
        let at = text
            .find(case.about)
            .unwrap_or_else(|| panic!("{}: {}", case.check, case.about));
        let line = text[..at].matches('\n').count() + 1;
        assert_eq!(
            (first.what.as_str(), first.line),
            (case.what, line),
            "{}",
            case.check
        );
    }
}

#[test]
fn every_check_has_a_case() {
    let checks: Vec<&str> = advice::checks().iter().map(|check| check.name).collect();
    let cases: Vec<&str> = CASES.iter().map(|case| case.check).collect();
    assert_eq!(cases, checks);
}

#[test]
fn checks_are_told_in_full() {
    let checks = advice::checks();
    assert!(checks.len() >= 30);
    for (place, check) in checks.iter().enumerate() {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(check.name.chars().all(is_name), "{}", check.name);
        assert!(
            checks[..place].iter().all(|other| other.name != check.name),
            "{} twice",
            check.name
        );
        for text in [check.why, check.mend, check.source] {
            assert!(
                text.len() > 10 && !text.ends_with('.') && !text.contains(['|', '\n']),
                "{}: {text}",
                check.name
            );
        }
    }
}

#[test]
fn the_worst_comes_first() {
    let text = GOOD
        .replace("partner = \"a\"\n", "")
        .replace("seeds = 3", "seeds = 1");
    let text = text.replace("adapter = \"virtio\"", "adapter = \"lsi-sas\"");
    let found = findings(&text);
    let severities: Vec<&str> = found
        .iter()
        .map(|finding| finding.check.severity.as_str())
        .collect();
    assert_eq!(severities, ["error", "warning", "warning", "info"]);
}

/// Hosts and links by the thousand, each as large as a plan may say, overflow nothing.
#[test]
fn a_plan_beyond_measure_is_looked_through() {
    let ports = "{ network = \"san-a\", count = 64 }, ".repeat(100);
    let mut text = GOOD.replace("speed = \"10 Gb/s\"", "speed = \"10000 Gb/s\"");
    for number in 0..3 {
        text += &format!(
            "[[host]]\nname = \"h{number}-\"\ncount = 10000\ncores = 1024\nclock_ghz = 10\n\
             memory = \"1024 TiB\"\nports = [{ports}]\n"
        );
    }
    text = text.replace(
        "hosts = [\"kvm\"]",
        "hosts = [\"h0-\", \"h1-\", \"h2-\"]\nmemory = \"1024 TiB\"",
    );
    let found = findings(&text);
    let fan_in = found
        .iter()
        .find(|finding| finding.check.name == "port-fan-in");
    assert!(fan_in.is_some_and(|finding| finding.what.contains("have 48000000 times")));
}

#[test]
fn the_list_in_the_documentation_is_the_list() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/site-checks.md"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let said: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    let table = advice::table();
    let right: Vec<&str> = table.lines().collect();
    let advised = "print the list with: cargo run -p ashlar-rehearse --example site_checks";
    for (said, right) in said.iter().zip(&right) {
        assert_eq!(said, right, "{advised}");
    }
    assert_eq!(said.len(), right.len(), "{advised}");
}

/// Drives that have names of their own are of their own pool, whatever they are called.
#[test]
fn a_named_drive_without_redundancy_is_found() {
    let drive = "[[drive]]\nname = \"bare-0\"\nfile = \"d.img\"\nsize = \"100 GiB\"\nbus = \"shelf0\"\nmodel = \"sas-10k-600\"\n";
    let pool = "[[pool]]\nname = \"scratch\"\nlevel = \"simple\"\ncontroller = \"a\"\ndrives = [\"bare-0\"]\n";
    let text = GOOD.replace(
        "[[network]]\nname = \"san-a\"",
        &format!("{drive}{pool}[[network]]\nname = \"san-a\""),
    );
    let fails = |drive: &str, text: &str| {
        let text = text.replace("drive = \"data0-00\"", &format!("drive = \"{drive}\""));
        let found = findings(&text);
        let ours = found
            .iter()
            .filter(|one| one.check.name == "failure-without-redundancy");
        ours.map(|one| one.what.clone()).collect::<Vec<_>>()
    };
    let found = fails("bare-0", &text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("\"bare-0\"") && found[0].contains("\"scratch\""),
        "{found:?}"
    );
    assert_eq!(fails("data0-01", &text), [""; 0]);
}
