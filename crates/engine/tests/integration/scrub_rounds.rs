//! Scrubs that a pool begins by itself.

use crate::common::{PAGE, Shelf, content, end, media, spec, thin};
use base::VolumeOffset;
use engine::pool::maintenance::{Rates, ScrubState};
use engine::{Lane, Level, PoolSpec, World};
use std::time::Duration;

/// Larger than a piece that a scrub looks through at once, and no multiple of what is due when.
const ZONE_BYTES: u64 = 64 << 20;
const WITHIN: Duration = Duration::from_secs(20);

#[test]
fn a_scrub_by_itself_ends_in_time_where_a_zone_takes_many_pieces() {
    let mut shelf = Shelf::new(0);
    shelf
        .media
        .push(("d".to_owned(), media("d", 3 * ZONE_BYTES)));
    let world = shelf.world();
    let drives = shelf.drives(&world);
    let spec = PoolSpec {
        zone_bytes: Some(ZONE_BYTES),
        ..spec("pool", Level::Simple)
    };
    end(&world, async {
        let pool = Lane::create(world.clone(), spec, drives).await.unwrap();
        let volume = pool.create_volume(thin("v", PAGE as u64)).await.unwrap();
        let data = content(&world, 1, PAGE);
        volume.write(VolumeOffset(0), data).await.unwrap();
        pool.go_on_scrubbing(ScrubState::default());
        pool.set_rates(Rates {
            scrub_within: Some(WITHIN),
            ..Rates::default()
        });
        for round in 1..=2 {
            pool.world().sleep(WITHIN + Duration::from_secs(3)).await;
            let info = pool.info();
            assert_eq!(info.scrubs_ended, round, "{info:?}");
        }
        pool.close().await.unwrap();
    });
}
