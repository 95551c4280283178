//! Targets over one small pool, with a copier that knows both.

use crate::bench::pool::{PAGE_BYTES, with_pool};
use base::{Prng, Slice, Time, Uuid};
use engine::volume::VolumeSpec;
use engine::{Disk, IoError, Lane, Provisioning, Volume, World};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use scsi::offload::{
    Access, CancelToken, Copier, Designator, HeldData, Holder, Limits, Refusal, Tokens, unit_at,
};
use scsi::{Identity, InitiatorPort, LogicalUnit, Nexus, NexusId, Response, Target};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use world_sim::SimWorld;

pub const PAGE: u64 = PAGE_BYTES as u64;
pub const PAGE_BLOCKS: u64 = PAGE / 512;
/// Blocks of each volume.
pub const BLOCKS: u64 = 16 * PAGE_BLOCKS;

/// The target `own` has `a` and `b` as LUN 0 and 1, and the snapshot-like `r` as 2; `open`
/// has `c`, `closed` has `d`. The pool has room for all of them once.
pub struct Bench {
    pub world: SimWorld,
    pub pool: Lane<SimWorld>,
    pub own: Rc<Target<SimWorld>>,
    pub open: Rc<Target<SimWorld>>,
    /// Nobody may use this one.
    _closed: Rc<Target<SimWorld>>,
    pub copier: Rc<TestCopier>,
    next: Cell<u8>,
}

/// Knows the targets of a [`Bench`]; sessions would be admitted to `own` and `open`.
pub struct TestCopier {
    world: SimWorld,
    pub holder: Rc<Holder<SimWorld>>,
    pub tokens: RefCell<Tokens>,
    admitted: Vec<Rc<Target<SimWorld>>>,
    /// Added to the time.
    pub later: Cell<Duration>,
    /// Called before a logical unit of another target is looked for.
    pub before: RefCell<Option<Box<dyn FnOnce()>>>,
    pub initiator: RefCell<String>,
    /// Called when a copy says that it reaches a volume.
    pub at_reach: RefCell<Option<Box<dyn FnOnce()>>>,
    /// Copies reach so many volumes, and have reached so many.
    pub reached: Rc<(Cell<usize>, Cell<usize>)>,
    pub asked_for_room: Cell<usize>,
    pub room: RefCell<Option<LocalBoxFuture<'static, ()>>>,
}

struct Reach(Rc<(Cell<usize>, Cell<usize>)>);

impl Drop for Reach {
    fn drop(&mut self) {
        self.0.0.set(self.0.0.get() - 1);
    }
}

impl TestCopier {
    /// Lets go of what nobody needs, at once.
    async fn clear(&self, held: Vec<HeldData>) {
        for held in held {
            self.holder.release(held).await;
        }
    }

    pub async fn expire(&self) {
        let held = self.tokens.borrow_mut().expire(self.now());
        self.clear(held).await;
    }

    pub async fn revoke(&self, volume: Uuid) {
        let held = self.tokens.borrow_mut().revoke_source(volume);
        self.clear(held).await;
    }
}

impl Copier<SimWorld> for TestCopier {
    fn world(&self) -> &SimWorld {
        &self.world
    }

    fn now(&self) -> Time {
        self.world.now() + self.later.get()
    }

    fn initiator(&self) -> String {
        self.initiator.borrow().clone()
    }

    fn resolve(
        &self,
        wanted: Designator,
        access: Access,
        nexus: NexusId,
    ) -> LocalBoxFuture<'_, Result<Disk<SimWorld>, Refusal>> {
        let resolve = async move {
            if let Some(before) = self.before.take() {
                before();
            }
            for target in &self.admitted {
                if let Some(unit) = unit_at(target, &wanted, access, &nexus)? {
                    return Ok(unit.volume());
                }
            }
            Err(Refusal::Unreachable)
        };
        resolve.boxed_local()
    }

    fn hold(
        &self,
        source: Disk<SimWorld>,
        ranges: Vec<(u64, u64)>,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'_, Result<HeldData, IoError>> {
        let hold = async move {
            let uuid = source.info().uuid;
            let source = self.holder.pool().volume_of(uuid).expect("one of the pool");
            self.holder.hold(&source, &ranges, &cancel).await
        };
        hold.boxed_local()
    }

    fn holder(&self, uuid: Uuid) -> LocalBoxFuture<'_, Option<Disk<SimWorld>>> {
        let found = self.holder.pool().volume_of(uuid);
        async move { found.map(Disk::Here) }.boxed_local()
    }

    fn reach(&self, _: Uuid, _: &CancelToken) -> Box<dyn Any> {
        if let Some(at_reach) = self.at_reach.take() {
            at_reach();
        }
        let (now, all) = &*self.reached;
        now.set(now.get() + 1);
        all.set(all.get() + 1);
        Box::new(Reach(Rc::clone(&self.reached)))
    }

    fn release(&self, held: Vec<HeldData>) {
        let holder = Rc::clone(&self.holder);
        self.world.spawn(async move {
            for held in held {
                holder.release(held).await;
            }
        });
    }

    fn make_room(&self, _: Uuid, _: &CancelToken) -> LocalBoxFuture<'_, bool> {
        self.asked_for_room.set(self.asked_for_room.get() + 1);
        let room = self.room.take();
        async move {
            match room {
                Some(room) => {
                    room.await;
                    true
                }
                None => false,
            }
        }
        .boxed_local()
    }

    fn tokens(&self, with: &mut dyn FnMut(&mut Tokens)) -> bool {
        with(&mut self.tokens.borrow_mut());
        true
    }
}

/// An initiator port, different for each `number`.
pub fn port(number: u8) -> InitiatorPort {
    InitiatorPort::new(&format!("iqn.host{number}"), [number; 6])
}

pub fn spec(name: &str, provisioning: Provisioning) -> VolumeSpec {
    VolumeSpec {
        name: name.to_owned(),
        size_bytes: BLOCKS * 512,
        provisioning,
    }
}

pub fn with_bench(test: impl AsyncFnOnce(Bench)) {
    with_pool(8 << 20, 64, async |made| {
        test(Bench::over(&made.world, made.pool).await).await;
    });
}

impl Bench {
    async fn over(world: &SimWorld, pool: Lane<SimWorld>) -> Bench {
        let target = |name: &str| Target::new(name, world.clone());
        let (own, open, closed) = (target("iqn.own"), target("iqn.open"), target("iqn.closed"));
        for (name, target, lun) in [
            ("a", &own, 0),
            ("b", &own, 1),
            ("c", &open, 0),
            ("d", &closed, 0),
        ] {
            let made = pool.create_volume(spec(name, Provisioning::Thin)).await;
            let unit = LogicalUnit::new(made.unwrap()).unwrap();
            unit.set_may_affect_others(true);
            assert!(target.map(lun, unit));
        }
        let copier = TestCopier {
            world: world.clone(),
            holder: Rc::new(Holder::new(pool.clone())),
            tokens: RefCell::new(Tokens::new(&[3; 40], Limits::default())),
            admitted: vec![Rc::clone(&open), Rc::clone(&own)],
            later: Cell::default(),
            before: RefCell::default(),
            initiator: RefCell::new("iqn.host".to_owned()),
            at_reach: RefCell::default(),
            reached: Rc::default(),
            asked_for_room: Cell::default(),
            room: RefCell::default(),
        };
        Bench {
            world: world.clone(),
            pool,
            own,
            open,
            _closed: closed,
            copier: Rc::new(copier),
            next: Cell::default(),
        }
    }

    pub fn volume(&self, name: &str) -> Volume<SimWorld> {
        self.pool.volume(name).expect("it is there")
    }

    pub fn naa(&self, name: &str) -> Vec<u8> {
        let uuid = self.volume(name).info().uuid;
        Identity::of(uuid).naa.to_vec()
    }

    /// A nexus of `target` that has heard of power on, with the copier.
    pub async fn nexus(&self, target: &Rc<Target<SimWorld>>) -> Rc<Nexus<SimWorld>> {
        self.next.set(self.next.get() + 1);
        let nexus = target.connect(port(self.next.get()), 1);
        let copier: Rc<dyn Copier<SimWorld>> = Rc::clone(&self.copier) as _;
        nexus.set_copier(copier);
        for lun in target.luns() {
            self.run(&nexus, lun, &[0; 6], &[]).await;
        }
        nexus
    }

    pub fn data(&self, bytes: &[u8]) -> Slice {
        self.world.buffers().copy_of(bytes).freeze()
    }

    pub async fn run(
        &self,
        nexus: &Nexus<SimWorld>,
        lun: u16,
        cdb: &[u8],
        data_out: &[u8],
    ) -> Response {
        let mut whole = [0; 16];
        whole[..cdb.len()].copy_from_slice(cdb);
        let data = self.data(data_out);
        nexus.execute(scsi::lun::encode(lun), whole, data).await
    }

    pub async fn write(&self, name: &str, lba: u64, bytes: &[u8]) {
        let at = base::VolumeOffset(lba * 512);
        let written = self.volume(name).write(at, self.data(bytes)).await;
        written.unwrap();
    }

    pub async fn read(&self, name: &str, lba: u64, blocks: u64) -> Vec<u8> {
        let at = base::VolumeOffset(lba * 512);
        let read = self.volume(name).read(at, blocks as usize * 512).await;
        read.unwrap().to_vec()
    }

    /// Makes the snapshot `b@s`.
    pub async fn snapshot_of_b(&self) {
        let nobody = async { true };
        let taken = self
            .pool
            .snapshot_together(&[("b", "b@s")], 0, nobody)
            .await;
        taken.unwrap();
    }

    /// What was begun beside has time to end.
    pub async fn rest(&self) {
        self.world.sleep(Duration::from_secs(1)).await;
    }

    /// Bytes of pages in use.
    pub fn mapped(&self) -> u64 {
        self.pool.info().mapped_bytes
    }
}

/// Reproducible bytes, different for each `tag`.
pub fn bytes(tag: u64, blocks: u64) -> Vec<u8> {
    let mut bytes = vec![0; blocks as usize * 512];
    Prng::from_seed(tag).fill(&mut bytes);
    bytes
}

/// Sense key, additional sense code and qualifier; zeroes when it went well.
pub fn sense(response: &Response) -> (u8, u8, u8) {
    let at = |place: usize| response.sense.get(place).copied().unwrap_or(0);
    assert_eq!(
        response.status,
        if response.sense.is_empty() { 0 } else { 2 }
    );
    (at(2) & 0xf, at(12), at(13))
}
