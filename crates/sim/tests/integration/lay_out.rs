//! Volumes that are laid out instead of written, and the sums of a world without bytes.

use base::{BufPool, Prng, Time, VolumeOffset};
use engine::{Lane, Level, NamedDrive, PoolSpec, Provisioning, Volume, VolumeSpec, World};
use model::constant::Constant;
use std::rc::Rc;
use world_sim::{ModelledMedia, Order, Outcome, SimDrive, SimWorld};

const DRIVES: u64 = 5;
const GIB: u64 = 1 << 30;
const IO: u64 = 8192;

/// Runs `test` over a new pool of drives of 64 GiB in a world without bytes.
fn run<T>(level: Level, test: impl AsyncFnOnce(Lane<SimWorld>) -> T) -> T {
    let seed = Prng::from_seed(3);
    let buffers = BufPool::length_only();
    let world = SimWorld::new(seed.clone(), Order::Fifo, buffers, Time(0));
    let drive = |place| {
        let name = format!("drive{place}");
        let media = ModelledMedia::new(64 * GIB, Constant::FLASH, seed.stream(&name));
        let drive = SimDrive::modelled(&world, &Rc::new(media));
        NamedDrive { name, drive }
    };
    let drives = (0..DRIVES).map(drive).collect();
    let here = world.clone();
    let outcome = world.run(u64::MAX, async move {
        let pool = Lane::create(here, PoolSpec::new("p", level), drives).await;
        test(pool.unwrap()).await
    });
    world.power_off();
    match outcome.unwrap() {
        Outcome::Done(value) => value,
        Outcome::Cut => unreachable!("nothing limits the polls"),
    }
}

async fn volume(pool: &Lane<SimWorld>, size_bytes: u64) -> Volume<SimWorld> {
    let spec = VolumeSpec {
        name: "v".to_owned(),
        size_bytes,
        provisioning: Provisioning::Thin,
    };
    pool.create_volume(spec).await.unwrap()
}

/// Reads `IO` bytes at each of `places`; how many took no time.
async fn free_reads(volume: &Volume<SimWorld>, places: impl Iterator<Item = u64>) -> u64 {
    let world = volume.world();
    let mut free = 0;
    for at in places {
        let began = world.now();
        volume.read(VolumeOffset(at), IO as usize).await.unwrap();
        free += u64::from(world.now() == began);
    }
    free
}

#[test]
fn what_is_laid_out_is_read_from_drives_and_the_rest_is_not_there() {
    run(Level::Raid5, async |pool| {
        let volume = volume(&pool, 100 * GIB).await;
        let page = u64::from(pool.info().page_bytes);
        let before: u64 = pool.info().members.iter().map(|m| m.reads).sum();
        assert_eq!(
            volume.lay_out(GIB + 512..40 * GIB + 512).await.unwrap(),
            39 * GIB + page
        );
        let mut prng = Prng::from_seed(1);
        let laid = (0..500).map(|_| GIB + prng.below(39 * GIB / IO) * IO);
        assert_eq!(free_reads(&volume, laid).await, 0);
        let rest = (0..GIB)
            .step_by(64 << 20)
            .chain((41 * GIB..100 * GIB).step_by(1 << 30));
        let count = rest.clone().count() as u64;
        assert_eq!(free_reads(&volume, rest).await, count);
        let after: u64 = pool.info().members.iter().map(|m| m.reads).sum();
        assert!(after - before >= 500);
        // What was there stays, and only what is missing comes.
        let laid_out = volume.lay_out(0..100 * GIB).await.unwrap();
        assert_eq!(laid_out, 61 * GIB - page);
        assert_eq!(volume.lay_out(0..100 * GIB).await.unwrap(), 0);
        assert_eq!(volume.info().mapped_bytes, 100 * GIB);
        assert_eq!(pool.info().mapped_bytes, 100 * GIB);
        pool.close().await.unwrap();
    });
}

#[test]
fn overwrites_of_what_is_laid_out_read_what_parity_needs() {
    run(Level::Raid5, async |pool| {
        let volume = volume(&pool, 4 * GIB).await;
        volume.lay_out(0..4 * GIB).await.unwrap();
        let data = volume.world().buffers().data(4096).freeze();
        volume.write(VolumeOffset(GIB), data).await.unwrap();
        let reads =
            |pool: &Lane<SimWorld>| -> u64 { pool.info().members.iter().map(|m| m.reads).sum() };
        let before = reads(&pool);
        pool.store().drain().await.unwrap();
        // Two copies of the sums, and old data and parity.
        assert_eq!(reads(&pool) - before, 4);
        pool.close().await.unwrap();
    });
}

#[test]
fn sums_that_went_out_of_ram_come_back_as_they_were() {
    run(Level::Raid5, async |pool| {
        let volume = volume(&pool, 60 * GIB).await;
        volume.lay_out(0..30 * GIB).await.unwrap();
        // Pages of their own with one block written.
        let sparse = || (30 * GIB..60 * GIB).step_by(256 << 20);
        for at in sparse() {
            let data = volume.world().buffers().data(4096).freeze();
            volume.write(VolumeOffset(at), data).await.unwrap();
        }
        pool.store().drain().await.unwrap();
        pool.store().integrity.set_budget(16);
        let laid = || (0..30 * GIB).step_by(64 << 20);
        let reads = |pool: &Lane<SimWorld>| pool.store().io().data_reads.count;
        for _ in 0..3 {
            let (asked, before) = (reads(&pool), pool.store().integrity.stats());
            assert_eq!(free_reads(&volume, laid()).await, 0);
            assert_eq!(free_reads(&volume, sparse()).await, 0);
            let places = (laid().count() + sparse().count()) as u64;
            assert_eq!(reads(&pool) - asked, places);
            let stats = pool.store().integrity.stats();
            assert!(stats.resident <= 17, "{} are in RAM", stats.resident);
            assert!(stats.loads - before.loads >= laid().count() as u64);
            assert_eq!((stats.lost, stats.mended), (0, 0));
        }
        // Beside what was written there is nothing to read from a drive.
        let before = reads(&pool);
        free_reads(&volume, sparse().map(|at| at + 8192)).await;
        assert_eq!(reads(&pool), before);
        pool.close().await.unwrap();
    });
}

#[test]
fn a_volume_that_does_not_fit_is_laid_out_as_far_as_it_does() {
    run(Level::Raid6, async |pool| {
        let volume = volume(&pool, 1000 * GIB).await;
        let full = volume.lay_out(0..1000 * GIB).await.unwrap_err();
        assert_eq!(full.kind, engine::IoErrorKind::PoolFull);
        let info = pool.info();
        assert_eq!(info.mapped_bytes, info.capacity_bytes);
        assert_eq!(info.mapped_bytes, volume.info().mapped_bytes);
        let data = volume.world().buffers().data(4096).freeze();
        volume.write(VolumeOffset(GIB), data).await.unwrap();
        pool.close().await.unwrap();
    });
}

#[test]
#[should_panic(expected = "only where buffers have no bytes")]
fn nothing_is_laid_out_over_drives_with_bytes() {
    let seed = Prng::from_seed(3);
    let world = SimWorld::new(seed.clone(), Order::Fifo, BufPool::new(), Time(0));
    let media = Rc::new(ModelledMedia::new(GIB, Constant::FLASH, seed));
    let drive = SimDrive::modelled(&world, &media);
    let name = "drive".to_owned();
    let drives = vec![NamedDrive { name, drive }];
    let here = world.clone();
    let _ = world.run(u64::MAX, async move {
        let spec = PoolSpec::new("p", Level::Simple);
        let pool = Lane::create(here, spec, drives).await.unwrap();
        volume(&pool, 1 << 20).await.lay_out(0..4096).await
    });
}
