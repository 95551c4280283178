//! MODE SENSE (SPC-4 clauses 6.11, 6.12, 7.5; SBC-3 clause 6.5).
//!
//! Nothing can be changed by MODE SELECT, which is not there.

use crate::cdb::{ModeForm, PageControl};
use crate::sense::Sense;
use base::SECTOR_BYTES;

/// DEVICE-SPECIFIC PARAMETER (SBC-3 clause 6.5.1): DPO and FUA are taken.
const DPOFUA: u8 = 0x10;
/// Likewise: write protected.
const WP: u8 = 0x80;

/// Caching (SBC-3 clause 6.5.5). WCE is zero: an acknowledged write is durable.
const CACHING: (u8, [u8; 18]) = (0x08, [0; 18]);

/// Control (SPC-4 clause 7.5.8): GLTSD (nothing is logged), unrestricted
/// reordering, no limit to how long a unit may be busy.
const CONTROL: (u8, [u8; 10]) = (0x0a, [0x02, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0]);

/// Informational exceptions (SPC-4 clause 7.5.11): DEXCPT, none are reported.
const EXCEPTIONS: (u8, [u8; 10]) = (0x1c, [0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

/// What a MODE SENSE asks for, besides its allocation length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) form: ModeForm,
    pub(crate) disable_block_descriptors: bool,
    pub(crate) control: PageControl,
    pub(crate) page: u8,
    pub(crate) subpage: u8,
}

/// Mode parameters of a unit of `blocks` logical blocks.
pub(crate) fn sense(
    request: Request,
    blocks: u64,
    is_write_protected: bool,
) -> Result<Vec<u8>, Sense> {
    let device = DPOFUA | if is_write_protected { WP } else { 0 };
    let pages = pages(request)?;
    let descriptor = match request.form {
        _ if request.disable_block_descriptors => Vec::new(),
        ModeForm::Ten { long_lba: true } => long_descriptor(blocks),
        _ => short_descriptor(blocks),
    };
    let long_lba = descriptor.len() == 16;
    let following = descriptor.len() + pages.len();
    let mut data = match request.form {
        ModeForm::Six => vec![(3 + following) as u8, 0, device, descriptor.len() as u8],
        ModeForm::Ten { .. } => {
            let mut header = ((6 + following) as u16).to_be_bytes().to_vec();
            header.extend([0, device, u8::from(long_lba), 0, 0, descriptor.len() as u8]);
            header
        }
    };
    data.extend(descriptor);
    data.extend(pages);
    Ok(data)
}

fn pages(request: Request) -> Result<Vec<u8>, Sense> {
    const ALL: u8 = 0x3f;
    let Request {
        control,
        page,
        subpage,
        ..
    } = request;
    // There are no subpages: 00h is the page itself, FFh with all pages means all.
    if subpage != 0 && subpage != 0xff {
        return Err(Sense::invalid_field(3, None));
    }
    if control == PageControl::Saved {
        return Err(Sense::NO_SAVED_PARAMETERS);
    }
    let mut pages = Vec::new();
    let all: [(u8, &[u8]); 3] = [
        (CACHING.0, &CACHING.1),
        (CONTROL.0, &CONTROL.1),
        (EXCEPTIONS.0, &EXCEPTIONS.1),
    ];
    for (code, body) in all {
        if page != ALL && page != code {
            continue;
        }
        pages.extend([code, body.len() as u8]);
        match control {
            PageControl::Changeable => pages.resize(pages.len() + body.len(), 0),
            _ => pages.extend(body),
        }
    }
    if pages.is_empty() {
        Err(Sense::invalid_field(2, Some(5)))
    } else {
        Ok(pages)
    }
}

/// SBC-3 clause 6.5.2.2.
fn short_descriptor(blocks: u64) -> Vec<u8> {
    let mut data = u32::try_from(blocks)
        .unwrap_or(u32::MAX)
        .to_be_bytes()
        .to_vec();
    data.extend((SECTOR_BYTES as u32).to_be_bytes());
    data
}

/// SBC-3 clause 6.5.2.3.
fn long_descriptor(blocks: u64) -> Vec<u8> {
    let mut data = blocks.to_be_bytes().to_vec();
    data.extend([0; 4]);
    data.extend((SECTOR_BYTES as u32).to_be_bytes());
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX: Request = Request {
        form: ModeForm::Six,
        disable_block_descriptors: true,
        control: PageControl::Current,
        page: 0x08,
        subpage: 0,
    };

    #[test]
    fn caching_says_that_nothing_is_cached() {
        let mut expected = vec![23, 0, 0x10, 0, 0x08, 18];
        expected.resize(24, 0);
        assert_eq!(sense(SIX, 100, false), Ok(expected));
    }

    #[test]
    fn a_snapshot_is_write_protected() {
        assert_eq!(sense(SIX, 100, true).unwrap()[2], 0x90);
        let form = ModeForm::Ten { long_lba: false };
        let request = Request { form, ..SIX };
        assert_eq!(sense(request, 100, true).unwrap()[3], 0x90);
    }

    #[test]
    fn all_pages_with_a_short_descriptor() {
        let request = Request {
            disable_block_descriptors: false,
            page: 0x3f,
            ..SIX
        };
        let mut expected = vec![3 + 8 + 20 + 12 + 12, 0, 0x10, 8, 0, 0, 0, 100, 0, 0, 2, 0];
        expected.extend([0x08, 18]);
        expected.extend([0; 18]);
        expected.extend([0x0a, 10, 2, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0]);
        expected.extend([0x1c, 10, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sense(request, 100, false), Ok(expected.clone()));
        assert_eq!(
            sense(
                Request {
                    subpage: 0xff,
                    ..request
                },
                100,
                false
            ),
            Ok(expected)
        );
    }

    #[test]
    fn ten_with_a_long_descriptor() {
        let form = ModeForm::Ten { long_lba: true };
        let request = Request {
            form,
            disable_block_descriptors: false,
            page: 0x0a,
            ..SIX
        };
        let mut expected = vec![0, 6 + 16 + 12, 0, 0x10, 1, 0, 0, 16];
        expected.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        expected.extend([0x0a, 10, 2, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0]);
        assert_eq!(sense(request, 1 << 32, false), Ok(expected));
    }

    #[test]
    fn nothing_is_changeable_and_nothing_is_saved() {
        let request = Request {
            control: PageControl::Changeable,
            page: 0x0a,
            ..SIX
        };
        let mut expected = vec![15, 0, 0x10, 0, 0x0a, 10];
        expected.resize(16, 0);
        assert_eq!(sense(request, 1, false), Ok(expected));
        let saved = Request {
            control: PageControl::Saved,
            ..SIX
        };
        assert_eq!(sense(saved, 1, false), Err(Sense::NO_SAVED_PARAMETERS));
    }

    #[test]
    fn unknown_pages_and_subpages_are_refused() {
        let page = Request { page: 0x01, ..SIX };
        assert_eq!(sense(page, 1, false), Err(Sense::invalid_field(2, Some(5))));
        let subpage = Request { subpage: 1, ..SIX };
        assert_eq!(sense(subpage, 1, false), Err(Sense::invalid_field(3, None)));
    }
}
