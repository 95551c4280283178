//! Snapshots that are taken while a host writes: several of one instant, and the same
//! whoever reads them.

use e2e::array::Array;
use e2e::image_files::ImageFiles;
use e2e::initiator::{Answer, Initiator, SECTOR};
use e2e::program;
use e2e::site_text::OnePool;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// What one write covers: parts of three pages.
const AT: u64 = 100 << 10;
const LEN: usize = 600 << 10;

/// Writes the numbers from one on, each to one volume after the other, until it is told to
/// end. Nothing is sent before what was sent before it is acknowledged.
struct Counter {
    ended: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Counter {
    fn start(portal: SocketAddr, targets: &[&str]) -> Self {
        let login = |target: &&str| Initiator::login(portal, "iqn.2026-11.test:counter", target);
        let mut hosts: Vec<Initiator> = targets.iter().map(|t| login(t).unwrap()).collect();
        let ended = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicU64::new(0));
        let (end, count) = (Arc::clone(&ended), Arc::clone(&acknowledged));
        let thread = std::thread::spawn(move || {
            for number in 1_u64.. {
                for host in &mut hosts {
                    let answer = host.write(AT / SECTOR as u64, filled(number)).unwrap();
                    assert_eq!(answer, Answer::Good(Vec::new()));
                }
                count.store(number, Ordering::SeqCst);
                if end.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        Counter {
            ended,
            acknowledged,
            thread,
        }
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits until it has counted on; gives the number then.
    fn wait(&self) -> u64 {
        let wanted = self.acknowledged() + 2;
        while self.acknowledged() < wanted {
            assert!(!self.thread.is_finished(), "the writer has ended");
            std::thread::yield_now();
        }
        self.acknowledged()
    }

    fn end(self) {
        self.ended.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
    }
}

fn filled(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(LEN / 8)
}

/// The number that a volume behind this target has, all of it the same.
fn number_in(array: &Array, target: &str) -> u64 {
    let mut host = Initiator::login(array.portal(), "iqn.2026-11.test:reader", target).unwrap();
    let read = host.read(AT / SECTOR as u64, LEN / SECTOR).unwrap();
    let Answer::Good(data) = read else {
        panic!("{read:?}");
    };
    let number = u64::from_le_bytes(data[..8].try_into().unwrap());
    assert!(data == filled(number), "{target}: a torn write");
    number
}

fn export(array: &Array, volume: &str, target: &str) {
    let create = ["export", "create", "--any", target, "--volume", volume];
    array.command(&create).ok();
}

/// The numbers of snapshots `name` of both volumes.
fn numbers(array: &Array, name: &str) -> (u64, u64) {
    let number = |volume: &str| {
        let target = format!("iqn.2026-11.test:{volume}.{name}");
        export(array, &format!("{volume}@{name}"), &target);
        number_in(array, &target)
    };
    (number("a"), number("b"))
}

/// One volume on each of two lanes: both have to stand still at the same time.
fn two_volumes() -> Array {
    let site = OnePool {
        level: "10",
        drives: 2,
        spares: 0,
        drive_mib: 384,
        volume_mib: 8,
    };
    let text = site
        .text()
        .replacen("name = \"e2e\"", "name = \"e2e\"\nshards = 2", 1);
    let array = Array::start_with(&text.replacen("level = ", "lanes = 2\nlevel = ", 1));
    for name in ["a", "b"] {
        let create = ["volume", "create", name, "--pool", "p", "--size", "8 MiB"];
        array.command(&create).ok();
        export(&array, name, &format!("iqn.2026-11.test:{name}"));
    }
    array
}

#[test]
fn snapshots_of_several_volumes_are_of_one_instant() {
    let array = two_volumes();
    let targets = ["iqn.2026-11.test:a", "iqn.2026-11.test:b"];
    let counter = Counter::start(array.portal(), &targets);
    let mut between = 0;
    for round in 0..40 {
        let least = counter.wait();
        let name = format!("s{round}");
        let both = [format!("a@{name}"), format!("b@{name}")];
        array
            .command(&["snapshot", "create", &both[0], &both[1]])
            .ok();
        // The next number may be on its way.
        let most = counter.acknowledged() + 1;
        let (a, b) = numbers(&array, &name);
        assert!((least..=most).contains(&a), "{least} to {most}: {a}");
        assert!(a == b || a == b + 1, "a has {a}, and b {b}");
        between += u64::from(a != b);
    }
    println!("40 groups of snapshots, {between} of them between a write to a and the same to b");

    // Taken one after the other they are not, and that shows.
    counter.wait();
    array.command(&["snapshot", "create", "a@apart"]).ok();
    counter.wait();
    array.command(&["snapshot", "create", "b@apart"]).ok();
    let (a, b) = numbers(&array, "apart");
    assert!(a < b, "a has {a}, and b {b}");
    counter.end();
}

#[test]
fn a_snapshot_under_load_is_the_same_by_iscsi_and_as_an_image() {
    let files = ImageFiles::new();
    let array = files.serve(256);
    let counter = Counter::start(array.portal(), &[e2e::array::TARGET]);
    let url = |target: &str| format!("{}/{target}/0", array.portal_url());
    for (number, format) in ["raw", "qcow2", "vhdx", "vmdk"].into_iter().enumerate() {
        let least = counter.wait();
        let snapshot = format!("v@s{number}");
        array.command(&["snapshot", "create", &snapshot]).ok();
        counter.wait();
        let target = format!("iqn.2026-11.test:s{number}");
        export(&array, &snapshot, &target);
        // The volume is in use; a snapshot of it is exported without --live.
        let image = files.path(&format!("image.{format}"));
        let arguments = ["volume", "export", &snapshot, &image, "--format", format];
        array.json(&arguments);
        let clone = format!("c{number}");
        array.command(&["volume", "clone", &snapshot, &clone]).ok();
        let of_clone = format!("iqn.2026-11.test:{clone}");
        export(&array, &clone, &of_clone);
        counter.wait();

        for target in [&target, &of_clone] {
            let compare = ["compare", "-f", "raw", "-F", format, &url(target), &image];
            let same = program::run("qemu-img", &compare);
            assert_eq!(same.code, Some(0), "{same:?}");
        }
        let seen = number_in(&array, &target);
        assert!(seen >= least && seen < counter.acknowledged());
        // The volume has gone on.
        let live = url(e2e::array::TARGET);
        let compare = ["compare", "-f", "raw", "-F", format, &live, &image];
        assert_eq!(program::run("qemu-img", &compare).code, Some(1));
    }
    counter.end();
}
