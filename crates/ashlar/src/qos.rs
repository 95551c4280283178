//! `ashlar qos`: shows and sets the limits of volumes.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs};
use crate::volume::size;
use api::{Limits, VolumeLimits};
use site::human;

const SET_HELP: &str = "\
The limits replace those that the volume has. They count at once, also for commands that wait, and
after a restart. Reads, writes, verifications and WRITE SAME count with their length; UNMAP, COMPARE
AND WRITE and copies that the array makes count as one I/O. Copies and images that Ashlar makes as
jobs do not count.

Commands wait in the order in which they came. A command that would wait longer than 4 s is answered
TASK SET FULL; Linux, Windows and ESXi send it again.

Examples:
  ashlar qos set web01 --iops 500 --io-size \"8 KiB\"
  ashlar qos set db01 --iops 2000 --burst-iops 6000 --burst-seconds 60 --bandwidth \"200 MB\"";

#[derive(clap::Subcommand)]
pub enum Command {
    /// Show the limits of volumes, and the commands that waited for them
    Show {
        /// Show only this volume [default: all volumes that have limits]
        volume: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Limit the I/Os and bytes a second that hosts get of a volume
    #[command(after_help = SET_HELP)]
    Set(SetArgs),
    /// Remove the limits of a volume
    Remove {
        /// Name of the volume
        volume: String,
        #[command(flatten)]
        format: Format,
    },
}

#[derive(clap::Args)]
#[group(id = "what", multiple = true, required = true, args = ["iops", "bandwidth"])]
pub struct SetArgs {
    /// Name of the volume
    volume: String,
    /// I/Os a second, at most
    #[arg(long, value_name = "N")]
    iops: Option<u64>,
    /// I/Os a second while the credits of a burst last
    #[arg(long, value_name = "N", requires = "iops", requires = "burst_seconds")]
    burst_iops: Option<u64>,
    /// Bytes a second, at most, such as "100 MB"
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bandwidth: Option<u64>,
    /// Bytes a second while the credits of a burst last
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "bandwidth", requires = "burst_seconds")]
    burst_bandwidth: Option<u64>,
    /// Seconds for which a volume that was idle may run at its burst rate
    #[arg(long, value_name = "N")]
    burst_seconds: Option<u32>,
    /// Bytes that count as one I/O; a longer command counts as several: "8 KiB" as Hyper-V, "32 KiB" as
    /// ESXi [default: each command counts as one]
    #[arg(long, value_name = "SIZE", value_parser = io_size, requires = "iops")]
    io_size: Option<u32>,
    #[command(flatten)]
    format: Format,
}

/// A size that counts as one I/O; the API says which may be.
fn io_size(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?).map_err(|_| "allowed: 512 bytes to 16 MiB".to_owned())
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Show {
            volume: None,
            format,
        } => {
            let all: Vec<VolumeLimits> = client.get(&["qos"])?;
            format.print(&all, |all| table(all))
        }
        Command::Show {
            volume: Some(volume),
            format,
        } => {
            let of: VolumeLimits = client.get(&["qos", &volume])?;
            format.print_text(&of, show)
        }
        Command::Set(args) => {
            let limits = Limits {
                iops: args.iops,
                burst_iops: args.burst_iops,
                bytes_per_s: args.bandwidth,
                burst_bytes_per_s: args.burst_bandwidth,
                burst_s: args.burst_seconds,
                io_bytes: args.io_size,
            };
            let of: VolumeLimits = client.put(&["qos", &args.volume], &limits)?;
            args.format.print_text(&of, show)
        }
        Command::Remove { volume, format } => {
            let of: VolumeLimits = client.put(&["qos", &volume], &Limits::default())?;
            format.print_text(&of, show)
        }
    }
}

/// A rate and its burst.
fn rate(per_s: Option<u64>, peak: Option<u64>, text: impl Fn(u64) -> String) -> String {
    match (per_s, peak) {
        (None, _) => "-".to_owned(),
        (Some(per_s), None) => text(per_s),
        (Some(per_s), Some(peak)) => format!("{}, {} in bursts", text(per_s), text(peak)),
    }
}

fn bytes(per_s: u64) -> String {
    format!("{}/s", human(per_s))
}

/// Mean milliseconds that a command waited.
fn mean_ms(of: &VolumeLimits) -> String {
    match of.held {
        0 => "-".to_owned(),
        held => format!("{:.1}", of.held_ms as f64 / held as f64),
    }
}

fn table(all: &[VolumeLimits]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("VOLUME", Left),
        ("POOL", Left),
        ("IOPS", Right),
        ("BANDWIDTH", Right),
        ("WAITING", Right),
        ("HELD", Right),
        ("MEAN_MS", Right),
        ("REFUSED", Right),
    ]);
    for of in all {
        let limits = &of.limits;
        table.row(vec![
            of.volume.clone(),
            of.pool.clone(),
            rate(limits.iops, limits.burst_iops, |per_s| per_s.to_string()),
            rate(limits.bytes_per_s, limits.burst_bytes_per_s, bytes),
            of.waiting.to_string(),
            of.held.to_string(),
            mean_ms(of),
            of.refused.to_string(),
        ]);
    }
    table
}

fn show(of: &VolumeLimits) -> String {
    let limits = &of.limits;
    let mut lines = vec![
        ("volume", of.volume.clone()),
        ("pool", of.pool.clone()),
        (
            "IOPS",
            rate(limits.iops, limits.burst_iops, |per_s| per_s.to_string()),
        ),
        (
            "bandwidth",
            rate(limits.bytes_per_s, limits.burst_bytes_per_s, bytes),
        ),
    ];
    if let Some(io_bytes) = limits.io_bytes {
        lines.push(("one I/O", human(u64::from(io_bytes))));
    }
    if let Some(seconds) = limits.burst_s {
        lines.push(("burst", format!("{seconds} s")));
    }
    lines.extend([
        ("waiting", of.waiting.to_string()),
        ("held", of.held.to_string()),
        ("mean ms", mean_ms(of)),
        ("refused", of.refused.to_string()),
    ]);
    pairs(&lines)
}
