//! The smallest drive mix of a pool that meets the KPIs, found by rehearsing.
//!
//! A candidate is a drive model, a level and a shape of group. One that the pool's volumes
//! can't be laid out on is rejected without being rehearsed. For each other, the number of
//! groups is searched: from the fewest that hold the volumes on doubled until the limits are
//! met, then halved in between. One spare comes to thirty drives. Every candidate is rehearsed
//! with the same seed and the same rest of the site.
//!
//! The search takes short windows ([`brief`]); the mix that is proposed has been measured over the
//! whole window ([`proposed`]).
//!
//! More groups are taken never to be worse, which holds but for noise; so the search finds the
//! smallest number within one group or two.

use crate::brief::{self, Fallen, Judged};
use crate::catalog;
use crate::demand::Demand;
use crate::error::{RehearseError, RehearseErrorKind};
use crate::fit;
use crate::rig::Rig;
use crate::run::Outcome;
use crate::{thumb, workload};
use load::report::Verdict;
use site::Level;
use site::plan::{Groups, Lot, Plan, Taken};

/// Drives of a pool at most: what an engine's pool can have, less spares.
const DRIVES_MAX: u32 = 120;

/// A pool that is full to this share or less is laid out without a doubt.
const AMPLE: f64 = 0.9;

/// Drives for which one spare is kept.
const DRIVES_PER_SPARE: u32 = 30;

/// A way to build a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The drive model.
    pub model: String,
    /// Protection.
    pub level: Level,
    /// Drives of a group.
    pub group_drives: u16,
}

impl Candidate {
    /// For people: `RAID 5 of 5 × sas-10k-600`.
    pub fn name(&self) -> String {
        let (level, drives) = (self.level.as_str(), self.group_drives);
        format!("RAID {level} of {drives} × {}", self.model)
    }
}

/// What became of a candidate.
#[derive(Clone, Debug)]
pub struct Sized {
    /// Which.
    pub candidate: Candidate,
    /// Groups of the smallest that meets the limits, with what came of it; none when none
    /// does.
    pub met: Option<(u16, Outcome)>,
    /// Numbers of groups that were rehearsed, in the order of trying.
    pub tried: Vec<Tried>,
    /// Why it is no good, where it is not.
    pub reason: String,
}

/// A number of groups that was rehearsed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Groups.
    pub groups: u16,
    /// Whether they met the limits.
    pub met: bool,
    /// Seconds of virtual time that were measured; 0 when the run was given up.
    pub measured_s: f64,
}

impl Sized {
    /// A candidate before anything is rehearsed.
    fn new(candidate: &Candidate) -> Sized {
        Sized {
            candidate: candidate.clone(),
            met: None,
            tried: Vec::new(),
            reason: String::new(),
        }
    }

    /// A candidate that is not rehearsed.
    pub fn rejected(candidate: &Candidate, reason: String) -> Sized {
        Sized {
            reason,
            ..Sized::new(candidate)
        }
    }

    /// Whether the smallest that meets the limits was measured over the whole window of `plan`.
    pub fn is_whole(&self, plan: &Plan) -> bool {
        let (run, met) = (&plan.run, self.met.as_ref());
        met.is_some_and(|(_, outcome)| {
            let took_s = outcome.load.warmup_s + outcome.load.measured_s;
            took_s + 1e-3 > (run.warmup + run.measure).as_secs_f64()
        })
    }

    /// Drives of the smallest that meets the limits, spares included.
    pub fn drives(&self) -> Option<u32> {
        let (groups, _) = self.met.as_ref()?;
        let active = u32::from(*groups) * u32::from(self.candidate.group_drives);
        Some(active + active.div_ceil(DRIVES_PER_SPARE))
    }
}

/// Usual shapes: what published guides recommend for pools.
const SHAPES: [(Level, u16); 4] = [
    (Level::Raid10, 8),
    (Level::Raid5, 5),
    (Level::Raid6, 8),
    (Level::Raid50, 10),
];

/// All candidates of these drive models, or of all that are known.
pub fn candidates(models: &[String]) -> Vec<Candidate> {
    let known = catalog::DRIVES.iter().map(|(name, _)| (*name).to_owned());
    let models: Vec<String> = match models {
        [] => known.collect(),
        models => models.to_vec(),
    };
    let of_model = |model: &String| {
        SHAPES.map(|(level, group_drives)| Candidate {
            model: model.clone(),
            level,
            group_drives,
        })
    };
    models.iter().flat_map(of_model).collect()
}

/// The plan with `pool` built so, of `groups` groups.
pub fn built(plan: &Plan, pool: &str, candidate: &Candidate, groups: u16) -> Plan {
    const LOT: &str = "proposed";
    let mut built = plan.clone();
    let active = u32::from(groups) * u32::from(candidate.group_drives);
    let spares = active.div_ceil(DRIVES_PER_SPARE);
    let Some(place) = built.pools.iter().position(|other| other.name == pool) else {
        return built;
    };
    let before = built.pools[place]
        .groups
        .first()
        .map(|groups| groups.from.clone());
    let bus = built
        .lots
        .iter()
        .find(|lot| Some(&lot.name) == before.as_ref())
        .or(built.lots.first())
        .map(|lot| lot.bus.clone());
    built.lots.push(Lot {
        name: LOT.to_owned(),
        line: built.pools[place].line,
        model: candidate.model.clone(),
        count: active + spares,
        bus: bus.unwrap_or_default(),
    });
    built.pools[place].groups = vec![Groups {
        level: candidate.level,
        drives: candidate.group_drives,
        count: groups,
        from: LOT.to_owned(),
    }];
    built.pools[place].spares = vec![Taken {
        from: LOT.to_owned(),
        count: spares as u16,
    }];
    built
}

/// How long each size is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Windows {
    /// As the plan says.
    Whole,
    /// So many operations where that decides: [`brief`].
    Brief(f64),
}

/// Groups of a candidate at most.
fn most(candidate: &Candidate) -> u16 {
    (DRIVES_MAX / u32::from(candidate.group_drives)) as u16
}

/// The fewest groups of a candidate that the volumes of `pool` can be laid out on. Nothing is
/// rehearsed for it.
///
/// # Errors
/// Why there is no such number.
pub fn fewest(plan: &Plan, pool: &str, candidate: &Candidate) -> Result<u16, String> {
    let most = most(candidate);
    let Some(least) = (1..=most).find(|groups| holds(plan, pool, candidate, *groups)) else {
        return Err(format!("{DRIVES_MAX} drives do not hold the volumes"));
    };
    // What the engine keeps for itself is not in the arithmetic. Laying out takes seconds.
    if is_ample(plan, pool, candidate, least) {
        return Ok(least);
    }
    let lies = |groups: u16| {
        let built = built(plan, pool, candidate, groups);
        Rig::build(&built, plan.run.seed).map(drop)
    };
    let Err(why) = lies(least) else {
        return Ok(least);
    };
    let (mut low, mut high) = (least, most);
    if low == high || lies(high).is_err() {
        return Err(cannot_lie(&why));
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        match lies(middle) {
            Ok(()) => high = middle,
            Err(_) => low = middle,
        }
    }
    Ok(high)
}

fn cannot_lie(why: &RehearseError) -> String {
    format!("can't be laid out: {}", why.context)
}

/// Searches the fewest groups of a candidate that meet the limits of `plan`, from `least` on,
/// which [`fewest`] gives.
///
/// # Errors
/// As [`crate::run()`].
pub fn size(
    plan: &Plan,
    pool: &str,
    candidate: &Candidate,
    (least, windows): (u16, Windows),
) -> Result<Sized, RehearseError> {
    let mut search = Search {
        plan,
        pool,
        windows,
        sized: Sized::new(candidate),
    };
    let most = most(candidate);
    // Low misses the limits or does not hold the volumes; high is tried next.
    let (mut low, mut high) = (least - 1, least);
    loop {
        let trial = match search.trial(high) {
            // What the site asks of these drives they do not have.
            Err(error)
                if error.kind == RehearseErrorKind::Site && search.sized.tried.is_empty() =>
            {
                return Ok(Sized::rejected(candidate, cannot_lie(&error)));
            }
            trial => trial?,
        };
        let next = match trial {
            Trial::Met => break,
            Trial::Missed => (high * 2).min(most),
            // Far off: the most tells whether there is any.
            Trial::GivenUp => most,
        };
        if high == most {
            return Ok(search.sized);
        }
        (low, high) = (high, next);
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        match search.trial(middle)? {
            Trial::Met => high = middle,
            Trial::Missed | Trial::GivenUp => low = middle,
        }
    }
    Ok(search.sized)
}

/// Measures the whole window of the smallest good mix. Where that misses the limits, its search
/// goes on with whole windows, and the mix that is the smallest then is measured, until the
/// smallest has been measured whole.
///
/// # Errors
/// As [`crate::run()`].
pub fn proposed(
    plan: &Plan,
    pool: &str,
    mut sized: Vec<Sized>,
) -> Result<Vec<Sized>, RehearseError> {
    loop {
        let best = ranked(&sized).first().map(|best| best.candidate.clone());
        let best = best.and_then(|best| sized.iter_mut().find(|one| one.candidate == best));
        let Some(best) = best.filter(|best| !best.is_whole(plan)) else {
            return Ok(sized);
        };
        let Some((groups, _)) = best.met else {
            unreachable!("a ranked mix meets the limits")
        };
        let whole = size(plan, pool, &best.candidate, (groups, Windows::Whole))?;
        let tried = [best.tried.clone(), whole.tried.clone()].concat();
        *best = Sized { tried, ..whole };
    }
}

struct Search<'a> {
    plan: &'a Plan,
    pool: &'a str,
    windows: Windows,
    sized: Sized,
}

/// What became of a size.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trial {
    Met,
    Missed,
    GivenUp,
}

impl Search<'_> {
    /// Tries so many groups.
    fn trial(&mut self, groups: u16) -> Result<Trial, RehearseError> {
        let seed = self.plan.run.seed;
        let built = built(self.plan, self.pool, &self.sized.candidate, groups);
        let judged = match self.windows {
            Windows::Brief(operations) => brief::judge(&built, seed, operations)?,
            Windows::Whole => brief::whole(&built, seed)?,
        };
        let drives = u32::from(groups) * u32::from(self.sized.candidate.group_drives);
        let measured_s = match &judged {
            Judged::Rehearsed(_, outcome) => outcome.load.measured_s,
            Judged::GivenUp(_) => 0.0,
        };
        let (trial, reason) = match judged {
            Judged::Rehearsed(true, outcome) => {
                self.sized.met = Some((groups, *outcome));
                (Trial::Met, String::new())
            }
            Judged::Rehearsed(false, outcome) => (Trial::Missed, reason(&outcome, drives)),
            Judged::GivenUp(fallen) => (Trial::GivenUp, far_off(fallen, drives)),
        };
        self.sized.tried.push(Tried {
            groups,
            met: trial == Trial::Met,
            measured_s,
        });
        self.sized.reason = reason;
        Ok(trial)
    }
}

/// Why a size was given up.
fn far_off(fallen: Fallen, drives: u32) -> String {
    let behind_s = fallen.behind.as_secs_f64();
    format!(
        "{drives} drives do not take the load: {behind_s:.1} s behind after {} s, more each second, \
         and not rehearsed to the end",
        fallen.at_s
    )
}

/// Whether the volumes leave so much room that all that the engine keeps for itself has a place.
fn is_ample(plan: &Plan, pool: &str, candidate: &Candidate, groups: u16) -> bool {
    let built = built(plan, pool, candidate, groups);
    let demand = Demand::of(&built, &workload::named);
    let sized = built.pools.iter().enumerate();
    let mut sized = sized.filter(|(_, other)| other.name == pool);
    sized.all(|(place, pool)| {
        let disks = demand.disks_in(place);
        let taken: u64 = disks.map(|(_, disk)| disk.taken_bytes).sum();
        let bytes: u64 = thumb::group_bytes(&built, pool).iter().sum();
        taken as f64 <= bytes as f64 * AMPLE
    })
}

/// Whether the volumes find room, by arithmetic.
fn holds(plan: &Plan, pool: &str, candidate: &Candidate, groups: u16) -> bool {
    let built = built(plan, pool, candidate, groups);
    fit::fit(&built, &workload::named).is_empty()
}

/// Why an outcome does not meet the limits.
fn reason(outcome: &Outcome, drives: u32) -> String {
    let total = &outcome.load.total;
    let (read_ms, write_ms) = (total.read.response.mean_ms, total.write.response.mean_ms);
    match outcome.load.verdict {
        Verdict::Invalid => format!("{drives} drives do not take the load"),
        _ => format!("with {drives} drives reads take {read_ms:.1} ms, writes {write_ms:.1} ms"),
    }
}

/// The smallest first; of equal ones the one with the lower read latency.
pub fn ranked(sized: &[Sized]) -> Vec<&Sized> {
    let mut met: Vec<&Sized> = sized.iter().filter(|sized| sized.met.is_some()).collect();
    let read_ms = |sized: &Sized| {
        let outcome = sized.met.as_ref().map(|(_, outcome)| outcome);
        outcome.map_or(f64::MAX, |outcome| outcome.load.total.read.response.mean_ms)
    };
    met.sort_by(|a, b| {
        let drives = a.drives().cmp(&b.drives());
        drives.then(read_ms(a).total_cmp(&read_ms(b)))
    });
    met
}
