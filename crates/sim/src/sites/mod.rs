//! Runs in which site files are applied: at a first start, and again while the array serves, by an
//! array that administrators change as well. The power goes at any poll.
//!
//! - `author`: writes site files. `command`: what is done beside them.
//! - `seen`: what the array says that it is. `oracle`: what it is to be.
//! - `admission`: who may log in meanwhile. `start`: a start, as the server makes it.
//!
//! What is checked, after each start and whenever nothing is under way:
//!
//! - An application that says so has made the array what the file says; a second one changes nothing.
//! - Nothing is deleted, shrunk or moved by a file, and what no file describes stays as it is.
//! - A volume is made only where none has, or had, its name: not one that was renamed, that is in the
//!   trash, or in a pool that is not open.
//! - A first start that was cut off is completed by the next.
//! - Nobody is admitted meanwhile whom neither the array before nor the file admits.
//! - The site file that describes an array changes nothing of it.

mod admission;
mod author;
mod command;
mod oracle;
mod seen;
mod sockets;
mod start;

use crate::config::{Theme, themes};
use crate::control::Records;
use crate::pools::shelf::{OF_POOLS, Shelf};
use crate::scenario::{Listener, Verdict};
use crate::seed::Seed;
use crate::small_pool::{self, Life};
use admission::Allowed;
use array::control::ControlPlane;
use array::openings::Openings;
use array::site_file::{self, Action, Outcome};
use author::Author;
use base::Prng;
use command::Command;
use engine::World;
use oracle::{Did, Oracle};
use seen::Seen;
use site::Site;
use sockets::SimSockets;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

/// Names that pools have.
const NAMES: [&str; 3] = ["p", "q", "r"];

/// Among so many seeds one has such a run.
const ONE_OF: u64 = 8;

/// Commands of a round.
const COMMANDS_MAX: u64 = 3;

/// An application has ended by then.
const PATIENCE: Duration = Duration::from_secs(600);

/// Pools whose drives are there are open after so many looks, so far apart.
const LOOKS: u32 = 20;
const LOOK_PAUSE: Duration = Duration::from_secs(2);

/// Who may log in is looked at so often, nanoseconds.
const WATCH_NS_MAX: u64 = 100_000;

/// What outlives boots.
struct Books {
    shelf: Rc<Shelf>,
    shards: usize,
    records: Records,
    /// The site file as it is written now.
    file: RefCell<Site>,
    /// Files say ever more, and nobody changes anything beside them.
    is_gentle: bool,
    oracle: RefCell<Oracle>,
    /// What was done since the array was looked at last.
    did: RefCell<Did>,
    /// What a start makes late, as long as not all of it was made.
    completes: RefCell<Option<Site>>,
    /// The file that the array was seen to be as.
    applied: RefCell<Option<Site>>,
    failure: RefCell<Option<String>>,
    rounds_left: Cell<u64>,
    /// Number of the next command.
    next: Cell<u64>,
    operations: Cell<u64>,
}

/// Whether a seed has such a run beside its other one.
pub fn is_drawn(seed: &Prng) -> bool {
    seed.stream("sites").chance(1, ONE_OF)
}

/// Runs it to the end, or to the first thing that is wrong.
pub fn run(
    seed: &Seed,
    operations: Option<u64>,
    listener: Option<Listener>,
    bug: Option<&str>,
) -> Verdict {
    let prng = &mut seed.stream("sites config");
    let is_wished = themes(seed).contains(&Theme::Sites);
    let books = match Books::draw(prng, operations, is_wished) {
        Ok(books) => Rc::new(books),
        Err(what) => return Verdict::of_no_run(what),
    };
    let life = Life {
        name: "sites",
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
        let rounds = prng.between(4, if is_wished { 30 } else { 15 });
        let is_gentle = prng.chance(1, 3);
        let mut author = Author {
            prng,
            shelf: &shelf,
            used: BTreeSet::new(),
            is_gentle,
        };
        let file = author.first()?;
        Ok(Books {
            shelf,
            shards: prng.between(1, 3) as usize,
            records: Records {
                fail_one_of: *prng.pick(&[0, 0, 6, 20]),
                ..Records::default()
            },
            file: RefCell::new(file),
            is_gentle,
            oracle: RefCell::default(),
            did: RefCell::default(),
            completes: RefCell::default(),
            applied: RefCell::default(),
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

    fn is_wrong(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// Somebody edits the site file. A volume that was renamed gets its new name there now and then.
    fn edit(&self, prng: &mut Prng) {
        let oracle = self.oracle.borrow();
        let drives = oracle.last().map(|seen| seen.settings.drives.clone());
        let used = drives.unwrap_or_default().into_iter();
        let mut file = self.file.borrow().clone();
        if let Some((was, now)) = oracle.renamed().filter(|_| prng.chance(1, 3)) {
            file = site_file::follow(&file, &[(was, now)].into());
        }
        let mut author = Author {
            prng,
            shelf: &self.shelf,
            used: used.map(|drive| drive.name).collect(),
            is_gentle: self.is_gentle,
        };
        *self.file.borrow_mut() = author.edits(&file);
    }
}

/// One boot.
struct Boot {
    world: SimWorld,
    books: Rc<Books>,
    array: Arc<ControlPlane<SimWorld>>,
    sockets: SimSockets,
    openings: Arc<Openings<SimWorld>>,
    began_unix_s: u64,
}

/// What runs inside one boot.
async fn boot(world: SimWorld, books: Rc<Books>, (first, last): (bool, bool)) {
    if first {
        return;
    }
    let mut prng = world.prng("rounds");
    if !last {
        books.draw_away(&mut prng);
    }
    let boot = match Boot::start(&world, &books, &mut prng, last).await {
        Ok(Some(boot)) => boot,
        Ok(None) => return,
        Err(what) => return books.fail(&world, what),
    };
    let mut rounds = boot.settle("start").await;
    while rounds.is_some() && books.rounds_left.get() > 0 && !last {
        rounds = boot.round(&mut prng).await;
        books.rounds_left.set(books.rounds_left.get() - 1);
    }
    if last && rounds.is_some() {
        boot.apply_alone(&mut prng).await;
    }
}

impl Boot {
    /// Somebody applies a file, or administrators change the array, or both do so. Nothing once
    /// something is wrong.
    async fn round(&self, prng: &mut Prng) -> Option<Seen> {
        let books = &self.books;
        if !books.away().is_empty() && prng.chance(1, 2) {
            books.shelf.bring_back();
            self.world.note(|| "all drives are there".to_owned());
            self.wait_until_open().await;
            self.settle("late").await?;
        }
        if prng.chance(3, 4) {
            books.edit(prng);
        }
        match prng.below(6) {
            0..=2 => self.apply_alone(prng).await,
            _ if books.is_gentle => self.apply_alone(prng).await,
            3 => self.change(prng, false).await,
            _ => self.change(prng, true).await,
        }
    }

    /// Applies the file while nobody does anything else.
    async fn apply_alone(&self, prng: &mut Prng) -> Option<Seen> {
        let books = &self.books;
        let before = books.oracle.borrow().last()?.clone();
        let file = books.file.borrow().clone();
        let followed = books.oracle.borrow().followed(&file);
        let after = before.with_access_of(&followed);
        let watch = self.watch(Allowed::by(&[before, after]));
        let outcome = self
            .apply(&file, prng.chance(7, 8) || books.is_gentle)
            .await;
        watch.set(false);
        let outcome = outcome?;
        let seen = self.settle("application").await?;
        let has_failed = books.records.failed_unix_s() >= self.began_unix_s;
        let is_whole = seen.closed.is_empty() && books.away().is_empty();
        if books.is_gentle
            && is_whole
            && !has_failed
            && let Some(left) = outcome.left.first()
        {
            let (what, why) = (&left.difference.what, &left.why);
            books.fail(&self.world, format!("{what} is left: {why}"));
        }
        if outcome.left.is_empty() {
            let checked = self.check_applied(&file, &seen).await;
            if let Err(what) = checked {
                books.fail(&self.world, format!("the file is applied, and {what}"));
            }
        }
        (!books.is_wrong()).then_some(seen)
    }

    /// Administrators change the array, also while the file is applied.
    async fn change(&self, prng: &mut Prng, is_applied: bool) -> Option<Seen> {
        let books = &self.books;
        let seen = books.oracle.borrow().last()?.clone();
        let mut ends = Vec::new();
        for _ in 0..prng.between(1, COMMANDS_MAX) {
            let number = books.next.get();
            books.next.set(number + 1);
            if let Some(command) = command::draw(prng, &seen, number) {
                // An application takes some milliseconds.
                let pause_us_max = if is_applied { 5_000 } else { 20_000 };
                ends.push(self.begin(command, Duration::from_micros(prng.below(pause_us_max))));
            }
        }
        if is_applied {
            let file = books.file.borrow().clone();
            self.apply(&file, true).await?;
        }
        for end in ends {
            if end.await.is_err() {
                books.fail(&self.world, "a command was dropped before its end");
            }
        }
        self.settle("commands").await
    }

    /// Begins a command.
    fn begin(&self, command: Command, pause: Duration) -> futures_channel::oneshot::Receiver<()> {
        let (world, array) = (self.world.clone(), Arc::clone(&self.array));
        let books = &self.books;
        books.operations.set(books.operations.get() + 1);
        books.applied.take();
        books.did.borrow_mut().commands.push(command.clone());
        small_pool::begin(&self.world, async move {
            world.sleep(pause).await;
            world.note(|| format!("{command:?}"));
            let done = command::perform(&array, command.clone()).await;
            world.note(|| format!("{command:?} ends: {done:?}"));
        })
    }

    /// Applies a file. Nothing when that does not end.
    async fn apply(&self, file: &Site, is_owner: bool) -> Option<Outcome> {
        let books = &self.books;
        books.operations.set(books.operations.get() + 1);
        books.applied.take();
        books.did.borrow_mut().files.push(file.clone());
        self.world.note(|| format!("applies {}", site::text(file)));
        let applied = site_file::apply(file, (&self.array, &self.openings), is_owner);
        let ended = self.array.runtime().in_time(PATIENCE, applied).await;
        match ended {
            Some(Ok(outcome)) => {
                self.world.note(|| format!("is applied: {outcome:?}"));
                Some(outcome)
            }
            Some(Err(error)) => {
                books.fail(&self.world, format!("the application ends: {error}"));
                None
            }
            None => {
                books.fail(&self.world, "the application has no end");
                None
            }
        }
    }

    /// Looks who may log in until it is told to stop.
    fn watch(&self, allowed: Allowed) -> Rc<Cell<bool>> {
        let goes_on = Rc::new(Cell::new(true));
        let (world, books, array) = (
            self.world.clone(),
            Rc::clone(&self.books),
            Arc::clone(&self.array),
        );
        let (until, mut prng) = (Rc::clone(&goes_on), self.world.prng("watch"));
        self.world.spawn(async move {
            while until.get() {
                if let Err(what) = allowed.check(&array) {
                    return books.fail(&world, what);
                }
                world
                    .sleep(Duration::from_nanos(prng.below(WATCH_NS_MAX)))
                    .await;
            }
        });
        goes_on
    }

    /// Nothing is under way: the array is what it may be. Gives what it is.
    async fn settle(&self, when: &str) -> Option<Seen> {
        let books = &self.books;
        if books.is_wrong() {
            return None;
        }
        self.settle_records().await;
        match self.check().await {
            Ok(seen) => Some(seen),
            Err(what) => {
                books.fail(&self.world, format!("{when}: {what}"));
                None
            }
        }
    }

    async fn check(&self) -> Result<Seen, String> {
        let books = &self.books;
        self.sockets.check(&self.array)?;
        let seen = Seen::of(&self.array).await;
        let seen = seen.map_err(|error| error.to_string())?;
        let mut did = books.did.take();
        did.files.extend(books.completes.borrow().clone());
        if self.array.is_complete() {
            books.completes.take();
        }
        books.oracle.borrow_mut().observe(&seen, &did)?;
        let applied = books.applied.borrow().clone();
        if let Some(file) = applied.filter(|_| seen.closed.is_empty()) {
            let oracle = books.oracle.borrow();
            let followed = oracle.followed(&file);
            let is_so = oracle.is_as_said(&followed, &seen);
            is_so.map_err(|what| format!("the file was applied, and {what}"))?;
        }
        Ok(seen)
    }

    /// After an application of which nothing is left.
    async fn check_applied(&self, file: &Site, seen: &Seen) -> Result<(), String> {
        let books = &self.books;
        let followed = books.oracle.borrow().followed(file);
        books.oracle.borrow().is_as_said(&followed, seen)?;
        let found = site_file::differences(&followed, &self.array).await;
        let found = found.map_err(|error| error.to_string())?;
        if let Some(differs) = found.iter().find(|one| one.action != Action::Keep) {
            return Err(format!("differs: {differs:?}"));
        }
        let is_sound = books.records.failed_unix_s() < self.began_unix_s;
        let again = self.apply(file, true).await.filter(|_| is_sound);
        if let Some(again) = again {
            self.changed_nothing(seen, &again).await?;
        }
        if seen.closed.is_empty() && is_sound {
            self.check_description(seen).await?;
        }
        let seen = self.check().await?;
        if !books.is_wrong() && seen.closed.is_empty() {
            // Its own description says the names that volumes have now.
            *books.applied.borrow_mut() = Some(followed);
        }
        Ok(())
    }

    /// The file that describes the array changes nothing of it.
    async fn check_description(&self, seen: &Seen) -> Result<(), String> {
        let said = site_file::site_of(&self.array).await;
        let said = said.map_err(|error| error.to_string())?;
        let read = author::read_again(&said)
            .map_err(|error| format!("its description is no site file: {error}"))?;
        let Some(outcome) = self.apply(&read, true).await else {
            return Ok(());
        };
        let changed = self.changed_nothing(seen, &outcome).await;
        changed.map_err(|what| format!("its own description: {what}"))
    }

    async fn changed_nothing(&self, before: &Seen, outcome: &Outcome) -> Result<(), String> {
        if let Some(done) = outcome.done.first() {
            return Err(format!("a second application did {done:?}"));
        }
        if let Some(left) = outcome.left.first() {
            return Err(format!("a second application leaves {left:?}"));
        }
        let after = Seen::of(&self.array).await;
        let after = after.map_err(|error| error.to_string())?;
        match before.differs(&after) {
            None => Ok(()),
            Some(how) => Err(format!("a second application changed something: {how}")),
        }
    }
}
