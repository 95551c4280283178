//! The state that tasks of one boot share: the pool, the checker, the first failure.

use crate::agreement;
use crate::answers::{self, Asked};
use crate::config::{Config, Theme};
use crate::damage;
use crate::lanes::{Lanes, NamedMedia};
use crate::oracle::volume::{Exists, VolumeModel};
use crate::oracle::{Oracle, Violation};
use base::{BLOCK_BYTES, Prng};
use engine::pool::maintenance::ScrubState;
use engine::pool::maintenance::fullness::Fullness as Level;
use engine::{GroupInfo, MemberState, Provisioning, Volume, VolumeInfo, World};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::time::Duration;
use world_sim::{Media, MediaSpec, SimWorld};

/// What the names of drives begin with that are added one by one.
const BLANK: &str = "blank";

/// Whether a drive was added after the pool was made, and in no group.
pub fn is_blank(name: &str) -> bool {
    name.starts_with(BLANK)
}

/// How often it is noted how far scrubs are.
const NOTED_EVERY: Duration = Duration::from_millis(20);

/// The state of a run that outlives boots: drives, checker, and counts.
pub struct Books {
    /// Everything that was drawn from the seed before the first boot.
    pub config: Config,
    /// The checker of all reads, which knows each sector's history.
    pub oracle: RefCell<Oracle>,
    /// Requests that may still be issued.
    pub operations_left: Cell<u64>,
    /// All drives there are, in the order of their first places; then those added
    /// since.
    pub media: RefCell<Vec<Rc<Media>>>,
    /// Drives that may be struck.
    pub victims: RefCell<Vec<Rc<Media>>>,
    /// By place: whether the drive was never a victim.
    pub sound: RefCell<Vec<bool>>,
    /// The last boot ended with a clean close.
    pub closed: Cell<bool>,
    /// The next boot looks at everything and ends with a clean close.
    pub careful: Cell<bool>,
    /// The last boot was cut soon after a rare path.
    pub at_mark: Cell<bool>,
    /// Where data begins on the drives.
    pub layout: Cell<crate::damage::Layout>,
    /// The drives of log groups so far.
    pub logs: RefCell<Vec<Rc<Media>>>,
    /// The group that is added later: its media, and whether that was begun.
    pub later: RefCell<Vec<Rc<Media>>>,
    /// Whether the adding of the group in `later` has begun.
    pub later_begun: Cell<bool>,
    /// Drives that have failed, and of which other drives of their groups hold everything.
    pub replaced: RefCell<BTreeSet<String>>,
    /// Others are victims than at first ([`crate::damage::next_to_go`]).
    pub turned: Cell<bool>,
    /// Drives that were offered and refused.
    pub refused: RefCell<BTreeSet<String>>,
    /// More has been damaged than the redundancy covers: blocks may be unreadable.
    pub beyond: Cell<bool>,
    /// Names of drives that something was done to that may put them out of use.
    pub struck: RefCell<BTreeSet<String>>,
    /// How far each lane's scrubs were, as somebody keeps it who looks now and then.
    pub scrubs: RefCell<BTreeMap<u16, ScrubState>>,
    /// How requests were answered.
    pub answers: Rc<RefCell<answers::Counts>>,
    /// The first thing found wrong.
    pub failure: RefCell<Option<String>>,
}

impl Books {
    /// The books of a run that has not begun.
    pub fn new(config: Config) -> Self {
        Books {
            operations_left: Cell::new(config.operations),
            config,
            media: RefCell::default(),
            victims: RefCell::default(),
            sound: RefCell::default(),
            closed: Cell::new(false),
            careful: Cell::new(false),
            at_mark: Cell::new(false),
            layout: Cell::default(),
            logs: RefCell::default(),
            later: RefCell::default(),
            later_begun: Cell::new(false),
            replaced: RefCell::default(),
            turned: Cell::new(false),
            refused: RefCell::default(),
            beyond: Cell::new(false),
            oracle: RefCell::default(),
            struck: RefCell::default(),
            scrubs: RefCell::default(),
            answers: Rc::default(),
            failure: RefCell::new(None),
        }
    }

    /// A blank drive as large as the largest, that nobody knows of yet.
    pub fn blank(&self) -> NamedMedia {
        let sizes = self.config.drive_bytes.iter().copied();
        let name = format!("{BLANK}{}", self.media.borrow().len());
        let spec = MediaSpec {
            name: name.clone(),
            capacity_bytes: sizes.max().unwrap_or(BLOCK_BYTES as u64),
            rotational: false,
            discards: self.config.discards,
            ignores_flush: false,
        };
        let media = Rc::new(Media::new(spec, Prng::from_seed(7).stream(&name)));
        self.media.borrow_mut().push(Rc::clone(&media));
        (name, media)
    }

    /// Whether the first drives have the places that they had: one that stands in, or that another was
    /// copied to, may have what another lacks.
    pub fn keeps_places(&self) -> bool {
        let config = &self.config;
        let media = self.media.borrow();
        let mut names = media.iter().map(|media| &media.spec().name);
        config.spares == 0
            && config.level_later.is_none()
            && config.keeps_groups()
            && !names.any(|name| is_blank(name))
    }

    /// Blank drives for a log group, of which victims are as many as it can lose.
    pub fn new_log_drives(&self, prng: &mut Prng) -> Vec<Rc<Media>> {
        let Some((level, drives, _)) = self.config.log_group else {
            return Vec::new();
        };
        let first = self.logs.borrow().len();
        let media = |index| {
            let spec = MediaSpec {
                name: format!("log{index}"),
                capacity_bytes: self.config.drive_bytes.iter().min().copied().unwrap_or(0),
                rotational: false,
                discards: self.config.discards,
                ignores_flush: self.config.drives_ignore_flush,
            };
            Rc::new(Media::new(spec, prng.stream(&format!("log {index}"))))
        };
        let media: Vec<Rc<Media>> = (first..first + drives).map(media).collect();
        if self.config.damage {
            let places = damage::of_group(std::iter::once(level), drives, prng);
            let victims = places.into_iter().map(|place| Rc::clone(&media[place]));
            self.victims.borrow_mut().extend(victims);
        }
        self.logs.borrow_mut().extend(media.iter().cloned());
        self.media.borrow_mut().extend(media.iter().cloned());
        media
    }

    /// The drives of the group that is added later.
    pub fn later_drives(&self) -> Vec<NamedMedia> {
        let later = self.later.borrow();
        let named =
            |(place, media): (usize, &Rc<Media>)| (format!("later{place}"), Rc::clone(media));
        later.iter().enumerate().map(named).collect()
    }

    /// Keeps the first thing that is wrong.
    pub fn fail(&self, what: impl Into<String>) {
        self.failure.borrow_mut().get_or_insert(what.into());
    }
}

/// How full the pool can be at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fullness {
    overcommitted: bool,
    changes: u64,
    map_refusals: u64,
}

/// One boot: from opening the pool to its end.
pub struct Session {
    /// The world of this boot.
    pub world: SimWorld,
    /// The state of the run, which outlives this boot.
    pub books: Rc<Books>,
    /// The pool under test, open from the begin of the boot to its end.
    pub pool: Lanes,
    /// Open volumes by their identity in the run.
    pub volumes: RefCell<BTreeMap<u64, Volume<SimWorld>>>,
    /// Requests of this boot that may still be issued.
    pub operations_left: Cell<u64>,
    /// What is under way.
    pub asked: Asked,
    /// What makes requests fail that are right.
    pub upset: Upset,
}

/// What makes requests fail that are right: the pool is being closed, or has lost more
/// than it can do without.
#[derive(Default)]
pub struct Upset {
    /// The pool is being closed.
    pub closing: Cell<bool>,
    /// Beginnings and ends of outages: while it is odd there is one.
    pub outages: Cell<u64>,
    /// How often the pool was opened again in this boot, because it had stopped.
    pub reopened: Cell<u64>,
    /// A task was left where it is, since its last poll began.
    pub parked: Cell<bool>,
}

impl Session {
    /// Has the pool asked something, which must be answered in time. A request that an
    /// upset made fail is never heard of again: it is as if the power had been cut before
    /// its answer.
    ///
    /// # Errors
    /// What was answered, where nothing excuses it.
    pub async fn ask<T, E: std::fmt::Display>(
        &self,
        kind: &'static str,
        what: String,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        if self.upset.closing.get() {
            self.park().await;
        }
        let outages = self.upset.outages.get();
        let answer = self.asked.ask(kind, what, answer).await;
        if let Err(error) = &answer
            && self.is_upset_since(outages)
        {
            self.world.note(|| format!("{kind}, in an upset: {error}"));
            self.park().await;
        }
        answer
    }

    /// Whether something excuses what has failed; `outages` were counted when it began.
    fn is_upset_since(&self, outages: u64) -> bool {
        let now = self.upset.outages.get();
        let outage = now != outages || !now.is_multiple_of(2);
        self.upset.closing.get() || outage || (now > 0 && self.has_stopped())
    }

    /// Whether the pool has stopped.
    pub fn has_stopped(&self) -> bool {
        self.pool
            .all()
            .iter()
            .any(|pool| pool.info().failure.is_some())
    }

    /// Notes how far the scrubs are, now and then, as long as the pool is open. It has them go on from
    /// there, too: so they look at what is due more often than once a second, as boots are short.
    /// The array's own notes (`array::control::ScrubNote`) are of whole seconds, and it looks every
    /// other second: a boot of milliseconds would begin anew for ever. A run of operations keeps those.
    pub async fn note_scrubs(session: Weak<Session>, world: SimWorld) {
        while let Some(session) = session.upgrade() {
            for lane in session.pool.all() {
                if let Some(state) = lane.scrub_state() {
                    session.books.scrubs.borrow_mut().insert(lane.lane(), state);
                    lane.go_on_scrubbing(state);
                }
            }
            drop(session);
            world.sleep(NOTED_EVERY).await;
        }
    }

    /// Stays where it is until the boot ends.
    async fn park(&self) {
        self.upset.parked.set(true);
        std::future::pending::<()>().await;
    }
    /// Takes one request off what is left. False when there is none, or something
    /// was found wrong.
    pub fn take_operation(&self) -> bool {
        let left = self
            .books
            .operations_left
            .get()
            .min(self.operations_left.get());
        if left == 0 || self.upset.closing.get() || self.books.failure.borrow().is_some() {
            return false;
        }
        self.books
            .operations_left
            .set(self.books.operations_left.get() - 1);
        self.operations_left.set(self.operations_left.get() - 1);
        true
    }

    /// Notes what is wrong, with where it was seen.
    pub fn fail(&self, what: impl Into<String>) {
        let what = what.into();
        self.world.note(|| format!("WRONG: {what}"));
        self.books.fail(what);
    }

    /// Notes a violation, when there is one.
    pub fn check(&self, outcome: Result<(), Violation>) {
        if let Err(Violation(what)) = outcome {
            self.fail(what);
        }
    }

    /// One of the volumes that are there, with its handle.
    pub fn pick_volume(&self, prng: &mut Prng) -> Option<(u64, Volume<SimWorld>)> {
        let volumes = self.volumes.borrow();
        let ids: Vec<&u64> = volumes.keys().collect();
        if ids.is_empty() {
            return None;
        }
        let id = **prng.pick(&ids);
        volumes.get(&id).map(|volume| (id, volume.clone()))
    }

    /// What [`Session::may_have_been_full`] compares with later.
    pub fn fullness(&self) -> Fullness {
        let overcommitted = self.overcommitted();
        Fullness {
            overcommitted,
            changes: self.books.oracle.borrow().changes(),
            map_refusals: self.pool.map_refusals(),
        }
    }

    /// Whether the pool can have been full at some time since `began`.
    pub fn may_have_been_full(&self, began: Fullness) -> bool {
        // A volume that went away since may have held the pages.
        began.overcommitted || began != self.fullness()
    }

    /// Whether a volume has all of its pages, or was promised them: it is thick, and
    /// shares nothing.
    pub fn is_promised_all(&self, id: u64) -> bool {
        let oracle = self.books.oracle.borrow();
        let model = oracle.volume(id);
        let is_thick = model.provisioning == Provisioning::Thick;
        is_thick && model.converting.is_none() && !self.books.config.shares()
    }

    /// What there is of room, and who has it, for people.
    pub fn room(&self) -> String {
        let info = self.pool.info();
        let oracle = self.books.oracle.borrow();
        let sizes: Vec<_> = oracle.volumes().map(|volume| volume.size_bytes).collect();
        format!(
            "{} bytes: {} mapped ({} over others), {} promised; volumes of {sizes:?}",
            info.capacity_bytes, info.mapped_bytes, info.backed_bytes, info.promised_bytes
        )
    }

    /// Whether the volumes could need more pages than the pool has.
    fn overcommitted(&self) -> bool {
        let info = self.pool.info();
        let page = u64::from(info.page_bytes);
        let bytes = |volume: &VolumeModel| {
            let size_bytes = match volume.exists {
                Exists::Resizing(size_bytes) => size_bytes.max(volume.size_bytes),
                _ => volume.size_bytes,
            };
            size_bytes.next_multiple_of(page)
        };
        // A lane can't give away a zone that it has in use and could not empty; nor one
        // that it is emptying, to give it another level.
        let zone_bytes = |group: &GroupInfo| group.members.len() as u64 * group.zone_bytes;
        let largest = info.groups.iter().map(zone_bytes).max().unwrap_or(0);
        let stuck = match info.lanes {
            1 => 0,
            lanes => u64::from(lanes) * largest * info.groups.len() as u64,
        };
        let config = &self.books.config;
        if self.pool.groups_missing() > 0 {
            // Room that one lane has, and others can't.
            return true;
        }
        if info.lanes > 1 && config.groups_leave {
            // A group may leave some lanes only, for want of room in others: what these
            // give of it is of no use to those.
            return true;
        }
        let stuck = match config.level_later {
            Some(_) => 2 * stuck,
            None => stuck,
        };
        let wanted = self.books.oracle.borrow().volumes().map(bytes).sum::<u64>();
        // What backs others belongs to no volume, or is not its own until they are whole.
        wanted + stuck + info.backed_bytes > info.capacity_bytes
    }

    /// That what the pool said of how full it is, is so. Nothing is under way.
    pub async fn check_fullness(&self) {
        let config = &self.books.config;
        let regroups = config.level_later.is_some() || config.group_later.is_some();
        if config.lanes > 1 && (config.is_struck() || config.groups_leave || regroups) {
            // Lanes may know of different groups.
            return;
        }
        // Until who was refused is forgotten, and once more.
        self.world.sleep(Duration::from_millis(10_300)).await;
        let info = self.pool.info();
        let told = self.pool.all()[0].fullness();
        let used = info.mapped_bytes + info.promised_bytes;
        let reaches = |percent: u64| used > 0 && used * 100 >= percent * info.capacity_bytes;
        let thresholds = self.books.config.thresholds;
        let warn = u64::from(thresholds.warn_percent);
        let alarm = u64::from(thresholds.alarm_percent);
        let (least, most) = match () {
            () if reaches(100) => (Level::Full, Level::Full),
            () if reaches(alarm) => (Level::Alarm, Level::Full),
            () if reaches(warn) => (Level::Warn, Level::Full),
            () => (Level::Ample, Level::Full),
        };
        let most = match () {
            () if reaches(98) => most,
            () if reaches(alarm.saturating_sub(2)) => most.min(Level::Alarm),
            () if reaches(warn.saturating_sub(2)) => most.min(Level::Warn),
            () => Level::Ample,
        };
        if !(least..=most).contains(&told.fullness) || told.thresholds != thresholds {
            self.fail(format!(
                "{used} of {} bytes are used, and the pool says {told:?}",
                info.capacity_bytes
            ));
        }
    }

    /// That no drive is at two places, nor out of use though nothing was ever wrong with it.
    fn check_sound(&self) {
        if let Some(what) = agreement::drive_at_two_places(&self.pool) {
            self.fail(what);
        }
        let config = &self.books.config;
        if config.beyond || config.has(Theme::Outages) {
            return;
        }
        let sound = self.books.sound.borrow();
        let struck = |name: &str| {
            let place = name
                .strip_prefix("drive")
                .and_then(|place| place.parse().ok());
            config.damage && place.is_none_or(|place: usize| sound.get(place) != Some(&true))
        };
        for pool in self.pool.all() {
            let members = pool.info().members.into_iter();
            let mut failed = members.filter(|member| member.state == MemberState::Failed);
            if let Some(member) = failed.find(|member| !struck(&member.name)) {
                let why = self.pool.events().into_iter().map(|event| event.text);
                let why = why.rev().find(|text| text.contains(&member.name));
                self.fail(format!("{} is out of use, and sound: {why:?}", member.name));
            }
        }
    }

    /// Compares the pool's own figures with its volumes and with the checker.
    /// Nothing is under way.
    pub fn check_pool(&self) {
        let (info, volumes) = (self.pool.info(), self.pool.volumes());
        let said = self.pool.volumes_with_properties();
        let all: Vec<_> = said.iter().map(|(info, _)| info.clone()).collect();
        let settled = self.books.oracle.borrow_mut().settle_volumes(&all);
        self.check(settled);
        let settled = self.books.oracle.borrow_mut().settle_properties(&said);
        self.check(settled);
        let mapped: u64 = all.iter().map(|volume| volume.mapped_bytes).sum();
        let provisioned: u64 = volumes.iter().map(|volume| volume.size_bytes).sum();
        // What volumes share is counted once; what only backs pages is no volume's.
        let theirs = info.mapped_bytes - info.backing_bytes.min(info.mapped_bytes);
        let shares = self.books.config.shares() && theirs <= mapped;
        if (info.mapped_bytes != mapped && !shares) || info.provisioned_bytes != provisioned {
            self.fail(format!(
                "the pool says {} mapped and {} provisioned, its volumes {mapped} and {provisioned}",
                info.mapped_bytes, info.provisioned_bytes
            ));
        }
        let promised: u64 = all.iter().map(|volume| volume.promised_bytes).sum();
        let room = info.capacity_bytes + info.kept_bytes;
        // Free pages of a zone that is being emptied are no part of the capacity.
        let empties = info.groups.iter().any(|group| group.zones_to_empty > 0);
        let fits = empties || info.mapped_bytes + promised <= room;
        if info.promised_bytes != promised || !fits {
            self.fail(format!(
                "the pool says that {} are promised, its volumes {promised}; {} of {room} are mapped",
                info.promised_bytes, info.mapped_bytes
            ));
        }
        if let Some(reason) = info.failure {
            self.fail(format!("the pool has stopped: {reason}"));
        }
        self.check_sound();
        for volume in volumes {
            self.check_promises(&volume, info.page_bytes.into());
        }
    }

    /// A volume maps no more than it has, and a thick one is promised the rest.
    fn check_promises(&self, volume: &VolumeInfo, page_bytes: u64) {
        let whole = volume.size_bytes.next_multiple_of(page_bytes);
        let wanted = match volume.provisioning {
            Provisioning::Thick => whole - volume.mapped_bytes.min(whole),
            Provisioning::Thin => 0,
        };
        if volume.mapped_bytes > whole || volume.promised_bytes != wanted {
            self.fail(format!("volume {volume:?} should map up to {whole} bytes"));
        }
    }
}
