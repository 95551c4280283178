//! Finds the states that explain the outcomes of requests that were under way together.
//!
//! The control plane makes changes one at a time, so some order of them must explain all outcomes.

use super::model::Model;
use super::request::Request;
use array::control::{ArrayError, ArrayErrorKind};

/// What came of a request, as far as who asked knows.
#[derive(Clone, Debug)]
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
    pub(super) request: Request,
    pub(super) outcome: Outcome,
}

impl UnderWay {
    /// Whether a refusal needs no reason in the state: something else failed.
    fn is_excused(&self) -> bool {
        let Outcome::Refused(error) = &self.outcome else {
            return false;
        };
        matches!(
            error.kind,
            ArrayErrorKind::Internal | ArrayErrorKind::Unavailable
        )
    }

    /// After a restart: what could not be written may be on media all the same.
    pub(super) fn forget_failure(&mut self) {
        if let Outcome::Refused(error) = &self.outcome
            && error.kind == ArrayErrorKind::Internal
        {
            self.outcome = Outcome::Open;
        }
    }

    /// The states after it, of one before it. Where `all_may_be_refused`, something else may be in
    /// the way of each.
    fn next(&self, before: &Model, all_may_be_refused: bool) -> Vec<Model> {
        let outcomes = || self.request.outcomes(before, self.number);
        match &self.outcome {
            Outcome::Done => outcomes(),
            Outcome::Refused(_) => match all_may_be_refused
                || self.is_excused()
                || self.request.may_be_refused(before)
                || outcomes().is_empty()
            {
                true => vec![before.clone()],
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

/// The states that explain all outcomes; none when nothing does.
pub(super) fn explain(
    before: Model,
    under_way: &[UnderWay],
    all_may_be_refused: bool,
) -> Vec<Model> {
    let Some((last, others)) = under_way.split_first() else {
        return vec![before];
    };
    if others.is_empty() {
        return last.next(&before, all_may_be_refused);
    }
    let mut all: Vec<Model> = Vec::new();
    for first in 0..under_way.len() {
        let mut rest = under_way.to_vec();
        let one = rest.remove(first);
        for after in one.next(&before, all_may_be_refused) {
            for end in explain(after, &rest, all_may_be_refused) {
                if !all.contains(&end) {
                    all.push(end);
                }
            }
        }
    }
    all
}
