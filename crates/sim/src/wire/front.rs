//! The array's own front of one boot: portals, logins, and the sessions that begin there.

use super::network::End;
use super::path::Path;
use array::control::ControlPlane;
use array::directory::Portal;
use array::front::{Desk, FrontLimits, Surroundings};
use array::memory::{Budget, Use};
use array::shard::ShardState;
use array::shard::session::Session;
use base::Prng;
use engine::World;
use iscsi::chap::RANDOM_BYTES;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

pub(crate) struct Front {
    pub(crate) world: SimWorld,
    states: Vec<Rc<ShardState<SimWorld>>>,
    budget: Budget,
    desk: Rc<Desk<SimWorld, SimWorld>>,
    /// A silent peer's session has ended after this time.
    pub(crate) noticed_after: Duration,
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

impl Front {
    /// Takes logins at the portals of the settings from now on, for targets on these shards.
    pub(crate) fn begin(
        world: &SimWorld,
        control: &ControlPlane<SimWorld>,
        (states, limits): (&[Rc<ShardState<SimWorld>>], FrontLimits),
    ) -> Front {
        let settings = control.settings();
        let portals = settings.portals.iter().map(Portal::from);
        control.directory().set_portals(portals.collect());
        let budget = Budget::new(limits.memory_bytes, limits.sessions_max);
        let noticed_after = limits.timeouts.silence * 10;
        let surroundings = Box::new(Seeded {
            world: world.clone(),
            prng: RefCell::new(world.prng("challenges")),
        });
        let (directory, offload) = (control.directory(), control.offload());
        let services = (Arc::clone(directory), Arc::clone(offload), budget.clone());
        let shards = control.shards().to_vec();
        let desk = Desk::new(services, shards, limits, world.clone(), surroundings);
        Front {
            world: world.clone(),
            states: states.to_vec(),
            budget,
            desk,
            noticed_after,
        }
    }

    /// A connection of this host comes in.
    pub(crate) fn accept(&self, end: End, host: usize, portal: impl Into<SocketAddr>) {
        let peer = SocketAddr::from(([10, 0, 1, host as u8], 40_000));
        let (desk, local) = (Rc::clone(&self.desk), portal.into());
        self.world
            .spawn(async move { desk.serve(end, peer, local).await });
    }

    /// The sessions that are connected.
    pub(crate) fn connected(&self) -> impl Iterator<Item = Rc<Session<SimWorld>>> {
        self.states.iter().flat_map(|state| state.connected())
    }

    pub(crate) fn has_session(&self, tsih: u16) -> bool {
        self.connected().any(|session| session.tsih() == tsih)
    }

    /// A session whose initiator waits for no command has none that runs.
    ///
    /// # Errors
    /// It has.
    pub(crate) fn check_idle(&self, path: &Path) -> Result<(), String> {
        let tsih = path.agreed.tsih;
        let mut sessions = self.states.iter().flat_map(|state| state.sessions());
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
    ///
    /// # Errors
    /// There are more.
    pub(crate) fn check_alone(&self, tsih: u16) -> Result<(), String> {
        let sessions: Vec<_> = self.connected().collect();
        let Some(own) = sessions.iter().find(|one| one.tsih() == tsih) else {
            return Ok(());
        };
        let key = own.negotiated.session_key();
        let is_same = |one: &&Rc<Session<SimWorld>>| one.negotiated.session_key() == key;
        match sessions.iter().filter(is_same).count() {
            0 | 1 => Ok(()),
            _ => Err(format!(
                "session {tsih} begins before the one that it reinstates has ended"
            )),
        }
    }

    /// All sessions have ended, and the pools are closed: nothing is held for a connection.
    ///
    /// # Errors
    /// Something is, or a pool could not be closed.
    pub(crate) async fn end(&self) -> Result<(), String> {
        for state in &self.states {
            if let Some((pool, error)) = state.close().await.first() {
                return Err(format!("closing {pool}: {error}"));
            }
            if !state.sessions().is_empty() {
                return Err("sessions are left after the end".to_owned());
            }
        }
        // A connection on another shard ends behind its session.
        self.world.sleep(self.noticed_after).await;
        let left = self.budget.used();
        match left == Use::default() {
            true => Ok(()),
            false => Err(format!("held for no connection: {left:?}")),
        }
    }
}
