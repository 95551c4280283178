//! Commands that run, and aborts of them, as a connection handles both.
//!
//! A command that is aborted runs to its end, and nobody is answered. Whoever sent it knows
//! that it is over from the answer to the function that aborted it: what it did, it did
//! before that. One whose session is lost runs to its end, too, but it does not begin anew:
//! while room is made for it, it is over.

use super::host::{Command, Host};
use engine::volume::CancelToken;
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all};
use scsi::management::Function;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;

/// Who aborts: a function with a number, somebody who preempts at a unit, or nobody: the
/// session is lost, and with it all that the initiator would have heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Function(u64),
    Preempting(usize),
    Loss,
}

/// A command that runs.
pub(super) struct Task {
    unit: usize,
    cancel: CancelToken,
    aborted: Cell<Option<By>>,
    /// Hears when the function that aborted it was answered.
    answer: RefCell<Option<oneshot::Sender<u64>>>,
    /// Hear that it has ended.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
    /// It is not at the engine: somebody makes room for it.
    pub(super) is_out: Cell<bool>,
}

impl Task {
    pub(super) fn is_of(&self, cancel: &CancelToken) -> bool {
        self.cancel.is(cancel)
    }

    /// Of a session that is lost: whatever it did, it did before this instant.
    pub(super) fn ends_if_lost(&self, now: u64) {
        if self.aborted.get() == Some(By::Loss)
            && let Some(answer) = self.answer.take()
        {
            // The host may be gone.
            let _ = answer.send(now);
        }
    }
}

impl Host {
    pub(super) fn begin_task(
        &self,
        command: &Command,
        cancel: &CancelToken,
    ) -> (Rc<Task>, oneshot::Receiver<u64>) {
        let (answer, answered) = oneshot::channel();
        let task = Rc::new(Task {
            unit: command.unit,
            cancel: cancel.clone(),
            aborted: Cell::new(None),
            answer: RefCell::new(Some(answer)),
            waiting: RefCell::default(),
            is_out: Cell::new(false),
        });
        // What changes or shows reservations is not aborted.
        if !command.needs.is_empty() {
            self.tasks.borrow_mut().push(Rc::clone(&task));
        }
        (task, answered)
    }

    /// It has ended. Whether anybody is to hear of it.
    pub(super) fn end_task(&self, task: &Rc<Task>) -> bool {
        self.tasks.borrow_mut().retain(|one| !Rc::ptr_eq(one, task));
        task.ends_if_lost(self.books.tick());
        for waiting in task.waiting.take() {
            // Who aborted it may be gone.
            let _ = waiting.send(());
        }
        task.aborted.get().is_none()
    }

    /// Aborts what runs at a LUN of a target; ends with the number when it has ended.
    pub(super) fn abort_at(&self, target: usize, lun: u16) -> LocalBoxFuture<'static, usize> {
        let unit = usize::from(lun);
        let by = match self.array.function.get() {
            Some(number) => By::Function(number),
            None => By::Preempting(unit),
        };
        let is_there = self.books.units[unit].target == target;
        let tasks = self.tasks.borrow();
        let meant = tasks.iter().filter(|task| is_there && task.unit == unit);
        let mut ends = Vec::new();
        for task in meant {
            if task.aborted.get().is_none() {
                task.aborted.set(Some(by));
                self.array.aborted.borrow_mut().push(Rc::clone(task));
            }
            task.cancel.stop();
            let (ended, end) = oneshot::channel();
            task.waiting.borrow_mut().push(ended);
            ends.push(end);
        }
        async move { join_all(ends).await.len() }.boxed_local()
    }

    /// Those who sent what was aborted hear that it is over.
    pub(super) fn answer_aborted(&self, by: By) {
        let now = self.books.tick();
        let is_meant = |task: &Rc<Task>| task.aborted.get() == Some(by);
        self.array.aborted.borrow_mut().retain(|task| {
            if is_meant(task)
                && let Some(answer) = task.answer.take()
            {
                // It may not wait for it yet, or any more.
                let _ = answer.send(now);
            }
            !is_meant(task)
        });
    }

    /// The session is lost: nobody hears what came of its commands. Those at the engine run
    /// to their end; those that wait for room are over now.
    pub(super) fn lose_session(&self) {
        let now = self.books.tick();
        for task in self.tasks.borrow().iter() {
            if task.aborted.get().is_none() {
                task.aborted.set(Some(By::Loss));
            }
            task.cancel.stop();
            if task.is_out.get() {
                task.ends_if_lost(now);
            }
        }
    }

    /// A task management function; then a look at what came of the commands that it aborted.
    pub(super) async fn manage(&self) {
        let (unit, number) = (self.any_unit(), self.books.tick());
        let functions = [
            Function::AbortTaskSet,
            Function::ClearTaskSet,
            Function::UnitReset,
        ];
        let function = functions[self.below(3) as usize];
        self.array.owe(unit, 1);
        self.world.note(|| {
            let name = &self.books.units[unit].name;
            format!("host {}, {name}: {function:?} begins", self.number)
        });
        let nexus = self.nexus(unit);
        let mut managed = pin!(nexus.manage(function, self.books.units[unit].lun()));
        // What is aborted is told from what others abort: it is, when this begins.
        poll_fn(|cx| {
            self.array.function.set(Some(number));
            let polled = managed.as_mut().poll_unpin(cx);
            self.array.function.set(None);
            polled
        })
        .await;
        self.answer_aborted(By::Function(number));
        self.world
            .note(|| format!("host {}: {function:?} ends", self.number));
        // At once: a copy that was aborted between reading and writing must not write now.
        self.read_field(unit).await;
        self.read_wide(unit).await;
    }
}
