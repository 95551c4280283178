//! Lanes of a nearly full pool that all ask each other for zones at the same time.
//!
//! No zone goes round between them, every request ends, and a lane is told that the pool is full
//! only when no other lane could lend.

use crate::common::{content, media, spec, thin};
use base::{BufPool, Prng, Time, VolumeOffset};
use engine::lane::LaneSlot;
use engine::pool::{PoolError, PoolErrorKind};
use engine::{Lane, Level, NamedDrive, PoolSpec, Provisioning, Volume, VolumeSpec};
use futures_util::future::join;
use world_sim::{Order, Outcome, SimDrive, SimWorld};

const PAGE: u64 = 4096;

/// Pages of a zone.
const ZONE: u64 = 16;

/// The way it was.
const HASTY: &str = "zone lent on that a write waits for";

const LENT: &str = "lane gives a zone to another";

/// A pool of which lanes have few zones, and no zone is nobody's.
struct Contest {
    world: SimWorld,
    pools: Vec<Lane<SimWorld>>,
}

/// What came of a test, if it ended in time, and how often zones were lent.
struct Ended<T> {
    outcome: Option<T>,
    lent: u64,
}

/// Runs `test` over a pool whose lanes, but for the first, have so many zones to spare. The first
/// lane has all others, and has promised everything in them.
fn contest<T>(spare: &[u64], bug: Option<&str>, test: impl AsyncFnOnce(&Contest) -> T) -> Ended<T> {
    let seed = Prng::from_seed(1);
    let world = SimWorld::new(seed, Order::Shuffled, BufPool::new(), Time(0));
    world.plant(bug);
    let lanes = LaneSlot::all(1 + spare.len() as u16);
    let outcome = world.run(200_000, async {
        let contest = Contest::new(&world, lanes).await;
        contest.share_out(spare).await;
        test(&contest).await
    });
    let outcome = match outcome {
        Ok(Outcome::Done(outcome)) => Some(outcome),
        Ok(Outcome::Cut) => None,
        Err(deadlock) => panic!("deadlock: {deadlock:?}"),
    };
    let lent = world.marks().get(LENT).copied().unwrap_or_default();
    world.power_off();
    Ended { outcome, lent }
}

impl Contest {
    async fn new(world: &SimWorld, lanes: Vec<LaneSlot>) -> Contest {
        let level = Level::Raid10 { copies: 2 };
        let media = ["d0", "d1"].map(|name| (name, media(name, 16 << 20)));
        let mut pools = Vec::new();
        for lane in lanes.into_iter().rev() {
            let drive = |(name, media): &(&str, _)| NamedDrive {
                name: (*name).to_owned(),
                drive: SimDrive::adversarial(world, media),
            };
            let groups = vec![(level, media.iter().map(drive).collect())];
            let spec = PoolSpec {
                page_bytes: PAGE as u32,
                ..spec("pool", level)
            };
            let made = Lane::create_lane(world.clone(), lane, spec, groups, Vec::new());
            pools.insert(0, made.await.unwrap());
        }
        let world = world.clone();
        Contest { world, pools }
    }

    async fn share_out(&self, spare: &[u64]) {
        for (lane, zones) in (1..).zip(spare) {
            self.promise(lane, "spare", zones * ZONE - 1).await.unwrap();
            self.pools[lane].delete_volume("spare").await.unwrap();
        }
        let info = self.pools[0].info();
        self.promise(0, "all", info.capacity_bytes / PAGE)
            .await
            .unwrap();
        let info = self.pools[0].info();
        assert_eq!(info.free_zones_bytes, 0);
        assert!(info.kept_bytes > ZONE * PAGE, "{info:?}");
    }

    /// Makes a thick volume of so many pages.
    async fn promise(
        &self,
        lane: usize,
        name: &str,
        pages: u64,
    ) -> Result<Volume<SimWorld>, PoolError> {
        let spec = VolumeSpec {
            name: name.to_owned(),
            size_bytes: pages * PAGE,
            provisioning: Provisioning::Thick,
        };
        self.pools[lane].create_volume(spec).await
    }

    /// Writes so many pages, one after the other, to a thin volume.
    async fn write(&self, lane: usize, pages: u64) {
        let volume = self.pools[lane].create_volume(thin("thin", pages * PAGE));
        let volume = volume.await.unwrap();
        for page in 0..pages {
            let data = content(&self.world, page, PAGE as usize);
            volume.write(VolumeOffset(page * PAGE), data).await.unwrap();
        }
    }
}

fn is_full<T>(made: &Result<T, PoolError>) -> bool {
    matches!(made, Err(error) if error.kind == PoolErrorKind::Full)
}

/// The first lane writes, and finds no page. The second one has some to spare, and wants to
/// promise more than it has.
fn a_write_and_a_promise(bug: Option<&str>) -> Ended<bool> {
    contest(&[10], bug, async |contest| {
        let promise = contest.promise(1, "thick", 20 * ZONE);
        let (made, ()) = join(promise, contest.write(0, 2 * ZONE)).await;
        is_full(&made)
    })
}

#[test]
fn a_zone_that_is_lent_for_a_write_is_not_lent_on() {
    let ended = a_write_and_a_promise(None);
    assert_eq!(ended.outcome, Some(true), "the promise is refused");
    assert!((1..=4).contains(&ended.lent), "{}", ended.lent);
    let ended = a_write_and_a_promise(Some(HASTY));
    assert!(ended.lent > 4);
}

#[test]
fn of_two_lanes_that_both_promise_more_than_they_have_one_gets_it() {
    let ended = contest(&[7, 6], None, async |contest| {
        let (first, second) = (
            contest.promise(1, "thick", 11 * ZONE),
            contest.promise(2, "thick", 11 * ZONE),
        );
        let (first, second) = join(first, second).await;
        assert!(is_full(&first) || is_full(&second));
        first.is_ok() || second.is_ok()
    });
    assert_eq!(ended.outcome, Some(true));
    assert!((4..=6).contains(&ended.lent), "{}", ended.lent);
}

#[test]
fn a_promise_is_not_refused_for_zones_that_a_longer_waiting_one_had_collected_in_vain() {
    let ended = contest(&[7, 6], None, async |contest| {
        let first = contest.promise(1, "thick", 20 * ZONE);
        let second = contest.promise(2, "thick", 11 * ZONE);
        let (first, second) = join(first, second).await;
        is_full(&first) && second.is_ok()
    });
    assert_eq!(ended.outcome, Some(true));
}

#[test]
fn writes_of_two_lanes_share_what_a_third_lane_has() {
    let ended = contest(&[8, 1], None, async |contest| {
        let promise = contest.promise(1, "thick", 20 * ZONE);
        let writes = join(contest.write(0, 3 * ZONE), contest.write(2, 3 * ZONE));
        let (made, _) = join(promise, writes).await;
        is_full(&made)
    });
    assert_eq!(ended.outcome, Some(true));
    assert!((4..=8).contains(&ended.lent), "{}", ended.lent);
}
