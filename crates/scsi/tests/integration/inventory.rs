//! The discovery of targets and units by initiators: absent LUNs, unit attentions, parameter data
//! cut to allocation lengths.

use crate::bench::{TARGET, VOLUME_BLOCKS, sense, thin, unit, with_bench};
use proptest::prelude::*;

const TUR: [u8; 6] = [0; 6];

#[test]
fn an_absent_lun_answers_inquiry_report_luns_and_request_sense_only() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let inquiry = bench.run_at(&nexus, 5, &[0x12, 0, 0, 0, 36, 0], &[]).await;
        assert_eq!((inquiry.status, inquiry.data.to_vec()[0]), (0, 0x7f));
        let luns = bench
            .run_at(&nexus, 5, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], &[])
            .await;
        assert_eq!(
            luns.data.to_vec(),
            [[0, 0, 0, 8, 0, 0, 0, 0], [0; 8]].concat()
        );
        let sensed = bench.run_at(&nexus, 5, &[0x03, 0, 0, 0, 18, 0], &[]).await;
        assert_eq!((sensed.status, sensed.data.to_vec()[12]), (0, 0x25));
        for cdb in [
            &TUR[..],
            &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0xc1],
            &[0x28; 10],
        ] {
            let response = bench.run_at(&nexus, 5, cdb, &[]).await;
            assert_eq!(sense(&response), (5, 0x25, 0), "CDB {cdb:02x?}");
        }
    });
}

#[test]
fn a_target_without_units_still_reports_them() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        assert!(bench.target.unmap(0).is_some());
        assert!(bench.target.unmap(0).is_none());
        let luns = bench
            .run(&nexus, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], &[])
            .await;
        assert_eq!((luns.status, luns.data.to_vec()), (0, vec![0; 8]));
    });
}

#[test]
fn a_unit_attention_is_told_once_and_not_by_inquiry() {
    with_bench(async |bench| {
        let nexus = bench.connect(1);
        let data = bench.good(&nexus, &[0x12, 0, 0, 0, 96, 0], &[]).await;
        assert_eq!((data.len(), &data[8..16]), (96, &b"ASHLAR  "[..]));
        assert_eq!(sense(&bench.run(&nexus, &TUR, &[]).await), (6, 0x29, 0));
        bench.good(&nexus, &TUR, &[]).await;
        // An unknown command after a reset: the attention goes first.
        let other = bench.settled().await;
        bench.target.unit_reset(0);
        assert_eq!(sense(&bench.run(&nexus, &[0xc1], &[]).await), (6, 0x29, 3));
        assert_eq!(sense(&bench.run(&nexus, &[0xc1], &[]).await), (5, 0x20, 0));
        assert_eq!(sense(&bench.run(&other, &TUR, &[]).await), (6, 0x29, 3));
        bench.good(&other, &TUR, &[]).await;
        nexus.commands_cleared(0);
        assert_eq!(sense(&bench.run(&nexus, &TUR, &[]).await), (6, 0x2f, 0));
    });
}

#[test]
fn request_sense_takes_a_waiting_attention_in_either_format() {
    with_bench(async |bench| {
        let nexus = bench.connect(1);
        let fixed = bench.good(&nexus, &[0x03, 0, 0, 0, 255, 0], &[]).await;
        assert_eq!((fixed[0], fixed[2], fixed[12]), (0x70, 6, 0x29));
        let none = bench.good(&nexus, &[0x03, 1, 0, 0, 255, 0], &[]).await;
        assert_eq!(none, [0x72, 0, 0, 0, 0, 0, 0, 0]);
        bench.good(&nexus, &TUR, &[]).await;
    });
}

#[test]
fn changes_reach_every_nexus() {
    with_bench(async |bench| {
        let (a, b) = (bench.settled().await, bench.settled().await);
        let size_bytes = 2 * u64::from(VOLUME_BLOCKS) * 512;
        bench.pool.resize_volume("v", size_bytes).await.unwrap();
        bench
            .target
            .resized(bench.pool.volume("v").unwrap().info().uuid);
        let second = bench.pool.create_volume(thin("w", 1 << 20)).await.unwrap();
        assert!(!bench.target.map(0, unit(second.clone())), "taken");
        assert!(!bench.target.map(0x4000, unit(second.clone())), "too large");
        assert!(bench.target.map(1, unit(second)));
        for nexus in [&a, &b] {
            assert_eq!(sense(&bench.run(nexus, &TUR, &[]).await), (6, 0x2a, 9));
            assert_eq!(sense(&bench.run(nexus, &TUR, &[]).await), (6, 0x3f, 0x0e));
            let capacity = bench
                .good(nexus, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[])
                .await;
            assert_eq!(capacity[..4], (2 * VOLUME_BLOCKS - 1).to_be_bytes());
            assert_eq!(
                sense(&bench.run_at(nexus, 1, &TUR, &[]).await),
                (6, 0x29, 0)
            );
        }
    });
}

#[test]
fn reporting_the_luns_takes_the_news_of_them_away() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let second = bench.pool.create_volume(thin("w", 1 << 20)).await.unwrap();
        assert!(bench.target.map(1, unit(second)));
        let luns = bench
            .good(&nexus, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], &[])
            .await;
        assert_eq!(luns.len(), 24);
        bench.good(&nexus, &TUR, &[]).await;
    });
}

#[test]
fn parameter_data_is_cut_exactly_to_the_allocation_length() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let whole = bench.good(&nexus, &[0x12, 1, 0x83, 1, 0, 0], &[]).await;
        assert!(
            whole
                .windows(TARGET.len())
                .any(|run| run == TARGET.as_bytes())
        );
        for allocation in [0, 1, 3, 4, 5, 50, 255] {
            let cut = bench
                .run(&nexus, &[0x12, 1, 0x83, 0, allocation, 0], &[])
                .await;
            let expected = whole.len().min(usize::from(allocation));
            assert_eq!(cut.data.to_vec(), whole[..expected]);
            assert_eq!(cut.wanted_bytes, expected as u64);
        }
        let mut capacity = [0; 16];
        (capacity[0], capacity[1], capacity[13]) = (0x9e, 0x10, 12);
        assert_eq!(bench.good(&nexus, &capacity, &[]).await.len(), 12);
        let sense6 = bench.good(&nexus, &[0x1a, 0x08, 0x3f, 0, 5, 0], &[]).await;
        assert_eq!(sense6, [47, 0, 0x10, 0, 0x08]);
        let opcodes = bench
            .good(&nexus, &[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0], &[])
            .await;
        assert_eq!(opcodes.len(), 7);
    });
}

#[test]
fn commands_that_change_nothing_end_well_and_wrong_fields_are_named() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        for cdb in [
            [0x1b, 0, 0, 0, 1, 0],
            [0x1b, 1, 0, 0, 0, 0],
            [0x1e, 0, 0, 0, 1, 0],
        ] {
            bench.good(&nexus, &cdb, &[]).await;
        }
        let wrong: [(&[u8], [u8; 3]); 8] = [
            (&[0x1b, 0, 0, 0, 2, 0], [0xc9, 0, 4]),
            (&[0x1b, 0, 0, 0, 0x30, 0], [0xcf, 0, 4]),
            (&[0x00, 0, 0, 0, 0, 4], [0xca, 0, 5]),
            (&[0x12, 0, 0x80, 0, 96, 0], [0xc0, 0, 2]),
            (&[0x12, 1, 0x42, 0, 96, 0], [0xc0, 0, 2]),
            (&[0x9e, 0x11], [0xcc, 0, 1]),
            (&[0x25, 0, 0, 0, 0, 1, 0, 0, 0, 0], [0xc0, 0, 2]),
            (&[0xa3, 0x0c, 0x04, 0, 0, 0, 0, 0, 0, 9, 0, 0], [0xca, 0, 2]),
        ];
        for (cdb, pointer) in wrong {
            let response = bench.run(&nexus, cdb, &[]).await;
            assert_eq!(sense(&response), (5, 0x24, 0), "CDB {cdb:02x?}");
            assert_eq!(response.sense[15..18], pointer, "CDB {cdb:02x?}");
        }
    });
}

proptest! {
    /// Any sixteen bytes at any LUN: an answer that holds together, never a panic.
    #[test]
    fn random_cdbs_are_answered(
        cdbs in prop::collection::vec((any::<[u8; 16]>(), 0..2u16), 64),
    ) {
        with_bench(async |bench| {
            let nexus = bench.settled().await;
            for (opcode, &(mut cdb, lun)) in (0..=255u8).zip(cdbs.iter().cycle()) {
                cdb[0] = opcode;
                let wanted = scsi::Cdb::from(cdb).data_out_bytes();
                assert!(wanted <= u64::from(scsi::cdb::MAX_TRANSFER_BLOCKS) * 512);
                let response = bench.run_at(&nexus, lun, &cdb, &[9; 1024]).await;
                assert_eq!(response.status == 2, !response.sense.is_empty());
                assert!(response.data.is_empty() || response.status == 0);
                assert!(response.data.len() as u64 <= response.wanted_bytes);
            }
        });
    }
}
