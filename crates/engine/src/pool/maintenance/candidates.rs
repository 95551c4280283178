//! Judges drives before they are added, by the labels on them: `Candidates`. Every lane is asked
//! before the first one adds them, so nothing changes here.

use crate::drive::Drive;
use crate::drives::Drives;
use crate::pool::label_reads::read_slots;
use crate::pool::{LabelSummary, Lane, NamedDrive, PoolError, PoolErrorKind};
use crate::world::World;
use std::rc::Rc;
use std::time::Duration;

/// How often, and how far apart, a label is looked for that is being written.
const LABEL_LOOKS: u32 = 10;
const LABEL_PAUSE: Duration = Duration::from_millis(5);

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

/// The labels of drives that may be added.
pub(super) struct Candidates<'a, W: World> {
    drives: &'a Rc<Drives<W>>,
}

impl<'a, W: World> Candidates<'a, W> {
    pub(super) fn of(drives: &'a Rc<Drives<W>>) -> Self {
        Candidates { drives }
    }

    /// That a drive can be read, and that no label on it says that somebody uses it.
    pub(super) async fn check_unlabelled(&self, drive: &Candidate<'_, W>) -> Result<(), PoolError> {
        let Some(opened) = drive.drive else {
            return Ok(());
        };
        let label = Lane::<W>::probe(self.drives.world(), opened).await?;
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

    /// The label that the first lane has on a drive. Others look for it while the first
    /// may be writing the next, so they look again.
    pub(super) async fn label_of_first_lane(
        &self,
        drive: &W::Drive,
    ) -> Result<Option<LabelSummary>, PoolError> {
        let mut looks = match self.drives.lane().index {
            0 => 1,
            _ => LABEL_LOOKS,
        };
        loop {
            let found = Lane::<W>::probe(self.drives.world(), drive).await?;
            looks -= 1;
            if found.is_some() || looks == 0 {
                return Ok(found);
            }
            self.drives.world().sleep(LABEL_PAUSE).await;
        }
    }

    /// What the label says that this lane has on a drive: it may be in use here as another
    /// than the first lane takes it for.
    pub(super) async fn own_label(
        &self,
        drive: &W::Drive,
    ) -> Result<Option<LabelSummary>, PoolError> {
        let part = self.drives.identity().part();
        let label = read_slots(self.drives.world(), drive, part).await?;
        let label = label.and_then(|label| LabelSummary::of(&label));
        let planted = self.drives.world().planted("drive in two places of a lane");
        Ok(label.filter(|label| label.pool_uuid == self.drives.uuid() && !planted))
    }

    /// That no other lane uses a drive which the first one has let go of: it would be
    /// another in each.
    ///
    /// # Errors
    /// `Exists` when one does.
    pub(super) fn check_unused_elsewhere(
        &self,
        name: &str,
        label: &LabelSummary,
    ) -> Result<(), PoolError> {
        let lane = self.drives.lane();
        let planted = self.drives.world().planted("drive in two places of a lane");
        let is_asked = lane.index == 0 && lane.registry.lanes() > 1 && !planted;
        let user = lane.registry.user_beside(lane.index, label.drive_uuid);
        match user.filter(|_| is_asked) {
            None => Ok(()),
            Some(user) => Err(PoolError::new(
                PoolErrorKind::Exists,
                format!(
                    "drive '{name}' is in use in lane {user} of pool '{}': run `ashlar drive fail \
                     {name}` before you add it",
                    self.drives.name()
                ),
            )),
        }
    }
}
