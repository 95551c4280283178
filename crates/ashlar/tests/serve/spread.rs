//! Groups with distributed spares: made by a site file, by commands and by the API; a failed drive
//! leaves all redundant without a spare drive.

use crate::array::{Home, SITE, Serving};
use serde_json::{Value, json};
use std::fs;

const MORE: &str = r#"[[drive]]
name = "d2"
file = "d2.img"
size = "64 MiB"
[[drive]]
name = "d3"
file = "d3.img"
size = "64 MiB"
[[drive]]
name = "d4"
file = "d4.img"
size = "64 MiB"
"#;

/// RAID 10 over five drives, of which one's room is spare.
fn five() -> String {
    let drives = SITE.replace(
        "[\"d0\", \"d1\"]",
        "[\"d0\", \"d1\", \"d2\", \"d3\", \"d4\"]",
    );
    let keys = "level = \"10\"\ndistributed_spares = 1";
    drives.replace("level = \"10\"", keys) + MORE
}

fn pool(serving: &Serving) -> Value {
    serving.json(&["pool", "show", "p0"])
}

fn wait(serving: &Serving, is_wanted: impl Fn(&Value) -> bool) -> Value {
    serving.wait(&["pool", "show", "p0"], |pool| {
        is_wanted(&pool["groups"][0])
    })
}

fn text(serving: &Serving, args: &[&str]) -> String {
    let output = serving.run(args);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_failed_drive_leaves_all_redundant_without_a_spare_drive() {
    let images = tempfile::tempdir().unwrap();
    let allowed = format!("[images]\ndirectories = [{:?}]\n", images.path());
    let home = Home::new(&(allowed + &five()));
    let serving = home.serve();
    let image = images.path().join("a.raw");
    fs::write(&image, vec![7; 16 << 20]).unwrap();
    let image = image.to_str().unwrap();
    serving.done(&["volume", "import", image, "--pool", "p0", "--name", "full"]);
    let group = &pool(&serving)["groups"][0];
    assert_eq!(
        [
            &group["stripe_width"],
            &group["distributed_spares"],
            &group["lost_places"],
            &group["away_places"]
        ],
        [2, 1, 0, 0]
    );
    let whole = text(&serving, &["pool", "show", "p0"]);
    let line = "0: RAID 10, stripes of 2, 1 distributed spare, of d0, d1, d2, d3, d4;";
    assert!(
        whole.contains(line) && !whole.contains("away from home"),
        "{whole}"
    );

    serving.done(&["drive", "fail", "--yes", "d1"]);
    let rebuilt = "rebuild of group 0 on its distributed spares has ended";
    let ended = |events: &[String]| events.iter().any(|event| event.contains(rebuilt));
    for _ in 0..600 {
        if ended(&serving.events_of("rebuild")) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(ended(&serving.events_of("rebuild")));
    let shown = wait(&serving, |group| group["lost_places"] == 0);
    assert!(shown["groups"][0]["away_places"].as_u64().unwrap() > 0);
    assert_eq!(shown["spares"], json!([]));
    // A drive is to be replaced, and data is as safe as before.
    assert_eq!(shown["failed_drives"], json!(["d1"]));
    let status = serving.wait(&["status"], |status| status["health"] == "attention");
    let why = "drive d1 is out of use, and its data is redundant on distributed spares: \
               `ashlar drive replace d1`";
    assert!(status["why"].to_string().contains(why), "{status:#}");
    let shown = text(&serving, &["pool", "show", "p0"]);
    assert!(
        shown.contains("; all is redundant on distributed spares, "),
        "{shown}"
    );

    // Another one is one too many for the spare room; each pair has a copy left.
    serving.done(&["drive", "fail", "--yes", "d3"]);
    let status = serving.wait(&["status"], |status| status["health"] == "degraded");
    let lost = pool(&serving)["groups"][0]["lost_places"].as_u64().unwrap();
    assert!(lost > 0);
    let why = format!("place{} of group 0 lack", if lost == 1 { "" } else { "s" });
    assert!(status["why"].to_string().contains(&why), "{status:#}");
    let shown = text(&serving, &["pool", "show", "p0"]);
    assert!(shown.contains(" lost, "), "{shown}");

    for drive in ["d1", "d3"] {
        serving.done(&["drive", "replace", drive, "--yes"]);
    }
    wait(&serving, |group| {
        group["lost_places"] == 0 && group["away_places"] == 0
    });
    serving.wait(&["status"], |status| status["health"] == "ok");
}

#[test]
fn such_groups_are_made_by_commands_and_stay_after_a_restart() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let create = ["pool", "create", "new", "--size", "64 MiB", "--level", "5"];
    let spread = ["--stripe-width", "3", "--distributed-spares", "1"];
    let drives = ["n0.img", "n1.img", "n2.img", "n3.img"];
    serving.done(&[&create[..], &spread, &drives].concat());
    let grow = ["pool", "grow", "new", "--level", "10", "--size", "64 MiB"];
    let more = ["m0.img", "m1.img", "m2.img"];
    serving.done(&[&grow[..], &["--distributed-spares", "1"], &more].concat());
    let keys = |serving: &Serving| {
        let pool = serving.json(&["pool", "show", "new"]);
        let groups = pool["groups"].as_array().unwrap().iter();
        groups
            .map(|group| {
                json!([
                    group["level"],
                    group["stripe_width"],
                    group["distributed_spares"]
                ])
            })
            .collect::<Vec<_>>()
    };
    let wanted = [json!(["5", 3, 1]), json!(["10", 2, 1])];
    assert_eq!(keys(&serving), wanted);
    let shown = text(&serving, &["site", "show"]);
    assert!(
        shown.contains("stripe_width = 3\ndistributed_spares = 1"),
        "{shown}"
    );
    assert!(serving.stop("TERM").success());
    let serving = home.serve();
    assert_eq!(keys(&serving), wanted);
    home.set_site(&text(&serving, &["site", "show"]));
    let diff = text(&serving, &["site", "diff", home.site().to_str().unwrap()]);
    assert!(!diff.contains("distributed"), "{diff}");
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let before = home.listing();
    let create = ["pool", "create", "new", "--size", "64 MiB", "--level"];
    let drives = ["n0.img", "n1.img", "n2.img", "n3.img", "n4.img"];
    let grow = ["pool", "grow", "p0", "--level"];
    for (args, said) in [
        (
            [&create[..], &["5", "--distributed-spares", "1"]].concat(),
            "distributed_spares: found distributed_spares without stripe_width",
        ),
        (
            [&create[..], &["50", "--distributed-spares", "1"]].concat(),
            "found distributed spares of a group of level \"50\"",
        ),
        (
            [
                &create[..],
                &["5", "--stripe-width", "3", "--distributed-spares", "1"],
            ]
            .concat(),
            "found 5 drives; allowed: a multiple of 3 drives and 1 more, up to 64 in all (4, 7, 10",
        ),
        (
            [
                &grow[..],
                &["6", "--stripe-width", "4", "--distributed-spares", "2"],
            ]
            .concat(),
            "found 5 drives for a new group; allowed: a multiple of 4 drives and 2 more, up to 64 in \
             all (6, 10",
        ),
        (
            [
                &grow[..],
                &["10", "--role", "log", "--distributed-spares", "1"],
            ]
            .concat(),
            "found distributed spares of a group of role \"log\"",
        ),
    ] {
        let (kind, message) = serving.refusal(&[&args[..], &drives].concat());
        assert_eq!(kind, "invalid", "{message}");
        assert!(message.contains(said), "{message}");
    }
    assert_eq!(home.listing(), before);
}
