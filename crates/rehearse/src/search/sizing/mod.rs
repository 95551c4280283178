//! The smallest drive mix of a pool that meets the KPIs, found by rehearsing.
//!
//! A candidate is a drive model, a level and a shape of group. One that the pool's volumes
//! do not fit on by arithmetic is rejected without being rehearsed. For each other, the number of
//! groups is searched: from the fewest that hold the volumes on doubled until the limits are
//! met, then halved in between. One spare comes to thirty drives. Every candidate is rehearsed
//! with the same seed and the same rest of the site.
//!
//! All candidates are searched together, those of few drives first ([`Contest`]). Once one
//! meets the limits, no other is tried with more drives than that: it could not be the smallest.
//!
//! The search takes short windows ([`crate::search::brief`]); the mix that is proposed has been measured over
//! the whole window. Where it misses a limit there, the search goes on.
//!
//! More groups are taken never to be worse, which holds but for noise; so the search finds the
//! smallest number within one group or two.
//!
//! Which sizes are tried depends on the plan alone, not on how many are rehearsed at once.

mod contest;
mod search;

pub use contest::{Contest, Trial};

use crate::plan::profiles::Profiles;
use crate::plan::{catalog, fit};
use crate::run::Outcome;
use crate::search::brief::Fallen;
use site::Level;
use site::plan::{DriveModel, DriveShare, Groups, Lot, Plan};
use workload::report::Verdict;

/// Drives of a pool at most: what an engine's pool can have, less spares.
const DRIVES_MAX: u32 = 120;

/// Drives for which one spare is kept.
const DRIVES_PER_SPARE: u32 = 30;

/// A way to build a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The name of the drive model in the file.
    pub model: String,
    /// The protection of each group.
    pub level: Level,
    /// Drives of a group.
    pub group_drives: u16,
}

impl Candidate {
    /// For people: `RAID 5 groups of 5 × sas-10k-600`.
    pub fn name(&self) -> String {
        let (level, drives) = (self.level.as_str(), self.group_drives);
        format!("RAID {level} groups of {drives} × {}", self.model)
    }

    /// For people, with so many groups: `11 × sas-10k-600: 2 RAID 5 groups of 5, 1 spare`.
    pub fn mix(&self, groups: u16) -> String {
        let (drives, model) = (self.drives(groups), &self.model);
        let layout = layout(self.level.as_str(), groups, self.group_drives, drives);
        format!("{drives} × {model}: {layout}")
    }

    /// Drives of so many groups, spares included.
    pub fn drives(&self, groups: u16) -> u32 {
        let active = u32::from(groups) * u32::from(self.group_drives);
        active + active.div_ceil(DRIVES_PER_SPARE)
    }

    /// Groups at most.
    fn most(&self) -> u16 {
        (DRIVES_MAX / u32::from(self.group_drives)) as u16
    }

    /// Groups of at most so many drives, spares included.
    fn groups_within(&self, drives: u32) -> u16 {
        let mut groups = (1..=self.most()).rev();
        groups
            .find(|groups| self.drives(*groups) <= drives)
            .unwrap_or(0)
    }
}

/// How drives are laid out, for people: `2 RAID 5 groups of 5, 1 spare`.
pub(crate) fn layout(level: &str, groups: u16, group_drives: u16, drives: u32) -> String {
    let active = u32::from(groups) * u32::from(group_drives);
    let groups = site::counted(groups.into(), &format!("RAID {level} group"));
    let spares = site::counted(drives.saturating_sub(active).into(), "spare");
    format!("{groups} of {group_drives}, {spares}")
}

/// What became of a candidate.
#[derive(Clone, Debug)]
pub struct Sized {
    /// The mix of drives that was tried.
    pub candidate: Candidate,
    /// Groups of the smallest that meets the limits, with what came of it; none when none
    /// does.
    pub met: Option<(u16, Outcome)>,
    /// Numbers of groups that were rehearsed, in the order of trying.
    pub tried: Vec<Tried>,
    /// Drives that it takes at least, spares included, where that is more than the smallest
    /// mix has, so that its search was ended.
    pub larger: Option<u32>,
    /// Why it is no good, or was not searched to the end.
    pub reason: String,
}

/// A number of groups that was rehearsed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Groups that the pool had.
    pub groups: u16,
    /// Whether they met the limits.
    pub met: bool,
    /// Seconds of virtual time that were measured; 0 when the run was given up.
    pub measured_s: f64,
}

impl Sized {
    /// A candidate that is no good, for this reason.
    pub fn rejected(candidate: &Candidate, reason: String) -> Sized {
        Sized {
            candidate: candidate.clone(),
            met: None,
            tried: Vec::new(),
            larger: None,
            reason,
        }
    }

    /// Whether the smallest that meets the limits was measured over the whole window of `plan`.
    pub fn is_whole(&self, plan: &Plan) -> bool {
        let met = self.met.as_ref();
        met.is_some_and(|(_, outcome)| is_whole(plan, outcome))
    }

    /// Drives of the smallest that meets the limits, spares included.
    pub fn drives(&self) -> Option<u32> {
        let (groups, _) = self.met.as_ref()?;
        Some(self.candidate.drives(*groups))
    }
}

/// Whether `outcome` was measured over the whole window of `plan`.
fn is_whole(plan: &Plan, outcome: &Outcome) -> bool {
    let run = &plan.run;
    let took_s = outcome.load.warmup_s + outcome.load.measured_s;
    took_s + 1e-3 > (run.warmup + run.measure).as_secs_f64()
}

/// Usual shapes: what published guides recommend for pools.
const SHAPES: [(Level, u16); 4] = [
    (Level::Raid10 { copies: 2 }, 8),
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
    let spares = candidate.drives(groups) - active;
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
        names: Vec::new(),
        drive_bytes: None,
        measured: DriveModel::named(&plan.drive_models, &candidate.model),
    });
    built.pools[place].groups = vec![Groups {
        role: engine::GroupRole::Data,
        level: candidate.level,
        spread: None,
        drives: candidate.group_drives,
        count: groups,
        from: LOT.to_owned(),
    }];
    built.pools[place].spares = vec![DriveShare {
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
    /// So many operations where that decides: [`crate::search::brief`].
    Brief(f64),
}

/// The fewest groups of a candidate that the volumes of `pool` fit on by arithmetic. What the
/// engine keeps for itself is not in it, so they may take a group more.
///
/// # Errors
/// Why there is no such number.
pub fn fewest(
    plan: &Plan,
    pool: &str,
    candidate: &Candidate,
    profiles: Profiles<'_>,
) -> Result<u16, String> {
    let holds = |groups: &u16| {
        let built = built(plan, pool, candidate, *groups);
        fit::fit(&built, profiles).is_empty()
    };
    let least = (1..=candidate.most()).find(holds);
    least.ok_or_else(|| format!("{DRIVES_MAX} drives do not hold the volumes"))
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
