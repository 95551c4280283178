//! Mode pages, and MODE SENSE (SPC-4 clauses 6.11, 6.12, 7.5; SBC-3 clause 6.5).

use crate::cdb::{ModeForm, ModeSense, PageControl};
use crate::commands::log;
use crate::sense::Sense;
use crate::unit::Mode;
use base::SECTOR_BYTES;
use engine::volume::AvailableSpace;

/// DEVICE-SPECIFIC PARAMETER (SBC-3 clause 6.5.1): DPO and FUA are taken.
const DPOFUA: u8 = 0x10;
/// Likewise: write protected.
const WP: u8 = 0x80;

/// Places in the control page (SPC-4 clause 7.5.8), after its head.
pub(crate) const D_SENSE: (usize, u8) = (0, 0x04);
pub(crate) const SWP: (usize, u8) = (2, 0x08);

/// A mode page.
pub(crate) struct Page {
    pub(crate) code: u8,
    pub(crate) subpage: u8,
    /// What follows its head.
    pub(crate) body: Vec<u8>,
    /// Bits of it that MODE SELECT changes.
    pub(crate) changeable: Vec<u8>,
}

/// SPF: the page has a subpage code.
pub(crate) const SPF: u8 = 0x40;

impl Page {
    fn fixed(code: u8, subpage: u8, body: Vec<u8>) -> Page {
        let changeable = vec![0; body.len()];
        Page {
            code,
            subpage,
            body,
            changeable,
        }
    }

    /// Caching (SBC-3 clause 6.5.5). WCE is zero: an acknowledged write is durable.
    fn caching() -> Page {
        Page::fixed(0x08, 0, vec![0; 18])
    }

    /// Control (SPC-4 clause 7.5.8): GLTSD (nothing is logged), unrestricted
    /// reordering, no limit to how long a unit may be busy.
    fn control(mode: Mode, may_change: bool) -> Page {
        let body = vec![0x02, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0];
        let mut page = Page::fixed(0x0a, 0, body);
        for ((place, bit), is_set) in [
            (D_SENSE, mode.descriptor_sense),
            (SWP, mode.write_protected),
        ] {
            page.changeable[place] |= if may_change { bit } else { 0 };
            page.body[place] |= if is_set { bit } else { 0 };
        }
        page
    }

    /// Control extension (SPC-4 clause 7.5.9): IALUAE, ports change their state by
    /// themselves.
    fn control_extension() -> Page {
        let mut body = vec![0; 28];
        body[0] = 0x01;
        Page::fixed(0x0a, 0x01, body)
    }

    /// Informational exceptions (SPC-4 clause 7.5.11): DEXCPT, none are reported.
    fn exceptions() -> Page {
        Page::fixed(0x1c, 0, vec![0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    /// Logical block provisioning (SBC-3 clause 6.5.8): one threshold, that of the pool. It
    /// is a soft one, told when what is available comes down to it.
    fn provisioning(room: AvailableSpace) -> Page {
        const ENABLED: u8 = 0x80;
        const AVAILABLE: u8 = 0x01;
        let mut body = vec![0; 12];
        body.extend([ENABLED, AVAILABLE, 0, 0]);
        body.extend(log::resources(room.warn_bytes).to_be_bytes());
        Page::fixed(0x1c, 0x02, body)
    }

    /// All pages there are, ascending; of a thin unit with `room`. Whether initiators may change
    /// them.
    pub(crate) fn all(mode: Mode, may_change: bool, room: Option<AvailableSpace>) -> Vec<Page> {
        let mut all = vec![
            Page::caching(),
            Page::control(mode, may_change),
            Page::control_extension(),
            Page::exceptions(),
        ];
        all.extend(room.map(Page::provisioning));
        all
    }

    /// Bytes of its head.
    pub(crate) fn head(&self) -> Vec<u8> {
        match self.subpage {
            0 => vec![self.code, self.body.len() as u8],
            subpage => {
                let [high, low] = (self.body.len() as u16).to_be_bytes();
                vec![SPF | self.code, subpage, high, low]
            }
        }
    }
}

/// What a unit's mode parameters depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) blocks: u64,
    /// Nobody writes it: a snapshot.
    pub(crate) is_read_only: bool,
    pub(crate) mode: Mode,
    /// Initiators may change them.
    pub(crate) may_change: bool,
    /// Of a thin unit.
    pub(crate) room: Option<AvailableSpace>,
}

/// Mode parameters of a unit.
pub(crate) fn sense(request: ModeSense, settings: Settings) -> Result<Vec<u8>, Sense> {
    let protected = settings.is_read_only || settings.mode.write_protected;
    let device = DPOFUA | if protected { WP } else { 0 };
    let pages = pages(request, settings)?;
    let descriptor = match request.form {
        _ if request.disable_block_descriptors => Vec::new(),
        ModeForm::Ten { long_lba: true } => long_descriptor(settings.blocks),
        _ => short_descriptor(settings.blocks),
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

/// The pages that are asked for (SPC-4 table 168): one, one with its subpages, all, or all
/// with theirs.
fn pages(request: ModeSense, settings: Settings) -> Result<Vec<u8>, Sense> {
    const ALL: u8 = 0x3f;
    const ALL_SUBPAGES: u8 = 0xff;
    let ModeSense {
        control,
        page,
        subpage,
        ..
    } = request;
    let mode = match control {
        PageControl::Default => Mode::default(),
        _ => settings.mode,
    };
    let all = Page::all(mode, settings.may_change, settings.room);
    if !all.iter().any(|one| page == ALL || page == one.code) {
        return Err(Sense::invalid_field(2, Some(5)));
    }
    let is_wanted = |one: &&Page| {
        (page == ALL || page == one.code) && (subpage == ALL_SUBPAGES || subpage == one.subpage)
    };
    let mut wanted = all.iter().filter(is_wanted).peekable();
    if wanted.peek().is_none() || page == ALL && !matches!(subpage, 0 | ALL_SUBPAGES) {
        return Err(Sense::invalid_field(3, None));
    }
    if control == PageControl::Saved {
        return Err(Sense::NO_SAVED_PARAMETERS);
    }
    let mut pages = Vec::new();
    for one in wanted {
        pages.extend(one.head());
        pages.extend(match control {
            PageControl::Changeable => &one.changeable,
            _ => &one.body,
        });
    }
    Ok(pages)
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

    const UNIT: Settings = Settings {
        blocks: 100,
        is_read_only: false,
        mode: Mode {
            descriptor_sense: false,
            write_protected: false,
        },
        may_change: false,
        room: None,
    };

    const SNAPSHOT: Settings = Settings {
        is_read_only: true,
        ..UNIT
    };

    const SIX: ModeSense = ModeSense {
        allocation: 0,
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
        assert_eq!(sense(SIX, UNIT), Ok(expected));
    }

    #[test]
    fn a_snapshot_is_write_protected() {
        assert_eq!(sense(SIX, SNAPSHOT).unwrap()[2], 0x90);
        let form = ModeForm::Ten { long_lba: false };
        let request = ModeSense { form, ..SIX };
        assert_eq!(sense(request, SNAPSHOT).unwrap()[3], 0x90);
    }

    #[test]
    fn all_pages_with_a_short_descriptor() {
        let request = ModeSense {
            disable_block_descriptors: false,
            page: 0x3f,
            ..SIX
        };
        let mut expected = vec![3 + 8 + 20 + 12 + 12, 0, 0x10, 8, 0, 0, 0, 100, 0, 0, 2, 0];
        expected.extend([0x08, 18]);
        expected.extend([0; 18]);
        expected.extend([0x0a, 10, 2, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0]);
        expected.extend([0x1c, 10, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sense(request, UNIT), Ok(expected.clone()));
        let mut extension = vec![0x4a, 1, 0, 28, 1];
        extension.resize(32, 0);
        assert_eq!(
            sense(
                ModeSense {
                    subpage: 0xff,
                    ..request
                },
                UNIT
            )
            .map(|data| data[expected.len() - 12..].to_vec()),
            Ok([&extension[..], &expected[expected.len() - 12..]].concat())
        );
    }

    #[test]
    fn ten_with_a_long_descriptor() {
        let form = ModeForm::Ten { long_lba: true };
        let request = ModeSense {
            form,
            disable_block_descriptors: false,
            page: 0x0a,
            ..SIX
        };
        let mut expected = vec![0, 6 + 16 + 12, 0, 0x10, 1, 0, 0, 16];
        expected.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        expected.extend([0x0a, 10, 2, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0]);
        assert_eq!(
            sense(
                request,
                Settings {
                    blocks: 1 << 32,
                    ..UNIT
                }
            ),
            Ok(expected)
        );
    }

    #[test]
    fn the_page_of_space_has_the_threshold_of_the_pool() {
        let room = AvailableSpace {
            warn_bytes: 0x0304 << 20,
            ..AvailableSpace::default()
        };
        let request = ModeSense {
            page: 0x1c,
            subpage: 0x02,
            ..SIX
        };
        let mut expected = vec![27, 0, 0x10, 0, 0x5c, 2, 0, 20];
        expected.resize(8 + 12, 0);
        expected.extend([0x80, 1, 0, 0, 0, 0, 3, 4]);
        let thin = Settings {
            room: Some(room),
            ..UNIT
        };
        assert_eq!(sense(request, thin), Ok(expected));
        assert_eq!(
            sense(request, UNIT),
            Err(Sense::invalid_field(3, None)),
            "thick"
        );
    }

    #[test]
    fn two_bits_are_changeable_where_that_is_allowed_and_nothing_is_saved() {
        let request = ModeSense {
            control: PageControl::Changeable,
            page: 0x0a,
            ..SIX
        };
        let set = Mode {
            descriptor_sense: true,
            write_protected: true,
        };
        let both = Settings {
            mode: set,
            may_change: true,
            ..UNIT
        };
        let head = [15, 0, 0x10, 0, 0x0a, 10];
        let expected = [&head[..], &[0; 10]].concat();
        assert_eq!(sense(request, UNIT), Ok(expected), "none unless allowed");
        let expected = [&head[..], &[4, 0, 8, 0, 0, 0, 0, 0, 0, 0]].concat();
        let allowed = Settings {
            may_change: true,
            ..UNIT
        };
        assert_eq!(sense(request, allowed), Ok(expected));
        let of = |control| sense(ModeSense { control, ..request }, both);
        let current = of(PageControl::Current).map(|data| [data[2], data[6], data[8]]);
        assert_eq!(current, Ok([0x90, 6, 8]));
        let default = of(PageControl::Default).map(|data| [data[2], data[6], data[8]]);
        assert_eq!(default, Ok([0x90, 2, 0]));
        let saved = ModeSense {
            control: PageControl::Saved,
            ..SIX
        };
        assert_eq!(sense(saved, UNIT), Err(Sense::NO_SAVED_PARAMETERS));
    }

    #[test]
    fn unknown_pages_and_subpages_are_refused() {
        let page = ModeSense { page: 0x01, ..SIX };
        assert_eq!(sense(page, UNIT), Err(Sense::invalid_field(2, Some(5))));
        let subpage = ModeSense { subpage: 1, ..SIX };
        assert_eq!(sense(subpage, UNIT), Err(Sense::invalid_field(3, None)));
    }
}
