//! Filling pages that lie over another with the rest of their content, in the background.
//!
//! Invariants:
//! - What a reader sees of a page is the same before, meanwhile and afterwards, whichever
//!   volume he reads it through.
//! - The volume that it is filled for has the page until it is whole, and nobody writes to
//!   it there. Others that have it write elsewhere, since it is shared.

use super::zeroes::is_zeroes;
use super::{IoError, Volume, io::failed};
use crate::store::Write;
use crate::world::World;
use base::{BLOCK_BYTES, PageIndex, PhysPage, PoolOffset, Slice, VolumeOffset};

impl<W: World> Volume<W> {
    /// Makes the page at `phys`, which is the volume's `page`, whole. How many bytes that
    /// took; none when it is elsewhere by now.
    ///
    /// # Errors
    /// `PoolFailed`; `Media` while a drive that is needed does not answer.
    pub(crate) async fn fill_page(
        &self,
        page: PageIndex,
        phys: PhysPage,
    ) -> Result<Option<u64>, IoError> {
        let Some(_operation) = self.core.live.begin() else {
            return Ok(None);
        };
        let page_bytes = self.inner.page_bytes();
        let (start, at) = (page.0 * page_bytes, VolumeOffset(page.0 * page_bytes));
        let _range = match self.inner.world().planted("page filled over a write") {
            true => None,
            false => {
                let ranges = &self.core.live.ranges;
                Some(ranges.shared(start, start + page_bytes).await)
            }
        };
        if self.lookup(page) != Some(phys) {
            return Ok(None);
        }
        let Some(backing) = self.inner.backings().backing(phys) else {
            return Ok(None);
        };
        let Missing { parts, lost } = self.missing_of(page, phys, backing.page).await?;
        let bytes: u64 = parts.iter().map(|(_, part)| part.len() as u64).sum();
        let store = self.inner.store();
        if !parts.is_empty() && !self.inner.world().planted("page whole before it is filled") {
            let writes = parts.into_iter().map(|(at, part)| Write::Data(at, part));
            let written = store.write(writes.collect()).await;
            written.map_err(|error| failed(at, error))?;
        }
        for block in lost {
            let marked = store.mark_lost(block).await;
            marked.map_err(|error| failed(at, error))?;
        }
        // It is one of those that are waited for.
        drop(backing);
        let whole = self.inner.backings().become_whole(phys).await;
        whole.map_err(|error| failed(at, error))?;
        self.inner.world().reached("page made whole");
        Ok(Some(bytes))
    }

    /// What the page at `phys`, which is the volume's `page`, lacks of the page at `under`.
    async fn missing_of(
        &self,
        page: PageIndex,
        phys: PhysPage,
        under: PhysPage,
    ) -> Result<Missing, IoError> {
        let page_bytes = self.inner.page_bytes();
        let place = |inside: u64| PoolOffset(phys.0 * page_bytes + inside);
        let store = self.inner.store();
        let runs = store.own_runs(place(0), page_bytes as usize).await;
        let (mut lost, mut parts) = (Vec::new(), Vec::new());
        for (missing, _) in runs.into_iter().filter(|(_, own)| !own) {
            let first = missing.start as u64;
            let data = self.piece(under, first, missing.len(), &mut lost).await;
            let at = page.0 * page_bytes + first;
            let data = data.map_err(|away| self.unreadable(at, away))?;
            let found = parts_to_write(&data, first, &lost).into_iter();
            parts.extend(found.map(|(offset, part)| (place(first + offset as u64), part)));
        }
        Ok(Missing {
            parts,
            lost: lost.into_iter().map(place).collect(),
        })
    }
}

/// What is to be brought to a page: data with its places, and blocks that are lost.
struct Missing {
    parts: Vec<(PoolOffset, Slice)>,
    lost: Vec<PoolOffset>,
}

/// The runs of blocks of `data`, which is from `first` of its page on, that are neither
/// zeroes nor `lost`, with where in `data` they are.
fn parts_to_write(data: &Slice, first: u64, lost: &[u64]) -> Vec<(usize, Slice)> {
    let mut parts: Vec<std::ops::Range<usize>> = Vec::new();
    for at in (0..data.len()).step_by(BLOCK_BYTES) {
        let is_zeroes = data.slice(at, BLOCK_BYTES).bytes().is_some_and(is_zeroes);
        if is_zeroes || lost.contains(&(first + at as u64)) {
            continue;
        }
        match parts.last_mut() {
            Some(part) if part.end == at => part.end += BLOCK_BYTES,
            _ => parts.push(at..at + BLOCK_BYTES),
        }
    }
    let slice = |part: std::ops::Range<usize>| (part.start, data.slice(part.start, part.len()));
    parts.into_iter().map(slice).collect()
}
