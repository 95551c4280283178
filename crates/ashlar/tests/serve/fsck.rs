//! `ashlar fsck` over what `ashlar serve` leaves behind.

use crate::array::{Home, SECOND_POOL, SITE, Serving, ashlar, said};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Output;

const BLOCK: usize = 4096;

/// `ashlar fsck` on a site.
fn site(home: &Home, args: &[&str]) -> Output {
    let mut command = ashlar();
    command.arg("fsck").arg("--site").arg(home.site());
    command.arg("--data").arg(home.data()).args(args);
    command.output().unwrap()
}

/// Exit code and JSON.
fn json(home: &Home, args: &[&str]) -> (i32, Value) {
    let output = site(home, &[args, &["--json"]].concat());
    let text = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout);
    let json = json.unwrap_or_else(|error| panic!("{error}: {text}"));
    (output.status.code().unwrap(), json)
}

/// Writes to the volume for a second.
fn write_some(serving: &Serving) {
    write_to(serving, "iqn.2026-11.dev.ashlar:a");
}

/// Writes to the first LUN of a target for a second.
pub fn write_to(serving: &Serving, target: &str) {
    let target = format!("iscsi://{}/{target}/0", serving.portal);
    let args = [
        "load",
        "rand-4k-write",
        "--duration",
        "1s",
        "--warmup",
        "0s",
    ];
    let output = ashlar().args(args).args(["--target", &target]).output();
    let (code, said) = said(output.unwrap());
    assert!(code == 0 || code == 3, "{said}");
}

/// Changes the last block of a file drive that holds data of a volume.
pub fn damage(home: &Home, file: &str) -> u64 {
    let bytes = fs::read(home.file(file)).unwrap();
    let is_data =
        |block: &&[u8]| block.iter().any(|byte| *byte != 0) && !block.starts_with(b"ASIN");
    let blocks: Vec<&[u8]> = bytes.chunks(BLOCK).collect();
    let last = blocks.iter().rposition(is_data).unwrap();
    let file = File::options().write(true).open(home.file(file)).unwrap();
    let at = (last * BLOCK + 100) as u64;
    file.write_all_at(&[!bytes[at as usize]], at).unwrap();
    (last * BLOCK) as u64
}

#[test]
fn a_served_pool_is_refused_and_a_closed_one_is_clean() {
    let home = Home::new(&(SITE.to_owned() + SECOND_POOL));
    let serving = home.serve();
    write_some(&serving);
    let (code, text) = said(site(&home, &[]));
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("drive d0: ") && text.contains("in use"),
        "{text}"
    );
    assert_eq!(serving.stop("TERM").code(), Some(0));

    let before = fs::read(home.file("d0.img")).unwrap();
    let (code, all) = json(&home, &["--deep"]);
    assert_eq!((code, &all["outcome"]), (0, &"clean".into()), "{all:#}");
    let pools = all["pools"].as_array().unwrap();
    let names: Vec<&Value> = pools.iter().map(|pool| &pool["pool"]).collect();
    assert_eq!(names, ["p0", "p1"]);
    assert!(
        pools
            .iter()
            .all(|pool| pool["findings"] == Value::Array(vec![])),
        "{all:#}"
    );
    assert!(pools[0]["counts"]["data_blocks"].as_u64().unwrap() > 0);
    assert_eq!(pools[0]["closed_cleanly"], true);
    assert!(fs::read(home.file("d0.img")).unwrap() == before);

    let text = String::from_utf8(site(&home, &["--pool", "p1"]).stdout).unwrap();
    assert!(text.starts_with("pool 'p1': nothing is damaged"), "{text}");
    assert!(text.contains("1 drive,"), "{text}");
    let (code, text) = said(site(&home, &["--pool", "p2"]));
    assert_eq!((code, text.contains("of p0, p1")), (2, true), "{text}");

    fs::remove_file(home.file("e0.img")).unwrap();
    let (code, all) = json(&home, &[]);
    assert_eq!((code, &all["outcome"]), (1, &"loss".into()), "{all:#}");
    assert_eq!(all["missing_pools"], Value::Array(vec!["p1".into()]));
    let one = site(&home, &["--pool", "p1"]);
    let text = String::from_utf8(one.stdout).unwrap();
    let lost = "loss    pool 'p1': no drive with its label is there";
    assert!(text.contains(lost), "{text}");
    assert_eq!(one.status.code(), Some(1));
    assert_eq!(json(&home, &["--pool", "p0"]).0, 0);
}

#[test]
fn after_a_kill_there_are_notes_and_nothing_is_damaged() {
    let home = Home::new(SITE);
    let serving = home.serve();
    write_some(&serving);
    serving.stop("KILL");
    let (code, all) = json(&home, &["--deep"]);
    assert_eq!((code, &all["outcome"]), (0, &"clean".into()), "{all:#}");
    assert_eq!(all["pools"][0]["closed_cleanly"], false);
    // And the array takes up where it was.
    assert_eq!(home.serve().stop("TERM").code(), Some(0));
    assert_eq!(json(&home, &["--deep"]).0, 0);
}

#[test]
fn a_damaged_block_is_named_with_drive_and_offset() {
    let home = Home::new(SITE);
    let serving = home.serve();
    write_some(&serving);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let at = damage(&home, "d1.img");
    assert_eq!(json(&home, &[]).0, 0, "only --deep reads data");
    let (code, all) = json(&home, &["--deep"]);
    assert_eq!((code, &all["outcome"]), (1, &"damage".into()), "{all:#}");
    let finding = &all["pools"][0]["findings"][0];
    assert_eq!(finding["severity"], "damage");
    assert_eq!(finding["place"], format!("drive 'd1', 4096 bytes at {at}"));

    // The same without a site file.
    let (d0, d1) = (home.file("d0.img"), home.file("d1.img"));
    let output = ashlar()
        .arg("fsck")
        .args([&d0, &d1])
        .arg("--deep")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let named = format!("damage  drive '{}', 4096 bytes at {at}: ", d1.display());
    assert!(text.starts_with(&named), "{text}");
}

#[test]
fn drives_that_are_missing_or_belong_to_no_pool() {
    let home = Home::new(SITE);
    assert_eq!(home.serve().stop("TERM").code(), Some(0));
    let (d0, d1) = (home.file("d0.img"), home.file("d1.img"));
    fs::rename(&d1, home.file("away")).unwrap();
    let (code, all) = json(&home, &[]);
    assert_eq!(code, 1);
    assert_eq!(all["drives"][0]["drive"], "d1");
    let finding = &all["pools"][0]["findings"][0];
    assert_eq!(
        finding["place"], "drive 'd1' (place 1 of group 0)",
        "{all:#}"
    );

    fs::write(&d1, b"").unwrap();
    let (code, all) = json(&home, &[]);
    let text = all["drives"][0]["text"].to_string();
    assert_eq!((code, text.contains("can't be")), (1, true), "{all:#}");

    fs::remove_file(&d1).unwrap();
    fs::write(&d0, vec![0; 1 << 20]).unwrap();
    let (code, text) = said(site(&home, &[]));
    assert_eq!(code, 2);
    assert!(text.contains("no drive has"), "{text}");
    let output = ashlar().arg("fsck").arg(&d1).output().unwrap();
    let (code, text) = said(output);
    assert_eq!((code, text.contains("not found")), (2, true), "{text}");
    assert_eq!(said(ashlar().arg("fsck").output().unwrap()).0, 2);
}

#[test]
fn a_drive_that_is_given_twice_is_named() {
    let home = Home::new(SITE);
    assert_eq!(home.serve().stop("TERM").code(), Some(0));
    let d0 = home.file("d0.img").display().to_string();
    let (code, text) = said(ashlar().args(["fsck", &d0, &d0]).output().unwrap());
    assert_eq!(
        (code, text.contains("d0.img: it is given")),
        (2, true),
        "{text}"
    );
    // By the site file, too: that is no mistake.
    assert_eq!(json(&home, &[&d0]).0, 0);
}

#[test]
fn drives_that_commands_have_added_are_looked_for() {
    let home = Home::new(SITE);
    let serving = home.serve();
    let grow = [
        "pool", "grow", "p0", "--level", "5", "n0.img", "n1.img", "n2.img",
    ];
    serving.done(&grow);
    write_some(&serving);
    assert_eq!(serving.stop("TERM").code(), Some(0));
    let (code, all) = json(&home, &["--deep"]);
    assert_eq!((code, &all["outcome"]), (0, &"clean".into()), "{all:#}");
    assert_eq!(all["pools"][0]["counts"]["drives"], 5);

    // One that is away is named; and so is a record that can't be understood.
    fs::rename(home.file("n1.img"), home.file("away.img")).unwrap();
    let (code, all) = json(&home, &[]);
    assert_eq!((code, &all["outcome"]), (1, &"damage".into()), "{all:#}");
    assert_eq!(all["drives"][0]["drive"], "n1");
    let drives = fs::read_to_string(home.file("ashlar-drives.json")).unwrap();
    fs::write(home.file("ashlar-drives.json"), "{").unwrap();
    let (code, text) = said(site(&home, &[]));
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("ashlar-drives.json: can't understand it"),
        "{text}"
    );

    // Described in the site file since, in other words.
    fs::rename(home.file("away.img"), home.file("n1.img")).unwrap();
    fs::write(home.file("ashlar-drives.json"), drives).unwrap();
    let drive = "[[drive]]\nname = \"other\"\nfile = \"./n1.img\"\nsize = \"64 MiB\"\n";
    let listed = SITE.replace(
        "drives = [\"d0\", \"d1\"]",
        "drives = [\"d0\", \"d1\"]\nspares = [\"other\"]",
    );
    home.set_site(&(listed + drive));
    let (code, all) = json(&home, &[]);
    assert_eq!((code, &all["outcome"]), (0, &"clean".into()), "{all:#}");
}
