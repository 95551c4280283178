//! Applies settings of a site file.

use super::{Action, Difference};
use crate::control::ControlPlane;
use engine::World;
use site::Site;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys that say where the server reads and writes files.
pub const OF_FILES: [&str; 3] = ["api.listen", "api.drive_directories", "images.directories"];
/// Keys, or tables, that count from the next start on.
const OF_STARTS: [&str; 4] = ["site.name", "site.shards", "api.listen", "limits."];

/// Settings by `table.key`, as they are written.
fn flat(site: &Site) -> BTreeMap<String, String> {
    let tables = site::settings(site).into_iter();
    let keys = tables.flat_map(|(table, keys)| {
        let keys = keys.into_iter();
        keys.map(move |(key, value)| (format!("{table}.{key}"), value.to_string()))
            .collect::<Vec<_>>()
    });
    keys.collect()
}

/// Settings that differ.
pub(super) fn differences<W: World>(site: &Site, array: &ControlPlane<W>) -> Vec<Difference> {
    let (now, wanted) = (flat(&array.settings()), flat(site));
    let mut keys: Vec<&String> = now.keys().chain(wanted.keys()).collect();
    keys.sort();
    keys.dedup();
    let differing = keys
        .into_iter()
        .filter(|key| now.get(*key) != wanted.get(*key));
    let differences = differing.map(|key| {
        let said = |of: &BTreeMap<String, String>| {
            of.get(key)
                .cloned()
                .unwrap_or_else(|| "its default".to_owned())
        };
        let is_of_starts = OF_STARTS.iter().any(|start| key.starts_with(start));
        let from = match is_of_starts {
            true => ", from the next start on",
            false => "",
        };
        Difference {
            action: Action::Change,
            what: format!("setting {key}"),
            how: format!("{} becomes {}{from}", said(&now), said(&wanted)),
        }
    });
    differences.collect()
}

/// Has settings be what the file says. Only the owner may say where files are.
pub(super) async fn apply<W: World>(
    site: &Site,
    array: &Arc<ControlPlane<W>>,
    is_owner: bool,
) -> Vec<(String, String)> {
    let differing = differences(site, array);
    if differing.is_empty() {
        return Vec::new();
    }
    let wanted = site.settings();
    let changed = array.change_settings(move |now| {
        now.name = wanted.name;
        now.shards = wanted.shards;
        now.trash = wanted.trash;
        now.limits = wanted.limits;
        now.chap = wanted.chap;
        if is_owner {
            now.api = wanted.api;
            now.images = wanted.images;
        }
        Ok(())
    });
    let error = changed.await.err().map(|error| error.context);
    let mut failed = Vec::new();
    for difference in differing {
        let key = difference.what.trim_start_matches("setting ");
        let refused = !is_owner && OF_FILES.contains(&key);
        let why = match refused {
            true => Some("root may change it, and the server's user".to_owned()),
            false => error.clone(),
        };
        failed.extend(why.map(|why| (difference.what.clone(), why)));
    }
    failed
}
