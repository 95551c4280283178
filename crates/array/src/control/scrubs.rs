//! Scrubs that go on by themselves, from one start to the next.
//!
//! A lane scrubs by itself once it was told how far it had been (`engine`'s `ScrubState`); it has no
//! time of day. So the array keeps a note for each lane, with dates, and looks every few seconds:
//! a lane that was opened since gets its note, and the notes of the others follow their lanes.
//!
//! Invariants:
//! - A note is never ahead of its lane: a crash has some zones scrubbed twice, and none left out.
//! - The notes are only a matter of when: lost ones have the rounds begin anew, and no start fails
//!   because of them.

use super::{ArrayError, ControlPlane, Runtime};
use crate::records::Store;
use crate::shard::ShardState;
use base::Time;
use engine::pool::maintenance::{ScrubFindings, ScrubInfo, ScrubState};
use engine::{Lane, World};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How often to look how far the lanes are.
const LOOK: Duration = Duration::from_secs(2);

/// How long a round may go on before that is kept. A crash has so much scrubbed again.
const KEEP_EVERY: Duration = Duration::from_secs(300);

/// Notes that are kept. Those of pools that are gone are the oldest.
const NOTES_MAX: usize = 1024;

/// What a scrub found, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundNote {
    /// Blocks that were repaired.
    pub mended: u64,
    /// Blocks that are lost.
    pub lost: u64,
    /// Lost blocks that were known before.
    pub still_lost: u64,
}

/// A scrub that has gone over all zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndNote {
    /// When it ended, in seconds since 1970.
    pub ended_unix_s: u64,
    /// What it found in all zones together.
    pub found: FoundNote,
}

/// How far a lane's scrubs are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubNote {
    /// The identity of its pool.
    pub pool: String,
    /// Which lane it is.
    pub lane: u16,
    /// When the round began, in seconds since 1970.
    pub began_unix_s: u64,
    /// Zones below this one were scrubbed in it.
    pub next_zone: u32,
    /// All zones were, so the next round begins in its time.
    pub is_over: bool,
    /// What it found so far.
    pub found: FoundNote,
    /// The last whole scrub.
    pub last: Option<EndNote>,
}

impl From<ScrubFindings> for FoundNote {
    fn from(found: ScrubFindings) -> FoundNote {
        FoundNote {
            mended: found.mended,
            lost: found.lost,
            still_lost: found.still_lost,
        }
    }
}

impl From<FoundNote> for ScrubFindings {
    fn from(found: FoundNote) -> ScrubFindings {
        ScrubFindings {
            mended: found.mended,
            lost: found.lost,
            still_lost: found.still_lost,
        }
    }
}

impl ScrubNote {
    fn of<W: World>(lane: &Lane<W>, state: ScrubState, unix_s: u64) -> ScrubNote {
        let before = |age: Duration| unix_s.saturating_sub(age.as_secs());
        ScrubNote {
            pool: lane.info().uuid.to_string(),
            lane: lane.lane(),
            began_unix_s: before(state.age),
            next_zone: state.next_zone,
            is_over: state.is_over,
            found: state.found.into(),
            last: state.last.map(|last| EndNote {
                ended_unix_s: before(last.age),
                found: last.found.into(),
            }),
        }
    }

    /// As the lane is told. A clock that was set back makes nothing younger than now.
    fn state(&self, unix_s: u64) -> ScrubState {
        let age = |at: u64| Duration::from_secs(unix_s.saturating_sub(at));
        ScrubState {
            age: age(self.began_unix_s),
            next_zone: self.next_zone,
            is_over: self.is_over,
            found: self.found.into(),
            last: self.last.map(|last| ScrubInfo {
                age: age(last.ended_unix_s),
                found: last.found.into(),
            }),
        }
    }

    fn is_of(&self, other: &ScrubNote) -> bool {
        self.pool == other.pool && self.lane == other.lane
    }

    /// Whether `new` is to be kept at once: a scrub has ended since, or a round begun.
    fn is_past(&self, new: &ScrubNote) -> bool {
        let ends = |note: &ScrubNote| note.last.map(|last| last.found);
        let is_later = |a: u64, b: u64| a.abs_diff(b) > LOOK.as_secs();
        self.is_over != new.is_over
            || ends(self) != ends(new)
            || is_later(self.began_unix_s, new.began_unix_s)
    }
}

/// The notes, and when they were kept last.
struct Notes {
    record: Arc<dyn Store<Vec<ScrubNote>>>,
    all: Vec<ScrubNote>,
    /// None when what changed since is to be kept at once.
    kept_at: Option<Time>,
    is_changed: bool,
}

impl Notes {
    /// Has the note of a lane be this one.
    fn follow(&mut self, note: ScrubNote) {
        let found = self.all.iter().position(|kept| kept.is_of(&note));
        let Some(found) = found else {
            self.all.push(note);
            let gone = self.all.len().saturating_sub(NOTES_MAX);
            self.all.drain(..gone);
            (self.kept_at, self.is_changed) = (None, true);
            return;
        };
        let kept = &mut self.all[found];
        // Its dates come from ages, and may be a second off.
        let is_further = kept.next_zone != note.next_zone || kept.found != note.found;
        let is_past = kept.is_past(&note);
        if is_past {
            self.kept_at = None;
        }
        if is_further || is_past {
            (*kept, self.is_changed) = (note, true);
        }
    }

    /// Keeps them if it is time to.
    async fn keep(&mut self, runtime: &dyn Runtime) {
        let now = runtime.now();
        let is_time = self.kept_at.is_none_or(|at| now.since(at) >= KEEP_EVERY);
        if !(self.is_changed && is_time) {
            return;
        }
        self.kept_at = Some(now);
        match self.record.keep(self.all.clone()).await {
            Ok(()) => self.is_changed = false,
            Err(error) => {
                tracing::error!("how far scrubs are is not kept, and tried again: {error}")
            }
        }
    }
}

impl<W: World> ControlPlane<W> {
    /// Has pools scrub by themselves from now on, as their settings say, going on from these notes.
    pub fn keep_scrubs(
        self: &Arc<Self>,
        (record, notes): (Arc<dyn Store<Vec<ScrubNote>>>, Vec<ScrubNote>),
    ) {
        let mut notes = Notes {
            record,
            all: notes,
            kept_at: None,
            is_changed: false,
        };
        let array = Arc::downgrade(self);
        let runtime = Arc::clone(&self.runtime);
        let keep = async move {
            while let Some(array) = array.upgrade() {
                // A shard that has stopped has no lanes any more.
                let _ = array.follow_scrubs(&mut notes).await;
                drop(array);
                notes.keep(&*runtime).await;
                runtime.sleep(LOOK).await;
            }
        };
        self.runtime.spawn(keep.boxed());
    }

    /// Tells lanes that were opened since how far they had been, and notes how far the others are.
    async fn follow_scrubs(&self, notes: &mut Notes) -> Result<(), ArrayError> {
        for shard in &self.shards {
            let (kept, unix_s) = (notes.all.clone(), self.unix_s());
            let visit = move |state: Rc<ShardState<W>>| async move {
                let lanes = state.pools();
                let follow = |lane: &Lane<W>| follow_lane(lane, &kept, unix_s);
                lanes.iter().map(follow).collect::<Vec<ScrubNote>>()
            };
            for note in shard.call(visit).await? {
                notes.follow(note);
            }
        }
        Ok(())
    }
}

/// How far a lane is; one that was not told yet goes on from its note first.
fn follow_lane<W: World>(lane: &Lane<W>, kept: &[ScrubNote], unix_s: u64) -> ScrubNote {
    if lane.scrub_state().is_none() {
        let fresh = ScrubNote::of(lane, ScrubState::default(), unix_s);
        let mut kept = kept.iter();
        let from = kept.find(|note| note.is_of(&fresh)).unwrap_or(&fresh);
        lane.go_on_scrubbing(from.state(unix_s));
    }
    ScrubNote::of(lane, lane.scrub_state().unwrap_or_default(), unix_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(next_zone: u32, ended_unix_s: u64) -> ScrubNote {
        let found = FoundNote::default();
        ScrubNote {
            pool: "p".to_owned(),
            lane: 0,
            began_unix_s: 100,
            next_zone,
            is_over: ended_unix_s > 0,
            found,
            last: (ended_unix_s > 0).then_some(EndNote {
                ended_unix_s,
                found,
            }),
        }
    }

    #[test]
    fn a_note_gives_the_state_back_with_the_time_that_has_passed() {
        let state = note(3, 150).state(200);
        assert_eq!((state.age, state.next_zone), (Duration::from_secs(100), 3));
        assert_eq!(state.last.unwrap().age, Duration::from_secs(50));
        let set_back = note(3, 150).state(20);
        assert_eq!(set_back.age, Duration::ZERO);
    }
}
