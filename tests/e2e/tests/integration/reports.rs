//! Both reports in Chromium, as wide as on a desk and as narrow as on a phone.

use e2e::array::binary;
use e2e::browser::look;
use e2e::program;
use std::path::Path;

/// The page that an `ashlar` command writes into `home`.
fn page(home: &Path, arguments: &[&str]) -> String {
    let file = home.join("report.html");
    let html = ["--html", file.to_str().unwrap()];
    let ended = program::run_at(binary(), &[arguments, &html].concat());
    // A limit that fails is a report, too: how fast this machine is does not matter here.
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    std::fs::read_to_string(file).unwrap()
}

#[track_caller]
fn fits(page: &str) {
    for width in [420, 1280] {
        let seen = look(page, width);
        assert!(seen.room <= width.into(), "{seen:?}");
        assert!(
            seen.needed <= seen.room,
            "scrolled sideways at {width} px: {seen:?}"
        );
        assert!(seen.texts > 20, "{seen:?}");
        assert!(seen.clipped.is_empty(), "{seen:?}");
        // Letters of 9 px have lines of this height.
        assert!(
            seen.lowest_px >= 10.0,
            "too small to read at {width} px: {seen:?}"
        );
    }
}

#[test]
fn the_report_of_a_load_fits_its_window() {
    let home = tempfile::tempdir().unwrap();
    let disk = home
        .path()
        .join("a-disk-with-a-name-that-is-long-enough-to-make-a-table-wide");
    let file = std::fs::File::create(&disk).unwrap();
    file.set_len(64 << 20).unwrap();
    let target = format!("file:{}", disk.display());
    let mut arguments = vec!["load", "rand-8k-67", "--rate", "200"];
    arguments.extend(["--warmup", "1s", "--duration", "2s"]);
    for _ in 0..3 {
        arguments.extend(["--target", &target]);
    }
    fits(&page(home.path(), &arguments));
}

#[test]
fn the_report_of_a_rehearsal_fits_its_window() {
    let home = tempfile::tempdir().unwrap();
    let manual = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/rehearsal.md"
    );
    let manual = std::fs::read_to_string(manual).unwrap();
    let (_, site) = manual.split_once("```toml\n").unwrap();
    let (site, _) = site.split_once("```").unwrap();
    let shop = home.path().join("shop.toml");
    let sooner = site.replace("at = \"8 s\"", "at = \"2 s\"");
    assert_ne!(sooner, site);
    std::fs::write(&shop, sooner).unwrap();
    let mut arguments = vec![
        "rehearse",
        shop.to_str().unwrap(),
        "--compare",
        "--seeds",
        "1",
    ];
    for setting in ["run.warmup=\"1 s\"", "run.measure=\"2 s\""] {
        arguments.extend(["--set", setting]);
    }
    fits(&page(home.path(), &arguments));
}

#[test]
fn a_page_that_does_not_fit_is_seen() {
    let page = "<!DOCTYPE html><body style=\"margin: 0\"><div style=\"width: 900px\">wide</div>\
                <svg class=\"chart\" viewBox=\"0 0 100 20\" width=\"100\" height=\"20\">\
                <text x=\"90\" y=\"12\">99.99</text></svg>";
    let seen = look(page, 420);
    assert_eq!((seen.needed, seen.room), (900, 420));
    assert_eq!(seen.clipped, ["99.99"]);
}
