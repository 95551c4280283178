//! The array of one boot: its front, its shards, and who administers access.

use super::Books;
use super::network::End;
use super::path::Path;
use crate::shards::Shards;
use array::connection::Timeouts;
use array::directory::{Access, AdmittedHost, Directory, Portal, TargetEntry};
use array::front::{Desk, FrontLimits, Surroundings};
use array::memory::{BUDGET_BYTES_MIN, Budget, Use};
use array::offload::Offload;
use array::shard::UnitTraits;
use array::shard::session::Session;
use base::Prng;
use engine::{Lane, World};
use iscsi::chap::{Account, RANDOM_BYTES};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

/// Where hosts log in, each of a portal group of its own.
const PORTALS: [([u8; 4], u16); 2] = [([10, 0, 0, 1], 3260), ([10, 0, 0, 2], 3260)];

const TIMEOUTS: Timeouts = Timeouts {
    silence: Duration::from_millis(200),
    logout: Duration::from_millis(100),
    data: Duration::from_millis(200),
};

pub(super) struct Array {
    pub(super) world: SimWorld,
    pub(super) books: Rc<Books>,
    pub(super) pools: Vec<Lane<SimWorld>>,
    shards: Shards,
    directory: Arc<Directory>,
    budget: Budget,
    desk: Rc<Desk<SimWorld, SimWorld>>,
    /// Hosts that may not log in to a target.
    pub(super) withdrawn: RefCell<BTreeSet<(usize, usize)>>,
    /// Counts beginnings and ends of changes of that.
    pub(super) changes: Cell<u64>,
    /// It stops.
    is_stopping: Cell<bool>,
}

/// The calendar and the randomness of a boot.
struct Seeded {
    world: SimWorld,
    prng: RefCell<Prng>,
}

impl Surroundings for Seeded {
    fn unix_s(&self) -> u64 {
        self.world.now().as_nanos() / 1_000_000_000
    }

    fn random(&self) -> Result<[u8; RANDOM_BYTES], String> {
        let mut random = [0; RANDOM_BYTES];
        self.prng.borrow_mut().fill(&mut random);
        Ok(random)
    }
}

/// The iSCSI name of a target.
pub(super) fn target_name(target: usize) -> String {
    format!("iqn.2026-11.dev.ashlar:paths{target}")
}

/// Portals and hosts, as an administrator describes them.
fn describe(books: &Books) -> Directory {
    let directory = Directory::new();
    let portal = |(number, address): (usize, ([u8; 4], u16))| Portal {
        group: number as u16 + 1,
        ..Portal::from(SocketAddr::from(address))
    };
    directory.set_portals(PORTALS.into_iter().enumerate().map(portal).collect());
    let hosts = books.hosts.iter().map(|host| {
        let credential = host.credential.clone();
        let admitted = AdmittedHost {
            initiators: BTreeSet::from([host.initiator.clone()]),
            account: credential.map(|initiator| {
                let mutual = None;
                Arc::new(Account { initiator, mutual })
            }),
        };
        (host.name.clone(), admitted)
    });
    directory.set_hosts(hosts.collect(), BTreeMap::new());
    directory
}

/// As many sessions as there are ways, and not one more.
fn limits(books: &Books, prng: &mut Prng) -> FrontLimits {
    let iscsi = iscsi::login::Limits {
        queue_depth: *prng.pick(&[2, 4, 16, 128]),
        ..Default::default()
    };
    FrontLimits {
        sessions_max: books.ways(),
        // And as many again that log in.
        half_open_max: books.ways() + 4,
        memory_bytes: BUDGET_BYTES_MIN,
        timeouts: TIMEOUTS,
        iscsi,
        ..FrontLimits::default()
    }
}

impl Array {
    pub(super) fn new(
        world: &SimWorld,
        books: &Rc<Books>,
        pools: Vec<Lane<SimWorld>>,
    ) -> Rc<Array> {
        let shards = Shards::new(world, pools.len());
        for (state, pool) in shards.states.iter().zip(&pools) {
            state.add_pool(pool.clone());
        }
        let directory = Arc::new(describe(books));
        let limits = limits(books, &mut world.prng("limits"));
        let budget = Budget::new(limits.memory_bytes, limits.sessions_max);
        let offload = Arc::new(Offload::new(None, Default::default()));
        offload.set_shards(&shards.handles);
        let surroundings = Box::new(Seeded {
            world: world.clone(),
            prng: RefCell::new(world.prng("challenges")),
        });
        let services = (Arc::clone(&directory), offload, budget.clone());
        let handles = shards.handles.clone();
        let desk = Desk::new(services, handles, limits, world.clone(), surroundings);
        let array = Rc::new(Array {
            world: world.clone(),
            books: Rc::clone(books),
            pools,
            shards,
            directory,
            budget,
            desk,
            withdrawn: RefCell::default(),
            changes: Cell::new(0),
            is_stopping: Cell::new(false),
        });
        for target in 0..books.targets {
            array.shards.states[array.home(target)].add_target(&target_name(target));
            array.say_who_may(target);
        }
        array
    }

    /// Shows all volumes at their LUNs.
    pub(super) fn show_all(&self) {
        for unit in &self.books.units {
            let home = self.home(unit.target);
            let Some(volume) = self.pools[unit.pool].volume(&unit.name) else {
                return self
                    .books
                    .fail(&self.world, format!("{} is gone", unit.name));
            };
            let at = (unit.pool, &self.pools[unit.pool]);
            let disk = self.shards.disk(home, at, volume);
            let traits = UnitTraits {
                may_affect_others: true,
                ..UnitTraits::default()
            };
            let target = target_name(unit.target);
            let shown = self.shards.states[home].export_with(&target, unit.lun, disk, traits);
            if let Err(error) = shown {
                self.books
                    .fail(&self.world, format!("showing {}: {error}", unit.name));
            }
        }
    }

    /// The shard of a target.
    fn home(&self, target: usize) -> usize {
        target % self.shards.states.len()
    }

    pub(super) fn goes_on(&self) -> bool {
        !self.is_stopping.get() && self.books.failure.borrow().is_none()
    }

    /// A connection comes in.
    pub(super) fn accept(&self, end: End, host: usize, portal: usize) {
        let peer = SocketAddr::from(([10, 0, 1, host as u8], 40_000));
        let local = SocketAddr::from(PORTALS[portal]);
        let desk = Rc::clone(&self.desk);
        self.world
            .spawn(async move { desk.serve(end, peer, local).await });
    }

    /// A silent peer's session has ended after this time.
    pub(super) fn noticed_after(&self) -> Duration {
        TIMEOUTS.silence * 10
    }

    pub(super) fn has_session(&self, target: usize, tsih: u16) -> bool {
        let sessions = self.shards.states[self.home(target)].sessions();
        sessions.iter().any(|session| session.tsih == tsih)
    }

    /// A session whose initiator waits for no command has none that runs.
    pub(super) fn check_idle(&self, path: &Path) -> Result<(), String> {
        let tsih = path.agreed.tsih;
        let mut sessions = self.shards.states.iter().flat_map(|state| state.sessions());
        let running = sessions
            .find(|session| session.tsih == tsih)
            .map(|one| one.in_flight);
        match running {
            Some(running) if running > 0 && path.is_up() && path.is_idle() => Err(format!(
                "all tasks of session {tsih} were aborted, and {running} run"
            )),
            _ => Ok(()),
        }
    }

    /// There is one session of what has just logged in: the one that it reinstates has ended
    /// (clause 6.3.5).
    pub(super) fn check_alone(&self, target: usize, tsih: u16) {
        let sessions = self.shards.states[self.home(target)].connected();
        let key = |one: &Session<SimWorld>| {
            let target = one.target.clone();
            (one.initiator.clone(), one.isid, one.portal_group, target)
        };
        let Some(own) = sessions.iter().find(|one| one.tsih == tsih) else {
            return;
        };
        if sessions.iter().filter(|one| key(one) == key(own)).count() > 1 {
            let what = format!("session {tsih} begins before the one that it reinstates has ended");
            self.books.fail(&self.world, what);
        }
    }

    fn say_who_may(&self, target: usize) {
        let withdrawn = self.withdrawn.borrow();
        let hosts = self.books.hosts.iter().enumerate();
        let hosts = hosts.filter(|(number, _)| !withdrawn.contains(&(*number, target)));
        let access = Access {
            hosts: hosts.map(|(_, host)| host.name.clone()).collect(),
            ..Access::default()
        };
        let shard = self.home(target);
        let entry = TargetEntry { shard, access };
        self.directory.set_target(&target_name(target), entry);
    }

    /// One change of who may log in, or of who is logged in.
    pub(super) async fn administer(&self, prng: &mut Prng) {
        let pause = Duration::from_nanos(prng.below(100_000));
        self.world.sleep(pause).await;
        let host = prng.below(self.books.hosts.len() as u64) as usize;
        let target = prng.below(self.books.targets as u64) as usize;
        match prng.below(3) {
            0 => self.drop_one(prng).await,
            _ => {
                self.withdraw(host, target).await;
                let pause = Duration::from_nanos(prng.below(30_000_000));
                self.world.sleep(pause).await;
                self.withdrawn.borrow_mut().clear();
                self.changes.set(self.changes.get() + 2);
                (0..self.books.targets).for_each(|target| self.say_who_may(target));
            }
        }
    }

    async fn drop_one(&self, prng: &mut Prng) {
        let state = prng.pick(&self.shards.states);
        let sessions = state.sessions();
        if sessions.is_empty() {
            return;
        }
        let tsih = prng.pick(&sessions).tsih;
        self.world.note(|| format!("session {tsih} is dropped"));
        state.drop_session(tsih).await;
        if state.sessions().iter().any(|session| session.tsih == tsih) {
            let what = format!("session {tsih} is there after it was dropped");
            self.books.fail(&self.world, what);
        }
    }

    /// A host may not reach a target any more, and is rid of its sessions there.
    async fn withdraw(&self, host: usize, target: usize) {
        self.world
            .note(|| format!("host {host} may not reach target {target}"));
        self.changes.set(self.changes.get() + 1);
        self.withdrawn.borrow_mut().insert((host, target));
        self.say_who_may(target);
        let state = &self.shards.states[self.home(target)];
        state.close_not_admitted(&self.directory).await;
        self.changes.set(self.changes.get() + 1);
        self.check_sessions();
    }

    /// Whoever has a session may log in.
    pub(super) fn check_sessions(&self) {
        for session in self
            .shards
            .states
            .iter()
            .flat_map(|state| state.connected())
        {
            if !self.directory.admits(&session.admission, &session.target) {
                let (initiator, tsih) = (&session.initiator, session.tsih);
                let what = format!("{initiator} has session {tsih}, and may not log in");
                self.books.fail(&self.world, what);
            }
        }
    }

    /// All ends in order: sessions, and what they hold.
    pub(super) async fn stop(&self) {
        self.is_stopping.set(true);
        self.directory.close();
        for state in &self.shards.states {
            for (pool, error) in state.close().await {
                self.books
                    .fail(&self.world, format!("closing {pool}: {error}"));
            }
            if !state.sessions().is_empty() {
                self.books
                    .fail(&self.world, "sessions are left after the end");
            }
        }
        // A connection on another shard ends behind its session.
        self.world.sleep(self.noticed_after()).await;
        let left = self.budget.used();
        if left != Use::default() {
            self.books
                .fail(&self.world, format!("held for no connection: {left:?}"));
        }
    }
}
