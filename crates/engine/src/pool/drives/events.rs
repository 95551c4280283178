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

/// The newest events. Where there is no room for all, those of damage that was put right
/// go first: thousands of them may come of one bad drive, and they must not hide what
/// became of it.
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
            let routine = |event: &Event| event.kind == EventKind::BlockMended;
            let goes = kept.iter().position(routine).unwrap_or(0);
            kept.remove(goes);
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

    #[test]
    fn many_mended_blocks_do_not_hide_what_happened_to_a_drive() {
        let events = Events::default();
        events.push(Time(0), EventKind::DriveMissing, "d1".to_owned());
        for number in 0..2 * KEPT {
            events.push(Time(0), EventKind::BlockMended, number.to_string());
        }
        let kept = events.since(0);
        assert_eq!((kept.len(), kept[0].text.as_str()), (KEPT, "d1"));
        assert_eq!(kept[KEPT - 1].text, (2 * KEPT - 1).to_string());
    }
}
