//! The numbers of a group's zones and pages: [`GroupNumbers`].
//!
//! Invariants:
//! - Numbers of zones and pages rise from group to group. None is given out again when its group
//!   has left.
//! - The first pages of a zone have its first numbers, and those past its last page stand for
//!   nothing. A zone keeps its numbers at every level.

use super::PoolIdentity;
use crate::codec::{Reader, Writer};
use crate::raid::geometry::DRIVES_MAX;
use base::PhysPage;
use std::ops::Range;

/// Page numbers end here: maps have 32 bits for each, and the last one stands for "unmapped".
pub const NUMBERS_END: u64 = u32::MAX as u64;

/// How many page numbers a zone takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// As many as over the most drives that a group can have: pools of versions 2 to 6.
    Widest,
    /// As many as over the drives of its group: from version 7 on.
    #[default]
    Own,
}

/// Where zones and pages of a group are among all of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupNumbers {
    /// The pool's number of its first zone.
    pub first_zone: u32,
    /// How many zones it has.
    pub zones: u32,
    /// The number of the first page of its first zone.
    pub first_page: PhysPage,
    /// Page numbers from one zone to the next.
    pub zone_pages: u32,
}

impl PoolIdentity {
    /// Page numbers that a zone takes in a group of so many drives: as many as it can have pages
    /// at any level. `None` for sizes that no pool has.
    pub fn zone_pages(&self, drives: usize) -> Option<u32> {
        let drives = match self.spacing {
            Spacing::Widest => DRIVES_MAX,
            Spacing::Own => drives,
        };
        let bytes = (drives as u64).checked_mul(self.zone_bytes)?;
        let pages = bytes.checked_div(u64::from(self.page_bytes))?;
        u32::try_from(pages).ok()
    }
}

impl GroupNumbers {
    /// The numbers of a new group with so many zones on so many drives, behind those of all
    /// `others`. `None` when there are not so many.
    pub fn behind(
        others: impl Iterator<Item = GroupNumbers>,
        identity: &PoolIdentity,
        (drives, zones): (usize, u64),
    ) -> Option<Self> {
        let (first_zone, first_page) = others.fold((0, 0), |(zone, page), other| {
            let zones = other.zone_range();
            (zone.max(zones.end), page.max(other.page_range().end))
        });
        let numbers = GroupNumbers {
            first_zone,
            zones: u32::try_from(zones).ok()?,
            first_page: PhysPage(first_page),
            zone_pages: identity.zone_pages(drives)?,
        };
        numbers.is_in_format().then_some(numbers)
    }

    /// Whether the format has all these numbers.
    fn is_in_format(&self) -> bool {
        self.first_zone.checked_add(self.zones).is_some() && self.page_range().end < NUMBERS_END
    }

    /// Its zones, by the pool's numbers.
    pub fn zone_range(&self) -> Range<u32> {
        self.first_zone..self.first_zone.saturating_add(self.zones)
    }

    /// Its page numbers, whether there are such pages or not.
    pub fn page_range(&self) -> Range<u64> {
        let first = self.first_page.0;
        first..first + u64::from(self.zones) * u64::from(self.zone_pages)
    }

    /// The number of a zone's first page; `None` for another group's.
    pub fn first_page_of(&self, zone: u32) -> Option<PhysPage> {
        let inside = self.zone_range().contains(&zone);
        let local = u64::from(zone.checked_sub(self.first_zone).filter(|_| inside)?);
        Some(PhysPage(
            self.first_page.0 + local * u64::from(self.zone_pages),
        ))
    }

    /// The first group of `all` whose zones or pages have numbers of one before it.
    pub fn first_overlap(all: impl Iterator<Item = GroupNumbers>) -> Option<usize> {
        let (mut zones_end, mut pages_end) = (0, 0);
        for (index, numbers) in all.enumerate().filter(|(_, numbers)| numbers.zones > 0) {
            let (zones, pages) = (numbers.zone_range(), numbers.page_range());
            if zones.start < zones_end || pages.start < pages_end {
                return Some(index);
            }
            (zones_end, pages_end) = (zones.end, pages.end);
        }
        None
    }

    pub(super) fn encode(&self, w: &mut Writer, spacing: Spacing) {
        w.u32(self.first_zone);
        w.u32(self.zones);
        if spacing == Spacing::Own {
            let first_page = u32::try_from(self.first_page.0);
            w.u32(first_page.unwrap_or_else(|_| unreachable!("the numbers of pages end there")));
            w.u32(self.zone_pages);
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>, pool: &PoolIdentity) -> Option<Self> {
        let (first_zone, zones) = (r.u32()?, r.u32()?);
        let (first_page, zone_pages) = match pool.spacing {
            Spacing::Own => (u64::from(r.u32()?), r.u32()?),
            Spacing::Widest => {
                let zone_pages = pool.zone_pages(0)?;
                (u64::from(first_zone) * u64::from(zone_pages), zone_pages)
            }
        };
        let numbers = GroupNumbers {
            first_zone,
            zones,
            first_page: PhysPage(first_page),
            zone_pages,
        };
        // A zone without numbers would have no pages.
        let sound = numbers.is_in_format() && (zones == 0 || zone_pages > 0);
        sound.then_some(numbers)
    }
}
