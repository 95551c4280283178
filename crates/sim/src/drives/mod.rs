//! Runs in which drives fail by themselves and by command, spares take their places, drives are
//! replaced and forgotten, the record of them can't be written, and the power goes.
//!
//! - `places`: where new drives are said to be. `request`: what administrators and faults do.
//! - `oracle`: which drives are to be told of as failed. `groups`: which groups there are to be.
//! - `start`: a start of the array, as the server makes it. `checks`: what holds when nothing is under
//!   way.
//!
//! Whenever nothing is under way, the run checks which failed drives the array tells of:
//!
//! - It tells of each failed drive that has no place any more, with the reason that it gave before.
//! - It does so until somebody replaces or removes the drive, or another drive takes its name.
//! - It tells of no other drive, and the record says the same.
//!
//! In half of the runs groups come, get other levels and leave as well. Each drive of the pool is on
//! record.
//!
//! New drives are devices, files that are there, and files that are to be made. Some are offered at
//! places that the array must not use:
//!
//! - drives of others, with a label or with something else, also where a drive of the pool failed
//! - drives that this pool or another one uses
//! - places in other directories, and of another array
//! - places where nothing is, or nothing can be made
//!
//! - Such a drive is refused, and a spare for the right kind of reason. A free place is not.
//! - What others have on drives stays as it is.
//! - When new drives are not taken, no file stays that was made for them, and none goes that was there.

mod checks;
mod groups;
mod oracle;
mod places;
mod request;
mod start;

use crate::config::{Theme, themes};
use crate::control::Records;
use crate::pools::others::make_others;
use crate::scenario::{Listener, Verdict};
use crate::seed::Seed;
use crate::shards::Shards;
use crate::small_pool::{self, Life};
use array::control::ControlPlane;
use array::openings::Openings;
use base::Prng;
use engine::World;
use oracle::Oracle;
use places::Places;
use request::{Outcome, Request};
use site::Site;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

/// Among so many seeds one has such a run.
const ONE_OF: u64 = 8;

/// Requests of a round.
const REQUESTS_MAX: u64 = 2;

/// When a boot looks at what it finds.
const START: &str = "start";

/// A request has ended by then.
const PATIENCE: Duration = Duration::from_secs(600);

/// The pool whose drives come and go, and another one.
const POOL: &str = "a";
const OTHER: &str = "b";

/// What outlives boots.
struct Books {
    /// What the first start makes.
    site: Site,
    places: Places,
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
    let books = match Books::draw(prng, operations, is_wished) {
        Ok(books) => Rc::new(books),
        Err(what) => return Verdict::of_no_run(what),
    };
    let life = Life {
        name: "drives",
        media: books.places.shelf.media(),
        failure: &books.failure,
    };
    let mut verdict = life.live(
        (seed, prng),
        (listener, bug),
        || books.rounds_left.get() == 0,
        |world, plan| boot(world, Rc::clone(&books), plan),
        || books.places.shelf.bring_back(),
    );
    verdict.operations = books.operations.get();
    verdict
}

impl Books {
    fn draw(prng: &mut Prng, operations: Option<u64>, is_wished: bool) -> Result<Books, String> {
        let places = Places::new(prng);
        let site = start::first_site(prng, &places)?;
        let rounds = prng.between(4, if is_wished { 40 } else { 20 });
        Ok(Books {
            site,
            places,
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
        })
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
    openings: Arc<Openings<SimWorld>>,
}

/// What runs inside one boot.
async fn boot(world: SimWorld, books: Rc<Books>, (first, last): (bool, bool)) {
    if first && let Err(what) = make_others(&world, &books.places.shelf, POOL).await {
        return books.fail(&world, what);
    }
    books.places.shelf.note_others();
    let mut prngs = ["rounds", "groups of rounds"].map(|name| world.prng(name));
    let shards = Shards::new(&world, books.shards);
    let boot = match Boot::start(&world, &books, &shards, first).await {
        Ok(Some(boot)) => boot,
        Ok(None) => return,
        Err(what) => return books.fail(&world, what),
    };
    boot.settle(START).await;
    while books.failure.borrow().is_none() && books.rounds_left.get() > 0 && !first && !last {
        boot.round(&mut prngs).await;
        books.rounds_left.set(books.rounds_left.get() - 1);
    }
}

impl Boot {
    /// Drives fail, and administrators do something about it.
    async fn round(&self, [prng, groups]: &mut [Prng; 2]) {
        let books = &self.books;
        let Some(tenants) = self.tenants().await else {
            return;
        };
        let requests = prng.between(1, REQUESTS_MAX);
        let mut ends = Vec::new();
        for _ in 0..requests {
            let known = (&books.places, &tenants);
            let drawn = request::draw(prng, &books.oracle.borrow(), known);
            ends.extend(self.begin_if_free(drawn, prng));
        }
        if books.changes_groups && groups.chance(1, 2) {
            let oracle = books.oracle.borrow();
            let drawn = oracle.groups().draw(groups, (&books.places, &tenants));
            drop(oracle);
            ends.extend(self.begin_if_free(drawn, groups));
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

    fn begin_if_free(
        &self,
        drawn: Option<Request>,
        prng: &mut Prng,
    ) -> Option<futures_channel::oneshot::Receiver<()>> {
        let request = drawn?;
        let is_free = self.is_free(&request);
        is_free.then(|| self.begin(request, Duration::from_micros(prng.below(5_000))))
    }

    /// Whether nothing under way has to do with its drives: what two do to one drive at a time may
    /// come in any order.
    fn is_free(&self, request: &Request) -> bool {
        let (names, paths) = (request.names(), request.paths());
        let under_way = self.books.under_way.borrow();
        !under_way.iter().any(|(other, _)| {
            let mut taken = other.names().into_iter();
            taken.any(|name| names.contains(&name))
                || other.paths().iter().any(|path| paths.contains(path))
        })
    }

    /// Begins a request; its outcome is noted when it has one.
    fn begin(&self, request: Request, pause: Duration) -> futures_channel::oneshot::Receiver<()> {
        let (world, books) = (self.world.clone(), Rc::clone(&self.books));
        let (array, openings) = (Arc::clone(&self.array), Arc::clone(&self.openings));
        books.operations.set(books.operations.get() + 1);
        let at = {
            let mut under_way = books.under_way.borrow_mut();
            under_way.push((request.clone(), Outcome::Open));
            under_way.len() - 1
        };
        small_pool::begin(&self.world, async move {
            world.sleep(pause).await;
            world.note(|| format!("{request:?}"));
            let swap = |is_there| {
                let offers = request.offers().iter();
                offers.for_each(|offer| books.places.swap(offer, is_there));
            };
            swap(true);
            let asked = request::perform((&array, &openings), request.clone());
            let Some(done) = array.runtime().in_time(PATIENCE, asked).await else {
                return books.fail(&world, format!("{request:?} is not answered"));
            };
            world.note(|| format!("{request:?} ends: {done:?}"));
            let outcome = Outcome::of(done);
            if let Some(what) = request.wrong_with(&outcome) {
                books.fail(&world, what);
            }
            swap(false);
            books.under_way.borrow_mut()[at].1 = outcome;
        })
    }
}
