//! Nothing acknowledged is lost, whatever happens to the server and, within the
//! redundancy of the level, to its drive files: `kill -9` under load again and again,
//! and files overwritten, deleted and cut off between. After every restart everything
//! is read back; at the end `ashlar fsck` finds nothing.

use base::Prng;
use e2e::array::{Array, TARGET};
use e2e::drive_files::{all_garbage, cut, garbage, garbage_while_open, len_bytes};
use e2e::initiator::{Initiator, SECTOR};
use e2e::ledger::Ledger;
use e2e::program::run as run_program;
use e2e::site_text::OnePool;
use e2e::writer::{verify, write_until_lost};
use std::fs;
use std::sync::mpsc::channel;
use std::thread;

/// Hosts, each with a region of its own.
const HOSTS: u64 = 2;
/// Commands that end before a kill: at most so many, drawn anew each time.
const COMMANDS_MAX: u64 = 500;

/// Added to every seed: for looking around in other runs than the usual ones.
fn other_seed() -> u64 {
    let from_outside = std::env::var("ASHLAR_E2E_SEED").ok();
    from_outside.map_or(0, |seed| seed.parse().expect("ASHLAR_E2E_SEED is a number"))
}

/// Looks at the drives during a recovery before it is killed: at most so many.
const MOMENTS_MAX: u64 = 3000;

/// What happens to a drive file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// All of it is garbage.
    Overwritten,
    /// It is gone.
    Deleted,
    /// Half of it is gone.
    Cut,
    /// Nothing is left in it.
    Emptied,
    /// What is behind the label is garbage: metadata, logs, sums and data.
    LabelOnly,
    /// Garbage in the middle, while it is served.
    WhileServed,
}
use Damage::{Cut, Deleted, Emptied, LabelOnly, Overwritten, WhileServed};

/// What happens to drives around one kill.
type Step = &'static [(Damage, &'static str)];

impl Damage {
    /// Whether the drive is out of use then, and has to be replaced.
    fn is_loss(self) -> bool {
        !matches!(self, LabelOnly | WhileServed)
    }

    fn apply(self, array: &Array, drive: &str, seed: u64) {
        let path = array.file(&format!("{drive}.img"));
        let len = len_bytes(&path);
        match self {
            Overwritten => all_garbage(&path, seed),
            Deleted => fs::remove_file(&path).unwrap(),
            Cut => cut(&path, len / 2),
            Emptied => cut(&path, 0),
            // The labels take 64 KiB (docs/internals/format.md, "A drive").
            LabelOnly => garbage(&path, 64 << 10..len, seed),
            WhileServed => garbage_while_open(&path, len / 8..len - len / 8, seed),
        }
    }
}

struct Run {
    array: Array,
    ledgers: Vec<Ledger>,
    prng: Prng,
    kills: u64,
    /// What was done since all drives were whole.
    open: Vec<(Damage, &'static str)>,
}

impl Run {
    fn new(pool: OnePool, seed: u64) -> Self {
        let sectors = (pool.volume_mib << 20) / 512 / HOSTS;
        let region = |host: u64| host * sectors..(host + 1) * sectors;
        Run {
            array: Array::start_with(&pool.text()),
            ledgers: (0..HOSTS).map(|host| Ledger::new(region(host))).collect(),
            prng: Prng::from_seed(seed + other_seed()),
            kills: 0,
            open: Vec::new(),
        }
    }

    /// Load, a kill in the middle of it, damage, a start, and everything read back.
    fn step(&mut self, step: Step) {
        if !step.is_empty() {
            self.heal();
        }
        self.load_and_kill(step);
        for (damage, drive) in step.iter().filter(|(damage, _)| *damage != WhileServed) {
            damage.apply(&self.array, drive, self.kills);
        }
        if self.prng.chance(1, 2) {
            // And once more, in the middle of the recovery.
            self.array.start_and_kill(self.prng.below(MOMENTS_MAX));
        }
        self.array.start_again();
        self.read_back(&format!("after kill {} and {step:?}", self.kills));
        for (damage, drive) in step.iter().filter(|(damage, _)| damage.is_loss()) {
            self.replace(*damage, drive);
        }
        self.open.extend(step);
    }

    fn load_and_kill(&mut self, step: Step) {
        let (sender, ends) = channel();
        let mut hosts = Vec::new();
        for (number, ledger) in self.ledgers.drain(..).enumerate() {
            let name = format!("iqn.2026-11.dev.ashlar:host{number}");
            let initiator = Initiator::login(self.array.portal(), &name, TARGET).unwrap();
            let prng = self.prng.stream(&format!("{number} {}", self.kills));
            let sender = sender.clone();
            hosts.push(thread::spawn(move || {
                write_until_lost(initiator, ledger, prng, &sender)
            }));
        }
        drop(sender);
        let mut wait = |most: u64| {
            let wanted = self.prng.below(most) as usize;
            let came = ends.iter().take(wanted).count();
            assert_eq!(came, wanted, "the hosts ended by themselves");
        };
        wait(COMMANDS_MAX);
        for (damage, drive) in step.iter().filter(|(damage, _)| *damage == WhileServed) {
            damage.apply(&self.array, drive, self.kills);
            wait(COMMANDS_MAX);
        }
        self.array.kill();
        self.kills += 1;
        let ended = hosts.into_iter().map(|host| host.join());
        self.ledgers = ended
            .map(|ledger| ledger.expect("a host found an error"))
            .collect();
    }

    fn read_back(&mut self, when: &str) {
        for ledger in &mut self.ledgers {
            verify(self.array.portal(), TARGET, ledger, when);
        }
    }

    /// The same through an initiator that nobody here wrote.
    fn read_back_by_qemu(&mut self) {
        let copy = tempfile::NamedTempFile::new().unwrap();
        let (url, path) = (self.array.lun_url(0), copy.path().display().to_string());
        run_program(
            "qemu-img",
            &["convert", "-f", "raw", "-O", "raw", &url, &path],
        )
        .ok();
        let whole = fs::read(&path).unwrap();
        for ledger in &mut self.ledgers {
            let sectors = ledger.sectors();
            let bytes = sectors.start as usize * SECTOR..sectors.end as usize * SECTOR;
            ledger.check(sectors.start, &whole[bytes], "as qemu-img reads it");
        }
    }

    /// The lost drive is named, and another comes in its place.
    fn replace(&self, damage: Damage, drive: &str) {
        let status = self.array.json(&["status"]);
        assert_eq!(status["health"], "degraded", "{damage:?} {drive}");
        let missing = self.array.events("drive_missing");
        let named = format!("drive '{drive}'");
        let is_named = missing.iter().any(|text| text.contains(&named));
        assert!(is_named, "{named} after {damage:?} is not in {missing:?}");
        // What is too short for a drive has to go first.
        if matches!(damage, Cut | Emptied) {
            fs::remove_file(self.array.file(&format!("{drive}.img"))).unwrap();
        }
        self.array
            .command(&["drive", "replace", "--yes", drive])
            .ok();
    }

    /// Everything is whole again, and events have told what was not.
    fn heal(&mut self) {
        self.array.wait_healthy();
        let clean = "has ended: 0 blocks repaired, 0 lost";
        let hidden = self.open.iter().any(|(damage, _)| !damage.is_loss());
        let first = self.array.scrub();
        // New drives hold everything by now; only what is hidden is left to be found.
        assert!(hidden || first.ends_with(clean), "{first}");
        for (damage, drive) in self.open.drain(..) {
            if !damage.is_loss() {
                let mended = self.array.events("block_mended");
                let named = format!("drive '{drive}': ");
                let is_named = mended.iter().any(|text| text.contains(&named));
                assert!(is_named, "{named} after {damage:?} is not in {mended:?}");
            }
        }
        let lost = self.array.events("block_lost");
        assert!(lost.is_empty(), "{lost:?}");
        let second = self.array.scrub();
        assert!(second.ends_with(clean), "{second}");
    }

    /// Clean to the eye of `ashlar fsck`, closed and killed.
    fn end(mut self, kills: u64) {
        assert_eq!(self.kills, kills);
        let written: usize = self.ledgers.iter().map(Ledger::written).sum();
        assert!(written > 10_000, "only {written} sectors were written");
        self.heal();
        let (code, said) = {
            assert!(self.array.stop().success());
            self.array.fsck()
        };
        assert_eq!(
            (code, &said["outcome"]),
            (Some(0), &"clean".into()),
            "{said:#}"
        );
        assert_eq!(
            said["pools"][0]["findings"],
            serde_json::json!([]),
            "{said:#}"
        );
        self.array.start_again();
        self.read_back("after it was closed");
        self.load_and_kill(&[]);
        let (code, said) = self.array.fsck();
        assert_eq!(
            (code, &said["outcome"]),
            (Some(0), &"clean".into()),
            "{said:#}"
        );
        self.array.start_again();
        self.read_back("at the end");
        self.read_back_by_qemu();
    }
}

fn run(pool: OnePool, seed: u64, steps: &[Step]) {
    let mut run = Run::new(pool, seed);
    for step in steps {
        run.step(step);
    }
    run.end(steps.len() as u64);
}

const POOL: OnePool = OnePool {
    level: "6",
    drives: 6,
    spares: 0,
    drive_mib: 64,
    volume_mib: 24,
};

#[test]
fn raid_6_survives_kills_and_two_damaged_drives() {
    let steps: &[Step] = &[
        &[],
        &[(Overwritten, "d0"), (WhileServed, "d4")],
        &[],
        &[(Deleted, "d1"), (Cut, "d2")],
        &[(LabelOnly, "d0"), (Emptied, "d5")],
        &[],
        &[(LabelOnly, "d1"), (LabelOnly, "d2")],
    ];
    run(POOL, 6, steps);
}

#[test]
fn raid_10_survives_kills_and_a_damaged_drive_of_each_pair() {
    let steps: &[Step] = &[
        &[(WhileServed, "d1")],
        &[(Overwritten, "d0"), (Cut, "d3")],
        &[],
        &[(LabelOnly, "d1"), (Deleted, "d2")],
        &[],
        &[(Emptied, "d0")],
        &[],
    ];
    let pool = OnePool {
        level: "10",
        drives: 4,
        ..POOL
    };
    run(pool, 10, steps);
}

#[test]
fn raid_5_survives_kills_and_a_damaged_drive() {
    let steps: &[Step] = &[
        &[],
        &[(LabelOnly, "d0")],
        &[(Deleted, "d2")],
        &[],
        &[(WhileServed, "d1")],
        &[(Overwritten, "d3")],
    ];
    let pool = OnePool {
        level: "5",
        drives: 4,
        ..POOL
    };
    run(pool, 5, steps);
}
