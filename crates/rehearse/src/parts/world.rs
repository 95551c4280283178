//! The simulated world with modelled drives, in which the engine runs.
//!
//! Time, tasks, randomness and length-only buffers are [`SimWorld`]'s; drives are
//! [`RigDrive`]s, which take the time that controller, bus and model take.

use super::drive::RigDrive;
use base::{BufPool, Prng, Time};
use engine::World;
use std::future::Future;
use std::ops::Deref;
use std::time::Duration;
use world_sim::{Order, SimWorld};

/// A handle on the world of one rehearsal. It ends with [`SimWorld::power_off`].
#[derive(Clone)]
pub struct RigWorld(SimWorld);

impl RigWorld {
    /// A world at time zero, with `seed` as the root of all its randomness.
    pub fn new(seed: u64) -> RigWorld {
        let (seed, buffers) = (Prng::from_seed(seed), BufPool::length_only());
        RigWorld(SimWorld::new(seed, Order::Fifo, buffers, Time(0)))
    }
}

impl Deref for RigWorld {
    type Target = SimWorld;

    fn deref(&self) -> &SimWorld {
        &self.0
    }
}

impl World for RigWorld {
    type Drive = RigDrive;

    fn now(&self) -> Time {
        self.0.now()
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static {
        self.0.sleep(duration)
    }

    fn prng(&self, name: &str) -> Prng {
        self.0.prng(name)
    }

    fn buffers(&self) -> &BufPool {
        self.0.buffers()
    }
}
