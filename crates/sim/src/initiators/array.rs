//! The array of one boot: pools, targets, and the data of tokens.
//!
//! Its shards, its control plane, its directory, its front and its copies over shards are those of the
//! array that serves. Each pool has a shard. What is left of the server's work is done here: room is
//! made in pools that are full.

use super::unit::Within;
use super::{Books, Host, filler_of};
use crate::answers::Asked;
use crate::config::patience;
use crate::control::{PORTAL, Start, settle};
use crate::history::value_of;
use crate::shards::Shards;
use crate::wire::front::Front;
use crate::wire::path::Path;
use array::connection::Timeouts;
use array::control::{Basis, ControlPlane};
use array::front::FrontLimits;
use array::memory::BUDGET_BYTES_MIN;
use array::offload::Offload;
use array::shard::space_reclaim::SpaceReclaim;
use base::{Prng, SECTOR_BYTES, Uuid, VolumeOffset};
use engine::pool::maintenance::health;
use engine::{Lane, PoolError, Volume, World};
use scsi::offload::Limits;
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

/// How often it is looked whether what was let go of is gone,
const REST: Duration = Duration::from_micros(50);

/// and how long.
const GONE_MAX: Duration = Duration::from_secs(1);

/// Hosts that say nothing are left alone for long: here they mean no harm.
const TIMEOUTS: Timeouts = Timeouts {
    silence: Duration::from_secs(5),
    logout: Duration::from_millis(20),
    data: Duration::from_secs(5),
};

/// Making room takes longer than a lost session may, one time in so many.
const SLOW_ROOM_ONE_OF: u64 = 12;

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
    pub(super) front: Front,
    pub(super) hosts: RefCell<Vec<Weak<Host>>>,
    /// How room is made.
    rooms: RefCell<Prng>,
}

/// The iSCSI name of a target.
pub(super) fn target_name(target: usize) -> String {
    format!("iqn.2026-11.dev.ashlar:sim{target}")
}

/// Each host at each target, and an old session beside the one that reinstates it.
fn limits(books: &Books, prng: &mut Prng) -> FrontLimits {
    let ways = books.targets * books.hosts as usize;
    let iscsi = iscsi::login::Limits {
        queue_depth: *prng.pick(&[2, 4, 16, 128]),
        ..Default::default()
    };
    FrontLimits {
        sessions_max: 2 * ways,
        half_open_max: 2 * ways,
        memory_bytes: BUDGET_BYTES_MIN,
        timeouts: TIMEOUTS,
        iscsi,
        ..FrontLimits::default()
    }
}

fn offload(prng: &mut Prng) -> Arc<Offload<SimWorld>> {
    let mut secret = [0; 40];
    prng.fill(&mut secret);
    Arc::new(Offload::new(Some(secret), LIMITS))
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
        let limits = limits(books, &mut world.prng("limits"));
        let front = Front::begin(world, &control, (&shards.states, limits));
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
            front,
            hosts: RefCell::default(),
            rooms: RefCell::new(world.prng("rooms")),
        });
        array.make_room_from_now_on();
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

    /// What a token stands for, sector by sector; nothing where it is over.
    pub(super) async fn values_of(&self, token: &[u8]) -> Option<Vec<u64>> {
        let held = self.offload.held(token)?;
        let (_, holder) = self.hidden(held.holder)?;
        let mut values = Vec::new();
        for (at, len) in held.places.iter().filter(|(_, len)| *len > 0) {
            let bytes = holder.read(VolumeOffset(*at), *len as usize).await.ok()?;
            let bytes = bytes.to_vec();
            values.extend(bytes.chunks(SECTOR_BYTES).map(value_of));
        }
        // Its addresses are given to another one when it is over.
        if self.offload.held(token)? != held {
            return None;
        }
        let values = values.into_iter().collect::<Option<Vec<u64>>>();
        if values.is_none() {
            self.fail("a token holds a torn sector");
        }
        values
    }

    /// Whoever finds no room asks the array, and this makes some. Each asks for itself; that goes on
    /// when nobody waits for it any more.
    fn make_room_from_now_on(self: &Rc<Self>) {
        let reclaim = Arc::new(SpaceReclaim::default());
        for state in &self.shards.states {
            state.set_space_reclaim(Arc::clone(&reclaim));
        }
        let (world, array) = (self.world.clone(), Rc::downgrade(self));
        self.world.spawn(async move {
            loop {
                for request in reclaim.take() {
                    let Some(array) = array.upgrade() else { return };
                    world.spawn(async move {
                        let some = array.make_room(request.volume()).await;
                        request.answer(some);
                    });
                }
                reclaim.asked().await;
            }
        });
    }

    /// Makes some room for a volume, and takes its time. Whether there was any to make. Revoking tokens
    /// is the array's own first step, too (`ControlPlane::keep_trash`). Then the array deletes a volume
    /// that is in the trash; here a filler shrinks instead, which gives room in small pieces and many
    /// times. A pool has too few volumes for a trash that does. So what the array does there is not
    /// tried with hosts at work, but by a run of operations.
    async fn make_room(&self, volume: Uuid) -> bool {
        let Some((pool, _)) = self.volume_of(volume) else {
            return false;
        };
        self.books.evict();
        let some = self.offload.revoke_pool(self.pools[pool].name()).await;
        self.books.rooms.set(self.books.rooms.get() + 1);
        let pause = {
            let mut prng = self.rooms.borrow_mut();
            match prng.chance(1, SLOW_ROOM_ONE_OF) {
                true => Duration::from_millis(prng.between(2_500, 4_000)),
                false => Duration::from_nanos(prng.below(300_000)),
            }
        };
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

    /// Each host may be told so many unit attentions of this unit from now on.
    pub(super) fn owe(&self, unit: usize, attentions: u64) {
        for host in self.all_hosts() {
            host.told(unit).owe(attentions);
        }
    }

    /// Whether there is a target to log in to: one that shows something. Nothing, while that changes.
    pub(super) fn is_shown(&self, target: usize) -> Option<bool> {
        let is_shown = |within| {
            self.books
                .units_at(target)
                .any(|unit| unit.is_shown.get() == within)
        };
        match (
            is_shown(Within::There),
            is_shown(Within::Coming) || is_shown(Within::Going),
        ) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        }
    }

    /// The sessions of all hosts with a target.
    pub(super) fn paths(&self, target: usize) -> Vec<Rc<Path>> {
        let hosts = self.all_hosts();
        let paths = hosts.iter().filter_map(|host| host.slot(target).path());
        paths.collect()
    }

    pub(super) fn goes_on(&self) -> bool {
        self.books.failure.borrow().is_none()
    }
}
