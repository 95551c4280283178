//! Rebuilds of modelled hard disks under load: how long a disk of 20 TB takes, and what commands of
//! hosts feel of it. One line for each load, each level and each number of lost drives. The last rows
//! compare one spare with distributed spares: the stripes are equally wide, and the disks equally full.
//! The argument `spread` prints these rows only, and a number the other rows for so many reads a second
//! and disk.
//!
//! The disks are models of 20 TB disks as to their rate and their seeks, and small: the bound of 48
//! hours is scaled down alike. So the least rate is that of a disk of 20 TB which is in use as a whole.

mod bench;

use bench::{Case, Measured, WHOLE_BYTES, measure};
use engine::Level;
use engine::raid::{Protection, Spread};

/// What is in use of each disk, about.
const USED_BYTES: u64 = 8 << 30;

/// The same beside distributed spares: so many zones that chance spreads them evenly, as a disk of 20 TB
/// has tens of thousands.
const USED_SPREAD_BYTES: u64 = 96 << 30;

fn run(case: Case, name: &str) {
    let measured = measure(case);
    let Measured {
        bytes_per_s,
        mean_ms: (before, mean),
        longest_ms,
    } = measured.unwrap_or_else(|error| panic!("{name}: {error}"));
    let hours = WHOLE_BYTES / bytes_per_s / 3600.0;
    println!(
        "{name}: {} lost, {:.0} commands a second and disk: {:.0} MB/s, 20 TB in {hours:.0} h; \
         mean {before:.1} -> {mean:.1} ms (x {:.2}), longest {longest_ms:.0} ms",
        case.lost,
        case.load,
        bytes_per_s / 1e6,
        mean / before.max(1e-9),
    );
}

/// A group whose disks are this full, with as many spares as disks are lost.
fn with_spares(level: Level, disks: usize, lost: usize, load: f64) -> Case {
    Case {
        protection: level.into(),
        disks,
        used_bytes: USED_BYTES,
        zone_bytes: 256 << 20,
        spares: lost,
        lost,
        load,
        reads: 100,
    }
}

fn main() {
    let only_spread = std::env::args().any(|arg| arg == "spread");
    let only_load = std::env::args().nth(1).and_then(|arg| arg.parse().ok());
    for load in only_load.map_or(vec![0.0, 20.0], |load: f64| vec![load]) {
        for (name, level, disks, lost) in [
            ("RAID 6 of 12", Level::Raid6, 12, 1),
            ("RAID 6 of 12", Level::Raid6, 12, 2),
            ("RAID 10 of 12", Level::Raid10 { copies: 2 }, 12, 1),
            ("RAID 6 of 24", Level::Raid6, 24, 1),
        ] {
            if !only_spread {
                run(with_spares(level, disks, lost, load), name);
            }
        }
        if only_load.is_some() {
            return;
        }
        for (width, disks, spares) in [(6, 60, 6), (8, 60, 4), (10, 62, 2)] {
            let of_stripe = Case {
                used_bytes: USED_SPREAD_BYTES,
                ..with_spares(Level::Raid6, usize::from(width), 1, load)
            };
            run(of_stripe, &format!("RAID 6 of {width}, to one spare"));
            let protection = Protection {
                level: Level::Raid6,
                spread: Some(Spread { width, spares }),
            };
            let spread = Case {
                protection,
                disks,
                spares: 0,
                ..of_stripe
            };
            run(spread, &format!("RAID {protection}, {disks} disks"));
        }
    }
}
