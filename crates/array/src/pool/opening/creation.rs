//! Creates the lanes of a pool.
//!
//! Invariants:
//! - The first lane is created last. So a creation that was cut short has left no drive with a label
//!   of the first lane. Nobody takes what it has left for a pool, and it can be begun again.
//! - Where a lane can't be created, those that are there are closed again.

use super::{NotOpened, Opening, PoolDrive, bring_home, doors};
use crate::shard::ShardState;
use engine::lane::LaneSlot;
use engine::pool::{PoolInfo, PoolSpec};
use engine::raid::Protection;
use engine::{Lane, World};
use std::rc::Rc;

impl<W: World> Opening<W> {
    /// Creates all lanes, over drives without labels.
    ///
    /// # Errors
    /// What the first lane says that can't be created. No lane is open then; the drives may have
    /// labels.
    pub async fn create<D: PoolDrive<W>>(
        &self,
        spec: &PoolSpec,
        groups: &[(impl Into<Protection> + Copy, Vec<D>)],
        spares: &[D],
    ) -> Result<PoolInfo, NotOpened> {
        let groups = groups.iter();
        let groups: Vec<(Protection, Vec<D>)> = groups
            .map(|(of, drives)| ((*of).into(), drives.clone()))
            .collect();
        let created = self.create_lanes(spec, &groups, spares).await;
        if created.is_err() {
            // The failure says why there is no pool.
            let _ = self.close().await;
        }
        self.whole(created?)
    }

    async fn create_lanes<D: PoolDrive<W>>(
        &self,
        spec: &PoolSpec,
        groups: &[(Protection, Vec<D>)],
        spares: &[D],
    ) -> Result<Vec<PoolInfo>, NotOpened> {
        let slots = LaneSlot::all(self.shards.len() as u16);
        let mut infos = Vec::new();
        for (slot, shard) in slots.into_iter().zip(&self.shards).rev() {
            let (spec, paces) = (spec.clone(), self.paces);
            let (groups, spares) = (groups.to_vec(), spares.to_vec());
            let visit = move |state: Rc<ShardState<W>>| async move {
                let group = |(of, drives): &(Protection, Vec<D>)| (*of, doors(&state, drives));
                let groups = groups.iter().map(group).collect();
                let (world, spares) = (state.world().clone(), doors(&state, &spares));
                let create = Lane::create_lane(world, slot, spec, groups, spares);
                bring_home(&state, paces, create).await
            };
            infos.insert(0, shard.call(visit).await??);
        }
        Ok(infos)
    }
}
