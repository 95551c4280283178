//! Finds out which pools drives belong to.
//!
//! The label of the first lane says it. A drive may have lost that, and have those of other lanes:
//! the labels on the pool's other drives say where these are.
//!
//! Invariants:
//! - A drive that can't be read at the second look is what it was at the first.
//! - Only the labels of pools of several lanes lead to others.

use engine::pool::LabelSummary;
use engine::{Lane, PoolError, World};

/// Labels that a first look has found.
#[derive(Clone, Debug, Default)]
pub struct KnownLabels(Vec<LabelSummary>);

impl FromIterator<LabelSummary> for KnownLabels {
    fn from_iter<T: IntoIterator<Item = LabelSummary>>(labels: T) -> Self {
        let labels = labels.into_iter();
        KnownLabels(labels.filter(|label| label.part.lanes > 1).collect())
    }
}

impl KnownLabels {
    /// Whether none of them leads to others: a second look finds nothing.
    pub fn lead_nowhere(&self) -> bool {
        self.0.is_empty()
    }

    /// What the labels of other lanes say on a drive that has none of the first.
    pub async fn beside<W: World>(&self, world: &W, drive: &W::Drive) -> Option<LabelSummary> {
        let found = Lane::probe_beside(world, drive, &self.0).await;
        found.ok().flatten()
    }
}

/// What the labels on each of `drives` say, which are all that may make pools: that of the first
/// lane, or else those of others.
///
/// # Errors
/// For each drive, that the label of the first lane can't be read.
pub async fn find_labels<W: World>(
    world: &W,
    drives: &[&W::Drive],
) -> Vec<Result<Option<LabelSummary>, PoolError>> {
    let mut found = Vec::new();
    for drive in drives {
        found.push(Lane::probe(world, drive).await);
    }
    let known: KnownLabels = found.iter().flatten().flatten().cloned().collect();
    for (drive, found) in drives.iter().zip(&mut found) {
        if let Ok(None) = found {
            *found = Ok(known.beside(world, drive).await);
        }
    }
    found
}
