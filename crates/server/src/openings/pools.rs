//! Decides which pools to open and which to make, and explains each refusal.
//!
//! Invariants:
//! - Of a pool that is there, whatever is not one of its drives, whole, is a drive that is
//!   missing. One that can't be opened for that keeps no other from being opened.
//! - Only what was never made is made.

use super::lanes::{self, OpenedDrive};
use super::made::{Made, MadePool};
use super::old_data;
use super::pool_plan::{Action, PoolPlan, misplaced};
use super::taking_back;
use crate::array::{AddedDrive, Array, MissingDrive, PlacedVolume};
use crate::blank;
use crate::bring_up_error::{BringUpError, BringUpErrorKind};
use crate::data_dir::DataDir;
use crate::drive_files::{self, DriveContent, DrivePlace, Look, Patience};
use crate::shard::{ShardHandle, ShardState};
use ::array::pool::opening::{NotOpened, Opening, doors};
use engine::drives::EventKind;
use engine::pool::{LabelSummary, Lane, PoolSpec};
use site::Site;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use world_real::{OpenError, RealDrive, RealWorld};

/// What came of opening a pool.
pub(crate) enum Outcome {
    /// It is open, without these drives.
    Open(Vec<MissingDrive>),
    /// It is not, for these reasons.
    Closed(Vec<String>),
}

/// What is known of a pool before its drives are looked at.
pub(crate) struct KnownPool<'a> {
    pub(crate) site: &'a Site,
    pub(crate) data: &'a DataDir,
    pub(crate) made: &'a Made,
    /// The drives that the API added.
    pub(crate) added: &'a [AddedDrive],
    /// Why drives are out of use, by the identity of the drive.
    pub(crate) failed: &'a BTreeMap<String, String>,
}

impl KnownPool<'_> {
    /// Whether an array that has been up before has no record of this pool: it is never made at a
    /// start, for its drives may be away.
    fn is_forgotten(&self, name: &str) -> bool {
        self.made.is_configured && !self.made.pools.contains_key(name)
    }
}

/// Looks at all drives of the site and decides. Removes files of a pool whose
/// making was cut short, and changes nothing else.
///
/// # Errors
/// Every drive that stands in the way of making a pool.
pub(crate) async fn plan(
    known: &KnownPool<'_>,
    shards: &[ShardHandle],
) -> Result<Vec<PoolPlan>, BringUpError> {
    let mut plans = Vec::new();
    let mut wrong = Vec::new();
    for pool in &known.site.pools {
        let record = known.made.pools.get(&pool.name);
        if let Some(MadePool::BeingMade { new_files, .. }) = record {
            let of = (&shards[0], known.data.path());
            drive_files::remove_unfinished(of, &pool.name, new_files.clone()).await?;
        }
        match plan_one(known, shards, &pool.name).await? {
            Ok(plan) => plans.extend(plan),
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
        false => Err(BringUpError::all(BringUpErrorKind::Drive, &wrong)),
    }
}

/// Looks at the drives of one pool and decides; nothing where the site has none of that
/// name.
///
/// # Errors
/// A shard has stopped; inside, every drive that stands in the way of making it.
pub(crate) async fn plan_one(
    known: &KnownPool<'_>,
    shards: &[ShardHandle],
    name: &str,
) -> Result<Result<Option<PoolPlan>, Vec<String>>, BringUpError> {
    let mut pools = known.site.pools.iter().enumerate();
    let Some((index, pool)) = pools.find(|(_, pool)| pool.name == name) else {
        return Ok(Ok(None));
    };
    let places = places(known, pool);
    let looks = drive_files::look(&shards[index % shards.len()], places).await?;
    let uuid = match known.made.pools.get(name) {
        Some(MadePool::Made { uuid, .. }) => Some(uuid.as_str()),
        _ => None,
    };
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
    Ok(decided.map(|(places, action)| {
        Some(PoolPlan {
            spec: pool.clone(),
            shards: on.collect(),
            places,
            failed: failed.clone(),
            label: label.clone(),
            action,
        })
    }))
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
pub(crate) fn homes(plans: &[PoolPlan]) -> BTreeMap<String, Vec<usize>> {
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

/// The places of a pool's drives: the site's, and those that the API added.
fn places(known: &KnownPool<'_>, pool: &site::Pool) -> Vec<DrivePlace> {
    let drives = pool.drives().filter_map(|name| known.site.drive(name));
    let mut places: Vec<DrivePlace> = drives.map(|drive| known.data.place(drive)).collect();
    places.retain(|place| {
        let elsewhere = |drive: &&AddedDrive| drive.path == place.path && drive.pool != pool.name;
        let Some(drive) = known.added.iter().find(elsewhere) else {
            return true;
        };
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
            let (name, path) = (drive.name.clone(), drive.path.clone());
            places.push(known.data.place_at(name, path, None));
        }
    }
    places
}

/// Whether a pool is opened or made, and of which drives, given what is at their places and
/// the identity that it was made with here, if it was.
fn decide(
    name: &str,
    looks: Vec<Look>,
    uuid: Option<&str>,
) -> Result<(Vec<DrivePlace>, Action), Vec<String>> {
    let is_labelled = |look: &Look| matches!(look.found, DriveContent::Labelled(_));
    if uuid.is_none() && !looks.iter().any(is_labelled) {
        return decide_make(looks);
    }
    let is_clean = looks.iter().all(|look| match &look.found {
        DriveContent::Labelled(label) => label.is_clean,
        _ => true,
    });
    let is_known = uuid.is_some();
    let uuid = uuid
        .map(str::to_owned)
        .or_else(|| most_labelled(&looks, name));
    let (places, missing) = decide_open(name, looks, uuid.as_deref());
    if !places.is_empty() {
        return Ok((places, Action::Open { missing, is_clean }));
    }
    let why = missing.iter().map(MissingDrive::to_string).collect();
    match is_known {
        true => Ok((places, Action::Refuse { why })),
        // Nobody knows of such a pool: it would be made, and all drives are others'.
        false => Err(why),
    }
}

/// Of the pools called `name`, the one that most of the drives are of; none where two have as
/// many.
fn most_labelled(looks: &[Look], name: &str) -> Option<String> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for look in looks {
        if let DriveContent::Labelled(label) = &look.found
            && label.pool_name == name
        {
            *found.entry(label.pool_uuid.to_string()).or_default() += 1;
        }
    }
    let most = found.values().copied().max()?;
    let mut largest = found.into_iter().filter(|(_, drives)| *drives == most);
    let (uuid, _) = largest.next()?;
    largest.next().is_none().then_some(uuid)
}

/// A pool that is there: its drives that are there, and what is to be said of the others.
fn decide_open(
    name: &str,
    looks: Vec<Look>,
    uuid: Option<&str>,
) -> (Vec<DrivePlace>, Vec<MissingDrive>) {
    let mut missing = Vec::new();
    let mut places = Vec::new();
    for Look {
        place,
        found,
        wrong_size,
    } in looks
    {
        let path = place.path.display();
        let why = match found {
            DriveContent::Nothing(_) => Some(format!(
                "{path} is not there, and pool {name} holds data on this drive; bring the file \
                 back (Ashlar does not create it again)"
            )),
            DriveContent::Empty | DriveContent::Occupied => Some(format!(
                "{path} has no label: it isn't the drive that pool {name} was made with; put that \
                 one in its place"
            )),
            DriveContent::Unusable(why) => Some(format!(
                "{why}; pool {name} holds data on this drive: repair it, or run `ashlar drive replace {}`",
                place.name
            )),
            DriveContent::Labelled(label) => misplaced(&label, name, &place, uuid),
        };
        if let Some(why) = why {
            missing.push(MissingDrive::new(place.name, place.path, why));
            continue;
        }
        match wrong_size {
            // The engine leaves it out, for its label says how large it was.
            Some(size) if size.smaller => {
                let (name, path) = (place.name.clone(), place.path.clone());
                missing.push(MissingDrive::new(name, path, size.context));
            }
            // All of it is there.
            Some(size) => tracing::warn!("pool {name}: drive {}: {}", place.name, size.context),
            None => {}
        }
        places.push(place);
    }
    (places, missing)
}

/// A pool that is not there: every drive must be free to take.
fn decide_make(looks: Vec<Look>) -> Result<(Vec<DrivePlace>, Action), Vec<String>> {
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
            (DriveContent::Nothing(_), Some(size_bytes), _) => {
                new_files.push((place.path.clone(), size_bytes));
                None
            }
            (DriveContent::Nothing(why) | DriveContent::Unusable(why), _, _) => Some(why),
            (DriveContent::Occupied, _, _) => Some(format!("{path} {}", blank::REMEDY)),
            (DriveContent::Empty | DriveContent::Labelled(_), _, _) => None,
        };
        wrong.extend(why.map(|why| format!("drive {}: {why}", place.name)));
        places.push(place);
    }
    match wrong.is_empty() {
        true => Ok((places, Action::Make { new_files })),
        false => Err(wrong),
    }
}

/// Opens a pool that is there; nothing of one that is to be made.
///
/// # Errors
/// A shard has stopped.
pub(crate) async fn open(
    plan: &PoolPlan,
    shards: &[ShardHandle],
) -> Result<Option<Outcome>, BringUpError> {
    let mut missing = match &plan.action {
        Action::Open { missing, .. } => missing.clone(),
        Action::Refuse { why } => return Ok(Some(Outcome::Closed(why.clone()))),
        Action::Make { .. } => return Ok(None),
    };
    let (drives, unopened) = open_those_there(&plan.places).await;
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
    let missed: Vec<MissingDrive> = missing.iter().filter(is_missed).cloned().collect();
    let name = &plan.spec.name;
    for drive in &missed {
        tracing::warn!("pool {name} comes up without a drive: {drive}");
    }
    if let Some(first) = plan.shards.first().filter(|_| !missed.is_empty()) {
        tell(&shards[*first], name.clone(), missed).await?;
    }
    Ok(Some(Outcome::Open(missing)))
}

/// Opens the lanes of a pool, and gives the names of its drives.
///
/// # Errors
/// A shard has stopped; inside, why the pool can't be opened.
async fn open_lanes(
    plan: &PoolPlan,
    shards: &[ShardHandle],
    drives: &[OpenedDrive],
) -> Result<Result<Vec<String>, String>, BringUpError> {
    match lanes::of(plan, shards).open(drives).await {
        Ok(info) => {
            let members = info.members.into_iter();
            Ok(Ok(members.map(|member| member.name).collect()))
        }
        Err(NotOpened::Lane(error)) => Ok(Err(format!("pool {}: {error}", plan.spec.name))),
        Err(NotOpened::Shard(gone)) => Err(gone.into()),
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
pub(crate) async fn take_note(
    plan: &PoolPlan,
    outcome: Outcome,
    array: &Arc<Array>,
    shards: &[ShardHandle],
) -> Result<(), BringUpError> {
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
                lanes::of(plan, shards).close().await?;
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
async fn twice(pool: &str, array: &Array) -> Result<Option<(String, String)>, BringUpError> {
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

/// Has events of a pool say why its drives are missing.
async fn tell(
    shard: &ShardHandle,
    pool: String,
    missing: Vec<MissingDrive>,
) -> Result<(), BringUpError> {
    let visit = move |state: Rc<ShardState>| async move {
        let Some(pool) = state.pool(&pool) else {
            return;
        };
        for drive in missing {
            let text = format!("drive '{}' is missing: {}", drive.name, drive.why);
            pool.tell(EventKind::DriveMissing, text);
        }
    };
    Ok(shard.call(visit).await?)
}

/// Records an open pool that was made in another data directory: it is never made anew here, even
/// when all of its drives are away.
///
/// # Errors
/// A shard has stopped, or the record can't be written.
pub(crate) async fn remember(
    name: &str,
    array: &Array,
    data: &DataDir,
    made: &mut Made,
) -> Result<(), BringUpError> {
    if made.pools.contains_key(name) {
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
    made.set(data, name, Some(known))
}

/// Makes the pools that aren't there.
///
/// # Errors
/// What stands in the way. The pool that fails is taken back then. The record says that it is being
/// made, and what is left of it: the caller takes the pool out of the settings, and has the record
/// forget it.
pub(crate) async fn make(
    plans: Vec<PoolPlan>,
    shards: &[ShardHandle],
    data: &DataDir,
    made: &mut Made,
) -> Result<(), BringUpError> {
    for plan in plans {
        let Action::Make { new_files } = &plan.action else {
            continue;
        };
        let (spec, lanes) = (&plan.spec, lanes::of(&plan, shards));
        let files: Vec<PathBuf> = new_files.iter().map(|(path, _)| path.clone()).collect();
        let of_before = paths_of_before(&plan, &files);
        let being_made = MadePool::BeingMade {
            new_files: files.clone(),
            of_before: of_before.clone(),
        };
        made.set(data, &spec.name, Some(being_made))?;
        let drives: Vec<String> = spec.drives().cloned().collect();
        let (created, filled) = make_files(new_files.clone()).await;
        // Without it, any of them may be there.
        let created = created.unwrap_or(files);
        let recorded = async {
            filled?;
            let uuid = make_one(&plan, &lanes, shards).await?;
            let drives = drives.clone();
            made.set(data, &spec.name, Some(MadePool::Made { uuid, drives }))
        };
        if let Err(error) = recorded.await {
            // With a shard that has stopped, its lane is closed.
            let _ = lanes.close().await;
            // Those of before were empty.
            let paths = (created, of_before);
            unmake((shards, data), &spec.name, paths, made).await;
            return Err(error);
        }
        tracing::info!("made pool {} of {}", spec.name, drives.join(", "));
    }
    Ok(())
}

/// Where a pool has drives that were there before it is made.
fn paths_of_before(plan: &PoolPlan, new_files: &[PathBuf]) -> Vec<PathBuf> {
    let paths = plan.places.iter().map(|place| place.path.clone());
    paths.filter(|path| !new_files.contains(path)).collect()
}

/// Takes back what there is of a pool that could not be made, and notes what is left.
async fn unmake(
    (shards, data): (&[ShardHandle], &DataDir),
    name: &str,
    paths: (Vec<PathBuf>, Vec<PathBuf>),
    made: &mut Made,
) {
    let left = taking_back::take_back((&shards[0], data.path()), name, paths).await;
    let noted = match left {
        Ok(left) => made.set(data, name, Some(left)),
        Err(gone) => Err(gone.into()),
    };
    if let Err(why) = noted {
        tracing::error!("pool {name}, which could not be made, is not taken back: {why}");
    }
}

/// That drives which are about to be a pool's are still empty: they were looked at, and closed.
async fn check_blank(state: &ShardState, drives: &[OpenedDrive]) -> Result<(), String> {
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

/// What no other pool was made with.
fn nonce() -> Result<u64, String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(u64::from_le_bytes(random))
}

/// Makes one pool, whose files are there, and gives its identity.
async fn make_one(
    plan: &PoolPlan,
    lanes: &Opening<RealWorld>,
    shards: &[ShardHandle],
) -> Result<String, BringUpError> {
    let failed = |context| BringUpError::new(BringUpErrorKind::Pool, context);
    let (mut drives, missing) = open_those_there(&plan.places).await;
    if let Some(missing) = missing.first() {
        return Err(failed(missing.to_string()));
    }
    let pool = &plan.spec;
    let mut spec = PoolSpec::new(&pool.name, pool.groups[0].level);
    spec.stripe_unit_bytes = pool.stripe_unit_bytes;
    spec.page_bytes = pool.page_bytes;
    spec.log_bytes = pool.log_bytes;
    spec.log_group = pool.log_group();
    spec.nonce = nonce().map_err(failed)?;
    let looked_at = drives.clone();
    let visit = move |state: Rc<ShardState>| async move { check_blank(&state, &looked_at).await };
    let first = &shards[plan.shards[0]];
    first.call(visit).await?.map_err(failed)?;
    let mut groups = Vec::new();
    for group in &pool.groups {
        let rest = drives.split_off(group.drives.len().min(drives.len()));
        groups.push((group.level, std::mem::replace(&mut drives, rest)));
    }
    let (groups, spares) = (groups, drives);
    match lanes.create(&spec, &groups, &spares).await {
        Ok(info) => Ok(info.uuid.to_string()),
        Err(NotOpened::Lane(error)) => Err(failed(format!("pool {}: {error}", pool.name))),
        Err(NotOpened::Shard(gone)) => Err(gone.into()),
    }
}

/// Makes files of these sizes; gives those that it has made, also when there is an error, unless
/// nobody can say.
async fn make_files(
    new_files: Vec<(PathBuf, u64)>,
) -> (Option<Vec<PathBuf>>, Result<(), BringUpError>) {
    let making = tokio::task::spawn_blocking(move || {
        let mut made = Vec::new();
        let outcome = new_files.into_iter().try_for_each(|(path, size)| {
            RealDrive::create_file(&path, size)?;
            made.push(path);
            Ok::<(), OpenError>(())
        });
        (made, outcome)
    });
    match making.await {
        Ok((made, outcome)) => {
            let failed =
                |error: OpenError| BringUpError::new(BringUpErrorKind::Drive, error.to_string());
            (Some(made), outcome.map_err(failed))
        }
        Err(error) => {
            let context = format!("making drive files ended early: {error}");
            let error = BringUpError::new(BringUpErrorKind::System, context);
            (None, Err(error))
        }
    }
}

/// Opens drives; those that can't be are given, too. Whoever looked at them just now may not have
/// closed them yet.
async fn open_those_there(places: &[DrivePlace]) -> (Vec<OpenedDrive>, Vec<MissingDrive>) {
    let mut patience = Patience::default();
    let (mut drives, mut missing) = (Vec::new(), Vec::new());
    for DrivePlace { name, path, .. } in places {
        match patience.open(path).await {
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
