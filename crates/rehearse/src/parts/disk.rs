//! A virtual disk, and the way of an I/O from its VM to the engine and back.
//!
//! ```text
//! adapter queue ─► limit ─► LUN queue ─► host ─► network ─► controller ─► engine
//!                                        host ◄─ network ◄─ controller ◄─┘
//! ```
//!
//! When the VM's host loses its power, what is on its way ends at its next step: what has not
//! left the host does not reach the array, what the array has it does, and nobody is told.
//! Places in queues are given back in any case.
//!
//! While no way to the LUN is up, an I/O waits where it is, before the network or before the way
//! back: as hosts do, which hold what they get no answer to, and repeat it.
//!
//! While a host moves the disk, what lies below where it is goes to both copies at once, and
//! has ended when both have it. Only the VM's own I/O is limited, not what its host does.
//!
//! Every step's time is added up under a [`Stage`]; the sum over the stages of an I/O is its
//! service time, to the nanosecond.

use super::gate::Gate;
use super::host::{HostRig, LunRig};
use super::limit::IopsLimit;
use super::network::Direction;
use super::pool::PoolRig;
use super::world::RigWorld;
use ::model::host::{Adapter, Io};
use base::{Time, VolumeOffset};
use engine::{IoError, Volume, World};
use futures_util::future::join;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;
use workload::generator::{Kind, Operation};

/// Where an I/O's time goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Waiting for a place in the queues of adapter and LUN, and for the disk's limit.
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
    /// Those of the one that took longer, of two that began at once.
    fn longer(self, other: Stages) -> Stages {
        let total = |stages: &Stages| stages.0.iter().sum::<u64>();
        match total(&other) > total(&self) {
            true => other,
            false => self,
        }
    }

    fn add(&mut self, stage: Stage, since: &mut Time, now: Time) {
        self.0[stage as usize] += (now - *since).as_nanos() as u64;
        *since = now;
    }
}

/// Bytes of a command and of an answer without data: an iSCSI header, which Fibre Channel's
/// command and response come near to.
pub(crate) const MESSAGE_BYTES: u64 = 48;

/// Unsolicited data of a write: what is longer waits for the target to ask for it, once
/// (RFC 7143 clause 13.14, FirstBurstLength, default 65,536).
const FIRST_BURST_BYTES: u64 = 65_536;

/// Between two looks whether a disk is quiet.
const LOOK: Duration = Duration::from_micros(100);

/// Why an I/O has failed.
#[derive(Clone, Debug)]
pub enum DiskError {
    /// The engine says so.
    Array(IoError),
    /// Its host has no power any more.
    HostLost,
    /// Its controller has no power any more, and nobody took its pools.
    ControllerLost,
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskError::Array(error) => error.fmt(f),
            DiskError::HostLost => f.write_str("the host lost its power"),
            DiskError::ControllerLost => {
                f.write_str("the controller lost its power, and has no partner that took its pools")
            }
        }
    }
}

impl std::error::Error for DiskError {}

/// The other copy of a disk that a host moves.
#[derive(Clone)]
pub struct Twin {
    /// The disk that the host copies to.
    pub disk: Rc<DiskRig>,
    /// What lies below is, or is being, copied.
    pub below: Rc<Cell<u64>>,
}

/// A virtual disk, with the queues and the limit that its I/O passes.
pub struct DiskRig {
    /// The volume that it is.
    pub volume: RefCell<Volume<RigWorld>>,
    /// The pool of the volume.
    pub pool: RefCell<Rc<PoolRig>>,
    /// Whose processor its I/O takes.
    pub host: RefCell<Rc<HostRig>>,
    /// Its LUN at that host.
    pub lun: RefCell<Rc<LunRig>>,
    /// What its LUN is called, wherever it is.
    pub lun_name: String,
    /// How its VM sees it.
    pub adapter: Adapter,
    /// The adapter's queue, which all disks of the VM share.
    pub adapter_gate: Rc<Gate>,
    /// The adapter's queue for this disk.
    pub disk_gate: Gate,
    /// What its hypervisor lets through.
    pub limit: IopsLimit,
    /// Whether the target asks for the data of every write, as with Fibre Channel.
    pub asks_for_data: bool,
    /// Its size as the guest sees it, bytes.
    pub size_bytes: u64,
    /// From its beginning, what holds data before the run, and so what the guest reads and writes: of a
    /// hole, nothing would come from a drive. All of a disk that holds nothing.
    pub in_use_bytes: u64,
    /// How often its VM has lost its host.
    pub life: Rc<Cell<u32>>,
    /// Where writes go, too.
    pub twin: RefCell<Option<Twin>>,
    /// Operations that have been issued and have not ended.
    pub under_way: Cell<u64>,
    /// Operations that ended with the host before they had left it.
    pub never_sent: Cell<u64>,
    /// Commands that went to the engine, and that came back.
    pub in_engine: Cell<(u64, u64)>,
}

impl DiskRig {
    /// Does one operation.
    ///
    /// # Errors
    /// What the engine says, or that host or controller is gone.
    pub async fn io(&self, world: &RigWorld, operation: &Operation) -> Result<Stages, DiskError> {
        self.under_way.set(self.under_way.get() + 1);
        let twin = match operation.kind {
            Kind::Write => self.twin.borrow().clone(),
            Kind::Read => None,
        };
        let outcome = match twin {
            Some(twin) if operation.offset_bytes < twin.below.get() => {
                let copies = (
                    self.one(world, operation),
                    Box::pin(twin.disk.one(world, operation)),
                );
                let (here, there) = join(copies.0, copies.1).await;
                // Its time went where the later one's did.
                here.and_then(|here| there.map(|there| here.longer(there)))
            }
            _ => self.one(world, operation).await,
        };
        self.under_way.set(self.under_way.get() - 1);
        outcome
    }

    /// Ends when no operation is under way. Who asks has seen to it that none begins.
    pub async fn quiet(&self, world: &RigWorld) {
        while self.under_way.get() > 0 {
            world.sleep(LOOK).await;
        }
    }

    async fn one(&self, world: &RigWorld, operation: &Operation) -> Result<Stages, DiskError> {
        let life = self.life.get();
        let mut stages = Stages::default();
        let mut since = world.now();
        let bytes = u64::from(operation.bytes);
        let (kind, out, back) = match operation.kind {
            Kind::Read => (Io::Read, 0, bytes),
            Kind::Write => (Io::Write, bytes, 0),
        };
        let _of_disk = self.disk_gate.pass().await;
        let _of_adapter = self.adapter_gate.pass().await;
        let _of_limit = self.limit.pass(world, &self.adapter, bytes).await;
        let (host, lun) = (self.host.borrow().clone(), self.lun.borrow().clone());
        let controller = Rc::clone(&self.pool.borrow().controller);
        let _of_lun = lun.gate.pass().await;
        let _of_host = host.gate.pass().await;
        stages.add(Stage::Queue, &mut since, world.now());
        self.check_host(life)?;
        host.begin(&self.adapter, kind, bytes).await;
        stages.add(Stage::Host, &mut since, world.now());
        self.check_host(life)?;
        let way = lun.begin().await;
        self.check_host(life)?;
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
        if controller.is_lost() {
            return Err(DiskError::ControllerLost);
        }
        if self.life.get() != life {
            return Err(DiskError::HostLost);
        }
        let way = way.back().await;
        way.send(world, Direction::Back, MESSAGE_BYTES + back).await;
        drop(way);
        stages.add(Stage::Network, &mut since, world.now());
        host.end(&self.adapter, kind, bytes).await;
        stages.add(Stage::Host, &mut since, world.now());
        match self.life.get() == life {
            true => outcome.map(|()| stages).map_err(DiskError::Array),
            false => Err(DiskError::HostLost),
        }
    }

    /// Of what has not left the host.
    fn check_host(&self, life: u32) -> Result<(), DiskError> {
        if self.life.get() == life {
            return Ok(());
        }
        self.never_sent.set(self.never_sent.get() + 1);
        Err(DiskError::HostLost)
    }

    async fn in_engine(&self, world: &RigWorld, operation: &Operation) -> Result<(), IoError> {
        let (began, ended) = self.in_engine.get();
        self.in_engine.set((began + 1, ended));
        let volume = self.volume.borrow().clone();
        let at = VolumeOffset(operation.offset_bytes);
        let len = operation.bytes as usize;
        let pool = Rc::clone(&self.pool.borrow());
        let outcome = match operation.kind {
            Kind::Read => pool.read(&volume, at, len).await,
            Kind::Write => {
                let data = world.buffers().data(len).freeze();
                pool.write(&volume, at, data).await
            }
        };
        let (began, ended) = self.in_engine.get();
        self.in_engine.set((began, ended + 1));
        outcome
    }
}
