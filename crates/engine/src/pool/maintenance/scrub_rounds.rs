//! Scrubs that go on by themselves, so that the whole pool is looked through in the time that the
//! site gives ([`Rates::scrub_within`](super::Rates)): [`ScrubRounds`].
//!
//! A round takes small steps between all else that the pool's task does, as many as are due by then:
//! so a round of a month keeps nothing waiting for longer than a second. It rests for commands as
//! other work does, and is late rather than in their way. A scrub by command goes before it, and
//! counts as a round.

use super::pace::Bounds;
use super::scrub::Scrubbing;
use super::scrub::findings;
use super::spares::Spares;
use super::steps::{Steps, Stretch, stripe_bytes};
use super::{ScrubFindings, ScrubState, TICK};
use crate::drives::Zone;
use crate::pool::{Lane, PoolError};
use crate::space::LaneState;
use crate::space::background::Round;
use crate::store::StripeRef;
use crate::world::World;
use std::rc::Rc;
use std::time::Duration;

/// Bytes of drives that are due before a step is worth its seeks.
const PIECE_BYTES: u64 = 16 << 20;

/// A scrub that goes on by itself, at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundInfo {
    /// The time since it began.
    pub age: Duration,
    /// Bytes of drives looked through.
    pub done_bytes: u64,
    /// Bytes of drives in all.
    pub total_bytes: u64,
    /// What it found so far.
    pub found: ScrubFindings,
}

impl<W: World> Lane<W> {
    /// Has the lane scrub by itself from now on, going on from a state that was kept: nothing
    /// begins before.
    pub fn go_on_scrubbing(&self, state: ScrubState) {
        let now = self.inner.world().now();
        self.inner.background().scrubs().go_on_from(state, now);
        self.inner.wake_background();
    }

    /// How far its scrubs are, to be kept; none before [`Lane::go_on_scrubbing`].
    pub fn scrub_state(&self) -> Option<ScrubState> {
        let now = self.inner.world().now();
        self.inner.background().scrubs().state(now)
    }

    /// Scrubs that went on by themselves and have gone over all zones, since the opening.
    pub fn scrub_rounds_ended(&self) -> u64 {
        self.inner.background().scrubs().rounds_ended()
    }
}

/// Bytes of drives that a zone has.
fn bytes_of<W: World>(zone: &Zone<W>) -> u64 {
    zone.zone_bytes() * zone.shape.geometry.places() as u64
}

/// Scrubs that go on by themselves.
pub(in crate::pool) struct ScrubRounds<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> ScrubRounds<'a, W> {
    pub(in crate::pool) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        ScrubRounds { lane }
    }

    /// The zones, in the order in which they are scrubbed.
    fn zones_in_order(&self) -> Vec<Rc<Zone<W>>> {
        let mut zones = self.lane.drives().zones();
        zones.sort_by_key(|zone| zone.shape.zone);
        zones
    }

    /// Bytes of drives that a round has looked through, and those in all.
    fn round_bytes(&self, round: &Round) -> (u64, u64) {
        let zones = self.lane.drives().zones();
        let total = zones.iter().map(|zone| bytes_of(zone)).sum();
        if round.is_over {
            return (total, total);
        }
        let done_of = |zone: &Rc<Zone<W>>| match round.at {
            _ if zone.shape.zone < round.next_zone => bytes_of(zone),
            Some((at, _, stripes)) if at == zone.shape.zone => stripes as u64 * stripe_bytes(zone),
            _ => 0,
        };
        (zones.iter().map(done_of).sum(), total)
    }

    /// The round that goes on by itself, if one does.
    pub(in crate::pool) fn round_info(&self) -> Option<RoundInfo> {
        self.lane.background().pace().rates().scrub_within?;
        let round = self.lane.background().scrubs().present_round()?;
        let (done_bytes, total_bytes) = self.round_bytes(&round);
        Some(RoundInfo {
            age: round.age(self.lane.world().now()),
            done_bytes,
            total_bytes,
            found: round.found,
        })
    }

    /// Whether something is to be done that does not wait for a scrub.
    fn is_called_away(&self) -> bool {
        let lane = self.lane.drives().lane();
        self.lane.background().scrubs().is_wanted()
            || Spares::of(self.lane).is_drive_wanting()
            || lane.registry.is_wanted_of(lane.index)
    }

    /// Scrubs as much as is due by now, for a second at most.
    pub(super) async fn scrub_what_is_due(&self) -> Result<(), PoolError> {
        let began = self.lane.world().now();
        while self.lane.world().now().since(began) < TICK && !self.is_called_away() {
            let Some(within) = self.lane.background().pace().rates().scrub_within else {
                return Ok(());
            };
            let now = self.lane.world().now();
            let Some(round) = self.lane.background().scrubs().round(within, now) else {
                return Ok(());
            };
            if round.is_over || !self.scrub_a_piece(round, within).await? {
                return Ok(());
            }
            self.lane.go_on()?;
        }
        Ok(())
    }

    /// Goes on with a round, if enough of it is due. Whether it was.
    async fn scrub_a_piece(&self, round: Round, within: Duration) -> Result<bool, PoolError> {
        let zone = {
            // Not one whose sums are being written.
            let _settled = self.lane.zone_changes().settle().await;
            let mut zones = self.zones_in_order().into_iter();
            zones.find(|zone| zone.shape.zone >= round.next_zone)
        };
        let Some(zone) = zone else {
            match self.lane.drives().zones().is_empty() {
                // Of a new pool, for example: there is nothing to tell.
                true => drop(self.lane.background().scrubs().end_empty_round()),
                false => self.end_round().await?,
            }
            return Ok(false);
        };
        let (done, total) = self.round_bytes(&round);
        let age = round.age(self.lane.world().now()).min(within);
        let part = age.as_secs_f64() / within.as_secs_f64().max(f64::MIN_POSITIVE);
        let left = total.saturating_sub(done);
        let due = match age == within {
            // To the last byte: a product of floats may fall short.
            true => left,
            false => ((total as f64 * part) as u64).saturating_sub(done),
        };
        // What is left in the end may be less than a piece.
        if due < PIECE_BYTES.min(bytes_of(&zone)).min(left) {
            return Ok(false);
        }
        self.scrub_stripes(&zone, round, (due, total)).await?;
        Ok(true)
    }

    /// The bounds of a round over so many bytes: it is to end in its time.
    fn bounds(&self, total: u64) -> Bounds {
        let rates = self.lane.background().pace().rates();
        let within = rates.scrub_within.map(|within| within.as_secs_f64());
        Bounds {
            least: within.map_or(0.0, |within| total as f64 / within.max(f64::MIN_POSITIVE)),
            ..Bounds::at_most(rates.scrub_bytes_per_s)
        }
    }

    /// Looks so many bytes of a zone through, of so many in all, and notes how far the round is.
    async fn scrub_stripes(
        &self,
        zone: &Rc<Zone<W>>,
        mut round: Round,
        (due_bytes, total): (u64, u64),
    ) -> Result<(), PoolError> {
        let (number, incarnation) = (zone.shape.zone, zone.shape.incarnation);
        let done = match round.at {
            Some((at, of, done)) if (at, of) == (number, incarnation) => done,
            _ => 0,
        };
        let mended_sums = match done {
            0 => self.scrub_sums(number).await?,
            _ => 0,
        };
        let stripes: Vec<StripeRef> = self.lane.store().stripes(zone).collect();
        let due = due_bytes.div_ceil(stripe_bytes(zone));
        let end = stripes.len().min(done.saturating_add(due as usize));
        let (steps, background) = (Steps::of(self.lane), self.lane.background());
        let (began, bounds) = (self.lane.world().now(), self.bounds(total));
        let planted = "scrub round skips the first stripe of a zone";
        let skipped = usize::from(done == 0 && end > 0 && self.lane.world().planted(planted));
        let due = Stretch::to_scrub(zone, &stripes[done + skipped..end], bounds);
        let (taken, healed) = steps.heal_some(due).await?;
        let taken = taken + skipped;
        if background.scrubs().is_wanted() {
            // That one begins anew.
            return Ok(());
        }
        round.found = round.found.and(findings(healed, mended_sums));
        let done = done + taken;
        (round.at, round.next_zone) =
            match done == stripes.len() || !self.lane.drives().is_in_use(zone) {
                true => (None, number + 1),
                false => (Some((number, incarnation, done)), number),
            };
        background.scrubs().set_round(round);
        let bytes = taken as u64 * stripe_bytes(zone);
        steps.rest(bounds, bytes, began).await;
        Ok(())
    }

    /// Compares the copies of a zone's sums, and says how many were repaired.
    async fn scrub_sums(&self, zone: u32) -> Result<u64, PoolError> {
        let before = self.lane.store().integrity.stats().mended;
        self.lane.store().scrub_sums(zone).await?;
        Ok(self.lane.store().integrity.stats().mended - before)
    }

    /// All zones were looked through.
    async fn end_round(&self) -> Result<(), PoolError> {
        Scrubbing::of(self.lane).refresh_metadata().await?;
        // What it counts is on the drives, too.
        self.lane.store().trim().await?;
        let scrubs = self.lane.background().scrubs();
        if scrubs.is_wanted() {
            return Ok(());
        }
        scrubs.end_round(self.lane.world().now());
        Scrubbing::of(self.lane).tell_scrub(scrubs.last_found().unwrap_or_default());
        self.lane.world().reached("scrub by itself ends");
        Ok(())
    }
}
