//! What a known load is counted as gives its parameters back.

use workload::fit::{Counted, Fitted, fit};
use workload::generator::Generator;
use workload::locality::Locality;
use workload::profile::{BURST_PERIOD, Compute, DiskProfile, Mix, Pacing, Stream, VmProfile};

const DISK_BYTES: u64 = 64 << 30;
const GRAINS: u64 = 2048;
const SECONDS: u64 = 60;

/// A stream of reads.
fn stream(per_second: f64, random_percent: u32, hot_percent: u32, active_percent: u32) -> Stream {
    let mut sizes = vec![8192; 70];
    sizes.extend([65536; 30]);
    let mix = Mix {
        sizes,
        random_percent,
        read_percent: 100,
    };
    Stream {
        active_percent,
        locality: Locality::SelfSimilar {
            hot_percent,
            host_keeps_percent: 0,
            drift: None,
        },
        ..Stream::alone(mix, Pacing::Open { per_second }, &[1])
    }
}

/// Pairs of operations of a grain.
fn pairs(count: &u64) -> f64 {
    (count * count.saturating_sub(1) / 2) as f64
}

/// What an array counts of it in a minute.
fn counted(stream: Stream, seed: u64) -> Counted {
    let vm = VmProfile {
        name: "vm".to_owned(),
        role: "vm".to_owned(),
        compute: Compute::UNTOLD,
        disks: vec![DiskProfile {
            nominal_bytes: DISK_BYTES,
        }],
        streams: vec![stream],
    };
    let mut generator = Generator::of_vm(&vm, &[DISK_BYTES], seed).remove(0);
    let periods = SECONDS * 10;
    let mut counts = vec![0u64; periods as usize];
    let (mut sizes, mut grains) = (vec![(0, 0); 12], vec![0; GRAINS as usize]);
    let (mut operations, mut random, mut end) = (0, 0, u64::MAX);
    loop {
        let op = generator.draw();
        let Some(count) = counts.get_mut((op.at.0 / BURST_PERIOD.as_nanos() as u64) as usize)
        else {
            break;
        };
        *count += 1;
        operations += 1;
        let class: &mut (u64, u64) = &mut sizes[(op.bytes.ilog2() - 9) as usize];
        *class = (class.0 + 1, class.1 + u64::from(op.bytes));
        if op.offset_bytes != end {
            random += 1;
            grains[(op.offset_bytes * GRAINS / DISK_BYTES) as usize] += 1;
        }
        end = op.offset_bytes + u64::from(op.bytes);
    }
    let mean = operations as f64 / periods as f64;
    let squares = counts.iter().map(|count| (*count as f64 - mean).powi(2));
    Counted {
        operations,
        random,
        sizes,
        placed: grains.iter().sum(),
        pairs: grains.iter().map(pairs).sum(),
        disk_bytes: DISK_BYTES,
        grain_bytes: DISK_BYTES / GRAINS,
        periods,
        period_mean: mean,
        period_variance: squares.sum::<f64>() / (periods - 1) as f64,
    }
}

fn fitted(per_second: f64, random: u32, hot: u32, active: u32, seed: u64) -> Fitted {
    match fit(&counted(stream(per_second, random, hot, active), seed)) {
        Some(fitted) => fitted,
        None => panic!("there are operations"),
    }
}

/// Differ by at most so much.
fn near(found: u32, meant: u32, by: u32, what: &str) {
    assert!(
        found.abs_diff(meant) <= by,
        "{what}: {found} instead of {meant}"
    );
}

#[test]
fn parameters_come_back_within_their_bounds() {
    for (seed, (random, hot, active)) in (1..).zip([
        (100, 50, 100),
        (100, 60, 100),
        (80, 70, 50),
        (60, 80, 20),
        (30, 90, 5),
    ]) {
        let found = fitted(400.0, random, hot, active, seed);
        near(found.random_percent, random, 2, "random");
        near(found.hot_percent, hot, 3, "hot");
        near(found.active_percent, active, 1 + active / 6, "active");
        let shares: Vec<u32> = found.sizes.iter().map(|(bytes, _)| *bytes).collect();
        assert_eq!(shares, [8192, 65536]);
        near(found.sizes[0].1, 70, 2, "share of the smaller size");
        assert_eq!(found.sizes.iter().map(|(_, share)| share).sum::<u32>(), 100);
    }
}

#[test]
fn chance_is_taken_for_no_skew_and_no_bursts() {
    for (seed, per_second) in (11..).zip([0.2, 2.0, 20.0, 200.0, 2000.0]) {
        let found = fitted(per_second, 100, 50, 100, seed);
        assert_eq!(
            (found.hot_percent, found.active_percent),
            (50, 100),
            "{per_second}"
        );
    }
}

#[test]
fn nothing_has_no_parameters_and_one_operation_has() {
    assert_eq!(fit(&Counted::default()), None);
    let one = Counted {
        operations: 1,
        random: 1,
        sizes: vec![(1, 512)],
        placed: 1,
        pairs: 0.0,
        disk_bytes: 1 << 30,
        grain_bytes: 1 << 20,
        periods: 10,
        period_mean: 0.1,
        period_variance: 0.1,
    };
    let expected = Fitted {
        sizes: vec![(4096, 100)],
        random_percent: 100,
        hot_percent: 50,
        active_percent: 100,
    };
    assert_eq!(fit(&one), Some(expected));
}

#[test]
fn odd_sizes_are_rounded_and_shares_add_up() {
    let counted = Counted {
        operations: 9,
        random: 0,
        sizes: vec![(3, 3 * 5000), (3, 3 * 24_000), (3, 3 * (9 << 20))],
        ..Counted::default()
    };
    let found = fit(&counted).unwrap();
    assert_eq!(found.sizes, [(4096, 34), (24_576, 33), (1 << 20, 33)]);
    assert_eq!(found.random_percent, 0);
}
