//! The number of chunks that have a page, which tells when a page has no owner any more.
//!
//! Invariant: a page that some chunk has is counted once for each chunk of those that
//! volumes own, as [`super::PageMap`] counts owners. The first of them is not counted
//! here, so what is not shared costs nothing.

use base::PhysPage;
use rustc_hash::FxHashMap;

/// Pages counted together.
const SEGMENT: usize = 1024;

/// The holders of pages beyond the first, and how much all maps are.
#[derive(Clone, Debug, Default)]
pub struct Refs {
    segments: FxHashMap<u64, Box<Segment>>,
    /// Of what volumes own.
    pub owned: Owned,
}

/// How much a checkpoint has to say of the maps that volumes own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// Bytes of all chunks at most, shared chunks counted once ([`super::page_map::chunk_bytes`]).
    pub chunk_bytes: u64,
    /// Owners of tables and of chunks beyond the first of each: a checkpoint says for these at most
    /// that something is there once more.
    pub sharers: u64,
}

impl Owned {
    /// A chunk takes so many bytes, and took so many before.
    pub fn resize_chunk(&mut self, before_bytes: u64, after_bytes: u64) {
        self.chunk_bytes = self.chunk_bytes + after_bytes - before_bytes;
    }
}

#[derive(Clone, Debug)]
struct Segment {
    more: [u32; SEGMENT],
    /// Pages that have more than one.
    shared: u32,
}

impl Refs {
    /// Holders of a page beyond the first.
    pub fn beyond_first(&self, page: PhysPage) -> u32 {
        let (segment, at) = split(page);
        self.segments
            .get(&segment)
            .map_or(0, |segment| segment.more[at])
    }

    /// A page that has a holder gets another.
    ///
    /// # Panics
    /// When it has 2³² of them.
    pub fn add(&mut self, page: PhysPage) {
        let (segment, at) = split(page);
        let segment = self.segments.entry(segment).or_insert_with(|| {
            Box::new(Segment {
                more: [0; SEGMENT],
                shared: 0,
            })
        });
        segment.shared += u32::from(segment.more[at] == 0);
        assert!(
            segment.more[at] < u32::MAX,
            "page {page} has too many holders"
        );
        segment.more[at] += 1;
    }

    /// A holder lets go of a page; whether it was the last.
    pub fn take(&mut self, page: PhysPage) -> bool {
        let (number, at) = split(page);
        let Some(segment) = self.segments.get_mut(&number) else {
            return true;
        };
        if segment.more[at] == 0 {
            return true;
        }
        segment.more[at] -= 1;
        if segment.more[at] == 0 {
            segment.shared -= 1;
            if segment.shared == 0 {
                self.segments.remove(&number);
            }
        }
        false
    }

    /// Whether no page has more than one holder, and no table or chunk more than one owner.
    pub fn is_nothing_shared(&self) -> bool {
        self.segments.is_empty() && self.owned.sharers == 0
    }

    /// Pages with more than one holder.
    pub fn shared(&self) -> u64 {
        let segments = self.segments.values();
        segments.map(|segment| u64::from(segment.shared)).sum()
    }
}

fn split(page: PhysPage) -> (u64, usize) {
    let segment = SEGMENT as u64;
    (page.0 / segment, (page.0 % segment) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_holder_is_known() {
        let mut refs = Refs::default();
        let (page, other) = (PhysPage(5000), PhysPage(5001));
        assert!(refs.take(page), "one holder is not counted");
        refs.add(page);
        refs.add(page);
        refs.add(other);
        assert_eq!((refs.beyond_first(page), refs.beyond_first(other)), (2, 1));
        assert_eq!(refs.shared(), 2);
        assert!(!refs.take(page) && !refs.take(page));
        assert_eq!(refs.shared(), 1);
        assert!(refs.take(page));
        assert!(!refs.take(other));
        assert!(refs.segments.is_empty(), "what is not shared costs nothing");
    }
}
