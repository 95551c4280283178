//! Which groups the pool has, of which levels, and what is to become of their drives.
//!
//! Invariant: it has no opinion on what a power cut has left open. It learns that from the array, once.

use super::places::{Offer, Places, Tenants};
use super::request::{Outcome, Request};
use array::control::ArrayErrorKind;
use base::Prng;
use engine::Level;
use engine::drives::SPARE_GROUP;
use engine::pool::PoolInfo;
use std::collections::{BTreeMap, BTreeSet};

/// A pool has no more of them.
const GROUPS_MAX: usize = 3;

/// New groups: each can lose a drive, and some can get another level.
const SHAPES: [(Level, usize); 4] = [
    (Level::Raid10 { copies: 2 }, 2),
    (Level::Raid10 { copies: 2 }, 4),
    (Level::Raid5, 3),
    (Level::Raid10 { copies: 3 }, 3),
];

/// One in so many new groups has a drive at a place that is not free.
const ODD_ONE_OF: u64 = 3;

#[derive(Clone, Debug)]
struct Group {
    level: Level,
    drives: BTreeSet<String>,
}

#[derive(Default)]
pub(super) struct Groups {
    /// By index.
    there: BTreeMap<u16, Group>,
    /// Those that are to leave, and those that have left.
    leaving: BTreeSet<u16>,
    /// Who knows what level these have.
    open: BTreeSet<u16>,
    /// Drives that have left with their groups.
    left: BTreeSet<String>,
}

impl Groups {
    /// A request to a pool that is so; none where there is nothing to ask for.
    pub(super) fn draw(
        &self,
        prng: &mut Prng,
        (places, tenants): (&Places, &Tenants),
    ) -> Option<Request> {
        let indices: Vec<u16> = self.there.keys().copied().collect();
        let index = *indices.get(prng.below(indices.len().max(1) as u64) as usize)?;
        let (level, drives) = *prng.pick(&SHAPES);
        Some(match prng.below(6) {
            0..=2 if indices.len() < GROUPS_MAX => {
                let new: Option<Vec<_>> = (0..drives).map(|_| places.fresh(prng)).collect();
                let mut new = new?;
                if prng.chance(1, ODD_ONE_OF) {
                    let place = prng.below(new.len() as u64) as usize;
                    new[place] = places.odd(prng, tenants)?;
                }
                Request::AddGroup { level, new }
            }
            3 => Request::ConvertGroup {
                index,
                level: *prng.pick(&[Level::Raid6, Level::Raid50]),
            },
            _ => Request::RemoveGroup {
                index,
                drives: self.there[&index].drives.iter().cloned().collect(),
            },
        })
    }

    /// Whether a drive of this group may go without a word: its group leaves, or has left.
    pub(super) fn lets_go(&self, group: u16) -> bool {
        let some_leave = group == SPARE_GROUP && !self.leaving.is_empty();
        some_leave || self.leaving.contains(&group)
    }

    /// Drives that have left with their groups: no record names them any more.
    pub(super) fn left(&self) -> &BTreeSet<String> {
        &self.left
    }

    /// Nothing is under way, and the pool is so.
    ///
    /// # Errors
    /// What is wrong with that.
    pub(super) fn observe(
        &mut self,
        info: &PoolInfo,
        asked: &[(Request, Outcome)],
    ) -> Result<(), String> {
        for (request, outcome) in asked {
            self.take(info, request, outcome)?;
        }
        let is_there = |index: u16| info.groups.iter().any(|group| group.index == index);
        let gone: Vec<u16> = self.there.keys().copied().collect();
        for index in gone.into_iter().filter(|index| !is_there(*index)) {
            if !self.leaving.contains(&index) {
                return Err(format!(
                    "group {index} has left, and nobody has asked for that"
                ));
            }
            let group = self.there.remove(&index);
            let drives = group.into_iter().flat_map(|group| group.drives);
            self.left.extend(drives.filter(|name| !has(info, name)));
        }
        self.left.retain(|name| !has(info, name));
        for group in &info.groups {
            let known = self.there.get(&group.index).map(|known| known.level);
            if known.is_some_and(|known| known != group.level) && !self.open.contains(&group.index)
            {
                let (index, level) = (group.index, group.level);
                return Err(format!("group {index} is of level {level}, not {known:?}"));
            }
            let drives = group.members.iter().map(|member| member.name.clone());
            let now = Group {
                level: group.level,
                drives: drives.collect(),
            };
            self.there.insert(group.index, now);
        }
        self.open.clear();
        Ok(())
    }

    /// Notes what somebody has asked for.
    fn take(
        &mut self,
        info: &PoolInfo,
        request: &Request,
        outcome: &Outcome,
    ) -> Result<(), String> {
        match (request, outcome) {
            (
                Request::AddGroup { .. }
                | Request::ConvertGroup { .. }
                | Request::RemoveGroup { .. },
                Outcome::Refused(error),
            ) if request.offers().iter().all(Offer::is_free) && !is_usual(error.kind) => {
                return Err(format!("{request:?}: {error}"));
            }
            (Request::AddGroup { new, .. }, outcome) => return check_added(info, new, outcome),
            (_, Outcome::Refused(_)) => {}
            (Request::ConvertGroup { index, level }, Outcome::Done) => {
                if let Some(group) = self.there.get_mut(index) {
                    group.level = *level;
                }
            }
            (Request::ConvertGroup { index, .. }, _) => drop(self.open.insert(*index)),
            (Request::RemoveGroup { index, .. }, outcome) => {
                let mut groups = info.groups.iter();
                let stays = groups.any(|group| group.index == *index && !group.leaving);
                if *outcome == Outcome::Done && stays {
                    return Err(format!("group {index} was to leave, and stays"));
                }
                self.leaving.insert(*index);
            }
            _ => {}
        }
        Ok(())
    }
}

/// That all drives of a new group are there, or none.
fn check_added(info: &PoolInfo, new: &[Offer], outcome: &Outcome) -> Result<(), String> {
    let there = new
        .iter()
        .filter(|offer| has(info, &offer.drive.name))
        .count();
    let is_right = match outcome {
        Outcome::Done => there == new.len(),
        Outcome::Open => there == 0 || there == new.len(),
        Outcome::Unwritten | Outcome::Refused(_) => there == 0,
    };
    match is_right {
        true => Ok(()),
        false => Err(format!(
            "{there} drives of the group {new:?} are there: {outcome:?}"
        )),
    }
}

pub(super) fn has(info: &PoolInfo, name: &str) -> bool {
    let mut all = info.members.iter().chain(&info.spares);
    all.any(|member| member.name == name)
}

/// What may stand in the way of a change at any time.
fn is_usual(kind: ArrayErrorKind) -> bool {
    matches!(
        kind,
        ArrayErrorKind::Busy
            | ArrayErrorKind::Full
            | ArrayErrorKind::Invalid
            | ArrayErrorKind::NotFound
    )
}
