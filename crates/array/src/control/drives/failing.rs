//! Takes drives of a pool out of use.

use crate::control::{ArrayError, ArrayErrorKind, ControlPlane};
use engine::World;
use std::sync::Arc;

impl<W: World> ControlPlane<W> {
    /// Takes a drive out of use; a spare is free then, and forgotten.
    ///
    /// # Errors
    /// No such drive, it has failed and left its pool, or its pool can't do without it.
    pub async fn fail_drive(self: &Arc<Self>, name: String) -> Result<(), ArrayError> {
        let member = self.change(move |array| async move {
            let (info, member) = match array.drive(&name).await {
                Err(error) if error.kind == ArrayErrorKind::NotFound => {
                    return Err(array.has_failed(&name).await?.unwrap_or(error));
                }
                found => found?,
            };
            array.pool_of(&info.name)?.fail_drive(&member).await?;
            let is_spare = info.spares.iter().any(|spare| spare.uuid == member.uuid);
            Ok((member, is_spare))
        });
        let (member, is_spare) = member.await?;
        match is_spare {
            true => self.drive_is_replaced(&member.uuid.to_string()).await,
            false => self.note_drives_and_warn().await,
        }
        self.follow_departures().await;
        Ok(())
    }

    /// That a drive which no pool has has failed before, if it has.
    async fn has_failed(&self, name: &str) -> Result<Option<ArrayError>, ArrayError> {
        let failed = self.departed_failure(name).await?;
        Ok(failed.map(|(info, drive)| {
            let who = match drive.stand_in(&info) {
                Some(member) => format!(", and {} stands in for it", member.name),
                None => String::new(),
            };
            let context = format!(
                "drive {name} has failed already{who}: `ashlar drive replace {name}` puts another \
                 in its stead, `ashlar drive remove {name}` forgets it"
            );
            ArrayError::new(ArrayErrorKind::Busy, context)
        }))
    }

    /// Whether the group of a drive keeps some redundancy without it. A spare's pool does.
    ///
    /// # Errors
    /// No such drive, or its pool can't do without it.
    pub async fn is_covered_without(&self, name: &str) -> Result<bool, ArrayError> {
        let (info, member) = self.drive(name).await?;
        self.pool_of(&info.name)?.is_covered_without(&member).await
    }
}
