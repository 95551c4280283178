//! The moves of disks by Storage DRS between two datastores: the model alone.

use crate::row::{Section, given};
use model::capacity::{Advice, Automation, Datastore, Disk, Inventory, Keep, Thresholds, advise};
use model::migration::MEMORY_GB as GB;
use std::time::Duration;

/// One busy disk makes 9 ms, as given.
const EMPTY: Datastore = Datastore {
    capacity_bytes: 250 * GB,
    latency_per_outstanding: Duration::from_millis(9),
    maintenance: false,
};

/// So many disks of 75 GB on the first of two datastores, each of them busy or none, and of a
/// machine each or all of one.
fn disks(count: usize, busy: bool, machines: Vec<Keep>) -> Inventory {
    let disk = |number: usize| Disk {
        machine: number.min(machines.len() - 1),
        bytes: 75 * GB,
        outstanding: f64::from(u8::from(busy)),
        datastore: 0,
    };
    Inventory {
        disks: (0..count).map(disk).collect(),
        machines,
        datastores: vec![EMPTY; 2],
    }
}

fn apart(count: usize, busy: bool) -> Inventory {
    disks(count, busy, vec![Keep::Together; count])
}

fn advice(inventory: &Inventory) -> Advice {
    advise(inventory, &Thresholds::STORAGE_DRS)
}

fn moves(inventory: &Inventory) -> f64 {
    advice(inventory).moves.len() as f64
}

/// Disks on another datastore after the advice was given to that automation.
fn moved(automation: Automation) -> f64 {
    let mut inventory = apart(3, false);
    advice(&inventory).carry_out(automation, &mut inventory);
    let elsewhere = inventory.disks.iter().filter(|disk| disk.datastore != 0);
    elsewhere.count() as f64
}

fn used_percent(inventory: &Inventory) -> f64 {
    let bytes: u64 = inventory.disks.iter().map(|disk| disk.bytes).sum();
    bytes as f64 / EMPTY.capacity_bytes as f64 * 100.0
}

fn latency_ms(inventory: &Inventory) -> f64 {
    let outstanding: f64 = inventory.disks.iter().map(|disk| disk.outstanding).sum();
    EMPTY.latency_per_outstanding.as_secs_f64() * 1e3 * outstanding
}

/// Disks that leave a datastore in maintenance.
fn emptied(count: usize) -> f64 {
    let mut inventory = apart(count, false);
    inventory.datastores[0].maintenance = true;
    moves(&inventory)
}

/// Moves of two disks of one machine, which lie on one datastore.
fn kept(keep: Keep) -> f64 {
    moves(&disks(2, false, vec![keep]))
}

pub fn section() -> Section {
    Section {
        title: "H. Storage DRS",
        runs: &[],
        rows: vec![
            given(
                "three disks of 75 GB, used of 250 GB",
                "%",
                90.0,
                |_| Some(used_percent(&apart(3, false))),
                "model, as all of this section",
            )
            .restated(),
            given(
                "disks that are recommended to move then",
                "",
                1.0,
                |_| Some(moves(&apart(3, false))),
                "threshold of 80 %",
            )
            .restated(),
            given(
                "one busy disk",
                "ms",
                9.0,
                |_| Some(latency_ms(&apart(1, true))),
                "taken as given: it is the parameter of the datastore",
            )
            .restated(),
            given(
                "disks that are recommended to move then",
                "",
                0.0,
                |_| Some(moves(&apart(1, true))),
                "threshold of 15 ms",
            )
            .restated(),
            given(
                "two busy disks, above",
                "ms",
                15.0,
                |_| Some(latency_ms(&apart(2, true))),
                "given is only that they are above; latency is linear in what is outstanding",
            )
            .between(15.0, f64::INFINITY),
            given(
                "disks that are recommended to move then",
                "",
                1.0,
                |_| Some(moves(&apart(2, true))),
                "the other datastore is idle",
            )
            .restated(),
            given(
                "disks that manual mode moves by itself, of that one",
                "",
                0.0,
                |_| Some(moved(Automation::Manual)),
                "three disks, 90 % used",
            )
            .restated(),
            given(
                "disks that automatic mode moves",
                "",
                1.0,
                |_| Some(moved(Automation::Automatic)),
                "the same",
            )
            .restated(),
            given(
                "two disks of a machine on one datastore, to be kept apart: moves",
                "",
                1.0,
                |_| Some(kept(Keep::Apart)),
                "nothing else is wrong",
            )
            .restated(),
            given(
                "the same, to be kept together: moves",
                "",
                0.0,
                |_| Some(kept(Keep::Together)),
                "",
            )
            .restated(),
            given(
                "disks that leave a datastore in maintenance, of two",
                "",
                2.0,
                |_| Some(emptied(2)),
                "it is empty then",
            )
            .restated(),
        ],
    }
}
