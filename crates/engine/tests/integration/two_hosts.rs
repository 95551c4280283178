//! Two hosts that see the same drives: one of them has the pool.

use crate::common::{PAGE, Shelf, bytes, content};
use base::{BufPool, DriveOffset, Prng, Time, Uuid, VolumeOffset};
use engine::world::Host;
use engine::{Drive, Lane, Level, MemberState, NamedDrive, PoolError, PoolErrorKind, World};
use futures_util::future::join;
use std::time::Duration;
use world_sim::{Order, Outcome, SimDrive, SimWorld};

const HEARTBEAT: DriveOffset = DriveOffset(16 << 10);

const LEVEL: Level = Level::Raid10 { copies: 2 };

/// One world for all hosts, so that time is one; what differs is who asks.
struct Bench {
    shelf: Shelf,
    world: SimWorld,
}

impl Bench {
    fn new() -> Bench {
        let shelf = Shelf::with_pool(4, LEVEL);
        let (seed, order) = (Prng::from_seed(77), Order::Shuffled);
        let world = SimWorld::new(seed, order, BufPool::new(), Time(0));
        Bench { shelf, world }
    }

    /// The world as a host sees it.
    fn on(&self, host: u128) -> SimWorld {
        self.world.on_host(Host {
            id: Uuid::from_u128(host),
            boot: Uuid::from_u128(100 + host),
            name: format!("host{host}"),
        })
    }

    fn drives(&self, world: &SimWorld) -> Vec<NamedDrive<SimWorld>> {
        self.shelf
            .media
            .iter()
            .map(|(name, media)| NamedDrive {
                name: name.clone(),
                drive: SimDrive::adversarial(world, media),
            })
            .collect()
    }

    async fn open(&self, host: u128) -> Result<Lane<SimWorld>, PoolError> {
        let world = self.on(host);
        let drives = self.drives(&world);
        Lane::open(world, drives).await
    }

    /// The pool of the first host, and of the second that has taken it over: as when the first
    /// one was held up for long, and goes on now.
    async fn open_on_both(&self) -> (Lane<SimWorld>, Lane<SimWorld>) {
        let first = self.open(1).await.unwrap();
        self.world.sleep(Duration::from_secs(3)).await;
        for NamedDrive { drive, .. } in self.drives(&self.world) {
            let nothing = self.world.buffers().zeroed(4096).freeze();
            drive.write_durable(HEARTBEAT, nothing).await.unwrap();
        }
        (first, self.open(2).await.unwrap())
    }

    fn run<T>(&self, test: impl Future<Output = T>) -> T {
        match self.world.run(u64::MAX, test) {
            Ok(Outcome::Done(value)) => value,
            Ok(_) => panic!("out of polls"),
            Err(deadlock) => panic!("deadlock: {deadlock:?}"),
        }
    }
}

async fn holds(pool: &Lane<SimWorld>) -> bool {
    let volume = pool.volume("v").unwrap();
    let read = volume.read(VolumeOffset(0), 8 * PAGE).await.unwrap();
    read.to_vec() == bytes(1, 8 * PAGE)
}

#[test]
fn a_pool_that_beats_on_another_host_is_not_opened() {
    let bench = Bench::new();
    bench.run(async {
        let first = bench.open(1).await.unwrap();
        bench.world.sleep(Duration::from_secs(3)).await;
        let refused = bench.open(2).await.err().unwrap();
        assert_eq!(refused.kind, PoolErrorKind::InUse);
        assert!(refused.context.contains("host1"), "{refused}");
        // Nothing was written: the first serves on.
        let volume = first.volume("v").unwrap();
        let data = content(&bench.world, 1, PAGE);
        volume.write(VolumeOffset(0), data).await.unwrap();
        assert!(holds(&first).await && first.info().failure.is_none());
    });
}

/// No drive's heartbeat can be read until `end` ends.
async fn without_heartbeats(bench: &Bench, end: impl Future<Output = ()>) {
    let block = HEARTBEAT.0 / 4096;
    for (_, media) in &bench.shelf.media {
        media.with_faults(|faults| faults.unreadable.extend(block..block + 1));
    }
    end.await;
    for (_, media) in &bench.shelf.media {
        media.with_faults(|faults| faults.unreadable.clear());
    }
}

#[test]
fn a_heartbeat_that_can_not_be_read_for_a_moment_keeps_a_second_host_away() {
    let bench = Bench::new();
    bench.run(async {
        let first = bench.open(1).await.unwrap();
        bench.world.sleep(Duration::from_secs(3)).await;
        let moment = bench.world.sleep(Duration::from_millis(150));
        let (second, ()) = join(bench.open(2), without_heartbeats(&bench, moment)).await;
        let refused = second.err().map(|error| error.kind);
        assert_eq!(refused, Some(PoolErrorKind::InUse));
        assert!(first.info().failure.is_none() && holds(&first).await);
    });
}

#[test]
fn an_owner_that_can_not_read_who_beat_looks_again_before_it_beats() {
    let bench = Bench::new();
    bench.run(async {
        let (first, second) = bench.open_on_both().await;
        let errors = || -> u64 { first.info().members.iter().map(|m| m.errors).sum() };
        let looks = async {
            let end = bench.world.now() + Duration::from_secs(3);
            while errors() == 0 && bench.world.now() < end {
                bench.world.sleep(Duration::from_millis(5)).await;
            }
        };
        without_heartbeats(&bench, looks).await;
        assert!(errors() > 0 && first.info().failure.is_none());
        bench.world.sleep(Duration::from_millis(250)).await;
        let failure = first.info().failure;
        assert!(failure.is_some_and(|failure| failure.contains("host2")));
        assert!(second.info().failure.is_none() && holds(&second).await);
    });
}

#[test]
fn the_pool_of_a_host_that_is_gone_is_taken_over_after_three_periods() {
    let bench = Bench::new();
    bench.run(async {
        let first = bench.open(1).await.unwrap();
        bench.world.sleep(Duration::from_secs(3)).await;
        // As when its host loses its power: it ends, and closes nothing.
        drop(first);
        let began = bench.world.now();
        let second = bench.open(2).await.unwrap();
        assert!(bench.world.now().since(began) >= Duration::from_secs(6));
        assert!(holds(&second).await);
    });
}

#[test]
fn an_owner_that_has_been_replaced_stops() {
    let bench = Bench::new();
    bench.run(async {
        let (first, second) = bench.open_on_both().await;
        bench.world.sleep(Duration::from_secs(4)).await;
        let failure = first.info().failure.unwrap();
        assert!(failure.contains("host2"), "{failure}");
        let data = content(&bench.world, 9, PAGE);
        let volume = first.volume("v").unwrap();
        assert!(volume.write(VolumeOffset(0), data).await.is_err());
        assert!(second.info().failure.is_none() && holds(&second).await);
    });
}

#[test]
fn a_heartbeat_that_fails_costs_no_drive() {
    let bench = Bench::new();
    bench.run(async {
        let pool = bench.open(1).await.unwrap();
        let block = HEARTBEAT.0 / 4096;
        for (_, media) in &bench.shelf.media {
            media.with_faults(|faults| faults.unwritable.extend(block..block + 1));
        }
        bench.world.sleep(Duration::from_secs(9)).await;
        let members = pool.info().members;
        assert!(members.iter().any(|member| member.errors > 0));
        assert!(members.iter().all(|m| m.state == MemberState::Healthy));
        assert!(pool.info().failure.is_none());
    });
}

#[test]
fn on_the_same_host_nobody_waits_and_after_a_clean_close_another_not_for_long() {
    let bench = Bench::new();
    bench.run(async {
        let mut last = 0;
        for (host, close) in [(1, true), (1, false), (1, true), (2, true), (2, false)] {
            let began = bench.world.now();
            let pool = bench.open(host).await.unwrap();
            let took = bench.world.now().since(began);
            // Another host than the last makes sure that the last does not open it, too.
            assert_eq!(
                took < Duration::from_secs(1),
                host == last,
                "{host}: {took:?}"
            );
            assert!(took < Duration::from_secs(4), "{host}: {took:?}");
            last = host;
            bench.world.sleep(Duration::from_secs(3)).await;
            match close {
                true => pool.close().await.unwrap(),
                false => drop(pool),
            }
        }
    });
}

#[test]
fn a_pool_that_is_being_closed_still_beats() {
    let bench = Bench::new();
    bench.run(async {
        let first = bench.open(1).await.unwrap();
        let data = content(&bench.world, 2, 8 * PAGE);
        let volume = first.volume("v").unwrap();
        volume.write(VolumeOffset(0), data).await.unwrap();
        // What is in the log goes to drives that take their time; labels and heartbeats
        // lie before.
        let blocks = 12..crate::common::DRIVE_BYTES / 4096;
        for (_, media) in &bench.shelf.media {
            media.with_faults(|faults| {
                faults.slow_blocks.extend(blocks.clone());
                faults.slow_by = Duration::from_secs(5);
            });
        }
        let began = bench.world.now();
        let second = async {
            bench.world.sleep(Duration::from_secs(1)).await;
            let refused = bench.open(2).await.err().unwrap();
            assert_eq!(refused.kind, PoolErrorKind::InUse, "{refused}");
            let waited = bench.world.now().since(began);
            for (_, media) in &bench.shelf.media {
                media.with_faults(|faults| faults.slow_blocks.clear());
            }
            waited
        };
        let close = async {
            first.close().await.unwrap();
            bench.world.now().since(began)
        };
        let (refused_after, closed_after) = join(second, close).await;
        assert!(
            refused_after < closed_after,
            "{refused_after:?} {closed_after:?}"
        );
    });
}

#[test]
fn of_two_hosts_that_open_a_pool_at_the_same_time_one_has_it_at_most() {
    let mut opened = 0;
    for apart_us in (0..40).map(|step| step * step * 5_000) {
        for crashed in [false, true] {
            let bench = Bench::new();
            bench.run(async {
                let owner = bench.open(3).await.unwrap();
                bench.world.sleep(Duration::from_secs(3)).await;
                match crashed {
                    true => drop(owner),
                    false => owner.close().await.unwrap(),
                }
                let later = async {
                    bench.world.sleep(Duration::from_micros(apart_us)).await;
                    bench.open(2).await
                };
                let both = join(bench.open(1), later).await;
                bench.world.sleep(Duration::from_secs(3)).await;
                let serves = |pool: &Lane<SimWorld>| pool.info().failure.is_none();
                let both = [both.0, both.1];
                let mut serving = 0;
                for pool in both.iter().flatten().filter(|pool| serves(pool)) {
                    serving += 1;
                    assert!(holds(pool).await);
                }
                assert!(serving <= 1, "{apart_us} us apart, crashed {crashed}");
                for refused in both.iter().filter_map(|pool| pool.as_ref().err()) {
                    let kind = refused.kind;
                    assert!(
                        matches!(kind, PoolErrorKind::InUse | PoolErrorKind::Failed),
                        "{refused}"
                    );
                }
                opened += serving;
            });
        }
    }
    assert!(opened > 20, "{opened} of 80");
}
