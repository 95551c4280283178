//! The state of a shard: its world, pools, exported targets and sessions.

use super::ledger::Ledger;
use super::remote_volume::RemoteVolume;
use super::session::{Closing, Session, SessionInfo};
use super::space_reclaim::SpaceReclaim;
use super::watch::Watch;
use super::{ShardGone, ShardHandle};
use crate::directory::{Directory, canonical};
use crate::wake::{Wake, in_time};
use engine::World;
use engine::qos::Account;
use engine::volume::Stage;
use engine::{Disk, Lane, PoolError, PoolErrorKind, Provisioning, Volume, VolumeInfo};
use scsi::offload::Holder;
use scsi::{LogicalUnit, Target};
use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Bytes read from a socket at once.
const RECEIVE_BYTES: usize = 256 << 10;

/// What a capture counts, by volume. All shards share it.
pub type Watches = Arc<BTreeMap<base::Uuid, Arc<Watch>>>;

/// Commands in flight have this long to end when the shard stops.
pub const DRAIN_MAX: Duration = Duration::from_secs(30);

/// And pools so long to be closed after that.
pub const CLOSE_MAX: Duration = Duration::from_secs(45);

/// What went wrong with an export, as far as callers act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportErrorKind {
    /// The LUN is taken.
    Exists,
    /// The LUN is above [`scsi::LUN_MAX`].
    Invalid,
    /// No such target or LUN.
    NotFound,
}

/// A failed export, naming target and LUN.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{context}")]
pub struct ExportError {
    /// What callers match on.
    pub kind: ExportErrorKind,
    /// What failed and what can be done, for people; never matched on.
    pub context: String,
}

/// A lane of a pool that is open here.
struct OpenLane<W: World> {
    pool: Lane<W>,
    /// Number of this opening: no other of this shard has it.
    opening: u64,
    /// What keeps data for tokens in it, once there was something.
    holder: OnceCell<Rc<Holder<W>>>,
}

/// How the units of a target are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitTraits {
    /// How long initiators are told that physical blocks are, where that is not what they are.
    pub physical_block_bytes: Option<u32>,
    /// Whether initiators may erase thin units with SANITIZE.
    pub may_sanitize: bool,
    /// Whether initiators may change mode pages and reset the target, which affects the others.
    pub may_affect_others: bool,
}

impl UnitTraits {
    /// These, with the permissions only that `other` gives, too.
    pub fn both(self, other: UnitTraits) -> UnitTraits {
        UnitTraits {
            may_sanitize: self.may_sanitize && other.may_sanitize,
            may_affect_others: self.may_affect_others && other.may_affect_others,
            ..self
        }
    }
}

/// Everything on a shard. Lives on the shard's thread.
pub struct ShardState<W: World> {
    index: usize,
    world: W,
    /// By name and lane.
    pools: RefCell<BTreeMap<(String, u16), OpenLane<W>>>,
    /// How many there were.
    openings: Cell<u64>,
    targets: RefCell<BTreeMap<String, Rc<Target<W>>>>,
    sessions: RefCell<BTreeMap<u16, Rc<Session<W>>>>,
    /// Targets that a cold reset is under way for.
    resetting: RefCell<BTreeSet<String>>,
    /// What sessions did that have ended.
    pub ledger: RefCell<Ledger>,
    /// What a capture counts, by volume, while one is under way.
    watches: RefCell<Option<Watches>>,
    /// Space to receive into, shared by the connections: each uses it for the
    /// length of one read.
    receive_space: RefCell<Box<[u8]>>,
    /// Who makes room in pools that are full, once there is somebody.
    space_reclaim: OnceCell<Arc<SpaceReclaim>>,
    stopping: Cell<bool>,
    /// Its sessions have ended, or had their time for that.
    drained: Cell<bool>,
    /// Its pools are being closed, or are.
    closing: Cell<bool>,
    /// Lanes that are being opened here.
    lanes_opening: Cell<usize>,
    no_lane_opens: Wake,
    closed: Wake,
}

impl<W: World> ShardState<W> {
    pub fn new(index: usize, world: W) -> Rc<Self> {
        Rc::new(ShardState {
            index,
            world,
            pools: RefCell::default(),
            openings: Cell::new(0),
            targets: RefCell::default(),
            sessions: RefCell::default(),
            resetting: RefCell::default(),
            ledger: RefCell::default(),
            watches: RefCell::default(),
            receive_space: RefCell::new(vec![0; RECEIVE_BYTES].into_boxed_slice()),
            space_reclaim: OnceCell::new(),
            stopping: Cell::new(false),
            drained: Cell::new(false),
            closing: Cell::new(false),
            lanes_opening: Cell::new(0),
            no_lane_opens: Wake::default(),
            closed: Wake::default(),
        })
    }

    /// Index of the shard.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The shard's world: clock, ring, buffers. Drives and pools are opened with
    /// it.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// From now on `reclaim` is whom volumes ask for room; for good.
    pub fn set_space_reclaim(&self, reclaim: Arc<SpaceReclaim>) {
        self.space_reclaim.get_or_init(|| reclaim);
    }

    /// Has room made for a volume that was refused a page. Whether there is some now.
    pub async fn make_room(&self, volume: base::Uuid) -> bool {
        match self.space_reclaim.get() {
            Some(reclaim) => reclaim.ask(&self.world, volume).await,
            None => false,
        }
    }

    /// The right to open a lane here, until it is dropped: [`ShardState::close`] waits for it.
    /// Nothing once the shard is to stop.
    pub(crate) fn begin_opening(&self) -> Option<LaneOpening<'_, W>> {
        if self.stopping.get() {
            return None;
        }
        self.lanes_opening.set(self.lanes_opening.get() + 1);
        Some(LaneOpening { state: self })
    }

    /// Homes an open pool, or a lane of one, here.
    pub fn add_pool(&self, pool: Lane<W>) {
        let key = (pool.info().name, pool.lane());
        let opening = self.openings.get() + 1;
        self.openings.set(opening);
        let open = OpenLane {
            pool,
            opening,
            holder: OnceCell::new(),
        };
        self.pools.borrow_mut().insert(key, open);
    }

    /// Takes a lane of a pool away that nobody has used yet.
    pub fn take_pool(&self, name: &str, lane: u16) -> Option<Lane<W>> {
        let taken = self.pools.borrow_mut().remove(&(name.to_owned(), lane));
        taken.map(|open| open.pool)
    }

    /// A lane of the pool called `name`.
    pub fn lane(&self, name: &str, lane: u16) -> Option<Lane<W>> {
        let pools = self.pools.borrow();
        let open = pools.get(&(name.to_owned(), lane))?;
        Some(open.pool.clone())
    }

    /// The first lane of the pool called `name`.
    pub fn pool(&self, name: &str) -> Option<Lane<W>> {
        self.lane(name, 0)
    }

    /// The volume of this shard with this identity, and its lane.
    pub fn volume_of(&self, uuid: base::Uuid) -> Option<(Lane<W>, Volume<W>)> {
        let pools = self.pools.borrow();
        let mut found = pools.values().filter_map(|OpenLane { pool, .. }| {
            let volume = pool.volume_of(uuid)?;
            // Neither where it was nor where it is on its way to.
            let transit = volume.properties().transit;
            let coming = transit.is_some_and(|transit| transit.stage == Stage::Incoming);
            let is_here = volume.moved().is_none() && !coming;
            is_here.then(|| (pool.clone(), volume))
        });
        found.next()
    }

    /// What keeps data for tokens in a lane of this shard. It goes with the lane: of one that is
    /// open here no more, nothing is left.
    pub fn holder(&self, pool: &Lane<W>) -> Rc<Holder<W>> {
        let new = || Rc::new(Holder::new(pool.clone()));
        let pools = self.pools.borrow();
        match pools.get(&(pool.info().name, pool.lane())) {
            Some(open) => Rc::clone(open.holder.get_or_init(new)),
            None => new(),
        }
    }

    /// All lanes of pools that are here, by name and lane.
    pub fn pools(&self) -> Vec<Lane<W>> {
        let pools = self.pools.borrow();
        pools.values().map(|open| open.pool.clone()).collect()
    }

    /// The same, each with the number of its opening. A lane that is made or opened again under
    /// its name has another number.
    pub fn openings(&self) -> Vec<(u64, Lane<W>)> {
        let pools = self.pools.borrow();
        let opening = |open: &OpenLane<W>| (open.opening, open.pool.clone());
        pools.values().map(opening).collect()
    }

    /// Makes sure that there is a target called `target`, without LUNs if new.
    pub fn add_target(&self, target: &str) {
        self.target_or_new(target);
    }

    /// Shows `volume` at `lun` of `target`, which is made if it is not there.
    /// Connected initiators are told by unit attention.
    ///
    /// # Errors
    /// The LUN is taken or too large.
    pub fn export(
        &self,
        target: &str,
        lun: u16,
        volume: impl Into<Disk<W>>,
    ) -> Result<(), ExportError> {
        self.export_with(target, lun, volume, UnitTraits::default())
    }

    /// The same, for units that have `traits`.
    ///
    /// # Errors
    /// As [`ShardState::export`].
    pub fn export_with(
        &self,
        target: &str,
        lun: u16,
        volume: impl Into<Disk<W>>,
        traits: UnitTraits,
    ) -> Result<(), ExportError> {
        let failed = |kind, why: String| ExportError {
            kind,
            context: format!("target {target}, LUN {lun}: {why}"),
        };
        if lun > scsi::LUN_MAX {
            let why = format!("a LUN is a number from 0 to {}", scsi::LUN_MAX);
            return Err(failed(ExportErrorKind::Invalid, why));
        }
        let unit = LogicalUnit::new(volume);
        let unit = unit.map_err(|error| failed(ExportErrorKind::Invalid, error.to_string()))?;
        if let Some(bytes) = traits.physical_block_bytes {
            unit.set_physical_block(bytes);
        }
        unit.set_may_sanitize(traits.may_sanitize);
        unit.set_may_affect_others(traits.may_affect_others);
        if !self.target_or_new(target).map(lun, unit) {
            let why = "there is a volume at this LUN already; remove it or choose another LUN";
            return Err(failed(ExportErrorKind::Exists, why.to_owned()));
        }
        self.watch_again(target);
        Ok(())
    }

    /// Has commands to `lun` of `target` keep to the limits of `account`.
    pub fn limit(&self, target: &str, lun: u16, account: Arc<Account>) {
        let unit = self.target(target).and_then(|found| found.unit(lun));
        if let Some(unit) = unit {
            unit.set_account(account);
        }
    }

    /// Has the units of `target` permit what `traits` permit, from the next command on.
    pub fn permit(&self, target: &str, traits: UnitTraits) {
        let target = self.target(target);
        let luns = target.iter().flat_map(|found| found.luns());
        let units = luns.filter_map(|lun| target.as_ref().and_then(|found| found.unit(lun)));
        for unit in units {
            unit.set_may_sanitize(traits.may_sanitize);
            unit.set_may_affect_others(traits.may_affect_others);
        }
    }

    /// Takes the volume at `lun` of `target` away; ends when none of its commands is under way and
    /// nothing erases it.
    ///
    /// # Errors
    /// There is none.
    pub async fn unexport(&self, target: &str, lun: u16) -> Result<(), ExportError> {
        match self.target(target).and_then(|found| found.unmap(lun)) {
            Some(unit) => {
                self.watch_again(target);
                unit.settled().await;
                Ok(())
            }
            None => Err(ExportError {
                kind: ExportErrorKind::NotFound,
                context: format!("target {target} has no LUN {lun}"),
            }),
        }
    }

    /// Closes all sessions of `target` and forgets it. The caller has taken it
    /// out of the directory before, so that nobody logs in again.
    ///
    /// # Errors
    /// There is no such target.
    pub async fn remove_target(&self, target: &str) -> Result<(), ExportError> {
        let removed = self.targets.borrow_mut().remove(&canonical(target));
        let Some(removed) = removed else {
            let context = format!("there is no target {target}");
            return Err(ExportError {
                kind: ExportErrorKind::NotFound,
                context,
            });
        };
        self.close_sessions(Closing::Logout, |session| {
            session.target() == removed.name()
        })
        .await;
        for unit in removed
            .luns()
            .into_iter()
            .filter_map(|lun| removed.unmap(lun))
        {
            unit.settled().await;
        }
        Ok(())
    }

    /// The LUNs of `target` with the volumes behind them.
    pub fn luns(&self, target: &str) -> Vec<(u16, Disk<W>)> {
        let Some(target) = self.target(target) else {
            return Vec::new();
        };
        let unit = |lun| target.unit(lun).map(|unit| (lun, unit.volume()));
        target.luns().into_iter().filter_map(unit).collect()
    }

    /// Tells connected initiators that the volume with this identity has a new
    /// size. To be called after [`Lane::resize_volume`].
    pub fn volume_resized(&self, volume: base::Uuid, size_bytes: u64) {
        for target in self.targets.borrow().values() {
            let units = target.luns().into_iter().filter_map(|lun| target.unit(lun));
            for unit in units.filter(|unit| unit.uuid() == volume) {
                // One of this shard knows its size.
                if let Disk::There(volume) = unit.volume() {
                    volume.resized(size_bytes);
                }
            }
            target.resized(volume);
        }
    }

    /// Tells connected initiators that the volume with this identity takes space in
    /// another way. To be called after [`Lane::change_volume`].
    pub fn volume_converted(&self, volume: base::Uuid, provisioning: Provisioning) {
        for target in self.targets.borrow().values() {
            let units = target.luns().into_iter().filter_map(|lun| target.unit(lun));
            for unit in units.filter(|unit| unit.uuid() == volume) {
                if let Disk::There(volume) = unit.volume() {
                    volume.converted(provisioning);
                }
            }
            target.converted(volume);
        }
    }

    /// Has LUNs of a volume that has moved show it where it is now: in a lane of a pool at
    /// `home`. Only initiators that could see a difference are told.
    pub fn volume_moved(
        &self,
        home: &ShardHandle<W>,
        (pool, lane): &(String, u16),
        info: &VolumeInfo,
    ) {
        let there = || -> Option<Disk<W>> {
            if home.index() == self.index {
                return Some(self.lane(pool, *lane)?.volume_of(info.uuid)?.into());
            }
            let place = (pool.clone(), *lane);
            let remote = RemoteVolume::new(home.clone(), place, info.clone());
            Some(Disk::There(Rc::new(remote)))
        };
        if self.world.planted("LUN shows a volume where it was") {
            return;
        }
        for target in self.targets.borrow().values() {
            let units = target.luns().into_iter().filter_map(|lun| target.unit(lun));
            let mut differs = false;
            for unit in units.filter(|unit| unit.uuid() == info.uuid) {
                differs |= there().is_some_and(|there| unit.relocate(there));
            }
            if differs {
                target.converted(info.uuid);
            }
        }
    }

    /// Tells connected initiators that the pool of these volumes is above its soft
    /// threshold.
    pub fn space_runs_out(&self, volumes: &BTreeSet<base::Uuid>) {
        for target in self.targets.borrow().values() {
            target.space_runs_out(volumes);
        }
    }

    /// The sessions on this shard, by TSIH.
    pub fn sessions(&self) -> Vec<SessionInfo> {
        self.sessions
            .borrow()
            .values()
            .map(|session| session.info())
            .collect()
    }

    /// Asks the initiator of the session with this TSIH to log out, and closes the session
    /// once its commands have ended; `false` when there is none. The initiator may log in again.
    pub async fn drop_session(&self, tsih: u16) -> bool {
        let found = self.sessions.borrow().get(&tsih).cloned();
        match found {
            Some(session) => {
                session.close(Closing::Logout).await;
                true
            }
            None => false,
        }
    }

    /// Closes the sessions that `directory` would not admit any more.
    pub async fn close_not_admitted(&self, directory: &Directory) {
        let closed = self.close_sessions(Closing::Logout, |session| {
            !directory.admits(session.admission(), session.target())
        });
        closed.await;
    }

    /// Whether it takes no more sessions.
    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Ends when [`ShardState::close`] has ended.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Closes all sessions once their commands have ended, and takes no more.
    pub async fn end_sessions(&self) {
        self.stopping.set(true);
        if self.drained.get() {
            return;
        }
        let drained = self.close_sessions(Closing::Logout, |_| true);
        if in_time(&self.world, DRAIN_MAX, drained).await.is_none() {
            tracing::error!("commands that do not end are left behind");
        }
        self.drained.set(true);
    }

    /// Closes all sessions, then all pools, and waits for those that are being opened. One that takes
    /// too long, for it waits for a drive, is left as it is: that is as a crash for it, and it
    /// recovers at the next start.
    pub async fn close(&self) -> Vec<(String, PoolError)> {
        self.end_sessions().await;
        self.closing.set(true);
        let open = self.pools.take().into_iter();
        // Without what keeps data for tokens.
        let pools: Vec<_> = open.map(|((name, _), open)| (name, open.pool)).collect();
        let mut failures = Vec::new();
        let closing = pools.iter().map(|(_, pool)| close_in_time(pool));
        let closing = futures_util::future::join_all(closing);
        let (closed, ()) = futures_util::future::join(closing, self.openings_end()).await;
        for ((name, _), outcome) in pools.iter().zip(closed) {
            if let Err(error) = outcome {
                failures.push((name.clone(), error));
            }
        }
        self.closed.notify();
        failures
    }

    /// Ends when no lane is being opened here, or had its time for that.
    async fn openings_end(&self) {
        let end = async {
            while self.lanes_opening.get() > 0 {
                self.no_lane_opens.notified().await;
            }
        };
        if self.lanes_opening.get() > 0 && in_time(&self.world, CLOSE_MAX, end).await.is_none() {
            tracing::error!("a lane that is being opened is left behind: a drive may hang");
        }
    }

    pub fn target(&self, name: &str) -> Option<Rc<Target<W>>> {
        self.targets.borrow().get(&canonical(name)).cloned()
    }

    /// The target called `name`, made without LUNs if it is not there.
    pub fn target_or_new(&self, name: &str) -> Rc<Target<W>> {
        let name = canonical(name);
        let mut targets = self.targets.borrow_mut();
        let target = targets
            .entry(name)
            .or_insert_with_key(|name| Target::new(name, self.world.clone()));
        Rc::clone(target)
    }

    pub fn add_session(&self, session: Rc<Session<W>>) {
        if let Some(watches) = self.watches.borrow().as_ref() {
            session.watch(watches);
        }
        self.sessions.borrow_mut().insert(session.tsih(), session);
    }

    pub fn remove_session(&self, session: &Session<W>) {
        // In one step: nobody sees it both here and there, or nowhere.
        if self.sessions.borrow_mut().remove(&session.tsih()).is_some() {
            let mut ledger = self.ledger.borrow_mut();
            ledger.keep(session.initiator(), &session.done());
        }
    }

    /// Has all sessions, also those that come, count for a capture; for none without `watches`.
    pub fn watch(&self, watches: Option<Watches>) {
        let none = Watches::default();
        let volumes = watches.as_ref().unwrap_or(&none);
        for session in self.sessions.borrow().values() {
            session.watch(volumes);
        }
        self.watches.replace(watches);
    }

    /// The LUNs of a target are others than before: what comes to one now must not count for the
    /// volume that was there.
    fn watch_again(&self, target: &str) {
        let watches = self.watches.borrow();
        let Some(watches) = watches.as_ref() else {
            return;
        };
        let target = canonical(target);
        for session in self.sessions.borrow().values() {
            if canonical(session.target()) == target {
                session.watch(watches);
            }
        }
    }

    /// The sessions that are connected.
    pub fn connected(&self) -> Vec<Rc<Session<W>>> {
        self.sessions.borrow().values().cloned().collect()
    }

    /// The right to end the sessions of a target by a cold reset, until it is dropped; nothing while
    /// another has it.
    pub fn begin_reset(&self, target: &str) -> Option<Resetting<'_>> {
        let target = target.to_owned();
        let is_first = self.resetting.borrow_mut().insert(target.clone());
        // Made only then: what is dropped takes the target out.
        is_first.then(|| Resetting {
            all: &self.resetting,
            target,
        })
    }

    pub fn sessions_of(&self, target: &str) -> Vec<Rc<Session<W>>> {
        let sessions = self.sessions.borrow();
        sessions
            .values()
            .filter(|session| session.target() == target)
            .cloned()
            .collect()
    }

    /// Closes the sessions that `which` names, and says how many there were.
    pub async fn close_sessions(&self, how: Closing, which: impl Fn(&Session<W>) -> bool) -> usize {
        let sessions: Vec<_> = self
            .sessions
            .borrow()
            .values()
            .filter(|session| which(session))
            .cloned()
            .collect();
        futures_util::future::join_all(sessions.iter().map(|session| session.close(how))).await;
        sessions.len()
    }

    pub fn receive_space(&self) -> RefMut<'_, Box<[u8]>> {
        self.receive_space.borrow_mut()
    }
}

/// A lane that is being opened.
pub(crate) struct LaneOpening<'a, W: World> {
    state: &'a ShardState<W>,
}

impl<W: World> LaneOpening<'_, W> {
    /// Homes the lane on the shard. One that the shard's closing has missed is closed at once:
    /// nobody else would.
    ///
    /// # Errors
    /// The shard has stopped.
    pub(crate) async fn home(self, lane: Lane<W>) -> Result<(), ShardGone> {
        if !self.state.closing.get() {
            self.state.add_pool(lane);
            return Ok(());
        }
        if let Err(error) = close_in_time(&lane).await {
            tracing::warn!("lane {} of pool {}: {error}", lane.lane(), lane.name());
        }
        lane.release();
        Err(ShardGone(self.state.index))
    }
}

impl<W: World> Drop for LaneOpening<'_, W> {
    fn drop(&mut self) {
        let left = self.state.lanes_opening.get() - 1;
        self.state.lanes_opening.set(left);
        if left == 0 {
            self.state.no_lane_opens.notify();
        }
    }
}

/// A cold reset that is under way.
pub struct Resetting<'a> {
    all: &'a RefCell<BTreeSet<String>>,
    target: String,
}

impl Drop for Resetting<'_> {
    fn drop(&mut self) {
        self.all.borrow_mut().remove(&self.target);
    }
}

/// Closes a lane. A drive that hangs does not hold up the others for ever: the lane recovers at its
/// next opening then.
///
/// # Errors
/// What the lane says, or that it took too long.
pub(crate) async fn close_in_time<W: World>(pool: &Lane<W>) -> Result<(), PoolError> {
    let closed = in_time(pool.world(), CLOSE_MAX, pool.close()).await;
    closed.unwrap_or_else(|| {
        let context = format!("it is not closed after {CLOSE_MAX:?}: a drive may hang");
        tracing::error!("pool {}: {context}", pool.name());
        Err(PoolError {
            kind: PoolErrorKind::Failed,
            context,
        })
    })
}
