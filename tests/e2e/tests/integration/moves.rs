//! Volumes that go to another pool while hosts write to them: nothing acknowledged is lost
//! or torn, sessions go on, and a kill at any moment leaves one pool that has the volume.

use base::Prng;
use e2e::array::Array;
use e2e::initiator::Initiator;
use e2e::ledger::Ledger;
use e2e::program::run as run_program;
use e2e::writer::{fill, verify, write_until_lost};
use serde_json::Value;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

const VOLUME_MIB: u64 = 40;
const NAMES: [&str; 2] = ["v0", "v1"];

fn target(name: &str) -> String {
    format!("iqn.2026-11.dev.ashlar:{name}")
}

/// Two pools of two lanes each on two shards, of other levels and pages, and one that is
/// too small for any volume.
fn site() -> String {
    let mut text = "[site]\nname = \"moves\"\nshards = 2\n[api]\nlisten = \"127.0.0.1:0\"\n\
                    [[portal]]\naddress = \"127.0.0.1:0\"\n"
        .to_owned();
    for (name, mib) in [
        ("a0", 112),
        ("a1", 112),
        ("a2", 112),
        ("b0", 288),
        ("b1", 288),
        ("c0", 64),
    ] {
        text +=
            &format!("[[drive]]\nname = \"{name}\"\nfile = \"{name}.img\"\nsize = \"{mib} MiB\"\n");
    }
    text += "[[pool]]\nname = \"a\"\nlevel = \"5\"\nlanes = 2\npage = \"64 KiB\"\n\
             drives = [\"a0\", \"a1\", \"a2\"]\n\
             [[pool]]\nname = \"b\"\nlevel = \"10\"\nlanes = 2\npage = \"64 KiB\"\ndrives = [\"b0\", \"b1\"]\n\
             [[pool]]\nname = \"c\"\nlevel = \"simple\"\ndrives = [\"c0\"]\n";
    for name in NAMES {
        let target = target(name);
        text += &format!(
            "[[volume]]\nname = \"{name}\"\npool = \"a\"\nsize = \"{VOLUME_MIB} MiB\"\n\
             [[export]]\ntarget = \"{target}\"\nvolumes = [\"{name}\"]\ninitiators = \"any\"\n"
        );
    }
    text
}

/// A host that writes until the server is gone.
struct Host {
    end: JoinHandle<Ledger>,
    acknowledged: Receiver<()>,
}

impl Host {
    fn start(array: &Array, name: &str, ledger: Ledger, prng: Prng) -> Host {
        let host = format!("iqn.2026-11.dev.ashlar:host-{name}");
        let initiator = Initiator::login(array.portal(), &host, &target(name)).unwrap();
        let (sender, acknowledged) = channel();
        let end = thread::spawn(move || write_until_lost(initiator, ledger, prng, &sender));
        Host { end, acknowledged }
    }

    /// Its load goes on, in the session that it began with.
    fn goes_on(&self, commands: usize) {
        // What has ended before says nothing.
        self.acknowledged.try_iter().for_each(drop);
        let ended = self.acknowledged.iter().take(commands).count();
        assert_eq!(ended, commands, "the load runs on");
    }

    fn join(self) -> Ledger {
        self.end.join().expect("a host found an error")
    }
}

fn ledgers(array: &Array) -> Vec<Ledger> {
    let filled = NAMES.map(|name| {
        let mut ledger = Ledger::new(0..VOLUME_MIB << 11);
        let mut half = Ledger::new(0..VOLUME_MIB << 10);
        fill(array.portal(), &target(name), &mut half);
        for lba in (0..VOLUME_MIB << 10).step_by(512) {
            let number = ledger.next_number();
            ledger.acknowledged(number, lba, 512);
        }
        ledger
    });
    filled.into()
}

fn pool_of(array: &Array, name: &str) -> String {
    let shown = array.json(&["volume", "show", name]);
    shown["pool"].as_str().unwrap().to_owned()
}

/// Moves a volume, waits for the end, and prints how long it stood still.
fn move_to(array: &Array, name: &str, pool: &str) {
    let job = array.json(&["volume", "move", name, "--pool", pool]);
    assert_eq!(job["state"], "done", "{job:#}");
    let stall_us = job["stall_us"].as_u64().expect("it says so");
    println!("{name} to {pool}: it stood still {stall_us} us");
    assert_eq!(pool_of(array, name), pool);
}

fn assert_clean(array: &Array) {
    let (code, said) = array.fsck();
    let outcome = (code, &said["outcome"]);
    assert_eq!(outcome, (Some(0), &"clean".into()), "{said:#}");
}

#[test]
fn volumes_move_there_and_back_under_load() {
    let mut array = Array::start_with(&site());
    let prng = Prng::from_seed(7);
    let uuids = NAMES.map(|name| array.json(&["volume", "show", name])["uuid"].clone());
    let mut ledgers = ledgers(&array);
    let hosts: Vec<Host> = NAMES
        .iter()
        .zip(ledgers.drain(..))
        .map(|(name, ledger)| Host::start(&array, name, ledger, prng.stream(name)))
        .collect();
    let sessions = array.json(&["session", "list"]);
    let tsih = |sessions: &Value| -> Vec<Value> {
        let all = sessions.as_array().unwrap().iter();
        all.map(|session| session["tsih"].clone()).collect()
    };
    // The second one first: their ends are on different shards then.
    for pool in ["b", "a", "b"] {
        for (name, host) in NAMES.iter().zip(&hosts).rev() {
            move_to(&array, name, pool);
            host.goes_on(60);
        }
    }
    let after = array.json(&["session", "list"]);
    assert_eq!(tsih(&after), tsih(&sessions), "nobody had to log in again");
    let now = NAMES.map(|name| array.json(&["volume", "show", name])["uuid"].clone());
    assert_eq!(now, uuids);
    let left = array.json(&["pool", "show", "a"]);
    assert_eq!(left["mapped_bytes"], 0, "{left:#}");
    array.kill();
    let mut ledgers: Vec<Ledger> = hosts.into_iter().map(Host::join).collect();
    // The site file says pool a still.
    array.start_again();
    for (name, ledger) in NAMES.iter().zip(&mut ledgers) {
        assert_eq!(pool_of(&array, name), "b");
        verify(array.portal(), &target(name), ledger, "after the moves");
    }
    assert!(array.stop().success());
    assert_clean(&array);
}

#[test]
fn kills_at_any_moment_leave_one_volume_and_the_move_goes_on() {
    let mut array = Array::start_with(&site());
    let mut prng = Prng::from_seed(11);
    let name = NAMES[1];
    let mut ledger = ledgers(&array).remove(1);
    for round in 0..6 {
        let from = pool_of(&array, name);
        let to = if from == "a" { "b" } else { "a" };
        let host = Host::start(&array, name, ledger, prng.stream(&format!("round {round}")));
        let mut command = vec!["volume", "move", name, "--pool", to, "--detach"];
        if round % 2 == 0 {
            command.extend(["--rate", "60 MiB"]);
        }
        array.command(&command).ok();
        host.goes_on(prng.between(1, 400) as usize);
        array.kill();
        ledger = host.join();
        if round == 3 {
            array.start_and_kill(prng.below(3000));
        }
        array.start_again();
        verify(
            array.portal(),
            &target(name),
            &mut ledger,
            &format!("after kill {round}"),
        );
        let ended = array.wait_for(&["job", "list"], |jobs| {
            let mut states = jobs.as_array().unwrap().iter().map(|job| &job["state"]);
            states.all(|state| state == "done" || state == "failed")
        });
        let last = ended.as_array().unwrap().last().unwrap();
        assert_eq!(last["state"], "done", "{last:#}");
        assert_eq!(pool_of(&array, name), to);
        verify(
            array.portal(),
            &target(name),
            &mut ledger,
            &format!("moved, round {round}"),
        );
    }
    assert!(array.stop().success());
    assert_clean(&array);
}

#[test]
fn what_moved_is_identical_to_qemu_img_and_a_cancelled_move_leaves_nothing() {
    let mut array = Array::start_with(&site());
    let (name, other) = (NAMES[0], NAMES[1]);
    let url = |array: &Array| format!("{}/{}/0", array.portal_url(), target(name));
    let writes = [
        "write -P 1 0 4M",
        "write -P 2 5000k 3k",
        "write -P 3 20M 8M",
        "discard 21M 1M",
    ];
    let mut line = vec!["-f", "raw"];
    writes.iter().for_each(|write| line.extend(["-c", write]));
    let lun = url(&array);
    line.push(&lun);
    run_program("qemu-io", &line).ok();
    let before = array.file("before.raw").display().to_string();
    run_program(
        "qemu-img",
        &["convert", "-f", "raw", "-O", "raw", &lun, &before],
    )
    .ok();
    let compare = |array: &Array| {
        let lun = url(array);
        run_program(
            "qemu-img",
            &["compare", "-f", "raw", "-F", "raw", &lun, &before],
        )
        .ok();
    };
    // Slowly, and then not at all.
    let slow = [
        "volume", "move", name, "--pool", "b", "--rate", "1 MiB", "--detach",
    ];
    array.command(&slow).ok();
    array.wait_for(&["job", "show", "1"], |job| {
        job["done_bytes"].as_u64() > Some(0)
    });
    for wrong in [
        &["volume", "resize", name, "--size", "48 MiB"][..],
        &["volume", "rename", name, "other"],
        &["volume", "delete", name, "--yes", "--force"],
        &["volume", "convert", name, "--thick"],
        &["volume", "move", name, "--pool", "b"],
        &["snapshot", "create", "v0@now"],
    ] {
        let refused = array.command(wrong);
        assert_ne!(refused.code, Some(0), "{wrong:?}: {refused:?}");
    }
    array.command(&["job", "cancel", "1"]).ok();
    assert_eq!(pool_of(&array, name), "a");
    let b = array.json(&["pool", "show", "b"]);
    assert_eq!(b["mapped_bytes"], 0, "{b:#}");
    compare(&array);
    move_to(&array, name, "b");
    compare(&array);
    let mapped = array.json(&["volume", "show", name])["mapped_bytes"].clone();
    assert_eq!(
        mapped,
        Value::from((4 << 20) + (64 << 10) + (7 << 20)),
        "sparse stays sparse"
    );
    array.kill();
    array.start_again();
    compare(&array);
    // What is refused changes nothing.
    fill_some(&array, other);
    let ballast = [
        "volume", "create", "ballast", "--pool", "c", "--size", "24 MiB", "--thick",
    ];
    array.command(&ballast).ok();
    array.command(&["snapshot", "create", "v1@kept"]).ok();
    for (wrong, why) in [
        (vec![name, "--pool", "b"], "is in pool b already"),
        (vec![name, "--pool", "nowhere"], "there is no pool nowhere"),
        (vec!["nobody", "--pool", "b"], "there is no volume nobody"),
        (vec![other, "--pool", "c", "--leave-snapshots"], "free"),
        (vec![other, "--pool", "b"], "--leave-snapshots"),
        (vec!["v1@kept", "--pool", "b"], "is a snapshot"),
        (vec![name, "--abandon"], "is not withheld"),
    ] {
        let refused = array.command(&[&["volume", "move"], &wrong[..]].concat());
        assert_ne!(refused.code, Some(0), "{wrong:?}");
        assert!(
            refused.stderr.contains(why),
            "{wrong:?}: {}",
            refused.stderr
        );
    }
    let stays = ["volume", "move", other, "--pool", "b", "--leave-snapshots"];
    array.command(&stays).ok();
    let snapshot = array.json(&["snapshot", "show", "v1@kept"]);
    assert_eq!(snapshot["pool"], "a", "{snapshot:#}");
    array.command(&["volume", "clone", "v1@kept", "again"]).ok();
    assert!(array.stop().success());
    assert_clean(&array);
}

/// Writes more than the smallest pool has room for.
fn fill_some(array: &Array, name: &str) {
    let lun = format!("{}/{}/0", array.portal_url(), target(name));
    run_program("qemu-io", &["-f", "raw", "-c", "write -P 5 0 40M", &lun]).ok();
}
