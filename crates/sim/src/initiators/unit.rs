//! The state of a logical unit that a run expects, over boots.

use super::fence::{Call, Fence};
use crate::history::{History, RegisterPlace};
use base::{Prng, SECTOR_BYTES, Uuid};
use engine::{Provisioning, VolumeSpec};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// Sectors that registers of several are in.
const WIDE_SECTORS: u64 = 192;
/// Where the field begins: at a page of any size.
pub(super) const FIELD_LBA: u64 = WIDE_SECTORS;
/// Sectors of the field: each is a register of its own, for what is done to any of them.
pub(super) const FIELD_SECTORS: u64 = 128;

/// A run of sectors that is always read and written as a whole.
pub(super) struct Register {
    pub(super) lba: u64,
    pub(super) sectors: u32,
    pub(super) history: History,
}

/// Whether something is there, as far as a run knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    Gone,
    /// It is asked for, and there is no answer yet.
    Coming,
    There,
    /// That it goes is asked for, and there is no answer yet.
    Going,
}

impl Within {
    pub(super) fn known(is_there: bool) -> Within {
        match is_there {
            true => Within::There,
            false => Within::Gone,
        }
    }

    /// Whether it may be found to be there, or not.
    pub(super) fn may_be(self, is_there: bool) -> bool {
        matches!(self, Within::Coming | Within::Going) || self == Within::known(is_there)
    }
}

/// A logical unit.
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) number: usize,
    /// Which of the targets shows it.
    pub(super) target: usize,
    pub(super) registers: RefCell<Vec<Register>>,
    /// Registers before those of the field.
    pub(super) wide: usize,
    pub(super) uuid: Cell<Uuid>,
    pub(super) fence: RefCell<Fence>,
    /// A change of reservations that is under way, and by whom.
    pub(super) calling: Cell<Option<(u64, Call)>>,
    /// Counts beginnings and ends of these.
    pub(super) turns: Cell<u64>,
    /// Whether it has a volume.
    pub(super) is_there: Cell<Within>,
    /// Whether its target shows it.
    pub(super) is_shown: Cell<Within>,
    /// Counts beginnings and ends of what is done to it behind the back of hosts.
    pub(super) upsets: Cell<u64>,
}

impl Unit {
    pub(super) fn draw(prng: &mut Prng, number: usize, target: usize) -> Unit {
        let mut registers = Vec::new();
        let mut lba = prng.below(8);
        while lba < WIDE_SECTORS && registers.len() < 6 {
            let most = *prng.pick(&[1, 4, 16, 24]);
            let sectors = prng.between(1, most).min(WIDE_SECTORS - lba) as u32;
            registers.push((lba, sectors));
            lba += u64::from(sectors) + prng.below(12);
        }
        let wide = registers.len();
        let field = FIELD_LBA..FIELD_LBA + FIELD_SECTORS;
        registers.extend(field.map(|lba| (lba, 1)));
        let register = |(lba, sectors)| Register {
            lba,
            sectors,
            history: History::new(),
        };
        Unit {
            name: format!("v{number}"),
            number,
            target,
            registers: RefCell::new(registers.into_iter().map(register).collect()),
            wide,
            uuid: Cell::default(),
            fence: RefCell::default(),
            calling: Cell::new(None),
            turns: Cell::new(0),
            is_there: Cell::new(Within::Gone),
            is_shown: Cell::new(Within::Gone),
            upsets: Cell::new(0),
        }
    }

    pub(super) fn spec(&self, provisioning: Provisioning) -> VolumeSpec {
        VolumeSpec {
            name: self.name.clone(),
            size_bytes: (FIELD_LBA + FIELD_SECTORS) * SECTOR_BYTES as u64,
            provisioning,
        }
    }

    /// Whether hosts may not find it.
    pub(super) fn is_away(&self) -> bool {
        self.is_shown.get() != Within::There
    }

    /// The LUN that it is at.
    pub(super) fn lun(&self) -> u16 {
        self.number as u16
    }

    /// The registers of a run of sectors of the field, counted from its beginning.
    pub(super) fn places(
        &self,
        sectors: Range<u64>,
    ) -> impl Iterator<Item = RegisterPlace> + use<> {
        let (number, wide) = (self.number, self.wide);
        sectors.map(move |sector| (number, wide + sector as usize))
    }

    /// Its volume is another one from now on, of which nothing was ever written.
    pub(super) fn is_made_anew(&self, uuid: Uuid) {
        for register in self.registers.borrow_mut().iter_mut() {
            register.history = History::new();
        }
        self.fence.take();
        self.uuid.set(uuid);
        self.is_there.set(Within::There);
    }

    /// A change of who may use it, or of what it is, begins or ends.
    pub(super) fn turn(&self) {
        self.turns.set(self.turns.get() + 1);
        self.upsets.set(self.upsets.get() + 1);
    }
}
