//! `ashlar job`: shows jobs and follows them to their end.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs, percent, span, utc};
use crate::volume;
use api::{Job, JobKind, JobState};
use site::human;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// How often to ask how far a job is.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// Where nobody looks at a bar, one line for so many percent.
const LINE_EVERY: u64 = 10;
const BAR: usize = 24;
const CLEAR_LINE: &str = "\x1b[K";

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the jobs, oldest first
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show a job
    Show {
        /// Number of the job
        id: u64,
        #[command(flatten)]
        format: Format,
    },
    /// Follow a job to its end; Ctrl-C leaves it running
    Watch {
        /// Number of the job
        id: u64,
        #[command(flatten)]
        format: Format,
    },
    /// Cancel a job, which removes what it has made; or forget a job that has ended
    Cancel {
        /// Number of the job
        id: u64,
        #[command(flatten)]
        format: Format,
    },
}

/// How a job is gone about that a command begins.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Work {
    /// Limit of bytes a second, such as "200 MiB"
    #[arg(long, value_parser = volume::size)]
    pub rate: Option<u64>,
    /// Do not wait for the end of the job
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    pub format: Format,
}

impl Work {
    /// Who reads the answer.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Follows a job that has begun to its end, if that is wanted.
    pub fn begun(self, client: &Client, begun: Job) -> Result<(), Failure> {
        match self.detach {
            true => self.format.print_text(&begun, show),
            false => follow(client, begun, self.format),
        }
    }
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => format.list(client, &["jobs"], table),
        Command::Show { id, format } => format.print_text(&get(client, id)?, show),
        Command::Watch { id, format } => follow(client, get(client, id)?, format),
        Command::Cancel { id, format } => {
            let before = get(client, id)?;
            client.delete(&["jobs", &id.to_string()])?;
            format.done(&match is_ended(&before) {
                true => format!("job {id} is forgotten"),
                false => format!("job {id} is cancelled"),
            })
        }
    }
}

fn get(client: &Client, id: u64) -> Result<Job, Failure> {
    client.get(&["jobs", &id.to_string()])
}

fn is_ended(job: &Job) -> bool {
    job.state.is_ended()
}

/// Shows how far a job is until it ends, and then what came of it.
///
/// # Errors
/// The job fails, or nobody knows: the server has gone, or Ctrl-C was pressed.
pub fn follow(client: &Client, job: Job, format: Format) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("can't wait for signals: {error}")))?;
    let id = job.id;
    let mut shown = Shown::new(format);
    let ended = runtime.block_on(async {
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        let mut job = job;
        while !is_ended(&job) {
            shown.show(&job);
            tokio::select! {
                _ = &mut interrupt => return Ok(None),
                () = tokio::time::sleep(ASK_EVERY) => {}
            }
            job = get(client, id).map_err(|failure| gone(failure, id))?;
        }
        Ok::<_, Failure>(Some(job))
    });
    shown.end();
    match ended? {
        None => Err(Failure::Failed(format!(
            "job {id} continues: `ashlar job watch {id}` follows it, `ashlar job cancel {id}` ends it"
        ))),
        Some(job) => match job.state {
            JobState::Done => format.print_text(&job, show),
            JobState::Cancelled => Err(Failure::Failed(format!("job {id} was cancelled"))),
            _ => {
                let why = job
                    .error
                    .unwrap_or_else(|| "it does not say why".to_owned());
                Err(Failure::Failed(format!("job {id} failed: {why}")))
            }
        },
    }
}

/// The server has gone: its jobs go on when it comes back.
fn gone(failure: Failure, id: u64) -> Failure {
    match failure {
        Failure::Unreachable(why) => Failure::Unreachable(format!(
            "{why}\njob {id} continues when Ashlar is started again: `ashlar job watch {id}` follows it"
        )),
        other => other,
    }
}

/// How far a job is, on standard error: a bar on a terminal, else a line now and then.
///
/// Programs that read JSON find nothing there but errors.
struct Shown {
    is_for_people: bool,
    is_terminal: bool,
    told: Option<(JobState, u64)>,
}

impl Shown {
    fn new(format: Format) -> Self {
        Shown {
            is_for_people: !format.is_json(),
            is_terminal: io::stderr().is_terminal(),
            told: None,
        }
    }

    fn show(&mut self, job: &Job) {
        if !self.is_for_people {
            return;
        }
        if self.is_terminal {
            eprint!("\r{}{CLEAR_LINE}", line(job, true));
            // A terminal that can't be written to shows nothing.
            let _ = io::stderr().flush();
            self.told = Some((job.state, 0));
            return;
        }
        let now = (
            job.state,
            job.done_bytes * 100 / job.size_bytes.max(1) / LINE_EVERY,
        );
        if self.told != Some(now) {
            eprintln!("{}", line(job, false));
            self.told = Some(now);
        }
    }

    fn end(&self) {
        if self.is_terminal && self.told.is_some() {
            eprint!("\r{CLEAR_LINE}");
        }
    }
}

fn line(job: &Job, bar: bool) -> String {
    let (done, size) = (job.done_bytes, job.size_bytes);
    let what = format!("job {}, {} of {}", job.id, word(job.kind), job.volume);
    if !matches!(job.state, JobState::Running | JobState::Verifying) {
        let why = job
            .error
            .as_ref()
            .map_or(String::new(), |why| format!(": {why}"));
        return format!("{what}: {}{why}", job.state.word());
    }
    let filled = (u128::from(done) * BAR as u128 / u128::from(size.max(1))) as usize;
    let bar = match bar {
        true => format!(
            " [{}{}]",
            "#".repeat(filled),
            "-".repeat(BAR - filled.min(BAR))
        ),
        false => String::new(),
    };
    let verb = match job.state {
        JobState::Verifying => "verifying, ",
        _ => "",
    };
    let left = job
        .left_s
        .map_or(String::new(), |left| format!(", about {} left", span(left)));
    let rate = match job.bytes_per_s {
        0 => String::new(),
        rate => format!(" at {}/s", human(rate)),
    };
    format!(
        "{what}:{bar} {verb}{} of {}, {}{rate}{left}",
        percent(done, size),
        human(size),
        human(done)
    )
}

fn word(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Import => "import",
        JobKind::Export => "export",
        JobKind::Move => "move",
        JobKind::Copy => "copy",
    }
}

/// The file, or what else a job is from or to.
fn whereabouts(job: &Job) -> String {
    match (&job.to_pool, &job.source) {
        (Some(pool), _) => format!("to pool {pool}"),
        (None, Some(source)) => format!("from {source}"),
        (None, None) => job.file.clone(),
    }
}

fn table(jobs: &[Job]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("JOB", Right),
        ("KIND", Left),
        ("STATE", Left),
        ("VOLUME", Left),
        ("SIZE", Right),
        ("DONE", Right),
        ("RATE", Right),
        ("LEFT", Right),
        ("WHERE", Left),
    ]);
    for job in jobs {
        let (rate, left) = match job.bytes_per_s {
            0 => ("-".to_owned(), "-".to_owned()),
            rate => (
                format!("{}/s", human(rate)),
                job.left_s.map_or("-".to_owned(), span),
            ),
        };
        table.row(vec![
            job.id.to_string(),
            word(job.kind).to_owned(),
            job.state.word().to_owned(),
            job.volume.clone(),
            human(job.size_bytes),
            percent(job.done_bytes, job.size_bytes),
            rate,
            left,
            whereabouts(job),
        ]);
    }
    table
}

/// A job, for people.
fn format(job: &Job) -> String {
    match job.format_unrecognised {
        true => format!("{}: the format was not recognised", job.format),
        false => job.format.to_string(),
    }
}

pub fn show(job: &Job) -> String {
    let mut lines = vec![
        ("job", job.id.to_string()),
        ("kind", word(job.kind).to_owned()),
        ("state", job.state.word().to_owned()),
        ("volume", job.volume.clone()),
        ("pool", job.pool.clone()),
    ];
    match (&job.to_pool, &job.source) {
        (Some(pool), _) => lines.push(("to pool", pool.clone())),
        (None, Some(source)) => lines.push(("source", source.clone())),
        (None, None) => lines.extend([("file", job.file.clone()), ("format", format(job))]),
    }
    lines.extend([
        ("began", utc(job.began_unix_s)),
        ("size", human(job.size_bytes)),
        (
            "done",
            format!(
                "{}, {}",
                human(job.done_bytes),
                percent(job.done_bytes, job.size_bytes)
            ),
        ),
        ("data", human(job.data_bytes)),
    ]);
    if job.bytes_per_s > 0 {
        lines.push(("rate", format!("{}/s", human(job.bytes_per_s))));
    }
    if let Some(left) = job.left_s.filter(|_| !is_ended(job)) {
        lines.push(("left", format!("about {}", span(left))));
    }
    if let Some(resumed) = job.resumed_bytes {
        lines.push(("continued from", human(resumed)));
    }
    if let Some(sum) = &job.sha256 {
        lines.push(("sha256", sum.clone()));
    }
    if let Some(us) = job.stall_us {
        let ms = us as f64 / 1000.0;
        lines.push(("paused for", format!("{ms:.3} ms")));
    }
    if let Some(why) = &job.error {
        lines.push(("error", why.clone()));
    }
    pairs(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Format;

    #[test]
    fn progress_is_a_line() {
        let job = Job {
            id: 3,
            kind: JobKind::Import,
            state: JobState::Running,
            volume: "v".to_owned(),
            pool: "p".to_owned(),
            to_pool: None,
            source: None,
            file: "/i/v.raw".to_owned(),
            format: Format::Raw,
            format_unrecognised: false,
            began_unix_s: 0,
            size_bytes: 4 << 20,
            done_bytes: 1 << 20,
            data_bytes: 0,
            kept_bytes: 0,
            resumed_bytes: None,
            bytes_per_s: 1 << 20,
            left_s: Some(3),
            sha256: None,
            stall_us: None,
            error: None,
        };
        let plain = "job 3, import of v: 25.0 % of 4 MiB, 1 MiB at 1 MiB/s, about 3 s left";
        assert_eq!(line(&job, false), plain);
        let bar = "[######------------------] 25.0 %";
        assert!(line(&job, true).contains(bar), "{}", line(&job, true));
        let begins = Job {
            done_bytes: 0,
            bytes_per_s: 0,
            left_s: None,
            ..job.clone()
        };
        let plain = "job 3, import of v: 0.0 % of 4 MiB, 0 B";
        assert_eq!(line(&begins, false), plain);
        let waits = Job {
            state: JobState::Waiting,
            error: Some("no".to_owned()),
            ..job
        };
        assert_eq!(line(&waits, true), "job 3, import of v: waiting: no");
    }
}
