//! A look at the drives of a site, before anything is opened or made.

use super::{BringUpError, BringUpErrorKind};
use crate::blank;
use crate::shard::{ShardHandle, ShardState};
use engine::World;
use engine::drive::Drive as _;
use engine::pool::{LabelSummary, Pool, PoolErrorKind};
use site::human;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use world::real::{OpenError, OpenErrorKind, RealDrive};

/// A drive that is in use is looked at so many times more, so far apart.
pub(super) const IN_USE_LOOKS: u32 = 20;
pub(super) const IN_USE_PAUSE: Duration = Duration::from_millis(50);

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
        for place in places {
            let name = place.name.clone();
            match look_at(&state, place).await {
                Ok(look) => looks.push(look),
                Err(context) => wrong.push(format!("drive {name}: {context}")),
            }
        }
        if wrong.is_empty() {
            Ok(looks)
        } else {
            Err(wrong)
        }
    };
    let looked = shard.call(visit).await?;
    looked.map_err(|wrong| BringUpError::all(BringUpErrorKind::Drive, &wrong))
}

/// Opens a drive. What a server that was just killed had in flight may hold it for a
/// moment longer.
async fn open(state: &ShardState, place: &Place) -> Result<RealDrive, OpenError> {
    for _ in 0..IN_USE_LOOKS {
        match RealDrive::open(state.world(), &place.path) {
            Err(error) if error.kind == OpenErrorKind::InUse => {
                state.world().sleep(IN_USE_PAUSE).await;
            }
            outcome => return outcome,
        }
    }
    RealDrive::open(state.world(), &place.path)
}

async fn look_at(state: &ShardState, place: Place) -> Result<Look, String> {
    let drive = match open(state, &place).await {
        Ok(drive) => drive,
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
