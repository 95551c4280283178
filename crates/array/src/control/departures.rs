//! Removes drives that have left their pools from records and settings.
//!
//! Invariants:
//! - A drive is forgotten when no lane of its pool has it any more. Of a pool that is not open, or
//!   that a change under way waits for, nothing is forgotten.
//! - A drive that failed stays in the settings until somebody removes or replaces it.
//! - A replacement that waits for a place is in the settings once it has that place.

use super::{
    AddedDrive, ArrayError, ArrayErrorKind, ControlPlane, MissingDrive, Runtime, merged, names,
};
use engine::World;
use engine::pool::PoolInfo;
use futures_util::FutureExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often to look whether a group or a drive has left.
const PAUSE: Duration = Duration::from_millis(500);

/// The pools that are open, and that no change under way waits for.
struct Open {
    lanes: Vec<PoolInfo>,
    /// Of all lanes.
    pools: Vec<PoolInfo>,
    /// A change waits for another one.
    some_wait: bool,
}

/// Whether a pool has a drive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// Also when nothing is known of the pool.
    Stays,
    /// One of its lanes has it still, and in another one a drive has its place.
    Leaves,
    Gone,
}

impl Open {
    async fn of<W: World>(array: &ControlPlane<W>) -> Result<Self, ArrayError> {
        let mut lanes = array.lanes().await?;
        let all = lanes.len();
        // It may have recorded drives that the pool does not have yet.
        lanes.retain(|(_, _, info)| array.check_turn(&info.name).is_ok());
        let pools = merged(lanes.clone()).into_iter();
        Ok(Open {
            pools: pools.map(|(_, info)| info).collect(),
            some_wait: lanes.len() < all,
            lanes: lanes.into_iter().map(|(_, _, info)| info).collect(),
        })
    }

    fn stay(&self, drive: &AddedDrive) -> Stay {
        let has = |info: &PoolInfo| names(info).any(|name| *name == drive.name);
        let is_its = |info: &&PoolInfo| info.name == drive.pool;
        let mut lanes = self.lanes.iter().filter(is_its);
        match self.pools.iter().find(is_its).map(has) {
            None | Some(true) => Stay::Stays,
            Some(false) if lanes.any(has) => Stay::Leaves,
            Some(false) => Stay::Gone,
        }
    }

    /// Whether a group leaves, or has left drives that are not wiped yet, or a drive is copied and
    /// leaves after that.
    fn has_leaving(&self) -> bool {
        let mut groups = self.pools.iter().flat_map(|info| &info.groups);
        let mut departed = self.pools.iter().map(|info| &info.departed);
        let mut members = self.pools.iter().flat_map(|info| &info.members);
        groups.any(|group| group.leaving)
            || departed.any(|names| !names.is_empty())
            || members.any(|member| member.successor.is_some())
    }
}

/// Has one task at a time look at what leaves, however many ask for it.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// Who has asked since the task began; none while there is no task.
    asked: AtomicU64,
}

impl Departures {
    /// Asks for the task. Says whether whoever asks has to begin it.
    fn ask(&self) -> bool {
        self.asked.fetch_add(1, Ordering::AcqRel) == 0
    }

    /// The task has seen to all who had asked by then. Says whether it ends: nobody has asked since.
    fn may_end(&self, asked: u64) -> bool {
        let ended = self
            .asked
            .compare_exchange(asked, 0, Ordering::AcqRel, Ordering::Acquire);
        ended.is_ok()
    }
}

/// Looks until nothing leaves any more.
async fn follow<W: World>(array: Weak<ControlPlane<W>>, runtime: Arc<dyn Runtime>) {
    let mut is_told = false;
    loop {
        runtime.sleep(PAUSE).await;
        let Some(array) = array.upgrade() else { return };
        let asked = array.places().departures.asked.load(Ordering::Acquire);
        let goes_on = match array.forget_departed().await {
            Ok(some_leave) => some_leave,
            // Such as a full file system: what is not on record now can be later.
            Err(error) => {
                if !is_told {
                    tracing::warn!("drives that have left stay on record: {error}");
                }
                is_told = true;
                error.kind == ArrayErrorKind::Internal
            }
        };
        if !goes_on && array.places().departures.may_end(asked) {
            return;
        }
    }
}

impl<W: World> ControlPlane<W> {
    /// The spares that a pool came up without, and that nobody has replaced or removed.
    pub fn missing_spares(&self, info: &PoolInfo) -> Vec<MissingDrive> {
        let failed = self.departed_failures(info);
        let is_missed = |drive: &MissingDrive| {
            let mut failed = failed.iter().filter(|one| one.is_spare());
            failed.any(|one| one.name == drive.name)
        };
        let mut missing = self.came_without(&info.name);
        missing.retain(is_missed);
        missing
    }

    /// Takes drives that are part of no pool any more off the record and out of the settings:
    /// their group has left, or others stand in for them. Says whether something is still leaving, or
    /// a replacement waits for its place.
    ///
    /// # Errors
    /// A shard has stopped, or the record can't be written.
    async fn forget_departed(self: &Arc<Self>) -> Result<bool, ArrayError> {
        self.change(|array| async move {
            let open = Open::of(&array).await?;
            let is_gone = |drive: &AddedDrive| open.stay(drive) == Stay::Gone;
            let (added, named) = (array.places().added().clone(), array.places().named());
            for drive in added.iter().filter(|drive| is_gone(drive)) {
                let (name, pool) = (&drive.name, &drive.pool);
                tracing::info!("drive {name} is part of pool {pool} no more: it is free");
            }
            if added.iter().any(is_gone) {
                let kept = added.iter().filter(|drive| !is_gone(drive));
                array.places().keep(kept.cloned().collect()).await?;
            }
            let leaves = |drive: &AddedDrive| open.stay(drive) == Stay::Leaves;
            let some_leave = added.iter().chain(&named).any(leaves);
            if !some_leave && array.are_settings_behind(&open, &named) {
                array.keep_current_settings().await?;
            }
            let has_waiting = |info| !array.waiting_spares(info).is_empty();
            let some_wait = open.some_wait || open.pools.iter().any(has_waiting);
            Ok(some_leave || some_wait || open.has_leaving())
        })
        .await
    }

    /// Whether the settings name a drive that its pool has no more, or the place that a drive with a
    /// replacement's name had before.
    fn are_settings_behind(&self, open: &Open, named: &[AddedDrive]) -> bool {
        let is_left_behind = |drive: &AddedDrive| {
            open.stay(drive) == Stay::Gone && !self.is_failed(&open.pools, drive)
        };
        let planted = "settings keep the place of a replaced drive";
        let is_elsewhere =
            |info| !self.runtime.planted(planted) && self.is_elsewhere_by_settings(info);
        named.iter().any(is_left_behind) || open.pools.iter().any(is_elsewhere)
    }

    /// Whether a drive that its pool has no more is one that failed, and that nobody has removed
    /// or replaced.
    fn is_failed(&self, pools: &[PoolInfo], drive: &AddedDrive) -> bool {
        let of_pool = pools.iter().filter(|info| info.name == drive.pool);
        let mut failed = of_pool.flat_map(|info| self.departed_failures(info));
        failed.any(|failed| failed.name == drive.name)
    }

    /// Takes the drives of a pool that is destroyed off the record.
    ///
    /// # Errors
    /// The record can't be written.
    pub async fn forget_drives_of(&self, pool: &str) -> Result<(), ArrayError> {
        let mut kept = self.places().added().clone();
        kept.retain(|drive| drive.pool != pool);
        self.places().keep(kept).await
    }

    /// Forgets the drives that have left; those that are leaving in the background, once they have.
    /// Has the settings name replacements once they have their places.
    pub async fn follow_departures(self: &Arc<Self>) {
        if !matches!(self.forget_departed().await, Ok(false)) && self.places().departures.ask() {
            let (array, runtime) = (Arc::downgrade(self), Arc::clone(&self.runtime));
            self.runtime.spawn(follow(array, runtime).boxed());
        }
    }
}
