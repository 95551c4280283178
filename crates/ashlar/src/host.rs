//! `ashlar host` and `ashlar host-group`: name initiators, and group hosts.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs};
use crate::site_file::others_read;
use api::{
    Chap, ChapCreate, Host, HostChange, HostCreate, HostGroup, HostGroupChange, HostGroupCreate,
    SecretText,
};
use std::io::Read;
use std::path::{Path, PathBuf};

/// No secret is longer, with a line's end.
const SECRET_FILE_BYTES_MAX: u64 = 1024;

/// What has to be proved by CHAP.
#[derive(Debug, clap::Args)]
pub struct ChapArgs {
    /// CHAP name of the initiators
    #[arg(long, value_name = "NAME", requires = "chap_secret_file")]
    chap_name: Option<String>,
    /// File with the secret of that name, 12 to 255 bytes; - for standard input
    ///
    /// The secret is text, or 0x and hexadecimal digits. Ashlar ignores a line end after it. Nobody
    /// but the owner may read the file.
    #[arg(long, value_name = "FILE", requires = "chap_name")]
    chap_secret_file: Option<PathBuf>,
    /// CHAP name of the target, for mutual CHAP
    #[arg(long, value_name = "NAME", requires_all = ["mutual_secret_file", "chap_name"])]
    mutual_name: Option<String>,
    /// File with the secret of that name; it must be another secret
    #[arg(long, value_name = "FILE", requires = "mutual_name")]
    mutual_secret_file: Option<PathBuf>,
}

impl ChapArgs {
    /// The account, with its secrets read.
    pub fn read(self) -> Result<Option<ChapCreate>, Failure> {
        let (Some(name), Some(file)) = (self.chap_name, self.chap_secret_file) else {
            return Ok(None);
        };
        let mutual = self.mutual_secret_file.as_deref();
        Ok(Some(ChapCreate {
            name,
            secret: secret(&file)?,
            mutual_name: self.mutual_name,
            mutual_secret: mutual.map(secret).transpose()?,
        }))
    }
}

/// Secrets come from files: what is on a command line, others see.
fn secret(file: &Path) -> Result<SecretText, Failure> {
    let wrong = |why: String| Failure::Wrong(format!("{}: {why}", file.display()));
    let source: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(std::io::stdin()),
        _ => {
            let opened = std::fs::File::open(file).map_err(|error| wrong(error.to_string()))?;
            // A file that can't be looked at any more is nobody's to read.
            if opened.metadata().is_ok_and(|about| others_read(&about)) {
                let path = file.display();
                return Err(wrong(format!(
                    "it has a secret, and others can read it: chmod go= {path}"
                )));
            }
            Box::new(opened)
        }
    };
    let mut text = String::new();
    let read = source.take(SECRET_FILE_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| wrong(format!("can't read the secret: {error}")))?;
    let secret = text.strip_suffix('\n').unwrap_or(&text);
    Ok(SecretText(
        secret.strip_suffix('\r').unwrap_or(secret).to_owned(),
    ))
}

#[derive(clap::Subcommand)]
pub enum Command {
    /// List hosts
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show a host
    Show {
        /// Name of the host
        host: String,
        #[command(flatten)]
        format: Format,
    },
    /// Create a host: its initiators under one name
    Create {
        /// Name of the host
        host: String,
        /// iSCSI name of an initiator; may be given more than once
        #[arg(long = "initiator", value_name = "IQN", required = true)]
        initiators: Vec<String>,
        #[command(flatten)]
        chap: ChapArgs,
        #[command(flatten)]
        format: Format,
    },
    /// Change a host; Ashlar logs out initiators that are no longer admitted
    Change {
        /// Name of the host
        host: String,
        /// iSCSI name of an initiator to add; may be given more than once
        #[arg(long, value_name = "IQN")]
        add: Vec<String>,
        /// iSCSI name of an initiator to remove; may be given more than once
        #[arg(long, value_name = "IQN")]
        remove: Vec<String>,
        #[command(flatten)]
        chap: ChapArgs,
        /// Remove the CHAP account of the host
        #[arg(long, conflicts_with = "chap_name")]
        no_chap: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Delete a host that no export and no group names
    Delete {
        /// Name of the host
        host: String,
        #[command(flatten)]
        format: Format,
    },
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => format.list(client, &["hosts"], table),
        Command::Show { host, format } => format.show(client, &["hosts", &host], show),
        Command::Create {
            host,
            initiators,
            chap,
            format,
        } => {
            let create = HostCreate {
                name: host,
                initiators,
                chap: chap.read()?,
            };
            let made: Host = client.post(&["hosts"], &create)?;
            format.print_text(&made, show)
        }
        Command::Change {
            host,
            add,
            remove,
            chap,
            no_chap,
            format,
        } => {
            let change = HostChange {
                add,
                remove,
                chap: chap.read()?,
                remove_chap: no_chap,
            };
            let changed: Host = client.patch(&["hosts", &host], &change)?;
            format.print_text(&changed, show)
        }
        Command::Delete { host, format } => {
            client.delete(&["hosts", &host])?;
            format.done(&format!("host {host} is deleted"))
        }
    }
}

fn table(hosts: &[Host]) -> Table {
    use Align::Left;
    let columns = ["HOST", "INITIATORS", "CHAP", "GROUPS"];
    let mut table = Table::new(&columns.map(|column| (column, Left)));
    for host in hosts {
        table.row(vec![
            host.name.clone(),
            host.initiators.join(", "),
            said_of(host.chap.as_ref()),
            groups_of(host),
        ]);
    }
    table
}

fn show(host: &Host) -> String {
    pairs(&[
        ("host", host.name.clone()),
        ("initiators", host.initiators.join(", ")),
        ("chap", said_of(host.chap.as_ref())),
        ("groups", groups_of(host)),
    ])
}

/// The groups of a host; a dash where it is in none.
fn groups_of(host: &Host) -> String {
    match host.host_groups.is_empty() {
        true => "-".to_owned(),
        false => host.host_groups.join(", "),
    }
}

/// What is said of an account.
pub fn said_of(chap: Option<&Chap>) -> String {
    match chap {
        None => "none".to_owned(),
        Some(Chap { name, mutual_name }) => match mutual_name {
            None => name.clone(),
            Some(mutual) => format!("{name}, mutual {mutual}"),
        },
    }
}
#[derive(clap::Subcommand)]
pub enum GroupCommand {
    /// List groups of hosts
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show a group of hosts
    Show {
        /// Name of the group
        group: String,
        #[command(flatten)]
        format: Format,
    },
    /// Make a group of hosts; kept over restarts
    Create(Members),
    /// Add hosts to a group
    Add(Members),
    /// Take hosts out of a group; sessions that are not admitted any more are closed
    Remove(Members),
    /// Forget a group that no export names; its hosts stay
    Delete {
        /// Name of the group
        group: String,
        #[command(flatten)]
        format: Format,
    },
}

/// A group and hosts.
#[derive(Debug, clap::Args)]
pub struct Members {
    /// Name of the group
    group: String,
    /// Names of hosts
    #[arg(required = true)]
    hosts: Vec<String>,
    #[command(flatten)]
    format: Format,
}

/// The resource that groups of hosts are.
const GROUPS: &str = "host-groups";

pub fn run_group(client: &Client, command: GroupCommand) -> Result<(), Failure> {
    match command {
        GroupCommand::List { format } => format.list(client, &[GROUPS], group_table),
        GroupCommand::Show { group, format } => format.show(client, &[GROUPS, &group], show_group),
        GroupCommand::Create(members) => {
            let create = HostGroupCreate {
                name: members.group,
                hosts: members.hosts,
            };
            let made: HostGroup = client.post(&[GROUPS], &create)?;
            members.format.print_text(&made, show_group)
        }
        GroupCommand::Add(members) => {
            let change = HostGroupChange {
                add: members.hosts,
                remove: Vec::new(),
            };
            let changed: HostGroup = client.patch(&[GROUPS, &members.group], &change)?;
            members.format.print_text(&changed, show_group)
        }
        GroupCommand::Remove(members) => {
            let change = HostGroupChange {
                add: Vec::new(),
                remove: members.hosts,
            };
            let changed: HostGroup = client.patch(&[GROUPS, &members.group], &change)?;
            members.format.print_text(&changed, show_group)
        }
        GroupCommand::Delete { group, format } => {
            client.delete(&[GROUPS, &group])?;
            format.done(&format!("host group {group} is deleted; its hosts stay"))
        }
    }
}

fn group_table(groups: &[HostGroup]) -> Table {
    let columns = ["GROUP", "HOSTS"];
    let mut table = Table::new(&columns.map(|column| (column, Align::Left)));
    for group in groups {
        table.row(vec![group.name.clone(), group.hosts.join(", ")]);
    }
    table
}

fn show_group(group: &HostGroup) -> String {
    pairs(&[
        ("group", group.name.clone()),
        ("hosts", group.hosts.join(", ")),
    ])
}
