//! Third-party copies under arbitrary CDBs and parameter lists, over two volumes of a small
//! simulated pool.
//!
//! The input is steps: a byte that says what, and what it needs. So a fuzzer finds its way
//! past lengths, designators and tokens, and can still send any bytes at all. Checked at
//! every step: nothing panics, answers are no longer than asked for, what is kept for tokens
//! stays hidden.

#![no_main]

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../crates/scsi/tests/integration/offload/lists.rs"]
mod lists;

use base::{BufPool, Prng, Slice, Time, Uuid};
use engine::{Disk, IoError, Lane, Level, NamedDrive, PoolSpec, Provisioning, VolumeSpec, World};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use libfuzzer_sys::fuzz_target;
use scsi::offload::{
    Access, CancelToken, Copier, Designator, HeldData, Holder, Limits, Refusal, Tokens,
};
use scsi::{InitiatorPort, LogicalUnit, Nexus, NexusId, Target};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, MediaSpec, Order, SimDrive, SimWorld};

const PAGE: u64 = 4 << 10;
const PAGES: u64 = 16;
const STEPS_MAX: usize = 32;

fuzz_target!(|bytes: &[u8]| {
    let world = SimWorld::new(Prng::from_seed(1), Order::Fifo, BufPool::new(), Time(0));
    let media = Rc::new(Media::new(
        MediaSpec {
            name: "d".to_owned(),
            capacity_bytes: 2 << 20,
            rotational: false,
            discards: false,
            ignores_flush: false,
        },
        Prng::from_seed(2),
    ));
    let outcome = world.run(u64::MAX, run(&world, &media, bytes));
    world.power_off();
    assert!(outcome.is_ok(), "it did not end");
});

/// Copies within one target, tokens of one initiator.
struct Alone {
    world: SimWorld,
    holder: Rc<Holder<SimWorld>>,
    tokens: RefCell<Tokens>,
    later: Cell<u64>,
}

impl Copier<SimWorld> for Alone {
    fn world(&self) -> &SimWorld {
        &self.world
    }

    fn now(&self) -> Time {
        self.world.now() + Duration::from_secs(self.later.get())
    }

    fn initiator(&self) -> String {
        "iqn.host".to_owned()
    }

    fn reach(&self, _: Uuid, _: &CancelToken) -> Box<dyn Any> {
        Box::new(())
    }

    fn resolve(
        &self,
        _: Designator,
        _: Access,
        _: NexusId,
    ) -> LocalBoxFuture<'_, Result<Disk<SimWorld>, Refusal>> {
        async { Err(Refusal::Unreachable) }.boxed_local()
    }

    fn hold(
        &self,
        source: Disk<SimWorld>,
        ranges: Vec<(u64, u64)>,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'_, Result<HeldData, IoError>> {
        let hold = async move {
            let Disk::Here(source) = source else {
                panic!("all are here")
            };
            self.holder.hold(&source, &ranges, &cancel).await
        };
        hold.boxed_local()
    }

    fn holder(&self, uuid: Uuid) -> LocalBoxFuture<'_, Option<Disk<SimWorld>>> {
        let found = self.holder.pool().volume_of(uuid);
        async move { found.map(Disk::Here) }.boxed_local()
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
        async { false }.boxed_local()
    }

    fn tokens(&self, with: &mut dyn FnMut(&mut Tokens)) -> bool {
        with(&mut self.tokens.borrow_mut());
        true
    }
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take(&mut self, len: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        let mut taken = taken.to_vec();
        taken.resize(len, 0);
        taken
    }

    fn some<const LEN: usize>(&mut self) -> [u8; LEN] {
        let mut some = [0; LEN];
        some.copy_from_slice(&self.take(LEN));
        some
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }
}

async fn run(world: &SimWorld, media: &Rc<Media>, bytes: &[u8]) {
    let drive = SimDrive::adversarial(world, media);
    let spec = PoolSpec {
        stripe_unit_bytes: 4 << 10,
        page_bytes: PAGE as u32,
        journal_bytes: Some(8 << 10),
        volumes_max: 8,
        ..PoolSpec::new("p", Level::Simple)
    };
    let name = "d".to_owned();
    let made = Lane::create(world.clone(), spec, vec![NamedDrive { name, drive }]).await;
    let pool = made.expect("a pool");
    let target = Target::new("iqn.t", world.clone());
    let mut naas = Vec::new();
    for lun in [0, 1] {
        let made = pool.create_volume(VolumeSpec {
            name: format!("v{lun}"),
            size_bytes: PAGE * PAGES,
            provisioning: Provisioning::Thin,
        });
        let volume = made.await.expect("a volume");
        naas.push(scsi::Identity::of(volume.info().uuid).naa);
        let unit = LogicalUnit::new(volume).expect("a unit");
        assert!(target.map(lun, unit));
    }
    let nexus = target.connect(InitiatorPort::new("iqn.host", [1; 6]), 1);
    let copier = Rc::new(Alone {
        world: world.clone(),
        holder: Rc::new(Holder::new(pool.clone())),
        tokens: RefCell::new(Tokens::new(&[1; 40], Limits::default())),
        later: Cell::new(0),
    });
    nexus.set_copier(Rc::clone(&copier) as _);
    let mut input = Input(bytes);
    let mut token = vec![0; 512];
    for _ in 0..STEPS_MAX {
        if input.0.is_empty() {
            break;
        }
        step(&mut input, (&nexus, world), &naas, &copier, &mut token).await;
    }
    assert_eq!(pool.volumes().len(), 2, "nobody is shown another");
}

async fn step(
    input: &mut Input<'_>,
    (nexus, world): (&Nexus<SimWorld>, &SimWorld),
    naas: &[[u8; 16]],
    copier: &Alone,
    token: &mut Vec<u8>,
) {
    let kind = input.byte();
    let mut cdb = [0; 16];
    cdb[0] = 0x83;
    let list = match kind % 8 {
        // A copy with descriptors that are right, but for their segments.
        0 => {
            let segments = (0..input.byte() % 6).map(|_| {
                let [ids, blocks, from, to] = input.some();
                let ids = [ids & 1, ids >> 1 & 1].map(u16::from);
                (ids[0], ids[1], blocks.into(), from.into(), to.into())
            });
            let mut list = lists::xcopy(naas, &segments.collect::<Vec<_>>());
            list[0] = kind;
            list
        }
        // A token of ranges, then what is told of it.
        1 => {
            cdb[1] = 0x10;
            lists::populate(&ranges(input))
        }
        2 => {
            let told = tell(nexus, world).await;
            if told.len() >= 38 + 512 {
                *token = told[38..38 + 512].to_vec();
            }
            return;
        }
        // The token, or one that is nearly so.
        3 => {
            cdb[1] = 0x11;
            let [offset, at, bits] = input.some();
            let mut list = lists::write_using(token, offset.into(), false, &ranges(input));
            list[16 + usize::from(at) * 2] ^= bits;
            list
        }
        4 => {
            copier
                .later
                .set(copier.later.get() + u64::from(input.byte()));
            return;
        }
        // A list of any bytes.
        5 | 6 => {
            cdb[1] = [0, 0x10, 0x11, 0x1c][usize::from(kind >> 6)];
            let len = usize::from(input.byte()) * 4;
            input.take(len)
        }
        // Anything.
        _ => {
            cdb.copy_from_slice(&input.take(16));
            let len = usize::from(input.byte()) * 4;
            input.take(len)
        }
    };
    if kind % 8 != 7 {
        cdb[10..14].copy_from_slice(&(list.len() as u32).to_be_bytes());
    }
    let data: Slice = world.buffers().copy_of(&list).freeze();
    let lun = scsi::lun::encode(u16::from(kind >> 4 & 1));
    let asked = scsi::Cdb::from(cdb).data_out_bytes();
    let response = nexus.execute(lun, cdb, data).await;
    assert!(response.data.len() as u64 <= response.wanted_bytes);
    assert!(response.status != 0 || response.sense.is_empty());
    assert!(asked <= 64 << 20);
}

async fn tell(nexus: &Nexus<SimWorld>, world: &SimWorld) -> Vec<u8> {
    let mut cdb = [0; 16];
    cdb[..14].copy_from_slice(&lists::receive(7, 0, 1024));
    let nothing = world.buffers().copy_of(&[]).freeze();
    let told = nexus.execute(scsi::lun::encode(0), cdb, nothing).await;
    told.data.to_vec()
}

fn ranges(input: &mut Input<'_>) -> Vec<(u64, u32)> {
    let count = input.byte() % 5;
    let range = |_| {
        let [lba, blocks] = input.some();
        (lba.into(), blocks.into())
    };
    (0..count).map(range).collect()
}
