//! Finds out what is to become of the pools of a site: looks at their drives, and has it decided.
//!
//! Invariants:
//! - A look changes nothing: what makings have left that were cut short was taken back before.
//! - A pool that an array of before has no record of is never made at a start: its drives may be away.

use super::decide::decide;
use super::error::{OpeningError, OpeningErrorKind};
use super::look::{DriveContent, DrivePlace, Look};
use super::made::{Made, MadePool};
use super::pool_plan::{Action, PoolPlan};
use super::{Openings, old_data, old_makings};
use crate::control::{AddedDrive, ControlPlane};
use crate::shard::{ShardGone, ShardHandle};
use engine::World;
use engine::pool::LabelSummary;
use futures_util::future::join_all;
use site::Site;
use std::collections::BTreeMap;

/// What is known of pools before their drives are looked at.
pub struct KnownPools<'a> {
    pub site: &'a Site,
    pub made: &'a Made,
    /// The drives that the API added.
    pub added: &'a [AddedDrive],
    /// Why drives are out of use, by the identity of the drive.
    pub failed: &'a BTreeMap<String, String>,
}

impl KnownPools<'_> {
    /// Whether an array that has been up before has no record of this pool.
    fn is_forgotten(&self, name: &str) -> bool {
        self.made.is_configured && !self.made.pools.contains_key(name)
    }

    /// The identity of a pool that was made here.
    fn uuid(&self, name: &str) -> Option<&str> {
        match self.made.pools.get(name) {
            Some(MadePool::Made { uuid, .. }) => Some(uuid.as_str()),
            _ => None,
        }
    }
}

/// What is to become of a pool; or every drive that stands in the way of making it.
type Planned = Result<PoolPlan, Vec<String>>;

impl<W: World> Openings<W> {
    /// Looks at all drives of the site and decides. Changes nothing.
    ///
    /// # Errors
    /// Every drive that stands in the way of making a pool, or a shard has stopped.
    pub async fn plan(
        &self,
        known: &KnownPools<'_>,
        shards: &[ShardHandle<W>],
    ) -> Result<Vec<PoolPlan>, OpeningError> {
        let mut plans = Vec::new();
        let mut wrong = Vec::new();
        let pools = known.site.pools.iter().enumerate();
        // At once: a disk that sleeps begins to spin when it is first looked at.
        let planned = pools.map(|pool| self.plan_pool(known, shards, pool));
        let planned = join_all(planned).await;
        for (pool, planned) in known.site.pools.iter().zip(planned) {
            match planned?.and_then(|plan| self.not_half_made(plan)) {
                Ok(plan) => plans.push(plan),
                // Others were served before, and are: it keeps down itself only.
                Err(why) if known.made.is_configured => plans.push(PoolPlan {
                    spec: pool.clone(),
                    shards: Vec::new(),
                    places: Vec::new(),
                    failed: Vec::new(),
                    label: None,
                    action: Action::Refuse { why },
                }),
                Err(lines) => wrong.extend(lines),
            }
        }
        match wrong.is_empty() {
            true => Ok(plans),
            false => Err(OpeningError::new(OpeningErrorKind::Drive, wrong.join("\n"))),
        }
    }

    /// Looks at the drives of one pool and decides; nothing where the settings have none of that
    /// name. `failed` says why drives are out of use, by the identity of the drive.
    ///
    /// # Errors
    /// A shard has stopped; inside, every drive that stands in the way of making it.
    pub(super) async fn plan_one(
        &self,
        array: &ControlPlane<W>,
        name: &str,
        failed: &BTreeMap<String, String>,
    ) -> Result<Option<Planned>, ShardGone> {
        let (settings, made) = (array.settings(), self.made.now());
        let known = KnownPools {
            site: &settings,
            made: &made,
            added: &array.places().added().clone(),
            failed,
        };
        let mut pools = settings.pools.iter().enumerate();
        match pools.find(|(_, pool)| pool.name == name) {
            Some(pool) => Ok(Some(self.plan_pool(&known, array.shards(), pool).await?)),
            None => Ok(None),
        }
    }

    async fn plan_pool(
        &self,
        known: &KnownPools<'_>,
        shards: &[ShardHandle<W>],
        (index, pool): (usize, &site::Pool),
    ) -> Result<Planned, ShardGone> {
        let name = pool.name.as_str();
        let places = self.places(known, pool);
        let shard = &shards[index % shards.len()];
        let looks = self.look(shard, places).await?;
        let planted = "another pool of the same name is opened";
        let uuid = known.uuid(name).filter(|_| !self.bays.planted(planted));
        let label = label_of(&looks, name, uuid);
        let lanes = label.as_ref().map_or(pool.lanes, |label| label.part.lanes);
        let on = (0..usize::from(lanes)).map(|lane| (index + lane) % shards.len());
        let failed = old_data::failed(&looks, known.failed);
        let decided = match old_data::refusal(name, &looks, uuid, known.failed) {
            Some(why) => Ok((Vec::new(), Action::Refuse { why })),
            None => decide(name, looks, uuid),
        };
        let decided = match decided {
            Ok((places, Action::Make { .. })) if known.is_forgotten(name) => {
                Ok((places, forgotten(name)))
            }
            decided => decided,
        };
        Ok(decided.map(|(places, action)| PoolPlan {
            spec: pool.clone(),
            shards: on.collect(),
            places,
            failed,
            label,
            action,
        }))
    }

    /// A pool that is not on record as being made, or that has no label.
    ///
    /// # Errors
    /// The drives on which its making has left labels: they could not be taken back.
    pub(super) fn not_half_made(&self, plan: PoolPlan) -> Planned {
        let name = &plan.spec.name;
        let state = self.made.pool(name).filter(MadePool::is_being_made);
        let Some(state) = state else {
            return Ok(plan);
        };
        if state.without_identity().is_some() {
            return Err(vec![format!("pool {name}: {}", old_makings::REMEDY)]);
        }
        if !matches!(plan.action, Action::Open { .. }) {
            return Ok(plan);
        }
        let drive = |place: &DrivePlace| {
            format!(
                "drive {}: {} has a label of the making of pool {name}, which was cut short: start \
                 again, or wipe it",
                place.name,
                place.path.display(),
            )
        };
        Err(plan.places.iter().map(drive).collect())
    }

    /// The places of a pool's drives: those that the API added, and those of the site where no drive was
    /// added since.
    fn places(&self, known: &KnownPools<'_>, pool: &site::Pool) -> Vec<DrivePlace> {
        let drives = pool.drives().filter_map(|name| known.site.drive(name));
        let mut places: Vec<DrivePlace> = drives
            .map(|drive| DrivePlace::of(drive, self.data()))
            .collect();
        places.retain(|place| {
            let is_here = |drive: &&AddedDrive| drive.path == place.path;
            let Some(drive) = known.added.iter().find(is_here) else {
                return true;
            };
            // Where a drive failed, another may have come, under another name.
            if drive.pool == pool.name {
                let planted = "drive comes back under the name of the one before";
                return drive.name == place.name || self.bays.planted(planted);
            }
            tracing::warn!(
                "the settings list drive {} for pool {}, and it was added to pool {} since",
                place.name,
                pool.name,
                drive.pool
            );
            false
        });
        let added = known.added.iter();
        for drive in added.filter(|drive| drive.pool == pool.name) {
            if places.iter().all(|place| place.path != drive.path) {
                places.push(DrivePlace::at(drive.name.clone(), drive.path.clone()));
            }
        }
        places
    }
}

/// Why a pool is not made that an array of before has no record of.
fn forgotten(name: &str) -> Action {
    let why = vec![format!(
        "pool {name}: no record says that it was made, and no drive with its label is there: \
         bring its drives back"
    )];
    Action::Refuse { why }
}

/// The shards, by index, that the lanes of each pool go to.
pub fn homes(plans: &[PoolPlan]) -> BTreeMap<String, Vec<usize>> {
    let home = |plan: &PoolPlan| (plan.spec.name.clone(), plan.shards.clone());
    plans.iter().map(home).collect()
}

/// The label of a drive of the pool with this name, and identity, if that is known.
fn label_of(looks: &[Look], name: &str, uuid: Option<&str>) -> Option<LabelSummary> {
    let is_known =
        |label: &LabelSummary| uuid.is_none_or(|uuid| label.pool_uuid.to_string() == uuid);
    looks.iter().find_map(|look| match &look.found {
        DriveContent::Labelled(label) if label.pool_name == name && is_known(label) => {
            Some(label.clone())
        }
        _ => None,
    })
}
