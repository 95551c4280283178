//! The access of each nexus to a reserved unit (SPC-4 table 66, SBC-3 table 13).

use super::{NexusId, Reservations};
use crate::cdb::{Command, Inform};
use crate::offload::Order;

/// What a command does, as far as reservations care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Tells what anybody may know: allowed always.
    Look,
    /// Tells of the unit, but not to those whom an old reservation shuts out.
    Ask,
    /// Reads the medium, or settings.
    Read,
    /// Changes the medium, or settings.
    Write,
    /// Looks after reservations itself.
    Own,
}

impl Access {
    pub(crate) fn of(command: &Command) -> Access {
        match command {
            Command::Inform { what, .. } => Access::of_inform(what),
            Command::PreventAllowMediumRemoval { prevent: false } => Access::Look,
            Command::TestUnitReady
            | Command::LogSense(_)
            | Command::StartStopUnit { start: true, .. } => Access::Ask,
            Command::Read(_)
            | Command::Verify { .. }
            | Command::Prefetch(_)
            | Command::GetLbaStatus { .. }
            | Command::ModeSense(_) => Access::Read,
            Command::Write(_)
            | Command::WriteVerify { .. }
            | Command::WriteSame(_)
            | Command::WriteAtomic(_)
            | Command::CompareAndWrite(_)
            | Command::OrWrite(_)
            | Command::Unmap { .. }
            | Command::Sanitize(_)
            | Command::SanitizeExit
            | Command::SynchronizeCache(_)
            | Command::ModeSelect(_)
            | Command::SendDiagnostic(_)
            | Command::PreventAllowMediumRemoval { prevent: true }
            | Command::StartStopUnit { start: false, .. } => Access::Write,
            // Sources and destinations are looked at for themselves.
            Command::Offload(order) => match order {
                Order::ExtendedCopy { .. }
                | Order::WriteUsingToken { .. }
                | Order::CopyOperationAbort { .. } => Access::Write,
                Order::PopulateToken { .. }
                | Order::CopyStatus { .. }
                | Order::OperatingParameters { .. }
                | Order::FailedSegmentDetails { .. }
                | Order::TokenInformation { .. } => Access::Read,
            },
            Command::Reserve | Command::Release | Command::ReserveOut(_) => Access::Own,
        }
    }

    fn of_inform(what: &Inform) -> Access {
        match what {
            Inform::Inquiry { .. }
            | Inform::ReportLuns { .. }
            | Inform::RequestSense { .. }
            | Inform::ReserveIn { .. } => Access::Look,
            Inform::ReadCapacity10 | Inform::ReadCapacity16 | Inform::ReportPortGroups { .. } => {
                Access::Ask
            }
            Inform::ReadDefects { .. }
            | Inform::ReceiveDiagnostic { .. }
            | Inform::ReportSupportedOpcodes { .. }
            | Inform::ReportTaskManagement { .. } => Access::Read,
        }
    }
}

impl Reservations {
    /// Whether a command of `nexus` runs; else it ends in a reservation conflict.
    pub(crate) fn admits(&self, nexus: &NexusId, access: Access) -> bool {
        if let Some(holder) = &self.old {
            // What looks after reservations sees for itself.
            return holder == nexus || matches!(access, Access::Look | Access::Own);
        }
        let Some(held) = &self.held else {
            return true;
        };
        match access {
            Access::Look | Access::Ask | Access::Own => true,
            Access::Read | Access::Write => {
                self.is_holder(nexus)
                    || held.kind.admits_registrants() && self.is_registered(nexus)
                    || access == Access::Read && held.kind.admits_readers()
            }
        }
    }

    /// Whether an old reservation of another keeps `nexus` from persistent ones.
    pub(crate) fn is_anothers(&self, nexus: &NexusId) -> bool {
        self.old.as_ref().is_some_and(|holder| holder != nexus)
    }
}
