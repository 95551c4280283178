//! `ashlar serve`: runs the array until a signal ends it.

use crate::failure::Failure;
use crate::{api_address, log, output, site_file};
use server::bringup::{self, Options, Running};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Threads for logins and the API; data moves on the shards' own threads.
const WORKERS: usize = 2;

/// Threads that have nothing to do any more have so long to end.
const END_TIME: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
#[command(after_help = "\
Ashlar prints a line that begins with \"serving\" once everything is up. The log goes to standard
error; RUST_LOG=debug adds detail.

The first start creates what the site file describes. From then on the array keeps its own
configuration in the data directory, and `ashlar site apply` applies a changed file.

SIGTERM and SIGINT stop Ashlar cleanly, with exit code 0. After a crash or a power cut, start it
again: it recovers by itself. A failed internal check ends the process with SIGABRT, so let a
supervisor such as systemd start it again.")]
pub struct Args {
    /// The site file; required at the first start
    #[arg(long, value_name = "FILE")]
    site: Option<PathBuf>,
    /// Directory for drive files and records; created if it does not exist
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Serve at this address instead of the array's portals; port 0 lets the system choose
    ///
    /// A target that is limited to portals is visible only if this is one of their addresses.
    #[arg(long, value_name = "ADDR")]
    portal: Option<SocketAddr>,
}

pub fn run(args: Args, api: Option<&str>) -> Result<(), Failure> {
    let api = api_address::said(api)?;
    let site = args.site.as_deref().map(site_file::load).transpose()?;
    let usual_api = api_address::to_serve();
    // What is made from here on is nobody else's to read.
    world_real::make_files_private();
    world_real::make_memory_private();
    let options = Options {
        site,
        data: args.data,
        portal: args.portal,
        api,
        usual_api,
    };
    let log = log::begin();
    let log = log.map_err(|error| Failure::Failed(format!("can't start threads: {error}")))?;
    let last = log.clone();
    server::panics::end_the_process(move || last.flush());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("can't start threads: {error}")))?;
    let served = runtime.block_on(serve(options));
    // What does not end by now waits for a drive.
    runtime.shutdown_timeout(END_TIME);
    log.flush();
    served
}

async fn serve(options: Options) -> Result<(), Failure> {
    let signals = signal(SignalKind::terminate())
        .and_then(|terminate| Ok((terminate, signal(SignalKind::interrupt())?)));
    let (mut terminate, mut interrupt) =
        signals.map_err(|error: io::Error| Failure::Failed(format!("no signals: {error}")))?;
    let running = bringup::bring_up(options)
        .await
        .map_err(|error| Failure::Failed(error.to_string()))?;
    // Tests send the signal as soon as they read that it serves.
    #[cfg(debug_assertions)]
    fail_when_asked(&running)?;
    output::print(&format!("{}\n", ready(&running)))?;
    let which = first(&mut terminate, &mut interrupt).await;
    tracing::info!("{which}: closing");
    // Ctrl-C by somebody who has no patience ends the drain. A second SIGTERM does
    // not: supervisors and timeout(1) repeat it.
    tokio::select! {
        stopped = running.stop() => {
            stopped.map_err(|error| Failure::Failed(error.to_string()))?;
            tracing::info!("closed");
            Ok(())
        }
        _ = interrupt.recv() => {
            Err(Failure::Failed("SIGINT while closing: not closed cleanly".to_owned()))
        }
    }
}

/// For tests of what a failed assertion does: on SIGUSR1 there is one where the environment
/// says, on a shard or in a request of the API. No release has this.
#[cfg(debug_assertions)]
fn fail_when_asked(running: &Running) -> Result<(), Failure> {
    let Ok(place) = std::env::var("ASHLAR_TEST_PANIC") else {
        return Ok(());
    };
    let mut asked = signal(SignalKind::user_defined1())
        .map_err(|error| Failure::Failed(format!("no signals: {error}")))?;
    let array = std::sync::Arc::clone(running.array());
    tokio::spawn(async move {
        while asked.recv().await.is_some() {
            array.fail_an_assertion(place == "shard").await;
        }
    });
    Ok(())
}

async fn first(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

fn ready(running: &Running) -> String {
    let portals: Vec<String> = running
        .portals()
        .iter()
        .map(|p| format!("portal {p}"))
        .collect();
    format!(
        "serving {}: {}, API {}",
        running.array().name(),
        portals.join(", "),
        running.api()
    )
}
