//! `ashlar plan`: finds the smallest drive mix of a pool that meets the KPIs.

use super::files::Files;
use super::parallel::{self, Progress};
use super::source;
use crate::capture::seal;
use crate::failure::Failure;
use crate::output;
use crate::site_file::wrong;
use rehearse::plan::fit;
use rehearse::report;
use rehearse::search::brief;
use rehearse::search::sizing::{self, Contest, Sized, Trial, Windows};
use site::Diagnostic;
use site::plan::{self, Plan, Setting};
use std::path::PathBuf;

/// Propose the smallest drive mix of a pool that meets the limits of a site, by rehearsing mixes
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The site file. Hardware that it does not say is assumed, and named in the report
    file: PathBuf,
    /// The pool to size [default: the first of the file]
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Drive model to try, such as sas-10k-600; may be given more than once [default: all known
    /// models]
    #[arg(long = "drive", value_name = "MODEL")]
    models: Vec<String>,
    /// Change a key of the file first; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = Setting::parse)]
    settings: Vec<Setting>,
    /// Take a capture that was edited after it was made
    #[arg(long)]
    edited: bool,
    /// Size every mix, also those that need more drives than the smallest one
    #[arg(long)]
    every: bool,
    /// Measure every size over the whole window of the file, not only the proposed mix
    #[arg(long)]
    whole: bool,
    /// Write all figures as JSON to this file; "-" for standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with the mixes, and with the drawing, charts and tables of each good one
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
The command tries groups of RAID 10 with 8 drives, RAID 5 with 5, RAID 6 with 8 and RAID 50 with 10.
It adds a spare for every 30 drives, and goes up to 120 drives. A mix meets the limits if every VM
keeps its rate, and its mean read and write response times stay below run.limit. The command rejects
a mix that is too small for the volumes. It lists a mix that needs more drives than the smallest good
one; --every sizes that mix, too. docs/guide/rehearsing.md has an example.

Exit codes: 0 if a mix meets the limits, 3 if none does.";

/// Runs the command.
///
/// # Errors
/// `Wrong` for a file that is wrong or a pool or drive that does not exist.
pub fn run(args: &Args) -> Result<bool, Failure> {
    seal::check(&args.file, args.edited)?;
    let described = plan::load(&args.file, &args.settings).map_err(wrong)?;
    let source = source::source(&args.file, None, &args.settings)?;
    let plan = described.base;
    let pool = pool(args, &plan)?;
    for model in &args.models {
        let mut own = plan.drive_models.iter();
        if own.all(|own| own.name != *model)
            && !rehearse::plan::catalog::DRIVES
                .iter()
                .any(|(name, _)| name == model)
        {
            let known: Vec<&str> = rehearse::plan::catalog::DRIVES
                .iter()
                .map(|(name, _)| *name)
                .collect();
            let what = format!(
                "drive model {model:?} is not known; allowed: {}",
                known.join(", ")
            );
            return Err(Failure::Wrong(what));
        }
    }
    refuse_unfit(args, &plan, &pool)?;
    let files = Files::create(args.json.as_deref(), args.html.as_deref())?;
    let sized = sized(args, &plan, &pool)?;
    let document = report::sized(&plan, Some(source), &pool, &sized);
    let text = document.sizing.as_ref().map(report::proposal);
    if !files.write(&document)? {
        let assumed = report::assumed(&plan);
        output::print(&(text.unwrap_or_default() + &assumed))?;
    }
    Ok(!sizing::ranked(&sized).is_empty())
}

/// Says what is wrong with the file: all but the room in the pool that is to be sized.
fn refuse_unfit(args: &Args, plan: &Plan, pool: &str) -> Result<(), Failure> {
    let sized = plan.pools.iter().find(|other| other.name == pool);
    let is_room = |wrong: &Diagnostic| {
        ["pool.groups", "pool.drives"].contains(&wrong.key.as_str())
            && sized.is_some_and(|pool| pool.line == wrong.line)
    };
    let file = args.file.display();
    let unfit = fit::fit(plan, &super::profile);
    let lines: Vec<String> = unfit
        .iter()
        .filter(|wrong| !is_room(wrong))
        .map(|wrong| format!("{file}:{wrong}"))
        .collect();
    match lines.is_empty() {
        true => Ok(()),
        false => Err(Failure::Wrong(lines.join("\n"))),
    }
}

/// What becomes of all candidates: rounds of rehearsals, each on all cores.
fn sized(args: &Args, plan: &Plan, pool: &str) -> Result<Vec<Sized>, Failure> {
    let candidates = sizing::candidates(&args.models);
    let windows = match args.whole {
        true => Windows::Whole,
        false => Windows::Brief(brief::OPERATIONS),
    };
    let contest = Contest::new(
        (plan, pool),
        &candidates,
        (windows, args.every),
        &super::profile,
    );
    let sized = contest.settle(|trials| {
        let what = match trials {
            [trial] => trial.name().to_owned(),
            trials => format!("{} and others", trials[0].name()),
        };
        let progress = Progress::of(trials.len(), &what);
        parallel::all(trials, &progress, |trial: &Trial| {
            trial.judge(&super::profile)
        })
    });
    sized.map_err(|error| Failure::Failed(format!("{}: {error}", args.file.display())))
}

fn pool(args: &Args, plan: &Plan) -> Result<String, Failure> {
    let Some(name) = &args.pool else {
        return Ok(plan.pools[0].name.clone());
    };
    if plan.pools.iter().any(|pool| pool.name == *name) {
        return Ok(name.clone());
    }
    let known: Vec<&str> = plan.pools.iter().map(|pool| pool.name.as_str()).collect();
    let file = args.file.display();
    let what = format!(
        "{file}: no pool is called {name:?}; there are: {}",
        known.join(", ")
    );
    Err(Failure::Wrong(what))
}
