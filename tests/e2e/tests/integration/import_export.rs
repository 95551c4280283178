//! Images in and out: what `qemu-img` made comes in as it is, what goes out is what
//! `qemu-img` reads, holes stay holes, and a killed server goes on where it was.

use e2e::array::{Array, TARGET};
use e2e::image_files::{ImageFiles, number, volumes, wait_ended};
use e2e::initiator::Initiator;

const MIB: u64 = 1 << 20;
const PAGE: u64 = 256 << 10;

const DISK: u64 = 96 * MIB;

/// Data at the beginning, across a page, in the middle of a cluster, and in the last sector;
/// in 1 + 2 + 5 + 1 + 1 pages.
const RUNS: [(u64, usize); 5] = [
    (0, 70_000),
    (9 * PAGE - 4096, 8192),
    (20 * MIB, 5 << 18),
    (50 * MIB + 12_288, 512),
    (DISK - 512, 512),
];
const PAGES: u64 = 10;

/// Formats as `qemu-img` and as we name them, with the option of a kind.
const KINDS: [(&str, Option<&str>); 7] = [
    ("raw", None),
    ("qcow2", None),
    ("qcow2", Some("cluster_size=2M")),
    ("vhdx", Some("subformat=dynamic")),
    ("vhdx", Some("subformat=fixed")),
    ("vmdk", Some("subformat=monolithicSparse")),
    ("vmdk", Some("subformat=streamOptimized")),
];

#[test]
fn every_format_comes_in_and_goes_out() {
    let files = ImageFiles::new();
    files.raw("disk", DISK, &RUNS);
    let sum = files.sha256("disk");
    let array = files.serve(512);
    for (at, (format, option)) in KINDS.into_iter().enumerate() {
        let (name, back) = (format!("in{at}.{format}"), format!("out{at}.{format}"));
        let made: Vec<&str> = [format]
            .into_iter()
            .chain(option.iter().flat_map(|o| ["-o", o]))
            .collect();
        files.convert("disk", &made, &name);
        let volume = format!("volume{at}");
        let (path, to) = (files.path(&name), files.path(&back));
        let import = [
            "volume", "import", &path, "--pool", "p", "--name", &volume, "--verify",
        ];
        let job = array.json(&import);
        assert_eq!(
            (&job["state"], &job["sha256"]),
            (&"done".into(), &sum.as_str().into())
        );
        let shown = array.json(&["volume", "show", &volume]);
        assert_eq!(shown["size_bytes"], DISK);
        assert_eq!(shown["mapped_bytes"], PAGES * PAGE, "{name}: {shown}");

        let mut export = vec![
            "volume", "export", &volume, &to, "--format", format, "--verify",
        ];
        export.extend(option.iter().flat_map(|option| ["--option", option]));
        let job = array.json(&export);
        assert_eq!(
            (&job["state"], &job["sha256"]),
            (&"done".into(), &sum.as_str().into())
        );
        files.compare((&back, format), ("disk", "raw"));
        // Tables of formats beside: a disk of which all was written would take 96 MiB.
        let taken = files.taken_bytes(&back);
        let grain = if option == Some("cluster_size=2M") {
            20 * MIB
        } else {
            8 * MIB
        };
        assert!(taken < grain, "{back} takes {taken}");
    }
    files.wait_no_process(&array);
    let strays = files
        .names()
        .into_iter()
        .filter(|name| name.starts_with('.'));
    assert_eq!(strays.count(), 0);
}

#[test]
fn a_chain_of_images_is_one_disk() {
    let files = ImageFiles::new();
    files.raw("base.raw", DISK, &RUNS);
    let array = files.serve(256);
    let (base, top) = (files.path("base.raw"), files.path("top.qcow2"));
    let over = [
        "create", "-q", "-f", "qcow2", "-b", &base, "-F", "raw", &top,
    ];
    e2e::program::run("qemu-img", &over).ok();
    let write = [
        "-f",
        "qcow2",
        "-c",
        "write -P 9 1M 64k",
        "-c",
        "write -z 20M 256k",
        &top,
    ];
    e2e::program::run("qemu-io", &write).ok();
    let import = [
        "volume", "import", &top, "--pool", "p", "--name", "chain", "--verify",
    ];
    array.json(&import);
    let back = files.path("back.raw");
    array.json(&["volume", "export", "chain", &back, "--format", "raw"]);
    files.compare(("top.qcow2", "qcow2"), ("back.raw", "raw"));
    // One page more than below, and one less.
    let shown = array.json(&["volume", "show", "chain"]);
    assert_eq!(shown["mapped_bytes"], PAGES * PAGE);
}

/// Begins an import that takes some seconds, and waits until some of it is on record.
fn slow_import(array: &Array, path: &str) -> String {
    let import = [
        "volume", "import", path, "--pool", "p", "--name", "slow", "--detach",
    ];
    let job = array.json(&[&import[..], &["--rate", "5 MiB"]].concat());
    let id = number(&job);
    let some = |job: &serde_json::Value| job["kept_bytes"].as_u64() > Some(0);
    let job = array.wait_for(&["job", "show", &id], some);
    assert_eq!(job["state"], "running", "{job}");
    id
}

fn refused(array: &Array, arguments: &[&str], code: i32, why: &str) {
    let ended = array.command(arguments);
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
}

#[test]
fn an_import_goes_on_after_a_kill() {
    let files = ImageFiles::new();
    files.raw("disk", 40 * MIB, &[(0, 40 << 20)]);
    files.convert("disk", &["qcow2"], "disk.qcow2");
    let sum = files.sha256("disk");
    let mut array = files.serve(256);
    for name in ["disk", "disk.qcow2"] {
        let id = slow_import(&array, &files.path(name));
        // Nobody else gets what is not whole.
        refused(
            &array,
            &["volume", "delete", "--yes", "slow"],
            6,
            "is being imported",
        );
        refused(
            &array,
            &["volume", "resize", "slow", "--size", "80 MiB"],
            6,
            "is being imported",
        );
        let export = [
            "export",
            "create",
            "--any",
            "iqn.2026-11.dev.ashlar:x",
            "--volume",
            "slow",
        ];
        refused(&array, &export, 6, "is being imported");
        refused(
            &array,
            &["volume", "rename", "slow", "fast"],
            6,
            "is being imported",
        );
        refused(
            &array,
            &["volume", "clone", "slow", "other"],
            6,
            "is being imported",
        );
        refused(
            &array,
            &["snapshot", "create", "slow@s"],
            6,
            "is being imported",
        );
        let to = files.path("no.raw");
        refused(
            &array,
            &["volume", "export", "slow", &to, "--format", "raw"],
            6,
            "is being imported",
        );
        array.kill();
        files.wait_no_process(&array);
        array.start_again();
        let job = wait_ended(&array, &id);
        assert_eq!(job["state"], "done", "{job}");
        assert_eq!(job["sha256"], sum.as_str());
        assert!(job["resumed_bytes"].as_u64() > Some(0), "{job}");
        assert!(job["data_bytes"].as_u64() < Some(40 * MIB), "{job}");
        let back = files.path("back.raw");
        array.json(&["volume", "export", "slow", &back, "--format", "raw"]);
        files.compare(("disk", "raw"), ("back.raw", "raw"));
        std::fs::remove_file(&back).unwrap();
        array
            .command(&["volume", "delete", "slow", "--yes", "--at-once"])
            .ok();
    }
}

#[test]
fn an_export_goes_on_after_a_kill_if_the_volume_is_the_same() {
    let files = ImageFiles::new();
    files.raw("disk", 24 * MIB, &[(0, 24 << 20)]);
    let mut array = files.serve(256);
    let disk = files.path("disk");
    array.json(&["volume", "import", &disk, "--pool", "p", "--name", "disk"]);
    for at in [1, 3, 5, 6] {
        let (format, option) = KINDS[at];
        let to = files.path(&format!("out.{format}"));
        let mut export = vec![
            "volume", "export", "disk", &to, "--format", format, "--detach",
        ];
        export.extend(["--rate", "4 MiB", "--verify"]);
        export.extend(option.iter().flat_map(|option| ["--option", option]));
        let id = number(&array.json(&export));
        array.wait_for(&["job", "show", &id], |job| {
            job["kept_bytes"].as_u64() > Some(0)
        });
        refused(
            &array,
            &["volume", "delete", "disk", "--yes"],
            6,
            "is being exported",
        );
        array.kill();
        assert!(
            !std::path::Path::new(&to).exists(),
            "half an image has no name"
        );
        array.start_again();
        let job = wait_ended(&array, &id);
        assert_eq!(job["state"], "done", "{job}");
        // What QEMU can't write twice is begun anew.
        let anew = option == Some("subformat=streamOptimized");
        assert_eq!(job["resumed_bytes"].as_u64() == Some(0), anew, "{job}");
        files.compare((&format!("out.{format}"), format), ("disk", "raw"));
        std::fs::remove_file(&to).unwrap();
    }
    let names = files.names();
    assert_eq!(names, ["disk"]);
}

#[test]
fn an_export_begins_anew_when_what_it_had_is_not_what_the_volume_has() {
    let files = ImageFiles::new();
    files.raw("disk", 24 * MIB, &[(0, 24 << 20)]);
    let mut array = files.serve(256);
    let disk = files.path("disk");
    array.json(&["volume", "import", &disk, "--pool", "p", "--name", "disk"]);
    let to = files.path("out.raw");
    let export = ["volume", "export", "disk", &to, "--format", "raw"];
    let slow = [&export[..], &["--rate", "4 MiB", "--detach"]].concat();
    let id = number(&array.json(&slow));
    let record = array.file("ashlar-jobs.json");
    let kept = || -> serde_json::Value {
        let text = std::fs::read_to_string(&record).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    // It is told of before it is on record.
    array.wait_for(&["job", "show", &id], |job| {
        let jobs = &kept()["content"];
        let last = jobs.as_array().and_then(|jobs| jobs.last());
        job["kept_bytes"].as_u64() > Some(0) && last.is_some_and(|job| !job["checkpoint"].is_null())
    });
    array.kill();
    // As if the volume had been another one: the sum of what is copied differs.
    let mut kept = kept();
    let jobs = kept["content"].as_array_mut().unwrap();
    let word = &mut jobs.last_mut().unwrap()["checkpoint"]["state"][0];
    *word = (word.as_u64().unwrap() ^ 1).into();
    std::fs::write(&record, kept.to_string()).unwrap();
    array.start_again();
    let job = wait_ended(&array, &id);
    assert_eq!(
        (&job["state"], &job["resumed_bytes"]),
        (&"done".into(), &0.into())
    );
    assert_eq!(job["sha256"], files.sha256("disk").as_str());
    files.compare(("disk", "raw"), ("out.raw", "raw"));
}

#[test]
fn a_volume_that_hosts_may_write_to_is_exported_only_when_asked_for() {
    let files = ImageFiles::new();
    let array = files.serve(256);
    let mut host = Initiator::login(array.portal(), "iqn.x:host", TARGET).unwrap();
    host.write(0, vec![1; 4096]).unwrap();
    let to = files.path("out.raw");
    let export = ["volume", "export", "v", &to, "--format", "raw"];
    refused(&array, &export, 6, "iqn.x:host is logged in");
    array.json(&[&export[..], &["--live"]].concat());
    std::fs::remove_file(&to).unwrap();
    // A snapshot of it is nobody's to write to.
    array.command(&["snapshot", "create", "v@now"]).ok();
    host.write(0, vec![2; 4096]).unwrap();
    array.json(&[
        "volume", "export", "v@now", &to, "--format", "raw", "--verify",
    ]);
    let head = std::fs::read(&to).unwrap();
    assert_eq!(head[..4096], [1; 4096]);
    std::fs::remove_file(&to).unwrap();
    drop(host);
    array.wait_for(&["session", "list"], |list| {
        list.as_array().is_some_and(Vec::is_empty)
    });
    let slow = [&export[..], &["--rate", "512 KiB", "--detach"]].concat();
    host = Initiator::login(array.portal(), "iqn.x:host", TARGET).unwrap();
    host.write(8192, vec![1; 4 << 20]).unwrap();
    drop(host);
    array.wait_for(&["session", "list"], |list| {
        list.as_array().is_some_and(Vec::is_empty)
    });
    let id = number(&array.json(&slow));
    // It is under way for some time; a host that comes ends it.
    let host = Initiator::login(array.portal(), "iqn.x:host", TARGET).unwrap();
    let job = wait_ended(&array, &id);
    assert_eq!(job["state"], "failed", "{job}");
    assert!(
        job["error"].as_str().unwrap().contains("is logged in"),
        "{job}"
    );
    assert!(files.names().is_empty(), "{:?}", files.names());
    drop(host);
}

#[test]
fn a_source_that_is_away_is_waited_for_and_one_that_changed_is_not_taken() {
    let files = ImageFiles::new();
    files.raw("disk", 40 * MIB, &[(0, 40 << 20)]);
    let sum = files.sha256("disk");
    let mut array = files.serve(256);
    let (path, away) = (files.path("disk"), files.path("away"));
    let id = slow_import(&array, &path);
    array.stop();
    std::fs::rename(&path, &away).unwrap();
    array.start_again();
    let job = array.wait_for(&["job", "show", &id], |job| job["state"] == "waiting");
    assert!(
        job["error"].as_str().unwrap().contains("No such file"),
        "{job}"
    );
    std::fs::rename(&away, &path).unwrap();
    let job = wait_ended(&array, &id);
    assert_eq!(
        (&job["state"], &job["sha256"]),
        (&"done".into(), &sum.as_str().into())
    );
    array
        .command(&["volume", "delete", "slow", "--yes", "--at-once"])
        .ok();

    let id = slow_import(&array, &path);
    array.stop();
    files.raw("disk", 40 * MIB, &[(MIB, 30 << 20)]);
    array.start_again();
    let job = wait_ended(&array, &id);
    assert_eq!(job["state"], "failed", "{job}");
    assert!(
        job["error"].as_str().unwrap().contains("has changed"),
        "{job}"
    );
    assert_eq!(volumes(&array), ["v"]);
}

#[test]
fn a_cancelled_job_takes_back_what_it_made() {
    let files = ImageFiles::new();
    files.raw("disk", 40 * MIB, &[(0, 40 << 20)]);
    files.convert("disk", &["qcow2"], "disk.qcow2");
    let array = files.serve(256);
    let before = files.names();
    let id = slow_import(&array, &files.path("disk.qcow2"));
    array.command(&["job", "cancel", &id]).ok();
    assert_eq!(array.json(&["job", "show", &id])["state"], "cancelled");
    files.wait_no_process(&array);
    assert_eq!(volumes(&array), ["v"]);
    array.command(&["job", "cancel", &id]).ok();
    refused(&array, &["job", "show", &id], 5, "there is no job");

    let disk = files.path("disk");
    array.json(&["volume", "import", &disk, "--pool", "p", "--name", "whole"]);
    let to = files.path("out.vmdk");
    let export = [
        "volume", "export", "whole", &to, "--format", "vmdk", "--rate", "4 MiB",
    ];
    let id = number(&array.json(&[&export[..], &["--detach"]].concat()));
    array.wait_for(&["job", "show", &id], |job| {
        job["done_bytes"].as_u64() > Some(0)
    });
    array.command(&["job", "cancel", &id]).ok();
    files.wait_no_process(&array);
    assert_eq!(files.names(), before);
    let status = array.json(&["pool", "show", "p"]);
    assert_eq!(status["mapped_bytes"], 40 * MIB, "{status}");
}
