//! Failing drives, never more than the redundancy of RAID 10 covers.
//!
//! One drive of each pair is its victim for the whole run; the other one stays
//! sound. So every sector always has a copy that can be read and written.

use crate::session::Session;
use base::{BLOCK_BYTES, Prng};
use engine::World;
use std::rc::Rc;
use std::time::Duration;
use world::sim::Media;

/// The victims among `media`, which are in the order of their places in the pool.
pub fn victims(media: &[Rc<Media>], prng: &mut Prng) -> Vec<Rc<Media>> {
    media
        .chunks_exact(2)
        .map(|pair| Rc::clone(prng.pick(pair)))
        .collect()
}

/// Strikes victims at random times until the run has no more requests.
pub async fn run(session: Rc<Session>, victims: Vec<Rc<Media>>, mut prng: Prng) {
    while session.take_operation() {
        session
            .world
            .sleep(Duration::from_micros(prng.below(20_000)))
            .await;
        let victim = prng.pick(&victims);
        strike(victim, &mut prng);
        session.world.note(|| {
            format!(
                "{} is struck: {:?}",
                victim.spec().name,
                victim.with_faults(|f| f.clone())
            )
        });
    }
}

fn strike(victim: &Media, prng: &mut Prng) {
    let blocks = victim.spec().capacity_bytes / BLOCK_BYTES as u64;
    let start = prng.below(blocks);
    let run = start..(start + prng.between(1, 16)).min(blocks);
    victim.with_faults(|faults| match prng.below(8) {
        0 => faults.gone = true,
        1 => faults.unwritable.extend(run),
        2..5 => faults.unreadable.extend(run),
        5 => faults.no_space = true,
        6 => faults.slowdown = prng.between(2, 50) as u32,
        _ => faults.slowdown = 0,
    });
}

/// Takes back what keeps a drive from answering, as a replaced cable would.
pub fn mend(victims: &[Rc<Media>]) {
    for victim in victims {
        victim.with_faults(|faults| *faults = Default::default());
    }
}
