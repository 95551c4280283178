//! A storage controller at work: its processor, and its write cache with the way to its
//! partner.
//!
//! One that has lost its power does nothing until its partner takes its pools; from then on
//! the partner does what is asked of it. Nothing is lost: the write cache is mirrored. A
//! partner that is alone mirrors no more. Without a partner everything that it had in hand
//! ends somewhere where nobody sees it, and whoever asks is told that it is lost.

use super::halt::Halt;
use base::Time;
use engine::World;
use model::controller::{Controller, FileSystem, State};
use model::station::Snapshot;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use world_sim::SimWorld;

/// Where a part of the write log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In the write cache, and in a partner's.
    InCache,
    /// On so many drives.
    OnDrives(u64),
}

/// A controller at work.
pub struct ControllerRig {
    /// Unique over the site.
    pub name: String,
    world: SimWorld,
    model: Controller,
    /// Whether its write cache is mirrored to a partner.
    mirrors: bool,
    /// Whether its partner is gone.
    alone: Cell<bool>,
    /// Shut between the loss of its power and the takeover.
    halt: Halt,
    lost: Cell<bool>,
    /// Who does its work.
    deputy: RefCell<Option<Rc<ControllerRig>>>,
    state: RefCell<State>,
}

impl ControllerRig {
    /// A controller at rest.
    pub fn new(world: &SimWorld, name: String, model: Controller, mirrors: bool) -> ControllerRig {
        ControllerRig {
            name,
            world: world.clone(),
            mirrors,
            alone: Cell::new(false),
            halt: Halt::default(),
            lost: Cell::new(false),
            deputy: RefCell::default(),
            state: RefCell::new(State::new(&model)),
            model,
        }
    }

    /// Whether writes of its hosts go to whole free stripes, and never over what is there.
    pub fn writes_anywhere(&self) -> bool {
        self.model.writes_anywhere
    }

    /// What lies between its hosts and its pools, if it is a NAS head.
    pub fn file_system(&self) -> Option<FileSystem> {
        self.model.file_system
    }

    /// Commands that a drive has of it at once, if it bounds them.
    pub fn drive_queue(&self) -> Option<u16> {
        self.model.drive_queue
    }

    /// It has lost its power: what is asked of it waits for [`ControllerRig::taken_by`].
    pub fn stop(&self) {
        self.halt.hold();
    }

    /// Its partner does its work from now on, alone.
    pub fn taken_by(&self, partner: &Rc<ControllerRig>) {
        partner.alone.set(true);
        self.deputy.replace(Some(Rc::clone(partner)));
        self.halt.release();
    }

    /// It has lost its power, and nobody takes its pools.
    pub fn lose(&self) {
        self.lost.set(true);
        if self.halt.is_held() {
            self.halt.release();
        }
    }

    /// Whether whoever does its work has lost its power for good.
    pub fn is_lost(&self) -> bool {
        let deputy = self.deputy.borrow();
        self.lost.get() || deputy.as_ref().is_some_and(|deputy| deputy.is_lost())
    }

    /// Whether it does its work itself.
    pub fn is_up(&self) -> bool {
        !self.lost.get() && !self.halt.is_held() && self.deputy.borrow().is_none()
    }

    /// Who does its work by now, or would if it had its power.
    pub fn serving(self: &Rc<Self>) -> Rc<ControllerRig> {
        let mut serving = Rc::clone(self);
        while let Some(deputy) = { serving.deputy.borrow().clone() } {
            serving = deputy;
        }
        serving
    }

    /// Who does its work; ends when there is somebody.
    pub async fn acting(self: &Rc<Self>) -> Rc<ControllerRig> {
        let mut acting = Rc::clone(self);
        loop {
            acting.halt.passed().await;
            let deputy = acting.deputy.borrow().clone();
            match deputy {
                Some(deputy) => acting = deputy,
                None => return acting,
            }
        }
    }

    async fn spend(&self, cost: Duration) {
        if !cost.is_zero() {
            let served = self.state.borrow_mut().cores.serve(self.world.now(), cost);
            self.world.sleep_until(served.end).await;
        }
    }

    /// Takes in a host's command, and moves its data.
    pub async fn command(self: &Rc<Self>, data_bytes: u64) {
        let acting = self.acting().await;
        acting.spend(acting.model.costs.command(data_bytes)).await;
    }

    /// Sends a command to a drive, and makes the parity of what it writes.
    pub async fn drive_command(self: &Rc<Self>, parity_bytes: u64) {
        let acting = self.acting().await;
        let costs = &acting.model.costs;
        let cost = costs.drive_commands(1) + costs.parity(parity_bytes);
        acting.spend(cost).await;
    }

    /// Copies a part of the write log: into the write cache, and into the partner's, or for drives.
    pub async fn log(self: &Rc<Self>, len_bytes: u64, kept: Kept) {
        self.acting().await.keep(len_bytes, kept).await;
    }

    async fn keep(&self, len_bytes: u64, kept: Kept) {
        let mirrors = self.mirrors && !self.alone.get();
        let copies = match kept {
            Kept::InCache => 1 + u64::from(mirrors),
            Kept::OnDrives(copies) => copies,
        };
        self.spend(self.model.costs.log(len_bytes, copies)).await;
        let cache = self.model.write_cache.as_ref();
        let Some(cache) = cache.filter(|_| kept == Kept::InCache) else {
            return;
        };
        let partner = mirrors.then_some(&self.model.interconnect);
        let now = self.world.now();
        let safe = self.state.borrow_mut().keep(cache, partner, now, len_bytes);
        self.world.sleep_until(safe).await;
    }

    /// Sends something to its partner, which has it when this ends.
    pub async fn cross(&self, bytes: u64) {
        let (way, now) = (&self.model.interconnect, self.world.now());
        let there = self.state.borrow_mut().cross(way, now, bytes);
        self.world.sleep_until(there).await;
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
