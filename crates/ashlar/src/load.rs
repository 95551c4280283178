//! `ashlar load`: puts a workload on targets and reports how they did.
//!
//! Exit codes: 0 all limits hold; 1 operations failed, a target was away or cannot be
//! used, or the run was stopped; 2 the arguments make no plan; 3 a limit failed or a VM's
//! rate missed its target (the step is invalid).

use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output;
use anyhow::Context;
use load::contents::{self, ForeignTarget};
use load::machine;
use load::os::Interrupt;
use load::run::{self, Observer, Phase, Progress};
use load::{site_plan, trace_file};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use workload::plan::{self, Plan};
use workload::profile::{Entry, Profile};
use workload::report::{self, OriginReport, Report, Verdict, page};
use workload::trace::{self, BeyondEnd, Trace, TraceFile};
use workload::url::TargetUrl;

/// Put a load on targets and report latencies, rates and limits
///
/// Operations start when the profile says, whether or not earlier ones are done. Latency counts
/// from that instant.
///
/// A profile that writes overwrites its targets. If a target holds other data than that of an
/// earlier load, the command asks first.
///
/// URLs: iscsi://host[:port]/iqn/lun, nbd://host[:port]/export, nbd+unix:///export?socket=PATH,
/// file:PATH, block:PATH
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    /// The load profile; or give --site or --trace
    #[arg(
        required_unless_present_any = ["site", "trace"],
        conflicts_with_all = ["site", "trace"]
    )]
    profile: Option<String>,
    /// Run the loads of this site file's VMs on their LUNs
    #[arg(long, value_name = "FILE")]
    site: Option<PathBuf>,
    /// Replay this trace at its own times: FILE, or FILE,FORMAT
    ///
    /// FORMAT is msr (CSV of MSR Cambridge) or blkparse (its default output; requests as they were
    /// queued).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["site", "rate", "iodepth"])]
    trace: Option<String>,
    /// Treatment of a trace's operations beyond the end of a target: refuse, wrap
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "refuse",
        requires = "trace"
    )]
    trace_beyond: BeyondEnd,
    /// Portal of the site's targets [default: that of the site file]
    #[arg(long, value_name = "ADDR", requires = "site")]
    portal: Option<SocketAddr>,
    /// URL of a target; may be given more than once
    #[arg(long = "target", value_name = "URL", required_unless_present = "site")]
    targets: Vec<TargetUrl>,
    /// Time to measure: 30s, 5m, 1h [default: 30s; for a trace, its rest]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Time to run before measuring [default: 10s; for a trace, 0]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    warmup: Option<Duration>,
    /// Write every disk once before the warm-up, so that thin volumes have to read
    #[arg(long)]
    fill: bool,
    /// Factor on all rates, and on what threads ask for; a trace runs faster by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    rate_scale: f64,
    /// Run every stream, also of threads, as a closed loop with this many operations under way
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    iodepth: Option<usize>,
    /// Start this many operations per second in every stream, also of threads (Poisson arrivals)
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Make every operation of this size: "4 KiB", "64 KiB"
    #[arg(long, value_name = "SIZE", value_parser = operation_size, conflicts_with = "trace")]
    size: Option<u32>,
    /// Make this share of every stream's operations reads, the others writes
    #[arg(long, value_name = "PERCENT", conflicts_with = "trace")]
    reads: Option<u32>,
    /// Limit of each VM's mean read latency, in milliseconds
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 20.0,
        allow_negative_numbers = true
    )]
    limit_read_ms: f64,
    /// Limit of each VM's mean write latency, in milliseconds
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 20.0,
        allow_negative_numbers = true
    )]
    limit_write_ms: f64,
    /// Time to reconnect a lost target; 0 ends the VM's part of the run at once
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    reconnect_for: Duration,
    /// Do not count outages that end, nor the operations lost with their sessions, as failures
    #[arg(long)]
    allow_outages: bool,
    #[command(flatten)]
    confirm: Confirm,
    /// The seed of operations and data
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the result as JSON to this file (- for standard output, without the table)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn after_help() -> String {
    let catalogue = Profile::catalogue();
    let width = catalogue.iter().map(|entry| entry.name.len()).max();
    let width = width.unwrap_or(0);
    let line = |entry: &Entry| format!("  {:<width$}  {}\n", entry.name, entry.summary);
    let profiles: String = catalogue.iter().map(line).collect();
    format!(
        "Profiles (/s: operations per second; see also --rate-scale, --rate and --iodepth):\n\
         {profiles}\n\
         Targets: give one for all VMs, one for each VM, or one for each disk, in the profile's \
         order. A profile of one VM with one disk takes any number. A trace takes one for all its \
         disks, or one for each disk, by host and number.\n\n\
         Outages: the load opens a lost target again, and the run continues. Operations under way \
         have failed. Operations that become due meanwhile wait, and their latency counts from \
         the intended start. The report lists each outage. An outage is a failure (exit code 1), \
         unless it ends and --allow-outages is given.\n\n\
         Exit codes: 0 pass, 1 errors, outages or stopped, 2 wrong arguments, 3 a limit failed \
         or a rate missed its target."
    )
}

/// Time before what is measured, unless told otherwise.
const WARMUP: Duration = Duration::from_secs(10);

/// Measured time, unless told otherwise.
const DURATION: Duration = Duration::from_secs(30);

/// A run ends so long after the last operation of its trace was due.
const TRACE_END: Duration = Duration::from_millis(1);

/// Most operations under way with --rate.
const OUTSTANDING_MAX_AT_RATE: usize = 64;

/// Runs the command.
///
/// # Errors
/// `Wrong` for arguments that make no plan, `Failed` when a target cannot be used or a report not be
/// written.
pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let plan = plan(&args).map_err(Failure::Wrong)?;
    may_overwrite(args.confirm, &plan)?;
    measure(&args, &plan).map_err(|error| Failure::Failed(format!("{error:#}")))
}

/// Runs the plan and reports.
fn measure(args: &Args, plan: &Plan) -> anyhow::Result<ExitCode> {
    // Opened first: nobody wants to learn after an hour that a path is wrong.
    let to_stdout = args
        .json
        .as_ref()
        .is_some_and(|path| path.as_os_str() == "-");
    let mut json = args
        .json
        .as_ref()
        .filter(|_| !to_stdout)
        .map(create)
        .transpose()?;
    let mut html = args.html.as_ref().map(create).transpose()?;
    let interrupt = Interrupt::hold().context("cannot hold back SIGINT")?;
    let origin = origin();
    let mut screen = Screen::new(interrupt, plan);
    let outcome = run::run(plan, &mut screen);
    screen.clear();
    let mut report = report::report(plan, &outcome?);
    report.origin = Some(origin);
    let as_json = serde_json::to_string_pretty(&report)?;
    if to_stdout {
        println!("{as_json}");
    } else {
        print!("{}", report::table(&report));
    }
    for (file, path, text) in [
        (&mut json, &args.json, as_json + "\n"),
        (&mut html, &args.html, report::html(&report)),
    ] {
        if let (Some(file), Some(path)) = (file, path) {
            let written = file.write_all(text.as_bytes());
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(exit_code(&report))
}

/// Asks before something is overwritten that no load has written.
fn may_overwrite(confirm: Confirm, plan: &Plan) -> Result<(), Failure> {
    if confirm.is_given() {
        return Ok(());
    }
    let line = |held: &ForeignTarget| {
        let size = site::human(held.capacity_bytes);
        format!("{} ({size}) holds {}", held.target, held.what)
    };
    let held: Vec<String> = contents::held(plan).iter().map(line).collect();
    match held.as_slice() {
        [] => Ok(()),
        held => confirm.overwriting(&held.join("\n")),
    }
}

/// Now, this machine, and this program.
fn origin() -> OriginReport {
    // A clock that stands before 1970 is set wrong, and says so.
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    OriginReport {
        started_utc: rfc3339(now.map_or(0, |since| since.as_secs())),
        version: page::VERSION.to_owned(),
        machine: machine::this(),
    }
}

/// A time as programs read it (RFC 3339, clause 5.6), given in seconds since 1970.
fn rfc3339(unix_s: u64) -> String {
    output::utc(unix_s).replace(' ', "T") + "Z"
}

fn create(path: &PathBuf) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

fn exit_code(report: &Report) -> ExitCode {
    ExitCode::from(match report.verdict {
        Verdict::Pass => 0,
        Verdict::Errors | Verdict::Incomplete => 1,
        Verdict::Invalid | Verdict::LimitFailed => 3,
    })
}

/// What the arguments ask for.
fn plan(args: &Args) -> Result<Plan, String> {
    let site = args.site.as_deref().map(site::load).transpose();
    let site = site.map_err(|error| error.to_string())?;
    let mut profile = match (&site, &args.trace, &args.profile) {
        (Some(site), ..) => site_plan::profile(site)?,
        (None, Some(trace), _) => replayed(trace, args)?,
        (None, None, Some(name)) => Profile::named(name)
            .ok_or_else(|| {
                let allowed = Profile::names().join(", ");
                format!("profile {name:?} does not exist; allowed: {allowed}")
            })?
            .repeated(args.targets.len()),
        (None, None, None) => return Err("name a profile, a trace or a site".into()),
    };
    profile = profile.scaled(args.rate_scale);
    if let Some(outstanding) = args.iodepth {
        if outstanding == 0 {
            return Err("--iodepth 0: allowed is a depth of 1 or more".to_owned());
        }
        profile = profile.with_depth(outstanding);
    }
    if let Some(per_second) = args.rate {
        profile = profile.with_rate(per_second * args.rate_scale, OUTSTANDING_MAX_AT_RATE);
    }
    if let Some(bytes) = args.size {
        profile = profile.with_size(bytes);
    }
    if let Some(percent) = args.reads {
        profile = profile.with_reads(percent);
    }
    profile.limits.read_mean = limit("--limit-read-ms", args.limit_read_ms)?;
    profile.limits.write_mean = limit("--limit-write-ms", args.limit_write_ms)?;
    profile.check()?;
    let vms = match &site {
        Some(site) if args.targets.is_empty() => site_plan::places(site, &profile, args.portal)?,
        _ => plan::places(&profile, &args.targets)?,
    };
    let (warmup, duration) = times(args, &profile)?;
    Ok(Plan {
        profile,
        vms,
        warmup,
        duration,
        seed: args.seed,
        fill: args.fill,
        rate_scale: args.rate_scale,
        reconnect_for: args.reconnect_for,
        allow_outages: args.allow_outages,
    })
}

/// The profile that a trace makes. It is read through for that.
fn replayed(trace: &str, args: &Args) -> Result<Profile, String> {
    let (path, format) = trace::file_and_format(trace);
    let file = TraceFile {
        path,
        open: trace_file::open,
    };
    let trace = Trace::survey(file, format, args.trace_beyond);
    Ok(trace.map_err(|error| error.to_string())?.profile())
}

/// Warm-up and measured time. What is measured of a trace ends where it ends.
fn times(args: &Args, profile: &Profile) -> Result<(Duration, Duration), String> {
    if args.duration.is_some_and(|duration| duration.is_zero()) {
        return Err("--duration must be above zero".into());
    }
    let streams = profile.vms.iter().flat_map(|vm| &vm.streams);
    let traces = streams.filter_map(|stream| stream.trace.as_ref());
    let Some(length) = traces.map(|trace| trace.duration()).max() else {
        let warmup = args.warmup.unwrap_or(WARMUP);
        return Ok((warmup, args.duration.unwrap_or(DURATION)));
    };
    let warmup = args.warmup.unwrap_or_default();
    if warmup > length {
        return Err(format!(
            "--warmup {warmup:?}: the trace takes no more than {length:?}"
        ));
    }
    // Behind its last operation, so that this one counts.
    let left = length.saturating_add(TRACE_END) - warmup;
    let duration = args.duration.unwrap_or(left).min(left);
    Ok((warmup, duration))
}

fn limit(name: &str, millis: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(millis / 1e3)
        .map_err(|_| format!("{name} {millis} is not a time in milliseconds"))
}

/// The size of an operation; whether streams may have it is the profile's to say.
fn operation_size(text: &str) -> Result<u32, String> {
    let bytes = crate::volume::size(text)?;
    u32::try_from(bytes).map_err(|_| format!("{text:?} is too large for an operation"))
}

/// A number of seconds, or a number with ms, s, m or h.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: f64 = digits
        .parse()
        .map_err(|_| format!("{text:?} is not a time like 30s"))?;
    let factor = match &text[digits.len()..] {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("the unit {unit:?} is not one of ms, s, m, h")),
    };
    Duration::try_from_secs_f64(number * factor).map_err(|error| error.to_string())
}

/// The progress line, where there is a terminal, and the signal that stops.
struct Screen {
    interrupt: Interrupt,
    terminal: bool,
    total: Duration,
    warmup: Duration,
    /// Progress at the second before, for rates.
    second: u64,
    before: Progress,
}

impl Screen {
    fn new(interrupt: Interrupt, plan: &Plan) -> Screen {
        Screen {
            interrupt,
            terminal: std::io::stderr().is_terminal(),
            total: plan.warmup + plan.duration,
            warmup: plan.warmup,
            second: 0,
            before: Progress {
                phase: Phase::Opening,
                completed: 0,
                response_ns: 0,
                failed: 0,
                away: 0,
            },
        }
    }

    fn clear(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }

    fn show(&mut self, progress: &Progress) {
        let line = match progress.phase {
            Phase::Opening => "opening targets".to_string(),
            Phase::Filling {
                written_bytes,
                total_bytes,
            } => {
                format!(
                    "filling: {} of {} MiB",
                    written_bytes >> 20,
                    total_bytes >> 20
                )
            }
            Phase::Running { elapsed } => {
                if elapsed.as_secs() == self.second {
                    return;
                }
                let count = progress.completed - self.before.completed;
                let response_ns = progress.response_ns - self.before.response_ns;
                let mean_ms = response_ns as f64 / count.max(1) as f64 / 1e6;
                self.second = elapsed.as_secs();
                self.before = *progress;
                format!(
                    "{} {} of {} s: {count} operations/s, mean {mean_ms:.2} ms, {} failed{}",
                    if elapsed < self.warmup {
                        "warm-up"
                    } else {
                        "measuring"
                    },
                    elapsed.as_secs(),
                    self.total.as_secs(),
                    progress.failed,
                    match progress.away {
                        0 => String::new(),
                        away => format!(", {away} sessions lost"),
                    }
                )
            }
        };
        eprint!("\r\x1b[K{line}");
    }
}

impl Observer for Screen {
    fn observe(&mut self, progress: &Progress, pause: Duration) -> bool {
        if self.terminal {
            self.show(progress);
        }
        self.interrupt.wait(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn planned(line: &str) -> Result<Plan, String> {
        let words = std::iter::once("load").chain(line.split_whitespace());
        plan(
            &Line::try_parse_from(words)
                .map_err(|error| error.to_string())?
                .args,
        )
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "s", "-1s", "5 parsecs", "1d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_as_programs_read_them() {
        assert_eq!(rfc3339(1_709_251_199), "2024-02-29T23:59:59Z");
    }

    #[test]
    fn arguments_make_a_plan() {
        let plan = planned("rand-4k-write --target file:/a --target file:/b --iodepth 32").unwrap();
        assert_eq!(plan.profile.vms.len(), 2);
        assert_eq!(plan.profile.vms[1].outstanding_max(), 32);
        let plan = planned("rand-4k-read --target file:/a --size 64KiB --reads 70").unwrap();
        let mix = &plan.profile.vms[0].streams[0].mix;
        assert_eq!((&mix.sizes, mix.read_percent), (&vec![64 << 10], 70));
        let plan = planned("hetero10 --target file:/a --rate-scale 0.5 --limit-read-ms 5").unwrap();
        assert_eq!(plan.vms.len(), 10);
        assert_eq!(plan.profile.limits.read_mean, Duration::from_millis(5));
    }

    #[test]
    fn a_trace_makes_a_plan_as_long_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t,1.csv");
        let line = |second: u64| format!("{},h,0,Read,0,4096,1\n", second * 10_000_000);
        std::fs::write(&path, line(100) + &line(108)).unwrap();
        let path = path.display();
        let times = |more: &str| {
            let line = format!("--trace {path},msr --target file:/a {more}");
            planned(&line).map(|plan| (plan.warmup.as_millis(), plan.duration.as_millis()))
        };
        assert_eq!(times(""), Ok((0, 8001)));
        assert_eq!(times("--rate-scale 4"), Ok((0, 2001)));
        assert_eq!(times("--warmup 3s --duration 1h"), Ok((3000, 5001)));
        assert_eq!(times("--duration 2s"), Ok((0, 2000)));
        assert!(times("--warmup 9s").unwrap_err().contains("--warmup"));
        // Without a format, the first line tells; and a file's name may have a comma.
        let plan = planned(&format!("--trace {path} --target file:/a")).unwrap();
        assert_eq!(plan.profile.vms[0].disks.len(), 1);
        assert_eq!(plan.profile.name, "trace t,1.csv");
    }

    #[test]
    fn the_help_has_every_profile_with_a_line() {
        let help = after_help();
        for name in Profile::names() {
            let mut lines = help.lines().map(str::split_whitespace);
            let words =
                lines.find_map(|mut words| (words.next()? == name).then_some(words.count()));
            assert!(words.is_some_and(|words| words > 2), "{name}: {words:?}");
        }
    }

    #[test]
    fn arguments_that_make_no_plan_are_refused_with_what_is_allowed() {
        for (line, told) in [
            ("", "PROFILE"),
            ("hetero10", "--target"),
            ("nonsense --target file:/a", "rand-4k-read"),
            ("hetero10 --target ftp://a", "iscsi://"),
            ("hetero10 --target file:/a --target file:/b", "one per VM"),
            ("hetero10 --target file:/a --rate-scale 0", "rate"),
            (
                "hetero10 --target file:/a --limit-read-ms -1",
                "--limit-read-ms",
            ),
            ("rand-4k-read --target file:/a --iodepth 0", "depth"),
            ("rand-4k-read --target file:/a --size 5GiB", "too large"),
            ("rand-4k-read --target file:/a --size 6000B", "multiples"),
            ("rand-4k-read --target file:/a --reads 101", "100 %"),
            (
                "--trace /nonexistent/t.csv --target file:/a",
                "/nonexistent/t.csv",
            ),
            ("--trace t.csv --target file:/a --iodepth 4", "--iodepth"),
            ("hetero10 --trace t.csv --target file:/a", "--trace"),
            (
                "--trace t.csv --target file:/a --trace-beyond end",
                "refuse, wrap",
            ),
            ("rand-4k-read --target file:/a --duration 0s", "--duration"),
            ("--site /nonexistent/site.toml", "/nonexistent/site.toml"),
        ] {
            let refused = planned(line).unwrap_err();
            assert!(refused.contains(told), "{line:?}: {refused}");
        }
    }
}
