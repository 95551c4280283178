//! Which drives a pool has had, and which of them are to be told of as failed.
//!
//! Invariant: it has no opinion on what a power cut, or a record that could not be written, has left
//! open. It learns that from the array, once.

use super::groups::Groups;
use super::request::{Outcome, Request};
use array::control::{Failure, KnownDrive};
use engine::MemberState;
use engine::drives::SPARE_GROUP;
use engine::pool::{MemberInfo, PoolInfo};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    InPool {
        is_spare: bool,
    },
    /// It is told of, with this reason.
    Told(Failure),
    /// It is told of no more.
    Forgotten,
}

#[derive(Clone, Debug)]
struct Drive {
    name: String,
    group: u16,
    state: State,
}

#[derive(Default)]
pub(super) struct Oracle {
    /// By identity.
    drives: BTreeMap<String, Drive>,
    /// Nobody is to hear of these once they have no place.
    released: BTreeSet<String>,
    /// Who knows of these.
    open: BTreeSet<String>,
    /// Some drive waited for a place, or a rebuild was under way.
    is_busy: bool,
    groups: Groups,
}

impl Oracle {
    /// Names of the drives that the pool has.
    pub(super) fn in_pool(&self) -> Vec<String> {
        self.names(|state| matches!(state, State::InPool { .. }))
    }

    /// Names of those that are told of.
    pub(super) fn told(&self) -> Vec<String> {
        self.names(|state| matches!(state, State::Told(_)))
    }

    /// The groups of the pool.
    pub(super) fn groups(&self) -> &Groups {
        &self.groups
    }

    fn names(&self, is_it: impl Fn(&State) -> bool) -> Vec<String> {
        let all = self.drives.values().filter(|drive| is_it(&drive.state));
        all.map(|drive| drive.name.clone()).collect()
    }

    /// The drive that this name means.
    fn called(&self, name: &str) -> Option<(String, State)> {
        let mut all: Vec<_> = self.drives.iter().collect();
        all.retain(|(_, drive)| drive.name == name && drive.state != State::Forgotten);
        all.sort_by_key(|(_, drive)| !matches!(drive.state, State::InPool { .. }));
        let (uuid, drive) = all.first()?;
        Some(((*uuid).clone(), drive.state.clone()))
    }

    /// Nothing is under way, and the array says that its pool is so, and tells of these drives.
    ///
    /// # Errors
    /// What is wrong with that.
    pub(super) fn observe(
        &mut self,
        info: &PoolInfo,
        told: &[KnownDrive],
        (asked, some_unwritten): (&[(Request, Outcome)], bool),
    ) -> Result<(), String> {
        self.groups.observe(info, asked)?;
        for (request, outcome) in asked {
            self.take(request, outcome, asked.len() > 1 || some_unwritten)?;
        }
        let members: Vec<&MemberInfo> = info.members.iter().chain(&info.spares).collect();
        let told: BTreeMap<&str, &KnownDrive> =
            told.iter().map(|drive| (&drive.uuid[..], drive)).collect();
        let uuids: Vec<String> = self.drives.keys().cloned().collect();
        for uuid in uuids {
            if !members.iter().any(|member| member.uuid.to_string() == uuid) {
                self.judge(&uuid, told.get(&uuid[..]).copied(), info)?;
            }
        }
        for (uuid, drive) in told {
            let known = self.drives.entry(uuid.to_owned());
            known.or_insert_with(|| Drive {
                name: drive.name.clone(),
                group: drive.group,
                state: match &drive.failure {
                    Some(failure) => State::Told(failure.clone()),
                    None => State::Forgotten,
                },
            });
        }
        self.see(info, &members);
        Ok(())
    }

    /// A drive has no place in the pool, and is `told` of so.
    fn judge(
        &mut self,
        uuid: &str,
        told: Option<&KnownDrive>,
        info: &PoolInfo,
    ) -> Result<(), String> {
        let is_open = self.open.remove(uuid);
        if is_open && told.is_some() {
            self.released.remove(uuid);
        }
        let Some(drive) = self.drives.get_mut(uuid) else {
            return Ok(());
        };
        let mut members = info.members.iter().chain(&info.spares);
        let is_taken = members.any(|member| member.name == drive.name);
        let may_leave = self.groups.lets_go(drive.group);
        let has_left = may_leave && !has_group(info, drive.group);
        let is_over = drive.state == State::Forgotten || self.released.contains(uuid);
        let name = &drive.name;
        drive.state = match (told, &drive.state) {
            (Some(_), _) if is_taken => {
                return Err(format!("{name} is told of, and another drive has its name"));
            }
            (Some(_), _) if has_left => {
                return Err(format!("{name} is told of, and its group has left"));
            }
            (Some(_), _) if is_over && !is_open => {
                return Err(format!("{name} is told of, and was replaced or forgotten"));
            }
            (Some(now), State::Told(before)) if now.failure.as_ref() != Some(before) => {
                let now = &now.failure;
                return Err(format!("{name} failed by {before:?}, and now by {now:?}"));
            }
            (Some(now), _) => match &now.failure {
                Some(failure) => State::Told(failure.clone()),
                None => return Err(format!("{name} is told of without a reason")),
            },
            (None, _) if is_taken || is_over || is_open || may_leave => State::Forgotten,
            (None, _) => return Err(format!("nobody is told that {name} has failed")),
        };
        Ok(())
    }

    /// Notes the drives that the pool has.
    fn see(&mut self, info: &PoolInfo, members: &[&MemberInfo]) {
        for member in members {
            let mut spares = info.spares.iter();
            let state = State::InPool {
                is_spare: spares.any(|spare| spare.uuid == member.uuid),
            };
            let name = member.name.clone();
            let group = member.group;
            let drive = Drive { name, group, state };
            self.drives.insert(member.uuid.to_string(), drive);
        }
        let is_quiet = |member: &&MemberInfo| {
            matches!(member.state, MemberState::Healthy | MemberState::Spare)
        };
        self.is_busy = !members.iter().all(is_quiet);
    }

    /// Notes what somebody has asked for, among others if `beside_others`.
    fn take(
        &mut self,
        request: &Request,
        outcome: &Outcome,
        beside_others: bool,
    ) -> Result<(), String> {
        let (Request::Fault { name }
        | Request::Fail { name }
        | Request::Remove { name }
        | Request::Replace { name, .. }
        | Request::Renew { name, .. }) = request
        else {
            self.take_addition(request);
            return Ok(());
        };
        let Some((uuid, state)) = self.called(name) else {
            return Ok(());
        };
        match (request, outcome) {
            // A pool says by itself what it has lost.
            (Request::Fault { .. }, _) => {}
            // What can't be kept has not changed.
            (Request::Remove { .. }, Outcome::Unwritten) => {}
            (_, Outcome::Open | Outcome::Unwritten) => {
                self.open.insert(uuid);
            }
            (Request::Remove { name }, Outcome::Refused(error))
                if matches!(state, State::Told(_)) && !self.may_be_forgotten(&uuid) =>
            {
                return Err(format!("{name} can't be removed: {error}"));
            }
            // It may have given its name away for a moment.
            (Request::Renew { .. }, Outcome::Refused(_)) => drop(self.open.insert(uuid)),
            (_, Outcome::Refused(_)) => {}
            (request, Outcome::Done) => self.take_done(request, (uuid, state), beside_others),
        }
        Ok(())
    }

    /// Whether it may be that nobody is told of the drive any more.
    fn may_be_forgotten(&self, uuid: &str) -> bool {
        let group = self.drives.get(uuid).map(|drive| drive.group);
        self.open.contains(uuid) || group.is_some_and(|group| self.groups.lets_go(group))
    }

    /// Notes that somebody has asked for a drive of a name. One that is told of may have given its
    /// name away for a moment, or until the new drive left with its group.
    fn take_addition(&mut self, request: &Request) {
        if let Request::AddSpare { new } = request
            && let Some((uuid, _)) = self.called(&new.drive.name)
        {
            self.open.insert(uuid);
        }
    }

    /// Notes that something was done to a drive.
    fn take_done(&mut self, request: &Request, (uuid, state): (String, State), beside: bool) {
        match request {
            Request::Fail { .. } if state == (State::InPool { is_spare: true }) => {
                // It may have had a place by then.
                match beside || self.is_busy {
                    true => self.open.insert(uuid),
                    false => self.released.insert(uuid),
                };
            }
            Request::Replace { .. } | Request::Renew { .. } => {
                // One that is copied stays until then, or for good.
                if beside || matches!(state, State::InPool { .. }) {
                    self.open.insert(uuid.clone());
                }
                self.released.insert(uuid);
            }
            Request::Remove { .. } => {
                if let Some(drive) = self.drives.get_mut(&uuid) {
                    drive.state = State::Forgotten;
                }
                if beside {
                    self.open.insert(uuid);
                }
            }
            _ => {}
        }
    }
}

/// Whether the pool has this group. It has spares at all times.
fn has_group(info: &PoolInfo, index: u16) -> bool {
    index == SPARE_GROUP || info.groups.iter().any(|group| group.index == index)
}
