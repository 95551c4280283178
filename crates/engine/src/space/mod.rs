//! The state of an open lane: its metadata, its free pages, its journal, and what is under way on
//! its volumes.
//!
//! Volumes and all work on the pool stand on it. It consists of parts, each with private fields and
//! a file of its own that says its invariants. What is done with several parts is the topic of a type
//! that looks at the lane as long as a call takes: `LaneState` itself only hands these out.
//!
//! Rooms: `page_accounts` (metadata and space), `commit` (`Journal`: metadata made durable) and
//! `journal_cursor` (where that stands), `zones` (`ZonesInUse`) and `zone_changes` (on their way),
//! `supply` (`Supply`: where free pages come from), `promise` (`Pledges`: who may have the last
//! pages), `backing` (`Backings`: who reads through pages), `metadata_room` (`MetadataRoom`) and
//! `checkpoint_room` (promised to checkpoints), `occupancy` (`Occupancy`: what other lanes are told);
//! [`live`], `copied` and `mirror` (what is under way on a volume); [`background`] and
//! [`pace`] (the work on the drives).

mod assemble;
pub mod background;
mod backing;
mod checkpoint_room;
mod claims;
mod commit;
mod copied;
mod journal_cursor;
pub mod live;
mod metadata_room;
mod mirror;
mod occupancy;
pub mod pace;
mod page_accounts;
pub(crate) mod promise;
mod ring_losses;
mod supply;
mod zone_changes;
mod zones;

pub(crate) use assemble::usual_checksum_blocks;
pub(crate) use background::Background;
pub(crate) use backing::Backing;
pub(crate) use checkpoint_room::Reservation;
pub use live::Live;
pub use mirror::{Mirror, MoveProgress};
pub(crate) use promise::Claim;

use crate::drives::Drives;
use crate::error::{PoolError, PoolErrorKind};
use crate::label::PoolIdentity;
use crate::pages::Space;
use crate::ring::RingSpec;
use crate::store::Store;
use crate::world::World;
use backing::{BackingReaders, Backings};
use base::DriveOffset;
use checkpoint_room::CheckpointRoom;
use commit::Journal;
use futures_util::lock::{Mutex, MutexGuard};
use journal_cursor::JournalCursor;
use metadata_room::MetadataRoom;
use occupancy::Occupancy;
use page_accounts::PageAccounts;
use promise::Pledges;
use std::cell::Ref;
use std::rc::Rc;
use supply::Supply;
use zone_changes::ZoneChanges;
use zones::ZonesInUse;

/// The metadata of an open lane.
pub type State = crate::meta::State<Live>;

/// A volume of an open lane.
pub type VolumeCore = crate::meta::VolumeCore<Live>;

/// The state that all handles on an open lane share: the floors that it stands on, which are there
/// for everybody and are never exchanged, and parts that own their invariants.
pub(crate) struct LaneState<W: World> {
    world: W,
    drives: Rc<Drives<W>>,
    store: Rc<Store<W>>,
    journal_cursor: JournalCursor,
    pages: PageAccounts,
    background: Background,
    /// Serialises creation, resizing and deletion of volumes, and changes of groups.
    administration: Mutex<()>,
    backing_readers: BackingReaders,
    checkpoint_room: CheckpointRoom,
    zone_changes: ZoneChanges,
}

impl<W: World> Drop for LaneState<W> {
    fn drop(&mut self) {
        self.store.end();
        self.store.lifeline.set();
        self.store.filler.set();
    }
}

impl<W: World> LaneState<W> {
    /// The world that it runs in.
    pub(crate) fn world(&self) -> &W {
        &self.world
    }

    /// Its drives.
    pub(crate) fn drives(&self) -> &Rc<Drives<W>> {
        &self.drives
    }

    /// What is on its drives: blocks, sums and logs.
    pub(crate) fn store(&self) -> &Rc<Store<W>> {
        &self.store
    }

    /// That the pool is in use and sound.
    pub fn check(&self) -> Result<(), PoolError> {
        self.drives.check()
    }

    /// Stops the pool: nothing is acknowledged from now on. The first reason stays.
    pub fn stop(&self, reason: String) {
        self.drives.stop(reason);
    }

    pub fn identity(&self) -> &PoolIdentity {
        self.drives.identity()
    }

    pub fn page_bytes(&self) -> u64 {
        self.drives.page_bytes()
    }

    /// That the pool has not stopped, and is not being closed.
    pub(crate) fn go_on(&self) -> Result<(), PoolError> {
        self.check()?;
        match self.background.is_ending() {
            false => Ok(()),
            true => Err(PoolError::new(
                PoolErrorKind::Failed,
                format!("pool '{}' is being closed", self.drives.name()),
            )),
        }
    }

    /// The zones that come into use or go out of it, and the pages that move meanwhile.
    pub(crate) fn zone_changes(&self) -> &ZoneChanges {
        &self.zone_changes
    }

    /// Waits for the turn to create, resize or delete volumes, or to change groups.
    pub(crate) async fn administration(&self) -> MutexGuard<'_, ()> {
        self.administration.lock().await
    }

    /// As [`LaneState::administration`]; none when it is another's turn.
    pub(crate) fn try_administration(&self) -> Option<MutexGuard<'_, ()>> {
        self.administration.try_lock()
    }

    /// The metadata, to look at. No wait may come while it is held.
    pub(crate) fn state(&self) -> Ref<'_, State> {
        self.pages.state()
    }

    /// The pages that are given out, to look at. No wait may come while they are held.
    pub(crate) fn space(&self) -> Ref<'_, Space> {
        self.pages.space()
    }

    /// Changes the metadata without a durable record, as only a planted bug may.
    pub(crate) fn spoil<T>(&self, bug: impl FnOnce(&mut State) -> T) -> T {
        self.pages.spoil(bug)
    }

    /// The work on the drives.
    pub(crate) fn background(&self) -> &Background {
        &self.background
    }

    /// Wakes the task.
    pub(super) fn wake_background(&self) {
        self.store.lifeline.set();
    }

    /// Pages that could still be given out, zones not yet in use included.
    pub fn free_pages(&self) -> u64 {
        self.space().free() + self.drives.unopened_pages()
    }

    /// Pages that are promised and not given out yet.
    pub(crate) fn promised_pages(&self) -> u64 {
        self.pages.promised_pages()
    }

    /// The journal, which makes records durable.
    pub(crate) fn journal(self: &Rc<Self>) -> Journal<'_, W> {
        Journal::of(self)
    }

    /// The zones in use.
    pub(crate) fn zones_in_use(self: &Rc<Self>) -> ZonesInUse<'_, W> {
        ZonesInUse::of(self)
    }

    /// Where free pages come from.
    pub(crate) fn supply(self: &Rc<Self>) -> Supply<'_, W> {
        Supply::of(self)
    }

    /// What is promised of the free pages.
    pub(crate) fn pledges(self: &Rc<Self>) -> Pledges<'_, W> {
        Pledges::of(self)
    }

    /// What pages lie over.
    pub(crate) fn backings(self: &Rc<Self>) -> Backings<'_, W> {
        Backings::of(self)
    }

    /// The room that the metadata has on the drives.
    pub(crate) fn metadata_room(self: &Rc<Self>) -> MetadataRoom<'_, W> {
        MetadataRoom::of(self)
    }

    /// What other lanes are told of the space.
    pub(crate) fn occupancy(self: &Rc<Self>) -> Occupancy<'_, W> {
        Occupancy::of(self)
    }
}

impl PoolIdentity {
    /// Where both logs lie on every drive that carries them: data, intents.
    pub(crate) fn ring_specs(&self) -> (RingSpec, RingSpec) {
        let spec = |label, at, len_bytes, salt| RingSpec {
            label,
            pool: self.lane_uuid(),
            salt,
            at: DriveOffset(at),
            len_bytes,
            layout: self.layout,
        };
        let at = self.logs_offset();
        let log = spec("data log", at, self.log_bytes, self.salt);
        let intents = spec(
            "intent log",
            at + self.log_bytes,
            self.intent_bytes,
            !self.salt,
        );
        (log, intents)
    }
}
