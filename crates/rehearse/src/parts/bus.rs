//! A bus between controllers and drives, at work.

use engine::World;
use model::bus::{Bus, Direction, State};
use model::station::Snapshot;
use std::cell::RefCell;
use world_sim::SimWorld;

/// A bus at work.
pub struct BusRig {
    /// Unique over the site.
    pub name: String,
    bus: Bus,
    state: RefCell<State>,
}

impl BusRig {
    /// A bus at rest.
    pub fn new(name: String, bus: Bus) -> BusRig {
        BusRig {
            name,
            bus,
            state: RefCell::new(State::new(&bus)),
        }
    }

    /// Carries the data of a command.
    pub async fn transfer(&self, world: &SimWorld, direction: Direction, data_bytes: u64) {
        let now = world.now();
        let sent = self
            .state
            .borrow_mut()
            .transfer(&self.bus, now, direction, data_bytes);
        world.sleep_until(sent.arrived).await;
    }

    /// What [`BusRig::lanes`] are, for people.
    pub fn lane_names(&self) -> Vec<String> {
        let name = &self.name;
        match self.bus.full_duplex {
            true => vec![format!("{name}, from drives"), format!("{name}, to drives")],
            false => vec![name.clone()],
        }
    }

    /// What its lanes did until now, by direction: one where both share them.
    pub fn lanes(&self, world: &SimWorld) -> Vec<Snapshot> {
        let (now, state) = (world.now(), self.state.borrow());
        let mut lanes = vec![state.lanes(Direction::FromDrives).snapshot(now)];
        if self.bus.full_duplex {
            lanes.push(state.lanes(Direction::ToDrives).snapshot(now));
        }
        lanes
    }
}
