//! `ashlar site`: checks, compares and applies site files.

use crate::client::Client;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::{self, Align, Format, Table};
use crate::overcommitment::VolumesBefore;
use api::{SiteAction, SiteDifference, SiteText};
use rehearse::advice::{self, Finding, Severity};
use rehearse::plan::demand::Demand;
use rehearse::plan::{fit, thumb};
use rehearse::report;
use site::plan::{self, Described};
use site::{Diagnostic, Site, SiteError, counted};
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Names of variants that are said of a finding, before a number of them.
const VARIANTS_NAMED: usize = 2;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Check a site file: name every mistake, and in hardware with a load what could be better
    #[command(after_help = CHECK_HELP)]
    Check {
        /// The site file
        file: PathBuf,
    },
    /// Show where a site file and the array differ; changes nothing
    #[command(after_help = DIFF_HELP)]
    Diff {
        /// The site file
        file: PathBuf,
        #[command(flatten)]
        format: Format,
    },
    /// Print the array as a site file, without its secrets
    #[command(after_help = SHOW_HELP)]
    Show {
        #[command(flatten)]
        format: Format,
    },
    /// Apply a site file to the array; deletes, shrinks and moves nothing
    #[command(after_help = APPLY_HELP)]
    Apply {
        /// The site file
        file: PathBuf,
        #[command(flatten)]
        format: Format,
        #[command(flatten)]
        confirm: Confirm,
    },
}

const SHOW_HELP: &str = "\
The array never shows secrets. In their place the file says \"not shown\", which no array accepts:
write the secret there before you apply the file. Exported snapshots, and gaps between LUNs, are
missing: a site file cannot describe them. So are volumes of pools that are not open: Ashlar warns.";

const DIFF_HELP: &str = "\
The array keeps its own configuration. `ashlar serve` takes it from the site file at the first start
only. Each line says what `ashlar site apply` would do: create, change, or keep what the array has.

Exit codes: 0 if there is nothing to create or change, 3 if there is.";

const APPLY_HELP: &str = "\
The command shows the differences, and asks. It then creates missing pools, portals, volumes, hosts
and exports. It changes settings, rates, thresholds, caches, and the admitted initiators of the
file's exports, and grows volumes. It deletes, shrinks and moves nothing.

Exit codes: 0 if the array is as the file says, 1 if a part could not be done: the error says why.";

const CHECK_HELP: &str = "\
A file that describes hardware and load can be rehearsed. Ashlar also compares it with published best
practice. In a file to serve without a load it checks the names of models, buses and controllers. Each finding has its line, the reason, the remedy, and its source.
docs/reference/site-checks.md lists all checks.

Exit codes: 0 if there is no finding of severity error, 1 if there is one, 2 if the file is wrong.";

pub fn run(command: Command, api: Option<&str>) -> Result<ExitCode, Failure> {
    match command {
        Command::Check { file } => check(&file).map(|()| ExitCode::SUCCESS),
        Command::Show { format } => show(&Client::new(api)?, format).map(|()| ExitCode::SUCCESS),
        Command::Diff { file, format } => diff(&Client::new(api)?, &file, format),
        Command::Apply {
            file,
            format,
            confirm,
        } => apply(&Client::new(api)?, &file, format, confirm),
    }
}

fn show(client: &Client, format: Format) -> Result<(), Failure> {
    let site: SiteText = client.get(&["site"])?;
    let left_out = site
        .text
        .lines()
        .map_while(|line| line.strip_prefix("# Left out: "));
    for what in left_out.filter(|_| !format.is_json()) {
        eprintln!("warning: left out: {what}");
    }
    format.print_text(&site, |site| site.text.clone())
}

fn check(file: &Path) -> Result<(), Failure> {
    // What can't be read, or is no TOML, `site::load` says below.
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let purposes = plan::purposes(&text);
    if purposes.served || !purposes.modelled {
        let site = load(file)?;
        output::print(&format!("{}: good: {}\n", file.display(), summary(&site)))?;
    }
    match purposes.modelled {
        true if purposes.served && !purposes.loaded => check_hardware(file),
        true => check_plan(file),
        false => Ok(()),
    }
}

/// Checks the hardware of a file that is served and has no load.
///
/// # Errors
/// `Wrong` for hardware that can't be.
fn check_hardware(file: &Path) -> Result<(), Failure> {
    let plan = plan::load_hardware(file).map_err(wrong)?;
    let file = file.display().to_string();
    fitting(&file, &fit::fit(&plan, &crate::rehearse::profile))?;
    output::print(&format!(
        "{file}: not to rehearse: it has no load, such as [[vm_group]] or [[vm]]\n"
    ))
}

/// Fails with what does not fit.
fn fitting(file: &str, unfit: &[Diagnostic]) -> Result<(), Failure> {
    let lines = unfit.iter().map(|wrong| format!("{file}:{wrong}"));
    match unfit.is_empty() {
        true => Ok(()),
        false => Err(Failure::Wrong(lines.collect::<Vec<_>>().join("\n"))),
    }
}

/// Reads a site file.
///
/// # Errors
/// It is wrong, or has secrets that others can read.
pub fn load(file: &Path) -> Result<Site, Failure> {
    let site = site::load(file).map_err(|error| not_served(file, error))?;
    // A file that can't be looked at any more is nobody's to read.
    let about = std::fs::metadata(file);
    match site.has_secrets() && about.is_ok_and(|about| others_read(&about)) {
        false => Ok(site),
        true => {
            let file = file.display();
            Err(Failure::Wrong(format!(
                "{file} has secrets, and others can read it: chmod go= {file}"
            )))
        }
    }
}

/// Whether others than its owner can read a file.
pub fn others_read(about: &Metadata) -> bool {
    about.permissions().mode() & 0o044 != 0
}

/// There is something to create or change.
const DIFFERS: u8 = 3;

fn diff(client: &Client, file: &Path, format: Format) -> Result<ExitCode, Failure> {
    let found = differences(client, &text_of(file)?)?;
    format.print_text(&found, |found| match found.is_empty() {
        true => as_said(file),
        false => table(found).render(),
    })?;
    Ok(match found.iter().any(is_to_do) {
        true => ExitCode::from(DIFFERS),
        false => ExitCode::SUCCESS,
    })
}

fn apply(
    client: &Client,
    file: &Path,
    format: Format,
    confirm: Confirm,
) -> Result<ExitCode, Failure> {
    let text = text_of(file)?;
    let found = differences(client, &text)?;
    if !found.is_empty() {
        format.before_answer(&table(&found).render())?;
    }
    let to_do = found.iter().filter(|one| is_to_do(one)).count();
    let mut done: Vec<SiteDifference> = Vec::new();
    if to_do > 0 {
        confirm.change(&counted(to_do as u64, "thing"))?;
        let before = VolumesBefore::look(client, format)?;
        done = client.post(&["site", "apply"], &text)?;
        before.warn(client);
    }
    let failed = done
        .iter()
        .filter_map(|one| Some((one, one.failed.as_ref()?)));
    let failed: Vec<String> = failed
        .map(|(one, why)| format!("{}: {why}", one.what))
        .collect();
    format.print_text(&done, |_| match (failed.is_empty(), to_do, found.len()) {
        (true, to_do, found) if to_do == found => as_said(file),
        (true, 0, _) => "nothing to change; what is to be kept stays\n".to_owned(),
        (true, ..) => {
            let changed = counted(to_do as u64, "thing");
            format!("changed: {changed}; what is to be kept stays\n")
        }
        (false, ..) => String::new(),
    })?;
    match failed.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(Failure::Failed(failed.join("\n"))),
    }
}

fn as_said(file: &Path) -> String {
    format!("the array is as {} says\n", file.display())
}

fn text_of(file: &Path) -> Result<SiteText, Failure> {
    // Said here, with the lines, before anything is asked of the array.
    load(file)?;
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::Wrong(format!("{}: {error}", file.display())))?;
    Ok(SiteText {
        file: file.display().to_string(),
        text,
    })
}

fn differences(client: &Client, text: &SiteText) -> Result<Vec<SiteDifference>, Failure> {
    client.post(&["site", "diff"], text)
}

fn is_to_do(one: &SiteDifference) -> bool {
    one.action != SiteAction::Keep
}

fn table(found: &[SiteDifference]) -> Table {
    let columns = ["ACTION", "WHAT", "HOW"];
    let mut table = Table::new(&columns.map(|column| (column, Align::Left)));
    for one in found {
        let action = match one.action {
            SiteAction::Create => "create",
            SiteAction::Change => "change",
            SiteAction::Keep => "keep",
        };
        table.row(vec![action.to_owned(), one.what.clone(), one.how.clone()]);
    }
    table
}

/// Why a file is not served; of a file to rehearse also what takes it.
fn not_served(file: &Path, error: SiteError) -> Failure {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let purposes = plan::purposes(&text);
    match purposes.modelled && !purposes.served {
        true => Failure::Wrong(format!(
            "{error}\n{file} describes a site to rehearse, not an array to serve: use `ashlar \
             rehearse {file}`",
            file = file.display()
        )),
        false => wrong(error),
    }
}

/// A site file's mistakes as a failure.
pub fn wrong(error: SiteError) -> Failure {
    Failure::Wrong(error.to_string())
}

fn summary(site: &Site) -> String {
    all_of(&[
        (site.drives.len(), "drive"),
        (site.pools.len(), "pool"),
        (site.volumes.len(), "volume"),
        (site.groups.len(), "consistency group"),
        (site.exports.len(), "export"),
        (site.vms.len(), "VM"),
    ])
}

fn all_of(counts: &[(usize, &str)]) -> String {
    let counts = counts.iter();
    let counts: Vec<String> = counts
        .map(|(count, thing)| counted(*count as u64, thing))
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
    fitting(&file, &fit::fit_all(&described, &crate::rehearse::profile))?;
    let findings = advice::advise_all(&described, &crate::rehearse::profile);
    let mut text = format!("{file}: to rehearse: {}\n", plan_summary(&described));
    text += &by_rule_of_thumb(&described);
    text += &report::assumed(&described.base);
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
    let demand = Demand::of(plan, &crate::rehearse::profile);
    let drives = plan.lots.iter().map(|lot| lot.count as usize).sum();
    all_of(&[
        (plan.controllers.len(), "controller"),
        (drives, "drive"),
        (plan.pools.len(), "pool"),
        (plan.host_names().len(), "host"),
        (demand.vms.len(), "VM"),
        (described.variants.len(), "variant"),
    ])
}

fn by_rule_of_thumb(described: &Described) -> String {
    let demand = Demand::of(&described.base, &crate::rehearse::profile);
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
            "      why:    {}\n      do:     {}\n      source: {}\n",
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
