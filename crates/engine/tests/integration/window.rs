//! The window of stripes on their way in place.

use crate::common::{PAGE, Shelf, content, spec, thin};
use base::VolumeOffset;
use engine::store::counts::IoCounts;
use engine::{Lane, Level, PoolSpec, World};
use futures_util::future::{join, join_all};
use std::cell::Cell;
use std::time::Duration;
use world_sim::SimWorld;

const BLOCK: usize = 4096;

const LOG_BYTES: u64 = 1 << 20;

fn with_log(level: Level) -> PoolSpec {
    PoolSpec {
        log_bytes: Some(LOG_BYTES),
        ..spec("pool", level)
    }
}

/// One block in each of so many pages, logged; they lie in stripes of their own.
async fn write_apart(pool: &Lane<SimWorld>, pages: usize) {
    let volume = pool.volume("v").unwrap();
    for page in 0..pages {
        let data = content(pool.world(), 7, BLOCK);
        let at = VolumeOffset((page * PAGE) as u64);
        volume.write(at, data).await.unwrap();
    }
}

/// What it takes to put one block of each of `pages` pages in place, so many stripes at a time.
fn cost(pages: usize, window_stripes: Option<usize>) -> (IoCounts, u64) {
    let shelf = Shelf::new(5);
    shelf
        .create(spec("pool", Level::Raid5), async |pool| {
            let size = pages * PAGE;
            let volume = pool.create_volume(thin("v", size as u64)).await.unwrap();
            let data = content(pool.world(), 1, size);
            volume.write(VolumeOffset(0), data).await.unwrap();
            pool.store().drain().await.unwrap();
            pool.store().set_window_stripes(window_stripes);
            let flushes = || pool.info().members.iter().map(|m| m.flushes).sum::<u64>();
            let (before, flushed) = (pool.store().io(), flushes());
            write_apart(&pool, pages).await;
            pool.store().drain().await.unwrap();
            let mut io = pool.store().io();
            io.intent_writes.count -= before.intent_writes.count;
            io.partial_stripes -= before.partial_stripes;
            (io, flushes() - flushed)
        })
        .unwrap()
}

#[test]
fn stripes_on_their_way_together_share_intents_and_flushes() {
    let pages = 16;
    let (alone, alone_flushes) = cost(pages, Some(1));
    let (together, together_flushes) = cost(pages, None);
    assert_eq!(alone.partial_stripes, pages as u64);
    assert_eq!(together.partial_stripes, pages as u64);
    assert!(
        together.intent_writes.count * 2 <= alone.intent_writes.count,
        "{} writes of intents instead of {}",
        together.intent_writes.count,
        alone.intent_writes.count
    );
    assert!(
        together_flushes * 3 <= alone_flushes * 2,
        "{together_flushes} flushes instead of {alone_flushes}"
    );
}

#[test]
fn a_stripe_does_not_wait_for_the_slow_drive_of_another() {
    // Two spans: the stripes of one of them have a slow drive.
    let shelf = Shelf::new(4);
    let (half, all) = shelf
        .create(with_log(Level::Raid10 { copies: 2 }), async |pool| {
            let pages = 16;
            let volume = pool.create_volume(thin("v", (pages * PAGE) as u64));
            volume.await.unwrap();
            write_apart(&pool, pages).await;
            pool.store().drain().await.unwrap();
            write_apart(&pool, pages).await;
            let logged = pool.store().blocks_logged();
            // The last drive carries no log.
            shelf
                .named("d3")
                .with_faults(|faults| faults.slowdown = 1_000);
            let began = pool.world().now();
            let half_way = async {
                while pool.store().blocks_logged() > logged / 2 {
                    pool.world().sleep(Duration::from_micros(100)).await;
                }
                pool.world().now().since(began)
            };
            let (drained, half) = join(pool.store().drain(), half_way).await;
            drained.unwrap();
            (half, pool.world().now().since(began))
        })
        .unwrap();
    assert!(
        half * 10 < all,
        "half of them after {half:?}, all after {all:?}"
    );
}

const WRITERS: usize = 32;
const VOLUME_BYTES: usize = 2 << 20;

/// Writes blocks one after the other.
async fn write_on(pool: &Lane<SimWorld>, writer: usize, blocks: usize) {
    let volume = pool.volume("v").unwrap();
    for number in 0..blocks {
        let at = (number * WRITERS + writer) * 5 * BLOCK % VOLUME_BYTES;
        let data = content(pool.world(), 7, BLOCK);
        volume.write(VolumeOffset(at as u64), data).await.unwrap();
    }
}

#[test]
fn no_more_than_three_quarters_of_the_log_wait_to_go_in_place() {
    let shelf = Shelf::new(3);
    shelf
        .create(with_log(Level::Raid5), async |pool| {
            let volume = pool.create_volume(thin("v", VOLUME_BYTES as u64));
            volume.await.unwrap();
            for name in ["d0", "d1", "d2"] {
                shelf.named(name).with_faults(|faults| faults.slowdown = 20);
            }
            let is_over = Cell::new(false);
            let writers = async {
                join_all((0..WRITERS).map(|writer| write_on(&pool, writer, 200))).await;
                is_over.set(true);
            };
            let most_waiting = async {
                let mut most = 0;
                while !is_over.get() {
                    most = most.max(pool.store().blocks_logged());
                    pool.world().sleep(Duration::from_micros(500)).await;
                }
                most
            };
            let (_, most) = join(writers, most_waiting).await;
            // A block and its share of a header.
            let most_bytes = most * BLOCK * 5 / 4;
            let limit = LOG_BYTES as usize * 3 / 4;
            assert!(most_bytes <= limit * 11 / 10, "{most} blocks waited");
            assert!(most_bytes >= limit / 2, "only {most} blocks waited");
        })
        .unwrap();
}
