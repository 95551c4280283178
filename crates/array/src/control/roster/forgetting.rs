//! Forgets failed drives that others stand in for, and keeps their names from other pools.

use super::known::KnownDrive;
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane};
use engine::World;
use engine::pool::MemberState;
use std::sync::Arc;

impl<W: World> ControlPlane<W> {
    /// Forgets a failed drive that another stands in for.
    ///
    /// # Errors
    /// There is none of that name, it is in use, nothing stands in for it yet, or it can't be kept.
    pub async fn remove_drive(self: &Arc<Self>, name: &str) -> Result<(), ArrayError> {
        let drive = self.removable(name).await?;
        self.settle_settings().await?;
        let forgotten = |known: &mut Vec<KnownDrive>| {
            known.retain(|known| known.uuid != drive.uuid);
        };
        let turn = self.roster.turn().await;
        self.roster.keep(self.runtime(), turn, forgotten).await
    }

    /// The failed drive of this name that can be forgotten.
    ///
    /// # Errors
    /// As [`ControlPlane::remove_drive`].
    pub async fn removable(&self, name: &str) -> Result<KnownDrive, ArrayError> {
        if let Some((_, drive)) = self.departed_failure(name).await? {
            return Ok(drive);
        }
        let (info, member) = self.drive(name).await?;
        let why = match member.state {
            MemberState::Failed => format!(
                "drive {name} has failed, and no other stands in for it: `ashlar drive replace \
                 {name}`, or add a spare to pool {} first",
                info.name
            ),
            MemberState::Spare => format!(
                "drive {name} is a spare of pool {}: `ashlar drive fail {name}` lets it go",
                info.name
            ),
            _ => format!(
                "drive {name} is in use in pool {}: only a failed drive can be removed",
                info.name
            ),
        };
        Err(ArrayError::new(ArrayErrorKind::Busy, why))
    }

    /// That no pool but `pool` had a drive of this name which has failed: it would be listed
    /// twice.
    pub(in crate::control) async fn check_not_failed_elsewhere(
        &self,
        name: &str,
        pool: &str,
    ) -> Result<(), ArrayError> {
        match self.departed_failure(name).await? {
            Some((info, _)) if info.name != pool => {
                let other = info.name;
                let context = format!(
                    "a drive {name} of pool {other} has failed: choose another name, or `ashlar \
                     drive remove {name}` first"
                );
                Err(ArrayError::new(ArrayErrorKind::Exists, context))
            }
            _ => Ok(()),
        }
    }
}
