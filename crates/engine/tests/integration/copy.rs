//! Copies inside the engine, by reference and by reading, over a simulated pool.

use crate::common::{PAGE, Shelf, bytes, content, spec, thick, thin};
use base::{Prng, VolumeOffset};
use engine::fsck::{self, Options};
use engine::pool::VolumeChange;
use engine::{IoErrorKind, Lane, Level, PoolSpec, Provisioning, Volume};
use world_sim::SimWorld;

const MIRROR: Level = Level::Raid10 { copies: 2 };
const PAGES: usize = 24;

fn few() -> PoolSpec {
    spec("pool", MIRROR)
}

/// Volumes, and what should be in them.
type Model = Vec<(String, Vec<u8>)>;

async fn check(pool: &Lane<SimWorld>, model: &Model) {
    for (name, expected) in model {
        let volume = pool.volume(name).unwrap();
        let read = volume.read(VolumeOffset(0), expected.len()).await.unwrap();
        assert!(read.to_vec() == *expected, "volume {name}");
    }
}

async fn copy(
    volumes: &[Volume<SimWorld>],
    model: &mut Model,
    (source, from): (usize, usize),
    (target, to): (usize, usize),
    len: usize,
) {
    let ends = (VolumeOffset(from as u64), VolumeOffset(to as u64));
    let copied = volumes[target].copy_from(&volumes[source], ends, len as u64, |_| true);
    assert_eq!(copied.await.unwrap(), len as u64);
    let taken = model[source].1[from..from + len].to_vec();
    model[target].1[to..to + len].copy_from_slice(&taken);
}

fn draw(prng: &mut Prng, end: usize, grain: usize) -> usize {
    prng.below((end / grain) as u64 + 1) as usize * grain
}

#[test]
fn copies_of_any_size_and_place_are_what_the_source_had() {
    for seed in 0..12 {
        let shelf = Shelf::new(2);
        let mut prng = Prng::from_seed(seed);
        let mut model: Model = Vec::new();
        let tested = shelf.create(few(), async |pool| {
            let world = pool.world().clone();
            let size = PAGES * PAGE - 512;
            let mut volumes = Vec::new();
            for name in ["thin", "thick", "zeroes"] {
                let spec = match name {
                    "thick" => thick(name, size as u64),
                    _ => thin(name, size as u64),
                };
                let volume = pool.create_volume_as(spec, name == "zeroes").await;
                volumes.push(volume.unwrap());
                model.push((name.to_owned(), vec![0; size]));
            }
            for step in 0..60 {
                let grain = *prng.pick(&[512, 4096, PAGE, PAGE]);
                let len = (grain + draw(&mut prng, 6 * PAGE, grain)).min(size / grain * grain);
                let (a, b) = (prng.below(3) as usize, prng.below(3) as usize);
                let from = draw(&mut prng, size - len, grain);
                let to = draw(&mut prng, size - len, grain);
                if step % 4 == 0 {
                    let data = content(&world, step, len);
                    volumes[a]
                        .write(VolumeOffset(from as u64), data)
                        .await
                        .unwrap();
                    model[a].1[from..from + len].copy_from_slice(&bytes(step, len));
                    continue;
                }
                copy(&volumes, &mut model, (a, from), (b, to), len).await;
                check(&pool, &model).await;
            }
            pool.close().await.unwrap();
        });
        tested.unwrap();
        let world = shelf.world();
        let drives = shelf.drives(&world);
        let looked = world.run(
            u64::MAX,
            fsck::check(&world, drives, Options { deep: true }),
        );
        let Ok(world_sim::Outcome::Done(Ok(report))) = looked else {
            panic!("fsck could not look");
        };
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        world.power_off();
        shelf.open(async |pool| {
            check(&pool, &model).await;
            let mut reclaimed = 0;
            for (name, _) in &model {
                let holdings = pool.holdings(name).await.unwrap();
                assert_eq!(
                    holdings.mapped_bytes,
                    holdings.exclusive_bytes + holdings.shared_bytes
                );
                let before = pool.info().mapped_bytes;
                pool.delete_volume(name).await.unwrap();
                let freed = before - pool.info().mapped_bytes;
                // What backs pages of the volume goes with it, too.
                assert!(freed >= holdings.exclusive_bytes, "seed {seed}: {name}");
                reclaimed += freed;
            }
            assert!(reclaimed > 0);
            assert_eq!(pool.info().mapped_bytes, 0);
        });
    }
}

#[test]
fn what_lies_alike_is_shared_and_what_does_not_is_read() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        let (page, world) = (PAGE as u64, pool.world().clone());
        let source = pool.volume("v").unwrap();
        let target = pool.create_volume(thin("t", 40 * page)).await.unwrap();
        let mapped = || pool.info().mapped_bytes / page;
        let all = async |target: &Volume<SimWorld>, to: u64| {
            let ends = (VolumeOffset(0), VolumeOffset(to));
            let copied = target.copy_from(&source, ends, 8 * page, |_| true).await;
            assert_eq!(copied.unwrap(), 8 * page);
        };
        let before = mapped();
        all(&target, 3 * page).await;
        assert_eq!(mapped(), before, "nothing is read");
        all(&target, 16 * page + 4096).await;
        assert_eq!(mapped(), before + 9, "it lies across pages");
        let own = pool.create_volume(thick("own", 8 * page)).await.unwrap();
        all(&own, 0).await;
        assert_eq!(mapped(), before + 17, "a thick volume has its own");
        assert_eq!(pool.info().promised_bytes, 0);
        // Each goes its own way.
        let data = content(&world, 9, 4096);
        target.write(VolumeOffset(3 * page), data).await.unwrap();
        let read = source.read(VolumeOffset(0), 4096).await.unwrap();
        assert!(read.to_vec() == bytes(1, 4096));
        // Where nothing is, nothing is afterwards.
        let ends = (VolumeOffset(30 * page), VolumeOffset(page));
        target
            .copy_from(&target, ends, 8 * page, |_| true)
            .await
            .unwrap();
        let hole = target.mapping(VolumeOffset(page)).unwrap();
        assert_eq!((hole.is_mapped, hole.len_bytes), (false, 8 * page));
    });
}

#[test]
fn whole_chunks_are_shared_as_such_and_read_back_after_a_start() {
    let chunk = 256 * PAGE as u64;
    let shelf = Shelf::new(2);
    let check = async |pool: &Lane<SimWorld>| {
        let target = pool.volume("t").unwrap();
        for nth in 0..3 {
            let at = VolumeOffset(2 * chunk + nth * chunk);
            let read = target.read(at, 4096).await.unwrap();
            assert!(read.to_vec() == bytes(nth, 4096), "chunk {nth}");
        }
        assert_eq!(pool.info().mapped_bytes, 3 * PAGE as u64);
    };
    let made = shelf.create(few(), async |pool| {
        let world = pool.world().clone();
        let source = pool.create_volume(thin("s", 8 * chunk)).await.unwrap();
        let target = pool.create_volume(thin("t", 8 * chunk)).await.unwrap();
        for nth in 0..3 {
            let at = VolumeOffset(nth * chunk);
            source.write(at, content(&world, nth, 4096)).await.unwrap();
        }
        let ends = (VolumeOffset(0), VolumeOffset(2 * chunk));
        let copied = target.copy_from(&source, ends, 3 * chunk, |_| true).await;
        assert_eq!(copied.unwrap(), 3 * chunk);
        check(&pool).await;
        pool.checkpoint().await.unwrap();
    });
    made.unwrap();
    shelf.open(async |pool| {
        check(&pool).await;
        pool.delete_volume("s").await.unwrap();
        check(&pool).await;
        pool.delete_volume("t").await.unwrap();
        assert_eq!(pool.info().mapped_bytes, 0);
    });
}

#[test]
fn what_can_not_be_copied_is_refused_and_a_copy_can_be_called_off() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        let page = PAGE as u64;
        let source = pool.volume("v").unwrap();
        let target = pool.create_volume(thin("t", 8 * page)).await.unwrap();
        let snapshot = pool.clone_volume("v", "v@s", true, 0).await.unwrap();
        let refused = async |target: &Volume<SimWorld>, from: u64, to: u64, len: u64| {
            let ends = (VolumeOffset(from), VolumeOffset(to));
            let refused = target.copy_from(&source, ends, len, |_| true).await;
            refused.unwrap_err().kind
        };
        assert_eq!(refused(&snapshot, 0, 0, 512).await, IoErrorKind::ReadOnly);
        for (from, to, len) in [
            (8 * page, 0, 512),
            (0, 8 * page, 512),
            (0, 0, 9 * page),
            (1, 0, 512),
            (0, 0, 100),
            (u64::MAX - 511, 0, 512),
        ] {
            let kind = refused(&target, from, to, len).await;
            assert_eq!(kind, IoErrorKind::OutOfRange, "{from} {to} {len}");
        }
        assert_eq!(target.info().mapped_bytes, 0);
        // In pieces up to a page's end, then by pages: called off after the first.
        let ends = (VolumeOffset(512), VolumeOffset(page + 512));
        let mut told = Vec::new();
        let copied = target.copy_from(&source, ends, 3 * page, |done| {
            told.push(done);
            false
        });
        let copied = copied.await.unwrap();
        assert_eq!((copied, told), (page - 512, vec![page - 512]));
        pool.delete_volume("t").await.unwrap();
        assert_eq!(refused(&target, 0, 0, 512).await, IoErrorKind::Deleted);
    });
}

#[test]
fn copies_end_when_the_metadata_or_the_pool_is_full_and_nothing_is_lost() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        let page = PAGE as u64;
        let source = pool.volume("v").unwrap();
        let target = pool.create_volume(thin("t", 1 << 32)).await.unwrap();
        let mut at = 0;
        let full = loop {
            // Each into a chunk of its own.
            let ends = (VolumeOffset(0), VolumeOffset(at));
            match target.copy_from(&source, ends, 8 * page, |_| true).await {
                Ok(_) => at += 256 * page,
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind, IoErrorKind::PoolFull, "{full}");
        assert!(full.context.contains("metadata"), "{full}");
        assert!(at > 0);
        // What is free can be written all the same, and checkpoints fit.
        let world = pool.world().clone();
        let other = pool.create_volume(thin("o", 1 << 32)).await.unwrap();
        let mut nth = 0;
        loop {
            let at = VolumeOffset(nth * 300 * page);
            match other.write(at, content(&world, nth, 4096)).await {
                Ok(()) => nth += 1,
                Err(error) => break assert_eq!(error.kind, IoErrorKind::PoolFull),
            }
        }
        assert!(nth > 10, "{nth} pages were free");
        pool.checkpoint().await.unwrap();
        let read = target.read(VolumeOffset(at - 256 * page), 8 * PAGE).await;
        assert!(read.unwrap().to_vec() == bytes(1, 8 * PAGE));
        pool.delete_volume("t").await.unwrap();
        let ends = (VolumeOffset(0), VolumeOffset(0));
        let again = other.copy_from(&source, ends, 8 * page, |_| true).await;
        assert_eq!(again.unwrap(), 8 * page);
    });
}

#[test]
fn a_volume_that_becomes_thick_later_keeps_what_it_shares() {
    let shelf = Shelf::with_pool(2, MIRROR);
    shelf.open(async |pool| {
        let page = PAGE as u64;
        let source = pool.volume("v").unwrap();
        let target = pool.create_volume(thin("t", 10 * page)).await.unwrap();
        let ends = (VolumeOffset(0), VolumeOffset(0));
        target
            .copy_from(&source, ends, 8 * page, |_| true)
            .await
            .unwrap();
        let change = VolumeChange {
            provisioning: Some(Provisioning::Thick),
            ..VolumeChange::default()
        };
        pool.change_volume("t", change).await.unwrap();
        assert_eq!(pool.info().promised_bytes, 2 * page);
        let holdings = pool.holdings("t").await.unwrap();
        assert_eq!(
            (holdings.shared_bytes, holdings.exclusive_bytes),
            (8 * page, 0)
        );
    });
}
