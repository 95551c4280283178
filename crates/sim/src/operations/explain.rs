//! Finds the states that explain the outcomes of requests that were under way together.
//!
//! The control plane makes changes one at a time, so some order of them must explain all outcomes.

use super::model::Model;
use super::request::Request;
use crate::control::UNWRITTEN;
use array::control::{ArrayError, ArrayErrorKind};

/// What came of a request, as far as who asked knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nobody knows: the power went.
    Open,
    Done,
    Refused(ArrayError),
}

/// A request that is or was under way.
#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    pub(super) number: u64,
    /// The boot that was asked for it.
    pub(super) boot: u64,
    pub(super) request: Request,
    pub(super) outcome: Outcome,
}

/// What may be in the way of requests beside the state of the array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Excuses {
    /// Shards stall: changes give their turns away, and others hear that.
    pub(super) shards_stall: bool,
    /// The record can't be written now and then.
    pub(super) record_fails: bool,
    /// What came into the trash before this second may be gone.
    pub(super) expired_unix_s: u64,
}

impl UnderWay {
    /// What nobody asked for, in this boot.
    pub(super) fn happened(request: Request, boot: u64) -> Self {
        UnderWay {
            number: 0,
            boot,
            request,
            outcome: Outcome::Done,
        }
    }

    /// Whether a refusal needs no reason in the state: something else failed, or a job that never
    /// began was in its way.
    fn is_excused(&self, all: &[UnderWay], excuses: Excuses) -> bool {
        let Outcome::Refused(error) = &self.outcome else {
            return false;
        };
        match error.kind {
            ArrayErrorKind::Internal => excuses.record_fails && self.has_failed(),
            ArrayErrorKind::Busy if all.iter().any(UnderWay::may_have_entered) => true,
            ArrayErrorKind::Unavailable | ArrayErrorKind::Busy | ArrayErrorKind::Exists => {
                excuses.shards_stall
            }
            _ => false,
        }
    }

    /// After a restart: what could not be written may be on media all the same.
    pub(super) fn forget_failure(&mut self) {
        if self.has_failed() {
            self.outcome = Outcome::Open;
        }
    }

    /// Whether the record could not be written.
    fn has_failed(&self) -> bool {
        let Outcome::Refused(error) = &self.outcome else {
            return false;
        };
        error.kind == ArrayErrorKind::Internal && error.context.contains(UNWRITTEN)
    }

    /// Whether it may have entered a job that is none: the record of jobs could not be written, or
    /// the power went before.
    fn may_have_entered(&self) -> bool {
        let is_unwritten = self.outcome == Outcome::Open || self.has_failed();
        self.request.job_of().is_some() && is_unwritten
    }

    /// Whether only the end of the change could not be written.
    fn is_made(&self) -> bool {
        let Outcome::Refused(error) = &self.outcome else {
            return false;
        };
        self.has_failed() && error.context.contains("the change is made")
    }

    /// Whether it ended a job that was refused in the end: while its record is written, it is listed.
    fn ends_none(&self, before: &Model, excuses: Excuses) -> bool {
        let Request::CancelJob { volume } = &self.request else {
            return false;
        };
        let may_be_refused = excuses.record_fails || excuses.shards_stall;
        may_be_refused && !before.jobs.contains_key(volume)
    }

    /// The states after it, of one before it, where `all` were under way.
    fn next(&self, before: &Model, all: &[UnderWay], excuses: Excuses) -> Vec<Model> {
        let outcomes = || self.request.outcomes(before, self.number);
        match &self.outcome {
            Outcome::Done if self.ends_none(before, excuses) => vec![before.clone()],
            Outcome::Done => outcomes(),
            Outcome::Refused(_) if self.is_made() => outcomes(),
            Outcome::Refused(_) => match self.is_excused(all, excuses)
                || self.request.may_be_refused(before, excuses.expired_unix_s)
                || outcomes().is_empty()
            {
                true => vec![self.request.refused(before)],
                false => Vec::new(),
            },
            Outcome::Open => {
                let mut all = outcomes();
                all.push(before.clone());
                all.extend(self.request.halfway(before, self.number));
                all
            }
        }
    }
}

/// As [`explain`], of what several boots were asked for: each came after those before it.
pub(super) fn explain_boots(before: Model, under_way: &[UnderWay], excuses: Excuses) -> Vec<Model> {
    let mut possible = vec![before];
    for of_boot in under_way.chunk_by(|one, next| one.boot == next.boot) {
        let explained = |before| explain(before, of_boot, (of_boot, excuses));
        possible = possible.into_iter().flat_map(explained).collect();
    }
    possible
}

/// The states that explain all outcomes; none when nothing does.
fn explain(
    before: Model,
    under_way: &[UnderWay],
    (all, excuses): (&[UnderWay], Excuses),
) -> Vec<Model> {
    let Some((last, others)) = under_way.split_first() else {
        return vec![before];
    };
    if others.is_empty() {
        return last.next(&before, all, excuses);
    }
    let mut ends: Vec<Model> = Vec::new();
    for first in 0..under_way.len() {
        let mut rest = under_way.to_vec();
        let one = rest.remove(first);
        for after in one.next(&before, all, excuses) {
            for end in explain(after, &rest, (all, excuses)) {
                if !ends.contains(&end) {
                    ends.push(end);
                }
            }
        }
    }
    ends
}
