//! The tasks that the pool runs for its drives: spares taken, drives rebuilt, copies of metadata
//! and logs moved, scrubs from time to time.
//!
//! One task a pool, one thing at a time, behind the commands: see [`pace`].
//!
//! Rooms: `zones` (emptied: for another level, or for a group that leaves), `groups`
//! (converted, added, removed), `departures` (those that leave; the lanes together), `spares` (who stands in for whom, and the commands for
//! it), `rebuild`, `scrub`, `copies` (of metadata and logs), [`pace`]. [`health`] is a
//! task of its own: drives are watched while others are rebuilt ([`hung`] has what it does
//! about those that do not answer). So is [`fullness`]: who
//! has to be told that space runs out; and `fill`: pages that lie over others.

mod copies;
mod departures;
mod fill;
pub mod fullness;
mod groups;
pub mod health;
pub(crate) mod hung;
pub(super) mod lend;
pub mod pace;
mod rebuild;
mod scrub;
mod spares;
mod zones;

pub use pace::Rates;

use super::drives::EventKind;
use super::{Inner, MemberState, PoolError, PoolErrorKind, heartbeat};
use crate::world::World;
use base::{Time, Uuid};
use futures_util::future::select;
use futures_util::lock::Mutex;
use pace::Pace;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// How often the task looks around without being woken.
const TICK: Duration = Duration::from_secs(1);

/// What kind of work is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// A drive gets what it should hold.
    Rebuild,
    /// Everything is read and compared.
    Scrub,
    /// A group gets another level, or is emptied to leave the pool.
    Move,
}

/// Work under way, at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// The kind of work, such as a rebuild.
    pub kind: TaskKind,
    /// The drive, or the pool.
    pub subject: String,
    /// Bytes of drives looked through, and to be looked through in all.
    pub done_bytes: u64,
    /// Bytes of drives in all; see `done_bytes`.
    pub total_bytes: u64,
    /// Bytes a second since it began (or went on after an opening).
    pub bytes_per_s: u64,
    /// What is left at that rate.
    pub left: Option<Duration>,
}

/// What a scrub found, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Blocks that were damaged and have been repaired.
    pub mended: u64,
    /// Blocks that redundancy could not repair, those of earlier scrubs included.
    pub lost: u64,
    /// Lost blocks that were marked as lost before this scrub.
    pub still_lost: u64,
}

/// A scrub that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubInfo {
    /// The time since it ended.
    pub age: Duration,
    /// The result, in blocks.
    pub found: Found,
}

/// Work under way.
#[derive(Debug)]
struct Task {
    kind: TaskKind,
    subject: String,
    began: Cell<Time>,
    /// Bytes done before `began`.
    done_before: Cell<u64>,
    done: Cell<u64>,
    total: Cell<u64>,
}

/// The state of all this.
#[derive(Debug, Default)]
pub(crate) struct Life {
    pub pace: Pace,
    pub limits: Cell<health::Limits>,
    task: RefCell<Option<Rc<Task>>>,
    scrub_wanted: Cell<bool>,
    /// Zones can't be emptied: it has been said that there is no room.
    no_room: Cell<bool>,
    /// Why the logs could not be carried by another drive, as it was told.
    logs_stay: RefCell<Option<String>>,
    scrubs_ended: Cell<u64>,
    /// When the last whole scrub ended, and what it found.
    last_scrub: Cell<Option<(Time, Found)>>,
    /// Held while something is done.
    busy: Mutex<()>,
    /// The drive of which it was told last that its rebuild begins.
    rebuild_told: Cell<Option<Uuid>>,
    /// Drives that could not take the logs over; others are tried first.
    no_carriers: RefCell<BTreeSet<Uuid>>,
    /// Why the last round ended early, as it was told.
    trouble: RefCell<Option<String>>,
    /// Why a zone that another lane wants could not be emptied, in this round.
    lending_failed: RefCell<Option<PoolError>>,
    /// How often pages are looked for that lie over others.
    fill_pause: Cell<Option<Duration>>,
    /// Held while pages are made whole.
    filling: Mutex<()>,
    /// Nothing more is begun: the pool is being closed.
    ending: Cell<bool>,
}

impl Life {
    /// What is under way.
    pub fn tasks(&self, now: Time) -> Vec<TaskInfo> {
        self.task
            .borrow()
            .iter()
            .map(|task| task.info(now))
            .collect()
    }

    /// Whole scrubs since the opening.
    pub fn scrubs_ended(&self) -> u64 {
        self.scrubs_ended.get()
    }

    /// The last whole scrub since the opening.
    pub fn last_scrub(&self, now: Time) -> Option<ScrubInfo> {
        let (ended, found) = self.last_scrub.get()?;
        Some(ScrubInfo {
            age: now.since(ended),
            found,
        })
    }

    /// Ends when nothing is under way any more, and nothing will be: a pool that is
    /// closed has no write on its way.
    pub async fn end_all(&self) {
        self.ending.set(true);
        drop(self.busy.lock().await);
        drop(self.filling.lock().await);
    }

    fn begin(&self, kind: TaskKind, subject: &str, now: Time, progress: (u64, u64)) -> Rc<Task> {
        let task = Rc::new(Task::of(kind, subject, now, progress));
        self.task.replace(Some(Rc::clone(&task)));
        task
    }

    /// Goes on with a task that was put off.
    fn resume(&self, task: &Rc<Task>, now: Time) {
        task.began.set(now);
        task.done_before.set(task.done.get());
        self.task.replace(Some(Rc::clone(task)));
    }

    fn end(&self) {
        self.task.replace(None);
    }
}

impl Task {
    /// A task that so much of is done, of so much.
    fn of(kind: TaskKind, subject: &str, now: Time, (done, total): (u64, u64)) -> Task {
        Task {
            kind,
            subject: subject.to_owned(),
            began: Cell::new(now),
            done_before: Cell::new(done),
            done: Cell::new(done),
            total: Cell::new(total),
        }
    }

    fn info(&self, now: Time) -> TaskInfo {
        let (done, total) = (self.done.get(), self.total.get());
        let seconds = now.since(self.began.get()).as_secs_f64();
        let rate = match seconds > 0.0 {
            true => ((done - self.done_before.get()) as f64 / seconds) as u64,
            false => 0,
        };
        let left = total.saturating_sub(done);
        TaskInfo {
            kind: self.kind,
            subject: self.subject.clone(),
            done_bytes: done,
            total_bytes: total,
            bytes_per_s: rate,
            left: (rate > 0).then(|| Duration::from_secs(left / rate)),
        }
    }
}

/// Starts the task; it ends with the pool.
pub(super) fn start<W: World>(inner: &Rc<Inner<W>>) {
    let store = Rc::downgrade(&inner.store);
    inner.drives.set_waker(move || {
        if let Some(store) = store.upgrade() {
            store.lifeline.set();
        }
    });
    inner.drives.set_watched();
    let world = inner.world.clone();
    world.spawn(live(world.clone(), Rc::downgrade(inner)));
    world.spawn(health::watch(world.clone(), Rc::downgrade(inner)));
    world.spawn(fullness::watch(world.clone(), Rc::downgrade(inner)));
    world.spawn(fill::watch(world.clone(), Rc::downgrade(inner)));
    heartbeat::begin(&inner.drives);
    if inner.drives.lane().commons.lanes() > 1 {
        world.spawn(lend::watch(world.clone(), Rc::downgrade(inner)));
    }
}

async fn live<W: World>(world: W, pool: Weak<Inner<W>>) {
    loop {
        {
            let Some(inner) = pool.upgrade() else { return };
            let _busy = inner.life.busy.lock().await;
            if inner.go_on().is_err() {
                return;
            }
            match inner.look_after().await {
                Ok(()) => inner.life.trouble.replace(None),
                Err(_) if inner.go_on().is_err() => return,
                Err(error) => inner.tell_trouble(error),
            };
        }
        let Some(store) = pool.upgrade().map(|inner| Rc::clone(&inner.store)) else {
            return;
        };
        let (woken, ticked) = (pin!(store.lifeline.wait()), pin!(world.sleep(TICK)));
        select(woken, ticked).await;
    }
}

impl<W: World> Inner<W> {
    /// A round has ended early though the pool serves: it is tried again, and told once.
    fn tell_trouble(&self, error: PoolError) -> Option<String> {
        let before = self.life.trouble.replace(Some(error.context.clone()));
        if before.as_ref() != Some(&error.context) {
            let text = format!(
                "work on the drives ended early, and is tried again: {}",
                error.context
            );
            self.drives.event(EventKind::Trouble, text);
        }
        before
    }

    /// One round of everything. Where the round ends early, lending may have failed all the same.
    async fn look_after(self: &Rc<Self>) -> Result<(), PoolError> {
        let round = self.look_after_each().await;
        let lent = self.life.lending_failed.take();
        round.and(lent.map_or(Ok(()), Err))
    }

    async fn look_after_each(self: &Rc<Self>) -> Result<(), PoolError> {
        self.follow_first_lane().await?;
        self.follow_others().await?;
        self.take_spares().await?;
        self.move_copies().await?;
        // What a crash left open is in place before anything is compared with it.
        if self.store.has_replayed() {
            return Ok(());
        }
        self.lend().await?;
        self.rebuild_next().await?;
        let emptied = self.empty_zones().await;
        self.go_on()?;
        self.part_with_groups().await?;
        self.scrub_if_wanted().await?;
        emptied
    }

    /// Whether a drive has failed, or holds less than it should, and something can be done
    /// about that: it goes before whatever else is under way.
    fn is_drive_wanting(&self) -> bool {
        let members = self.drives.members();
        let mut states = members.iter().map(|member| member.state());
        states.any(|state| state == MemberState::Rebuilding) || self.next_to_stand_in().is_some()
    }

    /// Puts `task` off until no drive is wanting any more.
    async fn look_after_drives(self: &Rc<Self>, task: &Rc<Task>) -> Result<(), PoolError> {
        while self.is_drive_wanting() {
            self.take_spares().await?;
            self.move_copies().await?;
            self.rebuild_next().await?;
            self.go_on()?;
        }
        self.life.resume(task, self.world.now());
        Ok(())
    }

    /// That the pool has not stopped, and is not being closed.
    pub(crate) fn go_on(&self) -> Result<(), PoolError> {
        self.check()?;
        match self.life.ending.get() {
            false => Ok(()),
            true => Err(PoolError::new(
                PoolErrorKind::Failed,
                format!("pool '{}' is being closed", self.drives.name()),
            )),
        }
    }

    /// Wakes the task.
    pub(super) fn wake_life(&self) {
        self.store.lifeline.set();
    }
}
