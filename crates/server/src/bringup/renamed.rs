//! Volumes that the site file still calls by a name they had before.
//!
//! Invariant: a volume that was renamed is never made anew, empty, because the site file
//! says its old name.

use crate::array::words::SITE_NAME;
use crate::array::{Array, ArrayError, NewWords};
use site::Site;
use std::collections::BTreeMap;
use std::sync::Arc;

/// `site` with the names that volumes have now, where it says older ones. Each is named in
/// the log.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn follow(site: &Site, array: &Arc<Array>) -> Result<Site, ArrayError> {
    let volumes = array.volumes().await?;
    let is_there = |name: &str| volumes.iter().any(|volume| volume.info.name == name);
    let describes = |name: &str| site.volumes.iter().any(|volume| volume.name == name);
    let mut renamed: BTreeMap<&str, &str> = BTreeMap::new();
    for volume in &volumes {
        let now = volume.info.name.as_str();
        let Some(was) = volume.about.attributes.get(SITE_NAME) else {
            continue;
        };
        if describes(now) {
            // The site file has caught up.
            let words = NewWords {
                tags: vec![(SITE_NAME.to_owned(), String::new())],
                ..NewWords::default()
            };
            if let Err(error) = array.change_words(now.to_owned(), words).await {
                tracing::warn!("volume {now}: that it had another name stays on record: {error}");
            }
        } else if describes(was) && !is_there(was) {
            tracing::warn!(
                "volume {was} of the site file is called {now} now: write that name there, also \
                 in exports and groups"
            );
            renamed.insert(was, now);
        }
    }
    let mut followed = site.clone();
    let follow = |name: &mut String| {
        if let Some(now) = renamed.get(name.as_str()) {
            *name = (*now).to_owned();
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
    for volume in array.trash().await? {
        let name = &volume.info.name;
        if followed.volumes.iter().any(|of_site| of_site.name == *name) && !is_there(name) {
            tracing::warn!(
                "volume {name} of the site file is in the trash: it is made anew, without data; \
                 what it had comes back with ashlar trash restore {} --name NEW",
                volume.info.uuid
            );
        }
    }
    Ok(followed)
}
