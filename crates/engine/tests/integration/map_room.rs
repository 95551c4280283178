//! Maps of pools whose checkpoints have less room than the worst maps of all pages take.

use crate::common::{PAGE, Shelf, content, spec, thick, thin};
use base::VolumeOffset;
use engine::pool::{EventKind, planned_capacity_bytes};
use engine::{IoErrorKind, Lane, Level, PoolErrorKind, PoolSpec, World};
use std::time::Duration;
use world_sim::SimWorld;

const MIRROR: Level = Level::Raid10 { copies: 2 };

/// Pages between two that are written, so that each takes as much of a map as can be.
const APART: usize = 20;

/// A pool with room for four bytes of a map for each page of its drives.
fn tight() -> (Shelf, PoolSpec) {
    let mut shelf = Shelf::new(2);
    for (name, media) in &mut shelf.media {
        *media = crate::common::media(name, 384 << 20);
    }
    let spec = PoolSpec {
        journal_bytes: Some(1 << 20),
        zone_bytes: Some(16 << 20),
        map_page_bytes: Some(1),
        ..spec("pool", MIRROR)
    };
    (shelf, spec)
}

/// Writes pages of a volume, in this order.
async fn write_pages(pool: &Lane<SimWorld>, name: &str, pages: impl Iterator<Item = u64>) {
    let (world, volume) = (pool.world().clone(), pool.volume(name).unwrap());
    for page in pages {
        let at = VolumeOffset(page * PAGE as u64);
        volume.write(at, content(&world, 1, 4096)).await.unwrap();
    }
}

/// Writes pages that are far from each other. How many there were before one was refused, and how.
async fn write_apart(pool: &Lane<SimWorld>, name: &str) -> (usize, IoErrorKind, String) {
    let (world, volume) = (pool.world().clone(), pool.volume(name).unwrap());
    let mut written = 0;
    loop {
        let at = VolumeOffset((written * APART * PAGE) as u64);
        match volume.write(at, content(&world, 1, 4096)).await {
            Ok(()) => written += 1,
            Err(error) => return (written, error.kind, error.context),
        }
    }
}

#[test]
fn pages_far_from_each_other_are_refused_before_a_checkpoint_overflows() {
    let (shelf, spec) = tight();
    let made = shelf.create(spec, async |pool| {
        let world = pool.world().clone();
        pool.create_volume(thin("sparse", 1 << 40)).await.unwrap();
        let (written, kind, context) = write_apart(&pool, "sparse").await;
        assert_eq!(kind, IoErrorKind::PoolFull);
        assert!(context.contains("the metadata of pool 'pool'"), "{context}");
        world.sleep(Duration::from_secs(1)).await;
        let told = pool.events(0).into_iter();
        let told = told.filter(|event| event.text.contains("no room for more maps"));
        assert_eq!(
            told.map(|event| event.kind).collect::<Vec<_>>(),
            [EventKind::Space]
        );
        // What is said of volumes has room of its own, as reservations of hosts need it.
        let sparse = pool.volume("sparse").unwrap();
        sparse.keep_memo(vec![7; 500]).await.unwrap();
        let info = pool.info();
        let pages = info.capacity_bytes / PAGE as u64;
        assert!(
            (pages / 4..pages * 3 / 4).contains(&(written as u64)),
            "{written} of {pages}"
        );
        pool.close().await.unwrap();
    });
    made.unwrap();
    shelf.open(async |pool| {
        let world = pool.world().clone();
        let sparse = pool.volume("sparse").unwrap();
        // Beside a page that is there, it takes hardly more.
        let data = content(&world, 2, 4096);
        sparse.write(VolumeOffset(0), data).await.unwrap();
        pool.delete_volume("sparse").await.unwrap();
        pool.create_volume(thin("next", 1 << 40)).await.unwrap();
        let next = pool.volume("next").unwrap();
        let data = content(&world, 3, 4096);
        next.write(VolumeOffset(0), data).await.unwrap();
    });
}

#[test]
fn a_thick_volume_of_all_pages_has_room_for_its_map_whatever_others_write() {
    let (shelf, spec) = tight();
    let made = shelf.create(spec, async |pool| {
        let pages = pool.info().capacity_bytes / PAGE as u64 * 9 / 10;
        let all = pages * PAGE as u64;
        pool.create_volume(thick("thick", all)).await.unwrap();
        pool.create_volume(thin("sparse", 1 << 40)).await.unwrap();
        let (written, ..) = write_apart(&pool, "sparse").await;
        assert!(written > 0);
        let again = pool.create_volume(thick("second", all)).await;
        assert_eq!(
            again.err().map(|error| error.kind),
            Some(PoolErrorKind::Full)
        );
        // In no order: runs of pages would take less.
        write_pages(&pool, "thick", (0..pages).map(|page| page * 7919 % pages)).await;
        pool.close().await.unwrap();
    });
    made.unwrap();
}

#[test]
fn a_restore_that_promises_pages_again_needs_room_for_their_maps() {
    let (shelf, spec) = tight();
    let made = shelf.create(spec, async |pool| {
        let pages = pool.info().capacity_bytes / PAGE as u64 / 3;
        let all = pages * PAGE as u64;
        pool.create_volume(thick("v", all)).await.unwrap();
        pool.clone_volume("v", "empty", true, 0).await.unwrap();
        write_pages(&pool, "v", 0..pages).await;
        pool.create_volume(thin("sparse", 1 << 40)).await.unwrap();
        write_apart(&pool, "sparse").await;
        let sparse = pool.volume("sparse").unwrap();
        let cleared = (400 * APART * PAGE) as u64;
        sparse.clear(VolumeOffset(0), cleared).await.unwrap();
        // What it has is kept as a snapshot, so all that it may write next needs a second map.
        let restored = pool.restore("v", "empty", Some("kept"), 0).await;
        let refused = restored.err().map(|error| error.kind);
        assert_eq!(refused, Some(PoolErrorKind::Full));
        pool.close().await.unwrap();
    });
    made.unwrap();
}

#[test]
fn copies_by_reference_have_room_in_a_pool_that_is_nearly_empty() {
    let (shelf, spec) = tight();
    let made = shelf.create(spec, async |pool| {
        let world = pool.world().clone();
        let volume = pool.create_volume(thin("v", 1 << 30)).await.unwrap();
        let (len, there) = (4 * PAGE, VolumeOffset(1 << 20));
        volume
            .write(VolumeOffset(0), content(&world, 1, len))
            .await
            .unwrap();
        let copied = volume.copy_from(&volume, (VolumeOffset(0), there), len as u64, |_| true);
        assert_eq!(copied.await.unwrap(), len as u64);
        assert_eq!(pool.map_refusals(), 0);
        assert_eq!(pool.info().mapped_bytes, len as u64, "nothing is written");
        pool.close().await.unwrap();
    });
    made.unwrap();
}

#[test]
fn many_lanes_share_the_room_that_two_have() {
    let tb = 1_000_000_000_000;
    let groups = vec![(Level::Raid6, 12, 2 * tb); 10];
    let held = |lanes| {
        let spec = PoolSpec::new("p", Level::Raid6);
        let capacity = planned_capacity_bytes(&spec, lanes, &groups).unwrap();
        capacity * 100 / (10 * 10 * 2 * tb)
    };
    assert!(held(1) >= 93, "{}", held(1));
    for lanes in [2, 4, 8, 16] {
        assert!(held(lanes) >= 85, "{lanes} lanes: {} %", held(lanes));
    }
}
