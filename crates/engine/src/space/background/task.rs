//! A task under way, and how far it is.

use base::Time;
use std::cell::Cell;
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
    /// It ends within so long, whatever commands come in.
    pub due: Option<Duration>,
}

/// Work under way. What is done never becomes less.
#[derive(Debug)]
pub(crate) struct Task {
    kind: TaskKind,
    subject: String,
    began: Cell<Time>,
    /// Bytes done before `began`.
    done_before: Cell<u64>,
    done: Cell<u64>,
    total: Cell<u64>,
    /// It ends by then, whatever commands come in.
    due: Cell<Option<Time>>,
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
            due: Cell::new(None),
        }
    }

    /// Goes on after it was put off: its rate is counted from now on.
    pub(super) fn resume(&self, now: Time) {
        self.began.set(now);
        self.done_before.set(self.done.get());
    }

    /// Bytes of drives that are done.
    pub fn done_bytes(&self) -> u64 {
        self.done.get()
    }

    /// Bytes of drives that are left.
    pub fn left_bytes(&self) -> u64 {
        self.total.get().saturating_sub(self.done.get())
    }

    /// It ends by then, whatever commands come in.
    pub fn set_due(&self, due: Option<Time>) {
        self.due.set(due);
    }

    /// So many bytes more are done.
    pub fn advance(&self, bytes: u64) {
        self.advance_to(self.done.get() + bytes);
    }

    /// So many bytes are done.
    ///
    /// # Panics
    /// When more were done already.
    pub fn advance_to(&self, bytes: u64) {
        let before = self.done.replace(bytes);
        assert!(before <= bytes, "a task of {bytes} bytes had done {before}");
    }

    /// There is so much to do in all.
    pub fn set_total(&self, bytes: u64) {
        self.total.set(bytes);
    }

    /// There is so much left to do.
    pub fn set_left(&self, bytes: u64) {
        self.total.set(self.done.get() + bytes);
    }

    pub(super) fn info(&self, now: Time) -> TaskInfo {
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
            due: self.due.get().map(|due| due.since(now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_was_put_off_counts_its_rate_anew() {
        let task = Task::of(TaskKind::Scrub, "tank", Time(0), (100, 1000));
        task.advance(100);
        let at = |seconds: u64| Time(seconds * 1_000_000_000);
        assert_eq!(task.info(at(1)).bytes_per_s, 100);
        task.resume(at(10));
        task.advance_to(220);
        task.set_left(60);
        let info = task.info(at(12));
        assert_eq!((info.done_bytes, info.total_bytes), (220, 280));
        assert_eq!(info.bytes_per_s, 10);
        assert_eq!(info.left, Some(Duration::from_secs(6)));
    }
}
