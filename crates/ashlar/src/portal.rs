//! `ashlar portal`: opens and closes portals.

use crate::client::Client;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::{Align, Format, Table};
use server::api::types::{Portal, PortalAdd, PortalChange, Problem, ProblemKind};

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the portals
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Open a portal: serve targets at another address of this machine, too
    Add {
        /// Address and port, such as 192.0.2.10:3260 or "[2001:db8::1]:3260"
        address: String,
        /// Tag of its portal group [default: 1]
        #[arg(long, value_name = "TAG")]
        group: Option<u16>,
        #[command(flatten)]
        format: Format,
    },
    /// Put a portal into another portal group; its sessions end, and initiators log in again
    ///
    /// Persistent reservations that were made through the portal stay with the old group. Cluster
    /// hosts register again.
    Change {
        /// Address and port of the portal
        address: String,
        /// Tag of the new portal group
        #[arg(long, value_name = "TAG")]
        group: u16,
        #[command(flatten)]
        confirm: Confirm,
        #[command(flatten)]
        format: Format,
    },
    /// Close a portal; its sessions end
    Remove {
        /// Address and port of the portal
        address: String,
        #[command(flatten)]
        confirm: Confirm,
        #[command(flatten)]
        format: Format,
    },
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => {
            let portals: Vec<Portal> = client.get(&["portals"])?;
            format.print(&portals, |portals| table(portals))
        }
        Command::Add {
            address,
            group,
            format,
        } => {
            let add = PortalAdd { address, group };
            let portals: Vec<Portal> = client.post(&["portals"], &add)?;
            format.print(&portals, |portals| table(portals))
        }
        Command::Change {
            address,
            group,
            confirm,
            format,
        } => {
            if !confirm.is_given() {
                check_there(&client.get::<Vec<Portal>>(&["portals"])?, &address)?;
            }
            confirm.change(&format!(
                "portal {address}: put it into group {group}, and end its sessions"
            ))?;
            let path = ["portals", address.as_str()];
            let portals: Vec<Portal> = client.patch(&path, &PortalChange { group })?;
            format.print(&portals, |portals| table(portals))
        }
        Command::Remove {
            address,
            confirm,
            format,
        } => {
            let what = format!("portal {address}");
            let path = ["portals", address.as_str()];
            confirm.deletion_at(client, (&path, &[]), (&what, &address))?;
            client.delete(&path)?;
            format.done(&format!("portal {address} is closed"))
        }
    }
}

/// That there is such a portal, before somebody is asked about it.
fn check_there(portals: &[Portal], address: &str) -> Result<(), Failure> {
    match portals.iter().any(|portal| portal.address == address) {
        true => Ok(()),
        false => Err(Failure::Refused(Problem {
            kind: ProblemKind::NotFound,
            message: format!("there is no portal {address}"),
        })),
    }
}

fn table(portals: &[Portal]) -> Table {
    let columns = [
        ("ADDRESS", Align::Left),
        ("GROUP", Align::Right),
        ("OPEN AT", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for portal in portals {
        let open_at = portal.open_at.clone();
        table.row(vec![
            portal.address.clone(),
            portal.group.to_string(),
            open_at.unwrap_or_else(|| "not open".to_owned()),
        ]);
    }
    table
}
