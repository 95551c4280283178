//! Runs with initiators at some logical units of two pools.
//!
//! Their commands look and change at one instant, copy, reserve, reset and abort, through power
//! cuts at any poll. They go as PDUs over sessions with the array's own front, which are lost and
//! reinstated.
//!
//! - [`crate::history`]: what was done to each run of blocks, and whether an order explains it.
//! - [`crate::wire`]: logins and sessions.
//! - [`fence`]: a second opinion on reservations.
//! - `unit`: what is known of a logical unit; `token`: what is known of tokens; `attention`: what
//!   hosts are to be told.
//! - `array`: what serves, in one boot; [`crate::shards`]: messages between its shards; `exports`:
//!   how units are shown, hidden, deleted and made; `admin`: who does that, and moves volumes.
//! - `slot`: the sessions of a host with a target. `host`: an initiator; `reserve`: its reservations;
//!   `tasks`: commands that are aborted; `field`, `copies`, `offload`: what it does to single sectors.
//!
//! What is checked:
//! - Each register has an order of all that was done to it that explains every answer, over
//!   power cuts, too. Copies are in it: one has read each sector at an instant between its
//!   beginning and its end, and written it later; what failed or was stopped may have done
//!   so in part. A token holds of each sector what was there at an instant of the command
//!   that made it, and never anything else.
//! - A command that no change of reservations ran beside is refused when it has to be, and
//!   not else, for each unit that it concerns. After a power cut, when a unit was hidden,
//!   and in the pool that its volume has moved to those that were to be kept are there.
//! - Who was reset, or has a new session, hears of it at the next command, and nobody hears of what
//!   was not at his unit.
//! - What a lost session had under way is over when its host has logged in again, and that takes
//!   little time. What a preemption has aborted is over when it is answered. Reservations outlive
//!   sessions, and tokens do.
//! - Tokens work until they are revoked or nobody used them for their time, and none works
//!   after that, in another boot, or when its volume was hidden or deleted. When there are none,
//!   nothing is kept for them.
//! - A start finds a unit as it was before a change of its LUN or its volume that the cut has
//!   interrupted, or as it was to be.
//!
//! Drives lose nothing that was flushed: what else they do is the business of other runs.

mod admin;
mod array;
mod attention;
mod copies;
mod exports;
mod fence;
mod field;
mod host;
mod offload;
mod reserve;
mod slot;
mod tasks;
mod token;
mod unit;

use crate::answers;
use crate::config::{Theme, themes};
use crate::control::Records;
use crate::damage;
use crate::history::{Deed, History, RegisterPlace};
use crate::scenario::{Listener, Verdict};
use crate::seed::Seed;
use crate::small_pool::{self, Life};
use crate::wire::network::Pace;
use array::Array;
use base::Prng;
use engine::fsck::{self, Options, Severity};
use engine::{PoolSpec, Provisioning, VolumeSpec, World};
use fence::Fence;
use host::Host;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use token::Token;
use unit::Unit;
use world_sim::{Media, SimWorld};

/// Of a drive.
const DRIVE_BYTES: u64 = 8 << 20;

/// Among so many seeds one has such a run.
const ONE_OF: u64 = 4;

/// Wires take their time in one run of so many.
const SLOW_WIRES_ONE_OF: u64 = 8;

/// The volume of a pool that only takes room.
fn filler_of(pool: &str) -> String {
    format!("filler-{pool}")
}

/// What outlives boots.
struct Books {
    specs: [PoolSpec; 2],
    media: [Vec<Rc<Media>>; 2],
    failure: RefCell<Option<String>>,
    units: Vec<Unit>,
    targets: usize,
    /// Pages that are left beside what takes room, if there is such.
    tight: Option<u64>,
    hosts: u64,
    /// Of the wires of all hosts.
    pace: Pace,
    /// Wires are cut.
    loses_sessions: bool,
    rounds_left: Cell<u64>,
    /// Counts beginnings and ends.
    clock: Cell<u64>,
    boots: Cell<u64>,
    tokens: RefCell<Vec<Token>>,
    /// How often tokens went that nobody had asked to go.
    evictions: Cell<u64>,
    /// How often room was made for what found none.
    rooms: Cell<u64>,
    operations: Cell<u64>,
    victims: Vec<Rc<Media>>,
    records: Records,
    answers: Rc<RefCell<answers::Counts>>,
}

/// Whether a seed has such a run beside its other one.
pub fn is_drawn(seed: &Prng) -> bool {
    seed.stream("initiators").chance(1, ONE_OF)
}

/// Runs it to the end, or to the first thing that is wrong.
pub fn run(
    seed: &Seed,
    operations: Option<u64>,
    listener: Option<Listener>,
    bug: Option<&str>,
) -> Verdict {
    let prng = &mut seed.stream("initiators config");
    let mut books = Books::draw(prng, operations);
    books.victims = small_pool::victims(seed, &books.specs, &books.media);
    if themes(seed).contains(&Theme::Initiators) {
        books.tight = books.tight.or(Some(0));
    }
    let books = Rc::new(books);
    let life = Life {
        name: "initiators",
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
    verdict.answers = books.answers.take();
    verdict
}

impl Books {
    fn draw(prng: &mut Prng, operations: Option<u64>) -> Books {
        let mut pool = |name: &str| small_pool::draw(prng, name, DRIVE_BYTES);
        let ((a, on_a), (b, on_b)) = (pool("a"), pool("b"));
        let targets = prng.between(1, 2) as usize;
        let units = prng.between(1, 3) as usize;
        let units = (0..units).map(|number| Unit::draw(prng, number, number % targets));
        let units: Vec<Unit> = units.collect();
        // One without a unit is not there.
        let targets = targets.min(units.len());
        let rounds = prng.between(5, 60);
        Books {
            specs: [a, b],
            media: [on_a, on_b],
            failure: RefCell::default(),
            units,
            targets,
            tight: prng.chance(1, 2).then(|| prng.between(0, 16)),
            hosts: prng.between(2, 4),
            pace: match prng.chance(1, SLOW_WIRES_ONE_OF) {
                true => Pace::Drawn,
                false => Pace::AtOnce,
            },
            loses_sessions: prng.chance(2, 3),
            rounds_left: Cell::new(operations.map_or(rounds, |most| most.min(rounds))),
            clock: Cell::new(0),
            boots: Cell::new(0),
            tokens: RefCell::default(),
            evictions: Cell::new(0),
            rooms: Cell::new(0),
            operations: Cell::new(0),
            victims: Vec::new(),
            records: Records::default(),
            answers: Rc::default(),
        }
    }

    fn fail(&self, world: &SimWorld, what: impl Into<String>) {
        let what = what.into();
        world.note(|| format!("WRONG: {what}"));
        self.failure.borrow_mut().get_or_insert(what);
    }

    /// The units that a target shows.
    fn units_at(&self, target: usize) -> impl Iterator<Item = &Unit> {
        self.units.iter().filter(move |unit| unit.target == target)
    }

    /// By unit: beginnings and ends of what is done to it behind the back of hosts.
    fn upsets(&self) -> Vec<u64> {
        self.units.iter().map(|unit| unit.upsets.get()).collect()
    }

    /// The next instant.
    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    fn history<T>(
        &self,
        (unit, register): RegisterPlace,
        look: impl FnOnce(&mut History) -> T,
    ) -> T {
        look(&mut self.units[unit].registers.borrow_mut()[register].history)
    }

    /// A command begins that does this; what is behind the `first` of it, in a part of its
    /// own. Nothing, where too much is remembered already.
    fn begin(
        &self,
        deeds: Vec<(RegisterPlace, Deed)>,
        first: usize,
    ) -> Option<Vec<(RegisterPlace, usize)>> {
        let mut places = deeds.iter();
        if places.any(|(place, _)| self.history(*place, |history| history.is_long())) {
            return None;
        }
        let parts = [self.tick(), self.tick()];
        let begin = |(nth, (place, deed))| {
            let begun = parts[usize::from(nth >= first)];
            (place, self.history(place, |one| one.begin(deed, begun)))
        };
        Some(deeds.into_iter().enumerate().map(begin).collect())
    }

    /// None of it has happened.
    fn refuse(&self, deeds: &[(RegisterPlace, usize)]) {
        for (place, number) in deeds {
            self.history(*place, |history| history.refuse(*number));
        }
    }

    /// It may have happened, but not later than at this instant.
    fn abandon(&self, deeds: &[(RegisterPlace, usize)], at: u64) {
        for (place, number) in deeds {
            self.history(*place, |history| history.abandon(*number, at));
        }
    }

    /// What was written since room had been made `rooms` times may have come twice: where
    /// there was none for a part, the whole is tried again.
    fn repeat_since(&self, rooms: u64, deeds: &[(RegisterPlace, usize)]) {
        if self.rooms.get() == rooms {
            return;
        }
        for (place, number) in deeds {
            self.history(*place, |history| history.repeat(*number));
        }
    }

    /// It has happened by this instant.
    fn end(&self, deeds: &[(RegisterPlace, usize)], now: u64, what: impl Fn(usize) -> Deed) {
        for (nth, (place, number)) in deeds.iter().enumerate() {
            self.history(*place, |history| history.end(*number, what(nth), now));
        }
    }

    /// Tokens may go that nobody has asked to go.
    fn evict(&self) {
        self.evictions.set(self.evictions.get() + 1);
    }

    /// Those among this boot's tokens are no more.
    fn take_back(&self, which: impl Fn(&Token) -> bool) {
        let boot = self.boots.get();
        let mut known = self.tokens.borrow_mut();
        for token in known
            .iter_mut()
            .filter(|one| one.boot == boot && which(one))
        {
            token.is_revoked = true;
        }
    }

    /// Nothing is under way: all answers have an explanation.
    fn settle(&self, world: &SimWorld) {
        let now = self.tick();
        self.resolve_copies();
        for unit in &self.units {
            for register in unit.registers.borrow_mut().iter_mut() {
                if let Err(why) = register.history.settle(now) {
                    let (lba, sectors) = (register.lba, register.sectors);
                    let what = format!("{}, {sectors} sectors at {lba}: {why}", unit.name);
                    self.fail(world, what);
                }
            }
        }
    }

    /// Says of all copies what they may have written. Where some went in a circle, that is
    /// anything that ever was in it.
    fn resolve_copies(&self) {
        loop {
            let open = self.open_copies();
            let places: BTreeSet<RegisterPlace> = open.iter().map(|(to, ..)| *to).collect();
            let ready =
                |one: &&(RegisterPlace, usize, RegisterPlace, Range<u64>)| !places.contains(&one.2);
            let closed: Vec<_> = open.iter().filter(ready).collect();
            if open.is_empty() {
                return;
            }
            for (to, number, from, when) in &closed {
                let values = self.history(*from, |one| one.may_have_shown(when.clone()));
                let values = values.into_iter().collect();
                self.history(*to, |history| history.resolve(*number, values));
            }
            if closed.is_empty() {
                let values = |(.., from, _): &(_, _, RegisterPlace, _)| {
                    self.history(*from, |history| history.all_values())
                };
                let all: BTreeSet<u64> = open.iter().flat_map(values).collect();
                let all: Rc<[u64]> = all.into_iter().collect();
                for (to, number, ..) in open {
                    self.history(to, |history| history.resolve(number, Rc::clone(&all)));
                }
            }
        }
    }

    /// Copies of which nobody has said yet what they may have written: to where, their
    /// numbers, from where, and when.
    fn open_copies(&self) -> Vec<(RegisterPlace, usize, RegisterPlace, Range<u64>)> {
        let mut open = Vec::new();
        for (number, unit) in self.units.iter().enumerate() {
            for (register, one) in unit.registers.borrow().iter().enumerate() {
                let copies = one.history.copies().into_iter();
                open.extend(copies.map(|(nth, from, when)| ((number, register), nth, from, when)));
            }
        }
        open
    }
}

/// What runs inside one boot.
async fn boot(world: SimWorld, books: Rc<Books>, (first, last): (bool, bool)) {
    books.boots.set(books.boots.get() + 1);
    let mut prng = world.prng("boot");
    let mut pools = Vec::new();
    for (spec, media) in books.specs.iter().zip(&books.media) {
        match small_pool::open(&world, spec, media, first).await {
            Ok(pool) => pools.push(pool),
            Err(error) => return books.fail(&world, format!("opening a pool: {error}")),
        }
    }
    if last {
        damage::mend(&books.victims);
    }
    let array = match Array::start(&world, &books, (pools, first)).await {
        Ok(array) => array,
        Err(what) => return books.fail(&world, what),
    };
    if first {
        // This boot is never cut short.
        return make_volumes(&array, &mut prng).await;
    }
    books.settle(&world);
    for unit in &books.units {
        array.find_unit(unit).await;
    }
    if books.failure.borrow().is_some() {
        return;
    }
    if !last {
        let going = Rc::clone(&books);
        let goes_on = move || going.failure.borrow().is_none();
        small_pool::strike(&world, &books.victims, goes_on);
    }
    let hosts = begin_hosts(&array);
    for number in 0..books.units.len() {
        find_fence(&world, &books, number, &hosts[0]).await;
    }
    look_around(&array, &hosts).await;
    while books.failure.borrow().is_none() && books.rounds_left.get() > 0 {
        round(&array, &hosts, &mut prng).await;
        books.settle(&world);
        array.bring_some_back(&mut prng).await;
        array.check_kept().await;
        books.rounds_left.set(books.rounds_left.get() - 1);
    }
    if last && books.failure.borrow().is_none() {
        for unit in &books.units {
            array.bring_back(unit).await;
        }
        read_all(&books, &hosts).await;
        books.settle(&world);
        end(&array).await;
    }
}

/// All hosts. They log in when they have something to say.
fn begin_hosts(array: &Rc<Array>) -> Vec<Rc<Host>> {
    let hosts = (0..array.books.hosts).map(|number| Host::new(number, array));
    let hosts: Vec<Rc<Host>> = hosts.collect();
    array
        .hosts
        .replace(hosts.iter().map(Rc::downgrade).collect());
    hosts
}

/// What the cut has left is looked at before anything covers it. Moves that it has interrupted go on
/// meanwhile.
async fn look_around(array: &Rc<Array>, hosts: &[Rc<Host>]) {
    let moves = array.resume_moves();
    read_all(&array.books, hosts).await;
    // Dropped with the boot only.
    let _ = moves.await;
    array.books.settle(&array.world);
}

async fn make_volumes(array: &Array, prng: &mut Prng) {
    for (number, unit) in array.books.units.iter().enumerate() {
        let kind = *prng.pick(&[Provisioning::Thin, Provisioning::Thin, Provisioning::Thick]);
        // Two in one, and one in the other.
        array.make(unit, kind, number / 2).await;
        array.show(unit).await;
    }
    let Some(pages) = array.books.tight else {
        return;
    };
    for pool in &array.pools {
        let info = pool.info();
        let left = pages * u64::from(info.page_bytes);
        let free = info.capacity_bytes - info.mapped_bytes - info.promised_bytes;
        let filler = VolumeSpec {
            name: filler_of(pool.name()),
            size_bytes: free.saturating_sub(left).max(u64::from(info.page_bytes)),
            provisioning: Provisioning::Thick,
        };
        let pool = pool.name().to_owned();
        let filled = array.control.create_volume(pool, filler, Vec::new()).await;
        array.asked_for("filling a pool", filled);
    }
}

async fn read_all(books: &Books, hosts: &[Rc<Host>]) {
    for number in 0..books.units.len() {
        for host in hosts {
            host.read_wide(number).await;
        }
        hosts[0].read_field(number).await;
    }
}

/// All hosts at once, each a few commands; and at times somebody who looks after volumes.
async fn round(array: &Rc<Array>, hosts: &[Rc<Host>], prng: &mut Prng) {
    let mut ends = Vec::new();
    let world = &array.world;
    for host in hosts {
        let host = Rc::clone(host);
        ends.push(small_pool::begin(world, async move { host.work().await }));
    }
    if prng.chance(1, 3) {
        array.administer(prng).await;
    }
    for end in ends {
        // Dropped with the boot only.
        let _ = end.await;
    }
}

/// What was to be kept is there, and nothing else.
async fn find_fence(world: &SimWorld, books: &Books, number: usize, host: &Host) {
    let unit = &books.units[number];
    let before = unit.fence.borrow().after_a_restart();
    let called = unit.calling.take();
    unit.turns.set(0);
    unit.upsets.set(0);
    let after = called.and_then(|(by, call)| unit.fence.borrow().after(by, call));
    let after = after.map(|fence| fence.after_a_restart());
    let found = host.read_fence(number).await;
    let is_it = |fence: &Fence| Some(fence.shown()) == found;
    match [Some(before), after].into_iter().flatten().find(is_it) {
        Some(fence) => drop(unit.fence.replace(fence)),
        None => books.fail(
            world,
            format!(
                "reservations of {} after a restart: {found:?}, of {:?} and {called:?}",
                unit.name,
                unit.fence.borrow()
            ),
        ),
    }
}

/// All volumes go, and with them all tokens: nothing may be left, or be wrong on the drives.
async fn end(array: &Array) {
    for unit in &array.books.units {
        array.delete(unit).await;
    }
    array.check_no_tokens().await;
    for pool in &array.pools {
        for (info, _) in pool.transits() {
            array.expect("a copy", pool.call_off_arrival(info.uuid).await);
        }
    }
    array.delete_fillers().await;
    for pool in &array.pools {
        let info = pool.info();
        if info.mapped_bytes + info.promised_bytes + info.provisioned_bytes != 0 {
            array.fail(format!("an empty pool has pages: {info:?}"));
        }
    }
    if let Err(what) = array.front.end().await {
        array.fail(what);
    }
    if !array.books.victims.is_empty() {
        // What is wrong there is rightly so.
        return;
    }
    for media in &array.books.media {
        let drives = small_pool::drives(&array.world, media);
        match fsck::check(&array.world, drives, Options { deep: true }).await {
            Ok(report) => {
                let mut bad = report.findings.iter();
                if let Some(bad) = bad.find(|finding| finding.severity > Severity::Note) {
                    array.fail(format!("fsck: {}: {}", bad.place, bad.text));
                }
            }
            Err(error) => array.fail(format!("fsck: {error}")),
        }
    }
}
