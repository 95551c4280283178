//! Sense data (SPC-4 clause 4.5) and unit attentions.

use base::Lba;

/// Status codes (SAM-5 clause 5.3.1).
pub mod status {
    /// The command ended well.
    pub const GOOD: u8 = 0x00;
    /// It did not; the sense data says why.
    pub const CHECK_CONDITION: u8 = 0x02;
    /// What may be done depends on a reservation that another has.
    pub const RESERVATION_CONFLICT: u8 = 0x18;
    /// No room in the task set: try again later.
    pub const TASK_SET_FULL: u8 = 0x28;
    /// Somebody has aborted it.
    pub const TASK_ABORTED: u8 = 0x40;
}

/// Sense keys (SPC-4 table 47).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Key {
    /// No error is to be reported.
    NoSense = 0x0,
    /// Nobody can use it until something is done.
    NotReady = 0x2,
    /// The medium can't give or take the data.
    MediumError = 0x3,
    /// The device has failed.
    HardwareError = 0x4,
    /// The command is wrong.
    IllegalRequest = 0x5,
    /// Something changed behind the initiator's back.
    UnitAttention = 0x6,
    /// The data may not be written.
    DataProtect = 0x7,
    /// A copy ended early.
    CopyAborted = 0xa,
    /// The target ended it: it may be tried again.
    AbortedCommand = 0xb,
    /// Given data differs from the medium's.
    Miscompare = 0xe,
}

/// In which of two forms sense data comes: with CHECK CONDITION as D_SENSE of the control
/// mode page says (SPC-4 clause 4.5.1), in parameter data of REQUEST SENSE as its DESC bit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Fixed format, 18 bytes (SPC-4 clause 4.5.3).
    Fixed,
    /// Descriptor format, of any length (SPC-4 clause 4.5.2).
    Descriptors,
}

/// Where in a CDB or in parameter data the wrong field is (SPC-4 clause 4.5.2.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPointer {
    /// In the CDB, or else in the parameter data.
    pub in_cdb: bool,
    /// The byte, from zero.
    pub byte: u16,
    /// The most significant bit of the field, where it is known.
    pub bit: Option<u8>,
}

/// What is wrong, for one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// Sense key: the class of the error.
    pub key: Key,
    /// Additional sense code and its qualifier.
    pub code: (u8, u8),
    /// The INFORMATION field: the first logical block that failed, or the offset
    /// of a difference.
    pub information: Option<u64>,
    /// The wrong field of CDB or parameter data; `None` when no field is to blame.
    pub field: Option<FieldPointer>,
    /// How much is done, of 65,536 (SPC-4 clause 4.5.2.4.4).
    pub progress: Option<u16>,
}

impl Sense {
    const fn new(key: Key, asc: u8, ascq: u8) -> Self {
        Sense {
            key,
            code: (asc, ascq),
            information: None,
            field: None,
            progress: None,
        }
    }

    /// 00/00 NO ADDITIONAL SENSE INFORMATION.
    pub const NONE: Sense = Sense::new(Key::NoSense, 0, 0);
    /// 00/00, of a command that another has overtaken while it waited for room.
    pub const OVERTAKEN: Sense = Sense::new(Key::AbortedCommand, 0, 0);
    /// 0E/03 INVALID FIELD IN COMMAND INFORMATION UNIT: data-out of another length
    /// than the command has.
    pub const WRONG_DATA_LENGTH: Sense = Sense::new(Key::IllegalRequest, 0x0e, 0x03);
    /// 1A/00 PARAMETER LIST LENGTH ERROR.
    pub const LIST_LENGTH: Sense = Sense::new(Key::IllegalRequest, 0x1a, 0);
    /// 20/00 INVALID COMMAND OPERATION CODE.
    pub const INVALID_OPCODE: Sense = Sense::new(Key::IllegalRequest, 0x20, 0);
    /// 21/00 LOGICAL BLOCK ADDRESS OUT OF RANGE.
    pub const LBA_OUT_OF_RANGE: Sense = Sense::new(Key::IllegalRequest, 0x21, 0);
    /// 25/00 LOGICAL UNIT NOT SUPPORTED.
    pub const LUN_NOT_SUPPORTED: Sense = Sense::new(Key::IllegalRequest, 0x25, 0);
    /// 04/03 LOGICAL UNIT NOT READY, MANUAL INTERVENTION REQUIRED.
    pub const WITHHELD: Sense = Sense::new(Key::NotReady, 0x04, 0x03);
    /// 39/00 SAVING PARAMETERS NOT SUPPORTED.
    pub const NO_SAVED_PARAMETERS: Sense = Sense::new(Key::IllegalRequest, 0x39, 0);
    /// 27/07 SPACE ALLOCATION FAILED WRITE PROTECT (SBC-3 clause 4.7.3.4).
    pub const POOL_FULL: Sense = Sense::new(Key::DataProtect, 0x27, 0x07);
    /// 27/00 WRITE PROTECTED: by what it is, or by SWP of the control mode page (SPC-4 clause
    /// 7.5.8).
    pub const WRITE_PROTECTED: Sense = Sense::new(Key::DataProtect, 0x27, 0);
    /// 31/03 SANITIZE COMMAND FAILED.
    pub const SANITIZE_FAILED: Sense = Sense::new(Key::MediumError, 0x31, 0x03);
    /// 26/04 INVALID RELEASE OF PERSISTENT RESERVATION.
    pub const INVALID_RELEASE: Sense = Sense::new(Key::IllegalRequest, 0x26, 0x04);
    /// 55/04 INSUFFICIENT REGISTRATION RESOURCES.
    pub const NO_ROOM_FOR_REGISTRATION: Sense = Sense::new(Key::IllegalRequest, 0x55, 0x04);
    /// 04/0A LOGICAL UNIT NOT ACCESSIBLE, ASYMMETRIC ACCESS STATE TRANSITION.
    pub const IN_TRANSITION: Sense = Sense::new(Key::NotReady, 0x04, 0x0a);
    /// 04/0B LOGICAL UNIT NOT ACCESSIBLE, TARGET PORT IN STANDBY STATE.
    pub const IN_STANDBY: Sense = Sense::new(Key::NotReady, 0x04, 0x0b);
    /// 04/0C LOGICAL UNIT NOT ACCESSIBLE, TARGET PORT IN UNAVAILABLE STATE.
    pub const UNAVAILABLE: Sense = Sense::new(Key::NotReady, 0x04, 0x0c);
    /// 44/00 INTERNAL TARGET FAILURE.
    pub const TARGET_FAILURE: Sense = Sense::new(Key::HardwareError, 0x44, 0);

    /// 24/00 INVALID FIELD IN CDB at `byte`, with the field's most significant
    /// bit where it does not fill the byte.
    pub const fn invalid_field(byte: u16, bit: Option<u8>) -> Sense {
        let mut sense = Sense::new(Key::IllegalRequest, 0x24, 0);
        sense.field = Some(FieldPointer {
            in_cdb: true,
            byte,
            bit,
        });
        sense
    }

    /// 26/00 INVALID FIELD IN PARAMETER LIST at `byte`.
    pub const fn invalid_parameter(byte: u16) -> Sense {
        let mut sense = Sense::new(Key::IllegalRequest, 0x26, 0);
        sense.field = Some(FieldPointer {
            in_cdb: false,
            byte,
            bit: None,
        });
        sense
    }

    /// 04/1B LOGICAL UNIT NOT READY, SANITIZE IN PROGRESS.
    pub const fn sanitizing(progress: u16) -> Sense {
        let mut sense = Sense::new(Key::NotReady, 0x04, 0x1b);
        sense.progress = Some(progress);
        sense
    }

    /// 11/00 UNRECOVERED READ ERROR at `lba`.
    pub const fn read_error(lba: Lba) -> Sense {
        let mut sense = Sense::new(Key::MediumError, 0x11, 0);
        sense.information = Some(lba.0);
        sense
    }

    /// 0C/00 WRITE ERROR at `lba`.
    pub const fn write_error(lba: Lba) -> Sense {
        let mut sense = Sense::new(Key::MediumError, 0x0c, 0);
        sense.information = Some(lba.0);
        sense
    }

    /// 1D/00 MISCOMPARE DURING VERIFY OPERATION; the first byte that differs.
    pub const fn miscompare(offset_bytes: u64) -> Sense {
        let mut sense = Sense::new(Key::Miscompare, 0x1d, 0);
        sense.information = Some(offset_bytes);
        sense
    }

    /// The sense data in bytes, as commands return it.
    pub fn encoded(&self, format: Format) -> Vec<u8> {
        match format {
            Format::Fixed => self.fixed(),
            Format::Descriptors => self.descriptor(),
        }
    }

    /// Fixed format (SPC-4 clause 4.5.3), 18 bytes. An INFORMATION that needs
    /// more than four bytes is left out, as the clause demands.
    pub fn fixed(&self) -> Vec<u8> {
        let mut bytes = vec![0; 18];
        bytes[0] = 0x70;
        bytes[2] = self.key as u8;
        bytes[7] = 10;
        (bytes[12], bytes[13]) = self.code;
        if let Some(information) = self.information.and_then(|value| u32::try_from(value).ok()) {
            bytes[0] |= 0x80;
            bytes[3..7].copy_from_slice(&information.to_be_bytes());
        }
        if let Some(specific) = self.key_specific() {
            bytes[15..18].copy_from_slice(&specific);
        }
        bytes
    }

    /// Descriptor format (SPC-4 clause 4.5.2).
    pub fn descriptor(&self) -> Vec<u8> {
        let mut bytes = self.descriptor_head();
        if let Some(specific) = self.key_specific() {
            push_key_specific(&mut bytes, specific);
        }
        with_length(bytes)
    }

    /// What is said in the way of the sense key (SPC-4 clause 4.5.2.4).
    fn key_specific(&self) -> Option<[u8; 3]> {
        const SKSV: u8 = 0x80;
        let progress = self.progress.map(u16::to_be_bytes);
        let progress = progress.map(|[high, low]| [SKSV, high, low]);
        self.field.map(|field| field.encoded()).or(progress)
    }

    /// What other descriptors can follow: the header and INFORMATION.
    pub(crate) fn descriptor_head(&self) -> Vec<u8> {
        let mut bytes = vec![0x72, self.key as u8, self.code.0, self.code.1, 0, 0, 0, 0];
        if let Some(information) = self.information {
            bytes.extend([0x00, 0x0a, 0x80, 0x00]);
            bytes.extend(information.to_be_bytes());
        }
        bytes
    }
}

/// Adds a sense key specific descriptor (SPC-4 clause 4.5.2.4).
pub(crate) fn push_key_specific(bytes: &mut Vec<u8>, field: [u8; 3]) {
    bytes.extend([0x02, 0x06, 0x00, 0x00]);
    bytes.extend(field);
    bytes.push(0);
}

/// Says how much follows: ADDITIONAL SENSE LENGTH, which both formats have at the same place.
pub(crate) fn with_length(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[7] = (bytes.len() - 8) as u8;
    bytes
}

impl FieldPointer {
    fn encoded(&self) -> [u8; 3] {
        let [high, low] = self.byte.to_be_bytes();
        let place = if self.in_cdb { 0xc0 } else { 0x80 };
        [place | self.bit.map_or(0, |bit| 0x08 | bit), high, low]
    }
}

/// A unit attention that waits on a nexus (SAM-5 clause 5.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// 29/00 POWER ON, RESET, OR BUS DEVICE RESET OCCURRED: the first command of
    /// a nexus.
    PowerOn,
    /// 29/03 BUS DEVICE RESET FUNCTION OCCURRED: a reset by another nexus.
    BusDeviceReset,
    /// 2F/00 COMMANDS CLEARED BY ANOTHER INITIATOR.
    CommandsCleared,
    /// 2A/01 MODE PARAMETERS CHANGED.
    ModeChanged,
    /// 2A/03 RESERVATIONS PREEMPTED.
    ReservationsPreempted,
    /// 2A/04 RESERVATIONS RELEASED.
    ReservationsReleased,
    /// 2A/05 REGISTRATIONS PREEMPTED.
    RegistrationsPreempted,
    /// 2A/06 ASYMMETRIC ACCESS STATE CHANGED.
    AccessStateChanged,
    /// 2A/09 CAPACITY DATA HAS CHANGED.
    CapacityChanged,
    /// 38/07 THIN PROVISIONING SOFT THRESHOLD REACHED.
    SoftThreshold,
    /// 3F/03 INQUIRY DATA HAS CHANGED.
    InquiryChanged,
    /// 3F/0E REPORTED LUNS DATA HAS CHANGED.
    LunsChanged,
}

impl Attention {
    /// The sense data that reports it, key UNIT ATTENTION.
    pub const fn sense(self) -> Sense {
        let (asc, ascq) = match self {
            Attention::PowerOn => (0x29, 0x00),
            Attention::BusDeviceReset => (0x29, 0x03),
            Attention::CommandsCleared => (0x2f, 0x00),
            Attention::ModeChanged => (0x2a, 0x01),
            Attention::ReservationsPreempted => (0x2a, 0x03),
            Attention::ReservationsReleased => (0x2a, 0x04),
            Attention::RegistrationsPreempted => (0x2a, 0x05),
            Attention::AccessStateChanged => (0x2a, 0x06),
            Attention::CapacityChanged => (0x2a, 0x09),
            Attention::SoftThreshold => (0x38, 0x07),
            Attention::InquiryChanged => (0x3f, 0x03),
            Attention::LunsChanged => (0x3f, 0x0e),
        };
        Sense::new(Key::UnitAttention, asc, ascq)
    }

    /// Whether it is a reset, which says all that waited before it.
    pub(crate) const fn is_reset(self) -> bool {
        matches!(self, Attention::PowerOn | Attention::BusDeviceReset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_format_carries_the_field_pointer() {
        let sense = Sense::invalid_field(2, Some(7));
        let expected = [
            0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0xcf, 0, 2,
        ];
        assert_eq!(sense.fixed(), expected);
    }

    #[test]
    fn a_pointer_into_parameter_data_says_so() {
        let bytes = Sense::invalid_parameter(0x0118).fixed();
        assert_eq!(bytes[12..18], [0x26, 0, 0, 0x80, 1, 0x18]);
    }

    #[test]
    fn fixed_format_carries_the_exact_lba() {
        let bytes = Sense::read_error(Lba(0x0102_0304)).fixed();
        assert_eq!(bytes[..8], [0xf0, 0, 3, 1, 2, 3, 4, 10]);
        assert_eq!(bytes[12..14], [0x11, 0]);
    }

    #[test]
    fn an_lba_beyond_four_bytes_is_left_out_of_fixed_and_kept_in_descriptor_format() {
        let sense = Sense::write_error(Lba(1 << 32));
        assert_eq!(sense.fixed()[..7], [0x70, 0, 3, 0, 0, 0, 0]);
        let expected = [
            0x72, 3, 0x0c, 0, 0, 0, 0, 12, 0, 10, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0,
        ];
        assert_eq!(sense.descriptor(), expected);
    }

    #[test]
    fn both_formats_carry_progress() {
        let sense = Sense::sanitizing(0x0102);
        let expected = [
            0x70, 0, 2, 0, 0, 0, 0, 10, 0, 0, 0, 0, 4, 0x1b, 0, 0x80, 1, 2,
        ];
        assert_eq!(sense.fixed(), expected);
        let expected = [0x72, 2, 4, 0x1b, 0, 0, 0, 8, 2, 6, 0, 0, 0x80, 1, 2, 0];
        assert_eq!(sense.descriptor(), expected);
    }

    #[test]
    fn descriptor_format_carries_the_field_pointer() {
        let sense = Sense::invalid_field(0x0102, None);
        let expected = [0x72, 5, 0x24, 0, 0, 0, 0, 8, 2, 6, 0, 0, 0xc0, 1, 2, 0];
        assert_eq!(sense.descriptor(), expected);
    }
}
