//! Closed networks in virtual time: threads that think, work and wait.

use crate::common::{plan, run};
use rehearse::Outcome;
use rehearse::run::share::Part;
use site::plan::Plan;
use std::time::Duration;
use workload::profile::{Compute, DiskProfile, Limits, Mix, Pacing, Profile, Stream, VmProfile};
use workload::report::{StreamReport, TransactionReport};
use workload::threads::Threads;

const MS: Duration = Duration::from_millis(1);

/// A server with data and a log on a disk each.
fn server(threads: Threads) -> Profile {
    let data = Stream::alone(Mix::new(8192, 100, 70), Pacing::Threads(threads), &[1, 0]);
    let log = Stream::alone(Mix::new(8192, 0, 0), Pacing::Commits { of: 0 }, &[0, 1]);
    let mut vm = VmProfile {
        name: "VM01".into(),
        role: "server".into(),
        compute: Compute::UNTOLD,
        disks: vec![DiskProfile::gigabytes(20); 2],
        streams: vec![data.named("data"), log.named("log")],
    };
    vm.settle();
    Profile {
        name: "server".into(),
        vms: vec![vm],
        limits: Limits::default(),
    }
}

/// The site with its VMs as their profile has them, unless the settings say so.
fn without_depth(settings: &[&str]) -> Plan {
    let mut plan = plan(settings);
    let of_file = plan.vm_groups[0].outstanding;
    plan.vm_groups[0].outstanding = of_file.filter(|depth| *depth != 8);
    plan
}

fn of_server(threads: Threads, settings: &[&str]) -> Outcome {
    let usual = ["run.measure=\"20 s\"", "vm_group.vm.count=1"];
    let plan = without_depth(&[&usual[..], settings].concat());
    let profile = |_: &str| Ok(server(threads));
    rehearse::run(&plan, 1, &profile).unwrap()
}

fn parts(outcome: &Outcome) -> (&StreamReport, &StreamReport, TransactionReport) {
    let [data, log] = outcome.load.vms[0].streams.as_slice() else {
        panic!("two streams")
    };
    (data, log, data.transactions.unwrap())
}

/// N = X (R + Z), and a transaction has the operations that it is said to have.
#[test]
fn threads_keep_the_interactive_response_time_law() {
    let threads = Threads::connected(24, MS * 120, MS * 4, 3.5);
    let outcome = of_server(threads, &[]);
    let (data, log, transactions) = parts(&outcome);
    let response_s = transactions.response.mean_ms / 1e3;
    let by_law = transactions.per_s * (response_s + 0.120);
    assert!((by_law / 24.0 - 1.0).abs() < 0.03, "{by_law} threads of 24");
    let operations = (data.reads_per_s + data.writes_per_s) / transactions.per_s;
    assert!(
        (operations / 3.5 - 1.0).abs() < 0.02,
        "{operations} operations"
    );
    let commits = log.writes_per_s / transactions.per_s;
    assert!((commits - 1.0).abs() < 0.01, "{commits} commits");
    // What is under way is what the others do not spend elsewhere.
    let elsewhere = transactions.per_s * (0.120 + 0.004);
    let under_way = data.queue_length + log.queue_length;
    assert!(
        (under_way + elsewhere - 24.0).abs() < 0.8,
        "{under_way} and {elsewhere}"
    );
    assert_eq!(outcome.load.vms[0].transactions, Some(transactions));
    let table = workload::report::table(&outcome.load);
    assert!(table.contains("transactions/s"), "{table}");
}

#[test]
fn transactions_wait_for_the_processors_of_their_vm() {
    let threads = Threads::connected(16, MS, MS * 50, 1.0);
    let outcome = of_server(threads, &[]);
    let (data, _, transactions) = parts(&outcome);
    // Two processors do 40 such transactions a second.
    assert!(
        (transactions.per_s / 40.0 - 1.0).abs() < 0.12,
        "{transactions:?}"
    );
    assert!(data.queue_length < 1.0, "{}", data.queue_length);
    let mut shares = outcome.shares.iter();
    let vm = shares.find(|share| share.part == Part::Vm).unwrap();
    assert!(vm.utilisation > 0.97, "{vm:?}");
    let first = rehearse::findings::bottleneck::finding(&outcome).sentence;
    assert!(first.contains("processor of VM"), "{first}");
}

#[test]
fn no_more_are_in_a_transaction_than_have_a_connection() {
    let threads = Threads {
        connections: Some(3),
        ..Threads::connected(60, MS * 20, MS, 4.0)
    };
    let outcome = of_server(threads, &[]);
    let (data, log, transactions) = parts(&outcome);
    let under_way = data.queue_length + log.queue_length;
    assert!(under_way < 3.0 && under_way > 2.5, "{under_way}");
    // Who waits for a connection waits for the transaction.
    let by_law = transactions.per_s * (transactions.response.mean_ms / 1e3 + 0.020);
    assert!((by_law / 60.0 - 1.0).abs() < 0.04, "{by_law} threads of 60");
}

#[test]
fn faster_drives_get_more_transactions_and_have_less_under_way() {
    let threads = Threads::connected(64, MS * 100, MS, 4.0);
    let (disk, flash) = (
        of_server(threads, &[]),
        of_server(threads, &["drives.sas.model=\"nvme-7680\""]),
    );
    let ((slow, _, of_disk), (fast, _, of_flash)) = (parts(&disk), parts(&flash));
    assert!(
        of_flash.per_s > of_disk.per_s * 1.2,
        "{of_disk:?} {of_flash:?}"
    );
    assert!(
        fast.queue_length < slow.queue_length / 2.0,
        "{} and {}",
        fast.queue_length,
        slow.queue_length
    );
    // A loop of constant depth has as much under way on both.
    let constant = |settings: &[&str]| run(&plan(settings), 1).unwrap().load.total.queue_length;
    let (slow, fast) = (constant(&[]), constant(&["drives.sas.model=\"nvme-7680\""]));
    assert!((slow - fast).abs() < 0.01, "{slow} and {fast}");
}

#[test]
fn one_seed_has_one_run_of_threads_and_a_file_can_say_other_threads() {
    let threads = Threads::connected(8, MS * 20, MS * 2, 2.5);
    let (first, again) = (of_server(threads, &[]), of_server(threads, &[]));
    assert_eq!(first.trace_hash, again.trace_hash);
    assert_eq!(first.load, again.load);
    let said = ["vm_group.vm.outstanding=4", "vm_group.vm.think=\"200 ms\""];
    let (_, _, transactions) = parts(&first);
    let said = of_server(threads, &said);
    let of_file = parts(&said).2;
    assert!(of_file.per_s < 4.0 / 0.202 * 1.05 && of_file.per_s < transactions.per_s);
    let twice = of_server(threads, &["vm_group.vm.scale=2"]);
    assert!(parts(&twice).2.per_s > transactions.per_s * 1.2);
}

/// A server that keeps two operations of another kind under way beside its transactions.
fn with_a_loop(threads: Threads) -> Profile {
    let mut server = server(threads);
    let pacing = Pacing::Closed { outstanding: 2 };
    let spills = Stream::alone(Mix::new(65536, 50, 50), pacing, &[0, 1]);
    server.vms[0].streams.push(spills.named("spills"));
    server
}

/// Transactions work on vCPUs that are added, and so many more are asked for.
#[test]
fn vcpus_that_are_added_are_worked_on_and_asked_for() {
    let per_s = |threads: Threads, vcpus: u32| {
        let event = format!(
            "event=[{{ at = \"100 ms\", what = \"add-cpu\", vm_group = \"vm\", vcpus = {vcpus} }}]"
        );
        let settings = ["run.measure=\"60 s\"", event.as_str()];
        parts(&of_server(threads, &settings[..1 + usize::from(vcpus > 0)]))
            .2
            .per_s
    };
    // Two processors do 40 of these a second, and five do 100.
    let busy = Threads::connected(16, MS, MS * 50, 1.0);
    let (two, five) = (per_s(busy, 0), per_s(busy, 3));
    assert!(
        (two / 40.0 - 1.0).abs() < 0.12 && (five / two - 2.5).abs() < 0.3,
        "{two} {five}"
    );
    // One thread cannot be one and a half: two think for longer.
    let one = Threads::connected(1, MS * 300, Duration::ZERO, 1.0);
    let (two, three) = (per_s(one, 0), per_s(one, 1));
    assert!((three / two - 1.5).abs() < 0.2, "{two} {three}");
}

#[test]
fn what_is_said_of_threads_is_refused_where_there_are_none() {
    for said in ["vm_group.vm.work=\"2 ms\"", "vm_group.vm.connections=3"] {
        let refused = run(&plan(&[said]), 1).unwrap_err();
        assert!(refused.line.is_some(), "{refused}");
        assert!(
            refused.to_string().contains("is about threads"),
            "{refused}"
        );
    }
}

/// Commits are under way for transactions, and other loops are not, of a VM and of all alike.
#[test]
fn what_is_under_way_for_transactions_is_that_of_threads_and_their_commits() {
    let profile = |_: &str| Ok(with_a_loop(Threads::connected(30, MS * 20, MS, 2.0)));
    let plan = without_depth(&["run.measure=\"10 s\"", "vm_group.vm.count=2"]);
    let load = rehearse::run(&plan, 1, &profile).unwrap().load;
    let mut all = 0.0;
    for vm in &load.vms {
        let own = vm.streams[0].queue_length + vm.streams[1].queue_length;
        let said = vm.transactions.unwrap().under_way;
        assert!((said - own).abs() < 1e-9 && said < vm.queue_length - 1.9);
        assert!(vm.streams[1].queue_length > 0.0);
        all += own;
    }
    let of_all = load.total.transactions.unwrap().under_way;
    assert!((of_all - all).abs() < 1e-9, "{of_all} and {all}");
    let table = workload::report::table(&load);
    let line = format!("{of_all:.1} operations under way");
    assert!(table.contains(&line), "{table}");
}

#[test]
fn what_is_said_of_threads_leaves_the_loops_beside_them_alone() {
    let said = [
        "run.measure=\"20 s\"",
        "vm_group.vm.count=1",
        "vm_group.vm.outstanding=4",
        "vm_group.vm.think=\"200 ms\"",
    ];
    let profile = |_: &str| Ok(with_a_loop(Threads::connected(30, MS, MS, 1.0)));
    let streams = |settings: &[&str]| {
        let plan = plan(&[&said[..], settings].concat());
        let outcome = rehearse::run(&plan, 1, &profile).unwrap();
        let streams = outcome.load.vms[0].streams.iter();
        let under_way = streams.map(|stream| stream.queue_length);
        under_way.collect::<Vec<f64>>()
    };
    let once = streams(&[]);
    assert!(once[0] < 0.5, "four that think for long: {once:?}");
    assert!((once[2] - 2.0).abs() < 0.01, "the loop: {once:?}");
    let twice = streams(&["vm_group.vm.scale=2"]);
    assert!((twice[2] - 4.0).abs() < 0.01, "both scaled: {twice:?}");
}

#[test]
fn more_threads_than_anybody_has_are_refused_with_their_line() {
    let settings = [
        "vm_group.vm.count=1",
        "vm_group.vm.outstanding=4096",
        "vm_group.vm.scale=1000",
    ];
    let profile = |_: &str| Ok(server(Threads::connected(4, MS, MS, 1.0)));
    let refused = rehearse::run(&plan(&settings), 1, &profile).unwrap_err();
    assert!(refused.line.is_some(), "{refused}");
    assert!(refused.to_string().contains("1000000 threads"), "{refused}");
}

/// Open loops get what is due on any level that can do it; threads that wait get more where
/// their operations are faster.
#[test]
fn levels_differ_in_operations_of_the_closed_mix_and_not_of_the_open_one() {
    let iops = |profile: &str, scale: &str, level: &str| {
        let settings = [
            "run.warmup=\"5 s\"".to_owned(),
            "run.measure=\"15 s\"".to_owned(),
            "drives.sas.count=20".to_owned(),
            "drives.sas.model=\"sas-15k-600\"".to_owned(),
            "pool.data.spares=[]".to_owned(),
            "host.esx.memory=\"256 GiB\"".to_owned(),
            "host.esx.cores=32".to_owned(),
            format!("pool.data.groups=[{{ level = \"{level}\", drives = 20, from = \"sas\" }}]"),
            format!("vm_group.vm.profile=\"{profile}\""),
            format!("vm_group.vm.scale={scale}"),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let total = run(&without_depth(&settings), 1).unwrap().load.total;
        total.reads_per_s + total.writes_per_s
    };
    let ratio = |profile, scale| iops(profile, scale, "10") / iops(profile, scale, "6");
    // So many 20 drives of RAID 6 can do.
    let (open, closed) = (ratio("hetero10", "0.7"), ratio("hetero10-closed", "1.0"));
    assert!((open - 1.0).abs() < 0.01, "open: {open}");
    assert!(closed > 1.05, "closed: {closed}");
}
