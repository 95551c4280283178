//! Hidden volumes: they hold data for a time, for the part of the program that made them.
//!
//! Invariants:
//! - They are in no list, have no name that others could use or miss, and are reached by
//!   their identity only.
//! - Whoever makes them takes them away: what a crash leaves is still hidden at the next
//!   start, and is there to be deleted.

use super::{Lane, PoolError, PoolErrorKind};
use crate::meta::properties::HIDDEN;
use crate::meta::{Property, Record};
use crate::space::VolumeCore;
use crate::volume::{Provisioning, Volume, VolumeInfo, VolumeSpec};
use crate::world::World;
use base::Uuid;
use std::rc::Rc;

impl<W: World> Lane<W> {
    /// Makes a thin volume that nobody is shown. What it is for (`name`) is for people who
    /// look at the metadata; several may be called the same.
    ///
    /// # Errors
    /// `Invalid`; `Full` when the metadata has no room for another volume.
    pub async fn create_hidden(&self, name: &str, size_bytes: u64) -> Result<Volume<W>, PoolError> {
        let inner = &self.inner;
        inner.check()?;
        self.check_size(name, size_bytes)?;
        let _administration = inner.administration().await;
        let id = self.next_ids(1)?;
        let spec = VolumeSpec {
            name: name.to_owned(),
            size_bytes,
            provisioning: Provisioning::Thin,
        };
        let hidden = Property::Attribute {
            key: HIDDEN.to_owned(),
            value: "1".to_owned(),
        };
        let records = vec![
            self.creation(id, &spec, false),
            Record::Property(id, hidden),
            Record::Ready { id },
        ];
        inner.metadata_room().check_properties_fit(&records)?;
        inner.journal().commit(records).await?;
        let core = inner.state().volumes.get(&id).map(Rc::clone);
        let core = core.ok_or_else(|| {
            let context = format!("volume '{name}' went away while it was created");
            PoolError::new(PoolErrorKind::NotFound, context)
        })?;
        Ok(self.handle(&core))
    }

    /// The volumes that nobody is shown.
    pub fn hidden(&self) -> Vec<VolumeInfo> {
        let state = self.inner.state();
        let hidden = |core: &&Rc<VolumeCore>| core.ready.get() && core.properties.is_hidden();
        let all = state.volumes.values().filter(hidden);
        all.map(|core| self.handle(core).info()).collect()
    }

    /// Deletes a volume that nobody is shown, with all its data.
    ///
    /// # Errors
    /// `NotFound`, also of a volume that is not hidden.
    pub async fn delete_hidden(&self, uuid: Uuid) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let found = self
            .core_of(uuid)
            .filter(|core| core.properties.is_hidden());
        let core = found.ok_or_else(|| {
            let pool = &inner.identity().name;
            let context = format!("there is no hidden volume {uuid} in pool '{pool}'");
            PoolError::new(PoolErrorKind::NotFound, context)
        })?;
        self.let_go_of(&core).await
    }
}
