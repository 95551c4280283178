//! Opens drives, and looks at those of a site before it opens or makes any.
//!
//! A drive that is in use is tried again for a while: what a server that was just killed
//! had in flight holds it for a moment longer, and so does who has just let go of it.
//!
//! Invariants:
//! - Whatever is wrong at a place is found there, and never an error of the look: what is not
//!   a drive, whole, is a drive that is missing, and its pool may do without it.
//! - A look ends, whatever it looks at: nobody waits for what does not answer.

mod second_look;

use crate::own_files::foreign;
use crate::shard::{ShardGone, ShardHandle, ShardState};
use crate::{blank, private};
use base::Uuid;
use engine::drive::Drive as _;
use engine::pool::{LabelSummary, Lane, PoolErrorKind};
use futures_util::future::join_all;
use site::human;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use world_real::{OpenDrive, OpenError, OpenErrorKind, RealDrive, reserve_holes};

/// Drives that are in use are tried so many times more in all, so far apart.
const IN_USE_LOOKS: u32 = 40;
const IN_USE_PAUSE: Duration = Duration::from_millis(50);

/// An opening, and a look at what is on a drive, take no longer each: what takes longer does
/// not answer.
const OPEN_TIME: Duration = Duration::from_secs(5);
pub(crate) const READ_TIME: Duration = Duration::from_secs(5);
/// A drive whose label is wiped has so long to answer.
const WIPE_TIME: Duration = Duration::from_secs(10);

/// How long there is to wait for drives that are in use: one for all that are opened
/// together, so that many of them don't take many times as long to be refused.
#[derive(Debug)]
pub struct Patience {
    looks_left: u32,
}

impl Default for Patience {
    fn default() -> Self {
        let looks_left = IN_USE_LOOKS;
        Patience { looks_left }
    }
}

impl Patience {
    /// Opens the drive at `path`.
    ///
    /// # Errors
    /// It is not there, not fit to be a drive, or still in use.
    pub async fn open(&mut self, path: &Path) -> Result<OpenDrive, OpenError> {
        self.open_while(path, || true).await
    }

    /// Opens the drive at `path`; waits for one in use only while `may_wait` says so,
    /// which is asked before each wait.
    pub(crate) async fn open_while(
        &mut self,
        path: &Path,
        may_wait: impl Fn() -> bool,
    ) -> Result<OpenDrive, OpenError> {
        loop {
            match OpenDrive::open_within(path, OPEN_TIME).await {
                Err(error)
                    if error.kind == OpenErrorKind::InUse && self.looks_left > 0 && may_wait() =>
                {
                    self.looks_left -= 1;
                    tokio::time::sleep(IN_USE_PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }
}

/// A drive of the site: where it is and how large the site says it is.
#[derive(Clone, Debug)]
pub(crate) struct DrivePlace {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// For a file.
    pub(crate) size_bytes: Option<u64>,
    /// The data directory of the array that looks there.
    pub(crate) data: PathBuf,
}

/// What is at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DriveContent {
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
pub(crate) struct Look {
    pub(crate) place: DrivePlace,
    pub(crate) found: DriveContent,
    /// Set when the size is another one.
    pub(crate) wrong_size: Option<WrongSize>,
}

/// A drive that is smaller or larger than the site says.
#[derive(Clone, Debug)]
pub(crate) struct WrongSize {
    pub(crate) smaller: bool,
    /// For people.
    pub(crate) context: String,
}

/// Looks at `places`, all at once, on `shard`, and lets go of them again. One that is in use
/// is waited for.
///
/// # Errors
/// The shard has stopped.
pub(crate) async fn look(
    shard: &ShardHandle,
    places: Vec<DrivePlace>,
) -> Result<Vec<Look>, ShardGone> {
    let visit = |state: Rc<ShardState>| async move {
        let looks = places
            .into_iter()
            .map(|place| look_at(&state, place, Patience::default()));
        let mut looks = join_all(looks).await;
        second_look::by_other_lanes(&state, &mut looks, &mut Patience::default()).await;
        looks
    };
    shard.call(visit).await
}

/// Looks at one place, as [`look`] does, and does not wait for what is in use.
///
/// # Errors
/// The shard has stopped.
pub(crate) async fn glance(shard: &ShardHandle, place: DrivePlace) -> Result<Look, ShardGone> {
    let visit = |state: Rc<ShardState>| async move {
        let patience = Patience { looks_left: 0 };
        look_at(&state, place, patience).await
    };
    shard.call(visit).await
}

/// The files among `paths` that have a label, each with the name of the pool. Changes nothing, and
/// does not wait for what is in use.
///
/// # Errors
/// The shard has stopped.
pub(crate) async fn labels(
    shard: &ShardHandle,
    paths: Vec<PathBuf>,
) -> Result<Vec<(String, PathBuf)>, ShardGone> {
    let visit = |state: Rc<ShardState>| async move {
        let label_of = async |path: PathBuf| {
            let open = Patience { looks_left: 0 }.open(&path).await.ok()?;
            let drive = RealDrive::of(state.world(), &open);
            let probed = tokio::time::timeout(READ_TIME, Lane::probe(state.world(), &drive)).await;
            let label = probed.ok()?.ok()??;
            Some((label.pool_name, path))
        };
        let looks = join_all(paths.into_iter().map(label_of)).await;
        looks.into_iter().flatten().collect()
    };
    shard.call(visit).await
}

/// Takes the labels of a pool that is no more off the drives at `paths`; without `uuid`, of any pool
/// of that name. Leaves those in another array's data directory alone. Warns of a drive that can't be
/// wiped, for it may still say that it is of that pool; gives those, without any that is away.
///
/// # Errors
/// The shard has stopped.
pub(crate) async fn unlabel(
    (shard, data): (&ShardHandle, &Path),
    pool: &str,
    uuid: Option<Uuid>,
    paths: Vec<PathBuf>,
) -> Result<Vec<PathBuf>, ShardGone> {
    let (pool, data) = (pool.to_owned(), data.to_owned());
    let visit = move |state: Rc<ShardState>| async move {
        let mut left = Vec::new();
        let is_its = |name: &str, found: Uuid| uuid.map_or(name == pool, |uuid| uuid == found);
        for path in paths {
            let opened = Patience::default().open(&path).await;
            let is_away = matches!(&opened, Err(error) if error.kind == OpenErrorKind::NotFound);
            let wiped = match opened {
                Ok(_) if foreign(&data, &path).await.is_some() => continue,
                Ok(open) => {
                    let drive = Rc::new(RealDrive::of(state.world(), &open));
                    let wiping = Lane::unlabel(state.world(), drive, is_its);
                    match tokio::time::timeout(WIPE_TIME, wiping).await {
                        Ok(wiped) => wiped.map_err(|error| error.to_string()),
                        Err(_) => Err(format!("it does not answer within {WIPE_TIME:?}")),
                    }
                }
                Err(error) => Err(error.to_string()),
            };
            if let Err(why) = wiped {
                let shown = path.display();
                tracing::warn!("pool {pool} is no more, and {shown} may keep its label: {why}");
                if !is_away {
                    left.push(path);
                }
            }
        }
        left
    };
    shard.call(visit).await
}

/// Removes files that the making of a pool has left, since it did not end: nothing was ever
/// acknowledged there. A file that another pool has by now, or that is another array's, stays.
/// Warns of a file that can't be removed; gives those.
///
/// # Errors
/// The shard has stopped.
pub(crate) async fn remove_unfinished(
    (shard, data): (&ShardHandle, &Path),
    pool: &str,
    files: Vec<PathBuf>,
) -> Result<Vec<PathBuf>, ShardGone> {
    let (name, data) = (pool.to_owned(), data.to_owned());
    let visit = move |state: Rc<ShardState>| async move {
        let mut found = Vec::new();
        for path in files {
            let user = user_of(&state, (&data, &path), &name).await;
            found.push((path, user));
        }
        found
    };
    let mut left = Vec::new();
    for (path, user) in shard.call(visit).await? {
        let is_another = matches!(user, Some(FileUser::Another(_)));
        let removed = match user {
            Some(FileUser::Another(why) | FileUser::Unknown(why)) => Err(why),
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error.to_string()),
                _ => Ok(()),
            },
        };
        let shown = path.display();
        match removed {
            Ok(()) => tracing::info!("{shown} is removed: the making of pool {pool} was cut short"),
            Err(why) => {
                tracing::warn!("the making of pool {pool} was cut short, and {shown} stays: {why}");
                if !is_another {
                    left.push(path);
                }
            }
        }
    }
    Ok(left)
}

/// Who uses a file that was made for a pool; says why it may not be removed.
enum FileUser {
    /// Somebody has it open, or it does not answer.
    Unknown(String),
    /// Another pool, or another array: it is this pool's no more.
    Another(String),
}

/// Who uses a file that was made for `pool`, if anybody does.
async fn user_of(state: &ShardState, (data, path): (&Path, &Path), pool: &str) -> Option<FileUser> {
    let open = match Patience::default().open(path).await {
        Ok(open) => open,
        Err(error) => {
            let is_kept = matches!(error.kind, OpenErrorKind::InUse | OpenErrorKind::Silent);
            return is_kept.then(|| FileUser::Unknown(error.to_string()));
        }
    };
    if let Some(why) = foreign(data, path).await {
        return Some(FileUser::Another(why));
    }
    let drive = RealDrive::of(state.world(), &open);
    let label = Lane::probe(state.world(), &drive).await.ok().flatten();
    let other = label.filter(|label| label.pool_name != pool)?;
    let why = format!("it is a drive of pool {}", other.pool_name);
    Some(FileUser::Another(why))
}

async fn look_at(state: &ShardState, place: DrivePlace, mut patience: Patience) -> Look {
    let opened = patience.open(&place.path).await;
    // Not before: where nothing answers, this would not either.
    let wrong = match &opened {
        Err(error) if error.kind != OpenErrorKind::NotFound => None,
        _ => foreign(&place.data, &place.path).await,
    };
    if let Some(why) = wrong {
        return Look {
            place,
            found: DriveContent::Unusable(why),
            wrong_size: None,
        };
    }
    let (found, wrong_size) = match opened {
        Ok(open) => {
            let drive = RealDrive::of(state.world(), &open);
            let wrong_size = wrong_size(&place, drive.geometry().capacity_bytes);
            (what_is_on(state, &place, drive).await, wrong_size)
        }
        Err(error) if error.kind == OpenErrorKind::NotFound => {
            (DriveContent::Nothing(error.to_string()), None)
        }
        // A device whose node is dead, a file that was emptied, a lock that is held: its pool
        // may do without it.
        Err(error) => (DriveContent::Unusable(error.to_string()), None),
    };
    Look {
        place,
        found,
        wrong_size,
    }
}

async fn what_is_on(state: &ShardState, place: &DrivePlace, drive: RealDrive) -> DriveContent {
    let path = place.path.display();
    let reading = async {
        match Lane::probe(state.world(), &drive).await {
            Ok(Some(label)) => {
                mend_aside(place.path.clone());
                DriveContent::Labelled(label)
            }
            Err(error) if error.kind == PoolErrorKind::Drive => {
                DriveContent::Unusable(format!("{path}: its label can't be read: {error}"))
            }
            Err(error) => DriveContent::Unusable(format!("{path}: {error}")),
            Ok(None) => match blank::is_blank(state.world(), &drive).await {
                Ok(true) => DriveContent::Empty,
                Ok(false) => DriveContent::Occupied,
                Err(error) => DriveContent::Unusable(format!("{path}: it can't be read: {error}")),
            },
        }
    };
    let read = tokio::time::timeout(READ_TIME, reading).await;
    read.unwrap_or_else(|_| {
        DriveContent::Unusable(format!(
            "{path}: it does not answer: a read has not ended after {READ_TIME:?}"
        ))
    })
}

/// Has a drive file be private, and have all its space. Its file system may hold whoever asks: no
/// shard waits for that.
fn mend_aside(path: PathBuf) {
    let mend = move || {
        private::tighten(&path);
        let (holes, path) = (reserve_holes(&path), path.display());
        match holes {
            Ok(0) => {}
            Ok(bytes) => {
                tracing::info!("{path}: it had holes; {} are reserved for it", human(bytes))
            }
            Err(error) => tracing::warn!(
                "{error}: the drive's file has holes, and writes into them fail when the file \
                 system is full: free space there, and start again"
            ),
        }
    };
    let begun = std::thread::Builder::new()
        .name("drive file".to_owned())
        .spawn(mend);
    if let Err(error) = begun {
        tracing::warn!("no thread to look at a drive's file: {error}");
    }
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

/// How long a file system may take to say what is at a path.
const PLACE_TIME: Duration = Duration::from_secs(5);

/// Whether this process has the file or the device at `path` open. Another may have been put there.
pub(crate) async fn is_open_here(path: &Path) -> bool {
    let asked = world_real::within(path, PLACE_TIME, |path| {
        Ok(world_real::is_open_here(path).unwrap_or(false))
    });
    asked.await.unwrap_or(false)
}
