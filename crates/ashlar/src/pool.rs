//! `ashlar pool`: shows pools, and changes their groups, rates and thresholds.

use crate::client::Client;
use crate::events;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, age_s, pairs, percent, span};
use crate::pool_create;
use crate::raid_group::{self, SpreadArgs};
use crate::salvage;
use crate::status::{closed_lines, word};
use api::{
    Background, Cache, CacheChange, DriveAdd, Event, Fullness, GroupAdd, GroupChange, Io,
    Operations, Pool, Rates, RatesChange, ScrubChange, Status, Task, TaskKind, ThresholdsChange,
};
use site::{counted, human};
use std::path::Path;

/// The newest events of a pool that are shown with it.
const EVENTS_SHOWN: usize = 5;

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the pools
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show a pool
    Show(ShowArgs),
    Create(pool_create::CreateArgs),
    Destroy(pool_create::DestroyArgs),
    /// Change the RAM that caches a pool's reads
    Cache(CacheArgs),
    /// Read and compare everything that a pool holds, and repair damage
    ///
    /// A scrub runs in the background, after the commands of hosts. `ashlar pool show` shows the
    /// progress, `ashlar events` the result.
    Scrub(ScrubArgs),
    /// Change the RAID level of a group: from 10 to 50 or 6, or from 50 to 6
    ///
    /// The pool stays in service. Ashlar moves its content in the background, zone by zone, after
    /// the commands of hosts. `ashlar pool show` shows the progress. The conversion continues after
    /// a restart.
    Convert {
        /// Name of the pool
        name: String,
        /// The new level
        #[arg(long)]
        level: String,
        /// Number of the group [default: the only one]
        #[arg(long, value_name = "NUMBER")]
        group: Option<u16>,
        #[command(flatten)]
        format: Format,
    },
    /// Add a group of new drives to a pool
    ///
    /// The pool uses the new space at once.
    Grow(GrowArgs),
    /// Remove a group from a pool; its content moves to the other groups first
    ///
    /// Ashlar moves the content in the background. `ashlar pool show` shows the progress. An event
    /// reports when the drives are free. The command is refused if the pool would then be filled to
    /// its alarm threshold, trash included.
    Shrink {
        /// Name of the pool
        name: String,
        /// Number of the group
        #[arg(long, value_name = "NUMBER")]
        group: u16,
        /// Remove the group even if the pool is nearly full then: Ashlar may empty its trash
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Restore lost labels of a pool that no array uses, as far as its drives prove them
    ///
    /// The command shows what it would write, and asks. It reads the drives itself, so Ashlar must
    /// not run.
    Salvage(salvage::Args),
    /// Set the thresholds at which a pool warns that it gets full
    ///
    /// An event reports when the pool crosses a threshold, in either direction. Above the warning
    /// threshold, Ashlar also notifies initiators of thin volumes. A threshold that you do not give
    /// stays.
    Thresholds(ThresholdsArgs),
    /// Limit background work: rebuilds, scrubs, and moves between groups
    ///
    /// A limit that you do not give stays.
    Rates(RatesArgs),
}

#[derive(clap::Args)]
pub struct ShowArgs {
    /// Name of the pool
    name: String,
    /// Show also its layout, and what its log, cache and drives do
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct CacheArgs {
    /// Name of the pool
    name: String,
    /// The RAM, such as 1 GiB, or none
    #[arg(value_name = "SIZE", value_parser = pool_create::cache)]
    capacity: u64,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct ScrubArgs {
    /// Name of the pool
    name: String,
    /// Stop the scrub that is under way
    #[arg(long)]
    stop: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct GrowArgs {
    /// Name of the pool
    name: String,
    /// Level of the new group [default: that of the pool's first group; 10 or 10x3 for a log group]
    #[arg(long)]
    level: Option<String>,
    /// What the group is for: data, or log for a group that carries the logs of the pool and no
    /// data [default: data]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    #[command(flatten)]
    spread: SpreadArgs,
    /// Size of new files [default: that of the pool's largest drive]
    #[arg(long, value_parser = crate::drive::new_size)]
    size: Option<u64>,
    /// Accept a group that survives fewer lost drives than the other groups
    #[arg(long)]
    force: bool,
    /// Drives, in order of their places: files, or block devices below /dev
    ///
    /// A file is relative to the data directory or absolute. Ashlar creates it if it does not
    /// exist. A drive has the name of its file or device, without the extension, unless you
    /// give NAME=.
    #[arg(required = true, value_name = "[NAME=]DRIVE")]
    drives: Vec<String>,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct ThresholdsArgs {
    /// Name of the pool
    name: String,
    /// The warning threshold, in percent
    #[arg(long, value_name = "PERCENT")]
    warn: Option<u8>,
    /// The alarm threshold, in percent
    #[arg(long, value_name = "PERCENT")]
    alarm: Option<u8>,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct RatesArgs {
    /// Name of the pool
    name: String,
    /// Limit of rebuilds, and of moves between groups: bytes a second, such as "200 MiB"; 0 or
    /// unlimited for none
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rebuild: Option<u64>,
    /// Limit of scrubs: bytes of drives a second; 0 or unlimited for none
    #[arg(long, value_name = "RATE", value_parser = rate)]
    scrub: Option<u64>,
    /// Hours that a rebuild takes at most while hosts send commands; 0 or off for no bound
    #[arg(long, value_name = "HOURS", value_parser = count)]
    rebuild_hours: Option<u32>,
    /// Days in which Ashlar scrubs the whole pool by itself, over and over; 0 or off for scrubs by
    /// command only
    #[arg(long, value_name = "DAYS", value_parser = count)]
    scrub_days: Option<u32>,
    /// Work at full speed, even while hosts send commands
    #[arg(long, conflicts_with = "yield")]
    full: bool,
    /// Pause while hosts send commands
    #[arg(long = "yield")]
    r#yield: bool,
    #[command(flatten)]
    format: Format,
}

/// A limit, as the API takes it: 0 is none.
fn rate(text: &str) -> Result<u64, String> {
    match text {
        "unlimited" | "0" => Ok(0),
        _ => site::parse_size(text)
            .ok_or_else(|| format!("allowed: \"unlimited\", 0, or {}", site::SIZE_RULE)),
    }
}

/// Hours or days, as the API takes them: 0 is off.
fn count(text: &str) -> Result<u32, String> {
    match text {
        "off" => Ok(0),
        _ => text
            .parse()
            .map_err(|_| "allowed: \"off\", or a whole number".to_owned()),
    }
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => list(client, format),
        Command::Show(args) => show_pool(client, args),
        Command::Convert {
            name,
            level,
            group,
            format,
        } => convert(client, &name, (level, group), format),
        Command::Grow(args) => grow_pool(client, args),
        Command::Shrink {
            name,
            group,
            force,
            format,
        } => shrink(client, &name, (group, force), format),
        Command::Create(args) => pool_create::create(client, args),
        Command::Destroy(args) => pool_create::destroy(client, args),
        Command::Cache(args) => cache(client, args),
        Command::Salvage(_) => unreachable!("it does not talk to an array"),
        Command::Scrub(args) => scrub(client, args),
        Command::Thresholds(args) => thresholds(client, args),
        Command::Rates(args) => rates(client, args),
    }
}

fn show_pool(client: &Client, args: ShowArgs) -> Result<(), Failure> {
    let ShowArgs {
        name,
        verbose,
        format,
    } = args;
    let pool: Pool = client.get(&["pools", &name])?;
    let mut events: Vec<Event> = client.get(&["events"])?;
    events.retain(|event| event.pool == name);
    format.print_text(&pool, |pool| show(pool, &events, verbose))
}

fn grow_pool(client: &Client, args: GrowArgs) -> Result<(), Failure> {
    let GrowArgs {
        name,
        level,
        role,
        spread,
        size,
        force,
        drives,
        format,
    } = args;
    let drives = drives.iter().map(|drive| new_drive(drive, size));
    let add = GroupAdd {
        level,
        role,
        stripe_width: spread.stripe_width,
        distributed_spares: spread.distributed_spares,
        drives: drives.collect(),
        force,
    };
    grow(client, &name, &add, format)
}

fn cache(client: &Client, args: CacheArgs) -> Result<(), Failure> {
    let CacheArgs {
        name,
        capacity,
        format,
    } = args;
    let change = CacheChange {
        capacity_bytes: capacity,
    };
    let pool: Pool = client.put(&["pools", &name, "cache"], &change)?;
    format.print_text(&pool, |pool| {
        let capacity = human(pool.cache.capacity_bytes);
        format!("pool {name} has {capacity} of RAM for reads\n")
    })
}

fn scrub(client: &Client, args: ScrubArgs) -> Result<(), Failure> {
    let ScrubArgs { name, stop, format } = args;
    let change = ScrubChange { running: !stop };
    let pool: Pool = client.put(&["pools", &name, "scrub"], &change)?;
    let what = if stop { "ends" } else { "begins" };
    format.print_text(&pool, |_| format!("the scrub of pool {name} {what}\n"))
}

fn thresholds(client: &Client, args: ThresholdsArgs) -> Result<(), Failure> {
    let ThresholdsArgs {
        name,
        warn,
        alarm,
        format,
    } = args;
    let change = ThresholdsChange {
        warn_percent: warn,
        alarm_percent: alarm,
    };
    let pool: Pool = client.put(&["pools", &name, "thresholds"], &change)?;
    format.print_text(&pool, |pool| {
        format!("pool {name}: {}\n", thresholds_line(pool))
    })
}

fn rates(client: &Client, args: RatesArgs) -> Result<(), Failure> {
    let RatesArgs {
        name,
        rebuild,
        scrub,
        rebuild_hours,
        scrub_days,
        full,
        r#yield,
        format,
    } = args;
    let background = match (full, r#yield) {
        (true, _) => Some(Background::Full),
        (_, true) => Some(Background::Yield),
        _ => None,
    };
    let change = RatesChange {
        rebuild_bytes_per_s: rebuild,
        scrub_bytes_per_s: scrub,
        rebuild_hours,
        scrub_days,
        background,
    };
    let pool: Pool = client.put(&["pools", &name, "rates"], &change)?;
    format.print_text(&pool, |pool| {
        format!("pool {name}: {}\n", rates_line(&pool.rates))
    })
}

/// Pools that are open, and for people also those that are not.
fn list(client: &Client, format: Format) -> Result<(), Failure> {
    let pools: Vec<Pool> = client.get(&["pools"])?;
    let status: Status = client.get(&["status"])?;
    format.print_text(&pools, |pools| {
        let mut text = table(pools).render();
        let closed = closed_lines(&status.closed_pools);
        if !closed.is_empty() {
            text.push_str(&pairs(&closed));
        }
        text
    })
}

fn convert(
    client: &Client,
    name: &str,
    (level, group): (String, Option<u16>),
    format: Format,
) -> Result<(), Failure> {
    let group = match group {
        Some(group) => group,
        None => only_group(&client.get(&["pools", name])?)?,
    };
    let change = GroupChange { level };
    let path = ["pools", name, "groups", &group.to_string()];
    let pool: Pool = client.patch(&path, &change)?;
    let level = change.level;
    format.print_text(&pool, |pool| {
        let now = pool.groups.iter().find(|other| other.index == group);
        match now.map_or(0, |group| group.zones_to_move) {
            0 => format!("group {group} of pool {name} is of level {level}\n"),
            _ => format!(
                "group {group} of pool {name} goes to level {level}; see ashlar pool show {name}\n"
            ),
        }
    })
}

fn only_group(pool: &Pool) -> Result<u16, Failure> {
    match pool.groups.as_slice() {
        [group] => Ok(group.index),
        groups => {
            let lines: Vec<String> = groups.iter().map(raid_group::line).collect();
            Err(Failure::Wrong(format!(
                "--group is missing: give the number of a group of pool {}\n{}",
                pool.name,
                lines.join("\n")
            )))
        }
    }
}

fn shrink(
    client: &Client,
    name: &str,
    (group, force): (u16, bool),
    format: Format,
) -> Result<(), Failure> {
    let path = ["pools", name, "groups", &group.to_string()];
    let forced = [("force", "true")];
    let query = if force { &forced[..] } else { &[] };
    let pool: Pool = client.remove(&path, query)?;
    format.print_text(&pool, |_| {
        format!("group {group} of pool {name} is emptied, to leave; see ashlar pool show {name}\n")
    })
}

fn grow(client: &Client, name: &str, add: &GroupAdd, format: Format) -> Result<(), Failure> {
    let pool: Pool = client.post(&["pools", name, "groups"], add)?;
    format.print_text(&pool, |pool| {
        let group = pool.groups.last();
        group.map_or(String::new(), |group| {
            format!("pool {name} has group {}\n", raid_group::line(group))
        })
    })
}

/// `[NAME=]PATH`; what it may be, the array says.
pub fn new_drive(text: &str, size_bytes: Option<u64>) -> DriveAdd {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) => (name.to_owned(), path),
        None => {
            let stem = Path::new(text).file_stem();
            let name = stem.map(|stem| stem.to_string_lossy().into_owned());
            (name.unwrap_or_default(), text)
        }
    };
    let is_device = path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
    DriveAdd {
        name,
        file: (!is_device).then(|| path.to_owned()),
        device: is_device.then(|| path.to_owned()),
        size_bytes: size_bytes.filter(|_| !is_device),
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
            percent(used_bytes(pool), pool.capacity_bytes),
            human(pool.provisioned_bytes),
        ]);
    }
    table
}

/// A pool for people: how it is, what is under way, and what room it has. All else is asked for.
fn show(pool: &Pool, events: &[Event], verbose: bool) -> String {
    let mut lines = vec![
        ("name", pool.name.clone()),
        ("health", word(pool.health).to_owned()),
    ];
    lines.extend(pool.why.iter().map(|why| ("", why.clone())));
    lines.extend(pool.tasks.iter().map(|task| ("under way", task_line(task))));
    lines.extend(
        pool.groups
            .iter()
            .map(|group| ("group", raid_group::line(group))),
    );
    lines.extend(drives_out_of_line(pool));
    lines.extend(room(pool));
    lines.push(("scrub", scrub_line(pool)));
    if pool.mended_bytes > 0 || pool.lost_bytes > 0 || verbose {
        lines.push(("damage", damage_line(pool)));
    }
    if verbose {
        lines.extend(details(pool));
    }
    let newest = events.iter().rev().take(EVENTS_SHOWN).rev();
    lines.extend(newest.map(|event| ("event", events::line(event))));
    pairs(&lines)
}

/// Spares, and drives that are not as they should be.
fn drives_out_of_line(pool: &Pool) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    for (title, drives) in [
        ("spares", &pool.spares),
        ("suspect", &pool.suspect_drives),
        ("failed", &pool.failed_drives),
    ] {
        if !drives.is_empty() {
            lines.push((title, drives.join(", ")));
        }
    }
    let missing = pool.missing_drives.iter().map(|drive| {
        let back = if drive.is_back { " (it is back)" } else { "" };
        ("missing", format!("{}{back}: {}", drive.name, drive.why))
    });
    lines.extend(missing);
    lines
}

/// What nobody else can have: mapped, or promised to thick volumes.
fn used_bytes(pool: &Pool) -> u64 {
    pool.mapped_bytes + pool.promised_bytes
}

/// What room there is: mapped, promised and free are the capacity.
fn room(pool: &Pool) -> Vec<(&'static str, String)> {
    let part = |bytes: u64| format!("{} ({})", human(bytes), percent(bytes, pool.capacity_bytes));
    let mut lines = vec![
        ("capacity", human(pool.capacity_bytes)),
        ("mapped", part(pool.mapped_bytes)),
    ];
    if pool.promised_bytes > 0 {
        let promised = format!("{} to thick volumes", part(pool.promised_bytes));
        lines.push(("promised", promised));
        let used = format!("{}: mapped and promised", part(used_bytes(pool)));
        lines.push(("used", used));
    }
    lines.extend([
        (
            "free",
            format!("{} ({})", human(pool.free_bytes), thresholds_line(pool)),
        ),
        ("volumes", sizes_line(pool)),
    ]);
    lines
}

/// The sizes that volumes, and snapshots, have between them.
fn sizes_line(pool: &Pool) -> String {
    let snapshots = pool.snapshots_bytes;
    let volumes = human(pool.provisioned_bytes.saturating_sub(snapshots));
    match snapshots {
        0 => format!("{volumes} in all"),
        _ => format!("{volumes} in all, and {} in snapshots", human(snapshots)),
    }
}

/// How the pool is laid out, and what its parts do.
fn details(pool: &Pool) -> Vec<(&'static str, String)> {
    let log = format!(
        "{} of {}, on {}",
        human(pool.log_used_bytes),
        human(pool.log_capacity_bytes),
        pool.log_drives.join(", ")
    );
    vec![
        ("kept back", human(pool.kept_bytes)),
        ("to be filled", human(pool.backed_bytes)),
        ("backs others", human(pool.backing_bytes)),
        ("overhead", human(pool.overhead_bytes)),
        ("page", human(u64::from(pool.page_bytes))),
        ("lanes", pool.lanes.to_string()),
        ("log", log),
        ("read cache", cache_line(&pool.cache)),
        ("background", rates_line(&pool.rates)),
        ("commands", commands_line(&pool.io)),
        ("drive reads", reads_line(&pool.io)),
        ("drive writes", writes_line(&pool.io)),
        ("shard", pool.shard.to_string()),
        ("epoch", pool.epoch.to_string()),
        ("uuid", pool.uuid.clone()),
    ]
}

fn damage_line(pool: &Pool) -> String {
    format!(
        "{} repaired, {} lost, since the start",
        human(pool.mended_bytes),
        human(pool.lost_bytes)
    )
}

fn thresholds_line(pool: &Pool) -> String {
    let is = match pool.fullness {
        Fullness::Ample => "",
        Fullness::Warn => "the pool is above its warning threshold; ",
        Fullness::Alarm => "the pool is above its alarm threshold; ",
        Fullness::Full => "the pool is full; ",
    };
    let thresholds = pool.thresholds;
    format!(
        "{is}warning from {} % used, alarm from {} %",
        thresholds.warn_percent, thresholds.alarm_percent
    )
}

/// When the pool was scrubbed last, and how far the scrub is that goes on by itself.
fn scrub_line(pool: &Pool) -> String {
    let last = last_scrub(pool);
    match &pool.scrub_round {
        Some(round) if round.done_bytes < round.total_bytes => {
            let done = percent(round.done_bytes, round.total_bytes);
            let since = span(age_s(round.began_unix_s));
            format!("{last}; one runs by itself, {done} done in {since}")
        }
        _ => last,
    }
}

fn last_scrub(pool: &Pool) -> String {
    let Some(last) = &pool.last_scrub else {
        return "none so far".to_owned();
    };
    let found = match (last.mended_blocks, last.lost_blocks) {
        (0, 0) => "nothing was wrong".to_owned(),
        (mended, lost) => format!("{} repaired, {lost} lost", counted(mended, "block")),
    };
    let ago = span(age_s(last.ended_unix_s));
    format!("the last ended {ago} ago: {found}")
}

fn task_line(task: &Task) -> String {
    let what = match task.kind {
        TaskKind::Rebuild => "rebuild",
        TaskKind::Scrub => "scrub",
        TaskKind::Move => "moving data",
    };
    let rate = match (task.bytes_per_s, task.left_s) {
        (0, _) => String::new(),
        (rate, None) => format!(", {}/s", human(rate)),
        (rate, Some(left)) => format!(", {}/s, about {} left", human(rate), span(left)),
    };
    let due = match task.due_s {
        None => String::new(),
        Some(due) => format!(", at the latest in {}", span(due)),
    };
    format!(
        "{what} of {}: {} of {} ({}){rate}{due}",
        task.subject,
        human(task.done_bytes),
        human(task.total_bytes),
        percent(task.done_bytes, task.total_bytes),
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
    let within = |count: Option<u32>, unit: &str| {
        count.map_or_else(String::new, |count| {
            format!(" within {}", counted(u64::from(count), unit))
        })
    };
    let by_itself = match rates.scrub_days {
        None => "by command only".to_owned(),
        Some(days) => format!("by itself within {}", counted(u64::from(days), "day")),
    };
    format!(
        "rebuild {}{}, scrub {}, {by_itself}; {background}",
        limit(rates.rebuild_bytes_per_s),
        within(rates.rebuild_hours, "hour"),
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
        some(&io.sum_writes, "checksums"),
        some(&io.repair_writes, "to repair"),
    ]
    .join(", ")
}
