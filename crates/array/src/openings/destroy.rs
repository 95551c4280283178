//! Destroys pools, and ends destructions that a crash has cut short.
//!
//! Invariants:
//! - A pool that is being destroyed is on record as such before anything of it goes. A destruction
//!   that a crash cut short is ended by the next start, and nobody sees the pool again.
//! - The record forgets the pool last: when no settings name it, and no drive.

use super::Openings;
use super::create::without;
use super::error::OpeningError;
use super::made::MadePool;
use super::taking_back::LabelOwner;
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use crate::pool::opening::Opening;
use crate::shard::ShardHandle;
use engine::World;
use engine::pool::PoolInfo;
use std::sync::Arc;

impl<W: World> Openings<W> {
    /// Destroys a pool that holds no volumes: its drives are empty afterwards. What is in its trash goes
    /// with it.
    ///
    /// # Errors
    /// There is no such pool, it holds volumes, a job or another change is at work on it, or that can't
    /// be kept.
    pub async fn destroy(
        self: &Arc<Self>,
        array: &Arc<ControlPlane<W>>,
        name: String,
    ) -> Result<(), ArrayError> {
        let openings = Arc::clone(self);
        array
            .change(move |array| async move { openings.destroy_in_turn(&array, &name).await })
            .await
    }

    async fn destroy_in_turn(
        &self,
        array: &Arc<ControlPlane<W>>,
        name: &str,
    ) -> Result<(), ArrayError> {
        let info = check_destroyable(array, name).await?;
        let lanes = Opening::new(name.to_owned(), array.homes(name)?);
        // Nobody can ask it afterwards.
        array.record_last_events(name).await?;
        let destroyed = MadePool::BeingDestroyed {
            uuid: info.uuid.to_string(),
            drives: array.places().of_pool(name),
        };
        let marked = self.made.set(name, Some(destroyed)).await;
        marked.map_err(OpeningError::record)?;
        array.pool_is_gone(name);
        let gone = async {
            lanes.close().await?;
            self.wipe(name, &array.shards()[0]).await
        };
        array.wait_for(name, gone).await?;
        array.forget_drives_of(name).await?;
        let settings = without(&array.settings(), name);
        array.keep_settings(settings).await?;
        let forgotten = self.made.set(name, None).await;
        forgotten.map_err(OpeningError::record)?;
        array.note_drives_and_warn().await;
        tracing::info!("pool {name} is destroyed: its drives are free");
        Ok(())
    }

    /// Ends what destructions of pools a crash has cut short, and gives the names of those pools.
    /// Records other than that of pools still name them.
    ///
    /// # Errors
    /// A shard has stopped, or a record can't be read.
    pub(super) async fn end_destructions(
        &self,
        shard: &ShardHandle<W>,
    ) -> Result<Vec<String>, OpeningError> {
        let is_going = |state: &MadePool| matches!(state, MadePool::BeingDestroyed { .. });
        let made = self.made.now();
        let going = made.pools.iter().filter(|(_, state)| is_going(state));
        let going: Vec<String> = going.map(|(name, _)| name.clone()).collect();
        for name in &going {
            if !self.bays.planted("destruction that was cut short stays so") {
                self.wipe(name, shard).await?;
            }
            self.bays.reached("destruction of a pool ended at a start");
            tracing::info!("pool {name}: its destruction was cut short, and is ended");
        }
        Ok(going)
    }

    /// Wipes the labels of a pool that is being destroyed.
    async fn wipe(&self, name: &str, shard: &ShardHandle<W>) -> Result<(), OpeningError> {
        let Some(MadePool::BeingDestroyed { uuid, drives }) = self.made.pool(name) else {
            return Ok(());
        };
        let owner = LabelOwner::on_record(name, Some(&uuid))?;
        // The pool is gone all the same: one that keeps its label may be away for good.
        self.unlabel(shard, owner, drives).await?;
        Ok(())
    }
}

/// The pool of this name, that it holds no volumes, and that nothing is at work on it.
///
/// # Errors
/// As [`Openings::destroy`].
pub async fn check_destroyable<W: World>(
    array: &ControlPlane<W>,
    name: &str,
) -> Result<PoolInfo, ArrayError> {
    let (_, info) = array.pool(name).await?;
    array.check_turn(name)?;
    check_idle(array, name)?;
    check_empty(array, name).await?;
    Ok(info)
}

/// That no job has to do with a pool.
fn check_idle<W: World>(array: &ControlPlane<W>, name: &str) -> Result<(), ArrayError> {
    let jobs = array.jobs().list();
    let is_at_work = |job: &&api::Job| {
        !job.state.is_ended() && (job.pool == name || job.to_pool.as_deref() == Some(name))
    };
    let Some(job) = jobs.iter().find(is_at_work) else {
        return Ok(());
    };
    let context = format!(
        "job {} is at work on pool {name}: wait for it, or `ashlar job cancel {}`",
        job.id, job.id
    );
    Err(ArrayError::new(ArrayErrorKind::Busy, context))
}

/// Volumes that a refusal names.
const NAMED_MAX: usize = 3;

/// That a pool holds no volume but in its trash.
async fn check_empty<W: World>(array: &ControlPlane<W>, name: &str) -> Result<(), ArrayError> {
    let volumes = array.volumes().await?;
    let is_on_its_way = |volume: &&PlacedVolume| {
        let transit = volume.properties.transit.as_ref();
        transit.is_some_and(|transit| transit.pool_name == name)
    };
    let held: Vec<&str> = volumes
        .iter()
        // One that was on its way here when the array was cut off is here still.
        .filter(|volume| volume.pool == name || is_on_its_way(volume))
        .map(|volume| volume.info.name.as_str())
        .collect();
    if held.is_empty() {
        return Ok(());
    }
    let named = held.iter().take(NAMED_MAX).copied().collect::<Vec<_>>();
    let more = match held.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let context = format!(
        "pool {name} holds {}{more}: delete or move them first",
        named.join(", ")
    );
    Err(ArrayError::new(ArrayErrorKind::Busy, context))
}
