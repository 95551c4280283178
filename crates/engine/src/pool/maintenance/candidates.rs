//! Judges drives before they are added. Every lane is asked before the first one adds them, so
//! nothing changes here.

use crate::drive::Drive;
use crate::pool::{GroupRole, LabelSummary, Lane, Level, NamedDrive, PoolError, PoolErrorKind};
use crate::space::LaneState;
use crate::world::World;

/// A drive that may be added.
pub struct Candidate<'a, W: World> {
    /// The name that it would have.
    pub name: &'a str,
    /// Capacity of the whole drive.
    pub capacity_bytes: u64,
    /// The drive. None while its file is not made yet, and for a drive that the pool has open.
    pub drive: Option<&'a W::Drive>,
}

impl<'a, W: World> From<&'a NamedDrive<W>> for Candidate<'a, W> {
    fn from(named: &'a NamedDrive<W>) -> Self {
        Candidate {
            name: &named.name,
            capacity_bytes: named.drive.geometry().capacity_bytes,
            drive: Some(&named.drive),
        }
    }
}

impl<W: World> Lane<W> {
    /// That this lane could add a group of these drives now.
    ///
    /// # Errors
    /// As [`Lane::add_group`].
    pub async fn check_add_group(
        &self,
        of: (Level, GroupRole),
        drives: &[Candidate<'_, W>],
    ) -> Result<(), PoolError> {
        let inner = &self.inner;
        let planted = inner.world.planted("group added without asking all lanes");
        if planted && inner.drives.lane().index > 0 {
            return Ok(());
        }
        inner.check()?;
        let _administration = inner.administration().await;
        inner.check_new_drives(of, drives)?;
        for drive in drives {
            inner.check_unlabelled(drive).await?;
        }
        let entry = inner.new_entry(of, drives)?;
        // No lane has it yet, so every lane is as the first one is.
        inner.check_lanes_agree(0, &entry)
    }

    /// That this lane could add a drive as a spare now, to stand in in a group of this number
    /// or in any.
    ///
    /// # Errors
    /// As [`Lane::add_spare_for`].
    pub async fn check_add_spare(
        &self,
        group: Option<u16>,
        drive: Candidate<'_, W>,
    ) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        inner.check_new_spare(drive.name)?;
        inner.check_unlabelled(&drive).await?;
        let part = inner.identity().part();
        let capacity_bytes = drive.capacity_bytes.saturating_sub(part.of_others_bytes());
        inner.check_large_enough(drive.name, group, drive.capacity_bytes, capacity_bytes)
    }
}

impl<W: World> LaneState<W> {
    /// That a drive can be read, and that no label on it says that somebody uses it.
    pub(super) async fn check_unlabelled(&self, drive: &Candidate<'_, W>) -> Result<(), PoolError> {
        let Some(opened) = drive.drive else {
            return Ok(());
        };
        let label = Lane::<W>::probe(&self.world, opened).await?;
        if let Some(label) = label {
            // That of the first lane.
            self.check_unused_elsewhere(drive.name, &label)?;
            self.check_unused(drive.name, &label)?;
        }
        if self.drives.lane().index == 0 {
            return Ok(());
        }
        match self.own_label(opened).await? {
            Some(label) => self.check_unused(drive.name, &label),
            None => Ok(()),
        }
    }

    /// That this lane does not use the drive, nor another pool.
    fn check_unused(&self, name: &str, label: &LabelSummary) -> Result<(), PoolError> {
        if !self.drives.has_use_for(label) {
            return Ok(());
        }
        let context = format!(
            "drive '{name}' belongs to pool '{}' already; it is not taken for pool '{}'",
            label.pool_name,
            self.drives.name()
        );
        Err(PoolError::new(PoolErrorKind::Exists, context))
    }
}
