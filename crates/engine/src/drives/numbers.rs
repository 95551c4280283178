//! Which zone a page number is of: [`PageNumbers`].

use crate::label::GroupNumbers;
use base::PhysPage;
use std::cell::RefCell;
use std::rc::Rc;

/// The numbers of all groups that have zones. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct PageNumbers {
    /// In rising order of zones, and of pages.
    groups: Rc<RefCell<Vec<GroupNumbers>>>,
}

impl PageNumbers {
    /// Those of the groups of a pool.
    pub fn of(groups: impl Iterator<Item = GroupNumbers>) -> Self {
        let numbers = PageNumbers::default();
        groups.for_each(|group| numbers.add(group));
        numbers
    }

    /// Takes in a group whose numbers are behind those of all others.
    pub fn add(&self, group: GroupNumbers) {
        if group.zones > 0 {
            self.groups.borrow_mut().push(group);
        }
    }

    /// The zone that a page number is of, and which of its numbers it is.
    pub fn place(&self, page: PhysPage) -> Option<(u32, u64)> {
        let groups = self.groups.borrow();
        // Groups are few: this looks at one where there is one, and at five of 32.
        let behind = groups.partition_point(|group| group.first_page.0 <= page.0);
        let group = groups.get(behind.checked_sub(1)?)?;
        let (inside, zone_pages) = (page.0 - group.first_page.0, u64::from(group.zone_pages));
        let zone = inside / zone_pages;
        (zone < u64::from(group.zones)).then(|| {
            let zone = group.first_zone + zone as u32;
            (zone, inside % zone_pages)
        })
    }

    /// The number of a zone's first page, and how many it takes.
    pub fn of_zone(&self, zone: u32) -> Option<(PhysPage, u64)> {
        let groups = self.groups.borrow();
        let behind = groups.partition_point(|group| group.first_zone <= zone);
        let group = groups.get(behind.checked_sub(1)?)?;
        let first = group.first_page_of(zone)?;
        Some((first, u64::from(group.zone_pages)))
    }
}

#[cfg(test)]
impl PageNumbers {
    /// Those of one group with a hundred zones of so many numbers.
    pub fn even(zone_pages: u32) -> Self {
        PageNumbers::of(std::iter::once(GroupNumbers {
            first_zone: 0,
            zones: 100,
            first_page: PhysPage(0),
            zone_pages,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_zones_are_found_in_groups_of_several_spacings() {
        let group = |first_zone, zones, first_page, zone_pages| GroupNumbers {
            first_zone,
            zones,
            first_page: PhysPage(first_page),
            zone_pages,
        };
        let groups = [
            group(0, 3, 0, 10),
            // Of logs: it has no numbers.
            group(3, 0, 30, 4),
            group(3, 2, 30, 4),
            // Behind a gap in both.
            group(9, 1, 50, 7),
        ];
        assert_eq!(GroupNumbers::first_overlap(groups.into_iter()), None);
        let numbers = PageNumbers::of(groups.into_iter());
        for (zone, first, count) in [
            (0, 0, 10),
            (1, 10, 10),
            (2, 20, 10),
            (3, 30, 4),
            (4, 34, 4),
            (9, 50, 7),
        ] {
            assert_eq!(numbers.of_zone(zone), Some((PhysPage(first), count)));
            for inside in 0..count {
                let page = PhysPage(first + inside);
                assert_eq!(numbers.place(page), Some((zone, inside)));
            }
        }
        for page in [38, 49, 57, u64::MAX] {
            assert_eq!(numbers.place(PhysPage(page)), None, "page {page}");
        }
        for zone in [5, 8, 10, u32::MAX] {
            assert_eq!(numbers.of_zone(zone), None, "zone {zone}");
        }
        assert_eq!(PageNumbers::default().place(PhysPage(0)), None);
    }

    #[test]
    fn groups_that_share_numbers_are_found() {
        let group = |first_zone, first_page| GroupNumbers {
            first_zone,
            zones: 2,
            first_page: PhysPage(first_page),
            zone_pages: 8,
        };
        let overlap = |second| GroupNumbers::first_overlap([group(0, 0), second].into_iter());
        assert_eq!(overlap(group(2, 16)), None);
        assert_eq!(overlap(group(1, 16)), Some(1));
        assert_eq!(overlap(group(2, 15)), Some(1));
    }
}
