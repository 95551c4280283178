//! SANITIZE over crashes and failures: half erased data is never shown as sound.

use crate::bench::{Bench, PAGE_BLOCKS, VOLUME_BLOCKS, port, sense, ten, thin, unit, with_bench};
use base::{BufPool, Prng, Time};
use engine::{Lane, Level, NamedDrive, PoolSpec, World};
use futures_util::poll;
use scsi::{Nexus, Target};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, MediaSpec, Order, Outcome, SimDrive, SimWorld};

const AUSE: u8 = 0x20;
const IMMED: u8 = 0x80;
const EXIT: [u8; 10] = [0x48, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0];
const REQUEST_SENSE: [u8; 6] = [0x03, 0, 0, 0, 18, 0];

fn erase(bits: u8) -> [u8; 10] {
    [0x48, 0x02 | bits, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// Another target that shows `v`, as after a restart, with a nexus that has heard of power on.
async fn shown_again(bench: &Bench) -> (Rc<Target<SimWorld>>, Rc<Nexus<SimWorld>>) {
    let target = Target::new(crate::bench::TARGET, bench.world.clone());
    let volume = bench.pool.volume("v").unwrap();
    assert!(target.map(0, unit(volume)));
    target.unit(0).unwrap().set_may_sanitize(true);
    let host = target.connect(port(1), 1);
    assert_eq!(sense(&bench.run(&host, &[0; 6], &[]).await), (6, 0x29, 0));
    (target, host)
}

/// Waits until the unit is ready; gives how much was erased whenever it was asked.
async fn ready(bench: &Bench, host: &Nexus<SimWorld>) -> Vec<u16> {
    let mut seen = Vec::new();
    loop {
        let data = bench.good(host, &REQUEST_SENSE, &[]).await;
        if data[2] == 0 {
            return seen;
        }
        assert_eq!([data[2], data[12], data[13]], [2, 4, 0x1b]);
        assert_eq!(data[15], 0x80);
        seen.push(u16::from_be_bytes([data[16], data[17]]));
        bench.world.sleep(Duration::from_micros(1)).await;
    }
}

async fn fill(bench: &Bench, host: &Nexus<SimWorld>) {
    for page in 0..VOLUME_BLOCKS / PAGE_BLOCKS {
        bench
            .good(host, &ten(0x2a, page * PAGE_BLOCKS, 1), &[9; 512])
            .await;
    }
}

async fn is_erased(bench: &Bench, host: &Nexus<SimWorld>) {
    for page in 0..VOLUME_BLOCKS / PAGE_BLOCKS {
        let read = bench
            .good(host, &ten(0x28, page * PAGE_BLOCKS, 1), &[])
            .await;
        assert_eq!(read, [0; 512], "page {page}");
    }
}

#[test]
fn progress_is_told_and_grows() {
    with_bench(async |bench| {
        let host = bench.settled().await;
        bench.target.unit(0).unwrap().set_may_sanitize(true);
        fill(&bench, &host).await;
        bench.good(&host, &erase(IMMED), &[]).await;
        let seen = ready(&bench, &host).await;
        assert!(seen.is_sorted());
        assert!(
            seen.iter().any(|part| (1..u16::MAX).contains(part)),
            "{seen:?}"
        );
        is_erased(&bench, &host).await;
    });
}

#[test]
fn a_power_cut_does_not_end_it() {
    let media = Rc::new(Media::new(
        MediaSpec::new("d0", 4 << 20),
        Prng::from_seed(8),
    ));
    let world = || SimWorld::new(Prng::from_seed(7), Order::Shuffled, BufPool::new(), Time(0));
    let drives = |world: &SimWorld| {
        vec![NamedDrive {
            name: "d0".to_owned(),
            drive: SimDrive::adversarial(world, &media),
        }]
    };
    let bench = |world: &SimWorld, pool: Lane<SimWorld>| {
        let target = Target::new(crate::bench::TARGET, world.clone());
        assert!(target.map(0, unit(pool.volume("v").unwrap())));
        target.unit(0).unwrap().set_may_sanitize(true);
        Bench {
            world: world.clone(),
            media: Rc::clone(&media),
            pool,
            target,
        }
    };
    let before = world();
    let root = async {
        let spec = PoolSpec {
            stripe_unit_bytes: 8 << 10,
            page_bytes: crate::bench::pool::PAGE_BYTES,
            journal_bytes: Some(8 << 10),
            volumes_max: 8,
            ..PoolSpec::new("p", Level::Simple)
        };
        let pool = Lane::create(before.clone(), spec, drives(&before)).await;
        let pool = pool.unwrap();
        let volume = thin("v", u64::from(VOLUME_BLOCKS) * 512);
        pool.create_volume(volume).await.unwrap();
        let bench = bench(&before, pool);
        let host = bench.settled().await;
        fill(&bench, &host).await;
        bench.good(&host, &erase(IMMED), &[]).await;
        // Until some of it is erased.
        loop {
            let data = bench.good(&host, &REQUEST_SENSE, &[]).await;
            assert_eq!([data[2], data[12], data[13]], [2, 4, 0x1b]);
            if data[16..18] != [0, 0] {
                break;
            }
            before.sleep(Duration::from_micros(1)).await;
        }
    };
    assert!(matches!(before.run(u64::MAX, root), Ok(Outcome::Done(()))));
    before.power_off();
    media.power_cut();
    let after = world();
    let root = async {
        let pool = Lane::open(after.clone(), drives(&after)).await.unwrap();
        let left = pool.volume("v").unwrap().info().mapped_bytes;
        assert!(left > 0, "the power went too late");
        let bench = bench(&after, pool);
        let host = bench.connect(1);
        assert_eq!(sense(&bench.run(&host, &[0; 6], &[]).await), (6, 0x29, 0));
        // All of it was there to be read.
        let read = bench
            .run(&host, &ten(0x28, VOLUME_BLOCKS - PAGE_BLOCKS, 1), &[])
            .await;
        assert_eq!(sense(&read), (2, 4, 0x1b));
        ready(&bench, &host).await;
        is_erased(&bench, &host).await;
        assert!(bench.pool.volume("v").unwrap().memo().is_empty());
    };
    assert!(matches!(after.run(u64::MAX, root), Ok(Outcome::Done(()))));
    after.power_off();
}

#[test]
fn a_unit_that_is_shown_again_goes_on_and_the_one_before_does_not() {
    with_bench(async |bench| {
        let host = bench.settled().await;
        bench.target.unit(0).unwrap().set_may_sanitize(true);
        fill(&bench, &host).await;
        bench.good(&host, &erase(IMMED), &[]).await;
        let gone = bench.target.unmap(0).unwrap();
        gone.settled().await;
        assert!(bench.pool.volume("v").unwrap().info().mapped_bytes > 0);
        let (_target, host) = shown_again(&bench).await;
        ready(&bench, &host).await;
        is_erased(&bench, &host).await;
    });
}

#[test]
fn a_reset_does_not_end_it_and_reservations_stay() {
    with_bench(async |bench| {
        let host = bench.settled().await;
        bench.target.unit(0).unwrap().set_may_sanitize(true);
        // REGISTER with APTPL.
        let mut list = [0; 24];
        (list[15], list[20]) = (7, 1);
        let register = [0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0];
        bench.good(&host, &register, &list).await;
        let reserved = bench.pool.volume("v").unwrap().memo();
        fill(&bench, &host).await;
        bench.good(&host, &erase(IMMED), &[]).await;
        bench.target.unit_reset(0);
        assert_eq!(sense(&bench.run(&host, &[0; 6], &[]).await), (6, 0x29, 3));
        assert_eq!(sense(&bench.run(&host, &[0; 6], &[]).await), (2, 4, 0x1b));
        // Registrations change meanwhile, and are kept beside it.
        list[7] = 7;
        list[15] = 8;
        bench.good(&host, &register, &list).await;
        let memo = bench.pool.volume("v").unwrap().memo();
        assert_eq!(memo[..2], [2, 1]);
        ready(&bench, &host).await;
        is_erased(&bench, &host).await;
        let after = bench.pool.volume("v").unwrap().memo();
        assert_eq!(after, memo[2..]);
        assert_ne!(after, reserved);
    });
}

#[test]
fn what_fails_says_so_until_it_is_erased_or_left_by_whom_it_allows() {
    with_bench(async |bench| {
        let volume = bench.pool.volume("v").unwrap();
        let not_left = (5, 0x24, 0);
        // It failed in restricted mode: only another SANITIZE of that kind ends it.
        volume.keep_memo(vec![2, 3]).await.unwrap();
        let (_target, host) = shown_again(&bench).await;
        let failed = async |cdb: &[u8], data: &[u8]| {
            let refused = bench.run(&host, cdb, data).await;
            assert_eq!(sense(&refused), (3, 0x31, 3), "{cdb:x?}");
        };
        failed(&[0; 6], &[]).await;
        failed(&ten(0x28, 0, 1), &[]).await;
        failed(&ten(0x2a, 0, 1), &[1; 512]).await;
        let data = bench.good(&host, &REQUEST_SENSE, &[]).await;
        assert_eq!([data[2], data[12], data[13]], [3, 0x31, 3]);
        bench.good(&host, &[0x12, 0, 0, 0, 96, 0], &[]).await;
        for cdb in [EXIT, erase(AUSE)] {
            assert_eq!(sense(&bench.run(&host, &cdb, &[]).await), not_left);
        }
        failed(&[0; 6], &[]).await;
        bench.good(&host, &erase(0), &[]).await;
        bench.good(&host, &[0; 6], &[]).await;
        assert!(volume.memo().is_empty());
        // With AUSE it can be left, for good.
        volume.keep_memo(vec![2, 4]).await.unwrap();
        let (_target, host) = shown_again(&bench).await;
        let refused = bench.run(&host, &[0; 6], &[]).await;
        assert_eq!(sense(&refused), (3, 0x31, 3));
        bench.good(&host, &EXIT, &[]).await;
        bench.good(&host, &[0; 6], &[]).await;
        assert!(volume.memo().is_empty());
        // What nobody can read shows no data, either.
        volume.keep_memo(vec![2, 9]).await.unwrap();
        let volume = bench.pool.volume("v").unwrap();
        assert!(scsi::LogicalUnit::new(volume).is_err());
    });
}

#[test]
fn a_pool_that_fails_ends_it_as_failed_and_the_record_says_it_goes_on() {
    with_bench(async |bench| {
        let host = bench.settled().await;
        bench.target.unit(0).unwrap().set_may_sanitize(true);
        fill(&bench, &host).await;
        let order = erase(AUSE);
        let ends = bench.run(&host, &order, &[]);
        let fails = async {
            loop {
                let data = bench.good(&host, &REQUEST_SENSE, &[]).await;
                if data[2] != 0 && data[16..18] != [0, 0] {
                    break;
                }
                bench.world.sleep(Duration::from_micros(1)).await;
            }
            bench.media.with_faults(|faults| faults.gone = true);
        };
        let (ended, ()) = futures_util::future::join(ends, fails).await;
        assert_eq!(sense(&ended), (3, 0x31, 3));
        assert_eq!(sense(&bench.run(&host, &[0; 6], &[]).await), (3, 0x31, 3));
        // It can't be left where that can't be kept.
        assert_eq!(sense(&bench.run(&host, &EXIT, &[]).await), (3, 0x31, 3));
        assert_eq!(bench.pool.volume("v").unwrap().memo(), [2, 2]);
    });
}

#[test]
fn leaving_a_failure_does_not_take_the_record_of_another_sanitize() {
    with_bench(async |bench| {
        let host = bench.settled().await;
        fill(&bench, &host).await;
        let volume = bench.pool.volume("v").unwrap();
        volume.keep_memo(vec![2, 4]).await.unwrap();
        bench.target.unmap(0).unwrap().settled().await;
        let (_target, host) = shown_again(&bench).await;
        // REGISTER with APTPL: the other two wait until it is on record.
        let mut list = [0; 24];
        (list[15], list[20]) = (7, 1);
        let register = [0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0];
        let order = erase(AUSE | IMMED);
        let mut registers = pin!(bench.good(&host, &register, &list));
        let mut exits = pin!(bench.run(&host, &EXIT, &[]));
        let mut erases = pin!(bench.good(&host, &order, &[]));
        assert!(poll!(&mut registers).is_pending());
        assert!(poll!(&mut exits).is_pending());
        assert!(poll!(&mut erases).is_pending());
        registers.await;
        erases.await;
        exits.await;
        assert_eq!(volume.memo()[..2], [2, 2], "it is being erased");
        ready(&bench, &host).await;
        is_erased(&bench, &host).await;
    });
}

/// Takes the unit away while `cdb` is under way; ends when the volume may be shown again.
async fn taken_away_during(bench: &Bench, cdb: &[u8], data_out: &[u8]) {
    let host = bench.settled().await;
    bench.target.unit(0).unwrap().set_may_sanitize(true);
    let mut command = pin!(bench.run(&host, cdb, data_out));
    assert!(poll!(&mut command).is_pending());
    let unit = bench.target.unmap(0).unwrap();
    let mut settled = pin!(unit.settled());
    assert!(poll!(&mut settled).is_pending(), "the command goes on");
    assert_eq!(command.await.status, 0);
    settled.await;
    assert_eq!(sense(&bench.run(&host, cdb, data_out).await), (5, 0x25, 0));
}

#[test]
fn a_unit_that_is_taken_away_has_ended_its_writes() {
    with_bench(async |bench| {
        taken_away_during(&bench, &ten(0x2a, 0, 1), &[9; 512]).await;
        let (_target, host) = shown_again(&bench).await;
        assert_eq!(bench.good(&host, &ten(0x28, 0, 1), &[]).await, vec![9; 512]);
    });
}

#[test]
fn a_sanitize_that_begins_while_its_unit_is_taken_away_is_on_record() {
    with_bench(async |bench| {
        let host = bench.settled().await;
        fill(&bench, &host).await;
        taken_away_during(&bench, &erase(IMMED), &[]).await;
        let (_target, host) = shown_again(&bench).await;
        ready(&bench, &host).await;
        is_erased(&bench, &host).await;
    });
}
