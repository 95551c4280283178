//! Load search: one factor on the whole workload, so that the response time meets a cap.
//!
//! As published scaling studies do: the mean (or 95th percentile) of the random I/O's
//! response time, reads and writes together, of the whole site. The factor scales the rates of
//! open loops, what closed loops have under way, and what threads ask for. Found by doubling or
//! halving until the cap lies between two factors, then by halving the distance until they are within
//! [`PRECISION`] of each other; the answer is the larger that meets the cap.
//!
//! A load that misses the cap while write logs still absorb its writes misses it for good, so it is
//! not measured longer. Where twice the load does no more operations, something before the
//! storage is the limit, such as the processors of a VM: the search ends there.

use crate::error::RehearseError;
use crate::plan::profiles::Profiles;
use crate::run::{Outcome, run_lasting_if};
use site::plan::Plan;
use workload::report::{Report, Verdict};

/// Two factors are taken for one within this.
pub const PRECISION: f64 = 0.02;

/// Twice the load does more than so many times the operations, or none of it reaches the storage.
const GROWTH: f64 = 1.05;

/// The smallest and the largest factor that is tried.
const FACTORS: (f64, f64) = (1.0 / 1024.0, 1024.0);

/// The figure of the response time that the cap applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capped {
    /// The arithmetic mean of all response times.
    Mean,
    /// 95 % of the operations are not longer.
    Percentile95,
}

/// What a search came to.
#[derive(Clone, Debug)]
pub struct Search {
    /// Loads tried, in the order of trying.
    pub tried: Vec<Tried>,
    /// The largest that meets the cap; none when the smallest that was tried is slower.
    pub found: Option<FoundLoad>,
}

/// A load that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// On the workload of the plan.
    pub factor: f64,
    /// Operations per second that came of it.
    pub iops: f64,
    /// The response time, milliseconds; none when what was due did not complete.
    pub response_ms: Option<f64>,
}

/// The load that meets a cap.
#[derive(Clone, Debug)]
pub struct FoundLoad {
    /// On the workload of the plan.
    pub factor: f64,
    /// What came of it.
    pub outcome: Outcome,
    /// The response time, milliseconds.
    pub response_ms: f64,
}

/// The response time of a run's random I/O, or of all where none is random; none when
/// what was due did not complete, which is as long as it gets.
pub fn response_ms(report: &Report, capped: Capped) -> Option<f64> {
    if report.verdict == Verdict::Invalid || report.verdict == Verdict::Errors {
        return None;
    }
    let streams = || report.vms.iter().flat_map(|vm| &vm.streams);
    let is_random = streams().any(|stream| stream.random);
    let kinds = streams()
        .filter(|stream| stream.random == is_random)
        .flat_map(|stream| [&stream.read.response, &stream.write.response]);
    let (mut count, mut sum) = (0.0, 0.0);
    for response in kinds {
        let value = match capped {
            Capped::Mean => response.mean_ms,
            Capped::Percentile95 => response.p95_ms,
        };
        count += response.count as f64;
        sum += response.count as f64 * value;
    }
    (count > 0.0).then_some(sum / count)
}

/// The plan with `factor` times its load.
pub fn scaled(plan: &Plan, factor: f64) -> Plan {
    let mut scaled = plan.clone();
    for vm_group in &mut scaled.vm_groups {
        vm_group.scale *= factor;
    }
    scaled
}

/// The loads that have been tried.
struct Trials<'a> {
    plan: &'a Plan,
    seed: u64,
    profiles: Profiles<'a>,
    cap: (Capped, f64),
    tried: Vec<Tried>,
    /// The largest that met the cap.
    best: Option<FoundLoad>,
}

impl Trials<'_> {
    /// The response time, where it meets the cap.
    fn meeting(&self, load: &Report) -> Option<f64> {
        let (capped, cap_ms) = self.cap;
        response_ms(load, capped).filter(|response_ms| *response_ms <= cap_ms)
    }

    /// Tries a load; its operations per second where it meets the cap.
    fn meets(
        &mut self,
        factor: f64,
        tell: &mut impl FnMut(f64, Option<f64>),
    ) -> Result<Option<f64>, RehearseError> {
        let scaled = scaled(self.plan, factor);
        let is_worth_it = |burst: &Report| self.meeting(burst).is_some();
        let outcome = run_lasting_if(&scaled, (self.seed, self.profiles), &is_worth_it)?;
        let iops = outcome.load.total.reads_per_s + outcome.load.total.writes_per_s;
        let response = response_ms(&outcome.load, self.cap.0);
        tell(factor, response);
        self.tried.push(Tried {
            factor,
            iops,
            response_ms: response,
        });
        let met = self.meeting(&outcome.load);
        let is_best = self.best.as_ref().is_none_or(|best| factor > best.factor);
        if let Some(response_ms) = met.filter(|_| is_best) {
            self.best = Some(FoundLoad {
                factor,
                outcome,
                response_ms,
            });
        }
        Ok(met.map(|_| iops))
    }

    /// A load that meets the cap and a larger one that does not, by doubling or halving; the same
    /// twice where none is in between.
    fn bounds(
        &mut self,
        tell: &mut impl FnMut(f64, Option<f64>),
    ) -> Result<(f64, f64), RehearseError> {
        let (mut low, mut high) = (1.0, 1.0);
        let Some(mut most) = self.meets(1.0, tell)? else {
            while low > FACTORS.0 {
                low /= 2.0;
                if self.meets(low, tell)?.is_some() {
                    break;
                }
                high = low;
            }
            return Ok((low, high));
        };
        while high < FACTORS.1 {
            high *= 2.0;
            let Some(iops) = self.meets(high, tell)? else {
                break;
            };
            low = high;
            if iops < most * GROWTH {
                break;
            }
            most = iops;
        }
        Ok((low, high))
    }
}

/// Finds the largest load whose response time is at most `cap_ms`.
///
/// # Errors
/// As [`run_lasting_if`].
pub fn find(
    plan: &Plan,
    (seed, profiles): (u64, Profiles<'_>),
    cap: (Capped, f64),
    mut tell: impl FnMut(f64, Option<f64>),
) -> Result<Search, RehearseError> {
    let mut trials = Trials {
        plan,
        seed,
        profiles,
        cap,
        tried: Vec::new(),
        best: None,
    };
    let (mut low, mut high) = trials.bounds(&mut tell)?;
    while high / low > 1.0 + PRECISION {
        let middle = (low * high).sqrt();
        match trials.meets(middle, &mut tell)? {
            Some(_) => low = middle,
            None => high = middle,
        }
    }
    Ok(Search {
        tried: trials.tried,
        found: trials.best,
    })
}
