//! Thin provisioning as initiators meet it: UNMAP, WRITE SAME, GET LBA STATUS, and the pages that
//! describe them.

use crate::bench::{
    Bench, PAGE_BLOCKS, PAGE_BYTES, VOLUME_BLOCKS, bytes, information, sense, sixteen, ten, thin,
    unit, with_bench,
};
use engine::pool::VolumeChange;
use engine::{Provisioning, VolumeSpec};
use proptest::prelude::*;
use scsi::Nexus;
use std::collections::BTreeSet;
use world_sim::SimWorld;

const SECTOR: usize = 512;
const THICK: u16 = 1;

/// UNMAP with these extents; the CDB asks for all of the list.
fn unmap(extents: &[(u64, u32)]) -> ([u8; 10], Vec<u8>) {
    let len = (extents.len() * 16) as u16;
    let mut list = (len + 6).to_be_bytes().to_vec();
    list.extend(len.to_be_bytes());
    list.extend([0; 4]);
    for (lba, blocks) in extents {
        list.extend(lba.to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
    }
    (ten(0x42, 0, len + 8), list)
}

/// WRITE SAME(16).
fn same16(lba: u64, blocks: u32, flags: u8) -> [u8; 16] {
    let mut cdb = sixteen(0x93, lba, blocks);
    cdb[1] = flags;
    cdb
}

/// GET LBA STATUS.
fn status(lba: u64, allocation: u32) -> [u8; 16] {
    let mut cdb = sixteen(0x9e, lba, allocation);
    cdb[1] = 0x12;
    cdb
}

fn read(lba: u32, blocks: u32) -> [u8; 10] {
    ten(0x28, lba, blocks as u16)
}

fn mapped_pages(bench: &Bench, name: &str) -> u64 {
    bench.pool.volume(name).unwrap().info().mapped_bytes / PAGE_BYTES as u64
}

/// Writes reproducible bytes over the first `pages` pages; gives them.
async fn filled(bench: &Bench, nexus: &Nexus<SimWorld>, pages: u32) -> Vec<u8> {
    let data = bytes(11, pages as usize * PAGE_BYTES);
    let write = ten(0x2a, 0, (pages * PAGE_BLOCKS) as u16);
    bench.good(nexus, &write, &data).await;
    data
}

/// Maps a thick volume of three pages at [`THICK`], and takes its unit attentions.
async fn with_thick(bench: &Bench, nexus: &Nexus<SimWorld>) {
    let spec = VolumeSpec {
        provisioning: Provisioning::Thick,
        ..thin("thick", 3 * PAGE_BYTES as u64)
    };
    let volume = bench.pool.create_volume(spec).await.unwrap();
    assert!(bench.target.map(THICK, unit(volume)));
    for _ in 0..2 {
        bench.run_at(nexus, THICK, &[0; 6], &[]).await;
    }
    bench.run(nexus, &[0; 6], &[]).await;
}

#[test]
fn unmapped_pages_read_as_zeroes_and_are_the_pools_again() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let mut data = filled(&bench, &nexus, 8).await;
        assert_eq!(mapped_pages(&bench, "v"), 8);
        // The second page; the third and fourth in part, and again; nothing.
        let page = u64::from(PAGE_BLOCKS);
        let (cdb, list) = unmap(&[
            (page, PAGE_BLOCKS),
            (3 * page - 5, 10),
            (3 * page, 5),
            (7 * page + 1, 0),
        ]);
        let response = bench.run(&nexus, &cdb, &list).await;
        assert_eq!((response.status, response.wanted_bytes), (0, 72));
        data[PAGE_BYTES..2 * PAGE_BYTES].fill(0);
        data[3 * PAGE_BYTES - 5 * SECTOR..3 * PAGE_BYTES + 5 * SECTOR].fill(0);
        let found = bench.good(&nexus, &read(0, VOLUME_BLOCKS), &[]).await;
        assert!(found == data, "exactly what was unmapped is zeroes");
        assert_eq!(mapped_pages(&bench, "v"), 7);
        // All of it, in any order.
        let (cdb, list) = unmap(&[(4 * page, 4 * PAGE_BLOCKS), (0, 5 * PAGE_BLOCKS)]);
        bench.good(&nexus, &cdb, &list).await;
        assert_eq!(mapped_pages(&bench, "v"), 0);
    });
}

#[test]
fn a_wrong_list_unmaps_nothing() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let data = filled(&bench, &nexus, 8).await;
        let end = u64::from(VOLUME_BLOCKS);
        let (cdb, mut list) = unmap(&[(0, 8), (end - 8, 9)]);
        let beyond = bench.run(&nexus, &cdb, &list).await;
        assert_eq!(sense(&beyond), (5, 0x21, 0), "past the end");
        for (lba, blocks) in [(end + 1, 0), (u64::MAX, 1), (u64::MAX, 0)] {
            let (cdb, list) = unmap(&[(0, 8), (lba, blocks)]);
            let beyond = bench.run(&nexus, &cdb, &list).await;
            assert_eq!(sense(&beyond), (5, 0x21, 0), "{lba}+{blocks}");
        }
        let short = bench.run(&nexus, &cdb, &list[..30]).await;
        assert_eq!(sense(&short), (5, 0x1a, 0), "the initiator sent less");
        let short = bench.run(&nexus, &ten(0x42, 0, 7), &list[..7]).await;
        assert_eq!(sense(&short), (5, 0x1a, 0), "less than a header");
        list[1] = 3;
        let odd = bench.run(&nexus, &cdb, &list).await;
        assert_eq!(sense(&odd), (5, 0x26, 0), "lengths that contradict");
        assert_eq!(odd.sense[15..18], [0x80, 0, 0]);
        let (cdb, list) = unmap(&[(0, 1 << 20), (0, 1)]);
        let long = bench.run(&nexus, &cdb, &list).await;
        assert_eq!(sense(&long), (5, 0x26, 0), "more than the limit");
        assert_eq!(long.sense[15..18], [0x80, 0, 32]);
        let found = bench.good(&nexus, &read(0, VOLUME_BLOCKS), &[]).await;
        assert!(found == data);
        assert_eq!(mapped_pages(&bench, "v"), 8);
    });
}

#[test]
fn an_unmap_of_nothing_ends_well() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        bench.good(&nexus, &ten(0x42, 0, 0), &[]).await;
        let (cdb, list) = unmap(&[]);
        bench.good(&nexus, &cdb, &list).await;
        let end = u64::from(VOLUME_BLOCKS);
        let (cdb, list) = unmap(&[(0, 0), (end, 0)]);
        bench.good(&nexus, &cdb, &list).await;
        let mut anchor = ten(0x42, 0, 8);
        anchor[1] = 0x01;
        let refused = bench.run(&nexus, &anchor, &[0; 8]).await;
        assert_eq!(sense(&refused), (5, 0x24, 0));
        assert_eq!(refused.sense[15..18], [0xc8, 0, 1]);
    });
}

#[test]
fn write_same_repeats_its_block_and_keeps_the_neighbours() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let mut data = filled(&bench, &nexus, 8).await;
        let block = bytes(12, SECTOR);
        for (cdb, from, blocks) in [
            (ten(0x41, 3, 1).to_vec(), 3, 1),
            (ten(0x41, 60, 10).to_vec(), 60, 10),
            (same16(130, 200, 0).to_vec(), 130, 200),
            // UNMAP is no leave to lose what is not zeroes.
            (same16(400, 9, 0x08).to_vec(), 400, 9),
        ] {
            let response = bench.run(&nexus, &cdb, &block).await;
            assert_eq!((response.status, response.wanted_bytes), (0, 512));
            let range = from * SECTOR..(from + blocks) * SECTOR;
            data[range].copy_from_slice(&block.repeat(blocks));
        }
        let found = bench.good(&nexus, &read(0, VOLUME_BLOCKS), &[]).await;
        assert!(found == data);
    });
}

#[test]
fn a_long_write_same_goes_in_pieces_that_fit_together() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let large = bench.pool.create_volume(thin("large", 4 << 20)).await;
        assert!(bench.target.map(2, unit(large.unwrap())));
        for _ in 0..2 {
            bench.run_at(&nexus, 2, &[0; 6], &[]).await;
        }
        // The end of one piece, a whole one, the beginning of a third.
        let (first, blocks) = (2047, 2050);
        let cdb = same16(u64::from(first), blocks, 0);
        let block = bytes(13, SECTOR);
        let response = bench.run_at(&nexus, 2, &cdb, &block).await;
        assert_eq!(response.status, 0);
        let cdb = read(first - 1, blocks + 2);
        let found = bench.run_at(&nexus, 2, &cdb, &[]).await.data.to_vec();
        let zero = [0; SECTOR];
        let expected = [&zero[..], &block.repeat(blocks as usize), &zero].concat();
        assert!(found == expected);
    });
}

#[test]
fn write_same_of_zeroes_gives_pages_back() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let mut data = filled(&bench, &nexus, 8).await;
        let page = u64::from(PAGE_BLOCKS);
        let zero = [0; SECTOR];
        let orders: [(Vec<u8>, &[u8], u64); 3] = [
            (same16(page, PAGE_BLOCKS, 0x08).to_vec(), &zero, 512),
            (
                ten(0x41, 2 * PAGE_BLOCKS, PAGE_BLOCKS as u16).to_vec(),
                &zero,
                512,
            ),
            (same16(3 * page, PAGE_BLOCKS, 0x09).to_vec(), &[], 0),
        ];
        for (cdb, block, wanted) in orders {
            let response = bench.run(&nexus, &cdb, block).await;
            assert_eq!((response.status, response.wanted_bytes), (0, wanted));
        }
        data[PAGE_BYTES..4 * PAGE_BYTES].fill(0);
        let found = bench.good(&nexus, &read(0, VOLUME_BLOCKS), &[]).await;
        assert!(found == data);
        assert_eq!(mapped_pages(&bench, "v"), 5);
        // Without data and without UNMAP.
        bench
            .good(&nexus, &same16(4 * page, 4 * PAGE_BLOCKS, 0x01), &[])
            .await;
        assert_eq!(mapped_pages(&bench, "v"), 1);
    });
}

#[test]
fn write_same_refuses_what_is_not_there_too_long_or_not_one_block() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let last = VOLUME_BLOCKS - 1;
        for (lba, blocks) in [(last, 2), (last + 1, 0), (last + 1, 1), (u32::MAX, 1)] {
            let response = bench
                .run(&nexus, &ten(0x41, lba, blocks), &[1; SECTOR])
                .await;
            assert_eq!(sense(&response), (5, 0x21, 0), "{lba}+{blocks}");
        }
        let cdb = same16(u64::MAX - 3, 8, 0x01);
        let response = bench.run(&nexus, &cdb, &[]).await;
        assert_eq!(sense(&response), (5, 0x21, 0));
        for len in [0, 1, 511, 513, 1024] {
            let response = bench.run(&nexus, &ten(0x41, 0, 1), &vec![1; len]).await;
            assert_eq!(sense(&response), (5, 0x0e, 3), "{len} bytes");
        }
        for (cdb, byte) in [
            (ten(0x41, 0, 0).to_vec(), 7),
            (same16(8, 0, 9).to_vec(), 10),
        ] {
            let response = bench.run(&nexus, &cdb, &[0; SECTOR]).await;
            assert_eq!(sense(&response), (5, 0x24, 0), "no blocks at all");
            assert_eq!(response.sense[15..18], [0xc0, 0, byte]);
        }
    });
}

#[test]
fn get_lba_status_tells_pages_from_holes() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let page = u64::from(PAGE_BLOCKS);
        // Mapped: the second, third and last page.
        for at in [1, 2, 7] {
            let write = ten(0x2a, at * PAGE_BLOCKS + 9, 1);
            bench.good(&nexus, &write, &[1; SECTOR]).await;
        }
        let run = |lba: u64, blocks: u64, status: u8| {
            let blocks = (blocks as u32).to_be_bytes();
            [&lba.to_be_bytes()[..], &blocks, &[status, 0, 0, 0]].concat()
        };
        let head = |runs: u8| vec![0, 0, 0, 4 + 16 * runs, 0, 0, 0, 0];
        let all = [
            head(4),
            run(0, page, 1),
            run(page, 2 * page, 0),
            run(3 * page, 4 * page, 1),
            run(7 * page, page, 0),
        ]
        .concat();
        let found = bench.good(&nexus, &status(0, 1000), &[]).await;
        assert_eq!(found, all);
        let expected = [head(1), run(page + 3, 2 * page - 3, 0)].concat();
        let found = bench.good(&nexus, &status(page + 3, 24), &[]).await;
        assert_eq!(found, expected, "from the middle, room for one");
        let found = bench.good(&nexus, &status(page + 3, 13), &[]).await;
        assert_eq!(found, expected[..13], "cut to the allocation length");
        let last = u64::from(VOLUME_BLOCKS) - 1;
        let found = bench.good(&nexus, &status(last, 100), &[]).await;
        assert_eq!(found, [head(1), run(last, 1, 0)].concat());
        let beyond = bench.run(&nexus, &status(last + 1, 24), &[]).await;
        assert_eq!(sense(&beyond), (5, 0x21, 0));
        let (cdb, list) = unmap(&[(7 * page, PAGE_BLOCKS)]);
        bench.good(&nexus, &cdb, &list).await;
        let found = bench.good(&nexus, &status(7 * page, 24), &[]).await;
        assert_eq!(found, [head(1), run(7 * page, page, 1)].concat());
    });
}

#[test]
fn a_thin_unit_says_what_it_can() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let mut capacity = [0; 16];
        (capacity[0], capacity[1], capacity[13]) = (0x9e, 0x10, 32);
        let found = bench.good(&nexus, &capacity, &[]).await;
        assert_eq!(found[14], 0xc0, "LBPME, LBPRZ");
        let limits = bench.good(&nexus, &[0x12, 1, 0xb0, 0, 64, 0], &[]).await;
        assert_eq!(limits[28..32], PAGE_BLOCKS.to_be_bytes(), "granularity");
        let provisioning = bench.good(&nexus, &[0x12, 1, 0xb2, 0, 8, 0], &[]).await;
        assert_eq!(provisioning[5..7], [0xe4, 2]);
        let opcode = [0xa3, 0x0c, 1, 0x42, 0, 0, 0, 0, 0, 2, 0, 0];
        assert_eq!(bench.good(&nexus, &opcode, &[]).await, [0, 3]);
    });
}

#[test]
fn a_thick_unit_has_no_unmap_and_keeps_its_pages() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        with_thick(&bench, &nexus).await;
        let run = async |cdb: &[u8], data: &[u8]| bench.run_at(&nexus, THICK, cdb, data).await;
        let mut capacity = [0; 16];
        (capacity[0], capacity[1], capacity[13]) = (0x9e, 0x10, 32);
        assert_eq!(run(&capacity, &[]).await.data.to_vec()[14], 0);
        let provisioning = run(&[0x12, 1, 0xb2, 0, 8, 0], &[]).await.data.to_vec();
        assert_eq!(provisioning[4..], [0; 4]);
        let opcode = [0xa3, 0x0c, 1, 0x42, 0, 0, 0, 0, 0, 2, 0, 0];
        assert_eq!(run(&opcode, &[]).await.data.to_vec(), [0, 1]);
        let (cdb, list) = unmap(&[(0, 8)]);
        assert_eq!(sense(&run(&cdb, &list).await), (5, 0x20, 0));
        let refused = run(&same16(0, 8, 0x08), &[0; SECTOR]).await;
        assert_eq!(sense(&refused), (5, 0x24, 0), "UNMAP of WRITE SAME");
        assert_eq!(refused.sense[15..18], [0xcb, 0, 1]);

        let blocks = 3 * PAGE_BLOCKS;
        assert_eq!(run(&same16(0, blocks, 0), &[7; SECTOR]).await.status, 0);
        let found = run(&read(0, blocks), &[]).await.data.to_vec();
        assert!(found.len() == 3 * PAGE_BYTES && found.iter().all(|byte| *byte == 7));
        assert_eq!(run(&same16(1, blocks - 2, 0), &[0; SECTOR]).await.status, 0);
        let found = run(&read(0, blocks), &[]).await.data.to_vec();
        let (first, rest) = found.split_at(SECTOR);
        let (middle, last) = rest.split_at(rest.len() - SECTOR);
        assert!(first == [7; SECTOR] && last == [7; SECTOR]);
        assert!(middle.iter().all(|byte| *byte == 0));
        assert_eq!(mapped_pages(&bench, "thick"), 3);
        let found = run(&status(0, 24), &[]).await.data.to_vec();
        assert_eq!(found[16..21], [0, 0, 0, 3 * PAGE_BLOCKS as u8, 0], "mapped");
    });
}

#[test]
fn a_pool_that_has_lost_its_drive_is_a_target_failure() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        filled(&bench, &nexus, 2).await;
        bench.media.with_faults(|faults| faults.gone = true);
        let (cdb, list) = unmap(&[(0, PAGE_BLOCKS)]);
        let response = bench.run(&nexus, &cdb, &list).await;
        assert_eq!(
            (sense(&response), information(&response)),
            ((4, 0x44, 0), None)
        );
        let response = bench.run(&nexus, &same16(0, 9, 0), &[1; SECTOR]).await;
        assert_eq!(sense(&response), (4, 0x44, 0));
    });
}

proptest! {
    /// Any parameter list: an answer that holds together, never a panic; and only
    /// what a list of the standard's form names is touched.
    #[test]
    fn random_lists_are_answered(
        mut list in prop::collection::vec(any::<u8>(), 0..80),
        asked in 0..100u16,
        is_near in any::<bool>(),
    ) {
        with_bench(async |bench| {
            let nexus = bench.settled().await;
            if is_near && list.len() >= 24 {
                let len = list.len() as u8;
                list[..4].copy_from_slice(&[0, len - 2, 0, len - 8]);
                list[8..20].copy_from_slice(&[0, 0, 0, 0, 0, 0, 1, 9, 0, 0, 0, len]);
            }
            list.truncate(usize::from(asked));
            let response = bench.run(&nexus, &ten(0x42, 0, asked), &list).await;
            assert_eq!(response.status == 2, !response.sense.is_empty());
            if response.status == 2 {
                let (key, asc, _) = sense(&response);
                assert!(key == 5 && [0x1a, 0x21, 0x26].contains(&asc), "{asc:#x}");
            }
        });
    }
}

const TUR: [u8; 6] = [0; 6];

#[test]
fn initiators_of_thin_units_hear_that_space_runs_out() {
    with_bench(async |bench| {
        let (a, b) = (bench.settled().await, bench.settled().await);
        with_thick(&bench, &a).await;
        for _ in 0..2 {
            bench.run_at(&b, THICK, &TUR, &[]).await;
        }
        bench.run(&b, &TUR, &[]).await;
        let volumes = bench.pool.volumes().into_iter();
        let all: BTreeSet<_> = volumes.map(|volume| volume.uuid).collect();
        bench.target.space_runs_out(&BTreeSet::new());
        bench.target.space_runs_out(&all);
        bench.target.space_runs_out(&all);
        for nexus in [&a, &b] {
            assert_eq!(sense(&bench.run(nexus, &TUR, &[]).await), (6, 0x38, 7));
            bench.good(nexus, &TUR, &[]).await;
            let thick = bench.run_at(nexus, THICK, &TUR, &[]).await;
            assert_eq!(thick.status, 0, "who has all pages need not know");
        }
    });
}

#[test]
fn a_unit_that_becomes_thick_says_so_and_unmaps_no_more() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let to = |provisioning| VolumeChange {
            provisioning: Some(provisioning),
            ..VolumeChange::default()
        };
        // LBPME in READ CAPACITY (16); LBPU in page B2h.
        let shown = async || {
            let mut capacity = sixteen(0x9e, 0, 32);
            capacity[1] = 0x10;
            let capacity = bench.good(&nexus, &capacity, &[]).await;
            let page = bench.good(&nexus, &[0x12, 1, 0xb2, 0, 255, 0], &[]).await;
            (capacity[14] & 0x80 != 0, page[5] & 0x80 != 0)
        };
        assert_eq!(shown().await, (true, true));
        for (provisioning, expected) in [
            (Provisioning::Thick, (false, false)),
            (Provisioning::Thin, (true, true)),
        ] {
            let change = bench.pool.change_volume("v", to(provisioning)).await;
            bench.target.converted(change.unwrap().uuid);
            assert_eq!(sense(&bench.run(&nexus, &TUR, &[]).await), (6, 0x3f, 3));
            assert_eq!(shown().await, expected);
            let (cdb, list) = unmap(&[(0, 8)]);
            let response = bench.run(&nexus, &cdb, &list).await;
            assert_eq!(response.status == 0, expected.0);
        }
    });
}
