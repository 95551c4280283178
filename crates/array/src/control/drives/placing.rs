//! Where new drives are: files and devices of a server, media of the simulator.

use super::{NewDrive, Recorded};
use crate::control::{ArrayError, ControlPlane};
use crate::pool::NewDrives;
use engine::World;
use engine::pool::PoolInfo;
use std::future::Future;
use std::sync::Arc;

/// Finds places for new drives.
pub trait Placing<W: World>: Send + Sync + 'static {
    /// New drives at their places, for a pool to take.
    type Drives: NewDrives<W> + Send;

    /// New drives for a pool, where they may be. The drive called `replaced` is about to go.
    ///
    /// # Errors
    /// One may not be there.
    fn place(
        &self,
        info: &PoolInfo,
        new: Vec<NewDrive>,
        replaced: Option<&str>,
    ) -> impl Future<Output = Result<Self::Drives, ArrayError>> + Send;
}

impl<W: World> ControlPlane<W> {
    /// The same, for a pool of this array, which keeps a record of them.
    ///
    /// # Errors
    /// One may not be there, or failed in another pool.
    pub(in crate::control) async fn place<P: Placing<W>>(
        self: &Arc<Self>,
        placing: &P,
        info: &PoolInfo,
        new: Vec<NewDrive>,
        replaced: Option<&str>,
    ) -> Result<Recorded<W, P::Drives>, ArrayError> {
        for drive in &new {
            self.check_not_failed_elsewhere(&drive.name, &info.name)
                .await?;
        }
        let placed = placing.place(info, new.clone(), replaced).await?;
        Ok(Recorded::new(Arc::clone(self), &info.name, &new, placed))
    }

    /// Takes all places but that of `new` off the record where a drive of its name was: it has
    /// replaced that one.
    pub(super) async fn forget_other_places(&self, pool: &str, new: &NewDrive) {
        let path = self.places().data().join(&new.path);
        let mut kept = self.places().added().clone();
        let all = kept.len();
        let is_other = |drive: &super::AddedDrive| {
            drive.pool == pool && drive.name == new.name && drive.path != path
        };
        kept.retain(|drive| !is_other(drive));
        if kept.len() < all
            && let Err(error) = self.places().keep(kept).await
        {
            tracing::warn!("where drive {} was stays on record: {error}", new.name);
        }
    }
}
