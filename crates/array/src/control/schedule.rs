//! A schedule of snapshots, and its form on record.
//!
//! Invariant: what older versions wrote is read as they meant it.

use super::{ArrayError, ArrayErrorKind, PlacedVolume};
use crate::calendar::{Moment, moment};
use std::collections::BTreeMap;

/// The shortest pause between runs.
pub const EVERY_S_MIN: u64 = 1;
/// The longest: ten years.
pub const EVERY_S_MAX: u64 = 3650 * 86_400;

/// Attributes of volumes: the schedule of a number.
const SCHEDULE: &str = "_schedule.";
/// Before the number of one of a consistency group.
const OF_GROUP: char = 'g';
/// Of snapshots: the schedule that took them.
pub(super) const TAKEN_BY: &str = "_taken-by";

/// Behind a name that is taken.
pub(super) const AGAIN: &str = "-2";

/// What a schedule takes snapshots of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The volume that has it.
    Volume,
    /// The consistency group that this volume is in: all members have it.
    Group,
}

/// Snapshots by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Whether it takes snapshots of a volume or of a consistency group.
    pub subject: Subject,
    /// Its number among those of its volume, or of its group.
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
    /// A new one, which is due at once.
    pub(super) fn new(
        subject: Subject,
        number: u64,
        (every_s, keep): (u64, u64),
        now: u64,
    ) -> Self {
        Schedule {
            subject,
            number,
            every_s,
            keep,
            since_unix_s: now,
            last_unix_s: now.saturating_sub(every_s),
        }
    }

    /// When it runs next.
    pub fn next_unix_s(&self) -> u64 {
        self.last_unix_s.saturating_add(self.every_s)
    }

    /// As of `now`, with the time of its last run, when it is to run; or, when the clock
    /// was set back, as if it had run now.
    pub(super) fn due(&self, now: u64) -> Option<(bool, Schedule)> {
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

    /// Its number, with what it is of.
    fn id(&self) -> String {
        match self.subject {
            Subject::Volume => self.number.to_string(),
            Subject::Group => format!("{OF_GROUP}{}", self.number),
        }
    }

    pub(super) fn key(&self) -> String {
        format!("{SCHEDULE}{}", self.id())
    }

    pub(super) fn value(&self) -> String {
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
        let id = key.strip_prefix(SCHEDULE)?;
        let (subject, number) = match id.strip_prefix(OF_GROUP) {
            Some(number) => (Subject::Group, number),
            None => (Subject::Volume, id),
        };
        let mut fields = value.split(' ').map(str::parse);
        let mut field = || fields.next()?.ok();
        Some(Schedule {
            subject,
            number: number.parse().ok()?,
            every_s: field().filter(|every_s| *every_s >= EVERY_S_MIN)?,
            keep: field()?,
            since_unix_s: field()?,
            last_unix_s: field()?,
        })
    }

    /// What snapshots of it say.
    pub fn mark(&self) -> String {
        format!("{} {}", self.id(), self.since_unix_s)
    }

    /// Whether it is `other`, whenever that ran last.
    pub(super) fn is_same(&self, other: &Schedule) -> bool {
        self.mark() == other.mark()
    }

    /// What the snapshot of a run is called: the time of day, UTC, and its number.
    pub(super) fn snapshot(&self, at_unix_s: u64) -> String {
        let by = match self.subject {
            Subject::Volume => "auto",
            Subject::Group => "grp",
        };
        format!("{by}{}-{}", self.number, stamp(at_unix_s))
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

/// The schedules among a volume's attributes, by number; its group's after its own.
pub(super) fn all_of(volume: &PlacedVolume) -> Vec<Schedule> {
    let all = volume.properties.attributes.iter();
    all.filter_map(|(key, value)| Schedule::parse(key, value))
        .collect()
}

/// Those of the group that a volume is in, by number.
pub fn of_group(volume: &PlacedVolume) -> Vec<Schedule> {
    let all = all_of(volume).into_iter();
    all.filter(|schedule| schedule.subject == Subject::Group)
        .collect()
}

/// A volume's own schedules, by number.
pub fn of(volume: &PlacedVolume) -> Vec<Schedule> {
    let mut all = all_of(volume);
    all.retain(|schedule| schedule.subject == Subject::Volume);
    all
}

/// The schedules of a group, by number, among those that its members have. Where they differ,
/// as a crash in the middle of a change leaves them, the newest counts.
pub(super) fn merged(of_members: impl IntoIterator<Item = Schedule>) -> Vec<Schedule> {
    let mut by_number: BTreeMap<u64, Schedule> = BTreeMap::new();
    for schedule in of_members {
        if schedule.subject != Subject::Group {
            continue;
        }
        let age = |schedule: &Schedule| (schedule.since_unix_s, schedule.last_unix_s);
        let known = by_number.entry(schedule.number).or_insert(schedule);
        if age(known) < age(&schedule) {
            *known = schedule;
        }
    }
    by_number.into_values().collect()
}

/// A number that none of them has, when there may be one more.
pub(super) fn free_number(taken: &[Schedule]) -> Option<u64> {
    let is_free = |number: &u64| taken.iter().all(|other| other.number != *number);
    (1..=site::SCHEDULES_MAX).find(is_free)
}

/// That snapshots by schedule of this volume have room for their names.
///
/// # Errors
/// `Invalid`, with what is allowed.
pub(super) fn check_fits(volume: &str) -> Result<(), ArrayError> {
    let most = site::SCHEDULED_NAME_BYTES_MAX;
    if volume.len() <= most {
        return Ok(());
    }
    let rule = format!("a volume's name of up to {most} bytes, so that snapshots have theirs");
    let context = format!("volume: found {volume:?}; allowed: {rule}");
    Err(ArrayError::new(ArrayErrorKind::Invalid, context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::pool::SNAPSHOT_MARK;

    const HOURLY: Schedule = Schedule {
        subject: Subject::Volume,
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
            keep: site::KEEP_MAX,
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
    fn a_group_schedule_is_told_from_a_volume_s_of_its_number() {
        let of_group = Schedule {
            subject: Subject::Group,
            ..HOURLY
        };
        assert_eq!(of_group.key(), "_schedule.g2");
        let read = Schedule::parse(&of_group.key(), &of_group.value());
        assert_eq!(read, Some(of_group));
        assert_ne!(of_group.mark(), HOURLY.mark());
        assert!(!of_group.is_same(&HOURLY) && of_group.is_same(&of_group));
        assert_eq!(of_group.snapshot(0), "grp2-19700101-000000");
        // As it was before there were groups.
        let old = Schedule::parse("_schedule.2", "3600 24 1700000000 1700003600");
        assert_eq!(old, Some(HOURLY));
        assert_eq!(HOURLY.mark(), "2 1700000000");
    }

    #[test]
    fn of_members_that_differ_the_newest_counts() {
        let of_group = |number, since_unix_s, last_unix_s| Schedule {
            subject: Subject::Group,
            number,
            since_unix_s,
            last_unix_s,
            ..HOURLY
        };
        let all = [
            HOURLY,
            of_group(2, 9, 30),
            of_group(1, 5, 20),
            of_group(1, 7, 10),
            of_group(1, 7, 11),
        ];
        let expected = [of_group(1, 7, 11), of_group(2, 9, 30)];
        assert_eq!(merged(all), expected);
        assert_eq!(free_number(&expected), Some(3));
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
        let by_group = Schedule {
            subject: Subject::Group,
            ..HOURLY
        };
        for schedule in [HOURLY, by_group] {
            let name = format!("{SNAPSHOT_MARK}{}{AGAIN}", schedule.snapshot(0));
            assert!(site::SCHEDULED_NAME_BYTES_MAX + name.len() <= 64, "{name}");
        }
        assert!(check_fits(&"v".repeat(40)).is_ok() && check_fits(&"v".repeat(41)).is_err());
    }
}
