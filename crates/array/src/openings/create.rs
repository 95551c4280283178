//! Creates pools while the array serves.
//!
//! Invariants:
//! - A pool is on record as being made before the settings name it, and before its drives are
//!   looked at. A making that a crash cut short, or that failed, is taken back
//!   ([`taking_back`](super::taking_back)): whatever lies on the drives then is never taken for the
//!   pool.
//! - Nothing is made of a drive that carries a label, or anything else that somebody may miss.

use super::Openings;
use super::error::OpeningError;
use super::look::DrivePlace;
use super::made::MadePool;
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane};
use engine::World;
use site::Site;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pool to be made.
#[derive(Clone, Debug)]
pub struct NewPool {
    pub pool: site::Pool,
    /// Its drives, which the array does not have yet.
    pub drives: Vec<site::Drive>,
}

impl<W: World> Openings<W> {
    /// Makes a pool of drives that are files, made where they are missing, or empty devices.
    ///
    /// # Errors
    /// A name or a drive is taken, a drive is in a directory that is not allowed, or holds something;
    /// the pool would break a rule of a site file. Nothing is left then.
    pub async fn create(
        self: &Arc<Self>,
        array: &Arc<ControlPlane<W>>,
        new: NewPool,
    ) -> Result<(), ArrayError> {
        let openings = Arc::clone(self);
        array
            .change(move |array| async move { openings.create_in_turn(&array, new).await })
            .await
    }

    async fn create_in_turn(
        &self,
        array: &Arc<ControlPlane<W>>,
        new: NewPool,
    ) -> Result<(), ArrayError> {
        let name = new.pool.name.clone();
        let settings = self.with_pool(array, new).await?;
        let mark = MadePool::made_of_nothing();
        let marked = self.made.set(&name, Some(mark)).await;
        marked.map_err(OpeningError::record)?;
        let made = match array.keep_settings(settings).await {
            Ok(()) => self.make_named(array, &name).await,
            Err(error) => Err(error),
        };
        if made.is_err() {
            let before = without(&array.settings(), &name);
            match array.keep_settings(before).await {
                // The mark stays as long as something is left: that is taken back later.
                Ok(()) => {
                    let forgotten = self.made.forget(&name).await;
                    forgotten.map_err(OpeningError::record)?;
                }
                // With its mark: the next start takes the pool back.
                Err(error) => tracing::error!(
                    "pool {name}, which could not be made, stays in the settings until the \
                     next start: {error}"
                ),
            }
        }
        made
    }

    /// The settings with one more pool, if it can be.
    async fn with_pool(&self, array: &ControlPlane<W>, new: NewPool) -> Result<Site, ArrayError> {
        let taken = |context: String| Err(ArrayError::new(ArrayErrorKind::Exists, context));
        let name = &new.pool.name;
        let mut settings = array.current_settings().await?;
        let is_served = settings.pool(name).is_some() || array.is_unlisted(name);
        if !is_served {
            self.before_making(&array.shards()[0], name).await?;
        }
        if is_served || self.made.pool(name).is_some() {
            return taken(format!(
                "there is a pool {name} already; choose another name"
            ));
        }
        for drive in &new.drives {
            let path = DrivePlace::of(drive, self.data()).path;
            array.check_free(&drive.name).await?;
            array.check_allowed(&*self.bays, &path)?;
            array.check_unused(&path, name).await?;
        }
        // Names of drives that left their pools are free.
        let is_new = |drive: &site::Drive| new.drives.iter().any(|other| other.name == drive.name);
        settings.drives.retain(|drive| !is_new(drive));
        settings.drives.extend(new.drives);
        settings.pools.push(new.pool);
        Ok(settings)
    }

    /// Makes a pool that the settings name.
    async fn make_named(&self, array: &Arc<ControlPlane<W>>, name: &str) -> Result<(), ArrayError> {
        let invalid =
            |lines: Vec<String>| ArrayError::new(ArrayErrorKind::Invalid, lines.join("\n"));
        let plan = self.plan_one(array, name, &BTreeMap::new()).await?;
        let plan = plan.ok_or_else(|| ArrayError::no_pool(name))?;
        let plan = plan.map_err(invalid).inspect_err(|_| {
            self.bays.reached("pool refused for what is on a drive");
        })?;
        if let Some(labelled) = plan.labelled() {
            return Err(ArrayError::new(ArrayErrorKind::Exists, labelled));
        }
        let homes = plan.shards.clone();
        // Large files take their time: other changes go on meanwhile.
        let making = self.make(vec![plan], array.shards());
        array.wait_for(name, making).await?;
        array.pool_is_open(name, homes, Vec::new());
        array.note_drives_and_warn().await;
        Ok(())
    }
}

/// `settings` without a pool and its drives.
pub(super) fn without(settings: &Site, name: &str) -> Site {
    let mut settings = settings.clone();
    let of_pool: Vec<String> = match settings.pool(name) {
        Some(pool) => pool.drives().cloned().collect(),
        None => Vec::new(),
    };
    settings.pools.retain(|pool| pool.name != name);
    let is_used = |drive: &String| {
        let mut pools = settings.pools.iter();
        pools.any(|pool| pool.drives().any(|used| used == drive))
    };
    let free: Vec<String> = of_pool
        .into_iter()
        .filter(|drive| !is_used(drive))
        .collect();
    settings.drives.retain(|drive| !free.contains(&drive.name));
    settings
}
