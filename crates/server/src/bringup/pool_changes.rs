//! Pools that are made and destroyed while the array serves.
//!
//! Invariants:
//! - The settings name a pool before anything of it is made. A making that a crash cut short is
//!   taken back by the next start, which then makes the pool, as at a first start.
//! - A pool that is being destroyed is on record as such before anything of it goes. A destruction
//!   that a crash cut short is ended by the next start, and nobody sees the pool again.
//! - Nothing is made of a drive that carries a label, or anything else that somebody may miss.

use super::data_dir::DataDir;
use super::drives::Patience;
use super::made::{Made, MadePool};
use super::pools::{self, Known};
use super::{BringUpError, BringUpErrorKind, lanes};
use crate::array::{self, Array, ArrayError, ArrayErrorKind};
use crate::shard::{ShardHandle, ShardState};
use base::Uuid;
use engine::pool::Pool;
use site::Site;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use world::real::RealDrive;

/// A pool to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewPool {
    pub(crate) pool: site::Pool,
    /// Its drives, which the array does not have yet.
    pub(crate) drives: Vec<site::Drive>,
}

impl From<BringUpError> for ArrayError {
    fn from(error: BringUpError) -> Self {
        let kind = match error.kind {
            BringUpErrorKind::Drive | BringUpErrorKind::Pool => ArrayErrorKind::Invalid,
            _ => ArrayErrorKind::Internal,
        };
        ArrayError::new(kind, error.context)
    }
}

/// Makes a pool of drives that are files, made where they are missing, or empty devices.
///
/// # Errors
/// A name or a drive is taken, a drive is in a directory that is not allowed, or holds something;
/// the pool would break a rule of a site file. Nothing is left then.
pub(crate) async fn create(array: &Arc<Array>, new: NewPool) -> Result<(), ArrayError> {
    array
        .change(move |array| async move {
            let data = array.data()?;
            let name = new.pool.name.clone();
            let settings = with_pool(&array, &data, new).await?;
            let mut before = array.settings().as_ref().clone();
            array.keep_settings(settings).await?;
            let made = make(&array, &data, &name).await;
            if made.is_err() {
                before.pools.retain(|pool| pool.name != name);
                if let Err(error) = array.keep_settings(before).await {
                    tracing::error!(
                        "pool {name}, which could not be made, stays in the settings: {error}"
                    );
                }
            }
            made
        })
        .await
}

/// The settings with one more pool, if it can be.
async fn with_pool(array: &Array, data: &DataDir, new: NewPool) -> Result<Site, ArrayError> {
    let taken = |context: String| Err(ArrayError::new(ArrayErrorKind::Exists, context));
    let name = &new.pool.name;
    let mut settings = array.current_settings().await?;
    let made = Made::read(data)?;
    if settings.pool(name).is_some() || made.pools.contains_key(name) {
        return taken(format!(
            "there is a pool {name} already; choose another name"
        ));
    }
    for drive in &new.drives {
        let path = data.place(drive).path;
        array.check_free(&drive.name).await?;
        array.places().check_allowed(&path)?;
        if let Some(user) = array.places().user_of(&path) {
            let path = path.display();
            return taken(format!(
                "{path} is drive {} of pool {}",
                user.name, user.pool
            ));
        }
    }
    // Names of drives that left their pools are free.
    let is_new = |drive: &site::Drive| new.drives.iter().any(|other| other.name == drive.name);
    settings.drives.retain(|drive| !is_new(drive));
    settings.drives.extend(new.drives);
    settings.pools.push(new.pool);
    Ok(settings)
}

/// Makes a pool that the settings name.
async fn make(array: &Arc<Array>, data: &DataDir, name: &str) -> Result<(), ArrayError> {
    let (settings, mut made) = (array.settings(), Made::read(data)?);
    let added = array::added(data.path()).map_err(BringUpError::from)?;
    let known = Known {
        site: &settings,
        data,
        made: &made,
        added: &added,
    };
    let invalid = |lines: Vec<String>| ArrayError::new(ArrayErrorKind::Invalid, lines.join("\n"));
    let plan = pools::plan_one(&known, array.shards(), name).await?;
    let plan = plan.map_err(invalid)?;
    let plan = plan.ok_or_else(|| ArrayError::no_pool(name))?;
    if let Some(labelled) = plan.labelled() {
        return Err(ArrayError::new(ArrayErrorKind::Exists, labelled));
    }
    let homes = plan.shards.clone();
    pools::make(vec![plan], array.shards(), data, &mut made).await?;
    array.pool_is_open(name, homes, Vec::new());
    array.note_drives_and_warn().await;
    Ok(())
}

/// Destroys a pool that holds no volumes: its drives are empty afterwards. What is in its trash goes
/// with it.
///
/// # Errors
/// There is no such pool, it holds volumes, or that can't be kept.
pub(crate) async fn destroy(array: &Arc<Array>, name: String) -> Result<(), ArrayError> {
    array
        .change(move |array| async move {
            let data = array.data()?;
            let (_, info) = array.pool(&name).await?;
            check_empty(&array, &name).await?;
            let mut made = Made::read(&data)?;
            let destroyed = MadePool::BeingDestroyed {
                uuid: info.uuid.to_string(),
                drives: array.places().of_pool(&name),
            };
            made.set(&data, &name, Some(destroyed))?;
            array.pool_is_gone(&name);
            lanes::shut(&name, usize::from(info.lanes), array.shards()).await?;
            wipe(&data, &name, &array.shards()[0], &made).await?;
            array.forget_drives_of(&name).await?;
            let settings = without(&array.settings(), &name);
            array.keep_settings(settings).await?;
            made.set(&data, &name, None)?;
            tracing::info!("pool {name} is destroyed: its drives are free");
            Ok(())
        })
        .await
}

/// Volumes that a refusal names.
const NAMED_MAX: usize = 3;

/// That a pool holds no volume but in its trash.
async fn check_empty(array: &Array, name: &str) -> Result<(), ArrayError> {
    let volumes = array.volumes().await?;
    let held: Vec<&str> = volumes
        .iter()
        .filter(|volume| volume.pool == name)
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

/// Ends what destructions of pools a crash has cut short, and gives the names of those pools.
///
/// # Errors
/// A shard has stopped, or a record can't be written.
pub(super) async fn end_destructions(
    data: &DataDir,
    shard: &ShardHandle,
    made: &mut Made,
) -> Result<Vec<String>, BringUpError> {
    let is_going = |state: &MadePool| matches!(state, MadePool::BeingDestroyed { .. });
    let going = made.pools.iter().filter(|(_, state)| is_going(state));
    let going: Vec<String> = going.map(|(name, _)| name.clone()).collect();
    for name in &going {
        wipe(data, name, shard, made).await?;
        let mut added = array::added(data.path())?;
        added.retain(|drive| drive.pool != *name);
        array::keep_added(data.path(), &added)?;
        tracing::info!("pool {name}: its destruction was cut short, and is ended");
    }
    Ok(going)
}

/// Wipes the labels of a pool that is being destroyed. A drive that can't be is told: it says still
/// that it is of that pool.
async fn wipe(
    data: &DataDir,
    name: &str,
    shard: &ShardHandle,
    made: &Made,
) -> Result<(), BringUpError> {
    let Some(MadePool::BeingDestroyed { uuid, drives }) = made.pools.get(name) else {
        return Ok(());
    };
    let Ok(uuid) = Uuid::parse_str(uuid) else {
        let file = data.made_file().display().to_string();
        let context = format!("{file}: the identity of pool {name} is none");
        return Err(BringUpError::new(BringUpErrorKind::Data, context));
    };
    let drives = drives.clone();
    let visit = move |state: Rc<ShardState>| async move {
        let mut failed = Vec::new();
        for path in drives {
            if let Err(why) = unlabel(&state, &path, uuid).await {
                failed.push(format!("{}: {why}", path.display()));
            }
        }
        failed
    };
    for line in shard.call(visit).await? {
        tracing::warn!("pool {name} is destroyed, and a drive keeps its label: {line}");
    }
    Ok(())
}

async fn unlabel(state: &ShardState, path: &PathBuf, uuid: Uuid) -> Result<(), String> {
    let open = Patience::default().open(path).await;
    let open = open.map_err(|error| error.to_string())?;
    let drive = Rc::new(RealDrive::of(state.world(), &open));
    let unlabelled = Pool::unlabel(state.world(), drive, uuid).await;
    unlabelled.map(drop).map_err(|error| error.to_string())
}

/// `settings` without a pool and its drives.
pub(crate) fn without(settings: &Site, name: &str) -> Site {
    let mut settings = settings.clone();
    let of_pool: Vec<String> = match settings.pool(name) {
        Some(pool) => pool.drives().cloned().collect(),
        None => Vec::new(),
    };
    settings.pools.retain(|pool| pool.name != name);
    let is_used = |drive: &String| {
        let mut pools = settings.pools.iter();
        pools.any(|pool| pool.drives().any(|used| used == drive))
    };
    let free: Vec<String> = of_pool
        .into_iter()
        .filter(|drive| !is_used(drive))
        .collect();
    settings.drives.retain(|drive| !free.contains(&drive.name));
    settings
}
