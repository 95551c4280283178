//! Snapshots, clones and restoring over a simulated pool.

use crate::common::{PAGE, Shelf, bytes, content, spec, thick, thin};
use base::VolumeOffset;
use engine::{IoErrorKind, Lane, Level, PoolErrorKind, PoolSpec, Volume};
use futures_util::future::join4;
use world_sim::SimWorld;

const MIRROR: Level = Level::Raid10 { copies: 2 };

fn many(volumes_max: u32) -> PoolSpec {
    PoolSpec {
        volumes_max,
        ..spec("pool", MIRROR)
    }
}

async fn write(volume: &Volume<SimWorld>, world: &SimWorld, at: usize, tag: u64) {
    let data = content(world, tag, 4096);
    volume.write(VolumeOffset(at as u64), data).await.unwrap();
}

async fn tag_at(pool: &Lane<SimWorld>, name: &str, at: usize) -> Vec<u8> {
    let volume = pool.volume(name).unwrap();
    let block = volume.read(VolumeOffset(at as u64), 4096).await.unwrap();
    block.to_vec()
}

#[test]
fn a_snapshot_keeps_what_was_there_and_a_clone_goes_its_own_way() {
    let shelf = Shelf::with_pool(2, MIRROR);
    let check = async |pool: &Lane<SimWorld>| {
        assert!(tag_at(pool, "v", 0).await == bytes(2, 4096));
        assert!(tag_at(pool, "s", 0).await == bytes(1, 4096));
        assert!(tag_at(pool, "c", 0).await == bytes(3, 4096));
        for name in ["v", "s", "c"] {
            let rest = tag_at(pool, name, 4096).await;
            assert!(
                rest == bytes(1, 2 * 4096)[4096..],
                "{name}: beside what was written"
            );
        }
        // One page of eight is each one's own.
        assert_eq!(pool.info().mapped_bytes, 10 * PAGE as u64);
    };
    shelf.open(async |pool| {
        let world = pool.world().clone();
        let before = pool.info().mapped_bytes;
        let snapshot = pool.clone_volume("v", "s", true, 0).await.unwrap();
        let clone = pool.clone_volume("s", "c", false, 0).await.unwrap();
        assert_eq!(pool.info().mapped_bytes, before, "nothing is copied");
        write(&pool.volume("v").unwrap(), &world, 0, 2).await;
        write(&clone, &world, 0, 3).await;
        let refused = snapshot
            .write(VolumeOffset(0), content(&world, 4, 4096))
            .await;
        assert_eq!(refused.unwrap_err().kind, IoErrorKind::ReadOnly);
        check(&pool).await;
    });
    shelf.open(async |pool| check(&pool).await);
}

#[test]
fn they_go_in_any_order_and_leave_no_page_behind() {
    let names = ["v", "s0", "c0", "s1", "c1"];
    for turn in 0..names.len() {
        let shelf = Shelf::with_pool(2, MIRROR);
        shelf.open(async |pool| {
            let world = pool.world().clone();
            pool.clone_volume("v", "s0", true, 0).await.unwrap();
            write(&pool.volume("v").unwrap(), &world, PAGE, 2).await;
            pool.clone_volume("s0", "c0", false, 0).await.unwrap();
            pool.clone_volume("v", "s1", true, 0).await.unwrap();
            let clone = pool.clone_volume("c0", "c1", false, 0).await.unwrap();
            write(&clone, &world, 2 * PAGE, 3).await;
            for at in 0..names.len() {
                let name = names[(at * 2 + turn) % names.len()];
                pool.delete_volume(name).await.unwrap();
            }
            assert_eq!(pool.info().mapped_bytes, 0, "turn {turn}");
        });
        shelf.open(async |pool| assert_eq!(pool.info().mapped_bytes, 0));
    }
}

#[test]
fn a_chain_of_a_hundred_clones_reads_what_the_first_had() {
    let shelf = Shelf::new(2);
    let depth = 100;
    let tested = shelf.create(many(128), async |pool| {
        let world = pool.world().clone();
        let first = pool
            .create_volume(thin("c0", 8 * PAGE as u64))
            .await
            .unwrap();
        write(&first, &world, 0, 7).await;
        for n in 1..=depth {
            let (source, name) = (format!("c{}", n - 1), format!("c{n}"));
            let clone = pool.clone_volume(&source, &name, false, 0).await.unwrap();
            if n % 2 == 0 {
                write(&clone, &world, PAGE, n).await;
            }
        }
        pool.close().await.unwrap();
    });
    tested.unwrap();
    shelf.open(async |pool| {
        for n in [0, 1, 51, depth] {
            let name = format!("c{n}");
            assert!(tag_at(&pool, &name, 0).await == bytes(7, 4096));
            let own = match n / 2 * 2 {
                0 => vec![0; 4096],
                written => bytes(written, 4096),
            };
            assert!(tag_at(&pool, &name, PAGE).await == own, "{name}");
        }
        assert_eq!(pool.info().mapped_bytes, (1 + depth / 2) * PAGE as u64);
    });
}

#[test]
fn restoring_brings_the_snapshot_back_and_keeps_the_present_when_asked() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        let world = pool.world().clone();
        let volume = pool.volume("v").unwrap();
        pool.clone_volume("v", "s", true, 0).await.unwrap();
        write(&volume, &world, 0, 2).await;
        pool.resize_volume("v", 10 * PAGE as u64).await.unwrap();
        write(&volume, &world, 9 * PAGE, 3).await;
        pool.restore("v", "s", Some("kept"), 0).await.unwrap();
        assert!(tag_at(&pool, "v", 0).await == bytes(1, 4096));
        assert!(tag_at(&pool, "v", 9 * PAGE).await == vec![0; 4096]);
        assert_eq!(volume.size_bytes(), 10 * PAGE as u64, "the size stays");
        assert!(tag_at(&pool, "kept", 0).await == bytes(2, 4096));
        assert!(tag_at(&pool, "kept", 9 * PAGE).await == bytes(3, 4096));
        // The handle from before is good, and the snapshot stays what it was.
        write(&volume, &world, 0, 4).await;
        assert!(tag_at(&pool, "s", 0).await == bytes(1, 4096));
        let before = pool.info().mapped_bytes;
        pool.restore("v", "kept", None, 0).await.unwrap();
        let given_back = before - pool.info().mapped_bytes;
        assert_eq!(given_back, PAGE as u64, "what only it had");
    });
    shelf.open(async |pool| {
        assert!(tag_at(&pool, "v", 0).await == bytes(2, 4096));
        assert!(tag_at(&pool, "s", 0).await == bytes(1, 4096));
    });
}

#[test]
fn what_can_not_be_restored_is_refused_and_nothing_has_changed() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        pool.clone_volume("v", "s", true, 0).await.unwrap();
        pool.clone_volume("v", "c", false, 0).await.unwrap();
        pool.create_volume(thin("small", 512)).await.unwrap();
        let cases = [
            ("s", "s", None, PoolErrorKind::Invalid),
            ("v", "c", None, PoolErrorKind::Invalid),
            ("small", "s", None, PoolErrorKind::Invalid),
            ("v", "nobody", None, PoolErrorKind::NotFound),
            ("nobody", "s", None, PoolErrorKind::NotFound),
            ("v", "s", Some("c"), PoolErrorKind::Exists),
            ("v", "s", Some("of/two"), PoolErrorKind::Invalid),
        ];
        let before = pool.volumes();
        for (name, snapshot, keep, kind) in cases {
            let refused = pool.restore(name, snapshot, keep, 0).await.unwrap_err();
            assert_eq!(refused.kind, kind, "{name} from {snapshot}: {refused}");
        }
        assert_eq!(pool.volumes(), before);
    });
}

#[test]
fn a_thick_volume_is_promised_what_the_snapshot_has_not() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        let page = PAGE as u64;
        let world = pool.world().clone();
        let volume = pool.create_volume(thick("t", 6 * page)).await.unwrap();
        write(&volume, &world, PAGE, 5).await;
        pool.clone_volume("t", "t@s", true, 0).await.unwrap();
        for at in 2..6 {
            write(&volume, &world, at * PAGE, 6).await;
        }
        let promised = |pool: &Lane<SimWorld>| pool.info().promised_bytes / page;
        assert_eq!(promised(&pool), 1);
        // What it gives up is free afterwards only: there must be room beside it.
        let left = pool.info().capacity_bytes - pool.info().mapped_bytes - page;
        pool.create_volume(thick("all", left)).await.unwrap();
        let refused = pool.restore("t", "t@s", None, 0).await.unwrap_err();
        assert_eq!(refused.kind, PoolErrorKind::Full, "{refused}");
        assert!(tag_at(&pool, "t", 2 * PAGE).await == bytes(6, 4096));
        pool.delete_volume("all").await.unwrap();
        pool.restore("t", "t@s", None, 0).await.unwrap();
        assert_eq!(promised(&pool), 5);
        assert!(tag_at(&pool, "t", PAGE).await == bytes(5, 4096));
        assert!(tag_at(&pool, "t", 2 * PAGE).await == vec![0; 4096]);
    });
    shelf.open(async |pool| assert_eq!(pool.info().promised_bytes, 5 * PAGE as u64));
}

#[test]
fn several_are_taken_together_or_none_is() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        pool.create_volume(thin("w", 512)).await.unwrap();
        let take = async |pairs: &[(&str, &str)], others: bool| {
            let taken = pool
                .snapshot_together(pairs, 0, std::future::ready(others))
                .await;
            taken
                .map(|volumes| volumes.len())
                .map_err(|error| error.kind)
        };
        let pairs = [("v", "vs"), ("w", "ws")];
        assert_eq!(take(&pairs, false).await, Err(PoolErrorKind::Busy));
        assert_eq!(take(&[], true).await, Err(PoolErrorKind::Invalid));
        assert_eq!(
            take(&[("v", "a"), ("w", "a")], true).await,
            Err(PoolErrorKind::Invalid)
        );
        assert_eq!(
            take(&[("v", "a"), ("w", "v")], true).await,
            Err(PoolErrorKind::Exists)
        );
        assert_eq!(
            take(&[("v", "a"), ("x", "b")], true).await,
            Err(PoolErrorKind::NotFound)
        );
        assert_eq!(pool.volumes().len(), 2, "nothing is left behind");
        assert_eq!(take(&pairs, true).await, Ok(2));
        // The same volume twice is one that stands still once.
        assert_eq!(take(&[("v", "a"), ("v", "b")], true).await, Ok(2));
        let much: Vec<String> = (0..9).map(|n| format!("n{n}")).collect();
        let much: Vec<(&str, &str)> = much.iter().map(|name| ("v", name.as_str())).collect();
        assert_eq!(take(&much, true).await, Err(PoolErrorKind::Full));
        assert_eq!(pool.volumes().len(), 6);
    });
}

/// Whoever comes while a volume is being deleted finds none, and nothing is left of it.
#[test]
fn a_volume_in_deletion_can_not_be_taken_or_restored() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        pool.create_volume(thin("w", PAGE as u64)).await.unwrap();
        pool.clone_volume("w", "w@s", true, 0).await.unwrap();
        let pairs = [("w", "w@t"), ("v", "v@t")];
        let (deleted, taken, cloned, restored) = join4(
            pool.delete_volume("v"),
            pool.snapshot_together(&pairs, 0, std::future::ready(true)),
            pool.clone_volume("v", "c", false, 0),
            pool.restore("v", "w@s", Some("v@r"), 0),
        )
        .await;
        deleted.unwrap();
        let refused = [taken.map(drop), cloned.map(drop), restored.map(drop)];
        for error in refused.map(Result::unwrap_err) {
            assert_eq!(error.kind, PoolErrorKind::NotFound, "{error}");
            assert!(error.context.contains("'v'"), "{error}");
        }
        let names: Vec<_> = pool.volumes().into_iter().map(|info| info.name).collect();
        assert_eq!(names, ["w", "w@s"]);
        assert_eq!(pool.info().mapped_bytes, 0);
    });
}

/// Snapshots whose maps are all their own, until the metadata has no room for more. Then volumes that
/// have no snapshot map pages far from each other.
async fn fill_metadata(pool: &Lane<SimWorld>) -> (u64, IoErrorKind) {
    let world = pool.world().clone();
    let dense = pool.volume("dense").unwrap();
    let mut at = 0;
    let full = loop {
        let name = format!("s{at}");
        if let Err(error) = pool.clone_volume("dense", &name, true, 0).await {
            break error.kind;
        }
        // A page of each chunk is the volume's own: its chunks are copied.
        for chunk in 0..DENSE_CHUNKS {
            let page = (chunk * CHUNK_PAGES + at % CHUNK_WRITTEN * CHUNK_STEP) * PAGE;
            let data = content(&world, at as u64, 4096);
            if dense.write(VolumeOffset(page as u64), data).await.is_err() {
                break;
            }
        }
        at += 1;
    };
    assert_eq!(full, PoolErrorKind::Full);
    let sparse = pool.volume("sparse").unwrap();
    let mut written = 0;
    let refused = loop {
        let page = written * 3 * PAGE as u64;
        let data = content(&world, written, 4096);
        match sparse.write(VolumeOffset(page), data).await {
            Ok(()) => written += 1,
            Err(error) => break error.kind,
        }
    };
    (written, refused)
}

const CHUNK_PAGES: usize = 256;
const DENSE_CHUNKS: usize = 32;

/// So many of them, so far from each other, make a chunk take as much as a full one.
const CHUNK_WRITTEN: usize = 64;
const CHUNK_STEP: usize = CHUNK_PAGES / CHUNK_WRITTEN;

const THICK_PAGES: u64 = 400;

/// A pool whose metadata is full of what snapshots do not share, and the writes to it until then.
fn full_metadata(bug: Option<&str>) -> Shelf {
    let mut shelf = Shelf::new(2);
    for (name, media) in &mut shelf.media {
        *media = crate::common::media(name, 384 << 20);
    }
    // Zones and segments take little of the metadata, so maps take most of it.
    let spec = PoolSpec {
        journal_bytes: Some(1 << 20),
        zone_bytes: Some(16 << 20),
        ..many(100)
    };
    let made = shelf.create(spec, async |pool| {
        let world = pool.world().clone();
        world.plant(bug);
        let bytes = (DENSE_CHUNKS * CHUNK_PAGES * PAGE) as u64;
        let dense = pool.create_volume(thin("dense", bytes)).await.unwrap();
        for page in 0..DENSE_CHUNKS * CHUNK_WRITTEN {
            let page = page * CHUNK_STEP;
            let data = content(&world, 1, 4096);
            let at = VolumeOffset((page * PAGE) as u64);
            dense.write(at, data).await.unwrap();
        }
        pool.create_volume(thin("sparse", 1 << 40)).await.unwrap();
        let promised = thick("thick", THICK_PAGES * PAGE as u64);
        pool.create_volume(promised).await.unwrap();
        let (written, refused) = fill_metadata(&pool).await;
        assert_eq!(refused, IoErrorKind::PoolFull, "after {written} pages");
        let info = pool.info();
        let free = (info.capacity_bytes - info.mapped_bytes) / PAGE as u64;
        assert!(
            bug.is_some() || free > 2 * THICK_PAGES,
            "{free}: the drives have room"
        );
        assert!(bug.is_some() || pool.map_refusals() > 1);
        // What is promised has room all the same, page for page.
        let thick = pool.volume("thick").unwrap();
        for page in (0..THICK_PAGES).rev().step_by(2) {
            let at = VolumeOffset(page * PAGE as u64);
            thick.write(at, content(&world, page, 4096)).await.unwrap();
        }
        // A checkpoint of all that.
        pool.close().await.unwrap();
    });
    made.unwrap();
    shelf
}

#[test]
fn new_pages_find_room_in_metadata_that_snapshots_have_filled_or_are_refused() {
    let shelf = full_metadata(None);
    shelf.open(async |pool| {
        let s0 = tag_at(&pool, "s0", CHUNK_STEP * PAGE).await;
        assert!(s0 == bytes(1, 4096));
        let sparse = pool.volume("sparse").unwrap();
        let world = pool.world().clone();
        let mut far = VolumeOffset(1 << 39);
        let refused = loop {
            match sparse.write(far, content(&world, 5, 4096)).await {
                Ok(()) => far.0 += 3 * PAGE as u64,
                Err(error) => break error,
            }
        };
        assert!(refused.context.contains("the metadata"), "{refused}");
        pool.delete_volume("s0").await.unwrap();
        pool.delete_volume("s1").await.unwrap();
        sparse.write(far, content(&world, 5, 4096)).await.unwrap();
    });
}

#[test]
#[should_panic(expected = "a checkpoint overflows its slot")]
fn new_pages_that_nobody_counts_overflow_the_metadata() {
    full_metadata(Some("new pages without room in the metadata"));
}
