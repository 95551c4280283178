//! The order of a start, from open pools to an array that serves.
//!
//! 1. [`ControlPlane::settle`] puts in order what the stop before left in the pools.
//! 2. [`Settled::take_over`] has the array be what its record says, and shows it.
//! 3. [`ControlPlane::keep_by_itself`] has it do from then on what it does unasked.
//! 4. [`ControlPlane::resume_jobs`] goes on with jobs, once hosts can log in.
//!
//! A pool that comes late passes [`ControlPlane::settle_late`] and [`ControlPlane::show_late`].
//!
//! Invariants:
//! - Nothing of a pool is shown before it is settled: a LUN would show a volume where it is no more.
//! - Each step reads nothing that a step before it takes away, and may be taken again. So after a crash
//!   between two steps the next start takes those again that are done, which find nothing to do.

use super::scrubs::ScrubNote;
use super::{ArrayError, Configuration, ControlPlane, Unsettled};
use crate::records::Store;
use engine::World;
use std::sync::Arc;

/// Where the configuration comes from that a start takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// No array has accepted it yet: what can't be served ends the start.
    New,
    /// An array has accepted it, and the record does not say it as it is now.
    Unwritten,
    /// It is the record's.
    Record,
}

impl Basis {
    /// That of a start that finds a whole record, unless it is the `first` one.
    pub fn of(first: bool) -> Basis {
        match first {
            true => Basis::New,
            false => Basis::Record,
        }
    }
}

/// An array whose open pools are settled, and that shows nothing of them yet.
#[must_use = "the array shows nothing before it has taken over its configuration"]
pub struct Settled<W: World> {
    array: Arc<ControlPlane<W>>,
    /// Volumes that can't be had: they stay withheld.
    pub withheld: Vec<Unsettled>,
}

/// What came of settling pools.
struct Outcome {
    withheld: Vec<Unsettled>,
    failed: Vec<ArrayError>,
}

impl<W: World> ControlPlane<W> {
    /// Settles what a stop has left in open pools. Pools with volumes that can't be had are noted as
    /// unsettled.
    ///
    /// # Errors
    /// A shard has stopped, or a record can't be written.
    pub async fn settle(self: &Arc<Self>) -> Result<Settled<W>, ArrayError> {
        let Outcome { withheld, failed } = self.settle_what_is_left(None).await;
        if let Some(first) = failed.into_iter().next() {
            return Err(first);
        }
        for left in &withheld {
            let (volume, error) = (&left.volume, &left.error);
            tracing::error!("volume {volume} is withheld, and tried again by itself: {error}");
            self.pool_is_settled(&left.pool, false);
        }
        let array = Arc::clone(self);
        Ok(Settled { array, withheld })
    }

    /// The same for a pool that has opened late. What can't be done is no reason to leave the rest.
    /// Gives all that could not be done.
    pub async fn settle_late(self: &Arc<Self>, pool: &str) -> Vec<ArrayError> {
        let Outcome { withheld, failed } = self.settle_what_is_left(Some(pool)).await;
        let mut wrong = failed;
        wrong.extend(withheld.into_iter().map(|left| {
            let context = format!("volume {} is withheld: {}", left.volume, left.error);
            ArrayError::new(left.error.kind, context)
        }));
        wrong.extend(self.take_back_unfinished().await.err());
        // It has opened by settings that may have changed since.
        if !self.runtime.planted("late pool goes by old settings") {
            wrong.extend(self.follow_settings(pool).await.err());
        }
        wrong
    }

    /// Takes the steps that settle all open pools, or one of them.
    ///
    /// Jobs are first. A job whose volume was being made finds it by name, so nobody may have made,
    /// moved or renamed a volume since. Then what was kept for tokens goes: these are of the start
    /// before, and it gives pools room, which settling a move may need. Moves are last. They ask the
    /// jobs which copies go on, and a job that is ended by the first step is none of those: it made
    /// a volume, and moved none.
    async fn settle_what_is_left(self: &Arc<Self>, late: Option<&str>) -> Outcome {
        let mut failed = Vec::new();
        failed.extend(self.settle_jobs().await.err());
        let forgotten = self.offload.forget_leftovers(&self.shards, late);
        failed.extend(forgotten.await.err().map(ArrayError::from));
        let withheld = match self.settle_moves(late.map(str::to_owned)).await {
            Ok(withheld) => withheld,
            Err(error) => {
                failed.push(error);
                Vec::new()
            }
        };
        Outcome { withheld, failed }
    }

    /// Shows what a pool has that opened late, once it is settled. Gives all that could not be done.
    pub async fn show_late(self: &Arc<Self>) -> Vec<ArrayError> {
        let mut wrong = Vec::new();
        wrong.extend(self.restore_withheld().await.err());
        wrong.extend(self.learn_all_schedules().await.err());
        self.follow_departures().await;
        self.resume_jobs();
        wrong
    }

    /// Has the array do from now on what it does by itself: empty the trash, run schedules, scrub
    /// pools, share memory.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn keep_by_itself(
        self: &Arc<Self>,
        scrubs: (Arc<dyn Store<Vec<ScrubNote>>>, Vec<ScrubNote>),
    ) -> Result<(), ArrayError> {
        self.keep_trash().await?;
        self.keep_schedules().await?;
        self.keep_scrubs(scrubs);
        if self.machine.memory_bytes().is_some() {
            self.keep_checksum_memory();
        }
        Ok(())
    }
}

impl<W: World> Settled<W> {
    /// As [`Settled::take_over_all`], where all volumes are made that can be.
    ///
    /// # Errors
    /// See there.
    pub async fn take_over(
        self,
        configuration: Configuration,
        basis: Basis,
    ) -> Result<(), ArrayError> {
        self.take_over_all(configuration, basis, true).await
    }

    /// Has the array be what `configuration` says, and keeps that where the record does not say it.
    /// It is complete from then on if all pools are open, and all volumes `are_made` that can be.
    /// Drives that have left are forgotten last: that may write the configuration, which has to be
    /// whole by then.
    ///
    /// # Errors
    /// A shard has stopped, or the record can't be written; what can't be served of a new one.
    pub async fn take_over_all(
        self,
        configuration: Configuration,
        basis: Basis,
        are_made: bool,
    ) -> Result<(), ArrayError> {
        let array = self.array;
        let was_complete = configuration.is_complete;
        let restored = array.restore_configuration(configuration, basis == Basis::New);
        restored.await?;
        let is_complete = was_complete || are_made && array.closed_names().is_none();
        if basis != Basis::Record || is_complete != was_complete {
            array.settle_configuration(is_complete).await?;
        }
        array.follow_departures().await;
        Ok(())
    }
}
