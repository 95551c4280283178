//! Changes of the metadata that share pages at any place, or cut a map off.
//!
//! Invariant: as of all changes, [`State::apply`] or the reading of a checkpoint makes them.

use super::page_map::parts_of_copy;
use super::{InFlight, State, VolumeId};
use base::PageIndex;
use std::rc::Rc;

impl<L: InFlight> State<L> {
    /// Pages of a volume become what pages of a volume are.
    ///
    /// # Errors
    /// As [`State::apply`].
    pub(super) fn copy(
        &mut self,
        id: VolumeId,
        page: PageIndex,
        (from, from_page): (VolumeId, PageIndex),
        count: usize,
    ) -> Result<(), String> {
        let (core, from) = (Rc::clone(self.known(id)?), Rc::clone(self.known(from)?));
        for (there, here, len) in parts_of_copy(from_page, page, count) {
            let taken = from.map.borrow().taken(there, len);
            let mut map = core.map.borrow_mut();
            map.put(here, &taken, &mut self.refs, &mut self.freed);
        }
        Ok(())
    }

    /// A volume ends before page `end`. What lay behind is given up later, as that of a
    /// deleted volume.
    ///
    /// # Errors
    /// As [`State::apply`].
    pub(super) fn shrink(
        &mut self,
        id: VolumeId,
        size_bytes: u64,
        end: PageIndex,
    ) -> Result<(), String> {
        let core = Rc::clone(self.known(id)?);
        let mut map = core.map.borrow_mut();
        let rest = map.cut(end, &mut self.refs, &mut self.freed);
        drop(map);
        core.size_bytes.set(size_bytes);
        self.give_up(rest);
        Ok(())
    }

    /// Has a volume share chunks of its map with another place of a map: its chunks from
    /// `first` to the one before `end` are those of `from` from `theirs` on.
    ///
    /// # Errors
    /// As [`State::apply`].
    pub fn apply_shared_elsewhere(
        &mut self,
        id: VolumeId,
        (from, theirs): (VolumeId, usize),
        (first, end): (usize, usize),
    ) -> Result<(), String> {
        let (core, from) = (Rc::clone(self.known(id)?), Rc::clone(self.known(from)?));
        let mut adopt = |at| {
            let chunk = from.map.borrow().chunk(theirs + at).cloned();
            chunk.is_some_and(|chunk| {
                let mut map = core.map.borrow_mut();
                map.adopt(first + at, &chunk, &mut self.refs)
            })
        };
        let all = (0..end.saturating_sub(first)).all(&mut adopt);
        all.then_some(()).ok_or_else(|| {
            format!(
                "volume id {} shares what is not there, or what it has of its own",
                id.0
            )
        })
    }
}
