//! Takes snapshots on schedule, and deletes the oldest when there are enough.
//!
//! A schedule is an attribute of its volume, so it survives restarts and goes with it.
//!
//! Invariants:
//! - A schedule deletes snapshots only that it took itself: they say so.
//! - Runs that were missed, while nothing served or the clock was set, are made up for by
//!   one; the next is when it would have been anyway.
//! - A run that fails is told by an event, and is not tried again before the next.
//!
//! Those of consistency groups run by the same clock (`consistency/schedules.rs`).

use super::schedule::{AGAIN, Schedule, Subject, TAKEN_BY, all_of, check_fits, free_number, of};
use super::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use base::Uuid;
use engine::pool::EventKind;
use engine::{Lane, World};
use futures_util::FutureExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Others wait no longer for one to end.
const SOON: Duration = Duration::from_secs(15);

/// How often to look whether one is due.
const PAUSE: Duration = Duration::from_millis(500);

/// Which schedules there are, so that nobody has to look for them.
pub(super) type KnownSchedules = BTreeMap<Uuid, Vec<Schedule>>;

impl<W: World> ControlPlane<W> {
    /// The volume's own schedules, of that called `name`.
    ///
    /// # Errors
    /// No such volume, or a shard has stopped.
    pub async fn schedules(&self, name: &str) -> Result<Vec<Schedule>, ArrayError> {
        Ok(of(&self.volume(name).await?))
    }

    /// Has snapshots of a volume taken, the first one at once.
    ///
    /// # Errors
    /// No such volume, it is a snapshot, it has too many, its name has no room for those of
    /// snapshots, or what the pool says.
    pub async fn add_schedule(
        self: &Arc<Self>,
        name: &str,
        every_s: u64,
        keep: u64,
    ) -> Result<Schedule, ArrayError> {
        let name = name.to_owned();
        // In one turn: of two that are added at once, each has a number of its own.
        self.change(move |array| async move {
            let there = array.volume(&name).await?;
            let number = free_number(&of(&there));
            let (Some(number), false) = (number, there.is_snapshot()) else {
                return Err(takes_no_schedule(&there));
            };
            check_fits(&name)?;
            let now = array.unix_s();
            let schedule = Schedule::new(Subject::Volume, number, (every_s, keep), now);
            let said = |_: &PlacedVolume| vec![(schedule.key(), schedule.value())];
            array.attach(&[there], said).await?;
            Ok(schedule)
        })
        .await
    }

    /// Ends a schedule. Snapshots that it took stay.
    ///
    /// # Errors
    /// No such volume or schedule, or what the pool says.
    pub async fn remove_schedule(
        self: &Arc<Self>,
        name: &str,
        number: u64,
    ) -> Result<(), ArrayError> {
        let name = name.to_owned();
        self.change(move |array| async move {
            let there = array.volume(&name).await?;
            let all = of(&there);
            let found = all.iter().find(|schedule| schedule.number == number);
            let found = found.ok_or_else(|| {
                let context = format!("volume {name} has no schedule {number}");
                ArrayError::new(ArrayErrorKind::NotFound, context)
            })?;
            let said = |_: &PlacedVolume| vec![(found.key(), String::new())];
            array.attach(&[there], said).await.map(drop)
        })
        .await
    }

    /// Knows the schedules of a volume from now on, its group's included.
    pub(super) fn learn_schedules(&self, volume: &PlacedVolume) {
        let schedules = all_of(volume);
        let mut known = self.schedule_map();
        match schedules.is_empty() {
            true => known.remove(&volume.info.uuid),
            false => known.insert(volume.info.uuid, schedules),
        };
    }

    /// Knows no schedules of a volume that goes, or is in the trash.
    pub(super) fn forget_schedules(&self, volume: &PlacedVolume) {
        self.schedule_map().remove(&volume.info.uuid);
    }

    /// Knows the schedules of all volumes from now on.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn learn_all_schedules(self: &Arc<Self>) -> Result<(), ArrayError> {
        // In one turn: one that is added meanwhile is not forgotten.
        self.change(|array| async move {
            for volume in &array.volumes().await? {
                array.learn_schedules(volume);
            }
            Ok(())
        })
        .await
    }

    /// Runs schedules from now on.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn keep_schedules(self: &Arc<Self>) -> Result<(), ArrayError> {
        self.learn_all_schedules().await?;
        let array = Arc::downgrade(self);
        let runtime = Arc::clone(&self.runtime);
        let keep = async move {
            while let Some(array) = array.upgrade() {
                if let Err(error) = array.run_due().await {
                    tracing::error!("no schedule runs, and is tried again: {error}");
                }
                drop(array);
                runtime.sleep(PAUSE).await;
            }
        };
        self.runtime.spawn(keep.boxed());
        Ok(())
    }

    /// Runs what is due.
    async fn run_due(self: &Arc<Self>) -> Result<(), ArrayError> {
        let now = self.unix_s();
        let known = self.schedule_map().clone();
        let is_due = |schedules: &Vec<Schedule>| schedules.iter().any(|s| s.due(now).is_some());
        if !known.values().any(is_due) {
            return Ok(());
        }
        let volumes = self.volumes().await?;
        for (uuid, schedules) in &known {
            // It goes just now.
            let Some(volume) = volumes.iter().find(|volume| volume.info.uuid == *uuid) else {
                continue;
            };
            let own = schedules.iter().filter(|s| s.subject == Subject::Volume);
            for schedule in own {
                let Some((is_late, then)) = schedule.due(now) else {
                    continue;
                };
                let (array, volume) = (Arc::clone(self), volume.clone());
                let run = async move {
                    let outcome = array.turn(&volume, &then, is_late.then_some(now)).await;
                    match outcome {
                        Err(error) => array.tell_failure(&volume, &then, &error).await,
                        Ok(()) => Ok(()),
                    }
                };
                self.run_soon(run).await?;
            }
        }
        self.run_groups(now, &known, volumes).await
    }

    /// Has a schedule run, in the background when it takes long: its pool may not answer.
    pub(super) async fn run_soon(
        &self,
        run: impl Future<Output = Result<(), ArrayError>> + Send + 'static,
    ) -> Result<(), ArrayError> {
        let run = self.runtime.run(run);
        let ended = self.runtime.in_time(SOON, run).await;
        ended.flatten().unwrap_or(Ok(()))
    }

    /// Takes it for noted that a schedule has had its turn, whatever comes of that.
    pub(super) fn has_had_its_turn(&self, volume: &PlacedVolume, then: &Schedule) {
        if let Some(schedules) = self.schedule_map().get_mut(&volume.info.uuid) {
            let same = schedules.iter_mut().filter(|s| s.is_same(then));
            same.for_each(|schedule| *schedule = *then);
        }
    }

    /// Notes that a schedule has had its turn, and runs it when it is to.
    async fn turn(
        self: &Arc<Self>,
        volume: &PlacedVolume,
        then: &Schedule,
        now: Option<u64>,
    ) -> Result<(), ArrayError> {
        self.has_had_its_turn(volume, then);
        let (uuid, schedule) = (volume.info.uuid, *then);
        let taken = self.change(move |array| async move { array.run(uuid, &schedule, now).await });
        match taken.await? {
            Some(volume) => self.thin_out(&volume, then).await,
            None => Ok(()),
        }
    }

    /// Takes a snapshot of the volume with this identity, which may have another name by now. None
    /// when there is nothing to take, or the schedule has ended. For one whose turn it is.
    async fn run(
        &self,
        uuid: Uuid,
        schedule: &Schedule,
        now: Option<u64>,
    ) -> Result<Option<PlacedVolume>, ArrayError> {
        let mut volumes = self.volumes().await?.into_iter();
        let there = volumes.find(|volume| volume.info.uuid == uuid);
        let has_it = |volume: &PlacedVolume| of(volume).iter().any(|one| one.is_same(schedule));
        let Some(there) = there.filter(has_it) else {
            return Ok(None);
        };
        // Noted first: a run that ends in a crash is not made again and again.
        let said = |_: &PlacedVolume| vec![(schedule.key(), schedule.value())];
        self.attach(std::slice::from_ref(&there), said).await?;
        let Some(now) = now else {
            return Ok(None);
        };
        self.take_by(&there, schedule, now).await?;
        self.runtime.reached("schedule takes a snapshot");
        Ok(Some(there))
    }

    /// Takes a snapshot by a schedule. It says so from the first moment on: a crash leaves none that
    /// nobody ever deletes.
    async fn take_by(
        &self,
        volume: &PlacedVolume,
        schedule: &Schedule,
        now: u64,
    ) -> Result<(), ArrayError> {
        let mark = [(TAKEN_BY.to_owned(), schedule.mark())];
        let marks_later = self.runtime.planted("schedule marks a snapshot later");
        let attributes = if marks_later { &[][..] } else { &mark[..] };
        let pair = |called: String| vec![(volume.info.name.clone(), called)];
        let called = schedule.snapshot(now);
        let taken = match self.take_pairs(pair(called.clone()), attributes).await {
            // By a schedule of the same number, which ended in the same second.
            Err(error) if error.kind == ArrayErrorKind::Exists => {
                let again = pair(format!("{called}{AGAIN}"));
                self.take_pairs(again, attributes).await?
            }
            taken => taken?,
        };
        match marks_later {
            true => self.attach(&taken, |_| mark.to_vec()).await.map(drop),
            false => Ok(()),
        }
    }

    /// Deletes what a schedule took of a volume beyond what is kept.
    pub(super) async fn thin_out(
        self: &Arc<Self>,
        volume: &PlacedVolume,
        schedule: &Schedule,
    ) -> Result<(), ArrayError> {
        if self.runtime.planted("schedule keeps all that it took") {
            return Ok(());
        }
        let any = self.runtime.planted("schedule deletes what others took");
        let mine = |snapshot: &PlacedVolume| {
            let mark = snapshot.properties.attributes.get(TAKEN_BY);
            snapshot.is_of(volume) && (any || mark == Some(&schedule.mark()))
        };
        let mut all = self.snapshots(None).await?;
        all.retain(mine);
        all.sort_by_key(|snapshot| {
            let at = snapshot.properties.origin.as_ref();
            let at = at.map(|origin| origin.at_unix_s);
            (at, snapshot.info.name.clone())
        });
        let beyond = all.len().saturating_sub(schedule.keep as usize);
        for old in all.into_iter().take(beyond) {
            self.delete_taken(old.info.uuid).await?;
        }
        Ok(())
    }

    /// Deletes the snapshot with this identity, which may have another name by now. It does not pass
    /// the trash: nobody has asked for its deletion, and nobody is to take it back.
    async fn delete_taken(self: &Arc<Self>, uuid: Uuid) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let mut volumes = array.volumes().await?.into_iter();
            let Some(there) = volumes.find(|one| one.info.uuid == uuid) else {
                return Ok(());
            };
            array.jobs.check_free(&there.info.name, None)?;
            array.check_unreserved(&there)?;
            array.check_not_shown(&there)?;
            array.delete_now(there).await
        })
        .await
    }

    async fn tell_failure(
        &self,
        volume: &PlacedVolume,
        schedule: &Schedule,
        error: &ArrayError,
    ) -> Result<(), ArrayError> {
        let text = format!(
            "schedule {} of volume '{}' has failed: {error}; it runs again after {}",
            schedule.number,
            volume.info.name,
            site::span_words(Duration::from_secs(schedule.every_s))
        );
        self.tell_of_schedule(volume, text).await
    }

    /// Has an event of the lane of a volume tell of a schedule.
    pub(super) async fn tell_of_schedule(
        &self,
        volume: &PlacedVolume,
        text: String,
    ) -> Result<(), ArrayError> {
        let visit = move |_, pool: Lane<W>| async move {
            pool.tell(EventKind::Schedule, text);
            Ok(())
        };
        self.with_lane(&volume.pool, volume.lane, visit).await
    }
}

/// Why a volume takes no schedule: it is a snapshot, or has enough.
fn takes_no_schedule(there: &PlacedVolume) -> ArrayError {
    let name = &there.info.name;
    let context = match there.is_snapshot() {
        true => format!("{name} is a snapshot, and does not change"),
        false => format!(
            "volume {name} has {} schedules: delete one first",
            site::SCHEDULES_MAX
        ),
    };
    ArrayError::new(ArrayErrorKind::Invalid, context)
}
