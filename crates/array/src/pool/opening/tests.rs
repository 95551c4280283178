#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
//! Tests of the order of lanes, of what one lane's failure leaves, and of lanes that lack something.

use super::*;
use crate::pool::tests::bench::{LEVEL, small_pool};
use crate::shard::{Link, Visit};
use base::{BufPool, Prng, Time};
use engine::pool::LabelSummary;
use engine::{GroupRole, Level, NamedDrive};
use futures_util::future::join;
use send_wrapper::SendWrapper;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;
use world_sim::{Media, MediaSpec, Order, Outcome, SimDrive, SimWorld};

const LANES: usize = 2;
const LACKS_GROUP: &str = "lane that lacks a group is left without it";
const LACKS_DRIVE: &str = "drives that a lane lacks are not offered to it";
const STAYS_OPEN: &str = "lanes stay open beside one that is not";

#[derive(Clone)]
struct Drive(SendWrapper<Rc<Media>>);

impl PoolDrive<SimWorld> for Drive {
    fn name(&self) -> &str {
        &self.0.spec().name
    }

    fn door(&self, state: &ShardState<SimWorld>) -> NamedDrive<SimWorld> {
        NamedDrive {
            name: self.name().to_owned(),
            drive: SimDrive::adversarial(state.world(), &self.0),
        }
    }
}

/// A shard that stops after so many visits.
struct Shard {
    state: Rc<ShardState<SimWorld>>,
    visits_left: Cell<u32>,
    /// The shards that were visited, one after the other.
    visited: Rc<RefCell<Vec<usize>>>,
}

struct Wire(SendWrapper<Rc<Shard>>);

impl Link<SimWorld> for Wire {
    fn send(&self, visit: Visit<SimWorld>) -> bool {
        let Some(left) = self.0.visits_left.get().checked_sub(1) else {
            return false;
        };
        self.0.visits_left.set(left);
        self.0.visited.borrow_mut().push(self.0.state.index());
        let visit = visit(Rc::clone(&self.0.state));
        self.0.state.world().spawn(visit);
        true
    }
}

/// Drives of a pool of two lanes, each on a shard of its own.
struct Bench {
    shards: Vec<Rc<Shard>>,
    drives: Vec<Drive>,
    opening: Opening<SimWorld>,
}

/// Runs `test` with a bug planted, or without one.
fn run<T>(bug: Option<&str>, test: impl AsyncFnOnce(&Bench) -> T) -> T {
    let world = SimWorld::new(Prng::from_seed(3), Order::Shuffled, BufPool::new(), Time(0));
    world.plant(bug);
    let bench = Bench::new(&world);
    let outcome = world.run(10_000_000, test(&bench));
    world.power_off();
    match outcome.unwrap() {
        Outcome::Done(done) => done,
        Outcome::Cut => panic!("it does not end"),
    }
}

impl Bench {
    fn new(world: &SimWorld) -> Bench {
        let visited = Rc::new(RefCell::default());
        let shard = |index| {
            Rc::new(Shard {
                state: ShardState::new(index, world.clone()),
                visits_left: Cell::new(u32::MAX),
                visited: Rc::clone(&visited),
            })
        };
        let shards: Vec<Rc<Shard>> = (0..LANES).map(shard).collect();
        let handle = |shard: &Rc<Shard>| {
            let link = Arc::new(Wire(SendWrapper::new(Rc::clone(shard))));
            ShardHandle::new(shard.state.index(), link)
        };
        let handles = shards.iter().map(handle).collect();
        let drive = |place: usize| {
            let spec = MediaSpec::new(format!("d{place}"), 4 << 20);
            let prng = Prng::from_seed(1).stream(&spec.name);
            Drive(SendWrapper::new(Rc::new(Media::new(spec, prng))))
        };
        Bench {
            shards,
            drives: (0..6).map(drive).collect(),
            opening: Opening::new("pool".to_owned(), handles),
        }
    }

    /// The pool, of the first two drives.
    async fn create(&self) -> Result<PoolInfo, NotOpened> {
        let groups = [(LEVEL, self.drives[..2].to_vec())];
        self.opening.create(&small_pool(), &groups, &[]).await
    }

    fn lane(&self, lane: usize) -> Option<Lane<SimWorld>> {
        self.shards[lane].state.lane("pool", lane as u16)
    }

    fn doors(&self, places: std::ops::Range<usize>) -> Vec<NamedDrive<SimWorld>> {
        doors(&self.shards[0].state, &self.drives[places])
    }

    /// Whether the pool has no lane that is open.
    fn is_closed(&self) -> bool {
        (0..LANES).all(|lane| self.lane(lane).is_none())
    }

    /// What shows that a drive is a pool's.
    async fn label(&self) -> Option<LabelSummary> {
        let state = &self.shards[0].state;
        let [door] = &self.doors(0..1)[..] else {
            return None;
        };
        let label = Lane::probe(state.world(), &door.drive).await;
        label.unwrap()
    }

    /// Closes all shards.
    async fn stop(&self) {
        let closing = self.shards.iter().map(|shard| shard.state.close());
        for failures in join_all(closing).await {
            assert!(failures.is_empty(), "{failures:?}");
        }
    }
}

#[test]
fn the_first_lane_is_created_last_and_closed_last() {
    run(None, async |bench| {
        bench.create().await.unwrap();
        bench.opening.close().await.unwrap();
        assert!(bench.is_closed());
        let info = bench.opening.open(&bench.drives[..2]).await.unwrap();
        assert_eq!((info.lanes, info.members.len()), (2, 2));
        let visited = bench.shards[0].visited.borrow();
        // The last three complete the other lane, and tell both.
        assert_eq!(*visited, [1, 0, 1, 0, 0, 1, 1, 0, 1]);
    });
}

#[test]
fn a_creation_that_one_lane_ends_leaves_no_pool() {
    for gone in 0..LANES {
        run(None, async |bench| {
            bench.shards[gone].visits_left.set(0);
            let refused = bench.create().await.unwrap_err();
            assert!(matches!(refused, NotOpened::Shard(ShardGone(index)) if index == gone));
            assert!(bench.is_closed() && bench.label().await.is_none());
            bench.shards[gone].visits_left.set(u32::MAX);
            bench.create().await.unwrap();
        });
    }
}

#[test]
fn an_opening_ends_when_a_shard_has_stopped_before_it() {
    for gone in 0..LANES {
        run(None, async |bench| {
            bench.create().await.unwrap();
            bench.opening.close().await.unwrap();
            bench.shards[gone].visits_left.set(0);
            let refused = bench.opening.open(&bench.drives[..2]).await.unwrap_err();
            assert!(matches!(refused, NotOpened::Shard(ShardGone(index)) if index == gone));
            assert!(bench.is_closed());
        });
    }
}

/// Whether no lane is left open of a pool that can't be opened, since one of its shards stops.
fn lanes_are_closed_again(bug: Option<&str>) -> bool {
    run(bug, async |bench| {
        bench.create().await.unwrap();
        bench.opening.close().await.unwrap();
        // It opens its lane, and is gone when that is to be completed.
        bench.shards[1].visits_left.set(1);
        let refused = bench.opening.open(&bench.drives[..2]).await.unwrap_err();
        assert!(matches!(refused, NotOpened::Shard(ShardGone(1))));
        bench.lane(0).is_none()
    })
}

#[test]
fn lanes_are_closed_again_beside_one_that_is_not_open() {
    assert!(lanes_are_closed_again(None));
    assert!(!lanes_are_closed_again(Some(STAYS_OPEN)));
}

/// Whether the pool is open for a moment, when its shards close so long after its opening begins.
fn is_open_before(stop: Duration) -> bool {
    run(None, async |bench| {
        bench.create().await.unwrap();
        bench.opening.close().await.unwrap();
        let stopped = async {
            bench.shards[0].state.world().sleep(stop).await;
            bench.stop().await;
            // As it is when the threads of the shards end.
            let label = bench.label().await.unwrap();
            assert!(label.is_clean, "stopped after {stop:?}");
        };
        let (opened, ()) = join(bench.opening.open(&bench.drives[..2]), stopped).await;
        assert!(bench.is_closed(), "stopped after {stop:?}");
        match opened {
            Ok(_) => true,
            Err(NotOpened::Shard(_)) => false,
            // Its shard was there still, and that of the other lane was not.
            Err(NotOpened::Lane(why)) => {
                assert_eq!(why.kind, PoolErrorKind::Failed, "{why}");
                false
            }
        }
    })
}

/// How long an opening takes.
fn opening_takes() -> Duration {
    run(None, async |bench| {
        bench.create().await.unwrap();
        bench.opening.close().await.unwrap();
        let world = bench.shards[0].state.world();
        let began = world.now();
        bench.opening.open(&bench.drives[..2]).await.unwrap();
        world.now().since(began)
    })
}

#[test]
fn a_lane_that_opens_while_its_shard_closes_is_closed() {
    // It looks for long whether another host has the pool open, and writes in the end.
    let step = Duration::from_micros(50);
    // The first comes when the pool is open.
    let takes = opening_takes() + step;
    let stops = (0..80).map(|steps| takes.saturating_sub(steps * step));
    let outcomes: Vec<bool> = stops.map(is_open_before).collect();
    assert!(outcomes[0] && !outcomes[79], "{outcomes:?}");
    assert!(!is_open_before(Duration::ZERO));
}

#[test]
fn a_shard_that_has_closed_takes_no_lane() {
    run(None, async |bench| {
        bench.create().await.unwrap();
        bench.stop().await;
        let opened = bench.opening.open(&bench.drives[..2]).await;
        assert!(matches!(opened.unwrap_err(), NotOpened::Shard(_)));
        assert!(bench.label().await.unwrap().is_clean);
        let groups = [(LEVEL, bench.drives[2..4].to_vec())];
        let created = bench.opening.create(&small_pool(), &groups, &[]).await;
        assert!(matches!(created.unwrap_err(), NotOpened::Shard(_)));
        assert!(bench.is_closed());
    });
}

/// The groups and spares of the second lane, after an opening from `places` before which only the
/// first lane had a second group and a spare.
fn completed(bug: Option<&str>, places: usize) -> (usize, usize) {
    run(bug, async |bench| {
        bench.create().await.unwrap();
        let first = bench.lane(0).unwrap();
        first
            .add_group((LEVEL, GroupRole::Data), bench.doors(2..4))
            .await
            .unwrap();
        let [spare] = bench.doors(4..5).try_into().ok().unwrap();
        first.add_spare(spare).await.unwrap();
        bench.opening.close().await.unwrap();
        let drives = [&bench.drives[..2], &bench.drives[5 - places..5]].concat();
        bench.opening.open(&drives).await.unwrap();
        let lane = bench.lane(1).unwrap();
        (lane.groups_ever(), lane.info().spares.len())
    })
}

#[test]
fn a_lane_is_given_the_groups_and_drives_that_the_first_one_has() {
    assert_eq!(completed(None, 3), (2, 1));
    assert_eq!(completed(Some(LACKS_GROUP), 3), (1, 1));
    assert_eq!(completed(Some(LACKS_DRIVE), 3), (2, 0));
}

#[test]
fn a_group_that_a_lane_can_not_take_keeps_no_spare_back() {
    // One drive of the group is not there.
    assert_eq!(completed(None, 2), (1, 1));
}

#[test]
fn a_group_is_not_made_of_fewer_drives_than_the_first_lane_has() {
    run(None, async |bench| {
        bench.create().await.unwrap();
        let first = bench.lane(0).unwrap();
        let added = first
            .add_group((Level::Raid5, GroupRole::Data), bench.doors(2..6))
            .await;
        added.unwrap();
        bench.opening.close().await.unwrap();
        // The last one is away: the others would make a group, with its zones elsewhere.
        bench.opening.open(&bench.drives[..5]).await.unwrap();
        let lane = bench.lane(1).unwrap();
        assert_eq!(lane.groups_ever(), 1);
        let fewer = lane
            .add_group((Level::Raid5, GroupRole::Data), bench.doors(2..5))
            .await;
        let why = fewer.unwrap_err().context;
        assert!(why.contains("not the same in all lanes"), "{why}");
        bench.opening.close().await.unwrap();
        bench.opening.open(&bench.drives).await.unwrap();
        assert_eq!(bench.lane(1).unwrap().groups_ever(), 2);
    });
}
