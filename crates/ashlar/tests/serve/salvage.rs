//! `ashlar pool salvage`: labels that are lost come back where the drives prove them; a
//! start finds drives by the labels of any lane.

use crate::array::{Home, ashlar, said, two_lanes_and_a_pool};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Room for the labels of a lane.
const LABELS: usize = 64 << 10;

fn salvage(home: &Home, args: &[&str]) -> (i32, String) {
    let mut command = ashlar();
    command.args(["pool", "salvage", "--site"]);
    let pool: &[&str] = if args.contains(&"--pool") {
        &[]
    } else {
        &["--pool", "p0"]
    };
    command.arg(home.site()).arg("--data").arg(home.data());
    let output = command.args(pool).args(args).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let (code, text) = said(output);
    (code, shown + &text)
}

fn wipe_first_lane(home: &Home, file: &str) {
    let file = File::options().write(true).open(home.file(file)).unwrap();
    file.write_all_at(&[0; LABELS], 0).unwrap();
}

#[test]
fn labels_of_the_first_lane_are_written_anew_when_somebody_says_so() {
    let home = Home::new(&two_lanes_and_a_pool());
    let serving = home.serve();
    let (code, text) = salvage(&home, &[]);
    assert_eq!((code, text.contains("in use")), (2, true), "{text}");
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let (code, text) = salvage(&home, &[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("no label is"), "{text}");

    wipe_first_lane(&home, "d1.img");
    let before = fs::read(home.file("d1.img")).unwrap();
    let (code, text) = salvage(&home, &[]);
    assert_eq!(code, 1, "{text}");
    for part in [
        "drive 'd1': the label of lane 0",
        "lane 1 says that it is this drive",
        "nothing was written: --yes",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(fs::read(home.file("d1.img")).unwrap() == before);
    let (code, text) = salvage(&home, &["--yes"]);
    assert_eq!(code, 0, "{text}");
    let serving = home.serve();
    let pool = serving.json(&["pool", "show", "p0"]);
    assert_eq!(pool["health"], "ok", "{pool:#}");
    assert_eq!(serving.stop("TERM").code(), Some(0));
}

#[test]
fn a_drive_without_labels_of_the_first_lane_is_of_its_pool_still() {
    let home = Home::new(&two_lanes_and_a_pool());
    assert_eq!(home.serve().stop("TERM").code(), Some(0));
    wipe_first_lane(&home, "d1.img");
    let serving = home.serve();
    let is_named = home.has_logged("WARN", &["drive d1", "lost its labels"]);
    assert!(is_named, "{}", home.log());
    assert_eq!(serving.stop("TERM").code(), Some(0));
    // The first lane goes on without it, and what it missed is not forgotten.
    let (code, text) = salvage(&home, &["--yes"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("no label is"), "{text}");
}

#[test]
fn programs_read_which_labels_are_written() {
    let home = Home::new(&two_lanes_and_a_pool());
    assert_eq!(home.serve().stop("TERM").code(), Some(0));
    wipe_first_lane(&home, "d1.img");
    for (args, code, steps, written) in [
        (&["--json"][..], 1, 1, false),
        (&["--json", "--yes"], 0, 1, true),
        (&["--json", "--yes"], 0, 0, false),
    ] {
        let (found, text) = salvage(&home, args);
        let labels: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((found, &labels["pool"]), (code, &"p0".into()), "{text}");
        assert_eq!(labels["steps"].as_array().unwrap().len(), steps, "{text}");
        assert_eq!(labels["written"], written, "{text}");
        assert_eq!(labels["obstacles"], serde_json::json!([]), "{text}");
    }
    let (code, text) = salvage(&home, &["--json", "--pool", "no"]);
    let error: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &error["kind"]), (2, &"wrong".into()), "{text}");
    assert_eq!(error["what"], "pool salvage");
}
