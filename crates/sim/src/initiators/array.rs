//! The array of one boot: pools, targets, and the data of tokens.
//!
//! Its shards, its directory, its copies over shards and its moves are those of the array that
//! serves. Each pool has a shard, and targets take turns. What is left of the server's work is done
//! here.

use super::tasks::Task;
use super::token::Token;
use super::unit::Unit;
use super::{Books, FILLER, Host};
use crate::answers::Asked;
use crate::config::patience;
use crate::control::{PORTAL, Start};
use crate::shards::Shards;
use array::control::ControlPlane;
use array::directory::{Directory, TargetEntry};
use array::offload::Offload;
use array::shard::ShardState;
use base::{Prng, Uuid};
use engine::pool::maintenance::health;
use engine::volume::CancelToken;
use engine::{Disk, Lane, PoolError, Provisioning, Volume, World};
use scsi::Target;
use scsi::offload::Limits;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

/// How often it is looked whether what was let go of is gone,
const REST: Duration = Duration::from_micros(50);

/// and how long.
const GONE_MAX: Duration = Duration::from_secs(1);

/// So few that hosts run out of them.
const LIMITS: Limits = Limits {
    total: 6,
    per_initiator: 3,
};

pub(super) struct Array {
    pub(super) asked: Asked,
    pub(super) world: SimWorld,
    pub(super) books: Rc<Books>,
    pub(super) pools: Vec<Lane<SimWorld>>,
    pub(super) targets: Vec<Rc<Target<SimWorld>>>,
    pub(super) shards: Shards,
    pub(super) control: Arc<ControlPlane<SimWorld>>,
    pub(super) directory: Arc<Directory>,
    pub(super) offload: Arc<Offload<SimWorld>>,
    /// By unit: unit attentions that a nexus may have been owed, at most.
    pub(super) owed: Vec<Cell<u64>>,
    pub(super) hosts: RefCell<Vec<Weak<Host>>>,
    /// The task management function that is at work at this moment.
    pub(super) function: Cell<Option<u64>>,
    /// Commands that were aborted by what is not answered yet.
    pub(super) aborted: RefCell<Vec<Rc<Task>>>,
}

/// A command that is not at the engine.
pub(super) struct Out(Rc<Task>);

fn offload(prng: &mut Prng) -> Arc<Offload<SimWorld>> {
    let mut secret = [0; 40];
    prng.fill(&mut secret);
    Arc::new(Offload::new(Some(secret), LIMITS))
}

impl Drop for Out {
    fn drop(&mut self) {
        self.0.is_out.set(false);
    }
}

impl Array {
    /// The array of a boot, before it has looked at what the one before has left.
    ///
    /// # Errors
    /// Its settings break a rule.
    pub(super) fn new(
        world: &SimWorld,
        books: &Rc<Books>,
        (pools, first): (Vec<Lane<SimWorld>>, bool),
    ) -> Result<Rc<Array>, String> {
        let (shards, homes) = Shards::one_each(world, &pools);
        let start = Start::new(world, &books.records, first);
        let site = start.settings((&books.specs, &books.media), &[PORTAL.into()])?;
        let offload = offload(&mut world.prng("tokens"));
        let control = start.control_plane((&shards, homes), Arc::clone(&offload), &site);
        let directory = Arc::clone(control.directory());
        let target = |number: usize| {
            let name = format!("iqn.2026-11.dev.ashlar:sim{number}");
            let shard = number % shards.states.len();
            directory.set_target(&name, TargetEntry::open(shard));
            shards.states[shard].target_or_new(&name)
        };
        let targets = (0..books.targets).map(target).collect();
        let failing = Rc::clone(books);
        let fail = move |what| {
            failing.failure.borrow_mut().get_or_insert(what);
        };
        let bound = patience(&health::Limits::default(), !books.victims.is_empty());
        Ok(Rc::new(Array {
            asked: Asked::new(world, bound, &books.answers, fail),
            world: world.clone(),
            books: Rc::clone(books),
            pools,
            targets,
            shards,
            control,
            directory,
            offload,
            owed: books.units.iter().map(|_| Cell::new(1)).collect(),
            hosts: RefCell::default(),
            function: Cell::new(None),
            aborted: RefCell::default(),
        }))
    }

    pub(super) fn fail(&self, what: impl Into<String>) {
        self.books.fail(&self.world, what);
    }

    pub(super) fn expect<T>(&self, what: &str, outcome: Result<T, PoolError>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(format!("{what}: {:?}: {error}", error.kind));
                None
            }
        }
    }

    /// The volume with this identity, and its pool: neither where it was nor where it is on
    /// its way to.
    pub(super) fn volume_of(&self, uuid: Uuid) -> Option<(usize, Volume<SimWorld>)> {
        let mut shards = self.shards.states.iter().enumerate();
        shards.find_map(|(number, state)| Some((number, state.volume_of(uuid)?.1)))
    }

    /// A volume of pool `pool`, as shard `from` reaches it.
    pub(super) fn as_seen_from(
        &self,
        from: usize,
        (pool, volume): (usize, Volume<SimWorld>),
    ) -> Disk<SimWorld> {
        self.shards.disk(from, (pool, &self.pools[pool]), volume)
    }

    /// The shard of the target with this name.
    pub(super) fn home_of(&self, target: &str) -> &Rc<ShardState<SimWorld>> {
        let shard = self.directory.target(target).map_or(0, |entry| entry.shard);
        &self.shards.states[shard]
    }

    /// The shard of a target.
    pub(super) fn home(&self, target: usize) -> usize {
        self.home_of(self.targets[target].name()).index()
    }

    /// The volume that keeps data for tokens.
    pub(super) fn hidden(&self, uuid: Uuid) -> Option<(usize, Volume<SimWorld>)> {
        let mut pools = self.pools.iter().enumerate();
        pools.find_map(|(number, pool)| Some((number, pool.volume_of(uuid)?)))
    }

    /// Tokens that were made of this volume are no more.
    pub(super) async fn revoke_volume(&self, unit: &Unit) {
        self.books.evictions.set(self.books.evictions.get() + 1);
        self.books.take_back(|token| token.unit == unit.number);
        self.offload.revoke_volume(unit.uuid.get()).await;
    }

    /// Tokens whose data is in this pool are no more. Whether there was one.
    async fn revoke_pool(&self, pool: usize, which: impl Fn(&Token) -> bool) -> bool {
        self.books.evictions.set(self.books.evictions.get() + 1);
        self.books.take_back(which);
        self.offload.revoke_pool(self.pools[pool].name()).await
    }

    /// Makes some room for a volume, and takes its time. Whether there was any to make.
    pub(super) async fn make_room(&self, volume: Uuid) -> bool {
        let Some((pool, _)) = self.volume_of(volume) else {
            return false;
        };
        let some = self.revoke_pool(pool, |_| false).await;
        self.books.rooms.set(self.books.rooms.get() + 1);
        let pause = Duration::from_nanos(self.books.clock.get() % 7 * 50_000);
        self.world.sleep(pause).await;
        some || self.shrink_filler(pool).await
    }

    async fn shrink_filler(&self, pool: usize) -> bool {
        let pool = &self.pools[pool];
        let Some(filler) = pool.volume(FILLER) else {
            return false;
        };
        let page = u64::from(pool.info().page_bytes);
        let left = filler.info().size_bytes.saturating_sub(page);
        if left == 0 {
            return false;
        }
        // Somebody else may have shrunk it meanwhile: that is as good.
        let _ = pool.shrink_volume(FILLER, left).await;
        true
    }

    /// A command is not at the engine, until what this gives is dropped.
    pub(super) fn leaves_the_engine(&self, cancel: &CancelToken) -> Option<Out> {
        let hosts = self.all_hosts();
        let of = |host: &Rc<Host>| {
            let tasks = host.tasks.borrow();
            tasks.iter().find(|task| task.is_of(cancel)).cloned()
        };
        let task = hosts.iter().find_map(of)?;
        task.is_out.set(true);
        task.ends_if_lost(self.books.tick());
        Some(Out(task))
    }

    pub(super) async fn revoke_all(&self) {
        for unit in &self.books.units {
            self.revoke_volume(unit).await;
        }
        // Of volumes that are no more.
        for pool in 0..self.pools.len() {
            self.revoke_pool(pool, |_| true).await;
        }
        self.check_kept().await;
    }

    /// What a start does with what another has left.
    pub(super) async fn forget_leftovers(&self) {
        let forgotten = self.offload.forget_leftovers(&self.shards.handles, None);
        if let Err(error) = forgotten.await {
            self.fail(format!("what was kept: {error}"));
        }
        for pool in &self.pools {
            let left = pool.hidden();
            if !left.is_empty() {
                self.fail(format!("kept for tokens of before the start: {left:?}"));
            }
        }
    }

    /// When there are no tokens, nothing is kept for them.
    pub(super) async fn check_kept(&self) {
        let began = self.world.now();
        let is_kept = || self.pools.iter().any(|pool| !pool.hidden().is_empty());
        while is_kept() && self.world.now().since(began) < GONE_MAX {
            if self.offload.tokens() > 0 {
                return;
            }
            self.world.sleep(REST).await;
        }
        for pool in &self.pools {
            let left = pool.hidden();
            if !left.is_empty() {
                self.fail(format!("kept for no token: {left:?}"));
            }
        }
    }

    /// After a start: the volume of a unit is there, and shown.
    pub(super) async fn find_volume(&self, number: usize) {
        let unit = &self.books.units[number];
        let mut found = self.pools.iter().filter_map(|pool| pool.volume(&unit.name));
        let uuid = match (found.next(), found.next()) {
            (Some(_), Some(_)) => return self.fail(format!("{} is in both pools", unit.name)),
            (Some(volume), None) => Some(volume.info().uuid),
            (None, _) => None,
        };
        match (uuid, unit.is_going.get()) {
            (Some(uuid), _) if uuid == unit.uuid.get() => unit.is_going.set(false),
            (Some(uuid), true) => unit.is_made_anew(uuid),
            (None, true) => self.make(unit).await,
            _ => return self.fail(format!("{} is {uuid:?} after a start", unit.name)),
        }
        self.show(unit);
    }

    async fn make(&self, unit: &Unit) {
        let made = self.pools[0].create_volume(unit.spec(Provisioning::Thin));
        if let Some(volume) = self.expect("making a volume anew", made.await) {
            unit.is_made_anew(volume.info().uuid);
        }
    }

    /// Nobody does anything: volumes that were deleted are made anew.
    pub(super) async fn make_again(&self) {
        for unit in self.books.units.iter().filter(|unit| unit.is_going.get()) {
            self.make(unit).await;
            self.show(unit);
            unit.turn();
        }
    }

    /// Shows a unit, with the reservations that were kept.
    pub(super) fn show(&self, unit: &Unit) {
        let Some(found) = self.volume_of(unit.uuid.get()) else {
            return self.fail(format!("{} is in no pool", unit.name));
        };
        let (target, home) = (&self.targets[unit.target], self.home(unit.target));
        let disk = self.as_seen_from(home, found);
        match self.shards.states[home].export(target.name(), unit.lun(), disk) {
            Ok(()) => {
                self.owe_all(unit.target);
                for host in self.all_hosts() {
                    host.is_due(unit.number);
                }
            }
            Err(error) => self.fail(format!("showing {}: {error}", unit.name)),
        }
    }

    /// Hides a unit. What was reserved and not to be kept is forgotten.
    pub(super) fn hide(&self, unit: &Unit) {
        self.targets[unit.target].unmap(unit.lun());
        self.owe_all(unit.target);
        let kept = unit.fence.borrow().after_a_restart();
        unit.fence.replace(kept);
    }

    /// The LUNs of a target are others: all of its units tell of it, and a new one of itself.
    fn owe_all(&self, target: usize) {
        for unit in self.books.units.iter().filter(|unit| unit.target == target) {
            self.owe(unit.number, 2);
        }
    }

    pub(super) fn all_hosts(&self) -> Vec<Rc<Host>> {
        self.hosts
            .borrow()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    pub(super) fn owe(&self, unit: usize, attentions: u64) {
        self.owed[unit].set(self.owed[unit].get() + attentions);
    }
}
