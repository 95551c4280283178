//! Runs in which administrators have the control plane change the array, several at a time, while
//! schedules run, the trash is emptied, its record can't be written, and the power goes.
//!
//! - `request` and `draw`: what they ask for; `perform`: of the control plane ([`crate::control`]).
//! - `model`: what the array is to be; `observe`: what it says that it is; `explain`: which orders of
//!   changes lead from one to the other.
//! - `jobs`: what jobs do while nobody asks. `late`: a pool that opens late.
//! - `checks`: what holds whenever nothing is under way.
//!
//! What is checked: after each round, and after each start, some order of the changes explains what
//! every administrator was told, and what the array says. A request that nothing speaks against is
//! not refused.

mod checks;
mod draw;
mod explain;
mod jobs;
mod late;
mod model;
mod observe;
mod perform;
mod request;

use crate::config::{Theme, themes};
use crate::control::{PORTAL, Records, Start, TRASH_S, settings};
use crate::scenario::{Listener, Verdict};
use crate::seed::Seed;
use crate::shards::Shards;
use crate::small_pool::{self, Life};
use array::control::{ArrayError, ArrayErrorKind, Basis, ControlPlane};
use array::directory::Directory;
use array::offload::Offload;
use array::pool::Paces;
use base::Prng;
use draw::Drawing;
use engine::{PoolSpec, World};
use explain::{Excuses, Outcome, UnderWay, explain_boots};
use model::Model;
use observe::observe;
use site::Site;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::{Media, SimWorld};

/// Of a drive.
const DRIVE_BYTES: u64 = 16 << 20;

/// Volumes and snapshots in a pool.
const VOLUMES_MAX: u32 = 200;

/// Among so many seeds one has such a run.
const ONE_OF: u64 = 4;

/// In a round so many administrators ask for something of jobs as well.
const JOBS_MAX: u64 = 2;

/// Requests of a round. All their orders are looked at.
const REQUESTS_MAX: u64 = 5;

/// What is in the trash is gone so long after its time, and where shards stall.
const LATE_S: u64 = 60;
const STALLED_S: u64 = 3_600;

/// Whatever is due has begun after such a rest.
const LOOKED: Duration = Duration::from_secs(5);

/// So long after a write of the record failed, all schedules have had another run.
const FAILED_S: u64 = 120;

/// When a boot looks at what it finds.
const START: &str = "start";

/// A round has ended by then, whatever is slow.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// What outlives boots.
struct Books {
    specs: Vec<PoolSpec>,
    media: Vec<Vec<Rc<Media>>>,
    lanes: u16,
    shards: usize,
    failure: RefCell<Option<String>>,
    /// What the array was when nothing was under way last.
    model: RefCell<Model>,
    under_way: RefCell<Vec<UnderWay>>,
    records: Records,
    /// At one message in so many a shard stalls.
    stalls_one_of: Option<u64>,
    /// Administrators change settings, too.
    changes_settings: bool,
    /// They ask for the rest as well ([`RequestKind::TheRest`]).
    asks_the_rest: bool,
    pools_come_late: bool,
    rounds_left: Cell<u64>,
    /// Number of the boot.
    boot: Cell<u64>,
    /// Number of the next request.
    next: Cell<u64>,
    operations: Cell<u64>,
    jobs: jobs::Seen,
}

/// Whether a seed has such a run beside its other one.
pub fn is_drawn(seed: &Prng) -> bool {
    seed.stream("operations").chance(1, ONE_OF)
}

/// Runs it to the end, or to the first thing that is wrong.
pub fn run(
    seed: &Seed,
    operations: Option<u64>,
    listener: Option<Listener>,
    bug: Option<&str>,
) -> Verdict {
    let prng = &mut seed.stream("operations config");
    let is_wished = themes(seed).contains(&Theme::Operations);
    let books = Rc::new(Books::draw(prng, operations, is_wished));
    let life = Life {
        name: "operations",
        media: books.media.concat(),
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
        let pools = prng.between(1, 2) as usize;
        let names = ["a", "b"].into_iter().take(pools);
        let drawn = names.map(|name| {
            let (spec, media) = small_pool::draw(prng, name, DRIVE_BYTES);
            let volumes_max = VOLUMES_MAX;
            (
                PoolSpec {
                    volumes_max,
                    ..spec
                },
                media,
            )
        });
        let (specs, media): (Vec<PoolSpec>, Vec<Vec<Rc<Media>>>) = drawn.unzip();
        let model = settings(&specs, &media, &[PORTAL.into()]).map(|settings| Model::of(&settings));
        let rounds = prng.between(4, if is_wished { 60 } else { 30 });
        Books {
            specs,
            media,
            lanes: prng.between(1, 2) as u16,
            shards: prng.between(1, 3) as usize,
            failure: RefCell::default(),
            // A start says what is wrong with the settings.
            model: RefCell::new(model.unwrap_or_default()),
            under_way: RefCell::default(),
            records: Records {
                fail_one_of: *prng.pick(&[0, 0, 4, 16]),
                ..Records::default()
            },
            stalls_one_of: prng.chance(1, 4).then(|| prng.between(20, 200)),
            changes_settings: prng.stream("settings").chance(1, 2),
            asks_the_rest: prng.stream("the rest").chance(1, 2),
            pools_come_late: late::are_drawn(prng),
            rounds_left: Cell::new(operations.map_or(rounds, |most| most.min(rounds))),
            boot: Cell::new(0),
            next: Cell::new(1),
            operations: Cell::new(0),
            jobs: jobs::Seen::default(),
        }
    }

    /// Opens the pools but one that is `late`. They go by what the settings say. Gives the shards of
    /// their lanes.
    async fn open_pools(
        &self,
        shards: &Shards,
        settings: &Site,
        (first, late): (bool, Option<usize>),
    ) -> Result<BTreeMap<String, Vec<usize>>, String> {
        let mut homes = BTreeMap::new();
        for (pool, spec) in self.specs.iter().enumerate() {
            if Some(pool) != late {
                let at = self.open_pool(shards, settings, pool, first).await?;
                homes.insert(spec.name.clone(), at);
            }
        }
        Ok(homes)
    }

    /// The same of one of them.
    async fn open_pool(
        &self,
        shards: &Shards,
        settings: &Site,
        pool: usize,
        first: bool,
    ) -> Result<Vec<usize>, String> {
        let (spec, media) = (&self.specs[pool], &self.media[pool]);
        let home = |lane| (pool + usize::from(lane)) % self.shards;
        let at: Vec<usize> = (0..self.lanes).map(home).collect();
        let paces = settings.pool(&spec.name).map(Paces::of);
        let paces = paces.ok_or_else(|| format!("the settings have no pool {}", spec.name))?;
        let of_pool = (spec, &media[..], paces);
        let opened = small_pool::open_lanes(&shards.states, (&at, first), of_pool).await;
        opened.map_err(|error| format!("opening a pool: {error}"))?;
        Ok(at)
    }

    /// Notes what somebody asks for, and gives its number.
    fn ask(&self, request: &request::Request) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.operations.set(self.operations.get() + 1);
        self.under_way.borrow_mut().push(UnderWay {
            number,
            boot: self.boot.get(),
            request: request.clone(),
            outcome: Outcome::Open,
        });
        number
    }

    fn excuses(&self, now_unix_s: u64) -> Excuses {
        Excuses {
            shards_stall: self.stalls_one_of.is_some(),
            record_fails: self.records.fail_one_of > 0,
            expired_unix_s: now_unix_s.saturating_sub(TRASH_S),
        }
    }

    /// How the array differs from all that it may be; `None` when it is one of them.
    fn difference(&self, possible: &[Model], said: &Model, now_unix_s: u64) -> Option<String> {
        let late_s = match self.stalls_one_of {
            Some(_) => STALLED_S,
            None => LATE_S,
        };
        let now = (now_unix_s, TRASH_S, late_s);
        let mut differences = possible.iter().map(|one| one.differs(said, now));
        if differences.clone().any(|difference| difference.is_none()) {
            return None;
        }
        let first = differences.next().flatten();
        Some(first.unwrap_or_else(|| "no order explains the answers".to_owned()))
    }

    fn fail(&self, world: &SimWorld, what: impl Into<String>) {
        let what = what.into();
        world.note(|| format!("WRONG: {what}"));
        self.failure.borrow_mut().get_or_insert(what);
    }
}

/// What a request is about.
#[derive(Clone, Copy)]
enum RequestKind {
    Jobs,
    Settings,
    Others,
    /// What has a share of its own: how volumes take space, all of the trash, and the like.
    TheRest,
    /// What needs no open pool.
    NoPool,
}

/// One boot.
struct Boot {
    world: SimWorld,
    books: Rc<Books>,
    shards: Shards,
    directory: Arc<Directory>,
    array: Arc<ControlPlane<SimWorld>>,
    /// All pools are open since.
    began_unix_s: Cell<u64>,
}

/// What runs inside one boot.
async fn boot(world: SimWorld, books: Rc<Books>, (first, last): (bool, bool)) {
    let streams = [
        "rounds",
        "jobs of rounds",
        "settings of rounds",
        "the rest of rounds",
    ];
    let mut prngs = streams.map(|name| world.prng(name));
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
    /// Opens the pools and has the array be what its record says, as a server's start does.
    async fn start(world: &SimWorld, books: &Rc<Books>, first: bool) -> Result<Boot, String> {
        books.boot.set(books.boot.get() + 1);
        let shards = Shards::that_stall(world, books.shards, books.stalls_one_of);
        let start = Start::new(world, &books.records, first);
        let began_unix_s = Cell::new(start.runtime().unix_s());
        let site = start.settings((&books.specs, &books.media), &[PORTAL.into()])?;
        let late = books.late_pool(world, first);
        let homes = books.open_pools(&shards, &site, (first, late)).await?;
        let offload = Arc::new(Offload::new(None, Default::default()));
        let array = start.control_plane((&shards, homes), offload, &site);
        if let Some(pool) = late {
            array.pool_is_closed(&books.specs[pool].name, vec!["it is late".to_owned()], None);
        }
        let started = begin(&array, &start, first).await;
        started.map_err(|error| format!("the start: {error}"))?;
        let boot = Boot {
            world: world.clone(),
            books: Rc::clone(books),
            shards,
            directory: Arc::clone(array.directory()),
            array,
            began_unix_s,
        };
        if let Some(pool) = late {
            boot.open_late(pool).await?;
        }
        Ok(boot)
    }

    /// Several administrators ask for something each.
    async fn round(&self, [prng, jobs, settings, rest]: &mut [Prng; 4]) {
        let books = &self.books;
        let model = books.model.borrow().clone();
        let pools: Vec<String> = books.specs.iter().map(|spec| spec.name.clone()).collect();
        let mut ends = Vec::new();
        let mut ask = |drawing: &mut Drawing<'_>, kind: RequestKind| {
            let request = drawing.of(kind, &books.jobs.ended());
            let pause = Duration::from_nanos(drawing.prng.below(2_000_000));
            let number = books.ask(&request);
            ends.push(self.begin(number, request, pause));
        };
        let (requests, of_jobs) = (prng.between(1, 3), jobs.between(0, JOBS_MAX));
        let left = REQUESTS_MAX - requests - of_jobs;
        let of_settings = match books.changes_settings {
            true => settings.below(1 + left),
            false => 0,
        };
        let of_the_rest = match books.asks_the_rest {
            true => rest.below(1 + left - of_settings),
            false => 0,
        };
        let mut drawing = Drawing::new(prng, &model, &pools);
        (0..requests).for_each(|_| ask(&mut drawing, RequestKind::Others));
        let mut drawing = Drawing::new(jobs, &model, &pools);
        (0..of_jobs).for_each(|_| ask(&mut drawing, RequestKind::Jobs));
        let mut drawing = Drawing::new(settings, &model, &pools);
        (0..of_settings).for_each(|_| ask(&mut drawing, RequestKind::Settings));
        let mut drawing = Drawing::new(rest, &model, &pools);
        (0..of_the_rest).for_each(|_| ask(&mut drawing, RequestKind::TheRest));
        for end in ends {
            if end.await.is_err() {
                books.fail(&self.world, "a request was dropped before its end");
            }
        }
        self.repair_record().await;
        self.settle("round").await;
        self.check_record();
        if prng.chance(1, 4) {
            self.rest(Duration::from_millis(prng.below(40_000))).await;
        }
    }

    /// Nobody asks for anything.
    async fn rest(&self, rest: Duration) {
        self.world.sleep(rest).await;
        self.settle("rest").await;
        let books = &self.books;
        let now = self.array.runtime().unix_s();
        let is_as_usual = books.stalls_one_of.is_none()
            && books.records.configuration.failed_unix_s() + FAILED_S <= now;
        // What came out of the trash just now has had its runs by then.
        if is_as_usual && rest >= LOOKED {
            self.check_schedules().await;
        }
    }

    /// Begins a request; its outcome is noted when it has one.
    fn begin(
        &self,
        number: u64,
        request: request::Request,
        pause: Duration,
    ) -> futures_channel::oneshot::Receiver<()> {
        let (world, books, array) = (
            self.world.clone(),
            Rc::clone(&self.books),
            Arc::clone(&self.array),
        );
        small_pool::begin(&self.world, async move {
            world.sleep(pause).await;
            world.note(|| format!("request {number}: {request:?}"));
            let made = request.job_of().cloned();
            let performed = array
                .runtime()
                .in_time(PATIENCE, perform::perform(&array, request));
            let Some(done) = performed.await else {
                return books.fail(&world, format!("request {number} is not answered"));
            };
            world.note(|| format!("request {number} ends: {done:?}"));
            let on_record = |volume: &String| {
                let kept = books.records.jobs.kept();
                kept.jobs.iter().any(|job| job.order.volume == *volume)
            };
            if let Some(volume) = made.filter(|volume| done.is_ok() && !on_record(volume)) {
                books.fail(&world, format!("the job of {volume} is not on record"));
            }
            let mut under_way = books.under_way.borrow_mut();
            let own = under_way.iter_mut().filter(|one| one.number == number);
            own.for_each(|one| {
                one.outcome = match &done {
                    Ok(()) => Outcome::Done,
                    Err(error) => Outcome::Refused(error.clone()),
                }
            });
        })
    }

    /// Nothing is under way: some order of what was explains what the array is.
    async fn settle(&self, when: &str) {
        let books = &self.books;
        if books.failure.borrow().is_some() {
            return;
        }
        let said = match observe(&self.array).await {
            Ok(said) => said,
            Err(error) => return books.fail(&self.world, format!("looking at it: {error}")),
        };
        let now_unix_s = self.array.runtime().unix_s();
        let mut before = books.model.borrow().clone();
        let mut under_way = books.under_way.take();
        let excuses = books.excuses(now_unix_s);
        if when == START {
            let left = under_way
                .iter_mut()
                .filter(|one| one.boot < books.boot.get());
            left.for_each(UnderWay::forget_failure);
            before.jobs.extend(books.jobs.come_back(&self.array));
        }
        let boot = under_way.first().map_or(books.boot.get(), |one| one.boot);
        let events = books.jobs.events(&self.array, &said, excuses);
        under_way.splice(..0, events.map(|request| UnderWay::happened(request, boot)));
        let possible = explain_boots(before, &under_way, excuses);
        if let Some(difference) = books.difference(&possible, &said, now_unix_s) {
            let asked = under_way.iter();
            let asked: Vec<String> = asked
                .map(|one| format!("{:?} -> {:?}", one.request, one.outcome))
                .collect();
            let what = format!("{when}: {difference}; after {}", asked.join("; "));
            return books.fail(&self.world, what);
        }
        if let Err(what) = books.jobs.note(&self.array) {
            return books.fail(&self.world, what);
        }
        *books.model.borrow_mut() = said;
        self.check_access();
        self.check_luns();
        self.check_copies();
        self.check_settings();
    }

    /// A record that could not be written may be what a start finds all the same: it is written
    /// again, so that there is one truth.
    async fn repair_record(&self) {
        while self.books.records.configuration.take_failures() > 0
            && self.books.failure.borrow().is_none()
        {
            // However that ends, the next look says.
            let _ = self.array.settle_configuration(true).await;
        }
        while self.books.records.jobs.take_failures() > 0 {
            let _ = self.array.jobs().save().await;
        }
    }
}

/// What a server's start does once pools are open. It takes no events on record: nothing here looks
/// for them.
async fn begin(
    array: &Arc<ControlPlane<SimWorld>>,
    start: &Start<'_>,
    first: bool,
) -> Result<(), ArrayError> {
    let settled = loop {
        match array.settle().await {
            // A start that can't write the record of jobs ends; the next one tries again.
            Err(error) if error.kind == ArrayErrorKind::Internal => {}
            settled => break settled?,
        }
    };
    let found = start.found.clone();
    settled.take_over(found, Basis::of(first)).await?;
    array.keep_by_itself(start.scrubs()).await?;
    array.resume_jobs();
    Ok(())
}
