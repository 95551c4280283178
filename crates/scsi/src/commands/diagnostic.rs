//! SEND DIAGNOSTIC, RECEIVE DIAGNOSTIC RESULTS (SPC-4 clauses 6.29, 6.42) and READ DEFECT
//! DATA (SBC-3 clauses 5.17, 5.18): an array looks after its drives itself, so there is
//! little to tell.

use crate::sense::Sense;

/// The page that lists the pages.
const SUPPORTED_PAGES: u8 = 0x00;

/// Parameter data of a diagnostic page; of the list of pages, when none is named.
pub(crate) fn receive(page: Option<u8>) -> Result<Vec<u8>, Sense> {
    match page {
        None | Some(SUPPORTED_PAGES) => Ok(vec![SUPPORTED_PAGES, 0, 0, 1, SUPPORTED_PAGES]),
        Some(_) => Err(Sense::invalid_field(2, None)),
    }
}

/// The default self-test passes. There are no others, and no pages to send but the one that
/// asks for the list.
pub(crate) fn send(code: u8, default_test: bool, list: &[u8]) -> Result<(), Sense> {
    if code != 0 {
        return Err(Sense::invalid_field(1, Some(7)));
    }
    match list {
        [] | [SUPPORTED_PAGES, 0, 0, 0] if !default_test || list.is_empty() => Ok(()),
        [SUPPORTED_PAGES, ..] => Err(Sense::LIST_LENGTH),
        _ => Err(Sense::invalid_parameter(0)),
    }
}

/// Empty lists, of the format that was asked for.
pub(crate) fn defects(twelve: bool, wanted: u8) -> Vec<u8> {
    match twelve {
        false => vec![0, wanted, 0, 0],
        true => vec![0, wanted, 0, 0, 0, 0, 0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_pages_is_the_only_page() {
        assert_eq!(receive(None), Ok(vec![0, 0, 0, 1, 0]));
        assert_eq!(receive(Some(0)), Ok(vec![0, 0, 0, 1, 0]));
        assert_eq!(receive(Some(1)), Err(Sense::invalid_field(2, None)));
    }

    #[test]
    fn the_default_self_test_passes_and_no_other_is_there() {
        assert_eq!(send(0, true, &[]), Ok(()));
        assert_eq!(send(0, false, &[]), Ok(()));
        assert_eq!(send(0, false, &[0, 0, 0, 0]), Ok(()));
        assert_eq!(send(1, false, &[]), Err(Sense::invalid_field(1, Some(7))));
        assert_eq!(send(0, false, &[0, 0, 0]), Err(Sense::LIST_LENGTH));
        assert_eq!(send(0, true, &[0, 0, 0, 0]), Err(Sense::LIST_LENGTH));
        let page = send(0, false, &[0x40, 0, 0, 0]);
        assert_eq!(page, Err(Sense::invalid_parameter(0)));
    }

    #[test]
    fn lists_of_defects_are_empty() {
        assert_eq!(defects(false, 0x1d), [0, 0x1d, 0, 0]);
        assert_eq!(defects(true, 0x08), [0, 8, 0, 0, 0, 0, 0, 0]);
    }
}
