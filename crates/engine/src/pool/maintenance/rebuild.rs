//! Rebuilding drives, zone by zone: [`Rebuilds`].
//!
//! All drives of a group that are to be rebuilt are, in one pass over its zones: what the others hold
//! is read once for all of them. Groups are rebuilt side by side: they share no drive.
//!
//! Invariants:
//! - A zone counts as whole on a drive once all its stripes and its sums are durable there, and that
//!   is recorded: so a rebuild goes on after a restart where it was.
//! - Of the zones of a group, those with the least redundancy left are first, and of these the ones
//!   of the drive that lacks the least.
//! - While a zone is lent, or a spare taken, no zone is being rebuilt.
//!
//! A rebuild ends in [`Rates::rebuild_within`](super::Rates), counted over the time that the pool is
//! open: one that goes on after a restart has the part of it that its part of the zones needs.

use super::copies::Copies;
use super::lend::Lending;
use super::pace::{self, Bounds, Share};
use super::place_choice::PlaceChoice;
use super::places::{self, PlaceMoves};
use super::redundancy::Redundancy;
use super::spares::Spares;
use super::steps::{Steps, Stretch};
use super::succession::Successions;
use super::{Task, TaskKind};
use crate::drives::{DriveFault, EventKind, Group, Member, Taker, Zone};
use crate::meta::Record;
use crate::pool::{MemberState, PoolError, PoolErrorKind};
use crate::space::LaneState;
use crate::store::StripeRef;
use crate::world::World;
use base::Time;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A drive that is being rebuilt, and how far it is.
struct Progress<W: World> {
    member: Rc<Member<W>>,
    /// The group that it is, or was to be, part of.
    group: u16,
    task: Rc<Task>,
    began: Time,
    /// The part of all zones that was to be rebuilt then.
    part: f64,
}

/// What is under way since the task looked around last.
struct UnderWay<W: World> {
    drives: RefCell<Vec<Rc<Progress<W>>>>,
    /// Of groups whose lost places move, by number.
    places: RefCell<BTreeMap<u16, places::Progress>>,
}

/// A zone, and the drives that get what they should hold of it.
struct Pass<W: World> {
    zone: Rc<Zone<W>>,
    targets: Vec<Rc<Progress<W>>>,
}

impl<W: World> Pass<W> {
    /// The places of those that have not failed since.
    fn places(&self) -> Vec<usize> {
        let members = self.targets.iter().map(|target| &target.member);
        members
            .filter(|member| member.state() == MemberState::Rebuilding)
            .filter_map(|member| self.zone.place_of(member))
            .collect()
    }
}

/// Drives that are rebuilt.
pub(super) struct Rebuilds<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> Rebuilds<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        Rebuilds { lane }
    }

    /// Drives of a group that are to be rebuilt, and those that others are copied to.
    fn to_rebuild(&self, group: &Group<W>) -> Vec<Rc<Member<W>>> {
        let mut places = self.without_content(group);
        places.extend(Successions::of(self.lane).to_copy(group));
        places
    }

    /// Drives with a place in a group that are to be rebuilt.
    fn without_content(&self, group: &Group<W>) -> Vec<Rc<Member<W>>> {
        let mut places = group.places();
        places.retain(|member| member.state() == MemberState::Rebuilding);
        places
    }

    /// Whether there is anything to rebuild in a group.
    fn has_work(&self, group: &Rc<Group<W>>) -> bool {
        !self.to_rebuild(group).is_empty() || PlaceChoice::of(self.lane).has_lost(group)
    }

    /// Rebuilds all drives that are to be.
    pub(super) async fn rebuild_all(&self) -> Result<(), PoolError> {
        let under_way = UnderWay {
            drives: RefCell::default(),
            places: RefCell::default(),
        };
        let outcome = self.rebuild_groups(&under_way).await;
        for progress in under_way.drives.take() {
            self.lane.background().end(&progress.task);
        }
        for (group, progress) in under_way.places.take() {
            let group = self.lane.drives().group(group);
            PlaceMoves::of(self.lane).tell_end(&group, Some(progress));
        }
        outcome
    }

    async fn rebuild_groups(&self, all: &UnderWay<W>) -> Result<(), PoolError> {
        loop {
            let mut groups = self.lane.drives().groups();
            groups.retain(|group| self.has_work(group));
            if groups.is_empty() {
                return Ok(());
            }
            self.rebuild_side_by_side(all).await?;
            self.look_between_zones().await?;
        }
    }

    /// What does not wait for the end of all rebuilds, and is done while none is under way.
    async fn look_between_zones(&self) -> Result<(), PoolError> {
        if Spares::of(self.lane).next_to_stand_in().is_some() {
            self.lane.world().reached("spare taken during a rebuild");
            Spares::of(self.lane).take_spares().await?;
        }
        // Also to a drive that has just become whole: another rebuild may take days.
        Copies::of(self.lane).move_copies().await?;
        Lending::of(self.lane).lend().await
    }

    /// Rebuilds zones of all groups until nothing is left to rebuild, or there is something else to do.
    async fn rebuild_side_by_side(&self, all: &UnderWay<W>) -> Result<(), PoolError> {
        let mut under_way = FuturesUnordered::new();
        let mut busy: Vec<u16> = Vec::new();
        let mut found = Ok(());
        let mut is_first = true;
        let mut has_one_ended = false;
        loop {
            let lane = self.lane.drives().lane();
            let is_called = lane.registry.is_wanted_of(lane.index);
            let is_disturbed =
                is_called || has_one_ended || Spares::of(self.lane).next_to_stand_in().is_some();
            let goes_on = is_first || !is_disturbed;
            is_first = false;
            let mut groups = self.lane.drives().groups();
            groups.retain(|group| !busy.contains(&group.index) && self.has_work(group));
            if !(goes_on && found.is_ok()) {
                groups.clear();
            }
            if !busy.is_empty() && !groups.is_empty() {
                self.lane.world().reached("groups rebuilt side by side");
            }
            for group in groups {
                busy.push(group.index);
                under_way.push(async move { (group.index, self.rebuild_next(&group, all).await) });
            }
            // Also after an error: what has begun is never dropped.
            let Some((group, outcome)) = under_way.next().await else {
                return found;
            };
            busy.retain(|busy| *busy != group);
            match outcome {
                Ok(has_ended) => has_one_ended |= has_ended,
                Err(error) => found = found.and(Err(error)),
            }
        }
    }

    /// Rebuilds the next zone of a group on all drives that lack it, and ends the rebuilds of those that
    /// have all. Whether there were such.
    async fn rebuild_next(
        &self,
        group: &Rc<Group<W>>,
        all: &UnderWay<W>,
    ) -> Result<bool, PoolError> {
        if self.move_lost(group, all).await? {
            self.drop_failed(group, all).await?;
            return Ok(false);
        }
        let (whole, pass) = {
            // Zones that are taken into use meanwhile are whole from the start. One whose
            // sums are being written must not have them put right at the same time.
            let _settled = self.lane.zone_changes().settle().await;
            self.follow_progress(group, all);
            (self.count_as_whole(group), self.next_pass(group, all))
        };
        let has_ended = !whole.is_empty();
        let mut outcome = self.tell_whole(whole).await;
        if let (Ok(()), Some(pass)) = (&outcome, pass) {
            outcome = self.rebuild_zone(&pass).await;
        }
        let copied = match outcome.is_ok() {
            true => Successions::of(self.lane).finish(group).await,
            false => Ok(false),
        };
        self.drop_failed(group, all).await?;
        outcome.and(copied).map(|is_copied| has_ended || is_copied)
    }

    /// Has lost places of a spread group move to its other drives. Whether one has.
    async fn move_lost(&self, group: &Rc<Group<W>>, all: &UnderWay<W>) -> Result<bool, PoolError> {
        if group.spread.is_none() {
            return Ok(false);
        }
        let mut progress = all.places.borrow_mut().remove(&group.index);
        let moves = PlaceMoves::of(self.lane);
        let moved = moves.move_lost(group, &mut progress).await;
        if let Some(progress) = progress {
            all.places.borrow_mut().insert(group.index, progress);
        }
        moved
    }

    /// Begins the tasks of drives that are to be rebuilt and have none.
    fn follow_progress(&self, group: &Rc<Group<W>>, all: &UnderWay<W>) {
        let zone_bytes = self.lane.identity().zone_bytes;
        let all_zones = self.lane.drives().zones_of(group);
        for member in self.to_rebuild(group) {
            let (whole, zones) = zones_of(&member, &all_zones);
            let known = all.drives.borrow().iter().find_map(|progress| {
                Rc::ptr_eq(&progress.member, &member).then(|| Rc::clone(progress))
            });
            if let Some(progress) = known {
                progress.task.set_total(zones * zone_bytes);
                continue;
            }
            let done = (whole * zone_bytes, zones * zone_bytes);
            let began = self.lane.world().now();
            let task = self
                .lane
                .background()
                .begin(TaskKind::Rebuild, &member.name, began, done);
            self.tell_rebuild(&member, whole);
            all.drives.borrow_mut().push(Rc::new(Progress {
                task,
                began,
                part: zones.saturating_sub(whole) as f64 / zones.max(1) as f64,
                group: group.index,
                member,
            }));
        }
    }

    /// The zone of a group that has the least redundancy left, and the drives that lack it. Of several
    /// the one that the drive lacks which is whole the soonest: its span has its redundancy again then.
    fn next_pass(&self, group: &Rc<Group<W>>, all: &UnderWay<W>) -> Option<Pass<W>> {
        let lacks = |progress: &Rc<Progress<W>>, zone: &Zone<W>| {
            let member = &progress.member;
            member.group() == group.index
                && member.state() == MemberState::Rebuilding
                && zone.place_of(member).is_some()
                && !member.rebuilt().borrow().contains(&zone.shape.zone)
        };
        let targets = |zone: &Rc<Zone<W>>| -> Vec<Rc<Progress<W>>> {
            let all = all.drives.borrow();
            let lacking = all.iter().filter(|progress| lacks(progress, zone));
            lacking.cloned().collect()
        };
        let passes = self
            .lane
            .drives()
            .zones_of(group)
            .into_iter()
            .map(|zone| Pass {
                targets: targets(&zone),
                zone,
            });
        passes
            .filter(|pass| !pass.targets.is_empty())
            .min_by_key(|pass| {
                let left = pass.targets.iter().map(|target| target.task.left_bytes());
                let redundancy_left =
                    Redundancy::of(self.lane.drives()).redundancy_left(&pass.zone, &pass.places());
                (redundancy_left, left.min())
            })
    }

    /// The bounds of the rebuild of a zone, as it is now.
    fn bounds_of(&self, pass: &Pass<W>) -> Bounds {
        let now = self.lane.world().now();
        let rates = self.lane.background().pace().rates();
        let least_of = |progress: &Rc<Progress<W>>| {
            let due = pace::due(progress.began, rates.rebuild_within, progress.part);
            progress.task.set_due(due);
            pace::least_rate(progress.began, due, progress.task.left_bytes(), now)
        };
        Bounds {
            most: rates.rebuild_bytes_per_s,
            least: pass.targets.iter().map(least_of).fold(0.0, f64::max),
            share: match Redundancy::of(self.lane.drives())
                .redundancy_left(&pass.zone, &pass.places())
            {
                0 => Share::Half,
                _ => Share::Small,
            },
        }
    }

    /// The stripes of a zone that lie on the targets of a pass, in order, and how many of them lie
    /// side by side on different drives.
    fn stripes_of(&self, pass: &Pass<W>) -> (Vec<StripeRef>, u64) {
        let geometry = pass.zone.shape.geometry;
        let spans = pass.places().into_iter();
        let mut spans: Vec<usize> = spans.map(|place| geometry.span_of(place)).collect();
        spans.sort_unstable();
        spans.dedup();
        let concerns = |stripe: &StripeRef| spans.contains(&usize::from(stripe.span));
        let mut stripes: Vec<StripeRef> = self
            .lane
            .store()
            .stripes(&pass.zone)
            .filter(concerns)
            .collect();
        let planted = "rebuild skips the last stripe of a zone";
        if self.lane.world().planted(planted) {
            stripes.pop();
        }
        (stripes, spans.len() as u64)
    }

    async fn rebuild_zone(&self, pass: &Pass<W>) -> Result<(), PoolError> {
        let (zone, world, steps) = (&pass.zone, self.lane.world(), Steps::of(self.lane));
        if pass.targets.len() > 1 {
            world.reached("several drives rebuilt in one pass");
        }
        let (stripes, spans) = self.stripes_of(pass);
        // No span, and no stripe, where all targets have failed meanwhile.
        let stripe_bytes = zone.shape.geometry.unit_bytes / spans.max(1);
        let before = pass.targets.iter().map(|target| target.task.done_bytes());
        let before: Vec<u64> = before.collect();
        let mut rest = &stripes[..];
        while !rest.is_empty() {
            let began = world.now();
            let bounds = self.bounds_of(pass);
            let mut places = pass.places();
            if world.planted("second drive of a pass is not written") {
                places.truncate(1);
            }
            let stretch = Stretch::of(zone, (rest, &places), (bounds, stripe_bytes));
            let (taken, _) = steps.heal_some(stretch).await?;
            rest = &rest[taken..];
            if pass.places().is_empty() {
                return Ok(());
            }
            let bytes = taken as u64 * stripe_bytes;
            for target in &pass.targets {
                target.task.advance(bytes);
            }
            steps.rest(bounds, bytes, began).await;
            self.lane.go_on()?;
        }
        for (target, before) in pass.targets.iter().zip(before) {
            if target.member.state() == MemberState::Rebuilding {
                self.finish_zone(zone, &target.member).await?;
                let done = before + self.lane.identity().zone_bytes;
                target.task.advance_to(done);
            }
        }
        Ok(())
    }

    /// Gives a drive that is rebuilt, or that another is copied to, its copies of a zone's sums.
    async fn write_sums(
        &self,
        zone: &Rc<Zone<W>>,
        place: usize,
        member: &Rc<Member<W>>,
    ) -> Result<(), PoolError> {
        let integrity = &self.lane.store().integrity;
        let is_copy = self.lane.drives().predecessor(member).is_some();
        let copied = match is_copy {
            true => {
                integrity
                    .copy_copies(zone, place, &Taker::alone(member))
                    .await
            }
            false => integrity.rebuild_copies(zone, place).await,
        };
        copied.map_err(|error| {
            PoolError::new(
                PoolErrorKind::Drive,
                format!("checksums of zone {}: {error}", zone.shape.zone),
            )
        })
    }

    /// All stripes of a zone are written to a drive: the sums follow, all is made durable, and then the
    /// zone counts.
    async fn finish_zone(
        &self,
        zone: &Rc<Zone<W>>,
        member: &Rc<Member<W>>,
    ) -> Result<(), PoolError> {
        let Some(place) = zone.place_of(member) else {
            return Ok(());
        };
        self.write_sums(zone, place, member).await?;
        if member.state() != MemberState::Rebuilding {
            return Ok(());
        }
        if let Err(error) = member.flush().await {
            let fault = DriveFault {
                member: Rc::clone(member),
                error,
            };
            let _ = self.lane.drives().absorb(vec![fault]).await;
        }
        if member.state() != MemberState::Rebuilding {
            return Ok(());
        }
        let zone = zone.shape.zone;
        let rebuilt = Record::Rebuilt {
            member: member.uuid,
            zone,
        };
        self.lane.journal().commit(vec![rebuilt]).await?;
        member.rebuilt().borrow_mut().insert(zone);
        Ok(())
    }

    /// Drives of a group that hold all zones are whole from now on. Nothing is waited for between the
    /// look and this: a zone that is taken into use later is written to them.
    fn count_as_whole(&self, group: &Rc<Group<W>>) -> Vec<Rc<Member<W>>> {
        let zones = self.lane.drives().zones_of(group);
        let mut members = self.without_content(group);
        members.retain(|member| {
            let rebuilt = member.rebuilt().borrow();
            let mut zones = zones.iter().filter(|zone| zone.place_of(member).is_some());
            zones.all(|zone| rebuilt.contains(&zone.shape.zone))
        });
        for member in &members {
            member.set_state(MemberState::Healthy);
        }
        members
    }

    /// Has the labels say that drives are whole, and forgets which zones they had.
    async fn tell_whole(&self, members: Vec<Rc<Member<W>>>) -> Result<(), PoolError> {
        if members.is_empty() {
            return Ok(());
        }
        self.lane.drives().want_labels();
        self.lane.drives().settle_labels().await;
        self.lane.check()?;
        for member in members {
            self.lane
                .journal()
                .commit(vec![Record::RebuildOver {
                    member: member.uuid,
                }])
                .await?;
            member.rebuilt().borrow_mut().clear();
            self.lane.background().rebuild_has_ended(member.uuid);
            let text = format!(
                "rebuild of drive '{}' has ended: it holds everything",
                member.name
            );
            self.lane.drives().event(EventKind::Rebuild, text);
            self.lane.world().reached("rebuild ends");
        }
        self.lane.wake_background();
        Ok(())
    }

    /// Tells that a rebuild begins or goes on; once, however often it is tried again.
    fn tell_rebuild(&self, member: &Member<W>, whole: u64) {
        if !self.lane.background().tells_rebuild(member.uuid) {
            return;
        }
        let what = match self.lane.drives().predecessor(member) {
            Some(old) => format!("copy of drive '{}' to '{}'", old.name, member.name),
            None => format!("rebuild of drive '{}'", member.name),
        };
        let text = match whole {
            0 => format!("{what} begins"),
            _ => {
                self.lane.world().reached("rebuild resumed");
                let done = base::size::counted(whole, "zone");
                format!("{what} continues, {done} done so far")
            }
        };
        self.lane.drives().event(EventKind::Rebuild, text);
    }

    /// Ends the tasks of drives that are not rebuilt any more: they are whole, or have failed.
    async fn drop_failed(&self, group: &Rc<Group<W>>, all: &UnderWay<W>) -> Result<(), PoolError> {
        let is_over = |progress: &Rc<Progress<W>>| {
            progress.group == group.index && progress.member.state() != MemberState::Rebuilding
        };
        let over = {
            let mut drives = all.drives.borrow_mut();
            drives.extract_if(.., |p| is_over(p)).collect::<Vec<_>>()
        };
        for progress in over {
            self.lane.background().end(&progress.task);
            let member = &progress.member;
            if member.state() == MemberState::Spare {
                Successions::of(self.lane).forget_rebuilt(member).await?;
                self.lane.background().rebuild_has_ended(member.uuid);
            } else if !member.is_whole() {
                self.rebuild_failed(member).await?;
            }
        }
        Ok(())
    }

    async fn rebuild_failed(&self, member: &Member<W>) -> Result<(), PoolError> {
        self.lane.world().reached("rebuild onto a drive that dies");
        self.lane.background().rebuild_has_ended(member.uuid);
        let text = format!(
            "rebuild of drive '{}' has ended: the drive has failed",
            member.name
        );
        self.lane.drives().event(EventKind::Rebuild, text);
        let member = member.uuid;
        self.lane
            .journal()
            .commit(vec![Record::RebuildOver { member }])
            .await
    }

    /// Puts `task` off until no drive is wanting any more.
    pub(super) async fn look_after_drives(&self, task: &Rc<Task>) -> Result<(), PoolError> {
        self.lane.background().put_off(task);
        while Spares::of(self.lane).is_drive_wanting() {
            Spares::of(self.lane).take_spares().await?;
            Copies::of(self.lane).move_copies().await?;
            self.rebuild_all().await?;
            self.lane.go_on()?;
        }
        self.lane.background().resume(task, self.lane.world().now());
        Ok(())
    }
}

/// How many of a group's zones are whole on a drive that is being rebuilt, and how many it has a part
/// of.
fn zones_of<W: World>(member: &Member<W>, zones: &[Rc<Zone<W>>]) -> (u64, u64) {
    let of_it = zones.iter().filter(|zone| zone.place_of(member).is_some());
    let rebuilt = member.rebuilt().borrow();
    let is_whole = |zone: &&Rc<Zone<W>>| rebuilt.contains(&zone.shape.zone);
    let whole = of_it.clone().filter(is_whole).count();
    (whole as u64, of_it.count() as u64)
}
