//! `ashlar site check`, as users run it.

// Tests of the real world: processes, files.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that ships.
fn shipped(name: &str) -> PathBuf {
    let sites = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sites");
    sites.join(name)
}

/// A copy of a plan that ships, with `edits` made, in `directory`.
fn edited(directory: &Path, name: &str, edits: &[(&str, &str)]) -> PathBuf {
    let mut text = std::fs::read_to_string(shipped(name)).unwrap();
    for (from, to) in edits {
        assert!(text.contains(from), "{from:?}");
        text = text.replace(from, to);
    }
    let file = directory.join(name);
    std::fs::write(&file, text).unwrap();
    file
}

/// Exit code, standard output and standard error.
fn check(file: &Path) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ashlar"));
    let output = command.args(["site", "check"]).arg(file).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn a_site_to_serve_is_only_read() {
    let (code, said, wrong) = check(&shipped("demo.toml"));
    assert_eq!((code, wrong.as_str()), (Some(0), ""));
    assert!(said.contains("demo.toml: good: 8 drives"), "{said}");
}

#[test]
fn a_plan_without_errors_is_told_what_could_be_better() {
    let file = shipped("ps6110xv.toml");
    let (code, said, wrong) = check(&file);
    assert_eq!((code, wrong.as_str()), (Some(0), ""));
    let lines: Vec<&str> = said.lines().collect();
    let file = file.display().to_string();
    let what = "2 controllers, 24 drives, 1 pool, 2 hosts, 10 VMs, 16 variants";
    assert_eq!(lines[0], format!("{file}: to rehearse: {what}"));
    let place = |line: &str| lines.iter().position(|other| *other == line);
    assert!(
        place("By the rule of thumb:") < place("Warnings:"),
        "{said}"
    );
    assert!(place("Warnings:") < place("Worth knowing:"), "{said}");
    assert_eq!(place("Errors:"), None);
    let finding =
        format!("  {file}:22: single-port-controller: controller \"active\" has one port");
    assert!(place(&finding).is_some(), "{said}");
    // What only variants have is said at the first of them.
    let of_variants = "(in variants \"two arrays, twenty VMs\", \"storage migration to a second array with offload\" and 1 more)";
    assert!(said.contains(of_variants), "{said}");
    // Why, what to do and where it says so, once for each check.
    let why = "      why:    one cable or port takes the controller from all hosts";
    assert_eq!(
        lines.iter().filter(|line| **line == why).count(),
        1,
        "{said}"
    );
}

#[test]
fn an_error_is_an_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let file = edited(
        directory.path(),
        "ps6110xv.toml",
        &[("witness = true\n", "")],
    );
    let (code, said, wrong) = check(&file);
    assert_eq!(code, Some(1));
    let file = file.display().to_string();
    assert_eq!(wrong, format!("error: {file}: 1 finding is an error\n"));
    let expected = format!(
        "Errors:\n  {file}:67: no-witness: the two hosts \"hyperv\" have no witness\n      why:    "
    );
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn a_plan_that_is_wrong_is_refused_with_all_that_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let edits = [
        (
            "model = \"sas-15k-600\"\ncount",
            "model = \"sas-15k\"\ncount",
        ),
        ("profile = \"hetero10\"\n", "profile = \"hetero11\"\n"),
    ];
    let file = edited(directory.path(), "ps6110xv.toml", &edits);
    let (code, said, wrong) = check(&file);
    assert_eq!((code, said.as_str()), (Some(2), ""));
    let file = file.display().to_string();
    let lines: Vec<&str> = wrong.lines().collect();
    assert_eq!(lines.len(), 2, "{wrong}");
    assert!(
        lines[0].starts_with(&format!("error: {file}:38: drives.model: "))
            && lines[0].contains("\"sas-15k\""),
        "{wrong}"
    );
    assert!(
        lines[1].starts_with(&format!(
            "error: {file}:85: vm_group.profile: found \"hetero11\""
        )),
        "{wrong}"
    );
    // What can be told from the file alone comes first.
    let file = edited(
        directory.path(),
        "ps6110xv.toml",
        &[("count = 24\n", "count = 20\n")],
    );
    let (code, _, wrong) = check(&file);
    assert_eq!(code, Some(2));
    assert!(
        wrong.contains(":38: drives.count: found 20 drives,"),
        "{wrong}"
    );
}

#[test]
fn what_is_no_toml_or_not_there_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bad.toml");
    std::fs::write(&file, "[site\n").unwrap();
    let (code, _, wrong) = check(&file);
    assert_eq!(code, Some(2));
    assert!(wrong.contains("bad.toml:1: syntax:"), "{wrong}");
    let (code, _, wrong) = check(&directory.path().join("none.toml"));
    assert_eq!(code, Some(2));
    assert!(wrong.contains("none.toml: can't read"), "{wrong}");
}

#[test]
fn a_command_says_which_keys_a_file_lacks_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let (array, plan) = (shipped("conformance.toml"), shipped("ps6110xv.toml"));
    let load = ["vm_group"];
    let served = ["portal", "drive", "pool.level", "pool.drives"];
    for (arguments, file, missing) in [
        (vec!["rehearse"], &array, &load[..]),
        (vec!["plan"], &array, &load[..]),
        (
            vec!["serve", "--data", data.to_str().unwrap(), "--site"],
            &plan,
            &served[..],
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ashlar"));
        let output = command.args(&arguments).arg(file).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let wrong = String::from_utf8(output.stderr).unwrap();
        let command = format!("ashlar rehearse {}", file.display());
        let is_named = usize::from(arguments[0] == "serve");
        assert_eq!(wrong.matches(&command).count(), is_named, "{wrong}");
        assert_eq!(wrong.lines().count(), missing.len() + is_named, "{wrong}");
        for key in missing {
            assert!(
                wrong.contains(&format!(": {key} is missing: give ")),
                "{wrong}"
            );
        }
    }
    assert!(!data.exists());
}

#[test]
fn a_site_with_both_is_checked_for_both() {
    let directory = tempfile::tempdir().unwrap();
    let more =
        "\n[[network]]\nname = \"lan\"\nkind = \"ethernet\"\nspeed = \"25 Gb/s\"\n[[portal]]\n";
    let edits = [("\n[[portal]]\n", more)];
    let file = edited(directory.path(), "demo.toml", &edits);
    let (code, said, _) = check(&file);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("demo.toml: good: 8 drives"), "{said}");
    assert!(
        lines[1].contains("demo.toml: to rehearse: 1 controller, 8 drives"),
        "{said}"
    );
    assert!(
        said.contains("\nAssumed, because the file does not say it\n"),
        "{said}"
    );
    assert!(matches!(code, Some(0 | 1)), "{said}");
    let more = more.replace("25 Gb/s", "25");
    let wrong = edited(directory.path(), "demo.toml", &[("\n[[portal]]\n", &more)]);
    let (code, said, _) = check(&wrong);
    assert_eq!((code, said.as_str()), (Some(2), ""));
}

/// A served file without a load is good, whatever else it says of its hardware.
#[test]
fn hardware_of_a_served_file_is_checked_without_a_load() {
    let directory = tempfile::tempdir().unwrap();
    let network = "[[network]]\nname = \"lan\"\nkind = \"ethernet\"\nspeed = \"25 Gb/s\"\n";
    let portal = "\n[[portal]]\n";
    let more = format!("\n[run]\nseed = 2\n{network}{portal}");
    let file = edited(directory.path(), "conformance.toml", &[(portal, &more)]);
    let (code, said, wrong) = check(&file);
    assert_eq!((code, wrong.as_str()), (Some(0), ""));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].contains("conformance.toml: good: "), "{said}");
    assert!(
        lines[1].contains("not to rehearse: it has no load"),
        "{said}"
    );
}

/// Names of models in tables that are served are looked up, with a load and without.
#[test]
fn an_unknown_model_of_a_served_drive_is_told() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["conformance.toml", "demo.toml"] {
        for (table, key, told) in [
            (
                "[[drive]]\n",
                "model = \"bogus\"\n",
                "\"bogus\" is not known",
            ),
            (
                "[[drive]]\n",
                "bus = \"nobus\"\n",
                "\"nobus\", which no bus has",
            ),
            (
                "[[pool]]\n",
                "controller = \"nope\"\n",
                "\"nope\", which no controller has",
            ),
        ] {
            let edits = [(table, format!("{table}{key}"))];
            let edits = edits.each_ref().map(|(from, to)| (*from, to.as_str()));
            let file = edited(directory.path(), name, &edits);
            let (code, _, wrong) = check(&file);
            assert_eq!(code, Some(2), "{name}: {key}");
            assert!(wrong.contains(told), "{wrong}");
        }
    }
}
