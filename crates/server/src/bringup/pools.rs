//! Pools: which are opened, which are made, and why neither may be.

use super::data_dir::DataDir;
use super::drives::{self, Found, Place};
use super::made::{Made, MadePool};
use super::{BringUpError, BringUpErrorKind};
use crate::shard::{ShardHandle, ShardState};
use engine::pool::{NamedDrive, Pool, PoolSpec};
use site::{DriveSource, Level, Site};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use world::real::{RealDrive, RealWorld};

/// What is to become of a pool of the site.
pub(super) struct PoolPlan {
    spec: site::Pool,
    shard: usize,
    places: Vec<Place>,
    action: Action,
}

enum Action {
    /// Open it from the labels of its drives.
    Open,
    /// Make it; these files have to be made first.
    Make {
        /// Not there yet, in the order of the drives.
        new_files: Vec<(PathBuf, u64)>,
    },
}

/// Looks at all drives of the site and decides. Removes files of a pool whose
/// making was cut short, and changes nothing else.
///
/// # Errors
/// Every drive that stands in the way.
pub(super) async fn plan(
    site: &Site,
    data: &DataDir,
    shards: &[ShardHandle],
    homes: &BTreeMap<String, usize>,
    made: &Made,
) -> Result<Vec<PoolPlan>, BringUpError> {
    let mut plans = Vec::new();
    let mut wrong = Vec::new();
    for pool in &site.pools {
        let record = made.pools.get(&pool.name);
        if let Some(MadePool::BeingMade { new_files }) = record {
            remove_unfinished(&pool.name, new_files)?;
        }
        let shard = homes.get(&pool.name).copied().unwrap_or(0);
        match drives::look(&shards[shard], places(site, data, pool)).await {
            Ok(found) => match decide(pool, &found, record) {
                Ok(action) => {
                    let places = found.into_iter().map(|(place, _)| place).collect();
                    plans.push(PoolPlan {
                        spec: pool.clone(),
                        shard,
                        places,
                        action,
                    });
                }
                Err(lines) => wrong.extend(lines),
            },
            Err(error) => wrong.push(error.context),
        }
    }
    for name in made.pools.keys().filter(|name| site.pool(name).is_none()) {
        tracing::warn!("pool {name} was made here and isn't in the site file: it is left alone");
    }
    if wrong.is_empty() {
        Ok(plans)
    } else {
        Err(BringUpError::all(BringUpErrorKind::Drive, &wrong))
    }
}

fn places(site: &Site, data: &DataDir, pool: &site::Pool) -> Vec<Place> {
    let drives = pool.drives.iter().filter_map(|name| site.drive(name));
    let place = |drive: &site::Drive| Place {
        name: drive.name.clone(),
        path: data.drive_path(&drive.source),
        size_bytes: match drive.source {
            DriveSource::File { size_bytes, .. } => Some(size_bytes),
            DriveSource::Device { .. } => None,
        },
    };
    drives.map(place).collect()
}

/// Whether `pool` is opened or made, given what is at its drives' places.
fn decide(
    pool: &site::Pool,
    found: &[(Place, Found)],
    record: Option<&MadePool>,
) -> Result<Action, Vec<String>> {
    let recorded_uuid = match record {
        Some(MadePool::Made { uuid, .. }) => Some(uuid.as_str()),
        _ => None,
    };
    let labelled = found
        .iter()
        .any(|(_, found)| matches!(found, Found::Labelled(_)));
    let exists = recorded_uuid.is_some() || labelled;
    let name = &pool.name;
    let mut wrong = Vec::new();
    let mut new_files = Vec::new();
    for (place, found) in found {
        let path = place.path.display();
        let why = match found {
            Found::Nothing if exists => format!(
                "{path} is not there, and pool {name} holds data on this drive; bring the file \
                 back (it is not made anew)"
            ),
            Found::Empty if exists => format!(
                "{path} has no label: it isn't the drive that pool {name} was made with; put that \
                 one in its place"
            ),
            Found::Occupied => format!(
                "{path} has no label and isn't empty; if what is on it can go, wipe it (wipefs \
                 --all, or remove the file), else put another drive into the site file"
            ),
            Found::Labelled(label) if label.pool_name != *name => format!(
                "{path} is a drive of pool {}; put it under that pool in the site file, or put \
                 the right drive in its place",
                label.pool_name
            ),
            Found::Labelled(label)
                if recorded_uuid.is_some_and(|uuid| label.pool_uuid.to_string() != uuid) =>
            {
                format!(
                    "{path} is a drive of another pool called {name} ({}), not of the one made \
                     here ({}); put the right drive in its place",
                    label.pool_uuid,
                    recorded_uuid.unwrap_or_default()
                )
            }
            Found::Nothing => {
                new_files.push((place.path.clone(), place.size_bytes.unwrap_or_default()));
                continue;
            }
            Found::Empty | Found::Labelled(_) => continue,
        };
        wrong.push(format!("drive {}: {why}", place.name));
    }
    match (wrong.is_empty(), exists) {
        (false, _) => Err(wrong),
        (true, true) => Ok(Action::Open),
        (true, false) => Ok(Action::Make { new_files }),
    }
}

/// Removes what the making of a pool left that didn't end. No data was ever
/// acknowledged on it (see [`super::made`]).
fn remove_unfinished(pool: &str, files: &[PathBuf]) -> Result<(), BringUpError> {
    for file in files {
        match fs::remove_file(file) {
            Ok(()) => tracing::info!(
                "removed {}: the making of pool {pool} was cut short",
                file.display()
            ),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let context = format!(
                    "{}: can't remove it, and the making of pool {pool} was cut short: {error}",
                    file.display()
                );
                return Err(BringUpError::new(BringUpErrorKind::Drive, context));
            }
        }
    }
    Ok(())
}

/// Opens the pools that are there.
///
/// # Errors
/// What the first pool that doesn't open says.
pub(super) async fn open(plans: &[PoolPlan], shards: &[ShardHandle]) -> Result<(), BringUpError> {
    for plan in plans
        .iter()
        .filter(|plan| matches!(plan.action, Action::Open))
    {
        let (name, places) = (plan.spec.name.clone(), plan.places.clone());
        let visit = |state: Rc<ShardState>| async move {
            let drives = open_drives(&state, &places)?;
            let pool = Pool::open(state.world().clone(), drives).await;
            let pool = pool.map_err(|error| format!("pool {name}: {error}"))?;
            state.add_pool(pool);
            Ok(())
        };
        let opened: Result<(), String> = shards[plan.shard].call(visit).await?;
        opened.map_err(|context| BringUpError::new(BringUpErrorKind::Pool, context))?;
    }
    Ok(())
}

/// Makes the pools that aren't there.
///
/// # Errors
/// What stands in the way. Of the pool that fails nothing is left.
pub(super) async fn make(
    plans: Vec<PoolPlan>,
    shards: &[ShardHandle],
    data: &DataDir,
    made: &mut Made,
) -> Result<(), BringUpError> {
    for PoolPlan {
        spec,
        shard,
        places,
        action,
    } in plans
    {
        let Action::Make { new_files } = action else {
            continue;
        };
        let files: Vec<PathBuf> = new_files.iter().map(|(path, _)| path.clone()).collect();
        let being_made = MadePool::BeingMade {
            new_files: files.clone(),
        };
        made.set(data, &spec.name, Some(being_made))?;
        match make_one(&spec, &shards[shard], places, new_files).await {
            Ok(uuid) => {
                tracing::info!("made pool {} of {}", spec.name, spec.drives.join(", "));
                let done = MadePool::Made {
                    uuid,
                    drives: spec.drives.clone(),
                };
                made.set(data, &spec.name, Some(done))?;
            }
            Err(error) => {
                remove_unfinished(&spec.name, &files)?;
                made.set(data, &spec.name, None)?;
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Makes one pool, and its files, and gives its identity.
async fn make_one(
    pool: &site::Pool,
    shard: &ShardHandle,
    places: Vec<Place>,
    new_files: Vec<(PathBuf, u64)>,
) -> Result<String, BringUpError> {
    make_files(new_files).await?;
    let level = match pool.level {
        Level::Simple => engine::pool::Level::Simple,
        Level::Raid10 => engine::pool::Level::Raid10 { copies: 2 },
    };
    let mut spec = PoolSpec::new(&pool.name, level);
    spec.stripe_unit_bytes = pool.stripe_unit_bytes;
    spec.page_bytes = pool.page_bytes;
    let visit = |state: Rc<ShardState>| async move {
        let drives = open_drives(&state, &places)?;
        let name = spec.name.clone();
        let pool = Pool::create(state.world().clone(), spec, drives).await;
        let pool = pool.map_err(|error| format!("pool {name}: {error}"))?;
        let uuid = pool.info().uuid.to_string();
        state.add_pool(pool);
        Ok(uuid)
    };
    let created: Result<String, String> = shard.call(visit).await?;
    created.map_err(|context| BringUpError::new(BringUpErrorKind::Pool, context))
}

async fn make_files(new_files: Vec<(PathBuf, u64)>) -> Result<(), BringUpError> {
    let making = tokio::task::spawn_blocking(move || {
        new_files
            .iter()
            .try_for_each(|(path, size)| RealDrive::create_file(path, *size))
    });
    match making.await {
        Ok(outcome) => {
            outcome.map_err(|error| BringUpError::new(BringUpErrorKind::Drive, error.to_string()))
        }
        Err(error) => {
            let context = format!("making drive files ended early: {error}");
            Err(BringUpError::new(BringUpErrorKind::System, context))
        }
    }
}

fn open_drives(state: &ShardState, places: &[Place]) -> Result<Vec<NamedDrive<RealWorld>>, String> {
    let open = |place: &Place| {
        let drive = RealDrive::open(state.world(), &place.path)
            .map_err(|error| format!("drive {}: {error}", place.name))?;
        Ok(NamedDrive {
            name: place.name.clone(),
            drive,
        })
    };
    places.iter().map(open).collect()
}
