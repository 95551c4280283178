//! Rebuilds of modelled disks go at the disks' rate: whoever breaks the order of their reads finds
//! it here. Time is that of the model, so these figures are the same on any machine.

#[allow(dead_code, reason = "the example prints more")]
#[path = "../../examples/rebuild/bench.rs"]
mod bench;

use bench::{Case, DISK, Measured, WHOLE_BYTES, measure};
use engine::Level;
use engine::raid::{Protection, Spread};

/// A group of RAID 6 of 8 that loses a disk, while so many reads a second and disk come in.
fn beside_reads(load: f64) -> Measured {
    let measured = measure(Case {
        protection: Level::Raid6.into(),
        disks: 8,
        used_bytes: 3 << 30,
        zone_bytes: 256 << 20,
        spares: 1,
        lost: 1,
        load,
        reads: 100,
    });
    measured.unwrap()
}

fn rate(protection: Protection, disks: usize, (spares, zones): (usize, u64)) -> f64 {
    let measured = measure(Case {
        protection,
        disks,
        used_bytes: 1 << 30,
        zone_bytes: (1 << 30) / zones,
        spares,
        lost: 1,
        load: 0.0,
        reads: 100,
    });
    measured.unwrap().bytes_per_s
}

#[test]
fn a_rebuild_at_rest_reads_and_writes_disks_in_order() {
    let rate = rate(Level::Raid6.into(), 8, (1, 8));
    let sequential = DISK.inner_bytes_per_s as f64;
    let part = rate / sequential;
    assert!(part > 0.8, "{part:.2} of the sequential rate");
}

#[test]
fn distributed_spares_take_many_places_at_once() {
    let to_one = rate(Level::Raid5.into(), 3, (1, 16));
    let spread = Some(Spread {
        width: 3,
        spares: 2,
    });
    let level = Level::Raid5;
    let to_many = rate(Protection { level, spread }, 23, (0, 16));
    let times = to_many / to_one;
    assert!(times > 2.5, "{times:.2} times as fast as to one spare");
}

#[test]
fn a_rebuild_ends_in_time_beside_many_reads() {
    let measured = beside_reads(15.0);
    let hours = WHOLE_BYTES / measured.bytes_per_s / 3600.0;
    assert!(hours < 49.0, "{hours:.1} h");
    assert!(measured.longest_ms < 1000.0, "{measured:?}");
}

/// It has the time, so reads hardly wait for it.
#[test]
fn few_reads_hardly_wait_for_a_rebuild() {
    let measured = beside_reads(2.0);
    let hours = WHOLE_BYTES / measured.bytes_per_s / 3600.0;
    assert!(hours < 49.0, "{hours:.1} h");
    let (before, during) = measured.mean_ms;
    let times = during / before;
    assert!(times < 1.5, "{times:.2} times as long");
}
