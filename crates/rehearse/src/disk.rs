//! A virtual disk, and the way of an I/O from its VM to the engine and back.
//!
//! ```text
//! adapter queue ─► LUN queue ─► host ─► network ─► controller ─► engine
//!                               host ◄─ network ◄─ controller ◄─┘
//! ```
//!
//! Every step's time is added up under a [`Stage`]; the sum over the stages of an I/O is its
//! service time, to the nanosecond.

use crate::controller::ControllerRig;
use crate::gate::Gate;
use crate::host::{HostRig, LunRig};
use crate::network::Direction;
use crate::world::RigWorld;
use ::model::host::{Adapter, Io};
use base::{Time, VolumeOffset};
use engine::{IoError, Volume, World};
use load::generator::{Kind, Operation};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Where an I/O's time goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Waiting for a place in the queues of adapter and LUN.
    Queue,
    /// The host's processor and adapter.
    Host,
    /// The network, both ways.
    Network,
    /// The controller's processor, for the command itself.
    Controller,
    /// Logs, caches, RAID and drives: the engine.
    Array,
}

impl Stage {
    /// All of them, in the order of an I/O.
    pub const ALL: [Stage; 5] = [
        Stage::Queue,
        Stage::Host,
        Stage::Network,
        Stage::Controller,
        Stage::Array,
    ];

    /// As reports write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Queue => "queues",
            Stage::Host => "host",
            Stage::Network => "network",
            Stage::Controller => "controller",
            Stage::Array => "array",
        }
    }
}

/// Time by stage, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages(pub [u64; 5]);

impl Stages {
    fn add(&mut self, stage: Stage, since: &mut Time, now: Time) {
        self.0[stage as usize] += (now - *since).as_nanos() as u64;
        *since = now;
    }
}

/// Bytes of a command and of an answer without data: an iSCSI header, which Fibre Channel's
/// command and response come near to.
const MESSAGE_BYTES: u64 = 48;

/// Unsolicited data of a write: what is longer waits for the target to ask for it, once
/// (RFC 7143 clause 13.14, FirstBurstLength, default 65,536).
const FIRST_BURST_BYTES: u64 = 65_536;

/// A virtual disk.
pub struct DiskRig {
    /// The volume that it is.
    pub volume: RefCell<Volume<RigWorld>>,
    /// Who owns the volume's pool.
    pub controller: RefCell<Rc<ControllerRig>>,
    /// Whose processor its I/O takes.
    pub host: RefCell<Rc<HostRig>>,
    /// Its LUN at that host.
    pub lun: RefCell<Rc<LunRig>>,
    /// How its VM sees it.
    pub adapter: Adapter,
    /// The adapter's queue, which all disks of the VM share.
    pub adapter_gate: Rc<Gate>,
    /// The adapter's queue for this disk.
    pub disk_gate: Gate,
    /// Whether the target asks for the data of every write, as with Fibre Channel.
    pub asks_for_data: bool,
    /// Bytes of it.
    pub size_bytes: u64,
    /// Commands that went to the engine, and that came back.
    pub in_engine: Cell<(u64, u64)>,
}

impl DiskRig {
    /// Does one operation.
    ///
    /// # Errors
    /// What the engine says.
    pub async fn io(&self, world: &RigWorld, operation: &Operation) -> Result<Stages, IoError> {
        let mut stages = Stages::default();
        let mut since = world.now();
        let bytes = u64::from(operation.bytes);
        let (kind, out, back) = match operation.kind {
            Kind::Read => (Io::Read, 0, bytes),
            Kind::Write => (Io::Write, bytes, 0),
        };
        self.disk_gate.enter().await;
        self.adapter_gate.enter().await;
        let (host, lun) = (self.host.borrow().clone(), self.lun.borrow().clone());
        let controller = self.controller.borrow().clone();
        lun.gate.enter().await;
        host.gate.enter().await;
        stages.add(Stage::Queue, &mut since, world.now());
        host.begin(&self.adapter, kind, bytes).await;
        stages.add(Stage::Host, &mut since, world.now());
        let (path, way) = lun.begin();
        if out > 0 && (self.asks_for_data || out > FIRST_BURST_BYTES) {
            way.send(world, Direction::Out, MESSAGE_BYTES).await;
            way.send(world, Direction::Back, MESSAGE_BYTES).await;
        }
        way.send(world, Direction::Out, MESSAGE_BYTES + out).await;
        stages.add(Stage::Network, &mut since, world.now());
        controller.command(bytes).await;
        stages.add(Stage::Controller, &mut since, world.now());
        let outcome = self.in_engine(world, operation).await;
        stages.add(Stage::Array, &mut since, world.now());
        way.send(world, Direction::Back, MESSAGE_BYTES + back).await;
        lun.end(path);
        stages.add(Stage::Network, &mut since, world.now());
        host.end(&self.adapter, kind, bytes).await;
        stages.add(Stage::Host, &mut since, world.now());
        host.gate.leave();
        lun.gate.leave();
        self.adapter_gate.leave();
        self.disk_gate.leave();
        outcome.map(|()| stages)
    }

    async fn in_engine(&self, world: &RigWorld, operation: &Operation) -> Result<(), IoError> {
        let (began, ended) = self.in_engine.get();
        self.in_engine.set((began + 1, ended));
        let volume = self.volume.borrow().clone();
        let at = VolumeOffset(operation.offset_bytes);
        let len = operation.bytes as usize;
        let outcome = match operation.kind {
            Kind::Read => volume.read(at, len).await.map(drop),
            Kind::Write => {
                let data = world.buffers().data(len).freeze();
                volume.write(at, data).await
            }
        };
        let (began, ended) = self.in_engine.get();
        self.in_engine.set((began, ended + 1));
        outcome
    }
}
