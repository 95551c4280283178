//! The class of a command for statistics, which ask nothing else of a CDB.

use super::{Cdb, Command, Extent, WriteSame};
use crate::offload::Order;

/// What kind of work a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// READ.
    Read(Extent),
    /// WRITE, WRITE AND VERIFY, WRITE ATOMIC, ORWRITE.
    Write(Extent),
    /// UNMAP, and WRITE SAME with UNMAP.
    Unmap,
    /// WRITE SAME without it.
    WriteSame,
    /// COMPARE AND WRITE.
    CompareAndWrite,
    /// EXTENDED COPY, POPULATE TOKEN, WRITE USING TOKEN.
    Offload,
    /// Any other, or nothing that can be decoded.
    Other,
}

impl Work {
    /// The kind of work that `cdb` asks for. Each command by its name, so that a new one is decided.
    pub fn of(cdb: &Cdb) -> Work {
        match cdb.command() {
            Ok(Command::Read(extent)) => Work::Read(extent),
            Ok(
                Command::Write(extent)
                | Command::WriteVerify { extent, .. }
                | Command::WriteAtomic(extent)
                | Command::OrWrite(extent),
            ) => Work::Write(extent),
            Ok(Command::Unmap { .. } | Command::WriteSame(WriteSame { unmap: true, .. })) => {
                Work::Unmap
            }
            Ok(Command::WriteSame(_)) => Work::WriteSame,
            Ok(Command::CompareAndWrite(_)) => Work::CompareAndWrite,
            Ok(Command::Offload(
                Order::ExtendedCopy { .. }
                | Order::PopulateToken { .. }
                | Order::WriteUsingToken { .. },
            )) => Work::Offload,
            Ok(
                Command::Offload(_)
                | Command::TestUnitReady
                | Command::ModeSense(_)
                | Command::ModeSelect(_)
                | Command::Verify { .. }
                | Command::Prefetch(_)
                | Command::Sanitize(_)
                | Command::SanitizeExit
                | Command::SynchronizeCache(_)
                | Command::GetLbaStatus { .. }
                | Command::StartStopUnit { .. }
                | Command::PreventAllowMediumRemoval { .. }
                | Command::LogSense(_)
                | Command::SendDiagnostic(_)
                | Command::Reserve
                | Command::Release
                | Command::ReserveOut(_)
                | Command::Inform { .. },
            )
            | Err(_) => Work::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Lba;

    fn cdb(bytes: &[(usize, u8)]) -> [u8; 16] {
        let mut cdb = [0; 16];
        for (at, byte) in bytes {
            cdb[*at] = *byte;
        }
        cdb
    }

    #[test]
    fn each_kind_of_command_is_its_kind_of_work() {
        let extent = Extent {
            lba: Lba(5),
            blocks: 2,
        };
        for (cdb, work) in [
            (cdb(&[(0, 0x28), (5, 5), (8, 2)]), Work::Read(extent)),
            (cdb(&[(0, 0x2a), (5, 5), (8, 2)]), Work::Write(extent)),
            (cdb(&[(0, 0x8e), (9, 5), (13, 2)]), Work::Write(extent)),
            (cdb(&[(0, 0x8b), (9, 5), (13, 2)]), Work::Write(extent)),
            (cdb(&[(0, 0x9c), (9, 5), (13, 2)]), Work::Write(extent)),
            (cdb(&[(0, 0x42), (8, 24)]), Work::Unmap),
            (cdb(&[(0, 0x93), (1, 0x08), (13, 2)]), Work::Unmap),
            (cdb(&[(0, 0x93), (1, 0x01), (13, 2)]), Work::WriteSame),
            (cdb(&[(0, 0x93), (13, 2)]), Work::WriteSame),
            (cdb(&[(0, 0x41), (8, 2)]), Work::WriteSame),
            (cdb(&[(0, 0x89), (13, 1)]), Work::CompareAndWrite),
            (cdb(&[(0, 0x83), (1, 0x00)]), Work::Offload),
            (cdb(&[(0, 0x83), (1, 0x10)]), Work::Offload),
            (cdb(&[(0, 0x83), (1, 0x11)]), Work::Offload),
            (cdb(&[(0, 0x83), (1, 0x1c)]), Work::Other),
            (cdb(&[(0, 0x84), (1, 0x07)]), Work::Other),
            (cdb(&[(0, 0x00)]), Work::Other),
            (cdb(&[(0, 0xff)]), Work::Other),
        ] {
            assert_eq!(Work::of(&cdb.into()), work, "{cdb:x?}");
        }
    }
}
