//! A storage controller: its processor, and the way to its partner's half of the write cache.

use crate::drive::Half;
use crate::world::RigWorld;
use base::Time;
use engine::World;
use model::link::{Lane, Link};
use model::station::{Snapshot, Station};
use std::cell::RefCell;
use std::time::Duration;

/// Processor time of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuCosts {
    /// Of a host's command, nanoseconds.
    pub per_command_ns: f64,
    /// Of a KiB between host and cache, nanoseconds.
    pub per_kib_ns: f64,
    /// Of a command to a drive, nanoseconds.
    pub per_drive_command_ns: f64,
    /// Of a KiB written to a group with parity, nanoseconds.
    pub per_parity_kib_ns: f64,
    /// Of a KiB of a copy of the write log, nanoseconds.
    pub per_log_kib_ns: f64,
}

/// A controller at work.
pub struct ControllerRig {
    /// Unique over the site.
    pub name: String,
    world: RigWorld,
    costs: CpuCosts,
    cpu: RefCell<Station>,
    /// To the partner, when the write cache is mirrored.
    interconnect: Option<(Link, RefCell<Lane>)>,
}

fn kib(len_bytes: u64, ns_per_kib: f64) -> f64 {
    len_bytes as f64 / 1024.0 * ns_per_kib
}

impl ControllerRig {
    /// A controller at rest.
    pub fn new(
        world: &RigWorld,
        name: String,
        cores: usize,
        costs: CpuCosts,
        interconnect: Option<Link>,
    ) -> ControllerRig {
        ControllerRig {
            name,
            world: world.clone(),
            costs,
            cpu: RefCell::new(Station::new(cores)),
            interconnect: interconnect.map(|link| (link, RefCell::default())),
        }
    }

    async fn spend(&self, ns: f64) {
        let cost = Duration::from_nanos(ns as u64);
        if !cost.is_zero() {
            let served = self.cpu.borrow_mut().serve(self.world.now(), cost);
            self.world.sleep_until(served.end).await;
        }
    }

    /// Takes in a host's command, with the data of a write.
    pub async fn command(&self, data_bytes: u64) {
        let costs = &self.costs;
        self.spend(costs.per_command_ns + kib(data_bytes, costs.per_kib_ns))
            .await;
    }

    /// Sends the data of a read.
    pub async fn answer(&self, data_bytes: u64) {
        self.spend(kib(data_bytes, self.costs.per_kib_ns)).await;
    }

    /// Sends a command to a drive, and makes the parity of what it writes.
    pub async fn drive_command(&self, len_bytes: u64, is_parity: bool) {
        let parity_ns = match is_parity {
            true => kib(len_bytes, self.costs.per_parity_kib_ns),
            false => 0.0,
        };
        self.spend(self.costs.per_drive_command_ns + parity_ns)
            .await;
    }

    /// Copies a part of the write log into a half of the write cache.
    pub async fn log(&self, len_bytes: u64, half: Half) {
        if half == Half::Further {
            return;
        }
        self.spend(kib(len_bytes, self.costs.per_log_kib_ns)).await;
        if let (Half::Partners, Some((link, lane))) = (half, &self.interconnect) {
            let sent = lane.borrow_mut().send(link, self.world.now(), len_bytes);
            self.world.sleep_until(sent.arrived).await;
        }
    }

    /// What its processor did until now.
    pub fn cpu(&self) -> Snapshot {
        self.cpu.borrow().snapshot(self.world.now())
    }

    /// Busy time of the way to its partner until `now`.
    pub fn interconnect_busy(&self, now: Time) -> Option<Duration> {
        let (_, lane) = self.interconnect.as_ref()?;
        let lane = lane.borrow();
        Some(lane.busy().saturating_sub(lane.free_at().since(now)))
    }
}
