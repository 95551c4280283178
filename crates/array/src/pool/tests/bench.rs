//! A pool of two lanes on two shards of a simulated world, and drives to add to it.

use crate::control::OneThread;
use crate::error::ArrayError;
use crate::pool::{Holder, NewDrive, NewDrives, Pool};
use crate::shard::{Link, ShardHandle, ShardState, Visit};
use base::{BufPool, Prng, Time};
use engine::lane::LaneSlot;
use engine::pool::{MemberInfo, PoolSpec};
use engine::{Drive, Lane, Level, NamedDrive, Provisioning, VolumeSpec, World};
use send_wrapper::SendWrapper;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::Duration;
use world_sim::{Media, MediaSpec, Order, Outcome, SimDrive, SimWorld};

const DRIVE_BYTES: u64 = 4 << 20;
pub const LEVEL: Level = Level::Raid10 { copies: 2 };

/// A link that runs at once.
struct AtOnce(SendWrapper<Rc<ShardState<SimWorld>>>);

impl Link<SimWorld> for AtOnce {
    fn send(&self, visit: Visit<SimWorld>) -> bool {
        self.0.world().spawn(visit(Rc::clone(&self.0)));
        true
    }
}

/// The pool `pool` over the drives `d0` and `d1`.
pub struct Bench {
    pub world: SimWorld,
    pub pool: Pool<SimWorld>,
    /// As the shards have them.
    pub lanes: Vec<Lane<SimWorld>>,
}

/// Runs `test` with a bug planted, or without one.
pub fn run<T>(bug: Option<&str>, test: impl AsyncFnOnce(&Bench) -> T) -> T {
    let world = SimWorld::new(Prng::from_seed(3), Order::Shuffled, BufPool::new(), Time(0));
    world.plant(bug);
    let outcome = world.run(10_000_000, async {
        let bench = Bench::new(&world).await;
        test(&bench).await
    });
    world.power_off();
    match outcome.unwrap() {
        Outcome::Done(done) => done,
        Outcome::Cut => panic!("it does not end"),
    }
}

/// What the pool is like.
pub fn small_pool() -> PoolSpec {
    PoolSpec {
        stripe_unit_bytes: 8 << 10,
        page_bytes: 32 << 10,
        journal_bytes: Some(8 << 10),
        zone_bytes: Some(64 << 10),
        log_bytes: Some(256 << 10),
        volumes_max: 8,
        ..PoolSpec::new("pool", LEVEL)
    }
}

fn media(name: &str, capacity_bytes: u64) -> Rc<Media> {
    let spec = MediaSpec::new(name, capacity_bytes);
    Rc::new(Media::new(spec, Prng::from_seed(1).stream(name)))
}

impl Bench {
    async fn new(world: &SimWorld) -> Bench {
        let old = ["d0", "d1"].map(|name| (name, media(name, DRIVE_BYTES)));
        let mut lanes = Vec::new();
        for slot in LaneSlot::all(2).into_iter().rev() {
            let door = |(name, media): &(&str, Rc<Media>)| NamedDrive {
                name: (*name).to_owned(),
                drive: SimDrive::adversarial(world, media),
            };
            let groups = vec![(LEVEL, old.iter().map(door).collect())];
            let lane = Lane::create_lane(world.clone(), slot, small_pool(), groups, Vec::new());
            lanes.insert(0, lane.await.unwrap());
        }
        let shard = |(index, lane): (usize, &Lane<SimWorld>)| {
            let state = ShardState::new(index, world.clone());
            state.add_pool(lane.clone());
            ShardHandle::new(index, Arc::new(AtOnce(SendWrapper::new(state))))
        };
        let shards = lanes.iter().enumerate().map(shard).collect();
        let waiter = Arc::new(OneThread::new(world.clone(), 0));
        Bench {
            world: world.clone(),
            pool: Pool::new("pool".to_owned(), shards, waiter),
            lanes,
        }
    }

    /// The drive of this name.
    pub async fn member(&self, name: &str) -> MemberInfo {
        let info = self.pool.info().await.unwrap();
        let mut all = info.members.into_iter().chain(info.spares);
        all.find(|member| member.name == name).unwrap()
    }

    /// Waits for what happens in the background.
    pub async fn wait_until(&self, is_so: impl Fn() -> bool) {
        while !is_so() {
            self.world.sleep(Duration::from_millis(50)).await;
        }
    }

    /// Promises a quarter of what a lane could have to a volume.
    pub async fn promise_a_quarter(&self) {
        let lane = &self.lanes[0];
        let size_bytes = lane.info().capacity_bytes / 4 / (32 << 10) * (32 << 10);
        let volume = lane.create_volume(VolumeSpec {
            name: "v".to_owned(),
            size_bytes,
            provisioning: Provisioning::Thick,
        });
        volume.await.unwrap();
    }
}

/// Where new drives are large enough.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    Everywhere,
    /// This lane sees a drive that is too small.
    NotInLane(u16),
    /// It does when it opens it, and not when it is asked.
    UntilOpenedInLane(u16),
}

#[derive(Clone)]
pub struct NewMedia {
    name: String,
    media: SendWrapper<Rc<Media>>,
    fit: Fit,
    replaces: Option<String>,
}

/// New drives, and how often they were made.
pub struct New {
    drives: Vec<NewMedia>,
    makings: AtomicI32,
}

impl New {
    pub fn of(names: &[&str], fit: Fit) -> New {
        let drive = |name: &&str| NewMedia {
            name: (*name).to_owned(),
            media: SendWrapper::new(media(name, DRIVE_BYTES)),
            fit,
            replaces: None,
        };
        New {
            drives: names.iter().map(drive).collect(),
            makings: AtomicI32::new(0),
        }
    }

    /// A drive that comes where one of its name is.
    pub fn in_place(name: &str) -> New {
        let mut new = New::of(&[name], Fit::Everywhere);
        new.drives[0].replaces = Some(name.to_owned());
        new
    }

    /// How often they were made, and not taken back.
    pub fn makings(&self) -> i32 {
        self.makings.load(Relaxed)
    }
}

impl NewMedia {
    fn door(&self, world: &SimWorld, fits: bool) -> NamedDrive<SimWorld> {
        let tiny = media("tiny", 1 << 20);
        let media = if fits { &*self.media } else { &tiny };
        NamedDrive {
            name: self.name.clone(),
            drive: SimDrive::adversarial(world, media),
        }
    }
}

impl NewDrive<SimWorld> for NewMedia {
    fn name(&self) -> &str {
        &self.name
    }

    fn holder(&self) -> Option<Holder<'_>> {
        let name = self.replaces.as_deref()?;
        let is_replaced = true;
        Some(Holder { name, is_replaced })
    }

    fn is_its_own_successor(&self) -> bool {
        self.replaces.is_some()
    }

    async fn look_at(
        &self,
        state: &ShardState<SimWorld>,
        lane: &Lane<SimWorld>,
    ) -> Result<(Option<NamedDrive<SimWorld>>, u64), ArrayError> {
        if self.replaces.is_some() {
            return Ok((None, self.media.spec().capacity_bytes));
        }
        let drive = self.door(state.world(), self.fit != Fit::NotInLane(lane.lane()));
        let bytes = drive.drive.geometry().capacity_bytes;
        Ok((Some(drive), bytes))
    }

    async fn open(
        &self,
        state: &ShardState<SimWorld>,
        lane: &Lane<SimWorld>,
    ) -> Result<NamedDrive<SimWorld>, ArrayError> {
        let unfit = [
            Fit::NotInLane(lane.lane()),
            Fit::UntilOpenedInLane(lane.lane()),
        ];
        Ok(self.door(state.world(), !unfit.contains(&self.fit)))
    }
}

impl NewDrives<SimWorld> for New {
    type Drive = NewMedia;

    fn drives(&self) -> &[NewMedia] {
        &self.drives
    }

    async fn make(&self) -> Result<(), ArrayError> {
        self.makings.fetch_add(1, Relaxed);
        Ok(())
    }

    async fn unmake(&self) {
        self.makings.fetch_sub(1, Relaxed);
    }
}
