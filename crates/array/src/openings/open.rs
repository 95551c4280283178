//! Opens the pools that are there, and has the array know what came of it.
//!
//! Invariants:
//! - A pool that can't be opened keeps no other from being opened.
//! - Two pools with a volume of one name are never both open.

use super::bays::{OpenedDrive, Patience};
use super::error::OpeningError;
use super::look::DrivePlace;
use super::made::MadePool;
use super::pool_plan::{Action, PoolPlan};
use super::{Openings, old_data};
use crate::control::{ControlPlane, MissingDrive, PlacedVolume};
use crate::pool::Paces;
use crate::pool::opening::{NotOpened, Opening};
use crate::shard::{ShardGone, ShardHandle, ShardState};
use engine::World;
use engine::drives::EventKind;
use std::rc::Rc;
use std::sync::Arc;

/// What came of opening a pool.
#[derive(Debug)]
pub enum Outcome {
    /// It is open, without these drives.
    Open(Vec<MissingDrive>),
    /// It is not, for these reasons.
    Closed(Vec<String>),
}

/// The lanes of a pool, on the shards that it is to be on, as fast as the settings say.
pub(super) fn lanes_of<W: World>(plan: &PoolPlan, shards: &[ShardHandle<W>]) -> Opening<W> {
    let homes = plan.shards.iter().map(|index| shards[*index].clone());
    Opening::new(plan.spec.name.clone(), homes.collect()).paced(Paces::of(&plan.spec))
}

impl<W: World> Openings<W> {
    /// Opens a pool that is there; nothing of one that is to be made.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn open(
        &self,
        plan: &PoolPlan,
        shards: &[ShardHandle<W>],
    ) -> Result<Option<Outcome>, ShardGone> {
        let mut missing = match &plan.action {
            Action::Open { missing, .. } => missing.clone(),
            Action::Refuse { why } => return Ok(Some(Outcome::Closed(why.clone()))),
            Action::Make { .. } => return Ok(None),
        };
        let (drives, unopened) = self.open_those_there(&plan.places).await;
        missing.extend(unopened);
        if let Some(why) = old_data::of_opened(plan, &drives, &missing) {
            return Ok(Some(Outcome::Closed(why)));
        }
        if let Some(why) = old_data::of_a_lane(plan, shards, &drives).await? {
            return Ok(Some(Outcome::Closed(why)));
        }
        let opened = match drives.is_empty() {
            true => Err(format!(
                "pool {}: none of its drives is there",
                plan.spec.name
            )),
            false => open_lanes(plan, shards, &drives).await?,
        };
        let members = match opened {
            Ok(members) => members,
            Err(why) => {
                let lines = missing.iter().map(MissingDrive::to_string);
                let why = why.lines().map(str::to_owned).chain(lines).collect();
                return Ok(Some(Outcome::Closed(why)));
            }
        };
        // What has left the pool is not missed. A spare that is away may be back, though.
        let is_missed = |drive: &&MissingDrive| members.contains(&drive.name);
        let missed = missing.iter().filter(is_missed).cloned().collect();
        tell_missed(plan, shards, missed).await?;
        Ok(Some(Outcome::Open(missing)))
    }

    /// Opens a pool that was not open so far, if it can be by now. It has to be settled then
    /// ([`ControlPlane::settle_late`]). It is never made.
    ///
    /// # Errors
    /// A shard has stopped, or a record can't be written.
    pub async fn open_late(
        self: &Arc<Self>,
        name: &str,
        array: &Arc<ControlPlane<W>>,
    ) -> Result<(), OpeningError> {
        let failed = array.failed_by_uuid();
        let planned = self.plan_one(array, name, &failed).await?;
        let planned = planned.map(|planned| planned.and_then(|plan| self.not_half_made(plan)));
        let plan = match planned {
            Some(Ok(plan)) => plan,
            None => return Ok(()),
            Some(Err(why)) => {
                array.pool_is_closed(name, why, None);
                return Ok(());
            }
        };
        let outcome = self.open(&plan, array.shards()).await?;
        let outcome = outcome.unwrap_or_else(|| {
            let why = "none of its drives is there now, and Ashlar does not create it again";
            Outcome::Closed(vec![format!("pool {name}: {why}")])
        });
        let _turn = self.noting.stand().await;
        take_note(&plan, outcome, array, array.shards()).await?;
        if !array.is_closed(name) {
            let (openings, known) = (Arc::clone(self), name.to_owned());
            let remembered = array
                .change(move |array| async move { Ok(openings.remember(&known, &array).await?) });
            remembered.await?;
            self.bays.reached("pool opened late");
            array.pool_is_settled(name, false);
        }
        Ok(())
    }

    /// Opens drives; those that can't be are given, too. Whoever looked at them just now may not have
    /// closed them yet.
    pub(super) async fn open_those_there(
        &self,
        places: &[DrivePlace],
    ) -> (Vec<OpenedDrive<W>>, Vec<MissingDrive>) {
        let mut patience = Patience::default();
        let (mut drives, mut missing) = (Vec::new(), Vec::new());
        for DrivePlace { name, path, .. } in places {
            match self.bays.open(path, &mut patience).await {
                Ok(open) => drives.push(OpenedDrive {
                    name: name.clone(),
                    open,
                }),
                Err(error) => {
                    let (path, why) = (path.clone(), error.to_string());
                    missing.push(MissingDrive::new(name.clone(), path, why));
                }
            }
        }
        (drives, missing)
    }

    /// Records an open pool that was made in another data directory: it is never made anew here, even
    /// when all of its drives are away.
    ///
    /// # Errors
    /// The record can't be written.
    pub async fn remember(&self, name: &str, array: &ControlPlane<W>) -> Result<(), OpeningError> {
        if self.made.pool(name).is_some() {
            return Ok(());
        }
        let Ok((_, info)) = array.pool(name).await else {
            return Ok(());
        };
        let drives = info.members.iter().chain(&info.spares);
        let known = MadePool::Made {
            uuid: info.uuid.to_string(),
            drives: drives.map(|member| member.name.clone()).collect(),
        };
        let kept = self.made.set(name, Some(known)).await;
        kept.map_err(OpeningError::record)
    }
}

/// Opens the lanes of a pool, and gives the names of its drives.
///
/// # Errors
/// A shard has stopped; inside, why the pool can't be opened.
async fn open_lanes<W: World>(
    plan: &PoolPlan,
    shards: &[ShardHandle<W>],
    drives: &[OpenedDrive<W>],
) -> Result<Result<Vec<String>, String>, ShardGone> {
    match lanes_of(plan, shards).open(drives).await {
        Ok(info) => {
            let members = info.members.into_iter();
            Ok(Ok(members.map(|member| member.name).collect()))
        }
        Err(NotOpened::Lane(error)) => Ok(Err(format!("pool {}: {error}", plan.spec.name))),
        Err(NotOpened::Shard(gone)) => Err(gone),
    }
}

/// What the log says of how a pool was left.
fn after(is_clean: bool) -> &'static str {
    match is_clean {
        true => "",
        false => ": it was not closed before, and is recovered from its log",
    }
}

/// Has the array know what came of opening a pool. One with a volume of the same name as
/// another pool's is closed again.
///
/// # Errors
/// A shard has stopped.
pub async fn take_note<W: World>(
    plan: &PoolPlan,
    outcome: Outcome,
    array: &Arc<ControlPlane<W>>,
    shards: &[ShardHandle<W>],
) -> Result<(), OpeningError> {
    let name = &plan.spec.name;
    let (why, clash) = match outcome {
        Outcome::Closed(why) => (why, None),
        Outcome::Open(missing) => match twice(name, array).await? {
            None => {
                array.pool_is_open(name, plan.shards.clone(), missing);
                if let Action::Open { is_clean, .. } = &plan.action {
                    tracing::info!("pool {name} is open{}", after(*is_clean));
                }
                return Ok(());
            }
            Some((volume, why)) => {
                lanes_of(plan, shards).close().await?;
                (vec![why], Some(volume))
            }
        },
    };
    if let Some(why) = array.pool_is_closed(name, why, clash) {
        tracing::error!("pool {name} is not open, and Ashlar tries again: {why}");
    }
    Ok(())
}

/// The name of a volume of a pool that has just been opened which is another's as well, so that
/// the pool can't stay; and what to do.
async fn twice<W: World>(
    pool: &str,
    array: &ControlPlane<W>,
) -> Result<Option<(String, String)>, OpeningError> {
    let volumes = array.volumes().await?;
    let whole = volumes.iter().filter(|volume| !volume.is_snapshot());
    let (own, others): (Vec<_>, Vec<_>) = whole.partition(|volume| volume.pool == pool);
    let both = own.iter().find_map(|own| {
        // One that was on its way between them is the same one, and is settled later.
        let is_another = |other: &&&PlacedVolume| {
            other.info.name == own.info.name && other.info.uuid != own.info.uuid
        };
        let other = &others.iter().find(is_another)?.pool;
        let name = &own.info.name;
        let why = format!(
            "volume {name}: it is in pool {other} and in pool {pool}; a name has to be unique: \
             rename the one in pool {other} with `ashlar volume rename`, or take one of the pools \
             out of the site file"
        );
        Some((name.clone(), why))
    });
    Ok(both)
}

/// Has the log and events of a pool say that it is open without drives.
async fn tell_missed<W: World>(
    plan: &PoolPlan,
    shards: &[ShardHandle<W>],
    missed: Vec<MissingDrive>,
) -> Result<(), ShardGone> {
    let name = &plan.spec.name;
    for drive in &missed {
        tracing::warn!("pool {name} comes up without a drive: {drive}");
    }
    match plan.shards.first().filter(|_| !missed.is_empty()) {
        Some(first) => tell(&shards[*first], name.clone(), missed).await,
        None => Ok(()),
    }
}

/// Has events of a pool say why its drives are missing.
async fn tell<W: World>(
    shard: &ShardHandle<W>,
    pool: String,
    missing: Vec<MissingDrive>,
) -> Result<(), ShardGone> {
    let visit = move |state: Rc<ShardState<W>>| async move {
        let Some(pool) = state.pool(&pool) else {
            return;
        };
        for drive in missing {
            let text = format!("drive '{}' is missing: {}", drive.name, drive.why);
            pool.tell(EventKind::DriveMissing, text);
        }
    };
    shard.call(visit).await
}
