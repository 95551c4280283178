//! Places of zones that go to other drives of their spread group: [`PlaceMoves`].
//!
//! A place whose drive holds nothing any more is put together on a drive that is spare in its zone.
//! Zones differ in both, so a lost drive is rebuilt from all others, and to all of them, many zones at
//! once. Later, when the lost drive has been replaced, the places go home, and the spare room is
//! spread as before.
//!
//! Invariants:
//! - A place moves to a drive that is whole, where no place of the zone is. [`PlaceMove`] has what holds
//!   meanwhile.
//! - It counts there once all stripes and sums are durable, and that is recorded. A move that is cut
//!   short begins anew.
//! - Zones with the least redundancy left are first. No place goes home while one of its group is lost.
//!
//! [`PlaceMove`]: crate::drives::PlaceMove

use super::Task;
use super::TaskKind;
use super::lend::Lending;
use super::pace::{self, Bounds, Share};
use super::place_choice::{Next, PlaceChoice, Wanted};
use super::redundancy::Redundancy;
use super::spares::Spares;
use super::steps::{Steps, Stretch};
use crate::drives::{DriveFault, EventKind, Group, PlaceMove, Taker, Zone};
use crate::meta::Record;
use crate::meta::record::HOME;
use crate::pool::{PoolError, PoolErrorKind};
use crate::space::LaneState;
use crate::store::StripeRef;
use crate::world::World;
use base::Time;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

/// Between two looks at what is under way on a drive.
const LOOK: Duration = Duration::from_millis(1);

/// How long places go home in one round: other work is looked for then.
const ROUND: Duration = Duration::from_secs(1);

/// How far the places of a group are, and since when.
pub(super) struct Progress {
    task: Rc<Task>,
    began: Time,
    /// The part of a drive's zones that is to be put together.
    part: f64,
}

/// Why places move.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Their drives do not hold them any more.
    Lost,
    /// They do not stand at home.
    Away,
}

/// A place all of whose stripes and sums are on the drive that it goes to, or an error has stopped it.
struct Copied<W: World> {
    zone: Rc<Zone<W>>,
    begun: Rc<PlaceMove<W>>,
    outcome: Result<(), PoolError>,
}

/// How far the move of a place is. While it settles it keeps no drive busy, but waits for the journal,
/// and the next place is copied meanwhile.
enum Stage<W: World> {
    Chosen(Next<W>),
    /// These drives are free again; nothing was copied if the place need not move any more.
    Copied(Vec<usize>, Option<Copied<W>>),
    Settling(Copied<W>),
    Over(Result<bool, PoolError>),
}

/// The drives that some moves keep busy. No two of these moves share one, unless they must.
#[derive(Default)]
struct Drives {
    moves: usize,
    drives: Vec<usize>,
}

impl Drives {
    fn add(&mut self, drives: &[usize]) {
        self.moves += 1;
        self.drives.extend(drives);
    }

    fn remove(&mut self, drives: &[usize]) {
        self.moves -= 1;
        for drive in drives {
            let at = self.drives.iter().position(|other| other == drive);
            at.map(|at| self.drives.swap_remove(at));
        }
    }
}

/// Places on their way to other drives.
pub(super) struct PlaceMoves<'a, W: World> {
    lane: &'a Rc<LaneState<W>>,
}

impl<'a, W: World> PlaceMoves<'a, W> {
    pub(super) fn of(lane: &'a Rc<LaneState<W>>) -> Self {
        PlaceMoves { lane }
    }

    fn choice(&self) -> PlaceChoice<'a, W> {
        PlaceChoice::of(self.lane)
    }

    /// Puts lost places of a group together on other drives, until something else is to be done.
    /// Whether there was one that could be.
    pub(super) async fn move_lost(
        &self,
        group: &Rc<Group<W>>,
        progress: &mut Option<Progress>,
    ) -> Result<bool, PoolError> {
        let wanted = match self.choice().has_lost(group) {
            true => self.choice().lost(group),
            false => Vec::new(),
        };
        if wanted.is_empty() {
            self.tell_end(group, progress.take());
            return Ok(false);
        }
        let zone_bytes = self.lane.identity().zone_bytes;
        let left = wanted.len() as u64 * zone_bytes;
        let progress = progress.get_or_insert_with(|| self.begin(group, &wanted));
        progress.task.set_left(left);
        self.move_all(group, (Why::Lost, wanted), progress).await
    }

    /// Whether places of a group may go home now: all of its drives are whole, and nothing else is to
    /// be done.
    fn may_go_home(&self, group: &Group<W>) -> bool {
        group.spread.is_some()
            && !group.leaves()
            && group.whole().iter().all(|is_whole| *is_whole)
            && !self.lane.background().scrubs().is_wanted()
            && !Spares::of(self.lane).is_drive_wanting()
    }

    /// Has places of all groups go home, for a while, or until something else is to be done.
    pub(super) async fn bring_home(&self) -> Result<(), PoolError> {
        for group in self.lane.drives().groups() {
            let away = match self.may_go_home(&group) {
                true => self.choice().away(&group),
                false => Vec::new(),
            };
            if away.is_empty() {
                continue;
            }
            let now = self.lane.world().now();
            let total = away.len() as u64 * self.lane.identity().zone_bytes;
            let subject = format!("group {}", group.index);
            let background = self.lane.background();
            let task = background.begin(TaskKind::Move, &subject, now, (0, total));
            let progress = Progress {
                task,
                began: now,
                part: 0.0,
            };
            let moved = self.move_all(&group, (Why::Away, away), &progress).await;
            background.end(&progress.task);
            if !self.choice().away(&group).is_empty() {
                self.lane.wake_background();
            }
            moved?;
            Lending::of(self.lane).lend().await?;
        }
        Ok(())
    }

    fn begin(&self, group: &Rc<Group<W>>, wanted: &[Wanted<W>]) -> Progress {
        let now = self.lane.world().now();
        let subject = format!("group {}", group.index);
        let task = self
            .lane
            .background()
            .begin(TaskKind::Rebuild, &subject, now, (0, 0));
        let zones = self.lane.drives().zones_of(group).len().max(1);
        let lost = group
            .places()
            .into_iter()
            .filter(|member| !member.is_whole());
        let names: Vec<String> = lost.map(|member| format!("'{}'", member.name)).collect();
        let text = format!(
            "what group {} lacks of drive {} is rebuilt on its distributed spares",
            group.index,
            names.join(", ")
        );
        self.lane.drives().event(EventKind::Rebuild, text);
        self.lane
            .world()
            .reached("lost places move to spare drives");
        Progress {
            task,
            began: now,
            part: (wanted.len() as f64 / zones as f64).min(1.0),
        }
    }

    /// Ends the task of a group's places, if there was one.
    pub(super) fn tell_end(&self, group: &Rc<Group<W>>, progress: Option<Progress>) {
        let Some(progress) = progress else { return };
        self.lane.background().end(&progress.task);
        if self.lane.go_on().is_err() || self.choice().is_any_lost(group) {
            return;
        }
        let text = format!(
            "rebuild of group {} on its distributed spares has ended",
            group.index
        );
        self.lane.drives().event(EventKind::Rebuild, text);
        self.lane.wake_background();
    }

    /// Whether what is under way has to wait, beside what it was begun with.
    fn is_disturbed(&self, group: &Group<W>, (whole, why, began): (usize, Why, Time)) -> bool {
        let lane = self.lane.drives().lane();
        let is_over = || self.lane.world().now().since(began) > ROUND || !self.may_go_home(group);
        lane.registry.is_wanted_of(lane.index)
            || why == Why::Away && is_over()
            || whole_drives(group) != whole
            || Spares::of(self.lane).next_to_stand_in().is_some()
            || self.lane.go_on().is_err()
    }

    /// Moves places, several at a time. Whether one has moved.
    async fn move_all(
        &self,
        group: &Rc<Group<W>>,
        (why, wanted): (Why, Vec<Wanted<W>>),
        progress: &Progress,
    ) -> Result<bool, PoolError> {
        let mut wanted = VecDeque::from(wanted);
        let whole = whole_drives(group);
        // As many as there are spans, if chance lays them side by side.
        let spans = |first: &Wanted<W>| first.zone.shape.geometry.spans;
        let at_once = wanted.front().map_or(1, spans).max(1);
        let (began, copying) = (self.lane.world().now(), Cell::new(1));
        let of = (why, progress, &copying);
        let mut under_way = FuturesUnordered::new();
        let (mut busy, mut any, mut found) = (Drives::default(), false, Ok(()));
        let is_disturbed = || self.is_disturbed(group, (whole, why, began));
        // One goes in any case: or a disturbance that lasts would keep all from moving.
        let mut most = if is_disturbed() { 1 } else { at_once };
        loop {
            for next in self.choose(&mut wanted, &mut busy, most) {
                under_way.push(self.go_on_with(Stage::Chosen(next), of));
            }
            copying.set(busy.moves.max(1));
            // Only free drives make room for another.
            most = 0;
            // Also after an error: what has begun is never dropped.
            match under_way.next().await {
                None => return found.map(|()| any),
                Some(Stage::Copied(drives, copied)) => {
                    busy.remove(&drives);
                    if found.is_ok() && !is_disturbed() {
                        most = at_once;
                    }
                    let copied = copied.map(Stage::Settling);
                    under_way.extend(copied.map(|copied| self.go_on_with(copied, of)));
                }
                Some(Stage::Over(Ok(has_moved))) => any |= has_moved,
                Some(Stage::Over(Err(error))) => found = found.and(Err(error)),
                Some(Stage::Chosen(_) | Stage::Settling(_)) => unreachable!("that is over"),
            }
        }
    }

    /// The next moves, with drives for themselves, so that as many are copied at once.
    fn choose(
        &self,
        wanted: &mut VecDeque<Wanted<W>>,
        busy: &mut Drives,
        at_once: usize,
    ) -> Vec<Next<W>> {
        let mut chosen = Vec::new();
        while busy.moves < at_once
            && let Some(next) = self.choice().next(wanted, &busy.drives)
        {
            busy.add(&next.drives);
            chosen.push(next);
        }
        chosen
    }

    /// Has a move go from one stage to the next.
    async fn go_on_with(
        &self,
        stage: Stage<W>,
        (why, progress, copying): (Why, &Progress, &Cell<usize>),
    ) -> Stage<W> {
        match stage {
            Stage::Chosen(Next { wanted, drives }) => {
                let target = drives.last().copied();
                let place = (wanted.zone, wanted.place);
                let copied = self.copy_place(place, target, why, (progress, copying));
                Stage::Copied(drives, copied.await)
            }
            Stage::Settling(copied) => Stage::Over(self.settle_place(copied).await),
            Stage::Copied(..) | Stage::Over(_) => stage,
        }
    }

    /// The stripes of a zone that a place has a part of.
    fn stripes_of(&self, zone: &Zone<W>, place: usize) -> Vec<StripeRef> {
        let span = zone.shape.geometry.span_of(place);
        let stripes = self.lane.store().stripes(zone);
        stripes
            .filter(|stripe| usize::from(stripe.span) == span)
            .collect()
    }

    /// Copies a place to another drive, if it still is to go to one.
    async fn copy_place(
        &self,
        (zone, place): (Rc<Zone<W>>, usize),
        target: Option<usize>,
        why: Why,
        progress: (&Progress, &Cell<usize>),
    ) -> Option<Copied<W>> {
        let begun = {
            // A zone that is being taken into use has its sums written.
            let _settled = self.lane.zone_changes().settle().await;
            let is_in_use = self.lane.drives().is_in_use(&zone);
            let to = match why {
                _ if !is_in_use || zone.move_of(place).is_some() => None,
                Why::Lost if zone.is_readable(place) => None,
                Why::Lost => self.choice().target_or_other(&zone, target),
                Why::Away => self.choice().towards_home(&zone, place),
            };
            zone.begin_move(place, &to?)
        };
        let outcome = self.copy(&zone, &begun, (why, progress)).await;
        Some(Copied {
            zone,
            begun,
            outcome,
        })
    }

    /// Records that a copied place stands on its new drive. Whether it does.
    async fn settle_place(&self, copied: Copied<W>) -> Result<bool, PoolError> {
        let Copied {
            zone,
            begun,
            outcome: copied,
        } = copied;
        let outcome = match &copied {
            Ok(()) => self.settle(&zone, &begun).await,
            Err(_) => Ok(false),
        };
        zone.end_move(&begun, begun.is_settling());
        let (now, left_out) = (self.lane.world().now(), self.lane.background().no_takers());
        match outcome {
            Ok(true) => left_out.remove(begun.to.uuid),
            Ok(false) if self.lane.go_on().is_ok() => {
                self.lane.world().reached("move of a place given up");
                left_out.add(begun.to.uuid, now);
            }
            _ => {}
        }
        copied.and(outcome)
    }

    /// Waits until what was under way on a drive has ended: it may be of another place of the zone,
    /// which was there before, and land after what is written there next.
    async fn quiesce(&self, begun: &PlaceMove<W>) -> Result<(), PoolError> {
        let since = self.lane.world().now();
        let is_before = |oldest: Time| oldest <= since;
        while begun.to.vitals().oldest().is_some_and(is_before) {
            self.lane.world().sleep(LOOK).await;
            self.lane.go_on()?;
        }
        Ok(())
    }

    /// Writes all that a place holds to the drive that it goes to.
    async fn copy(
        &self,
        zone: &Rc<Zone<W>>,
        begun: &Rc<PlaceMove<W>>,
        (why, (progress, copying)): (Why, (&Progress, &Cell<usize>)),
    ) -> Result<(), PoolError> {
        let (world, steps) = (self.lane.world(), Steps::of(self.lane));
        self.quiesce(begun).await?;
        let mut stripes = self.stripes_of(zone, begun.place);
        if world.planted("move of a place skips the last stripe") {
            stripes.pop();
        }
        let mut rest = &stripes[..];
        while !rest.is_empty() && begun.goes_on() {
            let began = world.now();
            let bounds = self.bounds(zone, begun.place, (why, progress, copying.get()));
            let stripe_bytes = zone.shape.geometry.unit_bytes;
            let targets = [begun.place];
            let stretch = Stretch::of(zone, (rest, &targets), (bounds, stripe_bytes));
            let stretch = stretch.one_of(copying.get());
            let (taken, _) = steps.heal_some(stretch).await?;
            rest = &rest[taken..];
            let bytes = taken as u64 * stripe_bytes;
            progress.task.advance(bytes);
            steps.rest(bounds, bytes, began).await;
            self.lane.go_on()?;
        }
        match begun.goes_on() {
            true => self.complete(zone, begun).await,
            false => Ok(()),
        }
    }

    /// Copies the checksums of a place whose stripes have been written, and makes all durable.
    async fn complete(
        &self,
        zone: &Rc<Zone<W>>,
        begun: &Rc<PlaceMove<W>>,
    ) -> Result<(), PoolError> {
        let world = self.lane.world();
        if world.planted("move of a place copies no checksums") {
            return Ok(());
        }
        let integrity = &self.lane.store().integrity;
        let taker = Taker::of_move(begun);
        let copied = integrity.copy_copies(zone, begun.place, &taker).await;
        copied.map_err(|error| {
            PoolError::new(
                PoolErrorKind::Drive,
                format!("checksums of zone {}: {error}", zone.shape.zone),
            )
        })?;
        if world.planted("moved place not flushed") {
            return Ok(());
        }
        if let Err(error) = begun.to.flush().await {
            begun.excuses();
            let member = Rc::clone(&begun.to);
            let fault = DriveFault { member, error };
            self.lane.drives().absorb_read(fault).await;
        }
        Ok(())
    }

    /// The bounds of the move of a place, as it is now.
    fn bounds(
        &self,
        zone: &Zone<W>,
        place: usize,
        (why, progress, at_once): (Why, &Progress, usize),
    ) -> Bounds {
        let rates = self.lane.background().pace().rates();
        let most = rates.rebuild_bytes_per_s;
        // Each of several that go side by side.
        let most = most.map(|most| (most / at_once as u64).max(1));
        if why == Why::Away {
            return Bounds::at_most(most);
        }
        let now = self.lane.world().now();
        let due = pace::due(progress.began, rates.rebuild_within, progress.part);
        progress.task.set_due(due);
        let least = pace::least_rate(progress.began, due, progress.task.left_bytes(), now);
        let redundancy = Redundancy::of(self.lane.drives());
        Bounds {
            most,
            least: least / at_once as f64,
            share: match redundancy.redundancy_left(zone, &[place]) {
                0 => Share::Half,
                _ => Share::Small,
            },
        }
    }

    /// Records that a place stands on the drive that it went to. False when the move was given up.
    async fn settle(
        &self,
        zone: &Rc<Zone<W>>,
        begun: &Rc<PlaceMove<W>>,
    ) -> Result<bool, PoolError> {
        let (to, world) = (&begun.to, self.lane.world());
        let drive = usize::from(to.place());
        let is_there = to.is_whole() && Rc::ptr_eq(&zone.group.place(drive), to);
        if !begun.goes_on() || !is_there {
            return self.lane.check().map(|()| false);
        }
        zone.settle(begun);
        if world.planted("place counts as moved before its record") {
            // The drive that it stood on gets no more writes, and an opening finds it there.
            let _ = zone.stand(begun.place, drive);
            return Ok(true);
        }
        let is_home = zone.home_of(begun.place) == drive;
        let moved = Record::Moved {
            zone: zone.shape.zone,
            place: begun.place as u8,
            drive: if is_home { HOME } else { drive as u8 },
        };
        self.lane.journal().commit(vec![moved]).await?;
        let stands = zone.stand(begun.place, drive);
        assert!(stands.is_ok(), "{stands:?}");
        world.reached("place moved to another drive");
        Ok(true)
    }
}

/// Drives of a group that hold all that they should.
fn whole_drives<W: World>(group: &Group<W>) -> usize {
    let places = group.places();
    places.iter().filter(|member| member.is_whole()).count()
}
