//! Target ports in groups, and the access that each group gives (ALUA: SPC-4 clause 5.15).
//!
//! One controller has one group, and access by it is as good as it gets. With two there
//! will be a group for each.

use crate::cdb::{Command, Inform};
use crate::offload::Order;
use crate::sense::Sense;
use std::collections::{BTreeMap, BTreeSet};

/// The group that ports are in unless said otherwise.
pub const FIRST_GROUP: u16 = 1;
/// The relative identifier of the port that a target has always.
pub const FIRST_PORT: u16 = 1;

/// How a group of ports gives access (SPC-4 table 307).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AccessState {
    /// Full access at the best speed.
    Optimized = 0x0,
    /// Full access, but by a longer path.
    NonOptimized = 0x1,
    /// Not to the medium, until the other group fails.
    Standby = 0x2,
    /// No access by these ports.
    Unavailable = 0x3,
    /// It is about to be another.
    Transitioning = 0xf,
}

/// Ports by group.
#[derive(Debug)]
pub(crate) struct Ports {
    groups: BTreeMap<u16, Group>,
}

#[derive(Debug)]
struct Group {
    state: AccessState,
    /// STATUS CODE: whether the state has been changed.
    changed: bool,
    ports: BTreeSet<u16>,
}

impl Default for Ports {
    fn default() -> Self {
        let group = Group {
            state: AccessState::Optimized,
            changed: false,
            ports: BTreeSet::from([FIRST_PORT]),
        };
        Ports {
            groups: BTreeMap::from([(FIRST_GROUP, group)]),
        }
    }
}

impl Ports {
    /// There is a port with this relative identifier.
    pub(crate) fn add(&mut self, port: u16) {
        if self.group_of(port).is_none()
            && let Some(first) = self.groups.get_mut(&FIRST_GROUP)
        {
            first.ports.insert(port);
        }
    }

    /// The group that a port is in.
    pub(crate) fn group_of(&self, port: u16) -> Option<u16> {
        let mut all = self.groups.iter();
        all.find(|(_, group)| group.ports.contains(&port))
            .map(|(id, _)| *id)
    }

    /// All ports, ascending.
    pub(crate) fn all(&self) -> Vec<u16> {
        let all = self.groups.values().flat_map(|group| &group.ports);
        all.copied().collect()
    }

    /// False when the group is not there, or does so already.
    pub(crate) fn set_access(&mut self, group: u16, state: AccessState) -> bool {
        match self.groups.get_mut(&group) {
            Some(group) if group.state != state => {
                group.state = state;
                group.changed = true;
                true
            }
            _ => false,
        }
    }

    /// Whether a command that comes by this port is run (SPC-4 clause 5.15.2.4).
    pub(crate) fn check(&self, port: u16, command: &Command) -> Result<(), Sense> {
        let group = self.group_of(port).and_then(|id| self.groups.get(&id));
        let state = group.map_or(AccessState::Optimized, |group| group.state);
        let refused = match state {
            AccessState::Optimized | AccessState::NonOptimized => return Ok(()),
            AccessState::Standby => Sense::IN_STANDBY,
            AccessState::Unavailable => Sense::UNAVAILABLE,
            AccessState::Transitioning => Sense::IN_TRANSITION,
        };
        let is_run = match Reach::of(command) {
            Reach::Everywhere => true,
            Reach::Standby => state == AccessState::Standby,
            Reach::Active => false,
        };
        match is_run {
            true => Ok(()),
            false => Err(refused),
        }
    }

    /// Parameter data of REPORT TARGET PORT GROUPS (SPC-4 clause 6.37).
    pub(crate) fn report(&self, extended: bool) -> Vec<u8> {
        const EXTENDED: u8 = 0x10;
        /// Longest transition, in seconds: after this, initiators take it for failed.
        const TRANSITION_S: u8 = 60;
        /// T_SUP, U_SUP, S_SUP, AN_SUP, AO_SUP: all states but that of dependent blocks.
        const STATES: u8 = 0x8f;
        /// Changed by the device itself, as all changes are.
        const IMPLICIT: u8 = 0x02;
        let mut body = Vec::new();
        if extended {
            body.extend([EXTENDED, TRANSITION_S, 0, 0]);
        }
        for (id, group) in &self.groups {
            body.extend([group.state as u8, STATES]);
            body.extend(id.to_be_bytes());
            let status = if group.changed { IMPLICIT } else { 0 };
            body.extend([0, status, 0, group.ports.len() as u8]);
            for port in &group.ports {
                body.extend([0, 0]);
                body.extend(port.to_be_bytes());
            }
        }
        let mut data = (body.len() as u32).to_be_bytes().to_vec();
        data.extend(body);
        data
    }
}

/// By which ports a command is run (SPC-4 clause 5.15.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// By all, whatever their state.
    Everywhere,
    /// By those in standby, too: it keeps reservations and settings, and needs no medium.
    Standby,
    /// Only by those that give access to the medium.
    Active,
}

impl Reach {
    /// Of each command by its name, so that a new one is decided.
    fn of(command: &Command) -> Reach {
        match command {
            Command::Inform { what, .. } => Reach::of_inform(what),
            Command::Offload(order) => Reach::of_copy(order),
            Command::PreventAllowMediumRemoval { prevent: false }
            | Command::ModeSense(_)
            | Command::ModeSelect(_)
            | Command::LogSense(_)
            | Command::ReserveOut(_) => Reach::Standby,
            Command::PreventAllowMediumRemoval { prevent: true }
            | Command::TestUnitReady
            | Command::Read(_)
            | Command::Write(_)
            | Command::Verify { .. }
            | Command::WriteVerify { .. }
            | Command::CompareAndWrite(_)
            | Command::OrWrite(_)
            | Command::WriteAtomic(_)
            | Command::Prefetch(_)
            | Command::Sanitize(_)
            | Command::SanitizeExit
            | Command::SynchronizeCache(_)
            | Command::WriteSame(_)
            | Command::Unmap { .. }
            | Command::GetLbaStatus { .. }
            | Command::StartStopUnit { .. }
            | Command::SendDiagnostic(_)
            | Command::Reserve
            | Command::Release => Reach::Active,
        }
    }

    fn of_inform(what: &Inform) -> Reach {
        match what {
            Inform::Inquiry { .. }
            | Inform::ReportLuns { .. }
            | Inform::RequestSense { .. }
            | Inform::ReportPortGroups { .. } => Reach::Everywhere,
            Inform::ReserveIn { .. }
            | Inform::ReportTaskManagement { .. }
            | Inform::ReceiveDiagnostic { .. }
            | Inform::ReportSupportedOpcodes { .. } => Reach::Standby,
            Inform::ReadCapacity10 | Inform::ReadCapacity16 | Inform::ReadDefects { .. } => {
                Reach::Active
            }
        }
    }

    fn of_copy(order: &Order) -> Reach {
        match order {
            Order::CopyStatus { .. }
            | Order::OperatingParameters { .. }
            | Order::FailedSegmentDetails { .. }
            | Order::TokenInformation { .. } => Reach::Standby,
            Order::PopulateToken { .. }
            | Order::ExtendedCopy { .. }
            | Order::WriteUsingToken { .. }
            | Order::CopyOperationAbort { .. } => Reach::Active,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdb::Extent;
    use base::Lba;

    #[test]
    fn the_report_byte_by_byte() {
        let mut ports = Ports::default();
        ports.add(1);
        ports.add(3);
        let group = [0, 0x8f, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3];
        let short = [&[0, 0, 0, 16][..], &group].concat();
        assert_eq!(ports.report(false), short);
        let long = [&[0, 0, 0, 20, 0x10, 60, 0, 0][..], &group].concat();
        assert_eq!(ports.report(true), long);
        assert!(ports.set_access(1, AccessState::NonOptimized));
        assert!(!ports.set_access(1, AccessState::NonOptimized));
        assert!(!ports.set_access(2, AccessState::NonOptimized), "not there");
        assert_eq!(ports.report(false)[4..10], [1, 0x8f, 0, 1, 0, 2]);
    }

    #[test]
    fn what_each_state_refuses() {
        let mut ports = Ports::default();
        let extent = Extent {
            lba: Lba(0),
            blocks: 1,
        };
        let report = Command::Inform {
            what: Inform::ReportPortGroups { extended: false },
            allocation: 8,
        };
        let of_settings = Command::ModeSelect(crate::cdb::ModeSelect {
            ten: false,
            save: false,
            list_bytes: 0,
        });
        let token = Command::Offload(Order::PopulateToken {
            list_id: 1,
            list_bytes: 32,
        });
        let commands = [
            Command::Read(extent),
            token,
            Command::TestUnitReady,
            of_settings,
            report,
        ];
        let mut refused = |state| {
            ports.set_access(FIRST_GROUP, state);
            commands.map(|command| ports.check(FIRST_PORT, &command).err())
        };
        assert_eq!(refused(AccessState::NonOptimized), [None; 5]);
        assert_eq!(refused(AccessState::Optimized), [None; 5]);
        let standby = Some(Sense::IN_STANDBY);
        assert_eq!(
            refused(AccessState::Standby),
            [standby, standby, standby, None, None]
        );
        for (state, sense) in [
            (AccessState::Unavailable, Some(Sense::UNAVAILABLE)),
            (AccessState::Transitioning, Some(Sense::IN_TRANSITION)),
        ] {
            assert_eq!(refused(state), [sense, sense, sense, sense, None]);
        }
    }
}
