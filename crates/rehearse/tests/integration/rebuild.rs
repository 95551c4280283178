//! Rebuilds of modelled disks go at the disks' rate: whoever breaks the order of their reads finds
//! it here. Time is that of the model, so these figures are the same on any machine.

#[allow(dead_code, reason = "the example prints more")]
#[path = "../../examples/rebuild/bench.rs"]
mod bench;

use bench::{Case, DISK, measure};
use engine::Level;
use engine::raid::{Protection, Spread};

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
