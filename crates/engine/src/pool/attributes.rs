//! Changes of volumes' names, attributes, origins, and of the trash.
//!
//! Invariants:
//! - A volume in the trash is called by its identity; its name is free for others.
//! - A snapshot is called `VOLUME@NAME`, and keeps up with the name of its volume.
//! - What is said fits the checkpoint slots, or is refused before it is journalled.

use super::create::check_name;
use super::{Lane, PoolError, PoolErrorKind};
use crate::drives::EventKind;
use crate::label::NAME_BYTES_MAX;
use crate::meta::InFlight as _;
use crate::meta::properties::{ATTRIBUTES_MAX, HIDDEN, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::meta::{Origin, Property, Record, VolumeId};
use crate::space::State;
use crate::space::VolumeCore;
use crate::volume::{Volume, VolumeInfo, VolumeProperties};
use crate::world::World;
use base::Uuid;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Between the names of a volume and of its snapshot.
pub const SNAPSHOT_MARK: char = '@';

/// What is to be said of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttributesChange {
    /// The new name; `None` keeps the old name.
    pub name: Option<String>,
    /// Attributes that it gets; those without a value it loses.
    pub attributes: Vec<(String, String)>,
}

impl<W: World> Lane<W> {
    /// The volume with this identity, in the trash or not.
    pub fn volume_of(&self, uuid: Uuid) -> Option<Volume<W>> {
        self.core_of(uuid).map(|core| self.handle(&core))
    }

    pub(super) fn core_of(&self, uuid: Uuid) -> Option<Rc<VolumeCore>> {
        let state = self.inner.state();
        let mut ready = state.volumes.values().filter(|core| core.ready.get());
        ready
            .find(|core| core.uuid == uuid && !core.live.is_deleted())
            .map(Rc::clone)
    }

    /// Its volumes, and what is said of them; not in any order.
    pub fn volumes_with_properties(&self) -> Vec<(VolumeInfo, VolumeProperties)> {
        let state = self.inner.state();
        let seen = |core: &&Rc<VolumeCore>| {
            core.ready.get() && !core.properties.is_trashed() && !core.is_out_of_sight()
        };
        let all = state.volumes.values().filter(seen);
        all.map(|core| (self.handle(core).info(), core.properties.get()))
            .collect()
    }

    /// Has an event tell of something.
    pub fn tell(&self, kind: EventKind, text: String) {
        self.inner.drives().event(kind, text);
    }

    /// What is in the trash, what came in first at the front.
    pub fn trash(&self) -> Vec<(VolumeInfo, VolumeProperties)> {
        let state = self.inner.state();
        let trashed = |core: &&Rc<VolumeCore>| core.ready.get() && core.properties.is_trashed();
        let all = state.volumes.values().filter(trashed);
        let mut all: Vec<_> = all
            .map(|core| (self.handle(core).info(), core.properties.get()))
            .collect();
        all.sort_by_key(|(_, properties)| properties.trashed_unix_s);
        all
    }

    /// Changes name and attributes of a volume, all or nothing. Its snapshots keep up
    /// with its name.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a name or attribute that can't be; `Exists`; `Full` when
    /// the metadata has no room.
    pub async fn change_attributes(
        &self,
        name: &str,
        change: &AttributesChange,
    ) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.settled(name)?;
        let mut records = Vec::new();
        if let Some(new) = change.name.as_deref().filter(|new| *new != name) {
            records.extend(self.renaming(&core, name, new)?);
        }
        check_attributes(&core, &change.attributes)?;
        let property = |(key, value): &(String, String)| {
            let (key, value) = (key.clone(), value.clone());
            Record::Property(core.id, Property::Attribute { key, value })
        };
        records.extend(change.attributes.iter().map(property));
        inner.metadata_room().check_properties_fit(&records)?;
        match inner.world().planted("what is said is not made durable") {
            true => inner.spoil(|state| say_in_memory(state, &records)),
            false => inner.journal().commit(records).await?,
        }
        inner.world().reached("volume renamed or tagged");
        Ok(())
    }

    /// The records that rename a volume, and its snapshots.
    fn renaming(
        &self,
        core: &Rc<VolumeCore>,
        old: &str,
        new: &str,
    ) -> Result<Vec<Record>, PoolError> {
        match core.read_only {
            true => check_snapshot_name(new)?,
            false => check_name("volume", new)?,
        }
        self.check_new(new)?;
        let mut records = vec![Record::Property(core.id, Property::Name(new.to_owned()))];
        let prefix = format!("{old}{SNAPSHOT_MARK}");
        let state = self.inner.state();
        for other in state.volumes.values().filter(|other| other.read_only) {
            let properties = other.properties.get();
            let is_of = properties
                .origin
                .is_some_and(|origin| origin.uuid == core.uuid);
            let called = other.name.to_string();
            let Some(rest) = called.strip_prefix(&prefix).filter(|_| is_of) else {
                continue;
            };
            let called = format!("{new}{SNAPSHOT_MARK}{rest}");
            check_snapshot_name(&called)?;
            // Names in the trash may be others', too, until they come back.
            if !other.properties.is_trashed() {
                self.check_new(&called)?;
            }
            records.push(Record::Property(other.id, Property::Name(called)));
        }
        Ok(records)
    }

    /// The record of where a volume that is being made comes from.
    ///
    /// # Errors
    /// `Full` when the metadata has no room.
    pub(super) fn origin(
        &self,
        id: VolumeId,
        of: &VolumeCore,
        at_unix_s: u64,
    ) -> Result<Record, PoolError> {
        let origin = Property::Origin(Origin {
            uuid: of.uuid,
            name: of.name.to_string(),
            at_unix_s,
        });
        let record = Record::Property(id, origin);
        self.inner
            .metadata_room()
            .check_properties_fit(std::slice::from_ref(&record))?;
        Ok(record)
    }

    /// Puts a volume into the trash, as of `at_unix_s`. What it has stays until
    /// [`Lane::delete_trashed`].
    ///
    /// # Errors
    /// `NotFound`, or `Full` when the metadata has no room.
    pub async fn trash_volume(&self, name: &str, at_unix_s: u64) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.still(name)?;
        let records = vec![Record::Property(core.id, Property::Trashed { at_unix_s })];
        inner.metadata_room().check_properties_fit(&records)?;
        inner.journal().commit(records).await?;
        inner.world().reached("volume put into the trash");
        Ok(())
    }

    /// Takes a volume out of the trash, under a new name or its old one.
    ///
    /// # Errors
    /// `NotFound`; `Exists` when another volume has the name now; `Invalid`.
    pub async fn recover_trashed(&self, uuid: Uuid, name: Option<&str>) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.trashed(uuid)?;
        let old = core.name.to_string();
        let name = name.unwrap_or(&old);
        let mut records = Vec::new();
        if name == old {
            if !inner.world().planted("trash gives a name that is taken") {
                self.check_new(name)?;
            }
        } else {
            records.extend(self.renaming(&core, &old, name)?);
        }
        records.push(Record::Property(core.id, Property::Recovered));
        inner.metadata_room().check_properties_fit(&records)?;
        inner.journal().commit(records).await?;
        inner.world().reached("volume taken out of the trash");
        Ok(())
    }

    /// Deletes a volume that is in the trash, with all its data.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn delete_trashed(&self, uuid: Uuid) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.trashed(uuid)?;
        self.let_go_of(&core).await?;
        inner.world().reached("volume deleted from the trash");
        Ok(())
    }

    fn trashed(&self, uuid: Uuid) -> Result<Rc<VolumeCore>, PoolError> {
        let found = self
            .core_of(uuid)
            .filter(|core| core.properties.is_trashed());
        found.ok_or_else(|| {
            let pool = &self.inner.identity().name;
            let context = format!("there is no volume {uuid} in the trash of pool '{pool}'");
            PoolError::new(PoolErrorKind::NotFound, context)
        })
    }
}

/// That `name` may name a snapshot: the names of a volume and of its snapshot.
///
/// # Errors
/// `Invalid`, with what is allowed.
pub(super) fn check_snapshot_name(name: &str) -> Result<(), PoolError> {
    let parts = name.split_once(SNAPSHOT_MARK);
    let (volume, own) = parts.unwrap_or((name, "s"));
    if name.len() > NAME_BYTES_MAX {
        let context = format!(
            "snapshot name '{name}': allowed are {NAME_BYTES_MAX} bytes, the volume's name and '@' among them"
        );
        return Err(PoolError::new(PoolErrorKind::Invalid, context));
    }
    check_name("volume", volume)?;
    check_name("snapshot", own)
}

fn check_attributes(core: &VolumeCore, changes: &[(String, String)]) -> Result<(), PoolError> {
    let properties = core.properties.get();
    let keys = properties.attributes.keys().map(String::as_str).collect();
    check_attributes_of(&core.name.to_string(), keys, changes)
}

/// As [`check_attributes`], of a volume called `name` that has these `keys` already.
pub(super) fn check_attributes_of<'a>(
    name: &str,
    mut keys: BTreeSet<&'a str>,
    changes: &'a [(String, String)],
) -> Result<(), PoolError> {
    let invalid = |context| Err(PoolError::new(PoolErrorKind::Invalid, context));
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    for (key, value) in changes {
        let is_named = !key.is_empty() && key.len() <= KEY_BYTES_MAX && key != HIDDEN;
        if !is_named || !key.chars().all(is_key) {
            return invalid(format!(
                "attribute '{key}': allowed are 1 to {KEY_BYTES_MAX} letters, digits, '-', '_', '.', '/'"
            ));
        }
        if value.len() > VALUE_BYTES_MAX || value.chars().any(char::is_control) {
            return invalid(format!(
                "attribute '{key}', value '{value}': allowed are {VALUE_BYTES_MAX} bytes of text on one line"
            ));
        }
        match value.is_empty() {
            true => keys.remove(key.as_str()),
            false => keys.insert(key),
        };
    }
    if keys.len() > ATTRIBUTES_MAX {
        return invalid(format!(
            "volume '{name}' would have {} attributes: allowed are {ATTRIBUTES_MAX}",
            keys.len()
        ));
    }
    Ok(())
}

/// Says it without anything on the drives: a bug.
fn say_in_memory(state: &mut State, records: &[Record]) {
    for record in records {
        let applied = state.apply(record);
        assert!(applied.is_ok(), "{record:?}: {applied:?}");
    }
}
