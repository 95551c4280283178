//! The `ashlar` program: runs the array, or talks to a running array through its API.
//!
//! `serve` runs the array and `load` loads its targets; most other commands talk to a running
//! array.

// A program for people: it reads the environment, the clock and the terminal.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod api_address;
mod calibrate;
mod capture;
mod client;
mod confirm;
mod drive;
mod events;
mod export;
mod failure;
mod fsck;
mod fsck_report;
mod group;
mod host;
mod job;
mod load;
mod log;
mod manual;
mod moves;
mod offline;
mod output;
mod overcommitment;
mod pool;
mod pool_create;
mod portal;
mod qos;
mod raid_group;
mod rehearse;
mod salvage;
mod serve;
mod session;
mod settings;
mod shared_space;
mod site_file;
mod snapshot;
mod stats;
mod status;
mod trash;
mod unix_socket;
mod volume;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use client::Client;
use failure::{Failure, Reader};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Large rehearsals spend their time waiting for memory: this one asks for huge pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Columns that help has at most: documents and terminals show that much.
const HELP_WIDTH: usize = 100;

/// Unified storage for virtual machines: drives, pools, thin volumes, iSCSI.
#[derive(Parser)]
#[command(
    version,
    about,
    propagate_version = true,
    after_help = failure::EXIT_CODES,
    max_term_width = HELP_WIDTH
)]
struct Cli {
    /// The API of the running array: `unix:PATH` or `http://ADDRESS:PORT` [env: ASHLAR_API]
    /// [default: unix:/run/ashlar/api.sock]
    #[arg(long, global = true, value_name = "ADDRESS")]
    api: Option<String>,
    /// For scripts that give it to whatever they run: a command that never asks takes it, too
    #[arg(long, global = true, hide = true)]
    yes: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve an array; the first start creates what a site file describes
    Serve(serve::Args),
    /// Show the array at a glance
    Status(status::Args),
    /// Show drives, take them out of use, replace them, add spares
    #[command(subcommand)]
    Drive(drive::Command),
    /// Show, create, grow, scrub and destroy pools; salvage their labels
    #[command(subcommand)]
    Pool(pool::Command),
    /// Show, create, clone, name, tag, grow, import, export and delete volumes
    #[command(subcommand)]
    Volume(volume::Command),
    /// Show, set and remove limits of volumes: I/Os and bytes a second, with bursts
    #[command(subcommand)]
    Qos(qos::Command),
    /// Show, take and delete snapshots of volumes
    #[command(subcommand)]
    Snapshot(snapshot::Command),
    /// Show and change consistency groups: volumes with snapshots at one instant
    #[command(subcommand)]
    Group(group::Command),
    /// Show, restore or finally delete what is in the trash
    #[command(subcommand)]
    Trash(trash::Command),
    /// Show, follow and cancel jobs: imports and exports of images, moves of volumes
    #[command(subcommand)]
    Job(job::Command),
    /// Show, create, change and delete exports: targets, their LUNs, who may log in
    #[command(subcommand)]
    Export(export::Command),
    /// Show, create, change and delete hosts: initiators under one name, with CHAP
    #[command(subcommand)]
    Host(host::Command),
    /// Show, create, change and delete groups of hosts
    #[command(subcommand)]
    HostGroup(host::GroupCommand),
    /// Show, open and close portals: the addresses at which targets are served
    #[command(subcommand)]
    Portal(portal::Command),
    /// Show and change settings: trash, directories, limits
    #[command(subcommand)]
    Settings(settings::Command),
    /// Show and change the CHAP account that discovery asks for
    #[command(subcommand)]
    Discovery(settings::Discovery),
    /// Show and drop sessions of initiators
    #[command(subcommand)]
    Session(session::Command),
    /// Show the I/O of volumes, initiators and sessions: rates, latencies, queues, sizes
    #[command(subcommand)]
    Stats(stats::Command),
    /// Show the events of drives, pools and volumes, the oldest first
    Events(events::Args),
    /// Check a site file, compare it with the array, apply it; show the array as one
    #[command(subcommand)]
    Site(site_file::Command),
    /// Check pools that no array uses, and name all damage; writes nothing
    Fsck(fsck::Args),
    Load(load::Args),
    Capture(capture::Args),
    Calibrate(calibrate::Args),
    Rehearse(rehearse::Args),
    Plan(rehearse::size::Args),
    #[command(hide = true)]
    Manual(manual::Args),
}

/// Commands that ask no array. Their help says nothing of `--api`.
const OFFLINE: [&[&str]; 7] = [
    &["calibrate"],
    &["fsck"],
    &["load"],
    &["rehearse"],
    &["plan"],
    &["pool", "salvage"],
    &["site", "check"],
];

/// The command line. What `--api` means depends on the command.
fn command() -> clap::Command {
    let offline = |command, words: &&[&str]| with_api(command, words, &|api| api.hide(true));
    let command = OFFLINE.iter().fold(Cli::command(), offline);
    with_api(command, &["serve"], &|api| {
        api.help(
            "Where the API listens: `unix:PATH` or `http://ADDRESS:PORT` [env: ASHLAR_API] \
             [default: unix:/run/ashlar/api.sock for root]",
        )
    })
}

/// Gives the command below `command` with these words an `--api` of its own, instead of the global
/// one.
fn with_api(
    command: clap::Command,
    words: &[&str],
    change: &dyn Fn(clap::Arg) -> clap::Arg,
) -> clap::Command {
    match words.split_first() {
        Some((first, rest)) => command.mut_subcommands(|below| match below.get_name() == *first {
            true => with_api(below, rest, change),
            false => below,
        }),
        None => {
            let api = clap::Arg::new("api").long("api").value_name("ADDRESS");
            command.arg(change(api))
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let parsed = command().try_get_matches();
    let parsed =
        parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, reader(&matches))));
    match parsed {
        Ok((cli, reader)) => run(cli).unwrap_or_else(|failure| failure.report(&reader)),
        Err(error) if error.use_stderr() && asks_json(&words) => {
            let message = error.render().to_string();
            let message = message.trim_end().trim_start_matches("error: ");
            Failure::Wrong(message.to_owned()).report(&Reader::Program(String::new()))
        }
        Err(error) => error.exit(),
    }
}

/// Who reads what a command says: a program with `--json`.
fn reader(matches: &ArgMatches) -> Reader {
    let (mut last, mut words) = (matches, Vec::new());
    while let Some((word, below)) = last.subcommand() {
        words.push(word);
        last = below;
    }
    let is_flag = matches!(last.try_get_one::<bool>("json"), Ok(Some(true)));
    // A file, or standard output.
    let report = last.try_get_one::<PathBuf>("json");
    let is_stdout = matches!(report, Ok(Some(path)) if path.as_os_str() == "-");
    match is_flag || is_stdout {
        true => Reader::Program(words.join(" ")),
        false => Reader::People,
    }
}

/// Whether a command line that can't be understood asks for JSON on standard output.
fn asks_json(words: &[OsString]) -> bool {
    // A volume may be called load.
    let mut rest = words.iter();
    let command = loop {
        match rest.next() {
            Some(word) if *word == "--api" => drop(rest.next()),
            Some(word) if word.to_string_lossy().starts_with('-') => {}
            command => break command,
        }
    };
    let writers = ["load", "rehearse", "plan"];
    let writes_file = command.is_some_and(|command| writers.iter().any(|writer| command == writer));
    let flags: Vec<_> = words.iter().take_while(|word| *word != "--").collect();
    match writes_file {
        true => {
            let mut pairs = flags.windows(2);
            flags.iter().any(|word| *word == "--json=-")
                || pairs.any(|pair| pair[0] == "--json" && pair[1] == "-")
        }
        false => flags.iter().any(|word| *word == "--json"),
    }
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let Cli {
        api,
        yes: _,
        command: asked,
    } = cli;
    let api = api.as_deref();
    match asked {
        Command::Serve(args) => serve::run(args, api)?,
        Command::Load(args) => return load::run(args),
        Command::Fsck(args) => return fsck::run(args),
        Command::Pool(pool::Command::Salvage(args)) => return salvage::run(args),
        Command::Calibrate(args) => calibrate::run(&args)?,
        Command::Rehearse(args) => rehearse::run(args)?,
        Command::Manual(args) => manual::run(command(), &args)?,
        Command::Plan(args) => {
            // As a limit that fails.
            let code = if rehearse::size::run(&args)? { 0 } else { 3 };
            return Ok(ExitCode::from(code));
        }
        Command::Site(command) => return site_file::run(command, api),
        other => ask(&Client::new(api)?, other)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The commands that talk to a running array.
fn ask(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Status(args) => status::run(client, args),
        Command::Drive(command) => drive::run(client, command),
        Command::Pool(command) => pool::run(client, command),
        Command::Volume(command) => volume::run(client, command),
        Command::Qos(command) => qos::run(client, command),
        Command::Snapshot(command) => snapshot::run(client, command),
        Command::Group(command) => group::run(client, command),
        Command::Trash(command) => trash::run(client, command),
        Command::Job(command) => job::run(client, command),
        Command::Export(command) => export::run(client, command),
        Command::Host(command) => host::run(client, command),
        Command::HostGroup(command) => host::run_group(client, command),
        Command::Portal(command) => portal::run(client, command),
        Command::Settings(command) => settings::run(client, command),
        Command::Discovery(command) => settings::run_discovery(client, command),
        Command::Session(command) => session::run(client, command),
        Command::Stats(command) => stats::run(client, command),
        Command::Events(args) => events::run(client, args),
        Command::Capture(args) => capture::run(client, args),
        Command::Serve(_)
        | Command::Load(_)
        | Command::Calibrate(_)
        | Command::Rehearse(_)
        | Command::Plan(_)
        | Command::Manual(_)
        | Command::Site(_)
        | Command::Fsck(_) => {
            unreachable!("these do not talk to an array")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that print no answer, or write it to a file.
    const WITHOUT_FLAG: [&str; 8] = [
        "serve",
        "calibrate",
        "manual",
        "load",
        "capture",
        "rehearse",
        "plan",
        "site check",
    ];

    /// The commands that have none below them, with their words.
    fn leaves(command: &clap::Command, words: &str) -> Vec<(String, clap::Command)> {
        let mut all = Vec::new();
        for below in command.get_subcommands() {
            let words = format!("{words} {}", below.get_name());
            match below.has_subcommands() {
                true => all.extend(leaves(below, &words)),
                false => all.push((words.trim().to_owned(), below.clone())),
            }
        }
        all
    }

    #[test]
    fn every_command_with_an_answer_has_json() {
        let all = leaves(&command(), "");
        assert!(all.len() > 60, "{}", all.len());
        for words in WITHOUT_FLAG {
            assert!(all.iter().any(|(leaf, _)| *leaf == words), "{words}");
        }
        for (words, command) in all {
            if WITHOUT_FLAG.contains(&&words[..]) {
                continue;
            }
            let json = command.get_arguments().find(|arg| arg.get_id() == "json");
            let is_flag = |arg: &clap::Arg| !arg.get_action().takes_values();
            assert!(json.is_some_and(is_flag), "`ashlar {words}` has no --json");
        }
    }

    #[test]
    fn only_commands_that_ask_an_array_show_api() {
        let mut whole = command();
        whole.build();
        for (words, mut command) in leaves(&whole, "") {
            if words.split(' ').any(|word| word == "help") || words == "manual" {
                continue;
            }
            let is_offline = OFFLINE.iter().any(|offline| offline.join(" ") == words);
            let help = command.render_long_help().to_string();
            assert_eq!(help.contains("--api"), !is_offline, "ashlar {words}");
        }
        // It is taken everywhere: scripts give it to whatever they run.
        let words = ["ashlar", "fsck", "--data", "d", "--api", "unix:/a"];
        let matches = command().try_get_matches_from(words).unwrap();
        let cli = Cli::from_arg_matches(&matches).unwrap();
        assert_eq!(cli.api.as_deref(), Some("unix:/a"));
    }

    /// A script that always says so does not fail at commands that never ask.
    #[test]
    fn yes_is_taken_everywhere_and_shown_where_it_counts() {
        let asks = [
            "ashlar volume delete v --yes",
            "ashlar --yes volume delete v",
        ];
        for line in [
            "ashlar pool shrink p --group 1 --yes",
            "ashlar status --yes",
        ] {
            let parsed = command().try_get_matches_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
        }
        for line in asks {
            let matches = command().try_get_matches_from(line.split(' ')).unwrap();
            let cli = Cli::from_arg_matches(&matches).unwrap();
            let is_yes = matches!(
                cli.command,
                Command::Volume(volume::Command::Delete(args)) if args.confirm.is_given()
            );
            assert!(is_yes, "{line}");
        }
        let mut whole = command();
        whole.build();
        for (words, mut command) in leaves(&whole, "") {
            let is_asking = match words.as_str() {
                "volume delete" => true,
                "status" | "pool shrink" => false,
                _ => continue,
            };
            let help = command.render_long_help().to_string();
            assert_eq!(help.contains("--yes"), is_asking, "ashlar {words}");
        }
    }

    #[test]
    fn who_reads_is_said_by_json() {
        let of = |line: &str| {
            let words = line.split(' ');
            reader(&command().try_get_matches_from(words).unwrap())
        };
        let json = Reader::Program("volume delete".to_owned());
        assert_eq!(of("ashlar volume delete v --json"), json);
        assert_eq!(of("ashlar volume delete v"), Reader::People);
        // A file for the report, and standard output.
        for command in ["rehearse shop.toml", "plan shop.toml", "load --site s.toml"] {
            let to = |place: &str| of(&format!("ashlar {command} --json {place}"));
            assert_eq!(to("report.json"), Reader::People, "{command}");
            let words = command.split(' ').next().unwrap().to_owned();
            assert_eq!(to("-"), Reader::Program(words), "{command}");
        }
    }

    #[test]
    fn a_wrong_command_line_says_who_reads() {
        for (line, is_json) in [
            ("volume show --json", true),
            ("volume show", false),
            ("volume show -- --json", false),
            ("volume show plan --json --bogus", true),
            ("load --json -", true),
            ("--api unix:/a plan --json=-", true),
            ("plan --json report.json", false),
            ("rehearse --json", false),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(asks_json(&words), is_json, "{line}");
        }
    }
}
