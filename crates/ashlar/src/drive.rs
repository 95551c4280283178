//! `ashlar drive`: shows drives, takes them out of use, replaces and removes them.

use crate::client::Client;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs, utc};
use api::{
    Drive, DriveAdd, DriveHealth, DriveRedundancy, DriveReplace, DriveReplaced, DriveState,
    DriveVerdict, Pool,
};
use site::human;

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the drives
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show a drive
    Show(ShowArgs),
    /// Take a drive out of use; refused if its pool would lose data
    ///
    /// A spare leaves its pool, and you can reuse it. If the group has no redundancy without the
    /// drive, the command asks first.
    Fail(ConfirmedArgs),
    /// Replace a drive; Ashlar copies it, or rebuilds the content from the other drives
    ///
    /// Ashlar copies an old drive that still answers, and takes it out of use when the new one holds
    /// everything. This needs a new drive with another name (--with) at another place. Otherwise the old
    /// drive goes at once.
    ///
    /// Without --file and --device, the new drive is at the path of the old one. If there is no
    /// file, Ashlar creates it. If the old drive is healthy, the command asks first.
    Replace(ReplaceArgs),
    /// Forget a drive that is out of use, once another stands in for it
    ///
    /// It stays in the list of drives until you remove it, replace it, or add it again.
    Remove(ConfirmedArgs),
    /// Add a spare: it stands in for a drive that fails, or has failed
    AddSpare(AddSpareArgs),
}

#[derive(clap::Args)]
pub struct ShowArgs {
    /// Name of the drive
    name: String,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct ConfirmedArgs {
    /// Name of the drive
    name: String,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct ReplaceArgs {
    /// Name of the old drive
    name: String,
    /// Name of the new drive [default: that of the old one]
    #[arg(long, value_name = "NAME")]
    with: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct AddSpareArgs {
    /// Name for the drive
    name: String,
    /// The pool that gets the spare
    #[arg(long)]
    pool: String,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    format: Format,
}

/// Where a drive is.
#[derive(clap::Args)]
pub struct PlaceArgs {
    /// A file, relative to the data directory or absolute; created if it does not exist
    #[arg(long, conflicts_with = "device")]
    file: Option<String>,
    /// A block device
    #[arg(long)]
    device: Option<String>,
    /// Size of a new file [default: that of the drive that it replaces; of a spare, that of the
    /// largest drive of the pool]
    #[arg(long, requires = "file", value_parser = new_size)]
    size: Option<u64>,
}

/// The size of a drive to add to a pool.
pub fn new_size(text: &str) -> Result<u64, String> {
    site::NEW_DRIVE_SIZES.parse(text)
}

impl PlaceArgs {
    fn named(self, name: String) -> DriveAdd {
        DriveAdd {
            name,
            file: self.file,
            device: self.device,
            size_bytes: self.size,
        }
    }
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => format.list(client, &["drives"], table),
        Command::Fail(args) => fail(client, args),
        Command::Replace(args) => replace(client, args),
        Command::Remove(args) => remove(client, args),
        Command::AddSpare(args) => add_spare(client, args),
        Command::Show(args) => show(client, args),
    }
}

fn fail(client: &Client, args: ConfirmedArgs) -> Result<(), Failure> {
    let ConfirmedArgs {
        name,
        confirm,
        format,
    } = args;
    if !confirm.is_given() {
        agree_to_fail(client, &name, confirm)?;
    }
    let pool: Pool = client.post(&["drives", &name, "fail"], &())?;
    format.print_text(&pool, |_| format!("drive {name} is out of use\n"))
}

fn replace(client: &Client, args: ReplaceArgs) -> Result<(), Failure> {
    let ReplaceArgs {
        name,
        with,
        place,
        confirm,
        format,
    } = args;
    let is_elsewhere = place.file.is_some() || place.device.is_some();
    if with.is_some() && !is_elsewhere {
        let wrong = "--file or --device is missing: --with needs one of them";
        return Err(Failure::Wrong(wrong.to_owned()));
    }
    if !confirm.is_given() {
        let is_copied = with.as_ref().is_some_and(|with| *with != name);
        agree_to_replace(client, &name, (confirm, is_copied))?;
    }
    let new = with.unwrap_or_else(|| name.clone());
    let with = is_elsewhere.then(|| place.named(new));
    let path = ["drives", name.as_str(), "replace"];
    let replaced: DriveReplaced = client.post(&path, &DriveReplace { with })?;
    format.print_text(&replaced, |replaced| {
        format!("{}\n", replaced_line(&name, replaced))
    })
}

fn remove(client: &Client, args: ConfirmedArgs) -> Result<(), Failure> {
    let ConfirmedArgs {
        name,
        confirm,
        format,
    } = args;
    let what = format!("the record of failed drive {name}");
    let path = ["drives", name.as_str()];
    confirm.deletion_at(client, (&path, &[]), (&what, &name))?;
    client.delete(&path)?;
    format.done(&format!("drive {name} is removed"))
}

fn add_spare(client: &Client, args: AddSpareArgs) -> Result<(), Failure> {
    let AddSpareArgs {
        name,
        pool,
        place,
        format,
    } = args;
    let add = place.named(name.clone());
    let now: Pool = client.post(&["pools", &pool, "spares"], &add)?;
    format.print_text(&now, |_| {
        format!("drive {name} is a spare of pool {pool}\n")
    })
}

fn show(client: &Client, args: ShowArgs) -> Result<(), Failure> {
    let ShowArgs { name, format } = args;
    let drive: Drive = client.get(&["drives", &name])?;
    format.print_text(&drive, |drive| {
        let mut lines = vec![("name", drive.name.clone()), ("state", state(drive))];
        lines.extend(failure_lines(drive));
        lines.extend(drive.trouble.clone().map(|why| ("why", why)));
        let some = |text: &Option<String>| text.clone().unwrap_or("-".to_owned());
        lines.extend([
            ("pool", drive.pool.clone()),
            ("place", long_place(drive)),
            ("path", some(&drive.path)),
            ("serial", some(&drive.serial)),
            ("capacity", human(drive.capacity_bytes)),
            ("reads", drive.reads.to_string()),
            ("writes", drive.writes.to_string()),
            ("flushes", drive.flushes.to_string()),
            ("errors", drive.errors.to_string()),
            ("mends", drive.mends.to_string()),
            ("read latency", latency(drive.read_latency_us)),
            ("write latency", latency(drive.write_latency_us)),
            ("uuid", drive.uuid.clone()),
        ]);
        lines.extend(drive.health.iter().flat_map(health_lines));
        pairs(&lines)
    })
}

/// Has somebody agree to take a drive out of use whose group has no redundancy without it.
fn agree_to_fail(client: &Client, name: &str, confirm: Confirm) -> Result<(), Failure> {
    let drive: Drive = client.get(&["drives", name])?;
    if drive.state == DriveState::Failed || redundancy(client, name)?.is_kept {
        return Ok(());
    }
    let loss = format!("without drive {name}, {}", bare(&drive));
    confirm.loss(&loss, &format!("Take drive {name} out of use"))
}

/// Has somebody agree to put another drive in the place of one that is healthy, and is copied first or
/// goes at once.
fn agree_to_replace(
    client: &Client,
    name: &str,
    (confirm, is_copied): (Confirm, bool),
) -> Result<(), Failure> {
    let drive: Drive = client.get(&["drives", name])?;
    if drive.state != DriveState::Healthy {
        return Ok(());
    }
    let mut loss = format!(
        "drive {name} is healthy: it leaves pool {} with what it holds",
        drive.pool
    );
    if !is_copied && !redundancy(client, name)?.is_kept {
        loss += &format!("\nuntil the new drive is rebuilt, {}", bare(&drive));
    }
    confirm.loss(&loss, &format!("Replace drive {name}"))
}

fn redundancy(client: &Client, name: &str) -> Result<DriveRedundancy, Failure> {
    client.get(&["drives", name, "redundancy"])
}

/// That a group can lose no more drives.
fn bare(drive: &Drive) -> String {
    format!(
        "group {} of pool {} has no redundancy: another drive that fails takes data with it",
        drive.group, drive.pool
    )
}

fn table(drives: &[Drive]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("NAME", Left),
        ("POOL", Left),
        ("PLACE", Right),
        ("STATE", Left),
        ("CAPACITY", Right),
        ("READS", Right),
        ("WRITES", Right),
        ("FLUSHES", Right),
        ("ERRORS", Right),
        ("MENDS", Right),
        ("READ LATENCY", Right),
        ("WRITE LATENCY", Right),
    ]);
    for drive in drives {
        table.row(vec![
            drive.name.clone(),
            drive.pool.clone(),
            place(drive),
            state(drive),
            human(drive.capacity_bytes),
            drive.reads.to_string(),
            drive.writes.to_string(),
            drive.flushes.to_string(),
            drive.errors.to_string(),
            drive.mends.to_string(),
            latency(drive.read_latency_us),
            latency(drive.write_latency_us),
        ]);
    }
    table
}

/// Group and place; a spare has neither.
fn place(drive: &Drive) -> String {
    let place = match drive.is_spare() {
        true => "spare".to_owned(),
        false => format!("{}.{}", drive.group, drive.place),
    };
    match drive.has_left() {
        true => format!("was {place}"),
        false => place,
    }
}

fn long_place(drive: &Drive) -> String {
    let place = match drive.is_spare() {
        true => format!("spare of pool {}", drive.pool),
        false => format!("group {}, place {}", drive.group, drive.place),
    };
    match drive.has_left() {
        true => format!("was {place}"),
        false => place,
    }
}

/// Why and since when a drive is out of use, and which one has its place.
fn failure_lines(drive: &Drive) -> Vec<(&'static str, String)> {
    let Some(failure) = &drive.failure else {
        return Vec::new();
    };
    let mut lines = vec![
        ("since", format!("{} UTC", utc(failure.since_unix_s))),
        ("why", failure.why.clone()),
    ];
    if let Some(name) = &failure.stands_in {
        lines.push(("stands in", name.clone()));
    }
    lines
}

/// What a drive says of its own health.
fn health_lines(health: &DriveHealth) -> Vec<(&'static str, String)> {
    let verdict = match health.verdict {
        DriveVerdict::Well => "well",
        DriveVerdict::Warns => "warns",
        DriveVerdict::Unknown => "not known",
    };
    let mut lines = vec![("health", verdict.to_owned())];
    let warnings = health.warnings.iter();
    lines.extend(warnings.map(|text| ("warning", text.clone())));
    lines.extend(health.unread.clone().map(|why| ("no answer", why)));
    let at = health.read_unix_s;
    lines.extend(at.map(|at| ("health read", format!("{} UTC", utc(at)))));
    lines.extend(health.model.clone().map(|model| ("model", model)));
    let temperature = health.temperature_celsius;
    lines.extend(temperature.map(|degrees| ("temperature", format!("{degrees} °C"))));
    let counts = [
        ("powered on", health.power_on_hours, " h"),
        ("reallocated sectors", health.reallocated_sectors, ""),
        ("pending sectors", health.pending_sectors, ""),
        ("uncorrectable sectors", health.uncorrectable_sectors, ""),
        ("media errors", health.media_errors, ""),
        ("spare blocks", health.spare_percent, " %"),
        ("spare threshold", health.spare_threshold_percent, " %"),
        ("life used", health.used_percent, " %"),
    ];
    let known = counts.into_iter();
    lines.extend(known.filter_map(|(name, count, unit)| Some((name, format!("{}{unit}", count?)))));
    let bits = health.critical_warning;
    lines.extend(bits.map(|bits| ("critical warning", format!("{bits:#04x}"))));
    lines
}

/// What came of replacing the drive called `old`.
fn replaced_line(old: &str, replaced: &DriveReplaced) -> String {
    let DriveReplaced {
        drive,
        stands_in,
        waits_for,
        ..
    } = replaced;
    let (new, pool) = (&drive.name, &drive.pool);
    let path = drive.path.as_deref().unwrap_or("at a place unknown");
    let (that, of_old) = match new == old {
        true => (format!("the new {new} ({path})"), format!("the old {old}")),
        false => (format!("drive {new} ({path})"), old.to_owned()),
    };
    if replaced.is_copied {
        return copied_line((&that, &of_old), pool);
    }
    let Some(stands_in) = stands_in else {
        if let Some(before) = waits_for {
            return format!(
                "{that} waits as a spare of pool {pool}: a spare takes the place of {of_old} once \
                 drive {before} is rebuilt; see ashlar pool show {pool}"
            );
        }
        return match drive.state {
            DriveState::Spare => {
                format!("{that} is a spare of pool {pool} instead of {of_old}")
            }
            _ => format!("{that} is in pool {pool}; see ashlar pool show {pool}"),
        };
    };
    let rebuilt = match stands_in.state {
        DriveState::Rebuilding => format!("is being rebuilt: ashlar pool show {pool}"),
        _ => "is rebuilt".to_owned(),
    };
    match stands_in.name == *new {
        true => format!("{that} takes the place of {of_old} and {rebuilt}"),
        false => format!(
            "{that} is a spare of pool {pool}; {} stands in for {of_old} and {rebuilt}",
            stands_in.name
        ),
    }
}

fn copied_line((that, of_old): (&str, &str), pool: &str) -> String {
    format!(
        "{that} gets what {of_old} holds; {of_old} stays in use until then: ashlar pool show {pool}"
    )
}

/// A mean latency; a dash before the first operation.
fn latency(us: u64) -> String {
    match us {
        0 => "-".to_owned(),
        1..10_000 => format!("{us} µs"),
        _ => format!("{} ms", us / 1000),
    }
}

/// The state of a drive, and where it is copied to.
fn state(drive: &Drive) -> String {
    let word = word(drive.state);
    match &drive.successor {
        None => word.to_owned(),
        Some(successor) => format!("{word}, is copied to {successor}"),
    }
}

fn word(state: DriveState) -> &'static str {
    match state {
        DriveState::Healthy => "healthy",
        DriveState::Suspect => "suspect",
        DriveState::Failed => "failed",
        DriveState::Rebuilding => "rebuilding",
        DriveState::Spare => "spare",
    }
}
