//! Private copies of shared pages that a volume is about to change.
//!
//! Invariants:
//! - What others have is never written: who changes it gets a copy first.
//! - One at a time makes a page its volume's own; the others wait, and look again. Nobody
//!   writes the page meanwhile, also when nobody else has it any more.

use super::{IoError, IoErrorKind, Volume, io::failed};
use crate::meta::checkpoint::copy_bytes;
use crate::meta::page_map::CHUNK;
use crate::space::{Claim, Reservation};
use crate::world::World;
use base::{PageIndex, PhysPage, VolumeOffset};

impl<W: World> Volume<W> {
    /// Where a page lies that nobody else has: a copy, if need be.
    ///
    /// # Errors
    /// `PoolFull`, `PoolFailed`.
    pub(super) async fn own(
        &self,
        page: PageIndex,
        claim: Claim,
    ) -> Result<Option<PhysPage>, IoError> {
        loop {
            match self.place(page) {
                Some((_, true)) => self.make_private(page, claim).await?,
                Some((phys, false)) => return Ok(Some(phys)),
                None => return Ok(None),
            }
        }
    }

    /// Gives the volume a copy of a page that others have, too. The caller holds some of
    /// the page's bytes.
    ///
    /// # Errors
    /// `PoolFull`, `PoolFailed`.
    pub(super) async fn make_private(&self, page: PageIndex, claim: Claim) -> Result<(), IoError> {
        let Some(_allocation) = self.core.live.allocate(page).await else {
            return Ok(());
        };
        // It is being copied now, by us: what counts is whether others have it.
        match self.shared(page) {
            Some(from) => self.copy_private(page, from, claim).await,
            None => Ok(()),
        }
    }

    /// Copies a page that others have, too, for whoever has the right to allocate it.
    ///
    /// # Errors
    /// As [`Volume::make_private`].
    pub(super) async fn copy_private(
        &self,
        page: PageIndex,
        from: PhysPage,
        claim: Claim,
    ) -> Result<(), IoError> {
        let at = VolumeOffset(page.0 * self.inner.page_bytes());
        let _reserved = self.reserve_maps(page, 1, at)?;
        let (to, _) = match self.take(1, at, claim).await {
            Ok(taken) => taken,
            // Others have got copies meanwhile, with the last pages: what is left is ours.
            Err(_) if self.shared(page).is_none() => return Ok(()),
            Err(full) => return Err(full),
        };
        // When all others get copies at the same time, the page is free afterwards.
        let moving = self.inner.zone_changes().move_pages(1);
        let copied = async {
            self.inner.world().reached("shared page copied");
            self.copy_page(from, to, at).await?;
            let mapped = self.map_pages(page, to, 1).await;
            self.core.live.copied.add(page);
            mapped.map_err(|error| failed(at, error))
        };
        let copied = copied.await;
        drop(moving);
        copied
    }

    /// Before the map of `count` pages from `first` on changes, where others have it, too:
    /// makes sure that the metadata has room for a map that shares less, until what is
    /// given is dropped.
    ///
    /// # Errors
    /// `PoolFull`.
    pub(crate) fn reserve_maps(
        &self,
        first: PageIndex,
        count: u64,
        at: VolumeOffset,
    ) -> Result<Reservation<'_>, IoError> {
        let chunks = self.core.map.borrow().shared_chunks(first, count);
        self.reserve_chunks(chunks, at)
    }

    /// The same before `count` pages from `first` on are mapped to new ones, where nothing is
    /// mapped, too. What is promised to a thick volume has room.
    ///
    /// # Errors
    /// `PoolFull`.
    pub(super) fn reserve_new_pages(
        &self,
        first: PageIndex,
        count: u64,
        at: VolumeOffset,
    ) -> Result<[Reservation<'_>; 2], IoError> {
        let unmapped = self.core.map.borrow().unmapped(first, count);
        let chunk = CHUNK as u64;
        let chunks = (first.0 + count).div_ceil(chunk) - first.0 / chunk;
        let room = self.inner.metadata_room();
        let pages = room.reserve_new_pages((unmapped, chunks), self.claim());
        let pages = pages.ok_or_else(|| self.no_room_for_maps(at))?;
        Ok([pages, self.reserve_maps(first, count, at)?])
    }

    /// The same for `chunks` of them.
    pub(super) fn reserve_chunks(
        &self,
        chunks: u64,
        at: VolumeOffset,
    ) -> Result<Reservation<'_>, IoError> {
        let reserved = self.inner.metadata_room().reserve_chunks(chunks);
        reserved.ok_or_else(|| self.no_room_for_maps(at))
    }

    fn no_room_for_maps(&self, at: VolumeOffset) -> IoError {
        IoError {
            kind: IoErrorKind::PoolFull,
            at,
            context: format!(
                "the metadata of {} has no room for what volume '{}' maps by itself: {}",
                self.inner.metadata_room().place(),
                self.core.name,
                self.inner.metadata_room().remedy()
            ),
        }
    }

    /// The same before pages from `first` on come to be those of others: where there is
    /// room, also for all that may be written to free pages later.
    pub(super) fn reserve_copies(&self, first: PageIndex, count: u64) -> Option<Reservation<'_>> {
        let bytes = copy_bytes(&self.core.map.borrow(), first, count);
        self.inner.metadata_room().reserve_copies(bytes)
    }

    /// Where a page lies that others have, too.
    pub(super) fn shared(&self, page: PageIndex) -> Option<PhysPage> {
        let map = self.core.map.borrow();
        let place = map.place(page, &self.inner.state().refs)?;
        place.1.then_some(place.0)
    }
}
