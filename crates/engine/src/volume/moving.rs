//! Moving pages of a volume to other places in the pool, while it is used.
//!
//! Invariants:
//! - Who reads or writes a page waits while it moves, so nothing is lost or torn.
//! - The page's old place is free only when the map says so durably.
//! - A block that is lost stays lost: it is marked in its new place. Nothing is copied
//!   while a drive that may have it does not answer.

use super::{IoError, Volume, io::failed};
use crate::space::Claim;
use crate::store::{Unreadable, Write};
use crate::world::World;
use base::{BLOCK_BYTES, PageIndex, Payload, PhysPage, PoolOffset, Slice, VolumeOffset};

/// A page is copied in pieces of this size, or whole when it is smaller.
const PIECE_BYTES: u64 = 1 << 20;

/// What came of moving a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// It lies elsewhere now.
    Done,
    /// It was not there any more.
    Gone,
    /// There is no free page for it.
    NoRoom,
}

impl<W: World> Volume<W> {
    /// Moves `page`, which lies at `from`, to a free page.
    ///
    /// # Errors
    /// `PoolFailed`; `Media` while a drive that is needed does not answer.
    pub(crate) async fn move_page(
        &self,
        page: PageIndex,
        from: PhysPage,
    ) -> Result<Moved, IoError> {
        let Some(_operation) = self.core.live.begin() else {
            return Ok(Moved::Gone);
        };
        let page_bytes = self.inner.page_bytes();
        let start = page.0 * page_bytes;
        let _range = self
            .core
            .live
            .ranges
            .exclusive(start, start + page_bytes)
            .await;
        if self.lookup(page) != Some(from) {
            return Ok(Moved::Gone);
        }
        let at = VolumeOffset(start);
        let Ok(_reserved) = self.reserve_maps(page, 1, at) else {
            return Ok(Moved::NoRoom);
        };
        let taken = self.inner.supply().take_free(1, Claim::Open).await;
        let Some((to, _)) = taken.map_err(|error| failed(at, error))? else {
            return Ok(Moved::NoRoom);
        };
        let moving = self.inner.zone_changes().move_pages(1);
        let moved = async {
            self.copy_page(from, to, at).await?;
            let mapped = self.map_pages(page, to, 1).await;
            mapped.map_err(|error| failed(at, error))
        };
        let moved = moved.await;
        drop(moving);
        moved.map(|()| Moved::Done)
    }

    /// Makes `to`, which was just taken, hold what `from` does, durably.
    ///
    /// # Errors
    /// `PoolFailed`; `Media` while a drive that is needed does not answer: `to` is given
    /// back then.
    pub(super) async fn copy_page(
        &self,
        from: PhysPage,
        to: PhysPage,
        volume_at: VolumeOffset,
    ) -> Result<(), IoError> {
        let page_bytes = self.inner.page_bytes();
        let store = self.inner.store();
        let mut lost = Vec::new();
        let mut at = 0;
        while at < page_bytes {
            let len = PIECE_BYTES.min(page_bytes - at) as usize;
            let data = self.piece(from, at, len, &mut lost).await;
            let data = data.map_err(|away| {
                store.release(to);
                self.unreadable(volume_at.0 + at, away)
            })?;
            let place = PoolOffset(to.0 * page_bytes + at);
            let written = match len as u64 == page_bytes {
                true => store.write_fresh(place, &data).await,
                false => store.write(vec![Write::Data(place, data)]).await,
            };
            written.map_err(|error| failed(volume_at, error))?;
            at += len as u64;
        }
        for inside in lost {
            let place = PoolOffset(to.0 * page_bytes + inside);
            self.inner.world().reached("lost block moved");
            let marked = store.mark_lost(place).await;
            marked.map_err(|error| failed(volume_at, error))?;
        }
        Ok(())
    }

    /// A run of blocks of a page, through to its backing, with zeroes for those that are
    /// lost: these are named in `lost`, by where in the page they are.
    ///
    /// # Errors
    /// The first block that a drive may have which does not answer.
    pub(super) async fn piece(
        &self,
        page: PhysPage,
        inside: u64,
        len: usize,
        lost: &mut Vec<u64>,
    ) -> Result<Slice, Unreadable> {
        let mut whole = self.inner.world().buffers().zeroed(len);
        if let Ok(payload) = self.read_at(page, inside, len).await {
            whole.put_all(0, &payload);
            return Ok(whole.freeze());
        }
        let away = "copied without what a drive has that is away";
        let goes_on = self.inner.world().planted(away);
        for start in (0..len).step_by(BLOCK_BYTES) {
            let block = inside + start as u64;
            match self.read_at(page, block, BLOCK_BYTES).await {
                Ok(payload) => whole.put_all(start, &payload),
                Err(unreadable) if unreadable.may_be_whole && !goes_on => {
                    self.inner.world().reached("no copy while a drive is away");
                    let start = start + unreadable.start;
                    return Err(Unreadable {
                        start,
                        ..unreadable
                    });
                }
                Err(_) => lost.push(block),
            }
        }
        Ok(whole.freeze())
    }

    /// Reads whole blocks of a page, through to its backing.
    ///
    /// # Errors
    /// The first block that can't be had.
    pub(super) async fn read_at(
        &self,
        page: PhysPage,
        inside: u64,
        len: usize,
    ) -> Result<Payload, Unreadable> {
        let page_bytes = self.inner.page_bytes();
        let place = |page: PhysPage| PoolOffset(page.0 * page_bytes + inside);
        let store = self.inner.store();
        match self.inner.backings().backing(page) {
            None => store.read(place(page), len).await,
            Some(backing) => Box::pin(store.read_over(place(page), place(backing.page), len)).await,
        }
    }
}
