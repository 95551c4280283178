//! Tasks that are aborted: each by its tag, or all at a unit by a task management function.
//!
//! Whoever has aborted a task is told when it is over: whatever it did, it did before that.

use super::attention::Mark;
use super::host::{Command, Host};
use super::unit::Unit;
use crate::wire::aborts::{
    ABORT_TASK_SET, ANSWER_MAX, Aborting, CLEAR_TASK_SET, DONE, UNIT_RESET, abort,
};
use crate::wire::path::Path;
use array::wake::in_time;
use engine::World;
use std::rc::Rc;
use std::time::Duration;

/// There is no such unit (clause 11.6.1).
const NO_LUN: u8 = 2;

/// One command in so many is aborted.
const ABORTED_ONE_OF: u64 = 24;

/// Others give up what was aborted after this time.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(2);

impl Host {
    pub(super) fn any_function(&self) -> u8 {
        [ABORT_TASK_SET, CLEAR_TASK_SET, UNIT_RESET][self.below(3) as usize]
    }

    /// A task management function at a unit; then a look at what came of the commands that it
    /// aborted.
    pub(super) async fn manage(&self, function: u8) {
        let number = self.any_unit();
        let unit = &self.books.units[number];
        let Some(path) = self.slot_of(number).up().await else {
            return;
        };
        self.array.owe(number, 1);
        let note = |what: &str| {
            self.world.note(|| {
                let (host, name) = (self.number, &unit.name);
                format!("host {host}, {name}: function {function} {what}")
            });
        };
        note("begins");
        // ABORT TASK SET concerns its own session only.
        let meant = || match function {
            ABORT_TASK_SET => vec![Rc::clone(&path)],
            _ => self.array.paths(unit.target),
        };
        let mut aborting = Aborting::begin(unit.lun(), meant());
        if let Some(now) = self.manage_at(unit, function, &path).await {
            aborting.done(now, meant());
        }
        self.give_up_later(aborting);
        note("ends");
        // At once: a copy that was aborted between reading and writing must not write now.
        self.read_field(number).await;
        self.read_wide(number).await;
    }

    /// Has a function done; when it was over. Nothing, where there was no unit.
    async fn manage_at(&self, unit: &Unit, function: u8, path: &Path) -> Option<u64> {
        let (own, upsets) = (path.tasks_at(unit.lun()), unit.upsets.get());
        let hosts = self.array.all_hosts();
        let told = |host: &Host| host.told(unit.number).mark();
        let marks: Vec<Mark> = hosts.iter().map(|host| told(host)).collect();
        let managed = path.manage(function, unit.lun());
        let answer = in_time(&self.world, ANSWER_MAX, managed).await;
        let is_upset = unit.is_away() || unit.upsets.get() != upsets;
        match answer {
            Some(Some(DONE)) => {}
            Some(Some(NO_LUN)) if is_upset => return None,
            // It is over when its session is.
            Some(None) => {
                self.slot_of(unit.number).up().await;
                return Some(self.books.tick());
            }
            answer => {
                let host = self.number;
                self.fail(format!("host {host}: function {function}: {answer:?}"));
                return None;
            }
        }
        let now = self.books.tick();
        own.iter().for_each(|tag| path.end(*tag, now));
        if function == UNIT_RESET {
            for (host, mark) in hosts.iter().zip(marks) {
                host.told(unit.number).is_due_since(mark, now);
            }
        }
        Some(now)
    }

    /// Others do not hear that their tasks were aborted, and give them up.
    pub(super) fn give_up_later(&self, aborting: Aborting) {
        let array = Rc::clone(&self.array);
        self.world.spawn(async move {
            let tick = || array.books.tick();
            let given_up = aborting.give_up(&array.front, GIVEN_UP_AFTER, &tick);
            if let Err(what) = given_up.await {
                array.fail(format!("after a function: {what}"));
            }
        });
    }

    /// Now and then a task is aborted that has just begun.
    pub(super) fn abort_at_times(&self, (path, tag, lun): (Rc<Path>, u32, u16)) {
        if self.below(ABORTED_ONE_OF) > 0 {
            return;
        }
        let pause = Duration::from_nanos(self.below(200_000));
        let array = Rc::clone(&self.array);
        self.world.spawn(async move {
            array.world.sleep(pause).await;
            let tick = || array.books.tick();
            if let Err(what) = abort(&array.front, &path, (tag, lun), &tick).await {
                array.fail(what);
            }
        });
    }

    /// Aborts a command, if it runs.
    pub(super) async fn abort_running(&self, command: &Command) {
        let Some((path, tag)) = command.running.borrow().clone() else {
            return;
        };
        let lun = self.books.units[command.unit].lun();
        let tick = || self.books.tick();
        if let Err(what) = abort(&self.array.front, &path, (tag, lun), &tick).await {
            self.fail(what);
        }
    }
}
