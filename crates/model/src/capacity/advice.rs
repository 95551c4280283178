//! The search for moves of disks that put a cluster right.
//!
//! First every datastore in maintenance is emptied, its largest disks first, each to where
//! it leaves the least wrong: all of that data has to move in any case. Then moves from
//! datastores and machines with which something is wrong are tried, those with the least data
//! first (uniform-cost search), so the first arrangement with nothing wrong moves the least.
//! The search ends after [`MOST_ARRANGEMENTS`]; then, as when nothing puts all right, the least
//! wrong one that was seen is the answer.

use super::state::{State, Wrong};
use super::{Automation, Inventory, Keep, Thresholds};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Arrangements that are looked at: enough for two moves among thirty disks and eight
/// datastores.
pub const MOST_ARRANGEMENTS: usize = 50_000;

/// One disk goes elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its place in [`Inventory::disks`].
    pub disk: usize,
    /// The datastore that it leaves.
    pub from: usize,
    /// The datastore that it goes to.
    pub to: usize,
}

/// The moves that are recommended, and their effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// By the number of the disk.
    pub moves: Vec<Move>,
    /// Data of all moves together, bytes.
    pub moved_bytes: u64,
    /// Whether nothing is wrong afterwards.
    pub puts_all_right: bool,
}

impl Advice {
    /// Makes the moves where the cluster moves by itself; whether it did.
    pub fn carry_out(&self, automation: Automation, inventory: &mut Inventory) -> bool {
        let moves = automation == Automation::Automatic;
        for each in self.moves.iter().filter(|_| moves) {
            inventory.disks[each.disk].datastore = each.to;
        }
        moves
    }
}

/// What to move.
///
/// # Panics
/// When a disk is of a machine, or on a datastore, that does not exist.
pub fn advise(inventory: &Inventory, thresholds: &Thresholds) -> Advice {
    let exist = |disk: &super::Disk| {
        disk.machine < inventory.machines.len() && disk.datastore < inventory.datastores.len()
    };
    assert!(inventory.disks.iter().all(exist), "a disk of nowhere");
    let mut state = State::new(inventory, thresholds);
    empty_datastores(&mut state);
    if !state.wrong().is_nothing() {
        search(&mut state);
    }
    let placed = inventory.disks.iter().zip(&state.places).enumerate();
    let moves: Vec<Move> = placed
        .filter(|(_, (disk, to))| disk.datastore != **to)
        .map(|(number, (disk, &to))| Move {
            disk: number,
            from: disk.datastore,
            to,
        })
        .collect();
    Advice {
        moved_bytes: moves
            .iter()
            .map(|each| inventory.disks[each.disk].bytes)
            .sum(),
        moves,
        puts_all_right: state.wrong().is_nothing(),
    }
}

/// Disks that go together: one, or all of a machine on a datastore.
struct Unit {
    disks: Vec<usize>,
    bytes: u64,
    from: usize,
}

fn units(state: &State<'_>) -> Vec<Unit> {
    let inventory = state.inventory;
    let mut units: Vec<Unit> = Vec::new();
    for (number, disk) in inventory.disks.iter().enumerate() {
        let from = state.places[number];
        let together = inventory.machines[disk.machine] == Keep::Together;
        let same = |unit: &&mut Unit| {
            together && unit.from == from && inventory.disks[unit.disks[0]].machine == disk.machine
        };
        if let Some(unit) = units.iter_mut().find(same) {
            unit.disks.push(number);
            unit.bytes += disk.bytes;
        } else {
            units.push(Unit {
                disks: vec![number],
                bytes: disk.bytes,
                from,
            });
        }
    }
    units
}

fn put(state: &mut State<'_>, unit: &Unit, datastore: usize) {
    for &disk in &unit.disks {
        state.places[disk] = datastore;
    }
}

/// Datastores that a disk may go to.
fn open_datastores(inventory: &Inventory) -> impl Iterator<Item = usize> {
    let numbered = inventory.datastores.iter().enumerate();
    numbered.filter_map(|(number, datastore)| (!datastore.maintenance).then_some(number))
}

fn empty_datastores(state: &mut State<'_>) {
    let mut stranded = units(state);
    stranded.retain(|unit| state.inventory.datastores[unit.from].maintenance);
    stranded.sort_by_key(|unit| Reverse(unit.bytes));
    for unit in &stranded {
        let mut best: Option<(Wrong, f64, usize)> = None;
        for datastore in open_datastores(state.inventory) {
            put(state, unit, datastore);
            let wrong = state.wrong();
            let used = state.used(datastore);
            let better = best.as_ref().is_none_or(|(least, least_used, _)| {
                wrong
                    .compare(least)
                    .then(used.total_cmp(least_used))
                    .is_lt()
            });
            if better {
                best = Some((wrong, used, datastore));
            }
        }
        put(
            state,
            unit,
            best.map_or(unit.from, |(_, _, datastore)| datastore),
        );
    }
}

/// Where a unit may go, for what is wrong where it is.
fn destinations(state: &State<'_>, unit: &Unit) -> Vec<usize> {
    let inventory = state.inventory;
    let moves = |&disk: &usize| inventory.disks[disk].datastore != unit.from;
    let moved = unit.disks.iter().any(moves);
    let machine = inventory.disks[unit.disks[0]].machine;
    let anywhere = state.slow(unit.from) > 0.0 || state.breaks_rule(machine);
    if moved || !(anywhere || state.overfull(unit.from) > 0.0) {
        return Vec::new();
    }
    let used = state.used(unit.from);
    let emptier = |to: usize| used - state.used(to) >= state.thresholds.least_difference;
    open_datastores(inventory)
        .filter(|&to| to != unit.from && (anywhere || emptier(to)))
        .collect()
}

/// An arrangement that is to be looked at: bytes and moves first, then in the order found.
type Candidate = Reverse<(u64, usize, usize, Vec<(usize, usize)>)>;

fn search(state: &mut State<'_>) {
    let units = units(state);
    let ways: Vec<Vec<usize>> = units.iter().map(|unit| destinations(state, unit)).collect();
    let origin = state.places.clone();
    let mut best = (state.wrong(), origin.clone());
    let mut found = 0;
    let mut heap: BinaryHeap<Candidate> = BinaryHeap::from([Reverse((0, 0, 0, Vec::new()))]);
    while let Some(Reverse((bytes, _, _, moves))) = heap.pop() {
        state.places.clone_from(&origin);
        for &(unit, to) in &moves {
            put(state, &units[unit], to);
        }
        let wrong = state.wrong();
        if wrong.compare(&best.0).is_lt() {
            best = (wrong, state.places.clone());
        }
        if wrong.is_nothing() {
            break;
        }
        // Each set of units once: only those after the last one are added.
        let next = moves.last().map_or(0, |&(unit, _)| unit + 1);
        for unit in next..units.len() {
            for &to in &ways[unit] {
                if found == MOST_ARRANGEMENTS {
                    break;
                }
                found += 1;
                let mut more = moves.clone();
                more.push((unit, to));
                heap.push(Reverse((
                    bytes + units[unit].bytes,
                    more.len(),
                    found,
                    more,
                )));
            }
        }
    }
    state.places = best.1;
}
