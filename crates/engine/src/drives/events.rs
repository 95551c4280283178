//! The events that people should know of, in order, as many as are kept.

use base::{BLOCK_BYTES, DriveOffset, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

/// Events kept.
const KEPT: usize = 1024;

/// Damage of a drive that is found so soon after other damage of it is told with that.
const GAP: Duration = Duration::from_secs(10);

/// No event tells of more than so long.
const RUN: Duration = Duration::from_secs(60);

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
    /// A drive that was missing is there again.
    DriveBack,
    /// A drive warns of its own health.
    DriveWarning,
    /// A drive no longer does.
    DriveWarningOver,
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
    /// A snapshot that a schedule wants could not be taken, or not be deleted.
    Schedule,
    /// A volume that was on its way to or from another pool can't be served.
    Move,
    /// Something is gone from the trash.
    Trash,
    /// The pool is fuller than a threshold.
    Space,
    /// The pool is not fuller than a threshold any more.
    SpaceFreed,
    /// Work for the drives (spares, rebuild, scrub) failed, and is tried again.
    Trouble,
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
    /// A sentence for people, without the time.
    pub text: String,
    /// Blocks that it says are lost; of a scrub that has ended, all that it found lost.
    pub lost_blocks: Option<u64>,
}

/// What was put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mended {
    /// A block of data, or of parity.
    Data,
    /// A copy of a block of sums.
    Sums,
}

/// Blocks of a drive that were put right one soon after the other: one event.
#[derive(Debug)]
struct MendedRun {
    drive: String,
    what: Mended,
    /// Of the event.
    sequence: u64,
    began: Time,
    last: Time,
    /// The first and the last block.
    from: u64,
    to: u64,
    blocks: u64,
}

impl MendedRun {
    fn text(&self) -> String {
        let MendedRun {
            drive, from, to, ..
        } = self;
        let (where_, were) = match (self.blocks, self.what) {
            (1, Mended::Data) => (
                format!("{BLOCK_BYTES} bytes at {from}"),
                "were not what was written there, and are repaired",
            ),
            (many, Mended::Data) => (
                format!("{many} blocks of {BLOCK_BYTES} bytes at {from} to {to}"),
                "were not what was written there, and are repaired",
            ),
            (1, Mended::Sums) => (
                format!("the checksums at {from}"),
                "were behind or damaged, and are repaired from another copy",
            ),
            (many, Mended::Sums) => (
                format!("{many} blocks of checksums at {from} to {to}"),
                "were behind or damaged, and are repaired from another copy",
            ),
        };
        format!("drive '{drive}': {where_} {were}")
    }
}

/// The newest events. Where there is no room for all, those of damage that was put right
/// go first: thousands of them may come of one bad drive, and they must not hide what
/// became of it.
#[derive(Debug, Default)]
pub struct Events {
    kept: RefCell<VecDeque<Event>>,
    last: Cell<u64>,
    mended: RefCell<Vec<MendedRun>>,
}

impl Events {
    /// Keeps an event under the next number, and drops an old event when there are too many.
    pub fn push(&self, at: Time, kind: EventKind, text: String) {
        self.push_with(at, kind, text, None);
    }

    /// One more, which tells of so many lost blocks.
    pub fn push_with(&self, at: Time, kind: EventKind, text: String, lost_blocks: Option<u64>) {
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
            lost_blocks,
        });
    }

    /// A block of a drive was put right. When the same was told of the drive just before,
    /// that event goes, and a new one tells of both.
    pub fn mended(&self, now: Time, drive: &str, what: Mended, at: DriveOffset) {
        let mut runs = self.mended.borrow_mut();
        runs.retain(|run| now.since(run.last) <= GAP && now.since(run.began) <= RUN);
        let same = |run: &MendedRun| run.drive == drive && run.what == what;
        let index = match runs.iter().position(same) {
            Some(index) => index,
            None => {
                runs.push(MendedRun {
                    drive: drive.to_owned(),
                    what,
                    sequence: 0,
                    began: now,
                    last: now,
                    from: at.0,
                    to: at.0,
                    blocks: 0,
                });
                runs.len() - 1
            }
        };
        let run = &mut runs[index];
        run.last = now;
        run.from = run.from.min(at.0);
        run.to = run.to.max(at.0);
        run.blocks += 1;
        self.kept
            .borrow_mut()
            .retain(|event| event.sequence != run.sequence);
        self.push(now, EventKind::BlockMended, run.text());
        run.sequence = self.last.get();
    }

    /// The events that are kept whose numbers are above `sequence`, oldest first.
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
    fn blocks_put_right_one_soon_after_the_other_are_one_event() {
        let events = Events::default();
        let at = |seconds: u64| Time(Duration::from_secs(seconds).as_nanos() as u64);
        let texts = || -> Vec<String> {
            let kept = events.since(0).into_iter();
            kept.map(|event| event.text).collect()
        };
        events.mended(at(1), "d1", Mended::Data, DriveOffset(8192));
        let first = events.since(0)[0].sequence;
        assert!(texts()[0].starts_with("drive 'd1': 4096 bytes at 8192 "));
        events.push(at(2), EventKind::Scrub, "between".to_owned());
        events.mended(at(3), "d1", Mended::Data, DriveOffset(4096));
        events.mended(at(3), "d2", Mended::Data, DriveOffset(0));
        events.mended(at(3), "d1", Mended::Sums, DriveOffset(0));
        let found = texts();
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(
            found[1].starts_with("drive 'd1': 2 blocks ") && found[1].contains(" 4096 to 8192 ")
        );
        // Who asks for what is new hears of the two.
        assert_eq!(events.since(first).len(), 4);
        // Much later, or after a minute of them, it is another one.
        events.mended(at(30), "d1", Mended::Data, DriveOffset(0));
        assert_eq!(texts().len(), 5);
        for second in 31..100 {
            events.mended(at(second), "d1", Mended::Data, DriveOffset(0));
        }
        assert_eq!(texts().len(), 6);
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
