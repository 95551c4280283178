//! Connections that another shard carries than the home of their target: the first
//! session of `Served::beside_another` is at home, those after it are carried.

use crate::served::initiator::{Initiator, LUN0, NAME, read10, write10};
use crate::served::{Served, TARGET, VOLUME_BYTES};

async fn carriers(served: &Served) -> Vec<usize> {
    let sessions = served.sessions().await;
    sessions.iter().map(|session| session.carrier).collect()
}

/// Reads `blocks` at `lba`: data-in comes in several PDUs.
async fn read(initiator: &mut Initiator, lba: u32, blocks: u16) -> Vec<u8> {
    let len = u32::from(blocks) * 512;
    let tag = initiator.command(&read10(lba, blocks), len, 0, &[]).await;
    let mut data = Vec::new();
    loop {
        let part = initiator.receive().await.unwrap();
        assert_eq!((part.opcode(), part.tag()), (0x25, tag));
        data.extend(part.data);
        if part.header[1] & 1 == 1 {
            return data;
        }
    }
}

/// Waits until that many sessions are left.
async fn until_left(served: &Served, count: usize) {
    while served.sessions().await.len() != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn data_goes_round_between_sessions_of_two_shards_and_is_counted() {
    let served = Served::beside_another().await;
    let mut home = Initiator::settled(&served, 1).await;
    let mut carried = Initiator::settled(&served, 2).await;
    assert_eq!(carriers(&served).await, [0, 1]);
    for blocks in [2, 100, 128] {
        let len = usize::from(blocks) * 512;
        let data: Vec<u8> = (0..len).map(|at| (at % 251) as u8 ^ 0x5a).collect();
        let written = carried.run(&write10(7, blocks), 0, &data).await;
        assert_eq!((written.opcode(), written.header[3]), (0x21, 0));
        assert!(read(&mut home, 7, blocks).await == data);
        assert!(read(&mut carried, 7, blocks).await == data);
    }
    let sessions = served.sessions().await;
    let counted = |at: usize| {
        (
            sessions[at].commands,
            sessions[at].reads,
            sessions[at].writes,
        )
    };
    assert_eq!((counted(0), counted(1)), ((5, 3, 0), (8, 3, 3)));
    served.stop().await;
    assert!(home.is_shown_out().await);
    assert!(carried.is_shown_out().await);
}

#[tokio::test]
async fn resets_and_changes_are_heard_on_both_shards() {
    let served = Served::beside_another().await;
    served.allow_affecting_others().await;
    let mut home = Initiator::settled(&served, 1).await;
    let mut carried = Initiator::settled(&served, 2).await;
    assert_eq!(carriers(&served).await[1], 1);
    let mut third = Initiator::settled(&served, 3).await;
    assert_eq!(carriers(&served).await, [0, 1, 1]);
    // What waits for data at the other shard is aborted by a reset from here.
    let pending = carried.command(&write10(0, 2), 0, 1024, &[]).await;
    assert_eq!(carried.receive().await.unwrap().tag(), pending);
    let reset = home.manage(5, LUN0, 0xffff_ffff).await;
    let answer = home.receive().await.unwrap();
    assert_eq!((answer.tag(), answer.header[2]), (reset, 0));
    assert_eq!(carried.run(&[0; 6], 0, &[]).await.sense(), (6, 0x29, 3));
    assert_eq!(third.run(&[0; 6], 0, &[]).await.sense(), (6, 0x29, 3));
    assert_eq!(home.run(&[0; 6], 0, &[]).await.sense(), (6, 0x29, 3));
    let again = carried.manage(1, LUN0, pending).await;
    let answer = carried.receive().await.unwrap();
    assert_eq!((answer.tag(), answer.header[2]), (again, 1), "it is gone");
    // And the other way round.
    let reset = carried.manage(6, LUN0, 0xffff_ffff).await;
    let answer = carried.receive().await.unwrap();
    assert_eq!((answer.tag(), answer.header[2]), (reset, 0));
    assert_eq!(home.run(&[0; 6], 0, &[]).await.sense(), (6, 0x29, 3));
    assert_eq!(third.run(&[0; 6], 0, &[]).await.sense(), (6, 0x29, 3));
    assert_eq!(carried.run(&[0; 6], 0, &[]).await.sense(), (6, 0x29, 3));
    let changed = served.shard.handle().call(|state| async move {
        let pool = state.pool("p").unwrap();
        pool.resize_volume("v", 2 * VOLUME_BYTES).await.unwrap();
        let info = pool.volume("v").unwrap().info();
        state.volume_resized(info.uuid, info.size_bytes);
    });
    changed.await.unwrap();
    for initiator in [&mut home, &mut carried] {
        assert_eq!(initiator.run(&[0; 6], 0, &[]).await.sense(), (6, 0x2a, 9));
    }
    served.stop().await;
}

#[tokio::test]
async fn a_write_is_aborted_where_it_waits_for_data() {
    let served = Served::beside_another().await;
    let _home = Initiator::settled(&served, 1).await;
    let mut carried = Initiator::settled(&served, 2).await;
    assert_eq!(carriers(&served).await[1], 1);
    let write = carried.command(&write10(0, 2), 0, 1024, &[]).await;
    assert_eq!(carried.receive().await.unwrap().opcode(), 0x31);
    let abort = carried.manage(1, LUN0, write).await;
    let answer = carried.receive().await.unwrap();
    assert_eq!((answer.tag(), answer.header[2]), (abort, 0));
    let read = carried.run(&read10(0, 2), 1024, &[]).await;
    assert_eq!(read.data, [0; 1024], "nothing was written");
    served.stop().await;
}

#[tokio::test]
async fn commands_of_a_connection_that_breaks_run_to_their_end() {
    let served = Served::beside_another().await;
    let mut home = Initiator::settled(&served, 1).await;
    let mut carried = Initiator::settled(&served, 2).await;
    assert_eq!(carriers(&served).await[1], 1);
    let data = vec![7; 32 << 10];
    for at in 0..20 {
        carried
            .command(&write10(at * 64, 64), 0, data.len() as u32, &data)
            .await;
    }
    // The last is not answered before it has come, so all are under way.
    while carried.receive().await.unwrap().opcode() != 0x21 {}
    drop(carried);
    until_left(&served, 1).await;
    let count = served.sessions().await[0].commands;
    assert_eq!(count, 2);
    assert!(read(&mut home, 0, 64).await == data);
    served.stop().await;
}

#[tokio::test]
async fn a_carried_session_is_reinstated_and_dropped() {
    let served = Served::beside_another().await;
    let _home = Initiator::settled(&served, 1).await;
    let mut old = Initiator::settled(&served, 2).await;
    let mut new = Initiator::settled(&served, 2).await;
    assert_eq!(carriers(&served).await[1], 1);
    assert!(old.receive().await.is_none(), "its connection is closed");
    assert_eq!(served.sessions().await.len(), 2);
    let tsih = served.sessions().await[1].tsih;
    let shard = served.shard.handle();
    let dropped = shard.call(move |state| async move { state.drop_session(tsih).await });
    assert!(dropped.await.unwrap());
    assert!(new.is_shown_out().await);
    until_left(&served, 1).await;
    served.stop().await;
}

#[tokio::test]
async fn a_cold_reset_ends_connections_on_all_shards() {
    let served = Served::beside_another().await;
    served.allow_affecting_others().await;
    let mut home = Initiator::settled(&served, 1).await;
    let mut carried = Initiator::settled(&served, 2).await;
    assert_eq!(carriers(&served).await[1], 1);
    let tag = carried.manage(7, LUN0, 0xffff_ffff).await;
    let answer = carried.receive().await.unwrap();
    assert_eq!((answer.tag(), answer.header[2]), (tag, 0));
    assert!(home.receive().await.is_none());
    assert!(carried.receive().await.is_none());
    served.stop().await;
}

#[tokio::test]
async fn shards_stop_in_any_order() {
    // The one that carries, before the home.
    let mut served = Served::beside_another().await;
    let mut home = Initiator::settled(&served, 1).await;
    let mut carried = Initiator::settled(&served, 2).await;
    assert_eq!(carriers(&served).await[1], 1);
    for other in std::mem::take(&mut served.others) {
        assert!(other.stop().await.is_empty());
    }
    assert!(carried.receive().await.is_none());
    until_left(&served, 1).await;
    assert_eq!(home.run(&[0; 6], 0, &[]).await.header[3], 0);
    // Who comes now is sent to a shard that is gone, and turned away.
    let mut late = Initiator::connect(served.address()).await;
    late.send_login(NAME, 3, TARGET).await;
    assert!(late.receive().await.is_none());
    until_left(&served, 1).await;
    served.stop().await;
    // The home, before the one that carries.
    let served = Served::beside_another().await;
    let _home = Initiator::settled(&served, 1).await;
    let mut carried = Initiator::settled(&served, 2).await;
    assert_eq!(carriers(&served).await[1], 1);
    served.stop().await;
    assert!(carried.is_shown_out().await);
}
