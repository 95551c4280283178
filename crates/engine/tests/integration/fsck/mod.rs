//! The offline check of a pool: no findings after a clean close, and damage is named with drive and
//! offset.

mod lanes;
mod parts;
mod sweep;

use crate::common::{DRIVE_BYTES, PAGE, Shelf, content, media, spec, thin};
use base::{DriveOffset, VolumeOffset};
use engine::fsck::{self, Finding, Options, Progress, Report, Severity};
use engine::label::{Label, PoolIdentity, Slot};
use engine::{Drive, Lane, Level, PoolError, PoolErrorKind, World};
use world_sim::{Media, Outcome, SimDrive, SimWorld};

const LEVELS: [(Level, usize); 6] = [
    (Level::Simple, 1),
    (Level::Raid10 { copies: 2 }, 4),
    (Level::Raid10 { copies: 3 }, 3),
    (Level::Raid5, 4),
    (Level::Raid50, 6),
    (Level::Raid6, 5),
];

fn run<T>(shelf: &Shelf, root: impl AsyncFnOnce(SimWorld) -> T) -> T {
    let world = shelf.world();
    match world.run(u64::MAX, root(world.clone())) {
        Ok(Outcome::Done(value)) => value,
        _ => panic!("it does not end"),
    }
}

fn try_check(shelf: &Shelf, deep: bool) -> Result<Report, PoolError> {
    run(shelf, async |world| {
        fsck::check(&world, shelf.drives(&world), Options { deep }).await
    })
}

#[test]
fn progress_comes_to_its_end() {
    for (level, drives) in LEVELS {
        let shelf = Shelf::with_pool(drives, level);
        for deep in [false, true] {
            let progress = std::rc::Rc::new(Progress::default());
            let report = run(&shelf, async |world| {
                let drives = shelf.drives(&world);
                let progress = std::rc::Rc::clone(&progress);
                fsck::check_watched(&world, drives, Options { deep }, progress).await
            });
            assert_eq!(progress.read_bytes.get(), report.unwrap().counts.read_bytes);
            let (done, all) = (progress.done_blocks.get(), progress.all_blocks.get());
            assert!(done == all && all > 0, "{level}, {deep}: {done} of {all}");
        }
    }
}

/// Looks through the pool, and makes sure that this has changed nothing.
fn check(shelf: &Shelf, deep: bool) -> Report {
    let before = bytes_of(shelf);
    let report = try_check(shelf, deep).unwrap();
    assert!(bytes_of(shelf) == before, "something was written");
    report
}

fn bytes_of(shelf: &Shelf) -> Vec<Vec<u8>> {
    shelf
        .media
        .iter()
        .map(|(_, media)| raw(shelf, media, 0, DRIVE_BYTES))
        .collect()
}

/// What lies on a drive, faults or not.
fn raw(shelf: &Shelf, media: &std::rc::Rc<Media>, at: u64, len: u64) -> Vec<u8> {
    let faults = media.with_faults(std::mem::take);
    let bytes = run(shelf, async |world| {
        let drive = SimDrive::adversarial(&world, media);
        let buf = world.buffers().bytes(len as usize);
        let (buf, outcome) = drive.read(DriveOffset(at), buf).await;
        outcome.unwrap();
        buf.bytes().unwrap().to_vec()
    });
    media.with_faults(|slot| *slot = faults);
    bytes
}

fn texts(report: &Report) -> Vec<String> {
    let line = |f: &Finding| format!("{:?}: {}: {}", f.severity, f.place, f.text);
    report.findings.iter().map(line).collect()
}

#[track_caller]
fn assert_says(report: &Report, severity: Severity, place: &str, text: &str) {
    let found = report.findings.iter().any(|finding| {
        finding.severity == severity && finding.place.contains(place) && finding.text.contains(text)
    });
    assert!(
        found,
        "no {severity:?} {place}: {text} in {:#?}",
        texts(report)
    );
}

/// Blocks on a drive that hold what page `page` of the volume was filled with.
fn blocks_with(shelf: &Shelf, drive: &str, wanted: &[u8]) -> Vec<u64> {
    let bytes = raw(shelf, shelf.named(drive), 0, DRIVE_BYTES);
    let wanted: Vec<&[u8]> = wanted.chunks(4096).collect();
    let info = data_start(shelf);
    (0..)
        .zip(bytes.chunks(4096))
        .filter(|(block, bytes)| block * 4096 >= info && wanted.contains(bytes))
        .map(|(block, _)| block)
        .collect()
}

/// Where zones begin.
fn data_start(shelf: &Shelf) -> u64 {
    identity(shelf).data_start
}

/// What the label of the first drive says of the pool.
fn identity(shelf: &Shelf) -> PoolIdentity {
    let bytes = raw(shelf, &shelf.media[0].1, 0, 16 << 10);
    match Label::decode(&bytes) {
        Slot::Label(label) => label.pool,
        other => panic!("{other:?}"),
    }
}

/// Writes behind the pool's back.
fn patch(shelf: &Shelf, drive: &str, at: u64, bytes: &[u8]) {
    run(shelf, async |world| {
        let drive = SimDrive::adversarial(&world, shelf.named(drive));
        let data = world.buffers().copy_of(bytes).freeze();
        drive.write_durable(DriveOffset(at), data).await.unwrap();
    });
}

/// Flips a bit.
fn flip(shelf: &Shelf, drive: &str, at: u64) {
    let block = at / 4096 * 4096;
    let mut bytes = raw(shelf, shelf.named(drive), block, 4096);
    bytes[(at % 4096) as usize] ^= 4;
    patch(shelf, drive, block, &bytes);
}

#[test]
fn a_pool_that_was_closed_cleanly_gives_no_findings() {
    for (level, drives) in LEVELS {
        let shelf = Shelf::with_pool(drives, level);
        for deep in [false, true] {
            let report = check(&shelf, deep);
            assert_eq!(texts(&report), Vec::<String>::new(), "{level}");
            assert!(report.clean && report.worst.is_none());
            let counts = report.counts;
            assert_eq!((counts.drives, counts.volumes), (drives as u64, 1));
            assert_eq!(counts.mapped_pages, 8);
            assert_eq!(counts.data_blocks, if deep { 64 } else { 0 });
            assert!(counts.sum_copies > 0);
            let has_parity = matches!(level, Level::Raid5 | Level::Raid50 | Level::Raid6);
            assert_eq!(counts.parity_rows > 0, deep && has_parity);
        }
    }
}

#[test]
fn many_openings_and_writes_later_there_are_still_none() {
    for (level, drives) in LEVELS {
        let shelf = Shelf::with_pool(drives, level);
        for round in 0..6 {
            shelf.open(async |pool| {
                let name = format!("w{round}");
                let other = pool
                    .create_volume(thin(&name, 5 * PAGE as u64))
                    .await
                    .unwrap();
                for at in [0, 3, 7, 20] {
                    let data = content(pool.world(), 10 * round + at, 12 << 10);
                    other.write(VolumeOffset(at * 4096), data).await.unwrap();
                }
                let volume = pool.volume("v").unwrap();
                let data = content(pool.world(), round, 4096);
                volume
                    .write(VolumeOffset(4096 * round), data)
                    .await
                    .unwrap();
                if round % 2 == 1 {
                    pool.delete_volume(&format!("w{}", round - 1))
                        .await
                        .unwrap();
                }
                pool.close().await.unwrap();
            });
            let report = check(&shelf, true);
            assert_eq!(
                texts(&report),
                Vec::<String>::new(),
                "{level}, round {round}"
            );
        }
    }
}

#[test]
fn after_a_crash_there_are_only_notes() {
    for (level, drives) in LEVELS {
        let shelf = Shelf::with_pool(drives, level);
        let mut waiting = 0;
        for round in 0..10 {
            shelf.open(async |pool| {
                let volume = pool.volume("v").unwrap();
                write_about(&pool, &volume, round).await;
            });
            shelf.media.iter().for_each(|(_, media)| media.power_cut());
            let report = check(&shelf, true);
            assert!(!report.clean);
            assert_eq!(report.worst, Some(Severity::Note), "{:#?}", texts(&report));
            waiting += report.counts.log_entries;
        }
        assert!(waiting > 0, "{level}: the log never held anything");
    }
}

async fn write_about(pool: &Lane<SimWorld>, volume: &engine::Volume<SimWorld>, round: u64) {
    for at in 0..8 {
        let data = content(pool.world(), 100 * round + at, 8192);
        let offset = (at * 7 + round * 3) % 60;
        volume
            .write(VolumeOffset(offset * 4096), data)
            .await
            .unwrap();
        if at == 4 && round.is_multiple_of(2) {
            pool.store().drain().await.unwrap();
        }
    }
}

#[test]
fn a_damaged_block_of_data_is_named() {
    for (level, drives) in LEVELS {
        let shelf = Shelf::with_pool(drives, level);
        let written = crate::common::bytes(1, 8 * PAGE);
        let name = shelf
            .media
            .iter()
            .map(|(name, _)| name.clone())
            .find(|name| !blocks_with(&shelf, name, &written).is_empty())
            .unwrap();
        let block = blocks_with(&shelf, &name, &written)[0];
        shelf.named(&name).corrupt(block);
        assert_eq!(check(&shelf, false).worst, None, "only deep looks at data");
        let report = check(&shelf, true);
        let place = format!("drive '{name}', 4096 bytes at {}", block * 4096);
        let text = "not what was written";
        assert_says(&report, Severity::Damage, &place, text);
        match level {
            Level::Simple => assert_says(&report, Severity::Loss, "volume 'v', 4096 bytes", ""),
            _ => assert_eq!(texts(&report).len(), 1, "{:#?}", texts(&report)),
        }
        // The pool agrees: it puts the block right.
        shelf.open(async |pool| pool.close().await.unwrap());
    }
}

#[test]
fn what_can_not_be_read_is_named_and_more_than_redundancy_is_lost() {
    for (level, drives) in LEVELS {
        let shelf = Shelf::with_pool(drives, level);
        let start = data_start(&shelf) / 4096;
        for (name, _) in &shelf.media {
            let all = start..DRIVE_BYTES / 4096;
            shelf
                .named(name)
                .with_faults(|faults| faults.unreadable.extend(all));
        }
        let report = check(&shelf, true);
        assert_eq!(report.worst, Some(Severity::Loss));
        assert_says(
            &report,
            Severity::Damage,
            "drive 'd0'",
            "can't be read: media error",
        );
        assert_says(
            &report,
            Severity::Damage,
            "pool 'pool'",
            "no copy of the checksums",
        );
        assert_says(&report, Severity::Loss, "volume 'v'", "");
    }
}

#[test]
fn a_missing_blank_or_stale_drive_is_named() {
    let mut shelf = Shelf::with_pool(4, Level::Raid5);
    let old = crate::common::copy(shelf.named("d2"), DRIVE_BYTES);
    shelf.open(async |pool| pool.close().await.unwrap());
    shelf.media.remove(2);
    let report = check(&shelf, true);
    assert_says(
        &report,
        Severity::Damage,
        "drive 'd2' (place 2 of group 0)",
        "missing",
    );
    assert_eq!(
        (report.worst, report.counts.data_blocks > 0),
        (Some(Severity::Damage), true)
    );

    shelf
        .media
        .push(("blank".into(), media("blank", DRIVE_BYTES)));
    let report = check(&shelf, false);
    assert_says(&report, Severity::Damage, "drive 'blank'", "no label");
    assert_says(&report, Severity::Damage, "drive 'd2'", "missing");

    shelf.media[3] = ("d2".into(), old);
    let report = check(&shelf, false);
    assert_says(&report, Severity::Damage, "drive 'd2'", "stale");

    shelf.media.truncate(2);
    let report = check(&shelf, true);
    assert_says(&report, Severity::Loss, "group 0", "can't do without");
}

#[test]
fn what_is_no_pool_is_refused() {
    let refused = |shelf: &Shelf| try_check(shelf, false).unwrap_err().kind;
    assert_eq!(refused(&Shelf::new(0)), PoolErrorKind::Invalid);
    assert_eq!(refused(&Shelf::new(2)), PoolErrorKind::Unlabelled);
    let mut shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    let twin = ("twin".to_owned(), shelf.media[0].1.clone());
    shelf.media.push(twin);
    assert_eq!(refused(&shelf), PoolErrorKind::Invalid);
    let other = Shelf::with_pool_of_seed(1, Level::Simple, 1000);
    shelf.media[2] = ("other".into(), other.media[0].1.clone());
    assert_eq!(refused(&shelf), PoolErrorKind::Foreign);
    let created = other.create(spec("pool", Level::Simple), async |_| ());
    assert!(created.is_err());
}
