//! Damages drives, never more of them than the redundancy covers.
//!
//! As many drives of each span as it can lose are its victims; the others stay sound.
//! Where victims hide nothing ([`Config::turns`]) they may come back, and others become
//! the victims instead: [`next_to_go`]. The budget in full: `crates/sim/README.md`.

use crate::config::Config;
use crate::session::Session;
use array::error::{ArrayError, ArrayErrorKind};
use base::{BLOCK_BYTES, Prng, Time};
use engine::layout::Slots;
use engine::raid::Geometry;
use engine::{Level, World};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Faults, Media, Snapshot};

/// The victims among `media`, which are in the order of their places in the pool,
/// group by group, then the spares, then those of a group that is added: spares stand in
/// for victims, so they may be struck, too.
pub fn victims(media: &[Rc<Media>], config: &Config, prng: &mut Prng) -> Vec<Rc<Media>> {
    let mut victims = Vec::new();
    let mut first = 0;
    for _ in 0..config.groups {
        let levels = std::iter::once(config.pool.level).chain(config.level_later);
        let shapes: Vec<Geometry> = levels.filter_map(|level| config.spans(level)).collect();
        let places = of_shapes(&shapes, config.drives_of_group, prng);
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
pub(crate) fn of_group(
    levels: impl Iterator<Item = Level>,
    drives: usize,
    prng: &mut Prng,
) -> Vec<usize> {
    let shapes: Vec<Geometry> = levels
        .filter_map(|level| Geometry::of(level, drives, BLOCK_BYTES as u64).ok())
        .collect();
    of_shapes(&shapes, drives, prng)
}

/// Places of a group that it can lose in each of these shapes.
fn of_shapes(shapes: &[Geometry], drives: usize, prng: &mut Prng) -> Vec<usize> {
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
pub async fn run(session: Rc<Session>, mut prng: Prng) {
    while session.take_operation() {
        session
            .world
            .sleep(Duration::from_micros(prng.below(20_000)))
            .await;
        let victims = session.books.victims.borrow().clone();
        if victims.is_empty() {
            continue;
        }
        let victim = prng.pick(&victims);
        if prng.chance(1, 12) {
            order(&session, victim, &mut prng).await;
            continue;
        }
        let what = match session.books.config.turns {
            true => hold_up(victim, session.world.now(), &mut prng),
            false => strike(victim, session.world.now(), &mut prng),
        };
        let name = &victim.spec().name;
        session.books.struck.borrow_mut().insert(name.clone());
        session.world.note(|| format!("{name} is struck: {what}"));
    }
}

/// Drives added in one run, at most.
const BLANKS_MAX: usize = 4;

/// The administrator has a victim fail, replaces it or adds a spare. What is added
/// may be struck like what it stands in for.
async fn order(session: &Session, victim: &Media, prng: &mut Prng) {
    let (books, pool, name) = (&session.books, &session.pool, &victim.spec().name);
    let mut draw = prng.below(3);
    if books.media.borrow().len() >= books.config.drive_bytes.len() + BLANKS_MAX {
        draw = 0;
    }
    session
        .world
        .note(|| format!("order {draw} about {name} begins"));
    books.struck.borrow_mut().insert(name.clone());
    let what = format!("about {name}");
    let new = (draw > 0).then(|| books.blank());
    let added = new.as_ref().map(|(_, media)| Rc::clone(media));
    let outcome = match (draw, new) {
        (1, Some(new)) => {
            let added = pool.add_spare(new, None);
            session.ask("add spare", what, added).await
        }
        (_, Some(new)) => {
            let replaced = pool.replace_drive(name, new, None);
            session.ask("replace drive", what, replaced).await
        }
        (_, None) => session.ask("fail drive", what, pool.fail_drive(name)).await,
    };
    // Where distributed spares hold what victims held, others may be victims by now. One that stands in
    // for those of before would be one too many.
    let had_others = books.config.spread.is_some() && books.turned.get();
    let may_fail = books.replaced.borrow().is_empty() && !had_others;
    books
        .victims
        .borrow_mut()
        .extend(added.filter(|_| may_fail));
    judge(session, &format!("order {draw} about {name}"), outcome);
}

/// A pool refuses an order about a drive only for a reason: the drive may be out of it already, or be
/// needed now.
pub(crate) fn judge(session: &Session, what: &str, outcome: Result<(), ArrayError>) {
    if let Err(error) = outcome
        && !matches!(
            error.kind,
            ArrayErrorKind::NotFound
                | ArrayErrorKind::Invalid
                | ArrayErrorKind::Internal
                | ArrayErrorKind::Busy
        )
    {
        session.fail(format!("{what}: {:?}: {error}", error.kind));
    }
}

/// Has a drive go away, refuse writes or take its time: nothing that hides. Returns
/// how, for the trace.
pub(crate) fn hold_up(victim: &Media, now: Time, prng: &mut Prng) -> String {
    let blocks = victim.spec().capacity_bytes / BLOCK_BYTES as u64;
    victim.with_faults(|faults| match prng.below(8) {
        0 => {
            faults.gone = true;
            "gone".to_owned()
        }
        1 => {
            faults.shrunk = true;
            "smaller than it was".to_owned()
        }
        2 => {
            let start = prng.below(blocks);
            let run = start..(start + prng.between(1, 16)).min(blocks);
            faults.unwritable.extend(run.clone());
            format!("blocks {run:?} can't be written")
        }
        3 => {
            faults.no_space = true;
            "no space below".to_owned()
        }
        4 => {
            faults.slowdown = *prng.pick(&[2, 10, 50, 2_000]);
            format!("{} times slower", faults.slowdown)
        }
        5 => {
            faults.queue_depth = prng.between(1, 4) as u32;
            format!("{} operations at a time", faults.queue_depth)
        }
        6 => {
            let until = now + Duration::from_millis(prng.between(1, 20_000));
            faults.stalled_until = Some(until);
            format!("no answer until {until}")
        }
        _ => {
            *faults = Faults::default();
            "as sound as ever".to_owned()
        }
    })
}

/// Strikes a drive. Returns how, for the trace.
pub(crate) fn strike(victim: &Media, now: Time, prng: &mut Prng) -> String {
    let blocks = victim.spec().capacity_bytes / BLOCK_BYTES as u64;
    let start = prng.below(blocks);
    let mut run = start..(start + prng.between(1, 16)).min(blocks);
    let what = prng.below(12);
    if what < 5 && prng.chance(1, 3) {
        run = units_of(run, blocks);
    }
    match what {
        0..3 => {
            run.clone().for_each(|block| victim.corrupt(block));
            format!("blocks {run:?} change")
        }
        3..5 => {
            victim.with_faults(|faults| faults.unreadable.extend(run.clone()));
            format!("blocks {run:?} can't be read")
        }
        5 | 6 => victim.with_faults(|faults| {
            faults.lost_writes += prng.between(1, 4) as u32;
            format!("{} writes get lost", faults.lost_writes)
        }),
        7 => victim.with_faults(|faults| {
            faults.stray_writes += prng.between(1, 3) as u32;
            format!("{} writes go astray", faults.stray_writes)
        }),
        8 if prng.chance(1, 4) => {
            (0..blocks).for_each(|block| victim.corrupt(block));
            "everything on it changes".to_owned()
        }
        _ => hold_up(victim, now, prng),
    }
}

/// Blocks of a unit of flash.
const UNIT_BLOCKS: u64 = 4;

/// A run with all that is in the same units of flash: what is written to one goes to
/// another place with all that is in it, and breaks with that.
fn units_of(run: Range<u64>, blocks: u64) -> Range<u64> {
    let end = run.end.next_multiple_of(UNIT_BLOCKS).min(blocks);
    run.start / UNIT_BLOCKS * UNIT_BLOCKS..end
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
    pub twins: engine::layout::Layout,
}

impl Layout {
    /// Blocks where the sums of zones lie on a drive of so many bytes.
    pub fn sums(self, capacity_bytes: u64) -> impl Iterator<Item = u64> {
        let block = BLOCK_BYTES as u64;
        let zones =
            (self.data_start..capacity_bytes).step_by(self.zone_stride_bytes.max(1) as usize);
        let of_zone = self.zone_stride_bytes - self.zone_bytes;
        zones
            .flat_map(move |start| start / block..(start + of_zone) / block)
            .filter(move |at| (at + 1) * block <= capacity_bytes)
    }

    fn is_data(self, offset: u64) -> bool {
        let inside = (offset - self.data_start) % self.zone_stride_bytes;
        inside >= self.zone_stride_bytes - self.zone_bytes
    }
}

/// Damages data and sums on all drives: data changes silently, sums can't be read.
///
/// Sums that change silently on all their drives at once are outside the assumptions
/// (`docs/internals/format.md`) where a crash came before: they can't be told from torn ones.
/// After a clean close they can, until the next crash.
pub fn beyond(media: &[Rc<Media>], layout: Layout, closed: bool, prng: &mut Prng) {
    let block = BLOCK_BYTES as u64;
    if closed && prng.chance(1, 2) {
        one_slot(media, layout, prng);
    }
    for drive in media {
        let (first, end) = (
            layout.data_start / block,
            drive.spec().capacity_bytes / block,
        );
        for _ in 0..prng.below(20) {
            let start = prng.between(first, end - 1);
            let silent = prng.chance(1, 2);
            for at in start..(start + prng.between(1, 6)).min(end) {
                if silent && (closed || layout.is_data(at * block)) {
                    drive.corrupt(at);
                } else {
                    drive.with_faults(|faults| faults.unreadable.extend(at..at + 1));
                }
            }
        }
    }
}

/// Damages one slot of every copy of a zone's first sums: what is left is whole, and
/// may be a version behind.
fn one_slot(media: &[Rc<Media>], layout: Layout, prng: &mut Prng) {
    let block = BLOCK_BYTES as u64;
    let end = media.iter().map(|drive| drive.spec().capacity_bytes);
    let zones = end.min().unwrap_or(0).saturating_sub(layout.data_start) / layout.zone_stride_bytes;
    let zone = prng.below(zones.max(1));
    let area = layout.data_start + zone * layout.zone_stride_bytes;
    let sums_end = layout.zone_stride_bytes - layout.zone_bytes;
    let slots = Slots::of(layout.twins, layout.zone_bytes);
    let slot = prng.below(2);
    let of_area = (0..).map(|pair| slots.at(pair, slot));
    let of_area: Vec<u64> = of_area.take_while(|at| at + block <= sums_end).collect();
    for drive in media {
        for at in of_area.iter().map(|at| area + at) {
            if at < drive.spec().capacity_bytes {
                drive.corrupt(at / block);
            }
        }
    }
}

/// Whether a row, or what is known of its sums, may be damaged on more drives than its
/// level covers: as many drives of a group as that are damaged at one place. All sums of a
/// zone count as one place.
pub fn is_beyond(media: &[Rc<Media>], config: &Config, layout: Layout) -> bool {
    let (block, stride) = (BLOCK_BYTES as u64, layout.zone_stride_bytes.max(1));
    let levels = std::iter::once(config.pool.level).chain(config.level_later);
    let shapes = levels.filter_map(|level| config.spans(level));
    let covered = shapes.map(Geometry::redundancy).min().unwrap_or(0);
    let place = |at: u64| match at * block >= layout.data_start && layout.is_data(at * block) {
        true => at,
        // Before the data there is nothing that rows are made of.
        false => u64::MAX - (at * block).saturating_sub(layout.data_start) / stride,
    };
    media.chunks(config.drives_of_group).any(|group| {
        let mut places: BTreeMap<u64, usize> = BTreeMap::new();
        for drive in group {
            let of_drive: BTreeSet<u64> = drive.damaged().into_iter().map(place).collect();
            for at in of_drive {
                *places.entry(at).or_default() += 1;
            }
        }
        places.values().any(|drives| *drives > covered)
    })
}

/// Takes back what keeps drives from answering, as a replaced cable would.
pub fn mend(media: &[Rc<Media>]) {
    for drive in media {
        drive.with_faults(|faults| *faults = Default::default());
    }
}

/// Drives that were sound so far and go away now, while those struck before are back:
/// of one span no more than it can lose, and never all that were always sound, since
/// only their labels may know which drives missed something.
pub fn next_to_go(
    media: &[Rc<Media>],
    config: &Config,
    sound: &[bool],
    prng: &mut Prng,
) -> Vec<Rc<Media>> {
    let Some(geometry) = config.spans(config.pool.level) else {
        return Vec::new();
    };
    let first = prng.below(config.groups as u64) as usize * config.drives_of_group;
    let span = prng.below(geometry.spans as u64) as usize;
    let mut next: Vec<usize> = geometry
        .span_places(span)
        .map(|place| first + place)
        .filter(|place| sound[*place])
        .collect();
    while next.len() > geometry.redundancy() {
        next.swap_remove(prng.below(next.len() as u64) as usize);
    }
    let stays = |place: &usize| !next.contains(place);
    if !(0..sound.len())
        .filter(|place| sound[*place])
        .any(|place| stays(&place))
    {
        return Vec::new();
    }
    next.into_iter()
        .map(|place| Rc::clone(&media[place]))
        .collect()
}
