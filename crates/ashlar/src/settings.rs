//! `ashlar settings` and `ashlar discovery`.

use crate::client::Client;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::host::ChapArgs;
use crate::output::{Align, Format, Table};
use serde_json::Value;
use server::api::types::{Settings, SettingsChange, Trashed};
use std::collections::BTreeMap;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Show the settings, but those that have their default
    Show {
        #[command(flatten)]
        format: Format,
    },
    /// Change settings
    #[command(after_help = SET_HELP)]
    Set {
        /// Settings and their new values; nothing behind = takes the default
        #[arg(required = true, value_name = "TABLE.KEY=VALUE", value_parser = setting)]
        settings: Vec<(String, String, Value)>,
        #[command(flatten)]
        confirm: Confirm,
        #[command(flatten)]
        format: Format,
    },
}

const SET_HELP: &str = "\
Keys are those of the site file's tables [site], [api], [images], [chap] and [limits]. Lists are
separated by commas. Limits, site.name, site.shards and api.listen count from the next start on, the
rest at once. Directories and api.listen can be changed by root and the server's user only.

Examples:
  ashlar settings set site.trash=2d
  ashlar settings set images.directories=/srv/images,/srv/iso
  ashlar settings set limits.sessions=2048 limits.sessions_per_initiator=";

/// Keys whose values are lists.
const LISTS: [&str; 3] = ["directories", "drive_directories", "algorithms"];

#[derive(clap::Subcommand)]
pub enum Discovery {
    /// Ask for CHAP before targets are listed
    SetChap {
        #[command(flatten)]
        chap: ChapArgs,
        #[command(flatten)]
        format: Format,
    },
    /// Ask for nothing before targets are listed
    RemoveChap {
        #[command(flatten)]
        format: Format,
    },
}

/// `TABLE.KEY=VALUE` as the API takes it.
fn setting(text: &str) -> Result<(String, String, Value), String> {
    let parts = text.split_once('=');
    let parts = parts.and_then(|(name, value)| Some((name.split_once('.')?, value)));
    let Some(((table, key), value)) = parts else {
        return Err("allowed: TABLE.KEY=VALUE, such as site.trash=2d".to_owned());
    };
    let value = match (value, value.parse::<i64>()) {
        ("", _) => Value::Null,
        _ if LISTS.contains(&key) => value.split(',').map(str::trim).collect(),
        (_, Ok(number)) => Value::from(number),
        _ => Value::from(value),
    };
    Ok((table.to_owned(), key.to_owned(), value))
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::Show { format } => {
            let settings: Settings = client.get(&["settings"])?;
            format.print(&settings, table)
        }
        Command::Set {
            settings,
            confirm,
            format,
        } => {
            let is_trash = |(table, key, _): &(String, String, Value)| {
                (table.as_str(), key.as_str()) == ("site", "trash")
            };
            let trash: Vec<Trashed> = match settings.iter().any(is_trash) {
                true => client.get(&["trash"])?,
                false => Vec::new(),
            };
            if !trash.is_empty() {
                let counted = site::counted(trash.len() as u64, "volume");
                confirm.change(&format!(
                    "how long {counted} stay in the trash (what was there longer is gone then)"
                ))?;
            }
            let mut change: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
            for (table, key, value) in settings {
                change.entry(table).or_default().insert(key, value);
            }
            let settings: Settings = client.patch(&["settings"], &SettingsChange(change))?;
            format.print(&settings, table)
        }
    }
}

pub fn run_discovery(client: &Client, command: Discovery) -> Result<(), Failure> {
    match command {
        Discovery::SetChap { chap, format } => match chap.read()? {
            Some(chap) => {
                client.put_only(&["discovery", "chap"], &chap)?;
                format.done("discovery asks for CHAP")
            }
            None => Err(Failure::Wrong(
                "--chap-name: found nothing; allowed: a CHAP name, and --chap-secret-file"
                    .to_owned(),
            )),
        },
        Discovery::RemoveChap { format } => {
            client.delete(&["discovery", "chap"])?;
            format.done("discovery asks for nothing")
        }
    }
}

fn table(settings: &Settings) -> Table {
    let mut table = Table::new(&["SETTING", "VALUE"].map(|column| (column, Align::Left)));
    for (name, keys) in &settings.0 {
        for (key, value) in keys {
            let shown = match value {
                Value::String(text) => text.clone(),
                Value::Array(values) => {
                    let texts = values.iter().map(|value| match value.as_str() {
                        Some(text) => text.to_owned(),
                        None => value.to_string(),
                    });
                    texts.collect::<Vec<_>>().join(",")
                }
                other => other.to_string(),
            };
            table.row(vec![format!("{name}.{key}"), shown]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_numbers_lists_texts_or_nothing() {
        for (text, value) in [
            ("limits.sessions=20", json!(20)),
            ("limits.sessions=", Value::Null),
            ("site.trash=2d", json!("2d")),
            ("site.trash=0", json!(0)),
            ("images.directories=/a, /b", json!(["/a", "/b"])),
            ("chap.algorithms=MD5", json!(["MD5"])),
        ] {
            assert_eq!(setting(text).unwrap().2, value, "{text}");
        }
        for wrong in ["", "a", "a=b", "a.b", ".="] {
            assert!(setting(wrong).is_err() || wrong == ".=", "{wrong}");
        }
    }
}
