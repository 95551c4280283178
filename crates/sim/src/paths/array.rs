//! The array of one boot: its control plane, its front and its shards.

use super::Books;
use crate::control::{Start, settle};
use crate::shards::Shards;
use crate::wire::network::End;
use crate::wire::path::Path;
use array::connection::Timeouts;
use array::control::{Basis, ControlPlane};
use array::directory::Portal;
use array::front::{Desk, FrontLimits, Surroundings};
use array::memory::{BUDGET_BYTES_MIN, Budget, Use};
use array::offload::Offload;
use array::shard::session::Session;
use base::Prng;
use engine::{Lane, World};
use iscsi::chap::RANDOM_BYTES;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

/// Where hosts log in, each of a portal group of its own.
pub(super) const PORTALS: [([u8; 4], u16); 2] = [([10, 0, 0, 1], 3260), ([10, 0, 0, 2], 3260)];

const TIMEOUTS: Timeouts = Timeouts {
    silence: Duration::from_millis(200),
    logout: Duration::from_millis(100),
    data: Duration::from_millis(200),
};

pub(super) struct Array {
    pub(super) world: SimWorld,
    pub(super) books: Rc<Books>,
    pub(super) control: Arc<ControlPlane<SimWorld>>,
    shards: Shards,
    budget: Budget,
    desk: Rc<Desk<SimWorld, SimWorld>>,
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

/// Takes logins at the portals of the settings from now on.
fn front(
    world: &SimWorld,
    books: &Books,
    control: &ControlPlane<SimWorld>,
) -> (Rc<Desk<SimWorld, SimWorld>>, Budget) {
    let portal = |portal: &site::Portal| Portal {
        group: portal.group,
        ..Portal::from(portal.address)
    };
    let settings = control.settings();
    let portals = settings.portals.iter().map(portal);
    control.directory().set_portals(portals.collect());
    let limits = limits(books, &mut world.prng("limits"));
    let budget = Budget::new(limits.memory_bytes, limits.sessions_max);
    let surroundings = Box::new(Seeded {
        world: world.clone(),
        prng: RefCell::new(world.prng("challenges")),
    });
    let (directory, offload) = (control.directory(), control.offload());
    let services = (Arc::clone(directory), Arc::clone(offload), budget.clone());
    let shards = control.shards().to_vec();
    let desk = Desk::new(services, shards, limits, world.clone(), surroundings);
    (desk, budget)
}

impl Array {
    /// Begins as a server does once its pools are open: the control plane takes over what is on
    /// record, and the front takes logins at the portals of the settings.
    ///
    /// # Errors
    /// What the control plane says.
    pub(super) async fn start(
        world: &SimWorld,
        books: &Rc<Books>,
        (pools, first): (Vec<Lane<SimWorld>>, bool),
    ) -> Result<Rc<Array>, String> {
        let (shards, homes) = Shards::one_each(world, &pools);
        let start = Start::new(world, &books.records, first);
        let found = start.found.clone();
        let of_pools = (&books.specs[..], &books.media[..]);
        let site = start.settings(of_pools, &PORTALS.map(SocketAddr::from))?;
        let offload = Arc::new(Offload::new(None, Default::default()));
        let control = start.control_plane((&shards, homes), offload, &site);
        let started = async {
            let settled = settle(&control).await?;
            settled.take_over(found, Basis::of(first)).await
        };
        let started = started.await;
        started.map_err(|error| format!("the start: {error}"))?;
        let (desk, budget) = front(world, books, &control);
        Ok(Rc::new(Array {
            world: world.clone(),
            books: Rc::clone(books),
            control,
            shards,
            budget,
            desk,
            is_stopping: Cell::new(false),
        }))
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

    /// The sessions that are connected.
    pub(super) fn connected(&self) -> impl Iterator<Item = Rc<Session<SimWorld>>> {
        let states = self.shards.states.iter();
        states.flat_map(|state| state.connected())
    }

    pub(super) fn has_session(&self, tsih: u16) -> bool {
        self.connected().any(|session| session.tsih() == tsih)
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
    pub(super) fn check_alone(&self, tsih: u16) {
        let sessions: Vec<_> = self.connected().collect();
        let Some(own) = sessions.iter().find(|one| one.tsih() == tsih) else {
            return;
        };
        let key = own.negotiated.session_key();
        let is_same = |one: &&Rc<Session<SimWorld>>| one.negotiated.session_key() == key;
        if sessions.iter().filter(is_same).count() > 1 {
            let what = format!("session {tsih} begins before the one that it reinstates has ended");
            self.books.fail(&self.world, what);
        }
    }

    /// All ends in order: sessions, and what they hold.
    pub(super) async fn stop(&self) {
        self.is_stopping.set(true);
        self.control.directory().close();
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
