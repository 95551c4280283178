//! Snapshots of several volumes at one instant, and volumes restored from a snapshot.

use super::snapshots::check_all_sound;
use super::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume, Runtime, TakeBack};
use engine::pool::{SNAPSHOT_MARK, Taking};
use engine::{Lane, PoolError, Volume, World};
use event_listener::Event;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Volumes stand still for no longer than this while others come to a stand.
pub const STANDSTILL_MAX: Duration = Duration::from_secs(5);

/// What becomes of the present state of a volume that is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Present {
    /// It becomes a snapshot of this name: `VOLUME@NAME`.
    Kept(String),
    /// It is gone.
    Discarded,
}

/// How a volume is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restoring {
    /// What becomes of what it has now.
    pub present: Present,
    /// Also while it is behind a target.
    pub by_force: bool,
    /// Nothing is restored: it is only checked that it could be.
    pub only_check: bool,
}

/// Where lanes meet: all of them are still, or one of them can't be.
pub struct SnapshotBarrier {
    meeting: Mutex<Meeting>,
    changed: Event,
    lanes: usize,
    runtime: Arc<dyn Runtime>,
}

/// Why a lane takes no snapshots.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotTaken {
    /// A volume may be half erased.
    #[error(transparent)]
    Unsound(ArrayError),
    /// What the lane says.
    #[error(transparent)]
    Lane(PoolError),
}

impl From<NotTaken> for ArrayError {
    fn from(why: NotTaken) -> Self {
        match why {
            NotTaken::Unsound(error) => error,
            NotTaken::Lane(error) => error.into(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Meeting {
    Arrived(usize),
    Off,
}

impl SnapshotBarrier {
    /// For so many lanes, each of which waits no longer than [`STANDSTILL_MAX`] for the others.
    pub fn of(lanes: usize, runtime: Arc<dyn Runtime>) -> Arc<SnapshotBarrier> {
        Arc::new(SnapshotBarrier {
            meeting: Mutex::new(Meeting::Arrived(0)),
            changed: Event::new(),
            lanes,
            runtime,
        })
    }

    fn meeting(&self) -> MutexGuard<'_, Meeting> {
        // It is whole after each step.
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volumes of a lane stand still. False when those of another can't.
    pub async fn arrive(&self) -> bool {
        if let Meeting::Arrived(there) = &mut *self.meeting() {
            *there += 1;
        }
        self.changed.notify(usize::MAX);
        match self.runtime.in_time(STANDSTILL_MAX, self.over()).await {
            Some(all_are_there) => all_are_there,
            None => !self.call_off(),
        }
    }

    /// Takes snapshots of volumes of one lane, `(volume, name)` each, at the instant when those of all
    /// lanes stand still. Nothing when they did not, and it is not for this lane; where a lane refuses,
    /// the others do not wait for it.
    ///
    /// # Errors
    /// Why the lane takes none.
    pub async fn take_in<W: World>(
        &self,
        lane: &Lane<W>,
        pairs: &[(&str, &str)],
        taking: Taking<'_>,
    ) -> Result<Option<Vec<Volume<W>>>, NotTaken> {
        let (mut sound, mut is_called_off) = (Ok(()), false);
        let others = async {
            sound = check_all_sound(lane, pairs.iter().map(|(of, _)| *of));
            is_called_off = sound.is_ok() && !self.arrive().await;
            sound.is_ok() && !is_called_off
        };
        let taken = lane.take_together(pairs, taking, others).await;
        let refused = match (sound, taken) {
            (Err(error), _) => NotTaken::Unsound(error),
            (Ok(()), Ok(volumes)) => return Ok(Some(volumes)),
            (Ok(()), Err(_)) if is_called_off => return Ok(None),
            (Ok(()), Err(error)) => NotTaken::Lane(error),
        };
        self.call_off();
        Err(refused)
    }

    /// Ends when all are there, or nothing comes of it; true for the first.
    async fn over(&self) -> bool {
        loop {
            let changes = self.changed.listen();
            match *self.meeting() {
                Meeting::Off => return false,
                Meeting::Arrived(there) if there == self.lanes => return true,
                Meeting::Arrived(_) => {}
            }
            changes.await;
        }
    }

    /// Nothing comes of it, unless all are there. Whether that is so.
    pub fn call_off(&self) -> bool {
        let is_open = {
            let mut meeting = self.meeting();
            let is_open = *meeting != Meeting::Arrived(self.lanes);
            if is_open {
                *meeting = Meeting::Off;
            }
            is_open
        };
        self.changed.notify(usize::MAX);
        is_open
    }
}

impl<W: World> ControlPlane<W> {
    /// Takes snapshots of several volumes at one instant, each called `VOLUME@NAME` as the
    /// pair says. They may be in several pools.
    ///
    /// # Errors
    /// No such volume, a name is taken, or what the first pool that refuses says; none is
    /// there then. Or as for [`ControlPlane::whole_or_not`].
    pub async fn take_snapshots(
        self: &Arc<Self>,
        pairs: Vec<(String, String)>,
    ) -> Result<Vec<PlacedVolume>, ArrayError> {
        self.change(move |array| async move { array.take_pairs(pairs, &[]).await })
            .await
    }

    /// As [`ControlPlane::take_snapshots`], with attributes of the array's own, for one whose turn
    /// it is to change the array.
    pub(super) async fn take_pairs(
        &self,
        pairs: Vec<(String, String)>,
        attributes: &[(String, String)],
    ) -> Result<Vec<PlacedVolume>, ArrayError> {
        let mut lanes: BTreeMap<(String, u16), Vec<(String, String)>> = BTreeMap::new();
        let (mut steps, at_unix_s) = (Vec::new(), self.unix_s());
        for (volume, name) in pairs {
            let there = self.volume(&volume).await?;
            self.jobs.check_whole(&volume)?;
            self.jobs.check_snapshots(&volume)?;
            if there.is_snapshot() {
                let context = format!("{volume} is a snapshot already: clone it");
                return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
            }
            there.check_sound()?;
            let name = format!("{volume}{SNAPSHOT_MARK}{name}");
            self.check_name_free(&name).await?;
            steps.push(TakeBack::Snapshot {
                name: name.clone(),
                of: there.info.uuid,
                at_unix_s,
            });
            let lane = lanes.entry((there.pool, there.lane)).or_default();
            lane.push((volume, name));
        }
        let is_one = lanes.len() < 2;
        let taking = self.take_in(lanes, at_unix_s, attributes);
        match is_one {
            // A lane takes its volumes in one batch.
            true => taking.await,
            false => self.whole_or_not(steps, taking).await,
        }
    }

    async fn take_in(
        &self,
        lanes: BTreeMap<(String, u16), Vec<(String, String)>>,
        at_unix_s: u64,
        attributes: &[(String, String)],
    ) -> Result<Vec<PlacedVolume>, ArrayError> {
        let barrier = SnapshotBarrier::of(lanes.len(), Arc::clone(&self.runtime));
        let take = |((pool, lane), pairs): ((String, u16), Vec<(String, String)>)| {
            let (theirs, attributes) = (Arc::clone(&barrier), attributes.to_vec());
            let visit = move |_, pool: Lane<W>| async move {
                let pairs = pairs.iter().map(|(of, name)| (of.as_str(), name.as_str()));
                let pairs: Vec<_> = pairs.collect();
                let taking = Taking {
                    read_only: true,
                    at_unix_s,
                    attributes: &attributes,
                };
                let taken = theirs.take_in(&pool, &pairs, taking).await?;
                let seen = |volume: Volume<W>| (volume.info(), volume.properties());
                Ok(taken.map(|taken| taken.into_iter().map(seen).collect::<Vec<_>>()))
            };
            let barrier = Arc::clone(&barrier);
            async move {
                let taken = self.with_lane(&pool, lane, visit).await;
                if taken.is_err() {
                    // Its shard may have stopped before the lane could say so.
                    barrier.call_off();
                }
                let placed = |(info, properties)| PlacedVolume {
                    pool: pool.clone(),
                    lane,
                    info,
                    properties,
                };
                let taken = taken?.map(|all| all.into_iter().map(placed).collect::<Vec<_>>());
                Ok(taken)
            }
        };
        all_or_none(join_all(lanes.into_iter().map(take)).await)
    }

    /// Gives a volume what a snapshot has, at once.
    ///
    /// # Errors
    /// No such volume or snapshot; the volume is behind a target and it is not by force;
    /// a SANITIZE of it has not ended and it is behind a target or its state is to be kept;
    /// it is a snapshot, or in another pool or lane; or what the pool says. Nothing
    /// has changed then, except that the record of a SANITIZE may be left when that can't be
    /// cleared.
    pub async fn restore(
        self: &Arc<Self>,
        volume: String,
        snapshot: String,
        how: Restoring,
    ) -> Result<PlacedVolume, ArrayError> {
        self.change(move |array| async move {
            let there = array.volume(&volume).await?;
            let from = array.snapshot(&snapshot).await?;
            array.jobs.check_free(&volume, None)?;
            let is_shown = array.check_restorable(&there, &from, &how)?;
            let keep = match how.present {
                Present::Kept(name) => Some(format!("{volume}{SNAPSHOT_MARK}{name}")),
                Present::Discarded => None,
            };
            if let Some(name) = &keep {
                let free = array.check_name_free(name).await;
                free.map_err(|error| with_ways_to_keep(error, &volume))?;
            }
            match how.only_check {
                true => Ok(there),
                false => array.restore_now(there, snapshot, keep, is_shown).await,
            }
        })
        .await
    }

    /// That a volume can get what a snapshot has. Gives whether a target shows it.
    fn check_restorable(
        &self,
        there: &PlacedVolume,
        from: &PlacedVolume,
        how: &Restoring,
    ) -> Result<bool, ArrayError> {
        let (volume, snapshot) = (&there.info.name, &from.info.name);
        if (&from.pool, from.lane) != (&there.pool, there.lane) {
            let context =
                format!("{snapshot} is not where {volume} is and was not taken from it: clone it");
            return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
        }
        let behind = self.lun_of(volume, Some(there.info.uuid));
        let is_shown = behind.is_some();
        if let Some((target, lun)) = behind.filter(|_| !how.by_force) {
            let way = self.way_to_hide(&target, volume)?;
            let context = format!(
                "volume {volume} is LUN {lun} of {target}, and initiators may hold old data of it in \
                 memory: run `ashlar {way}` first, or give --force if no initiator uses it"
            );
            return Err(ArrayError::new(ArrayErrorKind::Busy, context));
        }
        check_erasure(there, is_shown, &how.present)?;
        Ok(is_shown)
    }

    async fn restore_now(
        &self,
        there: PlacedVolume,
        snapshot: String,
        keep: Option<String>,
        is_shown: bool,
    ) -> Result<PlacedVolume, ArrayError> {
        let (runtime, volume) = (Arc::clone(&self.runtime), there.info.name.clone());
        let visit = move |_, pool: Lane<W>| async move {
            let at = runtime.unix_s();
            pool.restore(&volume, &snapshot, keep.as_deref(), at)
                .await?;
            let restored = pool.volume(&volume);
            let restored = restored.ok_or_else(|| ArrayError::no_volume(&volume))?;
            // A target that shows it may begin a SANITIZE, whose record is not ours to end.
            if !is_shown {
                end_erasure(&restored).await?;
            }
            Ok((restored.info(), restored.properties()))
        };
        let (info, properties) = self.with_lane(&there.pool, there.lane, visit).await?;
        Ok(PlacedVolume {
            info,
            properties,
            ..there
        })
    }
}

/// The snapshots of all lanes; nothing when they were called off, or a lane refused.
fn all_or_none(
    taken: Vec<Result<Option<Vec<PlacedVolume>>, ArrayError>>,
) -> Result<Vec<PlacedVolume>, ArrayError> {
    let (mut all, mut is_called_off) = (Vec::new(), false);
    let mut failure = None;
    for taken in taken {
        match taken {
            Ok(Some(taken)) => all.extend(taken),
            Ok(None) => is_called_off = true,
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(error) => Err(error),
        None if is_called_off => {
            let context = format!(
                "the volumes did not come to a stand at one instant in {} s, so no snapshot \
                 is taken: try again",
                STANDSTILL_MAX.as_secs()
            );
            Err(ArrayError::new(ArrayErrorKind::Busy, context))
        }
        None => Ok(all),
    }
}

/// Why what a volume has now can't become a snapshot of some name, with what else there is.
fn with_ways_to_keep(error: ArrayError, volume: &str) -> ArrayError {
    match error.kind {
        ArrayErrorKind::Exists => ArrayError {
            context: format!(
                "{}: --keep NAME gives the snapshot of what {volume} has now another name, \
                 --discard takes none",
                error.context.trim_end_matches("; choose another name")
            ),
            ..error
        },
        _ => error,
    }
}

/// That no SANITIZE goes on over what is restored, and that what one has half erased does not
/// become a snapshot, which would show it as sound.
fn check_erasure(
    there: &PlacedVolume,
    is_shown: bool,
    present: &Present,
) -> Result<(), ArrayError> {
    if !there.has_unended_erasure() {
        return Ok(());
    }
    let name = &there.info.name;
    let way = match present {
        _ if is_shown => "remove it from its export first, then restore it with --discard",
        Present::Kept(_) => {
            "its data may be half erased and can't become a snapshot: restore it with --discard"
        }
        Present::Discarded => return Ok(()),
    };
    let context = format!("a SANITIZE of volume {name} is under way or has failed: {way}");
    Err(ArrayError::new(ArrayErrorKind::Busy, context))
}

/// Nothing of a volume that was restored is half erased any more. This comes after the restore:
/// a crash in between leaves a record too many, and the snapshot, so that the restore can be
/// repeated; the other way round it would show half-erased data as sound. The caller has the
/// turn to change the array, so nothing shows the volume in between.
async fn end_erasure<W: World>(restored: &Volume<W>) -> Result<(), ArrayError> {
    let memo = restored.memo();
    if !scsi::has_unended_erasure(&memo) {
        return Ok(());
    }
    let name = restored.info().name;
    let failed = |why: String| {
        let context = format!(
            "volume {name} is restored, but the record of its SANITIZE is left: {why}; do not \
             export it, restore it again"
        );
        ArrayError::new(ArrayErrorKind::Internal, context)
    };
    let reservations = scsi::without_erasure(&memo);
    let reservations = reservations.map_err(|error| failed(error.to_string()))?;
    let kept = restored.keep_memo(reservations).await;
    kept.map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::one_thread::tests::in_a_world;
    use futures_util::future::join;

    #[test]
    fn all_lanes_go_through_or_none() {
        in_a_world(async |runtime| {
            let barrier = SnapshotBarrier::of(2, Arc::clone(&runtime));
            let (one, other) = join(barrier.arrive(), barrier.arrive()).await;
            assert!(one && other);
            assert!(!barrier.call_off(), "they are through");
            let barrier = SnapshotBarrier::of(2, runtime);
            let (one, off) = join(barrier.arrive(), async { barrier.call_off() }).await;
            assert!(!one && off);
            assert!(!barrier.arrive().await, "who comes late goes nowhere");
        });
    }

    #[test]
    fn nobody_waits_for_long_and_then_all_go_nowhere() {
        in_a_world(async |runtime| {
            let barrier = SnapshotBarrier::of(2, Arc::clone(&runtime));
            let began = runtime.now();
            assert!(!barrier.arrive().await);
            assert_eq!(runtime.now().since(began), STANDSTILL_MAX);
            assert!(!barrier.arrive().await);
        });
    }
}
