//! Work in the background: what is under way, and what ended last.

use super::pace::Pace;
use crate::drives::Limits;
use crate::error::PoolError;
use base::{Time, Uuid};
use futures_util::lock::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

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
pub(crate) struct Task {
    pub kind: TaskKind,
    pub subject: String,
    pub began: Cell<Time>,
    /// Bytes done before `began`.
    pub done_before: Cell<u64>,
    pub done: Cell<u64>,
    pub total: Cell<u64>,
}

/// The state of all this.
#[derive(Debug, Default)]
pub(crate) struct Background {
    pub pace: Pace,
    pub limits: Cell<Limits>,
    pub task: RefCell<Option<Rc<Task>>>,
    pub scrub_wanted: Cell<bool>,
    /// Zones can't be emptied: it has been said that there is no room.
    pub no_room: Cell<bool>,
    /// Why the logs could not be carried by another drive, as it was told.
    pub logs_stay: RefCell<Option<String>>,
    pub scrubs_ended: Cell<u64>,
    /// When the last whole scrub ended, and what it found.
    pub last_scrub: Cell<Option<(Time, Found)>>,
    /// Held while something is done.
    pub busy: Mutex<()>,
    /// The drive of which it was told last that its rebuild begins.
    pub rebuild_told: Cell<Option<Uuid>>,
    /// Drives that could not take the logs over; others are tried first.
    pub no_carriers: RefCell<BTreeSet<Uuid>>,
    /// Why the last round ended early, as it was told.
    pub trouble: RefCell<Option<String>>,
    /// Why a zone that another lane wants could not be emptied, in this round.
    pub lending_failed: RefCell<Option<PoolError>>,
    /// How often pages are looked for that lie over others.
    pub fill_pause: Cell<Option<Duration>>,
    /// Held while pages are made whole.
    pub filling: Mutex<()>,
    /// Nothing more is begun: the pool is being closed.
    pub ending: Cell<bool>,
}

impl Background {
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

    pub fn begin(
        &self,
        kind: TaskKind,
        subject: &str,
        now: Time,
        progress: (u64, u64),
    ) -> Rc<Task> {
        let task = Rc::new(Task::of(kind, subject, now, progress));
        self.task.replace(Some(Rc::clone(&task)));
        task
    }

    /// Goes on with a task that was put off.
    pub fn resume(&self, task: &Rc<Task>, now: Time) {
        task.began.set(now);
        task.done_before.set(task.done.get());
        self.task.replace(Some(Rc::clone(task)));
    }

    pub fn end(&self) {
        self.task.replace(None);
    }
}

impl Task {
    /// A task that so much of is done, of so much.
    pub fn of(kind: TaskKind, subject: &str, now: Time, (done, total): (u64, u64)) -> Task {
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
