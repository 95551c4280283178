//! Emptying a zone, and taking it out of use: [`Emptying`].
//!
//! Invariants:
//! - A zone goes out of use when nobody has a page in it, and what is promised has room without it.
//! - Whoever writes goes first: when free pages run out, the zone that is being emptied gives out its
//!   own again, and has its turn later.

use super::pace::Bounds;
use super::spares::Spares;
use super::steps::Steps;
use crate::drives::{EventKind, Zone};
use crate::meta::Record;
use crate::meta::page_map::runs_of;
use crate::pool::{PoolError, PoolErrorKind};
use crate::space::LaneState;
use crate::space::VolumeCore;
use crate::volume::Volume;
use crate::volume::moving::Moved;
use crate::world::World;
use base::{PageIndex, PhysPage};
use futures_util::future::join_all;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Pages moved at once.
const PAGES_AT_ONCE: usize = 4;

/// Chunks of maps looked at before others have a turn, and how long they have.
const CHUNKS_AT_ONCE: usize = 64;
const REST: Duration = Duration::from_micros(1);

/// How long to wait for pages that are taken and not mapped yet.
const PAUSE: Duration = Duration::from_millis(1);

/// What came of emptying a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emptied {
    /// It is out of use.
    Done,
    /// There is no room for its pages, or somebody needed its own.
    CalledOff,
    /// A drive goes first.
    PutOff,
}

/// What an emptied zone is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Any lane takes it.
    Free,
    /// A lane has asked for it.
    Lent,
}

type Owned = (Rc<VolumeCore>, PageIndex, PhysPage);

/// What came of the pages that a zone had at one look.
#[derive(Default)]
struct Round {
    moved_any: bool,
    /// The first page that could not be read or written.
    failure: Option<PoolError>,
}

/// Zones on their way out of use.
pub(super) struct Emptying<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Emptying<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Emptying { lane }
    }

    /// Empties a zone and takes it out of use. Drives that are wanting go before that, but where
    /// another lane waits: the zone is soon empty.
    pub(super) async fn empty_zone(
        &self,
        zone: &Rc<Zone<W>>,
        task: &super::Task,
        purpose: Use,
    ) -> Result<Emptied, PoolError> {
        let number = zone.shape.zone;
        // One that is being taken into use is not there yet.
        let changes = self.lane.zone_changes();
        drop(changes.settle().await);
        changes.begin_emptying(number);
        let emptied = self.move_out(number, task, purpose).await;
        let is_ours = changes.end_emptying(number);
        // Others may have been promised its pages meanwhile.
        let can_go = is_ours && self.lane.pledges().keeps_promises();
        if !matches!(emptied, Ok(Emptied::Done)) || !can_go {
            changes.keep(number);
            return emptied.map(|outcome| match outcome {
                Emptied::PutOff => Emptied::PutOff,
                Emptied::Done | Emptied::CalledOff => Emptied::CalledOff,
            });
        }
        // Nobody can call it off any more, and nobody has a page in it.
        self.lane.store().forget_zone(number).await?;
        self.lane
            .journal()
            .commit(vec![Record::ZoneOff { zone: number }])
            .await?;
        self.lane.drives().zone_off(number);
        changes.remove(number);
        let lane = self.lane.drives().lane();
        if purpose == Use::Lent {
            lane.registry.lend_zone(lane.index, number);
        }
        lane.registry.give_zone_back(lane.index, number);
        self.lane.drives().doubt_rebuilt(&zone.group, number);
        self.lane.world().reached("zone goes out of use");
        Ok(Emptied::Done)
    }

    /// What volumes have in zones that are to be emptied.
    pub(super) fn bytes_to_move(&self) -> u64 {
        let space = self.lane.space();
        let zones = self.lane.drives().zones_to_empty();
        let pages = zones.iter().map(|zone| space.used_in(zone.shape.zone));
        pages.sum::<u64>() * self.lane.page_bytes()
    }

    /// Moves all pages out of a zone.
    async fn move_out(
        &self,
        zone: u32,
        task: &super::Task,
        purpose: Use,
    ) -> Result<Emptied, PoolError> {
        loop {
            let owned = self.owned_in(zone).await?;
            if !self.lane.zone_changes().is_emptying(zone) {
                return Ok(Emptied::CalledOff);
            }
            let mut round = Round::default();
            for some in owned.chunks(PAGES_AT_ONCE) {
                let began = self.lane.world().now();
                let had_room = self.move_some(some, &mut round).await?;
                if !had_room || !self.lane.zone_changes().is_emptying(zone) {
                    return Ok(Emptied::CalledOff);
                }
                self.rest_after_moves(some.len() as u64, task, began)
                    .await?;
                if purpose == Use::Free && Spares::of(self.lane).is_drive_wanting() {
                    self.lane.wake_background();
                    return Ok(Emptied::PutOff);
                }
            }
            if self.lane.space().used_in(zone) == 0 {
                return Ok(Emptied::Done);
            }
            if let Some(error) = round.failure {
                return Err(error);
            }
            if !round.moved_any {
                // Taken, and soon mapped or given back: by a write, or a deletion.
                self.lane.world().sleep(PAUSE).await;
                self.lane.go_on()?;
            }
            if !self.lane.zone_changes().is_emptying(zone) {
                return Ok(Emptied::CalledOff);
            }
        }
    }

    /// Says how far the task is, and rests after a step that moved so many pages.
    async fn rest_after_moves(
        &self,
        pages: u64,
        task: &super::Task,
        began: base::Time,
    ) -> Result<(), PoolError> {
        let bytes = pages * self.lane.page_bytes();
        task.advance(bytes);
        // Hosts write and delete meanwhile.
        task.set_left(self.bytes_to_move());
        let rate = self.lane.background().pace().rates().rebuild_bytes_per_s;
        Steps::of(self.lane)
            .rest(Bounds::at_most(rate), bytes, began)
            .await;
        self.lane.go_on()
    }

    /// Moves some pages at once. False when there is no room for one of them.
    async fn move_some(&self, some: &[Owned], round: &mut Round) -> Result<bool, PoolError> {
        let moves = some.iter().map(|(core, page, phys)| {
            let volume = Volume::new(Rc::clone(self.lane), Rc::clone(core));
            async move { volume.move_page(*page, *phys).await }
        });
        for moved in join_all(moves).await {
            match moved {
                Ok(Moved::Done) => round.moved_any = true,
                Ok(Moved::Gone) => {}
                Ok(Moved::NoRoom) => {
                    self.say_no_room();
                    return Ok(false);
                }
                // A drive that is needed does not answer; others may.
                Err(error) => {
                    self.lane.go_on()?;
                    let error = PoolError::new(PoolErrorKind::Failed, error.context);
                    round.failure.get_or_insert(error);
                }
            }
        }
        Ok(true)
    }

    fn say_no_room(&self) {
        self.lane.world().reached("no room to empty a zone");
        if self.lane.background().tells_no_room() {
            let text = "too few pages are free to empty a zone: add drives, or delete volumes or \
                        snapshots; the work then continues";
            self.lane.drives().event(EventKind::Group, text.to_owned());
        }
    }

    /// Adds the pages in `range`, or that lie over one there, of the first chunk from
    /// `index` on, and says which chunk that was.
    fn owned_of(
        &self,
        core: &Rc<VolumeCore>,
        index: usize,
        range: &Range<u64>,
        owned: &mut Vec<Owned>,
    ) -> Option<usize> {
        let (map, state) = (core.map.borrow(), self.lane.state());
        let lies_over = |phys| state.backings.get(PhysPage(phys));
        let (index, chunk) = map.chunk_from(index)?;
        for run in runs_of(index, chunk.entries()) {
            let pages = (0..run.count).map(|at| (run.page.0 + at, run.phys.0 + at));
            let here = pages.filter(|(_, phys)| {
                range.contains(phys) || lies_over(*phys).is_some_and(|over| range.contains(&over.0))
            });
            let of_core = |(page, phys)| (Rc::clone(core), PageIndex(page), PhysPage(phys));
            owned.extend(here.map(of_core));
        }
        Some(index)
    }

    /// The pages of volumes in a zone. Maps change while others have their turn: some of
    /// these are elsewhere by then, and some that are there are not among them.
    async fn owned_in(&self, zone: u32) -> Result<Vec<Owned>, PoolError> {
        let Some((first, pages)) = self.lane.drives().numbers().of_zone(zone) else {
            return Ok(Vec::new());
        };
        let range = first.0..first.0 + pages;
        let cores: Vec<_> = self.lane.state().volumes.values().cloned().collect();
        let mut owned = Vec::new();
        let mut seen = 0;
        for core in cores {
            let mut next = 0;
            while let Some(index) = self.owned_of(&core, next, &range, &mut owned) {
                next = index + 1;
                seen += 1;
                if seen % CHUNKS_AT_ONCE == 0 {
                    self.lane.world().sleep(REST).await;
                    self.lane.go_on()?;
                }
            }
        }
        Ok(owned)
    }
}
