//! The state that all handles on an open pool share.

use super::backing::BackingReaders;
use super::checkpoint_room::CheckpointRoom;
use super::claims::Claims;
use super::journal_cursor::JournalCursor;
use super::page_accounts::PageAccounts;
use super::ring_losses::RingLosses;
use super::zone_changes::ZoneChanges;
use super::{Background, LaneState, State, VolumeCore};
use crate::cache::ReadCache;
use crate::drives::Drives;
use crate::error::{PoolError, PoolErrorKind};
use crate::integrity::{Integrity, Watermark};
use crate::meta::page_map::{Chunk, Table};
use crate::meta::{Promises, Refs};
use crate::pages::Space;
use crate::ring::{Ring, RingError};
use crate::store::Store;
use crate::world::World;
use base::{PageIndex, PhysPage};
use rustc_hash::FxHashSet;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Blocks of sums kept in RAM: 64 MiB, the sums of 64 GiB.
const SUMS_BUDGET_BLOCKS: usize = 16 << 10;

/// Blocks of sums that each of so many lanes keeps in RAM while nobody says how many.
pub(crate) fn usual_checksum_blocks(lanes: u16) -> usize {
    SUMS_BUDGET_BLOCKS / usize::from(lanes)
}

/// How long pages are claimed before others have their turn. Nobody works on this pool
/// yet, and where many programs want the processor each turn is long in coming back.
const CLAIMS_AT_ONCE: Duration = Duration::from_millis(20);

impl<W: World> LaneState<W> {
    /// An open pool out of its parts, as recovered (with what its logs hold) or new.
    pub async fn assemble(
        drives: Rc<Drives<W>>,
        mut state: State,
        fresh: bool,
    ) -> Result<Rc<Self>, PoolError> {
        let world = drives.world().clone();
        let space = Rc::new(RefCell::new(claim_space(&drives, &mut state).await?));
        let lane = drives.lane();
        tell_lanes(&drives, &state)?;
        // Above all stamps of earlier openings, also of entries that never became
        // durable: sums know of them.
        let stamps = Rc::new(Cell::new(drives.epoch() << 32));
        let (logs, recovered) = rings(&world, &drives, &stamps, fresh).await?;
        let budget = usual_checksum_blocks(lane.registry.lanes());
        let integrity = Integrity::new(Rc::clone(&drives), budget, Watermark::new(stamps));
        let store = Store::new(
            Rc::clone(&drives),
            integrity,
            logs,
            Rc::clone(&space),
            ReadCache::new(0),
        );
        stop_rings_with(&drives, &store);
        if let Some((log, intents)) = recovered {
            store.replay(log, intents).await?;
        }
        state.rebuilt.extend(drives.copied_zones());
        state.promises = promises_of(&state, drives.page_bytes());
        let zone_changes = ZoneChanges::new(Rc::clone(&space));
        Ok(Rc::new(LaneState {
            world,
            drives,
            store: Rc::new(store),
            journal_cursor: JournalCursor::default(),
            pages: PageAccounts::new(state, space),
            background: Background::default(),
            administration: Default::default(),
            backing_readers: BackingReaders::default(),
            checkpoint_room: CheckpointRoom::default(),
            zone_changes,
        }))
    }

    /// Ends when no I/O of a volume is under way, while none begins any more: the logs are
    /// emptied for good only then.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub async fn io_ended(&self) -> Result<(), PoolError> {
        if self.world.planted("closed while writes are under way") {
            return Ok(());
        }
        let is_busy = || {
            let state = self.state();
            let mut cores = state.volumes.values();
            cores.any(|core| core.live.under_way() > 0)
        };
        while is_busy() {
            self.check()?;
            self.world.sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }
}

/// Tells the other lanes of this one's drives, groups and zones.
///
/// # Errors
/// `Corrupt` when another lane has one of its zones.
fn tell_lanes<W: World>(drives: &Drives<W>, state: &State) -> Result<(), PoolError> {
    drives.tell_standings();
    drives.tell_groups();
    let lane = drives.lane();
    let zones = state.zones.keys().copied();
    lane.registry.open(lane.index, zones).map_err(|taken| {
        let (lane, name) = (lane.index, drives.name());
        let context = format!("metadata of lane {lane} of pool '{name}': {taken}");
        PoolError::new(PoolErrorKind::Corrupt, context)
    })
}

/// What is promised to all volumes together.
fn promises_of(state: &State, page_bytes: u64) -> Promises {
    let cores = state.volumes.values();
    Promises::new(page_bytes, cores.map(|core| core.promise(page_bytes)))
}

/// When the pool stops, so do both logs.
fn stop_rings_with<W: World>(drives: &Drives<W>, store: &Store<W>) {
    for ring in [&store.log, &store.intents] {
        let ring = Rc::downgrade(ring);
        drives.on_stop(move |reason| {
            if let Some(ring) = ring.upgrade() {
                ring.die(reason);
            }
        });
    }
}

type Logs<W> = (Rc<Ring<W>>, Rc<Ring<W>>);
type RecoveredLogs = (Vec<crate::ring::Recovered>, Vec<crate::ring::Recovered>);

async fn rings<W: World>(
    world: &W,
    drives: &Rc<Drives<W>>,
    stamps: &Rc<Cell<u64>>,
    fresh: bool,
) -> Result<(Logs<W>, Option<RecoveredLogs>), PoolError> {
    let (log, intents) = drives.identity().ring_specs();
    let stamps = || Rc::clone(stamps);
    let losses = || -> Rc<dyn crate::ring::Losses<W>> { Rc::new(RingLosses(Rc::clone(drives))) };
    let members = || drives.log_members();
    let failed = |error: RingError| {
        let context = format!("pool '{}': {}", drives.name(), error.context);
        PoolError::new(PoolErrorKind::Drive, context)
    };
    if fresh {
        let log = Ring::format(world.clone(), log, members(), stamps(), losses())
            .await
            .map_err(failed)?;
        let intents = Ring::format(world.clone(), intents, members(), stamps(), losses())
            .await
            .map_err(failed)?;
        return Ok(((log, intents), None));
    }
    let (log, in_log) = Ring::recover(world.clone(), log, members(), stamps(), losses())
        .await
        .map_err(failed)?;
    let (intents, in_intents) =
        Ring::recover(world.clone(), intents, members(), stamps(), losses())
            .await
            .map_err(failed)?;
    Ok(((log, intents), Some((in_log, in_intents))))
}

fn corrupt<W: World>(drives: &Drives<W>, what: String) -> PoolError {
    let context = format!("metadata of pool '{}': {what}", drives.name());
    PoolError::new(PoolErrorKind::Corrupt, context)
}

/// The zones in use, and the pages that volumes have in them.
async fn claim_space<W: World>(drives: &Drives<W>, state: &mut State) -> Result<Space, PoolError> {
    let space = zones_in_use(drives, state)?;
    // What is free, and who holds what, follows from the maps of those that are left.
    while state.give_up_some() {}
    state.take_freed();
    let (space, refs) = claim_maps(drives, state, space).await?;
    assert!(
        state.refs.owned == refs.owned,
        "maps of {:?} were counted as {:?}",
        refs.owned,
        state.refs.owned
    );
    let space = RefCell::new(space);
    let counted = state.count_backings(
        refs,
        |page| space.borrow().is_used(page),
        |phys, refs| claim(&mut space.borrow_mut(), refs, phys),
    );
    counted.map_err(|phys| {
        let what = format!("page {phys} backs another, and is not there");
        corrupt(drives, what)
    })?;
    Ok(space.into_inner())
}

/// The zones in use, all of whose pages are free.
fn zones_in_use<W: World>(drives: &Drives<W>, state: &State) -> Result<Space, PoolError> {
    let mut space = Space::new(drives.numbers().clone());
    for (number, zone) in &state.zones {
        let of = (zone.level, zone.incarnation);
        let zone = drives
            .take_up_zone(*number, of, state.moved.get(number))
            .map_err(|what| corrupt(drives, what))?;
        let pages = zone.pages(drives.page_bytes());
        if !space.has_numbers(*number, pages) {
            let what = format!("zone {number} has {pages} pages, and no numbers for them");
            return Err(corrupt(drives, what));
        }
        space.add_zone(*number, zone.group.index, pages);
    }
    Ok(space)
}

/// Claims the pages of all maps, and counts who holds them.
///
/// # Errors
/// `Corrupt` when a page is not there.
async fn claim_maps<W: World>(
    drives: &Drives<W>,
    state: &State,
    mut space: Space,
) -> Result<(Space, Refs), PoolError> {
    let world = drives.world();
    let mut began = world.now();
    let mut claims = Claims::of(&space);
    let mut seen: FxHashSet<*const Chunk> = FxHashSet::default();
    let (mut refs, mut places) = (Refs::default(), 0);
    let mut tables: FxHashSet<*const Table> = FxHashSet::default();
    let missing = |phys| corrupt(drives, not_there(state, phys));
    for core in state.volumes.values() {
        let map = core.map.borrow().view();
        for table in map.tables() {
            match tables.insert(Rc::as_ptr(table)) {
                true => places += table.places(),
                false => refs.owned.sharers += 1,
            }
        }
        let mut next = 0;
        while let Some((index, chunk)) = map.chunk_from(next) {
            next = index + 1;
            // Several maps have it, and it holds its pages once.
            if !seen.insert(Rc::as_ptr(chunk)) {
                continue;
            }
            claims.claim(chunk.entries(), &mut refs).map_err(missing)?;
            if world.now().since(began) > CLAIMS_AT_ONCE {
                world.sleep(Duration::from_micros(1)).await;
                began = world.now();
            }
        }
    }
    claims.mark(&mut space).map_err(missing)?;
    refs.owned.sharers += places - seen.len() as u64;
    Ok((space, refs))
}

/// That a page which a map has is in no zone.
fn not_there(state: &State, phys: PhysPage) -> String {
    let of = |core: &Rc<VolumeCore>| {
        let map = core.map.borrow().view();
        let run = map.runs().find(|run| run.has(phys))?;
        let page = PageIndex(run.page.0 + (phys.0 - run.phys.0));
        Some(format!("page {page} of volume '{}' lies", core.name))
    };
    let page = state.volumes.values().find_map(of);
    let page = page.unwrap_or_else(|| "a page lies".to_owned());
    format!("{page} at {phys}, which is not there")
}

/// Claims a page; one that somebody has already gets another holder. False when it is not there.
fn claim(space: &mut Space, refs: &mut Refs, page: PhysPage) -> bool {
    if space.claim(page) {
        return true;
    }
    let is_used = space.is_used(page);
    if is_used {
        refs.add(page);
    }
    is_used
}
