//! A snapshot as initiators meet it: read, and write-protected.

use crate::bench::{PAGE_BLOCKS, PAGE_BYTES, bytes, sense, sixteen, ten, unit, with_bench};

const SNAPSHOT: u16 = 1;

#[test]
fn a_snapshot_reads_as_it_was_and_refuses_every_write() {
    with_bench(async |bench| {
        let nexus = bench.settled().await;
        let before = bytes(1, PAGE_BYTES);
        let write = ten(0x2a, 0, PAGE_BLOCKS as u16);
        bench.good(&nexus, &write, &before).await;
        let snapshot = bench.pool.clone_volume("v", "v@s", true, 5).await.unwrap();
        assert!(bench.target.map(SNAPSHOT, unit(snapshot)));
        for _ in 0..2 {
            bench.run_at(&nexus, SNAPSHOT, &[0; 6], &[]).await;
        }
        bench.run(&nexus, &[0; 6], &[]).await;
        let after = bytes(2, PAGE_BYTES);
        bench.good(&nexus, &write, &after).await;

        let mut list = vec![0, 22, 0, 16, 0, 0, 0, 0];
        list.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0]);
        let unmap = ten(0x42, 0, 24);
        let same = ten(0x41, 0, 1);
        let mut same_unmap = sixteen(0x93, 0, PAGE_BLOCKS);
        same_unmap[1] = 0x08;
        let refused: [(&[u8], &[u8]); 4] = [
            (&write, &after),
            (&unmap, &list),
            (&same, &after[..512]),
            (&same_unmap, &[0; 512]),
        ];
        for (cdb, data) in refused {
            let response = bench.run_at(&nexus, SNAPSHOT, cdb, data).await;
            assert_eq!(sense(&response), (7, 0x27, 0), "CDB {cdb:02x?}");
        }
        let read = ten(0x28, 0, PAGE_BLOCKS as u16);
        let found = bench.run_at(&nexus, SNAPSHOT, &read, &[]).await;
        assert!(found.data.to_vec() == before);
        assert!(bench.good(&nexus, &read, &[]).await == after);

        // MODE SENSE(6), all pages.
        let mode = [0x1a, 0x08, 0x3f, 0, 255, 0];
        let protected = bench.run_at(&nexus, SNAPSHOT, &mode, &[]).await;
        assert_eq!(protected.data.to_vec()[2], 0x90);
        assert_eq!(bench.good(&nexus, &mode, &[]).await[2], 0x10);
    });
}
