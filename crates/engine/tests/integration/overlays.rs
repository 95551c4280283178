//! First writes to pages that a snapshot has: nothing is copied at once, and everything is
//! as if it had been.

use crate::common::{PAGE, Shelf, bytes, content, thin};
use base::VolumeOffset;
use engine::pool::VolumeChange;
use engine::{IoErrorKind, Lane, Level, Provisioning, Volume, World};
use futures_util::future::join;
use std::time::Duration;
use world_sim::{Outcome, SimWorld};

const MIRROR: Level = Level::Raid10 { copies: 2 };
const BLOCK: usize = 4096;

async fn write(volume: &Volume<SimWorld>, world: &SimWorld, at: usize, tag: u64) {
    let data = content(world, tag, BLOCK);
    volume.write(VolumeOffset(at as u64), data).await.unwrap();
}

async fn page(pool: &Lane<SimWorld>, name: &str, page: usize) -> Vec<u8> {
    let volume = pool.volume(name).unwrap();
    let at = VolumeOffset((page * PAGE) as u64);
    volume.read(at, PAGE).await.unwrap().to_vec()
}

/// A page as the shelf's volume has it, with blocks of `tags` instead.
fn expected(page: usize, tags: &[(usize, u64)]) -> Vec<u8> {
    let mut expected = bytes(1, (page + 1) * PAGE)[page * PAGE..].to_vec();
    for (block, tag) in tags {
        let block = block * BLOCK;
        match tag {
            0 => expected[block..block + BLOCK].fill(0),
            tag => expected[block..block + BLOCK].copy_from_slice(&bytes(*tag, BLOCK)),
        }
    }
    expected
}

async fn all_whole(pool: &Lane<SimWorld>) {
    for _ in 0..1_000 {
        if pool.info().backed_bytes == 0 {
            return;
        }
        pool.world().sleep(Duration::from_millis(100)).await;
    }
    panic!("pages are not made whole: {:?}", pool.info());
}

/// Bytes that went to the log, and straight into place.
fn written(pool: &Lane<SimWorld>) -> u64 {
    let io = pool.info().io;
    io.log_writes.bytes + io.data_writes.bytes
}

#[test]
fn a_first_write_writes_no_more_than_itself_and_the_rest_follows() {
    let shelf = Shelf::with_pool(2, MIRROR);
    let check = async |pool: &Lane<SimWorld>| {
        assert!(page(pool, "v", 2).await == expected(2, &[(3, 7)]));
        assert!(page(pool, "s", 2).await == expected(2, &[]));
    };
    shelf.open(async |pool| {
        let world = pool.world().clone();
        pool.clone_volume("v", "s", true, 0).await.unwrap();
        let before = written(&pool);
        write(&pool.volume("v").unwrap(), &world, 2 * PAGE + 3 * BLOCK, 7).await;
        let wrote = written(&pool) - before;
        assert!(wrote < PAGE as u64, "{wrote} bytes for one block");
        assert_eq!(pool.info().backed_bytes, PAGE as u64);
        assert_eq!(pool.info().backing_bytes, 0, "the snapshot has it, too");
        check(&pool).await;
        // Killed here: nothing is closed.
    });
    shelf.open(async |pool| {
        assert_eq!(pool.info().backed_bytes, PAGE as u64);
        check(&pool).await;
        all_whole(&pool).await;
        check(&pool).await;
        assert_eq!(pool.info().mapped_bytes, 9 * PAGE as u64);
        pool.close().await.unwrap();
    });
    shelf.open(async |pool| {
        assert_eq!(pool.info().backed_bytes, 0);
        check(&pool).await;
    });
}

#[test]
fn what_only_backs_others_is_free_once_they_are_whole() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        let world = pool.world().clone();
        let volume = pool.volume("v").unwrap();
        pool.clone_volume("v", "s", true, 0).await.unwrap();
        write(&volume, &world, 0, 7).await;
        write(&volume, &world, PAGE, 8).await;
        pool.delete_volume("s").await.unwrap();
        let info = pool.info();
        assert_eq!(info.backing_bytes, 2 * PAGE as u64);
        assert_eq!(info.mapped_bytes, 10 * PAGE as u64, "what backs is there");
        assert!(page(&pool, "v", 1).await == expected(1, &[(0, 8)]));
        // One goes with the page that it backs, the other when that is whole.
        volume.clear(VolumeOffset(0), PAGE as u64).await.unwrap();
        assert_eq!(pool.info().mapped_bytes, 8 * PAGE as u64);
        // By itself, or at once for who needs the room.
        pool.free_backings().await.unwrap();
        assert_eq!(pool.info().backed_bytes, 0);
        assert_eq!(pool.info().mapped_bytes, 7 * PAGE as u64);
        assert!(page(&pool, "v", 0).await == vec![0; PAGE]);
        assert!(page(&pool, "v", 1).await == expected(1, &[(0, 8)]));
    });
}

#[test]
fn a_page_lies_over_one_other_however_many_snapshots_there_are() {
    let shelf = Shelf::with_pool(2, MIRROR);
    let tags = |upto: u64| -> Vec<(usize, u64)> {
        let tags = (0..upto).map(|n| (n as usize % 8, 20 + n));
        tags.collect()
    };
    let check = async |pool: &Lane<SimWorld>| {
        for n in 0..6 {
            let kept = page(pool, &format!("s{n}"), 0).await;
            assert!(kept == expected(0, &tags(n)), "snapshot {n}");
        }
        assert!(page(pool, "v", 0).await == expected(0, &tags(6)));
    };
    shelf.open(async |pool| {
        let world = pool.world().clone();
        let volume = pool.volume("v").unwrap();
        for n in 0..6 {
            let name = format!("s{n}");
            pool.clone_volume("v", &name, true, 0).await.unwrap();
            write(&volume, &world, n as usize * BLOCK, 20 + n).await;
        }
        check(&pool).await;
    });
    shelf.open(async |pool| {
        check(&pool).await;
        all_whole(&pool).await;
        check(&pool).await;
        for n in [3, 0, 5, 1, 4, 2] {
            pool.delete_volume(&format!("s{n}")).await.unwrap();
        }
        assert!(page(&pool, "v", 0).await == expected(0, &tags(6)));
        assert_eq!(pool.info().mapped_bytes, 8 * PAGE as u64);
    });
}

#[test]
fn zeroes_over_a_page_are_zeroes_and_not_what_was_there() {
    let shelf = Shelf::with_pool(2, MIRROR);
    let check = async |pool: &Lane<SimWorld>| {
        assert!(page(pool, "v", 0).await == expected(0, &[(1, 7), (4, 0)]));
        assert!(page(pool, "v", 1).await == vec![0; PAGE]);
    };
    shelf.open(async |pool| {
        let world = pool.world().clone();
        let volume = pool.volume("v").unwrap();
        let change = VolumeChange {
            provisioning: Some(Provisioning::Thick),
            ..VolumeChange::default()
        };
        pool.change_volume("v", change).await.unwrap();
        pool.clone_volume("v", "s", true, 0).await.unwrap();
        write(&volume, &world, BLOCK, 7).await;
        write(&volume, &world, PAGE, 8).await;
        let at = VolumeOffset(4 * BLOCK as u64);
        volume.clear(at, BLOCK as u64).await.unwrap();
        // A thick volume keeps its page.
        let at = VolumeOffset(PAGE as u64);
        volume.clear(at, PAGE as u64).await.unwrap();
        check(&pool).await;
        all_whole(&pool).await;
        check(&pool).await;
        assert!(page(&pool, "s", 1).await == expected(1, &[]));
    });
    shelf.open(async |pool| check(&pool).await);
}

#[test]
fn where_room_is_short_a_page_is_copied_as_a_whole() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        let world = pool.world().clone();
        let free = pool.info().capacity_bytes - pool.info().mapped_bytes;
        let pages = free / PAGE as u64 - 4;
        let filler = pool.create_volume(thin("t", pages * PAGE as u64));
        let filler = filler.await.unwrap();
        for at in (0..pages).map(|page| VolumeOffset(page * PAGE as u64)) {
            filler.write(at, content(&world, 9, PAGE)).await.unwrap();
        }
        pool.clone_volume("v", "s", true, 0).await.unwrap();
        write(&pool.volume("v").unwrap(), &world, BLOCK, 7).await;
        assert_eq!(pool.info().backed_bytes, 0);
        assert!(page(&pool, "v", 0).await == expected(0, &[(1, 7)]));
    });
}

/// When a page that a snapshot has is written for the first time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    BeforeRead,
    WhileRead,
}

/// Reads a page whose rest is filled in the meantime, and what backed it goes to another volume,
/// while the drives take their time for the read. Whether it finds what it should.
async fn read_while_backing_goes(shelf: &Shelf, pool: &Lane<SimWorld>, written: Written) -> bool {
    let world = pool.world();
    pool.set_fill_pause(Duration::from_secs(3_600));
    pool.store().cache.set_capacity(0);
    let volume = pool.volume("v").unwrap();
    pool.clone_volume("v", "s", true, 0).await.unwrap();
    if written == Written::BeforeRead {
        write(&volume, world, 2 * PAGE, 7).await;
    }
    pool.store().drain().await.unwrap();
    let other = pool.create_volume(thin("w", 1 << 40)).await.unwrap();
    let rest = VolumeOffset((2 * PAGE + BLOCK) as u64);
    // Sums are in RAM from now on.
    volume.read(rest, BLOCK).await.unwrap();

    let stall = |until| {
        let media = shelf.media.iter();
        media.for_each(|(_, media)| media.with_faults(|faults| faults.stalled_until = until));
    };
    stall(Some(world.now() + Duration::from_millis(250)));
    let takes_it_away = async {
        world.sleep(Duration::from_micros(1)).await;
        stall(None);
        if written == Written::WhileRead {
            write(&volume, world, 2 * PAGE, 7).await;
        }
        pool.free_backings().await.unwrap();
        pool.delete_volume("s").await.unwrap();
        let mut page = 0;
        let full = loop {
            let data = content(world, 9, PAGE);
            match other.write(VolumeOffset(page * PAGE as u64), data).await {
                Ok(()) => page += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind, IoErrorKind::PoolFull, "{full}");
    };
    let (read, ()) = join(volume.read(rest, BLOCK), takes_it_away).await;
    read.is_ok_and(|read| read.to_vec() == expected(2, &[])[BLOCK..2 * BLOCK])
}

/// In how many of 8 runs the read finds what it should.
fn right_reads(bug: Option<&str>, written: Written) -> usize {
    let shelf = Shelf::with_pool(2, MIRROR);
    let right = (0..8).filter(|seed| {
        let shelf = shelf.copied(*seed);
        let world = shelf.world();
        world.plant(bug);
        let test = async {
            let pool = Lane::open(world.clone(), shelf.drives(&world)).await;
            read_while_backing_goes(&shelf, &pool.unwrap(), written).await
        };
        match world.run(u64::MAX, test) {
            Ok(Outcome::Done(is_right)) => is_right,
            other => panic!("seed {seed}: {other:?}"),
        }
    });
    right.count()
}

#[test]
fn what_backs_a_page_stays_while_somebody_reads_it() {
    assert_eq!(right_reads(None, Written::BeforeRead), 8);
    assert!(right_reads(Some("backing let go while it is read"), Written::BeforeRead) < 8);
}

#[test]
fn a_page_is_read_again_that_was_let_go_while_it_was_read() {
    assert_eq!(right_reads(None, Written::WhileRead), 8);
    assert!(right_reads(Some("page read after it was let go"), Written::WhileRead) < 8);
}
