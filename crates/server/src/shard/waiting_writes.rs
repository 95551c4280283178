//! Tests of writes that wait for room while their initiators go away.

use crate::served::initiator::{Initiator, LUN0, write10};
use crate::served::{Served, VOLUME_BYTES};
use crate::shard::ShardState;
use ::array::shard::space_reclaim::{Request, SpaceReclaim};
use base::VolumeOffset;
use engine::{Provisioning, VolumeSpec};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const FILLER: &str = "filler";
const ABORT_TASK: u8 = 1;
const UNIT_RESET: u8 = 5;

/// A served volume in a full pool, with a write to it that waits for room.
struct Full {
    served: Served,
    initiator: Initiator,
    task: u32,
    request: Request,
}

impl Full {
    async fn start(served: Served) -> Full {
        let room = Arc::new(SpaceReclaim::default());
        let asked = Arc::clone(&room);
        let fill = move |state: Rc<ShardState>| async move {
            state.set_space_reclaim(room);
            let pool = state.pool("p").unwrap();
            let info = pool.info();
            let free = info.capacity_bytes - info.mapped_bytes - info.promised_bytes;
            let filler = VolumeSpec {
                name: FILLER.to_owned(),
                size_bytes: free - free % u64::from(info.page_bytes),
                provisioning: Provisioning::Thick,
            };
            pool.create_volume(filler).await.unwrap();
            // And the pages that are kept back.
            let sponge = VolumeSpec {
                name: "sponge".to_owned(),
                size_bytes: 1 << 30,
                provisioning: Provisioning::Thin,
            };
            let sponge = pool.create_volume(sponge).await.unwrap();
            for page in 0.. {
                let data = engine::World::buffers(state.world())
                    .copy_of(&[1; 4096])
                    .freeze();
                let at = VolumeOffset(page * u64::from(info.page_bytes));
                if sponge.write(at, data).await.is_err() {
                    return;
                }
            }
        };
        served.shard.handle().call(fill).await.unwrap();
        let mut initiator = Initiator::settled(&served, 1).await;
        let task = initiator.command(&write10(0, 1), 0, 512, &[7; 512]).await;
        asked.asked().await;
        let request = asked.take().pop().unwrap();
        Full {
            served,
            initiator,
            task,
            request,
        }
    }

    /// There is room now, and the command hears of it.
    async fn make_room(served: &Served, request: Request) {
        let make = |state: Rc<ShardState>| async move {
            let pool = state.pool("p").unwrap();
            pool.delete_volume(FILLER).await.unwrap();
        };
        served.shard.handle().call(make).await.unwrap();
        request.answer(true);
    }

    /// The first byte of the volume.
    async fn first_byte(served: &Served) -> u8 {
        let read = |state: Rc<ShardState>| async move {
            let volume = state.pool("p").unwrap().volume("v").unwrap();
            assert_eq!(volume.info().size_bytes, VOLUME_BYTES);
            let read = volume.read(VolumeOffset(0), 512).await.unwrap();
            read.to_vec()[0]
        };
        served.shard.handle().call(read).await.unwrap()
    }
}

/// Until the server has no session any more, or for longer than that should take.
async fn without_sessions(served: &Served) {
    for _ in 0..100 {
        if served.sessions().await.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn is_not_tried_again_after_its_session(served: Served) {
    let Full {
        served,
        initiator,
        request,
        ..
    } = Full::start(served).await;
    drop(initiator);
    without_sessions(&served).await;
    Full::make_room(&served, request).await;
    without_sessions(&served).await;
    assert_eq!(
        Full::first_byte(&served).await,
        0,
        "it was written after all"
    );
    served.stop().await;
}

#[tokio::test]
async fn a_write_is_not_tried_again_when_its_connection_is_gone() {
    is_not_tried_again_after_its_session(Served::start().await).await;
}

#[tokio::test]
async fn nor_when_another_shard_carries_it() {
    is_not_tried_again_after_its_session(Served::beside_another().await).await;
}

async fn is_not_tried_again_after(function: u8) {
    let Full {
        served,
        mut initiator,
        task,
        request,
    } = Full::start(Served::start().await).await;
    let managing = initiator.manage(function, LUN0, task).await;
    let answer = initiator.receive().await.unwrap();
    assert_eq!(
        (answer.opcode(), answer.tag(), answer.header[2]),
        (0x22, managing, 0)
    );
    Full::make_room(&served, request).await;
    // What goes to the unit now comes behind all that was begun.
    initiator.run(&[0; 6], 0, &[]).await;
    assert_eq!(
        Full::first_byte(&served).await,
        0,
        "it was written after all"
    );
    served.stop().await;
}

#[tokio::test]
async fn a_write_that_was_aborted_is_not_tried_again() {
    is_not_tried_again_after(ABORT_TASK).await;
}

#[tokio::test]
async fn a_write_is_not_tried_again_after_a_reset() {
    is_not_tried_again_after(UNIT_RESET).await;
}

#[tokio::test]
async fn a_write_that_somebody_waits_for_goes_on_when_there_is_room() {
    let Full {
        served,
        mut initiator,
        task,
        request,
    } = Full::start(Served::start().await).await;
    Full::make_room(&served, request).await;
    let answer = initiator.receive().await.unwrap();
    assert_eq!((answer.tag(), answer.header[3]), (task, 0));
    assert_eq!(Full::first_byte(&served).await, 7);
    served.stop().await;
}
