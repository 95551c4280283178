//! Snapshots and clones of a volume that QEMU's tools write to meanwhile.

use e2e::array::Array;
use e2e::qemu_io::{QemuIo, Run, verify};
use e2e::site_text::OnePool;
use e2e::{pattern, program};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const IMAGE_BYTES: usize = 16 << 20;
/// The writer goes round through this part of the volume, slot by slot.
const SLOTS: u64 = 40;
const SLOT_BYTES: u64 = 96 << 10;

/// Writes one after the other until it is told to end. The n-th round has the value n.
struct Writer {
    ended: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Writer {
    fn start(url: &str) -> Self {
        let mut host = QemuIo::open(url);
        let ended = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicU64::new(0));
        let (end, count) = (Arc::clone(&ended), Arc::clone(&acknowledged));
        let thread = std::thread::spawn(move || {
            for n in 0.. {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let run = Run {
                    at: n % SLOTS * SLOT_BYTES,
                    len_bytes: SLOT_BYTES,
                    value: value(n),
                };
                assert!(host.write(run), "{run:?} fails");
                count.store(n + 1, Ordering::SeqCst);
            }
        });
        Writer {
            ended,
            acknowledged,
            thread,
        }
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits for so many more writes.
    fn wait_for(&self, more: u64) {
        let wanted = self.acknowledged() + more;
        while self.acknowledged() < wanted {
            assert!(!self.thread.is_finished(), "the writer has ended");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(self) {
        self.ended.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
    }
}

/// What the n-th write writes.
fn value(n: u64) -> u8 {
    (n / SLOTS % 250) as u8 + 1
}

fn qemu_img(arguments: &[&str]) -> program::Ended {
    program::run("qemu-img", arguments)
}

fn compare(one: &str, other: &str) -> Option<i32> {
    qemu_img(&["compare", "-f", "raw", "-F", "raw", one, other]).code
}

/// Shows a volume or snapshot behind a target of its own, and gives its URL.
fn export(array: &Array, volume: &str, number: usize) -> String {
    let target = format!("iqn.2026-11.dev.ashlar:s{number}");
    let create = ["export", "create", "--any", &target, "--volume", volume];
    array.command(&create).ok();
    url(array, number)
}

fn url(array: &Array, number: usize) -> String {
    format!("{}/iqn.2026-11.dev.ashlar:s{number}/0", array.portal_url())
}

fn copy(url: &str, home: &Path, name: &str) -> PathBuf {
    let file = home.join(name);
    let path = file.to_str().unwrap();
    qemu_img(&["convert", "-f", "raw", "-O", "raw", url, path]).ok();
    file
}

/// That a copy of a snapshot is the volume after one write and before the next, with
/// a number of writes from `least` to `most`.
fn check_instant(file: &Path, least: u64, most: u64) {
    let bytes = std::fs::read(file).unwrap();
    let slots = bytes.chunks(SLOT_BYTES as usize).take(SLOTS as usize);
    let seen: Vec<u8> = slots
        .map(|slot| {
            assert!(slot.iter().all(|byte| *byte == slot[0]), "a torn write");
            slot[0]
        })
        .collect();
    let after = |count: u64| {
        let last = |slot: u64| {
            let rounds = (count + SLOTS - 1 - slot) / SLOTS;
            value((rounds - 1) * SLOTS + slot)
        };
        (0..SLOTS).map(last).collect::<Vec<_>>()
    };
    let fits = (least..=most).any(|count| after(count) == seen);
    assert!(fits, "after {least} to {most} writes: {seen:?}");
}

#[test]
fn snapshots_under_load_are_of_one_instant_and_stay_as_they_are() {
    let mut array = Array::start();
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("image");
    pattern::file(&image, 5, IMAGE_BYTES);
    let (lun, image) = (array.lun_url(0), image.to_str().unwrap());
    qemu_img(&["convert", "-n", "-f", "raw", "-O", "raw", image, &lun]).ok();
    array.command(&["snapshot", "create", "thin@quiet"]).ok();

    let writer = Writer::start(&lun);
    writer.wait_for(SLOTS);
    let mut copies = Vec::new();
    for number in 0..3 {
        let (name, least) = (format!("thin@s{number}"), writer.acknowledged());
        array.command(&["snapshot", "create", &name]).ok();
        // One was acknowledged by the server, and not seen here yet.
        let most = writer.acknowledged() + 1;
        let file = copy(&export(&array, &name, number), home.path(), &name);
        check_instant(&file, least, most);
        copies.push(file);
        writer.wait_for(SLOTS / 2);
    }
    // The name of a volume in use changes, and nobody notices.
    array.command(&["volume", "rename", "thin", "web"]).ok();
    let quiet = export(&array, "web@quiet", 10);
    array.command(&["volume", "clone", "web@s1", "clone"]).ok();
    let clone = export(&array, "clone", 11);
    writer.wait_for(SLOTS);

    assert_eq!(compare(&quiet, image), Some(0), "as the image was");
    let check = |array: &Array| {
        for (number, file) in copies.iter().enumerate() {
            let same = compare(&url(array, number), file.to_str().unwrap());
            assert_eq!(same, Some(0), "snapshot {number}");
        }
    };
    check(&array);
    assert_eq!(compare(&clone, copies[1].to_str().unwrap()), Some(0));

    // A clone goes its own way; a snapshot is not written.
    let run = Run {
        at: 5 << 20,
        len_bytes: 300 << 10,
        value: 251,
    };
    assert!(QemuIo::open(&clone).write(run));
    verify(&clone, &[run]);
    assert_eq!(compare(&clone, copies[1].to_str().unwrap()), Some(1));
    let write = ["-f", "raw", "-c", "write 0 512", &url(&array, 1)];
    let refused = program::run("qemu-io", &write);
    assert!(
        !refused.success || refused.stdout.contains("failed"),
        "{refused:?}"
    );
    check(&array);
    writer.end();

    array.kill();
    array.start_again();
    check(&array);
    verify(&url(&array, 11), &[run]);
    assert_eq!(compare(&url(&array, 10), image), Some(0));
    let list = array.json(&["snapshot", "list", "web"]);
    assert_eq!(list.as_array().unwrap().len(), 4, "{list}");

    // Nobody is logged in: the volume becomes what the first one is.
    array
        .command(&[
            "snapshot",
            "restore",
            "web@quiet",
            "--keep",
            "later",
            "--force",
            "--yes",
        ])
        .ok();
    assert_eq!(compare(&array.lun_url(0), image), Some(0));
    check(&array);
    let later = export(&array, "web@later", 12);
    assert_eq!(compare(&later, image), Some(1));
    assert_eq!(array.stop().code(), Some(0));
    assert_eq!(array.fsck().0, Some(0));
}

#[test]
fn a_volume_of_another_shard_is_renamed_and_shown_as_a_snapshot_too() {
    let site = OnePool {
        level: "10",
        drives: 2,
        spares: 0,
        drive_mib: 256,
        volume_mib: 16,
    };
    let text = site
        .text()
        .replacen("name = \"e2e\"", "name = \"e2e\"\nshards = 2", 1);
    let text = text.replacen("level = ", "lanes = 2\nlevel = ", 1);
    let array = Array::start_with(&text);
    // Each goes where less is: not with `v`, then with it.
    for name in ["a", "b"] {
        let create = ["volume", "create", name, "--pool", "p", "--size", "16 MiB"];
        array.command(&create).ok();
    }
    let target = "iqn.2026-11.dev.ashlar:both";
    let create = [
        "export", "create", "--any", target, "--volume", "a", "--volume", "b",
    ];
    array.command(&create).ok();
    let lun = |lun: usize| format!("{}/{target}/{lun}", array.portal_url());
    let run = |value| Run {
        at: 0,
        len_bytes: 1 << 20,
        value,
    };
    let mut hosts = [QemuIo::open(&lun(0)), QemuIo::open(&lun(1))];
    for (name, host) in ["a", "b"].iter().zip(&mut hosts) {
        assert!(host.write(run(1)));
        array
            .command(&["snapshot", "create", &format!("{name}@s")])
            .ok();
        let new = format!("new-{name}");
        array.command(&["volume", "rename", name, &new]).ok();
        assert!(host.write(run(2)), "{name} is written under its new name");
    }
    drop(hosts);
    let snapshots = "iqn.2026-11.dev.ashlar:snapshots";
    let create = [
        "export", "create", "--any", snapshots, "--volume", "new-a@s", "--volume", "new-b@s",
    ];
    array.command(&create).ok();
    for number in 0..2 {
        verify(&lun(number), &[run(2)]);
        let url = format!("{}/{snapshots}/{number}", array.portal_url());
        verify(&url, &[run(1)]);
        let refused = program::run("qemu-io", &["-f", "raw", "-c", "write 0 512", &url]);
        assert!(!refused.success, "{refused:?}");
    }
}

#[test]
fn what_is_in_use_is_neither_restored_nor_deleted() {
    let array = Array::start();
    let lun = array.lun_url(0);
    let mut host = QemuIo::open(&lun);
    let run = |value| Run {
        at: 0,
        len_bytes: 1 << 20,
        value,
    };
    assert!(host.write(run(1)));
    array.command(&["snapshot", "create", "thin@s"]).ok();
    assert!(host.write(run(2)));
    let restore = ["snapshot", "restore", "thin@s"];
    let refused = array.command(&restore);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    let refused = array.command(&["volume", "delete", "--yes", "thin"]);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    drop(host);
    verify(&lun, &[run(2)]);
    array.wait_for(&["session", "list"], |list| {
        list.as_array().unwrap().is_empty()
    });
    array
        .command(&[&restore[..], &["--force", "--yes"]].concat())
        .ok();
    verify(&lun, &[run(1)]);
    let list = array.json(&["snapshot", "list", "thin"]);
    assert_eq!(
        list.as_array().unwrap().len(),
        2,
        "the state before is kept: {list}"
    );
}
