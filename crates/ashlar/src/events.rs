//! `ashlar events`: shows the events of pools.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, age_s, span, utc};
use api::Event;

#[derive(clap::Args)]
pub struct Args {
    /// Show only the events of this pool
    #[arg(long)]
    pool: Option<String>,
    #[command(flatten)]
    format: Format,
}

pub fn run(client: &Client, args: Args) -> Result<(), Failure> {
    let mut events: Vec<Event> = client.get(&["events"])?;
    if let Some(pool) = &args.pool {
        events.retain(|event| event.pool == *pool);
    }
    args.format.print(&events, |events| table(events))
}

fn table(events: &[Event]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("TIME (UTC)", Left),
        ("AGE", Right),
        ("POOL", Left),
        ("NUMBER", Right),
        ("KIND", Left),
        ("WHAT", Left),
    ]);
    for event in events {
        table.row(vec![
            utc(event.at_unix_s),
            span(age_s(event.at_unix_s)),
            event.pool.clone(),
            event.sequence.to_string(),
            event.kind.clone(),
            event.text.clone(),
        ]);
    }
    table
}

/// An event of a pool that is shown already.
pub fn line(event: &Event) -> String {
    format!("{} UTC  {}", utc(event.at_unix_s), event.text)
}
