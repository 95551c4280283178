//! That the streams are what the profiles say.

use load::generator::{Generator, Kind, Operation};
use load::profile::{Mix, Pacing, Profile, VmProfile, hetero10};
use std::collections::BTreeMap;

const DRAWS: usize = 100_000;
const DISK_BYTES: u64 = 1 << 30;

fn drawn(vm: &VmProfile, seed: u64, count: usize) -> Vec<Operation> {
    let capacities = vec![DISK_BYTES; vm.disks.len()];
    let mut generator = Generator::new(vm, &capacities, seed);
    (0..count).map(|_| generator.draw()).collect()
}

fn per_cent(part: usize) -> f64 {
    part as f64 * 100.0 / DRAWS as f64
}

/// 100,000 draws of a share stay within half a per cent of it (three standard
/// deviations at 50 %).
fn assert_share(what: &str, vm: &VmProfile, part: usize, expected: f64) {
    let share = per_cent(part);
    assert!(
        (share - expected).abs() < 0.5,
        "{}: {what}: {share} % for {expected} %",
        vm.name
    );
}

#[test]
fn every_role_has_its_mix() {
    for vm in &hetero10::profile().vms {
        let Mix {
            sizes,
            random_percent,
            read_percent,
        } = &vm.mix;
        let operations = drawn(vm, 42, DRAWS);
        let reads = operations.iter().filter(|op| op.kind == Kind::Read).count();
        assert_share("reads", vm, reads, f64::from(*read_percent));

        let mut of_size = BTreeMap::new();
        let mut of_disk = vec![0; vm.disks.len()];
        let mut ends = vec![0; vm.disks.len()];
        let mut continued = 0;
        for op in &operations {
            *of_size.entry(op.bytes).or_insert(0) += 1;
            of_disk[op.disk] += 1;
            // At the end of a disk, sequential I/O goes on from the start.
            let wraps = op.offset_bytes == 0 && ends[op.disk] + u64::from(op.bytes) > DISK_BYTES;
            continued += usize::from(op.offset_bytes == ends[op.disk] || wraps);
            ends[op.disk] = op.offset_bytes + u64::from(op.bytes);
            assert!(
                ends[op.disk] <= DISK_BYTES,
                "{}: {op:?} past the end",
                vm.name
            );
            assert!(op.offset_bytes.is_multiple_of(4096), "{}: {op:?}", vm.name);
        }
        assert_share("sequential", vm, continued, f64::from(100 - random_percent));
        assert!(of_size.keys().eq(sizes.iter()), "{}: {of_size:?}", vm.name);
        for &count in of_size.values() {
            assert_share("a size", vm, count, 100.0 / sizes.len() as f64);
        }
        let weights: u32 = vm.disks.iter().map(|disk| disk.weight).sum();
        for (disk, &count) in vm.disks.iter().zip(&of_disk) {
            assert_share(
                "a disk",
                vm,
                count,
                f64::from(disk.weight * 100) / f64::from(weights),
            );
        }
    }
}

#[test]
fn arrivals_are_poisson_at_the_rate() {
    for vm in &hetero10::profile().vms {
        let Pacing::Open { per_second } = vm.pacing else {
            panic!("{}: closed", vm.name)
        };
        let times: Vec<f64> = drawn(vm, 7, DRAWS)
            .iter()
            .map(|op| op.at.as_nanos() as f64 / 1e9)
            .collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            gaps.iter().all(|&gap| gap >= 0.0),
            "{}: time goes back",
            vm.name
        );
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!(
            (mean * per_second - 1.0).abs() < 0.015,
            "{}: {mean}",
            vm.name
        );
        // The deviation of an exponential distribution is its mean.
        assert!(
            (variance.sqrt() / mean - 1.0).abs() < 0.03,
            "{}: {variance}",
            vm.name
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_stream_and_another_another() {
    let vm = &hetero10::profile().vms[2];
    assert_eq!(drawn(vm, 1, 1000), drawn(vm, 1, 1000));
    assert_ne!(drawn(vm, 1, 1000), drawn(vm, 2, 1000));
    let twin = VmProfile {
        name: "twin".into(),
        ..vm.clone()
    };
    assert_ne!(
        drawn(vm, 1, 1000),
        drawn(&twin, 1, 1000),
        "VMs have streams of their own"
    );
}

#[test]
fn scaling_a_rate_changes_when_and_not_what() {
    let slow = hetero10::profile();
    let fast = hetero10::profile().scaled(4.0);
    for (slow, fast) in slow.vms.iter().zip(&fast.vms) {
        for (a, b) in drawn(slow, 3, 500).iter().zip(drawn(fast, 3, 500)) {
            let quarter = a.at.as_nanos() / 4;
            assert!(b.at.as_nanos().abs_diff(quarter) <= 1000, "{a:?} {b:?}");
            assert_eq!(Operation { at: a.at, ..b }, *a);
        }
    }
}

#[test]
fn a_closed_loop_is_always_due() {
    let profile = Profile::named("seq-write-64k").unwrap();
    let operations = drawn(&profile.vms[0], 1, 100);
    assert!(
        operations
            .iter()
            .all(|op| op.at.as_nanos() == 0 && op.kind == Kind::Write)
    );
    let places: Vec<u64> = operations.iter().map(|op| op.offset_bytes).collect();
    assert!(
        places
            .iter()
            .zip(0..)
            .all(|(&place, index)| place == index * 65536)
    );
}
