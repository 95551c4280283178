//! Emptying zones: those of another level than their group's, and those of a group that
//! leaves. A zone that is empty goes out of use, and may come back at the new level.
//!
//! Which zones are to be emptied follows from the labels and the metadata, so it goes on
//! after a restart. Whoever writes goes first: when free pages run out, the zone that is
//! being emptied gives out its own again, and has its turn later.

use super::TaskKind;
use super::pace::Bounds;
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
use std::collections::BTreeMap;
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

impl<W: World> LaneState<W> {
    /// Empties them, as far as there is room.
    pub(super) async fn empty_zones(self: &Rc<Self>) -> Result<(), PoolError> {
        let zones = self.drives.zones_to_empty();
        let Some(first) = zones.first() else {
            return Ok(());
        };
        let total = self.bytes_to_move();
        let subject = format!("group {}", first.group.index);
        let now = self.world.now();
        let task = self
            .background()
            .begin(TaskKind::Move, &subject, now, (0, total));
        let outcome = self.empty_all(&task).await;
        self.background().end(&task);
        outcome
    }

    async fn empty_all(self: &Rc<Self>, task: &super::Task) -> Result<(), PoolError> {
        let mut failed: BTreeMap<u32, PoolError> = BTreeMap::new();
        loop {
            let space = || self.space();
            let mut zones = self.drives.zones_to_empty();
            zones.retain(|zone| !failed.contains_key(&zone.shape.zone));
            if zones.is_empty()
                && let Some((_, error)) = failed.pop_first()
            {
                return Err(error);
            }
            let next = zones
                .into_iter()
                .min_by_key(|zone| space().used_in(zone.shape.zone));
            let Some(zone) = next else {
                self.world.reached("group is of its level");
                let text = "all zones are moved: each has the level of its group".to_owned();
                self.drives.event(EventKind::Group, text);
                self.background().has_room();
                return Ok(());
            };
            match self.empty_zone(&zone, task, Use::Free).await {
                Ok(Emptied::Done) => {}
                Ok(Emptied::CalledOff | Emptied::PutOff) => return Ok(()),
                // Others may have all that they need.
                Err(error) => {
                    self.go_on()?;
                    failed.insert(zone.shape.zone, error);
                }
            }
            self.lend().await?;
        }
    }

    /// What volumes have in zones that are to be emptied.
    fn bytes_to_move(&self) -> u64 {
        let space = self.space();
        let zones = self.drives.zones_to_empty();
        let pages = zones.iter().map(|zone| space.used_in(zone.shape.zone));
        pages.sum::<u64>() * self.page_bytes()
    }

    /// Empties a zone and takes it out of use. Drives that are wanting go before that, but where
    /// another lane waits: the zone is soon empty.
    pub(super) async fn empty_zone(
        self: &Rc<Self>,
        zone: &Rc<Zone<W>>,
        task: &super::Task,
        purpose: Use,
    ) -> Result<Emptied, PoolError> {
        let number = zone.shape.zone;
        // One that is being taken into use is not there yet.
        let changes = self.zone_changes();
        drop(changes.settle().await);
        changes.begin_emptying(number);
        let emptied = self.move_out(number, task, purpose).await;
        let is_ours = changes.end_emptying(number);
        // Others may have been promised its pages meanwhile.
        let can_go = is_ours && self.pledges().keeps_promises();
        if !matches!(emptied, Ok(Emptied::Done)) || !can_go {
            changes.keep(number);
            return emptied.map(|outcome| match outcome {
                Emptied::PutOff => Emptied::PutOff,
                Emptied::Done | Emptied::CalledOff => Emptied::CalledOff,
            });
        }
        // Nobody can call it off any more, and nobody has a page in it.
        self.store.forget_zone(number).await?;
        self.journal()
            .commit(vec![Record::ZoneOff { zone: number }])
            .await?;
        self.drives.zone_off(number);
        changes.remove(number);
        let lane = self.drives.lane();
        if purpose == Use::Lent {
            lane.registry.lend_zone(lane.index, number);
        }
        lane.registry.give_zone_back(lane.index, number);
        for member in zone.group.places() {
            member.rebuilt().borrow_mut().remove(&number);
        }
        self.world.reached("zone goes out of use");
        Ok(Emptied::Done)
    }

    /// Moves all pages out of a zone.
    async fn move_out(
        self: &Rc<Self>,
        zone: u32,
        task: &super::Task,
        purpose: Use,
    ) -> Result<Emptied, PoolError> {
        loop {
            let owned = self.owned_in(zone).await?;
            if !self.zone_changes().is_emptying(zone) {
                return Ok(Emptied::CalledOff);
            }
            let mut round = Round::default();
            for some in owned.chunks(PAGES_AT_ONCE) {
                let began = self.world.now();
                let had_room = self.move_some(some, &mut round).await?;
                if !had_room || !self.zone_changes().is_emptying(zone) {
                    return Ok(Emptied::CalledOff);
                }
                self.rest_after_moves(some.len() as u64, task, began)
                    .await?;
                if purpose == Use::Free && self.is_drive_wanting() {
                    self.wake_background();
                    return Ok(Emptied::PutOff);
                }
            }
            if self.space().used_in(zone) == 0 {
                return Ok(Emptied::Done);
            }
            if let Some(error) = round.failure {
                return Err(error);
            }
            if !round.moved_any {
                // Taken, and soon mapped or given back: by a write, or a deletion.
                self.world.sleep(PAUSE).await;
                self.go_on()?;
            }
            if !self.zone_changes().is_emptying(zone) {
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
        let bytes = pages * self.page_bytes();
        task.advance(bytes);
        // Hosts write and delete meanwhile.
        task.set_left(self.bytes_to_move());
        let rate = self.background().pace().rates().rebuild_bytes_per_s;
        self.rest(Bounds::at_most(rate), bytes, began).await;
        self.go_on()
    }

    /// Moves some pages at once. False when there is no room for one of them.
    async fn move_some(
        self: &Rc<Self>,
        some: &[Owned],
        round: &mut Round,
    ) -> Result<bool, PoolError> {
        let moves = some.iter().map(|(core, page, phys)| {
            let volume = Volume::new(Rc::clone(self), Rc::clone(core));
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
                    self.go_on()?;
                    let error = PoolError::new(PoolErrorKind::Failed, error.context);
                    round.failure.get_or_insert(error);
                }
            }
        }
        Ok(true)
    }

    fn say_no_room(&self) {
        self.world.reached("no room to empty a zone");
        if self.background().tells_no_room() {
            let text = "too few pages are free to empty a zone: add drives, or delete volumes or \
                        snapshots; the work then continues";
            self.drives.event(EventKind::Group, text.to_owned());
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
        let (map, state) = (core.map.borrow(), self.state());
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
        let pages = self.drives.zone_pages();
        let range = u64::from(zone) * pages..(u64::from(zone) + 1) * pages;
        let cores: Vec<_> = self.state().volumes.values().cloned().collect();
        let mut owned = Vec::new();
        let mut seen = 0;
        for core in cores {
            let mut next = 0;
            while let Some(index) = self.owned_of(&core, next, &range, &mut owned) {
                next = index + 1;
                seen += 1;
                if seen % CHUNKS_AT_ONCE == 0 {
                    self.world.sleep(REST).await;
                    self.go_on()?;
                }
            }
        }
        Ok(owned)
    }
}
