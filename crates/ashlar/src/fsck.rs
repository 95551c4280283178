//! `ashlar fsck`: checks pools that no array uses.
//!
//! Exit codes: 0 nothing is damaged; 1 something is damaged or lost; 2 it can't be said, because
//! drives are in use, can't be opened or belong to no pool.

use crate::failure::Failure;
use crate::fsck_report::Outcome;
use crate::offline::{self, FoundPool};
use crate::output::{Format, percent, span};
use engine::World;
use engine::fsck::{Options, Progress, Report, Severity};
use site::human;
use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;
use world_real::RealWorld;

/// How often progress is shown; what takes less than this shows none.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// To the terminal: nothing stands on this line any more (ECMA-48, EL).
const CLEAR_LINE: &str = "\x1b[K";

#[derive(clap::Args)]
#[command(after_help = "\
Ashlar writes nothing. With --data, it also finds drives and pools that commands added: the data
directory has a record of them. It refuses drives that a running `ashlar serve` uses: stop it first.

Exit codes: 0 nothing is damaged, 1 something is damaged or lost, 2 Ashlar cannot tell.")]
pub struct Args {
    #[command(flatten)]
    drives: offline::Drives,
    /// Read all data, and check copies and parity, too
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    format: Format,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let places = args.drives.places()?;
    let (made, pool) = (args.drives.pools_of_array()?, args.drives.pool);
    let looked = world_real::run(|world| async move {
        let offline::Sorted {
            pools,
            remarks,
            unlabelled: _,
        } = offline::find(&world, places).await?;
        let is_asked_for = |name: &String| pool.as_ref().is_none_or(|pool| pool == name);
        let is_missing = |name: &String| pools.iter().all(|found| found.name != *name);
        let missing = made
            .into_iter()
            .filter(|name| is_asked_for(name) && is_missing(name));
        let missing: Vec<String> = missing.collect();
        let found = match missing.is_empty() {
            true => offline::choose(pools, pool.as_deref())?,
            false => pools
                .into_iter()
                .filter(|found| is_asked_for(&found.name))
                .collect(),
        };
        let options = Options { deep: args.deep };
        let reports = look(&world, found, options).await?;
        Ok(Outcome::new(remarks, missing, reports))
    });
    let looked: Result<Outcome, Failure> =
        looked.map_err(|error| Failure::Wrong(format!("can't look at drives: {error}")))?;
    let outcome = looked?;
    args.format
        .print_text(&outcome, |outcome| outcome.to_string())?;
    Ok(match outcome.worst() {
        None | Some(Severity::Note) => ExitCode::SUCCESS,
        Some(Severity::Damage | Severity::Loss) => ExitCode::from(1),
    })
}

async fn look(
    world: &RealWorld,
    found: Vec<FoundPool>,
    options: Options,
) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for pool in found {
        let progress = Rc::new(Progress::default());
        let shown = Shown::start(world, &pool.name, &progress);
        let report = server::offline::check(world, pool.drives, options, progress).await;
        shown.end();
        reports
            .push(report.map_err(|error| Failure::Wrong(format!("pool {}: {error}", pool.name)))?);
    }
    Ok(reports)
}

/// How far it is, on standard error, when that is a terminal and it takes a while.
struct Shown {
    /// Something stands on the terminal's last line.
    stands: Rc<Cell<bool>>,
    ended: Rc<Cell<bool>>,
}

impl Shown {
    fn start(world: &RealWorld, pool: &str, progress: &Rc<Progress>) -> Self {
        let shown = Shown {
            stands: Rc::default(),
            ended: Rc::default(),
        };
        if !io::stderr().is_terminal() {
            return shown;
        }
        let (stands, ended) = (Rc::clone(&shown.stands), Rc::clone(&shown.ended));
        let (world, began) = (world.clone(), world.now());
        let (pool, progress) = (pool.to_owned(), Rc::clone(progress));
        world.clone().spawn(async move {
            loop {
                world.sleep(SHOWN_EVERY).await;
                if ended.get() {
                    return;
                }
                let line = progress_line(&pool, &progress, world.now().since(began));
                eprint!("\r{CLEAR_LINE}{line}");
                stands.set(true);
            }
        });
        shown
    }

    fn end(self) {
        self.ended.set(true);
        if self.stands.get() {
            eprint!("\r{CLEAR_LINE}");
        }
    }
}

fn progress_line(pool: &str, progress: &Progress, took: Duration) -> String {
    let (done, all) = (progress.done_blocks.get(), progress.all_blocks.get());
    let read = human(progress.read_bytes.get());
    let seconds = took.as_secs_f64().max(1e-9);
    let rate = match (progress.read_bytes.get() as f64 / seconds) as u64 {
        0 => String::new(),
        rate => format!(" at {}/s", human(rate)),
    };
    let left = match done {
        0 => String::new(),
        _ => {
            let left = seconds * (all.saturating_sub(done)) as f64 / done as f64;
            format!(", about {} left", span(left.ceil() as u64))
        }
    };
    let share = percent(done, all);
    format!("pool {pool}: {share} checked, {read} read{rate}{left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_a_line() {
        let progress = Progress::default();
        let line = |took| progress_line("p", &progress, Duration::from_secs(took));
        assert_eq!(line(1), "pool p: - checked, 0 B read");
        progress.read_bytes.set(6 << 20);
        progress.done_blocks.set(1);
        progress.all_blocks.set(4);
        let wanted = "pool p: 25.0 % checked, 6 MiB read at 3 MiB/s, about 6 s left";
        assert_eq!(line(2), wanted);
    }
}
