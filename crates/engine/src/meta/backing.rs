//! Pages of which only a part was ever written: the rest is in another page, their *backing*. So
//! the first write to a page that a snapshot shares copies nothing.
//!
//! Invariants:
//! - A backing has none itself.
//! - A page is held by each that it backs, as by a chunk of a map ([`super::Refs`]): nobody
//!   changes it.
//! - What is not in a page (its sum says "never written") is in its backing. When all is
//!   in it that is not zeroes, it is *whole*, and lets go of the backing.

use super::page_map::UNMAPPED;
use base::PhysPage;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Pages kept together: what a change copies that a checkpoint has, too.
const SEGMENT: u32 = 1024;

/// The most pages that have a backing at a time, in a lane. Who wants another copies.
pub const BACKED_MAX: u64 = 1 << 18;

/// Who has which backing. A clone is made in no time, and stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Backings {
    segments: BTreeMap<u32, Rc<BTreeMap<u32, u32>>>,
    len: u64,
}

impl Backings {
    /// Pages that have one.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no page has one.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The backing of a page.
    pub fn get(&self, page: PhysPage) -> Option<PhysPage> {
        if self.len == 0 {
            return None;
        }
        let page = u32::try_from(page.0).ok()?;
        let backing = self.segments.get(&(page / SEGMENT))?.get(&page)?;
        Some(PhysPage(u64::from(*backing)))
    }

    /// Gives a page a backing instead of the one that it had. False, and nothing changed,
    /// when either is outside the format.
    pub fn insert(&mut self, page: PhysPage, backing: PhysPage) -> bool {
        let inside = |page: PhysPage| u32::try_from(page.0).ok().filter(|&page| page < UNMAPPED);
        let (Some(page), Some(backing)) = (inside(page), inside(backing)) else {
            return false;
        };
        let segment = self.segments.entry(page / SEGMENT).or_default();
        let before = Rc::make_mut(segment).insert(page, backing);
        self.len += u64::from(before.is_none());
        true
    }

    /// A page has none any more; the one that it had.
    pub fn remove(&mut self, page: PhysPage) -> Option<PhysPage> {
        let backing = self.get(page)?;
        let page = page.0 as u32;
        let segment = self.segments.get_mut(&(page / SEGMENT))?;
        Rc::make_mut(segment).remove(&page);
        if segment.is_empty() {
            self.segments.remove(&(page / SEGMENT));
        }
        self.len -= 1;
        Some(backing)
    }

    /// None of these pages has one any more.
    pub fn forget(&mut self, pages: Range<u64>) {
        if self.len == 0 {
            return;
        }
        pages.for_each(|page| {
            self.remove(PhysPage(page));
        });
    }

    /// Pages and their backings, in order.
    pub fn iter(&self) -> impl Iterator<Item = (PhysPage, PhysPage)> + '_ {
        let pairs = self.segments.values().flat_map(|segment| segment.iter());
        pairs.map(|(page, backing)| (PhysPage(u64::from(*page)), PhysPage(u64::from(*backing))))
    }

    /// The first page at or after `from` that has one, and its backing.
    pub fn next(&self, from: PhysPage) -> Option<(PhysPage, PhysPage)> {
        let from = u32::try_from(from.0).ok()?;
        let segments = self.segments.range(from / SEGMENT..);
        let mut pairs = segments.flat_map(|(_, segment)| segment.range(from..));
        let (page, backing) = pairs.next()?;
        Some((PhysPage(u64::from(*page)), PhysPage(u64::from(*backing))))
    }

    /// Takes those for whom `keeps` does not speak away.
    pub fn retain(&mut self, mut keeps: impl FnMut(PhysPage, PhysPage) -> bool) {
        let gone: Vec<PhysPage> = self
            .iter()
            .filter(|(page, backing)| !keeps(*page, *backing))
            .map(|(page, _)| page)
            .collect();
        gone.into_iter().for_each(|page| {
            self.remove(page);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(backings: &Backings) -> Vec<(u64, u64)> {
        backings.iter().map(|(page, of)| (page.0, of.0)).collect()
    }

    #[test]
    fn pages_have_their_backing_until_it_is_taken_away() {
        let mut backings = Backings::default();
        for page in [5000, 3, 1023, 1024] {
            assert!(backings.insert(PhysPage(page), PhysPage(page + 1)));
        }
        assert!(!backings.insert(PhysPage(1), PhysPage(u64::from(u32::MAX))));
        assert!(!backings.insert(PhysPage(u64::from(u32::MAX)), PhysPage(1)));
        let view = backings.clone();
        assert_eq!(backings.get(PhysPage(3)), Some(PhysPage(4)));
        assert_eq!(backings.remove(PhysPage(3)), Some(PhysPage(4)));
        assert_eq!((backings.get(PhysPage(3)), backings.len()), (None, 3));
        assert_eq!(
            backings.next(PhysPage(4)),
            Some((PhysPage(1023), PhysPage(1024)))
        );
        assert_eq!(
            backings.next(PhysPage(1025)),
            Some((PhysPage(5000), PhysPage(5001)))
        );
        backings.forget(1000..1024);
        backings.retain(|page, _| page.0 != 5000);
        assert_eq!(all(&backings), [(1024, 1025)]);
        assert_eq!(all(&view).len(), 4, "a view stays as it was");
        backings.remove(PhysPage(1024));
        assert!(backings.is_empty() && backings.segments.is_empty());
    }
}
