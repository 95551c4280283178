//! Damage to labels, metadata, logs and sums, and pools that are not whole.

use super::{assert_says, check, data_start, flip, identity, patch, raw, texts};
use crate::common::{self, DRIVE_BYTES, PAGE, Shelf, content};
use base::{PageIndex, PhysPage, Uuid, VolumeOffset};
use engine::fsck::Severity::{Damage, Loss, Note};
use engine::label::PoolIdentity;
use engine::meta::checkpoint::{Encoder, Step};
use engine::meta::{Record, State, VolumeId, checkpoint};
use engine::{Lane, Level, Provisioning, World};
use std::time::Duration;
use world_sim::SimWorld;

const MIRROR: Level = Level::Raid10 { copies: 2 };

/// A pool that was not closed, with something in its log.
fn crashed(drives: usize, level: Level) -> Shelf {
    let shelf = Shelf::with_pool(drives, level);
    shelf.open(async |pool| {
        let data = content(pool.world(), 5, 8192);
        let volume = pool.volume("v").unwrap();
        volume.write(VolumeOffset(4096), data).await.unwrap();
    });
    shelf
}

/// A checkpoint's slot, header first.
fn encoded(identity: &PoolIdentity, generation: u64, state: &State) -> Vec<u8> {
    let segment_bytes = checkpoint::segment_bytes(identity.journal_bytes);
    let mut encoder = Encoder::new(identity.uuid, generation, segment_bytes, state);
    let mut segments = Vec::new();
    loop {
        match encoder.step() {
            Step::More => {}
            Step::Segment(bytes) => segments.extend(bytes),
            Step::End(mut header) => {
                header.resize(checkpoint::HEADER_BYTES, 0);
                return [header, segments].concat();
            }
        }
    }
}

#[test]
fn a_torn_label_is_a_note_since_a_close_or_an_opening_may_have_been_cut_short() {
    for shelf in [Shelf::with_pool(2, MIRROR), crashed(2, MIRROR)] {
        for at in [0, 32 << 10] {
            flip(&shelf, "d1", at + 5000);
            let report = check(&shelf, false);
            let place = format!("drive 'd1', 16384 bytes at {at}");
            assert_says(&report, Note, &place, "no whole label");
            assert_eq!(report.worst, Some(Note));
            flip(&shelf, "d1", at + 5000);
        }
        shelf.named("d1").corrupt(0);
        shelf.named("d1").corrupt(8);
        let report = check(&shelf, false);
        assert_says(&report, Damage, "drive 'd1'", "it has no label");
    }
}

#[test]
fn copies_of_the_metadata_that_differ_are_named() {
    let shelf = Shelf::with_pool(3, Level::Raid5);
    let identity = identity(&shelf);
    let generation = check(&shelf, false).counts.checkpoint_generation;
    let at = identity.checkpoint_offset(generation);
    flip(&shelf, "d1", at + 4100);
    let report = check(&shelf, false);
    let place = format!("drive 'd1', {} bytes at {at}", identity.checkpoint_bytes);
    assert_says(&report, Damage, &place, "not whole here");

    // On all of them, there is nothing to open.
    for slot in 0..2 {
        for name in ["d0", "d1", "d2"] {
            flip(&shelf, name, identity.checkpoint_offset(slot) + 100);
        }
    }
    let report = check(&shelf, true);
    assert_says(
        &report,
        Loss,
        "pool 'pool', metadata",
        "no copy of any checkpoint",
    );
    assert!(shelf.try_open(async |_| ()).is_err());
}

#[test]
fn a_damaged_journal_is_named() {
    let shelf = Shelf::with_pool(3, Level::Raid5);
    let generation = check(&shelf, false).counts.checkpoint_generation;
    let at = identity(&shelf).journal_offset(generation);
    let area = raw(&shelf, shelf.named("d0"), at, 4096);
    assert!(area.starts_with(b"ASJB"), "nothing was journalled");
    flip(&shelf, "d2", at + 70);
    let report = check(&shelf, false);
    let place = format!("drive 'd2', 4096 bytes at {at}");
    assert_says(&report, Damage, &place, "journal batch is not whole");
    for name in ["d0", "d1"] {
        flip(&shelf, name, at + 70);
    }
    let report = check(&shelf, false);
    assert_says(&report, Loss, "metadata", "batch 0 is whole on no drive");
}

#[test]
fn maps_that_can_not_be_are_named() {
    // A zone has two pages there, and four numbers.
    let level = Level::Raid10 { copies: 2 };
    let shelf = Shelf::with_pool(2, level);
    let identity = identity(&shelf);
    let generation = check(&shelf, false).counts.checkpoint_generation;
    let mut state = State::default();
    let zone = |zone| Record::ZoneOn {
        zone,
        level,
        incarnation: zone + 10,
    };
    let create = |id, name: &str| Record::Create {
        read_only: false,
        id: VolumeId(id),
        uuid: Uuid::nil(),
        name: name.to_owned(),
        size_bytes: 4 * PAGE as u64,
        provisioning: Provisioning::Thin,
    };
    let map = |id, page, phys| Record::Map {
        id: VolumeId(id),
        page: PageIndex(page),
        phys: PhysPage(phys),
        count: 1,
    };
    let ready = |id| Record::Ready { id: VolumeId(id) };
    let records = [
        [
            zone(0),
            create(1, "a"),
            map(1, 0, 0),
            map(1, 9, 1),
            ready(1),
        ],
        [
            create(2, "b"),
            map(2, 0, 8),
            map(2, 1, 0),
            map(2, 2, 2),
            map(2, 3, 1 << 20),
        ],
        [
            ready(2),
            create(3, "b"),
            ready(3),
            create(4, "cut"),
            zone(3000),
        ],
    ];
    for record in records.iter().flatten().chain([&zone(1)]) {
        state.apply(record).unwrap();
    }
    let bytes = encoded(&identity, generation + 1, &state);
    let at = identity.checkpoint_offset(generation + 1);
    for drive in ["d0", "d1"] {
        patch(&shelf, drive, at, &bytes);
    }
    let report = check(&shelf, true);
    let page = |page: u64| format!("32768 bytes at {}", page * PAGE as u64);
    assert_says(
        &report,
        Loss,
        &format!("volume 'b', {}", page(2)),
        "page 2 of zone 0, which has 2",
    );
    assert_says(
        &report,
        Loss,
        &format!("volume 'b', {}", page(0)),
        "it lies in zone 2, which is not in use",
    );
    assert_says(
        &report,
        Loss,
        &format!("volume 'b', {}", page(3)),
        "it lies at page 1048576, which no zone has",
    );
    assert_says(
        &report,
        Damage,
        &format!("volume 'a', {}", page(9)),
        "past the volume's end",
    );
    assert_says(&report, Damage, "volume 'b'", "two volumes of this name");
    assert_says(&report, Note, "volume 'cut'", "cut short");
    assert_says(&report, Loss, "metadata", "there is no zone 3000");
    // The integrity blocks there are of an earlier use of the zones.
    assert_says(
        &report,
        Damage,
        "drive 'd0'",
        "block of checksums is damaged",
    );
}

#[test]
fn what_waits_in_the_logs_is_told_and_their_copies_are_compared() {
    let shelf = crashed(2, MIRROR);
    let report = check(&shelf, true);
    assert_eq!((report.worst, report.counts.log_entries), (Some(Note), 1));
    assert_says(
        &report,
        Note,
        "pool 'pool'",
        "1 entries wait in the data log",
    );
    assert_eq!(report.counts.skipped_blocks, 2);
    // After the crash, a copy of the log may be behind.
    let at = identity(&shelf).logs_offset();
    let log = raw(&shelf, shelf.named("d1"), at, 256 << 10);
    let entry = log
        .chunks(4096)
        .rposition(|block| block.starts_with(b"ASLG"));
    let batch = at + entry.unwrap() as u64 * 4096;
    flip(&shelf, "d1", batch + 4096 + 9);
    let report = check(&shelf, true);
    let place = format!("12288 bytes at {batch}");
    assert_says(
        &report,
        Note,
        &place,
        "data log: this batch is not whole here",
    );
    assert_eq!(report.worst, Some(Note));
    // The superblocks are not.
    let superblocks = [at, at + (256 << 10) - 4096];
    for superblock in superblocks {
        flip(&shelf, "d1", superblock + 9);
    }
    let report = check(&shelf, true);
    assert_says(
        &report,
        Damage,
        "drive 'd1'",
        "data log: no superblock is whole here",
    );
    for superblock in superblocks {
        flip(&shelf, "d0", superblock + 9);
    }
    let report = check(&shelf, true);
    assert_says(&report, Loss, "pool 'pool', data log", "no superblock");
}

/// Damages a copy of the sums of a pool, has `mend` put it right, and looks that it is what the
/// whole copy is.
fn assert_sums_are_mended(mend: impl AsyncFnOnce(Lane<SimWorld>)) {
    let shelf = Shelf::with_pool(2, MIRROR);
    let (from, len) = (data_start(&shelf), 256 << 10);
    let area = |drive| raw(&shelf, shelf.named(drive), from, len);
    let is_sums = |block: &&[u8]| block.starts_with(b"ASIN");
    let blocks = |drive| -> Vec<Vec<u8>> {
        let area = area(drive);
        area.chunks(4096)
            .filter(is_sums)
            .map(<[u8]>::to_vec)
            .collect()
    };
    let before = blocks("d0");
    assert!(before.len() >= 2 && before == blocks("d1"));
    let at = area("d1").chunks(4096).position(|block| is_sums(&block));
    flip(&shelf, "d1", from + at.unwrap() as u64 * 4096 + 100);
    shelf.open(async |pool| {
        mend(pool.clone()).await;
        let events = pool.events(0);
        assert!(
            events
                .iter()
                .any(|event| event.text.contains("the checksums at"))
        );
    });
    assert!(blocks("d0") == before, "the whole copy was written");
    assert!(blocks("d1") == before, "the other one is not what it is");
}

async fn read_a_page(pool: &Lane<SimWorld>) {
    let volume = pool.volume("v").unwrap();
    volume.read(VolumeOffset(0), PAGE).await.unwrap();
}

#[test]
fn sums_that_are_put_right_leave_the_whole_copy_as_it_is() {
    assert_sums_are_mended(async |pool| {
        read_a_page(&pool).await;
        pool.close().await.unwrap();
    });
}

#[test]
fn sums_are_put_right_where_nobody_writes_and_nothing_is_closed() {
    assert_sums_are_mended(async |pool| {
        read_a_page(&pool).await;
        pool.world().sleep(Duration::from_secs(2)).await;
    });
}

#[test]
fn a_scrub_that_has_ended_has_put_right_the_sums_that_it_counts() {
    assert_sums_are_mended(async |pool| {
        pool.start_scrub().unwrap();
        while pool.scrubs_ended() == 0 {
            pool.world().sleep(Duration::from_micros(10)).await;
        }
    });
}

#[test]
fn damaged_sums_are_named() {
    let shelf = Shelf::with_pool(4, Level::Raid6);
    let start = data_start(&shelf);
    let bytes = raw(&shelf, shelf.named("d1"), start, DRIVE_BYTES - start);
    let sums = bytes
        .chunks(4096)
        .position(|block| block.starts_with(b"ASIN"));
    let at = start + sums.unwrap() as u64 * 4096;
    flip(&shelf, "d1", at + 2000);
    let report = check(&shelf, true);
    let place = format!("drive 'd1', 4096 bytes at {at}");
    assert_says(&report, Damage, &place, "block of checksums is damaged");
    assert_eq!(report.worst, Some(Damage), "{:#?}", texts(&report));
}

#[test]
fn failed_drives_are_named_and_the_rest_is_looked_at() {
    for (level, drives) in [(MIRROR, 4), (Level::Raid5, 3), (Level::Raid6, 4)] {
        let shelf = Shelf::with_pool(drives, level);
        shelf.open(async |pool| {
            pool.fail_drive("d1").await.unwrap();
            pool.close().await.unwrap();
        });
        let report = check(&shelf, true);
        assert_says(
            &report,
            Damage,
            "drive 'd1' (place 1 of group 0)",
            "has failed",
        );
        assert_eq!(report.findings.len(), 1, "{:#?}", texts(&report));
        assert_eq!(report.counts.data_blocks, 64);
    }
}

#[test]
fn a_rebuild_under_way_is_a_note() {
    let mut shelf = Shelf::with_pool(3, Level::Raid5);
    shelf
        .media
        .push(("new".into(), common::media("new", DRIVE_BYTES)));
    let mut three = Shelf::new(0);
    three.media = shelf.media[..3].to_vec();
    three.open(async |pool| {
        let drives = shelf.drives(pool.world()).pop().unwrap();
        pool.replace_drive("d1", drives).await.unwrap();
    });
    let report = check(&shelf, true);
    assert_says(
        &report,
        Note,
        "drive 'new' (place 1 of group 0)",
        "being rebuilt",
    );
    assert_eq!(report.worst, Some(Note), "{:#?}", texts(&report));
}
