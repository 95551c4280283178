//! `ashlar export`.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Align, Format, Table, pairs};
use server::api::types::{Any, Export, ExportCreate, Initiators, Origin};

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the targets and what is behind them
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show a target
    Show {
        /// iSCSI name of the target
        target: String,
        #[command(flatten)]
        format: Format,
    },
    /// Show volumes behind a new target; kept over restarts
    Create {
        /// iSCSI name of the target, such as iqn.2026-11.dev.ashlar:vm1
        target: String,
        /// Volume behind it: LUN 0, then LUN 1, and so on
        #[arg(long = "volume", value_name = "NAME", required = true)]
        volumes: Vec<String>,
        /// iSCSI name of an initiator that may log in; may be given more than once [default: any]
        #[arg(long = "initiator", value_name = "IQN")]
        initiators: Vec<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Close a target's sessions and take it away; its volumes stay
    Delete {
        /// iSCSI name of the target
        target: String,
        #[command(flatten)]
        format: Format,
    },
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { format } => {
            let exports: Vec<Export> = client.get(&["exports"])?;
            format.print(&exports, |exports| table(exports))
        }
        Command::Show { target, format } => {
            let export: Export = client.get(&["exports", &target])?;
            format.print_text(&export, show)
        }
        Command::Create {
            target,
            volumes,
            initiators,
            format,
        } => {
            let initiators = match initiators.is_empty() {
                true => Initiators::Any(Any::Any),
                false => Initiators::Named(initiators),
            };
            let create = ExportCreate {
                target,
                volumes,
                initiators,
            };
            let export: Export = client.post(&["exports"], &create)?;
            format.print_text(&export, show)
        }
        Command::Delete { target, format } => {
            client.delete(&["exports", &target])?;
            format.done(&format!("target {target} is taken away"))
        }
    }
}

fn table(exports: &[Export]) -> Table {
    use Align::{Left, Right};
    let columns = [
        ("TARGET", Left),
        ("LUN", Right),
        ("VOLUME", Left),
        ("INITIATORS", Left),
        ("BY", Left),
    ];
    let mut table = Table::new(&columns);
    for export in exports {
        for lun in &export.luns {
            table.row(vec![
                export.target.clone(),
                lun.lun.to_string(),
                lun.volume.clone(),
                initiators(&export.initiators),
                by(export.origin).to_owned(),
            ]);
        }
    }
    table
}

fn show(export: &Export) -> String {
    let mut lines = vec![
        ("target", export.target.clone()),
        ("initiators", initiators(&export.initiators)),
        ("by", by(export.origin).to_owned()),
    ];
    lines.extend(
        export
            .luns
            .iter()
            .map(|lun| ("LUN", format!("{}  {}", lun.lun, lun.volume))),
    );
    pairs(&lines)
}

fn initiators(initiators: &Initiators) -> String {
    match initiators {
        Initiators::Any(Any::Any) => "any".to_owned(),
        Initiators::Named(names) => names.join(", "),
    }
}

fn by(origin: Origin) -> &'static str {
    match origin {
        Origin::Site => "site",
        Origin::Api => "api",
    }
}
