//! MODE SELECT (SPC-4 clauses 6.9, 6.10): settings that initiators change.
//!
//! Invariant: nothing is changed unless the whole list is right.

use crate::commands::mode::{D_SENSE, Page, SPF, SWP};
use crate::sense::Sense;
use crate::unit::Mode;
use engine::volume::AvailableSpace;

/// A list, and what it is for.
pub(crate) struct Request<'a> {
    pub(crate) ten: bool,
    pub(crate) save: bool,
    pub(crate) list: &'a [u8],
}

/// What a unit is set to after `request`, which changes nothing unless initiators may.
///
/// # Errors
/// 24/00 where it is to be kept over a power cycle, 1A/00 for a list that is cut short, 26/00
/// with a pointer to what can't be changed.
pub(crate) fn select(
    request: &Request<'_>,
    now: Mode,
    may_change: bool,
    blocks: u64,
    room: Option<AvailableSpace>,
) -> Result<Mode, Sense> {
    if request.save {
        return Err(Sense::invalid_field(1, Some(0)));
    }
    let list = request.list;
    if list.is_empty() {
        return Ok(now);
    }
    let head_bytes = if request.ten { 8 } else { 4 };
    let head = list.get(..head_bytes).ok_or(Sense::LIST_LENGTH)?;
    let descriptor_bytes = match request.ten {
        false => usize::from(head[3]),
        true => usize::from(u16::from_be_bytes([head[6], head[7]])),
    };
    let descriptor = list.get(head_bytes..head_bytes + descriptor_bytes);
    let descriptor = descriptor.ok_or(Sense::LIST_LENGTH)?;
    check_descriptor(descriptor, head_bytes, blocks)?;
    let known = Page::all(now, may_change, room);
    let mut mode = now;
    let mut at = head_bytes + descriptor_bytes;
    while at < list.len() {
        let (page, body) = find(&known, &list[at..], at)?;
        mode = changed(mode, page, body, at + page.head().len())?;
        at += page.head().len() + body.len();
    }
    Ok(mode)
}

/// None, or one that says what is so already; zero blocks mean as many as there are.
fn check_descriptor(descriptor: &[u8], at: usize, blocks: u64) -> Result<(), Sense> {
    const SECTOR: [u8; 4] = [0, 0, 2, 0];
    let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let wrong = |offset: usize| Err(Sense::invalid_parameter((at + offset) as u16));
    let (count, length) = match descriptor.len() {
        0 => return Ok(()),
        8 => (number(&descriptor[..4]), &descriptor[4..8]),
        16 => (number(&descriptor[..8]), &descriptor[12..16]),
        // The length of the descriptors stands in the last bytes of the header.
        _ => return Err(Sense::invalid_parameter((at - 1) as u16)),
    };
    let shown = [0, blocks, blocks.min(u64::from(u32::MAX))];
    if !shown.contains(&count) {
        return wrong(0);
    }
    match length == SECTOR {
        true => Ok(()),
        false => wrong(descriptor.len() - 4),
    }
}

/// The page that `list`, at byte `at`, begins with, and what it is to be.
fn find<'a, 'b>(
    known: &'a [Page],
    list: &'b [u8],
    at: usize,
) -> Result<(&'a Page, &'b [u8]), Sense> {
    let code = list[0];
    let subpage = match code & SPF {
        0 => 0,
        _ => *list.get(1).ok_or(Sense::LIST_LENGTH)?,
    };
    let mut known = known.iter();
    let page = known.find(|page| page.code == code & 0x3f && page.subpage == subpage);
    let page = page.ok_or(Sense::invalid_parameter(at as u16))?;
    let own = page.head();
    let head = list.get(..own.len()).ok_or(Sense::LIST_LENGTH)?;
    // PS is reserved here; initiators send back what they were told.
    if head[1..] != own[1..] {
        let place = at + if subpage == 0 { 1 } else { 2 };
        return Err(Sense::invalid_parameter(place as u16));
    }
    let body = list.get(own.len()..own.len() + page.body.len());
    Ok((page, body.ok_or(Sense::LIST_LENGTH)?))
}

fn changed(mode: Mode, page: &Page, body: &[u8], at: usize) -> Result<Mode, Sense> {
    let fixed = page.body.iter().zip(&page.changeable).zip(body);
    let differs = |((now, changeable), new): ((&u8, &u8), &u8)| (now ^ new) & !changeable != 0;
    if let Some(place) = { fixed }.position(differs) {
        return Err(Sense::invalid_parameter((at + place) as u16));
    }
    if page.changeable.iter().all(|byte| *byte == 0) {
        return Ok(mode);
    }
    let is_set = |(place, bit): (usize, u8)| body.get(place).is_some_and(|byte| byte & bit != 0);
    Ok(Mode {
        descriptor_sense: is_set(D_SENSE),
        write_protected: is_set(SWP),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: [u8; 12] = [0x0a, 10, 2, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0];

    fn selected(ten: bool, parts: &[&[u8]]) -> Result<(bool, bool), Sense> {
        let request = Request {
            ten,
            save: false,
            list: &parts.concat(),
        };
        let mode = select(&request, Mode::default(), true, 100, None)?;
        Ok((mode.descriptor_sense, mode.write_protected))
    }

    fn with(place: usize, bits: u8) -> [u8; 12] {
        let mut page = CONTROL;
        page[place] ^= bits;
        page
    }

    #[test]
    fn the_two_settings_are_changed_by_both_forms() {
        let six = [0, 0, 0, 0];
        assert_eq!(selected(false, &[&six, &CONTROL]), Ok((false, false)));
        assert_eq!(selected(false, &[&six, &with(2, 4)]), Ok((true, false)));
        let ten = [0, 0, 0, 0, 0, 0, 0, 8];
        let descriptor = [0, 0, 0, 100, 0, 0, 2, 0];
        let list: [&[u8]; 3] = [&ten, &descriptor, &with(4, 8)];
        assert_eq!(selected(true, &list), Ok((false, true)));
        assert_eq!(selected(true, &[]), Ok((false, false)), "nothing");
        // PS, as MODE SENSE may say it.
        assert_eq!(selected(false, &[&six, &with(0, 0x80)]), Ok((false, false)));
    }

    #[test]
    fn nothing_is_changed_unless_that_is_allowed() {
        let list = |page: [u8; 12]| [&[0; 4], &page[..]].concat();
        let selected = |page| {
            let request = Request {
                ten: false,
                save: false,
                list: &list(page),
            };
            select(&request, Mode::default(), false, 100, None)
        };
        assert_eq!(selected(CONTROL), Ok(Mode::default()));
        assert_eq!(selected(with(2, 4)), Err(Sense::invalid_parameter(6)));
        assert_eq!(selected(with(4, 8)), Err(Sense::invalid_parameter(8)));
    }

    #[test]
    fn what_cannot_be_changed_is_pointed_at() {
        let six = [0, 0, 0, 0];
        let wrong = |at| Err(Sense::invalid_parameter(at));
        assert_eq!(selected(false, &[&six, &with(3, 1)]), wrong(7));
        assert_eq!(
            selected(false, &[&six, &with(0, 1)]),
            wrong(4),
            "no such page"
        );
        assert_eq!(
            selected(false, &[&six, &with(1, 1)]),
            wrong(5),
            "its length"
        );
        let short = Err(Sense::LIST_LENGTH);
        assert_eq!(selected(false, &[&six[..3]]), short);
        assert_eq!(selected(false, &[&six, &CONTROL[..9]]), short);
        assert_eq!(selected(false, &[&[0, 0, 0, 8], &[0; 4]]), short);
        let descriptor = |bytes: [u8; 8]| selected(false, &[&[0, 0, 0, 8], &bytes]);
        assert_eq!(descriptor([0, 0, 0, 0, 0, 0, 2, 0]), Ok((false, false)));
        assert_eq!(descriptor([0, 0, 0, 99, 0, 0, 2, 0]), wrong(4));
        assert_eq!(descriptor([0, 0, 0, 0, 0, 0, 16, 0]), wrong(8));
        assert_eq!(selected(false, &[&[0, 0, 0, 7], &[0; 7]]), wrong(3));
        let save = Request {
            ten: false,
            save: true,
            list: &[],
        };
        let refused = select(&save, Mode::default(), true, 100, None);
        assert_eq!(refused, Err(Sense::invalid_field(1, Some(0))));
    }
}
