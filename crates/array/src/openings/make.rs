//! Makes the pools that aren't there, and takes back those that can't be made.
//!
//! Invariants:
//! - A pool is on record as being made, with all that this may leave, before anything of it is made.
//!   It is on record as made once all of it is there, and before anybody uses it.
//! - Nothing is made of a drive that carries a label, or anything else that somebody may miss.

use super::Openings;
use super::bays::OpenedDrive;
use super::error::{OpeningError, OpeningErrorKind};
use super::made::MadePool;
use super::open::lanes_of;
use super::pool_plan::{Action, PoolPlan};
use super::taking_back::LabelOwner;
use crate::bays::blank;
use crate::pool::opening::{Opening, doors};
use crate::shard::{ShardHandle, ShardState};
use base::Uuid;
use engine::World;
use engine::pool::{Lane, PoolSpec, draw_uuid};
use std::path::PathBuf;
use std::rc::Rc;

impl<W: World> Openings<W> {
    /// Makes the pools that aren't there.
    ///
    /// # Errors
    /// What stands in the way. The pool that fails is taken back then. The record says that it is being
    /// made, and what is left of it: the caller takes the pool out of the settings, and has the record
    /// forget it.
    pub async fn make(
        &self,
        plans: Vec<PoolPlan>,
        shards: &[ShardHandle<W>],
    ) -> Result<(), OpeningError> {
        for plan in plans {
            if let Action::Make { new_files } = &plan.action {
                self.make_on_record(&plan, new_files, shards).await?;
            }
        }
        Ok(())
    }

    async fn make_on_record(
        &self,
        plan: &PoolPlan,
        new_files: &[(PathBuf, u64)],
        shards: &[ShardHandle<W>],
    ) -> Result<(), OpeningError> {
        let (pool, lanes) = (&plan.spec, lanes_of(plan, shards));
        let files: Vec<PathBuf> = new_files.iter().map(|(path, _)| path.clone()).collect();
        let of_before = paths_of_before(plan, &files);
        let (spec, uuid) = self.identified(pool, &shards[plan.shards[0]]).await?;
        let being_made = MadePool::BeingMade {
            new_files: files.clone(),
            of_before: of_before.clone(),
            uuid: Some(uuid.to_string()),
        };
        self.note_making(&pool.name, being_made).await?;
        let drives: Vec<String> = pool.drives().cloned().collect();
        let (created, filled) = self.bays.make_files(new_files.to_vec()).await;
        // Without it, any of them may be there.
        let created = created.unwrap_or(files);
        let recorded = async {
            filled.map_err(|why| OpeningError::new(OpeningErrorKind::Drive, why))?;
            self.make_one(plan, &spec, &lanes, shards).await?;
            let made = MadePool::Made {
                uuid: uuid.to_string(),
                drives: drives.clone(),
            };
            let kept = self.made.set(&pool.name, Some(made)).await;
            kept.map_err(OpeningError::record)
        };
        if let Err(error) = recorded.await {
            // With a shard that has stopped, its lane is closed.
            let _ = lanes.close().await;
            // Those of before were empty.
            self.bays.reached("pool that can't be made taken back");
            let owner = LabelOwner::new(&pool.name, Some(uuid));
            self.unmake(&shards[0], owner, (created, of_before)).await;
            return Err(error);
        }
        tracing::info!("made pool {} of {}", pool.name, drives.join(", "));
        Ok(())
    }

    /// Puts on record that a pool is being made.
    async fn note_making(&self, name: &str, being_made: MadePool) -> Result<(), OpeningError> {
        if self.bays.planted("pool is made before that is on record") {
            return Ok(());
        }
        let noted = self.made.set(name, Some(being_made)).await;
        noted.map_err(OpeningError::record)
    }

    /// What a pool of the settings is to be, with its identity. That is on record before anything is
    /// written: what a making leaves is known by it.
    async fn identified(
        &self,
        pool: &site::Pool,
        shard: &ShardHandle<W>,
    ) -> Result<(PoolSpec, Uuid), OpeningError> {
        let spec = self.bays.suit(spec_of(pool)).map_err(OpeningError::pool)?;
        let asked = spec.clone();
        let draw = move |state: Rc<ShardState<W>>| async move { draw_uuid(state.world(), &asked) };
        let uuid = shard.call(draw).await?;
        let spec = PoolSpec {
            uuid: Some(uuid),
            ..spec
        };
        Ok((spec, uuid))
    }

    /// Takes back what there is of a pool that could not be made, and notes what is left. Nothing is
    /// taken back where the record may say that the pool is made: that stays, and the next start
    /// sees to it.
    async fn unmake(
        &self,
        shard: &ShardHandle<W>,
        owner: LabelOwner,
        paths: (Vec<PathBuf>, Vec<PathBuf>),
    ) {
        let name = owner.name.clone();
        let taken_back = async {
            if !self
                .bays
                .planted("pool taken back that is on record as made")
            {
                self.made.settle().await?;
            }
            let left = self.take_back(shard, owner, paths).await;
            let left = left.map_err(|gone| gone.to_string())?;
            self.made.set(&name, Some(left)).await
        };
        if let Err(why) = taken_back.await {
            tracing::error!("pool {name}, which could not be made, is not taken back: {why}");
        }
    }

    /// Makes one pool, whose files are there.
    async fn make_one(
        &self,
        plan: &PoolPlan,
        spec: &PoolSpec,
        lanes: &Opening<W>,
        shards: &[ShardHandle<W>],
    ) -> Result<(), OpeningError> {
        let (mut drives, missing) = self.open_those_there(&plan.places).await;
        if let Some(missing) = missing.first() {
            return Err(OpeningError::pool(missing.to_string()));
        }
        let pool = &plan.spec;
        let looked_at = drives.clone();
        let visit =
            move |state: Rc<ShardState<W>>| async move { check_blank(&state, &looked_at).await };
        let blank = shards[plan.shards[0]].call(visit).await?;
        blank.map_err(OpeningError::pool)?;
        let mut groups = Vec::new();
        for group in &pool.groups {
            let rest = drives.split_off(group.drives.len().min(drives.len()));
            groups.push((group.protection(), std::mem::replace(&mut drives, rest)));
        }
        let (groups, spares) = (groups, drives);
        let created = lanes.create(spec, &groups, &spares).await;
        let info = created.map_err(|why| OpeningError::not_made(&pool.name, why))?;
        // Nothing else is on record.
        assert_eq!(Some(info.uuid), spec.uuid, "a pool of another identity");
        Ok(())
    }
}

/// What a pool of a site file is to be.
fn spec_of(pool: &site::Pool) -> PoolSpec {
    let mut spec = PoolSpec::new(&pool.name, pool.groups[0].level);
    spec.stripe_unit_bytes = pool.stripe_unit_bytes;
    spec.page_bytes = pool.page_bytes;
    spec.log_bytes = pool.log_bytes;
    spec.log_group = pool.log_group();
    spec
}

/// Where a pool has drives that were there before it is made.
fn paths_of_before(plan: &PoolPlan, new_files: &[PathBuf]) -> Vec<PathBuf> {
    let paths = plan.places.iter().map(|place| place.path.clone());
    paths.filter(|path| !new_files.contains(path)).collect()
}

/// That drives which are about to be a pool's are still empty: they were looked at, and closed.
async fn check_blank<W: World>(
    state: &ShardState<W>,
    drives: &[OpenedDrive<W>],
) -> Result<(), String> {
    for door in doors(state, drives) {
        if Lane::probe(state.world(), &door.drive)
            .await
            .is_ok_and(|label| label.is_some())
        {
            continue;
        }
        match blank::is_blank(state.world(), &door.drive).await {
            Ok(true) => {}
            Ok(false) => return Err(format!("drive {} {}", door.name, blank::REMEDY)),
            Err(error) => return Err(format!("drive {}: {error}", door.name)),
        }
    }
    Ok(())
}
