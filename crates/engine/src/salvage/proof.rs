//! The conclusions from all labels: those that are lost, and those of them that are proved.

use super::survey::{Survey, Surveyed};
use super::{Plan, Target, Work, refuse};
use crate::drive::Drive;
use crate::error::{PoolError, PoolErrorKind};
use crate::label::MemberState;
use crate::label::{GroupEntry, Label, MEMBERS_MAX, MemberEntry};
use crate::world::World;
use base::Uuid;
use base::size::human_pair;
use std::rc::Rc;

/// What there is to say of all lanes.
struct Proof<'s, W: World> {
    survey: &'s Survey<W>,
    steps: Vec<String>,
    obstacles: Vec<String>,
}

/// What to write, and why not more.
pub(super) fn plan<W: World>(survey: &Survey<W>) -> Result<Plan<W>, PoolError> {
    let mut proof = Proof {
        survey,
        steps: Vec::new(),
        obstacles: Vec::new(),
    };
    proof.check_names()?;
    let mut works = Vec::new();
    for lane in 0..survey.newest.len() as u16 {
        works.extend(proof.of_lane(lane)?);
    }
    proof.say_of_strangers();
    let pool = &survey.newest[0].pool;
    Ok(Plan {
        pool: pool.name.clone(),
        uuid: pool.uuid,
        steps: proof.steps,
        obstacles: proof.obstacles,
        works,
    })
}

/// What a drive is in a table.
fn standing(entry: &MemberEntry) -> String {
    match entry.state {
        MemberState::Spare => "a spare".to_owned(),
        _ => format!("place {} of group {}", entry.place, entry.group),
    }
}

impl<'s, W: World> Proof<'s, W> {
    fn newest(&self, lane: u16) -> &Label {
        &self.survey.newest[usize::from(lane)]
    }

    /// That no drive is two, by its current labels, and no two are one.
    fn check_names(&self) -> Result<(), PoolError> {
        let mut seen: Vec<(Uuid, &str)> = Vec::new();
        for drive in &self.survey.drives {
            let current = drive.labels.values().filter(|label| self.is_current(label));
            let mut names: Vec<Uuid> = current.map(|label| label.drive_uuid).collect();
            names.sort();
            names.dedup();
            if let [one, other, ..] = names[..] {
                let context = format!(
                    "drive '{}' is {one} by the label of one lane and {other} by that of another: nothing says which is right",
                    drive.name
                );
                return refuse(PoolErrorKind::Corrupt, context);
            }
            for uuid in names {
                if let Some((_, twin)) = seen.iter().find(|(other, _)| *other == uuid) {
                    let context = format!(
                        "drives '{twin}' and '{}' are the same drive ({uuid}), or one is a copy of the other: leave one of them out",
                        drive.name
                    );
                    return refuse(PoolErrorKind::Invalid, context);
                }
                seen.push((uuid, &drive.name));
            }
        }
        Ok(())
    }

    /// Whether a label is of the newest generation of its lane, or of the one before.
    fn is_current(&self, label: &Label) -> bool {
        label.generation + 1 >= self.newest(label.pool.lane).generation
    }

    fn of_lane(&mut self, lane: u16) -> Result<Option<Work<W>>, PoolError> {
        let (back, mut targets) = self.groups_back(lane)?;
        let lost = self.lost(lane);
        let label = match back {
            None => {
                return Ok((!lost.is_empty()).then(|| Work {
                    label: self.newest(lane).clone(),
                    targets: lost,
                }));
            }
            Some(label) => label,
        };
        // The group's drives first: with a label elsewhere that lists them, they have one.
        targets.extend(lost);
        for drive in &self.survey.drives {
            let Some(own) = drive.labels.get(&lane) else {
                continue;
            };
            let mut members = self.newest(lane).members.iter();
            let entry = members.find(|entry| entry.uuid == own.drive_uuid);
            let in_use = entry.is_some_and(|entry| entry.state != MemberState::Failed);
            if in_use && self.is_current(own) {
                targets.push(target(drive, own.drive_uuid));
            }
        }
        Ok(Some(Work { label, targets }))
    }

    /// Drives that have lost their labels of a lane, which has them in use.
    fn lost(&mut self, lane: u16) -> Vec<Target<W>> {
        let survey = self.survey;
        let mut targets = Vec::new();
        for entry in &self.newest(lane).members.clone() {
            if entry.state == MemberState::Failed {
                continue;
            }
            let has = |drive: &&Surveyed<W>| {
                let label = drive.labels.get(&lane);
                label.is_some_and(|label| label.drive_uuid == entry.uuid)
            };
            if survey.drives.iter().any(|drive| has(&drive)) {
                continue;
            }
            let what = format!("'{}' ({}, {})", entry.name, standing(entry), entry.uuid);
            let mut drives = survey.drives.iter();
            let found = drives.find_map(|drive| {
                let (uuid, by) = drive.named_by_others(&survey.newest, lane)?;
                (uuid == entry.uuid).then_some((drive, by))
            });
            let Some((drive, by)) = found else {
                self.obstacles.push(format!(
                    "lane {lane}: no drive has the label of drive {what}, and none is that drive by the label of another lane"
                ));
                continue;
            };
            match self.why_not(lane, drive, by, entry) {
                Some(why) => self.obstacles.push(format!(
                    "lane {lane}: drive '{}' has lost the label of drive {what}: {why}",
                    drive.name
                )),
                None => {
                    self.steps.push(format!(
                        "drive '{}': the label of lane {lane}, generation {}, as drive {what}: lane {by} says that it is this drive",
                        drive.name,
                        self.newest(lane).generation
                    ));
                    targets.push(target(drive, entry.uuid));
                }
            }
        }
        targets
    }

    /// What speaks against a drive being that of an entry.
    fn why_not(
        &self,
        lane: u16,
        drive: &Surveyed<W>,
        by: u16,
        entry: &MemberEntry,
    ) -> Option<String> {
        if let Some(why) = drive.unreadable.get(&lane) {
            return Some(format!("it can't be read there: {why}"));
        }
        if let Some(label) = drive.labels.get(&lane) {
            return Some(format!(
                "it has one there, of generation {}, as drive {}",
                label.generation, label.drive_uuid
            ));
        }
        let mut members = self.newest(by).members.iter();
        let theirs = members.find(|theirs| theirs.uuid == entry.uuid)?;
        if theirs.state == MemberState::Failed {
            return Some(format!(
                "it has failed in lane {by}, and nothing says that it did not miss anything in this one; replace it"
            ));
        }
        let both_stand = MemberState::Spare != theirs.state && MemberState::Spare != entry.state;
        if both_stand && (theirs.group, theirs.place) != (entry.group, entry.place) {
            return Some(format!("lane {by} has it as {}", standing(theirs)));
        }
        let others = self.newest(lane).pool.part().of_others_bytes();
        let capacity = drive.drive.geometry().capacity_bytes;
        let was = entry.capacity_bytes + others;
        (capacity < was).then(|| {
            let (capacity, was) = human_pair(capacity, was);
            format!("it has {capacity} and had {was} when it was labelled")
        })
    }

    /// The next label of a lane with the groups that it has let go, labels and all, while
    /// others have them still; and these groups' drives.
    fn groups_back(&mut self, lane: u16) -> Result<(Option<Label>, Vec<Target<W>>), PoolError> {
        let mut label = self.newest(lane).clone();
        let (mut any, mut targets) = (false, Vec::new());
        for index in 0..label.groups.len() as u16 {
            if label.groups[usize::from(index)].drives > 0 {
                continue;
            }
            let Some((by, theirs)) = self.group_elsewhere(lane, index)? else {
                continue;
            };
            let entries = self.newest(by).members.clone();
            let entries: Vec<MemberEntry> =
                entries.into_iter().filter(|e| e.group == index).collect();
            let Some(drives) = self.drives_without(lane, &entries) else {
                continue;
            };
            if label.members.len() + entries.len() > MEMBERS_MAX {
                let text = format!("lane {lane}: group {index} has no room in the table any more");
                self.obstacles.push(text);
                continue;
            }
            label.groups[usize::from(index)] = GroupEntry {
                leaving: true,
                ..theirs
            };
            let at = label.members.partition_point(|entry| entry.group < index);
            let back = entries.iter().map(|entry| back(entry, &drives));
            label.members.splice(at..at, back.collect::<Vec<_>>());
            self.steps.push(format!(
                "group {index} comes back to lane {lane}, to leave it when lane {by} has left it: labels on {}",
                names(&drives)
            ));
            targets.extend(drives.iter().map(|(uuid, drive)| target(drive, *uuid)));
            any = true;
        }
        label.generation += 1;
        Ok((any.then_some(label), targets))
    }

    /// A lane that has a group still, and what it says of it; all that have say the same.
    fn group_elsewhere(
        &self,
        lane: u16,
        index: u16,
    ) -> Result<Option<(u16, GroupEntry)>, PoolError> {
        let own = self.newest(lane).groups[usize::from(index)];
        let mut found: Option<(u16, GroupEntry)> = None;
        for other in 0..self.survey.newest.len() as u16 {
            let group = self.newest(other).groups.get(usize::from(index)).copied();
            let Some(group) = group.filter(|group| group.drives > 0) else {
                continue;
            };
            if group.numbers != own.numbers {
                let context =
                    format!("group {index} lies elsewhere in lane {lane} than in {other}");
                return refuse(PoolErrorKind::Corrupt, context);
            }
            let Some((first, _)) = found else {
                found = Some((other, group));
                continue;
            };
            let places = |lane: u16| {
                let members = self.newest(lane).members.iter();
                let of_group = members.filter(|member| member.group == index);
                let mut places: Vec<_> = of_group.map(|m| (m.place, m.uuid)).collect();
                places.sort();
                places
            };
            if places(first) != places(other) {
                let context = format!(
                    "lanes {first} and {other} have other drives in group {index}, which lane {lane} has let go: nothing says which of them it had"
                );
                return refuse(PoolErrorKind::Corrupt, context);
            }
        }
        Ok(found)
    }

    /// The drives of a group that a lane has let go, when it has no label on any of them.
    /// With one, the next opening goes on from there.
    fn drives_without(
        &self,
        lane: u16,
        entries: &[MemberEntry],
    ) -> Option<Vec<(Uuid, &'s Surveyed<W>)>> {
        let survey = self.survey;
        let mut found = Vec::new();
        for entry in entries {
            let mut drives = survey.drives.iter();
            let drive = drives.find(|drive| {
                let named = drive.named_by_others(&survey.newest, lane);
                named.is_some_and(|(uuid, _)| uuid == entry.uuid)
            });
            let Some(drive) = drive else { continue };
            if drive.labels.contains_key(&lane) || drive.unreadable.contains_key(&lane) {
                return None;
            }
            found.push((entry.uuid, drive));
        }
        (!found.is_empty()).then_some(found)
    }

    /// Drives that no lane says anything of.
    fn say_of_strangers(&mut self) {
        for drive in &self.survey.drives {
            if !drive.labels.is_empty() {
                continue;
            }
            self.obstacles.push(match drive.unreadable.first_key_value() {
                Some((lane, why)) => {
                    format!("drive '{}': label of lane {lane}: {why}", drive.name)
                }
                None => format!(
                    "drive '{}': no lane has a label on it, so nothing says which drive it is, or whether it is up to date; replace the drive that is missing with it",
                    drive.name
                ),
            });
        }
    }
}

/// A member of a group that comes back to a lane which has nothing there.
fn back<W: World>(entry: &MemberEntry, drives: &[(Uuid, &Surveyed<W>)]) -> MemberEntry {
    let is_there = drives.iter().any(|(uuid, _)| *uuid == entry.uuid);
    MemberEntry {
        state: match is_there {
            true => MemberState::Healthy,
            false => MemberState::Failed,
        },
        metadata: false,
        log: false,
        ..entry.clone()
    }
}

fn target<W: World>(drive: &Surveyed<W>, uuid: Uuid) -> Target<W> {
    Target {
        name: drive.name.clone(),
        drive: Rc::clone(&drive.drive),
        uuid,
    }
}

fn names<W: World>(drives: &[(Uuid, &Surveyed<W>)]) -> String {
    let names = drives.iter().map(|(_, drive)| format!("'{}'", drive.name));
    names.collect::<Vec<_>>().join(", ")
}
