//! What a start does with pools before there is an array: what the stop before left of them goes, and
//! those that are there are opened.
//!
//! Invariants:
//! - A pool whose making or destruction was cut short is no pool of the array. Its drives are free
//!   before any record forgets it.
//! - The record of pools forgets it last. So whoever is cut short here begins again.

use super::Openings;
use super::create::without;
use super::error::OpeningError;
use super::open::{Outcome, take_note};
use super::plan::KnownPools;
use super::pool_plan::PoolPlan;
use super::unlisted::Pools;
use crate::control::{AddedDrive, Configuration, ControlPlane, Roster};
use crate::records::Store;
use crate::shard::{ShardGone, ShardHandle};
use engine::World;
use futures_util::future::join_all;
use site::Site;
use std::sync::Arc;

/// The records that a start has read, and what keeps them.
pub struct KeptRecords<'a> {
    /// What the array is to be.
    pub described: &'a mut Site,
    pub configuration: Option<&'a mut Configuration>,
    pub store: &'a dyn Store<Configuration>,
    /// The drives that the API added.
    pub added: &'a mut Vec<AddedDrive>,
    pub drives: &'a dyn Store<Vec<AddedDrive>>,
}

/// What came of opening the pools of a start.
pub struct Opened {
    /// What is to become of each.
    pub plans: Vec<PoolPlan>,
    outcomes: Vec<Result<Option<Outcome>, ShardGone>>,
    unlisted: Pools,
    /// There was a configuration, and it is gone.
    pub is_lost: bool,
    /// The start before was cut short.
    pub was_cut: bool,
}

impl<W: World> Openings<W> {
    /// Opens the pools that are there, side by side. `gone` are pools that are no more, and
    /// `is_kept` says whether there is a configuration, and whether there was one in another form.
    ///
    /// # Errors
    /// Every drive that stands in the way of making a pool, or a shard has stopped.
    pub async fn open_all(
        &self,
        known: &KnownPools<'_>,
        (roster, gone): (&Roster, &[String]),
        shards: &[ShardHandle<W>],
        (is_kept, was_kept): (bool, bool),
    ) -> Result<Opened, OpeningError> {
        let plans = self.plan(known, shards).await?;
        let was_cut = known.made.is_cut_short(is_kept || was_kept);
        let lost = (!is_kept, was_cut);
        let unlisted = self.unlisted(known, (roster, gone), &shards[0], lost);
        let unlisted = unlisted.await?;
        let outcomes = join_all(plans.iter().map(|plan| self.open(plan, shards))).await;
        let is_elsewhere = |plan: &PoolPlan| plan.comes_from_elsewhere(known.made);
        let is_unknown = !unlisted.is_empty() && known.made.pools.is_empty();
        Ok(Opened {
            is_lost: known.made.is_configured || is_unknown || plans.iter().any(is_elsewhere),
            plans,
            outcomes,
            unlisted,
            was_cut,
        })
    }

    /// Has the array know what came of that.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn take_note_of_all(
        &self,
        opened: &mut Opened,
        array: &Arc<ControlPlane<W>>,
    ) -> Result<(), OpeningError> {
        array.note_unlisted(std::mem::take(&mut opened.unlisted));
        let outcomes = std::mem::take(&mut opened.outcomes);
        for (plan, outcome) in opened.plans.iter().zip(outcomes) {
            if let Some(outcome) = outcome? {
                take_note(plan, outcome, array, array.shards()).await?;
            }
        }
        Ok(())
    }

    /// Ends the destroying of pools that was cut short, and takes back the making of others; nothing
    /// says any more that the array has them. Gives which pools are gone.
    ///
    /// # Errors
    /// A record can't be written, or a shard has stopped.
    pub async fn forget_gone(
        &self,
        shard: &ShardHandle<W>,
        mut kept: KeptRecords<'_>,
    ) -> Result<Vec<String>, OpeningError> {
        let destroyed = self.end_destructions(shard).await?;
        let is_destroyed = |drive: &AddedDrive| destroyed.contains(&drive.pool);
        if kept.added.iter().any(is_destroyed) {
            kept.added.retain(|drive| !is_destroyed(drive));
            let written = kept.drives.keep(kept.added.clone()).await;
            written.map_err(OpeningError::record)?;
        }
        let mut gone = destroyed;
        gone.extend(self.take_back_makings(shard).await?);
        for name in &gone {
            if self.bays.planted("settings name a pool that is gone") {
                let forgotten = self.made.forget(name).await;
                forgotten.map_err(OpeningError::record)?;
                continue;
            }
            *kept.described = without(kept.described, name);
            if let Some(configuration) = &mut kept.configuration {
                configuration.settings = Some(Arc::new(kept.described.settings()));
                let written = kept.store.keep(configuration.clone()).await;
                written.map_err(OpeningError::record)?;
            }
            let forgotten = self.made.forget(name).await;
            forgotten.map_err(OpeningError::record)?;
        }
        Ok(gone)
    }
}
