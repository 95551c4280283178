//! Pages that several volumes have, and one of them is about to change.
//!
//! Invariants:
//! - What others have is never written: who changes it gets a copy first.
//! - One at a time makes a page its volume's own; the others wait, and look again. Nobody
//!   writes the page meanwhile, also when nobody else has it any more.

use super::{IoError, Volume, io::failed};
use crate::world::World;
use base::{PageIndex, PhysPage, VolumeOffset};

impl<W: World> Volume<W> {
    /// Where a page lies that nobody else has: a copy, if need be.
    ///
    /// # Errors
    /// `PoolFull`, `PoolFailed`.
    pub(super) async fn own(&self, page: PageIndex) -> Result<Option<PhysPage>, IoError> {
        loop {
            match self.place(page) {
                Some((_, true)) => self.make_private(page).await?,
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
    pub(super) async fn make_private(&self, page: PageIndex) -> Result<(), IoError> {
        let at = VolumeOffset(page.0 * self.inner.page_bytes());
        let Some(_allocation) = self.core.live.allocate(page).await else {
            return Ok(());
        };
        // It is being copied now, by us: what counts is whether others have it.
        let Some(from) = self.shared(page) else {
            return Ok(());
        };
        let (to, _) = self.take(1, at).await?;
        self.inner.world.reached("shared page copied");
        self.copy_page(from, to, at).await?;
        let mapped = self.map_pages(page, to, 1).await;
        mapped.map_err(|error| failed(at, error))
    }

    /// Where a page lies that others have, too.
    fn shared(&self, page: PageIndex) -> Option<PhysPage> {
        let map = self.core.map.borrow();
        let place = map.place(page, &self.inner.state.borrow().refs)?;
        place.1.then_some(place.0)
    }
}
