//! The array of one boot: pools, targets, and the data of tokens.
//!
//! Its shards, its control plane, its directory and its copies over shards are those of the array
//! that serves. Each pool has a shard. What is left of the server's work is done here: room is made
//! in pools that are full.

use super::tasks::Task;
use super::{Books, Host, filler_of};
use crate::answers::Asked;
use crate::config::patience;
use crate::control::{PORTAL, Start, settle};
use crate::shards::Shards;
use array::control::{Basis, ControlPlane};
use array::offload::Offload;
use base::{Prng, Uuid};
use engine::pool::maintenance::health;
use engine::volume::CancelToken;
use engine::{Lane, PoolError, Volume, World};
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
    pub(super) shards: Shards,
    pub(super) control: Arc<ControlPlane<SimWorld>>,
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
    /// The array of a boot. It looks at what the one before has left, and shows what is on record,
    /// as a server does before anybody logs in.
    ///
    /// # Errors
    /// Its settings break a rule, or what the control plane says.
    pub(super) async fn start(
        world: &SimWorld,
        books: &Rc<Books>,
        (pools, first): (Vec<Lane<SimWorld>>, bool),
    ) -> Result<Rc<Array>, String> {
        let (shards, homes) = Shards::one_each(world, &pools);
        let start = Start::new(world, &books.records, first);
        let found = start.found.clone();
        let site = start.settings((&books.specs, &books.media), &[PORTAL.into()])?;
        let offload = offload(&mut world.prng("tokens"));
        let control = start.control_plane((&shards, homes), Arc::clone(&offload), &site);
        let failing = Rc::clone(books);
        let fail = move |what| {
            failing.failure.borrow_mut().get_or_insert(what);
        };
        let bound = patience(&health::Limits::default(), !books.victims.is_empty());
        let array = Rc::new(Array {
            asked: Asked::new(world, bound, &books.answers, fail),
            world: world.clone(),
            books: Rc::clone(books),
            pools,
            shards,
            control,
            offload,
            owed: books.units.iter().map(|_| Cell::new(1)).collect(),
            hosts: RefCell::default(),
            function: Cell::new(None),
            aborted: RefCell::default(),
        });
        let settled = settle(&array.control).await;
        let settled = settled.map_err(|error| format!("settling: {:?}: {error}", error.kind))?;
        array.check_nothing_kept();
        let taken = settled.take_over(found, Basis::of(first)).await;
        taken.map_err(|error| format!("the start: {error}"))?;
        Ok(array)
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

    /// The volume that keeps data for tokens.
    pub(super) fn hidden(&self, uuid: Uuid) -> Option<(usize, Volume<SimWorld>)> {
        let mut pools = self.pools.iter().enumerate();
        pools.find_map(|(number, pool)| Some((number, pool.volume_of(uuid)?)))
    }

    /// Makes some room for a volume, and takes its time. Whether there was any to make. Revoking tokens
    /// is the array's own first step, too (`ControlPlane::keep_trash`). Then the array deletes a volume
    /// that is in the trash; here a filler shrinks instead, which gives room in small pieces and many
    /// times. So what the array does is not tried with hosts at work, but by a run of operations.
    pub(super) async fn make_room(&self, volume: Uuid) -> bool {
        let Some((pool, _)) = self.volume_of(volume) else {
            return false;
        };
        self.books.evict();
        let some = self.offload.revoke_pool(self.pools[pool].name()).await;
        self.books.rooms.set(self.books.rooms.get() + 1);
        let pause = Duration::from_nanos(self.books.clock.get() % 7 * 50_000);
        self.world.sleep(pause).await;
        some || self.shrink_filler(pool).await
    }

    async fn shrink_filler(&self, pool: usize) -> bool {
        let pool = &self.pools[pool];
        let filler = filler_of(pool.name());
        let Some(volume) = pool.volume(&filler) else {
            return false;
        };
        let page = u64::from(pool.info().page_bytes);
        let left = volume.info().size_bytes.saturating_sub(page);
        if left == 0 {
            return false;
        }
        // Somebody else may have shrunk it meanwhile: that is as good.
        let _ = pool.shrink_volume(&filler, left).await;
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

    /// No pool keeps data for tokens of before the start.
    fn check_nothing_kept(&self) {
        for pool in &self.pools {
            let left = pool.hidden();
            if !left.is_empty() {
                self.fail(format!("kept for tokens of before the start: {left:?}"));
            }
        }
    }

    /// All volumes that tokens were made of are deleted: there are no tokens.
    pub(super) async fn check_no_tokens(&self) {
        let left = self.offload.tokens();
        if left > 0 {
            self.fail(format!("{left} tokens outlive their volumes"));
        }
        self.check_kept().await;
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

    /// The LUNs of a target are others: all of its units tell of it, and a new one of itself.
    pub(super) fn owe_all(&self, target: usize) {
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
