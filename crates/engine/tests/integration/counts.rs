//! The use of drives: the price of a write in place, as the engine counts it.

use crate::common::{DRIVE_BYTES, PAGE, Shelf, content, spec, thin};
use base::VolumeOffset;
use engine::pool::EventKind;
use engine::store::counts::IoCounts;
use engine::{Lane, Level};

const BLOCK: usize = 4096;

/// Drive operations in place, data and parity, read and written.
fn in_place(io: &IoCounts) -> u64 {
    let kinds = [io.modify_reads, io.data_writes, io.parity_writes];
    kinds.iter().map(|kind| kind.count).sum()
}

/// A pool of `drives` with a volume of `pages` whole pages; what it took to write
/// them, and what `then` takes once all that is in place.
fn count<T>(
    (drives, level): (usize, Level),
    pages: usize,
    then: impl AsyncFnOnce(&Lane<world_sim::SimWorld>) -> T,
) -> (IoCounts, IoCounts, T) {
    let shelf = Shelf::new(drives);
    shelf
        .create(spec("pool", level), async |pool| {
            let size = pages * PAGE;
            let volume = pool.create_volume(thin("v", size as u64)).await.unwrap();
            let data = content(pool.world(), 1, size);
            volume.write(VolumeOffset(0), data).await.unwrap();
            pool.store().drain().await.unwrap();
            let filled = pool.store().io();
            let found = then(&pool).await;
            pool.store().drain().await.unwrap();
            (filled, pool.store().io(), found)
        })
        .unwrap()
}

#[test]
fn a_write_that_nothing_coalesces_with_takes_four_or_six_operations() {
    // Enough columns that to read those that stay would take more.
    for (shape, price) in [((5, Level::Raid5), 4), ((8, Level::Raid6), 6)] {
        let writes = [0, 3, 9, 14];
        let (before, after, ()) = count(shape, 16, async |pool| {
            let volume = pool.volume("v").unwrap();
            for page in writes {
                let data = content(pool.world(), 7, BLOCK);
                let at = VolumeOffset((page * PAGE) as u64);
                volume.write(at, data).await.unwrap();
                pool.store().drain().await.unwrap();
            }
        });
        let taken = in_place(&after) - in_place(&before);
        assert_eq!(taken, price * writes.len() as u64, "{shape:?}");
        assert_eq!(
            after.modify_reads.count - before.modify_reads.count,
            taken / 2,
            "{shape:?}"
        );
        assert_eq!(after.host_writes.count - before.host_writes.count, 4);
        assert_eq!(
            after.host_writes.bytes - before.host_writes.bytes,
            4 * BLOCK as u64
        );
    }
}

#[test]
fn writes_that_go_in_place_together_take_fewer() {
    let (before, after, ()) = count((5, Level::Raid5), 16, async |pool| {
        let volume = pool.volume("v").unwrap();
        // Neighbours, and the same block again: one stripe when it comes to it.
        for block in [0, 1, 0, 1] {
            let data = content(pool.world(), 7, BLOCK);
            let at = VolumeOffset((block * BLOCK) as u64);
            volume.write(at, data).await.unwrap();
        }
    });
    assert_eq!(in_place(&after) - in_place(&before), 4);
}

#[test]
fn whole_stripes_are_written_without_reading() {
    for shape in [
        (5, Level::Raid5),
        (6, Level::Raid6),
        (6, Level::Raid50),
        (3, Level::Raid5),
    ] {
        let (filled, after, ()) = count(shape, 24, async |pool| {
            let volume = pool.volume("v").unwrap();
            let data = content(pool.world(), 2, 24 * PAGE);
            volume.write(VolumeOffset(0), data).await.unwrap();
        });
        for io in [filled, after] {
            assert_eq!(io.modify_reads.count, 0, "{shape:?}: {io:?}");
            assert_eq!(io.partial_stripes, 0, "{shape:?}: {io:?}");
        }
        // Over what is there already, too: the new content goes to new pages.
        let bytes = (24 * PAGE) as u64;
        assert!(filled.bypassed_bytes > bytes / 2, "{shape:?}: {filled:?}");
        assert!(after.bypassed_bytes > bytes, "{shape:?}: {after:?}");
    }
}

#[test]
fn every_copy_of_a_mirror_counts() {
    let (before, after, ()) = count((4, Level::Raid10 { copies: 2 }), 4, async |pool| {
        let volume = pool.volume("v").unwrap();
        let data = content(pool.world(), 7, BLOCK);
        volume.write(VolumeOffset(0), data).await.unwrap();
    });
    assert_eq!(after.data_writes.count - before.data_writes.count, 2);
    assert_eq!(
        (after.modify_reads.count, after.parity_writes.count),
        (0, 0)
    );
}

#[test]
fn a_block_that_can_not_be_had_is_counted_and_told_once_until_it_is_written() {
    let shelf = Shelf::new(2);
    let level = Level::Raid10 { copies: 2 };
    let told = shelf.create(spec("pool", level), async |pool| {
        let volume = pool.create_volume(thin("v", PAGE as u64)).await.unwrap();
        let lost = || {
            let events = pool.events(0).into_iter();
            let events = events.filter(|event| event.kind == EventKind::BlockLost);
            (pool.info().lost_bytes, events.count())
        };
        let data = pool.info().data_start / BLOCK as u64..DRIVE_BYTES / BLOCK as u64;
        let mut told = Vec::new();
        for fill in 1..3 {
            let data_of_block = content(pool.world(), fill, BLOCK);
            volume.write(VolumeOffset(0), data_of_block).await.unwrap();
            pool.store().drain().await.unwrap();
            for (_, media) in &shelf.media {
                media.with_faults(|faults| faults.unreadable.extend(data.clone()));
            }
            for _ in 0..3 {
                assert!(volume.read(VolumeOffset(0), BLOCK).await.is_err());
            }
            told.push(lost());
            for (_, media) in &shelf.media {
                media.with_faults(|faults| faults.unreadable.clear());
            }
        }
        told
    });
    assert_eq!(told.unwrap(), [(BLOCK as u64, 1), (2 * BLOCK as u64, 2)]);
}
