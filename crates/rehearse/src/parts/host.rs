//! A host at work: its processor and adapter, and the queues before its LUNs.

use super::gate::Gate;
use super::network::PortPath;
use super::world::RigWorld;
use base::Time;
use engine::World;
use model::host::{Adapter, Initiator, Io, Processor, Told};
use model::link::multipath::{Paths, Policy};
use model::link::{Ethernet, OnWire};
use model::station::{Snapshot, Station};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::ops::Deref;
use std::task::Poll;
use std::time::Duration;

/// What a host is.
#[derive(Clone, Copy, Debug)]
pub struct HostModel {
    /// Its cores and their clock.
    pub processor: Processor,
    /// How it reaches its storage.
    pub initiator: Initiator,
    /// Frames of its network, where that is Ethernet.
    pub ethernet: Ethernet,
    /// Rate of a port of it, above zero.
    pub bits_per_s: u64,
    /// Commands under way of all its ports.
    pub port_queue: usize,
    /// Memory that VMs may be given.
    pub memory_bytes: u64,
}

/// What is left of a host's cores at least: nothing would ever end with none.
const FREE_LEAST: f64 = 0.02;

/// A host at work.
pub struct HostRig {
    /// Unique over the site.
    pub name: String,
    world: RigWorld,
    model: HostModel,
    cores: RefCell<Station>,
    /// An adapter that does one I/O after the other.
    adapter: RefCell<Station>,
    /// When the last interrupt was, or is going to be.
    interrupt: Cell<Option<Time>>,
    /// Admits commands of all its ports, at most [`HostModel::port_queue`] at a time.
    pub gate: Gate,
    /// Cores that its VMs keep busy beside their I/O.
    resident: Cell<f64>,
    /// Cores that move VMs.
    moving: Cell<f64>,
    down: Cell<bool>,
}

impl HostRig {
    /// A host at rest.
    pub fn new(world: &RigWorld, name: String, model: HostModel) -> HostRig {
        HostRig {
            name,
            world: world.clone(),
            cores: RefCell::new(Station::new(usize::from(model.processor.cores))),
            adapter: RefCell::new(Station::new(1)),
            interrupt: Cell::new(None),
            gate: Gate::new(model.port_queue),
            resident: Cell::default(),
            moving: Cell::default(),
            down: Cell::new(false),
            model,
        }
    }

    /// VMs keep so many of its cores busy beside their I/O.
    pub fn set_resident(&self, cores: f64) {
        self.resident.set(cores);
    }

    /// So many more of its cores, or fewer, move VMs.
    pub fn add_moving(&self, cores: f64) {
        self.moving.set((self.moving.get() + cores).max(0.0));
    }

    /// Cores that nobody uses, I/O left out.
    pub fn free_cores(&self) -> f64 {
        let all = f64::from(self.model.processor.cores);
        (all - self.resident.get() - self.moving.get()).max(all * FREE_LEAST)
    }

    /// Work takes so much longer beside the VMs: processor sharing ([`model::vm`]).
    pub fn slowdown(&self) -> f64 {
        f64::from(self.model.processor.cores) / self.free_cores()
    }

    /// The parameters that it was made with.
    pub fn model(&self) -> &HostModel {
        &self.model
    }

    /// It has lost its power, or has it again.
    pub fn set_down(&self, down: bool) {
        self.down.set(down);
    }

    /// Whether it has no power.
    pub fn is_down(&self) -> bool {
        self.down.get()
    }

    /// Processor time of an I/O, from begin to end.
    fn cost(&self, adapter: &Adapter, kind: Io, data_bytes: u64) -> Duration {
        let model = &self.model;
        let cycles = model.initiator.cycles(kind, data_bytes, model.ethernet);
        let time = model.processor.time(cycles + adapter.cycles_per_io);
        time.mul_f64(self.slowdown())
    }

    async fn work(&self, cost: Duration) {
        let served = self.cores.borrow_mut().serve(self.world.now(), cost);
        self.world.sleep_until(served.end).await;
    }

    /// The beginning of an I/O: half of its processor time, and the adapter.
    pub async fn begin(&self, adapter: &Adapter, kind: Io, data_bytes: u64) {
        self.work(self.cost(adapter, kind, data_bytes) / 2).await;
        let time = self.model.initiator.adapter_time;
        if !time.is_zero() {
            let served = self.adapter.borrow_mut().serve(self.world.now(), time);
            self.world.sleep_until(served.end).await;
        }
    }

    /// The end of an I/O, whose answer is there: the interrupt, and the other half of its
    /// processor time, with that of the interrupts that came for it alone.
    pub async fn end(&self, adapter: &Adapter, kind: Io, data_bytes: u64) {
        let model = &self.model;
        let answer = model.initiator.answer(kind, data_bytes, model.ethernet);
        let told = self.tell(answer);
        self.world.sleep_until(told.at).await;
        let cycles = model.initiator.interrupt_cycles(told.interrupts, answer);
        let seconds = cycles / model.processor.hertz as f64 * self.slowdown();
        let cost = self.cost(adapter, kind, data_bytes).as_secs_f64() / 2.0 + seconds;
        self.work(Duration::from_secs_f64(cost.max(0.0))).await;
    }

    /// Interrupts for the frames of an answer, the last of which is here.
    fn tell(&self, answer: Option<OnWire>) -> Told {
        let (now, model) = (self.world.now(), &self.model);
        let wire_ns = |bytes: u64| u128::from(bytes) * 8_000_000_000 / u128::from(model.bits_per_s);
        // From its first frame to its last.
        let behind = answer.map_or(0, |answer| {
            wire_ns(answer.bytes.saturating_sub(answer.largest_frame_bytes))
        });
        let behind = Duration::from_nanos(behind as u64);
        let first = Time(now.as_nanos().saturating_sub(behind.as_nanos() as u64));
        let frames = answer.map_or(1, |answer| answer.frames);
        let coalescing = &model.initiator.coalescing;
        let told = coalescing.told_of_frames(self.interrupt.get(), (first, now), frames);
        self.interrupt.set(Some(told.at));
        told
    }

    /// What its processor did for I/O until now.
    pub fn cpu(&self) -> Snapshot {
        self.cores.borrow().snapshot(self.world.now())
    }
}

/// How a host spreads commands over the ways to a LUN.
pub enum Spread {
    /// Multipath: a way for each command.
    Paths(RefCell<Paths>),
    /// A group of links: the same way for all, which is that place among those that are up.
    Group(usize),
}

/// A LUN as a host sees it: its queue, and the ways to it.
///
/// Invariant: a command goes by ways that are up only; it waits while none is, as hosts hold
/// and repeat what they get no answer to.
pub struct LunRig {
    /// Admits commands of this LUN, at most its queue depth at a time.
    pub gate: Gate,
    ways: Vec<PortPath>,
    spread: Spread,
}

impl LunRig {
    /// A LUN with those ways, and multipath over them.
    pub fn multipath(depth: usize, ways: Vec<PortPath>, policy: Policy) -> LunRig {
        let paths = Paths::new(policy, ways.len());
        LunRig::new(depth, ways, Spread::Paths(RefCell::new(paths)))
    }

    /// A LUN behind a group of links whose hash gives it that place among the ways.
    pub fn grouped(depth: usize, ways: Vec<PortPath>, place: usize) -> LunRig {
        LunRig::new(depth, ways, Spread::Group(place))
    }

    fn new(depth: usize, ways: Vec<PortPath>, spread: Spread) -> LunRig {
        LunRig {
            gate: Gate::new(depth),
            ways,
            spread,
        }
    }

    /// The way of the next command. Waits until one is up.
    pub async fn begin(&self) -> TakenPath<'_> {
        let path = poll_fn(|context| match self.choose() {
            Some(path) => Poll::Ready(path),
            None => {
                self.ways.iter().for_each(|way| way.watch(context.waker()));
                Poll::Pending
            }
        });
        TakenPath {
            path: path.await,
            lun: self,
        }
    }

    fn choose(&self) -> Option<usize> {
        match &self.spread {
            Spread::Paths(paths) => paths.borrow_mut().begin(|path| self.ways[path].is_up()),
            Spread::Group(place) => {
                let up = || (0..self.ways.len()).filter(|way| self.ways[*way].is_up());
                up().nth(place.checked_rem(up().count())?)
            }
        }
    }
}

/// A way that a command has; its end is the command's.
pub struct TakenPath<'a> {
    lun: &'a LunRig,
    path: usize,
}

impl<'a> TakenPath<'a> {
    /// The way of the answer: this one, or another if it went down meanwhile.
    pub async fn back(self) -> TakenPath<'a> {
        if self.is_up() {
            return self;
        }
        let lun = self.lun;
        drop(self);
        lun.begin().await
    }
}

impl Deref for TakenPath<'_> {
    type Target = PortPath;

    fn deref(&self) -> &PortPath {
        &self.lun.ways[self.path]
    }
}

impl Drop for TakenPath<'_> {
    fn drop(&mut self) {
        if let Spread::Paths(paths) = &self.lun.spread {
            paths.borrow_mut().end(self.path);
        }
    }
}
