//! Scheduled snapshots of consistency groups.
//!
//! Invariants:
//! - A run takes snapshots of all volumes that are in the group at that time, at one instant
//!   and under one name of their own, or of none.
//! - How many are kept counts by volume; those of a volume's own schedules are not touched.

use super::{ConsistencyGroup, groups};
use crate::control::schedule::{
    AGAIN, Schedule, Subject, TAKEN_BY, check_fits, free_number, merged,
};
use crate::control::schedules::KnownSchedules;
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use engine::World;
use std::sync::Arc;
use std::time::Duration;

impl<W: World> ControlPlane<W> {
    /// Has snapshots of a group taken, the first ones at once.
    ///
    /// # Errors
    /// No such group, it has too many, a volume's name has no room for those of snapshots,
    /// or what a pool says.
    pub async fn add_group_schedule(
        self: &Arc<Self>,
        name: String,
        every_s: u64,
        keep: u64,
    ) -> Result<Schedule, ArrayError> {
        self.change(move |array| async move {
            let group = array.consistency_group(&name).await?;
            for volume in &group.volumes {
                check_fits(&volume.info.name)?;
            }
            let Some(number) = free_number(&group.schedules) else {
                let most = site::SCHEDULES_MAX;
                let context =
                    format!("consistency group {name} has {most} schedules: delete one first");
                return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
            };
            let others = array.consistency_groups().await?.into_iter();
            let others: Vec<Schedule> = others.flat_map(|group| group.schedules).collect();
            let new = Schedule::new(Subject::Group, number, (every_s, keep), array.unix_s());
            let schedule = told_from(&others, new);
            let said = |_: &PlacedVolume| vec![(schedule.key(), schedule.value())];
            array.attach(&group.volumes, said).await?;
            Ok(schedule)
        })
        .await
    }

    /// Ends a schedule of a group. Snapshots that it took stay.
    ///
    /// # Errors
    /// No such group or schedule, or what a pool says.
    pub async fn remove_group_schedule(
        self: &Arc<Self>,
        name: String,
        number: u64,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let group = array.consistency_group(&name).await?;
            let found = group.schedules.iter().find(|one| one.number == number);
            let found = found.ok_or_else(|| {
                let context = format!("consistency group {name} has no schedule {number}");
                ArrayError::new(ArrayErrorKind::NotFound, context)
            })?;
            let said = |_: &PlacedVolume| vec![(found.key(), String::new())];
            array.attach(&group.volumes, said).await.map(drop)
        })
        .await
    }

    /// Runs what is due of the groups that `volumes` are in.
    pub(in crate::control) async fn run_groups(
        self: &Arc<Self>,
        now: u64,
        known: &KnownSchedules,
        volumes: Vec<PlacedVolume>,
    ) -> Result<(), ArrayError> {
        for group in groups(volumes) {
            let of_members = group.volumes.iter();
            let of_members = of_members.filter_map(|volume| known.get(&volume.info.uuid));
            for schedule in merged(of_members.flatten().copied()) {
                let Some((is_late, then)) = schedule.due(now) else {
                    continue;
                };
                let (array, group) = (Arc::clone(self), group.clone());
                let run = async move {
                    let outcome = array.turn_of(&group, &then, is_late.then_some(now)).await;
                    array.tell_of_group(&group, &then, outcome).await
                };
                self.run_soon(run).await?;
            }
        }
        Ok(())
    }

    /// Has an event tell of a run that failed.
    async fn tell_of_group(
        &self,
        group: &ConsistencyGroup,
        then: &Schedule,
        outcome: Result<(), ArrayError>,
    ) -> Result<(), ArrayError> {
        let (Err(error), Some(first)) = (outcome, group.volumes.first()) else {
            return Ok(());
        };
        let text = format!(
            "schedule {} of consistency group '{}' has failed: {error}; it runs again after {}",
            then.number,
            group.name,
            site::span_words(Duration::from_secs(then.every_s))
        );
        self.tell_of_schedule(first, text).await
    }

    /// Notes with all members of a group that a schedule has had its turn, and runs it when
    /// it is to.
    async fn turn_of(
        self: &Arc<Self>,
        group: &ConsistencyGroup,
        then: &Schedule,
        now: Option<u64>,
    ) -> Result<(), ArrayError> {
        for volume in &group.volumes {
            self.has_had_its_turn(volume, then);
        }
        let (name, schedule) = (group.name.clone(), *then);
        let members = self.change(move |array| async move {
            // Ended just now, with its group or without.
            let group = match array.consistency_group(&name).await {
                Err(error) if error.kind == ArrayErrorKind::NotFound => return Ok(Vec::new()),
                group => group?,
            };
            if !group.schedules.iter().any(|one| one.is_same(&schedule)) {
                return Ok(Vec::new());
            }
            let taken = array.run_of(&group, &schedule, now).await;
            taken.map_err(|error| {
                let context = format!("no snapshot is taken: {}", error.context);
                ArrayError::new(error.kind, context)
            })?;
            Ok(group.volumes)
        });
        let members = members.await?;
        let mut failure = None;
        for member in &members {
            // What can't go with one volume keeps nothing of another.
            if let Err(error) = self.thin_out(member, then).await {
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Notes a run, and takes its snapshots.
    async fn run_of(
        &self,
        group: &ConsistencyGroup,
        schedule: &Schedule,
        now: Option<u64>,
    ) -> Result<Vec<PlacedVolume>, ArrayError> {
        // Noted first: a run that ends in a crash is not made again and again. Of members that
        // differ, the newest run counts.
        let said = |_: &PlacedVolume| vec![(schedule.key(), schedule.value())];
        self.attach_each(&group.volumes, said).await?;
        let Some(now) = now else {
            return Ok(Vec::new());
        };
        self.check_whole_group(&group.name)?;
        self.runtime.reached("schedule takes snapshots of a group");
        let called = schedule.snapshot(now);
        let mark = [(TAKEN_BY.to_owned(), schedule.mark())];
        match self.take_of(&group.volumes, &called, &mark).await {
            // By a schedule of the same number, which ended in the same second.
            Err(error) if error.kind == ArrayErrorKind::Exists => {
                let called = format!("{called}{AGAIN}");
                self.take_of(&group.volumes, &called, &mark).await
            }
            taken => taken,
        }
    }
}

/// A new schedule that no other group has one like: when a volume goes from one to the other,
/// snapshots of both are told from each other by the number and this time.
fn told_from(others: &[Schedule], mut new: Schedule) -> Schedule {
    while others.iter().any(|other| other.is_same(&new)) {
        new.since_unix_s += 1;
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_that_two_groups_get_in_one_second_differ() {
        let new = Schedule::new(Subject::Group, 1, (60, 2), 1000);
        let next = told_from(&[new], new);
        assert!(!next.is_same(&new));
        assert_eq!(next.next_unix_s(), 1000, "due at once all the same");
        let third = told_from(&[next, new], new);
        assert!(!third.is_same(&new) && !third.is_same(&next));
        assert_eq!(told_from(&[], new), new);
    }
}
