//! Failing drives, never more than the redundancy covers.
//!
//! As many drives of each span as it can lose are its victims for the whole run; the
//! others stay sound.

use crate::config::Config;
use crate::session::Session;
use base::{BLOCK_BYTES, Prng};
use engine::raid::Geometry;
use engine::{Level, World};
use std::rc::Rc;
use std::time::Duration;
use world::sim::{Media, Snapshot};

/// The victims among `media`, which are in the order of their places in the pool,
/// group by group, then the spares, then those of a group that is added: spares stand in
/// for victims, so they may be struck, too.
pub fn victims(media: &[Rc<Media>], config: &Config, prng: &mut Prng) -> Vec<Rc<Media>> {
    let mut victims = Vec::new();
    let mut first = 0;
    for _ in 0..config.groups {
        let levels = std::iter::once(config.pool.level).chain(config.level_later);
        let places = of_group(levels, config.drives_of_group, prng);
        victims.extend(
            places
                .into_iter()
                .map(|place| Rc::clone(&media[first + place])),
        );
        first += config.drives_of_group;
    }
    victims.extend(media[first..first + config.spares].iter().cloned());
    first += config.spares;
    if let Some((level, drives)) = config.group_later {
        let places = of_group(std::iter::once(level), drives, prng);
        victims.extend(
            places
                .into_iter()
                .map(|place| Rc::clone(&media[first + place])),
        );
    }
    victims
}

/// Places of a group that it can lose at each of its levels.
fn of_group(levels: impl Iterator<Item = Level>, drives: usize, prng: &mut Prng) -> Vec<usize> {
    let shapes: Vec<Geometry> = levels
        .filter_map(|level| Geometry::of(level, drives, BLOCK_BYTES as u64).ok())
        .collect();
    let mut places: Vec<usize> = (0..drives).collect();
    for last in (1..places.len()).rev() {
        places.swap(last, prng.below(last as u64 + 1) as usize);
    }
    let mut lost: Vec<usize> = Vec::new();
    for place in places {
        let fits = shapes.iter().all(|shape| {
            let span = shape.span_of(place);
            let others = lost.iter().filter(|lost| shape.span_of(**lost) == span);
            others.count() < shape.redundancy()
        });
        if fits {
            lost.push(place);
        }
    }
    lost
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
    let draw = prng.below(14);
    if (8..11).contains(&draw) {
        run.clone().for_each(|block| victim.corrupt(block));
        return format!("blocks {run:?} change");
    }
    victim.with_faults(|faults| match draw {
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
            faults.slowdown = *prng.pick(&[2, 10, 50, 2_000]);
            format!("{} times slower", faults.slowdown)
        }
        11 | 12 => {
            faults.lost_writes += prng.between(1, 4) as u32;
            format!("{} writes get lost", faults.lost_writes)
        }
        13 => {
            faults.stray_writes += prng.between(1, 3) as u32;
            format!("{} writes go astray", faults.stray_writes)
        }
        _ => {
            faults.slowdown = 0;
            "as fast as ever".to_owned()
        }
    })
}

/// Between two boots a victim may come back with what it held some boots ago.
pub fn turn_back(victims: &[Rc<Media>], snapshots: &mut Vec<(usize, Snapshot)>, prng: &mut Prng) {
    if victims.is_empty() {
        return;
    }
    let which = prng.below(victims.len() as u64) as usize;
    match prng.below(8) {
        0 | 1 => snapshots.push((which, victims[which].snapshot())),
        2 => {
            if let Some((which, snapshot)) = snapshots.pop() {
                victims[which].restore(&snapshot);
            }
        }
        _ => {}
    }
}

/// Where data and sums of zones lie on every drive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    pub data_start: u64,
    pub zone_stride_bytes: u64,
    pub zone_bytes: u64,
}

impl Layout {
    fn is_data(self, offset: u64) -> bool {
        let inside = (offset - self.data_start) % self.zone_stride_bytes;
        inside >= self.zone_stride_bytes - self.zone_bytes
    }
}

/// Damages data and sums on all drives: data changes silently, sums can't be read.
///
/// Sums that change silently on all their drives at once are outside the assumptions
/// (`docs/FORMAT.md`): together with a crash they can't be told from torn ones.
pub fn beyond(media: &[Rc<Media>], layout: Layout, prng: &mut Prng) {
    let block = BLOCK_BYTES as u64;
    for drive in media {
        let (first, end) = (
            layout.data_start / block,
            drive.spec().capacity_bytes / block,
        );
        for _ in 0..prng.below(20) {
            let start = prng.between(first, end - 1);
            let silent = prng.chance(1, 2);
            for at in start..(start + prng.between(1, 6)).min(end) {
                if silent && layout.is_data(at * block) {
                    drive.corrupt(at);
                } else {
                    drive.with_faults(|faults| faults.unreadable.extend(at..at + 1));
                }
            }
        }
    }
}

/// Takes back what keeps a drive from answering, as a replaced cable would.
pub fn mend(victims: &[Rc<Media>]) {
    for victim in victims {
        victim.with_faults(|faults| *faults = Default::default());
    }
}
