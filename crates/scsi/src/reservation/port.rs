//! Names of initiator ports and nexuses, in the form that SCSI gives them.

use crate::sense::Sense;

/// Longest iSCSI name (RFC 7143 clause 4.2.7.1).
const NAME_BYTES_MAX: usize = 223;

/// Protocol identifier of iSCSI (SPC-4 table 477).
const ISCSI: u8 = 0x05;
/// TPID FORMAT: the name with the ISID.
const WITH_ISID: u8 = 0x40;

/// What stands between the name and the ISID (SPC-4 clause 7.6.4.6).
const SEPARATOR: &str = ",i,0x";

/// An iSCSI initiator port: a name and the initiator's part of a session's identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InitiatorPort {
    /// iSCSI name, in lower case.
    pub name: String,
    /// ISID: the initiator's part of the session identifier.
    pub isid: [u8; 6],
}

impl InitiatorPort {
    /// The port of the initiator called `name` that this ISID is of.
    pub fn new(name: &str, isid: [u8; 6]) -> Self {
        InitiatorPort {
            name: name.to_ascii_lowercase(),
            isid,
        }
    }

    /// TransportID (SPC-4 clause 7.6.4.6), with the ISID: ended by a zero, and filled up to
    /// whole words.
    pub(crate) fn transport_id(&self) -> Vec<u8> {
        let isid: String = self.isid.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut text = format!("{}{SEPARATOR}{isid}", self.name).into_bytes();
        text.resize((text.len() + 1).next_multiple_of(4).max(20), 0);
        let mut id = vec![WITH_ISID | ISCSI, 0];
        id.extend((text.len() as u16).to_be_bytes());
        id.extend(text);
        id
    }
}

/// An I_T nexus: an initiator port at a target port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NexusId {
    /// The port on the initiator's side.
    pub initiator: InitiatorPort,
    /// Relative identifier of the target port.
    pub target_port: u16,
}

/// A TransportID as somebody wrote it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    /// One port.
    Port(InitiatorPort),
    /// All ports of the initiator of this name.
    Device(String),
}

/// Takes the first TransportID off `list`, which stands at byte `at` of the parameter list;
/// how many bytes it has.
///
/// # Errors
/// 26/00 with a pointer to what is wrong.
pub(super) fn parse(list: &[u8], at: usize) -> Result<(Named, usize), Sense> {
    let wrong = |offset: usize| Sense::invalid_parameter((at + offset) as u16);
    let [head, _, high, low, rest @ ..] = list else {
        return Err(wrong(0));
    };
    let len = usize::from(u16::from_be_bytes([*high, *low]));
    if head & 0x0f != ISCSI {
        return Err(wrong(0));
    }
    let text = rest.get(..len).filter(|_| len >= 20 && len % 4 == 0);
    let text = text.ok_or_else(|| wrong(2))?;
    let end = text.iter().position(|byte| *byte == 0);
    let end = end.ok_or_else(|| wrong(4))?;
    let text = std::str::from_utf8(&text[..end]).map_err(|_| wrong(4))?;
    let named = match head >> 6 {
        0 => Some(Named::Device(text.to_ascii_lowercase())),
        1 => port(text).map(Named::Port),
        _ => return Err(wrong(0)),
    };
    let named = named.ok_or_else(|| wrong(4))?;
    let name = match &named {
        Named::Port(port) => &port.name,
        Named::Device(name) => name,
    };
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(wrong(4));
    }
    Ok((named, 4 + len))
}

fn port(text: &str) -> Option<InitiatorPort> {
    let (name, digits) = text.split_once(SEPARATOR)?;
    let number = u64::from_str_radix(digits, 16).ok();
    let number = number.filter(|_| digits.len() <= 12 && !digits.starts_with('+'))?;
    let [_, _, isid @ ..] = number.to_be_bytes();
    Some(InitiatorPort::new(name, isid))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "iqn.2026-11.dev.ashlar:host";

    #[test]
    fn a_transport_id_byte_by_byte_and_back() {
        let port = InitiatorPort::new("IQN.2026-11.dev.ashlar:host", [0x80, 1, 2, 3, 0xab, 5]);
        let id = port.transport_id();
        let mut expected = vec![0x45, 0, 0, 48];
        expected.extend(b"iqn.2026-11.dev.ashlar:host,i,0x80010203ab05");
        expected.resize(4 + 48, 0);
        assert_eq!(id, expected);
        assert_eq!(parse(&id, 24), Ok((Named::Port(port), 52)));
    }

    #[test]
    fn a_name_alone_means_all_ports() {
        let mut id = vec![0x05, 0, 0, 28];
        id.extend(NAME.as_bytes());
        id.resize(4 + 28, 0);
        let device = Named::Device(NAME.to_owned());
        assert_eq!(parse(&[&id[..], &[9; 9]].concat(), 0), Ok((device, 32)));
    }

    #[test]
    fn what_is_no_transport_id_is_pointed_at() {
        let good = InitiatorPort::new(NAME, [1; 6]).transport_id();
        let wrong = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut id = good.clone();
            change(&mut id);
            let Err(sense) = parse(&id, 24) else {
                panic!("{id:02x?} is taken")
            };
            sense
        };
        let at = Sense::invalid_parameter;
        assert_eq!(wrong(&|id| id[0] = 0x46), at(24), "SAS");
        assert_eq!(wrong(&|id| id[0] = 0x85), at(24), "no such format");
        assert_eq!(wrong(&|id| id.truncate(3)), at(24));
        assert_eq!(wrong(&|id| id.truncate(30)), at(26), "cut short");
        assert_eq!(wrong(&|id| id[3] = 47), at(26), "no whole words");
        assert_eq!(wrong(&|id| id[3] = 16), at(26), "too short");
        assert_eq!(wrong(&|id| id[4..].fill(b'x')), at(28), "no end");
        assert_eq!(wrong(&|id| id[4] = 0xff), at(28), "no text");
        assert_eq!(wrong(&|id| id[4] = 0), at(28), "no name");
        assert_eq!(wrong(&|id| id[31] = b';'), at(28), "no separator");
        let not_a_digit = |id: &mut Vec<u8>| id[4 + NAME.len() + SEPARATOR.len()] = b'+';
        assert_eq!(wrong(&not_a_digit), at(28));
        let long = InitiatorPort::new(&"x".repeat(224), [0; 6]).transport_id();
        assert_eq!(parse(&long, 0), Err(at(4)));
    }
}
