//! Rules of thumb of drives and of RAID levels, beside modelled drives and the engine.

use crate::row::{Section, given};
use crate::run::{Outcomes, Run};
use base::{DriveOffset, Prng, Time};
use model::flash::{Flash, closed_loop as flash_loop};
use model::hdd::{Hdd, State, closed_loop};
use model::{Request, RequestKind};
use rehearse::parts::drive::DriveKind;
use rehearse::plan::thumb;
use site::Level;

/// Small operations on a pool of twenty drives, behind a write cache that is soon full: what is
/// measured is what goes to the drives.
const fn small(set: &'static [(&'static str, &'static str)]) -> Run {
    Run::of("ps6110xv", "", (120, 120)).with(set)
}

const RAID_5_MIX: Run = small(&[
    ("vm_group.mix.profile", "rand-8k-90"),
    (
        "pool.array1.groups",
        "[{ level = \"5\", drives = 5, from = \"sas\", count = 4 }]",
    ),
    ("controller.active.write_cache", "64 MiB"),
    ("vm_group.mix.filled", "100"),
]);
const RAID_5: Run = small(&[
    ("vm_group.mix.profile", "rand-4k-write"),
    (
        "pool.array1.groups",
        "[{ level = \"5\", drives = 5, from = \"sas\", count = 4 }]",
    ),
    ("controller.active.write_cache", "64 MiB"),
    ("vm_group.mix.filled", "100"),
]);
const RAID_6: Run = small(&[
    ("vm_group.mix.profile", "rand-4k-write"),
    (
        "pool.array1.groups",
        "[{ level = \"6\", drives = 10, from = \"sas\", count = 2 }]",
    ),
    ("controller.active.write_cache", "64 MiB"),
    ("vm_group.mix.filled", "100"),
]);
const RAID_10: Run = small(&[
    ("vm_group.mix.profile", "rand-4k-write"),
    (
        "pool.array1.groups",
        "[{ level = \"10\", drives = 20, from = \"sas\" }]",
    ),
    ("controller.active.write_cache", "64 MiB"),
    ("vm_group.mix.filled", "100"),
]);

const RUNS: &[Run] = &[RAID_5_MIX, RAID_5, RAID_6, RAID_10];

const SMALL_BYTES: u64 = 4 << 10;

/// Random reads of 4 KiB over all of a drive, one at a time.
fn drive_per_s(drive: &Hdd) -> f64 {
    let mut state = State::new(drive, &mut Prng::from_seed(1).stream("drive"));
    let mut prng = Prng::from_seed(1).stream("requests");
    let places = drive.capacity_bytes / SMALL_BYTES;
    let next = || Request {
        kind: RequestKind::Read,
        at: DriveOffset(prng.below(places) * SMALL_BYTES),
        len_bytes: SMALL_BYTES,
    };
    closed_loop::run(&mut state, Time(0), 1, 20_000, next).iops()
}

fn flash_per_s(drive: &Flash) -> f64 {
    let root = Prng::from_seed(1);
    let mut state = model::flash::State::new(drive, &mut root.stream("drive"));
    let load = flash_loop::random(drive, 0, root.stream("load"));
    flash_loop::run(&mut state, 1, (0, 20_000), load).iops()
}

/// By the arithmetic that a rehearsal prints beside each pool.
fn rule(drives: f64, kind: &DriveKind) -> Option<f64> {
    Some(drives * thumb::drive_per_s(kind)?)
}

/// What drives do for 25,000 I/Os of hosts, by what they did for each in a run.
fn of_25_000(outcomes: &Outcomes) -> Option<f64> {
    Some(outcomes.back_end(RAID_5_MIX, "array1")? * 25_000.0)
}

const RULE: &str = "the arithmetic that a rehearsal prints beside each pool";

const ENGINE: &str = "rehearsed: I/Os of 20 drives for each of the host's, random writes of 4 KiB, \
    64 MiB of write cache";

pub fn section() -> Section {
    Section {
        title: "A. Rules of thumb of drives and RAID",
        runs: RUNS,
        rows: vec![
            given(
                "SAS 15k, small random I/O",
                "IO/s",
                180.0,
                |_| Some(drive_per_s(&Hdd::SAS_15K)),
                "random reads of 4 KiB over all of the drive, one at a time",
            )
            .restated(),
            given(
                "SAS 10k",
                "IO/s",
                150.0,
                |_| Some(drive_per_s(&Hdd::SAS_10K)),
                "the same",
            )
            .restated(),
            given(
                "NL-SAS 7.2k",
                "IO/s",
                90.0,
                |_| Some(drive_per_s(&Hdd::NL_SAS_7K2)),
                "the same",
            )
            .restated(),
            given(
                "flash (2011, SLC)",
                "IO/s",
                3500.0,
                |_| Some(flash_per_s(&Flash::SLC_SAS_100)),
                "the same; the rule sizes whole arrays and is not what a drive does: this one's \
                 datasheet has 48,000 reads with a deep queue",
            )
            .restated(),
            given(
                "25,000 host IO/s at 9 : 1 on RAID 5, by the rule",
                "IO/s",
                32_500.0,
                |_| Some(thumb::back_end_per_s(Level::Raid5, 22_500.0, 2_500.0)),
                RULE,
            )
            .restated(),
            given(
                "the same, by what the engine does",
                "IO/s",
                32_500.0,
                of_25_000,
                "rehearsed: random I/O of 8 KiB on 20 drives, for each of the host's, times 25,000",
            )
            .restated(),
            given(
                "a write on RAID 5",
                "×",
                4.0,
                |o| o.back_end(RAID_5, "array1"),
                ENGINE,
            )
            .restated(),
            given(
                "a write on RAID 6",
                "×",
                6.0,
                |o| o.back_end(RAID_6, "array1"),
                "the same",
            )
            .restated(),
            given(
                "a write on RAID 1/0",
                "×",
                2.0,
                |o| o.back_end(RAID_10, "array1"),
                "the same",
            )
            .restated(),
            given(
                "40 SAS 10k of a pool, by the rule",
                "IO/s",
                6000.0,
                |_| rule(40.0, &DriveKind::Hdd(Hdd::SAS_10K)),
                RULE,
            )
            .restated(),
            given(
                "its 5 flash drives, by the rule",
                "IO/s",
                17_500.0,
                |_| rule(5.0, &DriveKind::Flash(Flash::SLC_SAS_100)),
                RULE,
            )
            .restated(),
            given(
                "40 SAS 10k, as modelled",
                "IO/s",
                6000.0,
                |_| Some(40.0 * drive_per_s(&Hdd::SAS_10K)),
                "random reads of 4 KiB, one at a time",
            )
            .restated(),
        ],
    }
}
