//! `ashlar capture`: watches the running array for a while and writes what it is and does into a
//! file that `ashlar rehearse` runs.
//!
//! Invariant: the file has no content of volumes, no secret, and nothing of initiators.

mod hardware;
mod loads;
pub mod seal;
pub mod text;

use crate::client::Client;
use crate::failure::Failure;
use crate::output;
use api::{Capture, CaptureCreate, Drive, Pool, SiteText, Status, Volume, VolumeStats};
use load::os::Interrupt;
use rehearse::plan::fit;
use site::plan;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Watch the array for a while, and write its configuration and the load of its volumes into a
/// file for `ashlar rehearse`
///
/// The array serves on as before. The file has what the array is made of, the load of each volume
/// as parameters, and the measured rates and latencies. It has no content, secrets or initiators. It has
/// the names of the site, its pools, drives and volumes.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// How long to watch: 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = watched)]
    duration: Duration,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// End the capture that another left behind, and do nothing else
    #[arg(long, conflicts_with_all = ["duration", "output"])]
    stop: bool,
}

const AFTER_HELP: &str = "\
`ashlar rehearse FILE` runs the capture, and shows what was measured beside what it predicts. With
--set, --variant and --compare it answers what would change: docs/guide/rehearsing.md.

Left out are volumes that nobody reads or writes meanwhile, those that are made or deleted, and
UNMAP, WRITE SAME, offloaded copies and all that is done with snapshots. Take a time that is
typical, and long enough that each volume does some thousands of operations.";

/// A time that a capture may take.
fn watched(text: &str) -> Result<Duration, String> {
    let time = crate::load::duration(text)?;
    let is_whole = time.subsec_nanos() == 0;
    match is_whole && (1..=3600).contains(&time.as_secs()) {
        true => Ok(time),
        false => Err(format!("{text:?} is not whole seconds from 1s to 1h")),
    }
}

/// All that the array has said.
struct Taken {
    status: Status,
    /// The site file of the array, without what it does not show.
    site: String,
    pools: Vec<Pool>,
    drives: Vec<Drive>,
    volumes: Vec<Volume>,
    /// The statistics when the capture began and when it was over.
    stats: [Vec<VolumeStats>; 2],
    capture: Capture,
}

/// A capture in the array, which is ended when this is dropped: also after an error, and after Ctrl-C.
struct Begun<'a> {
    client: &'a Client,
    id: String,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let query = [("id", self.id.as_str())];
        if self
            .client
            .delete_which(&["stats", "capture"], &query)
            .is_err()
        {
            eprintln!("the capture could not be ended; it ends by itself");
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The array can't be reached or refuses, nothing happened, or the file can't be written.
pub fn run(client: &Client, args: Args) -> Result<(), Failure> {
    if args.stop {
        return client.delete_which(&["stats", "capture"], &[("force", "true")]);
    }
    let taken = take(client, args.duration)?;
    let text = seal::sealed(&text::text(&taken)?);
    for what in unfit(&text) {
        eprintln!("the capture does not rehearse as it is: {what}");
    }
    match &args.output {
        None => output::print(&text),
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::Failed(format!("can't write {}: {error}", path.display()))),
    }
}

/// What a rehearsal of the file would refuse.
fn unfit(text: &str) -> Vec<String> {
    match plan::parse("capture", text, &[]) {
        Err(error) => vec![error.to_string()],
        Ok(described) => {
            let unfit = fit::fit_all(&described, &crate::rehearse::profile);
            unfit.iter().map(|wrong| format!("line {wrong}")).collect()
        }
    }
}

fn take(client: &Client, duration: Duration) -> Result<Taken, Failure> {
    let create = CaptureCreate {
        duration_s: duration.as_secs(),
    };
    // From the beginning on, so that no signal leaves a capture behind.
    let interrupt = Interrupt::hold()
        .map_err(|error| Failure::Failed(format!("can't hold back SIGINT: {error}")))?;
    let begun: Capture = client.post(&["stats", "capture"], &create)?;
    let begun = Begun {
        client,
        id: begun.id,
    };
    let before = client.get(&["stats", "volumes"])?;
    if std::io::stderr().is_terminal() {
        eprintln!("watching the array for {} s", duration.as_secs());
    }
    if interrupt.wait(duration) {
        let what = "interrupted: the capture is ended, and nothing is written";
        return Err(Failure::Failed(what.to_owned()));
    }
    let after = client.get(&["stats", "volumes"])?;
    let capture = client.find(&["stats", "capture"], &[("id", &begun.id)])?;
    drop(begun);
    drop(interrupt);
    let site: SiteText = client.get(&["site"])?;
    Ok(Taken {
        status: client.get(&["status"])?,
        site: site.text,
        pools: client.get(&["pools"])?,
        drives: client.get(&["drives"])?,
        volumes: client.get(&["volumes"])?,
        stats: [before, after],
        capture,
    })
}
