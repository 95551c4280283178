//! Collects the events of all pools and puts them on record.
//!
//! Invariants:
//! - Each event is put on record once, soon after it happened; one that may still become
//!   another, when it can't any more.
//! - Nobody waits for the record but an array that stops.

use super::recorded::RecordedEvents;
use super::telling::{ClockReading, events_on, log, told};
use super::{Loss, Losses, PoolEvent};
use crate::control::line::Line;
use crate::control::{ArrayError, ControlPlane, SentWarnings};
use crate::shard::ShardState;
use engine::World;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often to look for new events.
const PAUSE: Duration = Duration::from_millis(200);

/// A lane as it was opened: its shard, and the number of the opening there.
type Opening = (usize, u64);

/// The record of events.
pub trait EventRecord: Send + Sync {
    /// Adds events, durably. What has begun goes on when nobody waits for it any more.
    ///
    /// # Errors
    /// Why they can't be, for people. They come with the next.
    fn add(&self, events: Vec<PoolEvent>) -> BoxFuture<'static, Result<(), String>>;
}

/// What puts events on record.
pub struct Recorder {
    /// What happened before this start.
    earlier: Vec<PoolEvent>,
    record: Arc<dyn EventRecord>,
    losses: Mutex<Losses>,
    /// Of the lanes that are open. The numbers of a lane's events begin anew with each opening.
    taken: Mutex<BTreeMap<Opening, RecordedEvents>>,
    /// At its head stands who takes events.
    takers: Arc<Line>,
}

impl Recorder {
    /// Of an array whose events of before are on `record`, oldest first.
    pub fn new(earlier: Vec<PoolEvent>, record: Arc<dyn EventRecord>) -> Self {
        let mut losses = Losses::default();
        losses.take(&earlier);
        Recorder {
            earlier,
            record,
            losses: Mutex::new(losses),
            taken: Mutex::default(),
            takers: Arc::default(),
        }
    }

    fn losses(&self) -> MutexGuard<'_, Losses> {
        // Each event is taken in whole.
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<Opening, RecordedEvents>> {
        // Whole after each shard.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those on record of before this start, and then these by their time.
    pub(in crate::control) fn with_earlier(&self, mut since: Vec<PoolEvent>) -> Vec<PoolEvent> {
        since.sort_by_key(|event| event.at_unix_us);
        [self.earlier.clone(), since].concat()
    }

    async fn write(&self, events: Vec<PoolEvent>) {
        if events.is_empty() {
            return;
        }
        events.iter().for_each(log);
        if let Err(why) = self.record.add(events).await {
            tracing::warn!("{why}");
        }
    }
}

impl<W: World> ControlPlane<W> {
    /// Events of all pools, oldest first: those on record of before this start, then all
    /// since.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn events(&self) -> Result<Vec<PoolEvent>, ArrayError> {
        let clock = ClockReading::now(self.runtime());
        let mut since = Vec::new();
        for shard in self.shards() {
            let visit = move |state: Rc<ShardState<W>>| async move { events_on(&state, clock) };
            since.extend(shard.call(visit).await?);
        }
        Ok(self.recorder.with_earlier(since))
    }

    /// What a pool has lost that no scrub since has found to be whole again.
    pub fn loss_of(&self, pool_uuid: &str) -> Option<Loss> {
        self.recorder.losses().of(pool_uuid)
    }

    /// Puts new events on record: all of them when there is no later. So is what they say of
    /// drives.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn record_events(&self, is_last: bool) -> Result<(), ArrayError> {
        self.record(is_last, move |_| is_last).await
    }

    /// Puts new events on record, and all of a pool that is about to be no more.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn record_last_events(&self, pool: &str) -> Result<(), ArrayError> {
        let going = pool.to_owned();
        self.record(true, move |name| name == going).await
    }

    /// Puts new events on record, all of them of pools of which these are the last. Shards have
    /// longer to answer if `there_is_no_later`.
    async fn record(
        &self,
        there_is_no_later: bool,
        is_last: impl Fn(&str) -> bool + Clone + Send + 'static,
    ) -> Result<(), ArrayError> {
        let _turn = self.recorder.takers.stand().await;
        let new = self.take_events(there_is_no_later, is_last).await?;
        self.recorder.losses().take(&new);
        let is_about_drives = self.roster.is_due(&new);
        self.recorder.write(new).await;
        if is_about_drives {
            self.note_drives_and_warn().await;
        }
        Ok(())
    }

    /// The events that are to go on record now, oldest first.
    async fn take_events(
        &self,
        there_is_no_later: bool,
        is_last: impl Fn(&str) -> bool + Clone + Send + 'static,
    ) -> Result<Vec<PoolEvent>, ArrayError> {
        let clock = ClockReading::now(self.runtime());
        let before = self.recorder.taken().clone();
        let visit = |index| {
            let (mut before, is_last) = (before.clone(), is_last.clone());
            move |state: Rc<ShardState<W>>| async move {
                let (mut after, mut new) = (Vec::new(), Vec::new());
                let now = state.world().now();
                for (opening, pool) in state.openings() {
                    let lane = (index, opening);
                    let mut of_lane = before.remove(&lane).unwrap_or_default();
                    let events = pool.events(of_lane.to);
                    let events = of_lane.take(events, now, is_last(pool.name()));
                    new.extend(told(&pool, events, clock));
                    after.push((lane, of_lane));
                }
                (after, new)
            }
        };
        let answers = self.ask_all(there_is_no_later, visit).await?;
        let mut new = Vec::new();
        for (index, answer) in answers {
            // What a silent shard has to tell comes on record once it answers.
            let Some((after, of_shard)) = answer else {
                continue;
            };
            let mut taken = self.recorder.taken();
            taken.retain(|(shard, _), _| *shard != index);
            taken.extend(after);
            new.extend(of_shard);
        }
        new.sort_by_key(|event: &PoolEvent| event.at_unix_us);
        Ok(new)
    }

    /// Puts events on record in the background from now on.
    pub fn keep_events(self: &Arc<Self>) {
        let (array, runtime) = (Arc::downgrade(self), Arc::clone(&self.runtime));
        let keep = async move {
            let mut told = SentWarnings::default();
            while let Some(array) = array.upgrade() {
                let warned = array.warn_initiators(&mut told).await;
                let recorded = array.record_events(false).await;
                if recorded.and(warned.map(drop)).is_err() {
                    return;
                }
                drop(array);
                runtime.sleep(PAUSE).await;
            }
        };
        self.runtime.spawn(keep.boxed());
    }
}
