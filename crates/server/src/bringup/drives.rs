//! A look at the drives of a site, before anything is opened or made.

use super::{BringUpError, BringUpErrorKind};
use crate::shard::{ShardHandle, ShardState};
use base::DriveOffset;
use engine::World;
use engine::drive::Drive as _;
use engine::pool::{LabelSummary, Pool};
use site::human;
use std::path::PathBuf;
use std::rc::Rc;
use world::real::{OpenErrorKind, RealDrive};

/// How much of a drive without label has to be zero for it to count as empty:
/// partition tables, superblocks and volume managers' labels all lie in there.
const LOOK_BYTES: usize = 1 << 20;

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
    /// Nothing.
    Nothing,
    /// A drive without label, with nothing on it.
    Empty,
    /// A drive without label, with something on it.
    Occupied,
    /// A drive of a pool.
    Labelled(LabelSummary),
}

/// Looks at `places`, on `shard`, and lets go of them again.
///
/// # Errors
/// Every drive that is there and can't be used, or has another size than the
/// site says.
pub(super) async fn look(
    shard: &ShardHandle,
    places: Vec<Place>,
) -> Result<Vec<(Place, Found)>, BringUpError> {
    let visit = |state: Rc<ShardState>| async move {
        let mut found = Vec::new();
        let mut wrong = Vec::new();
        for place in places {
            match look_at(&state, &place).await {
                Ok(what) => found.push((place, what)),
                Err(context) => wrong.push(format!("drive {}: {context}", place.name)),
            }
        }
        if wrong.is_empty() {
            Ok(found)
        } else {
            Err(wrong)
        }
    };
    let looked = shard.call(visit).await?;
    looked.map_err(|wrong| BringUpError::all(BringUpErrorKind::Drive, &wrong))
}

async fn look_at(state: &ShardState, place: &Place) -> Result<Found, String> {
    let drive = match RealDrive::open(state.world(), &place.path) {
        Ok(drive) => drive,
        Err(error) if error.kind == OpenErrorKind::NotFound && place.size_bytes.is_some() => {
            return Ok(Found::Nothing);
        }
        Err(error) => return Err(error.to_string()),
    };
    check_size(place, drive.geometry().capacity_bytes)?;
    let label = Pool::probe(state.world(), &drive).await;
    match label.map_err(|error| format!("{}: {error}", place.path.display()))? {
        Some(label) => Ok(Found::Labelled(label)),
        None if is_empty(state, &drive).await? => Ok(Found::Empty),
        None => Ok(Found::Occupied),
    }
}

fn check_size(place: &Place, capacity_bytes: u64) -> Result<(), String> {
    let Some(size_bytes) = place.size_bytes.filter(|size| *size != capacity_bytes) else {
        return Ok(());
    };
    let what = if capacity_bytes < size_bytes {
        "too small"
    } else {
        "too large"
    };
    let (there, wanted) = (human(capacity_bytes), human(size_bytes));
    Err(format!(
        "{}: {what}: it has {there} ({capacity_bytes} bytes), the site says {wanted}; put back the \
         file that was here, or correct size in the site file",
        place.path.display()
    ))
}

async fn is_empty(state: &ShardState, drive: &RealDrive) -> Result<bool, String> {
    let capacity = usize::try_from(drive.geometry().capacity_bytes).unwrap_or(usize::MAX);
    let buf = state.world().buffers().bytes(LOOK_BYTES.min(capacity));
    let (buf, read) = drive.read(DriveOffset(0), buf).await;
    read.map_err(|error| error.to_string())?;
    Ok(buf
        .bytes()
        .is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)))
}
