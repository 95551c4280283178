//! `ashlar-sim`: runs seeds, replays one, measures the simulator.

// The one place of the simulator that is not deterministic: it measures wall time,
// reads its environment and spreads seeds over threads. What happens inside a seed
// depends on the seed alone.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use clap::{Args, Parser, Subcommand};
use sim::config::{self, Theme};
use sim::seed::Seed;
use sim::{answers, plants, rate, seeds};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::num::NonZero;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// As the program that it stands for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A seed that takes longer than this is named, so that one that never ends is known when the
/// run is ended from outside. Most take less than a second.
const SLOW: Duration = Duration::from_secs(60);
/// How often to look for those where none ends.
const LOOK: Duration = Duration::from_secs(5);

/// Proves by simulation that an acknowledged write survives.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Only these themes of faults, in all runs that can have them ("" is none).
    #[arg(long, global = true, value_delimiter = ',')]
    themes: Option<Vec<String>>,
}

#[derive(Subcommand)]
enum Command {
    /// Run seeds, each twice, and the regressions list.
    Run(Run),
    /// Run one seed once.
    Replay {
        /// The seed.
        seed: u64,
        /// Requests, as given to `run`.
        #[arg(long)]
        ops: Option<u64>,
        /// Print what happens.
        #[arg(long)]
        trace: bool,
        /// Plant a bug of the list.
        #[arg(long, value_name = "BUG")]
        plant: Option<String>,
    },
    /// Plant every known bug in turn, and show that the checker notices it.
    Plants(Plants),
    /// Measure I/Os per second of wall time over modelled drives.
    Rate {
        /// I/Os to issue.
        #[arg(long, default_value_t = 1_000_000)]
        ios: u64,
        /// Drives of RAID 5, one point of the curve; all of it, and mirrors, by default.
        #[arg(long)]
        drives: Option<u64>,
        /// Percent of the I/Os that read, there.
        #[arg(long, default_value_t = 90)]
        reads: u64,
        /// I/Os outstanding at each volume, there; each drive has one volume.
        #[arg(long, default_value_t = 8)]
        outstanding: u64,
    },
}

#[derive(Args)]
struct Run {
    /// How many seeds.
    #[arg(long, default_value_t = 50)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Requests per seed; by default each seed draws its own count.
    #[arg(long)]
    ops: Option<u64>,
    /// Seeds run side by side; by default one per core.
    #[arg(long)]
    jobs: Option<NonZero<usize>>,
    /// The commit under test, named in failures. Default: $ASHLAR_COMMIT.
    #[arg(long)]
    commit: Option<String>,
    /// Fail when a rare path of the engine was not reached.
    #[arg(long)]
    marks: bool,
    /// Also run the seed that this commit hash gives.
    #[arg(long, value_name = "HASH")]
    commit_seed: Option<String>,
}

#[derive(Args)]
struct Plants {
    /// Try so many seeds for each, and say which finds it; by default those that the
    /// list gives.
    #[arg(long)]
    seeds: Option<u64>,
    /// The first of those seeds.
    #[arg(long, default_value_t = 1, requires = "seeds")]
    from: u64,
    /// Only bugs whose name has this in it.
    #[arg(long, default_value = "")]
    only: String,
    /// Bugs tried side by side; by default one per core.
    #[arg(long)]
    jobs: Option<NonZero<usize>>,
}

impl Plants {
    /// The bugs that are looked for.
    fn wanted(&self) -> Vec<&'static str> {
        let all = engine::rare::BUGS.iter().copied();
        let all = all.filter(|bug| bug.contains(&self.only));
        let wanted = all.filter(|bug| {
            let looked_for = self.seeds.is_some() || !plants::window_of(bug).seeds.is_empty();
            if !looked_for {
                println!("not looked for: {bug}: plants.txt says why");
            }
            looked_for
        });
        wanted.collect()
    }

    /// What `bug` is looked for in.
    fn window_of(&self, bug: &str, themes: Option<&BTreeSet<Theme>>) -> plants::Window {
        let listed = plants::window_of(bug);
        let asked = self.seeds;
        let asked = asked.map(|seeds| self.from..self.from.saturating_add(seeds));
        plants::Window {
            seeds: asked.unwrap_or(listed.seeds),
            themes: themes.cloned().or(listed.themes),
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let named = |names: &Vec<String>| config::named(names.iter().map(String::as_str));
    let themes = match cli.themes.as_ref().map(named).transpose() {
        Ok(themes) => themes,
        Err(what) => {
            eprintln!("ashlar-sim: {what}");
            return ExitCode::FAILURE;
        }
    };
    match cli.command {
        Command::Run(run) => run_seeds(&run, themes),
        Command::Replay {
            seed,
            ops,
            trace,
            plant,
        } => {
            let seed = (seed, Seed::of(seed).with_themes(themes.as_ref()));
            replay(seed, ops, trace, plant.as_deref())
        }
        Command::Plants(plants) => plant(&plants, themes.as_ref()),
        Command::Rate {
            ios,
            drives,
            reads,
            outstanding,
        } => {
            let raid5 = rate::Load {
                read_percent: reads.min(100),
                outstanding,
                ..rate::Load::RAID5
            };
            measure(ios, drives, raid5)
        }
    }
}

fn run_seeds(run: &Run, themes: Option<BTreeSet<Theme>>) -> ExitCode {
    let began = Instant::now();
    let pass = Pass::of(run, themes);
    let jobs = jobs(run.jobs).min(pass.all.len());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| pass.work());
        }
        scope.spawn(|| pass.watch());
    });
    let totals = pass.totals.into_inner();
    let totals = totals.unwrap_or_else(PoisonError::into_inner);
    print_speed(&totals, run.seeds, began.elapsed().as_secs_f64(), jobs);
    let answered = print_answers(&totals.answers);
    let missed = run.marks && print_marks(&totals.marks);
    let missed = missed || (run.marks && !answered);
    println!("seeds {}, failures {}", run.seeds, totals.failures);
    exit_code(totals.failures == 0 && !missed)
}

/// How many run side by side.
fn jobs(asked: Option<NonZero<usize>>) -> usize {
    let jobs = asked.or_else(|| thread::available_parallelism().ok());
    jobs.map_or(1, NonZero::get)
}

fn exit_code(is_well: bool) -> ExitCode {
    match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Prints how fast that many seeds were run, `jobs` side by side.
fn print_speed(totals: &Totals, seeds: u64, seconds: f64, jobs: usize) {
    println!(
        "{} requests over {} boots in {seconds:.1} s ({seeds} seeds asked for, {} of the regressions list, each run twice)",
        totals.operations,
        totals.boots,
        seeds::regressions().len(),
    );
    let runs_a_core_minute =
        2.0 * totals.operations as f64 / 2_000.0 / (seconds * jobs as f64 / 60.0);
    println!("that is {runs_a_core_minute:.0} runs of 2,000 requests a minute and core");
    let (longest, slowest) = totals.slowest;
    println!(
        "the slowest is seed {slowest}: {:.1} s",
        longest.as_secs_f64()
    );
}

/// Seeds run side by side.
struct Pass {
    /// What they are asked to have.
    themes: Option<BTreeSet<Theme>>,
    ops: Option<u64>,
    commit: String,
    all: Vec<u64>,
    /// Index of the next one to be begun.
    next: AtomicUsize,
    /// Those under way, and since when.
    running: Mutex<BTreeMap<u64, Instant>>,
    /// One of them has ended.
    ended: Condvar,
    totals: Mutex<Totals>,
}

impl Pass {
    /// The seeds that `run` asks for, and the regressions list.
    fn of(run: &Run, themes: Option<BTreeSet<Theme>>) -> Self {
        let commit = run.commit.clone();
        let commit = commit.or_else(|| std::env::var("ASHLAR_COMMIT").ok());
        let asked = (0..run.seeds).map(|index| run.from.wrapping_add(index));
        let mut all: Vec<u64> = asked.collect();
        all.extend(seeds::regressions());
        all.extend(run.commit_seed.as_deref().map(seeds::seed_of_commit));
        Pass {
            themes,
            ops: run.ops,
            commit: commit.unwrap_or_else(|| "unknown".to_owned()),
            all,
            next: AtomicUsize::new(0),
            running: Mutex::default(),
            ended: Condvar::new(),
            totals: Mutex::default(),
        }
    }

    /// Runs seeds until none is left.
    fn work(&self) {
        while let Some(&seed) = self.all.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let began = Instant::now();
            lock(&self.running).insert(seed, began);
            let wished = self.themes.as_ref();
            let outcome = seeds::check(&Seed::of(seed).with_themes(wished), self.ops);
            let mut totals = lock(&self.totals);
            totals.slowest = totals.slowest.max((began.elapsed(), seed));
            match outcome {
                Ok(verdict) => {
                    totals.operations += verdict.operations;
                    totals.boots += verdict.boots;
                    answers::add(&mut totals.answers, &verdict.answers);
                    for (mark, count) in verdict.marks {
                        *totals.marks.entry(mark).or_default() += count;
                    }
                }
                Err(failure) => {
                    totals.failures += 1;
                    report(seed, self.ops, &self.commit, &failure);
                }
            }
            lock(&self.running).remove(&seed);
            self.ended.notify_all();
        }
    }

    /// Names seeds that take long, once each, until all have ended.
    fn watch(&self) {
        let mut told = BTreeSet::new();
        let mut running = lock(&self.running);
        while self.next.load(Ordering::Relaxed) < self.all.len() || !running.is_empty() {
            for (seed, began) in running.iter() {
                if began.elapsed() > SLOW && told.insert(*seed) {
                    println!("seed {seed} has not ended after {} s", SLOW.as_secs());
                }
            }
            let waited = self.ended.wait_timeout(running, LOOK);
            (running, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each step leaves it whole.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Totals {
    slowest: (Duration, u64),
    operations: u64,
    boots: u64,
    failures: u64,
    marks: BTreeMap<&'static str, u64>,
    answers: answers::Counts,
}

/// Prints how requests were answered. Whether enough of each kind were answered well for
/// something to be proved.
fn print_answers(counts: &answers::Counts) -> bool {
    println!("answered well, and not, and the longest in thousandths of what is allowed:");
    for (kind, count) in counts {
        let answers::Count { good, bad, longest } = count;
        println!("  {good:9} {bad:9} {longest:5}  {kind}");
    }
    let too_few = answers::too_few(counts);
    if !too_few.is_empty() {
        println!("TOO FEW were answered well: {}", too_few.join(", "));
    }
    too_few.is_empty()
}

/// Prints how often each rare path was taken. Whether one was not.
fn print_marks(marks: &BTreeMap<&'static str, u64>) -> bool {
    let mut missed = 0;
    for mark in engine::rare::MARKS {
        match marks.get(mark) {
            Some(count) => println!("  {count:9}  {mark}"),
            None => {
                missed += 1;
                println!("  MISSED     {mark}");
            }
        }
    }
    println!(
        "rare paths {}, not reached {missed}",
        engine::rare::MARKS.len()
    );
    missed > 0
}

fn plant(options: &Plants, themes: Option<&BTreeSet<Theme>>) -> ExitCode {
    // A bug may show as a panic: that is a way to be noticed, not to be printed.
    std::panic::set_hook(Box::new(|_| ()));
    let began = Instant::now();
    let wanted = options.wanted();
    let (next, found) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..jobs(options.jobs).min(wanted.len()) {
            scope.spawn(|| {
                while let Some(bug) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let is_found = look_for(bug, &options.window_of(bug, themes));
                    found.fetch_add(usize::from(is_found), Ordering::Relaxed);
                }
            });
        }
    });
    let found = found.into_inner();
    println!(
        "planted {}, found {found}, in {:.1} s",
        wanted.len(),
        began.elapsed().as_secs_f64()
    );
    exit_code(found == wanted.len())
}

/// Whether a planted bug is found; prints how, and how long that took.
fn look_for(bug: &str, window: &plants::Window) -> bool {
    let began = Instant::now();
    match plants::prove(bug, window) {
        Ok((seed, failure)) => {
            let failure: String = failure.chars().take(100).collect();
            let themes = window.themes_to_replay();
            let took_s = began.elapsed().as_secs_f64();
            println!("found by seed {seed:5}{themes} in {took_s:.1} s: {bug}: {failure}");
            true
        }
        Err(why) => {
            println!("NOT FOUND: {bug}: {why}");
            false
        }
    }
}

fn report(seed: u64, ops: Option<u64>, commit: &str, failure: &str) {
    println!("FAILED seed {seed} at commit {commit}: {failure}");
    match ops {
        None => println!("  replay: make sim SEEDS=1 FROM={seed}"),
        Some(ops) => println!("  replay: ashlar-sim run --seeds 1 --from {seed} --ops {ops}"),
    }
    let ops = ops.map(|ops| format!(" --ops {ops}")).unwrap_or_default();
    println!("  trace:  cargo run --release -p ashlar-sim -- replay {seed}{ops} --trace");
}

fn replay(
    (number, seed): (u64, Seed),
    ops: Option<u64>,
    trace: bool,
    plant: Option<&str>,
) -> ExitCode {
    let listener: sim::scenario::Listener = Rc::new(|now, line| {
        // Who reads the trace may have seen enough (`head`).
        if writeln!(std::io::stdout(), "{now} {line}").is_err() {
            std::process::exit(0);
        }
    });
    match seeds::once_with(&seed, ops, trace.then_some(listener), plant) {
        Ok(verdict) => {
            println!(
                "seed {number}: {} requests over {} boots, trace hash {:016x}",
                verdict.operations, verdict.boots, verdict.trace_hash
            );
            match verdict.failure {
                None => ExitCode::SUCCESS,
                Some(failure) => {
                    println!("FAILED: {failure}");
                    ExitCode::FAILURE
                }
            }
        }
        Err(panic) => {
            println!("FAILED: {panic}");
            ExitCode::FAILURE
        }
    }
}

/// Drives of the curve's points.
const CURVE: [u64; 4] = [10, 100, 1_000, 10_000];

fn measure(ios: u64, drives: Option<u64>, raid5: rate::Load) -> ExitCode {
    println!("{ios} I/Os at random over drives of constant latency, full engine path");
    println!(
        "{:14}{:>8}{:>12}{:>8}{:>10}{:>13}{:>13}{:>12}{:>12}  trace hash",
        "pools",
        "drives",
        "outstanding",
        "set up",
        "wall time",
        "I/Os per s",
        "virtual",
        "read",
        "write"
    );
    let over = |drives: u64| rate::Load {
        drives: drives.next_multiple_of(raid5.group_drives),
        ..raid5
    };
    let loads: Vec<rate::Load> = match drives {
        Some(drives) => vec![over(drives)],
        None => {
            let curve = CURVE.map(over);
            curve.into_iter().chain([rate::Load::RAID10]).collect()
        }
    };
    for load in loads {
        if let Err(error) = measure_one(load, ios) {
            eprintln!("ashlar-sim rate: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn measure_one(load: rate::Load, ios: u64) -> Result<(), rate::RateError> {
    let began = Instant::now();
    let bench = rate::Bench::prepare(load, 1)?;
    let set_up = began.elapsed();
    let began = Instant::now();
    let rate = bench.run(ios)?;
    let wall = began.elapsed();
    println!(
        "{:14}{:>8}{:>12}{:>6.2} s{:>8.2} s{:>13.0}{:>13.0}{:>12}{:>12}  {:016x}",
        load.name,
        load.drives,
        load.drives * load.outstanding,
        set_up.as_secs_f64(),
        wall.as_secs_f64(),
        rate.ios as f64 / wall.as_secs_f64(),
        rate.ios as f64 / rate.virtual_time.as_secs_f64(),
        format!("{:?}", rate.mean_read_latency),
        format!("{:?}", rate.mean_write_latency),
        rate.trace_hash
    );
    Ok(())
}
