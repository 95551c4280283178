//! `ashlar portal`: opens and closes portals.

use crate::client::Client;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::output::{Align, Format, Table};
use api::{Portal, PortalAdd, PortalChange};
use std::net::SocketAddr;

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
    match portals.iter().any(|portal| is_at(portal, address)) {
        true => Ok(()),
        false => Err(Failure::not_there(
            &format!("portal {address}"),
            "portal list",
        )),
    }
}

/// Whether a portal is at this address, however that is written.
fn is_at(portal: &Portal, address: &str) -> bool {
    let parsed = |text: &str| text.parse::<SocketAddr>().ok();
    parsed(address).is_some_and(|address| parsed(&portal.address) == Some(address))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_may_be_written_in_several_ways() {
        let portal = |address: &str| Portal {
            address: address.to_owned(),
            group: 1,
            open_at: None,
        };
        let portals = [portal("[::1]:3260"), portal("192.0.2.10:3260")];
        for same in ["[::1]:3260", "[0:0::1]:3260", "192.0.2.10:3260"] {
            assert!(check_there(&portals, same).is_ok(), "{same}");
        }
        for other in ["[::1]:3261", "[::2]:3260", "::1", "localhost:3260"] {
            let Err(Failure::Refused(problem)) = check_there(&portals, other) else {
                panic!("{other} is taken for a portal");
            };
            assert!(problem.message.contains(other), "{}", problem.message);
            assert!(problem.message.contains("ashlar portal list"));
        }
    }
}
