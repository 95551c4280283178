//! READ, WRITE, VERIFY and SYNCHRONIZE CACHE over a simulated pool, and their errors when the pool
//! fails.

use crate::bench::{
    PAGE_BLOCKS, PAGE_BYTES, VOLUME_BLOCKS, bytes, information, sense, sixteen, ten, thin, twelve,
    unit, with_bench,
};

#[test]
fn every_form_of_read_gives_what_every_form_of_write_wrote() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let writes: [&[u8]; 4] = [
            &[0x0a, 0, 0, 3, 2, 0],
            &ten(0x2a, 3, 2),
            &twelve(0xaa, 3, 2),
            &sixteen(0x8a, 3, 2),
        ];
        let reads: [&[u8]; 4] = [
            &[0x08, 0, 0, 3, 2, 0],
            &ten(0x28, 3, 2),
            &twelve(0xa8, 3, 2),
            &sixteen(0x88, 3, 2),
        ];
        for (tag, write) in writes.iter().enumerate() {
            let data = bytes(tag as u64, 1024);
            let written = bench.run(&nexus, write, &data).await;
            assert_eq!((written.status, written.wanted_bytes), (0, 1024));
            for read in reads {
                let response = bench.run(&nexus, read, &[]).await;
                assert_eq!((response.status, response.wanted_bytes), (0, 1024));
                assert_eq!(response.data.to_vec(), data);
            }
        }
        let before = bench.good(&nexus, &ten(0x28, 2, 1), &[]).await;
        assert_eq!(before, [0; 512], "what was never written reads as zeroes");
    });
}

#[test]
fn flags_that_change_nothing_are_taken() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let (mut write, mut read) = (ten(0x2a, 0, 1), ten(0x28, 0, 1));
        write[1] = 0x18;
        read[1] = 0x18;
        bench.good(&nexus, &write, &bytes(1, 512)).await;
        assert_eq!(bench.good(&nexus, &read, &[]).await, bytes(1, 512));
    });
}

#[test]
fn six_byte_commands_mean_256_blocks_by_zero() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        assert_eq!(
            bench.good(&nexus, &[0x08, 0, 0, 0, 0, 0], &[]).await.len(),
            256 * 512
        );
    });
}

#[test]
fn the_end_of_the_unit_is_kept() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let last = VOLUME_BLOCKS - 1;
        for opcode in [0x28, 0x2a, 0x2f, 0x35] {
            bench.good(&nexus, &ten(opcode, last, 1), &[7; 512]).await;
            for (lba, blocks) in [(last, 2), (last + 1, 0), (last + 1, 1), (u32::MAX, 1)] {
                let response = bench
                    .run(&nexus, &ten(opcode, lba, blocks), &[7; 1024])
                    .await;
                assert_eq!(sense(&response), (5, 0x21, 0), "{opcode:#x} {lba}+{blocks}");
            }
        }
        for (lba, blocks) in [(u64::MAX, 1), (u64::MAX, 0), (u64::MAX - 3, 8)] {
            let response = bench.run(&nexus, &sixteen(0x88, lba, blocks), &[]).await;
            assert_eq!(sense(&response), (5, 0x21, 0), "{lba}+{blocks}");
        }
        for opcode in [0x28, 0x2a, 0x2f, 0x35] {
            bench.good(&nexus, &ten(opcode, 0, 0), &[]).await;
        }
        let long = twelve(0xa8, 0, scsi::cdb::MAX_TRANSFER_BLOCKS + 1);
        let response = bench.run(&nexus, &long, &[]).await;
        assert_eq!(
            sense(&response),
            (5, 0x24, 0),
            "more than the block limits page allows"
        );
        assert_eq!(response.sense[15..18], [0xc0, 0, 6]);
    });
}

#[test]
fn a_write_of_less_data_than_its_cdb_says_takes_whole_blocks() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        bench.good(&nexus, &ten(0x2a, 0, 3), &[1; 1536]).await;
        let short = bench.run(&nexus, &ten(0x2a, 0, 3), &[2; 700]).await;
        assert_eq!((short.status, short.wanted_bytes), (0, 1536));
        let read = bench.good(&nexus, &ten(0x28, 0, 3), &[]).await;
        assert_eq!(read, [vec![2; 512], vec![1; 1024]].concat());
    });
}

#[test]
fn verify_compares_when_it_is_asked_to() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let data = bytes(5, 1024);
        bench.good(&nexus, &ten(0x2a, 4, 2), &data).await;
        let mut compare = ten(0x2f, 4, 2);
        compare[1] = 0x02;
        bench.good(&nexus, &compare, &data).await;
        let mut other = data.clone();
        other[700] ^= 1;
        let response = bench.run(&nexus, &compare, &other).await;
        assert_eq!(
            (sense(&response), information(&response)),
            ((0xe, 0x1d, 0), Some(700))
        );
        compare[1] = 0x06;
        assert_eq!(
            sense(&bench.run(&nexus, &compare, &data).await),
            (5, 0x24, 0)
        );
    });
}

#[test]
fn a_media_error_names_the_exact_block() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        // Nothing is read from the drive for the first page: it was never written.
        let page = PAGE_BLOCKS as u16;
        bench
            .good(&nexus, &ten(0x2a, PAGE_BLOCKS, page), &bytes(1, PAGE_BYTES))
            .await;
        bench
            .media
            .with_faults(|faults| faults.unreadable = (0..1024).collect());
        let response = bench.run(&nexus, &ten(0x28, PAGE_BLOCKS - 4, 8), &[]).await;
        assert_eq!(sense(&response), (3, 0x11, 0));
        assert_eq!(information(&response), Some(PAGE_BLOCKS));
    });
}

#[test]
fn a_write_to_a_pool_that_has_lost_its_drive_is_a_target_failure() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        bench.good(&nexus, &ten(0x2a, 8, 8), &[1; 4096]).await;
        bench.media.with_faults(|faults| faults.gone = true);
        let response = bench.run(&nexus, &ten(0x2a, 8, 8), &[2; 4096]).await;
        assert_eq!(
            (sense(&response), information(&response)),
            ((4, 0x44, 0), None)
        );
    });
}

#[test]
fn a_full_pool_protects_its_data() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let large = bench
            .pool
            .create_volume(thin("large", 64 << 20))
            .await
            .unwrap();
        assert!(bench.target.map(1, unit(large)));
        let page = bytes(3, PAGE_BYTES);
        let mut refused = None;
        // Twice: the unit attentions of the new LUN come first.
        for _ in 0..2 {
            bench.run_at(&nexus, 1, &[0; 6], &[]).await;
        }
        bench.run(&nexus, &[0; 6], &[]).await;
        for at in 0..256 {
            let write = ten(0x2a, at * PAGE_BLOCKS, PAGE_BLOCKS as u16);
            let response = bench.run_at(&nexus, 1, &write, &page).await;
            if response.status != 0 {
                refused = Some(sense(&response));
                break;
            }
        }
        assert_eq!(refused, Some((7, 0x27, 7)));
        let first = bench
            .run_at(&nexus, 1, &ten(0x28, 0, PAGE_BLOCKS as u16), &[])
            .await;
        assert_eq!(first.data.to_vec(), page, "what was acknowledged is there");
    });
}

#[test]
fn a_stopped_pool_is_a_failed_target_and_a_deleted_volume_an_absent_unit() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let doomed = bench
            .pool
            .create_volume(thin("doomed", 1 << 20))
            .await
            .unwrap();
        assert!(bench.target.map(1, unit(doomed)));
        bench.run_at(&nexus, 1, &[0; 6], &[]).await;
        bench.run_at(&nexus, 1, &[0; 6], &[]).await;
        bench.run(&nexus, &[0; 6], &[]).await;
        bench.pool.delete_volume("doomed").await.unwrap();
        let response = bench.run_at(&nexus, 1, &ten(0x28, 0, 1), &[]).await;
        assert_eq!(sense(&response), (5, 0x25, 0));
        bench.pool.close().await.unwrap();
        let response = bench.run(&nexus, &ten(0x2a, 0, 1), &[1; 512]).await;
        assert_eq!(sense(&response), (4, 0x44, 0));
        let response = bench.run(&nexus, &ten(0x35, 0, 0), &[]).await;
        assert_eq!(sense(&response), (4, 0x44, 0), "a flush reports it too");
    });
}
