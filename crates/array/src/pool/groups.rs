//! Changes the level of a pool's RAID groups, and removes them.

use super::Pool;
use crate::error::ArrayError;
use engine::{Lane, Level, World};

impl<W: World> Pool<W> {
    /// Gives a group another level, in the background.
    ///
    /// # Errors
    /// No such group; a level that it can't have or go to; it is being changed; no room.
    pub async fn convert_group(&self, index: u16, level: Level) -> Result<(), ArrayError> {
        let check = move |_, lane: Lane<W>| async move {
            Ok(lane.check_convert_group(index, level).await?)
        };
        self.ask(check).await?;
        let visit =
            move |_, lane: Lane<W>| async move { Ok(lane.convert_group(index, level).await?) };
        self.visit_all(visit).await
    }

    /// Has a group leave, in the background.
    ///
    /// # Errors
    /// No such group; it is the last, or is being changed; no room for what it holds; without
    /// force, the pool would be nearly full then.
    pub async fn remove_group(&self, index: u16, by_force: bool) -> Result<(), ArrayError> {
        let check =
            move |_, lane: Lane<W>| async move { Ok(lane.check_remove_group(index).await?) };
        self.ask(check).await?;
        if !by_force {
            self.check_room_without(index).await?;
        }
        let visit = move |_, lane: Lane<W>| async move { Ok(lane.remove_group(index).await?) };
        self.visit_all(visit).await
    }
}
