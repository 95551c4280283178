//! Looks at the drives of a site before any is opened or made.
//!
//! Invariants:
//! - Whatever is wrong at a place is found there, and never an error of the look. What is not a whole
//!   drive counts as missing, and its pool may do without it.
//! - A look ends, whatever it looks at: nobody waits for what does not answer.
//! - A look writes nothing.

mod second_look;

use super::bays::{
    DriveBays, NotOpenKind, Patience, READ_TIME, READY_TIME, SpinUp, in_time, is_unread,
};
use crate::bays::blank;
use crate::shard::{ShardGone, ShardHandle, ShardState};
use base::Time;
use engine::World;
use engine::drive::Drive as _;
use engine::pool::{LabelSummary, Lane};
use futures_util::future::join_all;
use site::{DriveSource, human};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A drive of the site: where it is and how large the site says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrivePlace {
    pub name: String,
    pub path: PathBuf,
    /// That of a file; devices have none in a site.
    pub size_bytes: Option<u64>,
}

impl DrivePlace {
    /// Where a drive of a site is; a file's path is relative to the directory `data`.
    pub fn of(drive: &site::Drive, data: &Path) -> Self {
        DrivePlace {
            name: drive.name.clone(),
            path: data.join(drive.source.path()),
            size_bytes: match drive.source {
                DriveSource::File { size_bytes, .. } => Some(size_bytes),
                DriveSource::Device { .. } => None,
            },
        }
    }

    /// Where a drive is that a record names.
    pub fn at(name: String, path: PathBuf) -> Self {
        DrivePlace {
            name,
            path,
            size_bytes: None,
        }
    }
}

/// What is at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriveContent {
    /// Nothing; says so.
    Nothing(String),
    /// A drive without label, with nothing on it.
    Empty,
    /// A drive without label, with something on it.
    Occupied,
    /// What can't be opened, can't be a drive, does not answer, or has no label that can be
    /// read; says why.
    Unusable(String),
    /// A drive of a pool.
    Labelled(LabelSummary),
}

/// What is at a place, and whether its size is what the site says.
#[derive(Clone, Debug)]
pub struct Look {
    pub place: DrivePlace,
    pub found: DriveContent,
    /// Set when the size is another one.
    pub wrong_size: Option<WrongSize>,
    /// It can't be used now, and may be ready later.
    is_unready: bool,
}

/// A drive that is smaller or larger than the site says.
#[derive(Clone, Debug)]
pub struct WrongSize {
    pub smaller: bool,
    /// Both sizes and what to do, for people.
    pub context: String,
}

/// Drives that are not ready are tried so far apart.
const READY_PAUSE: Duration = Duration::from_millis(500);

/// Looks at `places`, all at once, on `shard`, and lets go of them again. One that is in use, or not
/// ready, is waited for.
///
/// # Errors
/// The shard has stopped.
pub(super) async fn look<W: World>(
    bays: &Arc<dyn DriveBays<W>>,
    shard: &ShardHandle<W>,
    places: Vec<DrivePlace>,
    spin_up: &SpinUp,
) -> Result<Vec<Look>, ShardGone> {
    let (bays, spin_up) = (Arc::clone(bays), spin_up.clone());
    let visit = |state: Rc<ShardState<W>>| async move {
        let now = state.world().now();
        let planted = "drive that is not ready is not waited for";
        let until = match bays.planted(planted) {
            true => now,
            false => spin_up.until(now),
        };
        let looks = places
            .into_iter()
            .map(|place| look_when_ready(&state, &*bays, place, until));
        let mut looks = join_all(looks).await;
        second_look::by_other_lanes(&state, &*bays, &mut looks).await;
        looks
    };
    shard.call(visit).await
}

/// Looks at one place, as [`look`] does, and does not wait for what is in use.
///
/// # Errors
/// The shard has stopped.
pub(super) async fn glance<W: World>(
    bays: &Arc<dyn DriveBays<W>>,
    shard: &ShardHandle<W>,
    place: DrivePlace,
) -> Result<Look, ShardGone> {
    let bays = Arc::clone(bays);
    let visit = |state: Rc<ShardState<W>>| async move {
        let now = state.world().now();
        look_at(&state, &*bays, place, (Patience::none(), now)).await
    };
    shard.call(visit).await
}

/// The drives among `paths` that have a label, each with the name of the pool. Changes nothing, and
/// does not wait for what is in use.
///
/// # Errors
/// The shard has stopped.
pub(super) async fn labels<W: World>(
    bays: &Arc<dyn DriveBays<W>>,
    shard: &ShardHandle<W>,
    paths: Vec<PathBuf>,
) -> Result<Vec<(String, PathBuf)>, ShardGone> {
    let bays = Arc::clone(bays);
    let visit = |state: Rc<ShardState<W>>| async move {
        let label_of = async |path: PathBuf| {
            let open = bays.open(&path, &mut Patience::none()).await.ok()?;
            let drive = open.door(&state);
            let probe = Lane::probe(state.world(), &drive);
            let label = in_time(state.world(), READ_TIME, probe).await?.ok()??;
            Some((label.pool_name, path))
        };
        let looks = join_all(paths.into_iter().map(label_of)).await;
        looks.into_iter().flatten().collect()
    };
    shard.call(visit).await
}

/// Looks at a place again and again until its drive is ready, but not after `until`.
async fn look_when_ready<W: World>(
    state: &ShardState<W>,
    bays: &dyn DriveBays<W>,
    place: DrivePlace,
    until: Time,
) -> Look {
    let began = state.world().now();
    let mut is_told = false;
    loop {
        let patience = (Patience::default(), until);
        let look = look_at(state, bays, place.clone(), patience).await;
        let waited = state.world().now().since(began);
        // A read that was waited for is told of there.
        if (is_told || waited >= READ_TIME) && !look.is_unready {
            bays.reached("drive that was not ready waited for");
            tracing::info!("drive {}: it is ready after {waited:?}", place.name);
        }
        if !look.is_unready || state.world().now() >= until {
            return look;
        }
        if let (DriveContent::Unusable(why), false) = (&look.found, is_told) {
            tell_unready(&place, why);
            is_told = true;
        }
        state.world().sleep(READY_PAUSE).await;
    }
}

fn tell_unready(place: &DrivePlace, why: &str) {
    tracing::warn!(
        "drive {}: {why}; it may spin up, and its pool waits for it up to {READY_TIME:?}",
        place.name
    );
}

/// Looks once. What does not answer a read has `until` to do so.
async fn look_at<W: World>(
    state: &ShardState<W>,
    bays: &dyn DriveBays<W>,
    place: DrivePlace,
    (mut patience, until): (Patience, Time),
) -> Look {
    let opened = bays.open(&place.path, &mut patience).await;
    // Not before: where nothing answers, this would not either.
    let wrong = match &opened {
        Err(error) if error.kind != NotOpenKind::NotFound => None,
        _ => bays.foreign(&place.path).await,
    };
    if let Some(why) = wrong {
        return Look::of(place, DriveContent::Unusable(why));
    }
    match opened {
        Ok(open) => {
            let drive = open.door(state);
            let wrong_size = wrong_size(&place, drive.geometry().capacity_bytes);
            let (found, is_unready) = match what_is_on(state, bays, (&place, until), &drive).await {
                Ok(found) => (found, false),
                Err(why) => (DriveContent::Unusable(why), true),
            };
            Look {
                place,
                found,
                wrong_size,
                is_unready,
            }
        }
        Err(error) if error.kind == NotOpenKind::NotFound => {
            Look::of(place, DriveContent::Nothing(error.context))
        }
        // A device whose node is dead, a file that was emptied, a lock that is held: its pool
        // may do without it.
        Err(error) => Look {
            is_unready: matches!(error.kind, NotOpenKind::Silent | NotOpenKind::NotReady),
            ..Look::of(place, DriveContent::Unusable(error.context))
        },
    }
}

impl Look {
    fn of(place: DrivePlace, found: DriveContent) -> Look {
        Look {
            place,
            found,
            wrong_size: None,
            is_unready: false,
        }
    }
}

/// What is on a drive. One that does not answer is waited for `until`, and for [`READ_TIME`].
///
/// # Errors
/// Why it can't be read.
async fn what_is_on<W: World>(
    state: &ShardState<W>,
    bays: &dyn DriveBays<W>,
    (place, until): (&DrivePlace, Time),
    drive: &W::Drive,
) -> Result<DriveContent, String> {
    let path = place.path.display();
    let reading = async {
        match Lane::probe(state.world(), drive).await {
            Ok(Some(label)) => {
                bays.is_labelled(&place.path);
                Ok(DriveContent::Labelled(label))
            }
            Err(error) if is_unread(&error) => {
                Err(format!("{path}: its label can't be read: {error}"))
            }
            Err(error) => Ok(DriveContent::Unusable(format!("{path}: {error}"))),
            Ok(None) => match blank::is_blank(state.world(), drive).await {
                Ok(true) => Ok(DriveContent::Empty),
                Ok(false) => Ok(DriveContent::Occupied),
                Err(error) => Err(format!("{path}: it can't be read: {error}")),
            },
        }
    };
    let mut reading = pin!(reading);
    if let Some(read) = in_time(state.world(), READ_TIME, reading.as_mut()).await {
        return read;
    }
    let why = format!("{path}: it does not answer: a read has not ended after {READ_TIME:?}");
    let left = until.since(state.world().now());
    if left.is_zero() {
        return Err(why);
    }
    tell_unready(place, &why);
    // Asked again, it could not be opened: the first read has it open.
    let read = in_time(state.world(), left, reading).await;
    read.unwrap_or(Err(why))
}

fn wrong_size(place: &DrivePlace, capacity_bytes: u64) -> Option<WrongSize> {
    let size_bytes = place.size_bytes.filter(|size| *size != capacity_bytes)?;
    let smaller = capacity_bytes < size_bytes;
    let what = if smaller { "too small" } else { "too large" };
    let (there, wanted) = (human(capacity_bytes), human(size_bytes));
    let context = format!(
        "{}: {what}: it has {there} ({capacity_bytes} bytes), the site says {wanted}; put back the \
         file that was here, or correct size in the site file",
        place.path.display()
    );
    Some(WrongSize { smaller, context })
}
