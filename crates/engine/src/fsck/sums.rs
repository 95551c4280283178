//! The check of integrity blocks: every copy whole and of the newest version, unless a log says
//! that it was being changed; and the sums that an opening would go by.

use super::held::LogContents;
use super::map::Owners;
use super::report::Severity;
use super::subject::Subject;
use crate::drives::Zone;
use crate::integrity::Sum;
use crate::integrity::block::{self, BlockId, SUMS};
use crate::layout::SumMap;
use crate::world::World;
use base::BLOCK_BYTES;
use std::collections::BTreeMap;

/// Areas are read this much at a time.
const WINDOW_BYTES: u64 = 256 << 10;

/// The sums of a zone, by block, as an opening would have them.
pub(super) struct Sums {
    map: SumMap,
    blocks: Vec<[Sum; SUMS]>,
}

impl Sums {
    pub fn of(&self, block: u64) -> Sum {
        let (index, at) = self.map.place(block);
        let sums = self.blocks.get(index as usize);
        sums.map_or(Sum::LOST, |sums| sums[at])
    }
}

/// A slot of a copy.
enum Slot {
    Whole(u64, Box<[Sum; SUMS]>),
    Damaged,
    Unreadable(String),
}

/// What the copies of an integrity block hold: place in the group, pair in the area, both
/// slots.
type Copies = Vec<(usize, u64, [Slot; 2])>;

/// Looks at all integrity blocks of a zone.
pub(super) async fn check<W: World>(
    subject: &Subject<W>,
    zone: &Zone<W>,
    held: &LogContents,
    owners: &Owners,
) -> Sums {
    let total = zone.shape.sums.count();
    let mut copies = read_zone(subject, zone).await;
    let mut sums = Vec::with_capacity(total as usize);
    for index in 0..total {
        let copies = copies.remove(&index).unwrap_or_default();
        sums.push(judge(subject, zone, index, &copies, held));
    }
    let sums = Sums {
        map: zone.shape.sums,
        blocks: sums,
    };
    name_lost(subject, zone, &sums, held, owners);
    sums
}

/// All copies on drives that hold what they should, by integrity block.
async fn read_zone<W: World>(subject: &Subject<W>, zone: &Zone<W>) -> BTreeMap<u64, Copies> {
    let geometry = zone.shape.geometry;
    let slots = zone.shape.slots;
    let area = block::area_bytes(geometry, slots, zone.zone_bytes());
    let mut copies: BTreeMap<u64, Copies> = BTreeMap::new();
    for place in 0..geometry.places() {
        let member = zone.place(place);
        if !member.is_readable(zone.shape.zone) {
            continue;
        }
        let mut at = slots.first();
        while at < area {
            let len = WINDOW_BYTES.min(area - at);
            let from = zone.shape.area + at;
            let (bytes, bad) = subject.read_blocks(&member, from, len as usize).await;
            // A window has whole chunks of the area, and so both slots of its pairs.
            let even = |at: &u64| slots.slot_at(*at).filter(|(_, slot)| *slot == 0);
            let window = (at..at + len).step_by(BLOCK_BYTES);
            for (pair, _) in window.filter_map(|at| even(&at)) {
                let Some(index) = zone.shape.copy_at(place, pair) else {
                    continue;
                };
                let id = id(subject, zone, index);
                let inside = |slot| (slots.at(pair, slot) - at) as usize / BLOCK_BYTES;
                let slot = |slot| read_slot(id, &bytes, &bad, inside(slot));
                let found = (place, pair, [slot(0), slot(1)]);
                copies.entry(index).or_default().push(found);
            }
            at += len;
        }
    }
    copies
}

fn id<W: World>(subject: &Subject<W>, zone: &Zone<W>, index: u64) -> BlockId {
    BlockId {
        pool: subject.drives.identity().lane_uuid(),
        zone: zone.shape.zone,
        incarnation: zone.shape.incarnation,
        index: index as u32,
    }
}

/// Block `at` of a window of an area as a slot of `id`.
fn read_slot(id: BlockId, window: &[u8], bad: &[(usize, String)], at: usize) -> Slot {
    if let Some((_, why)) = bad.iter().find(|(block, _)| *block == at) {
        return Slot::Unreadable(why.clone());
    }
    let bytes = window.get(at * BLOCK_BYTES..(at + 1) * BLOCK_BYTES);
    match bytes.and_then(|bytes| block::decode(id, bytes)) {
        Some((version, sums)) => Slot::Whole(version.number, sums),
        None => Slot::Damaged,
    }
}

/// The newest whole slot of a copy.
fn newest(slots: &[Slot; 2]) -> Option<(u64, &[Sum; SUMS])> {
    let whole = slots.iter().filter_map(|slot| match slot {
        Slot::Whole(version, sums) => Some((*version, sums.as_ref())),
        _ => None,
    });
    whole.max_by_key(|(version, _)| *version)
}

/// Whether both slots are there, and next to each other.
fn is_whole(slots: &[Slot; 2]) -> bool {
    matches!(slots, [Slot::Whole(one, _), Slot::Whole(other, _)] if one.abs_diff(*other) == 1)
}

/// Compares the copies, and gives the sums that count.
fn judge<W: World>(
    subject: &Subject<W>,
    zone: &Zone<W>,
    index: u64,
    copies: &Copies,
    held: &LogContents,
) -> [Sum; SUMS] {
    subject.count(|counts| counts.sum_copies += copies.len() as u64);
    let logged = held.has_sums(&zone.shape, index);
    let severity = match logged {
        true => Severity::Note,
        false => Severity::Damage,
    };
    let best = copies
        .iter()
        .filter_map(|(_, _, slots)| newest(slots))
        .max_by_key(|(version, _)| *version);
    for (place, pair, slots) in copies {
        judge_slots(subject, zone, (*place, *pair), slots, severity);
        judge_version(subject, zone, (*place, *pair), slots, best, severity);
    }
    let Some((_, sums)) = best else {
        let (first, last) = zone.shape.sums.extent(index);
        let text = format!(
            "no copy of the checksums of blocks {} to {} of zone {} is whole: they count as lost",
            first, last, zone.shape.zone
        );
        subject.say(Severity::Damage, subject.pool(), text);
        return [Sum::LOST; SUMS];
    };
    let doubtful = !copies.iter().any(|(_, _, slots)| is_whole(slots));
    if doubtful && !logged {
        // One slot may be behind: what it says was not so in the end.
        return [Sum::LOST; SUMS];
    }
    *sums
}

fn judge_slots<W: World>(
    subject: &Subject<W>,
    zone: &Zone<W>,
    (place, pair): (usize, u64),
    slots: &[Slot; 2],
    severity: Severity,
) {
    for (slot, found) in (0..).zip(slots) {
        let (severity, text) = match found {
            Slot::Whole(..) => continue,
            Slot::Damaged => (severity, "this block of checksums is damaged".to_owned()),
            Slot::Unreadable(why) => (Severity::Damage, format!("a block of checksums: {why}")),
        };
        let at = zone.shape.slot_at(pair, slot);
        let member = zone.place(place);
        subject.say_at(severity, &member, at, BLOCK_BYTES as u64, text);
    }
}

fn judge_version<W: World>(
    subject: &Subject<W>,
    zone: &Zone<W>,
    (place, pair): (usize, u64),
    slots: &[Slot; 2],
    best: Option<(u64, &[Sum; SUMS])>,
    severity: Severity,
) {
    let (Some((version, sums)), Some((best, right))) = (newest(slots), best) else {
        return;
    };
    let text = match version == best {
        true if sums != right => {
            "these checksums and those of another drive are one version and differ"
        }
        true if !is_whole(slots) && slots.iter().all(|slot| matches!(slot, Slot::Whole(..))) => {
            "one of these two blocks of checksums is older than it can be"
        }
        true => return,
        false => "these checksums are behind those of another drive",
    };
    let (at, member) = (zone.shape.slot_at(pair, version), zone.place(place));
    subject.say_at(severity, &member, at, BLOCK_BYTES as u64, text);
}

/// Blocks of volumes that are known to be lost.
fn name_lost<W: World>(
    subject: &Subject<W>,
    zone: &Zone<W>,
    sums: &Sums,
    held: &LogContents,
    owners: &Owners,
) {
    let number = zone.shape.zone;
    for block in 0..zone.shape.blocks {
        if sums.of(block) != Sum::LOST || held.has_block(&zone.shape, block) {
            continue;
        }
        if let Some(run) = owners.place(number, block) {
            let text = "it is marked as lost, or its checksums are";
            let mut findings = subject.findings.borrow_mut();
            findings.push_run(Severity::Loss, run, text.to_owned());
        }
    }
}
