//! Runs with hosts that speak iSCSI over a network, by several paths, to the array's own front and
//! connections.
//!
//! Sessions are lost, reinstated, dropped and refused; commands are aborted; wires are cut, slow or
//! dead without a word; the power goes at any poll.
//!
//! - [`crate::wire`]: the network, logins and sessions.
//! - `slot`: one way of a host to a target, with one session after the other. `host`: what hosts do.
//! - `array`: control plane, front and shards of one boot. `admin`: who has the control plane change
//!   who may log in. `access`: what the books know of that. `limits`: limits of volumes.
//!
//! What is checked:
//! - Each sector has an order of all that was done to it that explains every answer
//!   ([`crate::history`]), over power cuts, too. What a lost session had under way is over when its
//!   host has logged in again, when it may not log in any more, or when it was aborted: later it
//!   must not happen.
//! - Whoever may log in has a session in bounded time, and no one else has one. Who may is what
//!   administrators were told, and is so after each start. A change counts at one instant: what one
//!   login has shown stays so, over power cuts, too.
//! - What sessions held is free again when they have ended: there are as many permits as there are
//!   ways.
//! - A peer without a word is noticed. All commands are answered while their session lives.

mod access;
mod admin;
mod array;
mod host;
mod limits;
mod slot;

use crate::config::{Theme, themes};
use crate::control::Records;
use crate::damage;
use crate::history::{Deed, History};
use crate::scenario::{Listener, Verdict};
use crate::seed::Seed;
use crate::small_pool::{self, Life};
use access::{Access, ExportRules, HostRules, Rules};
use array::{Array, PORTALS};
use base::{Prng, SECTOR_BYTES};
use engine::{Lane, PoolSpec, Provisioning, VolumeSpec, World};
use host::Host;
use iscsi::chap::{Credential, Secret};
use limits::Limited;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::{Rc, Weak};
use world_sim::{Media, SimWorld};

/// Of a drive.
const DRIVE_BYTES: u64 = 8 << 20;

/// Among so many seeds one has such a run.
const ONE_OF: u64 = 4;

/// How often hosts log out and in again at the end: more often than there are handles for sessions
/// that do not come back.
const RETURNS: usize = 6;

/// Sectors of a volume that hosts use.
const SECTORS: u64 = 160;

/// A logical unit.
struct Unit {
    name: String,
    pool: usize,
    target: usize,
    lun: u16,
    histories: RefCell<Vec<History>>,
    /// What was last written to each sector, as far as its writers know.
    last: RefCell<Vec<u64>>,
    limited: Limited,
}

impl Unit {
    fn last_written(&self, sector: u64) -> u64 {
        self.last.borrow()[sector as usize]
    }
}

/// A host as an administrator describes it.
struct Described {
    name: String,
    initiator: String,
    has_secret: bool,
    is_in_group: bool,
    /// Its sessions with each target: ISID and portal.
    ways: Vec<(u8, usize)>,
}

/// What a host proves by its secret of this number.
fn credential(host: usize, number: u64) -> Credential {
    let secret = format!("secret {number} of host {host}");
    let Some(secret) = Secret::new(secret.as_bytes()) else {
        unreachable!("it is long enough");
    };
    let name = format!("user{host}");
    Credential { name, secret }
}

/// What outlives boots.
struct Books {
    specs: Vec<PoolSpec>,
    media: Vec<Vec<Rc<Media>>>,
    failure: RefCell<Option<String>>,
    units: Vec<Unit>,
    targets: usize,
    hosts: Vec<Described>,
    records: Records,
    /// Who may log in where.
    access: RefCell<Access>,
    /// What each export says when nobody is kept out.
    usual: Vec<ExportRules>,
    rounds_left: Cell<u64>,
    /// Counts beginnings and ends.
    clock: Cell<u64>,
    operations: Cell<u64>,
    present: RefCell<Vec<Weak<Host>>>,
    /// Drives that are slow, or fail.
    victims: Vec<Rc<Media>>,
}

/// Whether a seed has such a run beside its other one.
pub fn is_drawn(seed: &Prng) -> bool {
    seed.stream("paths").chance(1, ONE_OF)
}

/// Runs it to the end, or to the first thing that is wrong.
pub fn run(
    seed: &Seed,
    operations: Option<u64>,
    listener: Option<Listener>,
    bug: Option<&str>,
) -> Verdict {
    let prng = &mut seed.stream("paths config");
    let is_wished = themes(seed).contains(&Theme::Paths);
    let mut books = Books::draw(prng, operations, is_wished);
    if prng.chance(1, 2) {
        books.victims = small_pool::some_of_each(prng, &books.specs, &books.media);
    }
    let books = Rc::new(books);
    let life = Life {
        name: "paths",
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
        let drawn = names.map(|name| small_pool::draw(prng, name, DRIVE_BYTES));
        let (specs, media) = drawn.unzip();
        let targets = prng.between(1, 2) as usize;
        let units = prng.between(1, 3) as usize;
        // Each target shows something.
        let targets = targets.min(units);
        let unit = |number: usize| Unit {
            name: format!("v{number}"),
            // A target has volumes of both pools where it has two.
            pool: (number + number / 2) % pools,
            target: number % targets,
            lun: number as u16,
            histories: RefCell::new(vec![History::new(); SECTORS as usize]),
            last: RefCell::new(vec![0; SECTORS as usize]),
            limited: Limited::default(),
        };
        let hosts = prng.between(1, 3);
        let hosts: Vec<Described> = (0..hosts).map(|number| describe(prng, number)).collect();
        let access = &mut prng.stream("access");
        let usual = (0..targets).map(|_| draw_export(access, &hosts)).collect();
        let undescribed = Rules::undescribed(targets, &hosts);
        let rounds = prng.between(4, if is_wished { 40 } else { 20 });
        Books {
            specs,
            media,
            failure: RefCell::default(),
            units: (0..units).map(unit).collect(),
            targets,
            hosts,
            records: Records::default(),
            access: RefCell::new(Access::new(undescribed)),
            usual,
            rounds_left: Cell::new(operations.map_or(rounds, |most| most.min(rounds))),
            clock: Cell::new(0),
            operations: Cell::new(0),
            present: RefCell::default(),
            victims: Vec::new(),
        }
    }

    fn fail(&self, world: &SimWorld, what: impl Into<String>) {
        let what = what.into();
        world.note(|| format!("WRONG: {what}"));
        self.failure.borrow_mut().get_or_insert(what);
    }

    /// The next instant.
    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// How many sessions there may be.
    fn ways(&self) -> usize {
        self.targets * self.hosts.iter().map(|host| host.ways.len()).sum::<usize>()
    }

    /// The rules when nobody is kept out, with the secrets that hosts have now.
    fn usual(&self, now: &Rules) -> Rules {
        let host = |host: &HostRules| HostRules {
            is_away: false,
            secret: host.secret,
        };
        Rules {
            exports: self.usual.iter().cloned().map(Some).collect(),
            group: in_group(&self.hosts),
            hosts: now.hosts.iter().map(host).collect(),
        }
    }

    /// Each host at each target, by each portal.
    fn all_ways(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let hosts = 0..self.hosts.len();
        hosts.flat_map(move |host| {
            let targets = 0..self.targets;
            targets.flat_map(move |target| (0..PORTALS.len()).map(move |at| (host, target, at)))
        })
    }

    fn all_hosts(&self) -> Vec<Rc<Host>> {
        let present = self.present.borrow();
        present.iter().filter_map(Weak::upgrade).collect()
    }

    /// What a command does to each of these sectors begins. Nothing, where too much is remembered
    /// already.
    fn begin(&self, unit: usize, run: &Range<u64>, deeds: &[Deed]) -> Option<Vec<(u64, usize)>> {
        let mut histories = self.units[unit].histories.borrow_mut();
        let sectors = run.start as usize..run.end as usize;
        if histories[sectors].iter().any(History::is_long) {
            return None;
        }
        let now = self.tick();
        let begin = |(sector, deed): (u64, &Deed)| {
            let number = histories[sector as usize].begin(deed.clone(), now);
            (sector, number)
        };
        Some(run.clone().zip(deeds).map(begin).collect())
    }

    /// It has happened.
    fn end(&self, unit: usize, begun: &[(u64, usize)], what: impl Fn(usize) -> Deed) {
        let now = self.tick();
        let unit = &self.units[unit];
        let mut last = unit.last.borrow_mut();
        for (nth, (sector, number)) in begun.iter().enumerate() {
            let deed = what(nth);
            if let Deed::Read(value) | Deed::Write(value) | Deed::Exchanged { new: value, .. } =
                deed
            {
                last[*sector as usize] = value;
            }
            unit.histories.borrow_mut()[*sector as usize].end(*number, deed, now);
        }
    }

    /// None of it has happened.
    fn refuse(&self, unit: usize, begun: &[(u64, usize)]) {
        let mut histories = self.units[unit].histories.borrow_mut();
        for (sector, number) in begun {
            histories[*sector as usize].refuse(*number);
        }
    }

    /// It may have happened, but not later than at this instant.
    fn abandon(&self, unit: usize, begun: &[(u64, usize)], at: u64) {
        let mut histories = self.units[unit].histories.borrow_mut();
        for (sector, number) in begun {
            histories[*sector as usize].abandon(*number, at);
        }
    }

    /// Nothing is under way: all answers have an explanation.
    fn settle(&self, world: &SimWorld) {
        let now = self.tick();
        for unit in &self.units {
            for (sector, history) in unit.histories.borrow_mut().iter_mut().enumerate() {
                if let Err(why) = history.settle(now) {
                    self.fail(world, format!("{}, sector {sector}: {why}", unit.name));
                }
            }
        }
    }
}

fn describe(prng: &mut Prng, number: u64) -> Described {
    let has_secret = prng.chance(1, 2);
    let ways = match prng.below(3) {
        0 => vec![(1, 0)],
        // The same session identifier by two portal groups, and two by one.
        1 => vec![(1, 0), (1, 1)],
        _ => vec![(1, 0), (2, 0)],
    };
    Described {
        name: format!("host{number}"),
        initiator: format!("iqn.2026-11.sim:p{number}"),
        has_secret,
        is_in_group: prng.stream(&format!("group of {number}")).chance(1, 2),
        ways,
    }
}

/// An export that admits all hosts: by their names, by their group, or both.
fn draw_export(prng: &mut Prng, hosts: &[Described]) -> ExportRules {
    let hosts = hosts.iter().enumerate();
    let by_name = hosts.filter(|(_, host)| !host.is_in_group || prng.chance(1, 3));
    ExportRules {
        hosts: by_name.map(|(number, _)| number).collect(),
        admits_group: true,
        portals: None,
    }
}

impl Rules {
    /// Hosts are described, and no exports.
    fn undescribed(targets: usize, hosts: &[Described]) -> Rules {
        let host = |host: &Described| HostRules {
            is_away: false,
            secret: host.has_secret.then_some(0),
        };
        Rules {
            exports: vec![None; targets],
            group: in_group(hosts),
            hosts: hosts.iter().map(host).collect(),
        }
    }
}

fn in_group(hosts: &[Described]) -> BTreeSet<usize> {
    let hosts = hosts.iter().enumerate();
    let members = hosts.filter(|(_, host)| host.is_in_group);
    members.map(|(number, _)| number).collect()
}

/// What runs inside one boot.
async fn boot(world: SimWorld, books: Rc<Books>, (first, last): (bool, bool)) {
    let mut prng = world.prng("boot");
    let Some(pools) = open(&world, &books, first).await else {
        return;
    };
    disturb_drives(&books, &mut prng, (first, last));
    if first {
        make_volumes(&world, &books, &pools).await;
    }
    books.settle(&world);
    let array = match Array::start(&world, &books, (pools, first)).await {
        Ok(array) => array,
        Err(what) => return books.fail(&world, what),
    };
    if first {
        // This boot is never cut short.
        return array.describe().await;
    }
    array.check_start().await;
    if !last {
        let going = Rc::clone(&books);
        let goes_on = move || going.failure.borrow().is_none();
        small_pool::strike(&world, &books.victims, goes_on);
    }
    let hosts: Vec<Rc<Host>> = (0..books.hosts.len())
        .map(|number| Host::new(number, &array))
        .collect();
    books
        .present
        .replace(hosts.iter().map(Rc::downgrade).collect());
    return_all(&array, &hosts).await;
    while books.failure.borrow().is_none() && books.rounds_left.get() > 0 {
        round(&array, &hosts, &mut prng).await;
        books.settle(&world);
        array.check_access();
        books.rounds_left.set(books.rounds_left.get() - 1);
    }
    if books.failure.borrow().is_none() {
        end(&array, &hosts).await;
    }
}

/// Hosts come back after a cut, in the middle of a change, too.
async fn return_all(array: &Array, hosts: &[Rc<Host>]) {
    if !array.is_as_usual() {
        for host in hosts {
            host.look_in().await;
        }
        array.admit_all().await;
    }
    // What the cut has left is looked at before anything covers it.
    read_all(&array.books, hosts).await;
    array.books.settle(&array.world);
}

/// Everything is looked at once more; hosts leave and come back, and the array stops.
async fn end(array: &Array, hosts: &[Rc<Host>]) {
    read_all(&array.books, hosts).await;
    array.books.settle(&array.world);
    for host in hosts.iter().cycle().take(RETURNS * hosts.len()) {
        host.leave_and_return().await;
    }
    array.stop().await;
}

/// The pools, which are made at the first boot.
async fn open(world: &SimWorld, books: &Books, first: bool) -> Option<Vec<Lane<SimWorld>>> {
    let mut pools = Vec::new();
    for (spec, media) in books.specs.iter().zip(&books.media) {
        match small_pool::open(world, spec, media, first).await {
            Ok(pool) => pools.push(pool),
            Err(error) => {
                books.fail(world, format!("opening a pool: {error}"));
                return None;
            }
        }
    }
    Some(pools)
}

/// How drives are in this boot.
fn disturb_drives(books: &Books, prng: &mut Prng, (first, last): (bool, bool)) {
    // Where drives are slow, much ends while commands run.
    let slowdown = if last || first {
        1
    } else {
        *prng.pick(&[1, 10, 40])
    };
    for media in books.media.iter().flatten() {
        media.with_faults(|faults| faults.slowdown = slowdown);
    }
    if last {
        damage::mend(&books.victims);
    }
}

async fn make_volumes(world: &SimWorld, books: &Books, pools: &[Lane<SimWorld>]) {
    for unit in &books.units {
        let made = pools[unit.pool].create_volume(VolumeSpec {
            name: unit.name.clone(),
            size_bytes: SECTORS * SECTOR_BYTES as u64,
            provisioning: Provisioning::Thin,
        });
        if let Err(error) = made.await {
            books.fail(world, format!("making a volume: {error}"));
        }
    }
}

async fn read_all(books: &Books, hosts: &[Rc<Host>]) {
    for number in 0..books.units.len() {
        for host in hosts {
            host.read_all(number).await;
        }
    }
}

/// All hosts at once, each a few things; and at times somebody who administers access.
async fn round(array: &Rc<Array>, hosts: &[Rc<Host>], prng: &mut Prng) {
    let mut ends = Vec::new();
    for host in hosts {
        let host = Rc::clone(host);
        ends.push(small_pool::begin(
            &array.world,
            async move { host.work().await },
        ));
    }
    if prng.chance(1, 3) {
        array.administer(prng).await;
    }
    array.limit_now_and_then().await;
    for end in ends {
        // Dropped with the boot only.
        let _ = end.await;
    }
}
