//! REPORT SUPPORTED OPERATION CODES (SPC-4 clause 6.35).

use crate::cdb::{COMMANDS, Definition, OpcodeReport};
use crate::sense::Sense;

/// What a unit has that others have not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Has {
    /// UNMAP: it is thin.
    pub(crate) unmap: bool,
    /// SANITIZE.
    pub(crate) sanitize: bool,
}

/// Parameter data of the report, for a unit that `has` these.
pub(crate) fn report(report: OpcodeReport, timeouts: bool, has: Has) -> Result<Vec<u8>, Sense> {
    let there = |definition: &&Definition| match definition.opcode {
        UNMAP => has.unmap,
        SANITIZE => has.sanitize,
        _ => true,
    };
    let of = |opcode| of(opcode).filter(there);
    let (opcode, action) = match report {
        OpcodeReport::All => return Ok(all(COMMANDS.iter().filter(there), timeouts)),
        OpcodeReport::Opcode(opcode) => {
            // Such a command has service actions: it takes another report.
            if of(opcode).any(|definition| definition.action.is_some()) {
                return Err(Sense::invalid_field(2, Some(2)));
            }
            (opcode, None)
        }
        OpcodeReport::OpcodeAndAction(opcode, action) => {
            if of(opcode).any(|definition| definition.action.is_none()) {
                return Err(Sense::invalid_field(2, Some(2)));
            }
            (opcode, Some(action))
        }
        OpcodeReport::Either(opcode, action) => {
            let with_action = of(opcode).any(|definition| definition.action.is_some());
            match (with_action, action) {
                (true, action) => (opcode, Some(action)),
                (false, 0) => (opcode, None),
                (false, _) => return Ok(vec![0, NOT_SUPPORTED, 0, 0]),
            }
        }
    };
    let found = of(opcode).find(|definition| definition.action == action);
    Ok(one(found, timeouts))
}

/// Operation code of UNMAP.
const UNMAP: u8 = 0x42;
/// Operation code of SANITIZE.
const SANITIZE: u8 = 0x48;
/// SUPPORT: the command is not there.
const NOT_SUPPORTED: u8 = 0x01;
/// SUPPORT: it is, as the standard says.
const SUPPORTED: u8 = 0x03;
/// CTDP: a timeouts descriptor follows.
const WITH_TIMEOUTS: u8 = 0x80;
/// A command timeouts descriptor (SPC-4 clause 6.35.4): no usual time is told, but after a
/// minute initiators may think that something is wrong, whatever the command.
const TIMEOUTS: [u8; 12] = [0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60];

fn of(opcode: u8) -> impl Iterator<Item = &'static Definition> {
    COMMANDS
        .iter()
        .filter(move |definition| definition.opcode == opcode)
}

fn all(commands: impl Iterator<Item = &'static Definition>, timeouts: bool) -> Vec<u8> {
    let mut data = vec![0; 4];
    for definition in commands {
        let [action_high, action_low] = definition.action.unwrap_or(0).to_be_bytes();
        let servactv = u8::from(definition.action.is_some());
        let ctdp = if timeouts { 0x02 } else { 0 };
        data.extend([
            definition.opcode,
            0,
            action_high,
            action_low,
            0,
            servactv | ctdp,
            0,
        ]);
        data.push(cdb_bytes(definition));
        if timeouts {
            data.extend(TIMEOUTS);
        }
    }
    let length = (data.len() - 4) as u32;
    data[..4].copy_from_slice(&length.to_be_bytes());
    data
}

fn one(definition: Option<&Definition>, timeouts: bool) -> Vec<u8> {
    let Some(definition) = definition else {
        return vec![0, NOT_SUPPORTED, 0, 0];
    };
    let flags = if timeouts {
        SUPPORTED | WITH_TIMEOUTS
    } else {
        SUPPORTED
    };
    let mut data = vec![0, flags, 0, cdb_bytes(definition), definition.opcode];
    data.extend(definition.usage);
    if let Some(action) = definition.action {
        // The service action stands in the usage map as itself.
        data[5] = (data[5] & !0x1f) | (action as u8 & 0x1f);
    }
    if timeouts {
        data.extend(TIMEOUTS);
    }
    data
}

fn cdb_bytes(definition: &Definition) -> u8 {
    definition.usage.len() as u8 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Has = Has {
        unmap: true,
        sanitize: true,
    };

    #[test]
    fn one_command_byte_by_byte() {
        let expected = vec![
            0, 3, 0, 10, 0x28, 0x1f, 255, 255, 255, 255, 0x1f, 255, 255, 0xc0,
        ];
        assert_eq!(report(OpcodeReport::Opcode(0x28), false, ALL), Ok(expected));
        let mut expected = vec![0, 0x83, 0, 6, 0, 0, 0, 0, 0, 0xc0, 0, 10];
        expected.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 60]);
        assert_eq!(
            report(OpcodeReport::Either(0x00, 0), true, ALL),
            Ok(expected)
        );
    }

    #[test]
    fn a_service_action_stands_in_the_usage_map() {
        let data = report(OpcodeReport::OpcodeAndAction(0x9e, 0x10), false, ALL).unwrap();
        assert_eq!(data[..6], [0, 3, 0, 16, 0x9e, 0x10]);
    }

    #[test]
    fn absent_commands_and_wrong_kinds_of_report() {
        assert_eq!(
            report(OpcodeReport::Opcode(0x43), false, ALL),
            Ok(vec![0, 1, 0, 0])
        );
        let other_action = OpcodeReport::OpcodeAndAction(0x9e, 0x11);
        assert_eq!(report(other_action, false, ALL), Ok(vec![0, 1, 0, 0]));
        assert_eq!(
            report(OpcodeReport::Either(0x28, 5), false, ALL),
            Ok(vec![0, 1, 0, 0])
        );
        let refused = Err(Sense::invalid_field(2, Some(2)));
        assert_eq!(report(OpcodeReport::Opcode(0x9e), false, ALL), refused);
        assert_eq!(
            report(OpcodeReport::OpcodeAndAction(0x28, 0), false, ALL),
            refused
        );
    }

    #[test]
    fn the_list_has_every_command() {
        let data = report(OpcodeReport::All, false, ALL).unwrap();
        assert_eq!(data.len(), 4 + 8 * COMMANDS.len());
        let [high, low] = (8 * COMMANDS.len() as u16).to_be_bytes();
        assert_eq!(data[..12], [0, 0, high, low, 0x28, 0, 0, 0, 0, 0, 0, 10]);
        let data = report(OpcodeReport::All, true, ALL).unwrap();
        assert_eq!(data.len(), 4 + 20 * COMMANDS.len());
    }

    #[test]
    fn what_a_unit_has_not_is_not_reported() {
        let none = Has {
            unmap: false,
            sanitize: false,
        };
        let unmap = OpcodeReport::Opcode(UNMAP);
        let usage = [0, 3, 0, 10, 0x42, 0, 0, 0, 0, 0, 0x1f, 255, 255, 0xc0];
        assert_eq!(report(unmap, false, ALL), Ok(usage.to_vec()));
        assert_eq!(report(unmap, false, none), Ok(vec![0, 1, 0, 0]));
        let data = report(OpcodeReport::All, false, none).unwrap();
        assert_eq!(data.len(), 4 + 8 * (COMMANDS.len() - 3));
        assert!(
            data[4..]
                .chunks(8)
                .all(|entry| ![UNMAP, SANITIZE].contains(&entry[0]))
        );
        let thin = Has {
            unmap: true,
            sanitize: false,
        };
        assert_ne!(report(unmap, false, thin), Ok(vec![0, 1, 0, 0]));
        let data = report(OpcodeReport::All, false, thin).unwrap();
        assert!(data[4..].chunks(8).all(|entry| entry[0] != SANITIZE));
    }
}
