//! The room for pages that a thin volume has not been given yet.

use super::{AvailableSpace, Volume};
use crate::world::World;

impl<W: World> Volume<W> {
    /// What there is now.
    pub fn room(&self) -> AvailableSpace {
        let registry = &self.inner.drives().lane().registry;
        let (taken, in_use) = registry.space();
        let capacity = self
            .inner
            .drives()
            .unopened_pages()
            .saturating_add_signed(in_use);
        let thresholds = registry.with_judged(|judged| judged.info.thresholds);
        let left_percent = u64::from(100u8.saturating_sub(thresholds.warn_percent));
        let page_bytes = self.inner.page_bytes();
        AvailableSpace {
            mapped_bytes: self.core.map.borrow().mapped() * page_bytes,
            available_bytes: capacity.saturating_sub(taken) * page_bytes,
            warn_bytes: capacity * left_percent / 100 * page_bytes,
        }
    }
}
