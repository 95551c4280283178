//! Looks again at drives without a label of the first lane.
//!
//! The labels of the pool's other drives say where the labels of the other lanes are. A drive that
//! does not answer any more keeps the result of its first look.

use super::{DriveContent, Look, Patience, READ_TIME};
use crate::shard::ShardState;
use ::array::pool::opening::KnownLabels;
use tokio::time::timeout;
use world_real::RealDrive;

/// Finds labels of other lanes on the drives of a pool of several lanes.
pub(super) async fn by_other_lanes(
    state: &ShardState,
    looks: &mut [Look],
    patience: &mut Patience,
) {
    let label = |look: &Look| match &look.found {
        DriveContent::Labelled(label) => Some(label.clone()),
        _ => None,
    };
    let known: KnownLabels = looks.iter().filter_map(label).collect();
    if known.lead_nowhere() {
        return;
    }
    for look in looks {
        if !matches!(look.found, DriveContent::Empty | DriveContent::Occupied) {
            continue;
        }
        // Whoever can't be opened now is what it was a moment ago.
        let Ok(open) = patience.open(&look.place.path).await else {
            continue;
        };
        let drive = RealDrive::of(state.world(), &open);
        let beside = known.beside(state.world(), &drive);
        if let Ok(Some(label)) = timeout(READ_TIME, beside).await {
            tracing::warn!(
                "drive {}: it has lost its labels of the first lane of pool {}, and has those of \
                 another: `ashlar pool salvage` says whether they can be written again",
                look.place.name,
                label.pool_name
            );
            look.found = DriveContent::Labelled(label);
        }
    }
}
