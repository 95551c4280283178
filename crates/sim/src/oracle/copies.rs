//! The rule for copies: the content that a volume may have of a changing source.
//!
//! A copy takes each sector at some instant between its begin and its end: what the source
//! may have shown meanwhile is what the copy may leave. So whoever begins to change a source
//! tells the copies that are under way.

use super::{Oracle, WriteEnd, WriteTicket};
use crate::oracle::sector::Event;
use crate::pattern::Content;
use std::ops::Range;

/// Of a sector that may be more than this, no copy is made.
const COPIED_VALUES_MAX: usize = 32;

/// A copy that has begun.
#[derive(Clone, Debug)]
pub struct CopyTicket {
    /// Its change of the target.
    pub write: WriteTicket,
    source: u64,
    /// The first sector there.
    from: u64,
    began: Event,
}

impl Oracle {
    /// Whether a copy may begin: none of those under way goes on from where it ends, or ends
    /// where it begins. What may be where would be endless.
    pub fn may_copy(&self, source: u64, target: u64) -> bool {
        let mut copies = self.copies.iter();
        !copies.any(|copy| copy.write.volume == source || copy.source == target)
    }

    /// Whether each of the sectors may be one of few things. What a copy may leave is all
    /// that its source may be, and copies of copies that nobody reads in between would have
    /// the checker do little else than to compare.
    pub fn knows_well(&self, volume: u64, sectors: Range<u64>) -> bool {
        let volume = self.volume(volume);
        sectors
            .filter_map(|sector| volume.history(sector))
            .all(|history| history.values() <= COPIED_VALUES_MAX)
    }

    /// `sectors` of `source` begin to be copied to `target`: `(volume, first sector)` each.
    pub fn begin_copy(
        &mut self,
        (source, from): (u64, u64),
        (target, to): (u64, u64),
        sectors: u64,
    ) -> CopyTicket {
        let began = self.hold_back();
        let sectors = to..to + sectors;
        let write = self.begin_change(target, sectors, |history, _, id, (began, horizon)| {
            history.begin_nothing(id, began, horizon);
        });
        self.derived.insert(write.id);
        let ticket = CopyTicket {
            write,
            source,
            from,
            began,
        };
        self.copies.push(ticket.clone());
        self.tell_copies(source, from..from + ticket.len());
        ticket
    }

    /// A copy ends. Of one that was done while its target shrank, what was copied before may
    /// have gone with the rest that was there.
    pub fn end_copy(&mut self, ticket: &CopyTicket, ended: WriteEnd) {
        self.copies.retain(|copy| copy.write.id != ticket.write.id);
        let has_shrunk = self.volume(ticket.write.volume).shrunk_since(ticket.began);
        let ended = if has_shrunk { WriteEnd::Failed } else { ended };
        self.end_write(&ticket.write, ended);
        self.let_through(ticket.began);
    }

    /// Sectors of a volume may show something more: so may what is copied of them, and what
    /// is copied of that.
    pub(super) fn tell_copies(&mut self, volume: u64, sectors: Range<u64>) {
        let copies = std::mem::take(&mut self.copies);
        let mut changed = vec![(volume, sectors)];
        while let Some((volume, sectors)) = changed.pop() {
            for copy in copies.iter().filter(|copy| copy.source == volume) {
                let first = sectors.start.max(copy.from);
                let last = sectors.end.min(copy.from + copy.len());
                if first < last && self.refresh(copy, first - copy.from..last - copy.from) {
                    let to = copy.write.sectors.start;
                    let sectors = to + first - copy.from..to + last - copy.from;
                    changed.push((copy.write.volume, sectors));
                }
            }
        }
        self.copies = copies;
    }

    /// Volumes have sectors that they had not: what is being copied there or from there may
    /// be anything that it may be elsewhere.
    pub(super) fn tell_all_copies(&mut self) {
        for copy in self.copies.clone() {
            self.tell_copies(copy.source, copy.from..copy.from + copy.len());
        }
    }

    fn refresh(&mut self, copy: &CopyTicket, part: Range<u64>) -> bool {
        let mut more = false;
        // What a copy of a volume into itself leaves is not copied by it again.
        let of = |oracle: &Oracle, at: u64| -> Vec<Content> {
            let history = oracle.volume(copy.source).history(copy.from + at);
            history.map_or(Vec::new(), |history| {
                history.shown_since(copy.began, copy.write.id)
            })
        };
        let shown: Vec<Vec<Content>> = part.clone().map(|at| of(self, at)).collect();
        let to = copy.write.sectors.start;
        let sectors = to + part.start..to + part.end;
        let histories = self.volume_mut(copy.write.volume).histories(sectors);
        for (history, shown) in histories.iter_mut().zip(shown) {
            for content in shown {
                more |= history.may_become(copy.write.id, content, copy.began);
            }
        }
        more
    }
}

impl CopyTicket {
    fn len(&self) -> u64 {
        self.write.sectors.end - self.write.sectors.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::volume::Change;
    use crate::pattern::SectorPlace;
    use base::Uuid;
    use engine::Provisioning;

    fn two() -> (Oracle, u64, u64) {
        let mut oracle = Oracle::default();
        let mut make = |name: &str| {
            let id = oracle.begin_create(name, 4096, (Provisioning::Thin, false));
            oracle.end_change(id, Change::Done(Uuid::from_u128(id.into())));
            id
        };
        let (a, b) = (make("a"), make("b"));
        (oracle, a, b)
    }

    fn write(oracle: &mut Oracle, volume: u64, sector: u64) -> Content {
        let ticket = oracle.begin_write(volume, sector..sector + 1);
        oracle.end_write(&ticket, WriteEnd::Acknowledged);
        Content::of(ticket.id, SectorPlace { volume, sector })
    }

    fn saw(oracle: &mut Oracle, volume: u64, sector: u64, content: Content) -> bool {
        let began = oracle.tick();
        oracle
            .volume_mut(volume)
            .saw(sector, content, began)
            .is_ok()
    }

    #[test]
    fn a_copy_has_what_the_source_had_while_it_was_made() {
        for pick in 0..4 {
            let (mut oracle, a, b) = two();
            let before = write(&mut oracle, a, 2);
            let old = write(&mut oracle, b, 5);
            let copy = oracle.begin_copy((a, 2), (b, 5), 1);
            assert!(saw(&mut oracle, b, 5, old));
            let during = write(&mut oracle, a, 2);
            oracle.end_copy(&copy, WriteEnd::Acknowledged);
            let after = write(&mut oracle, a, 2);
            let (content, allowed) =
                [(before, true), (during, true), (after, false), (old, false)][pick];
            assert_eq!(saw(&mut oracle, b, 5, content), allowed, "{content}");
        }
    }

    #[test]
    fn a_copy_that_was_cut_off_is_there_or_not_and_then_stays() {
        for done in [true, false] {
            let (mut oracle, a, b) = two();
            let (new, old) = (write(&mut oracle, a, 0), write(&mut oracle, b, 0));
            oracle.begin_copy((a, 0), (b, 0), 1);
            oracle.power_cut();
            let (there, other) = if done { (new, old) } else { (old, new) };
            assert!(saw(&mut oracle, b, 0, there));
            assert!(!saw(&mut oracle, b, 0, other));
        }
    }

    #[test]
    fn overlaps_do_not_smear_and_one_copy_does_not_follow_another() {
        let (mut oracle, a, b) = two();
        let content = write(&mut oracle, a, 0);
        let copy = oracle.begin_copy((a, 0), (a, 1), 2);
        assert!(!oracle.may_copy(a, b) && !oracle.may_copy(b, a) && !oracle.may_copy(a, a));
        oracle.end_copy(&copy, WriteEnd::Acknowledged);
        assert!(oracle.may_copy(a, b));
        assert!(saw(&mut oracle, a, 1, content));
        assert!(!saw(&mut oracle, a, 2, content));
        assert!(saw(&mut oracle, a, 2, Content::ZEROES));
    }
}
