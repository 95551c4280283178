//! The room in the checkpoint slots on the drives: what is promised to a checkpoint has room.
//!
//! Invariants:
//! - Who makes maps share less or more, maps new pages, or says more of a volume, reserves the most
//!   that a checkpoint can grow by. The reservation is held until the change is part of the state, so
//!   it is counted at all times, twice at most.
//! - What is there, what is promised and what is reserved fit a slot together. Pools where nothing is
//!   shared have room for a map of every page, so there nobody needs to look.

use crate::meta::checkpoint::{self, MAPS_STEP_BYTES};
use std::cell::Cell;

/// What a checkpoint would hold now, and the bounds that a pool has.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckpointSizes {
    /// Of the maps as they are now.
    pub maps_bytes: u64,
    /// Of the pages that are promised and not mapped yet.
    pub promised_bytes: u64,
    /// Of all that is said of volumes.
    pub properties_bytes: u64,
    /// What maps leave to properties of a slot, whatever is said.
    pub properties_room_bytes: u64,
    /// Of all groups, in use or not.
    pub zones_max: u64,
    pub volumes_max: u32,
    pub journal_bytes: u32,
    /// Of a checkpoint slot.
    pub slot_bytes: u64,
    /// What the worst maps of all pages need of a slot, where none is shared.
    pub worst_bytes: u64,
}

impl CheckpointSizes {
    /// Whether slots have room for these.
    pub fn has_room_for_all_pages(&self) -> bool {
        self.properties_room_bytes == 0
    }
}

/// Bytes that checkpoints may grow by, for changes that are under way.
#[derive(Debug, Default)]
pub(super) struct CheckpointRoom {
    /// Maps that are about to share less, or to share more.
    maps_bytes: Cell<u64>,
    /// Pages that are about to be mapped, or promised.
    new_pages_bytes: Cell<u64>,
    /// Properties that are about to be said.
    properties_bytes: Cell<u64>,
    /// How often something was refused for want of room for maps.
    map_refusals: Cell<u64>,
}

/// Room for a change that is under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    all: &'a Cell<u64>,
    bytes: u64,
}

impl<'a> Reservation<'a> {
    fn of(all: &'a Cell<u64>, bytes: u64) -> Self {
        all.set(all.get() + bytes);
        Reservation { all, bytes }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let left = self.all.get().checked_sub(self.bytes);
        assert!(left.is_some(), "more room is given back than was reserved");
        self.all.set(left.unwrap_or_default());
    }
}

impl CheckpointRoom {
    /// Reserves bytes of maps. The caller looks afterwards whether they fit.
    pub fn reserve_maps(&self, bytes: u64) -> Reservation<'_> {
        Reservation::of(&self.maps_bytes, bytes)
    }

    /// Reserves bytes for pages that nobody has yet, as [`CheckpointRoom::reserve_maps`] does.
    pub fn reserve_new_pages(&self, bytes: u64) -> Reservation<'_> {
        Reservation::of(&self.new_pages_bytes, bytes)
    }

    /// Whether somebody is about to share more, or less.
    pub fn is_sharing_changing(&self) -> bool {
        self.maps_bytes.get() > 0
    }

    /// Reserves bytes of properties. The caller has looked whether they fit.
    pub fn reserve_properties(&self, bytes: u64) -> Reservation<'_> {
        Reservation::of(&self.properties_bytes, bytes)
    }

    /// What maps need of a slot, with what is promised and reserved, and a table and a chunk more.
    pub fn maps_need(&self, sizes: &CheckpointSizes) -> u64 {
        let reserved = self.maps_bytes.get() + self.new_pages_bytes.get();
        checkpoint::slot_bytes_of(
            sizes.maps_bytes + sizes.promised_bytes + reserved + MAPS_STEP_BYTES,
            sizes.zones_max,
            sizes.volumes_max,
            sizes.journal_bytes,
        )
    }

    /// What properties need of a slot beside that, with those reserved for, and `more`.
    pub fn properties_need(&self, sizes: &CheckpointSizes, more: u64) -> u64 {
        let properties = sizes.properties_bytes + self.properties_bytes.get() + more;
        checkpoint::more_bytes(properties, sizes.journal_bytes)
    }

    /// Whether all that is reserved fits, and a table and a chunk more.
    pub fn fits(&self, sizes: &CheckpointSizes) -> bool {
        self.fits_beside(sizes, 0)
    }

    /// Whether it fits beside `later_bytes` that may come into maps.
    pub fn fits_beside(&self, sizes: &CheckpointSizes, later_bytes: u64) -> bool {
        let later = checkpoint::more_bytes(later_bytes, sizes.journal_bytes);
        let properties = self.properties_need(sizes, 0);
        let properties = properties.max(sizes.properties_room_bytes);
        self.maps_need(sizes) + properties + later <= sizes.slot_bytes
    }

    /// Counts that something was refused for want of room for maps.
    pub fn count_map_refusal(&self) {
        self.map_refusals.set(self.map_refusals.get() + 1);
    }

    /// How often that was, since the opening.
    pub fn map_refusals(&self) -> u64 {
        self.map_refusals.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> CheckpointSizes {
        let mut sizes = CheckpointSizes {
            maps_bytes: 0,
            promised_bytes: 0,
            properties_bytes: 0,
            properties_room_bytes: 0,
            zones_max: 16,
            volumes_max: 4,
            journal_bytes: 1 << 20,
            slot_bytes: 0,
            worst_bytes: 0,
        };
        let empty = CheckpointRoom::default();
        sizes.slot_bytes = empty.maps_need(&sizes) + empty.properties_need(&sizes, 0) + (64 << 10);
        sizes
    }

    #[test]
    fn a_reservation_counts_until_it_is_dropped() {
        let (room, sizes) = (CheckpointRoom::default(), sizes());
        assert!(room.fits(&sizes));
        let some = room.reserve_maps(40 << 10);
        assert!(room.fits(&sizes));
        let more = room.reserve_maps(40 << 10);
        assert!(!room.fits(&sizes), "both together are too much");
        drop(some);
        assert!(room.fits(&sizes));
        drop(more);
        let pages = room.reserve_new_pages(40 << 10);
        let promised = CheckpointSizes {
            promised_bytes: 40 << 10,
            ..sizes
        };
        assert!(room.fits(&sizes) && !room.fits(&promised));
        drop(pages);
        assert!(room.fits_beside(&sizes, 40 << 10));
    }

    #[test]
    fn maps_leave_properties_their_room() {
        let (room, sizes) = (CheckpointRoom::default(), sizes());
        let _maps = room.reserve_maps(40 << 10);
        assert!(room.fits(&sizes));
        let with_room = CheckpointSizes {
            properties_room_bytes: 40 << 10,
            ..sizes
        };
        assert!(!room.fits(&with_room));
    }

    #[test]
    fn words_and_maps_have_one_slot_together() {
        let (room, sizes) = (CheckpointRoom::default(), sizes());
        let _maps = room.reserve_maps(40 << 10);
        let properties = room.reserve_properties(40 << 10);
        assert!(!room.fits(&sizes));
        drop(properties);
        assert!(room.fits(&sizes) && !room.fits_beside(&sizes, 40 << 10));
    }
}
