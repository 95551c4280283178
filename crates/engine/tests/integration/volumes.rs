//! Volumes over a simulated pool: data, space, and administration.

use crate::common::{PAGE, Shelf, bytes, content, spec, thin};
use base::VolumeOffset;
use engine::{IoErrorKind, Level, PoolErrorKind};

const LEVELS: [(usize, Level); 3] = [
    (1, Level::Simple),
    (2, Level::Raid10 { copies: 2 }),
    (6, Level::Raid10 { copies: 2 }),
];

#[test]
fn writes_of_any_size_and_place_are_read_back_beside_zeroes() {
    for (drives, level) in LEVELS {
        let shelf = Shelf::new(drives);
        let size = 5 * PAGE;
        let mut model = vec![0u8; size];
        let tested = shelf.create(spec("pool", level), async |pool| {
            let volume = pool.create_volume(thin("v", size as u64)).await.unwrap();
            let world = pool.world().clone();
            // One sector, across blocks, across units, across pages, a whole page.
            let writes = [
                (512, 512),
                (3584, 1024),
                (7 * 1024, 9 * 1024),
                (PAGE - 512, 1536),
            ];
            let whole = [(2 * PAGE, PAGE), (3 * PAGE + 512, 2 * PAGE - 512)];
            for (tag, (at, len)) in writes.into_iter().chain(whole).enumerate() {
                let data = content(&world, tag as u64, len);
                volume.write(VolumeOffset(at as u64), data).await.unwrap();
                model[at..at + len].copy_from_slice(&bytes(tag as u64, len));
                let whole = volume.read(VolumeOffset(0), size).await.unwrap();
                assert!(
                    whole.to_vec() == model,
                    "{level:?}: after {len} bytes at {at}"
                );
            }
            let part = volume.read(VolumeOffset(1024), 3 * 512).await.unwrap();
            assert_eq!(part.to_vec(), model[1024..1024 + 3 * 512]);
            assert_eq!(volume.info().mapped_bytes, size as u64);
        });
        tested.unwrap();
        shelf.open(async |pool| {
            let volume = pool.volume("v").unwrap();
            let whole = volume.read(VolumeOffset(0), size).await.unwrap();
            assert!(
                whole.to_vec() == model,
                "{level:?}: after reopening without a close"
            );
        });
    }
}

#[test]
fn requests_outside_the_volume_are_refused() {
    let shelf = Shelf::with_pool(1, Level::Simple);
    shelf.open(async |pool| {
        let volume = pool.volume("v").unwrap();
        let size = volume.size_bytes();
        for (at, len) in [
            (size, 512),
            (size - 512, 1024),
            (1, 512),
            (0, 100),
            (u64::MAX - 511, 512),
        ] {
            let error = volume.read(VolumeOffset(at), len).await.unwrap_err();
            assert_eq!(error.kind, IoErrorKind::OutOfRange, "{at}+{len}: {error}");
            assert!(error.context.contains("'v'"), "{error}");
        }
        let data = content(pool.world(), 1, 1024);
        let error = volume
            .write(VolumeOffset(size - 512), data)
            .await
            .unwrap_err();
        assert_eq!(error.kind, IoErrorKind::OutOfRange);
    });
}

#[test]
fn a_full_pool_fails_new_pages_and_goes_on_with_old_ones() {
    let shelf = Shelf::new(2);
    let tested = shelf.create(spec("pool", Level::Raid10 { copies: 2 }), async |pool| {
        let capacity = pool.info().capacity_bytes;
        let volume = pool.create_volume(thin("v", 2 * capacity)).await.unwrap();
        let small = pool.create_volume(thin("small", 4096)).await.unwrap();
        let world = pool.world().clone();
        let pages = capacity / PAGE as u64;
        for page in 0..pages {
            let at = VolumeOffset(page * PAGE as u64);
            volume.write(at, content(&world, page, 4096)).await.unwrap();
        }
        let beyond = VolumeOffset(pages * PAGE as u64);
        let error = volume
            .write(beyond, content(&world, 1, 512))
            .await
            .unwrap_err();
        assert_eq!(error.kind, IoErrorKind::PoolFull);
        assert!(error.context.contains("'pool' is full"), "{error}");
        assert_eq!(pool.info().mapped_bytes, capacity);
        volume
            .write(VolumeOffset(8192), content(&world, 2, 4096))
            .await
            .unwrap();
        assert_eq!(volume.read(beyond, 512).await.unwrap().to_vec(), [0; 512]);
        // Space that comes back is zeroes to whoever gets it.
        pool.delete_volume("v").await.unwrap();
        assert_eq!(pool.info().mapped_bytes, 0);
        small
            .write(VolumeOffset(512), content(&world, 3, 512))
            .await
            .unwrap();
        let expected = [vec![0; 512], bytes(3, 512), vec![0; 3072]].concat();
        assert_eq!(
            small.read(VolumeOffset(0), 4096).await.unwrap().to_vec(),
            expected
        );
        let error = volume.read(VolumeOffset(0), 512).await.unwrap_err();
        assert_eq!(error.kind, IoErrorKind::Deleted);
    });
    tested.unwrap();
}

#[test]
fn volumes_are_created_resized_and_deleted_for_good() {
    let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    let uuid = shelf.open(async |pool| {
        let kind = |outcome: Result<(), engine::PoolError>| outcome.unwrap_err().kind;
        for (name, size) in [
            ("", 512),
            ("a/b", 512),
            ("x", 0),
            ("x", 100),
            ("x", 1 << 60),
        ] {
            let refused = pool.create_volume(thin(name, size)).await;
            assert_eq!(
                refused.err().unwrap().kind,
                PoolErrorKind::Invalid,
                "{name} {size}"
            );
        }
        let twice = pool.create_volume(thin("v", 512)).await;
        assert_eq!(twice.err().unwrap().kind, PoolErrorKind::Exists);
        assert_eq!(
            kind(pool.resize_volume("v", 512).await),
            PoolErrorKind::Invalid
        );
        assert_eq!(
            kind(pool.resize_volume("w", 512).await),
            PoolErrorKind::NotFound
        );
        assert_eq!(kind(pool.delete_volume("w").await), PoolErrorKind::NotFound);
        pool.resize_volume("v", 100 * PAGE as u64).await.unwrap();
        let new = pool
            .volume("v")
            .unwrap()
            .read(VolumeOffset(99 * PAGE as u64), PAGE)
            .await;
        assert!(new.unwrap().to_vec().iter().all(|byte| *byte == 0));
        pool.create_volume(thin("gone", 512)).await.unwrap();
        pool.delete_volume("gone").await.unwrap();
        for n in 0..7 {
            pool.create_volume(thin(&format!("n{n}"), 512))
                .await
                .unwrap();
        }
        let ninth = pool.create_volume(thin("ninth", 512)).await;
        assert_eq!(ninth.err().unwrap().kind, PoolErrorKind::Full);
        pool.volume("v").unwrap().info().uuid
    });
    shelf.open(async |pool| {
        let volume = pool.volume("v").unwrap();
        assert_eq!(
            (volume.info().uuid, volume.size_bytes()),
            (uuid, 100 * PAGE as u64)
        );
        assert!(pool.volume("gone").is_none());
        assert_eq!(pool.volumes().len(), 8);
    });
}

#[test]
fn the_journal_goes_round_many_times() {
    let shelf = Shelf::with_pool(4, Level::Raid10 { copies: 2 });
    for round in 0..3 {
        shelf.open(async |pool| {
            for n in 0..40u64 {
                pool.create_volume(thin("temporary", (n + 1) * 512))
                    .await
                    .unwrap();
                pool.delete_volume("temporary").await.unwrap();
            }
            let volume = pool.volume("v").unwrap();
            let whole = volume.read(VolumeOffset(0), 8 * PAGE).await.unwrap();
            assert!(whole.to_vec() == bytes(1, 8 * PAGE), "round {round}");
        });
    }
}

#[test]
fn nothing_is_acknowledged_after_the_close() {
    let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    shelf.open(async |pool| {
        pool.close().await.unwrap();
        let volume = pool.volume("v").unwrap();
        let data = content(pool.world(), 5, 512);
        let error = volume.write(VolumeOffset(0), data).await.unwrap_err();
        assert_eq!(error.kind, IoErrorKind::PoolFailed);
        assert!(error.context.contains("closed"), "{error}");
        assert!(pool.create_volume(thin("w", 512)).await.is_err());
        assert!(pool.close().await.is_err());
    });
}
