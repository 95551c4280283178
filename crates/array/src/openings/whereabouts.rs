//! Has pools that are there be looked for at other places, and takes in those that were made here.
//!
//! Invariant: what is at a place that a pool is looked for at is labelled as its, or nothing is there.

use super::Openings;
use super::create::{NewPool, without};
use super::look::{self, DriveContent, DrivePlace};
use super::made::MadePool;
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane};
use engine::World;
use std::sync::Arc;

impl<W: World> Openings<W> {
    /// Looks for a drive of a pool somewhere else from now on. It has to be there, with its label: what a
    /// command finds where a drive was may be overwritten.
    ///
    /// # Errors
    /// The drive is not there, the pool has no such drive, or that can't be kept.
    pub async fn look_for_drive(
        self: &Arc<Self>,
        array: &Arc<ControlPlane<W>>,
        pool: String,
        drive: site::Drive,
    ) -> Result<(), ArrayError> {
        let openings = Arc::clone(self);
        array
            .change(move |array| async move {
                let mut settings = array.settings().as_ref().clone();
                let of_pool = settings
                    .pool(&pool)
                    .into_iter()
                    .flat_map(site::Pool::drives);
                let is_of_pool = of_pool.into_iter().any(|name| *name == drive.name);
                let mut drives = settings.drives.iter_mut();
                let known = drives.find(|known| known.name == drive.name && is_of_pool);
                let none = || {
                    let context = format!("pool {pool} has no drive {}", drive.name);
                    ArrayError::new(ArrayErrorKind::NotFound, context)
                };
                known.ok_or_else(none)?.source = drive.source.clone();
                openings
                    .check_labelled(&array, &pool, std::slice::from_ref(&drive), true)
                    .await?;
                array.keep_settings(settings).await?;
                array.places().forget_added(&pool, &drive.name).await?;
                let path = array.places().path_of(&drive);
                array.drive_is_elsewhere(&pool, &drive.name, &path);
                Ok(())
            })
            .await
    }

    /// Looks for a pool that is not open at these drives from now on: it opens when they are its. What is
    /// there already has to be labelled as its.
    ///
    /// # Errors
    /// It is open, something else is at a drive's place, or that can't be kept.
    pub async fn look_for(
        self: &Arc<Self>,
        array: &Arc<ControlPlane<W>>,
        pool: site::Pool,
        drives: Vec<site::Drive>,
    ) -> Result<(), ArrayError> {
        let openings = Arc::clone(self);
        array
            .change(move |array| async move {
                let name = pool.name.clone();
                array.check_turn(&name)?;
                if !array.is_closed(&name) {
                    let context = format!("pool {name} is open");
                    return Err(ArrayError::new(ArrayErrorKind::Busy, context));
                }
                openings
                    .check_labelled(&array, &name, &drives, false)
                    .await?;
                let mut settings = without(&array.settings(), &name);
                let names: Vec<String> = drives.iter().map(|drive| drive.name.clone()).collect();
                settings.drives.extend(drives);
                settings.pools.push(pool);
                array.keep_settings(settings).await?;
                for drive in names {
                    array.places().forget_added(&name, &drive).await?;
                }
                Ok(())
            })
            .await
    }

    /// Takes a pool into the settings that was made here: it opens when its drives are there, with all
    /// that it holds. What is there already has to be labelled as its.
    ///
    /// # Errors
    /// Something else is at a drive's place, a name is taken, or that can't be kept.
    pub async fn take_in(
        self: &Arc<Self>,
        array: &Arc<ControlPlane<W>>,
        new: NewPool,
    ) -> Result<(), ArrayError> {
        let openings = Arc::clone(self);
        array
            .change(move |array| async move {
                let name = new.pool.name.clone();
                array.check_turn(&name)?;
                openings
                    .check_labelled(&array, &name, &new.drives, false)
                    .await?;
                let mut settings = array.settings().as_ref().clone();
                settings.drives.extend(new.drives);
                settings.pools.push(new.pool);
                array.keep_settings(settings).await?;
                let why = format!("pool {name}: its drives are looked for");
                array.pool_is_closed(&name, vec![why], None);
                array.is_listed(&name);
                Ok(())
            })
            .await
    }

    /// That what is at the places of drives is labelled as of this pool. Nothing may be there unless
    /// `all` have to be.
    async fn check_labelled(
        &self,
        array: &ControlPlane<W>,
        pool: &str,
        drives: &[site::Drive],
        all: bool,
    ) -> Result<(), ArrayError> {
        let uuid = match self.made.pool(pool) {
            Some(MadePool::Made { uuid, .. }) => Some(uuid),
            _ => None,
        };
        let uuid = match array.pool(pool).await {
            Ok((_, info)) => Some(info.uuid.to_string()),
            Err(_) => uuid,
        };
        for drive in drives {
            let place = DrivePlace::of(drive, self.data());
            let path = place.path.display().to_string();
            let look = look::glance(&self.bays, &array.shards()[0], place).await?;
            let is_its = match look.found {
                DriveContent::Labelled(label) => {
                    let is_known = |uuid: &String| *uuid == label.pool_uuid.to_string();
                    label.pool_name == pool && uuid.as_ref().is_none_or(is_known)
                }
                DriveContent::Nothing(_) => !all,
                // One that the pool has open is locked: it is where it was.
                _ => false,
            };
            if !is_its {
                let context = format!(
                    "drive {}: {path} has no label of pool {pool}: bring the drive there first",
                    drive.name
                );
                return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
            }
        }
        Ok(())
    }
}
