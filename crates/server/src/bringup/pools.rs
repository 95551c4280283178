//! Pools: which are opened, which are made, and why neither may be.

use super::data_dir::DataDir;
use super::drives::{self, Found, Look, Patience, Place};
use super::lanes;
use super::made::{Made, MadePool};
use super::{BringUpError, BringUpErrorKind};
use crate::array::AddedDrive;
use crate::blank;
use crate::shard::{ShardHandle, ShardState};
use engine::lane::Lane;
use engine::pool::life::Rates;
use engine::pool::life::fullness::Thresholds;
use engine::pool::{LabelSummary, NamedDrive, Pool, PoolSpec};
use site::{Background, Level, RateLimit, Site};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use world::real::{OpenDrive, RealDrive, RealWorld};

/// What is to become of a pool of the site.
pub(super) struct PoolPlan {
    pub(super) spec: site::Pool,
    /// The shard of each lane, by index.
    pub(super) shards: Vec<usize>,
    /// Its drives, by group, the spares last; of a pool that is there, those that are.
    places: Vec<Place>,
    action: Action,
}

enum Action {
    /// Open it from the labels of its drives. What is wrong with others is no reason
    /// not to, if they can be done without.
    Open { notes: Vec<Note> },
    /// Make it; these files have to be made first.
    Make {
        /// Not there yet, in the order of the drives.
        new_files: Vec<(PathBuf, u64)>,
    },
}

/// Why a drive that the site file lists is not opened.
struct Note {
    drive: String,
    text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drive {}: {}", self.drive, self.text)
    }
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
    made: &Made,
    added: &[AddedDrive],
) -> Result<Vec<PoolPlan>, BringUpError> {
    let mut plans = Vec::new();
    let mut wrong = Vec::new();
    for (index, pool) in site.pools.iter().enumerate() {
        let record = made.pools.get(&pool.name);
        if let Some(MadePool::BeingMade { new_files }) = record {
            remove_unfinished(&pool.name, new_files)?;
        }
        let places = places(site, data, pool, added);
        match drives::look(&shards[index % shards.len()], places).await {
            Ok(looks) => {
                let lanes = lanes_of(&looks).unwrap_or(pool.lanes);
                let shards = (0..usize::from(lanes)).map(|lane| (index + lane) % shards.len());
                match decide(pool, looks, record) {
                    Ok((places, action)) => plans.push(PoolPlan {
                        spec: pool.clone(),
                        shards: shards.collect(),
                        places,
                        action,
                    }),
                    Err(lines) => wrong.extend(lines),
                }
            }
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

/// The shards, by index, that the lanes of each pool go to.
pub(super) fn homes(plans: &[PoolPlan]) -> BTreeMap<String, Vec<usize>> {
    let home = |plan: &PoolPlan| (plan.spec.name.clone(), plan.shards.clone());
    plans.iter().map(home).collect()
}

/// How many lanes the pool of these drives has, if there is one.
fn lanes_of(looks: &[Look]) -> Option<u16> {
    looks.iter().find_map(|look| match &look.found {
        Found::Labelled(label) => Some(label.part.lanes),
        _ => None,
    })
}

/// The places of a pool's drives: the site's, and those that the API added.
fn places(site: &Site, data: &DataDir, pool: &site::Pool, added: &[AddedDrive]) -> Vec<Place> {
    let drives = pool.drives().filter_map(|name| site.drive(name));
    let mut places: Vec<Place> = drives.map(|drive| data.place(drive)).collect();
    places.retain(|place| {
        let elsewhere = |drive: &&AddedDrive| drive.path == place.path && drive.pool != pool.name;
        let Some(drive) = added.iter().find(elsewhere) else {
            return true;
        };
        tracing::warn!(
            "the site file lists drive {} for pool {}, and it was added to pool {} since: put it \
             under that pool there",
            place.name,
            pool.name,
            drive.pool
        );
        false
    });
    for drive in added.iter().filter(|drive| drive.pool == pool.name) {
        if places.iter().all(|place| place.path != drive.path) {
            places.push(Place {
                name: drive.name.clone(),
                path: drive.path.clone(),
                size_bytes: None,
            });
        }
    }
    places
}

/// Whether `pool` is opened or made, and of which drives, given what is at their
/// places.
fn decide(
    pool: &site::Pool,
    looks: Vec<Look>,
    record: Option<&MadePool>,
) -> Result<(Vec<Place>, Action), Vec<String>> {
    let uuid = match record {
        Some(MadePool::Made { uuid, .. }) => Some(uuid.as_str()),
        _ => None,
    };
    let is_labelled = |look: &Look| matches!(look.found, Found::Labelled(_));
    if uuid.is_some() || looks.iter().any(is_labelled) {
        decide_open(&pool.name, looks, uuid)
    } else {
        decide_make(looks)
    }
}

/// A pool that is there: of its drives, those that are there are opened.
fn decide_open(
    name: &str,
    looks: Vec<Look>,
    uuid: Option<&str>,
) -> Result<(Vec<Place>, Action), Vec<String>> {
    let mut wrong = Vec::new();
    let mut notes = Vec::new();
    let mut places = Vec::new();
    for Look {
        place,
        found,
        wrong_size,
    } in looks
    {
        let path = place.path.display();
        let note = |text: String| Note {
            drive: place.name.clone(),
            text,
        };
        let missing = match &found {
            Found::Nothing(_) => format!(
                "{path} is not there, and pool {name} holds data on this drive; bring the file \
                 back (it is not made anew)"
            ),
            Found::Empty | Found::Occupied => format!(
                "{path} has no label: it isn't the drive that pool {name} was made with; put that \
                 one in its place"
            ),
            Found::Unreadable(why) => format!("{why}: its label can't be read"),
            Found::Labelled(label) => {
                if let Some(why) = misplaced(label, name, &place, uuid) {
                    wrong.push(format!("drive {}: {why}", place.name));
                }
                match wrong_size {
                    Some(size) if size.smaller => notes.push(note(size.context)),
                    Some(size) => wrong.push(format!("drive {}: {}", place.name, size.context)),
                    None => {}
                }
                places.push(place);
                continue;
            }
        };
        notes.push(note(missing));
    }
    if places.is_empty() {
        // Nothing to ask how it can do without these.
        wrong.extend(notes.iter().map(Note::to_string));
    }
    match wrong.is_empty() {
        true => Ok((places, Action::Open { notes })),
        false => Err(wrong),
    }
}

/// Why a drive with this label should not be here.
fn misplaced(
    label: &LabelSummary,
    name: &str,
    place: &Place,
    uuid: Option<&str>,
) -> Option<String> {
    let path = place.path.display();
    if label.pool_name != name {
        return Some(format!(
            "{path} is a drive of pool {}; put it under that pool in the site file, or put the \
             right drive in its place",
            label.pool_name
        ));
    }
    let uuid = uuid.filter(|uuid| label.pool_uuid.to_string() != *uuid)?;
    Some(format!(
        "{path} is a drive of another pool called {name} ({}), not of the one made here ({uuid}); \
         put the right drive in its place",
        label.pool_uuid
    ))
}

/// A pool that is not there: every drive must be free to take.
fn decide_make(looks: Vec<Look>) -> Result<(Vec<Place>, Action), Vec<String>> {
    let mut wrong = Vec::new();
    let mut new_files = Vec::new();
    let mut places = Vec::new();
    for Look {
        place,
        found,
        wrong_size,
    } in looks
    {
        let path = place.path.display();
        let why = match (found, place.size_bytes, wrong_size) {
            (_, _, Some(size)) => Some(size.context),
            (Found::Nothing(_), Some(size_bytes), _) => {
                new_files.push((place.path.clone(), size_bytes));
                None
            }
            (Found::Nothing(why) | Found::Unreadable(why), _, _) => Some(why),
            (Found::Occupied, _, _) => Some(format!("{path} {}", blank::REMEDY)),
            (Found::Empty | Found::Labelled(_), _, _) => None,
        };
        wrong.extend(why.map(|why| format!("drive {}: {why}", place.name)));
        places.push(place);
    }
    match wrong.is_empty() {
        true => Ok((places, Action::Make { new_files })),
        false => Err(wrong),
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
    for plan in plans {
        let Action::Open { notes } = &plan.action else {
            continue;
        };
        let refused = |context: String| {
            let notes = notes.iter().map(Note::to_string);
            let lines: Vec<String> = std::iter::once(context).chain(notes).collect();
            BringUpError::all(BringUpErrorKind::Pool, &lines)
        };
        let drives = open_drives(&plan.places).await.map_err(refused)?;
        let opened = lanes::open(plan, shards, &drives).await?;
        let members = opened.map_err(refused)?;
        // What has left the pool is not missed.
        for note in notes.iter().filter(|note| members.contains(&note.drive)) {
            tracing::warn!("pool {} comes up without a drive: {note}", plan.spec.name);
        }
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
        shards: homes,
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
        let homes = homes.iter().map(|index| &shards[*index]).collect();
        match make_one(&spec, homes, places, new_files).await {
            Ok(uuid) => {
                let drives: Vec<String> = spec.drives().cloned().collect();
                tracing::info!("made pool {} of {}", spec.name, drives.join(", "));
                let done = MadePool::Made { uuid, drives };
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
    shards: Vec<&ShardHandle>,
    places: Vec<Place>,
    new_files: Vec<(PathBuf, u64)>,
) -> Result<String, BringUpError> {
    make_files(new_files).await?;
    let failed = |context| BringUpError::new(BringUpErrorKind::Pool, context);
    let drives = open_drives(&places).await.map_err(failed)?;
    let mut spec = PoolSpec::new(&pool.name, level(pool.groups[0].level));
    spec.stripe_unit_bytes = pool.stripe_unit_bytes;
    spec.page_bytes = pool.page_bytes;
    spec.log_bytes = pool.log_bytes;
    let shapes: Vec<(engine::pool::Level, usize)> = pool
        .groups
        .iter()
        .map(|group| (level(group.level), group.drives.len()))
        .collect();
    let mut uuid = String::new();
    // The first lane last: with it there is a pool.
    let lanes = Lane::all(shards.len() as u16);
    for (lane, shard) in lanes.into_iter().zip(shards).rev() {
        let (spec, shapes, drives) = (spec.clone(), shapes.clone(), drives.clone());
        let site = pool.clone();
        let visit = move |state: Rc<ShardState>| async move {
            let mut drives = doors(&state, &drives).into_iter();
            let name = spec.name.clone();
            let groups = shapes
                .into_iter()
                .map(|(level, count)| (level, drives.by_ref().take(count).collect()))
                .collect();
            let spares = drives.collect();
            let world = state.world().clone();
            let pool = Pool::create_lane(world, lane, spec, groups, spares).await;
            let pool = pool.map_err(|error| format!("pool {name}: {error}"))?;
            settle(&pool, &site);
            let uuid = pool.info().uuid.to_string();
            state.add_pool(pool);
            Ok(uuid)
        };
        let created: Result<String, String> = shard.call(visit).await?;
        uuid = created.map_err(failed)?;
    }
    Ok(uuid)
}

/// What the site says of a pool that may differ from start to start; each lane has its
/// share of it.
pub(super) fn settle(pool: &Pool<RealWorld>, site: &site::Pool) {
    let lanes = u64::from(pool.info().lanes);
    pool.store().cache.set_capacity(site.cache_bytes / lanes);
    let usual = Rates::default();
    let limit = |limit: Option<RateLimit>, usual: Option<u64>| match limit {
        None => usual,
        Some(RateLimit::Unlimited) => None,
        Some(RateLimit::BytesPerS(bytes_per_s)) => Some(bytes_per_s),
    };
    let rates = Rates {
        rebuild_bytes_per_s: limit(site.rebuild_rate, usual.rebuild_bytes_per_s),
        scrub_bytes_per_s: limit(site.scrub_rate, usual.scrub_bytes_per_s),
        yields: site.background == Background::Yield,
    };
    pool.set_rates(rates.of_each(lanes));
    pool.set_thresholds(thresholds(site));
}

/// One of the two may be named alone: the other gives way then.
fn thresholds(site: &site::Pool) -> Thresholds {
    let usual = Thresholds::default();
    let (warn, alarm) = (usual.warn_percent, usual.alarm_percent);
    Thresholds {
        warn_percent: site
            .warn_at
            .unwrap_or(warn.min(site.alarm_at.unwrap_or(warn))),
        alarm_percent: site
            .alarm_at
            .unwrap_or(alarm.max(site.warn_at.unwrap_or(alarm))),
    }
}

/// The engine's word for the site's.
fn level(level: Level) -> engine::pool::Level {
    use engine::pool::Level as Engine;
    match level {
        Level::Simple => Engine::Simple,
        Level::Raid10 => Engine::Raid10 { copies: 2 },
        Level::Raid10x3 => Engine::Raid10 { copies: 3 },
        Level::Raid5 => Engine::Raid5,
        Level::Raid50 => Engine::Raid50,
        Level::Raid6 => Engine::Raid6,
    }
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

/// Drives that are open, by name; every lane of their pool has its own doors to them.
pub(super) type OpenDrives = Vec<(String, OpenDrive)>;

/// Opens drives. Whoever looked at them just now may not have closed them yet.
async fn open_drives(places: &[Place]) -> Result<OpenDrives, String> {
    let mut patience = Patience::default();
    let mut drives = Vec::new();
    for Place { name, path, .. } in places {
        let open = patience.open(path).await;
        let open = open.map_err(|error| format!("drive {name}: {error}"))?;
        drives.push((name.clone(), open));
    }
    Ok(drives)
}

/// Doors of a shard to drives.
pub(super) fn doors(state: &ShardState, drives: &OpenDrives) -> Vec<NamedDrive<RealWorld>> {
    let door = |(name, open): &(String, OpenDrive)| NamedDrive {
        name: name.clone(),
        drive: RealDrive::of(state.world(), open),
    };
    drives.iter().map(door).collect()
}
