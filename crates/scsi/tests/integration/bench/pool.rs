//! A small pool on one simulated drive.
#![allow(dead_code, reason = "every test uses a part of it")]

use base::{BufPool, Prng, Time};
use engine::{Lane, Level, NamedDrive, PoolSpec};
use std::rc::Rc;
use world_sim::{Media, MediaSpec, Order, Outcome, SimDrive, SimWorld};

pub const PAGE_BYTES: u32 = 32 << 10;

/// The pool `p`, and what it lies on.
pub struct Made {
    pub world: SimWorld,
    pub media: Rc<Media>,
    pub pool: Lane<SimWorld>,
}

/// Runs `test` over a pool of one drive.
pub fn with_pool(capacity_bytes: u64, volumes_max: u32, test: impl AsyncFnOnce(Made)) {
    let world = SimWorld::new(Prng::from_seed(7), Order::Shuffled, BufPool::new(), Time(0));
    let media = Rc::new(Media::new(
        MediaSpec::new("d0", capacity_bytes),
        Prng::from_seed(8),
    ));
    let root = async {
        let drives = vec![NamedDrive {
            name: "d0".to_owned(),
            drive: SimDrive::adversarial(&world, &media),
        }];
        let spec = PoolSpec {
            stripe_unit_bytes: 8 << 10,
            page_bytes: PAGE_BYTES,
            journal_bytes: Some(8 << 10),
            volumes_max,
            ..PoolSpec::new("p", Level::Simple)
        };
        let pool = Lane::create(world.clone(), spec, drives).await.unwrap();
        let (world, media) = (world.clone(), Rc::clone(&media));
        test(Made { world, media, pool }).await;
    };
    let outcome = world.run(u64::MAX, root);
    world.power_off();
    assert!(
        matches!(outcome, Ok(Outcome::Done(()))),
        "the test did not end"
    );
}
