//! Settings as tables of keys: all of a site file but its lists of tables.
//!
//! They are edited in the form in which they are said, so every rule and default of the file holds.

use crate::diagnostic::{Diagnostic, SiteError};
use crate::types::Site;
use crate::{parse, reference, write};
use std::collections::BTreeMap;
use toml::Table;
/// The value of a setting.
pub use toml::Value as Setting;

/// The tables that hold settings.
const TABLES: [&str; 5] = ["site", "api", "images", "chap", "limits"];

/// The settings by table and key. Keys that have their default may be absent.
pub fn settings(site: &Site) -> BTreeMap<String, Table> {
    let all = all(&site.settings());
    let tables = all.into_iter().filter_map(|(name, value)| match value {
        Setting::Table(table) if TABLES.contains(&name.as_str()) => Some((name, table)),
        _ => None,
    });
    tables.collect()
}

/// The names of all settings, for messages.
fn all_names() -> String {
    let names = reference::settings().into_iter().map(|(name, _)| name);
    names.collect::<Vec<_>>().join(", ")
}

/// `key` is no setting.
fn refused(key: String, found: &str) -> SiteError {
    let diagnostic = Diagnostic {
        line: 0,
        key,
        found: found.to_owned(),
        allowed: all_names(),
    };
    SiteError::invalid("settings", vec![diagnostic])
}

/// `site` with some settings changed, by table and key; `None` takes the default.
///
/// # Errors
/// There is no such table or key, or the site breaks a rule then. Lines mean nothing.
pub fn edited(
    site: &Site,
    changes: &BTreeMap<String, BTreeMap<String, Option<Setting>>>,
) -> Result<Site, SiteError> {
    let mut all = all(&site.settings());
    for (name, keys) in changes {
        if !TABLES.contains(&name.as_str()) {
            return Err(refused(name.clone(), "a table that holds no settings"));
        }
        if let Some(key) = keys
            .keys()
            .find(|key| name == "site" && *key == reference::ABOUT)
        {
            let key = format!("{name}.{key}");
            return Err(refused(key, "a key that only rehearsals use"));
        }
        let table = all
            .entry(name)
            .or_insert_with(|| Setting::Table(Table::new()));
        let Setting::Table(table) = table else {
            continue;
        };
        for (key, value) in keys {
            match value {
                Some(value) => drop(table.insert(key.clone(), value.clone())),
                None => drop(table.remove(key)),
            }
        }
    }
    // A table that says nothing more counts as not there.
    all.retain(|_, value| value.as_table().is_none_or(|table| !table.is_empty()));
    let edited = parse("settings", &all.to_string())?;
    Ok(edited.settings())
}

fn all(site: &Site) -> Table {
    match write::text(site).parse() {
        Ok(all) => all,
        Err(error) => unreachable!("a site is written as TOML: {error}"),
    }
}
