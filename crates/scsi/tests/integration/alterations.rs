//! COMPARE AND WRITE, ORWRITE, WRITE ATOMIC, WRITE AND VERIFY, SANITIZE, and settings that
//! initiators change.

use crate::bench::{
    Bench, PAGE_BLOCKS, PAGE_BYTES, bytes, information, sense, sixteen, ten, unit, with_bench,
};
use engine::{Provisioning, VolumeSpec, World};
use scsi::Nexus;
use std::time::Duration;
use world_sim::SimWorld;

const ATS: u8 = 0x89;
const OR: u8 = 0x8b;
const ATOMIC: u8 = 0x9c;

/// COMPARE AND WRITE of these blocks.
fn exchange(lba: u64, blocks: u8) -> [u8; 16] {
    let mut cdb = sixteen(ATS, lba, 0);
    cdb[13] = blocks;
    cdb
}

fn atomic(lba: u64, blocks: u16) -> [u8; 16] {
    let mut cdb = sixteen(ATOMIC, lba, 0);
    cdb[12..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

async fn read(bench: &Bench, nexus: &Nexus<SimWorld>, lba: u32, blocks: u16) -> Vec<u8> {
    bench.good(nexus, &ten(0x28, lba, blocks), &[]).await
}

#[test]
fn compare_and_write_writes_what_it_is_told_where_the_expected_is() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let (old, new) = (bytes(1, 1536), bytes(2, 1536));
        bench.good(&nexus, &ten(0x2a, 5, 3), &old).await;
        bench
            .good(&nexus, &exchange(5, 3), &[&old[..], &new].concat())
            .await;
        assert_eq!(read(&bench, &nexus, 5, 3).await, new);
        // What is there differs: the first byte is told, and nothing written.
        let mut other = new.clone();
        other[700] ^= 1;
        let refused = bench
            .run(&nexus, &exchange(5, 3), &[&other[..], &old].concat())
            .await;
        assert_eq!(
            (sense(&refused), information(&refused)),
            ((0xe, 0x1d, 0), Some(700))
        );
        assert_eq!(read(&bench, &nexus, 5, 3).await, new);
        // Where nothing was ever written there are zeroes.
        let far = PAGE_BLOCKS * 3 - 1;
        let both = [&[0; 1024][..], &old[..1024]].concat();
        bench
            .good(&nexus, &exchange(u64::from(far), 2), &both)
            .await;
        assert_eq!(read(&bench, &nexus, far, 2).await, old[..1024]);
    });
}

#[test]
fn a_compare_and_write_that_is_wrong_writes_nothing() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let both = vec![0; 4096];
        let refused =
            async |cdb: [u8; 16], data: &[u8]| sense(&bench.run(&nexus, &cdb, data).await);
        assert_eq!(refused(exchange(0, 4), &both[..512]).await, (5, 0x0e, 3));
        assert_eq!(refused(exchange(0, 4), &[0; 4608]).await, (5, 0x0e, 3));
        assert_eq!(refused(exchange(0, 0), &both).await, (5, 0x24, 0));
        let end = u64::from(crate::bench::VOLUME_BLOCKS);
        assert_eq!(refused(exchange(end - 3, 4), &both).await, (5, 0x21, 0));
        bench.good(&nexus, &exchange(0, 0), &[]).await;
        let limits = bench.good(&nexus, &[0x12, 1, 0xb0, 0, 64, 0], &[]).await;
        let most = limits[5];
        if most < 255 {
            let data = vec![0; 1024 * (usize::from(most) + 1)];
            assert_eq!(refused(exchange(0, most + 1), &data).await, (5, 0x24, 0));
        }
        let data = [
            vec![0; 512 * usize::from(most)],
            bytes(3, 512 * usize::from(most)),
        ]
        .concat();
        bench.good(&nexus, &exchange(1, most), &data).await;
    });
}

#[test]
fn of_two_that_expect_the_same_one_wins() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let other = bench.settled_as(2).await;
        for round in 0..20u64 {
            let now = read(&bench, &nexus, 9, 1).await;
            let (a, b) = (bytes(2 * round + 1, 512), bytes(2 * round + 2, 512));
            let (to_a, to_b) = ([&now[..], &a].concat(), [&now[..], &b].concat());
            let cdb = exchange(9, 1);
            let (first, second) = futures_util::future::join(
                bench.run(&nexus, &cdb, &to_a),
                bench.run(&other, &cdb, &to_b),
            )
            .await;
            let won: Vec<u8> = match (first.status, second.status) {
                (0, 2) => a,
                (2, 0) => b,
                both => panic!("round {round}: {both:?}"),
            };
            assert_eq!(read(&bench, &nexus, 9, 1).await, won);
        }
    });
}

#[test]
fn orwrite_sets_bits_of_all_that_writes_at_once_set() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let at = PAGE_BLOCKS - 20;
        let blocks = 300u32.min(crate::bench::VOLUME_BLOCKS - at);
        let len = blocks as usize * 512;
        let before = bytes(0x11, len);
        bench
            .good(&nexus, &ten(0x2a, at, blocks as u16), &before)
            .await;
        let masks = [bytes(0x22, len), bytes(0x44, len)];
        let cdb = sixteen(OR, u64::from(at), blocks);
        let both = masks.iter().map(|mask| bench.good(&nexus, &cdb, mask));
        futures_util::future::join_all(both).await;
        let expected: Vec<u8> = (0..len)
            .map(|i| before[i] | masks[0][i] | masks[1][i])
            .collect();
        assert_eq!(read(&bench, &nexus, at, blocks as u16).await, expected);
    });
}

#[test]
fn write_atomic_takes_up_to_its_limit_and_all_or_nothing() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let limits = bench.good(&nexus, &[0x12, 1, 0xb0, 0, 64, 0], &[]).await;
        let most = u32::from_be_bytes(limits[44..48].try_into().unwrap());
        assert!(most > 0);
        // Over the edge of two pages, one new and one there, beginning inside a block.
        bench
            .good(&nexus, &ten(0x2a, PAGE_BLOCKS, 8), &[7; 4096])
            .await;
        let blocks = most.min(10) as u16;
        let at = PAGE_BLOCKS - 3;
        let data = bytes(5, usize::from(blocks) * 512);
        bench
            .good(&nexus, &atomic(u64::from(at), blocks), &data)
            .await;
        assert_eq!(read(&bench, &nexus, at, blocks).await, data);
        assert_eq!(read(&bench, &nexus, at - 1, 1).await, [0; 512]);
        let too_many = atomic(0, most as u16 + 1);
        let data = vec![0; (most as usize + 1) * 512];
        assert_eq!(
            sense(&bench.run(&nexus, &too_many, &data).await),
            (5, 0x24, 0)
        );
        let cut = bench.run(&nexus, &atomic(0, 2), &[1; 512]).await;
        assert_eq!(sense(&cut), (5, 0x0e, 3));
        assert_eq!(read(&bench, &nexus, 0, 1).await, [0; 512], "nothing of it");
        // With a boundary of its own it would be something else.
        let mut bounded = atomic(0, 2);
        bounded[11] = 1;
        assert_eq!(
            sense(&bench.run(&nexus, &bounded, &[1; 1024]).await),
            (5, 0x24, 0)
        );
    });
}

#[test]
fn write_and_verify_writes_and_reads_back() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let data = bytes(1, 2048);
        for (cdb, at) in [
            (ten(0x2e, 4, 4).to_vec(), 4),
            (vec![0xae, 2, 0, 0, 0, 12, 0, 0, 0, 4, 0, 0], 12),
            (sixteen(0x8e, 20, 4).to_vec(), 20),
        ] {
            bench.good(&nexus, &cdb, &data).await;
            assert_eq!(read(&bench, &nexus, at, 4).await, data);
        }
        let end = crate::bench::VOLUME_BLOCKS;
        let beyond = bench.run(&nexus, &ten(0x2e, end - 1, 2), &[0; 1024]).await;
        assert_eq!(sense(&beyond), (5, 0x21, 0));
    });
}

#[test]
fn sanitize_erases_all_of_a_thin_unit_and_a_thick_one_has_none() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let erase = |immediate: u8| [0x48, 0x02 | immediate, 0, 0, 0, 0, 0, 0, 0, 0];
        // Nobody may unless it is said, and nothing is erased then.
        bench.good(&nexus, &ten(0x2a, 0, 1), &[9; 512]).await;
        for cdb in [erase(0), erase(0x80), [0x48, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0]] {
            let refused = bench.run(&nexus, &cdb, &[]).await;
            assert_eq!(sense(&refused), (5, 0x20, 0));
        }
        assert_eq!(read(&bench, &nexus, 0, 1).await, [9; 512]);
        bench.target.unit(0).unwrap().set_may_sanitize(true);
        for immediate in [0, 0x80] {
            for lba in [0, 3 * PAGE_BLOCKS, crate::bench::VOLUME_BLOCKS - 1] {
                bench.good(&nexus, &ten(0x2a, lba, 1), &[9; 512]).await;
            }
            bench.good(&nexus, &erase(immediate), &[]).await;
            loop {
                let ready = bench.run(&nexus, &[0; 6], &[]).await;
                if ready.status == 0 {
                    break;
                }
                assert_eq!(sense(&ready), (2, 4, 0x1b), "it is being erased");
                let read = bench.run(&nexus, &ten(0x28, 0, 1), &[]).await;
                assert_eq!(sense(&read), (2, 4, 0x1b));
                bench.good(&nexus, &[0x12, 0, 0, 0, 96, 0], &[]).await;
                bench.world.sleep(Duration::from_micros(1)).await;
            }
            assert_eq!(bench.pool.volume("v").unwrap().info().mapped_bytes, 0);
            assert_eq!(read(&bench, &nexus, 3 * PAGE_BLOCKS, 1).await, [0; 512]);
        }
        bench
            .good(&nexus, &[0x48, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0], &[])
            .await;
        let spec = VolumeSpec {
            name: "thick".to_owned(),
            size_bytes: PAGE_BYTES as u64,
            provisioning: Provisioning::Thick,
        };
        let thick = bench.pool.create_volume(spec).await.unwrap();
        assert!(bench.target.map(1, unit(thick)));
        for _ in 0..2 {
            bench.run_at(&nexus, 1, &[0; 6], &[]).await;
        }
        for cdb in [erase(0), [0x48, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0]] {
            let refused = bench.run_at(&nexus, 1, &cdb, &[]).await;
            assert_eq!(sense(&refused), (5, 0x20, 0));
        }
    });
}

#[test]
fn settings_change_where_they_may_and_for_all_and_a_reset_takes_them_back() {
    with_bench(async |bench| {
        let [one, two] = [bench.settled_as(1).await, bench.settled_as(2).await];
        let page = |d_sense: u8, swp: u8| {
            let mut list = vec![0, 0, 0, 0, 0x0a, 10, 2 | d_sense, 0x10, swp, 0, 0, 0];
            list.extend([0xff, 0xff, 0, 0]);
            list
        };
        let select = [0x15, 0x10, 0, 0, 16, 0];
        // One host changes nothing for the others unless that is said.
        for (d_sense, swp, at) in [(4, 0, 6), (0, 8, 8)] {
            let refused = bench.run(&one, &select, &page(d_sense, swp)).await;
            assert_eq!(sense(&refused), (5, 0x26, 0));
            assert_eq!(refused.sense[15..18], [0x80, 0, at]);
        }
        bench.good(&two, &ten(0x2a, 0, 1), &[0; 512]).await;
        bench.target.unit(0).unwrap().set_may_affect_others(true);
        bench.good(&one, &select, &page(4, 8)).await;
        let told = bench.run(&two, &[0; 6], &[]).await;
        // MODE PARAMETERS CHANGED, as descriptors already.
        assert_eq!(told.sense[..4], [0x72, 6, 0x2a, 1]);
        let protected = bench.run(&two, &ten(0x2a, 0, 1), &[1; 512]).await;
        assert_eq!(protected.sense[..4], [0x72, 7, 0x27, 0]);
        for write in [ten(0x41, 0, 1), ten(0x42, 0, 24), ten(0x2e, 0, 1)] {
            let refused = bench.run(&one, &write, &[0; 512]).await;
            assert_eq!(refused.sense[1..4], [7, 0x27, 0]);
        }
        assert_eq!(read(&bench, &two, 0, 1).await, [0; 512]);
        bench.target.unit_reset(0);
        for host in [&one, &two] {
            assert_eq!(sense(&bench.run(host, &[0; 6], &[]).await), (6, 0x29, 3));
        }
        bench.good(&two, &ten(0x2a, 0, 1), &[1; 512]).await;
        // The same again changes nothing, and is told to nobody.
        bench.good(&one, &select, &page(0, 0)).await;
        bench.good(&two, &[0; 6], &[]).await;
        let wrong = bench.run(&one, &select, &page(0x10, 0)).await;
        assert_eq!(sense(&wrong), (5, 0x26, 0));
    });
}

#[test]
fn space_is_told_in_the_log_and_by_the_threshold() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let log = [0x4d, 0, 0x4c, 0, 0, 0, 0, 0, 255, 0];
        let data = bench.good(&nexus, &log, &[]).await;
        assert_eq!(data[..4], [0x0c, 0, 0, 24]);
        // Nothing can be saved.
        let saved = [0x4d, 1, 0x4c, 0, 0, 0, 0, 0, 255, 0];
        let refused = bench.run(&nexus, &saved, &[]).await;
        assert_eq!(sense(&refused), (5, 0x24, 0));
        let page = bench
            .good(&nexus, &[0x1a, 0x08, 0x1c, 2, 255, 0], &[])
            .await;
        assert_eq!(page[4..8], [0x5c, 2, 0, 20]);
        let ports = bench
            .good(&nexus, &[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0], &[])
            .await;
        assert_eq!(ports[4..8], [0, 0x8f, 0, 1], "optimized, group 1");
        assert_eq!(ports[15], 1, "port 1");
    });
}

#[test]
fn physical_blocks_are_as_long_as_initiators_want_them() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let shown = async || {
            let capacity = sixteen(0x9e, 0, 32);
            let capacity = [&[0x9e, 0x10][..], &capacity[2..]].concat();
            let capacity = bench.good(&nexus, &capacity, &[]).await;
            let limits = bench.good(&nexus, &[0x12, 1, 0xb0, 0, 64, 0], &[]).await;
            (capacity[13], limits[7])
        };
        assert_eq!(shown().await, (3, 8), "4 KiB, and optimal in that grain");
        let unit = bench.target.unit(0).unwrap();
        unit.set_physical_block(512);
        assert_eq!(shown().await, (0, 1));
    });
}

#[test]
fn ports_that_give_no_access_say_why() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let other = bench.settled_as(2).await;
        use scsi::ports::{AccessState, FIRST_GROUP};
        bench
            .target
            .set_access(FIRST_GROUP, AccessState::Standby, Some(&nexus));
        assert_eq!(sense(&bench.run(&other, &[0; 6], &[]).await), (6, 0x2a, 6));
        let read = ten(0x28, 0, 1);
        assert_eq!(sense(&bench.run(&nexus, &read, &[]).await), (2, 4, 0x0b));
        bench
            .target
            .set_access(FIRST_GROUP, AccessState::Optimized, Some(&nexus));
        bench.good(&nexus, &read, &[]).await;
    });
}
