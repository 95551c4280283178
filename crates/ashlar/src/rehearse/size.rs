//! `ashlar plan`: the smallest drive mix of a pool that meets the KPIs.

use super::parallel::{self, Progress};
use crate::failure::Failure;
use crate::output;
use crate::site_file::wrong;
use rehearse::report;
use rehearse::sizing::{self, Candidate, Sized};
use site::plan::{self, Plan, Setting};
use std::path::PathBuf;

/// Propose the smallest drive mix of a pool that meets the limits of a described site, found
/// by rehearsing each.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The site file: hardware, layout, VMs
    file: PathBuf,
    /// The pool to size; the first of the file otherwise
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Drive models to try, such as sas-10k-600; may be given more than once [default: all
    /// that are known]
    #[arg(long = "drive", value_name = "MODEL")]
    models: Vec<String>,
    /// Change a key of the file first; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = Setting::parse)]
    settings: Vec<Setting>,
}

const AFTER_HELP: &str = "\
Tried are RAID 10 of 8 drives a group, RAID 5 of 5, RAID 6 of 8 and RAID 50 of 10, with a spare for
every 30 drives, up to 120 drives. A mix is good when every VM of the site keeps its rate and the mean
response times of its reads and writes stay below run.limit. All else is as in the file.

Exit codes: 0 when there is one, 3 when none is good enough.";

/// Runs the command.
///
/// # Errors
/// `Wrong` for a file that is wrong or a pool or drive that does not exist.
pub fn run(args: &Args) -> Result<bool, Failure> {
    let described = plan::load(&args.file, &args.settings).map_err(wrong)?;
    let plan = described.base;
    let pool = pool(args, &plan)?;
    for model in &args.models {
        if !rehearse::catalog::DRIVES
            .iter()
            .any(|(name, _)| name == model)
        {
            let known: Vec<&str> = rehearse::catalog::DRIVES
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
    let candidates = sizing::candidates(&args.models);
    let progress = Progress::new(candidates.len());
    let sized = parallel::all(&candidates, &progress, |candidate: &Candidate| {
        sizing::size(&plan, &pool, candidate)
    });
    let sized = sized
        .into_iter()
        .collect::<Result<Vec<Sized>, _>>()
        .map_err(|error| Failure::Failed(format!("{}: {error}", args.file.display())))?;
    output::print(&report::proposal(&pool, plan.run.limit, &sized))?;
    Ok(!sizing::ranked(&sized).is_empty())
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
