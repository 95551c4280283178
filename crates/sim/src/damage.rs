//! Failing drives, never more than the redundancy covers.
//!
//! As many drives of each span as it can lose are its victims for the whole run; the
//! others stay sound.

use crate::session::Session;
use base::{BLOCK_BYTES, Prng};
use engine::raid::Geometry;
use engine::{Level, World};
use std::rc::Rc;
use std::time::Duration;
use world::sim::Media;

/// The victims among `media`, which are in the order of their places in the pool.
pub fn victims(media: &[Rc<Media>], level: Level, prng: &mut Prng) -> Vec<Rc<Media>> {
    let Ok(geometry) = Geometry::of(level, media.len(), BLOCK_BYTES as u64) else {
        return Vec::new();
    };
    let mut victims = Vec::new();
    for span in 0..geometry.spans {
        let mut places: Vec<usize> = geometry.span_places(span).collect();
        for _ in 0..geometry.redundancy() {
            let place = places.swap_remove(prng.below(places.len() as u64) as usize);
            victims.push(Rc::clone(&media[place]));
        }
    }
    victims
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
