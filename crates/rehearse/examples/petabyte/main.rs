//! A pool of a petabyte: 60 modelled disks of 20 TB, five groups of twelve at RAID 6, four lanes, in
//! virtual time. It is created, gets 1,000 thin volumes that are as large as the pool together, is
//! written to, closed and opened. Beside it is a pool of the same disks, of which a hundredth is used.
//! Both hold as much data, at even distances over all of every volume.
//!
//! Printed are the times and the memory of the process after each step. Then comes what the processor
//! spends on an I/O, for both pools in turns. An argument says how many I/Os a turn has.

mod load;
mod pool;
mod process;

use load::{Place, measure};
use pool::{Bench, PETABYTE, Size, TEN_TB};

const TURNS: u32 = 5;
const IOS: u64 = 100_000;

/// When both are opened for the last time.
const AFTER: &str = "after the I/O";

fn main() -> Result<(), String> {
    let ios = match std::env::args().nth(1) {
        None => IOS,
        Some(asked) => asked
            .parse()
            .map_err(|_| format!("\"{asked}\" is no number of I/Os for each turn"))?,
    };
    println!("before: memory {} MiB", process::memory_mib("VmRSS:")?);
    let mut large = prepared(PETABYTE)?;
    let mut small = prepared(TEN_TB)?;
    for place in [Place::Held, Place::Anywhere] {
        compare(&large, &small, place, ios)?;
    }
    println!("after: memory {} MiB", process::memory_mib("VmRSS:")?);
    large.reopen(AFTER)?;
    small.reopen(AFTER)?;
    println!("peak: memory {} MiB", process::memory_mib("VmHWM:")?);
    Ok(())
}

fn prepared(size: Size) -> Result<Bench, String> {
    let mut bench = Bench::new(size);
    bench.prepare()?;
    Ok(bench)
}

/// What an I/O costs in both pools, in turns.
fn compare(large: &Bench, small: &Bench, place: Place, ios: u64) -> Result<(), String> {
    let (mut of_large, mut of_small, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    // The first turn warms up.
    for turn in 0..=TURNS {
        // Whoever is second may find warmer caches: they change places.
        let (one, other) = match turn % 2 {
            0 => {
                let one = measure(large, place, turn, ios)?;
                (one, measure(small, place, turn, ios)?)
            }
            _ => {
                let other = measure(small, place, turn, ios)?;
                (measure(large, place, turn, ios)?, other)
            }
        };
        if turn > 0 {
            of_large.push((one.nanos, one.per_virtual_s));
            of_small.push((other.nanos, other.per_virtual_s));
            ratios.push(one.nanos / other.nanos);
        }
    }
    println!(
        "{}: {:.0} ns of processor time in 1 PB, {:.0} ns in 10 TB, ratio {:.2}; {:.0} and {:.0} a second of virtual time",
        place.name(),
        median(of_large.iter().map(|cost| cost.0)),
        median(of_small.iter().map(|cost| cost.0)),
        median(ratios.into_iter()),
        median(of_large.iter().map(|cost| cost.1)),
        median(of_small.iter().map(|cost| cost.1)),
    );
    Ok(())
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
