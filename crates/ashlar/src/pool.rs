//! `ashlar pool`.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs, percent, print, span};
use crate::status::word;
use server::api::types::{Cache, Group, Pool, ScrubChange, Task, TaskKind};
use site::human;

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the pools
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show a pool
    Show {
        /// Name of the pool
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// Read and compare everything that a pool holds, and put right what is wrong
    ///
    /// It runs in the background, behind the commands of hosts; ashlar pool show tells how
    /// far it is, and ashlar events what it found.
    Scrub {
        /// Name of the pool
        name: String,
        /// End the one that is under way
        #[arg(long)]
        stop: bool,
    },
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => {
            let pools: Vec<Pool> = client.get(&["pools"])?;
            format.print(&pools, |pools| table(pools))
        }
        Command::Show { name, format } => {
            let pool: Pool = client.get(&["pools", &name])?;
            format.print_text(&pool, show)
        }
        Command::Scrub { name, stop } => {
            let change = ScrubChange { running: !stop };
            let _: Pool = client.put(&["pools", &name, "scrub"], &change)?;
            let what = if stop { "ends" } else { "begins" };
            print(&format!("the scrub of pool {name} {what}\n"))
        }
    }
}

fn table(pools: &[Pool]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("NAME", Left),
        ("LEVEL", Left),
        ("HEALTH", Left),
        ("DRIVES", Right),
        ("CAPACITY", Right),
        ("MAPPED", Right),
        ("USED", Right),
        ("PROVISIONED", Right),
    ]);
    for pool in pools {
        table.row(vec![
            pool.name.clone(),
            pool.level.clone(),
            word(pool.health).to_owned(),
            pool.drives.len().to_string(),
            human(pool.capacity_bytes),
            human(pool.mapped_bytes),
            percent(pool.mapped_bytes, pool.capacity_bytes),
            human(pool.provisioned_bytes),
        ]);
    }
    table
}

fn show(pool: &Pool) -> String {
    let used = percent(pool.mapped_bytes, pool.capacity_bytes);
    let mut lines = vec![
        ("name", pool.name.clone()),
        ("health", word(pool.health).to_owned()),
    ];
    lines.extend(pool.failure.iter().map(|why| ("failure", why.clone())));
    lines.extend(pool.groups.iter().map(|group| ("group", group_line(group))));
    if !pool.spares.is_empty() {
        lines.push(("spares", pool.spares.join(", ")));
    }
    lines.extend(pool.tasks.iter().map(|task| ("under way", task_line(task))));
    lines.extend([
        ("capacity", human(pool.capacity_bytes)),
        ("mapped", format!("{} ({used})", human(pool.mapped_bytes))),
        ("provisioned", human(pool.provisioned_bytes)),
        ("page", human(u64::from(pool.page_bytes))),
        (
            "log",
            format!(
                "{} of {}",
                human(pool.log_used_bytes),
                human(pool.log_capacity_bytes)
            ),
        ),
        ("read cache", cache_line(&pool.cache)),
        ("put right", human(pool.mended_bytes)),
        ("lost", human(pool.lost_bytes)),
        ("scrubs", pool.scrubs.to_string()),
        ("shard", pool.shard.to_string()),
        ("epoch", pool.epoch.to_string()),
        ("uuid", pool.uuid.clone()),
    ]);
    pairs(&lines)
}

fn group_line(group: &Group) -> String {
    format!(
        "{}: RAID {} of {}; {} of {} zones in use",
        group.index,
        group.level,
        group.drives.join(", "),
        group.zones_in_use,
        group.zones
    )
}

fn task_line(task: &Task) -> String {
    let what = match task.kind {
        TaskKind::Rebuild => "rebuild",
        TaskKind::Scrub => "scrub",
    };
    let left = task.left_s.map_or_else(
        || "no rate yet".to_owned(),
        |left| format!("{} left", span(left)),
    );
    format!(
        "{what} of {}: {} of {} ({}), {}/s, {left}",
        task.subject,
        human(task.done_bytes),
        human(task.total_bytes),
        percent(task.done_bytes, task.total_bytes),
        human(task.bytes_per_s),
    )
}

fn cache_line(cache: &Cache) -> String {
    let hits = percent(cache.hits, cache.hits + cache.misses);
    let used = percent(cache.ahead_used_bytes, cache.ahead_bytes);
    format!(
        "{} of {}, {hits} of reads found; {} read ahead, {used} of it used",
        human(cache.resident_bytes),
        human(cache.capacity_bytes),
        human(cache.ahead_bytes),
    )
}
