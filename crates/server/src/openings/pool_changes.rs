//! Creates and destroys pools while the array serves.
//!
//! Invariants:
//! - A pool is on record as being made before the settings name it, and before its drives are
//!   looked at. A making that a crash cut short, or that failed, is taken back ([`taking_back`]):
//!   whatever lies on the drives then is never taken for the pool.
//! - A pool that is being destroyed is on record as such before anything of it goes. A destruction
//!   that a crash cut short is ended by the next start, and nobody sees the pool again.
//! - Nothing is made of a drive that carries a label, or anything else that somebody may miss.

use super::made::{Made, MadePool};
use super::pools::{self, KnownPool};
use super::taking_back;
use crate::array::{self, Array, ArrayError, ArrayErrorKind, PlacedVolume};
use crate::bring_up_error::{BringUpError, BringUpErrorKind};
use crate::data_dir::DataDir;
use crate::drive_files::{self, DriveContent};
use crate::shard::ShardHandle;
use ::array::pool::opening::Opening;
use base::Uuid;
use engine::pool::PoolInfo;
use site::Site;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pool to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewPool {
    pub(crate) pool: site::Pool,
    /// Its drives, which the array does not have yet.
    pub(crate) drives: Vec<site::Drive>,
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
            let mark = MadePool::made_of_nothing();
            Made::read(&data)?.set(&data, &name, Some(mark))?;
            let made = match array.keep_settings(settings).await {
                Ok(()) => make(&array, &data, &name).await,
                Err(error) => Err(error),
            };
            if made.is_err() {
                let before = without(&array.settings(), &name);
                match array.keep_settings(before).await {
                    // The mark stays as long as something is left: that is taken back later.
                    Ok(()) => Made::read(&data)?.forget(&data, &name)?,
                    // With its mark: the next start takes the pool back.
                    Err(error) => tracing::error!(
                        "pool {name}, which could not be made, stays in the settings until the \
                         next start: {error}"
                    ),
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
    let is_served = settings.pool(name).is_some() || array.is_unlisted(name);
    if !is_served {
        taking_back::before_making(array, data, name).await?;
    }
    if is_served || Made::read(data)?.pools.contains_key(name) {
        return taken(format!(
            "there is a pool {name} already; choose another name"
        ));
    }
    for drive in &new.drives {
        let path = data.place(drive).path;
        array.check_free(&drive.name).await?;
        array.check_allowed(&path)?;
        array.check_unused(&path, name).await?;
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
    let known = KnownPool {
        site: &settings,
        data,
        made: &made,
        added: &added,
        failed: &BTreeMap::new(),
    };
    let invalid = |lines: Vec<String>| ArrayError::new(ArrayErrorKind::Invalid, lines.join("\n"));
    let plan = pools::plan_one(&known, array.shards(), name).await?;
    let plan = plan.map_err(invalid)?;
    let plan = plan.ok_or_else(|| ArrayError::no_pool(name))?;
    if let Some(labelled) = plan.labelled() {
        return Err(ArrayError::new(ArrayErrorKind::Exists, labelled));
    }
    let homes = plan.shards.clone();
    // Large files take their time: other changes go on meanwhile.
    let making = pools::make(vec![plan], array.shards(), data, &mut made);
    array.wait_for(name, making).await?;
    array.pool_is_open(name, homes, Vec::new());
    array.note_drives_and_warn().await;
    Ok(())
}

/// Looks for a drive of a pool somewhere else from now on. It has to be there, with its label: what a
/// command finds where a drive was may be overwritten.
///
/// # Errors
/// The drive is not there, the pool has no such drive, or that can't be kept.
pub(crate) async fn look_for_drive(
    array: &Arc<Array>,
    pool: String,
    drive: site::Drive,
) -> Result<(), ArrayError> {
    array
        .change(move |array| async move {
            let mut settings = array.settings().as_ref().clone();
            let of_pool = settings
                .pool(&pool)
                .into_iter()
                .flat_map(site::Pool::drives);
            let is_of_pool = of_pool.into_iter().any(|name| *name == drive.name);
            let mut drives = settings.drives.iter_mut();
            let known = drives.find(|known| known.name == drive.name && is_of_pool);
            let none = || {
                let context = format!("pool {pool} has no drive {}", drive.name);
                ArrayError::new(ArrayErrorKind::NotFound, context)
            };
            known.ok_or_else(none)?.source = drive.source.clone();
            check_labelled(&array, &pool, std::slice::from_ref(&drive), true).await?;
            array.keep_settings(settings).await?;
            array.places().forget_added(&pool, &drive.name).await?;
            let path = array.places().path_of(&drive);
            array.drive_is_elsewhere(&pool, &drive.name, &path);
            Ok(())
        })
        .await
}

/// Looks for a pool that is not open at these drives from now on: it opens when they are its. What is
/// there already has to be labelled as its.
///
/// # Errors
/// It is open, something else is at a drive's place, or that can't be kept.
pub(crate) async fn look_for(
    array: &Arc<Array>,
    pool: site::Pool,
    drives: Vec<site::Drive>,
) -> Result<(), ArrayError> {
    array
        .change(move |array| async move {
            let name = pool.name.clone();
            array.check_turn(&name)?;
            if !array.is_closed(&name) {
                let context = format!("pool {name} is open");
                return Err(ArrayError::new(ArrayErrorKind::Busy, context));
            }
            check_labelled(&array, &name, &drives, false).await?;
            let mut settings = without(&array.settings(), &name);
            let names: Vec<String> = drives.iter().map(|drive| drive.name.clone()).collect();
            settings.drives.extend(drives);
            settings.pools.push(pool);
            array.keep_settings(settings).await?;
            for drive in names {
                array.places().forget_added(&name, &drive).await?;
            }
            Ok(())
        })
        .await
}

/// Takes a pool into the settings that was made here: it opens when its drives are there, with all
/// that it holds. What is there already has to be labelled as its.
///
/// # Errors
/// Something else is at a drive's place, a name is taken, or that can't be kept.
pub(crate) async fn take_in(array: &Arc<Array>, new: NewPool) -> Result<(), ArrayError> {
    array
        .change(move |array| async move {
            let name = new.pool.name.clone();
            array.check_turn(&name)?;
            check_labelled(&array, &name, &new.drives, false).await?;
            let mut settings = array.settings().as_ref().clone();
            settings.drives.extend(new.drives);
            settings.pools.push(new.pool);
            array.keep_settings(settings).await?;
            let why = format!("pool {name}: its drives are looked for");
            array.pool_is_closed(&name, vec![why], None);
            array.is_listed(&name);
            Ok(())
        })
        .await
}

/// That what is at the places of drives is labelled as of this pool. Nothing may be there unless
/// `all` have to be.
async fn check_labelled(
    array: &Array,
    pool: &str,
    drives: &[site::Drive],
    all: bool,
) -> Result<(), ArrayError> {
    let data = array.data()?;
    let made = Made::read(&data)?;
    let uuid = match made.pools.get(pool) {
        Some(MadePool::Made { uuid, .. }) => Some(uuid.clone()),
        _ => None,
    };
    let uuid = match array.pool(pool).await {
        Ok((_, info)) => Some(info.uuid.to_string()),
        Err(_) => uuid,
    };
    for drive in drives {
        let place = data.place(drive);
        let path = place.path.display().to_string();
        let look = drive_files::glance(&array.shards()[0], place).await?;
        let is_its = match look.found {
            DriveContent::Labelled(label) => {
                let is_known = |uuid: &String| *uuid == label.pool_uuid.to_string();
                label.pool_name == pool && uuid.as_ref().is_none_or(is_known)
            }
            DriveContent::Nothing(_) => !all,
            // One that the pool has open is locked: it is where it was.
            _ => false,
        };
        if !is_its {
            let context = format!(
                "drive {}: {path} has no label of pool {pool}: bring the drive there first",
                drive.name
            );
            return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
        }
    }
    Ok(())
}

/// Destroys a pool that holds no volumes: its drives are empty afterwards. What is in its trash goes
/// with it.
///
/// # Errors
/// There is no such pool, it holds volumes, a job or another change is at work on it, or that can't
/// be kept.
pub(crate) async fn destroy(array: &Arc<Array>, name: String) -> Result<(), ArrayError> {
    array
        .change(move |array| async move {
            let data = array.data()?;
            let info = check_destroyable(&array, &name).await?;
            let lanes = Opening::new(name.clone(), array.homes(&name)?);
            // Nobody can ask it afterwards.
            array.record_last_events(&name).await?;
            let mut made = Made::read(&data)?;
            let destroyed = MadePool::BeingDestroyed {
                uuid: info.uuid.to_string(),
                drives: array.places().of_pool(&name),
            };
            made.set(&data, &name, Some(destroyed))?;
            array.pool_is_gone(&name);
            let gone = async {
                lanes.close().await?;
                wipe(&data, &name, &array.shards()[0], &made).await
            };
            array.wait_for(&name, gone).await?;
            array.forget_drives_of(&name).await?;
            let settings = without(&array.settings(), &name);
            array.keep_settings(settings).await?;
            // Others may have been made meanwhile.
            let mut made = Made::read(&data)?;
            made.set(&data, &name, None)?;
            array.note_drives_and_warn().await;
            tracing::info!("pool {name} is destroyed: its drives are free");
            Ok(())
        })
        .await
}

/// The pool of this name, that it holds no volumes, and that nothing is at work on it.
///
/// # Errors
/// As [`destroy`].
pub(crate) async fn check_destroyable(array: &Array, name: &str) -> Result<PoolInfo, ArrayError> {
    let (_, info) = array.pool(name).await?;
    array.check_turn(name)?;
    check_idle(array, name)?;
    check_empty(array, name).await?;
    Ok(info)
}

/// That no job has to do with a pool.
fn check_idle(array: &Array, name: &str) -> Result<(), ArrayError> {
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
async fn check_empty(array: &Array, name: &str) -> Result<(), ArrayError> {
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

/// Ends what destructions of pools a crash has cut short, and gives the names of those pools.
///
/// # Errors
/// A shard has stopped, or a record can't be written.
pub(crate) async fn end_destructions(
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

/// Wipes the labels of a pool that is being destroyed.
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
    // The pool is gone all the same: one that keeps its label may be away for good.
    drive_files::unlabel((shard, data.path()), name, Some(uuid), drives.clone()).await?;
    Ok(())
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
