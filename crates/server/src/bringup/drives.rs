//! Opening drives, and a look at those of a site before anything is opened or made.
//!
//! A drive that is in use is tried again for a while: what a server that was just killed
//! had in flight holds it for a moment longer, and so does who has just let go of it.

use super::{BringUpError, BringUpErrorKind, second_look};
use crate::blank;
use crate::shard::{ShardHandle, ShardState};
use engine::drive::Drive as _;
use engine::pool::{LabelSummary, Pool, PoolErrorKind};
use site::human;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use world::real::{OpenDrive, OpenError, OpenErrorKind, RealDrive};

/// Drives that are in use are tried so many times more in all, so far apart.
const IN_USE_LOOKS: u32 = 40;
const IN_USE_PAUSE: Duration = Duration::from_millis(50);

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
            match OpenDrive::open(path) {
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
pub(super) struct Place {
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// For a file.
    pub(super) size_bytes: Option<u64>,
}

/// What is at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing; says so.
    Nothing(String),
    /// A drive without label, with nothing on it.
    Empty,
    /// A drive without label, with something on it.
    Occupied,
    /// What can't be a drive, or can't be read where its label would be; says why.
    Unreadable(String),
    /// A drive of a pool.
    Labelled(LabelSummary),
}

/// What is at a place, and whether its size is what the site says.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) place: Place,
    pub(super) found: Found,
    /// Set when the size is another one.
    pub(super) wrong_size: Option<WrongSize>,
}

/// A drive that is smaller or larger than the site says.
#[derive(Clone, Debug)]
pub(super) struct WrongSize {
    pub(super) smaller: bool,
    /// For people.
    pub(super) context: String,
}

/// Looks at `places`, on `shard`, and lets go of them again.
///
/// # Errors
/// Every drive that is there and can't be opened: it is in use, or not ours to use.
pub(super) async fn look(
    shard: &ShardHandle,
    places: Vec<Place>,
) -> Result<Vec<Look>, BringUpError> {
    let visit = |state: Rc<ShardState>| async move {
        let mut looks = Vec::new();
        let mut wrong = Vec::new();
        let mut patience = Patience::default();
        for place in places {
            let name = place.name.clone();
            match look_at(&state, place, &mut patience).await {
                Ok(look) => looks.push(look),
                Err(context) => wrong.push(format!("drive {name}: {context}")),
            }
        }
        second_look::by_other_lanes(&state, &mut looks, &mut patience).await;
        if wrong.is_empty() {
            Ok(looks)
        } else {
            Err(wrong)
        }
    };
    let looked = shard.call(visit).await?;
    looked.map_err(|wrong| BringUpError::all(BringUpErrorKind::Drive, &wrong))
}

async fn look_at(
    state: &ShardState,
    place: Place,
    patience: &mut Patience,
) -> Result<Look, String> {
    let drive = match patience.open(&place.path).await {
        Ok(open) => RealDrive::of(state.world(), &open),
        Err(error) if error.kind == OpenErrorKind::NotFound => {
            let (found, wrong_size) = (Found::Nothing(error.to_string()), None);
            return Ok(Look {
                place,
                found,
                wrong_size,
            });
        }
        // Such as a file that was emptied: its pool may do without it.
        Err(error) if error.kind == OpenErrorKind::Unfit => {
            let (found, wrong_size) = (Found::Unreadable(error.to_string()), None);
            return Ok(Look {
                place,
                found,
                wrong_size,
            });
        }
        Err(error) => return Err(error.to_string()),
    };
    let wrong_size = wrong_size(&place, drive.geometry().capacity_bytes);
    let path = place.path.display();
    let found = match Pool::probe(state.world(), &drive).await {
        Ok(Some(label)) => Found::Labelled(label),
        Err(error) if error.kind == PoolErrorKind::Drive => {
            Found::Unreadable(format!("{path}: {error}"))
        }
        Err(error) => return Err(format!("{path}: {error}")),
        Ok(None) => match blank::is_blank(state.world(), &drive).await {
            Ok(true) => Found::Empty,
            Ok(false) => Found::Occupied,
            Err(error) => Found::Unreadable(format!("{path}: {error}")),
        },
    };
    Ok(Look {
        place,
        found,
        wrong_size,
    })
}

fn wrong_size(place: &Place, capacity_bytes: u64) -> Option<WrongSize> {
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
