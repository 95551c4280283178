//! Drives that are open for openings of pools, and how long they are waited for.

pub use crate::bays::{DriveBays, MadeFiles, NotOpen, NotOpenKind, OpenBay, Patience};

use crate::pool::opening::PoolDrive;
use crate::shard::ShardState;
use base::Time;
use engine::pool::NamedDrive;
use engine::{PoolError, PoolErrorKind, World};
use futures_util::future::{Either, select};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A read, or what it takes to know what is on a drive, takes no longer: what takes longer does not
/// answer.
pub const READ_TIME: Duration = Duration::from_secs(5);

/// Drives that are not ready when pools are opened have so long in all to become it. Data sheets of
/// disks allow 30 s from power on.
pub const READY_TIME: Duration = Duration::from_secs(30);

/// How long drives are waited for that are not ready: all pools of a start share one, so
/// that a dead drive in each costs no more than one.
#[derive(Clone, Debug, Default)]
pub(super) struct SpinUp(Arc<OnceLock<Time>>);

impl SpinUp {
    /// When the wait ends, if it begins `now` at the latest.
    pub(super) fn until(&self, now: Time) -> Time {
        *self.0.get_or_init(|| now + READY_TIME)
    }
}

/// A drive whose label is wiped has so long to answer.
pub(super) const WIPE_TIME: Duration = Duration::from_secs(10);

/// A drive that is open, under its name in the pool.
pub struct OpenedDrive<W: World> {
    pub(super) name: String,
    pub(super) open: Arc<dyn OpenBay<W>>,
}

impl<W: World> Clone for OpenedDrive<W> {
    fn clone(&self) -> Self {
        OpenedDrive {
            name: self.name.clone(),
            open: Arc::clone(&self.open),
        }
    }
}

impl<W: World> fmt::Debug for OpenedDrive<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenedDrive({})", self.name)
    }
}

impl<W: World> PoolDrive<W> for OpenedDrive<W> {
    fn name(&self) -> &str {
        &self.name
    }

    fn door(&self, state: &ShardState<W>) -> NamedDrive<W> {
        NamedDrive {
            name: self.name.clone(),
            drive: self.open.door(state),
        }
    }
}

/// What comes of `work`; none when it has not ended after `patience`.
pub(super) async fn in_time<W: World, T>(
    world: &W,
    patience: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(work), pin!(world.sleep(patience))).await {
        Either::Left((outcome, _)) => Some(outcome),
        Either::Right(_) => None,
    }
}

/// Whether a drive could not be read, rather than understood.
pub(super) fn is_unread(error: &PoolError) -> bool {
    error.kind == PoolErrorKind::Drive
}
