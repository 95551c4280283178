//! A run of its own: initiators at one logical unit, with commands that look and change at
//! one instant, reservations, resets and aborts, through power cuts at any poll.
//!
//! Two things are checked. Each register ([`history`]) has an order of all that was done to
//! it that explains every answer, over power cuts, too. And a second opinion on reservations
//! ([`fence`]) says of each command that no change of reservations ran beside whether it had
//! to be refused; after a power cut those that were to be kept are there.
//!
//! Drives lose nothing that was flushed: what else they do is the business of other runs.

mod fence;
mod history;
mod host;

use crate::scenario::{Listener, Verdict};
use crate::small_pool::{self, Life};
use base::{Prng, SECTOR_BYTES};
use engine::{Pool, PoolSpec, Provisioning, VolumeSpec, World};
use fence::{Call, Fence};
use history::History;
use host::Host;
use scsi::{InitiatorPort, LogicalUnit, Target};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use world::sim::{Media, SimWorld};

/// Of a drive.
const DRIVE_BYTES: u64 = 8 << 20;

/// Among so many seeds one has such a run.
const ONE_OF: u64 = 4;

/// Sectors of the volume.
const SECTORS: u64 = 192;

/// A run of sectors that is always read and written as a whole.
struct Register {
    lba: u64,
    sectors: u32,
    history: History,
}

/// What outlives boots.
struct Books {
    spec: PoolSpec,
    media: Vec<Rc<Media>>,
    failure: RefCell<Option<String>>,
    registers: RefCell<Vec<Register>>,
    hosts: u64,
    rounds_left: Cell<u64>,
    /// Counts beginnings and ends.
    clock: Cell<u64>,
    fence: RefCell<Fence>,
    /// A change of reservations that is under way, and by whom.
    calling: Cell<Option<(u64, Call)>>,
    /// Counts beginnings and ends of these.
    turns: Cell<u64>,
    operations: Cell<u64>,
}

/// Whether a seed has such a run beside its other one.
pub fn is_drawn(seed: &Prng) -> bool {
    seed.stream("initiators").chance(1, ONE_OF)
}

/// Runs it to the end, or to the first thing that is wrong.
pub fn run(
    seed: &Prng,
    operations: Option<u64>,
    listener: Option<Listener>,
    bug: Option<&str>,
) -> Verdict {
    let prng = &mut seed.stream("initiators config");
    let books = Rc::new(Books::draw(prng, operations));
    let life = Life {
        name: "initiators",
        media: books.media.clone(),
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
    fn draw(prng: &mut Prng, operations: Option<u64>) -> Books {
        let (spec, media) = small_pool::draw(prng, "p", DRIVE_BYTES);
        let mut registers = Vec::new();
        let mut lba = prng.below(8);
        while lba < SECTORS && registers.len() < 6 {
            let most = *prng.pick(&[1, 4, 16, 24]);
            let sectors = prng.between(1, most).min(SECTORS - lba) as u32;
            registers.push(Register {
                lba,
                sectors,
                history: History::new(),
            });
            lba += u64::from(sectors) + prng.below(12);
        }
        let rounds = prng.between(5, 60);
        Books {
            spec,
            media,
            failure: RefCell::default(),
            registers: RefCell::new(registers),
            hosts: prng.between(2, 4),
            rounds_left: Cell::new(operations.map_or(rounds, |most| most.min(rounds))),
            clock: Cell::new(0),
            fence: RefCell::default(),
            calling: Cell::new(None),
            turns: Cell::new(0),
            operations: Cell::new(0),
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

    /// Nothing is under way: all answers have an explanation.
    fn settle(&self, world: &SimWorld) {
        let now = self.tick();
        for register in self.registers.borrow_mut().iter_mut() {
            if let Err(why) = register.history.settle(now) {
                let what = format!("{} sectors at {}: {why}", register.sectors, register.lba);
                self.fail(world, what);
            }
        }
    }
}

/// What runs inside one boot.
async fn boot(world: SimWorld, books: Rc<Books>, (first, last): (bool, bool)) {
    let drives = small_pool::drives(&world, &books.media);
    let opened = match first {
        true => Pool::create(world.clone(), books.spec.clone(), drives).await,
        false => Pool::open(world.clone(), drives).await,
    };
    let pool = match opened {
        Ok(pool) => pool,
        Err(error) => return books.fail(&world, format!("opening the pool: {error}")),
    };
    if first {
        let spec = VolumeSpec {
            name: "v".to_owned(),
            size_bytes: SECTORS * SECTOR_BYTES as u64,
            provisioning: *world
                .prng("first")
                .pick(&[Provisioning::Thin, Provisioning::Thick]),
        };
        if let Err(error) = pool.create_volume(spec).await {
            return books.fail(&world, format!("making the volume: {error}"));
        }
        // This boot is never cut short.
        return;
    }
    let Some(volume) = pool.volume("v") else {
        return books.fail(&world, "the volume is gone");
    };
    let target = Target::new("iqn.2026-11.dev.ashlar:sim", world.clone());
    match LogicalUnit::new(volume) {
        Ok(unit) => drop(target.map(0, unit)),
        Err(error) => return books.fail(&world, format!("showing the volume: {error}")),
    }
    books.settle(&world);
    let hosts: Vec<Rc<Host>> = (0..books.hosts)
        .map(|number| {
            let port = InitiatorPort::new(&format!("iqn.2026-11.sim:h{number}"), [0; 6]);
            let nexus = target.connect(port, 1);
            let prng = world.prng(&format!("host {number}"));
            Rc::new(Host::new(
                number,
                nexus,
                world.clone(),
                Rc::clone(&books),
                prng,
            ))
        })
        .collect();
    find_fence(&world, &books, &hosts[0]).await;
    // What the cut has left is looked at before anything covers it.
    for host in &hosts {
        host.read_all().await;
    }
    books.settle(&world);
    while books.failure.borrow().is_none() && books.rounds_left.get() > 0 {
        round(&world, &hosts).await;
        books.settle(&world);
        books.rounds_left.set(books.rounds_left.get() - 1);
    }
    if last {
        for host in &hosts {
            host.read_all().await;
        }
        books.settle(&world);
    }
}

/// All hosts at once, each a few commands; and somebody resets the unit.
async fn round(world: &SimWorld, hosts: &[Rc<Host>]) {
    let mut ends = Vec::new();
    for host in hosts {
        let (done, end) = futures_channel::oneshot::channel();
        let host = Rc::clone(host);
        world.spawn(async move {
            host.work().await;
            // Nobody waits any more when the boot was cut.
            let _ = done.send(());
        });
        ends.push(end);
    }
    for end in ends {
        // Dropped with the boot only.
        let _ = end.await;
    }
}

/// What was to be kept is there, and nothing else.
async fn find_fence(world: &SimWorld, books: &Books, host: &Host) {
    let before = books.fence.borrow().after_a_restart();
    let called = books.calling.take();
    books.turns.set(0);
    let after = called.and_then(|(by, call)| books.fence.borrow().after(by, call));
    let after = after.map(|fence| fence.after_a_restart());
    let found = host.read_fence().await;
    let is_it = |fence: &Fence| Some(fence.shown()) == found;
    match [Some(before), after].into_iter().flatten().find(is_it) {
        Some(fence) => drop(books.fence.replace(fence)),
        None => books.fail(
            world,
            format!(
                "reservations after a restart: {found:?}, of {:?} and {called:?}",
                books.fence.borrow()
            ),
        ),
    }
}
