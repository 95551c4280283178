//! Runs that move volumes between two pools, while clients use them and power fails.
//!
//! Both pools are in one world, with drives that lose nothing that was flushed; what drives
//! may do beside that is the business of the other runs. The checker is theirs. A boot may
//! come up with one pool only: a volume that is served then must be the newest.

use crate::answers::{self, Asked};
use crate::config::patience;
use crate::damage;
use crate::oracle::volume::Change;
use crate::oracle::{Oracle, Violation, WriteEnd};
use crate::pattern::{self, SectorPlace};
use crate::scenario::{Listener, Verdict};
use crate::small_pool::{self, Life};
use crate::transit;
use base::{Prng, SECTOR_BYTES, VolumeOffset};
use engine::fsck::{self, Options, Severity};
use engine::pool::maintenance::health;
use engine::volume::{Mirror, VolumeIo};
use engine::{
    IoError, IoErrorKind, Lane, NamedDrive, PoolError, PoolErrorKind, PoolSpec, Provisioning,
    Volume, VolumeSpec, World,
};
use futures_util::future::join;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, SimWorld};

const SECTOR: u64 = SECTOR_BYTES as u64;

/// Of a drive: both pools have room for all volumes.
const DRIVE_BYTES: u64 = 8 << 20;

/// Among so many seeds one has such a run.
const ONE_OF: u64 = 4;

/// What outlives boots.
struct Books {
    specs: [PoolSpec; 2],
    media: [Vec<Rc<Media>>; 2],
    oracle: RefCell<Oracle>,
    /// Volumes of the run: identity in the run, name.
    volumes: RefCell<Vec<(u64, String)>>,
    operations_left: Cell<u64>,
    clients: u64,
    victims: Vec<Rc<Media>>,
    answers: Rc<RefCell<answers::Counts>>,
    failure: RefCell<Option<String>>,
}

/// One boot.
struct Session {
    asked: Asked,
    world: SimWorld,
    books: Rc<Books>,
    /// Those that came up.
    pools: Vec<Lane<SimWorld>>,
    /// Where clients find each volume.
    handles: RefCell<BTreeMap<u64, Volume<SimWorld>>>,
    /// Clients that are at work.
    busy: Cell<u64>,
}

/// Whether a seed has such a run beside its other one.
pub fn is_drawn(seed: &Prng) -> bool {
    seed.stream("moves").chance(1, ONE_OF)
}

/// Runs it to the end, or to the first thing that is wrong.
pub fn run(
    seed: &Prng,
    operations: Option<u64>,
    listener: Option<Listener>,
    bug: Option<&str>,
) -> Verdict {
    let prng = &mut seed.stream("moves config");
    let mut books = Books::draw(prng, operations);
    books.victims = small_pool::victims(seed, &books.specs, &books.media);
    let books = Rc::new(books);
    let all = books.operations_left.get();
    let life = Life {
        name: "moves",
        media: books.media.concat(),
        failure: &books.failure,
    };
    let mut verdict = life.live(
        (seed, prng),
        (listener, bug),
        || books.operations_left.get() == 0,
        |world, plan| boot(world, Rc::clone(&books), plan),
        || books.oracle.borrow_mut().power_cut(),
    );
    verdict.operations = all - books.operations_left.get();
    verdict.answers = books.answers.take();
    verdict
}

impl Books {
    fn draw(prng: &mut Prng, operations: Option<u64>) -> Books {
        let mut draw = |name: &str| small_pool::draw(prng, name, DRIVE_BYTES);
        let ((a, on_a), (b, on_b)) = (draw("a"), draw("b"));
        let drawn = prng.between(100, 600);
        Books {
            specs: [a, b],
            media: [on_a, on_b],
            oracle: RefCell::default(),
            volumes: RefCell::default(),
            operations_left: Cell::new(operations.map_or(drawn, |most| most.min(drawn))),
            clients: prng.between(1, 6),
            victims: Vec::new(),
            answers: Rc::default(),
            failure: RefCell::default(),
        }
    }

    fn fail(&self, what: impl Into<String>) {
        self.failure.borrow_mut().get_or_insert(what.into());
    }

    fn drives(&self, world: &SimWorld, pool: usize) -> Vec<NamedDrive<SimWorld>> {
        small_pool::drives(world, &self.media[pool])
    }

    fn take_operation(&self) -> bool {
        let left = self.operations_left.get();
        if left == 0 || self.failure.borrow().is_some() {
            return false;
        }
        self.operations_left.set(left - 1);
        true
    }
}

/// What runs inside one boot.
async fn boot(world: SimWorld, books: Rc<Books>, (first, last): (bool, bool)) {
    let mut prng = world.prng("moves");
    let mut pools = Vec::new();
    let alone = (!first && !last && prng.chance(1, 8)).then(|| prng.below(2) as usize);
    for pool in (0..2).filter(|pool| alone.is_none_or(|alone| alone == *pool)) {
        let (spec, media) = (&books.specs[pool], &books.media[pool]);
        match small_pool::open(&world, spec, media, first).await {
            Ok(pool) => pools.push(pool),
            Err(error) => return books.fail(format!("opening pool {pool}: {error}")),
        }
    }
    let failing = Rc::clone(&books);
    let bound = patience(&health::Limits::default(), !books.victims.is_empty());
    let session = Rc::new(Session {
        asked: Asked::new(&world, bound, &books.answers, move |what| {
            failing.fail(what)
        }),
        world,
        books,
        pools,
        handles: RefCell::default(),
        busy: Cell::new(0),
    });
    if first {
        return session.make_volumes(&mut prng).await;
    }
    if alone.is_none() {
        let settled = transit::settle(&session.world, &session.pools, &mut prng).await;
        session.expect("settling", settled);
    }
    session.find_volumes(alone.is_some());
    if last {
        damage::mend(&session.books.victims);
    } else {
        let going = Rc::downgrade(&session);
        let goes_on = move || {
            let session = going.upgrade();
            session.is_some_and(|session| session.books.failure.borrow().is_none())
        };
        small_pool::strike(&session.world, &session.books.victims, goes_on);
    }
    if last || prng.chance(1, 3) {
        session.verify().await;
    }
    session.work(alone.is_none()).await;
    if last {
        session.end().await;
    }
}

impl Session {
    fn fail(&self, what: impl Into<String>) {
        let what = what.into();
        self.world.note(|| format!("WRONG: {what}"));
        self.books.fail(what);
    }

    fn expect<T>(&self, what: &str, outcome: Result<T, PoolError>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(format!("{what}: {:?}: {error}", error.kind));
                None
            }
        }
    }

    async fn make_volumes(&self, prng: &mut Prng) {
        for n in 0..prng.between(1, 2) {
            let spec = VolumeSpec {
                name: format!("v{n}"),
                size_bytes: prng.between(1, 1024) * SECTOR,
                provisioning: *prng.pick(&[Provisioning::Thin, Provisioning::Thick]),
            };
            let detects = prng.chance(1, 4);
            let id = self.books.oracle.borrow_mut().begin_create(
                &spec.name,
                spec.size_bytes,
                (spec.provisioning, detects),
            );
            let made = self.pools[0].create_volume_as(spec.clone(), detects).await;
            let Some(volume) = self.expect("creating a volume", made) else {
                return;
            };
            let done = Change::Done(volume.info().uuid);
            self.books.oracle.borrow_mut().end_change(id, done);
            self.books.volumes.borrow_mut().push((id, spec.name));
        }
    }

    /// The pool that has the volume called `name`.
    fn place(&self, name: &str) -> Option<usize> {
        self.pools
            .iter()
            .position(|pool| pool.volume(name).is_some())
    }

    fn find_volumes(&self, alone: bool) {
        for (id, name) in self.books.volumes.borrow().iter() {
            let mut found = self.pools.iter().filter_map(|pool| pool.volume(name));
            match (found.next(), found.next()) {
                (Some(volume), None) => {
                    if self.books.oracle.borrow().volume(*id).uuid() != Some(volume.info().uuid) {
                        self.fail(format!("volume {name} has another identity"));
                    }
                    self.handles.borrow_mut().insert(*id, volume);
                }
                (None, _) if alone => {}
                (None, _) => self.fail(format!("volume {name} is in no pool")),
                (Some(_), Some(_)) => self.fail(format!("volume {name} is in both pools")),
            }
        }
    }

    /// Clients, and somebody who moves volumes, side by side.
    async fn work(self: &Rc<Self>, both: bool) {
        let mut ends = Vec::new();
        for client in 0..self.books.clients {
            let (session, prng) = (
                Rc::clone(self),
                self.world.prng(&format!("client {client}")),
            );
            self.busy.set(self.busy.get() + 1);
            ends.push(small_pool::begin(&self.world, async move {
                session.use_volumes(prng).await;
                session.busy.set(session.busy.get() - 1);
            }));
        }
        if both {
            let mut prng = self.world.prng("mover");
            while self.busy.get() > 0 && self.books.failure.borrow().is_none() {
                self.move_one(&mut prng).await;
                let pause = Duration::from_micros(prng.below(2_000));
                self.world.sleep(pause).await;
            }
        }
        for end in ends {
            if end.await.is_err() {
                self.fail("a client was dropped before its end");
            }
        }
    }

    async fn move_one(&self, prng: &mut Prng) {
        let volumes = self.books.volumes.borrow().clone();
        let (id, name) = prng.pick(&volumes);
        let Some(from) = self.place(name) else {
            return self.fail(format!("volume {name} is in no pool"));
        };
        let (a, b) = (&self.pools[from], &self.pools[1 - from]);
        let Some(there) = a.volume(name) else { return };
        let uuid = there.info().uuid;
        self.world
            .note(|| format!("move of {name} to {} begins", b.name()));
        let (info, properties, own) = (there.info(), there.properties(), transit::other(a));
        let copy = b.begin_arrival(&info, &properties, &own).await;
        let Some(copy) = self.expect("a copy", copy) else {
            return;
        };
        let to: Rc<dyn VolumeIo> = Rc::new(copy);
        let rate = prng.chance(1, 4).then(|| prng.between(8 << 20, 64 << 20));
        let begun = a.begin_departure(name, to, rate).await;
        let Some((volume, mirror)) = self.expect("a departure", begun) else {
            return;
        };
        let cancels = prng.chance(1, 6).then(|| prng.below(3_000));
        let copying = volume.copy_to(&mirror);
        let (copied, ()) = join(copying, self.cancel(&mirror, cancels)).await;
        if let Err(why) = copied {
            if cancels.is_none() {
                self.fail(format!("copying {name}: {why}"));
            }
            self.call_off(a, b, uuid).await;
            return;
        }
        // Now and then what is mirrored goes on for a while.
        let pause = Duration::from_micros(prng.below(1_000));
        self.world.sleep(pause).await;
        let refuses = prng.chance(1, 8);
        let arrive = async |info, properties| match refuses {
            true => Err(PoolError {
                kind: PoolErrorKind::Failed,
                context: "not now".to_owned(),
            }),
            false => b.arrive(&info, &properties).await,
        };
        let stood = a.hand_over(uuid, &transit::other(b), arrive).await;
        if refuses || (cancels.is_some() && stood.is_err()) {
            if stood.is_ok() {
                self.fail(format!("{name} has moved and did not arrive"));
            }
            self.call_off(a, b, uuid).await;
            return;
        }
        self.expect("the switch", stood);
        // Clients go on with what they have, for a while or for good.
        if prng.chance(1, 2)
            && let Some(there) = b.volume(name)
        {
            self.handles.borrow_mut().insert(*id, there);
        }
        self.expect("letting go", a.end_departure(uuid).await);
        self.expect("settling there", b.end_arrival(uuid).await);
        self.world
            .note(|| format!("move of {name} to {} ends", b.name()));
    }

    async fn cancel(&self, mirror: &Mirror, after_us: Option<u64>) {
        let Some(after_us) = after_us else { return };
        self.world.sleep(Duration::from_micros(after_us)).await;
        mirror.fail("called off".to_owned());
    }

    async fn call_off(&self, a: &Lane<SimWorld>, b: &Lane<SimWorld>, uuid: base::Uuid) {
        self.expect("calling off", a.call_off_departure(uuid).await);
        self.expect("dropping a copy", b.call_off_arrival(uuid).await);
    }

    /// A client: reads, writes and clears until nothing is left to do.
    async fn use_volumes(&self, mut prng: Prng) {
        while self.books.take_operation() {
            if prng.chance(1, 3) {
                let rest = Duration::from_nanos(prng.below(400_000));
                self.world.sleep(rest).await;
            }
            let handles: Vec<_> = {
                let handles = self.handles.borrow();
                handles.iter().map(|(id, one)| (*id, one.clone())).collect()
            };
            if handles.is_empty() {
                continue;
            }
            let (id, volume) = prng.pick(&handles).clone();
            let end = self.books.oracle.borrow().volume(id).sectors();
            let start = match prng.chance(1, 2) {
                true => prng.below(end),
                false => prng.below(4) * end / 4,
            };
            let sectors = start..start + prng.between(1, (end - start).min(64));
            match prng.below(8) {
                0..3 => self.read(id, &volume, sectors).await,
                3 => self.change(id, &volume, sectors, true).await,
                _ => self.change(id, &volume, sectors, false).await,
            }
        }
    }

    /// Nobody uses what may be old; everything else has to go well.
    fn check_error(&self, what: &str, error: &IoError) {
        let both = self.pools.len() == 2;
        if both || error.kind != IoErrorKind::Withheld {
            self.fail(format!("{what}: {:?}: {error}", error.kind));
        }
    }

    async fn read(&self, id: u64, volume: &Volume<SimWorld>, sectors: Range<u64>) {
        let ticket = {
            let mut oracle = self.books.oracle.borrow_mut();
            oracle.begin_read(id, sectors.start)
        };
        let len = ((sectors.end - sectors.start) * SECTOR) as usize;
        let at = VolumeOffset(sectors.start * SECTOR);
        let read = volume.read(at, len);
        let what = format!("of volume {id} sectors {sectors:?}");
        let bytes = match self.asked.ask("read", what, read).await {
            Ok(payload) => Some(payload.to_vec()),
            Err(error) => {
                self.check_error("a read", &error);
                None
            }
        };
        self.world
            .note(|| format!("read of volume {id} sectors {sectors:?} ends"));
        let mut oracle = self.books.oracle.borrow_mut();
        let seen = oracle.end_read(&ticket, bytes.as_deref());
        drop(oracle);
        if let Err(Violation(what)) = seen {
            self.fail(what);
        }
    }

    async fn change(&self, id: u64, volume: &Volume<SimWorld>, sectors: Range<u64>, clears: bool) {
        let ticket = {
            let mut oracle = self.books.oracle.borrow_mut();
            match clears {
                true => oracle.begin_clear(id, sectors.clone()),
                false => oracle.begin_write(id, sectors.clone()),
            }
        };
        let number = ticket.id;
        self.world
            .note(|| format!("write {number} of volume {id} sectors {sectors:?} begins"));
        let len = (sectors.end - sectors.start) * SECTOR;
        let at = VolumeOffset(sectors.start * SECTOR);
        let outcome = match clears {
            true => {
                let what = format!("{number} of volume {id}");
                let cleared = volume.clear(at, len);
                self.asked.ask("clear", what, cleared).await
            }
            false => {
                let mut buf = self.world.buffers().data(len as usize);
                let sector = sectors.start;
                if let Some(bytes) = buf.bytes_mut() {
                    pattern::fill(bytes, number, SectorPlace { volume: id, sector });
                }
                let what = format!("{number} of volume {id}");
                let written = volume.write(at, buf.freeze());
                self.asked.ask("write", what, written).await
            }
        };
        let ended = match outcome {
            Ok(()) => WriteEnd::Acknowledged,
            Err(error) => {
                self.check_error("a write", &error);
                WriteEnd::Failed
            }
        };
        self.world
            .note(|| format!("write {number} ends: {ended:?}"));
        self.books.oracle.borrow_mut().end_write(&ticket, ended);
    }

    async fn verify(&self) {
        let handles = self.handles.borrow().clone();
        for (id, volume) in handles {
            let end = self.books.oracle.borrow().volume(id).sectors();
            for start in (0..end).step_by(128) {
                self.read(id, &volume, start..(start + 128).min(end)).await;
            }
        }
    }

    /// Everything is read once more and deleted; nothing may be left, or be wrong on the
    /// drives.
    async fn end(&self) {
        self.verify().await;
        let volumes = self.books.volumes.borrow().clone();
        for (pool, (_, name)) in volumes
            .iter()
            .filter_map(|one| Some((self.place(&one.1)?, one)))
        {
            self.expect("a deletion", self.pools[pool].delete_volume(name).await);
        }
        for (number, pool) in self.pools.iter().enumerate() {
            for (info, _) in pool.transits() {
                self.expect("a copy", pool.call_off_arrival(info.uuid).await);
            }
            let info = pool.info();
            if info.mapped_bytes + info.promised_bytes + info.provisioned_bytes != 0 {
                self.fail(format!("an empty pool has pages: {info:?}"));
            }
            self.expect("closing", pool.close().await);
            if !self.books.victims.is_empty() {
                // What is wrong there is rightly so.
                continue;
            }
            let drives = self.books.drives(&self.world, number);
            match fsck::check(&self.world, drives, Options { deep: true }).await {
                Ok(report) => {
                    let mut bad = report.findings.iter();
                    if let Some(bad) = bad.find(|finding| finding.severity > Severity::Note) {
                        self.fail(format!("fsck: {}: {}", bad.place, bad.text));
                    }
                }
                Err(error) => self.fail(format!("fsck: {error}")),
            }
        }
    }
}
