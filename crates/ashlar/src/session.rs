//! `ashlar session`: lists connected sessions and ends them.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, age_s, span};
use api::Session;
use site::human;

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the connected sessions
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Close a session once its commands have ended; the initiator can log in again
    Drop {
        /// Number of the session
        id: u16,
        #[command(flatten)]
        format: Format,
    },
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => format.list(client, &["sessions"], table),
        Command::Drop { id, format } => {
            client.delete(&["sessions", &id.to_string()])?;
            format.done(&format!("session {id} is closed"))
        }
    }
}

fn table(sessions: &[Session]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("ID", Right),
        ("INITIATOR", Left),
        ("TARGET", Left),
        ("FROM", Left),
        ("PORTAL", Left),
        ("CHAP", Left),
        ("FOR", Right),
        ("READS", Right),
        ("READ", Right),
        ("WRITES", Right),
        ("WRITTEN", Right),
        ("IN FLIGHT", Right),
    ]);
    for session in sessions {
        table.row(vec![
            session.id.to_string(),
            session.initiator.clone(),
            session.target.clone(),
            session.peer.clone(),
            format!("{},{}", session.portal, session.portal_group),
            session
                .chap_name
                .clone()
                .unwrap_or_else(|| "none".to_owned()),
            span(age_s(session.since_unix_s)),
            session.reads.to_string(),
            human(session.read_bytes),
            session.writes.to_string(),
            human(session.written_bytes),
            session.in_flight.to_string(),
        ]);
    }
    table
}
