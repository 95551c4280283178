//! One run: creates a pool, uses it, cuts it off, and opens it again until its end.
//!
//! The end comes when all requests are issued; then everything is checked from end to end.
//!
//! Each opening is a boot with a world of its own over the same media. A boot ends
//! by a power cut or a kill before any poll, or by itself: then by a clean close,
//! or with everything quiet and the pool open.

use crate::answers::{self, Asked};
use crate::boot::Boot;
use crate::config::{Config, Theme};
use crate::damage;
use crate::kinds::SLOW_BLOCK;
use crate::seed::Seed;
use crate::session::Books;
use base::{BLOCK_BYTES, BufPool, Prng, Time};
use engine::World;
use engine::label::SLOT_OFFSETS;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, MediaSpec, Order, Outcome, SimWorld, Snapshot};

/// Polls after which a boot that nobody cuts should long have ended.
const POLLS_OF_LIFE: u64 = 20_000_000;

/// Where so many writes ended well, something can be read.
const WRITES_ENOUGH: u64 = 100;

/// Takes lines of the trace.
pub type Listener = Rc<dyn Fn(Time, &str)>;

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Hash over everything that happened.
    pub trace_hash: u64,
    /// Times that the pool was created or opened, or was about to be.
    pub boots: u64,
    /// Requests issued in all boots together.
    pub operations: u64,
    /// How often each rare path was taken.
    pub marks: BTreeMap<&'static str, u64>,
    /// How requests were answered.
    pub answers: answers::Counts,
    /// The first thing found wrong.
    pub failure: Option<String>,
}

impl Verdict {
    /// Of a run that can't begin.
    pub(crate) fn of_no_run(why: String) -> Self {
        Verdict {
            failure: Some(why),
            ..Verdict::default()
        }
    }

    /// Of two runs of one seed, one after the other.
    pub(crate) fn and(mut self, next: Verdict) -> Verdict {
        self.trace_hash = self.trace_hash.rotate_left(7) ^ next.trace_hash;
        self.boots += next.boots;
        self.operations += next.operations;
        for (mark, count) in next.marks {
            *self.marks.entry(mark).or_default() += count;
        }
        answers::add(&mut self.answers, &next.answers);
        self.failure = self.failure.or(next.failure);
        self
    }
}

/// What is known of the pool on the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnMedia {
    Nothing,
    /// Its creation was cut off.
    Perhaps,
    Pool,
}

/// How a boot ends when nothing goes wrong in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The power goes: drives lose what is not flushed.
    PowerCut,
    /// The program goes, the drives stay.
    Kill,
    /// The pool is closed.
    Close,
}

/// What is drawn for one boot.
pub(crate) struct Plan {
    pub create: bool,
    polls_max: u64,
    pub operations: u64,
    pub end: End,
    pub verify_first: bool,
    /// The pool is closed after so many polls of its use, whatever is under way.
    pub closes_after: Option<u64>,
    /// The boot ends so many polls after one of these rare paths was taken, when so many
    /// were before.
    cut_at_mark: Option<(&'static [&'static str], u64, u64)>,
    /// The end of the run: everything is checked, then deleted.
    pub last: bool,
}

/// A run under way.
pub struct Scenario {
    seed: Seed,
    prng: Prng,
    books: Rc<Books>,
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
    let root = Seed::of(seed);
    let config = Config::draw(&root, operations);
    Scenario::new(root, config, listener).run()
}

impl Scenario {
    /// A run of `config` that has not begun.
    pub fn new(seed: Seed, config: Config, listener: Option<Listener>) -> Self {
        let mut scenario = Scenario {
            prng: seed.stream("boots"),
            books: Rc::new(Books::new(config)),
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
        let places = config.drive_bytes.iter().enumerate();
        let media = places.map(|(place, &capacity_bytes)| self.blank_drive(place, capacity_bytes));
        let media: Vec<Rc<Media>> = media.collect();
        let drives = config.group_later.map_or(0, |(_, drives)| drives);
        let later: Vec<Rc<Media>> = (0..drives).map(|index| self.later_drive(index)).collect();
        if config.damage {
            let all: Vec<Rc<Media>> = media.iter().chain(&later).cloned().collect();
            let victims = damage::victims(&all, config, &mut self.seed.stream("victims"));
            let is_victim = |media: &Rc<Media>| victims.iter().any(|v| Rc::ptr_eq(v, media));
            let places = &media[..config.groups * config.drives_of_group];
            let sound = places.iter().map(|media| !is_victim(media)).collect();
            self.books.sound.replace(sound);
            self.books.victims.replace(victims);
        }
        self.books.media.replace(media);
        self.books.later.replace(later);
        self.books.later_begun.set(false);
        self.books.logs.take();
        if config.log_group.is_some_and(|(_, _, at_once)| at_once) {
            let stream = format!("log drives, boot {}", self.boots);
            self.books.new_log_drives(&mut self.seed.stream(&stream));
        }
    }

    fn blank_drive(&self, place: usize, capacity_bytes: u64) -> Rc<Media> {
        let config = &self.books.config;
        let spec = MediaSpec {
            name: format!("drive{place}"),
            capacity_bytes,
            rotational: place % 2 == 1,
            discards: config.discards,
            ignores_flush: config.drives_ignore_flush,
        };
        let stream = format!("media {place}, boot {}", self.boots);
        let media = Media::new(spec, self.seed.stream(&stream));
        media.with_faults(|faults| {
            faults.slowdown = config.slowdown[place];
            if config.has(Theme::Labels) || config.has(Theme::LogMoves) {
                let blocks = SLOT_OFFSETS.map(|offset| offset / BLOCK_BYTES as u64);
                faults.slow_blocks.extend(blocks);
                faults.slow_by = SLOW_BLOCK;
            }
        });
        Rc::new(media)
    }

    /// A drive of the group that is added, as large as the smallest of the others.
    fn later_drive(&self, index: usize) -> Rc<Media> {
        let config = &self.books.config;
        let spec = MediaSpec {
            name: format!("later{index}"),
            capacity_bytes: config.drive_bytes.iter().min().copied().unwrap_or(0),
            rotational: false,
            discards: config.discards,
            ignores_flush: config.drives_ignore_flush,
        };
        let stream = format!("later {index}, boot {}", self.boots);
        Rc::new(Media::new(spec, self.seed.stream(&stream)))
    }

    /// Runs to the end, or to the first thing that is wrong.
    pub fn run(mut self) -> Verdict {
        if let Some(listener) = &self.listener {
            listener(self.now, &format!("{:?}", self.books.config));
        }
        while !self.boot() {}
        self.check_answers();
        Verdict {
            trace_hash: self.trace_hash,
            boots: self.boots,
            operations: self.books.config.operations - self.books.operations_left.get(),
            marks: self.marks,
            answers: self.books.answers.take(),
            failure: self.books.failure.borrow().clone(),
        }
    }

    /// That something was proved: what was written could be read.
    fn check_answers(&self) {
        let of = |kind| self.books.answers.borrow().get(kind).copied();
        let (read, written) = (of("read"), of("write"));
        let (read, written) = (read.unwrap_or_default(), written.unwrap_or_default());
        // Volumes may be deleted while nearly all requests are made.
        if written.good >= WRITES_ENOUGH && read.good == 0 {
            let (good, bad) = (written.good, read.bad);
            let what = format!("of {good} writes nothing could be read, {bad} reads failed");
            self.books.fail(what);
        }
    }

    fn plan(&mut self) -> Plan {
        let prng = &mut self.prng;
        let hasty = self.books.config.hasty;
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
        let careful = last || self.books.careful.take();
        let closes = !create && !last && self.books.config.has(Theme::Closes);
        let mut closings = self.seed.stream(&format!("closing, boot {}", self.boots));
        let closes = closes && closings.chance(1, 2);
        let most = 1 << closings.between(4, 14);
        let closes_after = closes.then(|| closings.below(most));
        let mut cuts = self.seed.stream(&format!("cut, boot {}", self.boots));
        let cut_at_mark = self.books.config.cuts().filter(|_| !careful && !closes);
        let cut_at_mark = cut_at_mark.map(|(marks, passes, polls)| {
            let most = 1 << cuts.between(polls / 2, polls);
            (marks, cuts.below(passes), cuts.below(most))
        });
        let polls_max = match closes || cut_at_mark.is_some() {
            true => POLLS_OF_LIFE,
            false => polls_max,
        };
        Plan {
            create,
            polls_max: if careful { POLLS_OF_LIFE } else { polls_max },
            operations: prng.between(1, if hasty { 12 } else { 400 }),
            end: if careful || closes { End::Close } else { end },
            closes_after,
            cut_at_mark,
            verify_first: careful || prng.chance(1, 2),
            last,
        }
    }

    /// One boot. True when the run is over.
    fn boot(&mut self) -> bool {
        let plan = self.plan();
        let world = self.world(&plan);
        self.boots += 1;
        let (end, last, polls_max) = (plan.end, plan.last, plan.polls_max);
        world.note(|| format!("boot {}, up to {polls_max} polls, then {end:?}", self.boots));
        self.books.closed.set(false);
        let books = Rc::clone(&self.books);
        let fail = move |what| books.fail(what);
        let patience = self.books.config.patience_at_openings();
        let tasks = Boot {
            asked: Asked::new(&world, patience, &self.books.answers, fail),
            world: world.clone(),
            books: Rc::clone(&self.books),
            on_media: Rc::clone(&self.on_media),
            prng: RefCell::new(world.prng("boot")),
        };
        let outcome = world.run(polls_max, tasks.run(plan));
        let cut = outcome == Ok(Outcome::Cut);
        self.books.at_mark.set(world.was_cut());
        match outcome {
            Err(deadlock) => self.books.fail(deadlock.to_string()),
            Ok(Outcome::Cut) if polls_max == POLLS_OF_LIFE && !world.was_cut() => {
                self.books
                    .fail(format!("no end after {polls_max} polls: a livelock"));
            }
            Ok(_) => {}
        }
        let word = if cut { "cut" } else { "done" };
        world.note(|| format!("end of boot {}: {word}", self.boots));
        self.turn_off(&world, end);
        if !last {
            self.damage_between();
        }
        self.now = world.now() + Duration::from_secs(1);
        self.trace_hash = self.trace_hash.rotate_left(7) ^ world.trace_hash();
        if self.on_media.get() == OnMedia::Nothing {
            self.blank_media();
        }
        self.books.failure.borrow().is_some() || (last && !cut)
    }

    /// The world of one boot.
    fn world(&self, plan: &Plan) -> SimWorld {
        let stream = self.seed.stream(&format!("boot {}", self.boots));
        let world = SimWorld::new(stream, Order::Shuffled, BufPool::new(), self.now);
        if let Some(listener) = self.listener.clone() {
            world.listen(move |now, line| listener(now, line));
        }
        world.plant(self.planted.as_deref());
        if let Some((marks, passes, polls)) = plan.cut_at_mark {
            world.cut_at_mark(marks, passes, polls);
        }
        world
    }

    /// Ends the world of a boot, and looks whether it has left drives alone since.
    fn turn_off(&mut self, world: &SimWorld, end: End) {
        match end {
            End::PowerCut => world.power_cut(&*self.books.media.borrow()),
            End::Kill | End::Close => world.power_off(),
        }
        self.books.oracle.borrow_mut().power_cut();
        let media = self.books.media.borrow();
        if let Some(media) = media.iter().find(|one| one.trespasses() > 0) {
            let name = &media.spec().name;
            let what = format!("{name} was written for a pool that has ended");
            self.books.fail(what);
        }
        for (mark, count) in world.marks() {
            *self.marks.entry(mark).or_default() += count;
        }
    }

    /// What happens to drives while nobody uses them.
    fn damage_between(&mut self) {
        let books = &self.books;
        let formatted = books.layout.get().data_start > 0;
        // Lost blocks are to be there when zones are emptied for another level.
        let one_of = if books.config.level_later.is_some() {
            2
        } else {
            3
        };
        if books.config.beyond && formatted && self.prng.chance(1, one_of) {
            let closed = books.closed.get();
            books.careful.set(closed);
            let media = books.media.borrow();
            damage::beyond(&media, books.layout.get(), closed, &mut self.prng);
            if damage::is_beyond(&media, &books.config, books.layout.get()) {
                books.beyond.set(true);
                books.oracle.borrow_mut().damage();
            }
        }
        if !books.config.turns {
            let victims = books.victims.borrow();
            damage::turn_back(&victims, &mut self.snapshots, &mut self.prng);
        }
    }
}
