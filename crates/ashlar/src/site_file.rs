//! `ashlar site`.

use crate::failure::Failure;
use crate::output;
use rehearse::advice::{self, Finding, Severity};
use rehearse::demand::Demand;
use rehearse::{fit, thumb, workload};
use site::plan::{self, Described};
use site::{Site, SiteError, SiteErrorKind};
use std::path::{Path, PathBuf};

/// Names of variants that are said of a finding, before a number of them.
const VARIANTS_NAMED: usize = 2;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Say what is wrong with a site file, all of it; of one to rehearse, what could be better,
    /// too; touches nothing
    #[command(after_help = CHECK_HELP)]
    Check {
        /// The site file
        file: PathBuf,
    },
}

const CHECK_HELP: &str = "\
A file that describes hardware is one to rehearse: it is looked through for what published best
practice advises against. Each finding has its line, why it matters, what to do, and its source;
docs/SITE-CHECKS.md lists them all.

Exit codes: 0 when the file is right and nothing is found that is an error, 1 with such a finding,
2 for a file that is wrong.";

pub fn run(command: Command) -> Result<(), Failure> {
    let Command::Check { file } = command;
    // What can't be read, or is no TOML, `site::load` says below.
    let is_plan = std::fs::read_to_string(&file).is_ok_and(|text| plan::is_plan(&text));
    if is_plan {
        return check_plan(&file);
    }
    let site = site::load(&file).map_err(wrong)?;
    output::print(&format!("{}: good: {}\n", file.display(), summary(&site)))
}

/// A site file's mistakes as a failure.
pub fn wrong(error: SiteError) -> Failure {
    match error.kind {
        SiteErrorKind::Unreadable | SiteErrorKind::Invalid => Failure::Wrong(error.to_string()),
    }
}

fn summary(site: &Site) -> String {
    counted(&[
        (site.drives.len(), "drives"),
        (site.pools.len(), "pools"),
        (site.volumes.len(), "volumes"),
        (site.groups.len(), "consistency groups"),
        (site.exports.len(), "exports"),
        (site.vms.len(), "VMs"),
    ])
}

fn counted(counts: &[(usize, &str)]) -> String {
    let counts: Vec<String> = counts
        .iter()
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    counts.join(", ")
}

/// Prints what is found in a plan.
///
/// # Errors
/// `Wrong` for a plan that can't be, `Failed` with a finding that is an error.
fn check_plan(file: &Path) -> Result<(), Failure> {
    let described = plan::load(file, &[]).map_err(wrong)?;
    let file = file.display().to_string();
    let unfit = fit::fit_all(&described, &workload::named);
    if !unfit.is_empty() {
        let lines: Vec<String> = unfit
            .iter()
            .map(|wrong| format!("{file}:{wrong}"))
            .collect();
        return Err(Failure::Wrong(lines.join("\n")));
    }
    let findings = advice::advise_all(&described, &workload::named);
    let mut text = format!("{file}: to rehearse: {}\n", plan_summary(&described));
    text += &by_rule_of_thumb(&described);
    for severity in Severity::ALL {
        let ours = findings
            .iter()
            .filter(|finding| finding.check.severity == severity);
        text += &group(&file, severity, &ours.collect::<Vec<_>>());
    }
    output::print(&text)?;
    let is_error = |finding: &&Finding| finding.check.severity == Severity::Error;
    match findings.iter().filter(is_error).count() {
        0 => Ok(()),
        1 => Err(Failure::Failed(format!("{file}: 1 finding is an error"))),
        errors => Err(Failure::Failed(format!(
            "{file}: {errors} findings are errors"
        ))),
    }
}

fn plan_summary(described: &Described) -> String {
    let plan = &described.base;
    let demand = Demand::of(plan, &workload::named);
    counted(&[
        (plan.controllers.len(), "controllers"),
        (
            plan.lots.iter().map(|lot| lot.count as usize).sum(),
            "drives",
        ),
        (plan.pools.len(), "pools"),
        (plan.host_names().len(), "hosts"),
        (demand.vms.len(), "VMs"),
        (described.variants.len(), "variants"),
    ])
}

fn by_rule_of_thumb(described: &Described) -> String {
    let demand = Demand::of(&described.base, &workload::named);
    let pools = thumb::pools(&described.base, &demand);
    let lines = pools.iter().map(|pool| format!("  {}\n", pool.sentence));
    format!("\nBy the rule of thumb:\n{}", lines.collect::<String>())
}

/// Findings of one severity, those of a check together.
fn group(file: &str, severity: Severity, findings: &[&Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let heading = match severity {
        Severity::Error => "Errors",
        Severity::Warning => "Warnings",
        Severity::Info => "Worth knowing",
    };
    let mut text = format!("\n{heading}:\n");
    let mut said: Vec<&str> = Vec::new();
    for finding in findings {
        let check = &finding.check;
        if said.contains(&check.name) {
            continue;
        }
        said.push(check.name);
        for same in findings
            .iter()
            .filter(|other| other.check.name == check.name)
        {
            let (line, what, variants) = (same.line, &same.what, in_variants(&same.variants));
            text += &format!("  {file}:{line}: {}: {what}{variants}\n", check.name);
        }
        text += &format!(
            "      why:    {}\n      mend:   {}\n      source: {}\n",
            check.why, check.mend, check.source
        );
    }
    text
}

fn in_variants(variants: &[String]) -> String {
    let named = variants.iter().take(VARIANTS_NAMED);
    let named: Vec<String> = named.map(|name| format!("{name:?}")).collect();
    match variants.len() {
        0 => String::new(),
        1 => format!(" (in variant {})", named.join("")),
        2 => format!(" (in variants {})", named.join(" and ")),
        more => {
            let others = more - VARIANTS_NAMED;
            format!(" (in variants {} and {others} more)", named.join(", "))
        }
    }
}
