//! A hypervisor's limit of a virtual disk: it holds, its VM waits for it in its queues, and VMs
//! that share the drives get the I/O that it no longer takes.

use crate::common::plan;
use crate::common::run;
use rehearse::Outcome;
use rehearse::parts::disk::Stage;

fn outcome(settings: &[&str]) -> Outcome {
    let all = [&["vm_group.vm.adapter=vmbus"], settings].concat();
    run(&plan(&all), 1).unwrap()
}

/// Operations of a VM that completed in a second of the run.
fn rate(outcome: &Outcome, vm: &str, second: usize) -> u64 {
    let vm = outcome.load.vms.iter().find(|of| of.name == vm);
    let second = &vm.unwrap().seconds[second];
    second.reads + second.writes
}

#[test]
fn a_limit_in_the_plan_holds_and_the_wait_is_one_in_queues() {
    let free = outcome(&[]);
    let limited = outcome(&["vm_group.vm.limit_iops=20"]);
    let per_s = |of: &Outcome| of.load.total.reads_per_s + of.load.total.writes_per_s;
    assert!(per_s(&free) > 200.0, "{}", per_s(&free));
    assert!((per_s(&limited) - 20.0).abs() <= 0.5, "{}", per_s(&limited));
    // Eight under way of 20 a second: 400 ms each, as the guest sees it.
    let read_ms = limited.load.total.read.response.mean_ms;
    assert!((350.0..450.0).contains(&read_ms), "{read_ms}");
    let queues = limited.stages.ns[Stage::Queue as usize] as f64;
    let all: u128 = limited.stages.ns.iter().sum();
    assert!(queues / all as f64 > 0.9, "{queues} of {all}");
}

#[test]
fn a_large_io_counts_as_several_of_hyper_v() {
    let large = [
        "vm_group.vm.profile=seq-read-256k",
        "vm_group.vm.limit_iops=320",
    ];
    let limited = outcome(&large);
    // 32 of 8 KiB each.
    let reads = limited.load.total.reads_per_s;
    assert!((reads - 10.0).abs() <= 0.5, "{reads}");
}

#[test]
fn a_limit_that_is_set_holds_within_the_second_and_others_get_the_rest() {
    let events = "event=[\
        { at = \"2 s\", what = \"limit-iops\", vm_group = \"vm\", vm = \"vm1-VM01\", iops = 20 },\
        { at = \"6 s\", what = \"limit-iops\", vm_group = \"vm\", iops = \"none\" }]";
    let two_vms = ["vm_group.vm.count=2", "run.measure=9 s"];
    let free = outcome(&two_vms);
    let outcome = outcome(&[&two_vms[..], &[events]].concat());
    let [one, two] = ["vm1-VM01", "vm2-VM01"];
    let [before, during, after] =
        [1, 4, 8].map(|second| [one, two].map(|vm| rate(&outcome, vm, second)));
    // The log fills in the first seconds and all VMs slow down, so the seconds of the limit
    // are compared with those of a run without one.
    let of_two = |outcome: &Outcome| [3, 4, 5].map(|second| rate(outcome, two, second));
    let [unlimited, beside] = [&free, &outcome].map(|of| of_two(of).iter().sum::<u64>());
    assert!(before[0] > 100 && before[1] > 100, "{before:?}");
    assert!((19..=21).contains(&during[0]), "{during:?}");
    assert!(beside > unlimited * 11 / 10, "{beside} {unlimited}");
    assert!(after[0] > 100, "{after:?}");
    let texts: Vec<&str> = outcome.told.iter().map(|told| told.text.as_str()).collect();
    let began = "change of the limit of VM vm1-VM01 begins: 20 IO/s for 1 disk, 8 I/Os are past it";
    assert_eq!(texts[0], began);
    assert!(texts[1].contains(" VM vm1-VM01 has ended "), "{texts:?}");
    let held = outcome.told[1].at - outcome.told[0].at;
    assert!(held.as_secs_f64() < 1.0, "{held:?}");
    assert!(
        texts[2].contains(" VM group vm begins: no limit for 2 disks"),
        "{texts:?}"
    );
}

#[test]
fn a_vm_that_is_not_there_is_refused_with_its_line() {
    let event = "event=[{ at = \"1 s\", what = \"limit-iops\", vm_group = \"vm\", vm = \"web\", iops = 20 }]";
    let error = run(&plan(&["vm_group.vm.adapter=vmbus", event]), 1).unwrap_err();
    assert_eq!(
        error.context,
        "event limit-iops: VM group \"vm\" has no VM \"web\"; allowed: vm-VM01"
    );
    assert!(error.line.is_some());
}
