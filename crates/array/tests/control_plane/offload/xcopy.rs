//! EXTENDED COPY(LID1), and the commands that report on it.

use super::bench::{BLOCKS, Bench, PAGE_BLOCKS, bytes, sense, spec, with_bench};
use super::lists::{receive, with_list, xcopy};
use engine::{Provisioning, World};
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use scsi::offload::CancelToken;
use scsi::{InitiatorPort, LogicalUnit, Nexus, Response};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use world_sim::SimWorld;

async fn copy(
    bench: &Bench,
    nexus: &Nexus<SimWorld>,
    naas: &[Vec<u8>],
    segments: &[(u16, u16, u16, u64, u64)],
) -> Response {
    let list = xcopy(naas, segments);
    bench.run(nexus, 0, &with_list(0, 0, &list), &list).await
}

/// Segments copied, and bytes, as RECEIVE COPY STATUS says; the status before.
async fn status(bench: &Bench, nexus: &Nexus<SimWorld>) -> (u8, u16, u32) {
    let said = bench.run(nexus, 0, &receive(0, 1, 64), &[]).await;
    let data = said.data.to_vec();
    assert_eq!(data.len(), 12);
    let number = |at: usize| u32::from_be_bytes(data[at..at + 4].try_into().unwrap());
    (data[4], (number(3) & 0xffff) as u16, number(8))
}

#[test]
fn whole_pages_parts_of_them_and_holes_are_copied_as_they_are() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        let naas = [bench.naa("a"), bench.naa("b")];
        let all = bytes(1, 4 * PAGE_BLOCKS);
        bench.write("a", 0, &all).await;
        bench.write("b", 0, &bytes(2, BLOCKS)).await;
        let before = bench.read("b", 0, BLOCKS).await;
        let page = PAGE_BLOCKS as u16;
        // Pages alike, not alike, blocks in the middle, and a hole.
        let segments = [
            (0, 1, 2 * page, 0, 2 * PAGE_BLOCKS),
            (0, 1, page, PAGE_BLOCKS, 5 * PAGE_BLOCKS + 3),
            (0, 1, 5, 7, 1),
            (0, 1, 0, 9, 9),
            (0, 1, page, 8 * PAGE_BLOCKS, 9 * PAGE_BLOCKS),
        ];
        let copied = copy(&bench, &nexus, &naas, &segments).await;
        assert_eq!(sense(&copied), (0, 0, 0));
        let mut expected = before;
        let a = bench.read("a", 0, BLOCKS).await;
        for (_, _, blocks, from, to) in segments {
            let (from, to) = (from as usize * 512, to as usize * 512);
            let len = usize::from(blocks) * 512;
            expected[to..to + len].copy_from_slice(&a[from..from + len]);
        }
        assert!(bench.read("b", 0, BLOCKS).await == expected);
        let count = 512 * (4 * u32::from(page) + 5);
        assert_eq!(status(&bench, &nexus).await, (1, 5, count));
    });
}

#[test]
fn pages_that_lie_alike_are_shared_and_the_source_stays_its_own() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        let naas = [bench.naa("a"), bench.naa("b")];
        let all = bytes(1, BLOCKS);
        bench.write("a", 0, &all).await;
        let before = bench.mapped();
        let segment = (0, 1, BLOCKS as u16, 0, 0);
        assert_eq!(
            sense(&copy(&bench, &nexus, &naas, &[segment]).await),
            (0, 0, 0)
        );
        assert_eq!(bench.mapped(), before, "by reference");
        bench.write("a", 0, &bytes(3, 9)).await;
        assert!(bench.read("b", 0, BLOCKS).await == all);
    });
}

#[test]
fn segments_that_go_on_where_others_end_are_copied_as_one_by_one() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        let naas = [bench.naa("a"), bench.naa("b")];
        let all = bytes(9, BLOCKS);
        bench.write("a", 0, &all).await;
        // The last of them is not in the unit; the one before is.
        let part = (BLOCKS / 4) as u16;
        let parts = (0..5).map(|nth| u64::from(part) * nth);
        let segments: Vec<_> = parts.map(|at| (0, 1, part, at, at)).collect();
        let copied = copy(&bench, &nexus, &naas, &segments).await;
        assert_eq!(sense(&copied), (0x0a, 0, 0));
        assert_eq!(copied.sense[10..12], [0, 4]);
        assert_eq!(status(&bench, &nexus).await, (2, 4, BLOCKS as u32 * 512));
        assert!(bench.read("b", 0, BLOCKS).await == all);
        // Of one volume, the second reads what the first has written.
        let segments = [(0, 0, 8, 0, 4), (0, 0, 8, 8, 12)];
        let copied = copy(&bench, &nexus, &naas, &segments).await;
        assert_eq!(sense(&copied), (0, 0, 0));
        let mut expected = all[..20 * 512].to_vec();
        expected.copy_within(0..8 * 512, 4 * 512);
        expected.copy_within(8 * 512..16 * 512, 12 * 512);
        assert!(bench.read("a", 0, 20).await == expected);
    });
}

#[test]
fn ranges_of_one_volume_that_overlap_end_as_if_all_had_been_read_first() {
    for (from, to) in [(3, 40), (40, 3), (0, PAGE_BLOCKS), (PAGE_BLOCKS, 0), (5, 5)] {
        with_bench(async |bench| {
            let nexus = bench.nexus(&bench.own).await;
            let all = bytes(4, BLOCKS);
            bench.write("a", 0, &all).await;
            let blocks = 8 * PAGE_BLOCKS;
            // FFFFh is the unit that the command was sent to.
            let segment = (0xffff, 0, blocks as u16, from, to);
            let copied = copy(&bench, &nexus, &[bench.naa("a")], &[segment]).await;
            assert_eq!(sense(&copied), (0, 0, 0));
            let mut expected = all.clone();
            let (from, to, len) = (
                from as usize * 512,
                to as usize * 512,
                blocks as usize * 512,
            );
            expected[to..to + len].copy_from_slice(&all[from..from + len]);
            assert!(
                bench.read("a", 0, BLOCKS).await == expected,
                "{from} to {to}"
            );
        });
    }
}

#[test]
fn cve_2020_28374_only_units_that_the_initiator_may_use_are_reached() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        let secret = bytes(5, BLOCKS);
        bench.write("d", 0, &secret).await;
        bench.write("c", 0, &bytes(6, 8)).await;
        let (a, c, d) = (bench.naa("a"), bench.naa("c"), bench.naa("d"));
        let nobody = vec![0x6a; 16];
        // Of another target that would admit it: both ways.
        for segment in [(0, 1, 4, 0, 0), (1, 0, 4, 0, 0)] {
            let copied = copy(&bench, &nexus, &[a.clone(), c.clone()], &[segment]).await;
            assert_eq!(sense(&copied), (0, 0, 0));
        }
        // One of a target that would not is as one that is not there at all.
        let mut said = Vec::new();
        for other in [d, nobody] {
            for segment in [(0, 1, 4, 0, 0), (1, 0, 4, 0, 0)] {
                let copied = copy(&bench, &nexus, &[a.clone(), other.clone()], &[segment]).await;
                assert_eq!(sense(&copied), (0x0a, 0x0d, 0x02));
                said.push(copied.sense);
            }
        }
        assert_eq!(said[..2], said[2..], "nothing shows that there is one");
        assert!(bench.read("d", 0, BLOCKS).await == secret);
        assert!(bench.read("a", 0, 4).await != secret[..2048]);
    });
}

#[test]
fn what_stands_in_the_way_of_a_segment_is_said_with_its_number_and_those_before_stay() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        bench.snapshot_of_b().await;
        let snapshot = bench.volume("b@s");
        bench.show_at_2(&nexus, snapshot).await;
        let naas = [bench.naa("a"), bench.naa("b"), bench.naa("b@s")];
        bench.write("a", 0, &bytes(7, 8)).await;
        let good = (0, 1, 8, 0, 0);
        let end = BLOCKS;
        for (bad, code, byte) in [
            ((3, 1, 1, 0, 0), (0x0d, 0x02), 4),
            ((0, 9, 1, 0, 0), (0x0d, 0x02), 6),
            ((0, 1, 2, end - 1, 0), (0, 0), 12),
            ((0, 1, 1, u64::MAX, 0), (0, 0), 12),
            ((0, 1, 2, 0, end - 1), (0, 0), 20),
        ] {
            let copied = copy(&bench, &nexus, &naas, &[good, bad, good]).await;
            assert_eq!(sense(&copied), (0x0a, code.0, code.1), "{bad:?}");
            assert_eq!(copied.sense[10..12], [0, 1], "the second");
            assert_eq!(copied.sense[15..18], [0xa0, 0, byte], "{bad:?}");
            assert_eq!(status(&bench, &nexus).await, (2, 1, 8 * 512));
        }
        // A destination that nobody writes says so itself.
        let copied = copy(&bench, &nexus, &naas, &[(0, 2, 1, 0, 0)]).await;
        assert_eq!(sense(&copied), (0x0a, 0x0d, 0x01));
        assert_eq!(
            (copied.sense[8], copied.sense[9], copied.sense[18]),
            (0, 18, 2)
        );
        assert_eq!(
            (copied.sense[18 + 1 + 2], copied.sense[18 + 1 + 12]),
            (7, 0x27)
        );
        let details = bench.run(&nexus, 0, &receive(4, 1, 200), &[]).await;
        let details = details.data.to_vec();
        assert_eq!((details[56], &details[60..]), (2, &copied.sense[..]));
        assert!(bench.read("b", 0, 8).await == bytes(7, 8));
    });
}

#[test]
fn null_devices_and_other_types_are_no_block_devices() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        let list = xcopy(&[bench.naa("a")], &[(0, 0, 4, 0, 8)]);
        for (flags, code) in [(0x20, (0x08, 0x04)), (0x01, (0x0d, 0x03))] {
            let mut list = list.clone();
            list[17] = flags;
            let copied = bench.run(&nexus, 0, &with_list(0, 0, &list), &list).await;
            assert_eq!(sense(&copied), (0x0a, code.0, code.1));
        }
        let nothing = bench.run(&nexus, 0, &with_list(0, 0, &[]), &[]).await;
        assert_eq!(sense(&nothing), (0, 0, 0), "no list is no error");
        let unknown = bench.run(&nexus, 0, &receive(0, 5, 64), &[]).await;
        assert_eq!(sense(&unknown), (5, 0x24, 0));
    });
}

#[test]
fn a_unit_that_is_unmapped_between_segments_is_not_reached_any_more() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        let naas = [bench.naa("a"), bench.naa("b"), bench.naa("c")];
        let own = Rc::clone(&bench.own);
        bench.before_message(1, move || drop(own.unmap(1)));
        let (good, other) = ((0, 1, 4, 0, 0), (2, 0, 4, 0, 0));
        let copied = copy(&bench, &nexus, &naas, &[good, other, good]).await;
        assert!(bench.has_happened(), "it was looked for");
        // The pool has `b` still, and no target shows it.
        let said = sense(&copied);
        assert_eq!(said, (0x0a, 0x0d, 0x02));
        assert_eq!(copied.sense[10..12], [0, 2], "the third");
    });
}

#[test]
fn a_unit_that_is_taken_away_waits_for_copies_by_another_one() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        let naas = [bench.naa("a"), bench.naa("b"), bench.naa("c")];
        let [b, c] = ["b", "c"].map(|name| bench.volume(name).info().uuid);
        let is_left = |volume| bench.offload.leave_alone(volume).now_or_never().is_some();
        // Blocks that do not lie alike are read and written.
        let segment = (1, 2, 4, 0, 3);
        bench.write("b", 0, &bytes(1, PAGE_BLOCKS)).await;
        assert_eq!(copy(&bench, &nexus, &naas, &[segment]).await.status, 0);
        assert!(is_left(b) && is_left(c));
        let segments = [segment, (1, 2, 4, 8, 40)];
        for volume in [b, c] {
            let copying = pin!(copy(&bench, &nexus, &naas, &segments));
            let begins = bench.world.sleep(Duration::from_micros(1));
            let Either::Right(((), copying)) = select(copying, pin!(begins)).await else {
                panic!("it reads and writes no drive");
            };
            let mut leaves = pin!(bench.offload.leave_alone(volume));
            assert!(leaves.as_mut().now_or_never().is_none(), "it is at work");
            assert_eq!(sense(&copying.await), (0x0a, 0, 0));
            leaves.await;
        }
        let second = bench.read("c", 40, 4).await;
        assert!(second.iter().all(|byte| *byte == 0), "nothing follows");
        // Taken away just before, when it was found already: nobody waits for the copy, and it does
        // not begin.
        let open = Rc::clone(&bench.open);
        bench.before_message(2, move || drop(open.unmap(0)));
        let copied = copy(&bench, &nexus, &naas, &[(1, 2, 4, 0, 0)]).await;
        assert!(bench.has_happened());
        assert_eq!(sense(&copied), (0x0a, 0x0d, 0x02));
        assert!(is_left(b) && is_left(c));
    });
}

#[test]
fn thick_volumes_get_pages_of_their_own_and_a_full_pool_says_so() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        bench.show_thick_volume(&nexus).await;
        let naas = [bench.naa("a"), bench.naa("t"), bench.naa("b")];
        let all = bytes(8, BLOCKS);
        bench.write("a", 0, &all).await;
        let copied = copy(&bench, &nexus, &naas, &[(0, 1, BLOCKS as u16, 0, 0)]).await;
        assert_eq!(sense(&copied), (0, 0, 0));
        assert!(bench.read("t", 0, BLOCKS).await == all);
        // Pages that do not lie alike are written out, until there is none left.
        let mut fillers = 0;
        let full = loop {
            let name = format!("f{fillers}");
            let made = bench
                .pool
                .create_volume(spec(&name, Provisioning::Thin))
                .await;
            assert!(
                bench
                    .own
                    .map(10 + fillers, LogicalUnit::new(made.unwrap()).unwrap())
            );
            let naas = [bench.naa("a"), bench.naa(&name)];
            while sense(&bench.run(&nexus, 0, &[0; 6], &[]).await).0 == 6 {}
            let copied = copy(&bench, &nexus, &naas, &[(0, 1, BLOCKS as u16 - 1, 0, 1)]).await;
            fillers += 1;
            if copied.status != 0 {
                break copied;
            }
        };
        assert_eq!(sense(&full), (7, 0x27, 0x07));
        assert_eq!(bench.room.asked.get(), 1, "before it gave up");
        let (state, segments, _) = status(&bench, &nexus).await;
        assert_eq!((state, segments), (2, 0));
    });
}

#[test]
fn a_copy_that_is_stopped_ends_after_the_piece_that_it_is_at() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        let list = xcopy(&[bench.naa("a"), bench.naa("b")], &[(0, 1, 64, 0, 1); 8]);
        let cancel = CancelToken::default();
        cancel.stop();
        let mut cdb = [0; 16];
        cdb[..14].copy_from_slice(&with_list(0, 0, &list));
        let lun = scsi::lun::encode(0);
        let data = bench.data(&list);
        let ended = nexus
            .execute_until(lun, cdb.into(), data, Some(cancel))
            .await;
        assert_eq!(sense(&ended), (0x0a, 0, 0));
        assert_eq!(status(&bench, &nexus).await.1, 0);
    });
}

#[test]
fn without_a_copier_there_are_no_copies() {
    with_bench(async |bench| {
        let nexus = bench
            .own
            .connect(InitiatorPort::new("iqn.host", [99; 6]), 1);
        bench.run(&nexus, 0, &[0; 6], &[]).await;
        let said = bench.run(&nexus, 0, &receive(3, 0, 64), &[]).await;
        assert_eq!(sense(&said), (5, 0x20, 0));
    });
}

/// PERSISTENT RESERVE OUT: registers, and reserves for itself alone (exclusive access).
async fn reserve(bench: &Bench, nexus: &Nexus<SimWorld>, lun: u16, key: u8) {
    let mut register = [0; 24];
    register[15] = key;
    let mut reserve = [0; 24];
    reserve[7] = key;
    for (action, kind, list) in [(0, 0, register), (1, 3, reserve)] {
        let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0];
        let done = bench.run(nexus, lun, &cdb, &list).await;
        assert_eq!(sense(&done), (0, 0, 0));
    }
}

#[test]
fn what_others_have_reserved_is_neither_source_nor_destination() {
    with_bench(async |bench| {
        let (nexus, other) = (bench.nexus(&bench.own).await, bench.nexus(&bench.own).await);
        let elsewhere = bench.nexus(&bench.open).await;
        let naas = [bench.naa("a"), bench.naa("b"), bench.naa("c")];
        reserve(&bench, &other, 1, 5).await;
        reserve(&bench, &elsewhere, 0, 6).await;
        for segment in [
            (0, 1, 4, 0, 0),
            (1, 0, 4, 0, 0),
            (0, 2, 4, 0, 0),
            (2, 0, 4, 0, 0),
        ] {
            let copied = copy(&bench, &nexus, &naas, &[(0, 0, 4, 0, 9), segment]).await;
            assert_eq!(copied.status, 0x18, "{segment:?}");
            assert_eq!(status(&bench, &nexus).await, (2, 1, 4 * 512));
        }
        // Who has reserved it may.
        let copied = copy(&bench, &other, &naas, &[(0, 1, 4, 0, 0)]).await;
        assert_eq!(sense(&copied), (0, 0, 0));
    });
}

#[test]
fn what_is_write_protected_for_a_time_says_so() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        let naas = [bench.naa("a"), bench.naa("b")];
        // SWP of the control page, in what MODE SENSE(6) says of it.
        let said = bench.run(&nexus, 1, &[0x1a, 8, 0x0a, 0, 64, 0], &[]).await;
        let mut list = said.data.to_vec();
        list[..4].fill(0);
        list[4] &= 0x3f;
        list[4 + 4] |= 0x08;
        let cdb = [0x15, 0x10, 0, 0, list.len() as u8, 0];
        let said = bench.run(&nexus, 1, &cdb, &list).await;
        assert_eq!(sense(&said), (0, 0, 0));
        let copied = copy(&bench, &nexus, &naas, &[(0, 1, 4, 0, 0)]).await;
        assert_eq!(sense(&copied), (0x0a, 0x0d, 0x01));
        assert_eq!((copied.sense[9], copied.sense[19 + 2]), (18, 7));
        let copied = copy(&bench, &nexus, &naas, &[(1, 0, 4, 0, 0)]).await;
        assert_eq!(sense(&copied), (0, 0, 0), "it can be read");
    });
}
