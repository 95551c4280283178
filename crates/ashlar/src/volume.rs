//! `ashlar volume`.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs, percent};
use server::api::types::{Provisioning, Volume, VolumeCreate, VolumeResize};
use site::human;
use std::io::{self, IsTerminal, Write};

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the volumes
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show a volume
    Show {
        /// Name of the volume
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// Create a volume
    Create {
        /// Name, unique over the array
        name: String,
        /// Pool that is to hold it
        #[arg(long)]
        pool: String,
        /// Size, such as "40 GiB"
        #[arg(long, value_parser = size)]
        size: u64,
        /// Allocate all pages now instead of on first write
        #[arg(long)]
        thick: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Grow a volume; initiators are told
    Resize {
        /// Name of the volume
        name: String,
        /// New size, such as "80 GiB"; not smaller than now
        #[arg(long, value_parser = size)]
        size: u64,
        #[command(flatten)]
        format: Format,
    },
    /// Delete a volume with all its data
    Delete {
        /// Name of the volume
        name: String,
        /// Don't ask, also at a terminal
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        format: Format,
    },
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => {
            let volumes: Vec<Volume> = client.get(&["volumes"])?;
            format.print(&volumes, |volumes| table(volumes))
        }
        Command::Show { name, format } => {
            let volume: Volume = client.get(&["volumes", &name])?;
            format.print_text(&volume, show)
        }
        Command::Create {
            name,
            pool,
            size,
            thick,
            format,
        } => {
            let provisioning = if thick {
                Provisioning::Thick
            } else {
                Provisioning::Thin
            };
            let create = VolumeCreate {
                name,
                pool,
                size_bytes: size,
                provisioning,
            };
            let volume: Volume = client.post(&["volumes"], &create)?;
            format.print_text(&volume, show)
        }
        Command::Resize { name, size, format } => {
            let resize = VolumeResize { size_bytes: size };
            let volume: Volume = client.patch(&["volumes", &name], &resize)?;
            format.print_text(&volume, show)
        }
        Command::Delete { name, yes, format } => {
            if !yes && io::stdin().is_terminal() && !confirmed(&name)? {
                return Err(Failure::Failed(format!("volume {name} is kept")));
            }
            client.delete(&["volumes", &name])?;
            format.done(&format!("volume {name} is deleted"))
        }
    }
}

fn confirmed(name: &str) -> Result<bool, Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("can't ask: {error}"));
    eprint!("Delete volume {name} with all its data? Type its name: ");
    io::stderr().flush().map_err(failed)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(answer.trim() == name)
}

fn size(text: &str) -> Result<u64, String> {
    site::parse_size(text).ok_or_else(|| format!("allowed: {}", site::SIZE_RULE))
}

fn table(volumes: &[Volume]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("NAME", Left),
        ("POOL", Left),
        ("SIZE", Right),
        ("MAPPED", Right),
        ("USED", Right),
        ("KIND", Left),
        ("TARGET", Left),
        ("LUN", Right),
    ]);
    for volume in volumes {
        let (target, lun) = match &volume.export {
            Some(place) => (place.target.clone(), place.lun.to_string()),
            None => ("-".to_owned(), "-".to_owned()),
        };
        table.row(vec![
            volume.name.clone(),
            volume.pool.clone(),
            human(volume.size_bytes),
            human(volume.mapped_bytes),
            percent(volume.mapped_bytes, volume.size_bytes),
            word(volume.provisioning).to_owned(),
            target,
            lun,
        ]);
    }
    table
}

fn show(volume: &Volume) -> String {
    let export = match &volume.export {
        Some(place) => format!("{}, LUN {}", place.target, place.lun),
        None => "-".to_owned(),
    };
    pairs(&[
        ("name", volume.name.clone()),
        ("pool", volume.pool.clone()),
        ("size", human(volume.size_bytes)),
        ("mapped", human(volume.mapped_bytes)),
        ("kind", word(volume.provisioning).to_owned()),
        ("export", export),
        ("uuid", volume.uuid.clone()),
    ])
}

fn word(provisioning: Provisioning) -> &'static str {
    match provisioning {
        Provisioning::Thin => "thin",
        Provisioning::Thick => "thick",
    }
}
