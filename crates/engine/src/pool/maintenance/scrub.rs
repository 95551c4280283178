//! Scrubbing a pool, to find damage while redundancy can still repair it: [`Scrubbing`].
//!
//! Invariants:
//! - No zone is scrubbed whose sums are being written, or which is not the one any more that it was.
//! - A scrub by command is put off for drives that are wanting, and goes on where it was.

use super::lend::Lending;
use super::pace::Bounds;
use super::rebuild::Rebuilds;
use super::spares::Spares;
use super::steps::{Steps, Stretch, stripe_bytes};
use super::{ScrubFindings, Task, TaskKind};
use crate::drives::{EventKind, Zone};
use crate::pool::{Lane, PoolError};
use crate::space::LaneState;
use crate::store::{Healed, StripeRef};
use crate::world::World;
use std::rc::Rc;

/// What was found in data, and so many repaired blocks of sums.
pub(super) fn findings(found: Healed, mended_sums: u64) -> ScrubFindings {
    ScrubFindings {
        mended: found.mended + mended_sums,
        lost: found.lost + found.still_lost,
        still_lost: found.still_lost,
    }
}

impl<W: World> Lane<W> {
    /// Has everything read and compared in the background, and put right.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub fn start_scrub(&self) -> Result<(), PoolError> {
        self.inner.check()?;
        self.inner.background().scrubs().want();
        self.inner.wake_background();
        Ok(())
    }

    /// That [`Lane::start_scrub`] could be done now.
    ///
    /// # Errors
    /// As there.
    pub fn check_start_scrub(&self) -> Result<(), PoolError> {
        self.inner.check()
    }

    /// Ends a scrub that is under way, or wanted.
    pub fn stop_scrub(&self) {
        self.inner.background().scrubs().call_off();
    }

    /// Whole scrubs since the opening.
    pub fn scrubs_ended(&self) -> u64 {
        self.inner.background().scrubs().ended()
    }

    /// Whether the last whole scrub found nothing to put right, and nothing lost of which that was
    /// not known before.
    pub fn last_scrub_clean(&self) -> bool {
        let last = self.inner.background().scrubs().last_found();
        last.is_some_and(|found| found.mended == 0 && found.lost == found.still_lost)
    }
}

/// Scrubs by command, and what every scrub does.
pub(super) struct Scrubbing<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Scrubbing<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Scrubbing { lane }
    }

    pub(super) async fn scrub_if_wanted(&self) -> Result<(), PoolError> {
        if !self.lane.background().scrubs().is_wanted() {
            return Ok(());
        }
        let name = self.lane.drives().name().to_owned();
        let task =
            self.lane
                .background()
                .begin(TaskKind::Scrub, &name, self.lane.world().now(), (0, 0));
        let outcome = self.scrub(&name, &task).await;
        self.lane.background().end(&task);
        outcome
    }

    async fn scrub(&self, name: &str, task: &Rc<Task>) -> Result<(), PoolError> {
        let (drives, store) = (self.lane.drives(), self.lane.store());
        let zones = {
            // Not one whose sums are being written.
            let _settled = self.lane.zone_changes().settle().await;
            drives.zones()
        };
        let bytes_of = |zone: &Zone<W>| zone.zone_bytes() * zone.shape.geometry.places() as u64;
        let total = zones.iter().map(|zone| bytes_of(zone)).sum();
        task.set_total(total);
        drives.event(EventKind::Scrub, format!("scrub of pool '{name}' begins"));
        let mended_sums = store.integrity.stats().mended;
        let mut found = Healed::default();
        for zone in zones {
            if drives.is_in_use(&zone) {
                store.scrub_sums(zone.shape.zone).await?;
                found = found.and(self.scrub_zone(&zone, task).await?);
            }
            Lending::of(self.lane).lend().await?;
            if !self.lane.background().scrubs().is_wanted() {
                drives.event(
                    EventKind::Scrub,
                    format!("scrub of pool '{name}' was stopped"),
                );
                return Ok(());
            }
        }
        self.refresh_metadata().await?;
        // What it counts is on the drives, too.
        store.trim().await?;
        let mended_sums = store.integrity.stats().mended - mended_sums;
        let found = findings(found, mended_sums);
        self.lane
            .background()
            .scrubs()
            .end(self.lane.world().now(), found);
        self.tell_scrub(found);
        self.lane.world().reached("scrub ends");
        Ok(())
    }

    /// Tells what a whole scrub has found.
    pub(super) fn tell_scrub(&self, found: ScrubFindings) {
        let (name, lost) = (self.lane.drives().name(), found.lost);
        let mended = base::size::counted(found.mended, "block");
        let text = format!("scrub of pool '{name}' has ended: {mended} repaired, {lost} lost");
        self.lane
            .drives()
            .event_of_loss(EventKind::Scrub, text, lost);
    }

    /// Labels, checkpoints and superblocks of the logs are read at openings only: what
    /// went bad since is not found by reading, it is written anew. Each has two slots.
    pub(super) async fn refresh_metadata(&self) -> Result<(), PoolError> {
        for _ in 0..2 {
            self.lane.journal().checkpoint_to_all().await?;
            self.lane.drives().want_labels();
            self.lane.drives().settle_labels().await;
        }
        for ring in [&self.lane.store().log, &self.lane.store().intents] {
            let refreshed = ring.refresh().await;
            refreshed.map_err(|error| {
                PoolError::new(crate::pool::PoolErrorKind::Failed, error.to_string())
            })?;
        }
        self.lane.check()
    }

    async fn scrub_zone(&self, zone: &Rc<Zone<W>>, task: &Rc<Task>) -> Result<Healed, PoolError> {
        let stripes: Vec<StripeRef> = self.lane.store().stripes(zone).collect();
        let mut found = Healed::default();
        let mut rest = &stripes[..];
        while !rest.is_empty() {
            let began = self.lane.world().now();
            let rates = self.lane.background().pace().rates();
            let bounds = Bounds::at_most(rates.scrub_bytes_per_s);
            let steps = Steps::of(self.lane);
            let stretch = Stretch::to_scrub(zone, rest, bounds);
            let (taken, healed) = steps.heal_some(stretch).await?;
            rest = &rest[taken..];
            found = found.and(healed);
            let bytes = taken as u64 * stripe_bytes(zone);
            task.advance(bytes);
            steps.rest(bounds, bytes, began).await;
            self.lane.go_on()?;
            if Spares::of(self.lane).is_drive_wanting() {
                self.lane.world().reached("scrub put off for a drive");
                Rebuilds::of(self.lane).look_after_drives(task).await?;
            }
            if !self.lane.background().scrubs().is_wanted() || !self.lane.drives().is_in_use(zone) {
                break;
            }
        }
        Ok(found)
    }
}
