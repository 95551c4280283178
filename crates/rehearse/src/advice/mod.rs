//! Named checks of a plan against published best practice.
//!
//! A plan that fits can still be one that nobody who does this for a living would build. Each
//! check has a name, why it matters, what to do, and where that is said; where no document was
//! at hand the source says "common practice". [`checks`] lists them all, and
//! `docs/reference/site-checks.md` is that list.
//!
//! Invariants: names are unique; a finding has the line of the item that it is about; the same
//! plan gives the same findings in the same order.

mod hosts;
mod layout;
mod paths;
mod pools;
mod runs;
mod table;

pub use table::table;

use crate::plan::demand::Demand;
use crate::plan::profiles::Profiles;
use crate::plan::thumb::{self, PoolThumb};
use site::plan::{Described, Plan};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Data or service is lost when something ordinary happens, or the plan can't do its work.
    Error,
    /// Slower or less safe than it has to be.
    Warning,
    /// Worth knowing; there may be a reason for it.
    Info,
}

impl Severity {
    /// All, the worst first.
    pub const ALL: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Info];

    /// The lower-case word for reports and scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// Something that plans are looked through for.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name, for people and scripts.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Why the finding matters: the harm that can follow, in a sentence.
    pub why: &'static str,
    /// How to change the plan so that the check finds nothing.
    pub mend: &'static str,
    /// Where that is said.
    pub source: &'static str,
    look: fn(&Scene<'_>, &mut CheckFindings),
}

/// Something that a check has found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The check that found it.
    pub check: Check,
    /// The line of the item it is about.
    pub line: usize,
    /// What was found, in a sentence without a full stop.
    pub what: String,
    /// The variants that it is about; none when it is the plan as it stands.
    pub variants: Vec<String>,
}

/// What checks look at.
struct Scene<'a> {
    plan: &'a Plan,
    demand: Demand,
    thumbs: Vec<PoolThumb>,
}

/// What a check has seen.
#[derive(Default)]
struct CheckFindings {
    found: Vec<(usize, String)>,
}

impl CheckFindings {
    fn add(&mut self, line: usize, what: impl Into<String>) {
        self.found.push((line, what.into()));
    }
}

const COMMON: &str = "common practice";
const RULES: &str = "array planning rules of 2011 (docs/internals/models.md, rule of thumb)";
const VBLOCK: &str = "VCE, Vblock System: RAID protection levels and packs";
const VNX_RAID: &str = "storagefreak.net, EMC VNX: RAID groups and storage pools";
const PAC: &str = "PAC Storage PS-3012, hardware manual, page 32";
const ISCSI: &str = "Quest KB 4046094, networking best practices for iSCSI";
const FS7500: &str = "Dell BP1024, Scaling and Best Practices with the FS7500";
const IP_HASH: &str = "VMware KB 1006795, NFS with IP hash load balancing";
const QUORUM: &str = "Microsoft, failover clusters: quorum and witness (cc773510)";
const FAN_IN: &str = "Brocade, SAN Design and Best Practices: fan-in and oversubscription";
const NUMA: &str = "Red Hat, Virtualization Tuning and Optimization Guide 7, 9.3";
const VCPUS: &str = "Red Hat, Virtualization Administration Guide 6, 6.2";
const SQL: &str = "SQL Server Storage Best Practices (SQL Server Pro, 2014)";
const ENGINE: &str = "crates/engine/src/store/README.md";
const REHEARSAL: &str = "crates/rehearse/README.md";

/// All checks, in the order in which they are made.
pub fn checks() -> Vec<Check> {
    [
        layout::CHECKS,
        pools::CHECKS,
        paths::CHECKS,
        hosts::CHECKS,
        runs::CHECKS,
    ]
    .concat()
}

/// Looks `plan` through: findings, the worst first, then by line.
pub fn advise(plan: &Plan, profiles: Profiles<'_>) -> Vec<Finding> {
    let demand = Demand::of(plan, profiles);
    let thumbs = thumb::pools(plan, &demand);
    let scene = Scene {
        plan,
        demand,
        thumbs,
    };
    let mut findings = Vec::new();
    for check in checks() {
        let mut seen = CheckFindings::default();
        (check.look)(&scene, &mut seen);
        let found = seen.found.into_iter();
        findings.extend(found.map(|(line, what)| Finding {
            check,
            line,
            what,
            variants: Vec::new(),
        }));
    }
    findings.sort_by_key(|finding| (finding.check.severity, finding.line));
    findings
}

/// The same of a file with variants. What a variant shares with the plan as it stands is said
/// once, and what several share is said where the first of them is asked for.
pub fn advise_all(described: &Described, profiles: Profiles<'_>) -> Vec<Finding> {
    let mut all = advise(&described.base, profiles);
    for variant in &described.variants {
        for finding in advise(&variant.plan, profiles) {
            let is_same = |other: &&mut Finding| {
                other.check.name == finding.check.name && other.what == finding.what
            };
            match all.iter_mut().find(is_same) {
                // As it stands, or this variant already.
                Some(other)
                    if other.variants.is_empty() || other.variants.contains(&variant.name) => {}
                Some(other) => other.variants.push(variant.name.clone()),
                None => all.push(Finding {
                    line: variant.line,
                    variants: vec![variant.name.clone()],
                    ..finding
                }),
            }
        }
    }
    all.sort_by_key(|finding| (finding.check.severity, finding.line));
    all
}
