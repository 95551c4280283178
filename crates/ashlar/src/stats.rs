//! `ashlar stats`: shows I/O of volumes, initiators and sessions, as `iostat -x` does.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table};
use api::{
    InitiatorStats, IoStats, LatencyStats, Problem, ProblemKind, SessionStats, TransferStats,
    VolumeStats,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use site::human;
use std::time::Duration;

/// What columns mean.
const COLUMNS: &str = "\
Columns:
  RD/S WR/S          reads and writes per second
  RDMB/S WRMB/S      megabytes (10^6 bytes) per second
  RD_MS WR_MS        mean latency in milliseconds, in the array; of a write with its data's arrival
  P99_MS             99th percentile of the latency of reads and writes, in milliseconds
  QUEUE              mean number of commands in progress
  SIZE               mean length of reads and writes
  RND% RD%           share of random I/O, and of reads, among reads and writes
  UNMAP              UNMAP commands, and WRITE SAME with UNMAP
  WSAME ATS OFFLOAD  other WRITE SAME, COMPARE AND WRITE, EXTENDED COPY and token commands
  ERR CONFL          commands that failed, or met the reservation of another host

--latencies shows the number of commands of each kind, and their latencies in milliseconds.

Without --interval, the figures count from the start of the array or of the session. --json also has
histograms of latencies and sizes.";

#[derive(clap::Subcommand)]
pub enum Command {
    /// Show the I/O of volumes, by all their hosts
    #[command(after_help = COLUMNS)]
    Volumes(Args),
    /// Show the I/O of initiators, in all their sessions
    #[command(after_help = COLUMNS)]
    Initiators(Args),
    /// Show the I/O of connected sessions
    #[command(after_help = COLUMNS)]
    Sessions(Args),
}

#[derive(clap::Args)]
pub struct Args {
    /// Show only this volume, initiator or session
    name: Option<String>,
    /// Show the I/O of each interval of this many seconds, until interrupted
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    interval: Option<u64>,
    /// Number of intervals to show
    #[arg(long, value_name = "N", requires = "interval",
          value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Show the latencies of each kind of command
    #[arg(long)]
    latencies: bool,
    #[command(flatten)]
    format: Format,
}

impl Args {
    fn table<R: Row>(&self, rows: &[R]) -> Table {
        match self.latencies {
            true => latency_table(rows),
            false => table(rows),
        }
    }
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Volumes(args) => show::<VolumeStats>(client, &args),
        Command::Initiators(args) => show::<InitiatorStats>(client, &args),
        Command::Sessions(args) => show::<SessionStats>(client, &args),
    }
}

/// A row: what somebody did in some time.
trait Row: Clone + Serialize + DeserializeOwned {
    /// What the API calls them.
    const RESOURCE: &'static str;
    /// What one is called.
    const KIND: &'static str;
    const HEADING: &'static str;

    /// By which it is asked for.
    fn name(&self) -> String;
    /// What is shown of who it is.
    fn label(&self) -> String;
    /// Whether `earlier` is of the same one.
    fn is_same(&self, earlier: &Self) -> bool;
    /// Milliseconds, and what was done in them.
    fn io(&self) -> (u64, &IoStats);
    fn set_io(&mut self, over_ms: u64, io: IoStats);
}

impl Row for VolumeStats {
    const RESOURCE: &'static str = "volumes";
    const KIND: &'static str = "volume";
    const HEADING: &'static str = "VOLUME";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn label(&self) -> String {
        self.name.clone()
    }

    fn is_same(&self, earlier: &Self) -> bool {
        self.uuid == earlier.uuid
    }

    fn io(&self) -> (u64, &IoStats) {
        (self.over_ms, &self.io)
    }

    fn set_io(&mut self, over_ms: u64, io: IoStats) {
        (self.over_ms, self.io) = (over_ms, io);
    }
}

impl Row for InitiatorStats {
    const RESOURCE: &'static str = "initiators";
    const KIND: &'static str = "initiator";
    const HEADING: &'static str = "INITIATOR";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn label(&self) -> String {
        self.name.clone()
    }

    fn is_same(&self, earlier: &Self) -> bool {
        self.name == earlier.name
    }

    fn io(&self) -> (u64, &IoStats) {
        (self.over_ms, &self.io)
    }

    fn set_io(&mut self, over_ms: u64, io: IoStats) {
        (self.over_ms, self.io) = (over_ms, io);
    }
}

impl Row for SessionStats {
    const RESOURCE: &'static str = "sessions";
    const KIND: &'static str = "session";
    const HEADING: &'static str = "SESSION";

    fn name(&self) -> String {
        self.id.to_string()
    }

    fn label(&self) -> String {
        format!("{} {}", self.id, self.initiator)
    }

    // Numbers are given again; a session that took one over did all it did since.
    fn is_same(&self, earlier: &Self) -> bool {
        let who = |session: &Self| (session.id, session.since_unix_s);
        who(self) == who(earlier) && self.over_ms >= earlier.over_ms
    }

    fn io(&self) -> (u64, &IoStats) {
        (self.over_ms, &self.io)
    }

    fn set_io(&mut self, over_ms: u64, io: IoStats) {
        (self.over_ms, self.io) = (over_ms, io);
    }
}

fn show<R: Row>(client: &Client, args: &Args) -> Result<(), Failure> {
    let mut earlier: Vec<R> = ask(client, args)?;
    let Some(seconds) = args.interval else {
        return args.format.print(&earlier, |rows| args.table(rows));
    };
    let interval = Duration::from_secs(seconds);
    let mut left = args.count;
    while left != Some(0) {
        std::thread::sleep(interval);
        let later: Vec<R> = ask(client, args)?;
        let rows = between(&earlier, &later, interval);
        if !args.format.print_more(&rows, |rows| args.table(rows))? {
            break;
        }
        earlier = later;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// What there is to show now.
fn ask<R: Row>(client: &Client, args: &Args) -> Result<Vec<R>, Failure> {
    let mut rows: Vec<R> = client.get(&["stats", R::RESOURCE])?;
    if let Some(name) = &args.name {
        rows.retain(|row| row.name() == *name);
        if rows.is_empty() {
            return Err(Failure::Refused(Problem {
                kind: ProblemKind::NotFound,
                message: format!("nothing is known of {} {name}", R::KIND),
            }));
        }
    }
    Ok(rows)
}

/// What was done from one answer to the next, which came `interval` later.
fn between<R: Row>(earlier: &[R], later: &[R], interval: Duration) -> Vec<R> {
    let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
    let since = |row: &R| {
        let (over_ms, io) = row.io();
        let (over_ms, io) = match earlier.iter().find(|before| row.is_same(before)) {
            Some(before) => {
                let (before_ms, before) = before.io();
                let over_ms = over_ms.saturating_sub(before_ms);
                (over_ms, io.since(before, over_ms))
            }
            // It is new: all it did was in this time.
            None => {
                let over_ms = over_ms.min(interval_ms);
                (over_ms, io.clone().derived(over_ms))
            }
        };
        let mut row = row.clone();
        row.set_io(over_ms, io);
        row
    };
    later.iter().map(since).collect()
}

fn table<R: Row>(rows: &[R]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        (R::HEADING, Left),
        ("RD/S", Right),
        ("WR/S", Right),
        ("RDMB/S", Right),
        ("WRMB/S", Right),
        ("RD_MS", Right),
        ("WR_MS", Right),
        ("P99_MS", Right),
        ("QUEUE", Right),
        ("SIZE", Right),
        ("RND%", Right),
        ("RD%", Right),
        ("UNMAP", Right),
        ("WSAME", Right),
        ("ATS", Right),
        ("OFFLOAD", Right),
        ("ERR", Right),
        ("CONFL", Right),
    ]);
    for row in rows {
        let (over_ms, io) = row.io();
        let mut cells = vec![row.label()];
        cells.extend(cells_of(over_ms, io));
        table.row(cells);
    }
    table
}

/// How long each kind of command took, where there were any.
fn latency_table<R: Row>(rows: &[R]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        (R::HEADING, Left),
        ("COMMAND", Left),
        ("COUNT", Right),
        ("MEAN", Right),
        ("P50", Right),
        ("P95", Right),
        ("P99", Right),
        ("MAX", Right),
    ]);
    for row in rows {
        for (kind, commands, latency) in kinds(row.io().1) {
            if commands > 0 {
                let mut cells = vec![row.label(), kind.to_owned(), commands.to_string()];
                cells.extend(
                    [
                        latency.mean_ns,
                        latency.p50_ns,
                        latency.p95_ns,
                        latency.p99_ns,
                        latency.max_ns,
                    ]
                    .map(millis),
                );
                table.row(cells);
            }
        }
    }
    table
}

/// What each kind is called, how many there were, and how long they took.
fn kinds(io: &IoStats) -> [(&'static str, u64, &LatencyStats); 6] {
    let [reads, writes] = [&io.reads, &io.writes].map(|of| (of.commands, &of.latency));
    let rare = [
        &io.unmaps,
        &io.write_sames,
        &io.compare_and_writes,
        &io.offloads,
    ];
    let [unmaps, sames, exchanges, offloads] = rare.map(|of| (of.commands, &of.latency));
    [
        ("read", reads.0, reads.1),
        ("write", writes.0, writes.1),
        ("unmap", unmaps.0, unmaps.1),
        ("write-same", sames.0, sames.1),
        ("ats", exchanges.0, exchanges.1),
        ("offload", offloads.0, offloads.1),
    ]
}

fn cells_of(over_ms: u64, io: &IoStats) -> Vec<String> {
    // What was done in less than a millisecond was done in one.
    let seconds = over_ms.max(1) as f64 / 1000.0;
    let rate = |count: u64| format!("{:.1}", count as f64 / seconds);
    let megabytes = |bytes: u64| format!("{:.2}", bytes as f64 / seconds / 1e6);
    let transfers = io.reads.commands + io.writes.commands;
    let some = |any: bool, text: String| if any { text } else { "-".to_owned() };
    let mean_ms = |of: &TransferStats| some(of.commands > 0, millis(of.latency.mean_ns));
    let both = io.reads.latency.and(&io.writes.latency);
    let size = (io.reads.bytes + io.writes.bytes).checked_div(transfers);
    let share = |share: f64| some(transfers > 0, format!("{:.0}", share * 100.0));
    vec![
        rate(io.reads.commands),
        rate(io.writes.commands),
        megabytes(io.reads.bytes),
        megabytes(io.writes.bytes),
        mean_ms(&io.reads),
        mean_ms(&io.writes),
        some(transfers > 0, millis(both.p99_ns)),
        some(io.queue_depth_ns > 0, format!("{:.1}", io.queue_depth_mean)),
        size.map_or_else(|| "-".to_owned(), human),
        share(io.random_share),
        share(io.read_share),
        io.unmaps.commands.to_string(),
        io.write_sames.commands.to_string(),
        io.compare_and_writes.commands.to_string(),
        io.offloads.commands.to_string(),
        io.errors.to_string(),
        io.reservation_conflicts.to_string(),
    ]
}

fn millis(time_ns: u64) -> String {
    format!("{:.3}", time_ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::LatencyBucket;

    fn session(id: u16, over_ms: u64, reads: u64) -> SessionStats {
        let buckets = vec![LatencyBucket {
            below_ns: 2_000_000,
            commands: reads,
        }];
        let io = IoStats {
            commands: reads,
            reads: TransferStats {
                commands: reads,
                bytes: reads * 4096,
                random: reads / 2,
                latency: LatencyStats::of(buckets, reads * 1_500_000, 1_600_000),
                ..TransferStats::default()
            },
            queue_depth_ns: reads * 40_000_000,
            ..IoStats::default()
        };
        SessionStats {
            id,
            initiator: "iqn.2026-11.test:host".to_owned(),
            target: "iqn.2026-11.dev.ashlar:a".to_owned(),
            since_unix_s: 0,
            over_ms,
            io: io.derived(over_ms),
        }
    }

    #[test]
    fn rates_are_over_the_time_between_two_answers() {
        let earlier = [session(1, 10_000, 100), session(2, 9_000, 50)];
        let later = [
            session(1, 12_000, 300),
            session(2, 500, 20),
            session(3, 60_000, 4),
        ];
        let rows = between(&earlier, &later, Duration::from_secs(2));
        let read: Vec<_> = rows
            .iter()
            .map(|row| (row.id, row.over_ms, row.io.reads.commands))
            .collect();
        let expected = [(1, 2000, 200), (2, 500, 20), (3, 2000, 4)];
        assert_eq!(
            read, expected,
            "2 is another session by now, 3 was not there"
        );
        let cells = cells_of(rows[0].over_ms, &rows[0].io);
        let expected = [
            "100.0", "0.0", "0.41", "0.00", "1.500", "-", "1.600", "4.0", "4 KiB", "50", "100",
            "0", "0", "0", "0", "0", "0",
        ];
        assert_eq!(cells, expected);
    }

    #[test]
    fn nothing_done_is_no_number() {
        let cells = cells_of(0, &IoStats::default());
        assert_eq!(cells[..2], ["0.0", "0.0"]);
        assert_eq!(cells[4..11], ["-"; 7]);
    }
}
