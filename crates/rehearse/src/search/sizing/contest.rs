//! All candidates, searched together: round by round, the small ones first.
//!
//! The trials of a round do not depend on each other, so they may be rehearsed at once; what is
//! tried next depends on all of them. So the result is the same on any number of cores.

use super::search::Search;
use super::{Candidate, Sized, Windows, built, fewest, is_whole};
use crate::error::RehearseError;
use crate::plan::profiles::Profiles;
use crate::search::brief::{self, Judged};
use site::plan::Plan;

/// As long as no mix is good, a round tries mixes of up to so many percent more drives than
/// the smallest that is to be tried.
const ROUND_PERCENT: u32 = 25;

/// The search for the smallest mix.
pub struct Contest<'a> {
    plan: &'a Plan,
    pool: &'a str,
    /// Whether each candidate is sized, also one that can't be the smallest.
    every: bool,
    searches: Vec<Search>,
}

/// A size of a candidate that is to be rehearsed.
pub struct Trial {
    /// Which candidate.
    place: usize,
    groups: u16,
    windows: Windows,
    name: String,
    plan: Plan,
}

impl Trial {
    /// For people: `6 × nvme-7680: 1 RAID 5 group of 5, 1 spare`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The site with the pool built so.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Rehearses it. What comes of it depends on the trial alone.
    ///
    /// # Errors
    /// As [`crate::run()`].
    pub fn judge(&self, profiles: Profiles<'_>) -> Result<Judged, RehearseError> {
        let seed = self.plan.run.seed;
        match self.windows {
            Windows::Brief(operations) => brief::judge(&self.plan, (seed, profiles), operations),
            Windows::Whole => brief::whole(&self.plan, seed, profiles),
        }
    }
}

impl<'a> Contest<'a> {
    /// The search for the smallest of `candidates` for a pool of a plan; or, with `every`, for
    /// the smallest size of each.
    pub fn new(
        (plan, pool): (&'a Plan, &'a str),
        candidates: &[Candidate],
        (windows, every): (Windows, bool),
        profiles: Profiles<'_>,
    ) -> Contest<'a> {
        let search = |candidate| {
            let least = fewest(plan, pool, candidate, profiles);
            Search::new(candidate, least, windows)
        };
        Contest {
            plan,
            pool,
            every,
            searches: candidates.iter().map(search).collect(),
        }
    }

    /// Searches to the end. `judge` gives what came of each trial of a round, in their order.
    ///
    /// # Errors
    /// The first that `judge` gives, other than that a mix can't be laid out.
    pub fn settle(
        mut self,
        mut judge: impl FnMut(&[Trial]) -> Vec<Result<Judged, RehearseError>>,
    ) -> Result<Vec<Sized>, RehearseError> {
        loop {
            let trials = self.round();
            if trials.is_empty() {
                break;
            }
            let judged = judge(&trials);
            assert_eq!(judged.len(), trials.len(), "each trial has an end");
            for (trial, judged) in trials.iter().zip(judged) {
                let search = &mut self.searches[trial.place];
                search.windows = trial.windows;
                search.take(trial.groups, judged)?;
            }
        }
        let smallest = self.smallest();
        let searches = self.searches.into_iter();
        Ok(searches.map(|search| search.finish(smallest)).collect())
    }

    /// Drives of the smallest mix so far that meets the limits.
    fn smallest(&self) -> Option<u32> {
        self.searches.iter().filter_map(Search::drives).min()
    }

    /// What is to be rehearsed next; nothing when the search is over.
    fn round(&self) -> Vec<Trial> {
        let smallest = self.smallest();
        let next = |search: &Search| {
            let bound = if self.every {
                search.drives()
            } else {
                smallest
            };
            search.next(bound)
        };
        let searches = self.searches.iter().enumerate();
        let mut pending: Vec<(u32, usize, u16)> = searches
            .filter_map(|(place, search)| {
                let groups = next(search)?;
                Some((search.candidate.drives(groups), place, groups))
            })
            .collect();
        let Some(least) = pending.iter().map(|(drives, ..)| *drives).min() else {
            return self.unproven().into_iter().collect();
        };
        if smallest.is_none() && !self.every {
            let most = least + least * ROUND_PERCENT / 100;
            pending.retain(|(drives, ..)| *drives <= most);
        }
        let trial = |(_, place, groups): (u32, usize, u16)| {
            self.trial(place, groups, self.searches[place].windows)
        };
        pending.into_iter().map(trial).collect()
    }

    /// The whole window of the smallest mix, of equal ones of that with the lower read latency,
    /// where it has not been measured.
    fn unproven(&self) -> Option<Trial> {
        let searches = self.searches.iter().enumerate();
        let met = searches.filter_map(|(place, search)| {
            let (groups, outcome) = search.met.as_ref()?;
            Some((place, search.candidate.drives(*groups), *groups, outcome))
        });
        let best = met.min_by(|(_, a, _, a_outcome), (_, b, _, b_outcome)| {
            let read_ms = |outcome: &crate::run::Outcome| outcome.load.total.read.response.mean_ms;
            a.cmp(b)
                .then(read_ms(a_outcome).total_cmp(&read_ms(b_outcome)))
        });
        let (place, _, groups, outcome) = best?;
        (!is_whole(self.plan, outcome)).then(|| self.trial(place, groups, Windows::Whole))
    }

    fn trial(&self, place: usize, groups: u16, windows: Windows) -> Trial {
        let candidate = &self.searches[place].candidate;
        let mut name = candidate.mix(groups);
        if windows == Windows::Whole {
            name.push_str(", whole window");
        }
        Trial {
            place,
            groups,
            windows,
            name,
            plan: built(self.plan, self.pool, candidate, groups),
        }
    }
}
