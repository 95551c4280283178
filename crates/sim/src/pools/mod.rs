//! Runs in which pools are made of drives and files, destroyed, opened late, and the power goes between
//! any two writes.
//!
//! - `shelf`: the places of drives, and what is there. `others`: what others have there. `bays`: those
//!   places as the array sees them.
//! - `request`: what administrators ask for. `oracle`: which pools there are to be.
//! - `start`: a start of the array, as the server makes it. `checks`: what holds when nothing is under
//!   way.
//!
//! What is checked, after each start and whenever nothing is under way:
//!
//! - A pool that was made is there, with its volumes and all that they hold. One whose making was cut
//!   off is there, or nothing of it is: no settings name it, and its drives are empty. So is one that is
//!   destroyed.
//! - A pool opens when its drives are there, at the start or late. It does not open without them.
//! - No array says that a pool was made here which it does not have.
//! - A drive that is ready in time is used, and no start takes longer for one that never is.
//! - What others have on drives stays as it is, whatever their labels say.
//! - A pool can be made of all drives that no pool has.

pub(crate) mod bays;
mod checks;
mod oracle;
pub(crate) mod others;
pub(crate) mod request;
pub(crate) mod shelf;
mod start;

use crate::config::{Theme, themes};
use crate::control::Records;
use crate::scenario::{Listener, Verdict};
use crate::seed::Seed;
use crate::shards::Shards;
use crate::small_pool::{self, Life};
use array::control::{ArrayErrorKind, ControlPlane};
use array::openings::{MadePool, Openings, READY_TIME};
use base::{Prng, Time};
use engine::World;
use oracle::{Oracle, Outcome};
use request::{NAMES, Request};
use shelf::{Bay, NAMESAKES, OF_POOLS, Shelf};
use site::Site;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

/// Among so many seeds one has such a run.
const ONE_OF: u64 = 8;

/// Requests of a round.
const REQUESTS_MAX: u64 = 2;

/// In one start of so many, the record of a pool is as a build of before has left it.
const OLD_RECORD_ONE_OF: u64 = 3;

/// A request has ended by then.
const PATIENCE: Duration = Duration::from_secs(600);

/// What outlives boots.
struct Books {
    shelf: Rc<Shelf>,
    /// What the first start makes.
    site: Site,
    shards: usize,
    records: Records,
    oracle: RefCell<Oracle>,
    under_way: RefCell<Vec<(Request, Outcome)>>,
    failure: RefCell<Option<String>>,
    rounds_left: Cell<u64>,
    /// Number of the next request.
    next: Cell<u64>,
    operations: Cell<u64>,
}

/// Whether a seed has such a run beside its other one.
pub fn is_drawn(seed: &Prng) -> bool {
    seed.stream("pools come and go").chance(1, ONE_OF)
}

/// Runs it to the end, or to the first thing that is wrong.
pub fn run(
    seed: &Seed,
    operations: Option<u64>,
    listener: Option<Listener>,
    bug: Option<&str>,
) -> Verdict {
    let prng = &mut seed.stream("pools come and go, config");
    let is_wished = themes(seed).contains(&Theme::Pools);
    let books = match Books::draw(prng, operations, is_wished) {
        Ok(books) => Rc::new(books),
        Err(what) => return Verdict::of_no_run(what),
    };
    let life = Life {
        name: "pools",
        media: books.shelf.media(),
        failure: &books.failure,
    };
    let mut verdict = life.live(
        (seed, prng),
        (listener, bug),
        || books.rounds_left.get() == 0,
        |world, plan| boot(world, Rc::clone(&books), plan),
        || books.shelf.bring_back(),
    );
    verdict.operations = books.operations.get();
    verdict
}

impl Books {
    fn draw(prng: &mut Prng, operations: Option<u64>, is_wished: bool) -> Result<Books, String> {
        let shelf = Rc::new(Shelf::new(prng, OF_POOLS));
        let rounds = prng.between(4, if is_wished { 40 } else { 20 });
        let oracle = Oracle::default();
        let site = start::first_site(prng, &shelf, &oracle)?;
        Ok(Books {
            shelf,
            site,
            shards: prng.between(1, 3) as usize,
            records: Records {
                fail_one_of: *prng.pick(&[0, 0, 0, 6, 20]),
                ..Records::default()
            },
            oracle: RefCell::new(oracle),
            under_way: RefCell::default(),
            failure: RefCell::default(),
            rounds_left: Cell::new(operations.map_or(rounds, |most| most.min(rounds))),
            next: Cell::new(1),
            operations: Cell::new(0),
        })
    }

    fn fail(&self, world: &SimWorld, what: impl Into<String>) {
        let what = what.into();
        world.note(|| format!("WRONG: {what}"));
        self.failure.borrow_mut().get_or_insert(what);
    }

    /// Names of the drives that nobody finds.
    fn away(&self) -> BTreeSet<String> {
        let away = self.shelf.own().filter(|bay| bay.is_away.get());
        away.map(|bay| bay.name.clone()).collect()
    }

    /// Some drives are away when a boot begins: those of a pool, or its first one only, or some that
    /// no pool has. Others' drives may be in their places.
    fn draw_away(&self, prng: &mut Prng) {
        let oracle = &mut *self.oracle.borrow_mut();
        let name = *prng.pick(&NAMES);
        let (made, gone) = self.unsure_drives(oracle);
        let is_first = self.is_first_start();
        let of_pool = oracle.pools.get(name);
        // What a making has left is away more often.
        let is_of_making = !is_first && !made.is_empty() && prng.chance(1, 2);
        let drawn = if is_of_making { 4 } else { prng.below(9) };
        let away: Vec<String> = match (drawn, of_pool) {
            (0 | 5 | 6, Some(pool)) => pool.drives.clone(),
            (1 | 2, Some(pool)) if pool.is_redundant => vec![pool.drives[0].clone()],
            (3, _) => self.some_free(oracle, &made, prng),
            (4, _) => made.iter().cloned().collect(),
            _ => Vec::new(),
        };
        let is_touched = |name: &String| made.contains(name) || gone.contains(name);
        let left = std::mem::take(&mut oracle.left);
        let bays = away.iter().filter_map(|name| self.shelf.called(name));
        // Files are where the records are, and away with these.
        if bays.clone().any(|bay| bay.is_file && is_touched(&bay.name)) {
            return;
        }
        for bay in bays {
            let name = bay.name.clone();
            bay.is_away.set(true);
            // Without a record, a pool of others is taken for one of the site file.
            let may_be_taken = is_first && made.contains(&name);
            let is_left = made.contains(&name) || left.contains(&name);
            let is_replaced = !bay.is_file && !may_be_taken && prng.chance(1, 3);
            if is_replaced {
                self.replace(bay, is_left, prng);
            }
            // Where another drive is found, nothing of the array is known to be left.
            if gone.contains(&name) || is_replaced && is_left {
                oracle.marked.insert(name);
            } else if is_left {
                oracle.left.insert(name);
            }
        }
    }

    /// Some drives of pools are not ready when a boot begins, and are in time; some that are away never
    /// are, as long as the boot lasts.
    fn draw_not_ready(&self, prng: &mut Prng, now: Time) {
        let oracle = self.oracle.borrow();
        // What a making or a destruction has left is looked for once.
        let is_left = !oracle.left.is_empty() || !oracle.unsure.is_empty();
        let under_way = self.under_way.borrow();
        let mut making = under_way
            .iter()
            .filter(|(request, _)| !matches!(request, Request::Fill { .. }));
        let is_quiet = making.next().is_none() && !is_left;
        for bay in self.shelf.own() {
            bay.ready_at.set(now);
            bay.is_dead.set(false);
            let is_used = oracle.used().contains(&bay.name);
            if !is_used || !is_quiet || bay.is_file || !prng.chance(1, 3) {
                continue;
            }
            match bay.is_there() {
                true => {
                    let after_ms = prng.below(READY_TIME.as_millis() as u64 * 4 / 5);
                    let at = now + Duration::from_millis(after_ms);
                    // Some can be opened, and answer no read.
                    match prng.chance(1, 2) {
                        true => bay.ready_at.set(at),
                        false => bay
                            .media
                            .with_faults(|faults| faults.stalled_until = Some(at)),
                    }
                }
                false => bay.is_dead.set(bay.found().is_none()),
            }
        }
    }

    /// Some drives that no pool has.
    fn some_free(&self, oracle: &Oracle, made: &BTreeSet<String>, prng: &mut Prng) -> Vec<String> {
        let own = self.shelf.own().map(|bay| bay.name.clone());
        let used = oracle.used();
        let free = own.filter(|name| !used.contains(name) && !made.contains(name));
        free.filter(|_| prng.chance(1, 2)).collect()
    }

    /// Puts a drive of others in the place of one that is away: of a namesake, where a making `is_left`.
    fn replace(&self, bay: &Bay, is_left: bool, prng: &mut Prng) {
        let others = self.shelf.others();
        let fitting = if is_left { NAMESAKES } else { others.len() };
        let other: &Rc<Bay> = prng.pick(&others[..fitting]);
        bay.replace(other);
    }

    /// Whether no start has ended.
    fn is_first_start(&self) -> bool {
        self.records.configuration.kept().settings.is_none()
    }

    /// A build of before has pools on record as being made that it uses.
    fn forget_identities(&self, prng: &mut Prng) {
        let oracle = self.oracle.borrow();
        let under_way = self.under_way.borrow();
        let mut made = self.records.made.kept();
        for (name, pool) in &oracle.pools {
            let is_quiet = under_way.iter().all(|(request, _)| request.pool() != name);
            let is_made = matches!(made.pools.get(name), Some(MadePool::Made { .. }));
            let is_used = pool.volumes.values().any(|is_known| *is_known);
            let bays = pool.drives.iter();
            let bays = bays.filter_map(|name| self.shelf.called(name));
            // Only a start looks whether such a pool is in use.
            let is_whole = bays.clone().all(|bay| bay.is_there());
            let is_drawn = prng.chance(1, OLD_RECORD_ONE_OF);
            if !(is_quiet && is_made && is_used && is_whole && is_drawn) {
                continue;
            }
            let (files, devices): (Vec<_>, Vec<_>) = bays.partition(|bay| bay.is_file);
            let paths = |bays: Vec<&Rc<Bay>>| bays.iter().map(|bay| bay.path.clone()).collect();
            let old = MadePool::BeingMade {
                new_files: paths(files),
                of_before: paths(devices),
                uuid: None,
            };
            made.pools.insert(name.clone(), old);
        }
        self.records.made.put(made);
    }

    /// The drives of pools that may have been made when the power went, and of those that may have
    /// been destroyed.
    fn unsure_drives(&self, oracle: &Oracle) -> (BTreeSet<String>, BTreeSet<String>) {
        let under_way = self.under_way.borrow();
        let made = under_way.iter().flat_map(|(request, _)| request.drives());
        let mut made: BTreeSet<String> = made.map(str::to_owned).collect();
        if self.is_first_start() {
            // They are made now.
            let of_site = self.site.drives.iter();
            made.extend(of_site.map(|drive| drive.name.clone()));
        }
        let gone = under_way.iter().filter_map(|(request, _)| match request {
            Request::Destroy { pool } => oracle.pools.get(pool),
            _ => None,
        });
        let gone = gone.flat_map(|pool| pool.drives.clone()).collect();
        (made, gone)
    }
}

/// One boot.
struct Boot {
    world: SimWorld,
    books: Rc<Books>,
    array: Arc<ControlPlane<SimWorld>>,
    openings: Arc<Openings<SimWorld>>,
    began_unix_s: u64,
}

/// What runs inside one boot.
async fn boot(world: SimWorld, books: Rc<Books>, (first, last): (bool, bool)) {
    if first {
        return match others::make_others(&world, &books.shelf, NAMES[0]).await {
            Ok(()) => {}
            Err(what) => books.fail(&world, what),
        };
    }
    books.shelf.note_others();
    let mut prng = world.prng("rounds");
    if !last {
        books.draw_away(&mut prng);
        books.forget_identities(&mut world.prng("old records"));
        books.draw_not_ready(&mut world.prng("not ready"), world.now());
    }
    let began = world.now();
    let shards = Shards::new(&world, books.shards);
    let boot = match Boot::start(&world, &books, &shards, last).await {
        Ok(Some(boot)) => boot,
        Ok(None) => return,
        Err(what) => return books.fail(&world, what),
    };
    boot.check_readiness(began);
    boot.settle("start").await;
    while books.failure.borrow().is_none() && books.rounds_left.get() > 0 && !last {
        boot.round(&mut prng).await;
        books.rounds_left.set(books.rounds_left.get() - 1);
    }
    if last {
        boot.make_of_the_rest().await;
    }
}

impl Boot {
    /// Administrators ask for something each, and drives come back.
    async fn round(&self, prng: &mut Prng) {
        let books = &self.books;
        let mut ends = Vec::new();
        let comes_back = !books.away().is_empty() && prng.chance(3, 4);
        if comes_back {
            books.shelf.bring_back();
            self.world.note(|| "all drives are there".to_owned());
        }
        // The array looks for drives now and then: requests come before, after and meanwhile.
        let pause_us_max = if comes_back { 2_500_000 } else { 5_000 };
        for _ in 0..prng.between(1, REQUESTS_MAX) {
            let number = books.next.get();
            let drawn = request::draw(prng, (&books.oracle.borrow(), &books.shelf), number);
            if let Some(request) = drawn.filter(|drawn| self.is_free(drawn)) {
                books.next.set(number + 1);
                books.oracle.borrow_mut().forget_left(&request);
                ends.push(self.begin(request, Duration::from_micros(prng.below(pause_us_max))));
            }
        }
        for end in ends {
            if end.await.is_err() {
                books.fail(&self.world, "a request was dropped before its end");
            }
        }
        self.settle("round").await;
    }

    /// Whether nothing under way has to do with its pool and its drives.
    fn is_free(&self, request: &Request) -> bool {
        let under_way = self.books.under_way.borrow();
        let drives = request.drives();
        under_way.iter().all(|(other, _)| {
            let mut taken = other.drives().into_iter();
            other.pool() != request.pool() && !taken.any(|name| drives.contains(&name))
        })
    }

    /// Begins a request; its outcome is noted when it has one.
    fn begin(&self, request: Request, pause: Duration) -> futures_channel::oneshot::Receiver<()> {
        let (world, books) = (self.world.clone(), Rc::clone(&self.books));
        let (array, openings) = (Arc::clone(&self.array), Arc::clone(&self.openings));
        let began_unix_s = self.began_unix_s;
        books.operations.set(books.operations.get() + 1);
        let at = {
            let mut under_way = books.under_way.borrow_mut();
            under_way.push((request.clone(), Outcome::Open));
            under_way.len() - 1
        };
        small_pool::begin(&self.world, async move {
            world.sleep(pause).await;
            world.note(|| request.brief());
            let asked = request::perform((&array, &openings), request.clone());
            let Some(done) = array.runtime().in_time(PATIENCE, asked).await else {
                return books.fail(&world, format!("{} is not answered", request.brief()));
            };
            world.note(|| format!("{} ends: {done:?}", request.brief()));
            if let Some(what) = checks::judge(&request, &done) {
                books.fail(&world, what);
            }
            books.under_way.borrow_mut()[at].1 = match done {
                Ok(()) => Outcome::Done,
                // What could not be kept may be on record all the same.
                Err(_) if books.records.failed_unix_s() >= began_unix_s => {
                    Outcome::Refused(ArrayErrorKind::Internal)
                }
                Err(error) => Outcome::Refused(error.kind),
            };
        })
    }
}
