//! Adds RAID groups to pools.
//!
//! Invariant: a refused group leaves nothing behind: no file, no record.

use super::{Array, ArrayError, NewDrive};
use engine::pool::Level;
use std::sync::Arc;

/// A group to add to a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGroup {
    /// Its level; that of the pool's first group unless said otherwise.
    pub level: Option<Level>,
    /// Its drives, by place.
    pub drives: Vec<NewDrive>,
    /// It may survive fewer lost drives than the groups of the pool do.
    pub by_force: bool,
}

impl Array {
    /// Adds a group of new drives.
    ///
    /// # Errors
    /// No such pool; a name or a drive is taken; drives that don't make a group of that
    /// level, or are too small; a level that is weaker than the pool's, without force.
    pub async fn add_group(
        self: &Arc<Self>,
        pool: String,
        group: NewGroup,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let (_, info) = array.pool(&pool).await?;
            array.check_new_drives(&group.drives).await?;
            let new = array.place(&info, group.drives, None).await?;
            let pool = array.pool_of(&pool)?;
            pool.add_group(group.level, &new, group.by_force).await
        })
        .await
    }
}
