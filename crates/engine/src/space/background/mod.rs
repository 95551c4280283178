//! Work in the background: what is under way, what ended last, and what was told of it.
//!
//! Invariants:
//! - One thing is done at a time, but rebuilds of several drives, and pages are made whole beside it:
//!   who works holds a lock.
//! - Once the pool is being closed, [`Background::end_all`] ends when nothing is under way, and
//!   nothing begins any more.
//! - Work that is tried again and again tells of the same once.
//!
//! Rooms: `task` (how far it is), `scrubs`, `no_carriers` (of the logs), `told_once`.

mod no_carriers;
mod scrubs;
mod task;
mod told_once;

pub(crate) use scrubs::Round;
pub use scrubs::{ScrubFindings, ScrubInfo, ScrubState};
pub(crate) use task::Task;
pub use task::{TaskInfo, TaskKind};

use super::pace::Pace;
use crate::drives::Limits;
use crate::error::PoolError;
use base::{Time, Uuid};
use futures_util::lock::{Mutex, MutexGuard};
use no_carriers::NoCarriers;
use scrubs::Scrubs;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use told_once::ToldOnce;

/// The work in the background of a lane.
#[derive(Debug, Default)]
pub(crate) struct Background {
    pace: Pace,
    limits: Cell<Limits>,
    /// What is under way, in the order in which it began.
    tasks: RefCell<Vec<Rc<Task>>>,
    scrubs: Scrubs,
    /// How often pages are looked for that lie over others.
    fill_pause: Cell<Option<Duration>>,
    no_carriers: NoCarriers,
    /// Drives that could not take a place of a zone.
    no_takers: NoCarriers,
    /// Why a zone that another lane wants could not be emptied, in this round.
    lending_failure: RefCell<Option<PoolError>>,
    /// Zones can't be emptied: there is no room.
    no_room: ToldOnce<()>,
    /// Groups that can't leave yet, as was told: by number, and what keeps them.
    groups_kept: RefCell<BTreeSet<(u16, &'static str)>>,
    /// Drives whose rebuilds have begun, as was told.
    rebuilds: RefCell<BTreeSet<Uuid>>,
    /// Why the last round ended early.
    trouble: ToldOnce<String>,
    /// Held while something is done.
    busy: Mutex<()>,
    /// Held while pages are made whole.
    filling: Mutex<()>,
    /// Nothing more is begun: the pool is being closed.
    is_ending: Cell<bool>,
}

impl Background {
    /// How fast the work goes.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// The limits of drives that are in force.
    pub fn limits(&self) -> Limits {
        self.limits.get()
    }

    /// How long a drive is waited for that nobody needs.
    pub fn patience(&self) -> Duration {
        self.limits().hung
    }

    /// Sets the limits of drives from now on.
    pub fn set_limits(&self, limits: Limits) {
        self.limits.set(limits);
    }

    /// Drives that could not take the logs over.
    pub fn no_carriers(&self) -> &NoCarriers {
        &self.no_carriers
    }

    /// Drives that could not take a place of a zone over.
    pub fn no_takers(&self) -> &NoCarriers {
        &self.no_takers
    }

    /// The scrubs since the opening.
    pub fn scrubs(&self) -> &Scrubs {
        &self.scrubs
    }

    /// How often pages are looked for that lie over others, if that was said.
    pub fn fill_pause(&self) -> Option<Duration> {
        self.fill_pause.get()
    }

    /// Says how often pages are looked for that lie over others.
    pub fn set_fill_pause(&self, pause: Duration) {
        self.fill_pause.set(Some(pause));
    }
}

/// What is under way.
impl Background {
    /// The tasks under way, at a glance.
    pub fn tasks(&self, now: Time) -> Vec<TaskInfo> {
        self.tasks
            .borrow()
            .iter()
            .map(|task| task.info(now))
            .collect()
    }

    /// Begins a task that so much of is done, of so much.
    pub fn begin(
        &self,
        kind: TaskKind,
        subject: &str,
        now: Time,
        progress: (u64, u64),
    ) -> Rc<Task> {
        let task = Rc::new(Task::of(kind, subject, now, progress));
        self.tasks.borrow_mut().push(Rc::clone(&task));
        task
    }

    /// Goes on with a task that was put off.
    pub fn resume(&self, task: &Rc<Task>, now: Time) {
        task.resume(now);
        self.tasks.borrow_mut().push(Rc::clone(task));
    }

    /// A task is put off for what goes before it.
    pub fn put_off(&self, task: &Rc<Task>) {
        self.end(task);
    }

    /// A task is not under way any more.
    pub fn end(&self, task: &Rc<Task>) {
        let mut tasks = self.tasks.borrow_mut();
        tasks.retain(|other| !Rc::ptr_eq(other, task));
    }

    /// Waits for the turn to do something.
    pub async fn be_busy(&self) -> MutexGuard<'_, ()> {
        self.busy.lock().await
    }

    /// Waits for the turn to make pages whole.
    pub async fn fill(&self) -> MutexGuard<'_, ()> {
        self.filling.lock().await
    }

    /// Whether the pool is being closed.
    pub fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    /// Ends when nothing is under way any more, and nothing will be: a pool that is
    /// closed has no write on its way.
    pub async fn end_all(&self) {
        self.is_ending.set(true);
        drop(self.busy.lock().await);
        drop(self.filling.lock().await);
    }
}

/// What is tried again, and told once.
impl Background {
    /// A zone that another lane wants could not be emptied. What else there is to do in this
    /// round is not held up for it.
    pub fn note_lending_failure(&self, error: PoolError) {
        self.lending_failure.replace(Some(error));
    }

    /// Why lending has failed in this round, if it has.
    pub fn take_lending_failure(&self) -> Option<PoolError> {
        self.lending_failure.take()
    }

    /// Whether it is to be told that there is no room to empty a zone.
    pub fn tells_no_room(&self) -> bool {
        self.no_room.is_new(())
    }

    /// There is room to empty zones again.
    pub fn has_room(&self) {
        self.no_room.forget();
    }

    /// Whether it is to be told that a group can't leave yet, since nobody can carry this.
    pub fn tells_group_kept(&self, group: u16, what: &'static str) -> bool {
        self.groups_kept.borrow_mut().insert((group, what))
    }

    /// A group carries nothing any more that would keep it.
    pub fn group_is_free(&self, group: u16) {
        self.groups_kept.borrow_mut().retain(|kept| kept.0 != group);
    }

    /// Whether it is to be told that the rebuild of a drive begins.
    pub fn tells_rebuild(&self, drive: Uuid) -> bool {
        self.rebuilds.borrow_mut().insert(drive)
    }

    /// A rebuild has ended: when the drive is rebuilt once more, that is told again.
    pub fn rebuild_has_ended(&self, drive: Uuid) {
        self.rebuilds.borrow_mut().remove(&drive);
    }

    /// Whether it is to be told why a round ended early.
    pub fn tells_trouble(&self, why: &str) -> bool {
        self.trouble.is_new(why.to_owned())
    }

    /// A whole round has ended.
    pub fn round_has_ended(&self) {
        self.trouble.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_pool_that_is_closed_waits_for_what_is_under_way() {
        let background = Background::default();
        let busy = background.be_busy().now_or_never();
        let filling = background.fill().now_or_never();
        let mut end = Box::pin(background.end_all());
        assert!(end.as_mut().now_or_never().is_none());
        assert!(background.is_ending());
        drop(busy);
        assert!(end.as_mut().now_or_never().is_none());
        drop(filling);
        assert!(end.now_or_never().is_some());
    }
}
