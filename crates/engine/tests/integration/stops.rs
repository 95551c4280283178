//! A pool that can't go on: it stops, answers everything that waits, and loses nothing.

use crate::common::{PAGE, Shelf, bytes, content, spec, thin};
use base::{Prng, VolumeOffset};
use engine::drives::EventKind;
use engine::pool::maintenance::Rates;
use engine::{Lane, Level, MemberState, World};
use futures_util::future::join_all;
use std::cell::RefCell;
use std::time::Duration;
use world_sim::SimWorld;

const BLOCK: usize = 4096;
const CLIENTS: u64 = 6;
const BLOCKS_OF_CLIENT: u64 = 12;

/// What a block may hold: the tag that was acknowledged last, and one that was under way.
#[derive(Clone, Copy, Default)]
struct Known {
    acknowledged: u64,
    tried: u64,
}

/// Writes blocks of its own until a write fails, or `writes` are done.
async fn client(
    pool: &Lane<SimWorld>,
    known: &RefCell<Vec<Known>>,
    (index, seed, writes): (u64, u64, u64),
) {
    let mut prng = Prng::from_seed(seed).stream(&format!("client {index}"));
    let volume = pool.volume("v").unwrap();
    for turn in 1..=writes {
        let block = index * BLOCKS_OF_CLIENT + prng.below(BLOCKS_OF_CLIENT);
        let tag = 1 + turn * 1_000 + block;
        known.borrow_mut()[block as usize].tried = tag;
        let data = content(pool.world(), tag, BLOCK);
        let at = VolumeOffset(block * BLOCK as u64);
        match volume.write(at, data).await {
            Ok(()) => known.borrow_mut()[block as usize].acknowledged = tag,
            Err(_) => return,
        }
        let pause = Duration::from_micros(prng.below(2_000));
        pool.world().sleep(pause).await;
    }
}

async fn check(pool: &Lane<SimWorld>, known: &RefCell<Vec<Known>>, when: &str) {
    let known = known.borrow().clone();
    let volume = pool.volume("v").unwrap();
    for (block, known) in known.iter().enumerate() {
        let at = VolumeOffset((block * BLOCK) as u64);
        let found = volume.read(at, BLOCK).await;
        let found = found.unwrap_or_else(|error| panic!("{when}, block {block}: {error}"));
        let found = found.to_vec();
        let is = |tag: u64| match tag {
            0 => found.iter().all(|byte| *byte == 0),
            tag => found == bytes(tag, BLOCK),
        };
        assert!(
            is(known.acknowledged) || is(known.tried),
            "{when}: block {block} lacks {}, acknowledged",
            known.acknowledged
        );
    }
}

/// Whether `all` ends within two minutes.
async fn ends_soon<T>(pool: &Lane<SimWorld>, all: impl Future<Output = T>) -> bool {
    let late = pool.world().sleep(Duration::from_secs(120));
    let (all, late) = (std::pin::pin!(all), std::pin::pin!(late));
    let ended = futures_util::future::select(all, late).await;
    matches!(ended, futures_util::future::Either::Left(_))
}

fn stopped(pool: &Lane<SimWorld>) -> bool {
    let events = pool.events(0).into_iter();
    events
        .map(|event| event.kind)
        .any(|kind| kind == EventKind::PoolStopped)
}

/// A small pool with the volume that clients write.
fn shelf(drives: usize, level: Level, seed: u64) -> Shelf {
    let shelf = Shelf::new(drives);
    let small = engine::PoolSpec {
        log_bytes: Some(128 << 10),
        intent_bytes: Some(256 << 10),
        ..spec("pool", level)
    };
    let made = shelf.create(small, async |pool| {
        let size = (CLIENTS * BLOCKS_OF_CLIENT) * BLOCK as u64;
        pool.create_volume(thin("v", size.next_multiple_of(PAGE as u64)))
            .await
            .unwrap();
        // Different seeds, different times.
        pool.world().sleep(Duration::from_micros(seed)).await;
        pool.close().await.unwrap();
    });
    made.unwrap();
    shelf
}

/// One drive is away, and another refuses what goes in place: the pool can't go on. Then
/// the second drive is well again. Returns whether the pool stopped, and checks the rest.
fn one_drive_away_and_one_refuses(seed: u64) -> bool {
    let shelf = shelf(3, Level::Raid5, seed);
    let known = RefCell::new(vec![
        Known::default();
        (CLIENTS * BLOCKS_OF_CLIENT) as usize
    ]);
    let has_stopped = shelf.open(async |pool| {
        let all = (0..CLIENTS).map(|index| client(&pool, &known, (index, seed, 30)));
        join_all(all).await;
        shelf.named("d0").with_faults(|faults| faults.gone = true);
        let first = pool.info().data_start / BLOCK as u64;
        let blocks = crate::common::DRIVE_BYTES / BLOCK as u64;
        let refuses = async {
            pool.world()
                .sleep(Duration::from_micros(seed * 37 % 40_000))
                .await;
            shelf
                .named("d1")
                .with_faults(|faults| faults.unwritable.extend(first..blocks));
        };
        let all = (0..CLIENTS).map(|index| client(&pool, &known, (index, seed + 1, 400)));
        let all = futures_util::future::join(refuses, join_all(all));
        assert!(
            ends_soon(&pool, all).await,
            "seed {seed}: a write is not answered"
        );
        pool.world().sleep(Duration::from_secs(5)).await;
        stopped(&pool)
    });
    shelf
        .named("d1")
        .with_faults(|faults| *faults = Default::default());
    shelf.open(async |pool| {
        check(&pool, &known, &format!("seed {seed}")).await;
        pool.store().drain().await.unwrap();
        check(&pool, &known, &format!("seed {seed}, in place")).await;
    });
    has_stopped
}

#[test]
fn a_pool_that_stops_answers_everybody_and_keeps_what_it_acknowledged() {
    let runs = 80;
    let stops = (0..runs)
        .filter(|seed| one_drive_away_and_one_refuses(*seed))
        .count();
    assert!(stops as u64 > runs / 2, "only {stops} of {runs} stopped");
}

/// A drive is away, its spare is being rebuilt, and a third drive refuses sums.
#[test]
fn sums_that_cannot_be_written_during_a_rebuild_stop_the_pool() {
    let shelf = shelf(4, Level::Raid5, 1);
    // The last drive waits to stand in.
    let known = RefCell::new(vec![
        Known::default();
        (CLIENTS * BLOCKS_OF_CLIENT) as usize
    ]);
    let shelf = with_spare(shelf);
    shelf.open(async |pool| {
        let all = (0..CLIENTS).map(|index| client(&pool, &known, (index, 3, 40)));
        join_all(all).await;
        pool.store().drain().await.unwrap();
        let info = pool.info();
        let stride = info.groups[0].zone_stride_bytes;
        let sums = stride - info.groups[0].zone_bytes;
        let unwritable = (info.data_start..crate::common::DRIVE_BYTES).step_by(BLOCK);
        let unwritable = unwritable.filter(|at| (at - info.data_start) % stride < sums);
        let unwritable: Vec<u64> = unwritable.map(|at| at / BLOCK as u64).collect();
        shelf
            .named("d1")
            .with_faults(|faults| faults.unwritable.extend(unwritable));
        // It is not done before sums are written.
        pool.set_rates(Rates {
            rebuild_bytes_per_s: Some(64 << 10),
            ..Rates::default()
        });
        pool.fail_drive("d0").await.unwrap();
        let all = (0..CLIENTS).map(|index| client(&pool, &known, (index, 4, 40)));
        assert!(
            ends_soon(&pool, join_all(all)).await,
            "a write is not answered"
        );
        pool.world().sleep(Duration::from_secs(30)).await;
        let states: Vec<MemberState> = pool.info().members.iter().map(|m| m.state).collect();
        let is_rebuilt = states.iter().all(|state| *state == MemberState::Healthy);
        assert!(
            stopped(&pool) || is_rebuilt,
            "{states:?}: {:?}",
            pool.events(0)
        );
        assert!(stopped(&pool), "nothing was refused: {states:?}");
    });
    shelf
        .named("d1")
        .with_faults(|faults| *faults = Default::default());
    shelf.open(async |pool| {
        check(&pool, &known, "after the stop").await;
        pool.store().drain().await.unwrap();
        check(&pool, &known, "in place").await;
    });
}

/// The same shelf with one more drive, as a spare.
fn with_spare(mut shelf: Shelf) -> Shelf {
    let spare = crate::common::media("spare", crate::common::DRIVE_BYTES);
    let door = std::rc::Rc::clone(&spare);
    shelf.open(async |pool| {
        let drive = engine::NamedDrive {
            name: "spare".to_owned(),
            drive: world_sim::SimDrive::adversarial(pool.world(), &door),
        };
        pool.add_spare(drive).await.unwrap();
        pool.close().await.unwrap();
    });
    shelf.media.push(("spare".to_owned(), spare));
    shelf
}
