//! Volumes that shrink, and grow again, over a simulated pool.

use crate::common::{PAGE, Shelf, bytes, content, thick};
use base::VolumeOffset;
use engine::{IoErrorKind, Level, PoolErrorKind};
use futures_util::future::join;

const MIRROR: Level = Level::Raid10 { copies: 2 };

#[test]
fn what_is_behind_the_new_end_is_gone_for_good() {
    // In a block, at a block, at a page.
    for size in [3 * PAGE + 512, 3 * PAGE + 4096, 3 * PAGE, 512] {
        let shelf = Shelf::with_pool(2, MIRROR);
        shelf.open(async |pool| {
            let behind = pool.mapped_behind("v", size as u64).unwrap();
            assert_eq!(behind, (8 * PAGE - size) as u64);
            pool.shrink_volume("v", size as u64).await.unwrap();
            let volume = pool.volume("v").unwrap();
            assert_eq!(volume.size_bytes(), size as u64);
            let pages = size.div_ceil(PAGE) as u64;
            assert_eq!(volume.info().mapped_bytes, pages * PAGE as u64);
            assert_eq!(pool.info().mapped_bytes, pages * PAGE as u64);
            let past = volume.read(VolumeOffset(size as u64), 512).await;
            assert_eq!(past.unwrap_err().kind, IoErrorKind::OutOfRange);
        });
        shelf.open(async |pool| {
            pool.resize_volume("v", 8 * PAGE as u64).await.unwrap();
            let volume = pool.volume("v").unwrap();
            let read = volume
                .read(VolumeOffset(0), 8 * PAGE)
                .await
                .unwrap()
                .to_vec();
            assert!(read[..size] == bytes(1, 8 * PAGE)[..size], "{size}");
            assert!(read[size..].iter().all(|byte| *byte == 0), "{size}");
        });
    }
}

#[test]
fn a_snapshot_keeps_what_its_volume_loses() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        pool.clone_volume("v", "v@s", true, 0).await.unwrap();
        pool.shrink_volume("v", PAGE as u64 + 512).await.unwrap();
        let snapshot = pool.volume("v@s").unwrap();
        let read = snapshot.read(VolumeOffset(0), 8 * PAGE).await.unwrap();
        assert!(read.to_vec() == bytes(1, 8 * PAGE));
        // The last page is its own, since it was changed.
        assert_eq!(pool.info().mapped_bytes, 9 * PAGE as u64);
        let refused = pool.restore("v", "v@s", None, 0).await.unwrap_err();
        assert_eq!(refused.kind, PoolErrorKind::Invalid, "{refused}");
        pool.resize_volume("v", 8 * PAGE as u64).await.unwrap();
        pool.restore("v", "v@s", None, 0).await.unwrap();
        let volume = pool.volume("v").unwrap();
        let read = volume.read(VolumeOffset(0), 8 * PAGE).await.unwrap();
        assert!(read.to_vec() == bytes(1, 8 * PAGE));
    });
}

#[test]
fn a_thick_volume_is_promised_less() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        let page = PAGE as u64;
        let world = pool.world().clone();
        let volume = pool.create_volume(thick("t", 10 * page)).await.unwrap();
        for at in [0, 9] {
            let data = content(&world, at, 4096);
            volume.write(VolumeOffset(at * page), data).await.unwrap();
        }
        assert_eq!(pool.info().promised_bytes, 8 * page);
        pool.shrink_volume("t", 4 * page + 512).await.unwrap();
        assert_eq!(pool.info().promised_bytes, 4 * page);
        pool.resize_volume("t", 6 * page).await.unwrap();
        assert_eq!(pool.info().promised_bytes, 5 * page);
    });
    shelf.open(async |pool| assert_eq!(pool.info().promised_bytes, 5 * PAGE as u64));
}

#[test]
fn who_waits_for_what_goes_is_told_that_it_is_outside() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        let volume = pool.volume("v").unwrap();
        let world = pool.world().clone();
        let data = content(&world, 7, PAGE);
        let shrunk = pool.shrink_volume("v", 2 * PAGE as u64);
        let write = volume.write(VolumeOffset(5 * PAGE as u64), data);
        let (shrunk, written) = join(shrunk, write).await;
        shrunk.unwrap();
        assert_eq!(written.unwrap_err().kind, IoErrorKind::OutOfRange);
        assert_eq!(pool.info().mapped_bytes, 2 * PAGE as u64);
    });
}

#[test]
fn what_does_not_shrink_is_refused() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        pool.clone_volume("v", "v@s", true, 0).await.unwrap();
        let before = pool.volumes();
        for (name, size, kind) in [
            ("v", 8 * PAGE as u64, PoolErrorKind::Invalid),
            ("v", 9 * PAGE as u64, PoolErrorKind::Invalid),
            ("v", 0, PoolErrorKind::Invalid),
            ("v", 100, PoolErrorKind::Invalid),
            ("v@s", 512, PoolErrorKind::Invalid),
            ("nobody", 512, PoolErrorKind::NotFound),
        ] {
            let refused = pool.shrink_volume(name, size).await.unwrap_err();
            assert_eq!(refused.kind, kind, "{name} to {size}: {refused}");
        }
        assert_eq!(pool.volumes(), before);
    });
}
