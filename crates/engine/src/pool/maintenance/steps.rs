//! The steps in which drives are rebuilt and scrubbed, and the rests between them: [`Steps`].
//!
//! A step goes over stripes in the order of their numbers: they lie side by side on each drive, so
//! a disk reads and writes in order. Many stripes are under way at a time. A step that commands wait
//! for is bounded by time, not by bytes: a disk and a flash drive are kept from them for equally
//! long.

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

/// Bytes of drives, those that are read included, worked on at once.
const AT_ONCE_BYTES: u64 = 16 << 20;

/// Bytes of each disk worked on at once, at least. A disk whose queue runs empty can wait a revolution
/// for the next block in order. Chosen by trials with modelled disks (example `rebuild` of
/// `ashlar-rehearse`).
const DISK_DEPTH_BYTES: u64 = 4 << 20;

/// As above, while commands come in that go first.
const DISK_DEPTH_BEHIND_COMMANDS_BYTES: u64 = 2 << 20;

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
    /// No stripe begins from then on, but those that are under way at first.
    until: Option<Time>,
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

    fn step_size(&self, zone: &Zone<W>, bounds: Bounds) -> StepSize {
        let geometry = zone.shape.geometry;
        let stripe_bytes = geometry.unit_bytes * geometry.width as u64;
        let fit = |bytes: u64| (bytes / stripe_bytes).max(1) as usize;
        let deep = |bytes: u64| (bytes / geometry.unit_bytes).max(1) as usize;
        let places = zone.group.places();
        let has_disks = places.iter().any(|member| member.is_rotational());
        if self.makes_way() {
            let at_once = deep(match has_disks {
                true => DISK_DEPTH_BEHIND_COMMANDS_BYTES,
                false => DEPTH_BEHIND_COMMANDS_BYTES,
            });
            return StepSize {
                at_once,
                most: fit(STEP_BYTES).max(at_once * STEP_TIMES),
                until: Some(self.lane.world().now() + pace::STEP_BEHIND_COMMANDS),
            };
        }
        let at_once = match has_disks {
            true => fit(AT_ONCE_BYTES).max(deep(DISK_DEPTH_BYTES)),
            false => fit(AT_ONCE_BYTES),
        };
        StepSize {
            at_once,
            most: match bounds.most {
                // Short steps: or it would be all or nothing.
                Some(_) => fit(AT_ONCE_BYTES),
                None => fit(STEP_BYTES).max(at_once * STEP_TIMES),
            },
            until: None,
        }
    }

    /// Looks the first of `stripes` through, a step's worth of them, and says how many
    /// those were. Many are under way at a time, and new ones begin while others go on,
    /// so that every drive is kept busy. In a step that began while no commands came in, none
    /// begins once they do.
    pub(super) async fn heal_some(
        &self,
        zone: &Rc<Zone<W>>,
        stripes: &[StripeRef],
        targets: &[usize],
        bounds: Bounds,
    ) -> Result<(usize, Healed), PoolError> {
        let size = self.step_size(zone, bounds);
        let most = size.most.min(stripes.len());
        self.lane.store().load_sums(zone, &stripes[..most]).await;
        let goes_on = || {
            self.lane.go_on().is_ok()
                && match size.until {
                    Some(until) => self.lane.world().now() < until,
                    None => !self.makes_way(),
                }
        };
        let mut under_way = FuturesUnordered::new();
        let (mut taken, mut found) = (0, Ok(Healed::default()));
        loop {
            // A quarter of them anew at once: what lies side by side goes as one to the drive.
            let refills = under_way.len() <= size.at_once * 3 / 4;
            while refills
                && taken < most
                && under_way.len() < size.at_once
                && found.is_ok()
                && (taken < size.at_once || goes_on())
            {
                under_way.push(self.lane.store().heal_stripe(zone, stripes[taken], targets));
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
