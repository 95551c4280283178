//! `ashlar settings` and `ashlar discovery`: show and change settings of the array.

use crate::client::Client;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::host::{ChapArgs, said_of};
use crate::output::{Align, Format, Table, pairs};
use api::{DiscoveryChap, Settings, SettingsChange, Trashed};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Show the settings, with their defaults
    Show {
        #[command(flatten)]
        format: Format,
    },
    /// Change settings
    #[command(after_help = SET_HELP)]
    Set {
        /// Settings and their new values; without a value after =, the default applies
        #[arg(required = true, value_name = "TABLE.KEY=VALUE", value_parser = setting)]
        settings: Vec<(String, String, Value)>,
        #[command(flatten)]
        confirm: Confirm,
        #[command(flatten)]
        format: Format,
    },
}

const SET_HELP: &str = "\
Settings are the keys of the site file's tables [site], [api], [images], [chap] and [limits]. Commas
separate the items of a list. Limits, site.name, site.shards and api.listen take effect at the next
start, all others at once. Only root and the user that Ashlar runs as can change directories and
api.listen.

Examples:
  ashlar settings set site.trash=2d
  ashlar settings set images.directories=/srv/images,/srv/iso
  ashlar settings set limits.sessions=2048 limits.sessions_per_initiator=";

/// Keys whose values are lists.
const LISTS: [&str; 3] = ["directories", "drive_directories", "algorithms"];

#[derive(clap::Subcommand)]
pub enum Discovery {
    /// Show which CHAP account discovery asks for
    Show {
        #[command(flatten)]
        format: Format,
    },
    /// Ask for CHAP before discovery lists targets
    SetChap {
        #[command(flatten)]
        chap: ChapArgs,
        #[command(flatten)]
        format: Format,
    },
    /// Remove the CHAP account of discovery
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
        let names = site::reference::settings()
            .into_iter()
            .map(|(name, _)| name);
        let names = names.collect::<Vec<_>>().join(", ");
        return Err(format!(
            "allowed: TABLE.KEY=VALUE, such as site.trash=2d; the settings are {names}"
        ));
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
            let is_trash = settings
                .iter()
                .any(|(table, key, _)| (table.as_str(), key.as_str()) == ("site", "trash"));
            let mut change: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
            for (table, key, value) in settings {
                change.entry(table).or_default().insert(key, value);
            }
            let change = SettingsChange(change);
            if is_trash && !confirm.is_given() {
                client.try_patch(&["settings"], &change)?;
                let trash: Vec<Trashed> = client.get(&["trash"])?;
                agree_to_trash(&trash, confirm)?;
            }
            let settings: Settings = client.patch(&["settings"], &change)?;
            format.print(&settings, table)
        }
    }
}

/// Has somebody agree to another time in the trash, where something is in it.
fn agree_to_trash(trash: &[Trashed], confirm: Confirm) -> Result<(), Failure> {
    if trash.is_empty() {
        return Ok(());
    }
    let counted = site::counted(trash.len() as u64, "volume");
    confirm.change(&format!(
        "how long {counted} stay in the trash (what was there longer is gone then)"
    ))
}

pub fn run_discovery(client: &Client, command: Discovery) -> Result<(), Failure> {
    match command {
        Discovery::Show { format } => {
            let show = |shown: &DiscoveryChap| pairs(&[("chap", said_of(shown.chap.as_ref()))]);
            format.show(client, &["discovery", "chap"], show)
        }
        Discovery::SetChap { chap, format } => match chap.read()? {
            Some(chap) => {
                client.put_only(&["discovery", "chap"], &chap)?;
                format.done("discovery asks for CHAP")
            }
            None => Err(Failure::Wrong(
                "--chap-name is missing: give a CHAP name and --chap-secret-file".to_owned(),
            )),
        },
        Discovery::RemoveChap { format } => {
            client.delete(&["discovery", "chap"])?;
            format.done("discovery asks for nothing")
        }
    }
}

/// All settings; `-` where the array has none of its own, so that the default applies.
fn table(settings: &Settings) -> Table {
    let mut table =
        Table::new(&["SETTING", "VALUE", "DEFAULT"].map(|column| (column, Align::Left)));
    for (name, default) in site::reference::settings() {
        let own = name.split_once('.');
        let own = own.and_then(|(table, key)| settings.0.get(table)?.get(key));
        let shown = own.map_or_else(|| "-".to_owned(), shown);
        table.row(vec![name, shown, default.replace('`', "")]);
    }
    table
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
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
