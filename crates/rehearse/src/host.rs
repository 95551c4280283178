//! A host: its processor, and the queues before its LUNs.

use crate::gate::Gate;
use crate::network::Way;
use crate::world::RigWorld;
use engine::World;
use model::link::multipath::{Paths, Policy};
use model::station::{Snapshot, Station};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Processor time of a host for an I/O, at the clock of its cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoCosts {
    /// Of a command, nanoseconds.
    pub per_io_ns: f64,
    /// Of a frame, nanoseconds.
    pub per_frame_ns: f64,
    /// Of a KiB, nanoseconds.
    pub per_kib_ns: f64,
    /// Payload of a frame, bytes.
    pub frame_bytes: u64,
    /// What takes no processor: adapter and interrupt.
    pub latency: Duration,
}

impl IoCosts {
    fn ns(&self, data_bytes: u64) -> f64 {
        let frames = data_bytes.div_ceil(self.frame_bytes.max(1)) as f64;
        let kib = data_bytes as f64 / 1024.0;
        self.per_io_ns + frames * self.per_frame_ns + kib * self.per_kib_ns
    }
}

/// A host at work.
pub struct HostRig {
    /// Unique over the site.
    pub name: String,
    world: RigWorld,
    cpu: RefCell<Station>,
    costs: IoCosts,
    /// What VMs take beside their I/O slows the rest down by this factor.
    slowdown: Cell<f64>,
    down: Cell<bool>,
}

impl HostRig {
    /// A host at rest.
    pub fn new(world: &RigWorld, name: String, cores: usize, costs: IoCosts) -> HostRig {
        HostRig {
            name,
            world: world.clone(),
            cpu: RefCell::new(Station::new(cores)),
            costs,
            slowdown: Cell::new(1.0),
            down: Cell::new(false),
        }
    }

    /// Its VMs burn this share of its cores: what is left serves I/O slower, as with
    /// processor sharing.
    ///
    /// # Panics
    /// When nothing would be left.
    pub fn set_background(&self, share: f64) {
        assert!(
            (0.0..1.0).contains(&share),
            "VMs that take {share} of a host"
        );
        self.slowdown.set(1.0 / (1.0 - share));
    }

    /// It has lost its power: its VMs ask for nothing more.
    pub fn set_down(&self, down: bool) {
        self.down.set(down);
    }

    /// Whether it has no power.
    pub fn is_down(&self) -> bool {
        self.down.get()
    }

    /// Half of an I/O's processor time: its begin or its end.
    pub async fn half(&self, data_bytes: u64) {
        let ns = self.costs.ns(data_bytes) / 2.0 * self.slowdown.get();
        let cost = Duration::from_nanos(ns as u64);
        let served = self.cpu.borrow_mut().serve(self.world.now(), cost);
        let end = served.end + self.costs.latency / 2;
        self.world.sleep_until(end).await;
    }

    /// What its processor did for I/O until now.
    pub fn cpu(&self) -> Snapshot {
        self.cpu.borrow().snapshot(self.world.now())
    }
}

/// A LUN as a host sees it: its queue, and the ways to it.
pub struct LunRig {
    /// Commands under way.
    pub gate: Gate,
    ways: Vec<Way>,
    paths: RefCell<Paths>,
}

impl LunRig {
    /// A LUN with so many ways; a group of links gives one of them.
    pub fn new(depth: usize, ways: Vec<Way>, policy: Policy) -> LunRig {
        let paths = Paths::new(policy, ways.len());
        LunRig {
            gate: Gate::new(depth),
            ways,
            paths: RefCell::new(paths),
        }
    }

    /// The way of the next command. One that is down is passed over, if another is up.
    pub fn begin(&self) -> (usize, &Way) {
        let mut paths = self.paths.borrow_mut();
        let mut path = paths.begin();
        for _ in 1..self.ways.len() {
            if self.ways[path].is_up() {
                break;
            }
            let next = paths.begin();
            paths.end(path);
            path = next;
        }
        (path, &self.ways[path])
    }

    /// It has ended.
    pub fn end(&self, path: usize) {
        self.paths.borrow_mut().end(path);
    }
}
