//! Commands that find no room, and their outcome while the pool makes some.

use super::bench::{Bench, PAGE, PAGE_BLOCKS, with_bench};
use base::{Slice, VolumeOffset};
use engine::{Provisioning, VolumeSpec, World};
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::join;
use scsi::offload::CancelToken;
use scsi::{Nexus, Response};
use std::rc::Rc;
use std::time::Duration;
use world_sim::SimWorld;

const FILLER: &str = "filler";

/// Takes all the room that there is.
async fn fill(bench: &Bench) {
    let info = bench.pool.info();
    let free = info.capacity_bytes - info.mapped_bytes - info.promised_bytes;
    let filler = VolumeSpec {
        name: FILLER.to_owned(),
        size_bytes: free - free % PAGE,
        provisioning: Provisioning::Thick,
    };
    bench.pool.create_volume(filler).await.unwrap();
    // And the pages that are kept back.
    let sponge = bench.volume("b");
    for page in 0.. {
        let data = bench.data(&[1; 4096]);
        if sponge.write(VolumeOffset(page * PAGE), data).await.is_err() {
            return;
        }
    }
}

/// The next who asks for room gets some, when the sender says so.
fn room_on_demand(bench: &Bench) -> oneshot::Sender<()> {
    let (make, asked) = oneshot::channel();
    let pool = bench.pool.clone();
    let room = async move {
        // A test ends, too.
        if asked.await.is_err() {
            return false;
        }
        pool.delete_volume(FILLER).await.unwrap();
        true
    };
    *bench.room.next.borrow_mut() = Some(room.boxed_local());
    make
}

/// A page of these bytes to the first page of `a`.
async fn write(bench: &Bench, nexus: &Nexus<SimWorld>, byte: u8, cancel: &CancelToken) -> Response {
    write_page(bench, nexus, (0, byte), cancel).await
}

async fn write_page(
    bench: &Bench,
    nexus: &Nexus<SimWorld>,
    (page, byte): (u64, u8),
    cancel: &CancelToken,
) -> Response {
    let mut cdb = [0; 16];
    cdb[0] = 0x2a;
    cdb[2..6].copy_from_slice(&((page * PAGE_BLOCKS) as u32).to_be_bytes());
    cdb[7..9].copy_from_slice(&(PAGE_BLOCKS as u16).to_be_bytes());
    let data: Slice = bench.data(&vec![byte; PAGE as usize]);
    let lun = scsi::lun::encode(0);
    let cancel = cancel.clone();
    nexus
        .execute_making_room(lun, cdb.into(), data, cancel)
        .await
}

async fn first_page(bench: &Bench) -> Vec<u8> {
    bench.read("a", 0, PAGE_BLOCKS).await
}

/// Waits until somebody asks for room.
async fn is_asked(bench: &Bench, times: usize) {
    while bench.room.asked.get() < times {
        bench.world.sleep(Duration::from_millis(1)).await;
    }
}

async fn full(bench: &Bench) -> Rc<Nexus<SimWorld>> {
    let nexus = bench.nexus(&bench.own).await;
    fill(bench).await;
    nexus
}

#[test]
fn a_write_goes_on_when_there_is_room() {
    with_bench(async |bench| {
        let nexus = full(&bench).await;
        let cancel = CancelToken::default();
        let refused = write(&bench, &nexus, 1, &cancel).await;
        assert!(refused.found_no_room());
        let make = room_on_demand(&bench);
        let (written, ()) = join(write(&bench, &nexus, 2, &cancel), async {
            is_asked(&bench, 2).await;
            make.send(()).unwrap();
        })
        .await;
        assert_eq!(written.status, 0);
        assert_eq!(first_page(&bench).await, vec![2; PAGE as usize]);
    });
}

#[test]
fn a_write_that_nobody_waits_for_is_not_tried_again() {
    with_bench(async |bench| {
        let nexus = full(&bench).await;
        let cancel = CancelToken::default();
        let make = room_on_demand(&bench);
        let began = bench.world.now();
        let (written, ()) = join(write(&bench, &nexus, 1, &cancel), async {
            is_asked(&bench, 1).await;
            cancel.stop();
        })
        .await;
        assert!(written.found_no_room());
        let took = bench.world.now().since(began);
        assert!(
            took < Duration::from_secs(1),
            "it waits no longer: {took:?}"
        );
        drop(make);
        bench.pool.delete_volume(FILLER).await.unwrap();
        bench.world.sleep(Duration::from_secs(60)).await;
        assert_eq!(first_page(&bench).await, vec![0; PAGE as usize]);
        // Nor is one begun that was stopped on its way.
        let written = write(&bench, &nexus, 1, &cancel).await;
        assert_eq!(written.status, 0x40);
        assert_eq!(first_page(&bench).await, vec![0; PAGE as usize]);
    });
}

#[test]
fn a_write_that_another_has_overtaken_is_not_tried_again() {
    with_bench(async |bench| {
        let nexus = full(&bench).await;
        let other = bench.nexus(&bench.own).await;
        let cancel = CancelToken::default();
        let make = room_on_demand(&bench);
        let (old, ()) = join(write(&bench, &nexus, 1, &cancel), async {
            is_asked(&bench, 1).await;
            bench.pool.delete_volume(FILLER).await.unwrap();
            // By another way, and then something newer.
            for byte in [1, 2] {
                let written = write(&bench, &other, byte, &CancelToken::default()).await;
                assert_eq!(written.status, 0);
            }
            fill(&bench).await;
            make.send(()).unwrap();
        })
        .await;
        assert_eq!(old.sense[2] & 0xf, 0xb, "it may be tried again");
        assert_eq!(first_page(&bench).await, vec![2; PAGE as usize]);
    });
}

#[test]
fn a_write_of_other_blocks_overtakes_nothing() {
    with_bench(async |bench| {
        let nexus = full(&bench).await;
        let cancel = CancelToken::default();
        let make = room_on_demand(&bench);
        let (old, ()) = join(write(&bench, &nexus, 1, &cancel), async {
            is_asked(&bench, 1).await;
            let beside = write_page(&bench, &nexus, (1, 7), &CancelToken::default()).await;
            assert!(beside.found_no_room());
            make.send(()).unwrap();
        })
        .await;
        assert_eq!(old.status, 0);
        assert_eq!(first_page(&bench).await, vec![1; PAGE as usize]);
    });
}

#[test]
fn room_that_comes_too_late_is_of_no_use() {
    with_bench(async |bench| {
        let nexus = full(&bench).await;
        let cancel = CancelToken::default();
        let make = room_on_demand(&bench);
        let (old, ()) = join(write(&bench, &nexus, 1, &cancel), async {
            is_asked(&bench, 1).await;
            bench.world.sleep(Duration::from_secs(6)).await;
            make.send(()).unwrap();
        })
        .await;
        assert!(old.found_no_room());
        assert_eq!(first_page(&bench).await, vec![0; PAGE as usize]);
    });
}

/// An answer that says so would say that nothing was written.
#[test]
fn what_an_initiator_is_to_be_told_meanwhile_waits_for_its_next_command() {
    with_bench(async |bench| {
        let nexus = full(&bench).await;
        let cancel = CancelToken::default();
        let make = room_on_demand(&bench);
        let (written, ()) = join(write(&bench, &nexus, 3, &cancel), async {
            is_asked(&bench, 1).await;
            nexus.commands_cleared(0);
            make.send(()).unwrap();
        })
        .await;
        assert_eq!(written.status, 0);
        assert_eq!(first_page(&bench).await, vec![3; PAGE as usize]);
        let told = write(&bench, &nexus, 4, &cancel).await;
        assert_eq!(told.status, 2, "the attention comes now");
        assert_eq!(first_page(&bench).await, vec![3; PAGE as usize]);
    });
}
