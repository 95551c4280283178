//! What is counted of volumes, initiators and sessions: known commands of two initiators at
//! two LUNs, one at home and one carried by another shard, over the end of a session.

use crate::served::initiator::{Initiator, LUN0, NAME, read10, write10};
use crate::served::{Served, TARGET, VOLUME_BYTES};
use array::shard::watch::Watch;
use base::Uuid;
use engine::{Provisioning, VolumeSpec, World};
use server::shard::{Counted, Flow, Kind, Timing, Totals};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const OTHER: &str = "iqn.2026-11.test:other";
const LUN1: [u8; 8] = [0, 1, 0, 0, 0, 0, 0, 0];
const LUN7: [u8; 8] = [0, 7, 0, 0, 0, 0, 0, 0];
const ABORT_TASK_SET: u8 = 2;
const MINUTE: Duration = Duration::from_secs(60);
const GOOD: u8 = 0;
const CHECK_CONDITION: u8 = 2;
const CONFLICT: u8 = 0x18;

/// Shows another volume at LUN 1; gives the identities of both.
async fn second_volume(served: &Served) -> [Uuid; 2] {
    let made = served.shard.handle().call(|state| async move {
        let spec = VolumeSpec {
            name: "w".to_owned(),
            size_bytes: VOLUME_BYTES,
            provisioning: Provisioning::Thin,
        };
        let pool = state.pool("p").unwrap();
        let volume = pool.create_volume(spec).await.unwrap();
        let identities = [pool.volume("v").unwrap().info().uuid, volume.info().uuid];
        state.export(TARGET, 1, volume).unwrap();
        identities
    });
    made.await.unwrap()
}

/// Runs a command at a LUN that has to end with this status.
async fn ends(at: &mut Initiator, lun: [u8; 8], cdb: &[u8], lens: (u32, usize), status: u8) {
    at.lun = lun;
    let answer = at.run(cdb, lens.0, &vec![0; lens.1]).await;
    assert_eq!(answer.header[3], status, "{cdb:x?}");
}

/// Hears of power on at a LUN.
async fn settle(at: &mut Initiator, lun: [u8; 8]) {
    at.lun = lun;
    at.settle().await;
}

async fn good(at: &mut Initiator, lun: [u8; 8], cdb: &[u8], lens: (u32, usize)) {
    ends(at, lun, cdb, lens, GOOD).await;
}

/// A command of ten or sixteen bytes with these set.
fn cdb(len: usize, bytes: &[(usize, u8)]) -> Vec<u8> {
    let mut cdb = vec![0; len];
    for (at, byte) in bytes {
        cdb[*at] = *byte;
    }
    cdb
}

/// What the first initiator does at LUN 0: 2 + 4 + 4 + 7 commands.
async fn work(first: &mut Initiator) {
    settle(first, LUN0).await;
    good(first, LUN0, &write10(0, 8), (0, 4096)).await;
    good(first, LUN0, &write10(8, 8), (0, 4096)).await;
    good(first, LUN0, &write10(16, 1), (0, 512)).await;
    good(first, LUN0, &write10(1000, 128), (0, 65_536)).await;
    good(first, LUN0, &read10(0, 8), (4096, 0)).await;
    good(first, LUN0, &read10(8, 8), (4096, 0)).await;
    good(first, LUN0, &read10(0, 16), (8192, 0)).await;
    let beyond = read10((VOLUME_BYTES / 512) as u32, 1);
    ends(first, LUN0, &beyond, (512, 0), CHECK_CONDITION).await;
    // UNMAP of nothing; WRITE SAME with UNMAP, of a block of zeroes, of another.
    good(first, LUN0, &cdb(10, &[(0, 0x42), (8, 8)]), (0, 8)).await;
    let unmap = cdb(16, &[(0, 0x93), (1, 0x08), (13, 8)]);
    good(first, LUN0, &unmap, (0, 512)).await;
    let same = cdb(10, &[(0, 0x41), (8, 8)]);
    good(first, LUN0, &same, (0, 512)).await;
    let answer = first.run(&same, 0, &[7; 512]).await;
    assert_eq!(answer.header[3], GOOD);
    // COMPARE AND WRITE that compares, and one that does not.
    let compare = cdb(16, &[(0, 0x89), (9, 20), (13, 1)]);
    good(first, LUN0, &compare, (0, 1024)).await;
    let answer = first.run(&compare, 0, &[9; 1024]).await;
    assert_eq!(answer.header[3], CHECK_CONDITION);
    // EXTENDED COPY of nothing.
    good(first, LUN0, &cdb(16, &[(0, 0x83)]), (0, 0)).await;
}

async fn volumes(served: &Served) -> BTreeMap<Uuid, Counted> {
    let handle = served.shard.handle();
    let counted = handle.call(|state| async move { state.volume_totals() });
    counted.await.unwrap()
}

async fn initiators(served: &Served) -> BTreeMap<String, Counted> {
    let handle = served.shard.handle();
    let counted = handle.call(|state| async move { state.initiator_totals() });
    counted.await.unwrap()
}

async fn sessions(served: &Served) -> Vec<(String, Totals)> {
    let handle = served.shard.handle();
    let counted = handle.call(|state| async move { state.session_totals() });
    let counted = counted.await.unwrap().into_iter();
    counted
        .map(|one| (one.info.initiator, one.totals))
        .collect()
}

/// How many; checks that the histogram has all of them.
fn timed(timing: &Timing<u64>) -> u64 {
    assert_eq!(timing.buckets.iter().sum::<u64>(), timing.commands);
    assert!(timing.total_ns >= timing.max_ns);
    assert_eq!(timing.max_ns > 0, timing.commands > 0);
    timing.commands
}

/// Commands, bytes, random ones; checks that histograms have all of them.
fn flow(flow: &Flow<u64>) -> [u64; 3] {
    assert_eq!(flow.sizes.iter().sum::<u64>(), flow.timing.commands);
    [timed(&flow.timing), flow.bytes, flow.random]
}

/// Unmaps, WRITE SAME, compare-and-writes, offloads, errors, conflicts.
fn others(totals: &Totals) -> [u64; 6] {
    let [a, b, c, d] = [
        Kind::Unmap,
        Kind::WriteSame,
        Kind::CompareAndWrite,
        Kind::Offload,
    ]
    .map(|kind| totals.of(kind).timing().map_or(0, timed));
    [a, b, c, d, totals.errors, totals.conflicts]
}

#[tokio::test]
async fn known_commands_are_counted_by_volume_initiator_and_session() {
    let served = Served::beside_another().await;
    let [v, w] = second_volume(&served).await;
    let mut first = Initiator::login(served.address(), NAME, 1, TARGET).await;
    let mut second = Initiator::login(served.address(), OTHER, 1, TARGET).await;
    assert_eq!(served.sessions().await[1].carrier, 1, "by another shard");
    work(&mut first).await;
    // RESERVE: the other one may not read until this session has ended.
    settle(&mut first, LUN1).await;
    good(&mut first, LUN1, &[0x16, 0, 0, 0, 0, 0], (0, 0)).await;
    settle(&mut second, LUN0).await;
    good(&mut second, LUN0, &write10(24, 8), (0, 4096)).await;
    second.lun = LUN1;
    assert_eq!(second.run(&[0; 6], 0, &[]).await.sense(), (6, 0x29, 0));
    ends(&mut second, LUN1, &read10(0, 8), (4096, 0), CONFLICT).await;
    // Where there is no unit: of nobody's volume.
    ends(&mut second, LUN7, &[0; 6], (0, 0), CHECK_CONDITION).await;
    let inquiry = [0x12, 0, 0, 0, 36, 0];
    good(&mut second, LUN7, &inquiry, (36, 0)).await;

    let all = sessions(&served).await;
    let of_first = all.iter().find(|(name, _)| name == NAME).unwrap().1.clone();
    drop(first);
    while served.sessions().await.len() > 1 {
        tokio::task::yield_now().await;
    }
    let after = initiators(&served).await;
    assert_eq!((after[NAME].sessions, after[OTHER].sessions), (0, 1));
    assert_eq!(after[NAME].totals, of_first, "what it did is kept");

    // It comes again, and does more: in its own session's eyes at random.
    let mut first = Initiator::login(served.address(), NAME, 2, TARGET).await;
    settle(&mut first, LUN0).await;
    good(&mut first, LUN0, &read10(24, 8), (4096, 0)).await;
    good(&mut second, LUN1, &read10(0, 8), (4096, 0)).await;

    let volumes = volumes(&served).await;
    assert_eq!(volumes.keys().count(), 2);
    let Counted { sessions, totals } = &volumes[&v];
    assert_eq!((*sessions, totals.commands), (2, 17 + 3 + 3));
    assert_eq!(flow(&totals.reads), [4, 20_480, 3]);
    assert_eq!(flow(&totals.writes), [5, 78_336, 3]);
    assert_eq!(others(totals), [2, 2, 1, 1, 2, 0]);
    assert_eq!(totals.depth_max, 1);
    let well = totals.reads.timing.total_ns + totals.writes.timing.total_ns;
    assert!(totals.depth_ns > well, "others were in progress, too");
    let sizes = |flow: &Flow<u64>| [0, 3, 4, 7].map(|class: usize| flow.sizes[class]);
    assert_eq!(sizes(&totals.reads), [0, 3, 1, 0]);
    assert_eq!(sizes(&totals.writes), [1, 3, 0, 1]);
    let Counted { sessions, totals } = &volumes[&w];
    assert_eq!((*sessions, totals.commands), (1, 3 + 3));
    assert_eq!(flow(&totals.reads), [1, 4096, 1]);
    assert_eq!(
        (flow(&totals.writes), others(totals)),
        ([0; 3], [0, 0, 0, 0, 0, 1])
    );

    let initiators = initiators(&served).await;
    let of_first = &initiators[NAME];
    assert_eq!((of_first.sessions, of_first.totals.commands), (1, 20 + 3));
    assert_eq!(others(&of_first.totals), [2, 2, 1, 1, 2, 0]);
    let of_second = &initiators[OTHER];
    assert_eq!((of_second.sessions, of_second.totals.commands), (1, 8));
    assert_eq!(others(&of_second.totals), [0, 0, 0, 0, 1, 1]);
    served.stop().await;
}

#[tokio::test]
async fn depth_is_what_is_in_progress_at_the_lun() {
    let served = Served::start().await;
    let [v, w] = second_volume(&served).await;
    let mut initiator = Initiator::settled(&served, 1).await;
    settle(&mut initiator, LUN1).await;
    initiator.lun = LUN0;
    // Two writes wait for their data.
    for lba in [0, 8] {
        let pending = initiator.command(&write10(lba, 8), 0, 4096, &[]).await;
        let asked = initiator.receive().await.unwrap();
        assert_eq!((asked.opcode(), asked.tag()), (0x31, pending));
    }
    good(&mut initiator, LUN1, &[0; 6], (0, 0)).await;
    good(&mut initiator, LUN0, &[0; 6], (0, 0)).await;
    // What is aborted is in progress no more, and never ended.
    let aborted = initiator.manage(ABORT_TASK_SET, LUN0, 0).await;
    assert_eq!(initiator.receive().await.unwrap().tag(), aborted);
    good(&mut initiator, LUN0, &[0; 6], (0, 0)).await;
    let volumes = volumes(&served).await;
    let depths = |of| {
        let Totals {
            commands,
            depth_max,
            ..
        } = &volumes[&of].totals;
        (*commands, *depth_max)
    };
    assert_eq!(depths(v), (4, 3));
    assert_eq!(depths(w), (3, 1));
    // The clock has been looked at again since the first of two writes came.
    assert!(volumes[&v].totals.depth_ns > 0);
    served.stop().await;
}

#[tokio::test]
async fn all_that_writes_counts_as_a_write_of_its_session() {
    let served = Served::start().await;
    let mut initiator = Initiator::settled(&served, 1).await;
    // WRITE AND VERIFY(10) and (16), WRITE ATOMIC(16), ORWRITE(16), WRITE(16).
    good(
        &mut initiator,
        LUN0,
        &cdb(10, &[(0, 0x2e), (8, 1)]),
        (0, 512),
    )
    .await;
    good(
        &mut initiator,
        LUN0,
        &cdb(16, &[(0, 0x8e), (13, 1)]),
        (0, 512),
    )
    .await;
    good(
        &mut initiator,
        LUN0,
        &cdb(16, &[(0, 0x9c), (13, 1)]),
        (0, 512),
    )
    .await;
    good(
        &mut initiator,
        LUN0,
        &cdb(16, &[(0, 0x8b), (13, 1)]),
        (0, 512),
    )
    .await;
    good(
        &mut initiator,
        LUN0,
        &cdb(16, &[(0, 0x8a), (13, 1)]),
        (0, 512),
    )
    .await;
    // VERIFY(10) compares, WRITE SAME(10) repeats: neither is one.
    good(
        &mut initiator,
        LUN0,
        &cdb(10, &[(0, 0x2f), (1, 2), (8, 1)]),
        (0, 512),
    )
    .await;
    good(
        &mut initiator,
        LUN0,
        &cdb(10, &[(0, 0x41), (8, 1)]),
        (0, 512),
    )
    .await;
    good(&mut initiator, LUN0, &read10(0, 1), (512, 0)).await;
    let info = served.sessions().await.remove(0);
    assert_eq!((info.writes, info.written_bytes), (5, 5 * 512));
    assert_eq!((info.reads, info.read_bytes), (1, 512));
    served.stop().await;
}

#[tokio::test]
async fn a_capture_counts_for_the_volume_that_a_lun_shows_now() {
    let served = Served::start().await;
    let [v, w] = second_volume(&served).await;
    let mut initiator = Initiator::settled(&served, 1).await;
    settle(&mut initiator, LUN1).await;
    let watched = served.shard.handle().call(move |state| async move {
        let watch = |uuid| {
            let now = state.world().now();
            (uuid, Arc::new(Watch::new(VOLUME_BYTES, now, MINUTE)))
        };
        let watches = Arc::new(BTreeMap::from([v, w].map(watch)));
        state.watch(Some(Arc::clone(&watches)));
        watches
    });
    let watches = watched.await.unwrap();
    good(&mut initiator, LUN0, &read10(0, 8), (4096, 0)).await;
    let changed = served.shard.handle().call(|state| async move {
        let second = state.luns(TARGET).remove(1).1;
        state.unexport(TARGET, 0).await.unwrap();
        state.unexport(TARGET, 1).await.unwrap();
        state.export(TARGET, 0, second).unwrap();
    });
    changed.await.unwrap();
    initiator.lun = LUN0;
    for _ in 0..4 {
        // Hears of the changes.
        initiator.run(&[0; 6], 0, &[]).await;
    }
    for _ in 0..3 {
        good(&mut initiator, LUN0, &read10(0, 8), (4096, 0)).await;
    }
    let reads = |of: Uuid| -> u32 {
        let periods = watches[&of].reads.periods.iter();
        periods.map(|period| period.load(Relaxed)).sum()
    };
    assert_eq!((reads(v), reads(w)), (1, 3));
    served.stop().await;
}
