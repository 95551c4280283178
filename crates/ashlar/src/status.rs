//! `ashlar status`.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, pairs, percent, span};
use server::api::types::{Health, Status};
use site::human;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    format: Format,
}

pub fn run(client: &Client, args: Args) -> Result<(), Failure> {
    let status: Status = client.get(&["status"])?;
    args.format.print_text(&status, |status| {
        let mapped = percent(status.mapped_bytes, status.capacity_bytes);
        let (used, all) = (human(status.mapped_bytes), human(status.capacity_bytes));
        let silent: Vec<String> = status.silent_shards.iter().map(u64::to_string).collect();
        let mut text = pairs(&[
            ("site", status.site.clone()),
            ("health", word(status.health).to_owned()),
            ("version", status.version.clone()),
            ("up for", span(status.uptime_s)),
            ("portals", status.portals.join(", ")),
            ("pools", status.pools.to_string()),
            ("volumes", status.volumes.to_string()),
            ("exports", status.exports.to_string()),
            ("sessions", status.sessions.to_string()),
            ("mapped", format!("{used} of {all} ({mapped})")),
        ]);
        if !silent.is_empty() {
            let shards = silent.join(", ");
            text += &format!("no answer from shard {shards}: of it this is what it said last\n");
        }
        text
    })
}

/// A health as a word.
pub fn word(health: Health) -> &'static str {
    match health {
        Health::Healthy => "healthy",
        Health::Degraded => "degraded",
        Health::Failed => "failed",
    }
}
