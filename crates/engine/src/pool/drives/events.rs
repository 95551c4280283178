//! What people should know of, in order, as much as is worth keeping.

use base::Time;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Events kept.
const KEPT: usize = 1024;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A drive is out of use.
    DriveFailed,
    /// A drive is slow or has errors.
    DriveSuspect,
    /// A drive is as it should be again.
    DriveHealthy,
    /// A drive was not there, or not as it should be, when the pool was opened.
    DriveMissing,
    /// A spare has taken the place of a drive.
    SpareTaken,
    /// A rebuild has begun or ended.
    Rebuild,
    /// Damage was found and put right.
    BlockMended,
    /// Damage was found that can't be put right.
    BlockLost,
    /// Another drive carries metadata or logs now.
    CopyMoved,
    /// A scrub has begun or ended.
    Scrub,
    /// A group is added, gets another level, or leaves.
    Group,
    /// The pool has stopped.
    PoolStopped,
}

/// Something that people should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Rises by one with every event since the opening.
    pub sequence: u64,
    /// Since the world began.
    pub at: Time,
    /// What it is about.
    pub kind: EventKind,
    /// For people.
    pub text: String,
}

/// The newest events.
#[derive(Debug, Default)]
pub struct Events {
    kept: RefCell<VecDeque<Event>>,
    last: Cell<u64>,
}

impl Events {
    /// One more.
    pub fn push(&self, at: Time, kind: EventKind, text: String) {
        self.last.set(self.last.get() + 1);
        let sequence = self.last.get();
        let mut kept = self.kept.borrow_mut();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(Event {
            sequence,
            at,
            kind,
            text,
        });
    }

    /// Those after `sequence`.
    pub fn since(&self, sequence: u64) -> Vec<Event> {
        let kept = self.kept.borrow();
        kept.iter()
            .filter(|event| event.sequence > sequence)
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_numbered() {
        let events = Events::default();
        for number in 0..KEPT + 5 {
            events.push(Time(0), EventKind::Scrub, number.to_string());
        }
        let kept = events.since(0);
        assert_eq!((kept.len(), kept[0].sequence), (KEPT, 6));
        assert_eq!(events.since(KEPT as u64 + 4).len(), 1);
    }
}
