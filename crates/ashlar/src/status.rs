//! `ashlar status`: shows the array at a glance.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, pairs, percent, span};
use api::{ClosedPool, Health, Status};
use site::human;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    format: Format,
}

/// # Errors
/// `Unwell` when the array is not ok: it is shown all the same.
pub fn run(client: &Client, args: Args) -> Result<(), Failure> {
    let status: Status = client.get(&["status"])?;
    args.format.print_text(&status, |status| {
        let mapped = percent(status.mapped_bytes, status.capacity_bytes);
        let (used, all) = (human(status.mapped_bytes), human(status.capacity_bytes));
        let mut lines = vec![
            ("site", status.site.clone()),
            ("health", word(status.health).to_owned()),
        ];
        lines.extend(status.why.iter().map(|why| ("", why.clone())));
        lines.extend([
            ("version", status.version.clone()),
            ("up for", span(status.uptime_s)),
            ("portals", status.portals.join(", ")),
            ("pools", status.pools.to_string()),
            ("volumes", status.volumes.to_string()),
            ("exports", status.exports.to_string()),
            ("sessions", status.sessions.to_string()),
            ("mapped", format!("{used} of {all} ({mapped})")),
        ]);
        if status.promised_bytes > 0 {
            let part = percent(status.promised_bytes, status.capacity_bytes);
            let promised = human(status.promised_bytes);
            lines.push(("promised", format!("{promised} ({part}) to thick volumes")));
        }
        pairs(&lines)
    })?;
    match status.health {
        Health::Ok => Ok(()),
        health => Err(Failure::Unwell(format!(
            "the array's health is {}",
            word(health)
        ))),
    }
}

/// What is to be said of pools that are not open.
pub fn closed_lines(closed: &[ClosedPool]) -> Vec<(&'static str, String)> {
    let line = |pool: &ClosedPool| {
        let why = pool.why.iter().map(|why| ("", why.clone()));
        let name = (
            "not open",
            format!("pool {}, tried again by itself:", pool.name),
        );
        std::iter::once(name).chain(why).collect::<Vec<_>>()
    };
    closed.iter().flat_map(line).collect()
}

/// A health as a word.
pub fn word(health: Health) -> &'static str {
    match health {
        Health::Ok => "ok",
        Health::Attention => "attention",
        Health::Degraded => "degraded",
        Health::Full => "full",
        Health::Stopped => "stopped",
    }
}
