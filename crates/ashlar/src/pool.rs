//! `ashlar pool`.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs, percent, print, span};
use crate::status::word;
use server::api::types::{
    Background, Cache, Group, Io, Operations, Pool, Rates, RatesChange, ScrubChange, Task, TaskKind,
};
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
    /// Limit work in the background: rebuilds and scrubs
    ///
    /// What is not named stays as it is. The limits hold until the server ends; those of
    /// the site file (rebuild_rate, scrub_rate, background) hold from the next start on.
    Rates {
        /// Name of the pool
        name: String,
        /// Bytes a second that a rebuild writes at most, such as "200 MiB", or unlimited
        #[arg(long, value_name = "RATE", value_parser = rate)]
        rebuild: Option<u64>,
        /// Bytes of drives a second that a scrub looks through at most, or unlimited
        #[arg(long, value_name = "RATE", value_parser = rate)]
        scrub: Option<u64>,
        /// Take what can be had, even while hosts send commands
        #[arg(long, conflicts_with = "yield")]
        full: bool,
        /// Rest while hosts send commands
        #[arg(long = "yield")]
        r#yield: bool,
    },
}

/// A limit, as the API takes it: 0 is none.
fn rate(text: &str) -> Result<u64, String> {
    match text {
        "unlimited" => Ok(0),
        _ => site::parse_size(text)
            .ok_or_else(|| format!("allowed: \"unlimited\", or {}", site::SIZE_RULE)),
    }
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
        Command::Rates {
            name,
            rebuild,
            scrub,
            full,
            r#yield,
        } => {
            let background = match (full, r#yield) {
                (true, _) => Some(Background::Full),
                (_, true) => Some(Background::Yield),
                _ => None,
            };
            let change = RatesChange {
                rebuild_bytes_per_s: rebuild,
                scrub_bytes_per_s: scrub,
                background,
            };
            let pool: Pool = client.put(&["pools", &name, "rates"], &change)?;
            print(&format!("pool {name}: {}\n", rates_line(&pool.rates)))
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
        ("background", rates_line(&pool.rates)),
        ("commands", commands_line(&pool.io)),
        ("drive reads", reads_line(&pool.io)),
        ("drive writes", writes_line(&pool.io)),
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
        TaskKind::Move => "moving data",
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

fn rates_line(rates: &Rates) -> String {
    let limit = |limit: Option<u64>| {
        limit.map_or_else(
            || "without limit".to_owned(),
            |bytes_per_s| format!("at {}/s", human(bytes_per_s)),
        )
    };
    let background = match rates.background {
        Background::Yield => "commands go first",
        Background::Full => "commands do not go first",
    };
    format!(
        "rebuild {}, scrub {}; {background}",
        limit(rates.rebuild_bytes_per_s),
        limit(rates.scrub_bytes_per_s)
    )
}

fn some(operations: &Operations, what: &str) -> String {
    format!("{} {what} ({})", operations.count, human(operations.bytes))
}

fn commands_line(io: &Io) -> String {
    [
        some(&io.host_reads, "reads"),
        some(&io.host_writes, "writes"),
    ]
    .join(", ")
}

fn reads_line(io: &Io) -> String {
    [
        some(&io.data_reads, "for commands"),
        some(&io.modify_reads, "to modify stripes"),
        some(&io.repair_reads, "to repair"),
    ]
    .join(", ")
}

fn writes_line(io: &Io) -> String {
    [
        some(&io.data_writes, "data"),
        some(&io.parity_writes, "parity"),
        some(&io.log_writes, "log"),
        some(&io.intent_writes, "intents"),
        some(&io.sum_writes, "sums"),
        some(&io.repair_writes, "to repair"),
    ]
    .join(", ")
}
