//! New drives and groups for pools, at places of this machine.

use super::{Array, ArrayError, NewDrive, NewGroup};
use ::array::control::Replaced;
use std::sync::Arc;

impl Array {
    /// As the control plane does it.
    ///
    /// # Errors
    /// As there.
    pub async fn add_spare(
        self: &Arc<Self>,
        pool: String,
        new: NewDrive,
    ) -> Result<(), ArrayError> {
        self.control
            .add_spare(pool, new, self.openings.bays())
            .await
    }

    /// The same.
    ///
    /// # Errors
    /// As there.
    pub async fn replace_drive(
        self: &Arc<Self>,
        name: String,
        new: Option<NewDrive>,
    ) -> Result<Replaced, ArrayError> {
        self.control
            .replace_drive(name, new, self.openings.bays())
            .await
    }

    /// The same.
    ///
    /// # Errors
    /// As there.
    pub async fn add_group(
        self: &Arc<Self>,
        pool: String,
        group: NewGroup,
    ) -> Result<(), ArrayError> {
        self.control
            .add_group(pool, group, self.openings.bays())
            .await
    }
}
