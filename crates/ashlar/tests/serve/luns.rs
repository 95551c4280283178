//! LUNs come behind a target that serves, and go.

use crate::array::{Home, SITE, Serving};
use serde_json::{Value, json};
use std::process::Command;

const TARGET: &str = "iqn.2026-11.dev.ashlar:a";

/// Whether there is a LUN that says what it is.
fn is_there(serving: &Serving, lun: u16) -> bool {
    let url = format!("iscsi://{}/{TARGET}/{lun}", serving.portal);
    let output = Command::new("iscsi-inq").arg(url).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    output.status.success() && text.contains("DIRECT_ACCESS")
}

fn luns(serving: &Serving) -> Vec<(u64, String)> {
    let export = serving.json(&["export", "show", TARGET]);
    let luns = export["luns"].as_array().unwrap().iter();
    let lun = |one: &Value| {
        let volume = one["volume"].as_str().unwrap().to_owned();
        (one["lun"].as_u64().unwrap(), volume)
    };
    luns.map(lun).collect()
}

fn named(luns: &[(u64, &str)]) -> Vec<(u64, String)> {
    let owned = luns.iter().map(|(lun, name)| (*lun, (*name).to_owned()));
    owned.collect()
}

#[test]
fn luns_come_and_go_and_keep_their_numbers() {
    let home = Home::new(SITE);
    let serving = home.serve();
    for name in ["w", "x", "y"] {
        serving.done(&["volume", "create", name, "--pool", "p0", "--size", "1 MiB"]);
    }
    serving.done(&["export", "add-lun", TARGET, "w", "--lun", "7"]);
    serving.done(&["export", "add-lun", TARGET, "x"]);
    assert_eq!(luns(&serving), named(&[(0, "v0"), (1, "x"), (7, "w")]));
    assert!([0, 1, 7].iter().all(|lun| is_there(&serving, *lun)));
    assert_eq!(serving.json(&["volume", "show", "w"])["export"]["lun"], 7);
    serving.done(&["export", "remove-lun", TARGET, "v0", "--yes"]);
    assert_eq!(luns(&serving), named(&[(1, "x"), (7, "w")]));
    assert!(is_there(&serving, 1) && is_there(&serving, 7) && !is_there(&serving, 0));
    serving.done(&["volume", "rename", "w", "web"]);
    // What is taken away is nobody's, and a volume still.
    serving.done(&["volume", "delete", "v0", "--yes", "--at-once"]);
    assert_eq!(serving.stop("KILL").code(), None);

    let serving = home.serve();
    assert_eq!(luns(&serving), named(&[(1, "x"), (7, "web")]));
    assert!(is_there(&serving, 1) && is_there(&serving, 7));
    serving.done(&["export", "add-lun", TARGET, "y"]);
    assert_eq!(luns(&serving), named(&[(0, "y"), (1, "x"), (7, "web")]));
    assert!(is_there(&serving, 0));
}

#[test]
fn what_can_not_be_changed_is_refused_and_nothing_is() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let other = "iqn.2026-11.dev.ashlar:b";
    for name in ["w", "x"] {
        serving.done(&["volume", "create", name, "--pool", "p0", "--size", "1 MiB"]);
    }
    serving.done(&["export", "create", "--any", other, "--volume", "w"]);
    let before = serving.json(&["export", "list"]);
    for (args, kind, why) in [
        (
            &["add-lun", TARGET, "x", "--lun", "0"][..],
            "exists",
            "LUN 0",
        ),
        (
            &["add-lun", TARGET, "x", "--lun", "256"],
            "invalid",
            "256 LUNs, from 0 to 255",
        ),
        (
            &["add-lun", TARGET, "w"],
            "exists",
            "LUN 0 of target iqn.2026-11.dev.ashlar:b",
        ),
        (&["add-lun", TARGET, "v0"], "exists", "v0 is LUN 0"),
        (&["add-lun", TARGET, "none"], "not_found", "volume none"),
        (
            &["add-lun", "iqn.2026-11.dev.ashlar:none", "x"],
            "not_found",
            "no target",
        ),
        (
            &["remove-lun", TARGET, "v0", "--yes"],
            "invalid",
            "no LUN left",
        ),
        (
            &["remove-lun", TARGET, "x", "--yes"],
            "not_found",
            "volume x",
        ),
        (&["remove-lun", TARGET, "v0"], "invalid", "no LUN left"),
    ] {
        let (found, said) = serving.refusal(&[&["export"], args].concat());
        assert!(
            found == kind && said.contains(why),
            "{args:?}: {found}: {said}"
        );
    }
    assert_eq!(serving.json(&["export", "list"]), before);
    assert!(is_there(&serving, 0) && !is_there(&serving, 1));
}

#[test]
fn a_site_file_adds_luns_and_takes_none_away() {
    let home = Home::new(SITE);
    let serving = home.serve();
    for name in ["w", "x"] {
        serving.done(&["volume", "create", name, "--pool", "p0", "--size", "1 MiB"]);
    }
    let with = |volumes: &str| {
        let of = |name: &str| {
            format!("[[volume]]\nname = \"{name}\"\npool = \"p0\"\nsize = \"1 MiB\"\n")
        };
        let both = format!("{}{}[[export]]", of("w"), of("x"));
        let text = SITE.replace("[[export]]", &both);
        home.set_site(&text.replace("[\"v0\"]", volumes));
    };
    with("[\"v0\", \"w\"]");
    serving.apply(&home);
    assert_eq!(luns(&serving), named(&[(0, "v0"), (1, "w")]));
    assert!(is_there(&serving, 1));
    with("[\"v0\", \"x\"]");
    let path = home.site();
    let shown = serving.json(&["site", "diff", path.to_str().unwrap()]);
    assert_eq!(
        shown,
        json!([{
            "action": "keep", "what": format!("target {TARGET}"),
            "how": "LUN 1 is volume w, not x: `ashlar export remove-lun` removes it",
        }])
    );
    serving.apply(&home);
    assert_eq!(luns(&serving), named(&[(0, "v0"), (1, "w")]));
    serving.done(&["export", "remove-lun", TARGET, "w", "--yes"]);
    serving.apply(&home);
    assert_eq!(luns(&serving), named(&[(0, "v0"), (1, "x")]));
}
