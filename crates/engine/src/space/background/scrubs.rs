//! The scrubs of a lane: whether one is wanted, and what the last whole one found.

use base::Time;
use std::cell::Cell;
use std::time::Duration;

/// What a scrub found, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubFindings {
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
    pub found: ScrubFindings,
}

/// The scrubs since the opening.
#[derive(Debug, Default)]
pub(crate) struct Scrubs {
    is_wanted: Cell<bool>,
    ended: Cell<u64>,
    /// When the last whole scrub ended, and what it found.
    last: Cell<Option<(Time, ScrubFindings)>>,
}

impl Scrubs {
    /// Asks for a scrub. One that is under way will do.
    pub fn want(&self) {
        self.is_wanted.set(true);
    }

    /// A scrub that is under way, or wanted, ends without a result.
    pub fn call_off(&self) {
        self.is_wanted.set(false);
    }

    /// Whether a scrub is to begin, or to go on.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.get()
    }

    /// A whole scrub ends.
    pub fn end(&self, now: Time, found: ScrubFindings) {
        self.is_wanted.set(false);
        self.last.set(Some((now, found)));
        self.ended.set(self.ended.get() + 1);
    }

    /// Whole scrubs since the opening.
    pub fn ended(&self) -> u64 {
        self.ended.get()
    }

    /// What the last whole scrub found.
    pub fn last_found(&self) -> Option<ScrubFindings> {
        self.last.get().map(|(_, found)| found)
    }

    /// The last whole scrub since the opening.
    pub fn last(&self, now: Time) -> Option<ScrubInfo> {
        let (ended, found) = self.last.get()?;
        Some(ScrubInfo {
            age: now.since(ended),
            found,
        })
    }
}
