//! Changes the level of RAID groups, and removes groups.

use super::{ArrayError, ControlPlane};
use engine::World;
use engine::pool::Level;
use std::sync::Arc;

impl<W: World> ControlPlane<W> {
    /// Gives a group another level, in the background.
    ///
    /// # Errors
    /// No such pool or group; a level that it can't have or go to; it is being changed;
    /// no room.
    pub async fn convert_group(
        self: &Arc<Self>,
        pool: String,
        index: u16,
        level: Level,
    ) -> Result<(), ArrayError> {
        self.change(
            move |array| async move { array.pool_of(&pool)?.convert_group(index, level).await },
        )
        .await
    }

    /// Has a group leave, in the background; its drives are forgotten then.
    ///
    /// # Errors
    /// No such pool or group; it is the last, or is being changed; no room for what it
    /// holds; without force, a pool that is nearly full then.
    pub async fn remove_group(
        self: &Arc<Self>,
        pool: String,
        index: u16,
        by_force: bool,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            array.pool_of(&pool)?.remove_group(index, by_force).await
        })
        .await?;
        self.follow_departures().await;
        Ok(())
    }
}
