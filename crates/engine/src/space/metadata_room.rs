//! The room that metadata has in the checkpoint slots on the drives.

use super::LaneState;
use crate::error::{PoolError, PoolErrorKind};
use crate::meta::record::MAP_BYTES;
use crate::meta::words::TRASHED_BYTES;
use crate::meta::{Record, checkpoint};
use crate::world::World;

impl<W: World> LaneState<W> {
    /// Whether the checkpoint slots have room for maps that share less than they do now: a
    /// table and a chunk more, beside those that are being made.
    pub(crate) fn has_room_for_maps(&self) -> bool {
        self.maps_need() + self.more_words_bytes(0) <= self.identity().checkpoint_bytes
    }

    /// Whether they have room for that beside all that may still come into maps by writing:
    /// what is shared is bounded by nothing else.
    pub(crate) fn has_room_for_copies(&self) -> bool {
        let later = self.free_pages() * MAP_BYTES as u64;
        let journal_bytes = self.identity().journal_bytes;
        let later = checkpoint::more_bytes(later, journal_bytes);
        let words = self.more_words_bytes(0);
        self.maps_need() + words + later <= self.identity().checkpoint_bytes
    }

    /// What such maps need of a checkpoint slot.
    pub(crate) fn maps_need(&self) -> u64 {
        let state = self.state.borrow();
        let maps = checkpoint::maps_bytes(state.refs.owned, state.tables, state.backings.len());
        let steps = self.parting.get() + checkpoint::MAPS_STEP_BYTES;
        drop(state);
        let identity = self.identity();
        checkpoint::slot_bytes_of(
            maps + steps,
            self.zones_max(),
            identity.volumes_max,
            identity.journal_bytes,
        )
    }

    /// Something is refused for want of that room.
    pub(crate) fn refuse_maps(&self) {
        self.world.reached("no room for maps");
        self.map_refusals.set(self.map_refusals.get() + 1);
    }

    pub(crate) fn check_maps(&self) -> Result<(), PoolError> {
        if self.has_room_for_maps() {
            return Ok(());
        }
        self.refuse_maps();
        let context = format!(
            "the metadata of pool '{}' has no room for more snapshots and clones: delete some",
            self.identity().name
        );
        Err(PoolError::new(PoolErrorKind::Full, context))
    }
}

impl<W: World> LaneState<W> {
    /// Bytes that a checkpoint slot needs beside [`checkpoint::slot_bytes`] when
    /// `more` bytes of words come to those there are.
    pub(crate) fn more_words_bytes(&self, more: u64) -> u64 {
        let words = {
            let state = self.state.borrow();
            let trashed = state.volumes.len() as u64 * TRASHED_BYTES;
            state.words_bytes + self.words_coming.get() + trashed + more
        };
        let identity = self.identity();
        checkpoint::more_bytes(words, identity.journal_bytes)
    }

    /// Zones of all groups.
    pub(crate) fn zones_max(&self) -> u64 {
        let groups = self.drives.groups();
        groups.iter().map(|group| u64::from(group.zones)).sum()
    }

    /// Pages that all drives have, parity as well.
    fn pages_max(&self) -> u64 {
        let zone_bytes = self.identity().zone_bytes;
        let groups = self.drives.groups();
        let data = groups
            .iter()
            .map(|group| u64::from(group.zones) * group.drives() as u64 * zone_bytes);
        data.sum::<u64>() / u64::from(self.identity().page_bytes)
    }

    /// That what is going to be said fits the checkpoint slots, beside the worst maps that
    /// the pool's drives can come to.
    pub(crate) fn check_words(&self, records: &[Record]) -> Result<(), PoolError> {
        let more: u64 = {
            let state = self.state.borrow();
            let more = |record: &Record| match record {
                Record::Word(id, word) => match state.volumes.get(id) {
                    Some(core) => core.words.more_bytes(word),
                    None => word.bytes(),
                },
                _ => 0,
            };
            records.iter().map(more).sum()
        };
        if more == 0 {
            return Ok(());
        }
        let identity = self.identity();
        let needed = checkpoint::slot_bytes(
            self.pages_max(),
            self.zones_max(),
            identity.volumes_max,
            identity.journal_bytes,
        );
        // Maps of volumes that share little may need more than that.
        let needed = needed.max(self.maps_need());
        if needed + self.more_words_bytes(more) <= identity.checkpoint_bytes {
            return Ok(());
        }
        let context = format!(
            "the metadata of pool '{}' has no room for more snapshots, tags and descriptions: delete some",
            identity.name
        );
        Err(PoolError::new(PoolErrorKind::Full, context))
    }
}
