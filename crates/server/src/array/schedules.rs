//! Snapshots taken by the clock, and deleted when there are enough of them.
//!
//! A schedule is an attribute of its volume, so it survives restarts and goes with it.
//!
//! Invariants:
//! - A schedule deletes snapshots only that it took itself: they say so.
//! - Runs that were missed, while nothing served or the clock was set, are made up for by
//!   one; the next is when it would have been anyway.
//! - A run that fails is told by an event, and is not tried again before the next.

use super::snapshots::now_unix_s;
use super::words::NewWords;
use super::{Array, ArrayError, ArrayErrorKind, PlacedVolume};
use crate::calendar::{Moment, moment};
use base::Uuid;
use engine::Pool;
use engine::pool::{EventKind, SNAPSHOT_MARK};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use world::real::RealWorld;

/// Schedules of a volume, at most.
const SCHEDULES_MAX: u64 = 8;
/// The shortest pause between runs.
pub const EVERY_S_MIN: u64 = 1;
/// The longest: ten years.
pub const EVERY_S_MAX: u64 = 3650 * 86_400;
/// The most snapshots that one keeps.
pub const KEEP_MAX: u64 = 1000;

/// Attributes of volumes: the schedule of a number.
const SCHEDULE: &str = "_schedule.";
/// Of snapshots: the schedule that took them.
const TAKEN_BY: &str = "_taken-by";

/// Behind a name that is taken.
const AGAIN: &str = "-2";

/// How often to look whether one is due.
const PAUSE: Duration = Duration::from_millis(500);

/// Snapshots of a volume by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its number among those of its volume.
    pub number: u64,
    /// Seconds from one to the next.
    pub every_s: u64,
    /// The newest so many stay.
    pub keep: u64,
    /// When it was made, in seconds since 1970: tells it from one before of its number.
    pub since_unix_s: u64,
    /// When it last ran, or would have.
    pub last_unix_s: u64,
}

impl Schedule {
    /// When it runs next.
    pub fn next_unix_s(&self) -> u64 {
        self.last_unix_s.saturating_add(self.every_s)
    }

    /// As of `now`, with the time of its last run, when it is to run; or, when the clock
    /// was set back, as if it had run now.
    fn due(&self, now: u64) -> Option<(bool, Schedule)> {
        let late_s = now.checked_sub(self.last_unix_s);
        let last_unix_s = match late_s {
            None => now,
            Some(late_s) if late_s < self.every_s => return None,
            Some(late_s) => self.last_unix_s + late_s / self.every_s * self.every_s,
        };
        let then = Schedule {
            last_unix_s,
            ..*self
        };
        Some((late_s.is_some(), then))
    }

    fn key(&self) -> String {
        format!("{SCHEDULE}{}", self.number)
    }

    fn value(&self) -> String {
        let Schedule {
            every_s,
            keep,
            since_unix_s,
            last_unix_s,
            ..
        } = self;
        format!("{every_s} {keep} {since_unix_s} {last_unix_s}")
    }

    fn parse(key: &str, value: &str) -> Option<Schedule> {
        let number = key.strip_prefix(SCHEDULE)?.parse().ok()?;
        let mut fields = value.split(' ').map(str::parse);
        let mut field = || fields.next()?.ok();
        Some(Schedule {
            number,
            every_s: field().filter(|every_s| *every_s >= EVERY_S_MIN)?,
            keep: field()?,
            since_unix_s: field()?,
            last_unix_s: field()?,
        })
    }

    /// What snapshots of it say.
    fn mark(&self) -> String {
        format!("{} {}", self.number, self.since_unix_s)
    }

    /// What the snapshot of a run is called: the time of day, UTC, and its number.
    fn snapshot(&self, at_unix_s: u64) -> String {
        format!("auto{}-{}", self.number, stamp(at_unix_s))
    }
}

/// A time in letters that a name may have.
fn stamp(unix_s: u64) -> String {
    let Moment {
        date: [year, month, day],
        time: [hour, minute, second],
    } = moment(unix_s);
    format!("{year}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// The schedules among a volume's attributes, by number.
pub fn of(volume: &PlacedVolume) -> Vec<Schedule> {
    let all = volume.about.attributes.iter();
    all.filter_map(|(key, value)| Schedule::parse(key, value))
        .collect()
}

/// Which schedules there are, so that nobody has to look for them.
pub(super) type Known = BTreeMap<Uuid, Vec<Schedule>>;

impl Array {
    /// The schedules of the volume called `name`.
    ///
    /// # Errors
    /// No such volume, or a shard has stopped.
    pub async fn schedules(&self, name: &str) -> Result<Vec<Schedule>, ArrayError> {
        Ok(of(&self.volume(name).await?))
    }

    /// Has snapshots of a volume taken, the first one at once.
    ///
    /// # Errors
    /// No such volume, it is a snapshot, it has too many, or what the pool says.
    pub async fn add_schedule(
        self: &Arc<Self>,
        name: &str,
        every_s: u64,
        keep: u64,
    ) -> Result<Schedule, ArrayError> {
        let there = self.volume(name).await?;
        let taken = of(&there);
        let is_free = |number: &u64| taken.iter().all(|other| other.number != *number);
        let number = (1..=SCHEDULES_MAX).find(is_free);
        let (Some(number), false) = (number, there.is_snapshot()) else {
            let context = match there.is_snapshot() {
                true => format!("{name} is a snapshot, and does not change"),
                false => format!("volume {name} has {SCHEDULES_MAX} schedules: delete one first"),
            };
            return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
        };
        let now = now_unix_s();
        let schedule = Schedule {
            number,
            every_s,
            keep,
            since_unix_s: now,
            last_unix_s: now.saturating_sub(every_s),
        };
        self.note(name, schedule.key(), schedule.value()).await?;
        Ok(schedule)
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
        let all = self.schedules(name).await?;
        let found = all.iter().find(|schedule| schedule.number == number);
        let found = found.ok_or_else(|| {
            let context = format!("volume {name} has no schedule {number}");
            ArrayError::new(ArrayErrorKind::NotFound, context)
        })?;
        self.note(name, found.key(), String::new()).await
    }

    /// Attaches something of the array's own to a volume.
    async fn note(
        self: &Arc<Self>,
        name: &str,
        key: String,
        value: String,
    ) -> Result<(), ArrayError> {
        let words = NewWords {
            tags: vec![(key, value)],
            ..NewWords::default()
        };
        let placed = self.change_words(name.to_owned(), words).await?;
        self.learn_schedules(&placed);
        Ok(())
    }

    /// Knows the schedules of a volume from now on.
    pub(super) fn learn_schedules(&self, volume: &PlacedVolume) {
        let schedules = of(volume);
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

    /// Runs schedules from now on.
    ///
    /// # Errors
    /// A shard has stopped.
    pub(crate) async fn keep_schedules(self: &Arc<Self>) -> Result<(), ArrayError> {
        for volume in &self.volumes().await? {
            self.learn_schedules(volume);
        }
        let array = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(array) = array.upgrade() {
                if let Err(error) = array.run_due().await {
                    tracing::warn!("snapshots by schedule: {error}");
                }
                drop(array);
                tokio::time::sleep(PAUSE).await;
            }
        });
        Ok(())
    }

    /// Runs what is due.
    async fn run_due(self: &Arc<Self>) -> Result<(), ArrayError> {
        let now = now_unix_s();
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
            for schedule in schedules {
                let Some((is_late, then)) = schedule.due(now) else {
                    continue;
                };
                let outcome = self.turn(volume, &then, is_late.then_some(now)).await;
                if let Err(error) = outcome {
                    self.tell_failure(volume, &then, &error).await?;
                }
            }
        }
        Ok(())
    }

    /// Notes that a schedule has had its turn, and runs it when it is to.
    async fn turn(
        self: &Arc<Self>,
        volume: &PlacedVolume,
        then: &Schedule,
        now: Option<u64>,
    ) -> Result<(), ArrayError> {
        if let Some(schedules) = self.schedule_map().get_mut(&volume.info.uuid) {
            let same = schedules.iter_mut().filter(|s| s.number == then.number);
            same.for_each(|schedule| *schedule = *then);
        }
        // Noted first: a run that ends in a crash is not made again and again.
        self.note(&volume.info.name, then.key(), then.value())
            .await?;
        match now {
            Some(now) => self.run(volume, then, now).await,
            None => Ok(()),
        }
    }

    /// Takes a snapshot, and deletes those beyond what is kept.
    async fn run(
        self: &Arc<Self>,
        volume: &PlacedVolume,
        schedule: &Schedule,
        now: u64,
    ) -> Result<(), ArrayError> {
        let name = &volume.info.name;
        let called = schedule.snapshot(now);
        let taken = match self.take_snapshot(name.clone(), &called).await {
            // By a schedule of the same number, which ended in the same second.
            Err(error) if error.kind == ArrayErrorKind::Exists => {
                let called = format!("{called}{AGAIN}");
                self.take_snapshot(name.clone(), &called).await?
            }
            taken => taken?,
        };
        self.note(&taken.info.name, TAKEN_BY.to_owned(), schedule.mark())
            .await?;
        let mine = |snapshot: &PlacedVolume| {
            let mark = snapshot.about.attributes.get(TAKEN_BY);
            snapshot.is_of(volume) && mark == Some(&schedule.mark())
        };
        let mut all = self.snapshots(None).await?;
        all.retain(mine);
        all.sort_by_key(|snapshot| {
            let at = snapshot.about.origin.as_ref();
            let at = at.map(|origin| origin.at_unix_s);
            (at, snapshot.info.name.clone())
        });
        let beyond = all.len().saturating_sub(schedule.keep as usize);
        for old in all.into_iter().take(beyond) {
            self.delete_snapshot(old.info.name).await?;
        }
        Ok(())
    }

    async fn tell_failure(
        &self,
        volume: &PlacedVolume,
        schedule: &Schedule,
        error: &ArrayError,
    ) -> Result<(), ArrayError> {
        let text = format!(
            "schedule {} of volume '{}': {error}; next after {} s",
            schedule.number, volume.info.name, schedule.every_s
        );
        let visit = move |_, pool: Pool<RealWorld>| async move {
            pool.tell(EventKind::Schedule, text);
            Ok(())
        };
        self.with_lane(&volume.pool, volume.lane, visit).await
    }
}

/// What a volume's schedules take at most of the name of a snapshot.
pub fn fits(volume: &str) -> bool {
    let longest = stamp(0).len() + "auto1-".len() + AGAIN.len() + SNAPSHOT_MARK.len_utf8();
    volume.len() + longest <= 64
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOURLY: Schedule = Schedule {
        number: 2,
        every_s: 3600,
        keep: 24,
        since_unix_s: 1_700_000_000,
        last_unix_s: 1_700_003_600,
    };

    #[test]
    fn a_schedule_comes_back_from_its_attribute() {
        let (key, value) = (HOURLY.key(), HOURLY.value());
        assert_eq!(Schedule::parse(&key, &value), Some(HOURLY));
        let most = Schedule {
            every_s: u64::MAX,
            keep: KEEP_MAX,
            since_unix_s: u64::MAX >> 24,
            last_unix_s: u64::MAX >> 24,
            ..HOURLY
        };
        assert!(most.value().len() <= 64, "{}", most.value());
        for (key, value) in [
            ("vm", "1 2 3 4"),
            ("_schedule.x", "1 2 3 4"),
            ("_schedule.1", "1 2 3"),
            ("_schedule.1", "0 2 3 4"),
        ] {
            assert_eq!(Schedule::parse(key, value), None);
        }
    }

    #[test]
    fn missed_runs_are_one_and_the_next_is_when_it_would_have_been() {
        let last = HOURLY.last_unix_s;
        assert_eq!(HOURLY.due(last), None);
        assert_eq!(HOURLY.due(last + 3599), None);
        let then = |at| Schedule {
            last_unix_s: at,
            ..HOURLY
        };
        assert_eq!(HOURLY.due(last + 3600), Some((true, then(last + 3600))));
        // Away for a good day.
        let late = HOURLY.due(last + 100_000).unwrap();
        assert_eq!(late, (true, then(last + 27 * 3600)));
        assert_eq!(late.1.due(last + 100_001), None);
        // The clock was set back: nothing runs, and nothing waits for years.
        assert_eq!(HOURLY.due(last - 50), Some((false, then(last - 50))));
    }

    #[test]
    fn snapshots_are_called_by_the_time_of_day() {
        assert_eq!(HOURLY.snapshot(951_782_400), "auto2-20000229-000000");
        assert_eq!(HOURLY.snapshot(1_767_225_599), "auto2-20251231-235959");
        assert!(fits(&"v".repeat(40)) && !fits(&"v".repeat(41)));
    }
}
