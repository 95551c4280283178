//! The events of a run: each takes effect, is told, and shows in the load.

use crate::common::run;
use rehearse::{Outcome, RehearseError};
use std::time::Duration;

/// Two controllers with a pool of drives each, three hosts, a VM with one disk on each. The
/// controllers take so long for a command that a second has few of them.
const SITE: &str = r#"
[site]
name = "tiny"
[run]
warmup = "1 s"
measure = "MEASURE s"
[[controller]]
name = "a"
model = "ps6110"
cores = 16
per_command_us = 20000
partner = "b"
ports = [{ network = "san", count = 1 }]
[[controller]]
name = "b"
model = "ps6110"
cores = 16
per_command_us = 20000
partner = "a"
ports = [{ network = "san", count = 1 }]
[[bus]]
name = "shelf"
kind = "sas-6g-x4"
[[drives]]
name = "sas"
model = "sas-15k-600"
count = 9
bus = "shelf"
[[pool]]
name = "one"
controller = "a"
groups = [{ level = "10", drives = 4, from = "sas" }]
spares = [{ from = "sas", count = 1 }]
[[pool]]
name = "two"
controller = "b"
groups = [{ level = "10", drives = 4, from = "sas" }]
[[network]]
name = "san"
kind = "ethernet"
speed = "10 Gb/s"
[[network]]
name = "lan"
kind = "ethernet"
carries = "lan"
speed = "1 Gb/s"
[[host]]
name = "esx"
count = 3
cores = 8
clock_ghz = 2.4
memory = "4 GiB"
ports = [{ network = "san", count = 1 }, { network = "lan", count = 1 }]
[[vm_group]]
name = "web"
profile = "rand-8k-90"
count = 3
hosts = ["esx"]
pools = ["one"]
filled = 1
provisioning = "thin"
outstanding = 2
memory = "1 GiB"
"#;

fn try_with(
    measure_s: u32,
    events: &str,
    change: &[(&str, &str)],
) -> Result<Outcome, RehearseError> {
    let mut text = SITE.replace("MEASURE", &measure_s.to_string());
    for (from, to) in change {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let text = format!("{text}\n{events}");
    let plan = match site::plan::parse("tiny.toml", &text, &[]) {
        Ok(described) => described.base,
        Err(error) => panic!("{error}"),
    };
    run(&plan, 7)
}

fn with(measure_s: u32, events: &str) -> Outcome {
    try_with(measure_s, events, &[]).unwrap()
}

/// One VM: as little as there can be to copy.
const ONE: (&str, &str) = ("count = 3\nhosts", "count = 1\nhosts");

/// When it was told that begins like this.
fn told(outcome: &Outcome, begin: &str) -> Duration {
    let found = outcome
        .told
        .iter()
        .find(|told| told.text.starts_with(begin));
    match found {
        Some(told) => told.at,
        None => panic!("{begin:?} was not told: {:#?}", outcome.told),
    }
}

fn text<'a>(outcome: &'a Outcome, begin: &str) -> &'a str {
    let mut all = outcome.told.iter();
    let found = all.find(|told| told.text.starts_with(begin));
    &found
        .unwrap_or_else(|| panic!("{begin:?}: {:#?}", outcome.told))
        .text
}

/// Operations that completed in a second of the run.
fn rate(outcome: &Outcome, second: usize) -> u64 {
    let seconds = &outcome.load.total.seconds;
    seconds
        .get(second)
        .map_or(0, |second| second.reads + second.writes)
}

fn about(is: Duration, seconds: f64) {
    let is = is.as_secs_f64();
    assert!((is - seconds).abs() < 0.02, "{is} s is not {seconds} s");
}

#[test]
fn a_drive_that_fails_has_a_spare_rebuilt_which_the_load_feels() {
    let event = r#"
[[event]]
at = "3 s"
what = "drive-fails"
drive = "sas-00"
"#;
    let outcome = try_with(100, event, &[ONE]).unwrap();
    about(told(&outcome, "drive sas-00 fails"), 3.0);
    let taken = told(&outcome, "pool one: drive 'sas-00'");
    assert!(taken >= Duration::from_secs(3), "{taken:?}");
    let begun = told(&outcome, "pool one: rebuild of drive 'sas-04' begins");
    let ended = text(&outcome, "pool one: rebuild of drive 'sas-04' has ended");
    assert!(
        ended.contains(", after ") && ended.contains("MB/s"),
        "{ended}"
    );
    assert!(begun < told(&outcome, "pool one: rebuild of drive 'sas-04' has ended"));
    let quiet = try_with(5, "", &[ONE]).unwrap();
    assert!(quiet.told.is_empty(), "{:?}", quiet.told);
    assert_eq!(
        rate(&quiet, 2),
        rate(&outcome, 2),
        "the same until it happens"
    );
}

#[test]
fn a_snapshot_and_a_restore_are_the_engines_and_vms_stop_for_the_second() {
    let events = r#"
[[event]]
at = "2 s"
what = "snapshot"
vm_group = "web"
[[event]]
at = "4 s"
what = "restore"
vm_group = "web"
"#;
    let outcome = with(6, events);
    assert_eq!(
        text(&outcome, "snapshot of VM group web begins"),
        "snapshot of VM group web begins: 3 disks of 3 VMs"
    );
    let taken = text(&outcome, "snapshot of VM group web has ended");
    assert!(taken.contains("3 disks taken"), "{taken}");
    let quiet = told(
        &outcome,
        "restore of VM group web: what was under way has ended",
    );
    let ended = told(&outcome, "restore of VM group web has ended");
    assert!(
        quiet > Duration::from_secs(4) && ended > quiet,
        "{quiet:?} {ended:?}"
    );
    assert_eq!(outcome.load.total.failed, 0, "nobody was told of an error");
    assert!(rate(&outcome, 5) > 100, "VMs go on");
}

#[test]
fn volumes_are_snapshotted_cloned_and_moved_in_the_lanes_where_they_are() {
    let lanes = [
        ("name = \"one\"\n", "name = \"one\"\nlanes = 2\n"),
        ("name = \"two\"\n", "name = \"two\"\nlanes = 3\n"),
    ];
    let event = |at_s: u32, what: &str| format!("[[event]]\nat = \"{at_s} s\"\n{what}\n");
    let web = "vm_group = \"web\"";
    let events = [
        event(2, &format!("what = \"snapshot\"\n{web}")),
        event(3, "what = \"drive-fails\"\ndrive = \"sas-00\""),
        event(4, &format!("what = \"restore\"\n{web}")),
        event(6, &format!("what = \"clone\"\nvms = 1\n{web}")),
        event(8, &format!("what = \"move-storage\"\nto = \"two\"\n{web}")),
    ];
    let outcome = try_with(100, &events.concat(), &lanes).unwrap();
    for what in ["snapshot", "restore", "clone", "move"] {
        told(&outcome, &format!("{what} of VM group web has ended"));
    }
    for lane in 0..2 {
        told(&outcome, &format!("pool one, lane {lane}: drive 'sas-00'"));
    }
    assert_eq!(outcome.load.total.failed, 0, "nobody was told of an error");
    assert!(busy(&outcome, "two") > 0.0);
}

#[test]
fn the_array_clones_at_once_and_a_host_copies_what_is_written_over_its_links() {
    let event = |offload| {
        format!(
            "[[event]]\nat = \"2 s\"\nwhat = \"clone\"\nvm_group = \"web\"\nvms = 1\noffload = {offload}\ntransfer = \"1 MiB\""
        )
    };
    let by_array = with(30, &event(true));
    let said = text(&by_array, "clone of VM group web has ended");
    assert!(said.contains("1 VM, by reference"), "{said}");
    let ended = told(&by_array, "clone of VM group web has ended");
    assert!(ended < Duration::from_millis(2100), "{ended:?}");
    let by_host = with(30, &event(false));
    let said = text(&by_host, "clone of VM group web has ended");
    assert!(said.contains("MB/s copied"), "{said}");
    let ended = told(&by_host, "clone of VM group web has ended");
    assert!(
        ended > Duration::from_secs(4),
        "gigabytes take a time: {ended:?}"
    );
    let links = [&by_array, &by_host].map(|outcome| {
        let all = &outcome.shares;
        let link = all
            .iter()
            .find(|share| share.name == "esx1 san 1, to storage");
        link.unwrap().utilisation
    });
    assert!(
        links[1] > 10.0 * links[0],
        "by the array, by the host: {links:?}"
    );
}

fn move_event(offload: bool) -> String {
    format!(
        "[[event]]\nat = \"2 s\"\nwhat = \"move-storage\"\nvm_group = \"web\"\nto = \"two\"\noffload = {offload}\ntransfer = \"1 MiB\""
    )
}

/// How busy the drives of a pool were.
fn busy(outcome: &Outcome, pool: &str) -> f64 {
    let of = |share: &&rehearse::run::share::Share| {
        share.part == rehearse::run::share::Part::Drives && share.name.starts_with(pool)
    };
    outcome.shares.iter().find(of).unwrap().utilisation
}

#[test]
fn disks_that_move_are_served_by_the_other_pool_afterwards() {
    let stays = with(4, "");
    assert_eq!(busy(&stays, "two"), 0.0);
    for offload in [true, false] {
        // A controller that fails takes down only what is left with it: nothing.
        let alone = "[[event]]\nat = \"52 s\"\nwhat = \"controller-fails\"\ncontroller = \"a\"";
        let outcome = try_with(56, &format!("{}\n{alone}", move_event(offload)), &[ONE]);
        let outcome = outcome.unwrap();
        let said = text(&outcome, "move of VM group web has ended");
        assert!(said.contains("1 disk; a disk stood still for"), "{said}");
        let ended = told(&outcome, "move of VM group web has ended");
        assert!(
            ended > Duration::from_secs(4),
            "gigabytes take a time: {ended:?}"
        );
        assert!(ended < Duration::from_secs(50), "{ended:?}");
        assert_eq!(outcome.load.total.failed, 0);
        assert!(busy(&outcome, "two") > 0.0);
        let last = rate(&outcome, 54);
        assert!(last > 50, "{last} a second after the move");
    }
}

/// How busy a part was.
fn part(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.shares.iter().find(|share| share.name == name);
    found
        .unwrap_or_else(|| panic!("{name:?}: {:#?}", outcome.shares))
        .utilisation
}

#[test]
fn what_the_array_moves_crosses_what_is_between_the_controllers() {
    let partners = try_with(20, &move_event(true), &[ONE]).unwrap();
    let quiet = try_with(20, "", &[ONE]).unwrap();
    let copied = partners.undertook[0].bytes;
    assert!(copied > 1 << 30, "{copied}");
    let between = |outcome: &Outcome| {
        let of = |share: &&rehearse::run::share::Share| {
            share.part == rehearse::run::share::Part::Interconnect
        };
        let all = outcome.shares.iter().filter(of);
        all.map(|share| share.utilisation).sum::<f64>()
    };
    let [with, without] = [&partners, &quiet].map(between);
    assert!(with > 10.0 * without, "interconnect: {with}, {without}");
    // Alone, each has its port into the network.
    let alone = [ONE, ("partner = \"b\"\n", ""), ("partner = \"a\"\n", "")];
    let by_network = try_with(20, &move_event(true), &alone).unwrap();
    let took = by_network.undertook[0].took.as_secs_f64();
    let quiet = try_with(20, "", &alone).unwrap();
    // 10 Gb/s for the 20 s that are measured, and what VMs read besides.
    let least = by_network.undertook[0].bytes as f64 * 8.0 / 10e9 / 20.0;
    for name in ["a san 1, from storage", "b san 1, to storage"] {
        let [with, without] = [&by_network, &quiet].map(|outcome| part(outcome, name));
        assert!(
            with - without > 0.8 * least && with < without + 2.0 * least,
            "{name}: {with}, {without}; {least} at least in {took} s"
        );
    }
}

#[test]
fn a_disk_moves_within_its_pool_by_reference_or_by_its_host() {
    // What refers to the same data is in the same lane.
    let lanes = ("name = \"one\"\n", "name = \"one\"\nlanes = 2\n");
    for (offload, seconds) in [(true, 0.0..1.0), (false, 4.0..50.0)] {
        let event = move_event(offload).replace("\"two\"", "\"one\"");
        let outcome = try_with(56, &event, &[ONE, lanes]).unwrap();
        let moved = &outcome.undertook[0];
        assert!(moved.has_ended, "{:?}", outcome.told);
        assert!(
            seconds.contains(&moved.took.as_secs_f64()),
            "{offload}: {moved:?}"
        );
        assert_eq!(moved.bytes > 0, !offload, "{moved:?}");
        assert_eq!(outcome.load.total.failed, 0);
        assert!(rate(&outcome, 54) > 50, "the VM goes on");
    }
}

#[test]
fn so_many_disks_of_each_vm_move() {
    let eight = [ONE, ("\"rand-8k-90\"", "\"rand-8k-67-8disks\"")];
    let event = format!(
        "{}\ndisks = 2",
        move_event(true).replace("\"two\"", "\"one\"")
    );
    let outcome = try_with(4, &event, &eight).unwrap();
    let said = text(&outcome, "move of VM group web begins");
    assert!(said.contains(": 2 disks to pool one"), "{said}");
    text(&outcome, "move of VM group web: web-VM01-1-moved0 is there");
    let third = "web-VM01-2-moved0";
    let told = outcome.told.iter().any(|told| told.text.contains(third));
    assert!(!told, "{:?}", outcome.told);
}

#[test]
fn a_host_clones_vms_at_once() {
    let one_host = ("count = 3\ncores = 8", "count = 1\ncores = 8");
    let event = "[[event]]\nat = \"2 s\"\nwhat = \"clone\"\nvm_group = \"web\"\nvms = 2\noffload = false\noutstanding = 2\ntransfer = \"1 MiB\"\nat_once = ";
    let took = ["1", "2"].map(|at_once| {
        let event = format!("{event}{at_once}");
        let little = (
            "filled = 1\n",
            "filled = 1\noutstanding = 1\nthink = \"1 s\"\n",
        );
        let was = ("outstanding = 2\nmemory", "memory");
        let outcome = try_with(180, &event, &[one_host, was, little]).unwrap();
        let cloned = &outcome.undertook[0];
        assert!(cloned.has_ended, "{:?}", outcome.told);
        cloned.took.as_secs_f64()
    });
    // 20 ms of a controller with many cores for each command: nobody is in the way.
    assert!(took[1] * 1.5 < took[0], "{took:?}");
}

#[test]
fn what_a_vm_writes_below_its_hosts_copy_goes_to_both_pools_at_once() {
    // One worker that writes in order from the beginning on, as the copy goes, but slower.
    let writer = ("profile = \"rand-8k-90\"", "profile = \"seq-write-1m\"");
    let change = [ONE, writer, ("filled = 1", "filled = 100")];
    let outcome = try_with(8, &move_event(false), &change).unwrap();
    let busy = [busy(&outcome, "one"), busy(&outcome, "two")];
    assert!(busy[1] > 0.0, "{busy:?}");
    // Two under way, each 20 ms with a controller; one copy after the other would halve it.
    let [alone, both] = [1, 7].map(|second| rate(&outcome, second));
    assert!(both * 9 > alone * 5, "{alone} alone, {both} to both pools");
    // All of the time is told where it went.
    let stages: u128 = outcome.stages.ns.iter().sum();
    let mean_ms = stages as f64 / 1e6 / outcome.stages.count as f64;
    let service_ms = outcome.load.total.write.service.mean_ms;
    assert!(
        (mean_ms - service_ms).abs() / service_ms < 0.02,
        "{mean_ms} and {service_ms}"
    );
}

#[test]
fn a_boot_storm_boots_all_vms_of_a_group_and_then_their_load_goes_on() {
    let event = r#"
[[event]]
at = "2 s"
what = "boot-storm"
vm_group = "web"
operations = 600
"#;
    let outcome = with(20, event);
    let first = told(&outcome, "boot storm of VM group web: the first of 3 is up");
    let all = told(&outcome, "boot storm of VM group web: all 3 are up");
    assert!(
        Duration::from_secs(2) < first && first < all,
        "{first:?} {all:?}"
    );
    let quiet = with(20, "");
    let (second, after) = (3, all.as_secs() as usize + 2);
    assert_eq!(
        rate(&outcome, second),
        0,
        "no load of their own while they boot"
    );
    assert!(rate(&outcome, after) > 100 && rate(&quiet, second) > 100);
    let said = text(&outcome, "boot storm of VM group web has ended");
    assert!(said.contains("of boot I/O"), "{said}");
}

const HOST_FAILS: &str = r#"
[[event]]
at = "3 s"
what = "host-fails"
host = "esx1"
operations = 200
recovery = "2 s"
"#;

#[test]
fn vms_of_a_host_that_fails_run_on_others_after_detection_boot_and_recovery() {
    // One command is with the array, and one waits for it in the queue of the LUN.
    let shallow = ("clock_ghz = 2.4", "clock_ghz = 2.4\nlun_queue = 1");
    let outcome = try_with(60, HOST_FAILS, &[shallow]).unwrap();
    about(told(&outcome, "outage of host esx1 begins: 1 VM stop"), 3.0);
    about(
        told(&outcome, "outage of host esx1: host declared dead"),
        21.0,
    );
    about(told(&outcome, "outage of host esx1: placement"), 33.5);
    let up = told(&outcome, "outage of host esx1: all 1 are up");
    assert!(
        up > Duration::from_secs_f64(35.5) && up < Duration::from_secs(50),
        "{up:?}"
    );
    let failed = outcome.load.total.failed;
    assert!(
        (1..=2).contains(&failed),
        "what was under way failed: {failed}"
    );
    let (before, during, after) = (rate(&outcome, 2), rate(&outcome, 20), rate(&outcome, 55));
    assert!(
        during * 10 < before * 9 && during * 10 < after * 9,
        "{before} {during} {after}"
    );
}

#[test]
fn a_failover_cluster_goes_on_only_with_a_majority() {
    let hyper_v = (
        "memory = \"1 GiB\"",
        "memory = \"1 GiB\"\nadapter = \"vmbus\"",
    );
    let two = ("count = 3\ncores", "count = 2\ncores");
    let none = try_with(40, HOST_FAILS, &[hyper_v, two]).unwrap();
    let said = text(&none, "outage of host esx1 has failed");
    assert!(said.contains("too few votes"), "{said}");
    let witness = ("count = 3\ncores", "count = 2\nwitness = true\ncores");
    let goes_on = try_with(40, HOST_FAILS, &[hyper_v, witness]).unwrap();
    about(
        told(&goes_on, "outage of host esx1: missed heartbeats"),
        8.0,
    );
    about(told(&goes_on, "outage of host esx1: arbitration"), 15.0);
    assert!(told(&goes_on, "outage of host esx1: all 2 are up") > Duration::from_secs(17));
}

#[test]
fn vms_without_room_elsewhere_stay_off() {
    let small = ("memory = \"4 GiB\"", "memory = \"1 GiB\"");
    let outcome = try_with(40, HOST_FAILS, &[small]).unwrap();
    let said = text(&outcome, "outage of host esx1 has failed");
    assert!(said.contains("no VM is started"), "{said}");
    assert!(rate(&outcome, 38) < rate(&outcome, 2));
}

#[test]
fn a_partner_takes_the_pools_of_a_controller_that_fails() {
    let event = r#"
[[event]]
at = "3 s"
what = "controller-fails"
controller = "a"
takeover = "4 s"
"#;
    let outcome = with(20, event);
    about(
        told(&outcome, "outage of controller a begins: 1 pool wait"),
        3.0,
    );
    let ended = "outage of controller a has ended after 4.0 s: controller b serves";
    about(told(&outcome, ended), 7.0);
    assert_eq!(
        outcome.load.total.failed, 0,
        "what is not answered is repeated"
    );
    assert!(rate(&outcome, 2) > 100 && rate(&outcome, 10) > 100);
    assert_eq!(rate(&outcome, 5), 0);
    let alone = [("partner = \"b\"\n", ""), ("partner = \"a\"\n", "")];
    let outcome = try_with(20, event, &alone).unwrap();
    let said = text(&outcome, "outage of controller a has failed");
    assert!(said.contains("no partner"), "{said}");
    assert!(outcome.load.total.failed > 0);
    assert_eq!(rate(&outcome, 10), 0);
}

#[test]
fn a_drain_takes_as_long_as_its_memory_takes_over_the_link() {
    let event = "[[event]]\nat = \"2 s\"\nwhat = \"drain\"\nhost = \"esx1\"\n";
    let outcome = with(30, event);
    let moved = text(&outcome, "drain of host esx1: web1-VM01 is on host esx2");
    assert!(
        moved.contains("GiB in") && moved.contains("dark for"),
        "{moved}"
    );
    // 1 GiB over 1 Gb/s is 9.1 s; building and tearing down are 1.5 s each.
    let took = told(&outcome, "drain of host esx1 has ended") - Duration::from_secs(2);
    assert!((11.5..14.0).contains(&took.as_secs_f64()), "{took:?}");
    assert_eq!(outcome.load.total.failed, 0);
    let faster = with(30, &format!("{event}method = \"compressed\""));
    let sooner = told(&faster, "drain of host esx1 has ended") - Duration::from_secs(2);
    assert!(
        sooner + Duration::from_secs(3) < took,
        "{sooner:?} compressed, {took:?}"
    );
    let at = outcome
        .shares
        .iter()
        .find(|share| share.name == "esx1 lan 1, to storage");
    assert!(at.unwrap().utilisation > 0.25, "{at:?}");
    // The host is empty by then.
    let fails = "[[event]]\nat = \"20 s\"\nwhat = \"host-fails\"\nhost = \"esx1\"";
    let outcome = with(30, &format!("{event}{fails}"));
    text(
        &outcome,
        "outage of host esx1 has ended after 0.0 ms: nothing was on it",
    );
}

#[test]
fn vms_move_to_a_host_as_far_as_it_has_room() {
    let event = "[[event]]\nat = \"2 s\"\nwhat = \"live-migration\"\nvm_group = \"web\"\nto = \"esx3\"\nmethod = \"rdma\"";
    let outcome = with(40, event);
    text(
        &outcome,
        "migration of VM group web: web1-VM01 is on host esx3",
    );
    text(
        &outcome,
        "migration of VM group web: web2-VM01 is on host esx3",
    );
    let small = ("memory = \"4 GiB\"", "memory = \"2 GiB\"");
    let outcome = try_with(40, event, &[small]).unwrap();
    text(
        &outcome,
        "migration of VM group web: 1 VM stay: the host has no room",
    );
}

#[test]
fn what_is_dirtied_while_a_link_is_busy_is_sent_again() {
    let moved = |vms: u32| {
        let event = format!(
            "[[event]]\nat = \"2 s\"\nwhat = \"live-migration\"\nvm_group = \"web\"\nto = \"esx3\"\nvms = {vms}"
        );
        let outcome = with(40, &event);
        let moved = outcome.undertook[0].clone();
        assert!(moved.has_ended, "{:?}", outcome.told);
        moved
    };
    // From two hosts over their own links into the one link of a third.
    let (alone, both) = (moved(1), moved(2));
    assert!(both.took.as_secs_f64() > 1.6 * alone.took.as_secs_f64());
    let again = both.bytes as f64 - 2.0 * alone.bytes as f64;
    let late_s = (both.took - alone.took).as_secs_f64();
    // 8 KiB by each operation of both VMs, at 80 to 100 a second.
    let dirtied = late_s * 8192.0 * 2.0 * 90.0;
    assert!(
        (0.5 * dirtied..1.5 * dirtied).contains(&again),
        "{again} of {dirtied} bytes in {late_s} s"
    );
}

#[test]
fn vcpus_that_are_added_have_vms_ask_for_more() {
    let event = "[[event]]\nat = \"5 s\"\nwhat = \"add-cpu\"\nvm_group = \"web\"\nvcpus = 2\n";
    let outcome = with(10, event);
    text(
        &outcome,
        "VM group web: 3 VMs get 2 vCPUs more each, and ask for 2.00 to 2.00 times",
    );
    let (before, after) = (rate(&outcome, 3), rate(&outcome, 8));
    assert!(after * 10 > before * 12, "{before} before, {after} after");
    let outcome = with(10, &format!("{event}contention = 1"));
    text(
        &outcome,
        "VM group web: 3 VMs get 2 vCPUs more each, and ask for 1.00 to 1.00 times",
    );
    let (before, after) = (rate(&outcome, 3), rate(&outcome, 8));
    assert!(after * 10 < before * 12, "{before} before, {after} after");
}

#[test]
fn what_has_not_ended_with_the_run_is_told_so() {
    for offload in [false, true] {
        let outcome = with(4, &move_event(offload));
        let said = text(&outcome, "move of VM group web has not ended");
        assert!(said.contains("so far"), "{offload}: {said}");
        let moving = &outcome.undertook[0];
        assert!(!moving.has_ended && moving.bytes > 1 << 20, "{moving:?}");
    }
}

#[test]
fn one_seed_is_one_run_whatever_happens() {
    let events = format!("{HOST_FAILS}{}", move_event(false));
    let (one, other) = (with(40, &events), with(40, &events));
    assert_eq!(one.trace_hash, other.trace_hash);
    assert_eq!(one.told, other.told);
}

#[test]
fn vms_that_do_not_fit_on_their_host_are_refused_with_their_line() {
    let small = ("memory = \"4 GiB\"", "memory = \"1 GiB\"");
    let more = (
        "profile = \"rand-8k-90\"\ncount = 3",
        "profile = \"rand-8k-90\"\ncount = 4",
    );
    let error = try_with(4, "", &[small, more]).unwrap_err();
    assert!(error.line.is_some(), "{error}");
    assert!(error.to_string().contains("host \"esx1\""), "{error}");
}
