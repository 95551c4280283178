//! All reports in Chromium, as wide as on a desk, as narrow as on a phone, and on paper.

use e2e::array::binary;
use e2e::browser::{SeenPage, look, look_in_print};
use e2e::program;
use std::path::{Path, PathBuf};

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
        is_whole(&seen, &format!("at {width} px"));
    }
}

#[track_caller]
fn fits_on_paper(page: &str) {
    is_whole(&look_in_print(page), "on paper");
}

#[track_caller]
fn is_whole(seen: &SeenPage, place: &str) {
    assert!(seen.needed <= seen.room, "too wide {place}: {seen:?}");
    assert!(seen.texts > 20, "{seen:?}");
    assert!(seen.clipped.is_empty(), "{place}: {seen:?}");
    // Letters of 9 px have lines of this height.
    assert!(
        seen.lowest_px >= 10.0,
        "too small to read {place}: {seen:?}"
    );
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
    let page = page(home.path(), &arguments);
    fits(&page);
    fits_on_paper(&page);
}

/// The site of the manual, in which a drive fails sooner.
fn shop(home: &Path) -> PathBuf {
    let manual = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/rehearsal.md"
    );
    let manual = std::fs::read_to_string(manual).unwrap();
    let (_, site) = manual.split_once("```toml\n").unwrap();
    let (site, _) = site.split_once("```").unwrap();
    let shop = home.join("shop.toml");
    let sooner = site.replace("at = \"8 s\"", "at = \"2 s\"");
    assert_ne!(sooner, site);
    std::fs::write(&shop, sooner).unwrap();
    shop
}

/// Settings with which commands take seconds.
const SHORT: [&str; 2] = ["run.warmup=\"1 s\"", "run.measure=\"2 s\""];

#[test]
fn the_report_of_a_rehearsal_fits_its_window() {
    let home = tempfile::tempdir().unwrap();
    let shop = shop(home.path());
    let mut arguments = vec![
        "rehearse",
        shop.to_str().unwrap(),
        "--compare",
        "--seeds",
        "1",
    ];
    arguments.extend(SHORT.iter().flat_map(|setting| ["--set", setting]));
    let page = page(home.path(), &arguments);
    fits(&page);
    fits_on_paper(&page);
}

#[test]
fn the_report_of_a_plan_fits_its_window() {
    let home = tempfile::tempdir().unwrap();
    let shop = shop(home.path());
    let mut arguments = vec!["plan", shop.to_str().unwrap(), "--drive", "slc-200"];
    let few = [
        "run.seeds=1",
        "vm_group.office.roles=[\"WEB01\"]",
        "variant=[]",
        "vary=[]",
    ];
    let settings = SHORT.iter().chain(&few);
    arguments.extend(settings.flat_map(|setting| ["--set", setting]));
    let page = page(home.path(), &arguments);
    fits(&page);
    fits_on_paper(&page);
}

#[test]
fn a_page_that_does_not_fit_is_seen() {
    let page = "<!DOCTYPE html><body style=\"margin: 0\"><div style=\"width: 900px\">wide</div>\
                <svg class=\"chart\" viewBox=\"0 0 100 20\" width=\"100\" height=\"20\">\
                <text x=\"90\" y=\"12\">99.99</text></svg>";
    let seen = look(page, 420);
    assert_eq!((seen.needed, seen.room), (900, 420));
    assert_eq!(seen.clipped, ["99.99"]);
    // Only on paper.
    let style = "<style>@media print { div { width: 2000px !important; } }</style>";
    let page = format!("{page}{style}");
    assert_eq!(look(&page, 420).needed, 900);
    assert_eq!(look_in_print(&page).needed, 2000);
}
