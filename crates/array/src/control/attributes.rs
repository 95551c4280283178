//! Names, descriptions and tags of volumes.
//!
//! Invariants:
//! - Who uses a volume does not notice that it is renamed: exports follow, and what
//!   initiators know it by comes from its UUID.
//! - Attributes whose keys begin with `_` are the array's own; people's tags never do.

use super::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume, TakeBack};
use engine::pool::{AttributesChange, SNAPSHOT_MARK};
use engine::volume::VolumeProperties;
use engine::{Lane, World};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Attributes of the array's own begin with this.
const OWN: char = '_';
/// What the site file calls a volume that was renamed.
pub const SITE_NAME: &str = "_site-name";
/// The parts of a description, in order.
const DESCRIPTION: [&str; 4] = [
    "_description.1",
    "_description.2",
    "_description.3",
    "_description.4",
];
/// Bytes of an attribute's value.
const PART_BYTES: usize = 64;
// What the site file and people may say is what the engine takes.
const _: () = assert!(
    site::TAG_KEY_BYTES_MAX == engine::meta::properties::KEY_BYTES_MAX
        && site::TAG_VALUE_BYTES_MAX == PART_BYTES
        && PART_BYTES == engine::meta::properties::VALUE_BYTES_MAX
        && site::DESCRIPTION_BYTES_MAX < DESCRIPTION.len() * PART_BYTES
);

/// People's tags among the attributes.
pub fn tags(properties: &VolumeProperties) -> BTreeMap<String, String> {
    let all = properties.attributes.iter();
    let of_people = all.filter(|(key, _)| !key.starts_with(OWN));
    of_people
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The description among the attributes.
pub fn description(properties: &VolumeProperties) -> String {
    let parts = DESCRIPTION
        .iter()
        .filter_map(|key| properties.attributes.get(*key));
    parts.map(String::as_str).collect()
}

/// A description in as many parts as there are.
fn parts(text: &str) -> Vec<(String, String)> {
    let mut rest = text;
    let part = |key: &&str| {
        let fits = |end: &usize| rest.is_char_boundary(*end);
        let end = (0..=rest.len().min(PART_BYTES)).rfind(fits).unwrap_or(0);
        let (part, after) = rest.split_at(end);
        rest = after;
        ((*key).to_owned(), part.to_owned())
    };
    DESCRIPTION.iter().map(part).collect()
}

/// What is to be said of a volume; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewAttributes {
    /// The name that it is to have; its snapshots and exports follow.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Tags that it gets, and those that it loses (without a value).
    pub tags: Vec<(String, String)>,
}

impl<W: World> ControlPlane<W> {
    /// Changes name and attributes of the volume called `name`. Its snapshots keep up with its
    /// name, and so do exports.
    ///
    /// # Errors
    /// No such volume, the new name is taken, or what the pool says.
    pub async fn change_attributes(
        self: &Arc<Self>,
        name: String,
        wanted: NewAttributes,
    ) -> Result<PlacedVolume, ArrayError> {
        self.change(move |array| async move {
            let there = array.volume(&name).await?;
            let new = wanted.name.clone().filter(|new| *new != name);
            let mut attributes = wanted.tags;
            attributes.extend(wanted.description.iter().flat_map(|text| parts(text)));
            if let Some(new) = &new {
                check_rename(&there, new)?;
                array.jobs.check_name_stays(&name)?;
                array.check_names_free(&there, new).await?;
                attributes.extend(array.site_name(&there, new));
            }
            let change = AttributesChange {
                name: new.clone(),
                attributes,
            };
            let said = array.change_attributes_of(there, change).await?;
            if let Some(new) = new {
                array.follow_rename(&name, &new).await;
            }
            Ok(said)
        })
        .await
    }

    /// Changes them, for a caller whose turn it is to change the array.
    pub(super) async fn change_attributes_of(
        &self,
        there: PlacedVolume,
        change: AttributesChange,
    ) -> Result<PlacedVolume, ArrayError> {
        let (uuid, name) = (there.info.uuid, there.info.name.clone());
        let visit = move |_, pool: Lane<W>| async move {
            pool.change_attributes(&name, &change).await?;
            let volume = pool.volume_of(uuid);
            let said = volume.map(|volume| (volume.info(), volume.properties()));
            said.ok_or_else(|| ArrayError::no_volume(&name))
        };
        let (info, properties) = self.with_lane(&there.pool, there.lane, visit).await?;
        Ok(PlacedVolume {
            info,
            properties,
            ..there
        })
    }

    /// Attaches something of the array's own to volumes, to all or to none, also over a crash; what
    /// has no value is taken away. For one whose turn it is to change the array.
    ///
    /// # Errors
    /// What the first pool that refuses says, or as for [`ControlPlane::whole_or_not`].
    pub(super) async fn attach(
        &self,
        volumes: &[PlacedVolume],
        attributes: impl Fn(&PlacedVolume) -> Vec<(String, String)>,
    ) -> Result<Vec<PlacedVolume>, ArrayError> {
        if volumes.len() < 2 {
            return self.attach_each(volumes, attributes).await;
        }
        let step = |volume| TakeBack::attributes(volume, &attributes(volume));
        let steps = volumes.iter().map(step).collect();
        let change = self.attach_each(volumes, &attributes);
        self.whole_or_not(steps, change).await
    }

    /// As above, to one after the other: a crash or a failure leaves some with it.
    pub(super) async fn attach_each(
        &self,
        volumes: &[PlacedVolume],
        attributes: impl Fn(&PlacedVolume) -> Vec<(String, String)>,
    ) -> Result<Vec<PlacedVolume>, ArrayError> {
        let mut done: Vec<PlacedVolume> = Vec::new();
        for volume in volumes {
            let change = AttributesChange {
                name: None,
                attributes: attributes(volume),
            };
            let said = self.change_attributes_of(volume.clone(), change).await?;
            self.learn_schedules(&said);
            done.push(said);
        }
        Ok(done)
    }

    /// The note of what the site file calls a volume that is going to be renamed, if it
    /// describes it. An array that was started without a file can't tell, and notes it.
    fn site_name(&self, there: &PlacedVolume, new: &str) -> Option<(String, String)> {
        let noted = there.properties.attributes.get(SITE_NAME);
        // Any file may have described it, also one that was applied since the start.
        let old = noted.or(Some(&there.info.name));
        let old = old.filter(|_| !there.is_snapshot())?;
        let value = if old == new { "" } else { old };
        Some((SITE_NAME.to_owned(), value.to_owned()))
    }

    /// Has exports say the new name of a volume that had `old` for itself.
    async fn follow_rename(&self, old: &str, new: &str) {
        let prefix = format!("{old}{SNAPSHOT_MARK}");
        for export in self.export_map().values_mut() {
            let known = export.uuids.len();
            for volume in export.volumes.iter_mut().skip(known) {
                if volume == old {
                    *volume = new.to_owned();
                } else if let Some(own) = volume.strip_prefix(&prefix) {
                    *volume = format!("{new}{SNAPSHOT_MARK}{own}");
                }
            }
        }
        self.follow_identities(old, new).await;
    }

    /// Has exports call their volumes as they are called by now. They are found by identity at the
    /// next start, too, so nothing is lost where that can't be written down now.
    pub(super) async fn follow_identities(&self, old: &str, new: &str) {
        if self.runtime.planted("exports do not follow a new name") {
            return;
        }
        // Without an answer its shard has stopped.
        let there = self.volumes().await.unwrap_or_default();
        for export in self.export_map().values_mut() {
            for (name, uuid) in export.volumes.iter_mut().zip(&export.uuids) {
                // Another one may have had the same name.
                if let Some(known) = there.iter().find(|known| known.info.uuid == *uuid) {
                    name.clone_from(&known.info.name);
                }
            }
        }
        if let Err(error) = self.keep(self.configuration()).await {
            tracing::warn!("volume {old} is called {new} now, and exports can't be kept: {error}");
        }
    }
}

/// That a volume can be called `new`; a snapshot keeps the name of its volume.
fn check_rename(there: &PlacedVolume, new: &str) -> Result<(), ArrayError> {
    let wrong = |rule: &str| {
        let context = format!("name: found {new:?}; allowed: {rule}");
        Err(ArrayError::new(ArrayErrorKind::Invalid, context))
    };
    if !there.is_snapshot() {
        return match site::is_name(new) {
            true => Ok(()),
            false => wrong(site::NAME_RULE),
        };
    }
    let of = there.info.name.split_once(SNAPSHOT_MARK);
    let same =
        |(volume, own): (&str, &str)| of.is_none_or(|(of, _)| of == volume) && site::is_name(own);
    match new.split_once(SNAPSHOT_MARK).is_some_and(same) {
        true => Ok(()),
        false => wrong("the name of the snapshot's volume, '@', and a name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_comes_back_from_its_parts() {
        let long = "ä€𝄞 x".repeat(24);
        let fitting = long.chars().scan(0, |bytes, c| {
            *bytes += c.len_utf8();
            (*bytes <= site::DESCRIPTION_BYTES_MAX).then_some(c)
        });
        let most: String = fitting.collect();
        for text in ["", "one line", most.as_str()] {
            let mut properties = VolumeProperties::default();
            for (key, value) in parts(text) {
                assert!(value.len() <= PART_BYTES);
                properties.attributes.insert(key, value);
            }
            assert_eq!(description(&properties), text);
            assert!(tags(&properties).is_empty(), "it is no tag");
        }
    }
}
