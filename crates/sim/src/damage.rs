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
        let what = strike(victim, &mut prng);
        session
            .world
            .note(|| format!("{} is struck: {what}", victim.spec().name));
    }
}

/// Strikes a drive. Returns how, for the trace.
fn strike(victim: &Media, prng: &mut Prng) -> String {
    let blocks = victim.spec().capacity_bytes / BLOCK_BYTES as u64;
    let start = prng.below(blocks);
    let run = start..(start + prng.between(1, 16)).min(blocks);
    victim.with_faults(|faults| match prng.below(8) {
        0 => {
            faults.gone = true;
            "gone".to_owned()
        }
        1 => {
            faults.unwritable.extend(run.clone());
            format!("blocks {run:?} can't be written")
        }
        2..5 => {
            faults.unreadable.extend(run.clone());
            format!("blocks {run:?} can't be read")
        }
        5 => {
            faults.no_space = true;
            "no space below".to_owned()
        }
        6 => {
            faults.slowdown = prng.between(2, 50) as u32;
            format!("{} times slower", faults.slowdown)
        }
        _ => {
            faults.slowdown = 0;
            "as fast as ever".to_owned()
        }
    })
}

/// Takes back what keeps a drive from answering, as a replaced cable would.
pub fn mend(victims: &[Rc<Media>]) {
    for victim in victims {
        victim.with_faults(|faults| *faults = Default::default());
    }
}
