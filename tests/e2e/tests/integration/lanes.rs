//! A pool of three lanes on two shards: what holds for one lane holds for them, through
//! kills and lost drives; lanes share the pool's space; and a target shows volumes of
//! other shards as well as of its own.

use base::Prng;
use e2e::array::Array;
use e2e::initiator::Initiator;
use e2e::ledger::Ledger;
use e2e::program::run as run_program;
use e2e::writer::{fill, verify, write_until_lost};
use std::fs;
use std::sync::mpsc::channel;
use std::thread;

const HOSTS: usize = 3;
const VOLUME_MIB: u64 = 32;
/// Room for what all hosts write, beside the metadata of three lanes.
const DRIVE_MIB: u64 = 112;

fn target(host: usize) -> String {
    format!("iqn.2026-11.dev.ashlar:lane{host}")
}

/// RAID 5 of four drives with a spare, and a volume for each host behind a target of its
/// own.
fn site() -> String {
    let mut text = "[site]\nname = \"lanes\"\nshards = 2\n[api]\nlisten = \"127.0.0.1:0\"\n\
                    [[portal]]\naddress = \"127.0.0.1:0\"\n"
        .to_owned();
    for name in ["d0", "d1", "d2", "d3", "s0"] {
        text += &format!(
            "[[drive]]\nname = \"{name}\"\nfile = \"{name}.img\"\nsize = \"{DRIVE_MIB} MiB\"\n"
        );
    }
    text += "[[pool]]\nname = \"p\"\nlevel = \"5\"\nlanes = 3\npage = \"64 KiB\"\n\
             drives = [\"d0\", \"d1\", \"d2\", \"d3\"]\nspares = [\"s0\"]\n";
    for host in 0..HOSTS {
        let target = target(host);
        text += &format!(
            "[[volume]]\nname = \"v{host}\"\npool = \"p\"\nsize = \"{VOLUME_MIB} MiB\"\n\
             [[export]]\ntarget = \"{target}\"\nvolumes = [\"v{host}\"]\ninitiators = \"any\"\n"
        );
    }
    text
}

/// Writes from all hosts at once, and a kill in the middle of it.
fn load_and_kill(array: &mut Array, ledgers: &mut [Ledger], prng: &mut Prng) {
    let (sender, ends) = channel();
    let mut hosts = Vec::new();
    for (number, ledger) in ledgers.iter_mut().enumerate() {
        let name = format!("iqn.2026-11.dev.ashlar:host{number}");
        let initiator = Initiator::login(array.portal(), &name, &target(number)).unwrap();
        let ledger = std::mem::replace(ledger, Ledger::new(0..1));
        let prng = prng.stream(&format!("{number} {}", prng.clone().next_u64()));
        let sender = sender.clone();
        hosts.push(thread::spawn(move || {
            write_until_lost(initiator, ledger, prng, &sender)
        }));
    }
    drop(sender);
    let wanted = prng.between(50, 600) as usize;
    assert_eq!(ends.iter().take(wanted).count(), wanted, "the load runs");
    array.kill();
    for (ledger, host) in ledgers.iter_mut().zip(hosts) {
        *ledger = host.join().expect("a host found an error");
    }
}

fn read_back(array: &Array, ledgers: &mut [Ledger], when: &str) {
    for (host, ledger) in ledgers.iter_mut().enumerate() {
        verify(array.portal(), &target(host), ledger, when);
    }
}

fn assert_clean(array: &Array) {
    let (code, said) = array.fsck();
    let outcome = (code, &said["outcome"]);
    assert_eq!(outcome, (Some(0), &"clean".into()), "{said:#}");
}

#[test]
fn lanes_survive_kills_and_lost_drives() {
    let mut array = Array::start_with(&site());
    assert_eq!(array.json(&["pool", "show", "p"])["lanes"], 3);
    let mut prng = Prng::from_seed(33);
    let sectors = VOLUME_MIB << 11;
    let mut ledgers: Vec<Ledger> = (0..HOSTS).map(|_| Ledger::new(0..sectors)).collect();
    for round in 0..4 {
        load_and_kill(&mut array, &mut ledgers, &mut prng);
        if round == 1 {
            // The spare takes its place in all lanes.
            fs::remove_file(array.file("d1.img")).unwrap();
        }
        if prng.chance(1, 2) {
            array.start_and_kill(prng.below(2000));
        }
        array.start_again();
        read_back(&array, &mut ledgers, &format!("after kill {round}"));
    }
    array.wait_healthy();
    let places = array.json(&["pool", "show", "p"]);
    let names = places["groups"][0]["drives"].to_string();
    assert!(names.contains("s0") && !names.contains("d1"), "{places:#}");
    // A new one, under a name that there was, in the place of one that is in use.
    array
        .command(&[
            "drive", "replace", "--yes", "d2", "--with", "d9", "--file", "d9.img",
        ])
        .ok();
    array.wait_healthy();
    array.scrub();
    let clean = "has ended: 0 blocks repaired, 0 lost";
    assert!(array.scrub().ends_with(clean));
    assert!(array.stop().success());
    assert_clean(&array);
    array.start_again();
    read_back(&array, &mut ledgers, "after it was closed");
}

/// The volume of one lane may take all of the pool, and give it to another's.
#[test]
fn lanes_share_the_space_of_the_pool() {
    let mut array = Array::start_with(&site());
    let capacity = array.json(&["pool", "show", "p"])["capacity_bytes"]
        .as_u64()
        .unwrap();
    let large_mib = (capacity >> 20) * 8 / 10;
    for name in ["large", "other"] {
        let size = format!("{large_mib} MiB");
        array
            .command(&["volume", "create", name, "--pool", "p", "--size", &size])
            .ok();
        let target = format!("iqn.2026-11.dev.ashlar:{name}");
        array
            .command(&["export", "create", "--any", &target, "--volume", name])
            .ok();
        let mut ledger = Ledger::new(0..large_mib << 11);
        fill(array.portal(), &target, &mut ledger);
        verify(array.portal(), &target, &mut ledger, "when it is full");
        array.command(&["export", "delete", "--yes", &target]).ok();
        array
            .command(&["volume", "delete", name, "--yes", "--at-once"])
            .ok();
    }
    assert!(array.stop().success());
    assert_clean(&array);
}

/// Volumes that are in different lanes, behind one target.
#[test]
fn a_target_shows_volumes_of_other_shards() {
    let mut array = Array::start_with(&site());
    let names = ["a", "b", "c"];
    for name in names {
        array
            .command(&["volume", "create", name, "--pool", "p", "--size", "16 MiB"])
            .ok();
    }
    let target = "iqn.2026-11.dev.ashlar:all";
    let mut command = vec!["export", "create", "--any", target];
    names
        .iter()
        .for_each(|name| command.extend(["--volume", name]));
    array.command(&command).ok();
    let url = |array: &Array, lun: usize| format!("{}/{target}/{lun}", array.portal_url());
    let io = |url: &str, commands: &[String]| {
        let mut line = vec!["-f", "raw"];
        for command in commands {
            line.extend(["-c", command]);
        }
        line.push(url);
        let said = run_program("qemu-io", &line).ok();
        assert!(!said.contains("verification failed"), "{said}");
    };
    for lun in 0..names.len() {
        let write = format!("write -P {} 0 16M", lun + 1);
        let part = format!("write -P {} 1000k 3k", lun + 101);
        io(&url(&array, lun), &[write, part]);
    }
    array
        .command(&["volume", "resize", "b", "--size", "20 MiB"])
        .ok();
    io(&url(&array, 1), &["write -P 77 16M 4M".to_owned()]);
    array.kill();
    array.start_again();
    for lun in 0..names.len() {
        let reads = [
            format!("read -P {} 0 1000k", lun + 1),
            format!("read -P {} 1000k 3k", lun + 101),
            format!("read -P {} 2M 14M", lun + 1),
        ];
        io(&url(&array, lun), &reads);
    }
    io(&url(&array, 1), &["read -P 77 16M 4M".to_owned()]);
    // What was written by way of another shard is told apart from what was not.
    let failed = {
        let mut line = vec!["-f", "raw", "-c", "read -P 9 0 64k"];
        let second = url(&array, 1);
        line.push(&second);
        let ended = run_program("qemu-io", &line);
        ended.stdout + &ended.stderr
    };
    assert!(failed.contains("verification failed"), "{failed}");
}
