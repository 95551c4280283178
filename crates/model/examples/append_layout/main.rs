//! Is a layout that appends random writes as full stripes, and cleans behind them, worth its cost?
//! The tables of `docs/internals/append-layout.md`: `cargo run --release -p ashlar-model --example append_layout`.
//!
//! `cleaning` counts what the cleaner writes, `drives` has modelled drives do it. Everything is
//! drawn from fixed seeds.

mod cleaning;
mod drives;

use base::Prng;
use cleaning::{Aged, Cleaner, Full, Load, age};
use drives::{GROUPS, Group, Places};
use model::flash::write_amplification;
use model::hdd::Hdd;
use std::array::from_fn;

/// Filled parts of the pool, per cent. Nothing can be cleaned at the last one.
const FILLS: [u32; 7] = [50, 60, 70, 80, 90, 95, 100];
/// What the decision is made at.
const DECISIVE_FILL: u32 = 80;
const DRIVES: [&Hdd; 2] = [&Hdd::SAS_10K, &Hdd::NL_SAS_7K2];
const MIB: u64 = 1 << 20;
/// What is read in order, and how many reads of 1 MiB there are.
const IN_ORDER_BYTES: u64 = 128 * MIB;
const LARGE_READS: u64 = 256;
/// Of a page map today: bytes for each unit in memory and in a checkpoint, bytes of a `remap` record,
/// and the largest journal.
const MAP_ENTRY_BYTES: f64 = 4.0;
const REMAP_BYTES: f64 = 13.0;
const JOURNAL_BYTES: f64 = (64 * MIB) as f64;
/// The part of operations that are reads in a mix.
const READS: f64 = 0.67;

/// A way to append: its name, the bytes of a unit, and its cleaner.
type Way = (&'static str, u32, Cleaner);

const WAYS: [Way; 5] = [
    ("append, 256 KiB", 256 << 10, Cleaner::ByHeat),
    ("append, 16 KiB", 16 << 10, Cleaner::ByHeat),
    ("append, 8 KiB, greedy", 8 << 10, Cleaner::Greedy),
    ("append, 8 KiB, cost-benefit", 8 << 10, Cleaner::CostBenefit),
    ("append, 8 KiB, by heat", 8 << 10, Cleaner::ByHeat),
];

/// A way to append, simulated.
struct Appended {
    name: &'static str,
    unit_bytes: u64,
    /// Of each load and fill level.
    aged: Vec<Vec<Result<Aged, Full>>>,
}

impl Appended {
    fn new((name, unit_bytes, cleaner): Way) -> Appended {
        let of_fill = |load, fill| age(unit_bytes, fill, load, cleaner);
        let of_load = |load| FILLS.map(|fill| of_fill(load, fill)).into();
        Appended {
            name,
            unit_bytes: unit_bytes.into(),
            aged: Load::ALL.map(of_load).into(),
        }
    }

    fn at(&self, load: Load, fill: u32) -> Option<&Aged> {
        let index = FILLS.iter().position(|of| *of == fill)?;
        self.aged[load as usize][index].as_ref().ok()
    }

    /// Host writes per second of a group. None where it is too full.
    fn writes(&self, drive: &Hdd, group: Group, load: Load, fill: u32) -> Option<f64> {
        let aged = self.at(load, fill)?;
        let units = group.filled_bytes(drive, fill) / self.unit_bytes as f64;
        // Writes of a unit that wait in the log at the same time go together.
        let waiting = drives::WAITING_WRITES as f64;
        let gathered = waiting / load.distinct(units, waiting);
        let writes = drives::appended(drive, group, self.unit_bytes, aged, gathered);
        Some(writes)
    }
}

fn row(of: &[&str], rest: impl IntoIterator<Item = String>) {
    let of = of.iter().map(|cell| (*cell).to_owned());
    println!("| {} |", of.chain(rest).collect::<Vec<_>>().join(" | "));
}

fn head(title: &str, columns: &str) {
    println!("\n{title}\n");
    row(&[], columns.split(", ").map(str::to_owned));
    row(&[], columns.split(", ").map(|_| "---".to_owned()));
}

fn by_fill(columns: &str) -> String {
    let fills = FILLS.map(|fill| format!("{fill} %")).join(", ");
    format!("{columns}, {fills}")
}

fn cell(figure: Option<f64>, digits: usize) -> String {
    figure.map_or("full".into(), |figure| format!("{figure:.digits$}"))
}

fn cases() -> impl Iterator<Item = (&'static Hdd, Group)> {
    DRIVES
        .into_iter()
        .flat_map(|drive| GROUPS.map(|group| (drive, group)))
}

fn amplifications(ways: &[Appended]) {
    head(
        "Units written for each that a host writes",
        &by_fill("layout, load"),
    );
    for load in Load::ALL {
        for way in ways {
            let figure = |fill| way.at(load, fill).map(|aged| aged.amplification);
            let figures = FILLS.map(|fill| cell(figure(fill), 2));
            row(&[way.name, load.name()], figures);
        }
    }
    let closed_form = |fill| write_amplification(100.0 / f64::from(fill) - 1.0);
    let closed_form = FILLS.map(|fill| (fill < 100).then(|| closed_form(fill)));
    let figures = closed_form.map(|figure| cell(figure, 2));
    row(&["closed form of greedy", Load::Uniform.name()], figures);
    for (fill, says) in FILLS.into_iter().zip(closed_form) {
        let is = ways[2]
            .at(Load::Uniform, fill)
            .map(|aged| aged.amplification);
        let error = is.zip(says).map_or(0.0, |(is, says)| is / says - 1.0);
        assert!(error.abs() < 0.1, "greedy at {fill} %: off by {error:+.2}");
        assert_eq!(is.is_none(), says.is_none(), "full at {fill} %");
    }
}

fn writes(ways: &[Appended]) {
    head(
        "Random 8 KiB writes/s of a group",
        &by_fill("drives, group, load, layout"),
    );
    for (drive, group) in cases() {
        for load in Load::ALL {
            let print = |layout: &str, figures: [Option<f64>; FILLS.len()]| {
                let of = [drive.name, group.name, load.name(), layout];
                row(&of, figures.map(|figure| cell(figure, 0)));
            };
            for (layout, sums) in [("in place, no checksums", false), ("in place", true)] {
                let figure = |fill| Some(drives::in_place(drive, group, fill, load, sums));
                print(layout, FILLS.map(figure));
            }
            for way in ways {
                print(
                    way.name,
                    FILLS.map(|fill| way.writes(drive, group, load, fill)),
                );
            }
        }
    }
}

/// How busy the drives are with the most that writing in place can do, and a mix with reads.
fn at_equal_load(best: &Appended) {
    head(
        "80 % filled, uniform: in place → append, 8 KiB",
        "drives, group, writes/s, drives busy with the writes/s of in place, operations/s with 67 % reads, ratio",
    );
    for (drive, group) in cases() {
        let in_place = drives::in_place(drive, group, DECISIVE_FILL, Load::Uniform, true);
        let append = best.writes(drive, group, Load::Uniform, DECISIVE_FILL);
        let append = append.unwrap_or_default();
        let mixed = |fill, writes: f64| {
            let reads = drives::random_reads(drive, fill) * group.drives as f64;
            1.0 / (READS / reads + (1.0 - READS) / writes)
        };
        let [before, after] = [mixed(DECISIVE_FILL, in_place), mixed(100, append)];
        let figures = [
            format!("{in_place:.0} → {append:.0}"),
            format!("100 → {:.0} %", in_place / append * 100.0),
            format!("{before:.0} → {after:.0}"),
            format!("{:.1}", after / before),
        ];
        row(&[drive.name, group.name], figures);
    }
}

/// Reads in order, MB/s, and of 1 MiB at random places, per second.
fn reads(ways: &[Appended]) {
    head(
        "80 % filled, reads: MB/s in order / hours for all data in order / 1 MiB per second at random places",
        "drives, group, load, layout, as filled, each unit written once, three times",
    );
    for (drive, group) in cases() {
        for load in Load::ALL {
            for way in [&ways[0], &ways[1], &ways[4]] {
                let Some(aged) = way.at(load, DECISIVE_FILL) else {
                    continue;
                };
                let filled: Vec<u32> = (0u32..).take(aged.scattered[0].len()).collect();
                let places = |slot_of, is_spread| Places {
                    unit_bytes: way.unit_bytes,
                    slot_of,
                    spread: Some(aged.slots).filter(|_| is_spread),
                };
                let before = both(drive, group, places(&filled, false), places(&filled, true));
                let after = |slot_of| {
                    let places = places(slot_of, true);
                    both(drive, group, places, places)
                };
                let [once, thrice] = from_fn(|times| after(&aged.scattered[times]));
                let of = [drive.name, group.name, load.name(), way.name];
                row(&of, [before, once, thrice]);
            }
        }
    }
}

fn both(drive: &Hdd, group: Group, in_order: Places<'_>, at_random: Places<'_>) -> String {
    let mib_units = MIB / in_order.unit_bytes;
    let mibs = in_order.slot_of.len() as u64 / mib_units;
    let mut prng = Prng::from_seed(1).stream("large reads");
    let draws = (0..LARGE_READS).map(|_| prng.below(mibs) * mib_units);
    let draws: Vec<u64> = draws.collect();
    let in_order = in_order.read(drive, group, IN_ORDER_BYTES, &[mibs / 3 * mib_units]);
    let hours = group.filled_bytes(drive, DECISIVE_FILL) / in_order / 3600.0;
    let at_random = at_random.read(drive, group, MIB, &draws) / MIB as f64;
    format!("{:.0} / {hours:.1} / {at_random:.0}", in_order / 1e6)
}

/// The map of the first group, as maps are today.
fn map(ways: &[Appended]) {
    head(
        "80 % filled, uniform: the map of SAS 10k, RAID 6, 8 drives",
        "layout, memory in MiB per TiB, checkpoint in GiB, seconds until the journal is full",
    );
    for way in [&ways[0], &ways[1], &ways[4]] {
        let (drive, group) = (DRIVES[0], GROUPS[0]);
        let entries = |bytes: f64| bytes / way.unit_bytes as f64 * MAP_ENTRY_BYTES;
        let checkpoint = entries(group.filled_bytes(drive, DECISIVE_FILL));
        let aged = way.at(Load::Uniform, DECISIVE_FILL);
        let writes = way.writes(drive, group, Load::Uniform, DECISIVE_FILL);
        let seconds = aged
            .zip(writes)
            .map(|(aged, writes)| JOURNAL_BYTES / (writes * aged.amplification * REMAP_BYTES));
        let figures = [
            format!("{:.0}", entries((1u64 << 40) as f64) / MIB as f64),
            format!("{:.2}", checkpoint / (1u64 << 30) as f64),
            cell(seconds, 0),
        ];
        row(&[way.name], figures);
    }
}

fn main() {
    let ways = WAYS.map(Appended::new);
    amplifications(&ways);
    writes(&ways);
    at_equal_load(&ways[4]);
    reads(&ways);
    map(&ways);
}
