//! The streams are as the profiles say.

use std::collections::BTreeMap;
use workload::generator::{Generator, Kind, Operation};
use workload::locality::{Drift, Locality};
use workload::profile::{Compute, DiskProfile, Mix, Pacing, Profile, Stream, VmProfile, hetero10};

const DRAWS: usize = 100_000;
const DISK_BYTES: u64 = 1 << 30;

fn drawn(vm: &VmProfile, seed: u64, count: usize) -> Vec<Operation> {
    let capacities = vec![DISK_BYTES; vm.disks.len()];
    let mut generators = Generator::of_vm(vm, &capacities, seed);
    assert_eq!(generators.len(), 1, "{}: several streams", vm.name);
    (0..count).map(|_| generators[0].draw()).collect()
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
        } = &vm.streams[0].mix;
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
        let weights = &vm.streams[0].weights;
        let sum: u32 = weights.iter().sum();
        for (weight, &count) in weights.iter().zip(&of_disk) {
            let share = f64::from(weight * 100) / f64::from(sum);
            assert_share("a disk", vm, count, share);
        }
    }
}

#[test]
fn arrivals_are_poisson_at_the_rate() {
    for vm in &hetero10::profile().vms {
        let Some(per_second) = vm.streams[0].pacing.per_second() else {
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
}

/// The operations of a VM of one stream, by FNV-1a: of 10,000 of them on disks of an
/// odd size, drawn with seed 42 by the version before streams came to be several.
const KEPT: &[(&str, &str, u64)] = &[
    ("hetero10", "NET01", 0x85e3_8dc1_0e46_e455),
    ("hetero10", "EXCH01", 0x3d56_1d75_4c2b_48df),
    ("hetero10", "MBX01", 0x8871_343b_fd79_52d0),
    ("hetero10", "SQL01", 0x2d56_8b59_1da9_b81d),
    ("hetero10", "DSS01", 0xa744_f4a7_7c46_7b92),
    ("hetero10", "FS01", 0x6d94_d09d_0106_dc7a),
    ("hetero10", "SPS01", 0x2f9c_9ceb_a7fc_2f40),
    ("hetero10", "LYNC01", 0x6177_f8a4_6397_bec4),
    ("hetero10", "WEB01", 0xd9da_ccaf_13af_e035),
    ("hetero10", "WEB02", 0xc819_6963_e36c_87a9),
    ("rand-8k-67", "VM01", 0x8e97_5081_f55f_3ba8),
    ("seq-read-1m", "VM01", 0xb454_8969_7d56_6325),
];

#[test]
fn what_was_drawn_before_is_drawn_again() {
    for &(profile, vm, expected) in KEPT {
        let profile = Profile::named(profile).unwrap();
        let vm = profile.role(vm).unwrap();
        let capacities = vec![DISK_BYTES + 12288; vm.disks.len()];
        let mut generator = Generator::of_vm(vm, &capacities, 42).remove(0);
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for _ in 0..10_000 {
            let op = generator.draw();
            let read = u64::from(op.kind == Kind::Read);
            let size = u64::from(op.bytes);
            for word in [
                op.at.as_nanos(),
                op.disk as u64,
                read,
                op.offset_bytes,
                size,
            ] {
                for byte in word.to_le_bytes() {
                    hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                }
            }
        }
        assert_eq!(hash, expected, "{} of {}", vm.name, profile.name);
    }
}

/// A VM with these streams on two disks.
fn vm_of(streams: Vec<Stream>) -> VmProfile {
    VmProfile {
        name: "VM".into(),
        role: "test".into(),
        compute: Compute::UNTOLD,
        disks: vec![DiskProfile::gigabytes(1); 2],
        streams,
    }
}

fn closed(mix: Mix, weights: &[u32]) -> Stream {
    Stream::alone(mix, Pacing::Closed { outstanding: 1 }, weights)
}

fn of_streams(vm: &VmProfile, count: usize) -> Vec<Vec<Operation>> {
    let capacities = vec![DISK_BYTES; vm.disks.len()];
    let generators = Generator::of_vm(vm, &capacities, 5);
    let drawn = |mut generator: Generator| (0..count).map(|_| generator.draw()).collect();
    generators.into_iter().map(drawn).collect()
}

#[test]
fn each_stream_has_its_disks_its_mix_and_its_cursor() {
    let database = closed(Mix::new(8192, 100, 70), &[1, 0]).named("database");
    let log = closed(Mix::new(4096, 0, 0), &[0, 1]).named("log");
    let scan = closed(Mix::new(65536, 0, 100), &[0, 1]).named("scan");
    let drawn = of_streams(&vm_of(vec![database.clone(), log.clone(), scan]), 1000);
    assert!(drawn[0].iter().all(|op| op.disk == 0 && op.bytes == 8192));
    for (stream, bytes, kind) in [(1, 4096, Kind::Write), (2, 65536, Kind::Read)] {
        for (op, index) in drawn[stream].iter().zip(0..) {
            assert_eq!((op.disk, op.kind), (1, kind), "stream {stream}");
            assert_eq!(op.offset_bytes, index * bytes, "another stream moved it");
        }
    }
    // What comes behind does not shift what is before.
    let fewer = of_streams(&vm_of(vec![database.clone(), log.clone()]), 1000);
    assert_eq!(fewer, drawn[..2]);
    let twins = of_streams(&vm_of(vec![database.clone(), database.named("twin")]), 1000);
    assert_ne!(twins[0], twins[1], "streams draw for themselves");
}

#[test]
fn the_workers_of_a_disk_take_turns_on_parts_of_their_own() {
    let stream = Stream {
        workers_per_disk: 3,
        ..closed(Mix::new(65536, 0, 100), &[0, 1])
    };
    let drawn = of_streams(&vm_of(vec![stream]), 30_000).remove(0);
    let part = DISK_BYTES / 3 / 4096 * 4096;
    let turns = part / 65536;
    for (op, index) in drawn.iter().zip(0u64..) {
        let (worker, turn) = (index % 3, index / 3);
        let expected = worker * part + turn % turns * 65536;
        assert_eq!(op.offset_bytes, expected, "operation {index}");
    }
    assert!(drawn.len() as u64 / 3 > turns, "they came round");
}

/// Which 64th of the disk most operations go to.
fn hottest(drawn: &[Operation]) -> Option<usize> {
    let mut counts = vec![0u32; 64];
    for op in drawn {
        counts[(op.offset_bytes * 64 / DISK_BYTES) as usize] += 1;
    }
    (0..64).max_by_key(|&index| counts[index])
}

fn skewed(bytes: u32, drifting: Option<Drift>) -> Stream {
    let mut locality = Locality::SKEWED;
    if let Locality::SelfSimilar { drift, .. } = &mut locality {
        *drift = drifting;
    }
    Stream {
        locality,
        ..closed(Mix::new(bytes, 100, 70), &[1, 0])
    }
}

/// Two streams find the same places of a disk hot, whatever their sizes are.
#[test]
fn what_is_hot_is_the_disks() {
    let large = skewed(65536, None).named("large");
    let vm = vm_of(vec![skewed(8192, None), large]);
    let drawn = of_streams(&vm, 20_000);
    assert_eq!(hottest(&drawn[0]), hottest(&drawn[1]));
}

#[test]
fn hot_places_stay_or_move_from_period_to_period() {
    const PERIOD: usize = 2000;
    let places = |drift| {
        let drawn = of_streams(&vm_of(vec![skewed(8192, drift)]), 30 * PERIOD);
        let mut places: Vec<Option<usize>> = drawn[0].chunks(PERIOD).map(hottest).collect();
        places.sort_unstable();
        places.dedup();
        places.len()
    };
    assert_eq!(places(None), 1);
    let drift = Drift {
        period_operations: PERIOD as u64,
        one_in: 5,
    };
    let moved = places(Some(drift));
    assert!(moved > 4, "{moved} hottest places in 30 periods");
}

/// On disks as large as they were published.
#[test]
fn every_profile_keeps_to_its_disks_and_sizes() {
    for name in Profile::names() {
        for vm in &Profile::named(name).unwrap().vms {
            let disks = vm.disks.iter();
            let capacities: Vec<u64> = disks.map(|disk| disk.nominal_bytes).collect();
            let generators = Generator::of_vm(vm, &capacities, 11);
            for (stream, mut generator) in vm.streams.iter().zip(generators) {
                let what = format!("{name}: {}: {}", vm.name, stream.name);
                for _ in 0..500 {
                    let op = generator.draw();
                    assert!(stream.weights[op.disk] > 0, "{what}: disk {}", op.disk);
                    assert!(stream.mix.sizes.contains(&op.bytes), "{what}: {op:?}");
                    let end = op.offset_bytes + u64::from(op.bytes);
                    assert!(end <= capacities[op.disk], "{what}: {op:?}");
                    assert!(op.offset_bytes.is_multiple_of(4096), "{what}: {op:?}");
                    let writes = op.kind == Kind::Write;
                    assert!(!writes || stream.mix.writes(), "{what}: {op:?}");
                }
            }
        }
    }
}
