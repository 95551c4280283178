//! Disks that move, and processors that are added.

use super::table;
use model::capacity::{Advice, Datastore, Disk, Inventory, Keep, Thresholds, advise};
use model::scalability::Scalability;
use std::time::Duration;

const GB: u64 = 1 << 30;

fn advice(disks: &[(u64, f64)], maintenance: bool) -> Advice {
    // One busy disk makes 9 ms, as given.
    let datastore = Datastore {
        capacity_bytes: 250 * GB,
        latency_per_outstanding: Duration::from_millis(9),
        maintenance: false,
    };
    let first = Datastore {
        maintenance,
        ..datastore
    };
    let disks = disks
        .iter()
        .enumerate()
        .map(|(machine, &(gigabytes, outstanding))| Disk {
            machine,
            bytes: gigabytes * GB,
            outstanding,
            datastore: 0,
        });
    let inventory = Inventory {
        machines: vec![Keep::Together; disks.len()],
        disks: disks.collect(),
        datastores: vec![first, datastore],
    };
    advise(&inventory, &Thresholds::STORAGE_DRS)
}

pub fn moves() -> String {
    let full = [(75, 0.0); 3];
    let busy = [(75, 1.0); 2];
    let cases = [
        (
            "three disks of 75 GB, 90 % used",
            "one disk moves",
            advice(&full, false),
        ),
        ("two of them, 60 % used", "–", advice(&full[..2], false)),
        (
            "one busy disk, 9 ms",
            "none moves",
            advice(&busy[..1], false),
        ),
        (
            "two busy disks, 18 ms",
            "one disk moves",
            advice(&busy, false),
        ),
        (
            "two disks, maintenance",
            "the datastore is emptied",
            advice(&full[..2], true),
        ),
        (
            "three disks, maintenance",
            "the datastore is emptied",
            advice(&full, true),
        ),
    ];
    let rows = cases.map(|(what, given, advice)| {
        vec![
            what.into(),
            given.into(),
            format!("{} of {} GB", advice.moves.len(), advice.moved_bytes / GB),
            if advice.puts_all_right { "yes" } else { "no" }.into(),
        ]
    });
    table(
        &[
            "first of two datastores of 250 GB",
            "given",
            "moves",
            "all right then",
        ],
        rows,
    )
}

pub fn processors() -> String {
    let programs = [
        ("linear", Scalability::amdahl(0.0)),
        ("σ 5 %", Scalability::amdahl(0.05)),
        (
            "σ 5 %, κ 0.2 %",
            Scalability {
                contention: 0.05,
                coherency: 0.002,
            },
        ),
    ];
    let rows = programs.map(|(name, program)| {
        let gain = |from, to| program.capacity(to) / program.capacity(from) - 1.0;
        let gains = [(2, 4), (4, 6), (4, 8), (8, 16)];
        let gains = gains.map(|(from, to)| format!("{:+.0} %", gain(from, to) * 100.0));
        let peak = program
            .peak()
            .map_or("none".into(), |peak| format!("{peak:.0}"));
        [vec![name.to_owned()], gains.to_vec(), vec![peak]].concat()
    });
    table(
        &[
            "program", "2 to 4", "4 to 6", "4 to 8", "8 to 16", "most at",
        ],
        rows,
    )
}
