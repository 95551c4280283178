//! `ashlar pool salvage`: writes lost labels of a pool that no array uses again.
//!
//! Nothing is written before it was shown and somebody agreed.

use crate::confirm::typed;
use crate::failure::Failure;
use crate::offline::{self, FoundPool, Sorted};
use crate::output::Format;
use engine::salvage::Plan;
use serde::Serialize;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use world_real::RealWorld;

#[derive(clap::Args)]
#[command(after_help = "\
Ashlar writes a label only if other labels prove its content: those of the same lane on other drives,
or of another lane on the same drive. It names each label that it cannot prove, with the
reason, and leaves it. If two drives contradict each other, it writes nothing.

With --data, Ashlar also finds drives that commands added. It refuses drives that a running
`ashlar serve` uses: stop it first. Run `ashlar fsck` after the salvage.

Exit codes: 0 no label is missing, 1 labels are still missing, 2 Ashlar cannot tell.")]
pub struct Args {
    #[command(flatten)]
    drives: offline::Drives,
    /// Write the labels without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

/// The labels of a pool, as programs read them. Fields are only ever added.
#[derive(Serialize)]
struct Labels<'a> {
    pool: &'a str,
    uuid: String,
    /// Labels that can be written, for people: a line each.
    steps: &'a [String],
    /// Labels that are lost and not proved, and why: a line each.
    obstacles: &'a [String],
    /// Whether `steps` are done.
    written: bool,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let (places, pool) = (args.drives.places()?, args.drives.pool);
    let salvaged = world_real::run(|world| async move {
        let sorted = offline::sort(&world, places).await?;
        let found = the_pool(sorted, pool.as_deref())?;
        let wrong = |error: engine::PoolError| Failure::Wrong(error.to_string());
        let plan = server::offline::plan_salvage(&world, found.drives)
            .await
            .map_err(wrong)?;
        args.format.before_answer(&text(&plan))?;
        write(&world, plan, args.yes, args.format).await
    });
    let salvaged: Result<ExitCode, Failure> =
        salvaged.map_err(|error| Failure::Wrong(format!("can't look at drives: {error}")))?;
    salvaged
}

/// The pool that is meant, with the drives that say nothing of themselves.
fn the_pool(sorted: Sorted, pool: Option<&str>) -> Result<FoundPool, Failure> {
    let mut found = match sorted.pools.is_empty() {
        // Labels of other lanes may be found by a closer look.
        true => Vec::new(),
        false => offline::choose(sorted.pools, pool)?,
    };
    if let [one, other, ..] = &found[..] {
        let message = format!(
            "--pool is missing: the drives are of pools {} and {}, so name one",
            one.name, other.name
        );
        return Err(Failure::Wrong(message));
    }
    let mut found = found.pop().unwrap_or(FoundPool {
        name: String::new(),
        uuid: String::new(),
        drives: Vec::new(),
    });
    found.drives.extend(sorted.unlabelled);
    Ok(found)
}

fn text(plan: &Plan<RealWorld>) -> String {
    let mut text = format!("pool {} ({})\n", plan.pool, plan.uuid);
    for (title, lines) in [
        ("to be written:", &plan.steps),
        ("lost, and not proved:", &plan.obstacles),
    ] {
        if !lines.is_empty() {
            text += &format!("{title}\n");
            lines.iter().for_each(|line| text += &format!("  {line}\n"));
        }
    }
    if plan.steps.is_empty() && plan.obstacles.is_empty() {
        text += "no label is missing\n";
    }
    text
}

async fn write(
    world: &RealWorld,
    mut plan: Plan<RealWorld>,
    yes: bool,
    format: Format,
) -> Result<ExitCode, Failure> {
    let (pool, uuid) = (plan.pool.clone(), plan.uuid.to_string());
    let obstacles = std::mem::take(&mut plan.obstacles);
    let steps = plan.steps.clone();
    let outcome = |written: bool, text: &str| {
        let labels = Labels {
            pool: &pool,
            uuid: uuid.clone(),
            steps: &steps,
            obstacles: &obstacles,
            written,
        };
        format.print_text(&labels, |_| text.to_owned())
    };
    let whole = match obstacles.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    };
    if steps.is_empty() {
        outcome(false, "")?;
        return Ok(whole);
    }
    if !yes {
        if format.is_json() || !io::stdin().is_terminal() {
            outcome(false, "nothing was written: --yes writes the labels\n")?;
            return Ok(ExitCode::from(1));
        }
        if !typed("Write these labels", &pool)? {
            outcome(false, "nothing was written\n")?;
            return Ok(ExitCode::from(1));
        }
    }
    let salvaged = server::offline::salvage(world, plan).await;
    salvaged.map_err(|error| Failure::Failed(error.to_string()))?;
    let text = format!("the labels of pool {pool} are written; check it with `ashlar fsck`\n");
    outcome(true, &text)?;
    Ok(whole)
}
