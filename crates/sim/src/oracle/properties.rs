//! The rule for names, descriptions and tags of volumes.
//!
//! A change that ended is there. A change that was cut off is there whole or not at all. Nothing
//! else ever is.

use super::volume::{Exists, VolumeModel};
use super::{Oracle, Violation};
use base::Uuid;
use engine::pool::AttributesChange;
use engine::volume::VolumeProperties;
use engine::{PoolError, PoolErrorKind, VolumeInfo};
use std::collections::BTreeMap;

/// What is said of a volume beside its name.
#[derive(Clone, Debug, Default)]
pub struct PropertiesModel {
    /// What people attached to it.
    pub attributes: BTreeMap<String, String>,
    /// Whether it is in the trash.
    pub is_trashed: bool,
    /// What it was taken from, and when.
    pub origin: Option<(u64, u64)>,
    /// What is being said.
    pending: Option<KnownVolume>,
}

/// What can be said of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownVolume {
    name: String,
    attributes: BTreeMap<String, String>,
    is_trashed: bool,
}

impl VolumeModel {
    fn said(&self) -> KnownVolume {
        KnownVolume {
            name: self.name.clone(),
            attributes: self.properties.attributes.clone(),
            is_trashed: self.properties.is_trashed,
        }
    }

    fn adopt(&mut self) {
        if let Some(said) = self.properties.pending.take() {
            self.name = said.name;
            self.properties.attributes = said.attributes;
            self.properties.is_trashed = said.is_trashed;
        }
    }

    fn settle_properties(
        &mut self,
        name: &str,
        properties: &VolumeProperties,
        of: Option<Uuid>,
    ) -> Result<(), String> {
        let found = KnownVolume {
            name: name.to_owned(),
            attributes: properties.attributes.clone(),
            is_trashed: properties.trashed_unix_s.is_some(),
        };
        let at = self.properties.origin.map(|(_, at)| at);
        let origin = properties.origin.as_ref();
        if origin.map(|origin| origin.at_unix_s) != at || origin.map(|origin| origin.uuid) != of {
            return Err(format!("it comes from {origin:?}, not {of:?} at {at:?}"));
        }
        if self.properties.pending.as_ref() == Some(&found) {
            self.adopt();
        }
        self.properties.pending = None;
        match found == self.said() {
            true => Ok(()),
            false => Err(format!("{found:?} is said of it, not {:?}", self.said())),
        }
    }
}

impl Oracle {
    /// Whether a volume is called so.
    pub fn is_taken(&self, name: &str) -> bool {
        self.volumes()
            .any(|volume| volume.name == name && !volume.properties.is_trashed)
    }

    /// A volume that is being made is taken from another, at that time.
    pub fn note_origin(&mut self, id: u64, of: u64, at_unix_s: u64) {
        self.volume_mut(id).properties.origin = Some((of, at_unix_s));
    }

    /// What the snapshots of volume `id` are called when it is called `new`.
    fn followers(&self, id: u64, new: &str) -> Vec<(u64, String)> {
        let prefix = format!("{}@", self.volume(id).name);
        let follows = |volume: &&VolumeModel| {
            volume.read_only && volume.properties.origin.is_some_and(|(of, _)| of == id)
        };
        let called = |volume: &VolumeModel| {
            let own = volume.name.strip_prefix(&prefix)?;
            Some((volume.id, format!("{new}@{own}")))
        };
        self.volumes().filter(follows).filter_map(called).collect()
    }

    /// Whether volume `id` can be called `new`, with its snapshots.
    pub fn can_be_called(&self, id: u64, new: &str) -> bool {
        let followers = self.followers(id, new);
        // Names in the trash may be others', too, until they come back.
        let mut shown = followers
            .iter()
            .filter(|(follower, _)| !self.volume(*follower).properties.is_trashed);
        !self.is_taken(new) && !shown.any(|(_, name)| self.is_taken(name))
    }

    /// A change of what is said begins.
    pub fn begin_attributes(&mut self, id: u64, change: &AttributesChange, is_trashed: bool) {
        let old = self.volume(id).said();
        let mut said = KnownVolume {
            is_trashed,
            ..old.clone()
        };
        for (key, value) in &change.attributes {
            match value.is_empty() {
                true => said.attributes.remove(key),
                false => said.attributes.insert(key.clone(), value.clone()),
            };
        }
        if let Some(new) = change.name.as_ref().filter(|new| **new != old.name) {
            for (follower, name) in self.followers(id, new) {
                let volume = self.volume_mut(follower);
                let said = volume.said();
                volume.properties.pending = Some(KnownVolume { name, ..said });
            }
            said.name = new.clone();
        }
        self.volume_mut(id).properties.pending = Some(said);
    }

    /// The change under way ends.
    pub fn end_attributes(&mut self, outcome: &Result<(), PoolError>) {
        for volume in self.volumes.values_mut() {
            match outcome {
                Ok(()) => volume.adopt(),
                Err(_) => volume.properties.pending = None,
            }
        }
    }

    /// The pool says this of its volumes, in the trash and not, and no change is under
    /// way. To be asked after [`Oracle::settle_volumes`].
    ///
    /// # Errors
    /// The first volume of which something else should be said.
    pub fn settle_properties(
        &mut self,
        found: &[(VolumeInfo, VolumeProperties)],
    ) -> Result<(), Violation> {
        let uuids: BTreeMap<u64, Option<Uuid>> = self
            .volumes
            .values()
            .map(|volume| (volume.id, volume.uuid()))
            .collect();
        for volume in self.volumes.values_mut() {
            let here =
                |(info, _): &&(VolumeInfo, VolumeProperties)| Some(info.uuid) == volume.uuid();
            let Some((info, properties)) = found.iter().find(here) else {
                continue;
            };
            if volume.exists != Exists::Yes {
                continue;
            }
            let of = volume
                .properties
                .origin
                .and_then(|(of, _)| *uuids.get(&of)?);
            if let Err(why) = volume.settle_properties(&info.name, properties, of) {
                return Err(Violation(format!("volume {:?}: {why}", volume.name)));
            }
        }
        Ok(())
    }
}

/// Whether a change of attributes may end so: as a full pool, too.
pub fn is_usual(outcome: &Result<(), PoolError>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(error) => error.kind == PoolErrorKind::Full,
    }
}
