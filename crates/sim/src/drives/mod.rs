//! Runs in which drives fail by themselves and by command, spares take their places, drives are
//! replaced and forgotten, the record of them can't be written, and the power goes.
//!
//! - `shelf`: the drives there are, and where. `request`: what administrators and faults do.
//! - `oracle`: which drives are to be told of as failed. `groups`: which groups there are to be.
//!
//! Whenever nothing is under way, the run checks which failed drives the array tells of:
//!
//! - It tells of each failed drive that has no place any more, with the reason that it gave before.
//! - It does so until somebody replaces or removes the drive, or another drive takes its name.
//! - It tells of no other drive, and the record says the same.
//!
//! In half of the runs groups come, get other levels and leave as well. Each drive of the pool is on
//! record.

mod groups;
mod oracle;
mod request;
mod shelf;

use crate::config::{Theme, themes};
use crate::control::{PORTAL, Records, Start};
use crate::lanes::labelled;
use crate::pool_changes::Door;
use crate::scenario::{Listener, Verdict};
use crate::seed::Seed;
use crate::shards::Shards;
use crate::small_pool::{self, Life};
use array::control::{ArrayError, Basis, Configuration, ControlPlane, KnownDrive};
use array::offload::Offload;
use array::pool::opening::Opening;
use base::Prng;
use engine::pool::{MemberInfo, PoolInfo};
use engine::{Level, MemberState, PoolSpec, World};
use oracle::Oracle;
use request::{Outcome, Request};
use shelf::Shelf;
use site::Site;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::{Media, SimWorld};

/// Of a drive.
const DRIVE_BYTES: u64 = 16 << 20;

/// Among so many seeds one has such a run.
const ONE_OF: u64 = 8;

/// Requests of a round.
const REQUESTS_MAX: u64 = 2;

/// What the array tells is on record after so many looks, so far apart.
const LOOKS: u32 = 200;
const LOOK_PAUSE: Duration = Duration::from_millis(150);

/// When a boot looks at what it finds.
const START: &str = "start";

/// A request has ended by then.
const PATIENCE: Duration = Duration::from_secs(600);

/// What outlives boots.
struct Books {
    spec: PoolSpec,
    /// The drives that the pool is made of.
    first: Vec<Rc<Media>>,
    shelf: Rc<Shelf>,
    lanes: u16,
    shards: usize,
    records: Records,
    /// Groups come and leave, too.
    changes_groups: bool,
    oracle: RefCell<Oracle>,
    under_way: RefCell<Vec<(Request, Outcome)>>,
    /// A write of the roster has failed since the array was looked at last.
    some_unwritten: Cell<bool>,
    failure: RefCell<Option<String>>,
    rounds_left: Cell<u64>,
    operations: Cell<u64>,
}

/// Whether a seed has such a run beside its other one.
pub fn is_drawn(seed: &Prng) -> bool {
    seed.stream("drives come and go").chance(1, ONE_OF)
}

/// Runs it to the end, or to the first thing that is wrong.
pub fn run(
    seed: &Seed,
    operations: Option<u64>,
    listener: Option<Listener>,
    bug: Option<&str>,
) -> Verdict {
    let prng = &mut seed.stream("drives come and go, config");
    let is_wished = themes(seed).contains(&Theme::Drives);
    let books = Rc::new(Books::draw(prng, operations, is_wished));
    let life = Life {
        name: "drives",
        media: books.shelf.all(),
        failure: &books.failure,
    };
    let mut verdict = life.live(
        (seed, prng),
        (listener, bug),
        || books.rounds_left.get() == 0,
        |world, plan| boot(world, Rc::clone(&books), plan),
        || {},
    );
    verdict.operations = books.operations.get();
    verdict
}

impl Books {
    fn draw(prng: &mut Prng, operations: Option<u64>, is_wished: bool) -> Books {
        let (mut spec, mut media) = small_pool::draw(prng, "a", DRIVE_BYTES);
        // A pool that can lose no drive has nothing to tell.
        while spec.level == Level::Simple {
            (spec, media) = small_pool::draw(prng, "a", DRIVE_BYTES);
        }
        let rounds = prng.between(4, if is_wished { 40 } else { 20 });
        Books {
            spec,
            shelf: Rc::new(Shelf::new(prng, &media)),
            first: media,
            lanes: prng.between(1, 2) as u16,
            shards: prng.between(1, 2) as usize,
            records: Records {
                fail_one_of: *prng.pick(&[0, 0, 3, 10]),
                ..Records::default()
            },
            changes_groups: prng.stream("groups").chance(1, 2),
            oracle: RefCell::default(),
            under_way: RefCell::default(),
            some_unwritten: Cell::new(false),
            failure: RefCell::default(),
            rounds_left: Cell::new(operations.map_or(rounds, |most| most.min(rounds))),
            operations: Cell::new(0),
        }
    }

    /// Makes the pool, or opens it from the drives that records name and that have its labels. Gives
    /// the shards of its lanes.
    async fn open_pool(
        &self,
        (world, shards): (&SimWorld, &Shards),
        site: &Site,
        first: bool,
    ) -> Result<BTreeMap<String, Vec<usize>>, String> {
        let name = self.spec.name.clone();
        let home = |lane| usize::from(lane) % self.shards;
        let homes: Vec<usize> = (0..self.lanes).map(home).collect();
        let handles = homes.iter().map(|home| shards.handles[*home].clone());
        let opening = Opening::new(name.clone(), handles.collect());
        let opened = match first {
            true => {
                let group = (self.spec.level, self.shelf.doors(&self.first));
                opening.create(&self.spec, &[group], &[]).await
            }
            false => opening.open(&self.recorded(world, site).await).await,
        };
        opened.map_err(|error| format!("opening the pool: {error}"))?;
        Ok(BTreeMap::from([(name, homes)]))
    }

    /// The drives that records name and that have labels of the pool.
    async fn recorded(&self, world: &SimWorld, site: &Site) -> Vec<Door> {
        let added = &mut world.prng("added drives");
        let mut places = self.records.drives.read(added);
        let named = |drive: &site::Drive| (drive.name.clone(), drive.source.path().to_owned());
        let named: Vec<_> = site.drives.iter().map(named).collect();
        places.retain(|drive| named.iter().all(|(_, path)| *path != drive.path));
        let places = places.into_iter().map(|drive| (drive.name, drive.path));
        let there = labelled(world, &self.shelf.at(places.chain(named))).await;
        let names: Vec<&String> = there.iter().map(|(name, _)| name).collect();
        world.note(|| format!("opened from {names:?}"));
        there.iter().map(Door::from).collect()
    }

    fn note_unwritten(&self) {
        let failed = self.records.roster.take_failures() > 0;
        self.some_unwritten.set(self.some_unwritten.get() || failed);
    }

    fn fail(&self, world: &SimWorld, what: impl Into<String>) {
        let what = what.into();
        world.note(|| format!("WRONG: {what}"));
        self.failure.borrow_mut().get_or_insert(what);
    }
}

/// One boot.
struct Boot {
    world: SimWorld,
    books: Rc<Books>,
    array: Arc<ControlPlane<SimWorld>>,
}

/// What runs inside one boot.
async fn boot(world: SimWorld, books: Rc<Books>, (first, last): (bool, bool)) {
    let mut prngs = ["rounds", "groups of rounds"].map(|name| world.prng(name));
    let boot = match Boot::start(&world, &books, first).await {
        Ok(boot) => boot,
        Err(what) => return books.fail(&world, what),
    };
    boot.settle(START).await;
    while books.failure.borrow().is_none() && books.rounds_left.get() > 0 && !first && !last {
        boot.round(&mut prngs).await;
        books.rounds_left.set(books.rounds_left.get() - 1);
    }
}

impl Boot {
    /// Opens the pool and has the array know what its records say, as a server's start does.
    async fn start(world: &SimWorld, books: &Rc<Books>, first: bool) -> Result<Boot, String> {
        let shards = Shards::new(world, books.shards);
        // To read the record is to forget them.
        books.note_unwritten();
        let start = Start::new(world, &books.records, first);
        let found = start.found.clone();
        let (specs, media) = ([books.spec.clone()], [books.first.clone()]);
        let site = start.settings((&specs, &media), &[PORTAL.into()])?;
        let homes = books.open_pool((world, &shards), &site, first).await?;
        let offload = Arc::new(Offload::new(None, Default::default()));
        let array = start.control_plane((&shards, homes), offload, &site);
        let started = begin(&array, found, first).await;
        started.map_err(|error| format!("the start: {error}"))?;
        Ok(Boot {
            world: world.clone(),
            books: Rc::clone(books),
            array,
        })
    }

    /// Drives fail, and administrators do something about it.
    async fn round(&self, [prng, groups]: &mut [Prng; 2]) {
        let books = &self.books;
        let requests = prng.between(1, REQUESTS_MAX);
        let mut ends = Vec::new();
        for _ in 0..requests {
            let drawn = request::draw(prng, &books.oracle.borrow(), &books.shelf);
            if let Some(request) = drawn.filter(|drawn| self.is_free(drawn)) {
                ends.push(self.begin(request, Duration::from_micros(prng.below(5_000))));
            }
        }
        if books.changes_groups && groups.chance(1, 2) {
            let drawn = books.oracle.borrow().groups().draw(groups, &books.shelf);
            if let Some(request) = drawn.filter(|drawn| self.is_free(drawn)) {
                ends.push(self.begin(request, Duration::from_micros(groups.below(5_000))));
            }
        }
        for end in ends {
            if end.await.is_err() {
                self.books
                    .fail(&self.world, "a request was dropped before its end");
            }
        }
        let rest = *prng.pick(&[0, 10, 400, 3_000]);
        self.world
            .sleep(Duration::from_millis(prng.below(rest + 1)))
            .await;
        if prng.chance(3, 4) {
            self.settle("round").await;
        }
    }

    /// Whether nothing under way has to do with its drives: what two do to one drive at a time may
    /// come in any order.
    fn is_free(&self, request: &Request) -> bool {
        let names = request.names();
        let under_way = self.books.under_way.borrow();
        let mut taken = under_way.iter().flat_map(|(other, _)| other.names());
        !taken.any(|name| names.contains(&name))
    }

    /// Begins a request; its outcome is noted when it has one.
    fn begin(&self, request: Request, pause: Duration) -> futures_channel::oneshot::Receiver<()> {
        let (world, books, array) = (
            self.world.clone(),
            Rc::clone(&self.books),
            Arc::clone(&self.array),
        );
        books.operations.set(books.operations.get() + 1);
        let at = {
            let mut under_way = books.under_way.borrow_mut();
            under_way.push((request.clone(), Outcome::Open));
            under_way.len() - 1
        };
        small_pool::begin(&self.world, async move {
            world.sleep(pause).await;
            world.note(|| format!("{request:?}"));
            let placing = books.shelf.placing();
            let asked = request::perform(&array, &books.spec.name, request.clone(), placing);
            let Some(done) = array.runtime().in_time(PATIENCE, asked).await else {
                return books.fail(&world, format!("{request:?} is not answered"));
            };
            world.note(|| format!("{request:?} ends: {done:?}"));
            books.under_way.borrow_mut()[at].1 = Outcome::of(done);
        })
    }

    /// Nothing is under way: the array tells of the drives that it should, and so does its record.
    async fn settle(&self, when: &str) {
        let books = &self.books;
        for _ in 0..LOOKS {
            if books.failure.borrow().is_some() {
                return;
            }
            let (info, told) = match self.look().await {
                Ok(said) => said,
                Err(error) => return books.fail(&self.world, format!("looking at it: {error}")),
            };
            let known = self.array.known_drives();
            if known == books.records.roster.kept() && is_noted(&known, &info, &told) {
                let mut under_way = books.under_way.take();
                if when == START {
                    under_way
                        .iter_mut()
                        .for_each(|(_, outcome)| outcome.forget_failure());
                }
                books.note_unwritten();
                let some_unwritten = books.some_unwritten.take();
                let found =
                    books
                        .oracle
                        .borrow_mut()
                        .observe(&info, &told, (&under_way, some_unwritten));
                if let Err(what) = found {
                    let what = format!("{when}: {what}; after {under_way:?}");
                    books.fail(&self.world, what);
                }
                return self.check_places(when, &info).await;
            }
            self.world.sleep(LOOK_PAUSE).await;
        }
        books.fail(
            &self.world,
            format!("{when}: the record does not say what the array says"),
        );
    }

    /// Each drive of the pool is on record. Notes those that stay there after their group has left.
    async fn check_places(&self, when: &str, info: &PoolInfo) {
        let (books, places) = (&self.books, self.array.places());
        let is_on_record = |name: &String| places.find_of(&books.spec.name, name).is_some();
        let mut members = info.members.iter().chain(&info.spares);
        if let Some(member) = members.find(|member| !is_on_record(&member.name)) {
            let what = format!("{when}: {} is on no record", member.name);
            return books.fail(&self.world, what);
        }
        // Who can't write the record leaves that to the next start.
        if books.records.fail_one_of > 0 {
            return;
        }
        let left = books.oracle.borrow().groups().left().clone();
        let mut stay = Vec::new();
        for _ in 0..LOOKS {
            let info = match self.look().await {
                Ok((info, _)) => info,
                Err(error) => return books.fail(&self.world, format!("looking at it: {error}")),
            };
            // One that is not wiped is not free.
            let is_wiped = |name: &&String| array::control::names(&info).all(|one| one != *name);
            let named = left.iter().filter(|name| is_on_record(name));
            stay = named.filter(is_wiped).cloned().collect();
            if stay.is_empty() {
                return;
            }
            self.world.sleep(LOOK_PAUSE).await;
        }
        // No failure before the array is mended: seed 30322 shows that they may stay there.
        let what = format!("{when}: {stay:?} have left with their groups, and are on record");
        self.world.note(|| what);
    }

    /// The pool, and the failed drives that have no place in it any more.
    async fn look(&self) -> Result<(PoolInfo, Vec<KnownDrive>), ArrayError> {
        let (_, info) = self.array.pool(&self.books.spec.name).await?;
        let told = self.array.departed_failures(&info);
        Ok((info, told))
    }
}

/// Whether the roster has all drives of a pool, and those that are told of, and no others.
fn is_noted(known: &[KnownDrive], info: &PoolInfo, told: &[KnownDrive]) -> bool {
    let members: Vec<&MemberInfo> = info.members.iter().chain(&info.spares).collect();
    let is_known = |member: &&MemberInfo| {
        let uuid = member.uuid.to_string();
        let is_out = member.state == MemberState::Failed;
        let mut known = known.iter();
        known.any(|drive| {
            drive.uuid == uuid && drive.group == member.group && drive.failure.is_some() == is_out
        })
    };
    let are_told = told.iter().all(|drive| known.contains(drive));
    are_told && members.iter().all(is_known) && known.len() == members.len() + told.len()
}

/// What a server's start does once pools are open.
async fn begin(
    array: &Arc<ControlPlane<SimWorld>>,
    found: Configuration,
    first: bool,
) -> Result<(), ArrayError> {
    let settled = array.settle().await?;
    array.keep_events();
    array.note_drives_and_warn().await;
    settled.take_over(found, Basis::of(first)).await
}
