//! An administrator of volumes that hosts use.
//!
//! It hides units, deletes volumes, moves them to the other pool, revokes tokens, and waits until
//! their time is over.

use super::array::Array;
use super::unit::{Unit, Within};
use crate::control::end_of_job;
use crate::small_pool;
use api::JobState;
use array::control::jobs::NewMove;
use array::control::{ArrayError, ArrayErrorKind, NewPlace};
use base::Prng;
use engine::{Provisioning, World};
use futures_channel::oneshot;
use std::rc::Rc;
use std::time::Duration;

impl Array {
    /// One thing, while hosts are at work.
    pub(super) async fn administer(&self, prng: &mut Prng) {
        let pause = Duration::from_nanos(prng.below(100_000));
        self.world.sleep(pause).await;
        let unit = prng.pick(&self.books.units);
        let what = prng.below(8);
        self.world
            .note(|| format!("administration {what} of {}", unit.name));
        match what {
            0 | 1 => self.hide_for_a_while(unit, prng).await,
            2 => self.delete_for_a_while(unit).await,
            3..=5 => self.carry(unit).await,
            6 => self.offload.expire(self.world.now()).await,
            // Long enough for tokens that nobody uses.
            _ => {
                self.world
                    .sleep(Duration::from_secs(prng.between(1, 3)))
                    .await
            }
        }
    }

    /// Begins to take a unit away, if it is there. While somebody changes reservations, not.
    fn begins_to_go(unit: &Unit) -> bool {
        let may_go = !unit.is_away() && unit.calling.get().is_none();
        if may_go {
            unit.turn();
        }
        may_go
    }

    /// At times until nobody does anything.
    async fn hide_for_a_while(&self, unit: &Unit, prng: &mut Prng) {
        if !Array::begins_to_go(unit) {
            return;
        }
        self.hide(unit).await;
        let pause = Duration::from_nanos(prng.below(50_000));
        if prng.chance(1, 2) {
            self.world.sleep(pause).await;
            self.bring_back(unit).await;
        }
    }

    async fn delete_for_a_while(&self, unit: &Unit) {
        if Array::begins_to_go(unit) {
            self.delete(unit).await;
        }
    }

    /// Has a unit be there again that was hidden, or whose volume was deleted.
    pub(super) async fn bring_back(&self, unit: &Unit) {
        if !unit.is_away() {
            return;
        }
        if unit.is_there.get() == Within::Gone {
            self.make(unit, Provisioning::Thin, 0).await;
        }
        self.show(unit).await;
        unit.turn();
    }

    /// Nobody does anything: some of what is away comes back.
    pub(super) async fn bring_some_back(&self, prng: &mut Prng) {
        for unit in self.books.units.iter().filter(|unit| unit.is_away()) {
            if prng.chance(1, 2) {
                self.bring_back(unit).await;
            }
        }
    }

    /// To the other pool.
    async fn carry(&self, unit: &Unit) {
        if unit.is_there.get() != Within::There {
            return;
        }
        unit.upsets.set(unit.upsets.get() + 1);
        if let Err(error) = self.move_volume(unit).await {
            self.fail(format!("a move: {:?}: {error}", error.kind));
        }
        unit.upsets.set(unit.upsets.get() + 1);
    }

    async fn move_volume(&self, unit: &Unit) -> Result<(), ArrayError> {
        let Some((from, _)) = self.volume_of(unit.uuid.get()) else {
            self.fail(format!("{} is in no pool", unit.name));
            return Ok(());
        };
        let order = NewMove {
            volume: unit.name.clone(),
            to: NewPlace {
                pool: self.pools[1 - from].name().to_owned(),
                leave_snapshots: false,
                // A drive may be away that is struck.
                force: true,
            },
            rate_bytes_per_s: None,
        };
        // No more than this: it may look as before.
        self.owe(unit.number, 1);
        match self.control.move_volume(order).await {
            Ok(job) => self.await_move(unit, job.id).await,
            Err(error) if error.kind == ArrayErrorKind::Full => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Waits for the job that moves a unit: the volume is on its way no more then.
    async fn await_move(&self, unit: &Unit, job: u64) {
        let ended = end_of_job(&self.control, job).await;
        self.world.note(|| format!("job {job} ends: {ended:?}"));
        let is_certain = self.books.tight.is_none() && self.books.victims.is_empty();
        let has_failed = ended.is_none_or(|ended| ended.state != JobState::Done);
        if is_certain && has_failed {
            return self.fail(format!("{} is not moved by job {job}", unit.name));
        }
        for pool in &self.pools {
            let mut on_their_way = pool.transits().into_iter();
            let left = on_their_way.find(|(info, _)| info.uuid == unit.uuid.get());
            if let Some((_, transit)) = left.filter(|_| self.books.victims.is_empty()) {
                let (name, stage) = (&unit.name, transit.stage);
                self.fail(format!("{name} is {stage:?} after job {job}"));
            }
        }
    }

    /// Waits for the moves of a volume that is gone. It was deleted before their end was on record,
    /// and its name is free after that.
    pub(super) async fn end_moves_of(&self, unit: &Unit) {
        let mut left = self.control.jobs().pending();
        left.retain(|job| job.order.volume == unit.name);
        if !left.is_empty() {
            self.control.resume_jobs();
        }
        for job in left {
            let ended = end_of_job(&self.control, job.id).await;
            self.world
                .note(|| format!("job {} ends without its volume: {ended:?}", job.id));
        }
    }

    /// Goes on with the moves that a crash has interrupted. What this gives ends when they have.
    pub(super) fn resume_moves(self: &Rc<Self>) -> oneshot::Receiver<()> {
        let jobs = self.control.jobs().pending();
        let unit_of = |name: &String| self.books.units.iter().position(|one| one.name == *name);
        let moved = jobs
            .iter()
            .filter_map(|job| Some((job.id, unit_of(&job.order.volume)?)));
        let moved: Vec<(u64, usize)> = moved.collect();
        for (_, unit) in &moved {
            let unit = &self.books.units[*unit];
            unit.upsets.set(unit.upsets.get() + 1);
            self.owe(unit.number, 1);
        }
        self.control.resume_jobs();
        let array = Rc::clone(self);
        small_pool::begin(&self.world, async move {
            for (job, unit) in moved {
                let unit = &array.books.units[unit];
                array.await_move(unit, job).await;
                unit.upsets.set(unit.upsets.get() + 1);
            }
        })
    }
}
