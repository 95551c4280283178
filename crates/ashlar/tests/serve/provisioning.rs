//! Thick and thin volumes, zeroes, and pools that get full, by command.

use crate::array::{Home, SITE};
use std::process::Command;

const MIB: u64 = 1 << 20;

#[test]
fn volumes_are_thick_or_thin_as_commands_say() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let pool = || serving.json(&["pool", "show", "p0"]);
    let create = |name: &'static str, size: &'static str| {
        vec![
            "volume", "create", name, "--pool", "p0", "--size", size, "--thick",
        ]
    };
    serving.done(&create("t", "10 MiB"));
    let t = serving.json(&["volume", "show", "t"]);
    assert_eq!(
        (&t["mapped_bytes"], &t["promised_bytes"]),
        (&0.into(), &(10 * MIB).into())
    );
    let before = pool();
    let sum = |pool: &serde_json::Value| {
        let of = |key: &str| pool[key].as_u64().unwrap();
        (
            of("mapped_bytes") + of("promised_bytes") + of("free_bytes"),
            of("capacity_bytes"),
        )
    };
    assert_eq!(before["promised_bytes"], 10 * MIB);
    assert_eq!(sum(&before).0, sum(&before).1);

    let (code, said) = serving.refused(&create("u", "1 GiB"));
    assert_eq!(code, 1, "{said}");
    let free = site::human(before["free_bytes"].as_u64().unwrap());
    let free = format!("has {free} left that are not promised");
    assert!(said.contains(&free), "{said}");
    serving.done(&[
        "volume",
        "convert",
        "v0",
        "--thick",
        "--detect-zeroes",
        "on",
    ]);
    serving.done(&["volume", "convert", "t", "--thin"]);
    assert_eq!(pool()["promised_bytes"], 8 * MIB);
    let (code, said) = serving.refused(&["volume", "convert", "v0"]);
    assert_eq!(code, 2, "{said}");
    let (code, said) = serving.refused(&["volume", "convert", "none", "--thin"]);
    assert_eq!(code, 5, "{said}");
    drop(serving);

    // A kill later, also where the site file says otherwise.
    let serving = home.serve();
    let v0 = serving.json(&["volume", "show", "v0"]);
    assert_eq!(v0["provisioning"], "thick");
    assert_eq!(v0["detect_zeroes"], true);
    assert_eq!(pool_promised(&serving), 8 * MIB);
}

fn pool_promised(serving: &crate::array::Serving) -> u64 {
    let pool = serving.json(&["pool", "show", "p0"]);
    pool["promised_bytes"].as_u64().unwrap()
}

#[test]
fn thresholds_come_from_the_site_file_and_by_command() {
    let site = SITE.replace(
        "level = \"10\"",
        "level = \"10\"\nwarn_at = 20\nalarm_at = 60",
    );
    let home = Home::new(&site);
    let serving = home.serve();
    let shown = || serving.json(&["pool", "show", "p0"]);
    let percents = || {
        let thresholds = shown()["thresholds"].clone();
        (
            thresholds["warn_percent"].clone(),
            thresholds["alarm_percent"].clone(),
        )
    };
    assert_eq!(percents(), (20.into(), 60.into()));
    serving.done(&["pool", "thresholds", "p0", "--warn", "10"]);
    assert_eq!(percents(), (10.into(), 60.into()));
    let (kind, said) = serving.refusal(&["pool", "thresholds", "p0", "--alarm", "5"]);
    assert_eq!(kind, "invalid", "{said}");
    assert!(said.contains("below the warning"), "{said}");

    serving.done(&[
        "volume", "create", "t", "--pool", "p0", "--size", "10 MiB", "--thick",
    ]);
    serving.wait(&["pool", "show", "p0"], |pool| pool["fullness"] == "warn");
    let status = serving.json(&["status"]);
    assert_eq!(status["health"], "attention");
    let why = status["why"][0].as_str().unwrap();
    assert!(why.contains("pool p0: gets full: "), "{status}");
    serving.wait(&["events"], |events| {
        let mut events = events.as_array().unwrap().iter();
        events.any(|event| {
            event["kind"] == "space" && event["text"].as_str().unwrap().contains("of 10 %")
        })
    });
    serving.done(&["volume", "delete", "t", "--yes", "--at-once"]);
    serving.wait(&["pool", "show", "p0"], |pool| pool["fullness"] == "ample");
    let status = serving.json(&["status"]);
    assert_eq!(
        (&status["health"], &status["why"]),
        (&"ok".into(), &serde_json::json!([]))
    );
}

#[test]
fn what_is_promised_counts_as_used_wherever_fullness_is_told() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let pool = serving.json(&["pool", "show", "p0"]);
    let capacity = pool["capacity_bytes"].as_u64().unwrap();
    let size = format!("{} B", capacity / 10 * 9 / 262_144 * 262_144);
    serving.done(&[
        "volume", "create", "t", "--pool", "p0", "--size", &size, "--thick",
    ]);
    serving.wait(&["pool", "show", "p0"], |pool| pool["fullness"] == "warn");
    let text = |args: &[&str]| String::from_utf8(serving.run(args).stdout).unwrap();
    let list = text(&["pool", "list"]);
    let line = list.lines().find(|line| line.starts_with("p0")).unwrap();
    assert!(
        line.contains("attention") && line.contains(" 90.0 %"),
        "{list}"
    );
    let show = text(&["pool", "show", "p0"]);
    for part in [
        "gets full: 90.0 % of 32.50 MiB are used (0 B mapped, 29.25 MiB",
        " promised to thick volumes); the warning threshold is 80 %",
        "; `ashlar pool grow p0`, `ashlar trash empty`, ",
        "above its warning threshold; warning from 80 % used, alarm from 95 %)",
        "mapped    0 B (0.0 %)",
        " %) to thick volumes",
        "%): mapped and promised",
        "% of the pool is used or promised to thick volumes: it is above the warning",
    ] {
        assert!(show.contains(part), "{part:?} is not in: {show}");
    }
    let status = text(&["status"]);
    assert!(status.contains("promised  "), "{status}");
}

#[test]
fn volumes_of_more_than_the_pool_holds_are_warned_of_once() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let said = |args: &[&str]| serving.warnings(args);
    let create = |name: &str, size_bytes: u64| {
        let size = format!("{size_bytes} B");
        said(&["volume", "create", name, "--pool", "p0", "--size", &size])
    };
    let pool = serving.json(&["pool", "show", "p0"]);
    let capacity = pool["capacity_bytes"].as_u64().unwrap();
    let volumes = serving.json(&["volume", "list"]);
    let of_site = volumes.as_array().unwrap().iter();
    let of_site: u64 = of_site.map(|one| one["size_bytes"].as_u64().unwrap()).sum();
    let left = capacity - of_site;
    assert_eq!(create("fits", left), "");
    // The one that is too much is told of, and none after it.
    let warning = create("more", 1 << 20);
    assert!(warning.starts_with("warning: pool p0 holds "), "{warning}");
    assert!(warning.contains(", and its volumes have "), "{warning}");
    assert_eq!(warning.lines().count(), 1, "{warning}");
    assert_eq!(create("again", 1 << 20), "");
    // Larger than all of the pool: each time.
    let huge = create("huge", 1 << 30);
    assert!(huge.contains(", and volume huge has 1 GiB:"), "{huge}");
    let resize = ["volume", "resize", "more", "--size"];
    assert_eq!(said(&[&resize[..], &["2 MiB"]].concat()), "");
    let huge = said(&[&resize[..], &["1 GiB"]].concat());
    assert!(huge.contains(", and volume more has 1 GiB:"), "{huge}");
    // Data has no room for it.
    let json = [
        "volume", "create", "j", "--pool", "p0", "--size", "1 GiB", "--json",
    ];
    assert_eq!(said(&json), "");
}

#[test]
fn a_full_pool_is_in_the_log_and_in_the_health() {
    let home = Home::new(&SITE.replace("size = \"8 MiB\"", "size = \"64 MiB\""));
    let serving = home.serve();
    let url = format!("iscsi://{}/iqn.2026-11.dev.ashlar:a/0", serving.portal);
    let wrote = Command::new("qemu-io")
        .args(["-f", "raw", "-c", "write -P 1 0 64M", &url])
        .output()
        .unwrap();
    assert!(!wrote.status.success(), "the pool holds less: {wrote:?}");
    let is_full = |pool: &serde_json::Value| pool["fullness"] == "full";
    serving.wait(&["pool", "show", "p0"], is_full);
    let status = serving.json(&["status"]);
    assert_eq!(status["health"], "full", "{status}");
    home.wait_log("writes that need space fail");
    assert!(home.has_logged("WARN", &["pool p0: ", "writes that need space fail"]));
}

#[test]
fn a_site_file_and_an_image_that_are_too_much_are_warned_of() {
    let images = tempfile::tempdir().unwrap();
    let site = format!("[images]\ndirectories = [{:?}]\n{SITE}", images.path());
    let large = site.replace("size = \"8 MiB\"", "size = \"1 GiB\"");
    assert_ne!(site, large);
    let is_told = |home: &Home| home.has_logged("WARN", &["pool p0 holds ", "volume v0 has 1 GiB"]);
    let home = Home::new(&large);
    let serving = home.serve();
    assert!(is_told(&home), "{}", home.log());
    assert!(serving.stop("TERM").success());
    // The volumes are there by now.
    let serving = home.serve();
    assert!(!is_told(&home), "{}", home.log());
    drop(serving);

    let home = Home::new(&site);
    let serving = home.serve();
    let more = "[[volume]]\nname = \"more\"\npool = \"p0\"\nsize = \"2 GiB\"\n";
    home.set_site(&format!("{site}{more}"));
    let warning = |args: &[&str]| {
        let said = serving.warnings(args);
        let mut warnings = said.lines().filter(|line| line.starts_with("warning: "));
        let first = warnings.next().map(str::to_owned);
        assert_eq!(warnings.next(), None, "{said}");
        first.unwrap_or_else(|| panic!("{args:?}: {said}"))
    };
    let said = warning(&["site", "apply", "--yes", home.site().to_str().unwrap()]);
    assert!(
        said.contains("pool p0") && said.contains("volume more has 2 GiB"),
        "{said}"
    );
    let image = images.path().join("a.raw");
    let file = std::fs::File::create(&image).unwrap();
    // Nothing but a hole.
    file.set_len(1 << 30).unwrap();
    let image = image.to_str().unwrap();
    let said = warning(&["volume", "import", image, "--pool", "p0", "--name", "in"]);
    assert!(
        said.contains("pool p0") && said.contains("volume in has 1 GiB"),
        "{said}"
    );
}
