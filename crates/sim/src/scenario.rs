//! One run: a pool is created, used, cut off and opened again until all requests
//! are issued, then looked at from end to end.
//!
//! Each opening is a boot with a world of its own over the same media. A boot ends
//! by a power cut or a kill before any poll, or by itself: then by a clean close,
//! or with everything quiet and the pool open.

use crate::config::Config;
use crate::session::{Books, Session};
use crate::{admin, client, damage, heal};
use base::{BLOCK_BYTES, BufPool, Prng, Time};
use engine::raid::Geometry;
use engine::{NamedDrive, Pool, PoolError, PoolErrorKind, World};
use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use world::sim::{Media, MediaSpec, Order, Outcome, SimDrive, SimWorld, Snapshot};

/// Polls after which a boot that nobody cuts should long have ended.
const POLLS_OF_LIFE: u64 = 20_000_000;

/// Takes lines of the trace.
pub type Listener = Rc<dyn Fn(Time, &str)>;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Hash over everything that happened.
    pub trace_hash: u64,
    /// Times that the pool was created or opened, or was about to be.
    pub boots: u64,
    /// Requests issued.
    pub operations: u64,
    /// How often each rare path was taken.
    pub marks: BTreeMap<&'static str, u64>,
    /// The first thing found wrong.
    pub failure: Option<String>,
}

/// What is known of the pool on the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnMedia {
    Nothing,
    /// Its creation was cut off.
    Perhaps,
    Pool,
}

/// How a boot ends when nothing goes wrong in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The power goes: drives lose what is not flushed.
    PowerCut,
    /// The program goes, the drives stay.
    Kill,
    /// The pool is closed.
    Close,
}

/// What is drawn for one boot.
struct Plan {
    create: bool,
    polls_max: u64,
    operations: u64,
    end: End,
    verify_first: bool,
    /// The end of the run: everything is checked, then deleted.
    last: bool,
}

/// A run under way.
pub struct Scenario {
    seed: Prng,
    prng: Prng,
    books: Rc<Books>,
    media: Vec<Rc<Media>>,
    victims: Vec<Rc<Media>>,
    on_media: Rc<Cell<OnMedia>>,
    listener: Option<Listener>,
    now: Time,
    trace_hash: u64,
    boots: u64,
    marks: BTreeMap<&'static str, u64>,
    snapshots: Vec<(usize, Snapshot)>,
    planted: Option<String>,
}

/// Runs `seed` with what it draws; `operations` replaces its count of requests.
pub fn run(seed: u64, operations: Option<u64>, listener: Option<Listener>) -> Verdict {
    let root = Prng::from_seed(seed);
    let config = Config::draw(&root, operations);
    Scenario::new(root, config, listener).run()
}

impl Scenario {
    /// A run of `config` that has not begun.
    pub fn new(seed: Prng, config: Config, listener: Option<Listener>) -> Self {
        let mut scenario = Scenario {
            prng: seed.stream("boots"),
            books: Rc::new(Books::new(config)),
            media: Vec::new(),
            victims: Vec::new(),
            on_media: Rc::new(Cell::new(OnMedia::Nothing)),
            listener,
            now: Time(0),
            trace_hash: 0,
            boots: 0,
            marks: BTreeMap::new(),
            snapshots: Vec::new(),
            planted: None,
            seed,
        };
        scenario.blank_media();
        scenario
    }

    /// Plants a bug of [`engine::rare::BUGS`] for the run.
    pub fn plant(mut self, bug: &str) -> Scenario {
        self.planted = Some(bug.to_owned());
        self
    }

    fn blank_media(&mut self) {
        self.snapshots.clear();
        let config = &self.books.config;
        let media = |(place, &capacity_bytes): (usize, &u64)| {
            let spec = MediaSpec {
                name: format!("drive{place}"),
                capacity_bytes,
                rotational: place % 2 == 1,
                discards: config.discards,
                ignores_flush: config.drives_ignore_flush,
            };
            let stream = format!("media {place}, boot {}", self.boots);
            let media = Media::new(spec, self.seed.stream(&stream));
            media.with_faults(|faults| faults.slowdown = config.slowdown[place]);
            Rc::new(media)
        };
        self.media = config.drive_bytes.iter().enumerate().map(media).collect();
        let smallest = config.drive_bytes.iter().min().copied().unwrap_or(0);
        let drives = config.group_later.map_or(0, |(_, drives)| drives);
        let later = |index| {
            let spec = MediaSpec {
                name: format!("later{index}"),
                capacity_bytes: smallest,
                rotational: false,
                discards: config.discards,
                ignores_flush: config.drives_ignore_flush,
            };
            let stream = format!("later {index}, boot {}", self.boots);
            Rc::new(Media::new(spec, self.seed.stream(&stream)))
        };
        let later: Vec<Rc<Media>> = (0..drives).map(later).collect();
        if config.damage {
            let all: Vec<Rc<Media>> = self.media.iter().chain(&later).cloned().collect();
            self.victims = damage::victims(&all, config, &mut self.seed.stream("victims"));
        }
        self.books.later.replace(later);
        self.books.later_begun.set(false);
    }

    /// With those of the group that was added, once that has begun.
    fn all_media(&self) -> Vec<Rc<Media>> {
        let later = self.books.later.borrow();
        let later = later.iter().filter(|_| self.books.later_begun.get());
        self.media.iter().chain(later).cloned().collect()
    }

    /// Runs to the end, or to the first thing that is wrong.
    pub fn run(mut self) -> Verdict {
        if let Some(listener) = &self.listener {
            listener(self.now, &format!("{:?}", self.books.config));
        }
        while !self.boot() {}
        Verdict {
            trace_hash: self.trace_hash,
            boots: self.boots,
            operations: self.books.config.operations - self.books.operations_left.get(),
            marks: self.marks,
            failure: self.books.failure.borrow().clone(),
        }
    }

    fn plan(&mut self) -> Plan {
        let prng = &mut self.prng;
        let create = self.on_media.get() == OnMedia::Nothing;
        let last = self.books.operations_left.get() == 0;
        let end = *prng.pick(&[End::PowerCut, End::PowerCut, End::Kill, End::Close]);
        let polls_max = match prng.below(6) {
            // Into recovery, as a rule.
            0 | 1 => prng.between(1, 400),
            2 | 3 => 1 << prng.between(4, 14),
            4 if !create => prng.between(1, 40_000),
            _ => POLLS_OF_LIFE,
        };
        Plan {
            create,
            polls_max: if last { POLLS_OF_LIFE } else { polls_max },
            operations: prng.between(1, 400),
            end: if last { End::Close } else { end },
            verify_first: last || prng.chance(1, 2),
            last,
        }
    }

    /// One boot. True when the run is over.
    fn boot(&mut self) -> bool {
        let plan = self.plan();
        let stream = self.seed.stream(&format!("boot {}", self.boots));
        let world = SimWorld::new(stream, Order::Shuffled, BufPool::new(), self.now);
        if let Some(listener) = self.listener.clone() {
            world.listen(move |now, line| listener(now, line));
        }
        world.plant(self.planted.as_deref());
        self.boots += 1;
        let (end, last, polls_max) = (plan.end, plan.last, plan.polls_max);
        world.note(|| format!("boot {}, up to {polls_max} polls, then {end:?}", self.boots));
        let tasks = Boot {
            world: world.clone(),
            books: Rc::clone(&self.books),
            media: self.all_media(),
            victims: self.victims.clone(),
            on_media: Rc::clone(&self.on_media),
            prng: RefCell::new(world.prng("boot")),
        };
        let outcome = world.run(polls_max, tasks.run(plan));
        let cut = outcome == Ok(Outcome::Cut);
        match outcome {
            Err(deadlock) => self.books.fail(deadlock.to_string()),
            Ok(Outcome::Cut) if polls_max == POLLS_OF_LIFE => {
                self.books
                    .fail(format!("no end after {polls_max} polls: a livelock"));
            }
            Ok(_) => {}
        }
        world.note(|| {
            format!(
                "end of boot {}: {}",
                self.boots,
                if cut { "cut" } else { "done" }
            )
        });
        match end {
            End::PowerCut => world.power_cut(&self.all_media()),
            End::Kill | End::Close => world.power_off(),
        }
        self.books.oracle.borrow_mut().power_cut();
        for (mark, count) in world.marks() {
            *self.marks.entry(mark).or_default() += count;
        }
        if !last
            && self.books.config.beyond
            && self.prng.chance(1, 3)
            && self.books.layout.get().data_start > 0
        {
            self.books.beyond.set(true);
            damage::beyond(&self.media, self.books.layout.get(), &mut self.prng);
        }
        if !last {
            damage::turn_back(&self.victims, &mut self.snapshots, &mut self.prng);
        }
        self.now = world.now() + Duration::from_secs(1);
        self.trace_hash = self.trace_hash.rotate_left(7) ^ world.trace_hash();
        if self.on_media.get() == OnMedia::Nothing {
            self.blank_media();
        }
        self.books.failure.borrow().is_some() || (last && !cut)
    }
}

/// What runs inside one boot.
struct Boot {
    world: SimWorld,
    books: Rc<Books>,
    media: Vec<Rc<Media>>,
    victims: Vec<Rc<Media>>,
    on_media: Rc<Cell<OnMedia>>,
    prng: RefCell<Prng>,
}

impl Boot {
    fn draw<T>(&self, draw: impl FnOnce(&mut Prng) -> T) -> T {
        draw(&mut self.prng.borrow_mut())
    }

    async fn run(self, plan: Plan) {
        let pool = if plan.create {
            self.create().await
        } else {
            self.open().await
        };
        let Some(pool) = pool else { return };
        let session = Rc::new(Session {
            world: self.world.clone(),
            books: Rc::clone(&self.books),
            pool,
            volumes: Default::default(),
            operations_left: Cell::new(plan.operations),
        });
        session.check_pool();
        let info = session.pool.info();
        let group = &info.groups[0];
        self.books.layout.set(damage::Layout {
            data_start: info.data_start,
            zone_stride_bytes: group.zone_stride_bytes,
            zone_bytes: group.zone_bytes,
        });
        let store = session.pool.store();
        store.integrity.set_budget(self.books.config.sums_blocks);
        store.cache.set_capacity(self.books.config.cache_bytes);
        session.pool.set_health_limits(self.books.config.health);
        self.find_volumes(&session);
        if plan.verify_first {
            client::verify(&session, &mut self.world.prng("verify")).await;
        }
        self.tasks(&session).await;
        session.check_pool();
        if plan.last {
            heal::everything(&session, &self.victims).await;
            client::verify(&session, &mut self.world.prng("verify again")).await;
            self.delete_all(&session).await;
            heal::groups(&session).await;
        }
        if plan.end == End::Close
            && let Err(error) = session.pool.close().await
        {
            session.fail(format!("closing: {error}"));
        }
    }

    async fn create(&self) -> Option<Pool<SimWorld>> {
        self.on_media.set(OnMedia::Perhaps);
        let spec = self.books.config.pool.clone();
        self.world.note(|| format!("creation of {spec:?} begins"));
        let config = &self.books.config;
        let mut drives = self.drives(&self.media).into_iter();
        let groups = (0..config.groups)
            .map(|_| {
                (
                    spec.level,
                    drives.by_ref().take(config.drives_of_group).collect(),
                )
            })
            .collect();
        let spares = drives.by_ref().take(config.spares).collect();
        match Pool::create_groups(self.world.clone(), spec, groups, spares).await {
            Ok(pool) => {
                self.on_media.set(OnMedia::Pool);
                Some(pool)
            }
            Err(error) => {
                self.books.fail(format!("creating the pool: {error}"));
                None
            }
        }
    }

    fn drives(&self, media: &[Rc<Media>]) -> Vec<NamedDrive<SimWorld>> {
        let named = |(place, media): (usize, &Rc<Media>)| NamedDrive {
            name: format!("slot{place}"),
            drive: SimDrive::adversarial(&self.world, media),
        };
        media.iter().enumerate().map(named).collect()
    }

    fn shuffled(&self) -> Vec<Rc<Media>> {
        let mut media = self.media.clone();
        for last in (1..media.len()).rev() {
            media.swap(last, self.draw(|prng| prng.below(last as u64 + 1) as usize));
        }
        media
    }

    /// Opens the pool from its drives in any order. After a creation that was cut
    /// off there may be none.
    async fn open(&self) -> Option<Pool<SimWorld>> {
        let sure = self.on_media.get() == OnMedia::Pool;
        let config = &self.books.config;
        let settled =
            config.level_later.is_none() && config.group_later.is_none() && !config.groups_leave;
        if sure && settled && self.victims.is_empty() && self.draw(|prng| prng.chance(1, 16)) {
            self.open_with_too_few().await;
        }
        let mut opened = self.try_open().await;
        if opened.is_err() && !self.victims.is_empty() {
            // A victim may have gone before the pool could note that it failed.
            damage::mend(&self.victims);
            opened = self.try_open().await;
        }
        match opened {
            Ok(pool) => {
                self.on_media.set(OnMedia::Pool);
                Some(pool)
            }
            Err(error) if sure => {
                self.books
                    .fail(format!("opening the pool: {:?}: {error}", error.kind));
                None
            }
            Err(_) => {
                self.on_media.set(OnMedia::Nothing);
                None
            }
        }
    }

    async fn try_open(&self) -> Result<Pool<SimWorld>, PoolError> {
        let drives = self.drives(&self.shuffled());
        let opened = Pool::open(self.world.clone(), drives).await;
        self.world.note(|| match &opened {
            Ok(pool) => format!("opened under epoch {}", pool.info().epoch),
            Err(error) => format!("not opened: {error}"),
        });
        opened
    }

    /// Without more drives of a span than it can lose, a pool is not opened.
    async fn open_with_too_few(&self) {
        let level = self.books.config.pool.level;
        let drives = self.books.config.drives_of_group;
        let Ok(geometry) = Geometry::of(level, drives, BLOCK_BYTES as u64) else {
            return;
        };
        let span = self.draw(|prng| prng.below(geometry.spans as u64) as usize);
        let mut missing: Vec<usize> = geometry.span_places(span).collect();
        while missing.len() > geometry.redundancy() + 1 {
            let at = self.draw(|prng| prng.below(missing.len() as u64) as usize);
            missing.swap_remove(at);
        }
        // Drives of a group that may be added later may have no label yet.
        let config = &self.books.config;
        let made_with = config.groups * config.drives_of_group + config.spares;
        let left = self.media.iter().enumerate().take(made_with);
        let left = left.filter(|(place, _)| !missing.contains(place));
        let left: Vec<Rc<Media>> = left.map(|(_, media)| Rc::clone(media)).collect();
        if left.is_empty() {
            return;
        }
        match Pool::open(self.world.clone(), self.drives(&left)).await {
            // A victim among those given may be why, too.
            Err(error)
                if matches!(
                    error.kind,
                    PoolErrorKind::Missing
                        | PoolErrorKind::Unlabelled
                        | PoolErrorKind::Drive
                        | PoolErrorKind::Stale
                ) && error.context.contains("missing") => {}
            Err(error) => self.books.fail(format!(
                "opening without {missing:?}: {:?}: {error}",
                error.kind
            )),
            Ok(_) => self
                .books
                .fail(format!("the pool was opened without {missing:?}")),
        }
    }

    fn find_volumes(&self, session: &Session) {
        let oracle = self.books.oracle.borrow();
        for model in oracle.volumes() {
            match session.pool.volume(&model.name) {
                Some(volume) => {
                    session.volumes.borrow_mut().insert(model.id, volume);
                }
                None => session.fail(format!("volume {:?} can't be found", model.name)),
            }
        }
    }

    /// Runs clients, the administrator and the damage side by side to their ends.
    async fn tasks(&self, session: &Rc<Session>) {
        let mut ends = Vec::new();
        for index in 0..self.books.config.clients {
            let prng = self.world.prng(&format!("client {index}"));
            ends.push(self.spawn(client::run(Rc::clone(session), prng)));
        }
        let prng = self.world.prng("administrator");
        ends.push(self.spawn(admin::run(Rc::clone(session), prng)));
        if !self.victims.is_empty() {
            let prng = self.world.prng("damage");
            let victims = self.victims.clone();
            ends.push(self.spawn(damage::run(Rc::clone(session), victims, prng)));
        }
        for end in ends {
            if end.await.is_err() {
                session.fail("a task of the simulator was dropped before its end");
            }
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) -> oneshot::Receiver<()> {
        let (done, end) = oneshot::channel();
        self.world.spawn(async move {
            task.await;
            // Nobody waits any more when the boot was cut.
            let _ = done.send(());
        });
        end
    }

    async fn delete_all(&self, session: &Session) {
        let names: Vec<String> = session
            .pool
            .volumes()
            .into_iter()
            .map(|info| info.name)
            .collect();
        for name in names {
            if let Err(error) = session.pool.delete_volume(&name).await {
                session.fail(format!("deleting {name:?} at the end: {error}"));
            }
        }
        let info = session.pool.info();
        if info.mapped_bytes != 0 || info.provisioned_bytes != 0 {
            session.fail(format!("an empty pool has pages: {info:?}"));
        }
    }
}
