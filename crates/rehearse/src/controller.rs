//! A storage controller at work: its processor, and its write cache with the way to its
//! partner.

use crate::world::RigWorld;
use base::Time;
use engine::World;
use model::controller::{Controller, State};
use model::station::Snapshot;
use std::cell::RefCell;
use std::time::Duration;

/// A controller at work.
pub struct ControllerRig {
    /// Unique over the site.
    pub name: String,
    world: RigWorld,
    model: Controller,
    /// Whether its write cache is mirrored to a partner.
    mirrors: bool,
    state: RefCell<State>,
}

impl ControllerRig {
    /// A controller at rest.
    pub fn new(world: &RigWorld, name: String, model: Controller, mirrors: bool) -> ControllerRig {
        ControllerRig {
            name,
            world: world.clone(),
            mirrors,
            state: RefCell::new(State::new(&model)),
            model,
        }
    }

    async fn spend(&self, cost: Duration) {
        if !cost.is_zero() {
            let served = self.state.borrow_mut().cores.serve(self.world.now(), cost);
            self.world.sleep_until(served.end).await;
        }
    }

    /// Takes in a host's command, and moves its data.
    pub async fn command(&self, data_bytes: u64) {
        self.spend(self.model.costs.command(data_bytes)).await;
    }

    /// Sends a command to a drive, and makes the parity of what it writes.
    pub async fn drive_command(&self, parity_bytes: u64) {
        let costs = &self.model.costs;
        self.spend(costs.drive_commands(1) + costs.parity(parity_bytes))
            .await;
    }

    /// Puts a part of the write log into the write cache, and into the partner's.
    pub async fn log(&self, len_bytes: u64) {
        let copies = 1 + u64::from(self.mirrors);
        self.spend(self.model.costs.log(len_bytes, copies)).await;
        let Some(cache) = &self.model.write_cache else {
            return;
        };
        let partner = self.mirrors.then_some(&self.model.interconnect);
        let now = self.world.now();
        let safe = self.state.borrow_mut().keep(cache, partner, now, len_bytes);
        self.world.sleep_until(safe).await;
    }

    /// What its processor did until now.
    pub fn cpu(&self) -> Snapshot {
        self.state.borrow().cores.snapshot(self.world.now())
    }

    /// Busy time of the way to its partner until `now`.
    pub fn interconnect_busy(&self, now: Time) -> Option<Duration> {
        let state = self.state.borrow();
        let lane = state.interconnect();
        self.mirrors
            .then(|| lane.busy().saturating_sub(lane.free_at().since(now)))
    }
}
