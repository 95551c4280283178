//! Runs that move volumes between two pools, while clients use them and power fails.
//!
//! Both pools are in one world, with drives that lose nothing that was flushed; what drives
//! may do beside that is the business of the other runs. The checker is theirs. A boot may
//! come up with one pool only: a volume that is served then must be the newest.
//!
//! The array's control plane moves them: by jobs, which go on after a crash, and step by step, so
//! that time passes between the steps. It settles what a crash has left.

use crate::answers::{self, Asked};
use crate::config::patience;
use crate::control::{PORTAL, Records, Start, end_of_job, settle};
use crate::damage;
use crate::oracle::volume::Change;
use crate::oracle::{Oracle, Violation, WriteEnd};
use crate::pattern::{self, SectorPlace};
use crate::scenario::{Listener, Verdict};
use crate::seed::Seed;
use crate::shards::Shards;
use crate::small_pool::{self, Life};
use api::JobState;
use array::control::jobs::NewMove;
use array::control::{ArrayError, ControlPlane, CopyPlace, NewPlace, PlacedVolume};
use array::offload::Offload;
use base::{Prng, SECTOR_BYTES, VolumeOffset};
use engine::fsck::{self, Options, Severity};
use engine::pool::OtherPool;
use engine::pool::maintenance::health;
use engine::{
    IoError, IoErrorKind, Lane, NamedDrive, PoolError, PoolErrorKind, PoolSpec, Provisioning,
    Volume, VolumeSpec, World,
};
use futures_util::future::join;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
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
    /// Of the first pool, and of the second.
    shards: [usize; 2],
    records: Records,
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
    control: Arc<ControlPlane<SimWorld>>,
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
    seed: &Seed,
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
            shards: [0, prng.stream("shards").below(2) as usize],
            records: Records::default(),
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
    let control = match begin(&world, &books, &pools, first) {
        Ok(control) => control,
        Err(what) => return books.fail(what),
    };
    let failing = Rc::clone(&books);
    let bound = patience(&health::Limits::default(), !books.victims.is_empty());
    let session = Rc::new(Session {
        asked: Asked::new(&world, bound, &books.answers, move |what| {
            failing.fail(what)
        }),
        world,
        books,
        pools,
        control,
        handles: RefCell::default(),
        busy: Cell::new(0),
    });
    if first {
        return session.make_volumes(&mut prng).await;
    }
    let settled = settle(&session.control).await.map(drop);
    session.done("settling", settled);
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

/// The control plane of a boot, over the pools that came up.
fn begin(
    world: &SimWorld,
    books: &Books,
    pools: &[Lane<SimWorld>],
    first: bool,
) -> Result<Arc<ControlPlane<SimWorld>>, String> {
    let shards = Shards::new(world, 1 + books.shards[1]);
    let mut homes = BTreeMap::new();
    for (spec, shard) in books.specs.iter().zip(books.shards) {
        let mut open = pools.iter().filter(|pool| pool.name() == spec.name);
        if let Some(pool) = open.next() {
            shards.states[shard].add_pool(pool.clone());
            homes.insert(spec.name.clone(), vec![shard]);
        }
    }
    let start = Start::new(world, &books.records, first);
    let site = start.settings((&books.specs, &books.media), &[PORTAL.into()])?;
    let offload = Arc::new(Offload::new(None, Default::default()));
    let is_open: Vec<bool> = books
        .specs
        .iter()
        .map(|spec| homes.contains_key(&spec.name))
        .collect();
    let control = start.control_plane((&shards, homes), offload, &site);
    for (spec, is_open) in books.specs.iter().zip(is_open) {
        if !is_open {
            control.pool_is_closed(&spec.name, vec!["its drives are away".to_owned()], None);
        }
    }
    Ok(control)
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

    /// The same of what the control plane does.
    fn done<T>(&self, what: &str, outcome: Result<T, ArrayError>) -> Option<T> {
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
            self.resume().await;
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

    /// Goes on with the moves that a crash has interrupted, to their ends.
    async fn resume(&self) {
        let left = self.control.jobs().pending();
        self.control.resume_jobs();
        for job in left {
            self.await_job(job.id, false).await;
        }
    }

    /// Waits for the end of a job, which may only have failed or ended early where it was
    /// `cancelled`.
    async fn await_job(&self, id: u64, cancelled: bool) {
        let ended = end_of_job(&self.control, id).await;
        self.world.note(|| format!("job {id} ends: {ended:?}"));
        let is_done = ended.is_some_and(|job| job.state == JobState::Done);
        if !is_done && !cancelled {
            self.fail(format!("job {id} does not move its volume"));
        }
        if let Some((info, transit)) = self.pools.iter().flat_map(|pool| pool.transits()).next() {
            let (name, stage) = (info.name, transit.stage);
            self.fail(format!("{name} is {stage:?} after job {id}"));
        }
    }

    async fn move_one(&self, prng: &mut Prng) {
        let volumes = self.books.volumes.borrow().clone();
        let (id, name) = prng.pick(&volumes);
        let Some(from) = self.place(name) else {
            return self.fail(format!("volume {name} is in no pool"));
        };
        self.follow(*id, name, from);
        let b = &self.pools[1 - from];
        let to = NewPlace {
            pool: b.name().to_owned(),
            leave_snapshots: false,
            // A drive may be away that is struck.
            force: true,
        };
        self.world
            .note(|| format!("move of {name} to {} begins", to.pool));
        let rate = prng.chance(1, 4).then(|| prng.between(8 << 20, 64 << 20));
        let cancels = prng.chance(1, 6).then(|| prng.below(3_000));
        let has_moved = match prng.chance(1, 2) {
            true => {
                let order = NewMove {
                    volume: name.clone(),
                    to,
                    rate_bytes_per_s: rate,
                };
                self.move_by_job(order, cancels).await;
                b.volume(name).is_some()
            }
            false => {
                self.move_by_steps((name, from), to, (rate, cancels, &mut *prng))
                    .await
            }
        };
        // Clients go on with what they have, for a while or for good.
        if has_moved && prng.chance(1, 2) {
            self.open_anew(*id, name, b);
        }
        self.world
            .note(|| format!("move of {name} to {} ends", b.name()));
    }

    fn open_anew(&self, id: u64, name: &str, pool: &Lane<SimWorld>) {
        if let Some(there) = pool.volume(name) {
            self.handles.borrow_mut().insert(id, there);
        }
    }

    /// Before a volume moves on: what was opened where it was leads to another shard, and not from
    /// there to a third place. Units are shown their new place by then.
    fn follow(&self, id: u64, name: &str, place: usize) {
        let [a, b] = self.books.shards;
        if let Some(there) = self.pools[place].volume(name).filter(|_| a != b) {
            self.handles.borrow_mut().insert(id, there);
        }
    }

    async fn move_by_job(&self, order: NewMove, cancels: Option<u64>) {
        let begun = self.control.move_volume(order).await;
        let Some(job) = self.done("a job", begun) else {
            return;
        };
        if let Some(after_us) = cancels {
            self.world.sleep(Duration::from_micros(after_us)).await;
            // It may have ended: then it is forgotten.
            self.done(
                "calling off a job",
                self.control.jobs().cancel(job.id).await,
            );
        }
        self.await_job(job.id, cancels.is_some()).await;
    }

    /// Whether it has moved.
    async fn move_by_steps(
        &self,
        (name, from): (&str, usize),
        to: NewPlace,
        (rate, cancels, prng): (Option<u64>, Option<u64>, &mut Prng),
    ) -> bool {
        let control = &self.control;
        // The server moves nothing without a job, and one that begins puts the ends of those before
        // it on record. A start would take this copy for theirs.
        self.done("the record", control.jobs().save().await);
        let checked = control.check_move(name, &to).await;
        let Some(there) = self.done("looking at a move", checked) else {
            return false;
        };
        let copy = control.begin_copy(&there, &to.pool).await;
        let Some(copy) = self.done("a copy", copy) else {
            return false;
        };
        let copying = control.copy_volume(&there, &copy, rate);
        let (copied, ()) = join(copying, self.cancel(&there, cancels)).await;
        if let Err(why) = copied {
            if cancels.is_none() {
                self.fail(format!("copying {name}: {why}"));
            }
            self.call_off(&there, &to.pool).await;
            return false;
        }
        // Now and then what is mirrored goes on for a while.
        let pause = Duration::from_micros(prng.below(1_000));
        self.world.sleep(pause).await;
        let refuses = prng.chance(1, 8);
        let is_switched = match refuses {
            true => self.is_refused(&there, from).await,
            false => self.is_handed_over(&there, &copy, cancels.is_some()).await,
        };
        if !is_switched {
            self.call_off(&there, &to.pool).await;
        }
        is_switched
    }

    async fn is_handed_over(&self, there: &PlacedVolume, copy: &CopyPlace, may_fail: bool) -> bool {
        let stood = self.control.hand_over(there, copy).await;
        let is_switched = stood.is_ok();
        if !may_fail {
            self.done("the switch", stood);
        }
        is_switched
    }

    /// The switch where the other pool does not take what arrives. No pool does that when it is
    /// asked to, so the engine is asked and not the control plane.
    async fn is_refused(&self, there: &PlacedVolume, from: usize) -> bool {
        let (a, b) = (&self.pools[from], self.pools[1 - from].info());
        let other = OtherPool {
            uuid: b.uuid,
            name: b.name,
        };
        let arrive = async |_, _| {
            Err(PoolError {
                kind: PoolErrorKind::Failed,
                context: "not now".to_owned(),
            })
        };
        let stood = a.hand_over(there.info.uuid, &other, arrive).await;
        if stood.is_ok() {
            let name = &there.info.name;
            self.fail(format!("{name} has moved and did not arrive"));
        }
        false
    }

    async fn cancel(&self, there: &PlacedVolume, after_us: Option<u64>) {
        let Some(after_us) = after_us else { return };
        self.world.sleep(Duration::from_micros(after_us)).await;
        self.done("ending a copy", self.control.stop_copy(there).await);
    }

    async fn call_off(&self, there: &PlacedVolume, to: &str) {
        self.done("calling off", self.control.stop_copy(there).await);
        let dropped = self.control.drop_copy(there.info.uuid, to).await;
        self.done("dropping a copy", dropped);
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
