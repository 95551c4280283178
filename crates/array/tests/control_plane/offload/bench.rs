//! Targets on two shards over one small pool, for whose sessions the array copies.

use super::pool::{PAGE_BYTES, with_pool};
use array::directory::{Access, Directory, PORTAL_GROUP, TargetEntry};
use array::offload::{Offload, SECRET_BYTES, SessionCopier};
use array::shard::remote_volume::RemoteVolume;
use array::shard::space_reclaim::SpaceReclaim;
use array::shard::{Link, ShardHandle, ShardState, UnitTraits, Visit};
use base::{Prng, Slice};
use engine::volume::VolumeSpec;
use engine::{Disk, Lane, Provisioning, Volume, World};
use futures_util::future::LocalBoxFuture;
use iscsi::login::{Admission, LoginPortal};
use scsi::offload::Limits;
use scsi::{Identity, InitiatorPort, LogicalUnit, Nexus, Response, Target};
use send_wrapper::SendWrapper;
use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

pub(crate) const PAGE: u64 = PAGE_BYTES as u64;
pub(crate) const PAGE_BLOCKS: u64 = PAGE / 512;
/// Blocks of each volume.
pub(crate) const BLOCKS: u64 = 16 * PAGE_BLOCKS;

const HOST: &str = "iqn.host";

/// The target `own` has `a` and `b` as LUN 0 and 1; `open`, which is on another shard, has `c`, and
/// `closed` there has `d`: nobody may use that one. The pool has room for all of them once.
pub(crate) struct Bench {
    pub(crate) world: SimWorld,
    pub(crate) pool: Lane<SimWorld>,
    pub(crate) own: Rc<Target<SimWorld>>,
    pub(crate) open: Rc<Target<SimWorld>>,
    pub(crate) offload: Arc<Offload<SimWorld>>,
    pub(crate) room: Rc<Room>,
    shards: Vec<Rc<Shard>>,
    directory: Arc<Directory>,
    next: Cell<u8>,
}

/// What happens before so many messages more have arrived.
type Due = (usize, Box<dyn FnOnce()>);

/// A shard, and what happens before a message arrives there.
struct Shard {
    state: Rc<ShardState<SimWorld>>,
    due: RefCell<Option<Due>>,
}

struct Wire(SendWrapper<Rc<Shard>>);

impl Link<SimWorld> for Wire {
    fn send(&self, visit: Visit<SimWorld>) -> bool {
        let Shard { state, due } = &**self.0;
        match due.take() {
            Some((1, happens)) => happens(),
            Some((messages, happens)) => _ = due.replace(Some((messages - 1, happens))),
            None => {}
        }
        state.world().spawn(visit(Rc::clone(state)));
        true
    }
}

/// What those get who find no room.
#[derive(Default)]
pub(crate) struct Room {
    pub(crate) asked: Cell<usize>,
    /// What makes some for the next who asks. Whether that is worth another try.
    pub(crate) next: RefCell<Option<LocalBoxFuture<'static, bool>>>,
}

impl Room {
    async fn answer_all(self: Rc<Self>, world: SimWorld, reclaim: Arc<SpaceReclaim>) {
        loop {
            reclaim.asked().await;
            for request in reclaim.take() {
                self.asked.set(self.asked.get() + 1);
                match self.next.take() {
                    Some(room) => world.spawn(async move { request.answer(room.await) }),
                    None => request.answer(false),
                }
            }
        }
    }
}

/// An initiator port, different for each `number`.
fn port(number: u8) -> InitiatorPort {
    InitiatorPort::new(&format!("iqn.host{number}"), [number; 6])
}

pub(crate) fn spec(name: &str, provisioning: Provisioning) -> VolumeSpec {
    VolumeSpec {
        name: name.to_owned(),
        size_bytes: BLOCKS * 512,
        provisioning,
    }
}

pub(crate) fn with_bench(test: impl AsyncFnOnce(Bench)) {
    with_bench_of(Limits::default(), test);
}

/// As [`with_bench`], with so many tokens.
pub(crate) fn with_bench_of(limits: Limits, test: impl AsyncFnOnce(Bench)) {
    with_pool(8 << 20, 64, async |made| {
        test(Bench::over(&made.world, made.pool, limits).await).await;
    });
}

impl Bench {
    async fn over(world: &SimWorld, pool: Lane<SimWorld>, limits: Limits) -> Bench {
        let shard = |index| {
            Rc::new(Shard {
                state: ShardState::new(index, world.clone()),
                due: RefCell::default(),
            })
        };
        let shards = [0, 1].map(shard);
        let handles = shards.each_ref().map(handle);
        let (room, reclaim) = (Rc::<Room>::default(), Arc::<SpaceReclaim>::default());
        for shard in &shards {
            shard.state.set_space_reclaim(Arc::clone(&reclaim));
        }
        world.spawn(Rc::clone(&room).answer_all(world.clone(), reclaim));
        let [home, other] = shards.each_ref().map(|shard| &shard.state);
        home.add_pool(pool.clone());
        let directory = Arc::new(Directory::new());
        directory.set_portals(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 3260)).into()]);
        for (name, target, lun) in [
            ("a", "iqn.own", 0),
            ("b", "iqn.own", 1),
            ("c", "iqn.open", 0),
            ("d", "iqn.closed", 0),
        ] {
            let made = pool.create_volume(spec(name, Provisioning::Thin)).await;
            let volume = made.unwrap();
            let (state, disk) = match target {
                "iqn.own" => (home, volume.into()),
                _ => (other, remote(&handles[0], &pool, &volume)),
            };
            let traits = UnitTraits {
                may_affect_others: true,
                ..UnitTraits::default()
            };
            state.export_with(target, lun, disk, traits).unwrap();
            let access = match target {
                "iqn.closed" => Access::default(),
                _ => Access::open(),
            };
            let shard = state.index();
            directory.set_target(target, TargetEntry { shard, access });
        }
        let offload = Arc::new(Offload::new(Some([3; SECRET_BYTES]), limits));
        offload.set_shards(&handles);
        Bench {
            world: world.clone(),
            pool,
            own: home.target_or_new("iqn.own"),
            open: other.target_or_new("iqn.open"),
            offload,
            room,
            shards: shards.into(),
            directory,
            next: Cell::default(),
        }
    }

    pub(crate) fn volume(&self, name: &str) -> Volume<SimWorld> {
        self.pool.volume(name).expect("it is there")
    }

    pub(crate) fn naa(&self, name: &str) -> Vec<u8> {
        let uuid = self.volume(name).info().uuid;
        Identity::of(uuid).naa.to_vec()
    }

    /// A nexus of `target`, with the array's copier.
    pub(crate) fn connect(
        &self,
        target: &Rc<Target<SimWorld>>,
        initiator: &str,
    ) -> Rc<Nexus<SimWorld>> {
        self.next.set(self.next.get() + 1);
        let nexus = target.connect(port(self.next.get()), 1);
        let admission = Admission {
            initiator: initiator.to_owned(),
            account: None,
            portal: LoginPortal {
                portal_group: PORTAL_GROUP,
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, 3260)),
            },
        };
        let entry = self.directory.target(target.name());
        let home = &self.shards[entry.expect("it is there").shard].state;
        let shared = (&self.directory, &self.offload);
        let copier = SessionCopier::new(home, shared, admission, target.name());
        nexus.set_copier(Rc::new(copier));
        nexus
    }

    /// A nexus of `target` that has heard of power on.
    pub(crate) async fn nexus(&self, target: &Rc<Target<SimWorld>>) -> Rc<Nexus<SimWorld>> {
        self.nexus_of(target, HOST).await
    }

    /// The same of this initiator.
    pub(crate) async fn nexus_of(
        &self,
        target: &Rc<Target<SimWorld>>,
        initiator: &str,
    ) -> Rc<Nexus<SimWorld>> {
        let nexus = self.connect(target, initiator);
        for lun in target.luns() {
            self.run(&nexus, lun, &[0; 6], &[]).await;
        }
        nexus
    }

    /// Before the shard of other targets gets so many messages more, this happens.
    pub(crate) fn before_message(&self, messages: usize, happens: impl FnOnce() + 'static) {
        let due: Due = (messages, Box::new(happens));
        self.shards[1].due.replace(Some(due));
    }

    /// Whether that has happened.
    pub(crate) fn has_happened(&self) -> bool {
        self.shards[1].due.borrow().is_none()
    }

    /// What tokens keep is looked through as by the next start of the array.
    pub(crate) async fn start_again(&self) {
        let shard = Rc::new(Shard {
            state: ShardState::new(0, self.world.clone()),
            due: RefCell::default(),
        });
        shard.state.add_pool(self.pool.clone());
        let offload = Offload::new(None, Limits::default());
        let shards = [handle(&shard)];
        offload.forget_leftovers(&shards, None).await.unwrap();
    }

    pub(crate) fn data(&self, bytes: &[u8]) -> Slice {
        self.world.buffers().copy_of(bytes).freeze()
    }

    /// Shows a volume at LUN 2 of the own target as well, and lets `nexus` hear of that.
    pub(crate) async fn show_at_2(&self, nexus: &Nexus<SimWorld>, volume: Volume<SimWorld>) {
        assert!(self.own.map(2, LogicalUnit::new(volume).unwrap()));
        for lun in [0, 1, 2] {
            while sense(&self.run(nexus, lun, &[0; 6], &[]).await).0 == 6 {}
        }
    }

    /// The same for a new volume, "t", which is thick.
    pub(crate) async fn show_thick_volume(&self, nexus: &Nexus<SimWorld>) {
        let made = self.pool.create_volume(spec("t", Provisioning::Thick));
        self.show_at_2(nexus, made.await.unwrap()).await;
    }

    pub(crate) async fn run(
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

    pub(crate) async fn write(&self, name: &str, lba: u64, bytes: &[u8]) {
        let at = base::VolumeOffset(lba * 512);
        let written = self.volume(name).write(at, self.data(bytes)).await;
        written.unwrap();
    }

    pub(crate) async fn read(&self, name: &str, lba: u64, blocks: u64) -> Vec<u8> {
        let at = base::VolumeOffset(lba * 512);
        let read = self.volume(name).read(at, blocks as usize * 512).await;
        read.unwrap().to_vec()
    }

    /// Makes the snapshot `b@s`.
    pub(crate) async fn snapshot_of_b(&self) {
        let nobody = async { true };
        let taken = self
            .pool
            .snapshot_together(&[("b", "b@s")], 0, nobody)
            .await;
        taken.unwrap();
    }

    /// What was begun beside has time to end.
    pub(crate) async fn rest(&self) {
        self.world.sleep(Duration::from_secs(1)).await;
    }

    /// Bytes of pages in use.
    pub(crate) fn mapped(&self) -> u64 {
        self.pool.info().mapped_bytes
    }
}

fn handle(shard: &Rc<Shard>) -> ShardHandle<SimWorld> {
    let link = Wire(SendWrapper::new(Rc::clone(shard)));
    ShardHandle::new(shard.state.index(), Arc::new(link))
}

/// A volume as another shard than its own reaches it.
fn remote(
    home: &ShardHandle<SimWorld>,
    pool: &Lane<SimWorld>,
    volume: &Volume<SimWorld>,
) -> Disk<SimWorld> {
    let place = (pool.name().to_owned(), pool.lane());
    Disk::There(Rc::new(RemoteVolume::new(
        home.clone(),
        place,
        volume.info(),
    )))
}

/// Reproducible bytes, different for each `tag`.
pub(crate) fn bytes(tag: u64, blocks: u64) -> Vec<u8> {
    let mut bytes = vec![0; blocks as usize * 512];
    Prng::from_seed(tag).fill(&mut bytes);
    bytes
}

/// Sense key, additional sense code and qualifier; zeroes when it went well.
pub(crate) fn sense(response: &Response) -> (u8, u8, u8) {
    let at = |place: usize| response.sense.get(place).copied().unwrap_or(0);
    assert_eq!(
        response.status,
        if response.sense.is_empty() { 0 } else { 2 }
    );
    (at(2) & 0xf, at(12), at(13))
}
