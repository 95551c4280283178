//! What simulated drives promise: flushed writes survive any power cut, others
//! may be lost or torn, faults are as injected, and a seed gives one run.

// Helpers of tests fail by panicking, like the tests.
#![allow(clippy::unwrap_used)]

use base::{BufPool, DriveOffset, Prng, SECTOR_BYTES, Slice, Time};
use engine::{Drive, DriveErrorKind, World};
use futures_util::future::{Either, select};
use model::constant::Constant;
use std::collections::BTreeSet;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, MediaSpec, ModelledMedia, Order, Outcome, SimDrive, SimWorld};

fn media(seed: u64, ignores_flush: bool) -> Rc<Media> {
    let spec = MediaSpec {
        name: "d0".to_owned(),
        capacity_bytes: 1 << 20,
        rotational: false,
        discards: true,
        ignores_flush,
    };
    Rc::new(Media::new(spec, Prng::from_seed(seed).stream("media")))
}

fn world(seed: u64) -> SimWorld {
    SimWorld::new(
        Prng::from_seed(seed),
        Order::Shuffled,
        BufPool::new(),
        Time(0),
    )
}

fn finish<T>(world: &SimWorld, root: impl Future<Output = T>) -> T {
    match world.run(u64::MAX, root).unwrap() {
        Outcome::Done(value) => value,
        Outcome::Cut => unreachable!("nothing limits the polls"),
    }
}

fn filled(world: &SimWorld, len: usize, byte: u8) -> Slice {
    world.buffers().copy_of(&vec![byte; len]).freeze()
}

/// The first byte of each sector.
async fn sectors(world: &SimWorld, drive: &SimDrive, at: u64, len: usize) -> Vec<u8> {
    let (buf, read) = drive
        .read(DriveOffset(at), world.buffers().bytes(len))
        .await;
    read.unwrap();
    buf.bytes()
        .unwrap()
        .chunks(SECTOR_BYTES)
        .map(|sector| sector[0])
        .collect()
}

/// Writes 1 and flushes, writes 2 and 3 over it, cuts the power, reads.
fn after_a_cut(seed: u64, ignores_flush: bool) -> Vec<u8> {
    let media = media(seed, ignores_flush);
    let before = world(seed);
    let drive = SimDrive::adversarial(&before, &media);
    finish(&before, async {
        drive
            .write(DriveOffset(4096), filled(&before, 8192, 1))
            .await
            .unwrap();
        drive.flush().await.unwrap();
        drive
            .write(DriveOffset(4096), filled(&before, 4096, 2))
            .await
            .unwrap();
        drive
            .write(DriveOffset(4096), filled(&before, 8192, 3))
            .await
            .unwrap();
        assert_eq!(sectors(&before, &drive, 4096, 8192).await, [3; 16]);
    });
    before.power_cut([&media]);
    assert_eq!(media.unsynced_writes(), 0);
    let after = world(seed + 1);
    let drive = SimDrive::adversarial(&after, &media);
    finish(&after, sectors(&after, &drive, 4096, 8192))
}

#[test]
fn a_flushed_write_survives_and_later_ones_are_lost_torn_or_reordered() {
    let mut first_halves = BTreeSet::new();
    let mut second_halves = BTreeSet::new();
    for seed in 0..400 {
        let found = after_a_cut(seed, false);
        assert!(
            found[..8].iter().all(|byte| [1, 2, 3].contains(byte)),
            "{found:?}"
        );
        assert!(
            found[8..].iter().all(|byte| [1, 3].contains(byte)),
            "{found:?}"
        );
        first_halves.insert(found[..8].to_vec());
        second_halves.insert(found[8..].to_vec());
    }
    for whole in [[1; 8], [2; 8], [3; 8]] {
        assert!(first_halves.contains(&whole[..]), "never saw {whole:?}");
    }
    assert!(first_halves.len() > 20, "writes are torn at sector grain");
    assert!(second_halves.len() > 20, "writes are torn at sector grain");
}

#[test]
fn a_drive_that_ignores_flushes_loses_flushed_writes() {
    assert!((0..100).any(|seed| after_a_cut(seed, true).contains(&0)));
}

#[test]
fn a_durable_write_survives_alone_and_nothing_older_comes_back_over_it() {
    let mut beside = BTreeSet::new();
    for seed in 0..200 {
        let media = media(seed, false);
        let before = world(seed);
        let drive = SimDrive::adversarial(&before, &media);
        finish(&before, async {
            drive
                .write(DriveOffset(0), filled(&before, 8192, 1))
                .await
                .unwrap();
            drive
                .write_durable(DriveOffset(0), filled(&before, 4096, 2))
                .await
                .unwrap();
        });
        before.power_cut([&media]);
        let after = world(seed);
        let drive = SimDrive::adversarial(&after, &media);
        let found = finish(&after, sectors(&after, &drive, 0, 8192));
        assert_eq!(found[..8], [2; 8]);
        beside.insert(found[8..].to_vec());
    }
    assert!(
        beside.contains(&vec![0; 8]),
        "a durable write makes no other write durable"
    );
    assert!(beside.contains(&vec![1; 8]) && beside.len() > 10);
}

#[test]
fn a_flush_covers_only_what_ended_before_it_was_called() {
    let lost = (0..200).any(|seed| {
        let media = media(seed, false);
        let before = world(seed);
        let drive = SimDrive::adversarial(&before, &media);
        finish(&before, async {
            let flush = drive.flush();
            drive
                .write(DriveOffset(0), filled(&before, 4096, 9))
                .await
                .unwrap();
            flush.await.unwrap();
        });
        before.power_cut([&media]);
        let after = world(seed);
        let drive = SimDrive::adversarial(&after, &media);
        finish(&after, sectors(&after, &drive, 0, 4096)) != [9; 8]
    });
    assert!(
        lost,
        "a write that ended after the flush was called is not covered"
    );
}

#[test]
fn a_write_in_flight_at_the_cut_is_lost_kept_or_torn() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let media = media(seed, false);
        let before = world(seed);
        let drive = SimDrive::adversarial(&before, &media);
        let write = drive.write(DriveOffset(0), filled(&before, 4096, 7));
        assert!(
            matches!(before.run(1, write), Ok(Outcome::Cut)),
            "one poll begins it"
        );
        before.power_cut([&media]);
        let after = world(seed);
        let drive = SimDrive::adversarial(&after, &media);
        seen.insert(finish(&after, sectors(&after, &drive, 0, 4096)));
    }
    assert!(seen.contains(&vec![0; 8]) && seen.contains(&vec![7; 8]) && seen.len() > 10);
}

#[test]
fn a_discarded_run_may_give_anything_and_a_written_one_what_was_written() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let media = media(seed, false);
        let world = world(seed);
        let drive = SimDrive::adversarial(&world, &media);
        let found = finish(&world, async {
            drive
                .write(DriveOffset(0), filled(&world, 8192, 5))
                .await
                .unwrap();
            drive.discard(DriveOffset(0), 8192).await.unwrap();
            drive
                .write(DriveOffset(0), filled(&world, 4096, 6))
                .await
                .unwrap();
            sectors(&world, &drive, 0, 8192).await
        });
        assert_eq!(found[..8], [6; 8]);
        seen.insert(found[8]);
    }
    assert!(seen.contains(&0) && seen.contains(&5) && seen.len() > 2);
}

#[test]
fn faults_are_answered_by_their_kind() {
    let media = media(1, false);
    let world = world(1);
    let drive = SimDrive::adversarial(&world, &media);
    let write = |at| drive.write(DriveOffset(at), filled(&world, 4096, 1));
    let read = |at| drive.read(DriveOffset(at), world.buffers().bytes(4096));
    finish(&world, async {
        write(0).await.unwrap();
        write(4096).await.unwrap();
        media.with_faults(|faults| {
            faults.unreadable.insert(0);
            faults.unwritable.insert(1);
            faults.no_space = true;
        });
        assert_eq!(read(0).await.1.unwrap_err().kind, DriveErrorKind::Media);
        assert_eq!(write(4096).await.unwrap_err().kind, DriveErrorKind::Media);
        assert_eq!(
            write(81920).await.unwrap_err().kind,
            DriveErrorKind::NoSpace
        );
        write(0).await.unwrap();
        read(0).await.1.unwrap();
        assert_eq!(write(1).await.unwrap_err().kind, DriveErrorKind::OutOfRange);
        assert_eq!(
            write(1 << 20).await.unwrap_err().kind,
            DriveErrorKind::OutOfRange
        );
        media.with_faults(|faults| faults.gone = true);
        assert_eq!(read(0).await.1.unwrap_err().kind, DriveErrorKind::Gone);
        assert_eq!(drive.flush().await.unwrap_err().kind, DriveErrorKind::Gone);
    });
}

#[test]
fn what_fails_for_a_while_is_well_again() {
    let media = media(2, false);
    let world = world(2);
    let drive = SimDrive::adversarial(&world, &media);
    let write = |at| drive.write(DriveOffset(at), filled(&world, 4096, 1));
    let read = |at| drive.read(DriveOffset(at), world.buffers().bytes(4096));
    finish(&world, async {
        media.with_faults(|faults| faults.failing_flushes = 1);
        write(0).await.unwrap();
        assert_eq!(drive.flush().await.unwrap_err().kind, DriveErrorKind::Other);
        assert_eq!(media.unsynced_writes(), 1, "nothing was flushed");
        drive.flush().await.unwrap();
        assert_eq!(media.unsynced_writes(), 0);
        media.with_faults(|faults| faults.failing = 2);
        assert_eq!(write(0).await.unwrap_err().kind, DriveErrorKind::Other);
        assert_eq!(read(0).await.1.unwrap_err().kind, DriveErrorKind::Other);
        write(0).await.unwrap();
        media.with_faults(|faults| faults.dead = true);
        assert_eq!(read(0).await.1.unwrap_err().kind, DriveErrorKind::Gone);
        media.with_faults(|faults| faults.dead = false);
        read(0).await.1.unwrap();
    });
}

#[test]
fn a_drive_that_hangs_answers_when_that_is_taken_back() {
    let media = media(4, false);
    let world = world(4);
    let drive = SimDrive::adversarial(&world, &media);
    finish(&world, async {
        let from = world.now() + Duration::from_secs(1);
        media.with_faults(|faults| faults.hangs_from = Some(from));
        drive.flush().await.unwrap();
        world.sleep(Duration::from_secs(1)).await;
        let hung = pin!(drive.write(DriveOffset(0), filled(&world, 4096, 1)));
        let waited = pin!(world.sleep(Duration::from_secs(10_000)));
        let Either::Right(((), hung)) = select(hung, waited).await else {
            panic!("it has answered");
        };
        assert_eq!(media.running(), 1);
        media.with_faults(|faults| faults.hangs_from = None);
        hung.await.unwrap();
        assert_eq!(media.running(), 0);
    });
    assert!(world.now() < Time(10_002_000_000_000), "{}", world.now());
}

#[test]
fn what_a_pause_was_long_enough_for_is_seen_at_once_after_it() {
    let media = media(5, false);
    let world = world(5);
    let drive = SimDrive::adversarial(&world, &media);
    let began = world.now();
    finish(&world, async {
        let write = drive.write(DriveOffset(0), filled(&world, 4096, 1));
        world.pause(Duration::from_secs(60));
        write.await.unwrap();
    });
    let took = world.now().since(began);
    assert!(took >= Duration::from_secs(60) && took < Duration::from_secs(61));
    assert_eq!(world.paused(), Duration::from_secs(60));
}

#[test]
fn a_run_can_be_cut_from_inside_and_polls_be_waited_for() {
    let world = world(6);
    let here = world.clone();
    let busy = world.clone();
    world.spawn(async move {
        loop {
            busy.sleep(Duration::from_nanos(1)).await;
        }
    });
    let outcome = world.run(1_000, async move {
        here.after_polls(10).await;
        here.cut();
        here.sleep(Duration::from_secs(1)).await;
    });
    assert_eq!(outcome, Ok(Outcome::Cut));
    assert!((10..15).contains(&world.polls()), "{}", world.polls());
}

#[test]
fn a_slow_drive_takes_longer() {
    let time_of = |slowdown| {
        let media = media(3, false);
        media.with_faults(|faults| faults.slowdown = slowdown);
        let world = world(3);
        let drive = SimDrive::adversarial(&world, &media);
        finish(&world, drive.flush()).unwrap();
        world.now().as_nanos()
    };
    assert_eq!(time_of(1000), 1000 * time_of(0));
}

#[test]
fn a_seed_gives_one_trace() {
    let trace_of = |seed| {
        let media = media(seed, false);
        let world = world(seed);
        finish(&world, async {
            for client in 0..4u8 {
                let (here, media) = (world.clone(), Rc::clone(&media));
                world.spawn(async move {
                    let drive = SimDrive::adversarial(&here, &media);
                    drive
                        .write(DriveOffset(0), filled(&here, 4096, client))
                        .await
                        .unwrap();
                });
            }
            world.sleep(Duration::from_secs(1)).await;
        });
        let drive = SimDrive::adversarial(&world, &media);
        (
            finish(&world, sectors(&world, &drive, 0, 4096)),
            world.trace_hash(),
        )
    };
    assert_eq!(trace_of(5), trace_of(5));
    assert_ne!(trace_of(5).1, trace_of(6).1);
}

#[test]
fn a_modelled_drive_takes_the_time_of_its_model_and_keeps_bytes_only() {
    let buffers = BufPool::length_only();
    let world = SimWorld::new(Prng::from_seed(1), Order::Fifo, buffers, Time(0));
    let model = Constant {
        read_latency: Duration::from_micros(10),
        write_latency: Duration::from_micros(3),
        flush_latency: Duration::ZERO,
        slots: 1,
    };
    let media = Rc::new(ModelledMedia::new(1 << 40, model, Prng::from_seed(1)));
    let drive = SimDrive::modelled(&world, &media);
    finish(&world, async {
        let label = world.buffers().copy_of(&[8; 4096]).freeze();
        drive.write(DriveOffset(1 << 39), label).await.unwrap();
        let data = world.buffers().data(1 << 20).freeze();
        drive.write(DriveOffset(0), data).await.unwrap();
        drive.flush().await.unwrap();
        assert_eq!(world.now(), Time(6_000));
        assert_eq!(sectors(&world, &drive, 1 << 39, 4096).await, [8; 8]);
        assert_eq!(sectors(&world, &drive, 0, 4096).await, [0; 8]);
        assert_eq!(world.now(), Time(26_000));
        let past = drive
            .write(DriveOffset(1 << 40), filled(&world, 4096, 0))
            .await;
        assert_eq!(past.unwrap_err().kind, DriveErrorKind::OutOfRange);
    });
}

#[test]
fn two_operations_on_one_slot_wait_for_each_other() {
    let world = SimWorld::new(
        Prng::from_seed(1),
        Order::Fifo,
        BufPool::length_only(),
        Time(0),
    );
    let model = Constant {
        slots: 1,
        ..Constant::FLASH
    };
    let media = Rc::new(ModelledMedia::new(1 << 30, model, Prng::from_seed(1)));
    let drive = SimDrive::modelled(&world, &media);
    finish(&world, async {
        let read = || drive.read(DriveOffset(0), world.buffers().data(4096));
        let (first, second) = futures_util::future::join(read(), read()).await;
        first.1.and(second.1).unwrap();
    });
    assert_eq!(world.now(), Time(160_000));
}
