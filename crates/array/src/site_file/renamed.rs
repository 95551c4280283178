//! Volumes that the site file still calls by an earlier name.
//!
//! Invariants:
//! - A volume that was renamed is never made anew, empty, because the site file says its old name.
//! - No target of an applied file comes to show a volume by a name that it does not have any more.

use crate::control::attributes::SITE_NAME;
use crate::control::{ArrayError, ControlPlane, NewAttributes};
use engine::World;
use site::Site;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A planted bug.
pub(super) const MADE_AGAIN: &str = "renamed volume is made again by a site file";

/// Forgets the old names of volumes that `site` calls by their new ones. For a site file as it
/// was written, not one that [`follow`] gave.
///
/// # Errors
/// A shard has stopped.
pub async fn forget<W: World>(site: &Site, array: &Arc<ControlPlane<W>>) -> Result<(), ArrayError> {
    for volume in array.volumes().await? {
        let now = volume.info.name;
        let is_described = site.volumes.iter().any(|volume| volume.name == now);
        if !is_described || !volume.properties.attributes.contains_key(SITE_NAME) {
            continue;
        }
        let attributes = NewAttributes {
            tags: vec![(SITE_NAME.to_owned(), String::new())],
            ..NewAttributes::default()
        };
        if let Err(error) = array.change_attributes(now.clone(), attributes).await {
            tracing::warn!("volume {now}: that it had another name stays on record: {error}");
        }
    }
    Ok(())
}

/// The volumes that `site` calls by a name they had before: that name, and what they are called
/// now.
///
/// # Errors
/// A shard has stopped.
pub async fn renamed<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<BTreeMap<String, String>, ArrayError> {
    let (volumes, trash) = (array.volumes().await?, array.trash().await?);
    // Also in the trash: of two that had the name, nobody knows whose hosts are meant.
    let known: Vec<_> = volumes.iter().chain(&trash).collect();
    let is_there = |name: &str| known.iter().any(|volume| volume.info.name == name);
    let describes = |name: &str| site.volumes.iter().any(|volume| volume.name == name);
    let mut renamed = BTreeMap::new();
    if array.runtime().planted(MADE_AGAIN) {
        return Ok(renamed);
    }
    for volume in &volumes {
        let now = volume.info.name.as_str();
        let Some(was) = volume.properties.attributes.get(SITE_NAME) else {
            continue;
        };
        // Of two, one has it.
        if !describes(now) && describes(was) && !is_there(was) {
            array
                .runtime()
                .reached("renamed volume followed by a site file");
            renamed.entry(was.clone()).or_insert(now.to_owned());
        }
    }
    Ok(renamed)
}

/// As [`renamed`], without volumes that the file shows behind a target which does not show them now.
/// There the file may mean an empty volume, by a name that was another's once. Its hosts are not to get
/// what that one holds.
///
/// # Errors
/// A shard has stopped.
pub async fn renamed_as_shown<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<BTreeMap<String, String>, ArrayError> {
    let mut renamed = renamed(site, array).await?;
    let there = array.exports_by_target();
    renamed.retain(|was, now| {
        let shows = |export: &&site::Export| export.volumes.contains(was);
        site.exports.iter().filter(shows).all(|export| {
            let now_shown = there.get(&export.target.to_ascii_lowercase());
            now_shown.is_some_and(|export| export.volumes.contains(now))
        })
    });
    Ok(renamed)
}

/// `site` with the names that volumes have now, where it says older ones.
pub fn follow(site: &Site, renamed: &BTreeMap<String, String>) -> Site {
    let mut followed = site.clone();
    let follow = |name: &mut String| {
        if let Some(now) = renamed.get(name.as_str()) {
            name.clone_from(now);
        }
    };
    let names = followed.volumes.iter_mut().map(|volume| &mut volume.name);
    names.for_each(follow);
    let exports = followed.exports.iter_mut();
    exports
        .flat_map(|export| &mut export.volumes)
        .for_each(follow);
    let groups = followed.groups.iter_mut();
    groups.flat_map(|group| &mut group.volumes).for_each(follow);
    followed
}
