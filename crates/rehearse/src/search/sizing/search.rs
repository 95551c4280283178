//! The search of one candidate: which sizes are known to miss and to meet, and which is next.
//!
//! Invariants: up to `low` groups miss the limits or do not hold the volumes; what `met` holds
//! is more than that, and was rehearsed.

use super::{Candidate, Sized, Tried, Windows, far_off, reason};
use crate::error::{RehearseError, RehearseErrorKind};
use crate::run::Outcome;
use crate::search::brief::Judged;

/// A candidate, and how far its search is.
pub(super) struct Search {
    pub(super) candidate: Candidate,
    /// How long its sizes are measured.
    pub(super) windows: Windows,
    /// So many groups are too few.
    low: u16,
    /// What to try next, as long as none has met the limits.
    step: u16,
    /// The fewest that met the limits, with what came of them.
    pub(super) met: Option<(u16, Outcome)>,
    tried: Vec<Tried>,
    reason: String,
}

impl Search {
    /// One that begins with `least` groups; or one that is over, as they do not hold the volumes.
    pub(super) fn new(
        candidate: &Candidate,
        least: Result<u16, String>,
        windows: Windows,
    ) -> Search {
        let (low, reason) = match least {
            Ok(least) => (least - 1, String::new()),
            Err(reason) => (candidate.most(), reason),
        };
        Search {
            candidate: candidate.clone(),
            windows,
            low,
            step: low + 1,
            met: None,
            tried: Vec::new(),
            reason,
        }
    }

    /// Drives of the fewest groups that met the limits.
    pub(super) fn drives(&self) -> Option<u32> {
        let (groups, _) = self.met.as_ref()?;
        Some(self.candidate.drives(*groups))
    }

    /// The number of groups to try next, when a mix of `smallest` drives meets the limits; none
    /// when that tells nothing new.
    pub(super) fn next(&self, smallest: Option<u32>) -> Option<u16> {
        let most = self.candidate.most();
        let within = smallest.map_or(most, |drives| self.candidate.groups_within(drives));
        if self.low >= within {
            return None;
        }
        match (&self.met, smallest) {
            (Some((high, _)), _) => {
                let high = (*high).min(within + 1);
                (high - self.low > 1).then(|| self.low.midpoint(high))
            }
            // Whether it can be as small at all.
            (None, Some(_)) => Some(within),
            (None, None) => Some(self.step),
        }
    }

    /// Takes what came of `groups`.
    ///
    /// # Errors
    /// What went wrong, other than that the volumes can't be laid out.
    pub(super) fn take(
        &mut self,
        groups: u16,
        judged: Result<Judged, RehearseError>,
    ) -> Result<(), RehearseError> {
        let judged = match judged {
            // What the site asks of these drives they do not have.
            Err(error) if error.kind == RehearseErrorKind::Site => {
                self.missed(groups, groups.saturating_mul(2));
                self.reason = format!("can't be laid out: {}", error.context);
                return Ok(());
            }
            judged => judged?,
        };
        let active = u32::from(groups) * u32::from(self.candidate.group_drives);
        let measured_s = match &judged {
            Judged::Rehearsed(_, outcome) => outcome.load.measured_s,
            Judged::GivenUp(_) => 0.0,
        };
        let met = matches!(judged, Judged::Rehearsed(true, _));
        self.tried.push(Tried {
            groups,
            met,
            measured_s,
        });
        match judged {
            Judged::Rehearsed(true, outcome) => self.met = Some((groups, *outcome)),
            Judged::Rehearsed(false, outcome) => {
                self.missed(groups, groups.saturating_mul(2));
                self.reason = reason(&outcome, active);
            }
            Judged::GivenUp(fallen) => {
                // Far off: the most tells whether there is any.
                self.missed(groups, self.candidate.most());
                self.reason = far_off(fallen, active);
            }
        }
        Ok(())
    }

    /// So many groups are too few.
    fn missed(&mut self, groups: u16, step: u16) {
        self.low = self.low.max(groups);
        self.step = step.min(self.candidate.most());
        // What met in a short window only.
        self.met.take_if(|(high, _)| *high <= groups);
    }

    /// What became of it, when the smallest mix has `smallest` drives.
    pub(super) fn finish(self, smallest: Option<u32>) -> Sized {
        let least = self.low + 1;
        let is_over = self.met.as_ref().map(|(high, _)| *high == least);
        let is_over = is_over.unwrap_or(self.low >= self.candidate.most());
        let mut sized = Sized {
            tried: self.tried,
            ..Sized::rejected(&self.candidate, self.reason)
        };
        if is_over {
            sized.met = self.met;
            return sized;
        }
        let larger = self.candidate.drives(least);
        let smallest = smallest.unwrap_or_default();
        sized.larger = Some(larger);
        sized.reason =
            format!("needs {larger} drives or more, and the smallest good mix has {smallest}");
        sized
    }
}
