//! The rule for the content of one sector.
//!
//! A sector's history is the values that it may have: what each write to it would
//! leave. The rule:
//! - An acknowledged write replaces every value whose write ended before it
//!   began. Writes that overlap in time end in either order.
//! - A write that was cut off, or failed, may have left its value or not.
//! - A read may see a value that was not replaced before the read began.
//! - A read of a sector that no write was under way to sees *the* value: from then
//!   on all reads see it, until the next write. Two copies never take turns.

use crate::pattern::{Content, WriteId, ZEROES};

/// A point in the order of all begins and ends.
pub type Event = u64;

/// A value that a sector may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    id: WriteId,
    /// What is read then: its own, or zeroes when the write clears, or what was copied.
    shows: Content,
    began: Event,
    /// `None` while its write is under way.
    ended: Option<Event>,
    /// Reads that begin after this do not see it any more.
    replaced: Option<Event>,
    /// A clone was made with it, and this is when it was replaced in what was cloned.
    source_until: Option<Event>,
}

/// When what was seen of a clone can have been taken: from then, and until then.
pub type Instant = (Event, Event);

/// What was seen says nothing of an instant.
const ANY_TIME: Instant = (0, Event::MAX);

const NEVER_WRITTEN: Value = Value {
    id: ZEROES,
    shows: Content::ZEROES,
    began: 0,
    ended: Some(0),
    replaced: None,
    source_until: None,
};

/// The values that a sector may have. Empty: never written, zeroes.
#[derive(Clone, Debug, Default)]
pub struct History {
    values: Vec<Value>,
    /// When the last acknowledged write of it began that brought its content along.
    rewritten: Event,
}

impl History {
    /// How many values are kept.
    pub fn values(&self) -> usize {
        self.values.len()
    }

    /// A write begins, or what clears the sector: `shows` is what is read after it. What
    /// was replaced before `horizon` is forgotten.
    pub fn begin_write(&mut self, id: WriteId, shows: Content, began: Event, horizon: Event) {
        self.begin(id, std::iter::once(shows), began, horizon);
    }

    /// A restoring begins: what `from`, the same sector of a snapshot, may have is what
    /// this one may have after it.
    pub fn begin_restore(
        &mut self,
        id: WriteId,
        from: Option<&History>,
        began: Event,
        horizon: Event,
    ) {
        let there = from.filter(|history| !history.values.is_empty());
        match there {
            None => self.begin(id, std::iter::once(Content::ZEROES), began, horizon),
            Some(from) => {
                let left = from.values.iter().filter(|value| value.replaced.is_none());
                self.begin(id, left.map(|value| value.shows), began, horizon);
            }
        }
    }

    /// The sector is outside the volume now: of what was there, only what is under way may
    /// still come, should it be inside again by then. None, if nothing is.
    pub fn outside(self) -> Option<History> {
        let mut values = vec![NEVER_WRITTEN];
        values.extend(
            self.values
                .into_iter()
                .filter(|value| value.ended.is_none()),
        );
        (values.len() > 1).then_some(History {
            values,
            rewritten: 0,
        })
    }

    /// What `id` would have left does not come any more.
    pub fn forget(&mut self, id: WriteId) {
        self.values.retain(|value| value.id != id);
    }

    /// A copy begins: what it may leave is said by [`History::may_become`].
    pub fn begin_nothing(&mut self, id: WriteId, began: Event, horizon: Event) {
        self.begin(id, std::iter::empty(), began, horizon);
    }

    fn begin(
        &mut self,
        id: WriteId,
        shown: impl Iterator<Item = Content>,
        began: Event,
        horizon: Event,
    ) {
        if self.values.is_empty() {
            self.values.push(NEVER_WRITTEN);
        }
        self.values.retain(|value| {
            value.ended.is_none() || value.replaced.is_none_or(|replaced| replaced >= horizon)
        });
        self.values.extend(shown.map(|shows| Value {
            id,
            shows,
            began,
            ended: None,
            replaced: None,
            source_until: None,
        }));
    }

    /// What `id` may have left has ended; when it began.
    fn end(&mut self, id: WriteId, now: Event) -> Option<Event> {
        let mut began = None;
        for value in self.values.iter_mut().filter(|value| value.id == id) {
            value.ended = Some(now);
            began = Some(value.began);
        }
        began
    }

    /// When the last acknowledged write of it began that brought its content along.
    pub fn rewritten(&self) -> Event {
        self.rewritten
    }

    /// A write is acknowledged, which brought its content along or took it from elsewhere.
    pub fn acknowledge(&mut self, id: WriteId, now: Event, brought: bool) {
        let Some(began) = self.end(id, now) else {
            return;
        };
        self.rewritten = if brought {
            self.rewritten.max(began)
        } else {
            0
        };
        for value in &mut self.values {
            if value.ended.is_some_and(|ended| ended < began) {
                value.replaced.get_or_insert(now);
            }
        }
    }

    /// A write will never be acknowledged, and may have been done or not. It brought its
    /// content along, or took it from elsewhere.
    pub fn leave_open(&mut self, id: WriteId, now: Event, brought: bool) {
        if self.end(id, now).is_some() && !brought {
            self.rewritten = 0;
        }
        // What is shown by several that are over is one value.
        let mut over: Vec<Value> = Vec::new();
        self.values.retain(|value| {
            if value.ended.is_none() || value.replaced.is_some() || value.source_until.is_some() {
                return true;
            }
            match over.iter_mut().find(|other| other.shows == value.shows) {
                None => over.push(*value),
                Some(other) => {
                    // It counts as that of the first: a clone may have it from there.
                    if value.began < other.began {
                        other.id = value.id;
                    }
                    other.began = other.began.min(value.began);
                    other.ended = other.ended.max(value.ended);
                }
            }
            false
        });
        self.values.append(&mut over);
    }

    /// The history of a clone that began to be made at `began`, and was made by `now`:
    /// what the sector may have had in between, but for what came `after` that.
    pub fn cloned(&self, began: Event, now: Event, after: Option<WriteId>) -> History {
        let may = |value: &&Value| {
            value.replaced.is_none_or(|replaced| replaced > began)
                && after.is_none_or(|after| value.id != after)
        };
        let ended = |value: &Value| Value {
            ended: Some(value.ended.unwrap_or(now)),
            replaced: None,
            source_until: Some(value.replaced.unwrap_or(Event::MAX)),
            ..*value
        };
        History {
            values: self.values.iter().filter(may).map(ended).collect(),
            rewritten: 0,
        }
    }

    /// What the sector may have shown at some time since `began`, but for what `but` left.
    pub fn shown_since(&self, began: Event, but: WriteId) -> Vec<Content> {
        if self.values.is_empty() {
            return vec![Content::ZEROES];
        }
        let may = |value: &&Value| {
            value.id != but && value.replaced.is_none_or(|replaced| replaced > began)
        };
        let mut shown: Vec<Content> = Vec::new();
        for value in self.values.iter().filter(may) {
            if !shown.contains(&value.shows) {
                shown.push(value.shows);
            }
        }
        shown
    }

    /// What `id`, which began at `began` and is under way, may leave, too. False when that
    /// is known.
    pub fn may_become(&mut self, id: WriteId, shows: Content, began: Event) -> bool {
        let known = |value: &Value| value.id == id && value.shows == shows;
        if self.values.iter().any(known) {
            return false;
        }
        if self.values.is_empty() {
            self.values.push(NEVER_WRITTEN);
        }
        self.values.push(Value {
            id,
            shows,
            began,
            ended: None,
            replaced: None,
            source_until: None,
        });
        true
    }

    /// A read that began at `began` sees `shown`. For a clone, when that can have been
    /// taken.
    ///
    /// # Errors
    /// Why it may not.
    pub fn saw(&mut self, shown: Content, began: Event) -> Result<Instant, String> {
        let values = if self.values.is_empty() {
            &[NEVER_WRITTEN][..]
        } else {
            &self.values[..]
        };
        let allowed = |value: &&Value| value.replaced.is_none_or(|replaced| replaced > began);
        let seen = values.iter().filter(|value| value.shows == shown);
        let taken = |value: &Value| match value.source_until {
            Some(until) => (value.began, until),
            None => ANY_TIME,
        };
        let widest = |a: Instant, b: Instant| (a.0.min(b.0), a.1.max(b.1));
        let Some(instant) = seen.filter(allowed).map(taken).reduce(widest) else {
            let expected: Vec<_> = values.iter().filter(allowed).map(|v| v.shows).collect();
            return Err(format!(
                "read {shown} (a read begun at event {began}), allowed: {}; history {:?}",
                expected
                    .iter()
                    .map(Content::to_string)
                    .collect::<Vec<_>>()
                    .join(" or "),
                values
            ));
        };
        self.settle(shown, began);
        Ok(instant)
    }

    /// With no write under way since `began`, what was read is the value.
    fn settle(&mut self, shown: Content, began: Event) {
        let Some(quiet_since) = self.quiet_since() else {
            return;
        };
        if quiet_since >= began {
            return;
        }
        for value in &mut self.values {
            if value.shows != shown {
                value.replaced.get_or_insert(quiet_since);
            }
        }
    }

    /// The end of the last write, when none is under way.
    fn quiet_since(&self) -> Option<Event> {
        self.values
            .iter()
            .try_fold(0, |last, value| Some(last.max(value.ended?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_keeps_what_a_restoring_that_was_cut_off_would_have_left_as_well() {
        let place = crate::pattern::SectorPlace {
            volume: 1,
            sector: 768,
        };
        let written = Content::of(61, place);
        let mut history = History::default();
        history.begin_write(46, Content::ZEROES, 1, 0);
        history.acknowledge(46, 2, false);
        history.begin_write(61, written, 3, 0);
        // The volume is kept as a clone, and then restored to zeroes.
        let kept_at = 4;
        history.begin_restore(68, None, 5, 0);
        history.leave_open(61, 6, true);
        history.leave_open(68, 7, false);
        let mut clone = history.cloned(kept_at, 8, Some(68));
        assert_eq!(clone.clone().saw(written, 9), Ok((3, Event::MAX)));
        assert!(clone.saw(Content::ZEROES, 9).is_ok());
    }
}
