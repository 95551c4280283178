//! A measured drive as a table of a site file.

use super::Measurement;
use super::measure::{Commands, SIZES};
use crate::capture::text::{entry, quoted, size};

const HEAD: &str = "\
# A drive as `ashlar calibrate` measured it: commands a second at random places, a list for each of
# sizes, with 1, 2, 4, 8, 16 and 32 outstanding.
[[drive_model]]
";

/// The highest rate of a site file.
const NUMBER_MAX: f64 = 1e9;

/// The shares that a site file takes.
const SHARE_MIN: f64 = 0.01;
const SHARE_MAX: f64 = 100.0;

const SPREADS: &str =
    "# Times of single commands, from the shortest twentieth to the longest, against the mean.\n";

/// The table.
pub(super) fn text(name: &str, measured: &Measurement) -> String {
    let figures = &measured.figures;
    let mut text = HEAD.to_owned();
    text += &entry("name", quoted(name));
    text += &entry("rotational", measured.rotational);
    if let Some(bytes) = measured.capacity_bytes {
        text += &entry("capacity", size(bytes));
    } else {
        text +=
            "# All files on this disk share it. Say false if each drive is on a disk of its own.\n";
        text += &entry("shared", true);
    }
    let sizes: Vec<String> = SIZES.into_iter().map(size).collect();
    text += &entry("sizes", format!("[{}]", sizes.join(", ")));
    let kinds = [
        ("reads", "read_spread", &figures.reads),
        ("writes", "write_spread", &figures.writes),
        (
            "durable_writes",
            "durable_write_spread",
            &figures.durable_writes,
        ),
    ];
    for (rates, _, commands) in kinds {
        text += &entry(rates, rates_of(commands));
    }
    let flushes = &figures.flushes;
    text += &entry("flushes", numbers(&flushes.per_s.concat(), 1));
    text += SPREADS;
    for (_, spread, commands) in kinds {
        text += &entry(spread, numbers(&commands.spread, 4));
    }
    text += &entry("flush_spread", numbers(&flushes.spread, 4));
    text += "# What a durable write gets of the drive beside a read, against what the read gets.\n";
    let share = figures.durable_write_share.clamp(SHARE_MIN, SHARE_MAX);
    text + &entry("durable_write_share", format!("{share:.2}"))
}

fn rates_of(commands: &Commands) -> String {
    let lists = commands.per_s.iter();
    let lists: Vec<String> = lists
        .map(|rates| format!("  {},\n", numbers(rates, 1)))
        .collect();
    format!("[\n{}]", lists.concat())
}

/// A list of numbers, none of them zero after it is rounded, nor above what a site file takes.
fn numbers(all: &[f64], digits: usize) -> String {
    let least = 0.1_f64.powi(digits as i32);
    let all = all
        .iter()
        .map(|number| format!("{:.digits$}", number.clamp(least, NUMBER_MAX)));
    format!("[{}]", all.collect::<Vec<String>>().join(", "))
}
