//! The offline check against the pool itself: block after block of a drive is changed, and the
//! findings are compared with the result of opening, reading and scrubbing.

use super::{check, data_start, texts};
use crate::common::{DRIVE_BYTES, PAGE, Shelf, bytes};
use base::VolumeOffset;
use engine::drives::EventKind;
use engine::fsck::Severity;
use engine::{Lane, Level};
use std::time::Duration;
use world_sim::SimWorld;

/// Only every so many-th block.
const STEP: usize = 17;

/// How the pool takes it.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    /// Nothing was wrong.
    Well,
    /// Something was put right, and all data is there.
    Mended(Vec<String>),
    /// Data is gone, or the pool does not open.
    Badly(String),
}

/// Opens the pool, reads everything, scrubs it.
fn take(shelf: &Shelf) -> Taken {
    let taken = shelf.try_open(async |pool| {
        let Some(volume) = pool.volume("v") else {
            return Taken::Badly("no volume".to_owned());
        };
        scrub(&pool).await;
        match volume.read(VolumeOffset(0), 8 * PAGE).await {
            Ok(data) if data.to_vec() == bytes(1, 8 * PAGE) => {}
            Ok(_) => return Taken::Badly("other data".to_owned()),
            Err(error) => return Taken::Badly(error.to_string()),
        }
        let events = pool.events(0);
        let bad = events.iter().filter(|event| event.kind != EventKind::Scrub);
        let texts: Vec<String> = bad.map(|event| event.text.clone()).collect();
        match texts.is_empty() {
            true => Taken::Well,
            false => Taken::Mended(texts),
        }
    });
    taken.unwrap_or_else(|error| Taken::Badly(error.to_string()))
}

async fn scrub(pool: &Lane<SimWorld>) {
    pool.store().drain().await.unwrap();
    pool.start_scrub().unwrap();
    while pool.scrubs_ended() == 0 {
        engine::World::sleep(pool.world(), Duration::from_millis(10)).await;
    }
}

/// Whether the look has told enough, and no more than there was.
fn agrees(level: Level, worst: Option<Severity>, taken: &Taken, in_metadata: bool) -> bool {
    match (worst, taken) {
        (None, Taken::Well)
        | (Some(Severity::Damage), Taken::Mended(_))
        | (Some(Severity::Loss), Taken::Badly(_)) => true,
        // An opening writes labels, metadata and superblocks anew and says nothing.
        (Some(Severity::Damage | Severity::Note), Taken::Well) => in_metadata,
        // The end of a journal that only one drive has can vanish without a trace.
        (None, Taken::Badly(_)) => in_metadata && level == Level::Simple,
        _ => false,
    }
}

#[test]
fn the_look_and_the_pool_agree() {
    for (level, drives) in [
        (Level::Simple, 1),
        (Level::Raid10 { copies: 2 }, 2),
        (Level::Raid5, 3),
        (Level::Raid6, 4),
    ] {
        let shelf = Shelf::with_pool(drives, level);
        let data_start = data_start(&shelf) / 4096;
        let before: Vec<_> = shelf.media.iter().map(|(_, m)| m.snapshot()).collect();
        for (index, (name, media)) in shelf.media.iter().enumerate() {
            // All of it once took six minutes and agreed; here is a part of it.
            let metadata = (index as u64..data_start).step_by(STEP);
            let data = (data_start + index as u64..DRIVE_BYTES / 4096).step_by(STEP);
            for block in metadata.chain(data.take(4)) {
                media.corrupt(block);
                let report = check(&shelf, true);
                let taken = take(&shelf);
                assert!(
                    agrees(level, report.worst, &taken, block < data_start),
                    "{level} {name} block {block}: {:#?}, and {taken:?}",
                    texts(&report)
                );
                let all = shelf.media.iter().zip(&before);
                all.for_each(|((_, media), before)| media.restore(before));
            }
        }
    }
}
