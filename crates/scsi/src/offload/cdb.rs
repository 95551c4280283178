//! The parser of the CDBs of third-party copies (SPC-4 clauses 6.4, 6.22 to 6.29, SBC-3 clauses 5.7
//! and 5.53).

use super::LIST_BYTES_MAX;
use super::fields::number;
use super::stream::PIECE_BYTES;
use crate::sense::Sense;

/// A third-party copy command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// EXTENDED COPY(LID1).
    ExtendedCopy {
        /// PARAMETER LIST LENGTH.
        list_bytes: u32,
    },
    /// POPULATE TOKEN.
    PopulateToken {
        /// LIST IDENTIFIER.
        list_id: u32,
        /// PARAMETER LIST LENGTH.
        list_bytes: u32,
    },
    /// WRITE USING TOKEN.
    WriteUsingToken {
        /// LIST IDENTIFIER.
        list_id: u32,
        /// PARAMETER LIST LENGTH.
        list_bytes: u32,
    },
    /// COPY OPERATION ABORT.
    CopyOperationAbort {
        /// LIST IDENTIFIER.
        list_id: u32,
    },
    /// RECEIVE COPY STATUS(LID1).
    CopyStatus {
        /// LIST IDENTIFIER.
        list_id: u8,
        /// ALLOCATION LENGTH.
        allocation: u32,
    },
    /// RECEIVE COPY OPERATING PARAMETERS.
    OperatingParameters {
        /// ALLOCATION LENGTH.
        allocation: u32,
    },
    /// RECEIVE COPY FAILURE DETAILS(LID1).
    FailedSegmentDetails {
        /// LIST IDENTIFIER.
        list_id: u8,
        /// ALLOCATION LENGTH.
        allocation: u32,
    },
    /// RECEIVE ROD TOKEN INFORMATION.
    TokenInformation {
        /// LIST IDENTIFIER.
        list_id: u32,
        /// ALLOCATION LENGTH.
        allocation: u32,
    },
}

impl Order {
    /// Bytes of the parameter list.
    pub fn list_bytes(&self) -> u32 {
        match *self {
            Order::ExtendedCopy { list_bytes }
            | Order::PopulateToken { list_bytes, .. }
            | Order::WriteUsingToken { list_bytes, .. } => list_bytes,
            Order::CopyOperationAbort { .. }
            | Order::CopyStatus { .. }
            | Order::OperatingParameters { .. }
            | Order::FailedSegmentDetails { .. }
            | Order::TokenInformation { .. } => 0,
        }
    }

    /// Whether it moves data from place to place, and may take its time.
    pub fn copies(&self) -> bool {
        self.list_bytes() > 0
    }

    /// Bytes that are held while it runs.
    pub(crate) fn held_bytes(&self) -> u64 {
        match self.copies() {
            true => u64::from(self.list_bytes()) + PIECE_BYTES,
            false => 0,
        }
    }

    /// ALLOCATION LENGTH.
    pub(super) fn allocation(&self) -> u32 {
        match *self {
            Order::CopyStatus { allocation, .. }
            | Order::OperatingParameters { allocation }
            | Order::FailedSegmentDetails { allocation, .. }
            | Order::TokenInformation { allocation, .. } => allocation,
            _ => 0,
        }
    }
}

/// What a CDB of operation code 83h or 84h asks for.
///
/// # Errors
/// 24/00 for a service action that is not there, 1A/00 for a list that is too long.
pub(crate) fn decode(cdb: &[u8; 16]) -> Result<Order, Sense> {
    let length = number(cdb, 10, 4) as u32;
    let list_id = number(cdb, 2, 4) as u32;
    let order = match (cdb[0], cdb[1] & 0x1f) {
        (0x83, 0x00) => Order::ExtendedCopy { list_bytes: length },
        (0x83, 0x10) => Order::PopulateToken {
            list_id: number(cdb, 6, 4) as u32,
            list_bytes: length,
        },
        (0x83, 0x11) => Order::WriteUsingToken {
            list_id: number(cdb, 6, 4) as u32,
            list_bytes: length,
        },
        (0x83, 0x1c) => Order::CopyOperationAbort { list_id },
        (0x84, 0x00) => Order::CopyStatus {
            list_id: cdb[2],
            allocation: length,
        },
        (0x84, 0x03) => Order::OperatingParameters { allocation: length },
        (0x84, 0x04) => Order::FailedSegmentDetails {
            list_id: cdb[2],
            allocation: length,
        },
        (0x84, 0x07) => Order::TokenInformation {
            list_id,
            allocation: length,
        },
        _ => return Err(Sense::invalid_field(1, Some(4))),
    };
    match order.list_bytes() > LIST_BYTES_MAX {
        true => Err(Sense::LIST_LENGTH),
        false => Ok(order),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_every_cdb() {
        let cdb = |opcode, action, bytes: [u8; 12]| {
            let mut cdb = [0; 16];
            (cdb[0], cdb[1]) = (opcode, action);
            cdb[2..14].copy_from_slice(&bytes);
            decode(&cdb)
        };
        let length = [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x12, 0x34];
        let list_bytes = 0x1234;
        assert_eq!(cdb(0x83, 0, length), Ok(Order::ExtendedCopy { list_bytes }));
        let list_id = 0x0506_0708;
        let populate = Order::PopulateToken {
            list_id,
            list_bytes,
        };
        assert_eq!(cdb(0x83, 0x10, length), Ok(populate));
        let write = Order::WriteUsingToken {
            list_id,
            list_bytes,
        };
        assert_eq!(cdb(0x83, 0x11, length), Ok(write));
        let list_id = 0x0102_0304;
        assert_eq!(
            cdb(0x83, 0x1c, length),
            Ok(Order::CopyOperationAbort { list_id })
        );
        let allocation = 0x1234;
        let information = Order::TokenInformation {
            list_id,
            allocation,
        };
        assert_eq!(cdb(0x84, 7, length), Ok(information));
        let list_id = 1;
        let status = Order::CopyStatus {
            list_id,
            allocation,
        };
        assert_eq!(cdb(0x84, 0, length), Ok(status));
        let failed = Order::FailedSegmentDetails {
            list_id,
            allocation,
        };
        assert_eq!(cdb(0x84, 4, length), Ok(failed));
        let parameters = Order::OperatingParameters { allocation };
        assert_eq!(cdb(0x84, 3, length), Ok(parameters));
        let wrong = Err(Sense::invalid_field(1, Some(4)));
        assert_eq!(cdb(0x83, 1, length), wrong, "LID4 is not there");
        assert_eq!(cdb(0x84, 1, length), wrong, "nothing is held");
        let long = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 1];
        assert_eq!(cdb(0x83, 0, long), Err(Sense::LIST_LENGTH));
        assert!(cdb(0x84, 0, long).is_ok(), "an allocation may be long");
    }
}
