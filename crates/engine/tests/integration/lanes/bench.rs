//! A pool of three lanes over drives that outlive it, worked as the server works it.
//!
//! The server and the simulator open pools by `array::pool::opening`, which is above the engine. The
//! bench has steps of its own: tests here open some lanes only, or in another order, to see what a lane
//! makes of each step. Tests of `array` are of the steps that are taken.

use crate::common::{self, DRIVE_BYTES, PAGE, Shelf, bytes, media, spec, thin};
use base::VolumeOffset;
use engine::label::{Label, Slot};
use engine::lane::{LaneSlot, steps};
use engine::pool::maintenance::Rates;
use engine::pool::maintenance::candidates::Candidate;
use engine::pool::{LabelSummary, PoolError, PoolErrorKind, PoolInfo};
use engine::{Drive, GroupRole, Lane, Level, NamedDrive, PoolSpec, World};
use futures_util::future::join_all;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, Outcome, SimDrive, SimWorld};

pub const LANES: u16 = 3;

/// The drives that the pool is made of, and those that come later.
pub const OLD: [&str; 4] = ["d0", "d1", "d2", "d3"];
pub const NEW: [&str; 4] = ["n0", "n1", "n2", "n3"];

/// The way it was: each lane wiped what it had left.
pub const HASTY: &str = "drives of a group wiped before every lane has left";

/// Zones are emptied so slowly that one is never done.
pub fn slowly() -> Rates {
    Rates {
        rebuild_bytes_per_s: Some(64),
        ..Rates::default()
    }
}

/// All drives there are, in and out of the pool.
pub struct Bench {
    shelf: Shelf,
    new: Vec<(String, Rc<Media>)>,
    /// A drive is another in the first lane than in the others: they do not take it.
    pub has_drive_twice: Cell<bool>,
}

/// An open pool.
pub struct Lanes {
    pub pools: Vec<Lane<SimWorld>>,
}

impl Bench {
    /// A pool of three lanes over `drives` drives, closed; the volume `v` is in `lane`.
    pub fn new(level: Level, drives: usize, lane: u16) -> Bench {
        Self::of(&spec("pool", level), drives, lane)
    }

    /// The same of a pool that is made so.
    pub fn of(spec: &PoolSpec, drives: usize, lane: u16) -> Bench {
        let new = |name: &&str| ((*name).to_owned(), media(name, DRIVE_BYTES));
        let bench = Bench {
            shelf: Shelf::new(drives),
            new: NEW.iter().map(new).collect(),
            has_drive_twice: Cell::default(),
        };
        bench.run(None, async |bench, world| {
            let mut pools = Vec::new();
            for lane in LaneSlot::all(LANES).into_iter().rev() {
                let groups = vec![(spec.level, bench.shelf.drives(world))];
                let (world, spec) = (world.clone(), spec.clone());
                let made = Lane::create_lane(world, lane, spec, groups, Vec::new());
                pools.insert(0, made.await.unwrap());
            }
            let home = &pools[usize::from(lane)];
            let volume = home.create_volume(thin("v", 8 * PAGE as u64)).await;
            let data = common::content(world, 1, 8 * PAGE);
            volume.unwrap().write(VolumeOffset(0), data).await.unwrap();
            Lanes { pools }.close().await;
        });
        bench
    }

    /// Another one that holds the same.
    pub fn copy(&self) -> Bench {
        let copy =
            |(name, media): &(String, Rc<Media>)| (name.clone(), common::copy(media, DRIVE_BYTES));
        let mut shelf = Shelf::new(0);
        shelf.media = self.shelf.media.iter().map(copy).collect();
        Bench {
            shelf,
            new: self.new.iter().map(copy).collect(),
            has_drive_twice: self.has_drive_twice.clone(),
        }
    }

    /// Every drive, labelled or not.
    pub fn all(&self) -> Vec<(String, Rc<Media>)> {
        [self.shelf.media.clone(), self.new.clone()].concat()
    }

    pub fn media(&self, name: &str) -> Rc<Media> {
        let all = self.all();
        Rc::clone(&all.iter().find(|(known, _)| known == name).unwrap().1)
    }

    /// Runs `test` to its end; what it leaves open is as after a crash, but on the drives.
    pub fn run<T>(&self, bug: Option<&str>, test: impl AsyncFnOnce(&Bench, &SimWorld) -> T) -> T {
        self.world(bug, u64::MAX, test).unwrap()
    }

    /// Runs `test` for so many polls, then the power goes. Whether it was cut.
    pub fn run_for(&self, polls: u64, test: impl AsyncFnOnce(&Bench, &SimWorld)) -> bool {
        self.world(None, polls, test).is_none()
    }

    /// How many polls `test` takes.
    pub fn polls_of(&self, test: impl AsyncFnOnce(&Bench, &SimWorld)) -> u64 {
        let test = async |bench: &Bench, world: &SimWorld| {
            test(bench, world).await;
            world.polls()
        };
        self.run(None, test)
    }

    fn world<T>(
        &self,
        bug: Option<&str>,
        polls: u64,
        test: impl AsyncFnOnce(&Bench, &SimWorld) -> T,
    ) -> Option<T> {
        let world = self.shelf.world();
        world.plant(bug);
        let outcome = world.run(polls, test(self, &world));
        let media: Vec<Rc<Media>> = self.all().into_iter().map(|(_, media)| media).collect();
        match outcome {
            Ok(Outcome::Done(value)) => {
                world.power_off();
                Some(value)
            }
            Ok(Outcome::Cut) => {
                world.power_cut(&media);
                None
            }
            Err(deadlock) => panic!("deadlock: {deadlock:?}"),
        }
    }

    pub async fn sleep(&self, world: &SimWorld, seconds: u64) {
        world.sleep(Duration::from_secs(seconds)).await;
    }

    pub fn door(&self, world: &SimWorld, name: &str) -> NamedDrive<SimWorld> {
        NamedDrive {
            name: name.to_owned(),
            drive: SimDrive::adversarial(world, &self.media(name)),
        }
    }

    pub fn doors(&self, world: &SimWorld, names: &[&str]) -> Vec<NamedDrive<SimWorld>> {
        names.iter().map(|name| self.door(world, name)).collect()
    }

    /// The label of the first lane.
    pub async fn label(&self, world: &SimWorld, name: &str) -> Option<LabelSummary> {
        let drive = self.door(world, name).drive;
        Lane::probe(world, &drive).await.unwrap()
    }

    pub async fn has_no_label_at_all(&self, world: &SimWorld, name: &str) -> bool {
        let drive = self.door(world, name).drive;
        for at in (0..drive.geometry().capacity_bytes).step_by(4096) {
            let len = (16 << 10).min(drive.geometry().capacity_bytes - at) as usize;
            let (buf, read) = drive
                .read(base::DriveOffset(at), world.buffers().bytes(len))
                .await;
            read.unwrap();
            if let Slot::Label(label) = Label::decode(buf.bytes().unwrap()) {
                println!("{name}: lane {} at {at}", label.pool.lane);
                return false;
            }
        }
        true
    }

    /// The drives of the pool, as a start finds them: by the labels of the first lane, then
    /// by those of others.
    pub async fn found(&self, world: &SimWorld, by_first_only: bool) -> Vec<(String, Rc<Media>)> {
        let (mut found, mut rest, mut known) = (Vec::new(), Vec::new(), Vec::new());
        for (name, media) in self.all() {
            match self.label(world, &name).await {
                Some(label) => {
                    known.push(label);
                    found.push((name, media));
                }
                None => rest.push((name, media)),
            }
        }
        for (name, media) in rest {
            let drive = self.door(world, &name).drive;
            let label = Lane::probe_beside(world, &drive, &known).await.unwrap();
            if label.is_some() && !by_first_only {
                found.push((name, media));
            }
        }
        found
    }

    pub async fn open(&self, world: &SimWorld) -> Result<Lanes, PoolError> {
        self.open_as(world, LaneSlot::all(LANES)).await
    }

    pub async fn open_as(
        &self,
        world: &SimWorld,
        lanes: Vec<LaneSlot>,
    ) -> Result<Lanes, PoolError> {
        let found = self.found(world, false).await;
        self.open_from(world, lanes, &found).await
    }

    pub async fn open_by_first_lane(&self, world: &SimWorld) -> Result<Lanes, PoolError> {
        let found = self.found(world, true).await;
        self.open_from(world, LaneSlot::all(LANES), &found).await
    }

    async fn open_from(
        &self,
        world: &SimWorld,
        lanes: Vec<LaneSlot>,
        drives: &[(String, Rc<Media>)],
    ) -> Result<Lanes, PoolError> {
        let names: Vec<&str> = drives.iter().map(|(name, _)| name.as_str()).collect();
        let opening = lanes.into_iter().map(|lane| {
            let doors = self.doors(world, &names);
            Lane::open_lane(world.clone(), lane, doors)
        });
        let (mut pools, mut failure) = (Vec::new(), None);
        for outcome in join_all(opening).await {
            match outcome {
                Ok(pool) => pools.push(pool),
                Err(error) if error.kind == PoolErrorKind::Failed => {
                    failure = failure.or(Some(error));
                }
                Err(error) => failure = Some(error),
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let lanes = Lanes { pools };
        self.complete(world, &lanes, &names).await;
        Ok(lanes)
    }

    /// Gives the other lanes what only the first one has.
    async fn complete(&self, world: &SimWorld, lanes: &Lanes, names: &[&str]) {
        let first = lanes.pools[0].info();
        for pool in &lanes.pools[1..] {
            while pool.groups_missing() > 0 {
                let index = pool.groups_ever();
                let mut groups = first.groups.iter();
                let group = groups.find(|group| usize::from(group.index) == index);
                let group = group.unwrap();
                let of_group: Vec<&str> = group.members.iter().map(|m| m.name.as_str()).collect();
                assert!(of_group.iter().all(|name| names.contains(name)));
                let doors = self.doors(world, &of_group);
                pool.add_group((group.level, group.role), doors)
                    .await
                    .unwrap();
            }
            for missing in pool.drives_missing(&first) {
                let door = self.door(world, &missing);
                let added = pool.add_spare(door).await;
                let is_refused = |error: &PoolError| error.kind == PoolErrorKind::Exists;
                match self.has_drive_twice.get() {
                    true => assert!(added.is_err_and(|error| is_refused(&error))),
                    false => added.unwrap(),
                }
            }
        }
        lanes.pools.iter().for_each(Lane::say_completed);
    }

    /// Adds the new drives as a group.
    pub async fn grow(
        &self,
        world: &SimWorld,
        lanes: &Lanes,
        level: Level,
    ) -> Result<(), PoolError> {
        let names: Vec<String> = NEW.iter().map(|name| (*name).to_owned()).collect();
        let ask = async |lane: u16| {
            let doors = self.doors(world, &NEW);
            let candidates: Vec<_> = doors.iter().map(Candidate::from).collect();
            let pool = &lanes.pools[usize::from(lane)];
            pool.check_add_group((level, GroupRole::Data), &candidates)
                .await
        };
        let change = async |lane: u16| {
            let doors = self.doors(world, &NEW);
            let pool = &lanes.pools[usize::from(lane)];
            pool.add_group((level, GroupRole::Data), doors)
                .await
                .map(drop)
        };
        let take_back = async |lane: u16, others_have| {
            let pool = &lanes.pools[usize::from(lane)];
            pool.take_back(&names, others_have).await
        };
        let (ask, change, take_back) = (&ask, &change, &take_back);
        steps::ask_all(LANES, ask).await?;
        let changed = steps::change_all(LANES, change, take_back).await;
        changed.map_err(|halted| halted.error)
    }
}

impl Lanes {
    pub fn info(&self) -> PoolInfo {
        PoolInfo::of_lanes(self.pools.iter().map(Lane::info)).unwrap()
    }

    pub fn set_rates(&self, rates: Rates) {
        self.pools.iter().for_each(|pool| pool.set_rates(rates));
    }

    pub async fn close(&self) {
        for pool in &self.pools {
            pool.close().await.unwrap();
        }
    }

    /// All lanes are asked, and then told.
    pub async fn shrink(&self, group: u16) -> Result<(), PoolError> {
        for pool in &self.pools {
            pool.check_remove_group(group).await?;
        }
        for pool in &self.pools {
            pool.remove_group(group).await?;
        }
        Ok(())
    }

    pub async fn delete(&self, name: &str) {
        for pool in self.pools.iter().filter(|pool| pool.volume(name).is_some()) {
            pool.delete_volume(name).await.unwrap();
        }
    }

    pub fn zones_in_use(&self, group: u16) -> u32 {
        let info = self.info();
        let mut groups = info.groups.iter();
        let group = groups.find(|other| other.index == group);
        group.map_or(0, |group| group.zones_in_use)
    }

    pub fn events(&self) -> Vec<String> {
        let all = self.pools.iter().flat_map(|pool| pool.events(0));
        all.map(|event| event.text).collect()
    }

    /// How often that was said.
    pub fn told(&self, what: &str) -> usize {
        let events = self.events();
        events.iter().filter(|text| text.contains(what)).count()
    }

    /// The volume is as it was written.
    pub async fn holds(&self) {
        let volume = self.pools.iter().find_map(|pool| pool.volume("v")).unwrap();
        let whole = volume.read(VolumeOffset(0), 8 * PAGE).await.unwrap();
        assert!(whole.to_vec() == bytes(1, 8 * PAGE));
    }

    /// Waits until no group leaves, none has zones of another level, and no drive waits to
    /// be wiped or rebuilt.
    pub async fn settled(&self) {
        let is_settled = || {
            let info = self.info();
            let mut groups = info.groups.iter();
            let still = groups.all(|group| !group.leaving && group.zones_to_empty == 0);
            still && info.departed.is_empty() && info.tasks.is_empty()
        };
        let world = self.pools[0].world().clone();
        let mut quiet = 0;
        for _ in 0..3000 {
            world.sleep(Duration::from_millis(100)).await;
            quiet = if is_settled() { quiet + 1 } else { 0 };
            if quiet == 30 {
                return;
            }
        }
        panic!("{:?}\n{:#?}", self.events(), self.info().groups);
    }

    /// What each lane says of its groups and drives, but for what may differ.
    pub fn pictures(&self) -> Vec<String> {
        let picture = |pool: &Lane<SimWorld>| {
            let info = pool.info();
            let group = |group: &engine::GroupInfo| {
                let names = group.members.iter();
                let names = names.map(|m| format!("{} {:?}", m.name, m.state));
                let names: Vec<String> = names.collect();
                format!(
                    "{} {} {names:?} {}",
                    group.index, group.level, group.leaving
                )
            };
            let groups: Vec<String> = info.groups.iter().map(group).collect();
            let spares: Vec<&str> = info.spares.iter().map(|m| m.name.as_str()).collect();
            format!("{groups:?} {spares:?} {}", pool.groups_ever())
        };
        self.pools.iter().map(picture).collect()
    }
}
