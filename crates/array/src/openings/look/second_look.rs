//! Looks again at drives without a label of the first lane.
//!
//! The labels of the pool's other drives say where the labels of the other lanes are. A drive that
//! does not answer any more keeps the result of its first look.

use super::{DriveContent, Look};
use crate::openings::bays::{DriveBays, Patience, READ_TIME, in_time};
use crate::pool::opening::KnownLabels;
use crate::shard::ShardState;
use engine::World;

/// Finds labels of other lanes on the drives of a pool of several lanes.
pub(super) async fn by_other_lanes<W: World>(
    state: &ShardState<W>,
    bays: &dyn DriveBays<W>,
    looks: &mut [Look],
) {
    let label = |look: &Look| match &look.found {
        DriveContent::Labelled(label) => Some(label.clone()),
        _ => None,
    };
    let known: KnownLabels = looks.iter().filter_map(label).collect();
    if known.lead_nowhere() {
        return;
    }
    let mut patience = Patience::default();
    for look in looks {
        if !matches!(look.found, DriveContent::Empty | DriveContent::Occupied) {
            continue;
        }
        // Whoever can't be opened now is what it was a moment ago.
        let Ok(open) = bays.open(&look.place.path, &mut patience).await else {
            continue;
        };
        let drive = open.door(state);
        let beside = known.beside(state.world(), &drive);
        if let Some(Some(label)) = in_time(state.world(), READ_TIME, beside).await {
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
