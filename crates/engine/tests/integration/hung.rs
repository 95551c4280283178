//! Drives that do not answer: no operation waits for them for longer than the limits say, as long
//! as the pool can do without them.

use crate::common::{PAGE, Shelf, bytes, content};
use base::{Prng, VolumeOffset};
use engine::drives::EventKind;
use engine::pool::maintenance::health::Limits;
use engine::{Lane, Level, MemberState, PoolErrorKind, World};
use futures_util::future::join_all;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Outcome, SimWorld};

const BLOCK: usize = 4096;
const RAID10: Level = Level::Raid10 { copies: 2 };

/// As good as for ever.
const STALL: Duration = Duration::from_secs(10_000);

/// What a write or read takes on drives that answer, and a label beside it.
const MARGIN: Duration = Duration::from_secs(1);

/// Within that a drive is out of use from when it answers no more: a look is late by its
/// own pause at most.
fn out_at() -> Duration {
    Limits::default().hung + Duration::from_secs(1)
}

fn stall(shelf: &Shelf, world: &SimWorld, name: &str) {
    stall_for(shelf, world, name, STALL);
}

fn stall_for(shelf: &Shelf, world: &SimWorld, name: &str, time: Duration) {
    let until = world.now() + time;
    shelf
        .named(name)
        .with_faults(|faults| faults.stalled_until = Some(until));
}

fn state(pool: &Lane<SimWorld>, name: &str) -> MemberState {
    let members = pool.info().members;
    members.iter().find(|m| m.name == name).unwrap().state
}

/// Writes all of the volume, and says how long that took.
async fn write_all(pool: &Lane<SimWorld>, tag: u64) -> Duration {
    let began = pool.world().now();
    let data = content(pool.world(), tag, 8 * PAGE);
    let volume = pool.volume("v").unwrap();
    volume.write(VolumeOffset(0), data).await.unwrap();
    pool.world().now().since(began)
}

/// Reads blocks anywhere, four at a time, `count` each, and checks them. What the
/// slowest took.
async fn read_some(pool: &Lane<SimWorld>, tag: u64, count: u64) -> Duration {
    let whole = bytes(tag, 8 * PAGE);
    let volume = pool.volume("v").unwrap();
    let world = pool.world();
    let readers = (0..4).map(async |reader| {
        let mut prng = Prng::from_seed(reader);
        let mut slowest = Duration::ZERO;
        for _ in 0..count {
            let at = prng.below((8 * PAGE / BLOCK) as u64) as usize * BLOCK;
            let began = world.now();
            let found = volume.read(VolumeOffset(at as u64), BLOCK).await.unwrap();
            slowest = slowest.max(world.now().since(began));
            assert!(found.to_vec() == whole[at..at + BLOCK]);
            world.sleep(Duration::from_millis(20)).await;
        }
        slowest
    });
    join_all(readers).await.into_iter().max().unwrap()
}

/// Drives, level, and those of them that the pool can do without at the same time.
const CASES: [(usize, Level, &[&str]); 7] = [
    (2, RAID10, &["d0"]),
    (4, RAID10, &["d0", "d3"]),
    (4, RAID10, &["d1", "d2"]),
    (5, Level::Raid6, &["d0", "d1"]),
    (5, Level::Raid6, &["d1", "d4"]),
    (4, Level::Raid5, &["d0"]),
    (4, Level::Raid5, &["d3"]),
];

#[test]
fn all_drives_that_hang_are_given_up_at_once() {
    for (drives, level, hung) in CASES {
        // At the same time, or one while the other is waited for.
        for apart_ms in [0, 10, 1_000, 3_000] {
            let shelf = Shelf::with_pool(drives, level);
            shelf.open(async |pool| {
                let world = pool.world().clone();
                read_some(&pool, 1, 8).await;
                stall(&shelf, &world, hung[0]);
                let (writing, waiting) = (write_all(&pool, 2), async {
                    world.sleep(Duration::from_millis(apart_ms)).await;
                    hung.iter().for_each(|name| stall(&shelf, &world, name));
                });
                let (took, ()) = futures_util::future::join(writing, waiting).await;
                let apart = Duration::from_millis(apart_ms);
                // One to which nothing was written is noticed when another is late, or
                // when something is written to it.
                let bound = out_at() + apart + MARGIN;
                assert!(took <= bound, "{level} {hung:?} {apart_ms}: {took:?}");
                let again = write_all(&pool, 3).await;
                assert!(again <= bound, "{level} {hung:?} {apart_ms}: {again:?}");
                pool.store().drain().await.unwrap();
                hung.iter()
                    .for_each(|name| assert_eq!(state(&pool, name), MemberState::Failed));
                let took = write_all(&pool, 4).await;
                assert!(took <= MARGIN, "{level} {hung:?}: {took:?}");
                read_some(&pool, 4, 8).await;
            });
            // None is believed when it comes back.
            let media = shelf.media.iter();
            media.for_each(|(_, media)| media.with_faults(|faults| faults.stalled_until = None));
            shelf.open(async |pool| {
                hung.iter()
                    .for_each(|name| assert_eq!(state(&pool, name), MemberState::Failed));
                read_some(&pool, 4, 8).await;
            });
        }
    }
}

#[test]
fn a_drive_that_turns_slow_and_then_hangs_holds_nobody_up() {
    for after_ms in [10, 30, 50, 100, 150, 200, 300, 500, 1_000] {
        let shelf = Shelf::with_pool(4, Level::Raid5);
        shelf.open(async |pool| {
            // It is suspect soon, which is written to its label, too.
            pool.set_health_limits(Limits {
                window: Duration::from_millis(100),
                bad_windows: 1,
                operations: 1,
                slow: Duration::from_micros(500),
                ratio: 2,
                ..Limits::default()
            });
            let world = pool.world().clone();
            pool.store().drain().await.unwrap();
            read_some(&pool, 1, 4).await;
            shelf.named("d1").with_faults(|faults| {
                faults.slowdown = 200;
                faults.queue_depth = 1;
            });
            let reading = read_some(&pool, 1, 20);
            let (writing, hanging) = (write_all(&pool, 1), async {
                world.sleep(Duration::from_millis(after_ms)).await;
                stall(&shelf, &world, "d1");
            });
            let began = world.now();
            let (_, took, ()) = futures_util::future::join3(reading, writing, hanging).await;
            assert!(took <= out_at() + MARGIN * 2, "{after_ms}: {took:?}");
            for tag in 2..6 {
                let took = write_all(&pool, tag).await;
                assert!(took <= out_at() + MARGIN, "{after_ms}: {took:?}");
                world.sleep(Duration::from_millis(500)).await;
            }
            pool.store().drain().await.unwrap();
            let took = world.now().since(began);
            assert!(took <= out_at() * 2, "{after_ms}: {took:?}");
        });
    }
}

#[test]
fn what_a_late_drive_holds_is_read_elsewhere() {
    let cases: [(usize, Level, &[&str]); 5] = [
        (2, RAID10, &["d1"]),
        (3, Level::Raid10 { copies: 3 }, &["d0", "d1"]),
        (4, Level::Raid5, &["d2"]),
        (5, Level::Raid6, &["d1"]),
        (6, Level::Raid6, &["d2", "d4"]),
    ];
    for (drives, level, late) in cases {
        let shelf = Shelf::with_pool(drives, level);
        shelf.open(async |pool| {
            let world = pool.world().clone();
            pool.store().drain().await.unwrap();
            // Their sums are in RAM then.
            read_some(&pool, 1, 64).await;
            let mended = pool.info().members.iter().map(|m| m.mends).sum::<u64>();
            late.iter().for_each(|name| stall(&shelf, &world, name));
            let began = world.now();
            // 0.4 s until it is late, each.
            let slowest = read_some(&pool, 1, 40).await;
            let bound = Duration::from_millis(500) * late.len() as u32;
            assert!(slowest <= bound, "{level} {late:?}: {slowest:?}");
            assert!(world.now().since(began) < Limits::default().hung);
            for name in late {
                assert_eq!(state(&pool, name), MemberState::Healthy, "{level}");
            }
            // Those that were late first do not have to be found out again.
            let slowest = read_some(&pool, 1, 20).await;
            assert!(slowest <= Duration::from_millis(50), "{level}: {slowest:?}");
            // It answers again: nothing is out of use, nothing was put right.
            for name in late {
                let media = shelf.named(name);
                media.with_faults(|faults| faults.stalled_until = Some(world.now()));
            }
            world.sleep(Duration::from_secs(1)).await;
            read_some(&pool, 1, 40).await;
            let after = pool.info().members;
            assert_eq!(after.iter().map(|m| m.mends).sum::<u64>(), mended);
        });
    }
}

#[test]
fn a_late_drive_that_the_pool_needs_is_waited_for() {
    let shelf = Shelf::with_pool(3, Level::Raid5);
    shelf.open(async |pool| {
        let world = pool.world().clone();
        pool.store().drain().await.unwrap();
        read_some(&pool, 1, 64).await;
        pool.fail_drive("d0").await.unwrap();
        let pause = Duration::from_secs(20);
        let until = world.now() + pause;
        let media = shelf.named("d1");
        media.with_faults(|faults| faults.stalled_until = Some(until));
        let slowest = read_some(&pool, 1, 8).await;
        assert!(slowest > Duration::from_secs(18), "{slowest:?}");
        assert_eq!(state(&pool, "d1"), MemberState::Healthy);
        assert!(slowest <= pause + MARGIN, "{slowest:?}");
    });
}

#[test]
fn a_process_that_was_paused_expels_nobody() {
    let shelf = Shelf::with_pool(4, Level::Raid5);
    shelf.open(async |pool| {
        let world = pool.world().clone();
        read_some(&pool, 1, 8).await;
        for round in 0..40 {
            let (writing, pausing) = (write_all(&pool, round), async {
                world.sleep(Duration::from_micros(round * 20)).await;
                world.pause(Duration::from_secs(60));
            });
            let (_, ()) = futures_util::future::join(writing, pausing).await;
            world.sleep(Duration::from_millis(round * 77)).await;
        }
        world.sleep(Duration::from_secs(20)).await;
        let events = pool.events(0);
        let of = |kind| events.iter().filter(|event| event.kind == kind).count();
        let (failed, suspect) = (of(EventKind::DriveFailed), of(EventKind::DriveSuspect));
        assert_eq!((failed, suspect), (0, 0), "{events:?}");
    });
}

#[test]
fn a_pause_that_was_short_by_the_limits_before_expels_nobody() {
    let shelf = Shelf::with_pool(4, Level::Raid5);
    shelf.open(async |pool| {
        let world = pool.world().clone();
        let strict = Limits {
            hung: Duration::from_secs(1),
            ..Limits::default()
        };
        // The drive answers soon after the process goes on.
        stall_for(&shelf, &world, "d1", Duration::from_millis(2_400));
        let pausing = async {
            world.sleep(Duration::from_millis(10)).await;
            world.pause(Duration::from_millis(1_900));
            world.sleep(Duration::from_millis(1)).await;
            pool.set_health_limits(strict);
        };
        futures_util::future::join(write_all(&pool, 2), pausing).await;
        world.sleep(Duration::from_secs(5)).await;
        assert_eq!(state(&pool, "d1"), MemberState::Healthy);
        read_some(&pool, 2, 8).await;
    });
}

#[test]
fn when_no_drive_answers_none_is_given_up_for_it() {
    for (drives, level) in [(2, RAID10), (4, Level::Raid5), (5, Level::Raid6)] {
        let shelf = Shelf::with_pool(drives, level);
        shelf.open(async |pool| {
            let world = pool.world().clone();
            read_some(&pool, 1, 8).await;
            let stood_still = Duration::from_secs(25);
            for (at, (name, _)) in shelf.media.iter().enumerate() {
                // They do not come back in the same instant.
                let time = stood_still + Duration::from_millis(300) * at as u32;
                stall_for(&shelf, &world, name, time);
            }
            let took = write_all(&pool, 2).await;
            assert!(took >= stood_still, "{level}: {took:?}");
            world.sleep(Duration::from_secs(20)).await;
            let events = pool.events(0);
            let failed = |event: &&engine::pool::Event| event.kind == EventKind::DriveFailed;
            assert!(events.iter().find(failed).is_none(), "{level}: {events:?}");
            read_some(&pool, 2, 8).await;
        });
    }
}

#[test]
fn when_a_group_needs_one_of_those_that_hang_none_is_given_up() {
    let shelf = Shelf::with_pool(4, Level::Raid5);
    shelf.open(async |pool| {
        let world = pool.world().clone();
        read_some(&pool, 1, 8).await;
        for name in ["d1", "d2"] {
            stall_for(&shelf, &world, name, Duration::from_secs(8));
        }
        // One of them is asked by and by only.
        let volume = pool.volume("v").unwrap();
        let read = volume.read(VolumeOffset(0), PAGE).await;
        assert!(read.is_ok(), "{read:?}");
        write_all(&pool, 2).await;
        world.sleep(Duration::from_secs(20)).await;
        for name in ["d0", "d1", "d2", "d3"] {
            assert_eq!(state(&pool, name), MemberState::Healthy, "{name}");
        }
        read_some(&pool, 2, 8).await;
    });
}

#[test]
fn a_drive_goes_though_one_of_another_pair_is_needed_and_hangs() {
    let shelf = Shelf::with_pool(4, RAID10);
    shelf.open(async |pool| {
        let world = pool.world().clone();
        read_some(&pool, 1, 8).await;
        pool.fail_drive("d0").await.unwrap();
        for name in ["d1", "d2"] {
            stall_for(&shelf, &world, name, Duration::from_secs(20));
        }
        let (_, ()) = futures_util::future::join(write_all(&pool, 2), async {
            world.sleep(out_at() + MARGIN).await;
            assert_eq!(state(&pool, "d2"), MemberState::Failed);
            assert_eq!(state(&pool, "d1"), MemberState::Healthy, "it is needed");
        })
        .await;
        read_some(&pool, 2, 8).await;
    });
}

#[test]
fn a_drive_that_hangs_through_a_pause_is_given_up_after_it() {
    let shelf = Shelf::with_pool(2, RAID10);
    shelf.open(async |pool| {
        let world = pool.world().clone();
        stall(&shelf, &world, "d1");
        let began = world.now();
        let pause = Duration::from_secs(60);
        let (_, ()) = futures_util::future::join(write_all(&pool, 2), async {
            world.sleep(Duration::from_secs(3)).await;
            world.pause(pause);
        })
        .await;
        let took = world.now().since(began) - pause - Duration::from_secs(3);
        assert!(took >= Limits::default().hung, "{took:?}");
        assert!(took <= out_at() + MARGIN, "{took:?}");
    });
}

#[test]
fn no_opening_waits_for_a_drive_for_ever() {
    let cases = [
        (2, RAID10),
        (4, RAID10),
        (4, Level::Raid5),
        (5, Level::Raid6),
    ];
    for (drives, level) in cases {
        for which in ["d0", "d1"] {
            // From the start, and in the midst of it.
            for after_us in [0, 100, 1_000, 3_000, 10_000, 20_000] {
                let shelf = Shelf::with_pool(drives, level);
                let world = shelf.world();
                let named = shelf.drives(&world);
                let opening = async {
                    let began = world.now();
                    let stalling = async {
                        world.sleep(Duration::from_micros(after_us)).await;
                        stall(&shelf, &world, which);
                    };
                    let opening = Lane::open(world.clone(), named);
                    let (opened, ()) = futures_util::future::join(opening, stalling).await;
                    let pool = opened.unwrap();
                    let took = world.now().since(began);
                    assert!(took <= out_at() * 2, "{level} {which} {after_us}: {took:?}");
                    // Opened before that, it finds out later.
                    let took = write_all(&pool, 1).await;
                    assert!(took <= out_at() + MARGIN, "{level} {which}: {took:?}");
                    pool.store().drain().await.unwrap();
                    read_some(&pool, 1, 8).await;
                    pool.events(0)
                };
                let ended = world.run(u64::MAX, opening);
                let Ok(Outcome::Done(events)) = ended else {
                    panic!("{level} {which} {after_us}")
                };
                world.power_off();
                let told = |event: &&engine::pool::Event| {
                    event.text.contains(&format!("'{which}'"))
                        && (event.text.contains("does not answer")
                            || event.text.contains("has not ended"))
                };
                assert!(events.iter().find(told).is_some(), "{events:?}");
            }
        }
    }
}

#[test]
fn an_opening_is_refused_for_a_drive_that_it_needs_and_that_does_not_answer() {
    for (drives, level, hung) in [
        (1, Level::Simple, &["d0"][..]),
        (2, RAID10, &["d0", "d1"]),
        (4, Level::Raid5, &["d1", "d3"]),
    ] {
        for after_us in [0, 100, 300, 3_000, 10_000] {
            let shelf = Shelf::with_pool(drives, level);
            let world = shelf.world();
            let named = shelf.drives(&world);
            let opening = async {
                let began = world.now();
                let stalling = async {
                    world.sleep(Duration::from_micros(after_us)).await;
                    hung.iter().for_each(|name| stall(&shelf, &world, name));
                };
                let opening = Lane::open(world.clone(), named);
                let (opened, ()) = futures_util::future::join(opening, stalling).await;
                (opened.err(), world.now().since(began))
            };
            let ended = world.run(u64::MAX, opening);
            let Ok(Outcome::Done((refusal, took))) = ended else {
                panic!("{level} {after_us}")
            };
            world.power_off();
            assert!(took <= out_at() * 3, "{level} {after_us}: {took:?}");
            let Some(refusal) = refusal else {
                assert!(
                    after_us > 1_000,
                    "{level} {after_us}: it was opened {took:?}"
                );
                continue;
            };
            let text = &refusal.context;
            assert!(
                hung.iter().any(|name| text.contains(&format!("'{name}'"))),
                "{text}"
            );
            assert!(
                matches!(refusal.kind, PoolErrorKind::Missing | PoolErrorKind::Drive),
                "{refusal:?}"
            );
        }
    }
}

/// One drive of a pair has gone, and its pool is cut off at some instant after that. It
/// comes back when the other one is away: if the pool opens, then with everything that
/// was acknowledged.
#[test]
fn nothing_is_acknowledged_before_the_labels_say_who_missed_it() {
    let mut prng = Prng::from_seed(17);
    let mut refused = 0;
    let sound = Shelf::with_pool(4, RAID10);
    for round in 0..400 {
        let shelf = sound.copied(round);
        let world = shelf.world();
        let named = shelf.drives(&world);
        let acknowledged: Rc<RefCell<Vec<u64>>> = Rc::new(RefCell::new(vec![1; 8]));
        let begun = Cell::new(false);
        let running = async {
            let pool = Lane::open(world.clone(), named).await.unwrap();
            let volume = pool.volume("v").unwrap();
            pool.store().drain().await.unwrap();
            // A read finds out, so that no write waits for the labels by itself.
            let gone = shelf.named("d1");
            gone.with_faults(|faults| faults.gone = true);
            let reads = pool.clone();
            world.spawn(async move {
                read_some(&reads, 1, 8).await;
            });
            while state(&pool, "d1") != MemberState::Failed {
                world.sleep(Duration::from_nanos(100)).await;
            }
            begun.set(true);
            let writers = (0..8).map(async |page: u64| {
                for tag in 2.. {
                    let data = content(&world, tag, BLOCK);
                    let at = VolumeOffset(page * PAGE as u64);
                    volume.write(at, data).await.unwrap();
                    acknowledged.borrow_mut()[page as usize] = tag;
                }
            });
            join_all(writers).await;
        };
        let mut running = Box::pin(running);
        let wait = async {
            use std::task::Poll;
            std::future::poll_fn(|context| {
                let _ = running.as_mut().poll(context);
                match begun.get() {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            })
            .await;
        };
        assert_eq!(world.run(u64::MAX, wait).unwrap(), Outcome::Done(()));
        let polls = prng.between(1, 40);
        assert_eq!(world.run(polls, running).unwrap(), Outcome::Cut);
        world.power_cut(shelf.media.iter().map(|(_, media)| media));
        shelf.named("d1").with_faults(|faults| faults.gone = false);
        shelf.named("d0").with_faults(|faults| faults.gone = true);
        let opened = shelf.try_open(async |pool| {
            let volume = pool.volume("v").unwrap();
            let acknowledged = acknowledged.borrow().clone();
            for (page, tag) in acknowledged.iter().enumerate() {
                let at = VolumeOffset((page * PAGE) as u64);
                let found = volume.read(at, BLOCK).await.unwrap().to_vec();
                let is_of = |tag: u64| match tag {
                    1 => found == bytes(1, 8 * PAGE)[page * PAGE..page * PAGE + BLOCK],
                    _ => found == bytes(tag, BLOCK),
                };
                // One more may have been on its way.
                assert!(is_of(*tag) || is_of(*tag + 1), "round {round}: page {page}");
            }
        });
        refused += u32::from(opened.is_err());
    }
    assert!((20..380).contains(&refused), "{refused} were refused");
}
