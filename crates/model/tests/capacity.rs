//! Storage recommendations: the published examples, and small cases against all possible ones.

use base::Prng;
use model::capacity::{
    Advice, Automation, Datastore, Disk, Inventory, Keep, Move, Thresholds, advise,
};
use std::time::Duration;

const GB: u64 = 1 << 30;

/// One outstanding I/O of sixteen that make 9 ms.
const DATASTORE: Datastore = Datastore {
    capacity_bytes: 250 * GB,
    latency_per_outstanding: Duration::from_nanos(562_500),
    maintenance: false,
};

const MAINTENANCE: Datastore = Datastore {
    maintenance: true,
    ..DATASTORE
};

fn disk(machine: usize, gigabytes: u64, outstanding: f64, datastore: usize) -> Disk {
    Disk {
        machine,
        bytes: gigabytes * GB,
        outstanding,
        datastore,
    }
}

fn inventory(datastores: &[Datastore], keep: Keep, disks: &[Disk]) -> Inventory {
    let machines = disks.iter().map(|disk| disk.machine + 1).max().unwrap_or(0);
    Inventory {
        datastores: datastores.to_vec(),
        machines: vec![keep; machines],
        disks: disks.to_vec(),
    }
}

fn advice(inventory: &Inventory) -> Advice {
    advise(inventory, &Thresholds::STORAGE_DRS)
}

#[test]
fn three_disks_of_75_gb_on_250_gb_are_one_too_many() {
    let full = [0, 1, 2].map(|machine| disk(machine, 75, 0.0, 0));
    let cluster = inventory(&[DATASTORE; 2], Keep::Together, &full);
    let advice = advice(&cluster);
    let one = Move {
        disk: 0,
        from: 0,
        to: 1,
    };
    assert_eq!(advice.moves, [one]);
    assert_eq!(advice.moved_bytes, 75 * GB);
    assert!(advice.puts_all_right);
}

#[test]
fn of_two_busy_disks_on_one_datastore_one_moves() {
    let busy = |number: usize| {
        let disks: Vec<Disk> = (0..number).map(|m| disk(m, 20, 16.0, 0)).collect();
        advice(&inventory(&[DATASTORE; 2], Keep::Together, &disks))
    };
    assert_eq!(busy(1).moves, [], "9 ms");
    assert_eq!(busy(2).moves.len(), 1, "18 ms");
    assert!(busy(2).puts_all_right);
    // Where latency does not count nobody moves.
    let disks = [disk(0, 20, 16.0, 0), disk(1, 20, 16.0, 0)];
    let cluster = inventory(&[DATASTORE; 2], Keep::Together, &disks);
    let no_latency = Thresholds {
        latency: None,
        ..Thresholds::STORAGE_DRS
    };
    assert_eq!(advise(&cluster, &no_latency).moves, []);
}

#[test]
fn manual_recommends_and_automatic_moves() {
    let disks = [0, 1, 2].map(|machine| disk(machine, 75, 0.0, 0));
    let before = inventory(&[DATASTORE; 2], Keep::Together, &disks);
    let advice = advice(&before);
    let mut cluster = before.clone();
    assert!(!advice.carry_out(Automation::Manual, &mut cluster));
    assert_eq!(cluster, before);
    assert!(advice.carry_out(Automation::Automatic, &mut cluster));
    assert_eq!(cluster.disks[0].datastore, 1);
    assert_eq!(
        crate::advice(&cluster).moves,
        [],
        "then nothing is left to do"
    );
}

#[test]
fn a_datastore_hardly_emptier_gets_nothing() {
    // 82 % and 79 %: the example of VMware's documentation.
    let disks = [
        disk(0, 200, 0.0, 0),
        disk(1, 5, 0.0, 0),
        disk(2, 197, 0.0, 1),
    ];
    let cluster = inventory(&[DATASTORE; 2], Keep::Anyhow, &disks);
    let advice = advice(&cluster);
    assert_eq!(advice.moves, []);
    assert!(!advice.puts_all_right);
    let any = Thresholds {
        least_difference: 0.0,
        used: 0.81,
        ..Thresholds::STORAGE_DRS
    };
    assert_eq!(advise(&cluster, &any).moves.len(), 1);
}

#[test]
fn disks_of_a_machine_stay_together() {
    // The machine of two disks goes as a whole, or the other one goes.
    let disks = [
        disk(0, 40, 0.0, 0),
        disk(0, 40, 0.0, 0),
        disk(1, 140, 0.0, 0),
    ];
    let together = advice(&inventory(&[DATASTORE; 2], Keep::Together, &disks));
    assert_eq!(
        together
            .moves
            .iter()
            .map(|each| each.disk)
            .collect::<Vec<_>>(),
        [0, 1]
    );
    let anyhow = advice(&inventory(&[DATASTORE; 2], Keep::Anyhow, &disks));
    assert_eq!(anyhow.moved_bytes, 40 * GB);
    // A machine of many disks is one move, not twelve to be found.
    let mut many = vec![disk(0, 10, 0.0, 0); 12];
    many.push(disk(1, 130, 0.0, 0));
    let whole = advice(&inventory(&[DATASTORE; 4], Keep::Together, &many));
    assert_eq!((whole.moves.len(), whole.moved_bytes), (12, 120 * GB));
    // A machine that is not together comes together, with the least data moved.
    let split = [disk(0, 40, 0.0, 0), disk(0, 30, 0.0, 1)];
    let mended = advice(&inventory(&[DATASTORE; 2], Keep::Together, &split));
    assert_eq!((mended.moves.len(), mended.moved_bytes), (1, 30 * GB));
    assert!(mended.puts_all_right);
}

#[test]
fn disks_of_a_machine_are_kept_apart() {
    let same = [
        disk(0, 40, 0.0, 0),
        disk(0, 30, 0.0, 0),
        disk(0, 20, 0.0, 1),
    ];
    let three = advice(&inventory(&[DATASTORE; 3], Keep::Apart, &same));
    let smallest = Move {
        disk: 1,
        from: 0,
        to: 2,
    };
    assert_eq!(three.moves, [smallest], "not to 1, where another one is");
    let two = advice(&inventory(&[DATASTORE; 2], Keep::Apart, &same));
    assert!(!two.puts_all_right && two.moves.is_empty());
}

#[test]
fn maintenance_empties_a_datastore_and_fills_none() {
    let disks = [
        disk(0, 90, 0.0, 0),
        disk(1, 60, 0.0, 0),
        disk(2, 30, 0.0, 0),
        disk(3, 60, 0.0, 1),
    ];
    let datastores = [MAINTENANCE, DATASTORE, DATASTORE];
    let mut cluster = inventory(&datastores, Keep::Together, &disks);
    let advice = advice(&cluster);
    assert_eq!(advice.moved_bytes, 180 * GB);
    assert!(advice.puts_all_right);
    advice.carry_out(Automation::Automatic, &mut cluster);
    assert!(cluster.disks.iter().all(|disk| disk.datastore != 0));
    // The largest first: 60, 60 and 100 GB fit beside 80 GB each only so.
    let tight = [
        disk(0, 60, 0.0, 0),
        disk(1, 60, 0.0, 0),
        disk(2, 100, 0.0, 0),
        disk(3, 80, 0.0, 1),
        disk(4, 80, 0.0, 2),
    ];
    assert!(crate::advice(&inventory(&datastores, Keep::Together, &tight)).puts_all_right);
    let larger = Datastore {
        capacity_bytes: 500 * GB,
        ..MAINTENANCE
    };
    let nowhere = inventory(&[MAINTENANCE, larger], Keep::Together, &disks[..1]);
    assert_eq!(
        crate::advice(&nowhere).moves,
        [],
        "not from one to the other"
    );
    // With nowhere to go all stays, and it is said.
    let alone = inventory(&[MAINTENANCE], Keep::Together, &disks[..1]);
    assert!(!crate::advice(&alone).puts_all_right);
}

#[test]
fn what_can_not_be_put_right_is_made_less_wrong() {
    let disks = [0, 1, 2].map(|machine| disk(machine, 120, 0.0, 0));
    let small = Datastore {
        capacity_bytes: 160 * GB,
        ..DATASTORE
    };
    let advice = advice(&inventory(&[DATASTORE, small], Keep::Together, &disks));
    assert_eq!(advice.moves.len(), 1, "two make the other too full");
    assert!(!advice.puts_all_right);
}

/// The least data moved by any arrangement that puts all right, where only disks of datastores
/// with too much on them move.
fn least_of_all(cluster: &Inventory, most_used: f64, most_latency: f64) -> Option<u64> {
    let wrong = |places: &[usize], store: usize| {
        let datastore = &cluster.datastores[store];
        let its = || {
            cluster
                .disks
                .iter()
                .zip(places)
                .filter(|(_, place)| **place == store)
        };
        let bytes: u64 = its().map(|(disk, _)| disk.bytes).sum();
        let outstanding: f64 = its().map(|(disk, _)| disk.outstanding).sum();
        bytes as f64 / datastore.capacity_bytes as f64 > most_used
            || outstanding * datastore.latency_per_outstanding.as_secs_f64() > most_latency
    };
    let origin: Vec<usize> = cluster.disks.iter().map(|disk| disk.datastore).collect();
    let stores = cluster.datastores.len();
    let mut least = None;
    for way in 0..stores.pow(origin.len() as u32) {
        let digit = |position: usize| way / stores.pow(position as u32) % stores;
        let places: Vec<usize> = (0..origin.len()).map(digit).collect();
        let moved = |&disk: &usize| places[disk] != origin[disk];
        let allowed = |disk: usize| places[disk] == origin[disk] || wrong(&origin, origin[disk]);
        if (0..origin.len()).all(allowed) && (0..stores).all(|store| !wrong(&places, store)) {
            let bytes = (0..origin.len())
                .filter(moved)
                .map(|disk| cluster.disks[disk].bytes)
                .sum();
            least = Some(least.map_or(bytes, |least: u64| least.min(bytes)));
        }
    }
    least
}

#[test]
fn the_least_data_moves() {
    let thresholds = Thresholds {
        least_difference: -1.0,
        ..Thresholds::STORAGE_DRS
    };
    let mut prng = Prng::from_seed(7);
    let (mut right, mut beyond) = (0, 0);
    for _ in 0..150 {
        let disks: Vec<Disk> = (0..6)
            .map(|machine| {
                let outstanding = prng.below(14) as f64;
                disk(
                    machine,
                    30 + prng.below(110),
                    outstanding,
                    prng.below(3) as usize,
                )
            })
            .collect();
        let cluster = inventory(&[DATASTORE; 3], Keep::Anyhow, &disks);
        let advice = advise(&cluster, &thresholds);
        let least = least_of_all(&cluster, 0.8, 0.015);
        assert_eq!(advice.puts_all_right, least.is_some(), "{cluster:?}");
        if let Some(least) = least {
            assert_eq!(advice.moved_bytes, least, "{cluster:?}");
            right += usize::from(least > 0);
        } else {
            beyond += 1;
        }
        assert_eq!(advice, advise(&cluster, &thresholds), "the same twice");
    }
    assert!(
        right > 30 && beyond > 3,
        "{right} {beyond}: cases of both kinds"
    );
}

#[test]
#[should_panic(expected = "a disk of nowhere")]
fn a_disk_without_a_datastore_is_refused() {
    advice(&inventory(
        &[DATASTORE],
        Keep::Anyhow,
        &[disk(0, 1, 0.0, 1)],
    ));
}
