//! Says which pool has the drive at a path.

use super::places::{AddedDrive, names};
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane};
use engine::World;
use std::path::Path;

impl<W: World> ControlPlane<W> {
    /// That what is at `path` is no drive of another pool than `pool`, be that open, not open, or
    /// about to be made.
    ///
    /// # Errors
    /// It is.
    pub async fn check_unused(&self, path: &Path, pool: &str) -> Result<(), ArrayError> {
        let user = self.user_at(path).await?.filter(|user| user.pool != pool);
        user.map_or(Ok(()), |user| {
            let (path, name) = (path.display(), &user.name);
            let context = format!("{path} is drive {name} of pool {}", user.pool);
            Err(ArrayError::new(ArrayErrorKind::Exists, context))
        })
    }

    /// The drive that is at `path`: one that an open pool has, or one that records name of a pool
    /// that is not open.
    async fn user_at(&self, path: &Path) -> Result<Option<AddedDrive>, ArrayError> {
        let pools = self.pools().await?;
        let is_had = |drive: &AddedDrive| {
            let pool = pools.iter().find(|(_, info)| info.name == drive.pool);
            pool.is_none_or(|(_, info)| {
                let place = self.places().find_of(&drive.pool, &drive.name);
                let is_at = place.is_some_and(|place| place.path == drive.path);
                is_at && names(info).any(|name| *name == drive.name)
            })
        };
        let mut all = self.places().recorded_at(path).into_iter();
        Ok(all.find(is_had))
    }
}
