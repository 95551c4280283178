//! Rebuilding a drive, zone by zone.
//!
//! A zone counts as whole on the drive once all its stripes and its sums are durable
//! there, and that is recorded: so a rebuild goes on after a restart where it was.

use super::TaskKind;
use crate::drives::{DriveFault, Member};
use crate::drives::{EventKind, Zone};
use crate::meta::Record;
use crate::pool::{MemberState, PoolError};
use crate::space::LaneState;
use crate::store::{Healed, StripeRef};
use crate::world::World;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::rc::Rc;

/// Bytes of drives, those that are read included, worked on at once.
const AT_ONCE_BYTES: u64 = 16 << 20;

/// As above, while commands come in that go first.
const AT_ONCE_BEHIND_COMMANDS_BYTES: u64 = 512 << 10;

/// Bytes of a step while no commands come in. A step ends with all drives idle.
const STEP_BYTES: u64 = 128 << 20;

impl<W: World> LaneState<W> {
    /// Rebuilds the next drive that is to be, if there is one.
    pub(super) async fn rebuild_next(self: &Rc<Self>) -> Result<(), PoolError> {
        let members = self.drives.members();
        let next = members
            .into_iter()
            .find(|member| member.state() == MemberState::Rebuilding);
        let Some(member) = next else { return Ok(()) };
        let outcome = self.rebuild(&member).await;
        self.background().end();
        outcome
    }

    async fn rebuild(self: &Rc<Self>, member: &Rc<Member<W>>) -> Result<(), PoolError> {
        let group = self.drives.group(member.group());
        let of_group = || -> Vec<Rc<Zone<W>>> {
            let mut zones = self.drives.zones();
            zones.retain(|zone| Rc::ptr_eq(&zone.group, &group));
            zones
        };
        let zone_bytes = self.identity().zone_bytes;
        let whole = member.rebuilt().borrow().len() as u64;
        let total = of_group().len() as u64 * zone_bytes;
        let task = self.background().begin(
            TaskKind::Rebuild,
            &member.name,
            self.world.now(),
            (whole * zone_bytes, total),
        );
        self.tell_rebuild(member, whole);
        loop {
            // Zones that are taken into use meanwhile are whole from the start. One whose
            // sums are being written must not have them put right at the same time.
            let next = {
                let _settled = self.zone_changes().settle().await;
                let mut zones = of_group().into_iter();
                zones.find(|zone| !member.rebuilt().borrow().contains(&zone.shape.zone))
            };
            let Some(zone) = next else { break };
            self.rebuild_zone(&zone, member, &task).await?;
            if member.state() != MemberState::Rebuilding {
                return self.rebuild_failed(member).await;
            }
            self.lend().await?;
            task.set_total(of_group().len() as u64 * zone_bytes);
        }
        if member.state() != MemberState::Rebuilding {
            // While this waited for the zones to settle.
            return self.rebuild_failed(member).await;
        }
        member.set_state(MemberState::Healthy);
        self.drives.want_labels();
        self.drives.settle_labels().await;
        self.check()?;
        self.commit(vec![Record::RebuildOver {
            member: member.uuid,
        }])
        .await?;
        member.rebuilt().borrow_mut().clear();
        self.background().rebuild_has_ended();
        self.drives.event(
            EventKind::Rebuild,
            format!(
                "rebuild of drive '{}' has ended: it holds everything",
                member.name
            ),
        );
        self.world.reached("rebuild ends");
        self.wake_background();
        Ok(())
    }

    /// Tells that a rebuild begins or goes on; once, however often it is tried again.
    fn tell_rebuild(&self, member: &Member<W>, whole: u64) {
        if !self.background().tells_rebuild(member.uuid) {
            return;
        }
        let text = match whole {
            0 => format!("rebuild of drive '{}' begins", member.name),
            _ => {
                self.world.reached("rebuild resumed");
                format!(
                    "rebuild of drive '{}' continues, {} done so far",
                    member.name,
                    base::size::counted(whole, "zone")
                )
            }
        };
        self.drives.event(EventKind::Rebuild, text);
    }

    async fn rebuild_failed(self: &Rc<Self>, member: &Member<W>) -> Result<(), PoolError> {
        self.world.reached("rebuild onto a drive that dies");
        self.background().rebuild_has_ended();
        let text = format!(
            "rebuild of drive '{}' has ended: the drive has failed",
            member.name
        );
        self.drives.event(EventKind::Rebuild, text);
        let member = member.uuid;
        self.commit(vec![Record::RebuildOver { member }]).await
    }

    async fn rebuild_zone(
        self: &Rc<Self>,
        zone: &Rc<Zone<W>>,
        member: &Rc<Member<W>>,
        task: &super::Task,
    ) -> Result<(), PoolError> {
        let place = usize::from(member.place());
        let span = zone.shape.geometry.span_of(place);
        let concerns = |stripe: &StripeRef| usize::from(stripe.span) == span;
        let mut stripes: Vec<StripeRef> = self.store.stripes(zone).filter(concerns).collect();
        if self
            .world
            .planted("rebuild skips the last stripe of a zone")
        {
            stripes.pop();
        }
        let before = task.done_bytes();
        let mut rest = &stripes[..];
        while !rest.is_empty() {
            let began = self.world.now();
            let rate = self.background().pace().rates().rebuild_bytes_per_s;
            let (taken, _) = self.heal_some(zone, rest, Some(place), rate).await?;
            rest = &rest[taken..];
            if member.state() != MemberState::Rebuilding {
                return Ok(());
            }
            let bytes = taken as u64 * zone.shape.geometry.unit_bytes;
            task.advance(bytes);
            self.rest(rate, bytes, began).await;
            self.go_on()?;
        }
        let copied = self.store.integrity.rebuild_copies(zone, place).await;
        copied.map_err(|error| {
            PoolError::new(
                crate::pool::PoolErrorKind::Drive,
                format!("checksums of zone {}: {error}", zone.shape.zone),
            )
        })?;
        if let Err(error) = member.flush().await {
            let fault = DriveFault {
                member: Rc::clone(member),
                error,
            };
            let _ = self.drives.absorb(vec![fault]).await;
        }
        if member.state() != MemberState::Rebuilding {
            return Ok(());
        }
        self.commit(vec![Record::Rebuilt {
            member: member.uuid,
            zone: zone.shape.zone,
        }])
        .await?;
        member.rebuilt().borrow_mut().insert(zone.shape.zone);
        task.advance_to(before + self.identity().zone_bytes);
        Ok(())
    }

    /// Looks the first of `stripes` through, a step's worth of them, and says how many
    /// those were. Many are under way at a time, and new ones begin while others go on,
    /// so that every drive is kept busy; once commands come in that go first, none
    /// begins any more.
    pub(super) async fn heal_some(
        &self,
        zone: &Rc<Zone<W>>,
        stripes: &[StripeRef],
        target: Option<usize>,
        rate: Option<u64>,
    ) -> Result<(usize, Healed), PoolError> {
        let geometry = zone.shape.geometry;
        let stripe_bytes = geometry.unit_bytes * geometry.width as u64;
        let fit = |bytes: u64| (bytes / stripe_bytes).max(1) as usize;
        let makes_way = || {
            let commands = self.store.counts.commands.get();
            self.background()
                .pace()
                .makes_way(commands, self.world.now())
        };
        let (at_once, most) = match (makes_way(), rate) {
            (true, _) => (
                fit(AT_ONCE_BEHIND_COMMANDS_BYTES),
                fit(AT_ONCE_BEHIND_COMMANDS_BYTES),
            ),
            // Short steps: or it would be all or nothing.
            (false, Some(_)) => (fit(AT_ONCE_BYTES), fit(AT_ONCE_BYTES)),
            (false, None) => (fit(AT_ONCE_BYTES), fit(STEP_BYTES)),
        };
        let most = most.min(stripes.len());
        let mut under_way = FuturesUnordered::new();
        let (mut taken, mut found) = (0, Ok(Healed::default()));
        loop {
            // Half of them anew at once: what lies side by side goes as one to the drive.
            let refills = under_way.len() <= at_once / 2;
            while refills
                && taken < most
                && under_way.len() < at_once
                && found.is_ok()
                && (taken < at_once || (!makes_way() && self.go_on().is_ok()))
            {
                under_way.push(self.store.heal_stripe(zone, stripes[taken], target));
                taken += 1;
            }
            // Also after an error: what has begun is never dropped.
            let Some(outcome) = under_way.next().await else {
                return found.map(|found| (taken, found));
            };
            found = found.and_then(|found| Ok(found.and(outcome?)));
        }
    }

    /// Rests after a step, for the rate and for commands.
    pub(super) async fn rest(&self, rate: Option<u64>, bytes: u64, began: base::Time) {
        let commands = self.store.counts.commands.get();
        let pause =
            self.background()
                .pace()
                .pause(rate, bytes, (began, self.world.now()), commands);
        // In pieces: a pool that is being closed waits for this.
        let mut left = pause;
        while !left.is_zero() && self.go_on().is_ok() {
            let piece = left.min(super::pace::PAUSE_MAX);
            self.world.sleep(piece).await;
            left -= piece;
        }
    }
}
