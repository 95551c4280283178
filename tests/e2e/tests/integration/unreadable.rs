//! RAID 6 without two of its drives, and a third with blocks that are damaged: exactly
//! the blocks that nothing can give are MEDIUM ERRORs, with their LBA, and everything
//! else reads right. Writing over such a block makes it readable.
//!
//! Nothing here knows the format: where a block lies is found by its content, and what
//! shares a row is what lies at the same offset of the drives (docs/internals/format.md).

use e2e::array::{Array, TARGET};
use e2e::drive_files::garbage;
use e2e::initiator::{Answer, Initiator, SECTOR, Sense};
use e2e::ledger::Ledger;
use e2e::site_text::OnePool;
use e2e::writer::{fill, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;

const POOL: OnePool = OnePool {
    level: "6",
    drives: 6,
    spares: 0,
    drive_mib: 64,
    volume_mib: 16,
};
const DATA_DRIVES: usize = 4;
const SECTORS: Range<u64> = 0..(16 << 20) / SECTOR as u64;
const BLOCK: usize = 4096;
const BLOCK_SECTORS: u64 = (BLOCK / SECTOR) as u64;
const GONE: [usize; 2] = [1, 4];
const HURT: usize = 2;
const HURT_ROWS: usize = 12;

/// The volume's blocks (first LBA) by where they lie: offset on the drive, then drive.
type Rows = BTreeMap<usize, BTreeMap<usize, u64>>;

struct Scene {
    array: Array,
    ledger: Ledger,
    /// Blocks that nothing can give, by first LBA.
    lost: BTreeSet<u64>,
    /// The same by row.
    hurt: Vec<Vec<u64>>,
}

/// Finds every block of the volume on the drives. A block that is in a log as well
/// lies last in its place.
fn rows(array: &Array, ledger: &Ledger) -> Rows {
    let mut found: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for drive in 0..POOL.drives {
        let bytes = fs::read(array.file(&format!("d{drive}.img"))).unwrap();
        for (index, block) in bytes.chunks_exact(BLOCK).enumerate() {
            let Some(lba) = ledger.whose(block) else {
                continue;
            };
            let place = found.entry(lba).or_insert((drive, 0));
            if index * BLOCK > place.1 {
                *place = (drive, index * BLOCK);
            }
        }
    }
    let blocks = SECTORS.end / BLOCK_SECTORS;
    assert_eq!(found.len() as u64, blocks, "blocks not found on any drive");
    let mut rows = Rows::new();
    for (lba, (drive, at)) in found {
        rows.entry(at).or_default().insert(drive, lba);
    }
    rows
}

/// Damages some rows of one drive and takes two drives away.
fn scene() -> Scene {
    let mut array = Array::start_with(&POOL.text());
    let mut ledger = Ledger::new(SECTORS);
    fill(array.portal(), TARGET, &mut ledger);
    assert!(array.stop().success());
    let rows = rows(&array, &ledger);
    let whole = rows.iter().filter(|(_, row)| row.len() == DATA_DRIVES);
    let whole: Vec<_> = whole.collect();
    assert!(whole.len() > 500, "{} rows are full", whole.len());
    let mut hurt = Vec::new();
    let mut kinds = BTreeSet::new();
    for (seed, (at, row)) in (1..).zip(whole.iter().step_by(whole.len() / HURT_ROWS)) {
        let run = **at as u64..(**at + BLOCK) as u64;
        garbage(&array.file(&format!("d{HURT}.img")), run, seed);
        // Three of the row's blocks can't be had, and it can give two.
        let of_row = row
            .iter()
            .filter(|(drive, _)| **drive == HURT || GONE.contains(drive));
        let of_row: Vec<u64> = of_row.map(|(_, lba)| *lba).collect();
        kinds.insert((row.contains_key(&HURT), of_row.len()));
        hurt.push(of_row);
    }
    assert!(kinds.len() > 2, "data and parity were hit: {kinds:?}");
    for drive in GONE {
        fs::remove_file(array.file(&format!("d{drive}.img"))).unwrap();
    }
    array.start_again();
    Scene {
        array,
        ledger,
        lost: hurt.iter().flatten().copied().collect(),
        hurt,
    }
}

impl Scene {
    fn initiator(&self) -> Initiator {
        Initiator::login(self.array.portal(), "iqn.2026-11.dev.ashlar:look", TARGET).unwrap()
    }

    /// Reads in runs of `sectors` and compares each answer with what it has to be.
    fn look(&mut self, sectors: u64, when: &str) {
        let mut initiator = self.initiator();
        for lba in SECTORS.step_by(sectors as usize) {
            let answer = initiator.read(lba, sectors as usize).unwrap();
            match (answer, self.first_lost(lba, sectors)) {
                (Answer::Good(data), None) => self.ledger.check(lba, &data, when),
                (answer, Some(bad)) => {
                    assert_eq!(
                        answer,
                        Answer::Check(Sense::unread(bad)),
                        "{when}: LBA {lba}"
                    );
                }
                (answer, None) => panic!("{when}: LBA {lba} can be had: {answer:?}"),
            }
        }
    }

    /// The first sector of a run that can't be read.
    fn first_lost(&self, lba: u64, sectors: u64) -> Option<u64> {
        let block = lba - lba % BLOCK_SECTORS;
        let bad = self.lost.range(block..lba + sectors).next()?;
        Some(lba.max(*bad))
    }

    fn write(&mut self, lba: u64, sectors: usize) -> Answer {
        let number = self.ledger.next_number();
        let data = Ledger::data(number, lba, sectors);
        let answer = self.initiator().write(lba, data).unwrap();
        if answer == Answer::Good(Vec::new()) {
            self.ledger.acknowledged(number, lba, sectors);
        }
        answer
    }

    fn write_over(&mut self, lba: u64) {
        let written = self.write(lba, BLOCK_SECTORS as usize);
        assert_eq!(written, Answer::Good(Vec::new()), "LBA {lba}");
        self.lost.remove(&lba);
    }

    fn restart(&mut self) {
        self.array.kill();
        self.array.start_again();
    }
}

#[test]
fn exactly_what_nothing_can_give_is_a_medium_error() {
    let mut scene = scene();
    scene.look(BLOCK_SECTORS, "block by block");
    scene.look(256, "in runs");
    scene.look(1024, "in long runs");
    let all: Vec<u64> = scene.lost.iter().copied().collect();
    // A sector of such a block fails as itself, and can't be written by itself: what
    // is around it is not known.
    let answer = scene.initiator().read(all[0] + 3, 2).unwrap();
    assert_eq!(answer, Answer::Check(Sense::unread(all[0] + 3)));
    let Answer::Check(sense) = scene.write(all[0] + 3, 2) else {
        panic!("two sectors of a lost block are written")
    };
    assert_eq!(sense.key, 3, "{sense:?}");
    let status = scene.array.json(&["status"]);
    assert_eq!(status["health"], "degraded", "and nothing else: {status}");

    // Some come back by being written, for good.
    let rows = scene.hurt.clone();
    for lba in rows.iter().step_by(3).flatten() {
        scene.write_over(*lba);
    }
    scene.look(BLOCK_SECTORS, "with some written over");
    scene.restart();
    scene.look(BLOCK_SECTORS, "with some written over, after a kill");
    // Each of them has been read now, and so has been told of.
    let told = scene.lost.len();

    // Others share a row with what stays lost. New drives get everything but that.
    for row in rows.iter().skip(1).step_by(3) {
        scene.write_over(row[0]);
    }
    for drive in GONE {
        let drive = format!("d{drive}");
        scene
            .array
            .command(&["drive", "replace", "--yes", &drive])
            .ok();
    }
    scene.array.wait_healthy();
    scene.look(BLOCK_SECTORS, "with new drives");
    let lost = scene.array.events("block_lost");
    assert_eq!(lost.len(), told, "each once: {lost:?}");
    scene.restart();
    scene.look(BLOCK_SECTORS, "with new drives, after a kill");
    let left: Vec<u64> = scene.lost.iter().copied().collect();
    for lba in left {
        scene.write_over(lba);
    }
    scene.array.scrub();
    verify(
        scene.array.portal(),
        TARGET,
        &mut scene.ledger,
        "at the end",
    );
    assert!(scene.array.stop().success());
    let (code, said) = scene.array.fsck();
    assert_eq!(
        (code, &said["outcome"]),
        (Some(0), &"clean".into()),
        "{said:#}"
    );
}
