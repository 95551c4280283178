//! VMs at work: closed and open loops in virtual time over the generators of `workload`, whatever
//! their disks are.
//!
//! Invariants: an operation is issued once and recorded once; an open loop's operations keep
//! their intended start; nothing is issued after the end of the run, and the run waits for
//! what is under way. A VM that is held issues nothing; what is due then is late. One that is
//! off asks for nothing, and what it had asked for when it lost its host has failed.

use super::Wiring;
use crate::error::RehearseError;
use crate::parts::disk::{DiskError, DiskRig, Stages};
use crate::parts::gate::Gate;
use crate::parts::halt::Halt;
use crate::parts::host::HostRig;
use crate::parts::world::RigWorld;
use base::Time;
use engine::World;
use model::station::Station;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use workload::generator::Operation;
use workload::kpi::{Measured, Recorder, Window};
use workload::profile::{Pacing, VmProfile};
use workload::source::Source;
use workload::threads::Threads;

/// What the streams of a VM work on.
pub trait Vm: 'static {
    /// What it does.
    fn profile(&self) -> &VmProfile;

    /// Bytes of its disks, in the profile's order.
    fn disk_bytes(&self) -> Vec<u64>;

    /// Does one operation.
    ///
    /// # Errors
    /// What the disk says, for people.
    fn io(
        &self,
        world: &RigWorld,
        operation: &Operation,
    ) -> impl Future<Output = Result<Stages, String>>;

    /// Held while it issues nothing.
    fn halt(&self) -> &Halt;

    /// How often it has lost its host, or was started again.
    fn life(&self) -> u32;

    /// Whether it is off, or boots.
    fn is_off(&self) -> bool;

    /// It has completed an operation of so many bytes.
    fn did(&self, bytes: u64);

    /// What goes by in a closed loop from the end of an operation to the next one.
    fn think(&self) -> Duration {
        Duration::ZERO
    }

    /// Works for so long on one of its processors, of which there are as many as it takes unless
    /// it says otherwise.
    fn work(&self, world: &RigWorld, time: Duration) -> impl Future<Output = ()> {
        world.sleep(time)
    }
}

/// A VM and what it is on.
pub struct VmRig {
    /// Unique over the site.
    pub name: String,
    /// The VM group that it is of.
    pub vm_group: String,
    /// What it does; its name is the VM's.
    pub profile: VmProfile,
    /// Its disks, in the profile's order.
    pub disks: Vec<Rc<DiskRig>>,
    /// The host that it runs on; another after a migration.
    pub host: RefCell<Rc<HostRig>>,
    /// Its processors and memory.
    pub compute: Cell<model::vm::Vm>,
    /// How often it has lost its host, or was started again.
    pub life: Rc<Cell<u32>>,
    /// Whether it is off, or boots.
    pub off: Cell<bool>,
    /// Held while it issues nothing.
    pub halt: Halt,
    /// Operations that it completed, and their bytes.
    pub did: Cell<(u64, u64)>,
    /// What goes by in a closed loop from the end of an operation to the next one.
    pub think: Duration,
    /// Its virtual processors, which transactions work on.
    pub vcpus: RefCell<Station>,
}

impl VmRig {
    /// It stops at once; what it has under way ends.
    pub fn stop(&self) {
        self.life.set(self.life.get() + 1);
        if !self.off.replace(true) {
            self.halt.hold();
        }
    }

    /// Its load goes on.
    ///
    /// # Panics
    /// When it is not off.
    pub fn run(&self) {
        assert!(self.off.replace(false), "a VM that runs is started");
        self.halt.release();
    }

    /// It is on another host from now on, and its disks are LUNs there.
    pub fn put_on(&self, host: &Rc<HostRig>, wiring: &Wiring) {
        self.host.replace(Rc::clone(host));
        for disk in &self.disks {
            disk.host.replace(Rc::clone(host));
            self.connect(disk, wiring);
        }
    }

    /// Gives a disk the LUN that it has where its VM and its pool are by now.
    pub fn connect(&self, disk: &DiskRig, wiring: &Wiring) {
        let acting = disk.pool.borrow().controller.serving();
        let host = disk.host.borrow().name.clone();
        let lun = wiring.lun(&host, &acting.name, &self.vm_group, &disk.lun_name);
        disk.lun.replace(lun);
    }
}

impl Vm for VmRig {
    fn profile(&self) -> &VmProfile {
        &self.profile
    }

    fn disk_bytes(&self) -> Vec<u64> {
        self.disks.iter().map(|disk| disk.in_use_bytes).collect()
    }

    async fn io(&self, world: &RigWorld, operation: &Operation) -> Result<Stages, String> {
        let disk = &self.disks[operation.disk];
        let outcome = disk.io(world, operation).await;
        outcome.map_err(|error| error.to_string())
    }

    fn halt(&self) -> &Halt {
        &self.halt
    }

    fn life(&self) -> u32 {
        self.life.get()
    }

    fn is_off(&self) -> bool {
        self.off.get()
    }

    fn think(&self) -> Duration {
        self.think
    }

    async fn work(&self, world: &RigWorld, time: Duration) {
        if !time.is_zero() {
            let served = self.vcpus.borrow_mut().serve(world.now(), time);
            world.sleep_until(served.end).await;
        }
    }

    fn did(&self, bytes: u64) {
        let (operations, before) = self.did.get();
        self.did.set((operations + 1, before + bytes));
    }
}

/// Sums over all operations of a run, from its first to its last: for the laws.
#[derive(Debug, Default)]
pub struct Ledger {
    issued: Cell<u64>,
    ended: Cell<u64>,
    response_ns: Cell<u128>,
    outstanding_ns: Cell<u128>,
    changed: Cell<Time>,
}

/// What a ledger says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Operations issued since the start of the run.
    pub issued: u64,
    /// Operations that ended, failed ones included.
    pub ended: u64,
    /// Their response times together, from the issue, nanoseconds.
    pub response_ns: u128,
    /// Operations under way over time, operation-nanoseconds.
    pub outstanding_ns: u128,
}

impl Ledger {
    fn count(&self, now: Time) {
        let inside = u128::from(self.issued.get() - self.ended.get());
        let passed = (now - self.changed.get()).as_nanos();
        self.outstanding_ns
            .set(self.outstanding_ns.get() + inside * passed);
        self.changed.set(now);
    }

    /// Counts an operation that begins at `now`.
    pub fn issue(&self, now: Time) {
        self.count(now);
        self.issued.set(self.issued.get() + 1);
    }

    /// Counts the end at `now` of an operation that began at `issued`.
    pub fn end(&self, now: Time, issued: Time) {
        self.count(now);
        self.ended.set(self.ended.get() + 1);
        let response = (now - issued).as_nanos();
        self.response_ns.set(self.response_ns.get() + response);
    }

    /// What it says until now.
    pub fn balance(&self, now: Time) -> Balance {
        self.count(now);
        Balance {
            issued: self.issued.get(),
            ended: self.ended.get(),
            response_ns: self.response_ns.get(),
            outstanding_ns: self.outstanding_ns.get(),
        }
    }
}

/// Sums by stage over the operations that began in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageSums {
    /// Operations that began in the window and have ended.
    pub count: u64,
    /// Their time by stage, nanoseconds.
    pub ns: [u128; 5],
}

/// A stream at work.
pub struct StreamRun<V = VmRig> {
    pub(super) world: RigWorld,
    /// When the run began; all times of the recorder count from there.
    began: Time,
    window: Cell<Window>,
    /// Nothing is issued from then on.
    ends: Cell<Time>,
    vm: Rc<V>,
    /// Which of the VM's streams.
    pub stream: usize,
    source: RefCell<Source>,
    recorder: RefCell<Recorder>,
    ledger: Rc<Ledger>,
    stages: Cell<StageSums>,
    under_way: Cell<usize>,
    /// Operations that are due and have no slot, of an open loop.
    due: RefCell<std::collections::VecDeque<Operation>>,
    is_over: Cell<bool>,
    pace: Cell<Pace>,
    /// Of the threads' own draws.
    pub(super) seed: u64,
    /// Its threads as they are by now, of a closed network.
    pub(super) threads: Cell<Option<Threads>>,
    /// Those that are in a transaction.
    pub(super) connections: Gate,
    /// Whose operations end its transactions, where that is so.
    pub(super) commits: RefCell<Option<Rc<StreamRun<V>>>>,
}

/// How an open loop's time goes: `factor` as fast as drawn, from an instant on.
#[derive(Clone, Copy, Debug)]
struct Pace {
    from: Time,
    /// What the drawn clock said then.
    drawn: Time,
    factor: f64,
}

impl Pace {
    fn due(&self, drawn: Time) -> Time {
        if self.factor == 1.0 && self.from == self.drawn {
            return drawn;
        }
        self.from + drawn.since(self.drawn).div_f64(self.factor)
    }
}

impl<V: Vm> StreamRun<V> {
    /// The streams of a VM, at rest.
    pub fn of_vm(
        world: &RigWorld,
        vm: &Rc<V>,
        (window, seed): (Window, u64),
        ledger: &Rc<Ledger>,
    ) -> Result<Vec<Rc<StreamRun<V>>>, RehearseError> {
        let sources = Source::of_vm(vm.profile(), &vm.disk_bytes(), seed);
        let sources = sources.map_err(RehearseError::engine)?.into_iter();
        let streams: Vec<Rc<StreamRun<V>>> = sources
            .enumerate()
            .map(|stream| Rc::new(StreamRun::new(world, vm, stream, (window, seed), ledger)))
            .collect();
        for (index, stream) in streams.iter().enumerate() {
            let commits = vm.profile().commits_of(index);
            let commits = commits.map(|commits| Rc::clone(&streams[commits]));
            stream.commits.replace(commits);
        }
        Ok(streams)
    }

    fn new(
        world: &RigWorld,
        vm: &Rc<V>,
        (stream, source): (usize, Source),
        (window, seed): (Window, u64),
        ledger: &Rc<Ledger>,
    ) -> StreamRun<V> {
        let of_profile = &vm.profile().streams[stream];
        let open = matches!(of_profile.pacing, Pacing::Open { .. });
        let threads = of_profile.threads();
        let connections = threads.and_then(|threads| threads.connections);
        StreamRun {
            world: world.clone(),
            began: world.now(),
            window: Cell::new(window),
            ends: Cell::new(window.end),
            vm: Rc::clone(vm),
            stream,
            source: RefCell::new(source),
            recorder: RefCell::new(Recorder::new(window, open)),
            ledger: Rc::clone(ledger),
            stages: Cell::default(),
            under_way: Cell::new(0),
            due: RefCell::default(),
            is_over: Cell::new(false),
            pace: Cell::new(Pace {
                from: Time(0),
                drawn: Time(0),
                factor: 1.0,
            }),
            seed,
            threads: Cell::new(threads),
            connections: Gate::new(connections.unwrap_or(usize::MAX)),
            commits: RefCell::default(),
        }
    }

    /// Sets it to work.
    pub fn start(self: &Rc<Self>) {
        match self.vm.profile().streams[self.stream].pacing {
            Pacing::Closed { outstanding } => {
                for _ in 0..outstanding {
                    self.world.spawn(Rc::clone(self).closed());
                }
            }
            Pacing::Open { .. } => self.world.spawn(Rc::clone(self).arrivals()),
            Pacing::Threads(threads) => self.start_threads(threads, 0..threads.count),
            // Its operations are drawn by the threads whose commits they are.
            Pacing::Commits { .. } => {}
        }
    }

    /// Time of the run.
    pub(super) fn now(&self) -> Time {
        Time(self.world.now().since(self.began).as_nanos() as u64)
    }

    /// The next operation; none at the end of a trace, and after what a trace that has
    /// changed since it was looked through says, which counts as a failed operation.
    pub(super) fn draw(&self) -> Option<Operation> {
        self.source.borrow_mut().draw().unwrap_or_else(|error| {
            let (now, mut recorder) = (self.now(), self.recorder.borrow_mut());
            recorder.issued(now, Duration::ZERO);
            recorder.failed(now, error.to_string());
            None
        })
    }

    /// How long what waits longest for a slot has been due; zero when nothing waits.
    pub fn behind(&self) -> Duration {
        let due = self.due.borrow();
        due.front()
            .map_or(Duration::ZERO, |first| self.now().since(first.at))
    }

    pub(super) fn has_ended(&self) -> bool {
        self.is_over.get() || self.now() >= self.ends.get()
    }

    /// Has it ask for so many times as much from now on, on top of what was said before: an
    /// open loop more often, a closed one with more under way, or more threads. Where a VM is said to
    /// have so many connections, it has no more.
    pub fn speed_up(self: &Rc<Self>, factor: f64) {
        match self.vm.profile().streams[self.stream].pacing {
            Pacing::Closed { outstanding } => {
                for _ in self.more(outstanding, factor) {
                    self.world.spawn(Rc::clone(self).closed());
                }
            }
            Pacing::Threads(threads) => {
                let before = self.threads.get().map_or(0, |threads| threads.count);
                self.more(threads.count, factor);
                let threads = threads.scaled(self.pace.get().factor);
                self.threads.set(Some(threads));
                self.start_threads(threads, before..threads.count);
            }
            Pacing::Commits { .. } => {}
            Pacing::Open { .. } => {
                let (now, pace) = (self.now(), self.pace.get());
                self.pace.set(Pace {
                    from: now,
                    drawn: pace.drawn + now.since(pace.from).mul_f64(pace.factor),
                    factor: pace.factor * factor,
                });
            }
        }
    }

    /// The numbers of what is to be there beside what is, of `count` at first.
    fn more(&self, count: usize, factor: f64) -> Range<usize> {
        let before = self.pace.get().factor;
        let slots = |factor: f64| (count as f64 * factor).round() as usize;
        self.pace.set(Pace {
            factor: before * factor,
            ..self.pace.get()
        });
        slots(before)..slots(before * factor)
    }

    /// One of a closed loop's slots.
    async fn closed(self: Rc<Self>) {
        loop {
            self.vm.halt().passed().await;
            if self.has_ended() {
                return;
            }
            let Some(operation) = self.draw() else { return };
            let went_well = self.operate(operation, self.now()).await;
            if !went_well && !self.vm.halt().is_held() {
                self.world.sleep(RETRY).await;
            }
            if !self.vm.think().is_zero() {
                self.world.sleep(self.vm.think()).await;
            }
        }
    }

    /// An open loop: operations come when they are due.
    async fn arrivals(self: Rc<Self>) {
        let slots = self.vm.profile().streams[self.stream].outstanding_max;
        loop {
            let Some(mut operation) = self.draw() else {
                return;
            };
            // It may become due sooner while it is waited for.
            let drawn = operation.at;
            loop {
                operation.at = self.pace.get().due(drawn);
                if operation.at <= self.now() || operation.at >= self.ends.get() {
                    break;
                }
                let due = self.began + operation.at.since(Time(0));
                self.world.sleep_until(due).await;
            }
            if operation.at >= self.ends.get() || self.is_over.get() {
                return;
            }
            if self.vm.is_off() {
                continue;
            }
            self.recorder.borrow_mut().offered(operation.at);
            match self.under_way.get() < slots {
                true => {
                    self.under_way.set(self.under_way.get() + 1);
                    self.world.spawn(Rc::clone(&self).slot(operation));
                }
                false => self.due.borrow_mut().push_back(operation),
            }
        }
    }

    /// One of an open loop's slots, as long as anything is due.
    async fn slot(self: Rc<Self>, first: Operation) {
        let mut next = Some(first);
        while let Some(operation) = next {
            let life = self.vm.life();
            self.vm.halt().passed().await;
            match self.vm.life() == life {
                true => drop(self.operate(operation, operation.at).await),
                false => self.never_issued(),
            }
            if self.vm.is_off() {
                let due = self.due.take();
                due.iter().for_each(|_| self.never_issued());
            }
            next = match self.has_ended() {
                true => None,
                false => self.due.borrow_mut().pop_front(),
            };
        }
        self.under_way.set(self.under_way.get() - 1);
    }

    /// An operation was due, and its VM has lost its host.
    fn never_issued(&self) {
        let (now, mut recorder) = (self.now(), self.recorder.borrow_mut());
        recorder.issued(now, Duration::ZERO);
        recorder.failed(now, DiskError::HostLost.to_string());
    }

    /// Whether it went well.
    pub(super) async fn operate(&self, operation: Operation, at: Time) -> bool {
        let issued = self.now();
        self.ledger.issue(issued);
        self.recorder.borrow_mut().issued(issued, Duration::ZERO);
        let outcome = self.vm.io(&self.world, &operation).await;
        let now = self.now();
        self.ledger.end(now, issued);
        let mut recorder = self.recorder.borrow_mut();
        let went_well = outcome.is_ok();
        match outcome {
            Ok(stages) => {
                self.vm.did(u64::from(operation.bytes));
                recorder.completed(now, operation.kind, operation.bytes, at, issued);
                if self.window.get().holds(issued) {
                    self.add(&stages);
                }
            }
            Err(error) => recorder.failed(now, error),
        }
        went_well
    }

    /// A transaction that began at `began` has ended.
    pub(super) fn transacted(&self, began: Time) {
        self.recorder.borrow_mut().transacted(self.now(), began);
    }

    fn add(&self, stages: &Stages) {
        let mut sums = self.stages.get();
        sums.count += 1;
        for (sum, ns) in sums.ns.iter_mut().zip(stages.0) {
            *sum += u128::from(ns);
        }
        self.stages.set(sums);
    }

    /// Has it issue operations until then, whatever is measured. To be said before it starts.
    pub fn goes_on_until(&self, end: Time) {
        self.ends.set(end);
    }

    /// Forgets what was measured, and measures another window.
    pub fn measure_anew(&self, window: Window) {
        self.window.set(window);
        self.recorder.borrow_mut().begin_anew(self.now(), window);
        self.stages.set(StageSums::default());
    }

    /// Lets the stream issue nothing more, before the window ends.
    pub fn stop(&self) {
        self.is_over.set(true);
    }

    /// What was measured until now, and where the time went.
    pub fn finish(&self) -> (Measured, StageSums) {
        let now = self.now();
        let mut recorder = self.recorder.borrow().clone();
        for operation in self.due.borrow().iter() {
            recorder.unfinished(now, operation.kind, operation.at);
        }
        (recorder.finish(now).0, self.stages.get())
    }

    /// The VM whose operations these are.
    pub fn vm(&self) -> &Rc<V> {
        &self.vm
    }
}

/// A VM whose I/O fails tries again after so long.
pub(super) const RETRY: Duration = Duration::from_secs(1);
