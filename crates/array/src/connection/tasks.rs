//! The tasks of a connection in progress, their steps, and the aborts that wait for them.

use super::gauge::{Destination, Mark};
use crate::shard::session::{AbortRequest, Scope};
use futures_channel::oneshot;
use iscsi::connection::TaskId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::vec::Drain;

/// Commands of one connection do not begin while those before them hold this
/// much data; one alone always begins.
pub(crate) const IN_FLIGHT_BYTES_MAX: u64 = 32 << 20;

/// A command's own words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) lun: [u8; 8],
    pub(crate) cdb: scsi::Cdb,
    /// Data-out is to come.
    pub(crate) write: bool,
    /// Bytes that it holds while it is in progress: its data, and what its answer has beside.
    pub(crate) bytes: u64,
}

impl Order {
    /// Where it was sent.
    pub(crate) fn destination(&self) -> Destination {
        Destination {
            lun: self.lun,
            is_answered_anywhere: self.cdb.is_answered_anywhere(),
        }
    }
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waits for room.
    Waiting,
    /// Its data-out is coming.
    Collecting,
    /// Its command runs.
    Running,
    /// Its command runs, and nobody will be answered.
    Aborted,
}

struct Task {
    order: Order,
    stage: Stage,
    mark: Mark,
}

/// What is left of a task whose command has ended.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    /// It is to be answered.
    pub(crate) answer: bool,
    /// For those who count.
    pub(crate) mark: Option<Mark>,
}

/// What to do with a task that has been asked to abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aborted {
    /// It was not running: it is gone.
    AtOnce,
    /// It ends when its command does.
    WhenEnded,
}

struct Waiter {
    left: FxHashSet<TaskId>,
    aborted: usize,
    done: oneshot::Sender<usize>,
}

/// The tasks of one connection.
#[derive(Default)]
pub(crate) struct Tasks {
    tasks: FxHashMap<TaskId, Task>,
    waiting: VecDeque<TaskId>,
    waiters: Vec<Waiter>,
    in_flight_bytes: u64,
    /// How many wait for their data-out.
    collecting: usize,
    /// Where those were counted that are in progress no more, until that is asked.
    left: Vec<u16>,
}

impl Tasks {
    /// Takes a new command; [`Tasks::next`] gives it back when there is room.
    pub(crate) fn add(&mut self, task: TaskId, order: Order, mark: Mark) {
        self.tasks.insert(
            task,
            Task {
                order,
                stage: Stage::Waiting,
                mark,
            },
        );
        self.waiting.push_back(task);
    }

    /// Bytes that commands in progress hold.
    pub(crate) fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Bytes that the next command would hold, if the connection has room for it.
    pub(crate) fn next_bytes(&mut self) -> Option<u64> {
        loop {
            let task = self.waiting.front()?;
            let Some(entry) = self.tasks.get(task) else {
                // Aborted while it waited.
                self.waiting.pop_front();
                continue;
            };
            let (held, bytes) = (self.in_flight_bytes, entry.order.bytes);
            return (held == 0 || held + bytes <= IN_FLIGHT_BYTES_MAX).then_some(bytes);
        }
    }

    /// The next command that may begin, in the order they came.
    pub(crate) fn next(&mut self) -> Option<(TaskId, Order)> {
        self.next_bytes()?;
        let task = self.waiting.pop_front()?;
        let entry = self.tasks.get_mut(&task)?;
        entry.stage = if entry.order.write {
            Stage::Collecting
        } else {
            Stage::Running
        };
        self.in_flight_bytes += entry.order.bytes;
        self.collecting += usize::from(entry.order.write);
        Some((task, entry.order))
    }

    /// Whether data-out of a command that has begun is still to come.
    pub(crate) fn awaits_data(&self) -> bool {
        self.collecting > 0
    }

    /// Another task than this that waits for its data-out, if there is one.
    pub(crate) fn other_that_collects(&self, than: TaskId) -> Option<TaskId> {
        let mut tasks = self.tasks.iter();
        let found = tasks.find(|(id, task)| **id != than && task.stage == Stage::Collecting);
        found.map(|(id, _)| *id)
    }

    /// The data-out of `task` has come: its command runs from now on. `None`
    /// when the task is gone.
    pub(crate) fn run(&mut self, task: TaskId) -> Option<Order> {
        let entry = self.tasks.get_mut(&task)?;
        self.collecting -= usize::from(entry.stage == Stage::Collecting);
        entry.stage = Stage::Running;
        Some(entry.order)
    }

    /// The command of `task` has ended.
    pub(crate) fn end(&mut self, task: TaskId) -> Finished {
        let Some(entry) = self.remove(task) else {
            return Finished::default();
        };
        self.in_flight_bytes -= entry.order.bytes;
        let finished = |answer| Finished {
            answer,
            mark: Some(entry.mark),
        };
        if entry.stage != Stage::Aborted {
            return finished(true);
        }
        for waiter in &mut self.waiters {
            waiter.left.remove(&task);
        }
        self.answer_waiters();
        finished(false)
    }

    /// Forgets a task that does not run: its data-out will not come.
    pub(crate) fn forget(&mut self, task: TaskId) {
        if let Some(entry) = self.tasks.get(&task)
            && matches!(entry.stage, Stage::Waiting | Stage::Collecting)
        {
            self.remove_idle(task);
        }
    }

    /// Forgets all tasks that do not run: the connection takes no more data.
    pub(crate) fn forget_idle(&mut self) {
        let idle = |task: &Task| matches!(task.stage, Stage::Waiting | Stage::Collecting);
        let idle: Vec<_> = self
            .tasks
            .iter()
            .filter(|(_, task)| idle(task))
            .map(|(id, _)| *id)
            .collect();
        for task in idle {
            self.remove_idle(task);
        }
    }

    fn remove_idle(&mut self, task: TaskId) {
        if let Some(entry) = self.remove(task)
            && entry.stage == Stage::Collecting
        {
            self.in_flight_bytes -= entry.order.bytes;
            self.collecting -= 1;
        }
    }

    fn remove(&mut self, task: TaskId) -> Option<Task> {
        let entry = self.tasks.remove(&task)?;
        self.left.push(entry.mark.slot);
        Some(entry)
    }

    /// Where those are counted that have gone since this was asked before.
    pub(crate) fn left(&mut self) -> Drain<'_, u16> {
        self.left.drain(..)
    }

    /// Aborts `task`; `None` when it is not there.
    pub(crate) fn abort(&mut self, task: TaskId) -> Option<Aborted> {
        match self.tasks.get_mut(&task)?.stage {
            Stage::Waiting | Stage::Collecting => {
                self.remove_idle(task);
                Some(Aborted::AtOnce)
            }
            Stage::Running | Stage::Aborted => {
                if let Some(entry) = self.tasks.get_mut(&task) {
                    entry.stage = Stage::Aborted;
                }
                Some(Aborted::WhenEnded)
            }
        }
    }

    /// The tasks in `scope`.
    pub(crate) fn within(&self, scope: Scope) -> Vec<TaskId> {
        let is_within = |task: &Task| match scope {
            Scope::All => true,
            Scope::Unit(lun) => scsi::lun::decode(task.order.lun) == Some(lun),
        };
        self.tasks
            .iter()
            .filter(|(_, task)| is_within(task))
            .map(|(id, _)| *id)
            .collect()
    }

    /// Answers `request` when the tasks in `left`, which are aborted, have ended.
    pub(crate) fn answer_when_ended(
        &mut self,
        request: AbortRequest,
        aborted: usize,
        left: impl IntoIterator<Item = TaskId>,
    ) {
        let left = left.into_iter().collect();
        self.waiters.push(Waiter {
            left,
            aborted,
            done: request.done,
        });
        self.answer_waiters();
    }

    fn answer_waiters(&mut self) {
        for at in (0..self.waiters.len()).rev() {
            if self.waiters[at].left.is_empty() {
                let waiter = self.waiters.swap_remove(at);
                // Whoever asked may have gone away.
                let _ = waiter.done.send(waiter.aborted);
            }
        }
    }

    /// How many tasks are in progress.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(lun: u8, write: bool, bytes: u64) -> Order {
        Order {
            lun: [0, lun, 0, 0, 0, 0, 0, 0],
            cdb: [0; 16].into(),
            write,
            bytes,
        }
    }

    fn mark() -> Mark {
        Mark::new(base::Time::default(), scsi::cdb::Work::Other)
    }

    #[test]
    fn each_task_leaves_once_however_it_ends() {
        let mut tasks = Tasks::default();
        for (task, slot) in [(1, 1), (2, 1), (3, 2), (4, 3)] {
            let mut mark = mark();
            mark.slot = slot;
            tasks.add(TaskId(task), order(0, true, 1), mark);
        }
        while tasks.next().is_some() {}
        assert!(tasks.run(TaskId(1)).is_some());
        assert!(tasks.end(TaskId(1)).answer);
        tasks.forget(TaskId(2));
        assert_eq!(tasks.abort(TaskId(3)), Some(Aborted::AtOnce));
        assert_eq!(tasks.left().collect::<Vec<_>>(), [1, 1, 2]);
        tasks.abort(TaskId(3));
        assert!(tasks.run(TaskId(4)).is_some());
        assert_eq!(tasks.abort(TaskId(4)), Some(Aborted::WhenEnded));
        assert_eq!(tasks.left().count(), 0, "it still runs");
        tasks.end(TaskId(4));
        assert_eq!(tasks.left().collect::<Vec<_>>(), [3]);
    }

    fn request(scope: Scope) -> (AbortRequest, oneshot::Receiver<usize>) {
        let (done, aborted) = oneshot::channel();
        (AbortRequest { scope, done }, aborted)
    }

    #[test]
    fn commands_wait_for_room_in_their_order_and_a_large_one_alone_begins() {
        let mut tasks = Tasks::default();
        let half = IN_FLIGHT_BYTES_MAX / 2;
        tasks.add(TaskId(1), order(0, false, 2 * IN_FLIGHT_BYTES_MAX), mark());
        tasks.add(TaskId(2), order(0, false, half), mark());
        tasks.add(TaskId(3), order(0, true, half), mark());
        tasks.add(TaskId(4), order(0, false, 1), mark());
        assert_eq!(tasks.next().map(|(task, _)| task), Some(TaskId(1)));
        assert!(tasks.next().is_none());
        assert!(tasks.end(TaskId(1)).answer);
        assert_eq!(tasks.next().map(|(task, _)| task), Some(TaskId(2)));
        assert_eq!(tasks.next().map(|(task, _)| task), Some(TaskId(3)));
        assert!(tasks.next().is_none(), "no room for a single byte more");
        assert!(tasks.run(TaskId(3)).is_some());
        assert!(tasks.end(TaskId(3)).answer);
        assert_eq!(tasks.next().map(|(task, _)| task), Some(TaskId(4)));
    }

    #[test]
    fn an_aborted_command_is_not_answered_and_its_end_is_told() {
        let mut tasks = Tasks::default();
        for task in [1, 2] {
            tasks.add(TaskId(task), order(3, false, 10), mark());
            tasks.next();
        }
        tasks.add(TaskId(3), order(4, false, 10), mark());
        tasks.next();
        let within = tasks.within(Scope::Unit(3));
        assert_eq!(within.len(), 2);
        for task in &within {
            assert_eq!(tasks.abort(*task), Some(Aborted::WhenEnded));
        }
        let (asked, mut aborted) = request(Scope::Unit(3));
        tasks.answer_when_ended(asked, 2, within);
        assert!(!tasks.end(TaskId(1)).answer);
        assert!(tasks.end(TaskId(3)).answer, "another unit's");
        assert_eq!(aborted.try_recv(), Ok(None), "one is still running");
        assert!(!tasks.end(TaskId(2)).answer);
        assert_eq!(aborted.try_recv(), Ok(Some(2)));
    }

    #[test]
    fn a_command_that_waits_for_data_or_room_is_aborted_at_once() {
        let mut tasks = Tasks::default();
        tasks.add(TaskId(1), order(0, true, IN_FLIGHT_BYTES_MAX), mark());
        tasks.next();
        tasks.add(TaskId(2), order(0, false, 1), mark());
        assert_eq!(tasks.abort(TaskId(2)), Some(Aborted::AtOnce));
        assert_eq!(tasks.abort(TaskId(1)), Some(Aborted::AtOnce));
        assert_eq!(tasks.abort(TaskId(1)), None);
        assert!(tasks.run(TaskId(1)).is_none(), "its data comes too late");
        assert!(tasks.next().is_none());
        assert_eq!((tasks.len(), tasks.in_flight_bytes), (0, 0));
        let (asked, mut aborted) = request(Scope::All);
        tasks.answer_when_ended(asked, 2, []);
        assert_eq!(aborted.try_recv(), Ok(Some(2)));
    }

    #[test]
    fn a_connection_that_closes_forgets_what_does_not_run() {
        let mut tasks = Tasks::default();
        tasks.add(TaskId(1), order(0, true, 5), mark());
        tasks.add(TaskId(2), order(0, false, 5), mark());
        while tasks.next().is_some() {}
        tasks.add(TaskId(3), order(0, true, 5), mark());
        tasks.forget(TaskId(2));
        tasks.forget_idle();
        assert_eq!((tasks.len(), tasks.in_flight_bytes), (1, 5));
        assert!(tasks.end(TaskId(2)).answer);
        assert_eq!(tasks.in_flight_bytes, 0);
    }
}
