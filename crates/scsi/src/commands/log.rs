//! LOG SENSE (SPC-4 clause 6.8): the list of pages, and the page on space (logical block
//! provisioning, SBC-3 clause 6.4.4).

use crate::cdb::LogSense;
use crate::sense::Sense;
use base::SECTOR_BYTES;
use engine::volume::AvailableSpace;

/// The page that lists the pages.
const PAGES: u8 = 0x00;
/// Logical block provisioning.
pub(crate) const PROVISIONING: u8 = 0x0c;

/// Resources are counted in sets of two to this power of blocks (VPD page B2h): 1 MiB.
pub(crate) const THRESHOLD_EXPONENT: u8 = 11;

/// Codes of the parameters.
const AVAILABLE: u16 = 0x0001;
const USED: u16 = 0x0002;

/// So many bytes as resources.
pub(crate) fn resources(bytes: u64) -> u32 {
    let set_bytes = (SECTOR_BYTES as u64) << THRESHOLD_EXPONENT;
    u32::try_from(bytes / set_bytes).unwrap_or(u32::MAX)
}

/// Parameter data. A thick unit has no page of space.
pub(crate) fn sense(request: LogSense, room: Option<AvailableSpace>) -> Result<Vec<u8>, Sense> {
    if request.subpage != 0 {
        return Err(Sense::invalid_field(3, None));
    }
    let body = match (request.page, room) {
        (PAGES, None) => vec![PAGES],
        (PAGES, Some(_)) => vec![PAGES, PROVISIONING],
        (PROVISIONING, Some(room)) => provisioning(request.pointer, room)?,
        _ => return Err(Sense::invalid_field(2, Some(5))),
    };
    let mut data = vec![request.page, 0];
    data.extend((body.len() as u16).to_be_bytes());
    data.extend(body);
    Ok(data)
}

/// The parameters from `pointer` on. What is available is shared with other units, what is
/// used is the unit's own.
fn provisioning(pointer: u16, room: AvailableSpace) -> Result<Vec<u8>, Sense> {
    /// A binary list that is not saved (SPC-4 clause 7.3.2.2).
    const FORMAT: u8 = 0x03;
    const DEDICATED: u8 = 1;
    const SHARED: u8 = 2;
    let all = [
        (AVAILABLE, room.available_bytes, SHARED),
        (USED, room.mapped_bytes, DEDICATED),
    ];
    let mut body = Vec::new();
    for (code, bytes, scope) in all.into_iter().filter(|(code, ..)| *code >= pointer) {
        body.extend(code.to_be_bytes());
        body.extend([FORMAT, 8]);
        body.extend(resources(bytes).to_be_bytes());
        body.extend([scope, 0, 0, 0]);
    }
    match body.is_empty() {
        true => Err(Sense::invalid_field(5, None)),
        false => Ok(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: AvailableSpace = AvailableSpace {
        mapped_bytes: 3 << 20,
        available_bytes: 0x0102 << 20,
        warn_bytes: 0,
    };

    fn asked(page: u8, pointer: u16, room: Option<AvailableSpace>) -> Result<Vec<u8>, Sense> {
        let subpage = 0;
        let request = LogSense {
            allocation: 0,
            page,
            subpage,
            pointer,
        };
        sense(request, room)
    }

    #[test]
    fn pages_byte_by_byte() {
        assert_eq!(asked(0, 0, Some(ROOM)), Ok(vec![0, 0, 0, 2, 0, 0x0c]));
        assert_eq!(asked(0, 0, None), Ok(vec![0, 0, 0, 1, 0]), "thick");
        let available = [0, 1, 3, 8, 0, 0, 1, 2, 2, 0, 0, 0];
        let used = [0, 2, 3, 8, 0, 0, 0, 3, 1, 0, 0, 0];
        let all = [&[0x0c, 0, 0, 24][..], &available, &used].concat();
        assert_eq!(asked(0x0c, 0, Some(ROOM)), Ok(all));
        let last = [&[0x0c, 0, 0, 12][..], &used].concat();
        assert_eq!(asked(0x0c, 2, Some(ROOM)), Ok(last));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let page = Sense::invalid_field(2, Some(5));
        assert_eq!(asked(0x0c, 0, None), Err(page), "thick");
        assert_eq!(asked(0x0d, 0, Some(ROOM)), Err(page));
        let pointer = Sense::invalid_field(5, None);
        assert_eq!(asked(0x0c, 3, Some(ROOM)), Err(pointer));
        let subpage = LogSense {
            allocation: 0,
            page: 0,
            subpage: 1,
            pointer: 0,
        };
        assert_eq!(sense(subpage, None), Err(Sense::invalid_field(3, None)));
    }
}
