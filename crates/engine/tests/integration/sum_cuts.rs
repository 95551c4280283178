//! Power cuts while blocks of sums are written beside records of them: nothing acknowledged is lost.
//!
//! Zones are so large that the sums of a block fill several sectors: a cut can tear the block.

use crate::common::{PAGE, Shelf, bytes, content, spec, thin};
use base::{Prng, VolumeOffset};
use engine::{Lane, Level, PoolSpec, World};
use futures_util::future::join_all;
use std::cell::RefCell;
use std::ops::Range;
use world_sim::{Outcome, SimWorld};

const BLOCK: usize = 4096;
const DISK_BYTES: u64 = 40 << 20;
const PAGES: u64 = 640;
const BLOCKS: u64 = PAGES * (PAGE / BLOCK) as u64;
const WRITERS: u64 = 8;
const CUTS: u64 = 3;

/// Between so many polls of the world, from the opening on, the power goes.
const POLLS: Range<u64> = 1_000..40_000;

/// What each block may read as: the seed of what was acknowledged last, and of what was written
/// since without an answer.
struct Expected(RefCell<Vec<Vec<u64>>>);

/// A pool with a full volume, which is closed.
fn made(level: Level, count: usize) -> Shelf {
    let shelf = Shelf::of_disks(count, DISK_BYTES);
    let spec = PoolSpec {
        zone_bytes: Some(1 << 20),
        log_bytes: Some(192 << 10),
        journal_bytes: Some(128 << 10),
        ..spec("pool", level)
    };
    let made = shelf.create(spec, async |pool| {
        let volume = thin("v", PAGES * PAGE as u64);
        let volume = pool.create_volume(volume).await.unwrap();
        for block in 0..BLOCKS {
            let at = VolumeOffset(block * BLOCK as u64);
            let data = content(pool.world(), block, BLOCK);
            volume.write(at, data).await.unwrap();
        }
        pool.close().await.unwrap();
    });
    made.unwrap();
    shelf
}

/// Writes blocks for ever, most of them few ones: the log has records of all others.
async fn write_on(pool: &Lane<SimWorld>, expected: &Expected, seed: u64) {
    let volume = pool.volume("v").unwrap();
    let writer = async |number: u64| {
        let mut prng = Prng::from_seed(seed * WRITERS + number);
        for turn in 1.. {
            let few = if prng.chance(3, 4) {
                BLOCKS
            } else {
                BLOCKS / 16
            };
            // Each block has one writer: what was acknowledged last is certain.
            let block = prng.below(few / WRITERS) * WRITERS + number;
            let content_seed = (seed << 32) | (turn << 16) | block;
            expected.0.borrow_mut()[block as usize].push(content_seed);
            let data = content(pool.world(), content_seed, BLOCK);
            let at = VolumeOffset(block * BLOCK as u64);
            if volume.write(at, data).await.is_ok() {
                expected.0.borrow_mut()[block as usize] = vec![content_seed];
            }
        }
    };
    join_all((0..WRITERS).map(writer)).await;
}

/// Opens, writes, and has the power go, several times. Returns how many blocks are wrong after that,
/// and how often records were made of blocks on their way.
fn wrong_after_cuts(base: &Shelf, seed: u64, bug: Option<&str>) -> (usize, u64) {
    let shelf = base.copied(seed);
    let expected = Expected(RefCell::new((0..BLOCKS).map(|block| vec![block]).collect()));
    let mut prng = Prng::from_seed(seed).stream("cuts");
    let mut on_their_way = 0;
    for cut in 0..CUTS {
        let world = shelf.world();
        world.plant(bug);
        let drives = shelf.drives(&world);
        let polls = POLLS.start + prng.below(POLLS.end - POLLS.start);
        // Before one of the cuts nobody writes: what the opening found is on its way.
        let is_quiet = cut == 1;
        let root = async {
            let pool = Lane::open(world.clone(), drives).await.unwrap();
            // Few dirty blocks are enough for some to be written.
            pool.store().integrity.set_budget(24);
            pool.store().integrity.set_part_blocks(Some(1));
            if is_quiet {
                world.sleep(std::time::Duration::from_secs(1 << 20)).await;
            }
            write_on(&pool, &expected, seed * CUTS + cut).await;
        };
        assert!(matches!(world.run(polls, root), Ok(Outcome::Cut)));
        let marks = world.marks();
        on_their_way += marks.get("record of sums on their way").unwrap_or(&0);
        world.power_cut(shelf.media.iter().map(|(_, media)| media));
    }
    let wrong = shelf.try_open(async |pool| wrong_blocks(&pool, &expected).await);
    (wrong.unwrap_or(BLOCKS as usize), on_their_way)
}

async fn wrong_blocks(pool: &Lane<SimWorld>, expected: &Expected) -> usize {
    let volume = pool.volume("v").unwrap();
    let mut wrong = 0;
    for block in 0..BLOCKS {
        let read = volume.read(VolumeOffset(block * BLOCK as u64), BLOCK).await;
        let read = read.map(|found| found.to_vec()).unwrap_or_default();
        let expected = &expected.0.borrow()[block as usize];
        wrong += usize::from(!expected.iter().any(|seed| bytes(*seed, BLOCK) == read));
    }
    wrong
}

/// How many of so many runs have a wrong block, and how many records were made of blocks on their
/// way.
fn runs_that_lose(level: Level, count: usize, runs: u64, bug: Option<&str>) -> (usize, u64) {
    let base = made(level, count);
    let each = (1..=runs).map(|seed| wrong_after_cuts(&base, seed, bug));
    each.fold((0, 0), |(lose, all), (wrong, on_their_way)| {
        (lose + usize::from(wrong > 0), all + on_their_way)
    })
}

#[test]
fn cuts_while_sums_are_on_their_way_lose_nothing() {
    for (level, count) in [(Level::Simple, 1), (Level::Raid10 { copies: 2 }, 2)] {
        let (lose, on_their_way) = runs_that_lose(level, count, 30, None);
        assert_eq!(lose, 0, "{level:?}");
        assert!(on_their_way > 0, "{level:?}: no block was on its way");
    }
}

#[test]
fn a_record_needs_what_is_on_its_way() {
    let bug = "record without sums on their way";
    let (lose, _) = runs_that_lose(Level::Simple, 1, 60, Some(bug));
    assert!(lose > 0, "no run shows it");
}
