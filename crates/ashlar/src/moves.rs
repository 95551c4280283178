//! `ashlar volume move`.

use crate::client::Client;
use crate::failure::Failure;
use crate::job;
use crate::volume;
use server::api::types::{Job, Volume, VolumeMove};

pub const HELP: &str = "\
The volume is served all the time and keeps its identity, exports and sessions. It is copied in
a job: Ctrl-C leaves that running, `ashlar job` shows, follows and cancels it, and a server that
is started again goes on with it. Until the job is done the volume is where it was, and can't be
resized, renamed, restored, converted or deleted.

When the server starts with only one of the two pools, just after a volume has changed over or
was about to, it can't tell which pool has the newest content, and does not serve the volume
(`ashlar events` says so). Serve the other pool as well, or --abandon the move.";

#[derive(clap::Args)]
pub struct Move {
    /// Name of the volume
    name: String,
    /// Pool that is to hold it
    #[arg(long, required_unless_present = "abandon")]
    pool: Option<String>,
    /// Its snapshots stay where they are: they can be cloned, exported and deleted there,
    /// but not restored
    #[arg(long)]
    leave_snapshots: bool,
    /// Also to a pool that lacks a part of its redundancy
    #[arg(long)]
    force: bool,
    /// Have it served as it is, since the other pool of a move is lost; what was written
    /// there last is lost, too
    #[arg(long, conflicts_with_all = ["pool", "rate", "leave_snapshots", "force", "detach"])]
    abandon: bool,
    #[command(flatten)]
    work: job::Work,
}

pub fn run(client: &Client, wanted: Move) -> Result<(), Failure> {
    let Move { name, work, .. } = wanted;
    if wanted.abandon {
        let volume: Volume = client.remove(&["volumes", &name, "move"], &[])?;
        return work.format.print_text(&volume, volume::show);
    }
    let to = VolumeMove {
        // There unless something is abandoned.
        pool: wanted.pool.unwrap_or_default(),
        rate_bytes_per_s: work.rate,
        leave_snapshots: wanted.leave_snapshots,
        force: wanted.force,
    };
    let job: Job = client.post(&["volumes", &name, "move"], &to)?;
    work.begun(client, job)
}
