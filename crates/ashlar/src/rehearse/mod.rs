//! `ashlar rehearse`: simulates a described site in virtual time.

mod drive_model;
mod files;
mod parallel;
pub mod size;
mod source;

use crate::capture::seal;
use crate::failure::Failure;
use crate::output;
use crate::site_file::wrong;
use files::Files;
use load::trace_file;
use parallel::Progress;
use rehearse::findings::comparison;
use rehearse::findings::summary::Rehearsal;
use rehearse::plan::demand::Demand;
use rehearse::plan::{fit, profiles, thumb};
use rehearse::report::{self, schema::VariantReport};
use rehearse::search::load_factor::{self, Capped};
use rehearse::{RehearseError, RehearseErrorKind};
use site::plan::{self, Described, Plan, Setting};
use std::path::{Path, PathBuf};
use workload::profile::Profile;

/// The workload of a name that plans use, with traces from files.
///
/// # Errors
/// A sentence: what is allowed, or what is wrong with the trace.
pub fn profile(name: &str) -> Result<Profile, String> {
    profiles::find(name, trace_file::open)
}

/// Rehearse a site: its load on the real engine over modelled hardware, in virtual time
///
/// The result names the operations per second, the response times, where the time goes, and the
/// bottleneck. The command writes only the reports that you ask for.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The site file. Hardware that it does not say is assumed, and named in the report
    file: PathBuf,
    /// Change a key of the file first, such as network.san.mtu=9000; may be given more than
    /// once
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = Setting::parse)]
    settings: Vec<Setting>,
    /// Give all drives the model of this file, which `ashlar calibrate` has written
    #[arg(long, value_name = "FILE")]
    drive_model: Option<PathBuf>,
    /// Take a capture that was edited after it was made
    #[arg(long)]
    edited: bool,
    /// Run the variants of the file, too, and compare them
    #[arg(long, conflicts_with = "find_load")]
    compare: bool,
    /// Run only this variant; may be given more than once
    #[arg(long = "variant", value_name = "NAME")]
    variants: Vec<String>,
    /// Scale the load until the mean response time of random I/O meets this limit, such as 20ms;
    /// "p95:20ms" for the 95th percentile
    #[arg(long, value_name = "CAP", value_parser = cap)]
    find_load: Option<Cap>,
    /// Measure only when operations per second and response times have settled (SNIA's rule)
    #[arg(long)]
    until_steady: bool,
    /// Measure once, as the file says: also a burst that write logs and memory absorb
    #[arg(long, conflicts_with_all = ["until_steady", "find_load"])]
    once: bool,
    /// Number of seeds to run, instead of the file's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    seeds: Option<u16>,
    /// Write all figures as JSON to this file; "-" for standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with a drawing of the site, charts and tables to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Sites to start from are in sites/: vnx5700, fas3160, fs7500, ps6110xv, hyperv-r2-lab, nvme-today.
Several seeds and variants run on all cores. The same file, settings and seed give the same
figures, byte by byte. docs/internals/models.md describes the models, and how far they are off.";

/// A limit of the response time.
#[derive(Clone, Copy, Debug)]
struct Cap {
    capped: Capped,
    ms: f64,
}

fn cap(text: &str) -> Result<Cap, String> {
    let (capped, time) = match text.split_once(':') {
        Some(("p95", time)) => (Capped::Percentile95, time),
        Some(("mean", time)) => (Capped::Mean, time),
        Some(_) => return Err("write mean:20ms or p95:20ms".to_owned()),
        None => (Capped::Mean, text),
    };
    let number = time.trim().strip_suffix("ms");
    let ms = number
        .and_then(|number| number.trim().parse::<f64>().ok())
        .filter(|ms| ms.is_finite() && *ms > 0.0);
    let ms = ms.ok_or_else(|| {
        format!("{text:?}: write a time above zero in ms, such as 20ms or p95:20ms")
    })?;
    Ok(Cap { capped, ms })
}

/// Runs the command.
///
/// # Errors
/// `Wrong` for a site file that is wrong or impossible, `Failed` for what can't be written.
pub fn run(args: Args) -> Result<(), Failure> {
    seal::check(&args.file, args.edited)?;
    let mut settings = match &args.drive_model {
        Some(model) => drive_model::settings(&args.file, model)?,
        None => Vec::new(),
    };
    settings.extend_from_slice(&args.settings);
    let described = plan::load(&args.file, &settings).map_err(wrong)?;
    let source = source::source(&args.file, args.drive_model.as_deref(), &args.settings)?;
    let unfit = fit::fit_all(&described, &profile);
    if !unfit.is_empty() {
        let file = args.file.display();
        let lines: Vec<String> = unfit
            .iter()
            .map(|wrong| format!("{file}:{wrong}"))
            .collect();
        return Err(Failure::Wrong(lines.join("\n")));
    }
    let chosen = chosen(&args, described)?;
    let files = Files::create(args.json.as_deref(), args.html.as_deref())?;
    let (mut text, variants) = match args.find_load {
        Some(cap) => find_load(&args, &chosen, cap)?,
        None => {
            let rehearsals = rehearsed(&args, &chosen)?;
            let text = match rehearsals.as_slice() {
                [only] => report::one(only) + &by_rule_of_thumb(&chosen[0].plan, only),
                several => report::compared(several),
            };
            reported(text, &chosen, &rehearsals)
        }
    };
    let Some(first) = chosen.first() else {
        unreachable!("something was chosen")
    };
    text += &report::assumed(&first.plan);
    let document = report::document(&first.plan, Some(source), variants);
    let has_printed = files.write(&document)?;
    match has_printed {
        true => Ok(()),
        false => output::print(&text),
    }
}

/// The reports of all that was run, and what a capture measured beside them.
fn reported(
    mut text: String,
    chosen: &[Chosen],
    rehearsals: &[Rehearsal],
) -> (String, Vec<VariantReport>) {
    let mut variants = Vec::new();
    for (chosen, rehearsal) in chosen.iter().zip(rehearsals) {
        let mut variant = report::rehearsed(rehearsal);
        variant.beside = report::beside(&chosen.plan, rehearsal);
        if rehearsals.len() > 1 && !variant.beside.is_empty() {
            text += &format!("\n{}", variant.name);
        }
        text += &report::measured(&variant.beside);
        variants.push(variant);
    }
    (text, variants)
}

/// The rule of thumb beside what was rehearsed.
fn by_rule_of_thumb(plan: &Plan, rehearsal: &Rehearsal) -> String {
    let pools = thumb::pools(plan, &Demand::of(plan, &profile));
    let compared = comparison::comparison(&pools, &rehearsal.outcomes[0]);
    let lines: String = compared.iter().map(|line| format!("  {line}\n")).collect();
    match lines.is_empty() {
        true => lines,
        false => format!("\nBeside the rule of thumb\n{lines}"),
    }
}

/// A site or a variant under its name.
struct Chosen {
    name: String,
    plan: Plan,
}

/// What is to be run: the site as it stands, and the variants asked for.
fn chosen(args: &Args, described: Described) -> Result<Vec<Chosen>, Failure> {
    let with_seeds = |mut plan: Plan| {
        plan.run.seeds = args.seeds.unwrap_or(plan.run.seeds);
        plan
    };
    let known: Vec<String> = described
        .variants
        .iter()
        .map(|v| format!("{:?}", v.name))
        .collect();
    for lost in &described.impossible {
        let asked = |name: &String| lost.key == format!("variant {name:?}");
        let what = format!("{}:{lost}", args.file.display());
        if args.variants.iter().any(asked) {
            return Err(Failure::Wrong(what));
        }
        if args.compare && args.variants.is_empty() {
            eprintln!("left out, as --set has it: {what}");
        }
    }
    for name in &args.variants {
        if !described
            .variants
            .iter()
            .any(|variant| variant.name == *name)
        {
            let what = format!(
                "{}: no variant is called {name:?}; there are: {}",
                args.file.display(),
                known.join(", ")
            );
            return Err(Failure::Wrong(what));
        }
    }
    let mut chosen = Vec::new();
    if args.compare || args.variants.is_empty() {
        chosen.push(Chosen {
            name: "as it stands".to_owned(),
            plan: with_seeds(described.base),
        });
    }
    for variant in described.variants {
        let named = args.variants.contains(&variant.name);
        if named || (args.compare && args.variants.is_empty()) {
            chosen.push(Chosen {
                name: variant.name,
                plan: with_seeds(variant.plan),
            });
        }
    }
    Ok(chosen)
}

/// Runs all seeds of all that was chosen, on all cores.
fn rehearsed(args: &Args, chosen: &[Chosen]) -> Result<Vec<Rehearsal>, Failure> {
    let jobs: Vec<(usize, u64)> = chosen
        .iter()
        .enumerate()
        .flat_map(|(index, chosen)| seeds(&chosen.plan).map(move |seed| (index, seed)))
        .collect();
    let progress = Progress::new(jobs.len());
    let (steady, once) = (args.until_steady, args.once);
    let outcomes = parallel::all(&jobs, &progress, |(index, seed)| {
        let plan = &chosen[*index].plan;
        match steady {
            true => rehearse::run::steady::run(plan, *seed, &profile),
            false if once => rehearse::run(plan, *seed, &profile),
            false => rehearse::run_lasting(plan, *seed, &profile),
        }
    });
    let mut rehearsals: Vec<Rehearsal> = chosen
        .iter()
        .map(|chosen| Rehearsal {
            name: chosen.name.clone(),
            outcomes: Vec::new(),
        })
        .collect();
    for ((index, _), outcome) in jobs.iter().zip(outcomes) {
        let outcome = outcome.map_err(|error| failed(&args.file, &chosen[*index], error))?;
        rehearsals[*index].outcomes.push(outcome);
    }
    Ok(rehearsals)
}

fn seeds(plan: &Plan) -> impl Iterator<Item = u64> + use<> {
    let first = plan.run.seed;
    first..first + u64::from(plan.run.seeds)
}

fn failed(file: &Path, chosen: &Chosen, error: RehearseError) -> Failure {
    let line = error.line.map_or(String::new(), |line| format!(":{line}"));
    let what = format!(
        "{}{line}: {}: {}",
        file.display(),
        chosen.name,
        error.context
    );
    match error.kind {
        RehearseErrorKind::Site => Failure::Wrong(what),
        RehearseErrorKind::Engine | RehearseErrorKind::Law => Failure::Failed(what),
    }
}

/// What a search says, for people and as data.
type FoundLoads = (String, Vec<VariantReport>);

fn find_load(args: &Args, chosen: &[Chosen], cap: Cap) -> Result<FoundLoads, Failure> {
    let jobs: Vec<usize> = (0..chosen.len()).collect();
    let progress = Progress::new(jobs.len());
    let found = parallel::all(&jobs, &progress, |index| {
        let plan = &chosen[*index].plan;
        load_factor::find(
            plan,
            (plan.run.seed, &profile),
            (cap.capped, cap.ms),
            |_, _| (),
        )
    });
    let (mut text, mut variants) = (String::new(), Vec::new());
    for (chosen, found) in chosen.iter().zip(found) {
        let found = found.map_err(|error| failed(&args.file, chosen, error))?;
        let cap = (cap.capped, cap.ms);
        text.push_str(&report::found(&chosen.name, cap, &found));
        variants.push(report::searched(&chosen.name, cap, &found));
    }
    Ok((text, variants))
}
