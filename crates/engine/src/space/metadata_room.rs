//! The room that metadata has in the checkpoint slots on the drives: [`MetadataRoom`].
//!
//! Invariants:
//! - What maps and properties may grow by, by changes that are under way, is reserved before the first
//!   of their records, and fits a slot beside all that is there.
//! - What is promised to thick volumes has room, so their writes to new pages find it whatever others
//!   share. Where they share chunks themselves, these need room as all others do.

use super::LaneState;
use super::checkpoint_room::{CheckpointSizes, Reservation};
use super::promise::Claim;
use crate::error::{PoolError, PoolErrorKind};
use crate::meta::checkpoint::{MAPS_STEP_BYTES, SHARED_BYTES};
use crate::meta::page_map::{CHUNK_BYTES_MAX, whole_map_bytes};
use crate::meta::properties::TRASHED_BYTES;
use crate::meta::record::MAP_BYTES;
use crate::meta::{Promise, Record, checkpoint};
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
        self.granted(chunks == 0 || self.has_room_for_maps(), reserved)
    }

    /// The same for `pages` of so many chunks that are about to be mapped where nothing is mapped or
    /// shared. What is promised has room.
    pub(crate) fn reserve_new_pages(
        &self,
        (pages, chunks): (u64, u64),
        claim: Claim,
    ) -> Option<Reservation<'a>> {
        let bytes = (pages * MAP_BYTES as u64).min(chunks * CHUNK_BYTES_MAX as u64);
        self.reserve_growth(bytes, claim)
    }

    fn reserve_growth(&self, bytes: u64, claim: Claim) -> Option<Reservation<'a>> {
        let room = &self.lane.checkpoint_room;
        let reserved = room.reserve_new_pages(bytes);
        let has_room = bytes == 0
            || claim == Claim::Promised
            || self
                .lane
                .world
                .planted("new pages without room in the metadata")
            || self.has_room_for_new_pages();
        self.granted(has_room, reserved)
    }

    fn granted(&self, has_room: bool, reserved: Reservation<'a>) -> Option<Reservation<'a>> {
        if !has_room {
            self.refuse_maps();
        }
        has_room.then_some(reserved)
    }

    /// Makes sure that they have room for maps that grow by `bytes`, beside all that may still come
    /// into maps by writing: what is shared is bounded by nothing else.
    pub(crate) fn reserve_copies(&self, bytes: u64) -> Option<Reservation<'a>> {
        let room = &self.lane.checkpoint_room;
        let reserved = room.reserve_maps(bytes);
        let sizes = self.checkpoint_sizes();
        let pages = self.lane.pledges().unpromised_pages();
        let later = match sizes.has_room_for_all_pages() {
            true => pages * MAP_BYTES as u64,
            // Who maps them looks for room then. This much is left to the lane's share.
            false => whole_map_bytes(pages) / u64::from(self.lane.identity().lanes),
        };
        room.fits_beside(&sizes, later).then_some(reserved)
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

    /// Whether pages that are mapped anew have room. Where nothing is shared and slots are laid out for
    /// maps of all pages, they have.
    fn has_room_for_new_pages(&self) -> bool {
        let is_nothing_shared = {
            let state = self.lane.state();
            state.refs.is_nothing_shared() && state.backings.is_empty()
        };
        let room = &self.lane.checkpoint_room;
        let is_changing = room.is_sharing_changing();
        let sizes = self.checkpoint_sizes();
        is_nothing_shared && !is_changing && sizes.has_room_for_all_pages() || room.fits(&sizes)
    }

    /// Whether all that is there fits slots beside so many zones, in use or not.
    pub(crate) fn fits_zones(&self, zones_max: u64) -> bool {
        let sizes = CheckpointSizes {
            zones_max,
            ..self.checkpoint_sizes()
        };
        self.lane.checkpoint_room.fits(&sizes)
    }

    /// What a checkpoint would hold now.
    fn checkpoint_sizes(&self) -> CheckpointSizes {
        let identity = self.lane.identity();
        let (zones_max, journal_bytes) = (self.zones_max(), identity.journal_bytes);
        let worst_bytes = checkpoint::slot_bytes(
            self.pages_max(),
            zones_max,
            identity.volumes_max,
            journal_bytes,
        );
        let state = self.lane.state();
        let trashed = state.volumes.len() as u64 * TRASHED_BYTES;
        let properties_bytes = state.properties_bytes + trashed;
        // Slots that have less room have some for properties: pools that were made before have not.
        let said = checkpoint::more_bytes(properties_bytes, journal_bytes);
        let properties_room_bytes = match worst_bytes + said <= identity.checkpoint_bytes {
            true => 0,
            false => checkpoint::properties_room(identity.volumes_max, journal_bytes),
        };
        CheckpointSizes {
            worst_bytes,
            properties_room_bytes,
            maps_bytes: checkpoint::maps_bytes(state.refs.owned, state.backings.len()),
            promised_bytes: self.lane.pages.promised_map_bytes(),
            properties_bytes,
            zones_max,
            volumes_max: identity.volumes_max,
            journal_bytes,
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

    /// Makes sure that they have room for volumes that share all of `tables` tables with others.
    ///
    /// # Errors
    /// `Full` when they have not.
    pub(crate) fn reserve_tables(&self, tables: u64) -> Result<Reservation<'a>, PoolError> {
        let room = &self.lane.checkpoint_room;
        let reserved = room.reserve_maps(tables * SHARED_BYTES);
        let reserved = self.granted(self.has_room_for_maps(), reserved);
        reserved.ok_or_else(|| {
            let context = format!(
                "the metadata of pool '{}' has no room for more snapshots and clones: delete some",
                self.lane.identity().name
            );
            PoolError::new(PoolErrorKind::Full, context)
        })
    }

    /// Makes sure that they have room for the maps of pages that are about to be promised.
    ///
    /// # Errors
    /// `Full` when they have not.
    pub(crate) fn reserve_promise(&self, promise: Promise) -> Result<Reservation<'a>, PoolError> {
        let reserved = self.reserve_growth(promise.map_bytes, Claim::Open);
        reserved.ok_or_else(|| {
            let context = format!(
                "the metadata of {} has no room for what a thick volume is promised: {}",
                self.place(),
                self.remedy()
            );
            PoolError::new(PoolErrorKind::Full, context)
        })
    }

    /// What has that room, for people.
    pub(crate) fn place(&self) -> String {
        let lane = self.lane.drives.lane();
        match lane.registry.lanes() {
            1 => format!("pool '{}'", self.lane.identity().name),
            lanes => format!(
                "lane {} of pool '{}' ({lanes} lanes)",
                lane.index,
                self.lane.identity().name
            ),
        }
    }

    /// What makes room there.
    pub(crate) fn remedy(&self) -> &'static str {
        match self.lane.drives.lane().registry.lanes() {
            1 => "delete snapshots or clones",
            _ => "delete snapshots or clones, or move volumes to another pool",
        }
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
    pub(crate) fn pages_max(&self) -> u64 {
        let zone_bytes = self.lane.identity().zone_bytes;
        let groups = self.lane.drives.groups();
        let data = groups
            .iter()
            .map(|group| u64::from(group.numbers.zones) * group.drives() as u64 * zone_bytes);
        data.sum::<u64>() / u64::from(self.lane.identity().page_bytes)
    }

    /// That what is going to be said fits the checkpoint slots, beside the maps that they are laid out for.
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
        let (room, sizes) = (&self.lane.checkpoint_room, self.checkpoint_sizes());
        // Where slots have room for the worst maps, that is kept; else properties have their own.
        let worst = match sizes.has_room_for_all_pages() {
            true => sizes.worst_bytes,
            false => sizes.slot_bytes.saturating_sub(sizes.properties_room_bytes),
        };
        // Maps of volumes that share little may need more than that.
        let needed = worst.max(room.maps_need(&sizes));
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
