//! A capture of an array under load: it is rehearsed, every volume has both figures, and the file
//! has nothing that is a secret.

use crate::array::{Home, SECOND_POOL, SECOND_VOLUME, SITE, Serving, ashlar};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const NAME: &str = "host-of-tests";
const SECRET: &str = "swordfish-1234";

/// A load that goes on until it is dropped.
struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Two pools with a volume each, of which one asks for CHAP, and a volume that nobody uses.
fn site() -> String {
    let chap =
        format!("initiators = \"any\"\nchap = {{ name = \"{NAME}\", secret = \"{SECRET}\" }}\n");
    let first = SITE.replace("initiators = \"any\"\n", &chap);
    let idle = "[[volume]]\nname = \"idle\"\npool = \"p0\"\nsize = \"4 MiB\"\n";
    format!("{first}{SECOND_POOL}{SECOND_VOLUME}{idle}")
}

fn load(serving: &Serving, target: &str, account: &str, reads: &str) -> Load {
    let url = format!("iscsi://{account}{}/{target}/0", serving.portal);
    let mut command = ashlar();
    command.args(["load", "rand-4k-write", "--target", &url, "--yes"]);
    command.args(["--rate", "100", "--reads", reads, "--fill"]);
    command.args(["--warmup", "0s", "--duration", "10m"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Load(command.spawn().unwrap())
}

fn wait_for_reads(serving: &Serving, volume: &str) {
    serving.wait(&["stats", "volumes", volume], |all| {
        let reads = all[0]["io"]["reads"]["commands"].as_u64();
        reads.is_some_and(|reads| reads > 50)
    });
}

/// An array under load, captured.
fn captured(home: &Home, serving: &Serving) -> PathBuf {
    let file = home.site().with_file_name("site.capture");
    let account = format!("{NAME}%{SECRET}@");
    let _first = load(serving, "iqn.2026-11.dev.ashlar:a", &account, "70");
    let _second = load(serving, "iqn.2026-11.dev.ashlar:b", "", "60");
    wait_for_reads(serving, "v0");
    wait_for_reads(serving, "v1");
    let path = file.display().to_string();
    serving.done(&["capture", "--duration", "3s", "--output", &path]);
    file
}

fn rehearse(file: &Path, more: &[&str]) -> Output {
    let mut command: Command = ashlar();
    command
        .arg("rehearse")
        .arg(file)
        .args(["--once"])
        .args(more);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What was measured beside what was predicted, of each volume.
fn check_figures(report: &Value) {
    let beside = report["variants"][0]["beside"].as_array().unwrap();
    let names: Vec<&str> = beside
        .iter()
        .map(|one| one["vm_group"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["v0", "v1"]);
    for one in beside {
        for figure in [
            "reads_per_s",
            "writes_per_s",
            "read_mean_ms",
            "read_p95_ms",
            "write_mean_ms",
            "write_p95_ms",
        ] {
            for side in ["measured", "predicted"] {
                let value = one[figure][side].as_f64();
                assert!(
                    value.is_some_and(|value| value > 0.0),
                    "{figure} {side}: {one:#}"
                );
            }
            assert!(one[figure]["difference_percent"].is_f64(), "{one:#}");
        }
        // The load is the captured one: the rates are, whatever the machine does.
        let off = one["reads_per_s"]["difference_percent"].as_f64().unwrap();
        assert!(off.abs() < 25.0, "{one:#}");
    }
}

#[test]
fn an_array_under_load_is_captured_and_rehearsed() {
    let home = Home::new(&site());
    let serving = home.serve();
    let file = captured(&home, &serving);
    let text = std::fs::read_to_string(&file).unwrap();
    for hidden in [
        SECRET,
        NAME,
        "iqn.",
        "d0.img\"\nd",
        "not shown",
        "initiators = ",
    ] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    assert!(text.contains("left out: idle"), "{text}");
    // It stands for no host: what was measured is the array's own time.
    assert!(text.contains("initiator = \"none\""), "{text}");

    let page = file.with_extension("html");
    let output = rehearse(&file, &["--json", "-", "--html", page.to_str().unwrap()]);
    assert!(output.status.success(), "{}", said(&output));
    check_figures(&serde_json::from_slice(&output.stdout).unwrap());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Measured beside predicted"));
    let other = ["d0", "d1"].map(|drive| format!("drive.{drive}.model=\"sas-15k-600\""));
    let output = rehearse(&file, &["--set", &other[0], "--set", &other[1]]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("Measured beside predicted"),
        "{}",
        said(&output)
    );
    check_bad_files(&file, &text);
    check_second_capture(&serving);
}

/// Edited, incomplete and other files are refused with the place of what is wrong.
fn check_bad_files(file: &Path, text: &str) {
    let refused = |text: &str, more: &[&str], words: &[&str]| {
        std::fs::write(file, text).unwrap();
        let output = rehearse(file, more);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        for word in words {
            assert!(said(&output).contains(word), "{word}: {}", said(&output));
        }
    };
    let edited = text.replace("cores = 1024", "cores = 512");
    refused(
        &edited,
        &[],
        &["site.capture:8: capture.content", "was edited", "--edited"],
    );
    let cut = text.split("\n[[measured]]").next().unwrap();
    refused(cut, &[], &["capture.content", "not complete"]);
    let edited_flag: &[&str] = &["--edited"];
    refused(cut, edited_flag, &["measured is missing"]);
    let version = text.replace("version = 1\n", "version = 2\n");
    refused(&version, edited_flag, &["capture.version: version 2"]);
    let odd = text.replacen("read_p95_ms = ", "read_p95_ms = -", 1);
    refused(&odd, edited_flag, &["measured.read_p95_ms"]);
    std::fs::write(file, edited).unwrap();
    let output = rehearse(file, edited_flag);
    assert!(output.status.success(), "{}", said(&output));
}

/// A capture ends, and without load there is nothing to write.
fn check_second_capture(serving: &Serving) {
    serving.wait(&["session", "list"], |all| *all == Value::Array(Vec::new()));
    let output = serving.run(&["capture", "--duration", "1s"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("nothing to capture"),
        "{}",
        said(&output)
    );
    check_interrupted(serving);
    let output = serving.run(&["capture", "--duration", "0s"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

/// One capture at a time; Ctrl-C ends it in the array, too.
fn check_interrupted(serving: &Serving) {
    let code = |args: &[&str]| serving.run(args).status.code();
    // The one that found nothing has left none behind.
    assert_eq!(code(&["capture", "--stop"]), Some(5));
    let begin = || {
        let mut command = ashlar();
        command.args(["capture", "--duration", "1h"]);
        command.env("ASHLAR_API", &serving.api);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let mut first = begin();
    // The short one may have come first.
    while code(&["capture", "--duration", "1s"]) != Some(6) {
        if first.try_wait().unwrap().is_some() {
            first = begin();
        }
    }
    let process = first.id().to_string();
    let sent = Command::new("kill").args(["-s", "INT", &process]).status();
    assert!(sent.unwrap().success());
    assert_eq!(first.wait().unwrap().code(), Some(1));
    assert_eq!(code(&["capture", "--stop"]), Some(5));
}
