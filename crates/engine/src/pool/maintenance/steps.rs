//! The steps in which drives are rebuilt and scrubbed, and the rests between them: [`Steps`].
//!
//! A step goes over stripes in the order of their numbers: they lie side by side on each drive, so
//! a disk reads and writes in order. Many stripes are under way at a time. A step that commands wait
//! for is bounded by time, not by bytes: a disk and a flash drive are kept from them for equally
//! long. One that is behind the least rate lasts longer, for it begins and ends with idle drives.
//!
//! On disks the work waits for commands within a step, too, as soon as one is older than the *patience*
//! (`drives/turns.rs`). A step that stays behind the least rate raises the patience of the next. A step
//! that is ahead lowers it. So commands wait as little as the least rate lets them.

use super::pace::{self, Bounds};
use crate::drives::Zone;
use crate::pool::PoolError;
use crate::space::LaneState;
use crate::store::{Healed, StripeRef};
use crate::world::World;
use base::Time;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::rc::Rc;
use std::time::Duration;

/// Bytes of drives, those that are read included, worked on at once.
const AT_ONCE_BYTES: u64 = 16 << 20;

/// Bytes of each disk worked on at once, at least. A disk whose queue runs empty can wait a revolution
/// for the next block in order. Chosen by trials with modelled disks (example `rebuild` of
/// `ashlar-rehearse`).
const DISK_DEPTH_BYTES: u64 = 4 << 20;

/// As above, while commands come in that go first.
const DISK_DEPTH_BEHIND_COMMANDS_BYTES: u64 = 2 << 20;

/// As above, when the work is behind its least rate, too. Each disk halts when its own commands are overdue,
/// and the others have to have something to do meanwhile. With half as much, a rebuild with two lost disks
/// beside 20 random reads a second and disk had 103 MB/s instead of 106.
const DISK_DEPTH_BEHIND_RATE_BYTES: u64 = 16 << 20;

/// Bytes of all drives of a group that one that is behind works on at once, at most: they are in RAM.
const BEHIND_RATE_AT_ONCE_BYTES: u64 = 256 << 20;

/// Bytes of each other drive worked on at once while commands come in that go first.
const DEPTH_BEHIND_COMMANDS_BYTES: u64 = 512 << 10;

/// Bytes of a step while no commands come in. A step ends with all drives idle.
const STEP_BYTES: u64 = 128 << 20;

/// How many times as much a step takes as is under way at once, so that most of it has full queues.
const STEP_TIMES: usize = 32;

/// How many stripes a step takes.
struct StepSize {
    /// Under way at a time.
    at_once: usize,
    /// In all.
    most: usize,
    /// What bounds it while commands come in.
    behind: Option<Behind>,
}

/// A step while commands come in.
struct Behind {
    /// No stripe begins from then on, but those that are under way at first.
    until: Time,
    /// If it is behind its least rate then, it goes on until this time.
    end: Time,
    /// And has so many under way at a time.
    at_once: usize,
}

impl StepSize {
    fn at_once(&self, now: Time) -> usize {
        let behind = self.behind.as_ref().filter(|behind| now >= behind.until);
        behind.map_or(self.at_once, |behind| behind.at_once)
    }
}

/// Some stripes of a zone that are to be looked through.
pub(super) struct Stretch<'a, W: World> {
    zone: &'a Rc<Zone<W>>,
    stripes: &'a [StripeRef],
    /// The places that get what they should hold.
    targets: &'a [usize],
    bounds: Bounds,
    /// What a stripe counts as, against the bounds.
    stripe_bytes: u64,
    /// How many stretches of a group are looked through side by side.
    side_by_side: usize,
}

impl<'a, W: World> Stretch<'a, W> {
    /// Of work that counts so many bytes for a stripe.
    pub(super) fn of(
        zone: &'a Rc<Zone<W>>,
        (stripes, targets): (&'a [StripeRef], &'a [usize]),
        (bounds, stripe_bytes): (Bounds, u64),
    ) -> Self {
        Stretch {
            zone,
            stripes,
            targets,
            bounds,
            stripe_bytes,
            side_by_side: 1,
        }
    }

    /// As one of so many of its group.
    pub(super) fn one_of(self, side_by_side: usize) -> Self {
        Stretch {
            side_by_side,
            ..self
        }
    }

    /// Of a scrub, which counts what it reads of all drives.
    pub(super) fn to_scrub(
        zone: &'a Rc<Zone<W>>,
        stripes: &'a [StripeRef],
        bounds: Bounds,
    ) -> Self {
        Stretch::of(zone, (stripes, &[]), (bounds, stripe_bytes(zone)))
    }
}

impl<W: World> Stretch<'_, W> {
    /// How many times as fast the work would have to be that has done so many stripes in that time.
    fn shortfall(&self, stripes: usize, worked: Duration) -> f64 {
        let most = self.bounds.most.map_or(f64::INFINITY, |most| most as f64);
        let due = self.bounds.least.min(most) * worked.as_secs_f64();
        match due > 0.0 {
            true => due / (stripes as u64 * self.stripe_bytes) as f64,
            false => 0.0,
        }
    }
}

/// Bytes of drives that a stripe has.
pub(super) fn stripe_bytes<W: World>(zone: &Zone<W>) -> u64 {
    let geometry = zone.shape.geometry;
    geometry.unit_bytes * geometry.width as u64
}

/// Work in steps, behind the commands.
pub(super) struct Steps<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Steps<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Steps { lane }
    }

    /// Whether commands come in that go first.
    pub(super) fn makes_way(&self) -> bool {
        let commands = self.lane.store().counts.commands.get();
        let pace = self.lane.background().pace();
        pace.makes_way(commands, self.lane.world().now())
    }

    fn step_size(&self, stretch: &Stretch<'_, W>) -> StepSize {
        let zone = stretch.zone;
        let (unit_bytes, stripe_bytes) = (zone.shape.geometry.unit_bytes, stripe_bytes(zone));
        let fit = |bytes: u64| (bytes / stripe_bytes).max(1) as usize;
        let deep = |bytes: u64| (bytes / unit_bytes).max(1) as usize;
        let places = zone.group.places();
        let has_disks = places.iter().any(|member| member.is_rotational());
        if !self.makes_way() {
            let at_once = match has_disks {
                true => fit(AT_ONCE_BYTES).max(deep(DISK_DEPTH_BYTES)),
                false => fit(AT_ONCE_BYTES),
            };
            return StepSize {
                at_once,
                most: match stretch.bounds.most {
                    // Short steps: or it would be all or nothing.
                    Some(_) => fit(AT_ONCE_BYTES),
                    None => fit(STEP_BYTES).max(at_once * STEP_TIMES),
                },
                behind: None,
            };
        }
        let all_bytes = BEHIND_RATE_AT_ONCE_BYTES / stretch.side_by_side.max(1) as u64;
        let (first, then) = match has_disks {
            true => (
                deep(DISK_DEPTH_BEHIND_COMMANDS_BYTES),
                deep(DISK_DEPTH_BEHIND_RATE_BYTES).min(fit(all_bytes)),
            ),
            false => (deep(DEPTH_BEHIND_COMMANDS_BYTES), 0),
        };
        let now = self.lane.world().now();
        let at_once = first.max(then);
        StepSize {
            at_once: first,
            most: fit(STEP_BYTES).max(at_once * STEP_TIMES / 4),
            behind: Some(Behind {
                until: now + pace::STEP_BEHIND_COMMANDS,
                end: now + pace::STEP_BEHIND_RATE,
                at_once,
            }),
        }
    }

    /// Whether a step begins more stripes that is so much too slow.
    fn goes_on(&self, size: &StepSize, shortfall: f64) -> bool {
        let now = self.lane.world().now();
        let is_in_time = match &size.behind {
            Some(behind) => now < behind.until || (now < behind.end && shortfall > 1.0),
            None => !self.makes_way(),
        };
        is_in_time && self.lane.go_on().is_ok()
    }

    /// Looks the first stripes of a stretch through, a step's worth of them, and says how many
    /// those were. In a step that began while no commands came in, none begins once they do.
    pub(super) async fn heal_some(
        &self,
        mut stretch: Stretch<'_, W>,
    ) -> Result<(usize, Healed), PoolError> {
        let size = self.step_size(&stretch);
        let most = size.most.min(stretch.stripes.len());
        stretch.stripes = &stretch.stripes[..most];
        let (store, began) = (self.lane.store(), self.lane.world().now());
        store.load_sums(stretch.zone, stretch.stripes).await;
        let healed = self.heal_all(&stretch, &size, began).await?;
        let ended = self.lane.world().now();
        let worked = ended.since(began);
        // A shorter one says more about its beginning and its end.
        if size.behind.is_some() && worked >= pace::STEP_BEHIND_COMMANDS {
            let shortfall = stretch.shortfall(healed.0, worked);
            let pace = self.lane.background().pace();
            pace.adjust_patience(stretch.zone.group.index, shortfall, (began, ended));
        }
        Ok(healed)
    }

    /// Many stripes are under way at a time, and new ones begin while others go on, so that every drive is
    /// kept busy. It ends when all have ended: a write that waits for its turn is not in flight yet, so
    /// nothing else tells that a drive may still be written to.
    async fn heal_all(
        &self,
        stretch: &Stretch<'_, W>,
        size: &StepSize,
        began: Time,
    ) -> Result<(usize, Healed), PoolError> {
        let (store, zone, stripes) = (self.lane.store(), stretch.zone, stretch.stripes);
        let patience = size.behind.as_ref().map(|_| {
            let pace = self.lane.background().pace();
            pace.patience(zone.group.index, stretch.bounds, began)
        });
        let mut under_way = FuturesUnordered::new();
        let (mut taken, mut found) = (0, Ok(Healed::default()));
        loop {
            let now = self.lane.world().now();
            let at_once = size.at_once(now);
            let shortfall = stretch.shortfall(taken - under_way.len(), now.since(began));
            // A quarter of them anew at once: what lies side by side goes as one to the drive.
            let refills = under_way.len() <= at_once * 3 / 4;
            while refills
                && taken < stripes.len()
                && under_way.len() < at_once
                && found.is_ok()
                && (taken < size.at_once || self.goes_on(size, shortfall))
            {
                let stripe = stripes[taken];
                under_way.push(store.heal_stripe(zone, stripe, stretch.targets, patience));
                taken += 1;
            }
            // Also after an error: what has begun is never dropped.
            let Some(outcome) = under_way.next().await else {
                return found.map(|found| (taken, found));
            };
            found = found.and_then(|found| Ok(found.and(outcome?)));
        }
    }

    /// Rests after a step, within the bounds of the work.
    pub(super) async fn rest(&self, bounds: Bounds, bytes: u64, began: Time) {
        let commands = self.lane.store().counts.commands.get();
        let step = (began, self.lane.world().now());
        let pace = self.lane.background().pace();
        let pause = pace.pause(bounds, bytes, step, commands);
        // In pieces: a pool that is being closed waits for this.
        let mut left = pause;
        while !left.is_zero() && self.lane.go_on().is_ok() {
            let piece = left.min(super::pace::PAUSE_MAX);
            self.lane.world().sleep(piece).await;
            left -= piece;
        }
    }
}
