//! The smallest drive mix of a pool that meets the KPIs, found by rehearsing.
//!
//! A candidate is a drive model, a level and a shape of group. For each, the number of groups
//! is searched: the fewest that hold the pool's volumes, doubled until the rehearsal meets
//! the limits, then halved in between. One spare comes to thirty drives. Every candidate is
//! rehearsed with the same seed and the same rest of the site.
//!
//! More groups are taken never to be worse, which holds but for noise; so what is found is the
//! smallest within one group or two.

use crate::catalog;
use crate::error::RehearseError;
use crate::run::{Outcome, run};
use load::report::Verdict;
use site::Level;
use site::plan::{Groups, Lot, Plan, Taken};

/// Drives of a pool at most: what an engine's pool can have, less spares.
const DRIVES_MAX: u32 = 120;

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
    /// Groups that were tried, and whether they met the limits, in the order of trying.
    pub tried: Vec<(u16, bool)>,
    /// Why it is no good, where it is not.
    pub reason: String,
}

impl Sized {
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

/// Searches the fewest groups of a candidate that meet the limits of `plan`.
///
/// # Errors
/// As [`run`], for what is no matter of size.
pub fn size(plan: &Plan, pool: &str, candidate: &Candidate) -> Result<Sized, RehearseError> {
    let mut sized = Sized {
        candidate: candidate.clone(),
        met: None,
        tried: Vec::new(),
        reason: String::new(),
    };
    let most = (DRIVES_MAX / u32::from(candidate.group_drives)) as u16;
    let Some(least) = (1..=most).find(|groups| holds(plan, pool, candidate, *groups)) else {
        sized.reason = format!("{DRIVES_MAX} drives do not hold the volumes");
        return Ok(sized);
    };
    let mut meets = |groups: u16| -> Result<bool, RehearseError> {
        let outcome = run(&built(plan, pool, candidate, groups), plan.run.seed)?;
        let met = outcome.load.verdict == Verdict::Pass;
        sized.tried.push((groups, met));
        match met {
            true if sized.met.as_ref().is_none_or(|(best, _)| groups < *best) => {
                sized.met = Some((groups, outcome));
            }
            true => {}
            false => sized.reason = reason(&outcome, groups, candidate),
        }
        Ok(met)
    };
    let (mut low, mut high) = (least, least);
    while !meets(high)? {
        if high == most {
            return Ok(sized);
        }
        (low, high) = (high, (high * 2).min(most));
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        match meets(middle)? {
            true => high = middle,
            false => low = middle,
        }
    }
    Ok(sized)
}

/// Whether the volumes find room: what the engine says when it is asked to lay them out.
fn holds(plan: &Plan, pool: &str, candidate: &Candidate, groups: u16) -> bool {
    let built = built(plan, pool, candidate, groups);
    crate::fit::fit(&built, &crate::workload::named).is_empty()
}

/// Why an outcome does not meet the limits.
fn reason(outcome: &Outcome, groups: u16, candidate: &Candidate) -> String {
    let drives = u32::from(groups) * u32::from(candidate.group_drives);
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
