//! The room that metadata has in the checkpoint slots on the drives: [`MetadataRoom`].
//!
//! Invariant: what maps and properties may grow by, by changes that are under way, is reserved before
//! the first of their records, and fits a slot beside all that is there.

use super::LaneState;
use super::checkpoint_room::{CheckpointSizes, Reservation};
use crate::error::{PoolError, PoolErrorKind};
use crate::meta::checkpoint::MAPS_STEP_BYTES;
use crate::meta::properties::TRASHED_BYTES;
use crate::meta::record::MAP_BYTES;
use crate::meta::{Record, checkpoint};
use crate::world::World;
use std::rc::Rc;

/// The room of a lane's metadata in its checkpoint slots.
pub(crate) struct MetadataRoom<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> MetadataRoom<'a, W> {
    pub(crate) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        MetadataRoom { lane }
    }

    /// Makes sure that the checkpoint slots have room for `chunks` of maps that are about to share
    /// less. None, and that is counted, when they have not.
    pub(crate) fn reserve_chunks(&self, chunks: u64) -> Option<Reservation<'a>> {
        let reserved = self
            .lane
            .checkpoint_room
            .reserve_maps(chunks * MAPS_STEP_BYTES);
        if chunks == 0 || self.has_room_for_maps() {
            return Some(reserved);
        }
        self.refuse_maps();
        None
    }

    /// Makes sure that they have room for maps that grow by `bytes`, beside all that may still come
    /// into maps by writing: what is shared is bounded by nothing else.
    pub(crate) fn reserve_copies(&self, bytes: u64) -> Option<Reservation<'a>> {
        let reserved = self.lane.checkpoint_room.reserve_maps(bytes);
        let later = self.lane.free_pages() * MAP_BYTES as u64;
        let fits = self
            .lane
            .checkpoint_room
            .fits_beside(&self.checkpoint_sizes(), later);
        fits.then_some(reserved)
    }

    /// Makes sure that they have room for properties that are said while others may say some, too.
    ///
    /// # Errors
    /// `Full` when they have not.
    pub(crate) fn reserve_properties(
        &self,
        records: &[Record],
    ) -> Result<Reservation<'a>, PoolError> {
        self.check_properties_fit(records)?;
        let bytes = records.iter().map(Record::properties_bytes).sum();
        Ok(self.lane.checkpoint_room.reserve_properties(bytes))
    }

    fn has_room_for_maps(&self) -> bool {
        self.lane.checkpoint_room.fits(&self.checkpoint_sizes())
    }

    /// What a checkpoint would hold now.
    fn checkpoint_sizes(&self) -> CheckpointSizes {
        let identity = self.lane.identity();
        let state = self.lane.state();
        let trashed = state.volumes.len() as u64 * TRASHED_BYTES;
        CheckpointSizes {
            maps_bytes: checkpoint::maps_bytes(
                state.refs.owned,
                state.tables,
                state.backings.len(),
            ),
            properties_bytes: state.properties_bytes + trashed,
            zones_max: self.zones_max(),
            volumes_max: identity.volumes_max,
            journal_bytes: identity.journal_bytes,
            slot_bytes: identity.checkpoint_bytes,
        }
    }

    /// Something is refused for want of that room.
    pub(crate) fn refuse_maps(&self) {
        self.lane.world.reached("no room for maps");
        self.lane.checkpoint_room.count_map_refusal();
    }

    /// How often that was, since the opening.
    pub(crate) fn map_refusals(&self) -> u64 {
        self.lane.checkpoint_room.map_refusals()
    }

    pub(crate) fn check_maps(&self) -> Result<(), PoolError> {
        if self.has_room_for_maps() {
            return Ok(());
        }
        self.refuse_maps();
        let context = format!(
            "the metadata of pool '{}' has no room for more snapshots and clones: delete some",
            self.lane.identity().name
        );
        Err(PoolError::new(PoolErrorKind::Full, context))
    }

    /// Bytes that a checkpoint slot needs beside [`checkpoint::slot_bytes`] when
    /// `more` bytes of properties come to those there are.
    pub(crate) fn more_properties_bytes(&self, more: u64) -> u64 {
        self.lane
            .checkpoint_room
            .properties_need(&self.checkpoint_sizes(), more)
    }

    /// Zones of all groups, those of spread groups as many as take their room.
    pub(crate) fn zones_max(&self) -> u64 {
        let groups = self.lane.drives.groups();
        let zones = groups.iter().map(|group| {
            let zones = u64::from(group.numbers.zones);
            checkpoint::zones_of(group.spread.is_some(), zones, group.drives())
        });
        zones.sum()
    }

    /// Pages that all drives have, parity as well.
    fn pages_max(&self) -> u64 {
        let zone_bytes = self.lane.identity().zone_bytes;
        let groups = self.lane.drives.groups();
        let data = groups
            .iter()
            .map(|group| u64::from(group.numbers.zones) * group.drives() as u64 * zone_bytes);
        data.sum::<u64>() / u64::from(self.lane.identity().page_bytes)
    }

    /// That what is going to be said fits the checkpoint slots, beside the worst maps that
    /// the pool's drives can come to.
    pub(crate) fn check_properties_fit(&self, records: &[Record]) -> Result<(), PoolError> {
        let more: u64 = {
            let state = self.lane.state();
            let more = |record: &Record| match record {
                Record::Property(id, property) => match state.volumes.get(id) {
                    Some(core) => core.properties.more_bytes(property),
                    None => property.bytes(),
                },
                _ => 0,
            };
            records.iter().map(more).sum()
        };
        if more == 0 {
            return Ok(());
        }
        let identity = self.lane.identity();
        let needed = checkpoint::slot_bytes(
            self.pages_max(),
            self.zones_max(),
            identity.volumes_max,
            identity.journal_bytes,
        );
        let (room, sizes) = (&self.lane.checkpoint_room, self.checkpoint_sizes());
        // Maps of volumes that share little may need more than that.
        let needed = needed.max(room.maps_need(&sizes));
        if needed + room.properties_need(&sizes, more) <= sizes.slot_bytes {
            return Ok(());
        }
        let context = format!(
            "the metadata of pool '{}' has no room for more snapshots, tags and descriptions: delete some",
            identity.name
        );
        Err(PoolError::new(PoolErrorKind::Full, context))
    }
}
