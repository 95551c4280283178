//! `ashlar volume move`: moves a volume to another pool while hosts use it.

use crate::client::Client;
use crate::failure::Failure;
use crate::job;
use crate::volume;
use api::{Job, Volume, VolumeMove};

pub const HELP: &str = "\
The volume stays in service, and keeps its identity, exports and sessions. A move is a job. Ctrl-C
leaves it running; `ashlar job` shows, follows and cancels it. It continues after a restart. Until
it is done, you cannot resize, rename, restore, convert or delete the volume.

If Ashlar starts with only one of the two pools near the end of a move, it does not know which pool
has the newest content. It then withholds the volume, and an event says so. Bring the other pool
back, or give up its content with --abandon.";

#[derive(clap::Args)]
pub struct Move {
    /// Name of the volume
    name: String,
    /// The pool that will hold it
    #[arg(long, required_unless_present = "abandon")]
    pool: Option<String>,
    /// Leave the snapshots in the old pool: you can clone, export and delete them, but not restore
    /// them
    #[arg(long)]
    leave_snapshots: bool,
    /// Move even to a pool that has lost part of its redundancy
    #[arg(long)]
    force: bool,
    /// Serve the volume as it is, because the other pool of its move is lost; the last writes there
    /// are lost, too
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
